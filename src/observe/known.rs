//! Watches the share of the pixels that have a disparity.

use std::time::Duration;

use super::Observer;
use super::map_metrics::valid_share;
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
    /// Ends the average, and returns the warning.
    fn judge(&mut self) -> Option<String> {
        let share = self.sum / f64::from(self.pairs);
        (self.since, self.sum, self.pairs, self.was_judged) = (None, 0.0, 0, true);
        if share >= FEW {
            self.is_told &= share < ENOUGH;
            return None;
        }
        (!std::mem::replace(&mut self.is_told, true)).then(|| {
            format!(
                "only {:.0} % of the pixels have a disparity, so the views hardly fit together: check that left \
                 and right are not exchanged (--swap), that both show the same moment (`--offset auto` for two \
                 recordings), that the calibration is that of these cameras, the range (`--disparities auto`) \
                 and the light",
                share * 100.0
            )
        })
    }

    fn note(&mut self, time: Duration, share: f64) -> Option<String> {
        let since = *self.since.get_or_insert(time);
        self.sum += share;
        self.pairs += 1;
        let is_full = self.pairs >= PAIRS && time.abs_diff(since) >= WINDOW;
        if is_full { self.judge() } else { None }
    }

    /// Judges a run that was too short for an average.
    fn end(&mut self) -> Option<String> {
        if self.was_judged || self.pairs == 0 { None } else { self.judge() }
    }
}

impl Observer for KnownObserver {
    fn observe(&mut self, frame: &Matched) {
        if let Some(warning) = self.note(frame.pair.timestamp, valid_share(frame)) {
            tracing::warn!("{warning}");
        }
    }

    fn finish(&mut self) {
        if let Some(warning) = self.end() {
            tracing::warn!("{warning}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_share_is_told_once_until_it_was_high_again() {
        let mut observer = KnownObserver::default();
        let mut time = Duration::ZERO;
        let mut told = |share: f64, seconds: u32| {
            let note = |_| {
                time += Duration::from_millis(100);
                observer.note(time, share)
            };
            (0..10 * seconds).filter_map(note).collect::<Vec<_>>()
        };
        assert_eq!(told(0.8, 10), [""; 0]);
        // A hand before the camera for a moment.
        assert_eq!(told(0.0, 1), [""; 0]);
        assert_eq!(told(0.8, 10), [""; 0]);
        let low = told(0.15, 20);
        assert!(low.len() == 1 && low[0].contains("15 %") && low[0].contains("--swap"), "{low:?}");
        assert_eq!(told(0.35, 20), [""; 0]);
        assert_eq!(told(0.15, 20), [""; 0]);
        assert_eq!(told(0.8, 20), [""; 0]);
        assert_eq!(told(0.15, 20).len(), 1);
    }

    #[test]
    fn a_short_run_is_judged_at_its_end() {
        let mut observer = KnownObserver::default();
        assert_eq!(observer.end(), None);
        assert_eq!(observer.note(Duration::ZERO, 0.2), None);
        assert!(observer.end().is_some_and(|told| told.contains("20 %")));
    }
}
