//! Disparity between whole pixels, from the sums beside the winner's.

use crate::frame::{INVALID, SUBPIXEL};
use crate::matching::aggregation::Sums;

/// Adds the vertex of the parabola through the winner's sum and its two neighbours', in 1/16 px:
/// floor((16 (a - c) + den) / (2 den)) with den = a + c - 2 b; nothing where den is 0 or at the ends
/// of the range.
pub fn subpixel(sums: &Sums, winners: &[usize], values: &mut [i16]) {
    for (i, value) in values.iter_mut().enumerate() {
        let (s, winner) = (sums.of_pixel(i), winners[i]);
        if winner > 0 && winner + 1 < s.len() && *value != INVALID {
            *value += parabola_offset(s[winner - 1], s[winner], s[winner + 1]);
        }
    }
}

/// The vertex of the parabola through `a`, `b`, `c` at -1, 0, 1, in 1/16, rounded to the nearest
/// (halves upwards); within -8 to 8 where `b` is the smallest.
pub fn parabola_offset(a: u16, b: u16, c: u16) -> i16 {
    let (a, b, c) = (i32::from(a), i32::from(b), i32::from(c));
    let den = a + c - 2 * b;
    if den == 0 { 0 } else { (SUBPIXEL * (a - c) + den).div_euclid(2 * den) as i16 }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
