//! Plays a recording no faster than it was recorded.

use std::time::{Duration, Instant};

/// Longest sleep before the end of the wait is checked again.
const NAP: Duration = Duration::from_millis(20);

/// Longest wait for a pair; a recording with a jump or a gap continues after it.
const LONGEST: Duration = Duration::from_secs(10);

/// Delays each pair until its time. If the matcher is slower than the recording, the clock falls
/// behind and nothing is skipped.
#[derive(Debug)]
pub struct Pacer {
    /// Wall-clock time and stream time of one moment.
    anchor: Option<(Instant, Duration)>,
    /// Seconds of the recording per second.
    speed: f64,
}

impl Default for Pacer {
    fn default() -> Self {
        Self { anchor: None, speed: 1.0 }
    }
}

impl Pacer {
    pub fn new() -> Self {
        Self::default()
    }

    /// Restarts with the next pair, because the recording was moved.
    pub fn restart(&mut self) {
        self.anchor = None;
    }

    pub fn set_speed(&mut self, speed: f64) {
        if speed != self.speed {
            self.speed = speed;
            self.restart();
        }
    }

    /// Waits until `timestamp` is due, or `is_over`; returns how late it is already.
    pub fn wait(&mut self, timestamp: Duration, is_over: impl Fn() -> bool) -> Duration {
        let now = Instant::now();
        let due = self.due(timestamp, now);
        while !is_over() {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(NAP));
        }
        now.saturating_duration_since(due)
    }

    fn due(&mut self, timestamp: Duration, now: Instant) -> Instant {
        let (wall, stream) = *self.anchor.get_or_insert((now, timestamp));
        let after = timestamp.saturating_sub(stream).as_secs_f64() / self.speed;
        let after = Duration::try_from_secs_f64(after).unwrap_or(Duration::MAX);
        let mut due = wall.checked_add(after).unwrap_or(now + LONGEST);
        if due < now || due >= now + LONGEST {
            // If late or after a gap, play on from here instead of rushing to catch up.
            due = due.min(now + LONGEST);
            self.anchor = Some((due.max(now), timestamp));
        }
        due
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
        let (mut pacer, start) = (Pacer::new(), Instant::now());
        let due = |pacer: &mut Pacer, timestamp, at| {
            let ms = Duration::from_millis;
            pacer.due(ms(timestamp), start + ms(at)).duration_since(start).as_millis()
        };
        assert_eq!(due(&mut pacer, 5000, 0), 0);
        assert_eq!(due(&mut pacer, 5040, 1), 40);
        // 5050 is already late, so the clock restarts there.
        assert_eq!(due(&mut pacer, 5050, 70), 50);
        assert_eq!(due(&mut pacer, 5070, 75), 90);
        // At half the speed the same time takes twice as long, from the next pair on.
        pacer.set_speed(0.5);
        assert_eq!(due(&mut pacer, 5090, 100), 100);
        assert_eq!(due(&mut pacer, 5110, 100), 140);
    }

    #[test]
    fn a_pair_is_waited_for() {
        let (mut pacer, start) = (Pacer::new(), Instant::now());
        pacer.wait(Duration::from_secs(5), || false);
        pacer.wait(Duration::from_millis(5040), || false);
        assert!(start.elapsed() >= Duration::from_millis(40));
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let mut pacer = Pacer::new();
        pacer.wait(Duration::ZERO, || false);
        // Would be ten seconds.
        pacer.wait(Duration::from_secs(3600), || true);
        // A gap of an hour causes no wait of an hour, and the clock continues after it.
        let (due, stream) = pacer.anchor.unwrap();
        assert!(due.duration_since(Instant::now()) <= LONGEST);
        assert_eq!(stream, Duration::from_secs(3600));
    }
}
