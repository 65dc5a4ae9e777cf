//! Two cameras, their relative pose, and their rectification.

use nalgebra::{Matrix3, Matrix3x4, Vector3};

use stereod_core::frame::StereoGeometry;

#[derive(Clone, Debug, PartialEq)]
pub struct Camera {
    /// Width of its images in pixels.
    pub width: usize,
    /// Height of its images in pixels.
    pub height: usize,
    /// Focal lengths in pixels, horizontally and vertically.
    pub focal: [f64; 2],
    /// The principal point in pixels; (0, 0) is the centre of the first pixel.
    pub centre: [f64; 2],
    /// Entry (0, 1) of the camera matrix in pixels, estimated by OpenCV for fisheyes; else 0.
    pub skew: f64,
    pub lens: Lens,
}

/// Distortion of a lens, as OpenCV defines it (calib3d, "Detailed Description").
#[derive(Clone, Debug, PartialEq)]
pub enum Lens {
    /// Brown-Conrady with OpenCV's extensions, in OpenCV's order: k1 k2 p1 p2 k3 (plumb bob), k4 k5
    /// k6 (rational), s1 s2 s3 s4 (thin prism), tau_x tau_y (tilted sensor, radians). Coefficients
    /// missing in a file are 0.
    Brown([f64; 14]),
    /// Kannala-Brandt, also called equidistant or fisheye: k1 k2 k3 k4.
    Fisheye([f64; 4]),
}

/// Two cameras with their relative pose. A point x in the left camera's frame (x to the right, y
/// down, z forward, metres) is `rotation * x + translation` in the right one's.
#[derive(Clone, Debug, PartialEq)]
pub struct StereoCalibration {
    pub left: Camera,
    pub right: Camera,
    /// Rotation from the left camera's frame to the right one's.
    pub rotation: Matrix3<f64>,
    /// The left camera's centre in the right one's frame, in metres; its x is negative if the right
    /// camera stands to the right.
    pub translation: Vector3<f64>,
    /// The rectification in the file, if any.
    pub rectification: Option<Rectification>,
}

impl StereoCalibration {
    /// Reports whether there is no distortion, and a rectification that leaves every pixel in place.
    pub fn comes_rectified(&self) -> bool {
        // Calibrations adapted to another size have rounding errors.
        const SAME: f64 = 1e-6;
        let Some(rectification) = &self.rectification else { return false };
        let views = [(&self.left, &rectification.left), (&self.right, &rectification.right)];
        views.into_iter().all(|(camera, view)| {
            let p = &view.projection;
            let pixels = [
                (camera.focal[0], p[(0, 0)]),
                (camera.focal[1], p[(1, 1)]),
                (camera.centre[0], p[(0, 2)]),
                (camera.centre[1], p[(1, 2)]),
            ];
            (camera.width, camera.height) == (rectification.width, rectification.height)
                && matches!(&camera.lens, Lens::Brown(k) if k.iter().all(|k| *k == 0.0))
                && view.rotation == Matrix3::identity()
                && pixels.into_iter().all(|(own, rectified)| (own - rectified).abs() < SAME)
        })
    }

    /// Exchanges left and right. The rectification in the file is for the other order, and is dropped.
    pub fn swapped(self) -> Self {
        let Self { left, right, rotation, translation, .. } = self.inverted();
        Self { left: right, right: left, rotation, translation, rectification: None }
    }

    /// Inverts the pose, which then leads from the left camera to the right one.
    pub fn inverted(self) -> Self {
        let rotation = self.rotation.transpose();
        Self { translation: -rotation * self.translation, rotation, ..self }
    }

    /// Converts lengths from another unit, given in metres.
    pub fn in_unit(mut self, metres: f64) -> Self {
        self.translation *= metres;
        if let Some(rectification) = &mut self.rectification {
            rectification.scale_translations(metres);
        }
        self
    }
}

/// Rectification: rotations of both images that align their rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Rectification {
    /// Width of the rectified images in pixels.
    pub width: usize,
    /// Height of the rectified images in pixels.
    pub height: usize,
    pub left: RectifiedView,
    pub right: RectifiedView,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RectifiedView {
    /// From the camera's frame to the rectified one (R of OpenCV and ROS).
    pub rotation: Matrix3<f64>,
    /// From the rectified frame of the *left* camera to pixels of this view (P of OpenCV and ROS):
    /// the right one's entry (0, 3) is -focal * baseline.
    pub projection: Matrix3x4<f64>,
}

impl Rectification {
    /// Returns the cameras for depth.
    pub fn geometry(&self) -> StereoGeometry {
        let (left, right) = (&self.left.projection, &self.right.projection);
        StereoGeometry {
            focal_px: left[(0, 0)],
            baseline_m: -right[(0, 3)] / right[(0, 0)],
            centre_x_px: left[(0, 2)],
            centre_y_px: left[(1, 2)],
            right_centre_x_px: right[(0, 2)],
        }
    }

    pub(super) fn scale_translations(&mut self, factor: f64) {
        for view in [&mut self.left, &mut self.right] {
            view.projection.column_mut(3).scale_mut(factor);
        }
    }

    /// Returns rotation and translation between the cameras as implied by the rectification: a point x of the
    /// left camera's frame is `R2^T (R1 x + t)` in the right one's; t is the right projection's fourth column
    /// in units of the frame.
    pub fn pose(&self) -> (Matrix3<f64>, Vector3<f64>) {
        let p = &self.right.projection;
        let z = p[(2, 3)];
        let x = (p[(0, 3)] - p[(0, 2)] * z) / p[(0, 0)];
        let y = (p[(1, 3)] - p[(1, 2)] * z) / p[(1, 1)];
        let back = self.right.rotation.transpose();
        (back * self.left.rotation, back * Vector3::new(x, y, z))
    }
}
