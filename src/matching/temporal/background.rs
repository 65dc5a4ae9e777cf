//! The background of a picture, what is left without it, and where that is more than noise.

use super::coefficients::{COEFFICIENT_BITS, Coefficients};
use super::layout::{Header, Layout};
use crate::frame::{Image, clamped};
use crate::matching::texture::{RESPONSE_MAX, quantile, responses};

/// Units of a residual per grey level.
pub const UNIT: i32 = 16;

/// Largest residual that counts where residuals are measured and squared, in [`UNIT`]s; the histogram of their
/// magnitudes has one place more.
pub const RESIDUAL_MAX: i32 = 1023;

/// Least variance of the noise of a residual, in 1/256 squared grey levels: that of rounding and compression.
const VARIANCE_MIN: u32 = 64;

/// Squared sums over 3 x 3 pixels from which on something moves, in variances of a residual: a sum of nine has 9, and is
/// beyond four standard deviations once in 16,000 times.
const MOVES_3X3: f32 = 9.0 * 16.0;

/// The same over 5 x 5 pixels, which is for what is faint and large.
const SUM_5X5: f32 = 25.0 * 16.0;

/// Sums over 5 x 5 pixels of squares, above that of noise, from which on something moves, in variances of a residual: of
/// noise it is 25, and 65 once in 40,000 times.
const MOVES_5X5: f32 = 25.0 * 1.6;
const NOISE_5X5: f32 = 1.0 / 1.6;

/// What the background leaves of one eye's picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residual {
    /// The picture less its background in [`UNIT`]s, a number a pixel; zeros where nothing is remembered.
    pub values: Vec<i16>,
    /// The variance of its noise, in 1/256 squared grey levels; of the picture's own where nothing is remembered.
    pub variance: u32,
}

impl Residual {
    /// Of one eye's picture.
    pub fn of(
        image: &Image,
        state: &[i32],
        layout: &Layout,
        eye: usize,
        coefficients: &Coefficients,
        header: &Header,
    ) -> Self {
        let (width, height) = layout.size;
        if header.count == 0 {
            let variance = variance(&[], &responses(image), 0);
            return Self { values: vec![0; width * height], variance };
        }
        let mut values = Vec::with_capacity(width * height);
        let mut magnitudes = vec![0; RESIDUAL_MAX as usize + 1];
        for y in 0..height {
            for x in 0..width {
                let added = coefficients.values.iter().zip(&coefficients.offsets).enumerate();
                let sum = added.map(|(slot, (&value, &offset))| {
                    let pixels = layout.picture(state, eye, slot);
                    value * i32::from(moved(pixels, layout.size, x, y, offset))
                });
                let value = residual(image.row(y)[x], sum.sum());
                magnitudes[i32::from(value).abs().min(RESIDUAL_MAX) as usize] += 1;
                values.push(value);
            }
        }
        let variance = variance(&magnitudes, &responses(image), coefficients.spread());
        Self { values, variance }
    }
}

/// The pixel of a remembered picture that shows what (x, y) shows, where that picture is moved by `offset` whole
/// pixels; columns and rows outside are the nearest inside.
fn moved(
    pixels: &[u8],
    (width, height): (usize, usize),
    x: usize,
    y: usize,
    offset: [i32; 2],
) -> u8 {
    let column = clamped(x as i64 - i64::from(offset[0]), width);
    pixels[clamped(y as i64 - i64::from(offset[1]), height) * width + column]
}

/// A pixel less its background, of which this is the sum with the coefficients.
#[inline(always)]
pub fn residual(pixel: u8, sum: i32) -> i16 {
    const SHIFT: u32 = COEFFICIENT_BITS - 4;
    let background = (sum + (1 << (SHIFT - 1))) >> SHIFT;
    (i32::from(pixel) * UNIT - background.clamp(0, 255 * UNIT)) as i16
}

/// The variance of a residual's noise: by the residuals, of which something that moves makes up less than 70 %, and no
/// more than the picture's own noise allows, as [`texture`](crate::matching::texture) finds it, because where
/// everything moves residuals are anything but noise. Where `spread` is 0 there is no background, and the picture alone
/// tells: so the second pair knows already what is lost, and a stream that begins anew again and again still follows
/// its noise.
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

/// The factors by which sums of residuals are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// For the squared sum over 3 x 3 pixels.
    pub of_sum: f32,
    /// For the squared sum over 5 x 5 pixels.
    pub of_wide_sum: f32,
    /// For the sum of squares over 5 x 5 pixels.
    pub of_squares: f32,
    /// How much of the picture itself is in the best estimate of what stands still, in 1/256.
    pub least_weight: i32,
}

impl Limits {
    /// For residuals of this variance, with a background of this spread.
    pub fn new(variance: u32, spread: u32) -> Self {
        let variance = variance as f32;
        Self {
            of_sum: 1.0 / (MOVES_3X3 * variance),
            of_wide_sum: 1.0 / (SUM_5X5 * variance),
            of_squares: 1.0 / (MOVES_5X5 * variance),
            least_weight: ((256 * spread + (256 + spread) / 2) / (256 + spread)) as i32,
        }
    }

    /// The weight of the picture against its background in 1/256, and whether the pixel moves, where the
    /// residuals around it sum up to `sum` over 3 x 3 pixels and to `wide_sum` over 5 x 5, and their squares to `squares`
    /// over 5 x 5.
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

/// What is taken of each pixel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Weight of the picture itself, in 1/256.
    pub weights: Vec<i32>,
    /// Whether the pixel shows something that moves.
    pub moving: Vec<bool>,
}

impl Decision {
    /// By the residuals of a picture, which count 0 outside.
    pub fn of(
        residuals: &[i16],
        variance: u32,
        (width, height): (usize, usize),
        coefficients: &Coefficients,
    ) -> Self {
        if coefficients.len() == 0 {
            let pixels = width * height;
            return Self { weights: vec![256; pixels], moving: vec![false; pixels] };
        }
        Self::within(residuals, &Limits::new(variance, coefficients.spread()), (width, height))
    }

    /// By these limits.
    pub fn within(residuals: &[i16], limits: &Limits, (width, height): (usize, usize)) -> Self {
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

/// The square of a residual, as it counts.
#[inline(always)]
pub fn squared(residual: i32) -> i32 {
    let residual = residual.clamp(-RESIDUAL_MAX, RESIDUAL_MAX);
    residual * residual
}

/// The pixel without the noise of what stands still: the background, and so much of the picture in 1/256.
#[inline(always)]
pub fn denoised(pixel: u8, residual: i16, weight: i32) -> u8 {
    // The background and the weighted residual, in 1/256 of its unit.
    let background = 256 * (i32::from(pixel) * UNIT - i32::from(residual));
    ((background + i32::from(residual) * weight + 128 * UNIT) >> 12) as u8
}

/// For how many frames in a row a pixel has been moving.
#[inline(always)]
pub fn age(before: u8, moving: bool) -> u8 {
    if moving { before.saturating_add(1) } else { 0 }
}

/// What is remembered of a pixel: the background in place of something that moves, so that it leaves no trail; what
/// has been there for longer than the history reaches has become background.
#[inline(always)]
pub fn remembered(pixel: u8, residual: i16, age: u8, history: u8) -> u8 {
    if age == 0 || age > history {
        return pixel;
    }
    ((i32::from(pixel) * UNIT - i32::from(residual) + UNIT / 2) >> 4) as u8
}

/// The picture without its background as it is handed out: 128 units a grey level around 32768, and 1 more where
/// the pixel moves.
#[inline(always)]
pub fn whitened(residual: i16, moving: bool) -> u16 {
    (32768 + 8 * i32::from(residual)) as u16 | u16::from(moving)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residuals_are_in_sixteenths_of_a_grey_level() {
        // 100.5 of 2^14 a grey level; 101 - 100.5 is 8 sixteenths.
        assert_eq!(residual(101, (201 << 14) / 2), 8);
        assert_eq!((residual(0, 300 << 14), residual(255, -5)), (-255 * 16, 255 * 16));
    }

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
        // Everything moves: the picture's own noise is the limit, 1.5 levels with its background's.
        magnitudes.fill(0);
        magnitudes[700] = 1000;
        let limit = f64::from(variance(&[], &responses, 0)).sqrt();
        let same = f64::from(variance(&magnitudes, &responses, 1)).sqrt();
        assert!((limit - same).abs() < 1.0, "{limit} {same}");
        assert!((limit - 12.5 * 6.92).abs() < 2.0, "{limit}");
    }

    #[test]
    fn what_is_more_than_noise_is_taken_from_the_picture() {
        // A mean of three pictures: a quarter of the estimate is the newest.
        let limits = Limits::new(256 * 4, 85);
        assert_eq!(limits.least_weight, 64);
        assert_eq!(limits.assess(0, 0, 25 * 1024), (64, false));
        // Nine residuals of 4 standard deviations of their sum: 3 * 4 * 32.
        assert_eq!(limits.assess(3 * 4 * 32 + 1, 0, 0), (256, true));
        assert_eq!(limits.assess(0, -5 * 4 * 32 - 1, 0), (256, true));
        assert_eq!(limits.assess(0, 0, 66 * 1024), (256, true));
        let (weight, moves) = limits.assess(3 * 3 * 32 + 20, 0, 0);
        assert!(!moves && weight > 64 && weight < 256, "{weight}");
        assert_eq!(
            (denoised(100, 160, 256), denoised(100, 160, 0), denoised(100, 160, 128)),
            (100, 90, 95)
        );
        assert_eq!(
            (denoised(255, 0, 0), denoised(0, -4080, 0), denoised(255, 4080, 0)),
            (255, 255, 0)
        );
    }

    #[test]
    fn movers_are_kept_out_of_the_memory_until_they_stay() {
        assert_eq!((age(3, true), age(255, true), age(9, false)), (4, 255, 0));
        assert_eq!(remembered(200, 1600, 0, 5), 200);
        assert_eq!(remembered(200, 1600, 5, 5), 100);
        assert_eq!(remembered(200, 1600, 6, 5), 200);
        assert_eq!(
            (whitened(-4080, false), whitened(0, true), whitened(4080, true)),
            (128, 32769, 65409)
        );
    }
}
