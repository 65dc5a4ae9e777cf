//! What happens to the winners, in this order: uniqueness, sub-pixel, left-right check, pixels that a
//! camera has not seen, median.
//!
//! Values are disparities in 1/16 px, one a pixel, row by row; [`INVALID`] where a check failed.

use crate::frame::{INVALID, Image, SUBPIXEL, clamped};
use crate::matching::aggregate::Sums;
use crate::matching::winner::right_winners;

/// Invalidates pixels whose winner is hardly better than another candidate: some d' with
/// abs(d' - d) > 1 has S(d') * (100 - percent) < S(d) * 100.
pub fn uniqueness(sums: &Sums, winners: &[usize], percent: u8, values: &mut [i16]) {
    for_each_pixel(sums, winners, values, |s, winner, value| {
        let rivals = s.iter().enumerate().filter(|&(k, _)| k.abs_diff(winner) > 1);
        let rival = rivals.map(|(_, &sum)| u32::from(sum)).min();
        if rival.is_some_and(|r| r * (100 - u32::from(percent)) < u32::from(s[winner]) * 100) {
            *value = INVALID;
        }
    });
}

/// Adds the vertex of the parabola through the winner's sum and its two neighbours', in 1/16 px:
/// floor((16 (a - c) + den) / (2 den)) with den = a + c - 2 b; nothing where den is 0 or at the ends
/// of the range.
pub fn subpixel(sums: &Sums, winners: &[usize], values: &mut [i16]) {
    for_each_pixel(sums, winners, values, |s, winner, value| {
        if winner == 0 || winner + 1 == s.len() || *value == INVALID {
            return;
        }
        *value += parabola_offset(s[winner - 1], s[winner], s[winner + 1]);
    });
}

/// The vertex of the parabola through `a`, `b`, `c` at -1, 0, 1, in 1/16, rounded to the nearest
/// (halves upwards); within -8 to 8 where `b` is the smallest.
pub fn parabola_offset(a: u16, b: u16, c: u16) -> i16 {
    let (a, b, c) = (i32::from(a), i32::from(b), i32::from(c));
    let den = a + c - 2 * b;
    if den == 0 { 0 } else { (SUBPIXEL * (a - c) + den).div_euclid(2 * den) as i16 }
}

/// Invalidates pixels that the right picture would match elsewhere: the winner differs from that of
/// the right picture's column x - d by more than `limit` pixels. A column outside the picture is
/// checked as the nearest inside; a column without any candidate fails.
pub fn left_right(
    sums: &Sums,
    winners: &[usize],
    min_disparity: i32,
    limit: u16,
    values: &mut [i16],
) {
    let right = right_winners(sums, min_disparity);
    for (i, value) in values.iter_mut().enumerate() {
        let (x, row) = (i % sums.width, i - i % sums.width);
        let match_x = x as i64 - i64::from(min_disparity) - winners[i] as i64;
        let match_x = clamped(match_x, sums.width);
        let agrees =
            right[row + match_x].is_some_and(|k| k.abs_diff(winners[i]) <= usize::from(limit));
        if !agrees {
            *value = INVALID;
        }
    }
}

/// Invalidates pixels that the left camera has not seen, or whose match the right one has not: the
/// column x - d of the winner, or the nearest inside the picture.
pub fn unseen(
    left: &Image,
    right: &Image,
    winners: &[usize],
    min_disparity: i32,
    values: &mut [i16],
) {
    let width = left.width();
    for (i, value) in values.iter_mut().enumerate() {
        let (x, row) = (i % width, i - i % width);
        let match_x = x as i64 - i64::from(min_disparity) - winners[i] as i64;
        let match_at = row + clamped(match_x, width);
        let seen =
            |image: &Image, at: usize| image.valid_mask().is_none_or(|mask| mask.pixels()[at]);
        if !seen(left, i) || !seen(right, match_at) {
            *value = INVALID;
        }
    }
}

/// The (lower) median over the valid pixels of the square window around each valid pixel; window
/// pixels outside the picture do not count. Invalid pixels stay invalid.
pub fn median(width: usize, height: usize, values: &[i16], radius: usize) -> Vec<i16> {
    let mut window = Vec::with_capacity((2 * radius + 1).pow(2));
    let filtered = (0..width * height).map(|i| {
        if values[i] == INVALID {
            return INVALID;
        }
        let (x, y) = (i % width, i / width);
        window.clear();
        for wy in y.saturating_sub(radius)..=(y + radius).min(height - 1) {
            for wx in x.saturating_sub(radius)..=(x + radius).min(width - 1) {
                window.push(values[wy * width + wx]);
            }
        }
        window.retain(|&v| v != INVALID);
        window.sort_unstable();
        window[(window.len() - 1) / 2]
    });
    filtered.collect()
}

/// Calls `refine` with every pixel's sums, winner and value.
fn for_each_pixel(
    sums: &Sums,
    winners: &[usize],
    values: &mut [i16],
    mut refine: impl FnMut(&[u16], usize, &mut i16),
) {
    for (i, value) in values.iter_mut().enumerate() {
        refine(sums.at(i % sums.width, i / sums.width), winners[i], value);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::frame::Mask;

    #[test]
    fn uniqueness_ignores_the_winners_neighbours() {
        let sums = Sums::from_values(3, 1, 4, vec![9, 10, 90, 91, 10, 30, 11, 90, 0, 5, 0, 9]);
        let mut values = [0; 3];
        uniqueness(&sums, &[0, 0, 0], 10, &mut values);
        // 11 * 90 < 10 * 100 fails the second pixel; a tie at 0 cannot be told apart by a ratio.
        assert_eq!(values, [0, INVALID, 0]);
    }

    #[test]
    fn the_parabola_is_rounded_to_sixteenths() {
        assert_eq!(parabola_offset(10, 4, 10), 0);
        assert_eq!(parabola_offset(4, 4, 4), 0);
        assert_eq!(parabola_offset(4, 4, 10), -8); // (16 * -6 + 6) / 12 = -7.5, downwards.
        assert_eq!(parabola_offset(10, 4, 4), 8); // 102 / 12 = 8.5, downwards.
        assert_eq!(parabola_offset(10, 4, 8), 2); // (32 + 10) / 20 = 2.1.
        assert_eq!(parabola_offset(8, 4, 10), -2); // (-32 + 10) / 20 = -1.1, downwards.
    }

    #[test]
    fn no_interpolation_at_the_ends_or_of_invalid_pixels() {
        let sums = Sums::from_values(3, 1, 3, vec![1, 5, 9, 9, 5, 1, 10, 4, 4]);
        let mut values = [0, 32, INVALID];
        subpixel(&sums, &[0, 2, 1], &mut values);
        assert_eq!(values, [0, 32, INVALID]);
    }

    #[test]
    fn the_left_right_check_compares_with_the_clamped_column() {
        // The right view's winners are all candidate 0 (see winner.rs).
        let sums = Sums::from_values(3, 1, 2, vec![5, 9, 6, 5, 1, 7]);
        let mut values = [0; 3];
        left_right(&sums, &[1, 1, 0], 0, 0, &mut values);
        assert_eq!(values, [INVALID, INVALID, 0]);
        let mut values = [0; 3];
        left_right(&sums, &[1, 1, 0], 0, 1, &mut values);
        assert_eq!(values, [0, 0, 0]);
    }

    #[test]
    fn pixels_outside_a_sensor_have_no_disparity() {
        let masked = |seen: [bool; 6]| {
            let mask = Arc::new(Mask::new(3, seen.into()));
            Image::from_vec(3, 2, vec![0; 6]).with_valid_mask(Some(mask))
        };
        let left = masked([true, true, false, true, true, true]);
        let right = masked([false, true, true, true, false, true]);
        let mut values = [7; 6];
        // Columns 0, 0 and (hidden) 1 of the first row; 0, 2 (beside the picture) and 1 of the second.
        unseen(&left, &right, &[1, 1, 1, 1, 0, 1], 0, &mut values);
        assert_eq!(values, [INVALID, INVALID, INVALID, 7, INVALID, INVALID]);
        let mut values = [7; 6];
        unseen(&left, &right, &[1; 6], -5, &mut values);
        assert_eq!(values, [7, 7, INVALID, 7, 7, 7]);
        let mut values = [7; 6];
        let whole = Image::from_vec(3, 2, vec![0; 6]);
        unseen(&whole, &whole, &[1; 6], 0, &mut values);
        assert_eq!(values, [7; 6]);
    }

    #[test]
    fn the_median_looks_at_valid_pixels_only() {
        let values = [1, INVALID, 7, 3, 9, INVALID];
        let filtered = median(3, 2, &values, 1);
        // (0, 0): 1 3 9 -> 3; (2, 0): 7 9 -> 7; (0, 1): 1 3 9 -> 3; (1, 1): 1 7 3 9 -> 3.
        assert_eq!(filtered, [3, INVALID, 7, 3, 3, INVALID]);
    }
}
