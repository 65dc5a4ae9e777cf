//! Two cameras, their relative pose, and the rectification of their images.
//!
//! A [`StereoCalibration`] comes from a file of one of several formats, or is solved from images of a board. A
//! [`Calibration`] is what the library `stereod` shows of it.

pub mod aligner;
pub mod board;
pub mod bouguet;
pub mod check;
pub mod error;
#[cfg(test)]
pub(crate) mod examples;
pub mod format;
mod library;
mod mode;
pub mod projection;
mod rectify;
pub mod solve;
mod stereo;
pub mod summary;

pub use aligner::Aligner;
pub use error::CalibrationError;
pub use library::{BoardView, Calibration, cameras, rectification};
pub use mode::Fit;
pub use stereo::{Camera, Lens, Rectification, RectifiedView, StereoCalibration};
