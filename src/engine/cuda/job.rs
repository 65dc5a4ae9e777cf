//! The job of an engine: the pairs and parameters it is specialised for.

use crate::calibration::Rectifier;
use crate::core::frame::Eye;
use crate::matching::Params;

/// A pair's work: what is computed for every pair.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Parameters of the matching.
    pub params: &'a Params,
    /// Width and height in pixels of the pictures that are matched.
    pub size: (usize, usize),
    /// Rectifier that makes them of a raw pair; without it pairs come rectified.
    pub rectifier: Option<&'a Rectifier>,
}

impl Job<'_> {
    /// Tells whether there are pixels that a camera has not seen.
    pub(super) fn is_masked(&self) -> bool {
        self.rectifier.is_some_and(|r| Eye::BOTH.iter().any(|&eye| r.map(eye).mask().is_some()))
    }
}
