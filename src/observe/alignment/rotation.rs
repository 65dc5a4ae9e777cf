//! Rotation of the right camera, and its focal length relative to the left one, that explain the row
//! differences of rectified pairs.
//!
//! A right camera that is turned by a small rotation w sees the direction (X, Y, 1) at
//! (X, Y, 1) + w x (X, Y, 1), so that its rows are off by
//!
//! ```text
//! dy = f (-(1 + Y Y) w_x + X Y w_y + X w_z + Y k)
//! ```
//!
//! with the focal length f in pixels and a focal length that is 1 + k times as long. A turn to the side (w_y)
//! shows only in the corners of the image, where X Y is large.
//!
//! Pitch and roll move rows and hardly any disparity. Yaw and focal length change disparities, and their error in
//! a calibration is larger than the rows need to show it: boards determine the yaw together with the principal
//! points, so both are off and the disparities are not. Correcting the yaw alone would spoil them. So these two
//! stay as calibrated unless the rows show more than the calibration's own error ([`Turn::keep`]).

use std::collections::HashSet;
use std::fmt;

use nalgebra::{Matrix4, Rotation3, Vector3, Vector4};

use super::model::{self, Sight, median};
use super::{ENOUGH, Options, ROWS, STEEPEST, WIDE_ROWS, find_sights};
use stereod_calibration::StereoCalibration;
use stereod_core::frame::{Image, StereoGeometry};
use stereod_io::text::rounded;

/// Names of the terms of a [`Turn`].
pub const NAMES: [&str; 4] = ["pitch", "yaw", "roll", "focal length"];

/// Largest standard deviation of an angle in radians (0.06 degrees), and of the focal length's excess, that
/// counts as determined.
const DETERMINED: f64 = 1e-3;

/// Standard deviations of these terms in an ordinary calibration (a dozen images of a board): 0.006, 0.05 and 0.006
/// degrees, and 0.04 % of the focal length. The rows do not tell them from a turn since.
const OF_CALIBRATION: [f64; 4] = [1e-4, 9e-4, 1e-4, 4e-4];

/// Terms that change disparities.
const OF_DEPTH: [usize; 2] = [1, 3];

/// Number of standard deviations by which such a term must differ from the calibration to be corrected.
const CERTAIN: f64 = 3.0;

/// Size of a cell in pixels in which points of two pairs are the same.
const SAME_PX: f64 = 4.0;

/// Reason why a term stays as calibrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The points do not determine it.
    Undetermined,
    /// The calibration's own error explains it.
    WithinCalibration,
}

/// Least squares of the rotation and the focal length over the points of several pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Rotation about x (pitch), y (yaw) and z (roll) in radians, and the focal length's excess.
    pub terms: Vector4<f64>,
    /// Their covariance as changes since the calibration, whose own error is part of it. The points of a pair count
    /// as one sample, because their errors depend on each other.
    pub covariance: Matrix4<f64>,
    /// Terms that stay as calibrated, set by [`Turn::keep`].
    pub kept: [Option<Kept>; 4],
    /// Points that agree, of all pairs.
    pub points: usize,
    /// Pairs with points.
    pub pairs: usize,
    /// Median of the row differences, without their signs, in pixels.
    pub rows_px: f64,
    /// The same after the fit.
    pub left_px: f64,
}

/// Measures the turn from rectified pairs with these cameras. `None` if too few points agree.
pub fn measure_turn(pairs: &[[Image; 2]], geometry: &StereoGeometry) -> Option<Turn> {
    let size = (pairs.first()?[1].width(), pairs[0][1].height());
    let by_pair: Vec<_> = pairs.iter().map(|[left, right]| sights_of(left, right)).collect();
    fit_turn(&by_pair, size, geometry)
}

/// Finds points in both images of a rectified pair, also in rows that are far off.
pub(super) fn sights_of(left: &Image, right: &Image) -> Vec<Sight> {
    let within = |rows| find_sights(left, right, &Options { rows, ..Options::default() });
    let near = within(ROWS);
    if near.len() < ENOUGH { within(WIDE_ROWS) } else { near }
}

/// Fits the turn to the points of several pairs of one size. `None` if too few points agree.
pub(super) fn fit_turn(
    by_pair: &[Vec<Sight>],
    (width, height): (usize, usize),
    geometry: &StereoGeometry,
) -> Option<Turn> {
    let sights = by_pair.concat();
    if sights.len() < ENOUGH {
        return None;
    }
    let focal = geometry.focal_px;
    let off = [
        0.5 * (width - 1) as f64 - geometry.right_centre_x_px,
        0.5 * (height - 1) as f64 - geometry.centre_y_px,
    ];
    let basis = |sight: &Sight| {
        let (x, y) = ((sight.x + off[0]) / focal, (sight.y + off[1]) / focal);
        Vector4::new(-(1.0 + y * y), x * y, x, y) * focal
    };
    let tolerance = (0.003 * width as f64).max(1.0);
    let start = model::consensus(&sights, tolerance, STEEPEST)?;
    // A turn to the side bends the plane of the start.
    let near =
        |sight: &Sight| (sight.dy - model::plane_terms(sight).dot(&start)).abs() < 3.0 * tolerance;
    let fit = model::refine(&sights, basis, sights.iter().map(near).collect())?;
    let (mut normal, mut scores) = (Matrix4::zeros(), Matrix4::zeros());
    let mut agreeing = fit.agrees.iter();
    let mut points = 0;
    for own in by_pair {
        let mut score = Vector4::zeros();
        for (sight, _) in own.iter().zip(agreeing.by_ref()).filter(|(_, agrees)| **agrees) {
            let row = basis(sight);
            normal += row * row.transpose();
            score += row * (sight.dy - row.dot(&fit.terms));
            points += 1;
        }
        scores += score * score.transpose();
    }
    if points < ENOUGH {
        return None;
    }
    let inverse = normal.try_inverse()?;
    let clustered = inverse * scores * inverse;
    // Few pairs hardly show how they differ; independent points give the least that it can be.
    let mut covariance = fit.covariance;
    for i in 0..4 {
        let inflated = (clustered[(i, i)] / covariance[(i, i)]).max(1.0).sqrt();
        covariance.row_mut(i).scale_mut(inflated);
        covariance.column_mut(i).scale_mut(inflated);
    }
    covariance *= repetitions(&sights);
    OF_CALIBRATION.iter().enumerate().for_each(|(i, sd)| covariance[(i, i)] += sd * sd);
    let agreeing = |off: &dyn Fn(&Sight) -> f64| -> Option<f64> {
        let own = sights.iter().zip(&fit.agrees).filter(|(_, agrees)| **agrees);
        median(&mut own.map(|(sight, _)| off(sight).abs()).collect::<Vec<_>>())
    };
    Some(Turn {
        terms: fit.terms,
        covariance,
        kept: [None; 4],
        points,
        pairs: by_pair.iter().filter(|own| !own.is_empty()).count(),
        rows_px: agreeing(&|sight| sight.dy)?,
        left_px: agreeing(&|sight| sight.dy - basis(sight).dot(&fit.terms))?,
    })
}

/// Returns how many points there are for each different one: a still scene shows the same ones in every pair, with
/// the same errors.
fn repetitions(sights: &[Sight]) -> f64 {
    let cell =
        |sight: &Sight| [sight.x, sight.y, sight.disparity].map(|at| (at / SAME_PX).round() as i32);
    let different: HashSet<[i32; 3]> = sights.iter().map(cell).collect();
    sights.len() as f64 / different.len().max(1) as f64
}

impl Turn {
    /// Keeps the terms that the points do not determine as they were calibrated, and those that change disparities
    /// while the calibration's own error explains them. `corrected`: corrections so far, which are taken back then.
    pub fn keep(&mut self, corrected: &[f64; 4]) {
        self.kept = [0, 1, 2, 3].map(|i| {
            let (own, variance) = (OF_CALIBRATION[i].powi(2), self.covariance[(i, i)]);
            let is_determined = variance - own < DETERMINED * DETERMINED;
            let off = (corrected[i] + self.terms[i]).abs();
            let is_small = OF_DEPTH.contains(&i) && off < CERTAIN * variance.sqrt();
            match is_determined {
                false => Some(Kept::Undetermined),
                true => is_small.then_some(Kept::WithinCalibration),
            }
        });
        for (i, kept) in self.kept.into_iter().enumerate() {
            if kept.is_some() {
                self.fix(i, -corrected[i]);
            }
        }
    }

    /// Returns the angles in degrees about x, y and z.
    pub fn degrees(&self) -> Vector3<f64> {
        self.terms.xyz().map(f64::to_degrees)
    }

    /// Returns the calibration with a right camera that is turned about its own centre and has focal lengths of
    /// another scale. The rectified images keep their cameras: only the map of the right view changes.
    ///
    /// # Errors
    /// As [`StereoCalibration::rectify`], if the calibration prescribes no rectification.
    pub fn correct(&self, before: &StereoCalibration) -> anyhow::Result<StereoCalibration> {
        let mut rectification = before.rectified(None)?;
        let rectified = rectification.right.rotation;
        let turned = Rotation3::new(self.terms.xyz()).into_inner();
        let by = rectified.transpose() * turned * rectified;
        rectification.right.rotation = turned.transpose() * rectified;
        let mut corrected = StereoCalibration {
            rotation: by * before.rotation,
            translation: by * before.translation,
            rectification: Some(rectification),
            ..before.clone()
        };
        corrected.right.focal.iter_mut().for_each(|own| *own *= 1.0 + self.terms[3]);
        Ok(corrected)
    }

    /// Fixes a term at a value: the others become those that fit best then. Its variance stays.
    pub fn fix(&mut self, term: usize, value: f64) {
        let own = self.covariance[(term, term)];
        let by = self.covariance.column(term) / own;
        self.terms -= by * (self.terms[term] - value);
        self.terms[term] = value;
        self.covariance -= by * by.transpose() * own;
        // Zero but for rounding.
        self.covariance.row_mut(term).fill(0.0);
        self.covariance.column_mut(term).fill(0.0);
        self.covariance[(term, term)] = own;
    }
}

/// The angles with their standard deviations: "pitch +0.300 ± 0.007, yaw as calibrated (± 0.052), roll -0.010 ± 0.006
/// degrees".
impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in NAMES.iter().enumerate().take(3) {
            let sd = self.covariance[(i, i)].sqrt().to_degrees();
            write!(f, "{}{name} ", if i == 0 { "" } else { ", " })?;
            match self.kept[i] {
                Some(Kept::Undetermined) => write!(f, "not determined")?,
                Some(Kept::WithinCalibration) => write!(f, "as calibrated (± {sd:.3})")?,
                None => write!(f, "{:+.3} ± {sd:.3}", rounded(self.terms[i].to_degrees(), 3))?,
            }
        }
        write!(f, " degrees")
    }
}

#[cfg(test)]
mod tests {
    use stereod_calibration::{Camera, Lens, RectifiedView};

    use super::*;

    const SIZE: (usize, usize) = (640, 480);

    fn rig() -> StereoCalibration {
        let camera = |centre| Camera {
            width: SIZE.0,
            height: SIZE.1,
            focal: [480.0, 481.0],
            centre,
            skew: 0.0,
            lens: Lens::Brown([0.0; 14]),
        };
        StereoCalibration {
            left: camera([318.3, 243.7]),
            right: camera([322.9, 236.1]),
            rotation: Rotation3::new(Vector3::new(0.005, -0.014, 0.004)).into_inner(),
            translation: Vector3::new(-0.12, -0.0015, 0.0),
            rectification: None,
        }
    }

    /// Turns the right camera by these degrees about x, y and z.
    fn turned(rig: &StereoCalibration, degrees: [f64; 3]) -> StereoCalibration {
        let turn = Rotation3::new(Vector3::from(degrees.map(f64::to_radians))).into_inner();
        StereoCalibration {
            rotation: turn * rig.rotation,
            translation: turn * rig.translation,
            ..rig.clone()
        }
    }

    /// A calibration with focal lengths that are 0.05 % too long, and an error of 0.06 degrees of the yaw that the
    /// right principal point makes up for on average over the image, as boards leave it.
    fn calibrated(rig: &StereoCalibration) -> StereoCalibration {
        let yaw = 0.06;
        let mut calibration = turned(rig, [0.0, yaw, 0.0]);
        for camera in [&mut calibration.left, &mut calibration.right] {
            camera.focal.iter_mut().for_each(|focal| *focal *= 1.0005);
        }
        calibration.right.centre[0] -= 1.12 * 480.0 * yaw.to_radians();
        calibration
    }

    /// Points on a wall whose distance and slant depend on the number of the pair.
    fn wall(pair: usize) -> impl Iterator<Item = Vector3<f64>> {
        let (away, slant) = (1.3 + 0.16 * pair as f64, 0.1 * pair as f64 - 0.2);
        (0..300).map(move |i| {
            let (x, y) = ((i % 20) as f64 / 19.0 - 0.5, (i / 20) as f64 / 14.0 - 0.5);
            Vector3::new(1.2 * x, 0.9 * y, 1.0) * away / (1.0 - slant * x)
        })
    }

    /// Places of a point in both rectified images.
    fn places(
        rig: &StereoCalibration,
        calibration: &StereoCalibration,
        point: Vector3<f64>,
    ) -> [[f64; 2]; 2] {
        let views = calibration.rectified(None).unwrap();
        let place = |at: Vector3<f64>, camera: &Camera, own: &Camera, view: &RectifiedView| {
            let ray = [0, 1].map(|i| {
                let pixel = camera.focal[i] * at[i] / at.z + camera.centre[i];
                (pixel - own.centre[i]) / own.focal[i]
            });
            let ray = view.rotation * Vector3::new(ray[0], ray[1], 1.0);
            let seen = view.projection.fixed_view::<3, 3>(0, 0) * ray;
            [seen.x / seen.z, seen.y / seen.z]
        };
        let in_right = rig.rotation * point + rig.translation;
        [
            place(point, &rig.left, &calibration.left, &views.left),
            place(in_right, &rig.right, &calibration.right, &views.right),
        ]
    }

    fn measured(rig: &StereoCalibration, calibration: &StereoCalibration) -> Turn {
        let sight = |(i, point): (usize, Vector3<f64>)| {
            let [left, right] = places(rig, calibration, point);
            let noise = ((i * 7919) % 101) as f64 * 0.002 - 0.1;
            Sight {
                x: right[0] - 0.5 * (SIZE.0 - 1) as f64,
                y: right[1] - 0.5 * (SIZE.1 - 1) as f64,
                dy: right[1] - left[1] + noise,
                disparity: left[0] - right[0],
                sigma: 0.1,
            }
        };
        let by_pair: Vec<Vec<Sight>> =
            (0..6).map(|pair| wall(pair).enumerate().map(sight).collect()).collect();
        fit_turn(&by_pair, SIZE, &calibration.rectified(None).unwrap().geometry()).unwrap()
    }

    /// Largest error of a wall's mean distance, as a share.
    fn depth_error(rig: &StereoCalibration, calibration: &StereoCalibration) -> f64 {
        let geometry = calibration.rectified(None).unwrap().geometry();
        let farthest = geometry.centre_x_px - geometry.right_centre_x_px;
        let error = |point: Vector3<f64>| {
            let [left, right] = places(rig, calibration, point);
            let scale = geometry.baseline_m / (left[0] - right[0] - farthest);
            let offset = Vector3::new(
                left[0] - geometry.centre_x_px,
                left[1] - geometry.centre_y_px,
                geometry.focal_px,
            );
            offset.norm() * scale / point.norm() - 1.0
        };
        let of_wall = |pair| wall(pair).map(error).sum::<f64>().abs() / wall(pair).count() as f64;
        (0..6).map(of_wall).fold(0.0, f64::max)
    }

    #[test]
    fn an_error_of_the_calibration_is_no_turn() {
        let (rig, calibration) = (rig(), calibrated(&rig()));
        assert!(depth_error(&rig, &calibration) < 0.002);
        let bumped = turned(&rig, [0.4, 0.0, 0.3]);
        let mut turn = measured(&bumped, &calibration);
        // All that the rows show would spoil the depth.
        assert!(depth_error(&bumped, &turn.correct(&calibration).unwrap()) > 0.01);
        turn.fix(3, 0.0);
        turn.keep(&[0.0; 4]);
        assert_eq!(turn.kept[..3], [None, Some(Kept::WithinCalibration), None], "{turn}");
        let error = depth_error(&bumped, &turn.correct(&calibration).unwrap());
        assert!(error < 0.003, "{error} {turn}");
        for (term, degrees) in [(0, 0.4), (2, 0.3)] {
            let sd = turn.covariance[(term, term)].sqrt().to_degrees();
            assert!((turn.degrees()[term] - degrees).abs() < 2.0 * sd, "{turn}");
        }
        assert!(turn.to_string().contains("yaw as calibrated (± 0.05"), "{turn}");
    }

    #[test]
    fn a_turn_to_the_side_beyond_that_is_found() {
        let (rig, calibration) = (rig(), calibrated(&rig()));
        for yaw in [0.5, -0.4] {
            let mut turn = measured(&turned(&rig, [0.2, yaw, 0.1]), &calibration);
            turn.keep(&[0.0; 4]);
            let sd = turn.covariance[(1, 1)].sqrt().to_degrees();
            let off = (turn.degrees().y - yaw).abs();
            assert!(turn.kept[1].is_none() && off < 2.0 * sd && sd < 0.06, "{turn}");
            // A later measurement that finds less takes the correction back.
            let mut again = turn.clone();
            again.terms[1] = -turn.terms[1] + 0.001;
            again.keep(&turn.terms.into());
            assert_eq!(again.terms[1], -turn.terms[1]);
        }
    }

    #[test]
    fn a_still_scene_determines_as_much_as_one_pair() {
        let (rig, calibration) = (rig(), calibrated(&rig()));
        let bumped = turned(&rig, [0.4, 0.0, 0.3]);
        let sights = |pair| {
            let sight = |point| {
                let [left, right] = places(&bumped, &calibration, point);
                Sight {
                    x: right[0],
                    y: right[1],
                    dy: 0.0,
                    disparity: left[0] - right[0],
                    sigma: 0.1,
                }
            };
            wall(pair).map(sight).collect::<Vec<_>>()
        };
        let (still, moving) =
            (vec![sights(0); 12].concat(), (0..6).map(sights).collect::<Vec<_>>());
        assert!((repetitions(&still) / repetitions(&sights(0)) - 12.0).abs() < 1e-9);
        assert!(repetitions(&moving.concat()) < 1.1);
    }
}
