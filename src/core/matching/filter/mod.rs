//! Filters of the disparity map, applied in order after the winner and its checks.
//!
//! Each filter has a file here, its definition. Files in `engine/cpu/filter` and in `kernels` give the same
//! bytes faster. Values are disparities in 1/16 px, one per pixel, row by row; [`INVALID`] if there is none.
//!
//! [`INVALID`]: crate::frame::INVALID
//!
//! A filter may keep a [`State`] from map to map of a stream. The state is reset when the stream restarts
//! ([`Continuity`](crate::matching::continuity::Continuity)), and is handed over if another engine takes over
//! the stream.

pub mod evidence;
pub mod fill;
pub mod median;
pub mod rays;
pub mod smoothing;
pub mod spatial;
pub mod speckle;
pub mod steady;
pub mod valid_mask;

use crate::frame::{DisparityMap, DisparityRange, Image};
use crate::matching::confidence;
use crate::matching::cost::Cost;
use crate::matching::history::State;
use crate::matching::params::{Params, Speckle};
use evidence::Evidence;
use fill::{Fill, Network};
use smoothing::Smoothing;
use spatial::Spatial;
use steady::Steady;

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
    /// Prior map of the pair, if it came with one that is used: half the size, in 1/16 px of that size.
    pub prior: Option<&'a DisparityMap>,
}

/// A filter with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Invalidates pixels outside a camera's valid mask ([`valid_mask`]).
    ValidMask,
    /// Computes the confidence and invalidates pixels below `least` ([`confidence`]). Grey levels of at least
    /// `white` are saturated.
    Confidence {
        /// Smallest confidence of a valid pixel.
        least: u8,
        /// Smallest grey level of white.
        white: u8,
    },
    /// Median of the square window with this radius in pixels ([`median`]).
    Median(usize),
    /// Invalidates small regions ([`speckle`]).
    Speckle(Speckle),
    /// Invalidates unsupported pixels of untextured areas ([`evidence`]).
    Evidence(Evidence),
    /// Smooths surfaces along rows and columns ([`spatial`]).
    Spatial(Spatial),
    /// Smooths static pixels in time ([`smoothing`]).
    Smoothing(Smoothing),
    /// Holds the disparity of static pixels ([`steady`]).
    Steady(Steady),
    /// Clears the confidence of invalid pixels ([`confidence::of_known`]).
    ConfidenceOfKnown,
    /// Fills holes from the known pixels around them ([`fill`]).
    Fill(Fill),
}

impl Params {
    /// Returns the enabled filters in the order of application.
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
    /// Reports whether a stream has state from pair to pair.
    pub(crate) fn keeps_state(&self) -> bool {
        let learns = matches!(self.cost, Cost::MutualInformation { .. });
        learns || self.temporal.is_some() || self.filters().any(|filter| filter.state_len(1) > 0)
    }
}

impl Filter {
    /// The name in timing reports.
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

    /// Size of the filter's state for maps of `pixels` pixels, in numbers.
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

    /// Applies the filter to a map. `confidence`: peak ratios before the confidence filter, probabilities
    /// after it; `None` if not requested. `state`: the filter's state after the previous map; empty for the
    /// first one of a stream.
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
            Filter::Fill(fill) => {
                let network = of.prior.map(|prior| Network { prior, range: of.range });
                fill::apply(values, of.left, network, fill);
            }
        }
    }
}
