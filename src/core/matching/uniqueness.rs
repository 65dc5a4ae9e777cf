//! Ambiguous pixels: another candidate nearly equals the winner.

use crate::frame::INVALID;
use crate::matching::aggregation::Sums;
use crate::matching::windows::NO_SUM;

/// The least sum of a pixel among the candidates that are more than one away from the winner;
/// `None` if there is none.
pub fn rival(sums: &[u16], winner: usize) -> Option<u16> {
    let rivals = sums.iter().enumerate().filter(|&(k, _)| k.abs_diff(winner) > 1);
    rivals.map(|(_, &sum)| sum).filter(|&sum| sum != NO_SUM).min()
}

/// Invalidates pixels with a winner that is hardly better than another candidate: some d' with abs(d' - d) >
/// 1 has S(d') * (100 - percent) < S(d) * 100.
pub fn check_uniqueness(sums: &Sums, winners: &[usize], percent: u8, values: &mut [i16]) {
    for (i, value) in values.iter_mut().enumerate() {
        let (s, winner) = (sums.of_pixel(i), winners[i]);
        let ambiguous = |r| u32::from(r) * (100 - u32::from(percent)) < u32::from(s[winner]) * 100;
        if rival(s, winner).is_some_and(ambiguous) {
            *value = INVALID;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniqueness_ignores_the_winners_neighbours() {
        let sums = Sums::from_values(3, 1, 4, vec![9, 10, 90, 91, 10, 30, 11, 90, 0, 5, 0, 9]);
        let mut values = [0; 3];
        check_uniqueness(&sums, &[0, 0, 0], 10, &mut values);
        // 11 * 90 < 10 * 100 fails the second pixel; a tie at 0 cannot be told apart by a ratio.
        assert_eq!(values, [0, INVALID, 0]);
    }
}
