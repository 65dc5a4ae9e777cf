//! What the outside may look at and change while pairs flow.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use super::findings::Findings;
use super::requests::Requests;
use crate::cli::RunArgs;
use crate::commands::rig::Rig;
use crate::control::Control;
use crate::pipeline::{Counters, EngineSwap};
use crate::settings::Loaded;
use crate::sink::colouring::LiveColouring;
use crate::sink::window::Remote;
use crate::source::SourceInfo;
use crate::source::live::LiveState;
use crate::telemetry::progress::Progress;

/// What the window, the terminal, the metrics, the service manager, the tuner and the statistics share.
pub struct Handles {
    /// The command line.
    pub args: RunArgs,
    /// The settings in effect.
    pub in_effect: Mutex<Loaded>,
    /// Stops, holds and steps the source.
    pub control: Control,
    /// What the tuner is asked for.
    pub requests: Requests,
    /// The window, if there is one.
    pub remote: Option<Remote>,
    /// What is read.
    pub info: SourceInfo,
    /// How the cameras fare, where the source is live.
    pub live: Option<Arc<LiveState>>,
    /// Whether both eyes come in one stream.
    pub one_stream: bool,
    /// Whether pairs come at a pace of their own, so that there is a latency.
    pub clocked: bool,
    /// The cameras.
    pub rig: Rig,
    /// What matches, in a few words.
    pub engine: String,
    /// Whether that is a GPU.
    pub on_gpu: bool,
    /// Where another engine goes that is to take over.
    pub swap: EngineSwap,
    /// How disparity is coloured.
    pub colouring: LiveColouring,
    /// What is found in the pairs.
    pub findings: Findings,
    /// The pipeline's counters.
    pub progress: Arc<Progress>,
    /// What links and outputs count.
    pub counters: Counters,
    /// Pairs of a live source that were dropped before the pipeline started.
    pub dropped_before: Arc<AtomicU64>,
}

impl Handles {
    /// The settings at this moment.
    pub fn loaded(&self) -> Loaded {
        self.in_effect.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
