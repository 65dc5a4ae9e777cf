//! Cheaper settings with which the engine reaches a rate (`--fit`).
//!
//! The engine matches a synthetic scene of the same size, first with the given settings and then
//! with cheaper ones until the rate is reached, but never with fewer disparities than the images
//! need. The content of images hardly changes the time. The time of the other parts of a run is
//! known per pixel only.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::rig::Rig;
use crate::settings::{Loaded, Output};
use stereod_core::engine::{self, Choice, Engine};
use stereod_core::frame::{Matched, StereoPair};
use stereod_core::matching::{Params, Paths};
use stereod_core::settings::Fitted;
use stereod_core::thread;
use stereod_io::source::demo::{DemoOptions, DemoSource};

/// Part of the time that matching may take: the machine may be busier later.
pub const SHARE: f64 = 0.85;

/// Seconds of a core that the other parts of a run take per pixel of a pair (docs/performance.md,
/// "End to end on the CPU"): decoding both views, pairing and observing them, the lossless video,
/// and the preview.
const SOURCE: f64 = 30e-9;
const RECORDING: f64 = 45e-9;
const PREVIEW: f64 = 40e-9;

const PAIRS: u32 = 3;

/// Fractions of the disparities to try, in eighths.
const EIGHTHS: [usize; 4] = [6, 4, 3, 2];

/// Fewest disparities to try if no images say how many they need.
pub const FEWEST: usize = 16;

/// Returns the seconds of a core that a run with these outputs takes per pair of this size, besides
/// matching.
pub fn beside(output: &Output, (width, height): (usize, usize)) -> f64 {
    let outputs =
        [(&output.record, RECORDING), (&output.preview, PREVIEW), (&output.stream, PREVIEW)];
    let outputs = outputs.iter().filter(|(file, _)| !file.is_empty()).map(|(_, pixel)| pixel);
    (width * height) as f64 * (SOURCE + outputs.sum::<f64>())
}

/// The pairs for which settings are chosen.
pub struct Demand<'a> {
    pub size: (usize, usize),
    /// Number of disparities that the images need.
    pub fewest: usize,
    /// Seconds of a core that each pair takes besides matching.
    pub beside: f64,
    /// Names a way to images of another size, if there is one.
    pub resized: &'a dyn Fn((usize, usize)) -> Option<String>,
}

/// Returns the settings, with as few cheaper ones as needed to reach the rate that they ask for, or
/// with all of them if none suffice. `alive` is called before each measurement, because together
/// they may take longer than a service manager waits for a sign of life.
pub fn fit_settings(
    loaded: Loaded,
    &Demand { size, fewest, beside, resized }: &Demand,
    rig: &Rig,
    multiprocessors: Option<u32>,
    alive: &mut dyn FnMut(),
) -> anyhow::Result<Loaded> {
    let Some(wanted) = loaded.settings.engine.fit else { return Ok(loaded) };
    if loaded.settings.engine.has_network() {
        bail!("--fit makes matching faster, not a network: leave one of the two out");
    }
    let mut choice = loaded.settings.engine.kind.clone();
    let cores = thread::available();
    // Of the engine alone, and of the whole run.
    let mut rate = |loaded: &Loaded| {
        alive();
        // The final engine logs its messages; these are trials.
        let quiet = tracing::subscriber::NoSubscriber::default();
        let alone = tracing::subscriber::with_default(quiet, || {
            rate(loaded, size, rig, multiprocessors, &mut choice)
        })?;
        // A GPU leaves the cores to the other parts.
        let beside = if choice == Choice::Cpu { beside / cores as f64 } else { 0.0 };
        anyhow::Ok(possible(alone, beside))
    };
    let before = rate(&loaded)?;
    if before >= wanted {
        tracing::info!("--fit {wanted}: about {before:.0} pairs/s with your settings");
        return Ok(loaded);
    }
    let (mut changes, mut reached, mut now) = (Vec::new(), before, loaded.clone());
    for step in steps(&loaded.params, fewest) {
        changes.retain(|(key, _)| *key != step.0);
        changes.push(step);
        now = loaded.with_fitted(&changes)?;
        reached = rate(&now)?;
        if reached >= wanted {
            break;
        }
    }
    let named: Vec<String> = changes.iter().map(|(key, text)| format!("{key} = {text}")).collect();
    let named = named.join(", ");
    if reached >= wanted {
        tracing::info!(
            "--fit {wanted}: {named} (about {reached:.0} pairs/s; {before:.0} pairs/s with your settings)"
        );
    } else {
        let with = match &named[..] {
            "" => String::new(),
            named => format!(", with {named} ({before:.0} pairs/s with your settings)"),
        };
        let needed = needed(fewest, loaded.params.range.count);
        let (width, height) = smaller(size, reached / wanted);
        let how = resized((width, height)).map_or(String::new(), |how| format!(" ({how})"));
        tracing::warn!(
            "--fit {wanted}: only about {reached:.0} pairs/s can be had{with}{needed}; pictures of about \
             {width}x{height} would reach {wanted}{how}"
        );
    }
    Ok(now)
}

/// Explains that fewer disparities than those that the images need are no way to a higher rate.
fn needed(fewest: usize, count: usize) -> String {
    match fewest {
        FEWEST => String::new(),
        _ => format!("; fewer than {} disparities might miss what is near", fewest.min(count)),
    }
}

/// Returns a size with about this part of the pixels and the same shape, so that a calibration serves it.
pub fn smaller((width, height): (usize, usize), part: f64) -> (usize, usize) {
    let across = ((width as f64 * part.sqrt()) as usize).max(1);
    (across, (height as f64 * across as f64 / width as f64).round() as usize)
}

/// Returns the pairs per second of a run, from those of the engine alone and the seconds that all
/// cores spend on each pair besides.
fn possible(alone: f64, beside: f64) -> f64 {
    1.0 / (1.0 / (alone * SHARE) + beside)
}

/// Returns cheaper settings in the order of trial, with at least `fewest` disparities. A later
/// value of a key replaces an earlier one.
fn steps(params: &Params, fewest: usize) -> Vec<Fitted> {
    let mut steps: Vec<Fitted> = Vec::new();
    if matches!(params.paths, Paths::Five | Paths::Eight | Paths::Sixteen) {
        steps.push(("paths", "4".into()));
    }
    if params.prior.is_some() {
        steps.push(("prior", "0".into()));
    }
    if params.window.is_some() {
        steps.push(("cost_window", "0".into()));
    }
    let part = |eighths: usize| (params.range.count * eighths / 8).next_multiple_of(8);
    let mut fewer = EIGHTHS.map(|eighths| part(eighths).max(fewest)).to_vec();
    fewer.retain(|&count| count < params.range.count);
    fewer.dedup();
    steps.extend(fewer.into_iter().map(|count| ("disparities", count.to_string())));
    steps
}

/// Returns the pairs per second of an engine with these settings. `choice` becomes the engine
/// found, so that it is not searched again.
fn rate(
    loaded: &Loaded,
    size: (usize, usize),
    rig: &Rig,
    multiprocessors: Option<u32>,
    choice: &mut Choice,
) -> anyhow::Result<f64> {
    let (settings, params) = (&loaded.settings, &loaded.params);
    let mut options = settings.engine.options();
    options.cuda.multiprocessors = multiprocessors;
    let mut engine = engine::create(choice, params, &rig.pairs, &options)?;
    *choice = engine.choice();
    let options =
        DemoOptions { width: size.0, height: size.1, ..settings.demo.options(params.range) };
    let scene = DemoSource::new(options)?;
    let pairs = (0..pairs_for(engine.depth())).map(|number| scene.try_pair(number));
    let mut pairs = pairs.collect::<Result<VecDeque<_>, _>>()?;
    let count = PAIRS * engine.depth() as u32;
    let streamed = stream(&mut *engine, &mut pairs, count)?;
    Ok(f64::from(streamed.pairs) / streamed.time.as_secs_f64().max(1e-9))
}

/// Different pairs that are matched in turn, so that no cache holds the input.
const IN_TURN: u64 = 4;

/// Time between two pairs of the scene.
const PERIOD: Duration = Duration::from_nanos(1_000_000_000 / 30);

pub struct Sustained {
    pub pairs: u32,
    pub in_flight: usize,
    pub time: Duration,
}

impl Sustained {
    pub fn ms(&self) -> f64 {
        self.time.as_secs_f64() * 1e3 / f64::from(self.pairs)
    }
}

/// Converts to milliseconds, rounded to a microsecond.
pub fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Returns the number of pairs for an engine that holds `depth` of them: one more, so that the next
/// is ready.
pub fn pairs_for(depth: usize) -> u64 {
    IN_TURN.max(depth as u64 + 1)
}

/// Moves a pair to its next turn, so that time never jumps back and the stream continues.
pub fn of_next_turn(mut pair: StereoPair, engine: &dyn Engine) -> StereoPair {
    pair.timestamp += PERIOD * pairs_for(engine.depth()) as u32;
    pair
}

pub fn collect(engine: &mut dyn Engine) -> anyhow::Result<Matched> {
    engine.collect()?.context("the engine lost a pair")
}

/// Matches `count` pairs with the engine kept full.
pub fn stream(
    engine: &mut dyn Engine,
    pairs: &mut VecDeque<StereoPair>,
    count: u32,
) -> anyhow::Result<Sustained> {
    let in_flight = engine.depth();
    for _ in 0..in_flight {
        engine.submit(pairs.pop_front().context("no pair to match")?)?;
    }
    // The first results fill the engine's pipeline and do not count.
    for _ in 0..in_flight {
        pairs.push_back(of_next_turn(collect(engine)?.pair, engine));
        engine.submit(pairs.pop_front().context("no pair to match")?)?;
    }
    let start = Instant::now();
    for _ in 0..count {
        pairs.push_back(of_next_turn(collect(engine)?.pair, engine));
        engine.submit(pairs.pop_front().context("no pair to match")?)?;
    }
    let time = start.elapsed();
    while let Some(matched) = engine.collect()? {
        pairs.push_back(of_next_turn(matched.pair, engine));
    }
    Ok(Sustained { pairs: count, in_flight, time })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Layers;
    use stereod_calibration::format::{self, ReadOptions};

    fn loaded(assignments: &[&str]) -> Loaded {
        let mut layers = Layers::new();
        assignments.iter().for_each(|text| layers.assignment(text));
        layers.finish().unwrap()
    }

    #[test]
    fn what_runs_beside_the_engine_counts() {
        let output = |assignments: &[&str]| loaded(assignments).settings.output;
        // 480,000 pixels.
        let of = |output: Output| (beside(&output, (800, 600)) * 1e6).round();
        assert_eq!(of(output(&[])), 14_400.0);
        let both = ["output.record=a.mkv", "output.preview=b.mp4"];
        assert_eq!(of(output(&both)), 14_400.0 + 21_600.0 + 19_200.0);
        // At 85 pairs per second, a pair takes 11.76 ms, or 13.84 ms with 15 % to spare,
        // and 6.16 ms besides.
        assert!((possible(100.0, 0.0) - 85.0).abs() < 1e-9);
        assert!((possible(85.0, 6.16e-3) - 50.0).abs() < 0.01, "{}", possible(85.0, 6.16e-3));
    }

    #[test]
    fn a_smaller_image_has_the_same_shape() {
        let calibrated = |(width, height)| {
            let text = format!(
                "cam0=[700 0 600; 0 700 300; 0 0 1]\ncam1=[700 0 600; 0 700 300; 0 0 1]\ndoffs=0\n\
                 baseline=100\nwidth={width}\nheight={height}\nndisp=64\n"
            );
            let files = [("calib.txt", text.as_str())];
            let options = ReadOptions::default();
            format::parse(&files, &options).unwrap().calibration
        };
        for size in [(1280, 720), (1242, 375), (752, 480), (640, 480)] {
            for percent in 3..100 {
                let (width, height) = smaller(size, f64::from(percent) * 0.01);
                assert!(width < size.0 && height <= size.1, "{size:?} {percent}");
                calibrated(size).for_size(width, height).unwrap();
            }
        }
    }

    #[test]
    fn what_costs_most_for_what_it_gives_goes_first() {
        let of_scene = |assignments: &[&str], fewest| -> Vec<String> {
            let steps = steps(&loaded(assignments).params, fewest);
            steps.into_iter().map(|(key, text)| format!("{key}={text}")).collect()
        };
        let of = |assignments: &[&str]| of_scene(assignments, FEWEST);
        let all = [
            "paths=4",
            "prior=0",
            "cost_window=0",
            "disparities=48",
            "disparities=32",
            "disparities=24",
            "disparities=16",
        ];
        assert_eq!(of(&["matching.disparities=64", "matching.paths=8"]), all);
        assert_eq!(of(&["matching.disparities=64"]), all[1..]);
        let bare = ["matching.prior=0", "matching.cost_window=0", "matching.disparities=20"];
        assert_eq!(of(&bare), ["disparities=16"]);
        // Never fewer than the scene needs, nor more than were wanted.
        let bare = ["matching.prior=0", "matching.cost_window=0", "matching.disparities=128"];
        assert_eq!(of_scene(&bare, 80), ["disparities=96", "disparities=80"]);
        assert_eq!(of_scene(&bare, 128), [""; 0]);
        assert_eq!(of_scene(&bare, 256), [""; 0]);
    }

    #[test]
    fn a_rate_that_is_reached_changes_nothing_and_one_that_is_not_everything() {
        let fit = |rate: &str, fewest| {
            let rate = format!("engine.fit={rate}");
            let said = [&rate, "engine.kind=cpu", "matching.disparities=64", "matching.paths=8"];
            let loaded = loaded(&said);
            let rig = Rig {
                pairs: engine::PairSpec::rectified(320, 160),
                calibrated: false,
                calibration: None,
                aligner: None,
            };
            let mut measured = 0;
            let mut alive = || measured += 1;
            let demand = Demand { size: (320, 160), fewest, beside: 0.0, resized: &|_| None };
            let loaded = fit_settings(loaded, &demand, &rig, None, &mut alive).unwrap();
            // The settings as they are, and each step.
            assert!(measured > loaded.fitted_values().len(), "{measured}");
            loaded
        };
        let slow = fit("0.1", FEWEST);
        assert_eq!((slow.fitted_values(), slow.params.range.count), (&[][..], 64));
        // No settings are that fast on images of this size.
        let fast = fit("1000", FEWEST);
        if fast.params.range.count == 16 {
            assert_eq!(fast.fitted_values().len(), 4);
            assert!(fast.params.prior.is_none() && fast.params.window.is_none());
            assert_eq!(fast.params.paths, Paths::Four);
        } else {
            assert!(!fast.fitted_values().is_empty());
        }
        let origin = fast.origin("matching", "paths").to_string();
        assert_eq!(origin, "chosen for --fit");
        assert!(fit("1000", 48).params.range.count >= 48);
    }
}
