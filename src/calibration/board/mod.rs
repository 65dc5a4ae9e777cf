//! Calibration boards: their pattern and their corners.

#[cfg(feature = "boards")]
mod aprilgrid;
#[cfg(feature = "boards")]
mod charuco;
#[cfg(feature = "boards")]
pub mod detect;
pub mod detection;
pub mod grid;
#[cfg(feature = "boards")]
mod ink;
pub mod pattern;
#[cfg(feature = "boards")]
mod refine;
#[cfg(feature = "boards")]
pub mod sheet;

#[cfg(feature = "boards")]
pub use charuco::{pattern, with_marker_ratio};
pub use detection::{BoardCorner, Detection, NotFound};
#[cfg(feature = "boards")]
pub use ink::{Ink, ink};
pub use pattern::{Board, Pattern};
