//! Plays a recording no faster than it was recorded.

use std::time::{Duration, Instant};

use crate::core::control::Switch;

/// Longest sleep before the stop switch is checked again.
const NAP: Duration = Duration::from_millis(20);

/// Longest wait for a pair; a recording with a jump or a gap continues after it.
const LONGEST: Duration = Duration::from_secs(10);

/// Delays each pair until its time. If the matcher is slower than the recording, the clock falls
/// behind and nothing is skipped.
#[derive(Debug, Default)]
pub struct Pacer {
    /// Wall-clock time and stream time of one moment.
    anchor: Option<(Instant, Duration)>,
}

impl Pacer {
    /// Creates a pacer that starts with the first pair.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until `timestamp` is due, or `stop` is set; returns how late it is already.
    pub fn wait(&mut self, timestamp: Duration, stop: &Switch) -> Duration {
        let now = Instant::now();
        let (wall, stream) = *self.anchor.get_or_insert((now, timestamp));
        let mut due = wall.checked_add(timestamp.saturating_sub(stream)).unwrap_or(now + LONGEST);
        if due < now || due >= now + LONGEST {
            // If late or after a gap, play on from here instead of rushing to catch up.
            due = due.min(now + LONGEST);
            self.anchor = Some((due.max(now), timestamp));
        }
        while !stop.is_set() {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(NAP));
        }
        now.saturating_duration_since(due)
    }

    /// Moves every due time back by `pause`.
    pub fn shift(&mut self, pause: Duration) {
        if let Some((wall, _)) = &mut self.anchor {
            *wall += pause;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_held_back_but_never_hurried() {
        let (mut pacer, stop) = (Pacer::new(), Switch::default());
        let start = Instant::now();
        assert_eq!(pacer.wait(Duration::from_secs(5), &stop), Duration::ZERO);
        assert_eq!(pacer.wait(Duration::from_millis(5040), &stop), Duration::ZERO);
        assert!(start.elapsed() >= Duration::from_millis(40));
        std::thread::sleep(Duration::from_millis(30));
        // 5050 is already late, so the clock restarts there.
        let lateness = pacer.wait(Duration::from_millis(5050), &stop);
        assert!(lateness >= Duration::from_millis(20), "{lateness:?}");
        let late = Instant::now();
        pacer.wait(Duration::from_millis(5070), &stop);
        assert!(late.elapsed() >= Duration::from_millis(19));
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let (mut pacer, stop) = (Pacer::new(), Switch::default());
        pacer.wait(Duration::ZERO, &stop);
        stop.set(true);
        // Would be ten seconds.
        pacer.wait(Duration::from_secs(3600), &stop);
        // A gap of an hour causes no wait of an hour, and the clock continues after it.
        let (due, stream) = pacer.anchor.unwrap();
        assert!(due.duration_since(Instant::now()) <= LONGEST);
        assert_eq!(stream, Duration::from_secs(3600));
    }
}
