//! `[calibration]`: what is known of the two cameras.

use clap::ValueHint;
use serde::Deserialize;
use toml::Value;

use super::row::Plain::Real;
use super::row::{AUTO, CALIBRATION, RECTIFIED, Row, any};

/// Source of what rectifies the pictures and turns disparity into depth: files, or two numbers for pictures
/// that come rectified (depth in metres = focal_px * baseline_m / disparity).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // `config/default.toml` says what each is.
pub struct Calibration {
    pub file: String,
    pub alpha: Option<f64>,
    pub focal_px: f64,
    pub baseline_m: f64,
}

pub(super) const ROWS: &[Row] = &[
    Row::text("file", "", any)
        .flag(CALIBRATION, "--calibration", "FILE[,FILE]")
        .help(
            "Rectify raw pictures with this calibration, in one file or two (OpenCV, ROS, \
             Kalibr, stereod's own ...), or take depth from that of a data set (KITTI, Middlebury)",
        )
        .arg(|arg| arg.value_hint(ValueHint::FilePath)),
    Row::real("alpha", AUTO, [0.0, 1.0])
        .or(&["auto"])
        .flag(CALIBRATION, "--alpha", "0..1")
        .help(
            "How much of the raw pictures the rectified ones show: 0 nothing but what is \
             seen everywhere, 1 everything [default: as the file says, or 0]",
        )
        .arg(|arg| {
            let number = |text: &str| text.parse::<f64>().map(Value::from);
            arg.requires("calibration").value_parser(number)
        }),
    Row::real("focal_px", Real(0.0), [0.0, 1e6])
        .flag(RECTIFIED, "--focal", "PX")
        .help("Focal length of pictures that come rectified, in pixels, for depth")
        .arg(|arg| arg.conflicts_with("calibration")),
    Row::real("baseline_m", Real(0.0), [0.0, 1e6])
        .flag(RECTIFIED, "--baseline", "METRES")
        .help("Distance between the cameras of pictures that come rectified, in metres, for depth")
        .arg(|arg| arg.conflicts_with("calibration")),
];

impl Calibration {
    /// Focal length in pixels and distance in metres, where they are given.
    pub fn focal_and_baseline(&self) -> Option<(f64, f64)> {
        (self.focal_px > 0.0 && self.baseline_m > 0.0).then_some((self.focal_px, self.baseline_m))
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::test_support::{refused, settings};

    #[test]
    fn depth_needs_both_numbers() {
        let mut calibration = settings(&["calibration.focal_px=400"]).calibration;
        assert_eq!(calibration.focal_and_baseline(), None);
        calibration.baseline_m = 0.1;
        assert_eq!(calibration.focal_and_baseline(), Some((400.0, 0.1)));
        assert!(refused("calibration", "alpha", 1.5));
    }
}
