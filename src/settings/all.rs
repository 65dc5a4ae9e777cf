//! All sections together.

use serde::Deserialize;

use super::row::Conflict;
use super::{
    Alignment, Calibration, Camera, Colour, Demo, Engine, Log, Matching, Metrics, Output, Queue,
    Source, Window,
};

/// All settings of the program.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // Each section's type says it.
pub struct Settings {
    pub source: Source,
    pub camera: Camera,
    pub demo: Demo,
    pub matching: Matching,
    pub engine: Engine,
    pub queue: Queue,
    pub output: Output,
    pub calibration: Calibration,
    pub alignment: Alignment,
    pub colour: Colour,
    pub window: Window,
    pub metrics: Metrics,
    pub log: Log,
}

impl Settings {
    /// Checks that the values fit together.
    pub(super) fn check(&self) -> Result<(), (&'static str, Conflict)> {
        self.source.check().map_err(|conflict| ("source", conflict))?;
        self.output.check().map_err(|conflict| ("output", conflict))?;
        self.colour.check().map_err(|conflict| ("colour", conflict))
    }
}
