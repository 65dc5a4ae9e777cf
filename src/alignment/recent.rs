//! The last measurements side by side: how far they can be trusted, and whether the rows wander.

use std::collections::VecDeque;

use super::Measurement;
use super::model::median;

/// So many measurements are looked at: six seconds of them.
const KEPT: usize = 24;

/// Fewer measurements tell nothing of how the rows move.
const ENOUGH: usize = 5;

/// So many measurements may be taken for independent of each other: those of one scene share what
/// is wrong with it.
const INDEPENDENT: usize = 4;

/// Rows that differ typically by this many pixels more or less at the next measurement are
/// restless.
const RESTLESS_PX: f64 = 0.3;

/// Rows that are never right look different wherever the scene is: less than this share of what
/// they are off by is no way.
const OF_ERROR: f64 = 0.2;

/// Rows that go this share of their way in one step have been bumped.
const ONE_STEP: f64 = 0.34;

/// The last measurements.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    all: VecDeque<Measurement>,
}

impl Recent {
    pub(super) fn push(&mut self, measurement: Measurement) {
        if self.all.len() == KEPT {
            self.all.pop_front();
        }
        self.all.push_back(measurement);
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    /// The newest ones, at most `count`, the oldest of them first.
    pub(super) fn newest(&self, count: usize) -> impl Iterator<Item = &Measurement> {
        self.all.iter().skip(self.all.len().saturating_sub(count))
    }

    /// Expected error of the smoothed row error as a standard deviation, in pixels: from what each
    /// measurement says of itself, and from how far they are apart.
    pub(super) fn uncertainty_px(&self) -> f64 {
        let count = self.all.len().clamp(1, INDEPENDENT) as f64;
        // From one to the next, so that a step counts only once.
        let apart = typical_step(self.all.iter().map(|seen| seen.row_error_px));
        let noise = 1.4826 * apart / 2f64.sqrt();
        self.told_px().max(noise) / count.sqrt()
    }

    /// Error that a measurement typically says of itself.
    fn told_px(&self) -> f64 {
        let mut told: Vec<f64> = self.all.iter().map(|seen| seen.uncertainty_px).collect();
        median(&mut told).unwrap_or(0.0)
    }

    /// Between which row errors the rows wander, in pixels: at the centre (signed), or of the whole
    /// image (a turn, say, which leaves the centre). `None` where they stay, or went from one
    /// place to another in one step, as a bump does. Less than `least_px` is no way.
    pub(super) fn wander(&self, least_px: f64) -> Option<[f64; 2]> {
        if self.all.len() < ENOUGH {
            return None;
        }
        let mut errors: Vec<f64> = self.all.iter().map(|seen| seen.row_error_px).collect();
        let told = self.told_px();
        let least_px = least_px.max(6.0 * told).max(OF_ERROR * median(&mut errors).unwrap_or(0.0));
        let figures: [fn(&Measurement) -> f64; 2] =
            [|seen| seen.shift_px, |seen| seen.row_error_px];
        figures.into_iter().find_map(|figure| {
            let values: Vec<f64> = self.all.iter().map(figure).collect();
            wander_range(&values, told, least_px)
        })
    }
}

/// Between which values they wander, each with an error of `told`; `None` where they do not.
fn wander_range(values: &[f64], told: f64, least: f64) -> Option<[f64; 2]> {
    let restless = typical_step(values.iter().copied()) > RESTLESS_PX.max(3.0 * told);
    // A single wrong measurement is no way, and no step of one.
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (low, high) = (sorted[1], sorted[sorted.len() - 2]);
    let calmed: Vec<f64> = values.windows(3).map(middle).collect();
    let largest = calmed.windows(2).map(|two| (two[1] - two[0]).abs()).fold(0.0, f64::max);
    let wanders = high - low > least && (restless || largest < ONE_STEP * (high - low));
    wanders.then_some([low, high])
}

/// The median of how far successive values are apart.
fn typical_step(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let mut steps: Vec<f64> =
        values.clone().zip(values.skip(1)).map(|(one, next)| (next - one).abs()).collect();
    median(&mut steps).unwrap_or(0.0)
}

fn middle(three: &[f64]) -> f64 {
    median(&mut three.to_vec()).unwrap_or(0.0)
}
