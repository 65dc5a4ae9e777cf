//! Invalidates pixels in untextured areas unless evidence around them supports them.
//!
//! A pixel is *weak* if the 7 x 7 means of 3 x 3 pixels around it in the left image differ by less than 3/4
//! of a grey level plus twice the standard deviation of the noise ([`noise_threshold`], between
//! [`THRESHOLD_MIN`] and [`THRESHOLD_MAX`]). Means have a third of the noise, so that noise alone is no
//! texture, and faint texture is. Nothing can be matched at a weak pixel: its disparity comes from elsewhere,
//! through the paths and the prior. The right image is ignored, because matching an even surface with a
//! textured one has a high cost anyway.
//!
//! *Evidence* is the known pixels that are not weak. From each weak pixel, eight rays look for the nearest
//! evidence. The pixel is *supported* if it and the ends of two opposite rays lie on one surface. All other
//! weak pixels become unknown, and the supported ones get the lowest confidence.
//!
//! [`noise_threshold`]: crate::matching::texture::noise_threshold

use super::rays::{Met, RAYS, REACH_MAX, meet};
use crate::frame::{INVALID, Image, LEAST_CONFIDENCE, SUBPIXEL, clamped};

/// Side of the window of means, in pixels.
pub const SIDE: usize = 7;

/// Smallest noise threshold, for a standard deviation of 1/4 of a grey level. Rounding to whole levels is
/// noise, too, and video codecs leave blocks that differ by one level.
pub const THRESHOLD_MIN: u32 = 5;

/// Largest noise threshold, for a standard deviation of 5 grey levels. Stronger variation is mostly a pattern
/// of fine dots, which the threshold cannot tell from noise.
pub const THRESHOLD_MAX: u32 = 24;

/// Largest deviation from the line between the ends: one pixel or disparity >> this.
pub const DEVIATION_SHIFT: u32 = 5;

/// Confidence of a supported weak pixel.
pub const CONFIDENCE: u8 = LEAST_CONFIDENCE;

/// Treatment of pixels without evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Whether weak pixels become unknown even if they are supported.
    pub strict: bool,
}

/// Invalidates the unsupported weak pixels of a map, by the noise `threshold` of its left image.
pub fn apply(
    values: &mut [i16],
    confidence: Option<&mut Vec<u8>>,
    left: &Image,
    threshold: u32,
    how: Evidence,
) {
    let width = left.width();
    let at = |i: usize| (i % width, i / width);
    let sums: Vec<u16> = (0..values.len()).map(|i| sum(left, at(i))).collect();
    let size = (width, left.height());
    let weak = (0..values.len()).map(|i| is_weak(range(&sums, size, at(i)), threshold));
    let evidence: Vec<i16> =
        weak.zip(&*values).map(|(weak, &value)| if weak { INVALID } else { value }).collect();
    let mut confidence = confidence.map(|confidence| confidence.iter_mut());
    for i in 0..values.len() {
        let sure = confidence.as_mut().and_then(Iterator::next);
        if evidence[i] != INVALID || values[i] == INVALID {
            continue;
        }
        let met = || RAYS.map(|ray| meet(&evidence, left, at(i), ray, REACH_MAX));
        let stays = !how.strict && is_supported(values[i], met());
        values[i] = if stays { values[i] } else { INVALID };
        if let Some(sure) = sure {
            *sure = if stays { CONFIDENCE } else { 0 };
        }
    }
}

/// Positions within `radius` of `at`, clamped to the image.
fn around(at: usize, radius: usize, len: usize) -> impl Iterator<Item = usize> + Clone {
    (0..=2 * radius).map(move |i| clamped((at + i) as i64 - radius as i64, len))
}

/// Sum of the grey levels of the 3 x 3 pixels around (x, y).
fn sum(image: &Image, (x, y): (usize, usize)) -> u16 {
    let columns = around(x, 1, image.width());
    let rows = around(y, 1, image.height()).map(|y| image.row(y));
    rows.flat_map(|row| columns.clone().map(|x| u16::from(row[x]))).sum()
}

/// Range (maximum minus minimum) of the sums in the window around (x, y).
fn range(sums: &[u16], (width, height): (usize, usize), (x, y): (usize, usize)) -> u16 {
    let columns = around(x, SIDE / 2, width);
    let rows = around(y, SIDE / 2, height).map(|y| &sums[y * width..][..width]);
    let sums = rows.flat_map(|row| columns.clone().map(|x| row[x]));
    sums.clone().max().unwrap_or(0) - sums.min().unwrap_or(0)
}

/// Reports whether sums of nine grey levels with this range are within the noise. `threshold` is 4 + 4 sigma,
/// so the means differ by less than 3/4 + 2 sigma.
#[inline(always)]
pub fn is_weak(range: u16, threshold: u32) -> bool {
    4 * u32::from(range) < 9 * (2 * threshold.clamp(THRESHOLD_MIN, THRESHOLD_MAX) - 5)
}

/// Reports whether the pixels at the ends of its rays support a disparity. `met` is in the order of [`RAYS`].
fn is_supported(value: i16, met: [Option<Met>; 8]) -> bool {
    let steps = |met: Option<Met>| met.map_or((INVALID, 0), |met| (met.value, met.distance as i16));
    let (own, met) = (i32::from(value), met.map(steps));
    (0..4).any(|ray| is_between(own, met[ray], met[7 - ray]))
}

/// Reports whether a disparity lies on one surface with the ends (value, distance) of two opposite rays: on
/// the line between them, within [`DEVIATION_SHIFT`]. An end may be [`INVALID`], and then the result is
/// false.
#[inline(always)]
pub fn is_between(own: i32, a: (i16, i16), b: (i16, i16)) -> bool {
    let [(a, to_a), (b, to_b)] = [a, b].map(|(value, to)| (i32::from(value), i32::from(to)));
    let apart = to_a + to_b;
    // Both sides are multiplied by the distance between the ends.
    let off = ((own - a) * apart - (b - a) * to_a).abs();
    let tolerance = SUBPIXEL.max(own.abs() >> DEVIATION_SHIFT) * apart;
    (a != i32::from(INVALID)) & (b != i32::from(INVALID)) & (off <= tolerance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::{Params, match_pair};

    const X: i16 = INVALID;

    #[test]
    fn noise_is_no_texture_and_what_is_a_little_more_is() {
        // Sums of nine differ by less than 9 (3/4 + 2 sigma): 11.25 (sigma 1/4 or less), 15.75
        // (1/2) and 96.75 (5 or more).
        for (threshold, limit) in [(4, 12), (5, 12), (6, 16), (24, 97), (25, 97), (2000, 97)] {
            assert!(is_weak(limit - 1, threshold) && !is_weak(limit, threshold), "{threshold}");
        }
        // One brighter pixel (by 7 levels) changes all sums within 3 pixels of a sum that contains it.
        let image = Image::from_fn(20, 9, |x, y| if (x, y) == (9, 4) { 57 } else { 50 });
        let sums: Vec<u16> = (0..180).map(|i| sum(&image, (i % 20, i / 20))).collect();
        let ranges: Vec<u16> = (0..20).map(|x| range(&sums, (20, 9), (x, 4))).collect();
        let expected = (0..20).map(|x| if (5..=13).contains(&x) { 7 } else { 0 });
        assert_eq!(ranges, expected.collect::<Vec<u16>>());
        assert_eq!((sum(&image, (0, 0)), sum(&image, (8, 3))), (450, 457));
    }

    #[test]
    fn lines_between_ends_are_met_within_a_pixel_or_a_part() {
        let none = (INVALID, 0);
        // 3 of 4 steps from 160 to 200: 190.
        let between = |own| is_between(own, (160, 3), (200, 1));
        assert_eq!([173, 174, 190, 206, 207].map(between), [false, true, true, true, false]);
        // 96 of 3104 are less than 1/32 of that, 97; 97 of 3103 are more, 96.
        let far = |own| is_between(own, (3200, 5), (3200, 9));
        assert_eq!([3103, 3104, 3303, 3304].map(far), [false, true, true, false]);
        assert!(!is_between(160, (160, 1), none) && !is_between(160, none, none));
    }

    /// Filters a row of texture, 24 even columns and texture, with these disparities.
    fn row(values: [i16; 44], strict: bool) -> (Vec<i16>, Vec<u8>) {
        let left = Image::from_fn(44, 1, |x, _| match x {
            10..34 => 90,
            _ => (x * 83 % 200) as u8,
        });
        let (mut values, mut sure) = (values.to_vec(), vec![77; 44]);
        apply(&mut values, Some(&mut sure), &left, 4, Evidence { strict });
        (values, sure)
    }

    #[test]
    fn what_lies_between_evidence_of_its_surface_stays_with_the_lowest_confidence() {
        // Four columns of the even part are within reach of the texture.
        let known = |x: usize| !(14..30).contains(&x);
        let plane: [i16; 44] = std::array::from_fn(|x| 100 + 3 * x as i16);
        let (values, sure) = row(plane, false);
        assert_eq!(values, plane);
        let expected = |x: usize| if known(x) { 77 } else { CONFIDENCE };
        assert_eq!(sure, (0..44).map(expected).collect::<Vec<_>>());
        let (values, sure) = row(plane, true);
        assert!((0..44).all(|x| values[x] == if known(x) { plane[x] } else { X }));
        assert!((0..44).all(|x| sure[x] == if known(x) { 77 } else { 0 }));
    }

    #[test]
    fn what_is_nearer_than_its_surroundings_does_not_come_out_of_nothing() {
        // The texture to the left is a near object whose disparity has spread over the even part up to the
        // right end.
        let spread = std::array::from_fn(|x| if x < 30 { 500 } else { 100 });
        let (values, _) = row(spread, false);
        // Only pixels near the object, with its edge in their windows, keep the disparity.
        let expected = (0..44).map(|x| match x {
            0..=13 => 500,
            14..=29 => X,
            _ => 100,
        });
        assert_eq!(values, expected.collect::<Vec<_>>());
        // Without evidence at the other side there is no surface either.
        let alone = std::array::from_fn(|x| if x < 30 { 500 } else { X });
        assert_eq!(row(alone, false).0[14..], [X; 30]);
    }

    #[test]
    fn constant_pictures_know_nothing() {
        let params = Params { confidence: Some(0), ..Params::default() };
        for grey in [0, 128, 255] {
            let even = || Image::from_fn(70, 40, |_, _| grey);
            let map = match_pair(&even(), &even(), &params);
            assert!(map.values().iter().all(|&value| value == INVALID), "grey {grey}");
        }
    }
}
