//! Pixels outside a camera's valid mask, such as those of rectified images outside the sensor.

use super::Matching;
use crate::frame::{INVALID, Image, clamped};

/// Invalidates pixels outside the left valid mask, and pixels whose match (column x - d of the winner,
/// clamped to the image) is outside the right one.
pub fn apply(values: &mut [i16], of: &Matching<'_>) {
    let width = of.left.width();
    for (i, value) in values.iter_mut().enumerate() {
        let (x, row) = (i % width, i - i % width);
        let match_x = x as i64 - i64::from(of.range.min) - of.winners[i] as i64;
        let match_at = row + clamped(match_x, width);
        let seen =
            |image: &Image, at: usize| image.valid_mask().is_none_or(|mask| mask.pixels()[at]);
        if !seen(of.left, i) || !seen(of.right, match_at) {
            *value = INVALID;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::frame::{DisparityRange, Mask};

    #[test]
    fn pixels_outside_a_sensor_have_no_disparity() {
        let masked = |seen: [bool; 6]| {
            let mask = Arc::new(Mask::new(3, seen.into()));
            Image::from_vec(3, 2, vec![0; 6]).with_valid_mask(Some(mask))
        };
        let left = masked([true, true, false, true, true, true]);
        let right = masked([false, true, true, true, false, true]);
        let apply = |left: &Image, right: &Image, winners: &[usize], min: i32| {
            let mut values = [7; 6];
            let range = DisparityRange { min, count: 2 };
            super::apply(
                &mut values,
                &Matching { left, right, range, winners, threshold: 4, prior: None },
            );
            values
        };
        // Columns 0, 0 and (masked) 1 of the first row; 0, 2 (clamped) and 1 of the second.
        assert_eq!(
            apply(&left, &right, &[1, 1, 1, 1, 0, 1], 0),
            [INVALID, INVALID, INVALID, 7, INVALID, INVALID]
        );
        assert_eq!(apply(&left, &right, &[1; 6], -5), [7, 7, INVALID, 7, 7, 7]);
        let whole = Image::from_vec(3, 2, vec![0; 6]);
        assert_eq!(apply(&whole, &whole, &[1; 6], 0), [7; 6]);
    }
}
