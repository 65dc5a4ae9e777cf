//! The filters of a disparity map: what follows the winner and its checks, in order.
//!
//! A filter is a file here, its definition; one in `engine/cpu/filter` and one in `kernels` give
//! the same bytes faster. Values are disparities in 1/16 px, one a pixel, row by row; [`INVALID`]
//! if there is none.
//!
//! [`INVALID`]: crate::core::frame::INVALID
//!
//! A filter may keep a [`State`] from map to map of a stream. It restarts where the stream does
//! ([`Continuity`](crate::matching::history::Continuity)), and goes over to the next engine where
//! one takes the place of another.

pub mod evidence;
pub mod fill;
mod matching;
pub mod median;
pub mod rays;
pub mod smoothing;
pub mod spatial;
pub mod speckle;
pub mod steady;
pub mod valid_mask;

pub use matching::Matching;

use crate::matching::confidence;
use crate::matching::cost::Cost;
use crate::matching::history::State;
use crate::matching::params::{Params, Speckle};
use evidence::Evidence;
use fill::Fill;
use smoothing::Smoothing;
use spatial::Spatial;
use steady::Steady;

/// A filter with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Invalidates what a camera has not seen ([`valid_mask`]).
    ValidMask,
    /// Says how sure each pixel is, and invalidates what is less sure than `least`
    /// ([`confidence`]). Images are white from `white` on.
    Confidence { least: u8, white: u8 },
    /// Median of the square window that reaches this many pixels to either side ([`median`]).
    Median(usize),
    /// Invalidates small regions ([`speckle`]).
    Speckle(Speckle),
    /// Invalidates what no evidence supports ([`evidence`]).
    Evidence(Evidence),
    /// Smooths surfaces along rows and columns ([`spatial`]).
    Spatial(Spatial),
    /// Smooths what stands still, in time ([`smoothing`]).
    Smoothing(Smoothing),
    /// Keeps what stands still steady ([`steady`]).
    Steady(Steady),
    /// Takes the confidence from what has no disparity by now ([`confidence::of_known`]).
    ConfidenceOfKnown,
    /// Fills holes from what is known around them ([`fill`]).
    Fill(Fill),
}

impl Params {
    /// The filters that these parameters ask for, in the order in which they are applied.
    pub(crate) fn filters(&self) -> impl Iterator<Item = Filter> + use<> {
        let white = self.white;
        let confidence = self.confidence.map(|least| Filter::Confidence { least, white });
        let median = self.median.radius().map(Filter::Median);
        let speckle = self.speckle.map(Filter::Speckle);
        let evidence = self.evidence.map(Filter::Evidence);
        let spatial = self.spatial.map(Filter::Spatial);
        let smoothing = self.smoothing.map(Filter::Smoothing);
        let steady = self.steady.map(Filter::Steady);
        let known = self.confidence.map(|_| Filter::ConfidenceOfKnown);
        let fill = self.fill.map(Filter::Fill);
        let mask = Some(Filter::ValidMask);
        [mask, confidence, median, speckle, evidence, spatial, smoothing, steady, known, fill]
            .into_iter()
            .flatten()
    }
}

impl Params {
    /// Reports whether anything is remembered of a stream from pair to pair.
    pub(crate) fn keeps_state(&self) -> bool {
        let learns = matches!(self.cost, Cost::MutualInformation { .. });
        learns || self.temporal.is_some() || self.filters().any(|filter| filter.state_len(1) > 0)
    }
}

impl Filter {
    /// The name, as accounts of times have it.
    pub fn name(self) -> &'static str {
        match self {
            Filter::ValidMask => "valid mask",
            Filter::Confidence { .. } => "confidence",
            Filter::Median(_) => "median",
            Filter::Speckle(_) => "speckle",
            Filter::Evidence(_) => "evidence",
            Filter::Spatial(_) => "spatial",
            Filter::Smoothing(_) => "smoothing",
            Filter::Steady(_) => "steady",
            Filter::ConfidenceOfKnown => "confidence of known",
            Filter::Fill(_) => "fill",
        }
    }

    /// Numbers of the state that the filter keeps of a stream of maps of this many pixels.
    pub fn state_len(self, pixels: usize) -> usize {
        match self {
            Filter::Smoothing(_) => pixels,
            Filter::Steady(_) => steady::state_len(pixels),
            Filter::ValidMask
            | Filter::Confidence { .. }
            | Filter::Median(_)
            | Filter::Speckle(_)
            | Filter::Evidence(_)
            | Filter::Spatial(_)
            | Filter::ConfidenceOfKnown
            | Filter::Fill(_) => 0,
        }
    }

    /// Applies the filter to a map. `confidence` holds the peaks of the winners until the filter of
    /// that name puts itself in their place; `None` if nobody asks for them. `state` is what
    /// the filter left there at the map before; empty for the first one of a stream.
    pub fn apply(
        self,
        values: &mut Vec<i16>,
        confidence: &mut Option<Vec<u8>>,
        of: &Matching<'_>,
        state: &mut State,
    ) {
        let (width, height) = (of.left.width(), of.left.height());
        match self {
            Filter::ValidMask => valid_mask::apply(values, of),
            Filter::Confidence { least, white } => {
                let mut peaks = confidence.take().unwrap_or_default();
                confidence::blind(values, &mut peaks, of.left, of.right, white);
                *confidence = Some(confidence::apply(width, values, &peaks, least));
            }
            Filter::Median(radius) => *values = median::apply(width, height, values, radius),
            Filter::Speckle(speckle) => speckle::apply(width, height, values, speckle),
            Filter::Evidence(how) => {
                evidence::apply(values, confidence.as_mut(), of.left, of.threshold, how);
            }
            Filter::Spatial(how) => *values = spatial::apply(values, of.left, how),
            Filter::Smoothing(how) => smoothing::apply(values, state, of.range, how),
            Filter::Steady(how) => {
                steady::apply(values, confidence.as_mut(), of.left, state, of.range, how);
            }
            Filter::ConfidenceOfKnown => {
                confidence.iter_mut().for_each(|c| confidence::of_known(values, c));
            }
            Filter::Fill(fill) => fill::apply(values, of.left, fill),
        }
    }
}
