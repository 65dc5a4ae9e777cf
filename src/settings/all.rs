//! All sections together.

use serde::Deserialize;

#[cfg(feature = "cli")]
use super::program::{
    Alignment, Calibration, Camera, Colour, Demo, Log, Metrics, Output, Queue, Ros2, Serve, Source,
    Window,
};
use super::row::Conflict;
use super::{Engine, Matching};
#[cfg(feature = "cli")]
use crate::core::frame::{DisparityRange, StereoGeometry};
#[cfg(feature = "cli")]
use crate::sink::{cloud::CloudOptions, colour::ColourRange, colouring::Colouring};

/// All settings of the program; those of the library are the matcher's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // Each section's type says it.
pub struct Settings {
    pub matching: Matching,
    pub engine: Engine,
    #[cfg(feature = "cli")]
    pub source: Source,
    #[cfg(feature = "cli")]
    pub camera: Camera,
    #[cfg(feature = "cli")]
    pub demo: Demo,
    #[cfg(feature = "cli")]
    pub queue: Queue,
    #[cfg(feature = "cli")]
    pub output: Output,
    #[cfg(feature = "cli")]
    pub calibration: Calibration,
    #[cfg(feature = "cli")]
    pub alignment: Alignment,
    #[cfg(feature = "cli")]
    pub colour: Colour,
    #[cfg(feature = "cli")]
    pub window: Window,
    #[cfg(feature = "cli")]
    pub metrics: Metrics,
    #[cfg(feature = "cli")]
    pub serve: Serve,
    #[cfg(feature = "cli")]
    pub ros2: Ros2,
    #[cfg(feature = "cli")]
    pub log: Log,
}

#[cfg(feature = "cli")]
impl Settings {
    /// Returns the disparities that the colours span: between the limits of depth where they are given and
    /// the cameras are known.
    pub fn colour_range(
        &self,
        range: DisparityRange,
        geometry: Option<&StereoGeometry>,
    ) -> ColourRange {
        let Some(geometry) = geometry.filter(|_| self.output.has_depth_limits()) else {
            return self.colour.span(range);
        };
        let CloudOptions { near_m, far_m, .. } = self.output.clouds();
        let limit = |metres: Option<f64>, other: i32| {
            metres.map_or(other as f32, |metres| geometry.disparity_px(metres) as f32)
        };
        ColourRange::Fixed { low: limit(far_m, range.min), high: limit(near_m, range.max()) }
    }

    /// Returns the colours and the disparities that they span.
    pub fn colouring(&self, range: DisparityRange, geometry: Option<&StereoGeometry>) -> Colouring {
        Colouring { map: self.colour.map, span: self.colour_range(range, geometry) }
    }
}

impl Settings {
    /// Checks that the values fit together.
    pub(super) fn check(&self) -> Result<(), (&'static str, Conflict)> {
        #[cfg(feature = "cli")]
        {
            self.source.check().map_err(|conflict| ("source", conflict))?;
            self.output.check().map_err(|conflict| ("output", conflict))?;
            self.colour.check().map_err(|conflict| ("colour", conflict))?;
        }
        Ok(())
    }
}
