//! The figures of one pair, and the means over several.

use super::item::Areas;
use super::scoring::Score;
use super::sparsification::Sparsification;
use super::surfaces::Surfaces;

/// All figures of a pair, or their means.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Time in the engine in milliseconds.
    pub time_ms: f64,
    /// Part of the whole map that has a disparity, in percent.
    pub image_density: f64,
    /// Figures of the map after `--fill`, if on, that need no truth.
    pub surfaces: Surfaces,
    /// Scores of the map as it was matched.
    pub unfilled: Areas<Score>,
    /// Scores of the map with its holes filled along the rows.
    pub dense: Areas<Score>,
    /// Sparsification, if there is a confidence.
    pub sparsification: Areas<Sparsification>,
}

impl Summary {
    /// Returns the means over pairs, of each figure over those that have it; `None` of none.
    pub fn mean(of: &[&Summary]) -> Option<Self> {
        if of.is_empty() {
            return None;
        }
        let mean = |value: fn(&Summary) -> f64| {
            of.iter().map(|summary| value(summary)).sum::<f64>() / of.len() as f64
        };
        let area = |score: fn(&Summary) -> Option<&Score>| {
            let scores: Vec<&Score> = of.iter().filter_map(|summary| score(summary)).collect();
            Score::mean(&scores)
        };
        let curve = |curve: fn(&Summary) -> Option<Sparsification>| {
            let curves: Vec<_> = of.iter().filter_map(|summary| curve(summary)).collect();
            Sparsification::mean(&curves)
        };
        Some(Self {
            time_ms: mean(|summary| summary.time_ms),
            image_density: mean(|summary| summary.image_density),
            surfaces: Surfaces::mean(
                &of.iter().map(|summary| summary.surfaces).collect::<Vec<_>>(),
            ),
            unfilled: Areas {
                non_occluded: area(|summary| summary.unfilled.non_occluded.as_ref()),
                all: area(|summary| summary.unfilled.all.as_ref()),
                discontinuities: area(|summary| summary.unfilled.discontinuities.as_ref()),
            },
            dense: Areas {
                non_occluded: area(|summary| summary.dense.non_occluded.as_ref()),
                all: area(|summary| summary.dense.all.as_ref()),
                discontinuities: area(|summary| summary.dense.discontinuities.as_ref()),
            },
            sparsification: Areas {
                non_occluded: curve(|summary| summary.sparsification.non_occluded),
                all: curve(|summary| summary.sparsification.all),
                discontinuities: curve(|summary| summary.sparsification.discontinuities),
            },
        })
    }
}
