//! Handles on a run for the parts that watch or change it while pairs flow.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use super::observations::Observations;
use super::requests::Requests;
use crate::cli::RunArgs;
use crate::commands::prepare::rig::Rig;
use crate::core::control::Control;
use crate::pipeline::{Counters, EngineSwap};
use crate::settings::Loaded;
use crate::sink::colouring::LiveColouring;
use crate::source::SourceInfo;
use crate::source::live::LiveState;
use crate::telemetry::progress::Progress;
use crate::window::Remote;

/// State of a run that window, terminal, metrics, service manager, tuner and statistics share.
pub struct Handles {
    /// The command line.
    pub args: RunArgs,
    /// The settings in effect.
    pub in_effect: Mutex<Loaded>,
    /// Switches that stop, hold and step the source.
    pub control: Control,
    /// Requests to the tuner.
    pub requests: Requests,
    /// The window, if there is one.
    pub remote: Option<Remote>,
    /// The source.
    pub info: SourceInfo,
    /// The state of the cameras, if the source is live.
    pub live: Option<Arc<LiveState>>,
    /// Set if both views come in one stream.
    pub one_stream: bool,
    /// Set if pairs come at their own pace, so that there is a latency.
    pub clocked: bool,
    /// The cameras.
    pub rig: Rig,
    /// The engine, in a few words.
    pub engine: String,
    /// Set if that is a GPU.
    pub on_gpu: bool,
    /// The slot for the next engine.
    pub swap: EngineSwap,
    /// The colours of disparity.
    pub colouring: LiveColouring,
    /// Observations about the pairs.
    pub observations: Observations,
    /// The pipeline's counters.
    pub progress: Arc<Progress>,
    /// Counts of links and outputs.
    pub counters: Counters,
    /// Pairs of a live source that were dropped before the pipeline started.
    pub dropped_before: Arc<AtomicU64>,
}

impl Handles {
    /// Returns the settings at this moment.
    pub fn loaded(&self) -> Loaded {
        self.in_effect.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
