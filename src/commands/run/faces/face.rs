//! A face of a run.

use std::sync::Arc;

use crate::commands::Error;
use crate::commands::prepare::rig::Rig;
use crate::commands::run::live::handles::Handles;
use crate::commands::run::live::requests::Requests;
use crate::pipeline::{Outcome, Timeline};
use crate::settings::Loaded;
use crate::status::Newest;
use crate::viewer::Viewer;
use crate::window::Remote;
use stereod_core::clock::CaptureClock;
use stereod_core::control::Control;
use stereod_io::sink::Sink;
use stereod_io::sink::colouring::LiveColouring;
use stereod_io::source::SourceInfo;

/// A face of a run, which ends when it is dropped.
pub trait Face {
    /// Returns the window's handle, if this is the window.
    fn remote(&self) -> Option<Remote> {
        None
    }

    /// Returns the most that it shows of a pair.
    fn shows(&self) -> Shows {
        Shows::Nothing
    }

    /// Takes part in a run that is opened, by a sink and as a viewer.
    fn join(
        &mut self,
        _run: &Opened<'_>,
        _sinks: &mut Vec<Box<dyn Sink>>,
    ) -> anyhow::Result<Joined> {
        Ok(None)
    }

    /// Returns the timeline of a run that it has joined, if it moves through it.
    fn timeline(&self) -> Option<Timeline> {
        None
    }

    /// Begins to show the run. Pairs flow.
    fn serve(&mut self, _handles: &Arc<Handles>) -> anyhow::Result<()> {
        Ok(())
    }

    /// Shows the end of the run, and notes its own failure if nothing else has failed.
    fn end(&mut self, _handles: &Handles, _outcome: &mut Outcome) {}
}

/// The most that a face shows of a pair.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shows {
    Nothing,
    Images,
    Confidence,
}

/// A run whose source, engine and outputs are open. ROS 2 and the page need all of it.
#[cfg_attr(not(all(feature = "ros2", feature = "serve")), allow(dead_code))]
pub struct Opened<'a> {
    pub loaded: &'a Loaded,
    pub info: &'a SourceInfo,
    pub rig: &'a Rig,
    /// Clock of the capture times, if they have one.
    pub clock: Option<CaptureClock>,
    pub colouring: &'a LiveColouring,
    pub control: &'a Control,
    pub requests: &'a Requests,
    pub status: &'a Newest,
    /// Set if a recording is played at its own pace.
    pub realtime: bool,
}

/// The viewer that a face is, if it shows settings.
pub type Joined = Option<Arc<dyn Viewer>>;

/// A face that the settings or the environment ask for.
pub type Bound = Result<Option<Box<dyn Face>>, Error>;
