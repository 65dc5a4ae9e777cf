//! `engine=auto` without an NVIDIA GPU: the CPU engine or, if it was faster in a trial, a GPU of another maker.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::device::{Gpu, may_have_gpu};
use super::{WebGpuEngine, WebGpuOptions};
use crate::engine::cuda::{Cache, Key};
use crate::engine::{Engine, Options, PairSpec, Tiling};
use crate::frame::{Eye, Image, Matched, StereoPair};
use crate::matching::Params;

/// Pairs that an engine matches in a trial, after one that warms it up.
const PAIRS: usize = 3;

/// Disparity of these pairs in pixels.
const SHIFT: usize = 5;

/// Outcomes as the cache keeps them.
const FASTER: &[u8] = b"gpu";
const SLOWER: &[u8] = b"cpu";
const WRONG: &[u8] = b"wrong";

/// Returns the faster one of the CPU engine and of an engine on a GPU that gives the same maps. The outcome of the
/// trial is kept for each device and size. Any failure leaves the CPU.
pub fn faster(
    cpu: Box<dyn Engine>,
    params: &Params,
    pairs: &PairSpec,
    options: &Options,
) -> Box<dyn Engine> {
    // Tiles are for the memory of the CPU.
    if cpu.layout().is_some() || options.tiling != Tiling::Auto || !may_have_gpu() {
        return cpu;
    }
    let mut cpu = cpu;
    compare(&mut *cpu, params, pairs, options)
        .unwrap_or_else(|error| {
            tracing::debug!("using the CPU: {error:#}");
            None
        })
        .unwrap_or(cpu)
}

/// The engine on a GPU if it is faster.
fn compare(
    cpu: &mut dyn Engine,
    params: &Params,
    pairs: &PairSpec,
    options: &Options,
) -> anyhow::Result<Option<Box<dyn Engine>>> {
    let gpu = Gpu::open(WebGpuOptions::default())?;
    ensure!(!gpu.is_software(), "{} is no GPU", gpu.info.name);
    let (width, height) = pairs.size;
    let size = format!("{width}x{height}, {} disparities", params.range.count);
    let key = Key::of(["trial with maps", &gpu.identity(), &cpu.description(), &size]);
    let cache: &Cache = &options.cuda.cache;
    let make = || -> anyhow::Result<_> {
        Ok(Box::new(WebGpuEngine::of(params, pairs, options)?) as Box<dyn Engine>)
    };
    let (engine, outcome) = match cache.load(&key) {
        Some(outcome) if outcome == FASTER => (Some(make()?), outcome),
        Some(outcome) => (None, outcome),
        None => {
            let mut engine = make()?;
            let [on_gpu, on_cpu] = [time(&mut *engine, pairs)?, time(cpu, pairs)?];
            tracing::info!(
                "{} takes {:.1} ms for a pair of {size}, the CPU {:.1} ms",
                gpu.info.name,
                on_gpu.each.as_secs_f64() * 1e3,
                on_cpu.each.as_secs_f64() * 1e3
            );
            let outcome = judge(&on_gpu, &on_cpu);
            cache.store(&key, outcome);
            (Some(engine), outcome.to_vec())
        }
    };
    if outcome == WRONG {
        tracing::warn!(
            "{} computes wrong disparities, so the CPU matches; update its driver ({})",
            gpu.info.name,
            gpu.identity()
        );
    }
    Ok(engine.filter(|_| outcome == FASTER))
}

/// How an engine matched the pairs of a trial.
#[derive(Debug)]
struct Trial {
    /// Time of a pair.
    each: Duration,
    maps: Vec<Vec<i16>>,
}

fn judge(on_gpu: &Trial, on_cpu: &Trial) -> &'static [u8] {
    match (on_gpu.maps == on_cpu.maps, on_gpu.each < on_cpu.each) {
        (false, _) => WRONG,
        (true, true) => FASTER,
        (true, false) => SLOWER,
    }
}

/// Matches a stream of random pairs, which the engine forgets.
fn time(engine: &mut dyn Engine, pairs: &PairSpec) -> anyhow::Result<Trial> {
    let rectifier = pairs.rectifier.as_ref();
    let sizes = Eye::BOTH.map(|eye| rectifier.map_or(pairs.size, |it| it.source_size(eye)));
    let (mut began, mut in_flight, mut maps) = (Instant::now(), 0, Vec::new());
    for number in 0..=PAIRS {
        let [left, right] = [view(sizes[0], number, 0), view(sizes[1], number, SHIFT)];
        engine.submit(StereoPair::of_stills(left, right))?;
        in_flight += 1;
        if in_flight == engine.depth() || number == 0 {
            maps.push(collected(engine)?.context("the engine lost a pair")?);
            in_flight -= 1;
        }
        if number == 0 {
            began = Instant::now();
        }
    }
    while let Some(map) = collected(engine)? {
        maps.push(map);
    }
    let each = began.elapsed() / PAIRS as u32;
    engine.restart()?;
    Ok(Trial { each, maps })
}

/// Returns a view of a random texture that is `shift` pixels to the left, with noise of its own, so that most pixels
/// have a disparity.
fn view((width, height): (usize, usize), number: usize, shift: usize) -> Image {
    let random = |x: usize, y: usize, seed: usize| {
        let mixed = [x, y, seed].into_iter().fold(1, |mixed: u32, next| {
            (mixed ^ next as u32).wrapping_mul(0x9e37_79b1).rotate_left(15)
        });
        (mixed.wrapping_mul(0x85eb_ca6b) >> 24) as u8
    };
    Image::from_fn(width, height, |x, y| {
        random(x + shift, y, number) / 2 + random(x, y, number + shift + 1000) / 8
    })
}

/// Returns the next map, and its confidences if there are any.
fn collected(engine: &mut dyn Engine) -> anyhow::Result<Option<Vec<i16>>> {
    let values = |matched: Matched| {
        let confidence = matched.confidence.iter().flat_map(|all| all.pixels());
        let disparity = matched.disparity.values().iter().copied();
        disparity.chain(confidence.map(|&value| value.into())).collect()
    };
    Ok(engine.collect()?.map(values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::{CpuEngine, CpuOptions};
    use crate::frame::{DisparityRange, INVALID};

    fn trial(p1: u8) -> Trial {
        let params = Params::default().with_range(DisparityRange { min: 0, count: 16 }).with_p1(p1);
        let pairs = PairSpec::rectified(64, 48);
        time(&mut CpuEngine::new(&params, &pairs, CpuOptions::default()).unwrap(), &pairs).unwrap()
    }

    #[test]
    fn an_engine_with_other_maps_is_never_taken() {
        let [same, other] = [trial(20), trial(90)];
        assert_eq!(same.maps.len(), PAIRS + 1);
        for map in &same.maps {
            let known = map.iter().filter(|value| **value != INVALID).count();
            assert!(2 * known > map.len(), "{known} of {}", map.len());
        }
        let at =
            |trial: &Trial, ms| Trial { each: Duration::from_millis(ms), maps: trial.maps.clone() };
        assert_eq!(judge(&at(&same, 1), &at(&same, 2)), FASTER);
        assert_eq!(judge(&at(&same, 2), &at(&same, 1)), SLOWER);
        assert_eq!(judge(&at(&other, 1), &at(&same, 2)), WRONG);
    }
}
