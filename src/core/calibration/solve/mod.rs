//! Calibration of two cameras from images of a board: first each camera by itself (Zhang 2000),
//! then both cameras, their relative pose and all boards together. Pairs that do not fit are
//! skipped and listed.
//!
//! The formulas and the sums of squares equal OpenCV's calibrateCamera and stereoCalibrate (with
//! CALIB_USE_INTRINSIC_GUESS), so the numbers of both can be compared.

mod camera;
mod coverage;
mod errors;
mod guide;
mod options;
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
pub use options::{Model, Options, SolveError};
pub use report::Solved;
pub use sighting::{Reason, Sighting};
pub use verdict::Quality;

use super::board::Board;

/// Calibrates two cameras with images of this size (width, height).
pub fn solve(
    board: &Board,
    size: (usize, usize),
    options: Options,
    sightings: Vec<Sighting>,
) -> Result<Solved, SolveError> {
    let kept = outliers::solve(board, size, options, &sightings)?;
    Ok(report::solved(board, size, &sightings, kept))
}

#[cfg(test)]
mod tests;
