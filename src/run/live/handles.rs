//! Handles on a run for the parts that watch or change it while pairs flow.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::observations::Observations;
use super::opened::Opened;
use crate::pipeline::{Counters, EngineSwap};
use crate::status::{Banner, Parts, RunStatus};
use crate::telemetry::progress::{Health, Progress};
use crate::viewer::Viewer;
use stereod_core::engine::Choice;
use stereod_core::frame::Eye;

/// State of a run that window, terminal, metrics, service manager, tuner and statistics share.
pub struct Handles {
    pub run: Opened,
    /// The window and the live page.
    pub viewers: Vec<Arc<dyn Viewer>>,
    /// Set if viewers move through the recording.
    pub is_movable: bool,
    pub engine: String,
    pub choice: Choice,
    pub swap: EngineSwap,
    pub observations: Observations,
    pub progress: Arc<Progress>,
    pub counters: Counters,
    /// Pairs of a live source that were dropped before the pipeline started.
    pub dropped_before: Arc<AtomicU64>,
}

impl Deref for Handles {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.run
    }
}

impl Handles {
    /// Makes the status, for all who read it. `rate`: pairs matched a second.
    pub fn renew_status(&self, rate: f64, banners: Vec<Banner>) -> Arc<RunStatus> {
        let parts = Parts {
            rig: self.args.common.rig.as_deref(),
            info: &self.info,
            engine: &self.engine,
            clocked: self.is_clocked(),
            progress: &self.progress,
            counters: &self.counters,
            dropped_before: self.dropped_before.load(Ordering::Relaxed),
            live: self.live.as_deref(),
            alignment: self.observations.alignment(),
            exposure: self.observations.exposure(),
            maps: self.observations.map_metrics(),
        };
        let status = Arc::new(RunStatus::read(parts, rate, banners));
        self.status.set(status.clone());
        status
    }

    /// Returns the health. A recorded source is as fast as its outputs, so only a live one without
    /// pairs is unhealthy.
    pub fn health(&self) -> Health {
        let matched = self.progress.matched.load(Ordering::Relaxed);
        let since = self.progress.since_matched();
        if self.control.pause.is_set() {
            return Ok(format!("paused after {matched} pairs"));
        }
        if self.progress.source_ended.load(Ordering::Relaxed) {
            return Ok(format!("the source has ended after {matched} pairs"));
        }
        if !self.info.live || since < self.loaded().settings.metrics.unhealthy() {
            let trouble = self.live.as_ref().and_then(|live| live.trouble());
            let trouble = trouble.map_or_else(String::new, |trouble| format!("; {trouble}"));
            let ago = since.as_secs_f64();
            return Ok(format!("{matched} pairs, the last one {ago:.1} s ago{trouble}"));
        }
        let pairs = self.progress.pairs.load(Ordering::Relaxed);
        let [left, right] = self.progress.frames();
        let lost = |eye| self.live.as_ref().is_some_and(|live| live.eye(eye).summary().lost);
        let cameras = match (lost(Eye::Left), lost(Eye::Right)) {
            (true, true) => "both cameras are lost: ",
            (true, false) => "the left camera is lost: ",
            (false, true) => "the right camera is lost: ",
            (false, false) => "",
        };
        Err(format!(
            "{cameras}no pair was matched for {:.1} s (so far {left} left and {right} right frames came, \
             {pairs} pairs were made of them and {matched} matched)",
            since.as_secs_f64()
        ))
    }
}
