//! Statistics of the last measurements: their uncertainty, and whether the rows wander.

use std::collections::VecDeque;

use super::Measurement;
use super::model::median;

/// Number of kept measurements: six seconds.
const KEPT: usize = 24;

/// Smallest number of measurements for detecting wandering.
const ENOUGH: usize = 5;

/// Largest number of independent measurements, because measurements of one scene share its errors.
const INDEPENDENT: usize = 4;

/// Median step between measurements, in pixels, above which the rows are restless.
const RESTLESS_PX: f64 = 0.3;

/// Share of the median row error below which a range is no wandering, because misaligned rows vary
/// with the scene.
const OF_ERROR: f64 = 0.2;

/// Smallest share of the range in a single step that is a bump.
const ONE_STEP: f64 = 0.34;

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

    pub(super) fn newest(&self, count: usize) -> impl Iterator<Item = &Measurement> {
        self.all.iter().skip(self.all.len().saturating_sub(count))
    }

    /// Returns the standard deviation of the smoothed row error in pixels, from the stated errors
    /// of the measurements and from their differences.
    pub(super) fn uncertainty_px(&self) -> f64 {
        let count = self.all.len().clamp(1, INDEPENDENT) as f64;
        // Successive differences, so that a step counts only once.
        let apart = typical_step(self.all.iter().map(|seen| seen.row_error_px));
        let noise = 1.4826 * apart / 2f64.sqrt();
        self.told_px().max(noise) / count.sqrt()
    }

    /// Returns the median stated error of a measurement.
    fn told_px(&self) -> f64 {
        let mut told: Vec<f64> = self.all.iter().map(|seen| seen.uncertainty_px).collect();
        median(&mut told).unwrap_or(0.0)
    }

    /// Returns the range in pixels of wandering rows: of the signed row error at the centre, or of the whole
    /// image (for a roll, which leaves the centre unchanged). `None` if they are stable, moved in one step
    /// like a bump, or by less than `least_px`.
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

/// Returns the range of drifting values with a stated error of `told` each; `None` if they do not
/// wander.
fn wander_range(values: &[f64], told: f64, least: f64) -> Option<[f64; 2]> {
    let restless = typical_step(values.iter().copied()) > RESTLESS_PX.max(3.0 * told);
    // A single wrong measurement is neither wandering nor a step.
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (low, high) = (sorted[1], sorted[sorted.len() - 2]);
    let calmed: Vec<f64> = values.windows(3).map(middle).collect();
    let largest = calmed.windows(2).map(|two| (two[1] - two[0]).abs()).fold(0.0, f64::max);
    let wanders = high - low > least && (restless || largest < ONE_STEP * (high - low));
    wanders.then_some([low, high])
}

/// Returns the median absolute difference of successive values.
fn typical_step(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let mut steps: Vec<f64> =
        values.clone().zip(values.skip(1)).map(|(one, next)| (next - one).abs()).collect();
    median(&mut steps).unwrap_or(0.0)
}

fn middle(three: &[f64]) -> f64 {
    median(&mut three.to_vec()).unwrap_or(0.0)
}
