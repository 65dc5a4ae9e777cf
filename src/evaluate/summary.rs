//! The figures of one pair, and the means over several.

use super::item::Areas;
use super::scoring::Score;
use super::sparsification::Sparsification;
use super::surfaces::Surfaces;

/// All figures of a pair, or their means.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
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
        Some(Self {
            time_ms: mean(|summary| summary.time_ms),
            image_density: mean(|summary| summary.image_density),
            surfaces: Surfaces::mean(&each(of, |summary| &summary.surfaces)),
            unfilled: Areas::join(&each(of, |summary| &summary.unfilled), Score::mean),
            dense: Areas::join(&each(of, |summary| &summary.dense), Score::mean),
            sparsification: Areas::join(
                &each(of, |summary| &summary.sparsification),
                Sparsification::mean,
            ),
        })
    }
}

fn each<'a, T>(of: &[&'a Summary], part: fn(&Summary) -> &T) -> Vec<&'a T> {
    of.iter().map(|summary| part(summary)).collect()
}
