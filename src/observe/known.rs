//! Watches the share of the pixels that have a disparity.

use std::time::Duration;

use super::Observer;
use super::map_metrics::valid_share;
use super::told::{Check, Warnings};
use stereod_core::frame::Matched;

/// Share below which the views hardly fit together. Difficult scenes have half of their pixels.
const FEW: f64 = 0.3;

/// Share above which they fit again.
const ENOUGH: f64 = 0.45;

/// Time over which the share is averaged.
const WINDOW: Duration = Duration::from_secs(3);

/// Fewest pairs of an average.
const PAIRS: u32 = 8;

/// Warns if few pixels have a disparity.
#[derive(Debug, Default)]
pub struct KnownObserver {
    warnings: Warnings,
    /// Time of the first pair of the average.
    since: Option<Duration>,
    sum: f64,
    pairs: u32,
    /// True if the last average was too low.
    is_told: bool,
    /// True if an average was complete.
    was_judged: bool,
}

impl KnownObserver {
    pub fn new(warnings: Warnings) -> Self {
        Self { warnings, ..Self::default() }
    }

    /// Ends the average.
    fn judge(&mut self) {
        let share = self.sum / f64::from(self.pairs);
        (self.since, self.sum, self.pairs, self.was_judged) = (None, 0.0, 0, true);
        let is_low = share < if self.is_told { ENOUGH } else { FEW };
        let text = is_low.then(|| {
            format!(
                "only {:.0} % of the pixels have a disparity, so the views hardly fit together: check that left \
                 and right are not exchanged (--swap), that both show the same moment (`--offset auto` for two \
                 recordings), that the calibration is that of these cameras, the range (`--disparities auto`) \
                 and the light",
                share * 100.0
            )
        });
        match (text, std::mem::replace(&mut self.is_told, is_low)) {
            (Some(text), false) => self.warnings.warn(Check::Density, text),
            (text, _) => self.warnings.renew(Check::Density, text),
        }
    }

    fn note(&mut self, time: Duration, share: f64) {
        let since = *self.since.get_or_insert(time);
        self.sum += share;
        self.pairs += 1;
        if self.pairs >= PAIRS && time.abs_diff(since) >= WINDOW {
            self.judge();
        }
    }
}

impl Observer for KnownObserver {
    fn observe(&mut self, frame: &Matched) {
        self.note(frame.pair.timestamp, valid_share(frame));
    }

    /// Judges a run that was too short for an average.
    fn finish(&mut self) {
        if !self.was_judged && self.pairs > 0 {
            self.judge();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_share_is_told_once_until_it_was_high_again() {
        let mut observer = KnownObserver::default();
        let warnings = observer.warnings.clone();
        let mut time = Duration::ZERO;
        // How often it was told, and whether it stands.
        let mut told = |share: f64, seconds: u32| {
            for _ in 0..10 * seconds {
                time += Duration::from_millis(100);
                observer.note(time, share);
            }
            warnings.all().pop().map(|told| (told.count, told.stands))
        };
        assert_eq!(told(0.8, 10), None);
        // A hand before the camera for a moment.
        assert_eq!(told(0.0, 1), None);
        assert_eq!(told(0.8, 10), None);
        assert_eq!(told(0.15, 20), Some((1, true)));
        let text = || warnings.all().pop().unwrap().text;
        assert!(text().contains("15 %") && text().contains("--swap"), "{}", text());
        assert_eq!(told(0.35, 20), Some((1, true)));
        assert!(text().contains("35 %"), "{}", text());
        assert_eq!(told(0.15, 20), Some((1, true)));
        assert_eq!(told(0.8, 20), Some((1, false)));
        assert_eq!(told(0.15, 20), Some((2, true)));
    }

    #[test]
    fn a_short_run_is_judged_at_its_end() {
        let mut observer = KnownObserver::default();
        observer.finish();
        assert_eq!(observer.warnings.all(), []);
        observer.note(Duration::ZERO, 0.2);
        observer.finish();
        assert!(observer.warnings.all()[0].text.contains("20 %"));
    }
}
