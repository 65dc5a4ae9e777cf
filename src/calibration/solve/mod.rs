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
use stereod_core::frame::Eye;

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
    /// Every board is parallel to the image, so that focal length and distance cannot be told apart.
    #[error(
        "in all {0} pairs the board is parallel to the picture: tilt the board by 20 to 40 degrees in \
         different directions, near and far"
    )]
    Parallel(usize),
    #[error(
        "in all {0} pairs the board is in the same place: move it to all parts of the picture, and tilt it by 20 \
         to 40 degrees in different directions, near and far"
    )]
    OnePlace(usize),
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

/// Largest mean distance of the corners of boards in the same place, relative to the image's width.
const ONE_PLACE: f64 = 0.01;

/// Returns the number of boards if they are all in one place.
fn in_one_place(width: usize, sightings: &[Sighting]) -> Option<usize> {
    let seen: Vec<_> = sightings.iter().filter_map(|pair| pair.seen.as_ref().ok()).collect();
    let (first, others) = seen.split_first()?;
    let limit_px = ONE_PLACE * width as f64;
    let are_same =
        others.iter().all(|other| guide::apart(first, other).is_some_and(|px| px < limit_px));
    (seen.len() >= FEWEST_PAIRS && are_same).then_some(seen.len())
}

/// Calibrates two cameras with images of these sizes (width, height).
pub fn solve(
    board: &Board,
    sizes: [(usize, usize); 2],
    options: Options,
    sightings: Vec<Sighting>,
) -> Result<Solved, SolveError> {
    if let Some(count) = in_one_place(sizes[0].0, &sightings) {
        return Err(SolveError::OnePlace(count));
    }
    let kept = outliers::solve(board, sizes, options, &sightings)?;
    Ok(report::solved(board, sizes, &sightings, kept))
}

#[cfg(test)]
mod tests;
