//! The candidate with the smallest sum.

use crate::matching::aggregation::Sums;
use crate::matching::windows::NO_SUM;

/// Returns the number of the best candidate of every pixel; ties to the smallest disparity.
pub fn select_winners(sums: &Sums) -> Vec<usize> {
    let mut winners = Vec::with_capacity(sums.width * sums.height);
    for y in 0..sums.height {
        winners.extend((0..sums.width).map(|x| first_minimum(sums.at(x, y).iter().copied())));
    }
    winners
}

/// Position of the first smallest value.
fn first_minimum(values: impl Iterator<Item = u16>) -> usize {
    let (k, _) = values.enumerate().min_by_key(|&(_, s)| s).expect("at least one candidate");
    k
}

/// Returns the best candidate of every pixel of the right view, row by row, from the same sums: D_R(x) =
/// argmin over d of S(x + d, d), ties to the smallest disparity. `None` for a column that no pixel of the
/// left image can match.
pub fn select_right_winners(sums: &Sums, min_disparity: i32) -> Vec<Option<usize>> {
    let mut winners = Vec::with_capacity(sums.width * sums.height);
    for y in 0..sums.height {
        for x in 0..sums.width {
            let candidates = (0..sums.count).filter_map(|k| {
                let left_x = x as i64 + i64::from(min_disparity) + k as i64;
                let inside = (0..sums.width as i64).contains(&left_x);
                inside.then(|| (k, sums.at(left_x as usize, y)[k]))
            });
            let tried = candidates.filter(|&(_, s)| s != NO_SUM);
            winners.push(tried.min_by_key(|&(_, s)| s).map(|(k, _)| k));
        }
    }
    winners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_to_the_smallest_disparity() {
        let sums = Sums::from_values(2, 1, 3, vec![4, 2, 2, 1, 1, 0]);
        assert_eq!(select_winners(&sums), [1, 2]);
    }

    #[test]
    fn the_right_view_reads_the_sums_along_its_own_diagonal() {
        // Three pixels, candidates 0 and 1.
        let sums = Sums::from_values(3, 1, 2, vec![5, 9, 6, 5, 1, 7]);
        // x = 0: S(0, 0) = 5, S(1, 1) = 5: the tie goes to 0. x = 1: S(1, 0) = 6, S(2, 1) = 7.
        // x = 2: only S(2, 0).
        assert_eq!(select_right_winners(&sums, 0), [Some(0), Some(0), Some(0)]);
        // With candidates 2 and 3: x = 0 has S(2, 0) only; the others have none.
        assert_eq!(select_right_winners(&sums, 2), [Some(0), None, None]);
        // With candidates -1 and 0: x = 0 has S(0, 1); x = 1 has S(0, 0) = 5 and S(1, 1) = 5.
        assert_eq!(select_right_winners(&sums, -1), [Some(1), Some(0), Some(0)]);
    }
}
