//! Inputs of the filters in addition to the map.

use crate::frame::{DisparityRange, Image};

/// A pair and its winners, as additional input of the filters.
pub struct Matching<'a> {
    /// Base image.
    pub left: &'a Image,
    /// Match image, of the same size.
    pub right: &'a Image,
    /// Candidate disparities.
    pub range: DisparityRange,
    /// Winning candidate of every pixel, row by row.
    pub winners: &'a [usize],
    /// Noise threshold of the left image ([`noise_threshold`](crate::matching::texture::noise_threshold)).
    pub threshold: u32,
}
