//! Notice that a live source gives more pairs than are matched, and what would keep up.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::commands::run::live::handles::Handles;
use crate::matching::{Params, Paths};

/// Period over which pairs are counted. The first one does not count: engines begin slowly.
const PERIOD: Duration = Duration::from_secs(5);

/// Part of the pairs, one in so many, that may be dropped before it is told.
const TOLERATED: u64 = 10;

/// Part of the time of 8 paths that 4 take.
const TIME_OF_FOUR_PATHS: f64 = 0.6;

/// What is aimed at, of what the engine has reached with the settings as they are.
const SHARE: f64 = 0.85;

/// Fewest disparities and smallest side that are proposed.
const FEWEST: usize = 16;
const SMALLEST: usize = 160;

/// Counts of a moment.
#[derive(Clone, Copy)]
struct Counted {
    at: Instant,
    given: u64,
    dropped: u64,
}

/// Watch over what a live source gives and the engine takes.
#[derive(Default)]
pub struct Overload {
    before: Option<Counted>,
    /// Periods that have passed since the start, or since settings were changed.
    periods: u32,
    retuned: u64,
    told: bool,
}

impl Overload {
    /// Looks at the counts, and tells once, and once more after each change of the settings, that pairs are lost.
    pub fn look(&mut self, handles: &Handles) {
        let progress = &handles.progress;
        if !handles.info.live || progress.source_ended.load(Ordering::Relaxed) {
            return;
        }
        let retuned = progress.retuned.load(Ordering::Relaxed);
        if retuned != self.retuned {
            *self = Self { retuned, ..Self::default() };
        }
        let now = Counted {
            at: Instant::now(),
            given: progress.pairs.load(Ordering::Relaxed),
            dropped: handles.counters.dropped_pairs.load(Ordering::Relaxed),
        };
        let Some(lost) = self.count(now) else { return };
        self.told = true;
        let size = (handles.info.width, handles.info.height);
        tracing::warn!("{}", message(lost, &handles.loaded().params, size));
    }

    /// Rates of pairs that are given and matched, where a period ends in which too many were dropped.
    fn count(&mut self, now: Counted) -> Option<[f64; 2]> {
        let before = *self.before.get_or_insert(now);
        let seconds = now.at.duration_since(before.at);
        if self.told || seconds < PERIOD {
            return None;
        }
        self.before = Some(now);
        self.periods += 1;
        let (given, dropped) = (now.given - before.given, now.dropped - before.dropped);
        let lost = self.periods > 1 && dropped * TOLERATED > given;
        lost.then(|| {
            [given, given.saturating_sub(dropped)].map(|count| count as f64 / seconds.as_secs_f64())
        })
    }
}

/// What is told: the rates, and settings that would keep up. Time follows the pixels and the disparities.
fn message([given, matched]: [f64; 2], params: &Params, (width, height): (usize, usize)) -> String {
    let part = SHARE * matched / given;
    let mut cures = vec![format!("--fit {given:.0} (chooses settings)")];
    if matches!(params.paths, Paths::Eight | Paths::Sixteen) && part >= TIME_OF_FOUR_PATHS {
        cures.push("--paths 4".into());
    }
    let fewer = (params.range.count as f64 * part) as usize / 8 * 8;
    if fewer >= FEWEST {
        cures.push(format!("--disparities {fewer} (now {})", params.range.count));
    }
    let [width, height] = [width, height].map(|side| (side as f64 * part.sqrt()) as usize);
    if height.min(width) >= SMALLEST {
        cures.push(format!("pictures of at most {width}x{height} (--size of cameras)"));
    }
    format!(
        "the source gives {given:.0} pairs/s and {matched:.0} are matched, the others are dropped; what would keep \
         up: {}",
        cures.join(", or ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Layers;

    #[test]
    fn lost_pairs_are_noticed_after_the_first_period_and_told_once() {
        let start = Instant::now();
        let at = |seconds, given, dropped| Counted {
            at: start + Duration::from_secs(seconds),
            given,
            dropped,
        };
        let mut overload = Overload::default();
        assert_eq!(overload.count(at(0, 0, 0)), None);
        assert_eq!(overload.count(at(4, 240, 200)), None);
        assert_eq!(overload.count(at(5, 300, 250)), None, "the start does not count");
        assert_eq!(overload.count(at(10, 600, 280)), None, "one in ten may be lost");
        assert_eq!(overload.count(at(15, 900, 430)), Some([60.0, 30.0]));
        overload.told = true;
        assert_eq!(overload.count(at(20, 1200, 600)), None);
    }

    #[test]
    fn what_would_keep_up_is_named() {
        let params = |paths: &str| {
            let mut layers = Layers::new();
            layers.assignment("matching.disparities=64");
            layers.assignment(&format!("matching.paths={paths}"));
            layers.finish().unwrap().params
        };
        let text = message([60.0, 30.0], &params("8"), (640, 480));
        for part in
            ["60 pairs/s and 30", "--fit 60", "--disparities 24 (now 64)", "at most 417x312"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("--paths"), "{text}");
        let text = message([60.0, 48.0], &params("8"), (640, 480));
        assert!(text.contains("--paths 4") && text.contains("--disparities 40"), "{text}");
        assert!(!message([60.0, 48.0], &params("4"), (640, 480)).contains("--paths"));
        let text = message([60.0, 2.0], &params("8"), (640, 480));
        assert!(text.contains("--fit 60") && !text.contains("--disp"), "{text}");
    }
}
