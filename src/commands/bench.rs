//! `stereod bench`: speed of the engine on this machine, stage by stage, or on parts of its GPU.

mod report;

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};

use super::verify::{refuse_verification, verify};
use super::{Error, load, print};
use crate::cli::BenchArgs;
use crate::observe::range::Spare;
use crate::run::prepare::fit::{self, collect, of_next_turn, pairs_for, stream};
use crate::run::prepare::ranging;
use crate::run::prepare::rig::Cameras;
use crate::settings::{Loaded, Size};
use report::{Measured, Report, table};
use stereod_core::engine::difference::Make;
use stereod_core::engine::{self, Choice, Engine, PairSpec};
use stereod_core::files;
use stereod_core::frame::{Matched, StageTime, StereoPair};
use stereod_core::matching::{History, Params};
use stereod_core::memory::Budget;
use stereod_core::pool::Pool;
use stereod_io::source::demo::{DemoOptions, DemoSource};

/// Pairs matched before each measurement.
const WARM_UP: u32 = 3;

/// Fewest pairs of a rate with several in flight.
const SUSTAINED: u32 = 100;

/// Sizes and disparities of a report of a machine.
const USUAL: [((usize, usize), i64); 3] =
    [((640, 480), 64), ((1280, 720), 128), ((1920, 1080), 128)];

pub fn run(args: BenchArgs) -> Result<(), Error> {
    if let Some(path) = &args.report {
        return report_machine(&args, path);
    }
    let loaded = load(&args.common, args.flags())?;
    refuse_verification(args.verify, &loaded.settings)?;
    let settings = &loaded.settings.engine;
    let reports = match &args.multiprocessors[..] {
        [] => vec![report(&args, &loaded, settings.multiprocessors)?],
        _ if settings.kind == Choice::Cpu => {
            return Err(Error::usage("--multiprocessors is for GPUs; leave out --engine cpu"));
        }
        [_, _, ..] if settings.fit.is_some() => {
            return Err(Error::usage(
                "--fit takes other settings for each number of --multiprocessors, which then compare nothing; \
                 name one number",
            ));
        }
        parts => {
            // `auto` stands for all of them.
            let count = |part: &toml::Value| part.as_integer().and_then(|n| n.try_into().ok());
            let parts = parts.iter().map(|part| report(&args, &loaded, count(part)));
            parts.collect::<Result<_, _>>()?
        }
    };
    print(match (&reports[..], args.json) {
        ([one], true) => format!("{}\n", one.json()),
        ([one], false) => one.text(),
        (several, true) => format!("{}\n", several.iter().map(Report::json).collect::<Value>()),
        (several, false) => table(several),
    })
}

/// Writes the speeds of this machine. The smallest size is compared with the reference, too.
fn report_machine(args: &BenchArgs, path: &Path) -> Result<(), Error> {
    files::check_writable(path)?;
    let mut speeds = Vec::new();
    let mut text = String::new();
    for ((width, height), disparities) in USUAL {
        let mut flags = args.flags();
        flags.put("matching", "disparities", "--disparities", Some(disparities));
        let loaded = load(&args.common, flags)?;
        let size = Size { width, height };
        let args = BenchArgs { size, verify: speeds.is_empty(), ..args.clone() };
        let report = report(&args, &loaded, loaded.settings.engine.multiprocessors)?;
        text += &report.text();
        speeds.push(report.json());
    }
    let json = json!({
        "stereod": env!("CARGO_PKG_VERSION"),
        "system": format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        "processor": processor(),
        "speeds": speeds,
    });
    files::write_whole(path, format!("{json:#}\n").as_bytes())?;
    print(text)
}

/// The processor's name, as Linux tells it.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Measures with this number of a GPU's multiprocessors.
fn report(
    args: &BenchArgs,
    loaded: &Loaded,
    multiprocessors: Option<u32>,
) -> Result<Report, Error> {
    let (settings, params) = (&loaded.settings, &loaded.params);
    let size = (args.size.width, args.size.height);
    let rig = Cameras::read(settings, None)?.for_pictures([size; 2])?;
    let options =
        DemoOptions { width: size.0, height: size.1, ..settings.demo.options(params.range) };
    let pictures = Pool::new();
    let scene = DemoSource::new(options)?.with_pool(pictures.clone());
    let first = loaded.awaits_choice().then(|| scene.pair(0));
    let (loaded, _) = ranging::with_choice(loaded, &first, &rig, Spare::None)?;
    let resized = |(width, height)| Some(format!("--size {width}x{height}"));
    let demand = fit::Demand { size, fewest: fit::FEWEST, beside: 0.0, resized: &resized };
    let loaded = fit::fit_settings(loaded, &demand, &rig, multiprocessors, &mut || ())?;
    let (settings, params) = (&loaded.settings, &loaded.params);
    // Only a GPU has parts to compare.
    let choice =
        if args.multiprocessors.is_empty() { &settings.engine.kind } else { &Choice::Cuda };
    let mut options = settings.engine.options();
    options.cuda.multiprocessors = multiprocessors;
    let bytes_of = |depth: usize| {
        let pairs = pairs_for(depth);
        DemoSource::bytes_of(size.0, size.1).saturating_mul(pairs)
    };
    options.spare = bytes_of(options.cuda.in_flight);
    let mut engine = engine::create(choice, params, &rig.pairs, &options)?;
    // As the sources of a run would.
    if let Some(memory) = engine.picture_memory() {
        pictures.take_from(memory);
    }
    let (pairs, bytes) = (pairs_for(engine.depth()), bytes_of(engine.depth()));
    let what = format!("keeping {pairs} pairs of {}x{}", size.0, size.1);
    let _kept = Budget::of_process().reserve(what, bytes, "a smaller --size").map_err(failed)?;
    let mut pairs: VecDeque<StereoPair> = (0..pairs)
        .map(|number| scene.try_pair(number))
        .collect::<Result<_, _>>()
        .map_err(failed)?;

    let measured = measure(&mut *engine, &mut pairs, args.repeat)?;
    let verified = match args.verify {
        true => {
            let make =
                |params: &Params, pairs: &PairSpec| engine::create(choice, params, pairs, &options);
            Some(verify_all(&mut *engine, &mut pairs, params, (&make, &options))?)
        }
        false => None,
    };
    Ok(Report {
        engine: engine.description(),
        multiprocessors,
        size,
        repeat: args.repeat,
        params: params.clone(),
        settings: loaded.values()["matching"].clone(),
        measured,
        verified,
    })
}

fn failed(error: impl Into<anyhow::Error>) -> Error {
    Error::Failed(error.into())
}

fn measure(
    engine: &mut dyn Engine,
    pairs: &mut VecDeque<StereoPair>,
    repeat: u32,
) -> anyhow::Result<Measured> {
    engine.set_profiling(true);
    let mut stages: Vec<(&'static str, Vec<Duration>)> = Vec::new();
    let (mut alone, mut is_device) = (Vec::new(), false);
    for round in 0..WARM_UP + repeat {
        let matched = match_one(engine, pairs)?;
        if round < WARM_UP {
            continue;
        }
        alone.push(matched.time);
        is_device = matched.device_time.is_some();
        for (i, (name, time)) in matched.stages.into_iter().enumerate() {
            match stages.get_mut(i) {
                Some((_, times)) => times.push(time),
                None => stages.push((name, vec![time])),
            }
        }
    }
    engine.set_profiling(false);
    let mut kernels = Vec::new();
    if is_device {
        // Again without the marks between the stages, which cost the device a little time.
        alone.clear();
        for round in 0..WARM_UP + repeat {
            let matched = match_one(engine, pairs)?;
            if round >= WARM_UP {
                alone.push(matched.time);
                kernels.extend(matched.device_time);
            }
        }
    }
    let sustained = match engine.depth() {
        0 | 1 => None,
        _ => Some(stream(engine, pairs, repeat.max(SUSTAINED))?),
    };
    Ok(Measured {
        stages: stages.into_iter().map(|(name, mut times)| (name, median(&mut times))).collect(),
        kernels: (!kernels.is_empty()).then(|| (median(&mut kernels), kernels[0])),
        alone: (median(&mut alone), alone[0]),
        sustained,
    })
}

struct Alone {
    time: Duration,
    stages: Vec<StageTime>,
    device_time: Option<Duration>,
}

fn match_one(engine: &mut dyn Engine, pairs: &mut VecDeque<StereoPair>) -> anyhow::Result<Alone> {
    let pair = pairs.pop_front().context("no pair to match")?;
    let start = Instant::now();
    engine.submit(pair)?;
    let matched = collect(engine)?;
    let time = start.elapsed();
    let Matched { pair, stages, device_time, .. } = matched;
    pairs.push_back(of_next_turn(pair, engine));
    Ok(Alone { time, stages, device_time })
}

/// Compares the engine with the reference on every pair, with as many in flight as possible, and
/// returns the number of equal pixels.
fn verify_all(
    engine: &mut dyn Engine,
    pairs: &mut VecDeque<StereoPair>,
    params: &Params,
    how: (Make<'_>, &engine::Options),
) -> anyhow::Result<usize> {
    // The pairs start a new stream.
    engine.resume(History::default())?;
    let (depth, mut history) = (engine.depth(), History::default());
    let layout = engine.layout().cloned();
    let mut same = 0;
    let mut in_flight = 0;
    while let Some(pair) = pairs.pop_front() {
        engine.submit(pair)?;
        in_flight += 1;
        while in_flight == depth || (pairs.is_empty() && in_flight > 0) {
            same += verify(&collect(engine)?, params, layout.as_ref(), &mut history, how)?;
            in_flight -= 1;
        }
    }
    Ok(same)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_core::frame::{DisparityMap, Image};
    use stereod_core::matching::{Paths, match_pair};
    use stereod_core::pool::Pooled;
    use stereod_core::settings::Matching;

    /// An engine that computes on collection, with up to three pairs waiting.
    struct Device {
        params: Params,
        held: VecDeque<StereoPair>,
        most: usize,
        wrong: bool,
        profiling: bool,
    }

    impl Engine for Device {
        fn description(&self) -> String {
            "device".into()
        }
        fn depth(&self) -> usize {
            3
        }
        fn submit(&mut self, pair: StereoPair) -> anyhow::Result<()> {
            anyhow::ensure!(self.held.len() < 3, "too many");
            self.held.push_back(pair);
            self.most = self.most.max(self.held.len());
            Ok(())
        }
        fn collect(&mut self) -> anyhow::Result<Option<Matched>> {
            let Some(pair) = self.held.pop_front() else { return Ok(None) };
            let map = match_pair(&pair.left, &pair.right, &self.params);
            let mut values = map.values().to_vec();
            values[5] ^= i16::from(self.wrong);
            let values = Pooled::unpooled(values);
            let disparity = DisparityMap::new(map.width(), map.height(), map.range(), values);
            const MS: Duration = Duration::from_millis(1);
            let stages = match self.profiling {
                true => vec![("up", MS), ("down", MS)],
                false => vec![("kernels", MS)],
            };
            let device_time = Some(2 * MS);
            Ok(Some(Matched { stages, device_time, ..Matched::new(pair, disparity) }))
        }
        fn set_profiling(&mut self, on: bool) {
            self.profiling = on;
        }
    }

    fn device() -> (Device, VecDeque<StereoPair>) {
        let params = Matching { disparities: Some(4), ..Matching::default() }.params().unwrap();
        let pair = |number: u64| StereoPair {
            left: Image::from_fn(8, 4, |x, y| (x * 31 + y * 7) as u8),
            right: Image::from_fn(8, 4, |x, y| (x * 31 + y * 7 + 31) as u8),
            sequence: number,
            timestamp: Duration::ZERO,
            skew_ns: Some(0),
            arrived: Instant::now(),
            truth: None,
            prior: None,
        };
        let held = VecDeque::new();
        (
            Device { params, held, most: 0, wrong: false, profiling: false },
            (0..4).map(pair).collect(),
        )
    }

    #[test]
    fn stages_kernels_and_a_stream_are_measured() {
        let (mut device, mut pairs) = device();
        let measured = measure(&mut device, &mut pairs, 2).unwrap();
        assert_eq!(pairs.len(), 4, "every pair came back");
        assert_eq!(
            measured.stages.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            ["up", "down"]
        );
        assert_eq!(measured.kernels.unwrap().0, Duration::from_millis(2));
        let sustained = measured.sustained.as_ref().unwrap();
        assert_eq!((sustained.in_flight, sustained.pairs, device.most), (3, 100, 3));
        let report = Report {
            engine: device.description(),
            multiprocessors: Some(8),
            size: (8, 4),
            repeat: 2,
            params: device.params.clone(),
            settings: toml::Value::from(0),
            measured,
            verified: Some(128),
        };
        let text = report.text();
        for part in ["  up  ", "  kernels alone ", "a pair, 3 in flight", "reference (128 pixels)"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        let json = report.json();
        assert_eq!(json["kernels_ms"], 2.0);
        assert_eq!(json["sustained"]["pairs"], 100);
        assert_eq!(json["in_flight_ms"], json["sustained"]["ms_per_pair"]);
        assert_eq!(json["stages_ms"]["down"], 1.0);
        assert!(text.contains("  up                          1.000 ms   "), "{text}");
        let all = Report { multiprocessors: None, ..report };
        let table = table(&[all]);
        let line = table.lines().nth(2).unwrap();
        let cells: Vec<_> = line.split_whitespace().collect();
        assert_eq!(cells[..5], ["all", "2.000", "ms", "2.000", "ms"], "{table}");
    }

    #[test]
    fn shares_and_nanoseconds_follow_from_the_times() {
        let ms = Duration::from_millis;
        let params = Matching { disparities: Some(50), ..Matching::default() }.params().unwrap();
        assert_eq!(params.paths.count(), 4);
        let stages = vec![
            ("cost features", ms(1)),
            ("aggregation, down", ms(4)),
            ("aggregation and winner", ms(12)),
            ("median", ms(2)),
        ];
        let measured = Measured { stages, kernels: None, alone: (ms(20), ms(19)), sustained: None };
        let report = Report {
            engine: "CPU".into(),
            multiprocessors: None,
            size: (100, 40),
            repeat: 1,
            params,
            settings: toml::Value::from(0),
            measured,
            verified: None,
        };
        // 100 * 40 * 50 * 4 are 800,000 cells and paths: 20 ms are 25 ns for each, 16 ms 20 ns.
        let text = report.text();
        for line in [
            "  cost features               1.000 ms     5.0 %",
            "  aggregation, down           4.000 ms    20.0 %",
            "  aggregation and winner     12.000 ms    60.0 %",
            "  median                      2.000 ms    10.0 %",
            "  a cell and path           25.0000 ns   (20.0000 ns in aggregation and winner)",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        let json = report.json();
        let shares = [("cost features", 5.0), ("aggregation, down", 20.0), ("median", 10.0)];
        for (name, share) in shares {
            assert_eq!(json["stages_percent"][name], share, "{json}");
        }
        assert_eq!(json["stages_ms"]["median"], 2.0);
        assert_eq!(json["ns_per_cell_and_path"], 25.0);
        assert_eq!(json["aggregation_ms"], 16.0);
        assert_eq!(json["aggregation_ns_per_cell_and_path"], 20.0);
        let mut local = report.params.clone();
        local.paths = Paths::None;
        let local = Report { params: local, ..report };
        assert!(!local.text().contains("a cell and path"), "{}", local.text());
        assert!(local.json().get("ns_per_cell_and_path").is_none());
    }

    #[test]
    fn verifying_finds_a_wrong_pixel() {
        let (mut device, mut pairs) = device();
        let params = device.params.clone();
        let make = |_: &Params, _: &PairSpec| -> anyhow::Result<Box<dyn Engine>> {
            Ok(Box::new(Device { wrong: true, ..super::tests::device().0 }))
        };
        let same =
            verify_all(&mut device, &mut pairs, &params, (&make, &engine::Options::default()))
                .unwrap();
        assert_eq!((same, device.most), (4 * 32, 3));
        let (mut device, mut pairs) = super::tests::device();
        device.wrong = true;
        let error =
            verify_all(&mut device, &mut pairs, &params, (&make, &engine::Options::default()))
                .unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("at x 5, y 0") && error.contains("1 of 32"), "{error}");
        assert!(error.contains("the first stage that differs: cost volume"), "{error}");
    }
}
