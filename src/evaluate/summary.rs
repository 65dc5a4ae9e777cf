//! The figures of one pair, and the means over several.

use super::item::Areas;
use super::scoring::{Combine, Score};
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

/// Returns the mean.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the standard deviation of a sample.
pub fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1).max(1) as f64).sqrt()
}

impl Summary {
    /// Returns the means over pairs, of each figure over those that have it; `None` of none.
    pub fn mean(of: &[&Summary]) -> Option<Self> {
        Self::combined(of, mean)
    }

    /// Returns the means over the noise of several seeds in the same pair, whose pixels are the same.
    pub fn mean_of_seeds(of: &[&Summary]) -> Option<Self> {
        let counted = |means: &Areas<Score>, of_pair: &Areas<Score>| {
            Areas::join(&[means, of_pair], |scores| {
                let [first, .., last] = scores else { return None };
                Some(Score { count: last.count, figures: first.figures.clone() })
            })
        };
        let mean = Self::mean(of)?;
        Some(Self {
            unfilled: counted(&mean.unfilled, &of[0].unfilled),
            dense: counted(&mean.dense, &of[0].dense),
            ..mean
        })
    }

    /// Combines each figure of those that have it; `None` of none.
    pub fn combined(of: &[&Summary], with: Combine) -> Option<Self> {
        if of.is_empty() {
            return None;
        }
        let combined = |value: fn(&Summary) -> f64| {
            with(&of.iter().map(|summary| value(summary)).collect::<Vec<_>>())
        };
        let scores = |scores: &[&Score]| Score::combined(scores, with);
        Some(Self {
            time_ms: combined(|summary| summary.time_ms),
            image_density: combined(|summary| summary.image_density),
            surfaces: Surfaces::combined(&each(of, |summary| &summary.surfaces), with),
            unfilled: Areas::join(&each(of, |summary| &summary.unfilled), scores),
            dense: Areas::join(&each(of, |summary| &summary.dense), scores),
            sparsification: Areas::join(&each(of, |summary| &summary.sparsification), |curves| {
                Sparsification::combined(curves, with)
            }),
        })
    }
}

fn each<'a, T>(of: &[&'a Summary], part: fn(&Summary) -> &T) -> Vec<&'a T> {
    of.iter().map(|summary| part(summary)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_of_samples() {
        assert_eq!(deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), (32.0f64 / 7.0).sqrt());
        assert_eq!((mean(&[3.0]), deviation(&[3.0])), (3.0, 0.0));
    }
}
