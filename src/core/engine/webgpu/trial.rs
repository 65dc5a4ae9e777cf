//! `engine=auto` without an NVIDIA GPU: the CPU engine or, if it was faster in a trial, a GPU of another maker.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::device::{Gpu, may_have_gpu};
use super::{WebGpuEngine, WebGpuOptions};
use crate::engine::cuda::{Cache, Key};
use crate::engine::{Engine, Options, PairSpec, Tiling};
use crate::frame::{Eye, Image, StereoPair};
use crate::matching::Params;

/// Pairs that an engine matches in a trial, after one that warms it up.
const PAIRS: usize = 3;

/// Returns the faster one of the CPU engine and of an engine on a GPU. The outcome of the trial is kept for each
/// device and size. Any failure leaves the CPU.
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
    let key = Key::of(["trial", &gpu.identity(), &cpu.description(), &size]);
    let cache: &Cache = &options.cuda.cache;
    let make = || -> anyhow::Result<_> {
        let engine = WebGpuEngine::new(params, pairs, WebGpuOptions::default(), options.cpu)?;
        Ok(Box::new(engine) as Box<dyn Engine>)
    };
    let known = cache.load(&key);
    if known.as_deref().is_some_and(|outcome| outcome != b"gpu") {
        return Ok(None);
    }
    let mut engine = make()?;
    if known.is_some() {
        return Ok(Some(engine));
    }
    let [on_gpu, on_cpu] = [time(&mut *engine, pairs)?, time(cpu, pairs)?];
    let is_faster = on_gpu < on_cpu;
    tracing::info!(
        "{} takes {:.1} ms for a pair of {size}, the CPU {:.1} ms",
        gpu.info.name,
        on_gpu.as_secs_f64() * 1e3,
        on_cpu.as_secs_f64() * 1e3
    );
    cache.store(&key, if is_faster { b"gpu" } else { b"cpu" });
    Ok(is_faster.then_some(engine))
}

/// Time of a pair in a stream of random pairs, which the engine forgets.
fn time(engine: &mut dyn Engine, pairs: &PairSpec) -> anyhow::Result<Duration> {
    let rectifier = pairs.rectifier.as_ref();
    let sizes = Eye::BOTH.map(|eye| rectifier.map_or(pairs.size, |it| it.source_size(eye)));
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let mut began = Instant::now();
    let mut in_flight = 0;
    for number in 0..=PAIRS {
        let [left, right] = sizes.map(|(width, height)| {
            let pixels = (0..width * height).map(|_| random()).collect();
            Image::from_vec(width, height, pixels)
        });
        engine.submit(StereoPair::of_stills(left, right))?;
        in_flight += 1;
        if in_flight == engine.depth() || number == 0 {
            engine.collect()?.context("the engine lost a pair")?;
            in_flight -= 1;
        }
        if number == 0 {
            began = Instant::now();
        }
    }
    while engine.collect()?.is_some() {}
    let time = began.elapsed() / PAIRS as u32;
    engine.restart()?;
    Ok(time)
}
