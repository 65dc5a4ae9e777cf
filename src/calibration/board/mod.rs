//! Calibration boards: their pattern and their corners.

#[cfg(feature = "cli")]
mod charuco;
#[cfg(feature = "cli")]
pub mod detect;
mod detection;
mod grid;
#[cfg(feature = "cli")]
mod ink;
mod pattern;
#[cfg(feature = "cli")]
mod refine;

#[cfg(test)]
pub use detection::BoardCorner;
pub use detection::{Detection, NotFound};
#[cfg(feature = "cli")]
pub use ink::Ink;
pub use pattern::{Board, Pattern};
