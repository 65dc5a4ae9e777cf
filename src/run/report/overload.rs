//! Warning that matching cannot keep up with the source, with settings that would.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::run::live::handles::Handles;
use crate::run::open::source;
use crate::run::prepare::fit::{FEWEST, SHARE, smaller};
use crate::settings::Loaded;
use stereod_core::matching::Paths;
use stereod_core::thread::locked;

/// Time after the start that does not count, because engines start slowly.
const WARM_UP: Duration = Duration::from_secs(2);

/// Period over which pairs are counted.
const PERIOD: Duration = Duration::from_secs(5);

/// One in this many pairs may be lost before a warning.
const TOLERATED: f64 = 10.0;

const TIME_OF_FOUR_PATHS: f64 = 0.6;

/// Smallest side to propose.
const SMALLEST: usize = 160;

#[derive(Clone, Copy)]
struct Counted {
    at: Instant,
    given: u64,
    /// Pairs of a live source dropped because the engine was busy.
    dropped: u64,
    /// Position of a paced recording, and its delay by the busy engine.
    paced: [Duration; 2],
    /// Time for which pairs have waited for those of other rigs.
    waited: Duration,
}

/// Rates of the source and of the matcher, and the share of the time in which pairs waited for those of other rigs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rates {
    given: f64,
    matched: f64,
    waited: f64,
}

/// Share of the time that pairs may wait for those of other rigs without a word about that.
const WAITED: f64 = 0.1;

/// Watch over the rates of a paced source and of the engine.
#[derive(Default)]
pub struct Overload {
    before: Option<Counted>,
    is_warm: bool,
    retuned: u64,
    moves: u64,
    told: bool,
}

impl Overload {
    /// Checks the counts, and warns once after the start and after each change of the settings if
    /// the engine is too slow.
    pub fn look(&mut self, handles: &Handles) {
        let progress = &handles.progress;
        if !handles.is_clocked() || progress.source_ended.load(Ordering::Relaxed) {
            return;
        }
        let retuned = progress.retuned.load(Ordering::Relaxed);
        if retuned != self.retuned {
            *self = Self { retuned, moves: self.moves, ..Self::default() };
        }
        let moves = progress.moves.load(Ordering::Relaxed);
        let is_moved = std::mem::replace(&mut self.moves, moves) != moves;
        if is_moved || handles.control.pause.is_set() {
            self.before = None;
            return;
        }
        let now = Counted {
            at: Instant::now(),
            given: progress.pairs.load(Ordering::Relaxed),
            dropped: handles.counters.dropped_pairs.load(Ordering::Relaxed),
            paced: progress.paced(),
            waited: progress.waited(),
        };
        let Some(rates) = self.count(now) else { return };
        self.told = true;
        let loaded = handles.loaded();
        let (size, is_live) = ((handles.info.width, handles.info.height), handles.info.live);
        // The images need the disparities that `auto` has chosen, and more if some are nearer
        // already.
        let are_needed = loaded.has_chosen() || locked(&handles.observations.too_few).is_some();
        let spec = source::named(&handles.args, &loaded.settings.source).ok();
        let resized = |size| spec.as_ref()?.resized(size);
        let cures = match &cures(rates, &loaded, size, are_needed, &resized)[..] {
            [] => String::new(),
            cures => format!("; what would keep up: {}", cures.join(", or ")),
        };
        let Rates { given, matched, waited } = rates;
        let turns = match waited > WAITED {
            true => format!(
                "; {:.0} % of the time they wait for the pairs of other rigs on the same cores (with [engine] cores \
                 each rig has its own)",
                100.0 * waited
            ),
            false => String::new(),
        };
        let name = if handles.args.source.demo { "the demo scene" } else { "the recording" };
        match is_live {
            true => tracing::warn!(
                "the source gives {given:.0} pairs/s and {matched:.0} are matched, the others are dropped{turns}{cures}"
            ),
            false => tracing::warn!(
                "{name} has {given:.0} pairs/s and {matched:.0} are matched, so it plays too slowly{turns}{cures}"
            ),
        }
    }

    /// Returns the rates of the source and of the matcher at the end of a period in which the
    /// engine was too slow.
    fn count(&mut self, now: Counted) -> Option<Rates> {
        let before = *self.before.get_or_insert(now);
        let time = now.at.duration_since(before.at);
        let period = if self.is_warm { PERIOD } else { WARM_UP };
        if self.told || time < period {
            return None;
        }
        self.before = Some(now);
        if !std::mem::replace(&mut self.is_warm, true) {
            return None;
        }
        let given = (now.given - before.given) as f64;
        let dropped = (now.dropped - before.dropped) as f64;
        let [played, delayed] =
            [0, 1].map(|i| now.paced[i].saturating_sub(before.paced[i]).as_secs_f64());
        let time = time.as_secs_f64();
        let is_slow = dropped > given / TOLERATED || delayed > time / TOLERATED;
        let recorded = if played > 0.0 { played } else { time };
        let waited = (now.waited - before.waited).as_secs_f64() / time;
        let (given, matched) = (given / recorded, (given - dropped).max(0.0) / time);
        is_slow.then_some(Rates { given, matched, waited })
    }
}

/// Returns settings that would keep up. Time is proportional to pixels and disparities.
/// `are_needed`: the images need all disparities; `resized`: names a way to images of another size.
fn cures(
    Rates { given, matched, .. }: Rates,
    loaded: &Loaded,
    size: (usize, usize),
    are_needed: bool,
    resized: &dyn Fn((usize, usize)) -> Option<String>,
) -> Vec<String> {
    let (params, part) = (&loaded.params, SHARE * matched / given);
    let mut cures = Vec::new();
    // With this rate or a higher one these settings are its choice already.
    if loaded.settings.engine.fit.is_none_or(|fit| fit.round() < given.round()) {
        cures.push(format!("--fit {given:.0} (chooses settings)"));
    }
    if matches!(params.paths, Paths::Eight | Paths::Sixteen) && part >= TIME_OF_FOUR_PATHS {
        cures.push("--paths 4".into());
    }
    let fewer = (params.range.count as f64 * part) as usize / 8 * 8;
    if fewer >= FEWEST && !are_needed {
        cures.push(format!(
            "--disparities {fewer} (now {}) if nothing is nearer",
            params.range.count
        ));
    }
    let (width, height) = smaller(size, part);
    if height.min(width) >= SMALLEST {
        let how = resized((width, height)).map_or(String::new(), |how| format!(" ({how})"));
        cures.push(format!("pictures of at most {width}x{height}{how}"));
    }
    cures
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
            paced: [Duration::ZERO; 2],
            // Half of the time.
            waited: Duration::from_millis(500 * seconds),
        };
        let mut overload = Overload::default();
        assert_eq!(overload.count(at(0, 0, 0)), None);
        assert_eq!(overload.count(at(1, 60, 50)), None);
        assert_eq!(overload.count(at(2, 120, 100)), None, "the start does not count");
        assert_eq!(overload.count(at(6, 360, 300)), None);
        assert_eq!(overload.count(at(7, 420, 130)), None, "one in ten may be lost");
        assert_eq!(
            overload.count(at(12, 720, 280)),
            Some(Rates { given: 60.0, matched: 30.0, waited: 0.5 })
        );
        overload.told = true;
        assert_eq!(overload.count(at(17, 1020, 580)), None);
    }

    #[test]
    fn a_recording_that_plays_too_slowly_is_noticed() {
        let start = Instant::now();
        // 30 pairs per second.
        let at = |seconds, given: u64, delayed| Counted {
            at: start + Duration::from_secs(seconds),
            given,
            dropped: 0,
            paced: [given * 1000 / 30, delayed].map(Duration::from_millis),
            waited: Duration::ZERO,
        };
        let mut overload = Overload::default();
        assert_eq!(overload.count(at(0, 0, 0)), None);
        assert_eq!(overload.count(at(2, 10, 1900)), None);
        assert_eq!(overload.count(at(7, 145, 2300)), None, "a tenth is tolerated");
        let Rates { given, matched, waited } = overload.count(at(12, 220, 4800)).unwrap();
        assert_eq!(waited, 0.0);
        assert!((given - 30.0).abs() < 0.01 && matched == 15.0, "{given} {matched}");
    }

    #[test]
    fn what_would_keep_up_is_named() {
        let loaded = |paths: &str, fit: &str| {
            let mut layers = Layers::new();
            layers.assignment("matching.disparities=64");
            layers.assignment(&format!("matching.paths={paths}"));
            layers.assignment(&format!("engine.fit={fit}"));
            layers.finish().unwrap()
        };
        let way = |(width, height)| Some(format!("--size {width}x{height}"));
        let of = |[given, matched]: [f64; 2], loaded: Loaded, are_needed| {
            let rates = Rates { given, matched, waited: 0.0 };
            cures(rates, &loaded, (640, 480), are_needed, &way).join(", or ")
        };
        let text = of([60.0, 30.0], loaded("8", "off"), false);
        for part in ["--fit 60", "--disparities 24 (now 64)", "at most 417x313 (--size 417x313)"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("--paths"), "{text}");
        let text = of([60.0, 48.0], loaded("8", "off"), false);
        assert!(text.contains("--paths 4") && text.contains("--disparities 40"), "{text}");
        assert!(!of([60.0, 48.0], loaded("4", "off"), false).contains("--paths"));
        assert!(!of([60.0, 48.0], loaded("8", "off"), true).contains("--disparities"));
        let text = of([60.0, 2.0], loaded("8", "off"), false);
        assert!(text.contains("--fit 60") && !text.contains("--disp"), "{text}");
        // A rate that was asked for is no cure.
        assert!(of([60.0, 48.0], loaded("8", "30"), false).contains("--fit 60"));
        assert!(!of([60.0, 48.0], loaded("8", "60"), false).contains("--fit"));
        assert_eq!(of([60.0, 2.0], loaded("8", "60"), true), "");
    }
}
