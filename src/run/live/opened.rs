//! A run before pairs flow.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::finding::Finding;
use super::requests::Requests;
use crate::cli::RunArgs;
use crate::outputs;
use crate::run::prepare::rig::Rig;
use crate::settings::{AtEnd, Loaded};
use crate::status::Newest;
use crate::viewer::Span;
use crate::window::Remote;
use stereod_core::files;
use stereod_io::clock::CaptureClock;
use stereod_io::control::Control;
use stereod_io::sink::colouring::LiveColouring;
use stereod_io::source::SourceInfo;
use stereod_io::source::live::LiveState;

/// A run whose source, engine and outputs are open.
pub struct Opened {
    pub args: RunArgs,
    /// The name of the rig; empty in a run without `[[rig]]`.
    pub name: String,
    /// The names of all rigs that run.
    pub rigs: Arc<[String]>,
    pub in_effect: Mutex<Loaded>,
    /// Switches that stop, hold and step the source.
    pub control: Control,
    pub requests: Requests,
    pub finding: Finding,
    pub remote: Option<Remote>,
    pub info: SourceInfo,
    pub live: Option<Arc<LiveState>>,
    /// Set if both views come in one stream.
    pub one_stream: bool,
    /// Set if a recording is played at its own pace.
    pub realtime: bool,
    /// Times between which viewers move, or why they cannot.
    pub span: Result<Span, String>,
    /// Set if the source goes back to earlier pairs, with or without an end.
    pub returns: bool,
    pub rig: Rig,
    pub clock: Option<CaptureClock>,
    pub colouring: LiveColouring,
    pub status: Newest,
}

impl Opened {
    pub fn loaded(&self) -> Loaded {
        self.in_effect.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reports whether pairs come at their own pace, so that there is a latency. Others come as fast as they are
    /// matched, and their time in queues means nothing.
    pub fn is_clocked(&self) -> bool {
        self.info.live || self.realtime
    }

    /// Reports whether a recording waits at its end: for the user of the window, or, unless somebody waits for
    /// what the run writes or sends, for those of the page.
    pub fn stays(&self) -> bool {
        // A changed configuration may have changed it.
        let settings = self.loaded().settings;
        let is_shown = settings.serve.listen().is_some() && !self.info.live;
        settings.window.at_end == AtEnd::Stay
            && (self.remote.is_some() || is_shown && !outputs::are_wanted(&settings))
    }

    /// Returns the beginning of a text about this rig.
    pub fn heading(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!("{}: ", self.name) }
    }

    /// Returns the time in words for the name of a new file, after the name of the rig, if there is one.
    pub fn stem(&self, now: SystemTime) -> String {
        let rig = if self.name.is_empty() { String::new() } else { format!("{}-", self.name) };
        rig + &files::compact_time(now)
    }
}
