//! `[calibration]`: what turns disparity into depth.

use serde::{Deserialize, Serialize};

use super::values::Unfit;

/// What turns disparity into depth: depth in metres = focal_px * baseline_m / disparity.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Calibration {
    /// Focal length of the rectified pictures in pixels; 0 is unknown.
    pub focal_px: f64,
    /// Distance of the cameras in metres; 0 is unknown.
    pub baseline_m: f64,
}

impl Calibration {
    /// Focal length in pixels, where known.
    pub fn focal(&self) -> Option<f64> {
        (self.focal_px > 0.0).then_some(self.focal_px)
    }

    /// Distance of the cameras in metres, where known.
    pub fn baseline(&self) -> Option<f64> {
        (self.baseline_m > 0.0).then_some(self.baseline_m)
    }

    pub(super) fn check(&self) -> Result<(), Unfit> {
        Unfit::within("focal_px", self.focal_px, 0.0..=1e6)?;
        Unfit::within("baseline_m", self.baseline_m, 0.0..=1e6)
    }
}
