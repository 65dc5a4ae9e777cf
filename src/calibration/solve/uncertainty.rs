//! Standard deviations of a calibration.
//!
//! The errors of the corners in one image are not independent, because no board is flat and no lens model
//! exact. So the samples are the poses of the board, each with all its corners in both views. Their
//! disagreement about the cameras is the noise (cluster-robust covariance, Liang and Zeger 1986, with one
//! dispersion for all parameters, so that few poses suffice). A bend of the board shifts the cameras alike in
//! all poses, so their disagreement does not show it. The bend is one more unknown here. The step of the
//! cameras that it causes is an error of the rig, which was solved for a flat board.

use nalgebra::{DMatrix, DVector};

use super::rig::{BEND, Normal, Rig, View};

/// Smallest pivot of the scaled information; below, rounding decides.
const PIVOT: f64 = 1e-13;

/// Fewest degrees of freedom of the boards' disagreement.
const FREEDOM: f64 = 1.0;

/// Smallest share of the bend in the total deviation of a certainly bent board: a bend of twice the noise.
const BENT: f64 = 0.9;

/// Covariance of the cameras and their poses, in the order of the rig's parameters.
#[derive(Clone, Debug)]
pub(super) struct Uncertainty {
    noise: DMatrix<f64>,
    /// Error by the bend of the board.
    shift: DVector<f64>,
}

/// A standard deviation, and the part of the board's bend in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Deviation {
    /// The whole.
    pub all: f64,
    /// Error by the bend of the board.
    pub bend: f64,
}

impl Deviation {
    /// Reports whether most of it is surely the board's bend.
    pub(super) fn is_bend(&self) -> bool {
        self.bend > BENT * self.all
    }
}

impl Uncertainty {
    /// Returns the standard deviation of the first focal length of a camera in pixels.
    pub(super) fn focal(&self, rig: &Rig, camera: usize) -> Deviation {
        self.along(rig.offsets().camera(camera), &[1.0])
    }

    /// Returns the standard deviation of the distance of a camera from the first one, in metres.
    pub(super) fn distance(&self, rig: &Rig, camera: usize) -> Deviation {
        let along = rig.places[camera].translation.normalize();
        self.along(rig.offsets().place(camera) + 3, along.as_slice())
    }

    /// Returns the deviation of a sum of parameters from the first one at `at`, with these weights.
    fn along(&self, at: usize, weights: &[f64]) -> Deviation {
        let weights = DVector::from_row_slice(weights);
        let count = weights.len();
        let noise = weights.dot(&(self.noise.view((at, at), (count, count)) * &weights));
        let bend = weights.dot(&self.shift.rows(at, count)).abs();
        Deviation { all: (noise.max(0.0) + bend * bend).sqrt(), bend }
    }
}

impl Rig {
    /// Returns the uncertainty after [`Self::refine`]; `None` if the views do not determine it.
    pub(super) fn uncertainty(&self, views: &[View]) -> Option<Uncertainty> {
        let shared = self.offsets().board(0);
        let parts: Vec<Normal> =
            (0..self.boards.len()).map(|board| self.part(views, board)).collect::<Option<_>>()?;
        let mut sum = Normal::zeros(shared + BEND);
        for part in &parts {
            sum.matrix += &part.matrix;
            sum.gradient += &part.gradient;
        }
        // Parameters differ by orders of magnitude; scaled to 1 the matrix can be inverted.
        let scale = sum.matrix.diagonal().map(|value| 1.0 / value.sqrt());
        let scale = DMatrix::from_diagonal(&scale);
        let root = (&scale * sum.matrix * &scale).cholesky()?.unpack();
        if root.diagonal().iter().any(|pivot| pivot * pivot < PIVOT) {
            return None;
        }
        // In units with the identity as all boards' information: each board's part and remaining gradient.
        let unit = root.solve_lower_triangular(&scale)?;
        let step = &unit * sum.gradient;
        let (mut scatter, mut freedom) = (0.0, (shared + BEND) as f64);
        for part in &parts {
            let information = &unit * &part.matrix * unit.transpose();
            scatter += (&unit * &part.gradient - &information * &step).norm_squared();
            freedom -= information.norm_squared();
        }
        if freedom < FREEDOM {
            return None;
        }
        // Boards that disagree by less than their corners are one image again and again.
        let corners: usize = views.iter().map(|view| view.points.len()).sum();
        let unknown = shared + BEND + 6 * self.boards.len();
        let free = (2 * corners).checked_sub(unknown).filter(|free| *free > 0)?;
        let independent = (self.cost(views)? - step.norm_squared()) / free as f64;
        let variance = independent.max(scatter / freedom);
        // The inverse of the rig's own information, because the bend comes last in a triangular matrix.
        let own = unit.view((0, 0), (shared, shared));
        let noise = own.transpose() * own * variance;
        let shift = unit.columns(0, shared).transpose() * step;
        Some(Uncertainty { noise, shift })
    }

    /// Returns a board's part of the normal equations, after its pose is eliminated.
    fn part(&self, views: &[View], board: usize) -> Option<Normal> {
        let shared = self.offsets().board(0);
        let count = shared + BEND;
        let mut all = Normal::zeros(count + 6);
        for view in views.iter().filter(|view| view.board == board) {
            self.add(view, count, Some(shared), &mut all)?;
        }
        let pose = all.matrix.view((count, count), (6, 6)).clone_owned().cholesky()?;
        let mixed = all.matrix.view((0, count), (count, 6));
        let eliminated = pose.solve(&mixed.transpose()).transpose();
        Some(Normal {
            matrix: all.matrix.view((0, 0), (count, count)) - &eliminated * mixed.transpose(),
            gradient: all.gradient.rows(0, count) - &eliminated * all.gradient.rows(count, 6),
        })
    }
}
