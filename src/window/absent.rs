//! Stands in for the window in a program that was built without it.

#[allow(dead_code)] // Only a window reads them.
mod options;

use std::convert::Infallible;
use std::sync::Arc;

use anyhow::{Result, bail};

pub use options::{CameraDesk, Timing, View, WindowOptions};

use crate::status::RunStatus;
use crate::viewer::{Tuned, Viewer};
use stereod_core::frame::Matched;
use stereod_io::camera::CameraReport;
use stereod_io::control::Control;
use stereod_io::sink::Sink;

/// A window; there is none.
pub struct Window(Infallible);

/// Handle of the window; there is none.
#[derive(Clone)]
pub struct Remote(Infallible);

impl Window {
    /// Fails.
    pub fn connect() -> Result<Self> {
        bail!("this stereod was built without a window (Cargo's feature `window`)")
    }

    pub fn remote(&self) -> Remote {
        match self.0 {}
    }

    pub fn run(self, _: WindowOptions, _: Control) -> Result<()> {
        match self.0 {}
    }
}

impl Remote {
    pub fn status(&self, _: Arc<RunStatus>) {
        match self.0 {}
    }

    pub fn ended(&self) {
        match self.0 {}
    }

    pub fn failed(&self, _: impl Into<String>) {
        match self.0 {}
    }

    pub fn camera(&self, _: usize, _: CameraReport) {
        match self.0 {}
    }

    pub fn close(&self) {
        match self.0 {}
    }
}

impl Viewer for Remote {
    fn tuned(&self, _: Tuned) {
        match self.0 {}
    }

    fn saved(&self, _: Result<String, String>) {
        match self.0 {}
    }
}

/// A sink that shows pairs; there is none.
pub struct WindowSink(Remote);

impl WindowSink {
    pub fn new(remote: Remote, _: Timing) -> Self {
        Self(remote)
    }
}

impl Sink for WindowSink {
    fn name(&self) -> &str {
        "window"
    }

    fn consume(&mut self, _: &Arc<Matched>) -> Result<()> {
        match self.0.0 {}
    }

    fn finish(&mut self) -> Result<()> {
        match self.0.0 {}
    }
}
