//! Timed streams of pairs through an engine.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::Context;

use stereod_core::engine::Engine;
use stereod_core::frame::{Matched, StereoPair};

/// Different pairs that are matched in turn, so that no cache holds the input.
const PAIRS: u64 = 4;

/// Time between two pairs of the scene.
const PERIOD: Duration = Duration::from_nanos(1_000_000_000 / 30);

pub struct Sustained {
    pub pairs: u32,
    pub in_flight: usize,
    pub time: Duration,
}

impl Sustained {
    /// Milliseconds per pair.
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
    PAIRS.max(depth as u64 + 1)
}

/// Moves a pair to its next turn, so that time never jumps back and the stream continues.
pub fn of_next_turn(mut pair: StereoPair, engine: &dyn Engine) -> StereoPair {
    pair.timestamp += PERIOD * pairs_for(engine.depth()) as u32;
    pair
}

/// Collects the oldest pair in flight.
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
