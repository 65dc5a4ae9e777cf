//! Two cameras from pictures of a board: first each camera by itself (Zhang 2000), then both cameras,
//! their place to each other and all boards together. Pairs that do not fit are left out and named.
//!
//! The formulas and the sums of squares are those of OpenCV's calibrateCamera and stereoCalibrate
//! (with CALIB_USE_INTRINSIC_GUESS), so the numbers of both can be compared.

mod camera;
mod coverage;
mod errors;
mod guide;
mod outliers;
mod projection;
mod report;
mod rig;
mod start;
mod verdict;

use std::fmt;

use nalgebra::Vector2;

pub use camera::seen_from;
pub use coverage::{Coverage, Part};
pub use guide::{Guide, Judgement, RECENT, Refusal, Wanted, Wish, apart, fit, most_diverse};
pub use report::{PairReport, Report, RowError};
pub use verdict::{Quality, Verdict};

use super::StereoCalibration;
use super::board::Board;
use super::board::detect::{Detection, NotFound};
use crate::frame::Eye;

/// Fewest pairs that determine two cameras at all.
pub const FEWEST_PAIRS: usize = 3;

/// Which parameters a lens has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// Brown-Conrady with five coefficients: k1 k2 p1 p2 k3. Right for most lenses up to about 100
    /// degrees.
    #[default]
    PlumbBob,
    /// The same with eight: k4 k5 k6 as well, for wide angles.
    Rational,
    /// Kannala-Brandt with four, for fisheyes.
    Fisheye,
}

/// Pictures of one moment.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// What the pair is called in reports.
    pub name: String,
    /// The board in the left and in the right picture, or why the pair cannot be used.
    pub seen: Result<[Detection; 2], Reason>,
}

/// Why a pair is left out.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// A picture cannot be read.
    Unreadable(String),
    /// One eye has no picture of this name or number.
    Alone(Eye),
    /// The pictures have another size than most.
    Size {
        /// Which eye.
        eye: Eye,
        /// Its width and height.
        size: (usize, usize),
        /// That of the others.
        usual: (usize, usize),
    },
    /// The board is not found in one eye, or in both.
    NotFound {
        /// In which eye; `None` is both.
        eye: Option<Eye>,
        /// What is seen instead.
        seen: NotFound,
    },
    /// The edges of the squares are much wider than in other pictures.
    Blurred {
        /// Which eye.
        eye: Eye,
        /// Width of an edge in pixels.
        width_px: f64,
        /// Width up to which pictures are used.
        limit_px: f64,
    },
    /// The corners do not fit one camera: the board is bent, or the corners are not the board's.
    Misfit {
        /// Which eye.
        eye: Eye,
        /// Root mean square of the reprojection error in pixels.
        rms_px: f64,
        /// That of most pairs.
        usual_px: f64,
    },
    /// Each eye fits, but not both together: the board has moved in between.
    Moved {
        /// Root mean square of the reprojection error in pixels.
        rms_px: f64,
        /// That of most pairs.
        usual_px: f64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(words) => f.write_str(words),
            Self::Alone(eye) => write!(f, "only the {eye} eye has this picture"),
            Self::Size { eye, size, usual } => write!(
                f,
                "the {eye} picture has {}x{} pixels, most have {}x{}",
                size.0, size.1, usual.0, usual.1
            ),
            Self::NotFound { eye: Some(eye), seen } => write!(f, "in the {eye} eye {seen}"),
            Self::NotFound { eye: None, seen } => write!(f, "in both eyes {seen}"),
            Self::Blurred { eye, width_px, limit_px } => write!(
                f,
                "the {eye} picture is blurred: edges are {width_px:.1} px wide, up to \
                 {limit_px:.1} are sharp"
            ),
            Self::Misfit { eye, rms_px, usual_px } => write!(
                f,
                "the corners in the {eye} eye do not fit (RMS {rms_px:.2} px, usual \
                 {usual_px:.2}): is the board bent or partly hidden?"
            ),
            Self::Moved { rms_px, usual_px } => write!(
                f,
                "the eyes do not see the board in the same place (RMS {rms_px:.2} px, usual \
                 {usual_px:.2}): it moved, or the pictures are not of one moment"
            ),
        }
    }
}

impl Reason {
    /// The kind in one word, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable",
            Self::Alone(_) => "alone",
            Self::Size { .. } => "size",
            Self::NotFound { .. } => "not-found",
            Self::Blurred { .. } => "blurred",
            Self::Misfit { .. } => "misfit",
            Self::Moved { .. } => "moved",
        }
    }
}

/// Why there is no calibration.
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
        /// Why the others cannot be used, to follow the sentence.
        reasons: String,
    },
    /// The equations have no solution.
    #[error(
        "the pictures of the {0} eye do not determine the camera: tilt the board by 20 to 40 degrees \
         in different directions, near and far"
    )]
    Undetermined(Eye),
    /// The boards do not tell how the cameras stand to each other.
    #[error("the pairs do not determine how the cameras stand to each other")]
    Apart,
}

/// A calibration and how good it is.
#[derive(Clone, Debug)]
pub struct Solved {
    /// Both cameras.
    pub calibration: StereoCalibration,
    /// How good they are.
    pub report: Report,
}

/// How to calibrate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The lens.
    pub model: Model,
    /// Whether pairs that do not fit are used all the same.
    pub keep_all: bool,
}

/// Calibrates two cameras whose pictures have this size (width, height).
///
/// # Errors
/// Where too few pairs can be used, or they do not determine the cameras.
pub fn solve(
    board: &Board,
    size: (usize, usize),
    options: Options,
    sightings: Vec<Sighting>,
) -> Result<Solved, SolveError> {
    let kept = outliers::solve(board, size, options, &sightings)?;
    Ok(report::solved(board, size, &sightings, kept))
}

/// The points of the board and where they are seen.
fn points(board: &Board, seen: &Detection) -> Vec<(nalgebra::Vector3<f64>, Vector2<f64>)> {
    let corners = seen.corners.iter();
    corners.map(|corner| (board.point(corner.id), Vector2::from(corner.pixel))).collect()
}

/// The lower median; 0 of nothing.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
