//! A calibration as a format's reader gives it.

use crate::calibration::StereoCalibration;
use crate::calibration::check::Sources;
use crate::calibration::mode::Window;

/// Quality of a calibration, where the file says it; kept in our own format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Maker: a program and its version.
    pub made_by: Option<String>,
    /// When it was made, as 2024-05-31.
    pub date: Option<String>,
    /// Root mean square reprojection error over both eyes, in pixels.
    pub rms_px: Option<f64>,
    /// Mean distance of matching points from their epipolar line, in pixels.
    pub epipolar_error_px: Option<f64>,
    /// Number of picture pairs that it was computed from.
    pub pairs: Option<usize>,
}

/// One of the two pairs of cameras on KITTI's car.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KittiCameras {
    /// Cameras 0 and 1, grey.
    Grey,
    /// Cameras 2 and 3, in colour.
    Colour,
}

/// Help for reading files that do not say everything, or not as it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// Width and height of the pictures in pixels where the files do not say it.
    pub size: Option<(usize, usize)>,
    /// Exchange the eyes: what the files call left is the right camera.
    pub swap: bool,
    /// Metres in one unit of the files' translations, where that is not a metre: 0.001 for mm.
    pub unit_m: Option<f64>,
    /// Cameras that are taken of KITTI's; `None`: the colour ones, where there are both.
    pub kitti: Option<KittiCameras>,
}

/// A calibration as a format's reader gives it, before the checks.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) calibration: StereoCalibration,
    /// Parts of the left and the right camera's pictures that are delivered, where not all of them is.
    pub(super) windows: Option<[Window; 2]>,
    /// See [`Loaded::by_size`](super::Loaded::by_size).
    pub(super) by_size: bool,
    /// See [`Loaded::disparities`](super::Loaded::disparities).
    pub(super) disparities: Option<usize>,
    pub(super) sources: Sources,
    pub(super) report: Report,
    pub(super) notes: Vec<String>,
}

impl Draft {
    /// A calibration of which nothing further is known.
    pub(super) fn new(calibration: StereoCalibration, sources: Sources) -> Self {
        Self {
            calibration,
            windows: None,
            by_size: false,
            disparities: None,
            sources,
            report: Report::default(),
            notes: Vec::new(),
        }
    }
}
