//! Summary of a calibration in familiar numbers.

use serde::Serialize;

use super::projection::{denominator, fisheye, numerator};
use super::{Camera, Lens, StereoCalibration};
use stereod_core::frame::StereoGeometry;

/// Numbers of disparities in the table of depths.
const DISPARITIES: [usize; 2] = [64, 128];

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Width and height of the left camera's images in pixels.
    pub size: [usize; 2],
    /// The same of the right camera's, if they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right_size: Option<[usize; 2]>,
    pub left: CameraSummary,
    pub right: CameraSummary,
    /// Distance between the cameras in millimetres.
    pub baseline_mm: f64,
    /// The right camera's centre in the left one's frame in millimetres: to the right, down, forward.
    pub position_mm: [f64; 3],
    /// Rotation of the right camera against the left one.
    pub turned: Turned,
    /// The rectified images, if the calibration defines them.
    pub rectified: Option<RectifiedSummary>,
    pub depth: Vec<DepthRange>,
    /// Set if the depths are estimates, because the rectified focal length is not known.
    pub depth_estimated: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CameraSummary {
    pub focal_px: [f64; 2],
    /// The principal point in pixels.
    pub centre_px: [f64; 2],
    pub lens: &'static str,
    /// Its coefficients, in OpenCV's order, without zeros at the end.
    pub distortion: Vec<f64>,
    /// Field of view horizontally and vertically in degrees, with the lens; `None` if the lens
    /// model is not valid up to the image's edge.
    pub field_of_view_deg: Option<[f64; 2]>,
}

/// A rotation in degrees: first yaw, then pitch, then roll, each about the rotated axes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Turned {
    /// Clockwise in the viewing direction.
    pub roll_deg: f64,
    /// Rotation upwards.
    pub pitch_deg: f64,
    /// To the right.
    pub yaw_deg: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RectifiedSummary {
    /// Width and height in pixels.
    pub size: [usize; 2],
    pub focal_px: f64,
    /// The left principal point in pixels.
    pub centre_px: [f64; 2],
}

/// The depths of disparities 1 to `disparities` - 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DepthRange {
    /// Number of candidate disparities, from 0.
    pub disparities: usize,
    /// Depth of the largest disparity in metres.
    pub nearest_m: Option<f64>,
    /// Depth of a disparity of one pixel in metres.
    pub farthest_m: Option<f64>,
}

impl Summary {
    pub fn of(calibration: &StereoCalibration) -> Self {
        let StereoCalibration { left, right, rotation, translation, rectification } = calibration;
        // Inverted: the right camera in the left one's frame.
        let orientation = rotation.transpose();
        let position = -orientation * translation;
        let yaw = orientation[(0, 2)].atan2(orientation[(2, 2)]);
        let pitch = (-orientation[(1, 2)]).clamp(-1.0, 1.0).asin();
        let roll = orientation[(1, 0)].atan2(orientation[(1, 1)]);
        let geometry = match rectification {
            Some(rectification) => rectification.geometry(),
            None => StereoGeometry {
                focal_px: (left.focal[0] + right.focal[0]) / 2.0,
                baseline_m: translation.norm(),
                centre_x_px: left.centre[0],
                centre_y_px: left.centre[1],
                right_centre_x_px: left.centre[0],
            },
        };
        let depth = DISPARITIES.map(|disparities| DepthRange {
            disparities,
            nearest_m: geometry.depth_m(disparities as f64 - 1.0),
            farthest_m: geometry.depth_m(1.0),
        });
        Self {
            size: [left.width, left.height],
            right_size: Some([right.width, right.height])
                .filter(|size| *size != [left.width, left.height]),
            left: camera(left),
            right: camera(right),
            baseline_mm: translation.norm() * 1e3,
            position_mm: (position * 1e3).into(),
            turned: Turned {
                roll_deg: roll.to_degrees(),
                pitch_deg: pitch.to_degrees(),
                yaw_deg: yaw.to_degrees(),
            },
            rectified: rectification.as_ref().map(|rectification| RectifiedSummary {
                size: [rectification.width, rectification.height],
                focal_px: geometry.focal_px,
                centre_px: [geometry.centre_x_px, geometry.centre_y_px],
            }),
            depth: depth.to_vec(),
            depth_estimated: rectification.is_none(),
        }
    }
}

fn camera(camera: &Camera) -> CameraSummary {
    let coefficients = match &camera.lens {
        Lens::Brown(all) => all.as_slice(),
        Lens::Fisheye(all) => all.as_slice(),
    };
    let used = coefficients.iter().rposition(|k| *k != 0.0).map_or(0, |last| last + 1);
    let lens = match (&camera.lens, used) {
        (_, 0) if matches!(camera.lens, Lens::Brown(_)) => "no distortion",
        (Lens::Brown(_), ..=5) => "plumb bob",
        (Lens::Brown(_), ..=8) => "rational",
        (Lens::Brown(_), ..=12) => "thin prism",
        (Lens::Brown(_), _) => "tilted sensor",
        (Lens::Fisheye(_), _) => "fisheye",
    };
    CameraSummary {
        focal_px: camera.focal,
        centre_px: camera.centre,
        lens,
        distortion: coefficients[..used].to_vec(),
        field_of_view_deg: field_of_view(camera),
    }
}

/// Returns the angles between opposite edges of the image, through the principal point.
fn field_of_view(camera: &Camera) -> Option<[f64; 2]> {
    let span = |side: usize, axis: usize| {
        let (f, c) = (camera.focal[axis], camera.centre[axis]);
        let (before, after) = ((c + 0.5) / f, (side as f64 - 0.5 - c) / f);
        let angle = |distance: f64| {
            let angle = angle_at(&camera.lens, distance.abs())?;
            Some(angle.to_degrees().copysign(distance))
        };
        Some(angle(before)? + angle(after)?)
    };
    Some([span(camera.width, 0)?, span(camera.height, 1)?])
}

/// Largest factor outwards from a maximum within which a lens model may fall below it and rise again.
const LEAP: f64 = 1.15;

/// Returns the angle from the optical axis, in radians, of the ray at this distance from the
/// principal point (in focal lengths), by the radial terms; `None` if there is no such ray.
fn angle_at(lens: &Lens, distance: f64) -> Option<f64> {
    let shown = |angle: f64| match lens {
        Lens::Brown(k) => {
            let r = angle.tan();
            r * numerator(k, r * r) / denominator(k, r * r)
        }
        Lens::Fisheye(k) => fisheye(k, angle),
    };
    let (outwards, limit): (fn(f64) -> f64, f64) = match lens {
        Lens::Brown(_) => (f64::tan, 89.0),
        Lens::Fisheye(_) => (|angle| angle, 179.0),
    };
    // Outwards in small steps. Beyond its maximum the model is invalid; but rational models may have a pole
    // next to a zero, and jump out and back within a few degrees. That is no end.
    let step = 0.1_f64.to_radians();
    let (mut low, mut maximum, mut maximum_at) = (0.0, 0.0, 0.0_f64);
    loop {
        let high = low + step;
        let at_high = shown(high);
        if distance == 0.0 {
            return Some(0.0);
        }
        let turned_back = at_high < maximum && outwards(high) > LEAP * outwards(maximum_at);
        if turned_back || high > limit.to_radians() {
            return None;
        }
        if at_high >= distance {
            let (mut low, mut high) = (low, high);
            for _ in 0..40 {
                let middle = (low + high) / 2.0;
                if shown(middle) < distance { low = middle } else { high = middle }
            }
            return Some((low + high) / 2.0);
        }
        low = high;
        if at_high > maximum {
            (maximum, maximum_at) = (at_high, high);
        }
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::{Matrix3, Rotation3, Vector3};

    use super::*;

    fn pinhole(lens: Lens) -> Camera {
        let (focal, centre) = ([320.0; 2], [319.5, 239.5]);
        Camera { width: 640, height: 480, focal, centre, skew: 0.0, lens }
    }

    #[test]
    fn fields_of_view() {
        let none = field_of_view(&pinhole(Lens::Brown([0.0; 14]))).unwrap();
        assert!((none[0] - 90.0).abs() < 1e-9, "{none:?}");
        assert!((none[1] - 2.0 * 0.75_f64.atan().to_degrees()).abs() < 1e-9);
        // An ideal equidistant lens: one focal length is one radian.
        let fisheye = field_of_view(&pinhole(Lens::Fisheye([0.0; 4]))).unwrap();
        assert!((fisheye[0] - 2.0_f64.to_degrees()).abs() < 1e-9, "{fisheye:?}");
        // cv2.undistortPoints of the edge (1, 0) with k1 = -0.1: r (1 - 0.1 r^2) = 1, r = 1.1534673.
        let mut k = [0.0; 14];
        k[0] = -0.1;
        let barrel = field_of_view(&pinhole(Lens::Brown(k))).unwrap();
        assert!((barrel[0] - 2.0 * 1.153_467_304_7_f64.atan().to_degrees()).abs() < 1e-6);
        // With k1 = -0.5 the model turns back at 0.54: it never reaches the edge.
        k[0] = -0.5;
        assert_eq!(field_of_view(&pinhole(Lens::Brown(k))), None);
    }

    #[test]
    fn a_turned_camera_is_told_in_its_own_words() {
        let camera = pinhole(Lens::Brown([0.0; 14]));
        let turned = |orientation: Rotation3<f64>| {
            let calibration = StereoCalibration {
                left: camera.clone(),
                right: camera.clone(),
                rotation: orientation.matrix().transpose(),
                translation: -orientation.matrix().transpose() * Vector3::new(0.1, 0.0, 0.0),
                rectification: None,
            };
            let summary = Summary::of(&calibration);
            assert!((summary.position_mm[0] - 100.0).abs() < 1e-9);
            assert!((summary.baseline_mm - 100.0).abs() < 1e-9);
            let Turned { roll_deg, pitch_deg, yaw_deg } = summary.turned;
            [roll_deg, pitch_deg, yaw_deg]
        };
        let near = |found: [f64; 3], due: [f64; 3]| {
            assert!(found.iter().zip(due).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
        };
        // Turned to the right: a point ahead of the right camera lies to the right of the left one.
        let to_the_right = Rotation3::new(Vector3::y() * 2.0_f64.to_radians());
        assert!((to_the_right * Vector3::z()).x > 0.0);
        near(turned(to_the_right), [0.0, 0.0, 2.0]);
        let up = Rotation3::new(Vector3::x() * 3.0_f64.to_radians());
        assert!((up * Vector3::z()).y < 0.0);
        near(turned(up), [0.0, 3.0, 0.0]);
        let clockwise = Rotation3::new(Vector3::z() * 1.0_f64.to_radians());
        assert!((clockwise * Vector3::x()).y > 0.0);
        near(turned(clockwise), [1.0, 0.0, 0.0]);
        near(turned(to_the_right * up * clockwise), [1.0, 3.0, 2.0]);
        near(turned(Rotation3::from_matrix(&Matrix3::identity())), [0.0; 3]);
    }

    #[test]
    fn depths_of_a_rig() {
        let camera = pinhole(Lens::Brown([0.0; 14]));
        let summary = Summary::of(&StereoCalibration {
            left: camera.clone(),
            right: camera,
            rotation: Matrix3::identity(),
            translation: Vector3::new(-0.063, 0.0, 0.0),
            rectification: None,
        });
        assert!(summary.depth_estimated);
        let [near, _] = summary.depth.as_slice() else { panic!("two ranges") };
        assert_eq!(near.disparities, 64);
        assert!((near.nearest_m.unwrap() - 0.32).abs() < 1e-12);
        assert!((near.farthest_m.unwrap() - 20.16).abs() < 1e-12);
    }
}
