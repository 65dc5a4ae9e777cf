//! Streams of a rig that stands nearly still or jumps, for the stages with memory of earlier pairs.

use std::time::Duration;

use proptest::prelude::*;
use stereod_core::engine::Engine;
use stereod_core::frame::{Image, StereoPair};
use stereod_core::matching::{History, match_next};
use stereod_core::{DisparityRange, Params, Steady, Temporal, TemporalMode};

use super::parity::{pair, params, same_result};

/// A stream of a rig that stands nearly still, or does not.
#[derive(Clone, Copy, Debug)]
pub struct Drift {
    pub seed: u64,
    /// Grey levels of the noise of each picture.
    pub noise: u8,
    /// Largest motion of the rig from pair to pair, in 1/16 px.
    pub jitter: u16,
    /// Whether something else moves in it.
    pub mover: bool,
    /// Number of the pair with which another scene begins.
    pub cut: usize,
}

fn drifts() -> impl Strategy<Value = Drift> {
    // After a motion of more than a hundred pixels, no image is registered again.
    let jitter = prop_oneof![Just(0u16), 1u16..30, 30u16..120, 1600u16..3200];
    (any::<u64>(), 0u8..12, jitter, any::<bool>(), 1usize..12)
        .prop_map(|(seed, noise, jitter, mover, cut)| Drift { seed, noise, jitter, mover, cut })
}

/// The stages with memory of a stream, in all their variants.
fn stages_in_time() -> impl Strategy<Value = (Option<Temporal>, Option<Steady>)> {
    let mode = prop_oneof![Just(TemporalMode::Denoise), Just(TemporalMode::Whiten)];
    let history = prop_oneof![Just(2u8), Just(3), Just(20), Just(64), 2u8..=64];
    let temporal = (mode, history, 0u8..=3).prop_map(|(mode, history, degree)| Temporal {
        mode,
        history,
        degree,
    });
    let steady = (1u8..=60).prop_map(|strength| Steady { strength });
    let some = (prop::option::weighted(0.8, temporal), prop::option::of(steady));
    some.prop_filter("at least one", |(temporal, steady)| temporal.is_some() || steady.is_some())
}

/// A stream with stages in time: parameters, image size, motion, and number of pairs.
pub fn streams() -> impl Strategy<Value = (Params, (usize, usize), Drift, usize)> {
    let size = prop_oneof![(1usize..40, 1usize..30), (60usize..140, 50usize..110)];
    let confidence = prop::option::of(Just(0u8));
    (params(), stages_in_time(), confidence, size, drifts(), 2usize..9).prop_map(
        |(params, (temporal, steady), confidence, size, drift, pairs)| {
            let range = DisparityRange { count: params.range.count.min(12), ..params.range };
            (
                params
                    .with_temporal(temporal)
                    .with_steady(steady)
                    .with_confidence(confidence)
                    .with_range(range),
                size,
                drift,
                pairs,
            )
        },
    )
}

/// The pairs of such a stream.
pub fn drifting(
    (width, height): (usize, usize),
    drift: Drift,
    pairs: usize,
) -> impl Iterator<Item = StereoPair> {
    let mut state = drift.seed | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 20
    };
    let mut at = [0i64; 2];
    (0..pairs).map(move |number| {
        let scene = drift.seed % 1000 + if number < drift.cut { 0 } else { 77 };
        let mut step =
            || random() as i64 % (2 * i64::from(drift.jitter) + 1) - i64::from(drift.jitter);
        at = [at[0] + step(), at[1] + step()];
        let moved = at.map(|by| by as f64 / 16.0);
        let noise: Vec<i16> = (0..2 * width * height)
            .map(|_| (random() % (2 * u64::from(drift.noise) + 1)) as i16 - i16::from(drift.noise))
            .collect();
        let eye = |eye: usize| {
            Image::from_fn(width, height, |x, y| {
                let on_mover =
                    drift.mover && x.abs_diff((number * 3) % width) < 5 && y > height / 2;
                let (u, v) = (x as f64 + moved[0] + 3.0 * eye as f64, y as f64 + moved[1]);
                let s = scene as f64;
                let grey = 120.0
                    + 45.0 * (0.31 * u + 0.11 * v + s).sin()
                    + 35.0 * (0.05 * u - 0.43 * v + 2.0 * s).sin()
                    + 20.0 * (0.9 * u + 0.7 * v).sin();
                let grey = if on_mover { 255.0 - grey } else { grey };
                let noise = f64::from(noise[eye * width * height + y * width + x]);
                (grey + noise).round().clamp(0.0, 255.0) as u8
            })
        };
        let timestamp = Duration::from_millis(40 * number as u64);
        StereoPair { timestamp, ..pair(eye(0), eye(1)) }
    })
}

/// Matches a stream on one engine, with as many pairs in flight as it takes, and compares each with
/// the reference.
pub fn compare_stream(
    engine: &mut dyn Engine,
    params: &Params,
    pairs: impl Iterator<Item = StereoPair>,
) -> Result<(), String> {
    compare_predicted(engine, params, pairs, |pair| pair)
}

/// As [`compare_stream`]; the reference gets pairs with what the engine predicts itself.
pub fn compare_predicted(
    engine: &mut dyn Engine,
    params: &Params,
    mut pairs: impl Iterator<Item = StereoPair>,
    predicted: impl Fn(StereoPair) -> StereoPair,
) -> Result<(), String> {
    let mut in_flight = std::collections::VecDeque::new();
    let mut history = History::default();
    let failed = |e: anyhow::Error| format!("{e:#}");
    engine.resume(History::default()).map_err(failed)?;
    for number in 0.. {
        let next = pairs.next();
        let is_last = next.is_none();
        if let Some(pair) = next {
            let expected = match_next(&predicted(pair.copy()), params, &mut history);
            in_flight.push_back((number, expected));
            engine.submit(pair).map_err(failed)?;
        }
        if in_flight.len() < engine.depth() && !is_last {
            continue;
        }
        let Some((number, expected)) = in_flight.pop_front() else { break };
        let matched = engine.collect().map_err(failed)?.expect("a pair was in flight");
        same_result(&expected, &matched)
            .map_err(|e| format!("{}: pair {number}: {e}\n{params:?}", engine.description()))?;
    }
    Ok(())
}
