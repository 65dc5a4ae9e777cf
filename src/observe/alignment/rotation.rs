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

use std::fmt;

use nalgebra::{Matrix4, Rotation3, Vector3, Vector4};

use super::model::{self, Sight, median};
use super::{ENOUGH, Options, ROWS, STEEPEST, WIDE_ROWS, find_sights};
use stereod_core::calibration::StereoCalibration;
use stereod_core::frame::{Image, StereoGeometry};

/// Names of the terms of a [`Turn`].
pub const NAMES: [&str; 4] = ["pitch", "yaw", "roll", "focal length"];

/// Largest standard deviation of an angle in radians (0.06 degrees), and of the focal length's excess, that
/// counts as determined.
const DETERMINED: f64 = 1e-3;

/// Least squares of the rotation and the focal length over the points of several pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Rotation about x (pitch), y (yaw) and z (roll) in radians, and the focal length's excess.
    pub terms: Vector4<f64>,
    /// Their covariance. The points of a pair count as one sample, because their errors depend on each other.
    pub covariance: Matrix4<f64>,
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
    let agreeing = |off: &dyn Fn(&Sight) -> f64| -> Option<f64> {
        let own = sights.iter().zip(&fit.agrees).filter(|(_, agrees)| **agrees);
        median(&mut own.map(|(sight, _)| off(sight).abs()).collect::<Vec<_>>())
    };
    Some(Turn {
        terms: fit.terms,
        covariance,
        points,
        pairs: by_pair.iter().filter(|own| !own.is_empty()).count(),
        rows_px: agreeing(&|sight| sight.dy)?,
        left_px: agreeing(&|sight| sight.dy - basis(sight).dot(&fit.terms))?,
    })
}

impl Turn {
    /// Reports which terms the points do not determine.
    pub fn undetermined(&self) -> [bool; 4] {
        let sd = |i: usize| self.covariance[(i, i)].sqrt();
        [0, 1, 2, 3].map(|i| sd(i).is_nan() || sd(i) >= DETERMINED)
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

    /// Holds a term at 0: the others become those that fit best then. Its variance stays.
    pub fn hold(&mut self, term: usize) {
        let own = self.covariance[(term, term)];
        let by = self.covariance.column(term) / own;
        self.terms -= by * self.terms[term];
        self.terms[term] = 0.0;
        self.covariance -= by * by.transpose() * own;
        self.covariance[(term, term)] = own;
    }
}

/// The angles with their standard deviations: "pitch +0.300 ± 0.004, yaw not determined, roll -0.010 ± 0.002 degrees".
impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let undetermined = self.undetermined();
        for i in 0..3 {
            let sd = self.covariance[(i, i)].sqrt().to_degrees();
            write!(f, "{}{} ", if i == 0 { "" } else { ", " }, NAMES[i])?;
            match undetermined[i] {
                true => write!(f, "not determined")?,
                false => write!(f, "{:+.3} ± {sd:.3}", self.terms[i].to_degrees())?,
            }
        }
        write!(f, " degrees")
    }
}
