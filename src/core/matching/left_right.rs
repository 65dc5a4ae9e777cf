//! The left-right consistency check (Hirschmüller, PAMI 2008, section 2.5).

use crate::frame::{INVALID, clamped};
use crate::matching::aggregation::Sums;
use crate::matching::winner::select_right_winners;

/// Invalidates pixels with a winner that differs from the right view's winner at column x - d by more than
/// `limit` pixels. The column is clamped to the image; a column without any candidate fails.
pub fn check_left_right(
    sums: &Sums,
    winners: &[usize],
    min_disparity: i32,
    limit: u16,
    values: &mut [i16],
) {
    let right = select_right_winners(sums, min_disparity);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_left_right_check_compares_with_the_clamped_column() {
        // The right view's winners are all candidate 0 (see winner.rs).
        let sums = Sums::from_values(3, 1, 2, vec![5, 9, 6, 5, 1, 7]);
        let mut values = [0; 3];
        check_left_right(&sums, &[1, 1, 0], 0, 0, &mut values);
        assert_eq!(values, [INVALID, INVALID, 0]);
        let mut values = [0; 3];
        check_left_right(&sums, &[1, 1, 0], 0, 1, &mut values);
        assert_eq!(values, [0, 0, 0]);
    }
}
