//! An engine whose maps are carried along the motion of the rig ([`carry`](crate::matching::carry)).

use std::sync::Arc;
use std::time::Instant;

use super::Choice;
use super::interface::{Engine, PairSpec};
use crate::frame::{DisparityRange, Matched, StereoPair};
use crate::matching::History;
use crate::matching::carry::{BYTES_PER_PIXEL, Carrier};
use crate::matching::filter::steady::Steady;
use crate::matching::tiles::TileLayout;
use crate::memory::{Budget, Reserved, product};
use crate::pool::Memory;
use crate::thread;

/// Name of the stage in timing reports.
const STAGE: &str = "steady in motion";

/// More threads wait for memory.
const THREADS_MAX: usize = 8;

pub struct CarryingEngine {
    engine: Box<dyn Engine>,
    carrier: Carrier,
    _memory: Reserved,
}

impl CarryingEngine {
    pub fn new(
        engine: Box<dyn Engine>,
        how: Steady,
        range: DisparityRange,
        pairs: &PairSpec,
        threads: Option<usize>,
    ) -> anyhow::Result<Self> {
        let ((width, height), threads) = (pairs.size, threads.unwrap_or_else(thread::available));
        let bytes = product([width, height, BYTES_PER_PIXEL]);
        let what = format!("steady maps of {width}x{height} pixels");
        let memory =
            Budget::of_process().reserve(what, bytes, "a smaller picture, or steady=off")?;
        let carrier = Carrier::new(how, range, pairs.size, threads.min(THREADS_MAX));
        Ok(Self { engine, carrier, _memory: memory })
    }
}

impl Engine for CarryingEngine {
    fn description(&self) -> String {
        self.engine.description()
    }

    fn depth(&self) -> usize {
        self.engine.depth()
    }

    fn submit(&mut self, pair: StereoPair) -> anyhow::Result<()> {
        self.engine.submit(pair)
    }

    fn collect(&mut self) -> anyhow::Result<Option<Matched>> {
        let Some(mut matched) = self.engine.collect()? else { return Ok(None) };
        let begun = Instant::now();
        let Matched { pair, disparity, confidence, .. } = &mut matched;
        if let Some(confidence) = confidence {
            self.carrier.next(&pair.left, disparity, confidence, pair.timestamp);
        }
        matched.finished = Instant::now();
        matched.stages.push((STAGE, matched.finished - begun));
        Ok(Some(matched))
    }

    fn set_profiling(&mut self, on: bool) {
        self.engine.set_profiling(on);
    }

    // The carried map stays behind: the next engine begins with its first map.
    fn take_history(&mut self) -> anyhow::Result<History> {
        self.carrier.restart();
        self.engine.take_history()
    }

    fn resume(&mut self, history: History) -> anyhow::Result<()> {
        self.carrier.restart();
        self.engine.resume(history)
    }

    fn choice(&self) -> Choice {
        self.engine.choice()
    }

    fn layout(&self) -> Option<&TileLayout> {
        self.engine.layout()
    }

    fn picture_memory(&self) -> Option<Arc<dyn Memory<u8>>> {
        self.engine.picture_memory()
    }
}
