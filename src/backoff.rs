//! How long to wait before trying again what has failed.

use std::time::Duration;

/// How long to wait before the first attempt; each further one waits twice as long.
const FIRST: Duration = Duration::from_millis(500);

/// How long to wait between attempts at most.
const LONGEST: Duration = Duration::from_secs(10);

/// What has worked this long was well: after its next failure the first pause comes again.
pub const STEADY: Duration = Duration::from_secs(2);

/// The pauses between attempts.
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
    /// The pause after a failure of what had worked for `worked`. That of something that keeps
    /// failing right away grows, so that it fills neither the log nor a bus.
    pub fn after(&mut self, worked: Duration) -> Duration {
        self.pause = if worked >= STEADY { FIRST } else { self.longer() };
        self.pause
    }

    /// The pause after one more attempt that failed.
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
