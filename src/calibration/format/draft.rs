//! A calibration as a format's reader gives it.

use nalgebra::{Matrix3, Vector3};

use crate::calibration::check::Sources;
use crate::calibration::{Camera, Rectification};

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

/// Help for reading files that do not say everything, or not as it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// Width and height of the pictures in pixels where the files do not say it.
    pub size: Option<(usize, usize)>,
    /// Exchange the eyes: what the files call left is the right camera.
    pub swap: bool,
    /// Metres in one unit of the files' translations, where that is not a metre: 0.001 for mm.
    pub unit_m: Option<f64>,
}

/// A calibration as a format's reader gives it, before the checks.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) left: Camera,
    pub(super) right: Camera,
    pub(super) rotation: Matrix3<f64>,
    pub(super) translation: Vector3<f64>,
    pub(super) rectification: Option<Rectification>,
    /// See [`Loaded::disparities`](super::Loaded::disparities).
    pub(super) disparities: Option<usize>,
    pub(super) sources: Sources,
    pub(super) report: Report,
    pub(super) notes: Vec<String>,
}
