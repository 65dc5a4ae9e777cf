//! Calibration boards: their pattern and their corners.

pub mod detection;
pub mod grid;
pub mod pattern;

pub use detection::{BoardCorner, Detection, NotFound};
pub use pattern::{Board, Pattern};
