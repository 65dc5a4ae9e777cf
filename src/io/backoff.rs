//! Growing pauses between attempts at something that fails.

use std::time::Duration;

/// Pause before the first attempt; it doubles with every further one.
const FIRST: Duration = Duration::from_millis(500);

/// Longest pause.
const LONGEST: Duration = Duration::from_secs(10);

/// After this long without a failure, the next one starts with the first pause again.
pub const STEADY: Duration = Duration::from_secs(2);

/// Pauses between attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    pause: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { pause: FIRST }
    }
}

impl Backoff {
    /// Returns the pause after a failure; it grows for what fails at once, to flood no log or bus.
    pub fn after(&mut self, worked: Duration) -> Duration {
        self.pause = if worked >= STEADY { FIRST } else { self.longer() };
        self.pause
    }

    /// Returns the pause after one more failed attempt.
    pub fn further(&mut self) -> Duration {
        self.pause = self.longer();
        self.pause
    }

    fn longer(&self) -> Duration {
        (self.pause * 2).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_begin_anew_after_a_good_time() {
        let mut backoff = Backoff::default();
        let ms = |pause: Duration| pause.as_millis();
        assert_eq!(ms(backoff.after(STEADY)), 500);
        let further: Vec<_> = (0..6).map(|_| ms(backoff.further())).collect();
        assert_eq!(further, [1000, 2000, 4000, 8000, 10_000, 10_000]);
        assert_eq!(ms(backoff.after(Duration::from_secs(1))), 10_000);
        assert_eq!(ms(backoff.after(STEADY)), 500);
        assert_eq!(ms(backoff.after(Duration::ZERO)), 1000);
    }
}
