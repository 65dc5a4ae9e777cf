//! Two cameras, their relative pose, and the rectification of their images.
//!
//! A [`StereoCalibration`] comes from a file of one of several formats. Rectification virtually
//! turns both cameras so that a point in space lies on the same row of both images; the remaining
//! difference of its positions is disparity.

pub mod aligner;
pub mod board;
pub mod bouguet;
pub mod check;
pub mod error;
#[cfg(test)]
pub(crate) mod examples;
pub mod format;
pub mod map;
mod mode;
pub mod projection;
#[warn(missing_docs)]
pub mod rectifier;
pub mod solve;
mod stereo;
pub mod summary;

pub use aligner::Aligner;
pub use error::CalibrationError;
pub use map::RectifyMap;
pub use mode::Fit;
pub use rectifier::Rectifier;
pub use stereo::{Camera, Lens, Rectification, RectifiedView, StereoCalibration};
