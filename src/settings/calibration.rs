//! `[calibration]`: what is known of the two cameras.

use serde::{Deserialize, Serialize};

use super::values::{OrAuto, Unfit};

/// What rectifies the pictures and turns disparity into depth: files, or two numbers for pictures
/// that come rectified (depth in metres = focal_px * baseline_m / disparity).
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Calibration {
    /// Calibration files, parted by commas; an empty text is none.
    pub file: String,
    /// How much of the raw pictures the rectified ones show, from 0 (nothing but what both cameras
    /// see everywhere) to 1 (everything); `auto`: as the file says, or 0.
    pub alpha: OrAuto,
    /// Focal length of the rectified pictures in pixels; 0 is unknown.
    pub focal_px: f64,
    /// Distance of the cameras in metres; 0 is unknown.
    pub baseline_m: f64,
}

impl Calibration {
    /// Focal length in pixels and distance in metres, where they are given.
    pub fn focal_and_baseline(&self) -> Option<(f64, f64)> {
        (self.focal_px > 0.0 && self.baseline_m > 0.0).then_some((self.focal_px, self.baseline_m))
    }

    pub(super) fn check(&self) -> Result<(), Unfit> {
        Unfit::within("focal_px", self.focal_px, 0.0..=1e6)?;
        Unfit::within("baseline_m", self.baseline_m, 0.0..=1e6)?;
        if let Some(alpha) = self.alpha.value() {
            Unfit::within("alpha", alpha, 0.0..=1.0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_needs_both_numbers() {
        let mut calibration = Calibration { focal_px: 400.0, ..Calibration::default() };
        assert_eq!(calibration.focal_and_baseline(), None);
        calibration.baseline_m = 0.1;
        assert_eq!(calibration.focal_and_baseline(), Some((400.0, 0.1)));
        calibration.alpha = OrAuto::Value(1.5);
        assert_eq!(calibration.check().unwrap_err().key, "alpha");
    }
}
