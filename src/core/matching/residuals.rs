//! Motion detection by residuals: which pixels differ from their background by more than noise.

use crate::matching::texture::{RESPONSE_MAX, quantile};

/// Units of a residual per grey level.
pub const UNIT: i32 = 16;

/// Residuals are clamped to this magnitude, in [`UNIT`]s, before they are counted and squared.
pub const RESIDUAL_MAX: i32 = 1023;

/// Lower bound of a residual's noise variance, in 1/256 squared grey levels: rounding and compression.
const VARIANCE_MIN: u32 = 64;

/// Squared sum over 3 x 3 pixels above which a pixel moves, in variances of a residual. For noise the mean is
/// 9; the limit is four standard deviations, exceeded once in 16,000 times.
const MOVES_3X3: f32 = 9.0 * 16.0;

/// The same over 5 x 5 pixels, for faint and large objects.
const SUM_5X5: f32 = 25.0 * 16.0;

/// Excess of the sum of squares over 5 x 5 pixels above which a pixel moves, in variances of a residual.
/// Noise has a mean of 25, and 65 once in 40,000 times.
const MOVES_5X5: f32 = 25.0 * 1.6;
const NOISE_5X5: f32 = 1.0 / 1.6;

/// Estimates the noise variance of the residuals, of which less than 70 % may be motion. The result is
/// limited by the noise of the image itself ([`texture`](crate::matching::texture)), because if everything
/// moves the residuals are not noise. If `spread` is 0 there is no background, and the image alone decides,
/// so that the second pair already detects lost content, and a stream that restarts often still follows its
/// noise.
pub fn variance(magnitudes: &[u32], responses: &[u32], spread: u32) -> u32 {
    // 30 % of the magnitudes of Gaussian noise are below 0.3853 sigma: (q + 1/2)^2 / 0.3853^2.
    let of_residuals = if spread == 0 { RESIDUAL_MAX as u32 } else { quantile(magnitudes) };
    let half_steps = 2 * of_residuals + 1;
    let by_residuals = (half_steps * half_steps * 431) >> 8;
    // And of the responses below 6 * 0.3853 sigma: 256 (q + 1/2)^2 / (6 * 0.3853)^2.
    let half_steps = (2 * quantile(responses) + 1).min(4095);
    let of_picture = half_steps * half_steps * 12;
    let by_picture = (u64::from(of_picture) * u64::from(256 + spread)) >> 8;
    by_residuals.min(by_picture.min(u64::from(u32::MAX)) as u32).max(VARIANCE_MIN)
}

const _: () = assert!(RESPONSE_MAX < 4095 / 2);

/// Thresholds for sums of residuals, as factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// For the squared sum over 3 x 3 pixels.
    pub of_sum: f32,
    /// For the squared sum over 5 x 5 pixels.
    pub of_wide_sum: f32,
    /// For the sum of squares over 5 x 5 pixels.
    pub of_squares: f32,
    /// Weight of the image itself in the best estimate of static parts, in 1/256.
    pub least_weight: i32,
}

impl Limits {
    /// Limits for residuals of this variance, with a background of this spread.
    pub fn new(variance: u32, spread: u32) -> Self {
        let variance = variance as f32;
        Self {
            of_sum: 1.0 / (MOVES_3X3 * variance),
            of_wide_sum: 1.0 / (SUM_5X5 * variance),
            of_squares: 1.0 / (MOVES_5X5 * variance),
            least_weight: ((256 * spread + (256 + spread) / 2) / (256 + spread)) as i32,
        }
    }

    /// Returns the weight of the image relative to its background in 1/256, and whether the pixel moves.
    /// Inputs are sums of the residuals around it: `sum` over 3 x 3 pixels, `wide_sum` over 5 x 5, and
    /// `squares`, the sum of squares over 5 x 5.
    #[inline(always)]
    pub fn assess(&self, sum: i32, wide_sum: i32, squares: i32) -> (i32, bool) {
        let (sum, wide_sum) = (sum as f32, wide_sum as f32);
        let by_sum = sum * sum * self.of_sum;
        let by_wide_sum = wide_sum * wide_sum * self.of_wide_sum;
        let by_squares = squares as f32 * self.of_squares - NOISE_5X5;
        let by_sums = if by_sum > by_wide_sum { by_sum } else { by_wide_sum };
        let evidence = if by_sums > by_squares { by_sums } else { by_squares };
        let above = 2.0 * evidence - 1.0;
        let part = above.clamp(0.0, 1.0);
        let weight = self.least_weight + (part * (256 - self.least_weight) as f32) as i32;
        (weight, evidence >= 1.0)
    }
}

/// Decision for every pixel: its weight, and whether it moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Weight of the image itself, in 1/256.
    pub weights: Vec<i32>,
    /// Whether the pixel is moving.
    pub moving: Vec<bool>,
}

impl Decision {
    /// Judges every pixel by the residuals around it; they count as 0 outside the image.
    pub fn of(residuals: &[i16], limits: &Limits, (width, height): (usize, usize)) -> Self {
        let around = |x: usize, y: usize, reach: usize| {
            let rows = y.saturating_sub(reach)..(y + reach + 1).min(height);
            let columns = x.saturating_sub(reach)..(x + reach + 1).min(width);
            rows.flat_map(move |y| {
                columns.clone().map(move |x| i32::from(residuals[y * width + x]))
            })
        };
        let judged = (0..width * height).map(|i| {
            let (x, y) = (i % width, i / width);
            let squares = around(x, y, 2).map(squared).sum();
            limits.assess(around(x, y, 1).sum(), around(x, y, 2).sum(), squares)
        });
        let (weights, moving) = judged.unzip();
        Self { weights, moving }
    }
}

/// Square of a clamped residual.
#[inline(always)]
pub fn squared(residual: i32) -> i32 {
    let residual = residual.clamp(-RESIDUAL_MAX, RESIDUAL_MAX);
    residual * residual
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variance_is_that_of_the_noise_and_no_more_than_the_pictures() {
        let mut magnitudes = vec![0; RESIDUAL_MAX as usize + 1];
        let mut responses = vec![0; RESPONSE_MAX + 1];
        assert_eq!(variance(&magnitudes, &responses, 256), VARIANCE_MIN);
        // 30 % below 0.3853 sigma: with a sigma of 5 grey levels, 80 sixteenths, below 30.8.
        (magnitudes[30], magnitudes[31], magnitudes[900]) = (300, 1, 699);
        (responses[11], responses[12], responses[1000]) = (300, 1, 699);
        let found = f64::from(variance(&magnitudes, &responses, 256)).sqrt();
        assert!((found - 80.0).abs() < 4.0, "{found}");
        // Everything moves: the image's own noise is the limit, 1.5 levels with its background's.
        magnitudes.fill(0);
        magnitudes[700] = 1000;
        let limit = f64::from(variance(&[], &responses, 0)).sqrt();
        let same = f64::from(variance(&magnitudes, &responses, 1)).sqrt();
        assert!((limit - same).abs() < 1.0, "{limit} {same}");
        assert!((limit - 12.5 * 6.92).abs() < 2.0, "{limit}");
    }

    #[test]
    fn what_is_more_than_noise_is_taken_from_the_picture() {
        // A mean of three images: a quarter of the estimate is the newest.
        let limits = Limits::new(256 * 4, 85);
        assert_eq!(limits.least_weight, 64);
        assert_eq!(limits.assess(0, 0, 25 * 1024), (64, false));
        // Nine residuals of 4 standard deviations of their sum: 3 * 4 * 32.
        assert_eq!(limits.assess(3 * 4 * 32 + 1, 0, 0), (256, true));
        assert_eq!(limits.assess(0, -5 * 4 * 32 - 1, 0), (256, true));
        assert_eq!(limits.assess(0, 0, 66 * 1024), (256, true));
        let (weight, moves) = limits.assess(3 * 3 * 32 + 20, 0, 0);
        assert!(!moves && weight > 64 && weight < 256, "{weight}");
    }
}
