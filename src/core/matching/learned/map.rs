//! The prediction as a map of the half-size images.

use super::Prediction;
use crate::frame::INVALID;

/// Returns the expected disparity of every pixel of the half-size images of this size, in 1/16 px of that size:
/// [`prior_row`] of every row.
pub fn prior_map(prediction: &Prediction, size: (usize, usize)) -> Vec<i16> {
    let mut map = vec![0; size.0 * size.1];
    map.chunks_mut(size.0).enumerate().for_each(|(y, row)| prior_row(prediction, y, row));
    map
}

/// Computes row `y` of the map of the half-size images.
///
/// A pixel whose own cell is not confident is invalid. A pixel between the centres of four confident cells gets
/// their bilinear interpolation, halves rounded upwards; any other pixel gets the value of its own cell. Beyond the
/// outermost centres, the outermost cells are repeated.
pub fn prior_row(prediction: &Prediction, y: usize, row: &mut [i16]) {
    let Prediction { width, height, step, .. } = *prediction;
    let cell = step / 2;
    // The cells on either side of a pixel and the weight of the second, in 1/(2 cell): pixel x has its centre at
    // 2 x + 1 half pixels, cell i at (2 i + 1) cell half pixels.
    let between = |x: usize, cells: usize| {
        let place = 2 * x + 1 + cell;
        let second = place / (2 * cell);
        let clamped = |i: usize| i.saturating_sub(1).min(cells - 1);
        ([clamped(second), clamped(second + 1)], place % (2 * cell))
    };
    let at = |x: usize, y: usize| {
        let value = i64::from(prediction.disparity[y * width + x]);
        (prediction.confidence[y * width + x] >= prediction.threshold).then_some(value)
    };
    let (ys, below) = between(y, height);
    let own_y = (y / cell).min(height - 1);
    for (x, out) in row.iter_mut().enumerate() {
        let (xs, right) = between(x, width);
        let of_row = |y: usize| {
            Some((2 * cell - right) as i64 * at(xs[0], y)? + right as i64 * at(xs[1], y)?)
        };
        let sum =
            || Some((2 * cell - below) as i64 * of_row(ys[0])? + below as i64 * of_row(ys[1])?);
        let cell = cell as i64;
        *out = match (at((x / cell as usize).min(width - 1), own_y), sum()) {
            (None, _) => INVALID,
            // The weights' sum is 4 cell^2, and a candidate is `cell` px of this size.
            (Some(_), Some(sum)) => ((sum + 2 * cell) / (4 * cell)) as i16,
            (Some(own), None) => (own * cell) as i16,
        };
    }
}
