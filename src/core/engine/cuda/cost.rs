//! Matching costs of the kernels: one header each, its constants, and the sizes of its prepared features.

use crate::matching::{Cost, Params};

// The headers of `kernels/` that define a cost.
const AD: &str = "cost_ad.cuh";
const AD_WINDOW: &str = "cost_ad_window.cuh";
const BLOCK: &str = "cost_block.cuh";
const CENSUS: &str = "cost_census.cuh";
const COMBINED: &str = "cost_combined.cuh";
const MI: &str = "cost_mi.cuh";
const STORED: &str = "cost_stored.cuh";

/// Them as (name, text).
pub(super) const HEADERS: &[(&str, &str)] = &kernels! {
    "cost_ad.cuh", "cost_ad_window.cuh", "cost_block.cuh", "cost_census.cuh", "cost_combined.cuh",
    "cost_mi.cuh", "cost_stored.cuh",
};

/// Reports whether the costs are stored before the aggregation. All are, except single differences, because
/// each sweep computes them faster than it reads them.
pub(super) fn is_stored(params: &Params) -> bool {
    is_volume(params) || matches!(params.cost, Cost::Block { .. })
}

/// Reports whether pixel costs are stored in a volume, with or without support (`compute_costs.cu`).
pub(super) fn is_volume(params: &Params) -> bool {
    // A single difference is computed faster than read; window sums are stored by their own kernel.
    let otherwise = matches!(params.cost, Cost::Ad { window: 1, .. } | Cost::Block { .. });
    params.is_supported() || !otherwise && !params.is_local()
}

pub(super) struct CostKernel {
    pub header: &'static str,
    pub base_words: u32,
    pub planes: u32,
    pub columns: u32,
    pub margin: u32,
}

impl CostKernel {
    /// Returns the cost for the aggregation: computed on the fly or, if it is stored, read in vectors of
    /// `half` words.
    pub fn for_aggregation(params: &Params, half: u32) -> Self {
        match is_stored(params) {
            true => Self::whole(STORED, half / 2, 0),
            false => Self::of(params.cost),
        }
    }

    pub fn of(cost: Cost) -> Self {
        match cost {
            Cost::Ad { window: 1, .. } => Self::packed(AD),
            Cost::Ad { window, .. } => {
                let words = if window <= 3 { 1 } else { 2 };
                Self { margin: u32::from(window) / 2, ..Self::whole(AD_WINDOW, words, words) }
            }
            Cost::Census { window } => {
                let words = window.bits().div_ceil(32);
                Self::whole(CENSUS, words, words)
            }
            Cost::MutualInformation { .. } => Self::packed(MI),
            // Without means, the differences are those of `ad`.
            Cost::Block { measure, .. } if !measure.is_zero_mean() => Self::packed(AD),
            Cost::Block { .. } => Self::whole(BLOCK, 1, 1),
            Cost::Combined(_) => Self::whole(COMBINED, 2, 3),
        }
    }

    /// A cost of single pixels, whose words cover two columns each.
    fn packed(header: &'static str) -> Self {
        Self { header, base_words: 0, planes: 2, columns: 2, margin: 0 }
    }

    /// A cost with one column per word, which uses no neighbouring columns.
    fn whole(header: &'static str, base_words: u32, planes: u32) -> Self {
        Self { header, base_words, planes, columns: 1, margin: 0 }
    }
}
