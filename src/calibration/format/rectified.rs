//! Calibrations of rectified images, which consist of focal length, principal points and baseline.

use nalgebra::{Matrix3, Matrix3x4, Vector3};

use super::draft::Draft;
use crate::check::Sources;
use crate::{CalibrationError, Camera, Lens, Rectification, RectifiedView, StereoCalibration};
use stereod_core::frame::StereoGeometry;

pub(super) struct Eye {
    /// Focal lengths in pixels.
    pub focal: [f64; 2],
    /// The principal point in pixels.
    pub centre: [f64; 2],
}

pub(super) struct Pair<'a> {
    pub file: &'a str,
    /// Names of the left and the right camera in the file.
    pub keys: [&'a str; 2],
    /// Width and height of the images in pixels.
    pub size: (usize, usize),
    pub left: Eye,
    pub right: Eye,
    /// Distance of the right camera to the right, in metres.
    pub baseline_m: f64,
}

pub(super) fn without_size(file: &str) -> CalibrationError {
    CalibrationError::without_size(format!(
        "{file}: the size of the pictures is missing: give it (on the command line --size WIDTHxHEIGHT)"
    ))
}

fn calibration(
    (width, height): (usize, usize),
    left: &Eye,
    right: &Eye,
    baseline_m: f64,
) -> StereoCalibration {
    let camera = |eye: &Eye| Camera {
        width,
        height,
        focal: eye.focal,
        centre: eye.centre,
        skew: 0.0,
        lens: Lens::Brown([0.0; 14]),
    };
    let view = |eye: &Eye, shift: f64| {
        let ([fx, fy], [cx, cy]) = (eye.focal, eye.centre);
        RectifiedView {
            rotation: Matrix3::identity(),
            projection: Matrix3x4::new(fx, 0.0, cx, shift, 0.0, fy, cy, 0.0, 0.0, 0.0, 1.0, 0.0),
        }
    };
    StereoCalibration {
        left: camera(left),
        right: camera(right),
        rotation: Matrix3::identity(),
        translation: Vector3::new(-baseline_m, 0.0, 0.0),
        rectification: Some(Rectification {
            width,
            height,
            left: view(left, 0.0),
            right: view(right, -right.focal[0] * baseline_m),
        }),
    }
}

pub fn of_rectified(size: (usize, usize), geometry: &StereoGeometry) -> StereoCalibration {
    let eye = |x| Eye { focal: [geometry.focal_px; 2], centre: [x, geometry.centre_y_px] };
    let (left, right) = (eye(geometry.centre_x_px), eye(geometry.right_centre_x_px));
    calibration(size, &left, &right, geometry.baseline_m)
}

pub(super) fn draft(pair: Pair) -> Draft {
    let Pair { file, keys, size, left, right, baseline_m } = pair;
    let both = format!("{}, {}", keys[0], keys[1]);
    let sources = Sources::of_file(file, [keys[0], keys[1], &both, &both]).convertible(file);
    Draft::new(calibration(size, &left, &right, baseline_m), sources)
}
