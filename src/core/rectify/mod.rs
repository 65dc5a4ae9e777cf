//! Rectification: virtually turns both cameras so that a point in space lies on the same row of both images.
//!
//! A [`Rectifier`] holds the finished maps; the crate `stereod-calibration` makes it of a calibration.

mod error;
pub mod map;
#[warn(missing_docs)]
mod rectifier;

pub use error::{LARGER_MAX, RectifyError};
pub use map::RectifyMap;
pub use rectifier::Rectifier;
