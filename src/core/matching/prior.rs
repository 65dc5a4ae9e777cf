//! Coarse-to-fine prior: at textures below the noise, the map of the half-size images predicts the disparity.

use crate::frame::{DisparityMap, DisparityRange, INVALID, SUBPIXEL, clamped};
use crate::matching::window::UNIT;

/// Coarse-to-fine prior.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prior {
    /// Number of coarser levels, each half the size of the previous: 1 to [`LEVELS_MAX`]. Levels that are too
    /// small for matching are omitted.
    pub levels: u8,
    /// Cost of a disparity that is [`REACH`] px or more from the coarse one, at untextured pixels: 1 to
    /// [`STRENGTH_MAX`].
    pub strength: u8,
}

/// Largest number of levels.
pub const LEVELS_MAX: u8 = 3;

/// Largest strength.
pub const STRENGTH_MAX: u8 = 32;

/// Beyond this distance in px, all disparities are equally unlikely.
pub const REACH: u32 = 8;

/// Largest variation of a coarse map within 3 x 3 pixels, in 1/16 px. The prior is off at pixels with more.
pub const VARIATION_MAX: i32 = SUBPIXEL;

impl Prior {
    /// Returns the cost per pixel of distance from the coarse disparity, in 1/512, for a texture with this
    /// range of grey levels. The cost is full if the range is below the noise threshold, and falls to 0 at
    /// twice the threshold.
    pub fn weight(self, range: u8, threshold: u32) -> u16 {
        let most = UNIT / REACH * u32::from(self.strength);
        let weak = (2 * threshold).saturating_sub(u32::from(range)).min(threshold);
        ((most * weak + threshold / 2) / threshold) as u16
    }
}

/// Candidates of the next coarser level: half of these, rounded down.
pub fn half_range(range: DisparityRange) -> DisparityRange {
    let (min, max) = (range.min.div_euclid(2), range.max().div_euclid(2));
    DisparityRange { min, count: (max - min + 1) as usize }
}

/// Returns the disparity, in whole px, that the map of the half-size images predicts at pixel (x,
/// y); `None` if that map is invalid or varies there.
pub fn expect(coarse: &DisparityMap, x: usize, y: usize) -> Option<i32> {
    let (width, height, values) = (coarse.width(), coarse.height(), coarse.values());
    let (x, y) = (x / 2, y / 2);
    let centre = i32::from(values[y * width + x]);
    for (down, across) in (-1..=1).flat_map(|down| [-1, 0, 1].map(|across| (down, across))) {
        let row = clamped(y as i64 + down, height) * width;
        let value = values[row + clamped(x as i64 + across, width)];
        if value == INVALID || (i32::from(value) - centre).abs() > VARIATION_MAX {
            return None;
        }
    }
    // Twice the coarse disparity, rounded to the nearest (halves upwards).
    Some((2 * centre + SUBPIXEL / 2).div_euclid(SUBPIXEL))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Pooled;

    fn map(width: usize, height: usize, values: Vec<i16>) -> DisparityMap {
        let range = DisparityRange { min: -8, count: 32 };
        DisparityMap::new(width, height, range, Pooled::unpooled(values))
    }

    #[test]
    fn a_coarse_map_speaks_where_it_is_known_and_even() {
        let mut values = vec![20i16; 5 * 4];
        assert_eq!(expect(&map(5, 4, values.clone()), 9, 7), Some(3)); // 40 / 16 = 2.5, upwards.
        values[2 * 5 + 4] = 36; // 16 more: still even.
        assert_eq!(expect(&map(5, 4, values.clone()), 9, 7), Some(3));
        assert_eq!(expect(&map(5, 4, values.clone()), 8, 4), Some(5)); // 72 / 16 = 4.5, upwards.
        values[2 * 5 + 4] = 37;
        assert_eq!(expect(&map(5, 4, values.clone()), 9, 7), None);
        assert_eq!(expect(&map(5, 4, values.clone()), 5, 7), Some(3));
        values[0] = INVALID;
        assert_eq!(expect(&map(5, 4, values.clone()), 3, 3), None);
        assert_eq!(expect(&map(5, 4, values), 4, 0), Some(3));
        assert_eq!(expect(&map(1, 1, vec![-21]), 1, 1), Some(-3)); // -42 / 16 = -2.6.
        assert_eq!(expect(&map(1, 1, vec![-20]), 1, 1), Some(-2)); // -40 / 16 = -2.5, upwards.
    }

    #[test]
    fn the_prior_counts_where_texture_is_below_the_noise() {
        let prior = Prior { levels: 2, strength: 3 };
        // 512 / 8 * 3 = 192 below 10; (192 * 5 + 5) / 10 = 96 at 15; (192 + 5) / 10 = 19 at 19.
        let weights = [0u8, 10, 15, 19, 20, 255].map(|range| prior.weight(range, 10));
        assert_eq!(weights, [192, 192, 96, 19, 0, 0]);
    }

    #[test]
    fn coarser_levels_have_half_the_candidates() {
        let range = |min, count| DisparityRange { min, count };
        assert_eq!(half_range(range(0, 64)), range(0, 32));
        assert_eq!(half_range(range(-3, 6)), range(-2, 4)); // -3 to 2 become -2 to 1.
        assert_eq!(half_range(range(5, 1)), range(2, 1));
    }
}
