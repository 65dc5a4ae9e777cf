//! The background of an image and the residual: the image less its background.

use super::coefficients::{COEFFICIENT_BITS, Coefficients};
use super::layout::{Header, Layout};
use crate::core::frame::{Image, clamped};
use crate::matching::residuals::{RESIDUAL_MAX, UNIT, variance};
use crate::matching::texture::responses;

/// Residual of one view: its image less the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residual {
    /// The image less its background in [`UNIT`]s, a number a pixel; zeros where nothing is
    /// remembered.
    pub values: Vec<i16>,
    /// The variance of its noise, in 1/256 squared grey levels; of the image's own where nothing is
    /// remembered.
    pub variance: u32,
}

impl Residual {
    /// Of one view's image.
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

/// The pixel of a remembered image that shows what (x, y) shows, where that image is moved by
/// `offset` whole pixels; columns and rows outside are the nearest inside.
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

/// A pixel less its background, of which this is the sum with the coefficients.
#[inline(always)]
pub fn residual(pixel: u8, sum: i32) -> i16 {
    const SHIFT: u32 = COEFFICIENT_BITS - 4;
    let background = (sum + (1 << (SHIFT - 1))) >> SHIFT;
    (i32::from(pixel) * UNIT - background.clamp(0, 255 * UNIT)) as i16
}

/// The pixel without the noise of what stands still: the background, and that much of the image in
/// 1/256.
#[inline(always)]
pub fn denoise(pixel: u8, residual: i16, weight: i32) -> u8 {
    // The background and the weighted residual, in 1/256 of its unit.
    let background = 256 * (i32::from(pixel) * UNIT - i32::from(residual));
    ((background + i32::from(residual) * weight + 128 * UNIT) >> 12) as u8
}

/// For how many frames in a row a pixel has been moving.
#[inline(always)]
pub fn age(before: u8, moving: bool) -> u8 {
    if moving { before.saturating_add(1) } else { 0 }
}

/// Returns what is remembered of a pixel: the background in place of something that moves, so that
/// it leaves no trail; what has been there for longer than the history reaches has become
/// background.
#[inline(always)]
pub fn remember(pixel: u8, residual: i16, age: u8, history: u8) -> u8 {
    if age == 0 || age > history {
        return pixel;
    }
    ((i32::from(pixel) * UNIT - i32::from(residual) + UNIT / 2) >> 4) as u8
}

/// The image without its background as it is handed out: 128 units a grey level around 32768, and 1
/// more where the pixel moves.
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
