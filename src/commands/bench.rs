//! `stereod bench`: how fast the engine is on this machine, stage by stage.

use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;

use super::{Error, convert, load, print};
use crate::cli::BenchArgs;
use crate::engine;
use crate::source::demo::{DemoOptions, DemoSource};

/// Different pairs that are matched in turn, so that no cache holds the input.
const PAIRS: u64 = 4;

/// Pairs matched before the measurement.
const WARM_UP: u32 = 3;

/// Runs the command.
///
/// # Errors
/// Where the engine is not to be had or fails.
pub fn run(args: BenchArgs) -> Result<(), Error> {
    let loaded = load(&args.common, args.flags())?;
    let (settings, params) = (&loaded.settings, &loaded.params);
    let (width, height) = (args.size.width, args.size.height);
    let options = DemoOptions { width, height, ..convert::demo_options(settings, params.range) };
    let scene = DemoSource::new(options)?;
    let choice = convert::engine_choice(settings.engine.kind);
    let options = convert::engine_options(&settings.engine);
    let mut engine = engine::create(choice, params, (width, height), &options)?;

    let mut totals = Vec::new();
    let mut stages: Vec<(&'static str, Vec<Duration>)> = Vec::new();
    for round in 0..WARM_UP + args.repeat {
        let pair = scene.pair(u64::from(round) % PAIRS);
        let start = Instant::now();
        engine.submit(pair)?;
        engine.collect()?.context("the engine lost a pair")?;
        if round < WARM_UP {
            continue;
        }
        totals.push(start.elapsed());
        for (i, &(name, time)) in engine.stage_times().iter().enumerate() {
            match stages.get_mut(i) {
                Some((_, times)) => times.push(time),
                None => stages.push((name, vec![time])),
            }
        }
    }

    let best = ms(*totals.iter().min().expect("at least one round"));
    let total = ms(median(&mut totals));
    let stages: Vec<(&str, f64)> =
        stages.into_iter().map(|(name, mut times)| (name, ms(median(&mut times)))).collect();
    let engine = engine.description();
    if args.json {
        let stages: serde_json::Map<_, _> =
            stages.into_iter().map(|(name, time)| (name.to_owned(), json!(time))).collect();
        let report = json!({
            "engine": engine,
            "width": width,
            "height": height,
            "repeat": args.repeat,
            "settings": settings.matching,
            "total_ms": total,
            "best_ms": best,
            "pairs_per_second": 1e3 / total,
            "stages_ms": stages,
        });
        return print(format!("{report}\n"));
    }
    let mut text = format!(
        "{width}x{height}, {} disparities, {} paths, {}: median of {} on {engine}\n",
        params.range.count,
        params.paths,
        params.cost.name(),
        args.repeat
    );
    for (name, time) in stages {
        let _ = writeln!(text, "  {name:<24}{time:9.3} ms");
    }
    let _ = writeln!(
        text,
        "  {:<24}{total:9.3} ms   (best {best:.3} ms, {:.1} pairs/s)",
        "pair to disparity",
        1e3 / total
    );
    print(text)
}

/// The middle one of at least one time.
fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
