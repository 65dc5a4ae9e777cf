//! The confidence: how far a pixel's winner stands out from the other candidates, from 1 to 255.
//!
//! The *peak* of a pixel compares its least sum with that of its best rival, the least of those
//! more than one candidate away ([`rival`](crate::matching::uniqueness::rival)): one minus their
//! ratio (Hu and Mordohai, PAMI 2012, "peak ratio"). The *confidence* is the mean of the peaks
//! around, in which pixels that the checks have invalidated count as 0: neighbours of what is wrong
//! are more often wrong than others. So do pixels that are saturated in either view ([`is_blind`]):
//! what they say comes from their surroundings, however clear a winner the prior makes of it.

use crate::core::frame::{INVALID, Image, SUBPIXEL, clamped};
use crate::matching::aggregation::Sums;
use crate::matching::saturation::is_saturated;
use crate::matching::uniqueness::rival;

/// Pixels from the centre of the window to its edge.
pub const RADIUS: usize = 2;

/// Pixels of the window.
pub const AREA: u16 = (2 * RADIUS as u16 + 1).pow(2);

/// The peak of every pixel, row by row.
pub fn peaks(sums: &Sums, winners: &[usize]) -> Vec<u8> {
    let peak = |(i, &winner): (usize, &usize)| {
        let s = sums.of_pixel(i);
        peak(s[winner], rival(s, winner))
    };
    winners.iter().enumerate().map(peak).collect()
}

/// The peak of a winner with the sum `least`: 255 (rival - least) / rival, rounded down; 255 where
/// there is no rival, 0 where its sum is 0, too.
#[inline(always)]
pub fn peak(least: u16, rival: Option<u16>) -> u8 {
    match rival {
        None => u8::MAX,
        Some(0) => 0,
        Some(rival) => (255 * u32::from(rival - least) / u32::from(rival)) as u8,
    }
}

/// True where pixel (x, y) of the left image, or the one that it is matched with at a disparity of
/// `value` (1/16 px, rounded to whole pixels, halves upwards), is saturated from the grey level
/// `white` on.
#[inline]
pub fn is_blind(left: &Image, right: &Image, x: usize, y: usize, value: i16, white: u8) -> bool {
    let column = x as i32 - (i32::from(value) + SUBPIXEL / 2).div_euclid(SUBPIXEL);
    is_saturated(left, x, y, white)
        || is_saturated(right, clamped(column.into(), left.width()), y, white)
}

/// Sets the peaks of pixels that are saturated in either view to 0.
pub fn blind(values: &[i16], peaks: &mut [u8], left: &Image, right: &Image, white: u8) {
    let width = left.width();
    for (i, (peak, &value)) in peaks.iter_mut().zip(values).enumerate() {
        if value != INVALID && is_blind(left, right, i % width, i / width, value, white) {
            *peak = 0;
        }
    }
}

/// The confidence of every pixel of a map after the checks: the mean of the peaks over the square
/// window around it, rounded to the nearest, at least 1. Window pixels outside the image are the
/// nearest inside; those that are invalid count as 0. The confidence of an invalid pixel is 0, and
/// pixels whose confidence is below `least` become invalid.
pub fn apply(width: usize, height: usize, values: &mut [i16], peaks: &[u8], least: u8) -> Vec<u8> {
    let peaks: Vec<u8> =
        peaks.iter().zip(&*values).map(|(&peak, &v)| if v == INVALID { 0 } else { peak }).collect();
    let window = |at: usize, size: usize| {
        (at..=at + 2 * RADIUS).map(move |at| at.saturating_sub(RADIUS).min(size - 1))
    };
    let mut confidence = vec![0; peaks.len()];
    for (i, value) in values.iter_mut().enumerate().filter(|(_, value)| **value != INVALID) {
        let rows = window(i / width, height);
        let sum: u16 = rows
            .flat_map(|y| window(i % width, width).map(move |x| y * width + x))
            .map(|at| u16::from(peaks[at]))
            .sum();
        confidence[i] = mean(sum);
        if confidence[i] < least {
            *value = INVALID;
        }
    }
    confidence
}

/// The confidence of a pixel around which the peaks add up to `sum`.
#[inline(always)]
pub fn mean(sum: u16) -> u8 {
    ((sum + AREA / 2) / AREA).max(1) as u8
}

/// Sets the confidence to 0 at pixels that the filters have invalidated since. Pixels that are
/// filled afterwards have none either, because they were not measured.
pub fn of_known(values: &[i16], confidence: &mut [u8]) {
    for (confidence, &value) in confidence.iter_mut().zip(values) {
        *confidence = if value == INVALID { 0 } else { *confidence };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_by_hand() {
        let values = vec![9, 10, 90, 91, 40, 30, 11, 90, 0, 5, 0, 9, 7, 7, 8, 7];
        let sums = Sums::from_values(4, 1, 4, values);
        // 255 * 81 / 90 = 229.5; 255 * 29 / 40 = 184.9; a tie at 0; a tie at 7.
        assert_eq!(peaks(&sums, &[0, 2, 0, 0]), [229, 184, 0, 0]);
        // Nobody but neighbours.
        let three = Sums::from_values(1, 1, 3, vec![4, 1, 9]);
        assert_eq!(peaks(&three, &[1]), [255]);
        let (none, much) = (peak(0, Some(2040)), peak(2039, Some(2040)));
        assert_eq!((none, much, peak(0, Some(0))), (255, 0, 0));
    }

    #[test]
    fn the_mean_clamps_its_window_and_counts_invalid_pixels_as_nothing() {
        let mut values = [5, INVALID, 5, 5, 5, 5];
        let confidence = apply(3, 2, &mut values, &[100, 200, 0, 50, 0, 1], 18);
        // Columns -2 to 2 of x = 0 are 0 0 0 1 2, rows -2 to 2 of y = 0 are 0 0 0 1 1: 3 (3 * 100 +
        // 0 + 0) + 2 (3 * 50 + 0 + 1) = 1202, / 25 = 48.08. x = 2 (columns 0 1 2 2 2): 3 (100) + 2
        // (50 + 3 * 1) = 406, / 25 = 16.24. y = 1 (rows 0 0 1 1 1): x = 0: 2 (300) + 3 (151) =
        // 1053, 42.1; x = 1 (0 0 1 2 2): 2 (200) + 3 (100 + 2) = 706, 28.2; x = 2: 2 (100) + 3 (53)
        // = 359, 14.4.
        assert_eq!(confidence, [48, 0, 16, 42, 28, 14]);
        assert_eq!(values, [5, INVALID, INVALID, 5, 5, INVALID]);
        assert_eq!(apply(1, 1, &mut [7], &[0], 1), [1]);
        assert_eq!(apply(1, 1, &mut [7], &[255], 0), [255]);
    }

    #[test]
    fn what_is_saturated_in_either_eye_counts_as_nothing() {
        // White from column 6 on in the left view, from column 3 on in the right one.
        let eye = |from: usize| {
            Image::from_fn(9, 3, move |x, _| if x >= from { 250 } else { 10 * x as u8 })
        };
        let (left, right) = (eye(6), eye(3));
        let mut peaks = vec![9; 27];
        // 1.5 px count as 2, so that column 5 looks at column 3, at the edge of white; -1.5 px as
        // -1.
        let values = [[24; 9], [-24; 9], [INVALID; 9]].concat();
        blind(&values, &mut peaks, &left, &right, 250);
        assert_eq!(peaks[..9], [9, 9, 9, 9, 9, 9, 0, 0, 0]);
        assert_eq!(peaks[9..18], [9, 9, 9, 0, 0, 0, 0, 0, 0]);
        assert_eq!(peaks[18..], [9; 9]);
    }

    #[test]
    fn what_is_unknown_in_the_end_has_no_confidence() {
        let mut confidence = [7, 8, 9];
        of_known(&[0, INVALID, -3], &mut confidence);
        assert_eq!(confidence, [7, 0, 9]);
    }
}
