//! Keys of `[matching]` that an error is about.

use super::CostKind;
use crate::matching::{CostError, ParamsError};

/// The keys of `[matching]` whose values together make up an error, so that a message can say where
/// they were set.
pub(in crate::settings) fn keys_of(error: &ParamsError, cost: CostKind) -> &'static [&'static str] {
    match error {
        ParamsError::Disparities(_) => &["disparities"],
        ParamsError::Range(_) => &["min_disparity", "disparities"],
        ParamsError::Paths(_) => &["paths"],
        ParamsError::Cost(error) => match error {
            CostError::Truncation => &["ad_truncation"],
            CostError::Window(_) => &["ad_window"],
            CostError::Block(..) => &["cost", "block_window"],
            CostError::BlockTruncation => &["block_truncation"],
            CostError::MutualInformation(_) => &["mi_truncation"],
            CostError::Census(_) => &["census_window"],
            CostError::Weight { .. } | CostError::NoWeight => COMBINED_KEYS,
        },
        ParamsError::PenaltyOrder { .. } => &["cost", "p1", "p2"],
        ParamsError::PenaltyFloor { .. } => &["cost", "p2_min", "p2"],
        ParamsError::PathCost { .. } => match cost {
            CostKind::Combined => COMBINED_KEYS,
            CostKind::Census => &["p2", "census_window", "prior", "prior_strength"],
            CostKind::Ad => &["p2", "ad_truncation", "prior", "prior_strength"],
            CostKind::Mi => &["p2", "mi_truncation", "prior", "prior_strength"],
            _ => &["cost", "p2", "block_truncation"],
        },
        ParamsError::Window(_) => &["cost_window"],
        ParamsError::PriorLevels(_) => &["prior"],
        ParamsError::PriorStrength(_) => &["prior_strength"],
        ParamsError::Supported { .. } => match cost {
            CostKind::Combined => SUPPORTED_COMBINED_KEYS,
            CostKind::Census => &["census_window", "cost_window", "prior", "prior_strength"],
            CostKind::Ad => &["ad_truncation", "cost_window", "prior", "prior_strength"],
            CostKind::Mi => &["mi_truncation", "cost_window", "prior", "prior_strength"],
            _ => &["cost", "cost_window", "prior"],
        },
        ParamsError::SumWindow(_) => &["block_window"],
        ParamsError::LocalSupport => &["paths", "cost_window", "prior"],
        ParamsError::LocalAdWindow => &["paths", "ad_window"],
        ParamsError::BlockSupport(_) => &["cost", "cost_window", "prior"],
        ParamsError::Uniqueness(_) => &["uniqueness"],
        ParamsError::Smoothing(_) => &["smoothing", "smoothing_guard"],
        ParamsError::Steady(_) => &["steady"],
        ParamsError::Temporal { .. } => &["history", "degree"],
        ParamsError::FillReach(_) => &["fill_max"],
    }
}

/// The keys that make up the size of the combined cost, and what supports it.
const SUPPORTED_COMBINED_KEYS: &[&str] = &[
    "cost_window",
    "prior",
    "prior_strength",
    "census_weight",
    "gradient_weight",
    "intensity_weight",
    "gradient_truncation",
    "intensity_truncation",
];

/// The keys that make up the size of the combined cost with its prior, and P2.
const COMBINED_KEYS: &[&str] = &[
    "p2",
    "prior",
    "prior_strength",
    "census_weight",
    "gradient_weight",
    "intensity_weight",
    "gradient_truncation",
    "intensity_truncation",
];
