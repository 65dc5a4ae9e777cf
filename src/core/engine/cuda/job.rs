//! The job of an engine: the pairs and parameters it is specialised for.

use crate::engine::HalvedNetwork;
use crate::frame::Eye;
use crate::matching::Params;
use crate::rectify::Rectifier;

/// The work for every pair.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    pub params: &'a Params,
    /// Width and height of the matched pictures in pixels.
    pub size: (usize, usize),
    /// Rectifier for raw pairs; without it pairs come rectified.
    pub rectifier: Option<&'a Rectifier>,
    /// Network that predicts the prior maps; without it pairs bring them, if the parameters ask for any.
    pub network: Option<&'a HalvedNetwork>,
}

impl Job<'_> {
    /// Reports whether some pixels are outside a camera's valid mask.
    pub(super) fn is_masked(&self) -> bool {
        self.rectifier.is_some_and(|r| Eye::BOTH.iter().any(|&eye| r.map(eye).mask().is_some()))
    }
}
