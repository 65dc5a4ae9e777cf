//! One frame: all inputs and memory to match a pair.

use std::sync::{Mutex, MutexGuard};

use super::buffers::{Scratch, Shared};
use super::cost::{AdCost, Padding};
use super::features::Features;
use super::filter::Filters;
use super::geometry::Geometry;
use super::mirrored_rows::Stripes;
use super::plane_costs::Planes;
use super::support::PixelSupport;
use super::watch::Watch;
use super::windows::View;
use crate::frame::{DisparityMap, Image};
use crate::matching::Params;
use crate::thread::locked;

/// Inputs and memory to match one pair.
pub struct Frame<'a> {
    pub geometry: &'a Geometry,
    pub params: &'a Params,
    pub features: &'a Features,
    /// P2 by brightness step.
    pub p2: &'a [u8; 256],
    /// Base image, of the geometry's size.
    pub left: &'a Image,
    /// Match image, of the same size.
    pub right: &'a Image,
    /// The image that steers P2, of the same size.
    pub guide: &'a Image,
    /// Support of the cost at every pixel, with an adaptive window or a prior.
    pub support: Option<&'a [PixelSupport]>,
    /// Noise threshold of the left image, if a filter uses it.
    pub threshold: u32,
    /// Prior map of the pair, for a filter that fills from it.
    pub prior: Option<&'a DisparityMap>,
    /// The candidates of each pixel, if not the whole range.
    pub windows: Option<View<'a>>,
    /// For a finer level's windows: takes the values before the filters, one per pixel.
    pub unfiltered: Option<Output>,
    /// The cost table of mutual information, if that is the cost.
    pub round: Option<InformationRound<'a>>,
    /// Memory of all threads, made for this geometry.
    pub shared: &'a Shared,
    /// Memory of each thread.
    pub scratches: &'a [Mutex<Scratch>],
    /// Synchronisation of the threads.
    pub watch: &'a Watch,
    /// The resulting disparities, one per pixel.
    pub output: Output,
    pub filters: &'a Filters,
}

/// One round of mutual information: its cost table, and its place among the rounds.
#[derive(Clone, Copy)]
pub struct InformationRound<'a> {
    /// Costs, [left level][right level].
    pub table: &'a [u8],
    /// For the finest level only: a copy of the checked winners as input of the next round, one value per
    /// pixel.
    pub map: Option<*mut i32>,
    /// Whether this is the last round, so that its map is the result.
    pub last: bool,
}

// SAFETY: the threads write different rows of the map, which outlives the frame.
unsafe impl Sync for InformationRound<'_> {}

/// Memory of a map; every thread writes its own rows.
#[derive(Clone, Copy)]
pub struct Output(pub *mut i16);

// SAFETY: the threads write different rows, and the buffer outlives the frame.
unsafe impl Sync for Output {}

impl Frame<'_> {
    pub(super) fn scratch(&self, thread: usize) -> MutexGuard<'_, Scratch> {
        locked(&self.scratches[thread])
    }

    /// The prepared planes of both views.
    pub(super) fn planes(&self) -> Planes {
        Planes {
            left: self.shared.left.ptr(),
            left_stride: self.geometry.feature_stride(),
            right: self.shared.mirrored.ptr(),
            right_stride: self.geometry.mirrored_stride(),
            count: self.features.planes(),
            stripes: self.stripes(),
            padding: self.padding(),
        }
    }

    /// The stripes of the mirrored rows.
    pub(super) fn stripes(&self) -> Stripes {
        Stripes::of(self.geometry, self.shared.starts.ptr())
    }

    /// Padding of costs beyond the range.
    pub(super) fn padding(&self) -> Padding {
        let Geometry { count, depth, .. } = *self.geometry;
        Padding { bytes: self.shared.padding.ptr(), needed: count < depth }
    }

    /// The truncated absolute difference of single pixels.
    pub(super) fn ad_cost(&self, truncation: u8) -> AdCost {
        AdCost {
            left: self.left.pixels().as_ptr(),
            mirrored: self.shared.mirrored.ptr(),
            width: self.geometry.width,
            stride: self.geometry.mirrored_stride(),
            stripes: self.stripes(),
            truncation,
            padding: self.padding(),
        }
    }
}
