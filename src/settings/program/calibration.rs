//! `[calibration]`: the two cameras.

use serde::Deserialize;

use stereod_calibration::format::KittiCameras;
use stereod_core::settings::row::Plain::Real;
use stereod_core::settings::row::{AUTO, CALIBRATION, QUANTITY, RECTIFIED, Row, any};

/// Rectification and geometry for depth: calibration files, or two numbers for rectified inputs
/// (depth in metres = focal_px * baseline_m / disparity).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    pub file: String,
    pub alpha: Option<f64>,
    pub kitti_cameras: Option<KittiCameras>,
    pub focal_px: f64,
    pub baseline_m: f64,
    pub centre_px: String,
    pub align: String,
}

pub(in crate::settings) const ROWS: &[Row] = &[
    Row::text("file", "", any)
        .flag(CALIBRATION, "--calibration", "FILE[,FILE]")
        .help(
            "Rectify raw images with this calibration, in one file or two (OpenCV, ROS, \
             Kalibr, stereod's own ...), or take the cameras of a data set for depth (KITTI, Middlebury).",
        )
        .more("\"\": the inputs are already rectified."),
    Row::real("alpha", AUTO, [0.0, 1.0])
        .or(&["auto"])
        .flag(CALIBRATION, "--alpha", "0..1")
        .help(
            "Field of view of the rectified images: 0 shows only valid pixels, 1 the whole raw images; \
             `auto`: as the file says, or 0.",
        ),
    Row {
        none: Some("auto"),
        ..Row::names("kitti_cameras", "auto", &["auto", "grey", "colour"])
            .flag(CALIBRATION, "--kitti-cameras", "CAMERAS")
            .help("Cameras of KITTI's calib.txt that took the images.")
            .about(&[
                "By the folders' names (image_0: grey), or the colour ones",
                "P0 and P1 (image_0, image_1)",
                "P2 and P3 (image_2, image_3)",
            ])
    },
    Row::real("focal_px", Real(0.0), [0.0, 1e6])
        .flag(RECTIFIED, "--focal", "PX")
        .help("Focal length of rectified inputs in pixels, for depth; 0: unknown."),
    Row::real("baseline_m", Real(0.0), [0.0, 1e6])
        .flag(RECTIFIED, "--baseline", "METRES")
        .help("Baseline of rectified inputs in metres, for depth; 0: unknown."),
    Row::text("centre_px", "", |text| match centre(text) {
        None if !text.is_empty() => Err("`X,Y` in pixels, such as `319.5,239.5`".into()),
        _ => Ok(()),
    })
    .flag(RECTIFIED, "--centre", "X,Y")
    .help(
        "Principal point of rectified inputs in pixels, for points in space, such as 319.5,239.5 \
         instead of the middle.",
    ),
    Row::text("align", "", any)
        .flag(QUANTITY, "--align", "FILE[,FILE]")
        .help(
            "Calibration of the left camera and a third one, for `output.aligned`: Kalibr's or DepthAI's of \
             three cameras, or any of two, in which the third one is the right camera.",
        ),
];

/// Parses a principal point such as `319.5,239.5`.
fn centre(text: &str) -> Option<[f64; 2]> {
    let (x, y) = text.split_once(',')?;
    let centre = [x.trim().parse().ok()?, y.trim().parse().ok()?];
    centre.iter().all(|at: &f64| at.is_finite()).then_some(centre)
}

impl Calibration {
    /// Returns focal length in pixels and baseline in metres, if given.
    pub fn focal_and_baseline(&self) -> Option<(f64, f64)> {
        (self.focal_px > 0.0 && self.baseline_m > 0.0).then_some((self.focal_px, self.baseline_m))
    }

    /// Returns the principal point in pixels, if given.
    pub fn centre(&self) -> Option<[f64; 2]> {
        centre(&self.centre_px)
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::tests::{refused, settings};

    #[test]
    fn depth_needs_both_numbers() {
        let mut calibration = settings(&["calibration.focal_px=400"]).calibration;
        assert_eq!(calibration.focal_and_baseline(), None);
        calibration.baseline_m = 0.1;
        assert_eq!(calibration.focal_and_baseline(), Some((400.0, 0.1)));
        assert!(refused("calibration", "alpha", 1.5));
        for wrong in [-5.0, f64::NAN] {
            assert!(refused("calibration", "focal_px", wrong), "{wrong}");
        }
    }

    #[test]
    fn the_principal_point_is_two_numbers() {
        let calibration = settings(&["calibration.centre_px=319.5, 239"]).calibration;
        assert_eq!(calibration.centre(), Some([319.5, 239.0]));
        assert_eq!(settings(&[]).calibration.centre(), None);
        for wrong in ["319.5", "a,b", "1,2,3", "nan,3"] {
            assert!(refused("calibration", "centre_px", wrong), "{wrong}");
        }
    }
}
