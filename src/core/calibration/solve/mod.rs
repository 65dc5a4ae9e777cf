//! Calibration of two cameras from images of a board: first each camera by itself (Zhang 2000), then both
//! cameras, their relative pose and all boards together. Pairs that do not fit are skipped and listed.
//!
//! The formulas and the sums of squares equal OpenCV's calibrateCamera and stereoCalibrate (with
//! CALIB_USE_INTRINSIC_GUESS), so the numbers of both can be compared.

mod camera;
mod coverage;
mod errors;
mod guide;
mod outliers;
mod projection;
mod report;
mod rig;
mod sighting;
mod start;
mod uncertainty;
mod verdict;

pub use coverage::Coverage;
pub use guide::{Guide, Judgement, RECENT, Refusal, fit, most_diverse};
pub use report::Solved;
pub use sighting::{Reason, Sighting};
pub use verdict::Quality;

use super::board::Board;
use crate::frame::Eye;

const FEWEST_PAIRS: usize = 3;

/// Parameters of a lens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// Brown-Conrady with five coefficients: k1 k2 p1 p2 k3. Suits most lenses up to about 100 degrees.
    #[default]
    PlumbBob,
    /// Brown-Conrady with eight: k4 k5 k6 as well, for wide angles.
    Rational,
    /// Kannala-Brandt with four, for fisheyes.
    Fisheye,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The lens.
    pub model: Model,
    /// Set to use pairs that do not fit.
    pub keep_all: bool,
}

/// Reason why there is no calibration.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SolveError {
    /// Too few pairs show the board.
    #[error(
        "only {used} of {all} pairs can be used, at least {FEWEST_PAIRS} are needed and 10 or more \
         advised: take more, each with the board at another place and tilt{reasons}"
    )]
    TooFew {
        /// Usable pairs.
        used: usize,
        /// All pairs.
        all: usize,
        /// Reasons why the others cannot be used, to follow the sentence.
        reasons: String,
    },
    /// The equations have no solution.
    #[error(
        "the pictures of the {0} view do not determine the camera: tilt the board by 20 to 40 degrees \
         in different directions, near and far"
    )]
    Undetermined(Eye),
    #[error(
        "the pairs do not determine how the cameras stand to each other: check that the pictures are \
         paired rightly (the numbers in their names) and taken at the same moment"
    )]
    Apart,
}

/// Returns the lower median; 0 for no values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

/// Calibrates two cameras with images of these sizes (width, height).
pub fn solve(
    board: &Board,
    sizes: [(usize, usize); 2],
    options: Options,
    sightings: Vec<Sighting>,
) -> Result<Solved, SolveError> {
    let kept = outliers::solve(board, sizes, options, &sightings)?;
    Ok(report::solved(board, sizes, &sightings, kept))
}

#[cfg(test)]
mod tests;
