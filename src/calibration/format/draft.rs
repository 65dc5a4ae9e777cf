//! A calibration as read from a format.

use crate::StereoCalibration;
use crate::check::Sources;
use crate::mode::Window;

/// Quality of a calibration, if the file has it; our own format keeps it.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(rename = "ReportTable", deny_unknown_fields)]
pub struct Report {
    /// Program that made it, with its version.
    pub made_by: Option<String>,
    /// Date of the calibration, as 2024-05-31.
    pub date: Option<String>,
    /// Root mean square reprojection error over both views, in pixels.
    pub rms_px: Option<f64>,
    /// Mean distance of matching points from their epipolar line, in pixels.
    pub epipolar_error_px: Option<f64>,
    pub pairs: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KittiCameras {
    Grey,
    Colour,
}

/// Information that files lack or have wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// Width and height of the images in pixels, if the files lack them.
    pub size: Option<(usize, usize)>,
    /// Exchanges the cameras: the files' left camera becomes the right one.
    pub swap: bool,
    /// Inverts the pose: the files' rotation and translation lead from the right camera to the left one.
    pub inverse: bool,
    /// Metres per unit of the files' translations, if that is not a metre: 0.001 for mm.
    pub unit_m: Option<f64>,
    /// Takes a third camera as the right one: Kalibr's `cam2`, the colour camera of DepthAI, and in
    /// other formats the right camera, which may then stand anywhere and have another size.
    pub third: bool,
    /// Cameras of KITTI to use; `None`: the colour ones, if there are both.
    pub kitti: Option<KittiCameras>,
    /// Set if the texts are messages of a recording, not files.
    pub topics: Option<Topics>,
}

/// Images next to the camera_info of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topics {
    /// Images as the cameras see them.
    Raw,
    /// Rectified images; only the projection describes their camera.
    Rectified,
}

/// A calibration as read from a format, before the checks.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) calibration: StereoCalibration,
    /// Delivered parts of the left and the right camera's images, if not the whole.
    pub(super) windows: Option<[Window; 2]>,
    pub(super) by_size: bool,
    pub(super) disparities: Option<usize>,
    pub(super) sources: Sources,
    pub(super) report: Report,
    pub(super) notes: Vec<String>,
}

impl Draft {
    /// Makes a calibration without further information.
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
