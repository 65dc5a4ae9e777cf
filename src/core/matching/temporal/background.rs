//! The background of an image and the residual: the image less its background.

use super::coefficients::{COEFFICIENT_BITS, Coefficients};
use super::layout::{Header, Layout};
use crate::frame::{Image, clamped};
use crate::matching::residuals::{RESIDUAL_MAX, UNIT, variance};
use crate::matching::texture::responses;

/// Residual of one view: its image less the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residual {
    /// Image minus background in [`UNIT`]s, one value per pixel; zeros without remembered images.
    pub values: Vec<i16>,
    /// Noise variance of the residual in 1/256 squared grey levels; without history, the image's.
    pub variance: u32,
}

impl Residual {
    /// Computes the residual of one view's image.
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
                    value * i32::from(pixel_at(pixels, layout.size, x, y, offset))
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

/// Returns the pixel of a remembered image that corresponds to (x, y) if that image is shifted by `offset`
/// whole pixels. Coordinates outside the image are clamped.
fn pixel_at(
    pixels: &[u8],
    (width, height): (usize, usize),
    x: usize,
    y: usize,
    offset: [i32; 2],
) -> u8 {
    let column = clamped(x as i64 - i64::from(offset[0]), width);
    pixels[clamped(y as i64 - i64::from(offset[1]), height) * width + column]
}

/// Residual of a pixel in [`UNIT`]s; `sum` is the background as a sum weighted with the coefficients.
#[inline(always)]
pub fn residual(pixel: u8, sum: i32) -> i16 {
    const SHIFT: u32 = COEFFICIENT_BITS - 4;
    let background = (sum + (1 << (SHIFT - 1))) >> SHIFT;
    (i32::from(pixel) * UNIT - background.clamp(0, 255 * UNIT)) as i16
}

/// Denoised pixel: the background plus `weight`/256 of the residual.
#[inline(always)]
pub fn denoise(pixel: u8, residual: i16, weight: i32) -> u8 {
    // The background and the weighted residual, in 1/256 of its unit.
    let background = 256 * (i32::from(pixel) * UNIT - i32::from(residual));
    ((background + i32::from(residual) * weight + 128 * UNIT) >> 12) as u8
}

/// Number of consecutive frames in which a pixel has been moving.
#[inline(always)]
pub fn age(before: u8, moving: bool) -> u8 {
    if moving { before.saturating_add(1) } else { 0 }
}

/// Returns the grey level to remember. A moving pixel is replaced by its background, so that it leaves no
/// trail, until it has moved for more than `history` frames and counts as background itself.
#[inline(always)]
pub fn remember(pixel: u8, residual: i16, age: u8, history: u8) -> u8 {
    if age == 0 || age > history {
        return pixel;
    }
    ((i32::from(pixel) * UNIT - i32::from(residual) + UNIT / 2) >> 4) as u8
}

/// Whitened pixel as output: 32768 plus 128 units per grey level of residual; the lowest bit marks motion.
#[inline(always)]
pub fn whiten(residual: i16, moving: bool) -> u16 {
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
    fn the_weight_mixes_background_and_picture() {
        assert_eq!(
            (denoise(100, 160, 256), denoise(100, 160, 0), denoise(100, 160, 128)),
            (100, 90, 95)
        );
        assert_eq!(
            (denoise(255, 0, 0), denoise(0, -4080, 0), denoise(255, 4080, 0)),
            (255, 255, 0)
        );
    }

    #[test]
    fn movers_are_kept_out_of_the_memory_until_they_stay() {
        assert_eq!((age(3, true), age(255, true), age(9, false)), (4, 255, 0));
        assert_eq!(remember(200, 1600, 0, 5), 200);
        assert_eq!(remember(200, 1600, 5, 5), 100);
        assert_eq!(remember(200, 1600, 6, 5), 200);
        assert_eq!(
            (whiten(-4080, false), whiten(0, true), whiten(4080, true)),
            (128, 32769, 65409)
        );
    }
}
