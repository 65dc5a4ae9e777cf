//! Coarse-to-fine prior: at textures below the noise, the map of the half-size images predicts the disparity.

use crate::frame::{DisparityMap, DisparityRange, SUBPIXEL, clamped};
use crate::matching::filter::spatial::pair_step;
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

/// Farthest pixels of a coarse map that are compared with a plane.
pub const BEND_REACH: usize = 2;

/// Largest deviation of a coarse map from a plane around a pixel, in 1/16 px. Nothing is expected at pixels
/// with more.
pub const BEND_MAX: i16 = 6;

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

/// Smallest and largest value of a prior map that counts, by the candidates of the half-size images.
pub fn limits(range: DisparityRange) -> [i16; 2] {
    [range.min, range.max()].map(|limit| (limit * SUBPIXEL) as i16)
}

/// Replaces the map of the half-size images by the prior map of the pair, where that is known and within
/// [`limits`].
pub fn replace(coarse: &mut [i16], given: &[i16], [least, most]: [i16; 2]) {
    let known = coarse.iter_mut().zip(given).filter(|(_, given)| (least..=most).contains(given));
    known.for_each(|(value, &given)| *value = given);
}

/// Returns the disparity, in whole px, that the map of the half-size images predicts at every pixel of images
/// of `size`, row by row. It predicts one where it is known and flat (`is_flat`).
pub fn expected(coarse: &DisparityMap, (width, height): (usize, usize)) -> Vec<Option<i32>> {
    let at = |i: usize| (i % width / 2, i / width / 2);
    (0..width * height).map(|i| expect(coarse, at(i))).collect()
}

fn expect(coarse: &DisparityMap, (x, y): (usize, usize)) -> Option<i32> {
    let value = i32::from(coarse.values()[y * coarse.width() + x]);
    // Twice the coarse disparity, rounded to the nearest (halves upwards).
    is_flat(coarse, (x, y)).then(|| (2 * value + SUBPIXEL / 2).div_euclid(SUBPIXEL))
}

/// Reports whether a map lies within [`BEND_MAX`] of a plane around (x, y): in each of the four directions,
/// the two pixels one step away, and those two steps away ([`BEND_REACH`]), must be known, and their sum must
/// be about twice the value of the pixel. Slanted planes pass, edges do not.
fn is_flat(map: &DisparityMap, (x, y): (usize, usize)) -> bool {
    let (width, height) = (map.width(), map.height());
    let at = |dx: i64, dy: i64| {
        let row = clamped(y as i64 + dy, height) * width;
        map.values()[row + clamped(x as i64 + dx, width)]
    };
    let mut pairs = (1..=BEND_REACH as i64)
        .flat_map(|k| [(k, 0), (0, k), (k, k), (k, -k)])
        .map(|(dx, dy)| [at(-dx, -dy), at(dx, dy)]);
    pairs.all(|pair| pair_step(at(0, 0), pair).is_some_and(|step| step.abs() <= BEND_MAX))
}

/// Returns the candidate at the pixel before on a path, relative to the candidate at the pixel, that lies on
/// the same surface: 1 or -1 if the expected disparities of the two differ by that, else 0.
pub fn slant(before: Option<i32>, here: Option<i32>) -> i32 {
    let step = before.zip(here).map_or(0, |(before, here)| before - here);
    if step.abs() == 1 { step } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::INVALID;
    use crate::pool::Pooled;

    fn map(width: usize, height: usize, values: Vec<i16>) -> DisparityMap {
        let range = DisparityRange { min: -8, count: 32 };
        DisparityMap::new(width, height, range, Pooled::unpooled(values))
    }

    #[test]
    fn a_coarse_map_speaks_where_it_is_known_and_flat() {
        let at = |values: Vec<i16>, width: usize, (x, y): (usize, usize)| {
            let height = values.len() / width;
            expected(&map(width, height, values), (2 * width, 2 * height))[y * 2 * width + x]
        };
        let mut values = vec![20i16; 7 * 6];
        assert_eq!(at(values.clone(), 7, (13, 11)), Some(3)); // 40 / 16 = 2.5, upwards.
        values[2 * 7 + 4] = 26; // 6 more: still flat.
        assert_eq!(at(values.clone(), 7, (6, 4)), Some(3));
        assert_eq!(at(values.clone(), 7, (4, 4)), Some(3));
        assert_eq!(at(values.clone(), 7, (8, 5)), None); // Twice 6 below it on either side.
        values[2 * 7 + 4] = 27;
        assert_eq!(at(values.clone(), 7, (6, 4)), None);
        assert_eq!(at(values.clone(), 7, (4, 8)), None); // Two steps along the diagonal.
        assert_eq!(at(values.clone(), 7, (2, 4)), Some(3)); // Three steps away.
        values[2 * 7 + 4] = INVALID;
        assert_eq!(at(values, 7, (4, 4)), None);
        // A slant of 1 px a pixel.
        let slant: Vec<i16> = (0..7 * 6).map(|i| 16 * (i % 7) - 16 * (i / 7)).collect();
        assert_eq!(at(slant.clone(), 7, (6, 4)), Some(2));
        assert_eq!(at(slant, 7, (2, 4)), None); // The border repeats its pixels, so they bend.
        assert_eq!(at(vec![-21], 1, (1, 1)), Some(-3)); // -42 / 16 = -2.6.
        assert_eq!(at(vec![-20], 1, (1, 1)), Some(-2)); // -40 / 16 = -2.5, upwards.
    }

    #[test]
    fn prior_maps_replace_what_they_know_within_the_range() {
        let limits = limits(DisparityRange { min: -1, count: 3 });
        let mut coarse = [5, 6, INVALID, 7, 8, 9];
        replace(&mut coarse, &[INVALID, -16, 16, 17, -17, 0], limits);
        assert_eq!(coarse, [5, -16, 16, 7, 8, 0]);
    }

    #[test]
    fn surfaces_slant_by_one_candidate_at_most() {
        let steps = [(4, 3), (3, 4), (3, 3), (5, 3), (-1, 0)].map(|(a, b)| slant(Some(a), Some(b)));
        assert_eq!(steps, [1, -1, 0, 0, -1]);
        assert_eq!([slant(None, Some(1)), slant(Some(1), None), slant(None, None)], [0; 3]);
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
