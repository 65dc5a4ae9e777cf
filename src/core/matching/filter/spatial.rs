//! Smoothing of surfaces: removes ripples and hatching, keeps slants and edges.
//!
//! Along its row, then along its column, a pixel becomes the mean of itself and of *pairs*: two pixels
//! equally far from it in opposite directions. The mean of a pair on a plane is the plane's value at the
//! pixel, so slanted planes do not change. A pair counts if both pixels are known, its mean differs from the
//! pixel by at most 1/2 px, and both have about the grey level of the pixel. So a pair does not reach across
//! an edge of the image or of the map.
//!
//! No pixel becomes known or unknown, and each of the two steps changes it by at most 1/2 px.

use crate::frame::{INVALID, Image, SUBPIXEL};

/// Largest reach in pixels.
pub const REACH_MAX: u8 = 16;
/// Largest sum of the differences between the two pixels of a pair and the centre, in 1/16 px.
pub const PAIR_STEP_MAX: i16 = SUBPIXEL as i16;
/// Largest difference in grey levels between a pixel of a pair and the centre. Texture and noise of a surface
/// stay below; most edges between objects do not.
pub const GREY_STEP_MAX: u8 = 32;

/// Smoothing of surfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spatial {
    /// Distance of the farthest pair from its pixel (1 to [`REACH_MAX`]).
    pub reach: u8,
}

/// Smooths a map of the left image.
pub fn apply(values: &[i16], left: &Image, how: Spatial) -> Vec<i16> {
    let (width, height) = (left.width(), left.height());
    let in_rows = along(values, left, how, (1, width), |i| i % width);
    along(&in_rows, left, how, (width, height), |i| i / width)
}

/// Smooths along rows or columns: pixels are `step` apart; `place` is a pixel's place on its line.
fn along(
    values: &[i16],
    left: &Image,
    how: Spatial,
    (step, len): (usize, usize),
    place: impl Fn(usize) -> usize,
) -> Vec<i16> {
    let grey = left.pixels();
    let smoothed = (0..values.len()).map(|i| {
        let reach = usize::from(how.reach).min(place(i)).min(len - 1 - place(i));
        let pairs = (1..=reach).map(|k| [i - k * step, i + k * step]);
        let steps = pairs.filter_map(|pair| {
            let alike = |&j: &usize| grey[i].abs_diff(grey[j]) <= GREY_STEP_MAX;
            pair_step(values[i], pair.map(|j| values[j])).filter(|_| pair.iter().all(alike))
        });
        let (sum, pairs) = steps.fold((0, 0), |(sum, pairs), step| (sum + step, pairs + 1));
        if values[i] == INVALID { INVALID } else { values[i] + mean_step(sum, pairs) }
    });
    smoothed.collect()
}

/// Sum of the differences between the pixels of a pair and the centre, if they lie on one surface.
pub fn pair_step(own: i16, pair: [i16; 2]) -> Option<i16> {
    let is_known = own != INVALID && pair.iter().all(|&value| value != INVALID);
    let step: i32 = pair.iter().map(|&value| i32::from(value) - i32::from(own)).sum();
    (is_known && step.abs() <= i32::from(PAIR_STEP_MAX)).then_some(step as i16)
}

/// Mean difference between a pixel and all pixels that count: itself and its `pairs`. Rounded to the nearest;
/// there are no halves, because the number of pixels is odd.
fn mean_step(sum: i16, pairs: i16) -> i16 {
    (sum + pairs).div_euclid(2 * pairs + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::params::DISPARITY_LIMITS;

    const X: i16 = INVALID;

    /// Smooths a row, and the same values as a column; both results must agree.
    fn line(values: &[i16], grey: &[u8], reach: u8) -> Vec<i16> {
        let smooth = |width, height| {
            let left = Image::from_vec(width, height, grey.to_vec());
            apply(values, &left, Spatial { reach })
        };
        let (row, column) = (smooth(values.len(), 1), smooth(1, values.len()));
        assert_eq!(row, column);
        row
    }

    fn even(values: &[i16], reach: u8) -> Vec<i16> {
        line(values, &vec![90; values.len()], reach)
    }

    #[test]
    fn slants_stay_and_ripples_become_means() {
        let slant: Vec<i16> = (-10..10).map(|x| 30 * x).collect();
        assert_eq!(even(&slant, REACH_MAX), slant);
        // (6 + 0 + 0) / 3 in the middle; 0 + 6 / 3 next to it, with its second pair outside.
        assert_eq!(even(&[0, 0, 6, 0, 0], 1), [0, 2, 2, 2, 0]);
        // The middle of five: 6 / 5 is nearest to 1.
        assert_eq!(even(&[0, 0, 6, 0, 0], 2), [0, 2, 1, 2, 0]);
        // -4 / 3 and -5 / 3 around zero, rounded to the nearest.
        assert_eq!(even(&[0, -4, 0], 1), [0, -1, 0]);
        assert_eq!(even(&[0, -5, 0], 1), [0, -2, 0]);
    }

    #[test]
    fn pairs_whose_mean_is_more_than_half_a_pixel_off_do_not_count() {
        assert_eq!(even(&[0, 8, 0], 1), [0, 3, 0]); // 8 - 16 / 3.
        assert_eq!(even(&[0, 9, 0], 1), [0, 9, 0]);
        assert_eq!(even(&[0, -8, 0], 1), [0, -3, 0]);
        assert_eq!(even(&[0, 0, 17], 1), [0, 0, 17]);
        // The near pair lies across the step, the far one does not exist on either side of it.
        let step = [0, 0, 0, 100, 100, 100];
        assert_eq!(even(&step, REACH_MAX), step);
        // A farther pair counts though a nearer one does not: (0 + 3 + 3) / 3.
        assert_eq!(even(&[3, 99, 0, 99, 3], 2)[2], 2);
    }

    #[test]
    fn edges_of_the_image_are_not_crossed() {
        let values = [0, 0, 6, 0, 0];
        assert_eq!(line(&values, &[90, 90, 90, 122, 90], 1), [0, 2, 2, 2, 0]);
        assert_eq!(line(&values, &[90, 90, 90, 123, 90], 1), [0, 2, 6, 0, 0]);
        assert_eq!(line(&values, &[90, 57, 90, 90, 90], 1), [0, 0, 6, 2, 0]);
        // A pair beyond a thin line counts.
        assert_eq!(line(&values, &[90, 90, 90, 255, 90], 2), [0, 2, 2, 0, 0]);
    }

    #[test]
    fn unknown_pixels_stay_unknown_and_their_pairs_do_not_count() {
        assert_eq!(even(&[0, X, 6, 0, 0], 2), [0, X, 2, 2, 0]);
        assert_eq!(even(&[X, X, X], 2), [X; 3]);
        assert_eq!(even(&[6], 9), [6]);
    }

    #[test]
    fn rows_come_before_columns() {
        let values = [
            0, 0, 0, //
            0, 12, 12, //
            0, 0, 0,
        ];
        // In its row the centre is 12 - 12 / 3 = 8, in its column then 8 - 16 / 3 = 3. The other
        // way round, the pair of the column would not count.
        let left = Image::from_vec(3, 3, vec![7; 9]);
        assert_eq!(apply(&values, &left, Spatial { reach: 3 })[4], 3);
    }

    #[test]
    fn no_values_are_too_far_apart() {
        let [least, most] =
            [DISPARITY_LIMITS.0, DISPARITY_LIMITS.1].map(|px| (SUBPIXEL * px) as i16);
        for values in [[least, most, least], [most, least, most], [least, 100, most]] {
            assert_eq!(even(&values, 1), values);
        }
    }
}
