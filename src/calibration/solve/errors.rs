//! How far two calibrated eyes disagree about the points they have seen.

use nalgebra::{Matrix3, Vector2, Vector3};

use super::projection::look;
use super::rig::{Pose, rotation, rotation_vector};
use crate::calibration::Camera;

/// Two cameras, ready to compare what they see.
pub(super) struct Compare<'a> {
    cameras: [&'a Camera; 2],
    essential: Matrix3<f64>,
    level: [Matrix3<f64>; 2],
}

impl<'a> Compare<'a> {
    /// Of a left and a right camera; `place` leads from the left one's frame to the right one's.
    pub(super) fn new(left: &'a Camera, right: &'a Camera, place: &Pose) -> Self {
        let essential = place.translation.cross_matrix() * place.rotation;
        Self { cameras: [left, right], essential, level: level(place) }
    }

    /// The sum of the distances of both points from the epipolar line of the other, in pixels of the
    /// undistorted pictures, as OpenCV's stereo_calib sample computes it.
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

    /// The right point's row minus the left one's once both pictures are rectified, in pixels of the
    /// smaller focal length.
    pub(super) fn row(&self, pixels: [[f64; 2]; 2]) -> Option<f64> {
        let [left, right] = self.look(pixels)?;
        let row = |turn: &Matrix3<f64>, direction: Vector3<f64>| {
            let turned = turn * direction;
            turned.y / turned.z
        };
        let focal = self.cameras[0].focal[1].min(self.cameras[1].focal[1]);
        Some((row(&self.level[1], right) - row(&self.level[0], left)) * focal)
    }

    fn look(&self, pixels: [[f64; 2]; 2]) -> Option<[Vector3<f64>; 2]> {
        let direction =
            |eye: usize| -> Option<Vector2<f64>> { look(self.cameras[eye], pixels[eye]) };
        Some([direction(0)?.push(1.0), direction(1)?.push(1.0)])
    }
}

/// The rotations of both eyes after which their rows agree: each eye turns half of what lies between
/// them, then both turn until the baseline lies along the rows (Bouguet's method, as OpenCV's
/// stereoRectify).
fn level(place: &Pose) -> [Matrix3<f64>; 2] {
    let half = rotation(&(rotation_vector(&place.rotation) * -0.5));
    let along = half * place.translation;
    // The right eye's centre may be named on either side.
    let goal = Vector3::new(along.x.signum(), 0.0, 0.0);
    let axis = along.cross(&goal);
    let turn = if axis.norm() > 0.0 {
        let angle = (along.x.abs() / along.norm()).clamp(-1.0, 1.0).acos();
        rotation(&(axis.normalize() * angle))
    } else {
        Matrix3::identity()
    };
    [turn * half.transpose(), turn * half]
}

#[cfg(test)]
mod tests {
    use super::super::{Model, projection::project};
    use super::*;

    #[test]
    fn points_in_space_lie_on_their_lines_and_rows() {
        let left = Model::PlumbBob.camera((640, 480), 500.0);
        let right = Model::PlumbBob.camera((640, 480), 510.0);
        let place = Pose {
            rotation: rotation(&Vector3::new(0.02, -0.05, 0.03)),
            translation: Vector3::new(-0.1, 0.004, -0.003),
        };
        let compare = Compare::new(&left, &right, &place);
        for point in [[0.1, 0.2, 1.0], [-0.3, 0.1, 1.5], [0.05, -0.3, 0.8]] {
            let point = Vector3::from(point);
            let l = project(&left, &point).unwrap().pixel;
            let r = project(&right, &place.apply(&point)).unwrap().pixel;
            assert!(compare.epipolar([l.into(), r.into()]).unwrap() < 1e-9);
            assert!(compare.row([l.into(), r.into()]).unwrap().abs() < 1e-9);
            // A row further down in the right eye.
            let moved = [r.x, r.y + 1.0];
            let off = compare.row([l.into(), moved]).unwrap();
            assert!((off - 1.0).abs() < 0.15, "{off}");
            let both = compare.epipolar([l.into(), moved]).unwrap();
            assert!((both - 2.0).abs() < 0.2, "{both}");
        }
    }
}
