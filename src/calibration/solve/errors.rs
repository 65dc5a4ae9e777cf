//! Epipolar and row errors of two calibrated cameras.

use nalgebra::{Matrix3, Vector3};

use crate::projection::Projection;
use crate::{Camera, Rectification, StereoCalibration};

/// Two cameras, ready to compare points.
pub(super) struct Compare<'a> {
    cameras: [&'a Camera; 2],
    projections: [Projection; 2],
    essential: Matrix3<f64>,
    /// With all pixels seen; `None` if the cameras cannot be rectified.
    rectified: Option<Rectification>,
}

impl<'a> Compare<'a> {
    pub(super) fn new(calibration: &'a StereoCalibration) -> Self {
        let cameras = [&calibration.left, &calibration.right];
        let size = (calibration.left.width, calibration.left.height);
        Self {
            cameras,
            projections: cameras.map(Camera::projection),
            essential: calibration.translation.cross_matrix() * calibration.rotation,
            rectified: calibration.rectify(Some(0.0), size).ok(),
        }
    }

    /// Returns the focal length of the rectified images in pixels, limited to pixels that both cameras see.
    pub(super) fn focal_px(&self) -> Option<f64> {
        self.rectified.as_ref().map(|rectified| rectified.left.projection[(0, 0)])
    }

    /// Returns the sum of the distances of both points from the epipolar line of the other, in
    /// pixels of the undistorted images, as OpenCV's stereo_calib sample computes it.
    pub(super) fn epipolar(&self, pixels: [[f64; 2]; 2]) -> Option<f64> {
        let [left, right] = self.look(pixels)?;
        let distance = |camera: &Camera, line: Vector3<f64>, at: &Vector3<f64>| {
            // A line (a, b, c) of directions is (a / fx, b / fy, ..) in pixels.
            line.dot(at).abs() / (line.x / camera.focal[0]).hypot(line.y / camera.focal[1])
        };
        let in_right = distance(self.cameras[1], self.essential * left, &right);
        let in_left = distance(self.cameras[0], self.essential.transpose() * right, &left);
        Some(in_left + in_right)
    }

    /// Returns the right point's row minus the left one's after rectification, in pixels.
    pub(super) fn row(&self, pixels: [[f64; 2]; 2]) -> Option<f64> {
        let rectified = self.rectified.as_ref()?;
        let [left, right] = self.look(pixels)?;
        let row = |view: &crate::RectifiedView, direction: Vector3<f64>| {
            // The position along the row does not matter, nor does the depth.
            let seen = view.projection.fixed_view::<3, 3>(0, 0) * (view.rotation * direction);
            seen.y / seen.z
        };
        Some(row(&rectified.right, right) - row(&rectified.left, left))
    }

    /// Returns both directions as (x, y, 1).
    fn look(&self, pixels: [[f64; 2]; 2]) -> Option<[Vector3<f64>; 2]> {
        let direction = |eye: usize| -> Option<Vector3<f64>> {
            let direction = self.projections[eye].direction(pixels[eye])?;
            (direction.z > 0.0).then(|| direction / direction.z)
        };
        Some([direction(0)?, direction(1)?])
    }
}

#[cfg(test)]
mod tests {
    use super::super::Model;
    use super::super::rig::rotation;
    use super::*;

    #[test]
    fn points_in_space_lie_on_their_lines_and_rows() {
        let calibration = StereoCalibration {
            left: Model::PlumbBob.camera((640, 480), 500.0),
            right: Model::PlumbBob.camera((640, 480), 510.0),
            rotation: rotation(&Vector3::new(0.02, -0.05, 0.03)),
            translation: Vector3::new(-0.1, 0.004, -0.003),
            rectification: None,
        };
        let compare = Compare::new(&calibration);
        let scale = compare.rectified.as_ref().unwrap().left.projection[(1, 1)] / 505.0;
        for point in [[0.1, 0.2, 1.0], [-0.3, 0.1, 1.5], [0.05, -0.3, 0.8]] {
            let point = Vector3::from(point);
            let left = calibration.left.projection().pixel(point).unwrap();
            let in_right = calibration.rotation * point + calibration.translation;
            let right = calibration.right.projection().pixel(in_right).unwrap();
            assert!(compare.epipolar([left, right]).unwrap() < 1e-7);
            assert!(compare.row([left, right]).unwrap().abs() < 1e-7);
            // A row further down in the right view.
            let moved = [right[0], right[1] + 1.0];
            let off = compare.row([left, moved]).unwrap() / scale;
            assert!((off - 1.0).abs() < 0.15, "{off}");
            let both = compare.epipolar([left, moved]).unwrap();
            assert!((both - 2.0).abs() < 0.2, "{both}");
        }
    }
}
