//! An engine that follows the motion of the rig ([`odometry`](crate::matching::odometry)) in the maps of another one, and
//! carries the maps along it ([`carry`](crate::matching::carry)).

use std::sync::Arc;
use std::time::Instant;

use super::Choice;
use super::interface::{Engine, PairSpec};
use crate::frame::{DisparityRange, Matched, StereoGeometry, StereoPair};
use crate::matching::History;
use crate::matching::carry::{BYTES_PER_PIXEL, Carrier, Warp};
use crate::matching::filter::steady::Steady;
use crate::matching::odometry::Odometer;
use crate::matching::tiles::TileLayout;
use crate::memory::{Budget, Reserved, product};
use crate::pool::Memory;
use crate::thread;

/// Name of the stage in timing reports.
const STAGE: &str = "motion";

/// More threads wait for memory.
const THREADS_MAX: usize = 8;

pub struct MovingEngine {
    engine: Box<dyn Engine>,
    odometer: Box<Odometer>,
    geometry: StereoGeometry,
    /// Set if the pairs get the odometry.
    tells: bool,
    carrying: Option<Carrying>,
}

/// Carries maps.
pub struct Carrying {
    carrier: Carrier,
    _memory: Reserved,
}

impl Carrying {
    pub fn new(
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
        Ok(Self { carrier, _memory: memory })
    }
}

impl MovingEngine {
    /// `engine` computes confidences. Its pairs get the odometry if `tells` is set.
    pub fn new(
        engine: Box<dyn Engine>,
        pairs: &PairSpec,
        tells: bool,
        carrying: Option<Carrying>,
    ) -> Self {
        let geometry = pairs.geometry.unwrap_or_else(|| StereoGeometry::assumed(pairs.size));
        Self { engine, odometer: Box::default(), geometry, tells, carrying }
    }

    fn follow(&mut self, matched: &mut Matched) {
        let Matched { pair, disparity, confidence: Some(confidence), .. } = matched else { return };
        let (geometry, time) = (&self.geometry, pair.timestamp);
        let odometry =
            self.odometer.next(&pair.left, &pair.right, disparity, confidence, geometry, time);
        if let Some(Carrying { carrier, .. }) = &mut self.carrying {
            let motion = self.odometer.motion().map(|motion| Warp::new(&motion, geometry));
            carrier.next(&pair.left, disparity, confidence, time, motion.as_ref());
        }
        matched.odometry = self.tells.then(|| Box::new(odometry));
    }
}

impl Engine for MovingEngine {
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
        self.follow(&mut matched);
        matched.finished = Instant::now();
        matched.stages.push((STAGE, matched.finished - begun));
        Ok(Some(matched))
    }

    fn set_profiling(&mut self, on: bool) {
        self.engine.set_profiling(on);
    }

    // The carried map stays behind: the next engine begins with its first map.
    fn take_history(&mut self) -> anyhow::Result<History> {
        if let Some(carrying) = &mut self.carrying {
            carrying.carrier.restart();
        }
        let odometer = Some(std::mem::take(&mut self.odometer));
        Ok(History { odometer, ..self.engine.take_history()? })
    }

    fn resume(&mut self, mut history: History) -> anyhow::Result<()> {
        if let Some(carrying) = &mut self.carrying {
            carrying.carrier.restart();
        }
        self.odometer = history.odometer.take().unwrap_or_default();
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
