//! Disparity between whole pixels, from the sums of the winner and its two neighbours.

use serde::Deserialize;

use crate::frame::SUBPIXEL;
use crate::matching::windows::NO_SUM;

/// Number of [`Subpixel::limits`]: offsets in 1/16 px from a winner to half way to its neighbour.
pub const LIMITS: usize = 8;

/// Denominator of [`Subpixel::limits`].
pub const LIMIT_UNIT: u32 = 256;

/// The curve through the sums of the winner and its two neighbours; its minimum is the disparity.
///
/// The ratio q locates the disparity between two candidates: the smaller neighbour's sum above the winner's,
/// divided by the larger neighbour's above the winner's. q is 0 half way between two candidates and 1 if the
/// disparity is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Subpixel {
    /// No curve: whole pixels.
    Off,
    /// A parabola: offset (1 - q) / (2 + 2 q). Right for squared differences of smooth images;
    /// results crowd around whole pixels ("pixel locking") with any other cost.
    Parabola,
    /// Two straight lines of opposite slope: offset (1 - q) / 2. Right for absolute differences of
    /// smooth images (Shimizu and Okutomi, ICCV 2001).
    Equiangular,
    /// A correction for the remaining pixel locking: offset (1 - q) (4 + 3 q^3) / 8.
    ///
    /// The form was chosen on rendered slanted planes with known disparities, with texture as fine as a
    /// pixel, without noise and with noise of up to 5 grey levels, summed along four and eight paths. There
    /// the error is 0.05 to 0.08 px (root of the mean square) and changes with the fraction of the true
    /// disparity by 0.03 to 0.09 px from peak to peak. The two lines' changes by 0.06 to 0.15, the parabola's
    /// by 0.17 to 0.26. For texture coarser than two pixels, the two lines fit better.
    Corrected,
}

impl Subpixel {
    /// Limits of q in 1/256, in descending order: the offset in sixteenths is the number of limits above q.
    /// `None` for the modes without limits.
    ///
    /// They are the values of q for offsets of 1/2, 3/2, ..., 15/2 sixteenths, so that the offset is rounded
    /// to the nearest (halves towards the winner).
    pub fn limits(self) -> Option<[u16; LIMITS]> {
        match self {
            Subpixel::Off | Subpixel::Parabola => None,
            Subpixel::Equiangular => Some([240, 208, 176, 144, 112, 80, 48, 16]),
            Subpixel::Corrected => Some([246, 224, 196, 162, 123, 85, 49, 16]),
        }
    }

    /// Offset of the disparity from the winner in 1/16 px, from the sums of all candidates of a pixel; 0 at
    /// the ends of the range, and of what a pixel tries of it, because the winner lacks a neighbour.
    pub fn within(self, sums: &[u16], winner: usize) -> i16 {
        match sums.get(winner.wrapping_sub(1)..winner + 2) {
            Some(&[before, least, after]) if before != NO_SUM && after != NO_SUM => {
                self.offset(before, least, after)
            }
            _ => 0,
        }
    }

    /// Offset of the disparity from the winner in 1/16 px, from -8 to 8. `b` is the winner's sum, the least;
    /// `a` and `c` are the sums of the previous and the next candidate.
    #[inline(always)]
    pub fn offset(self, a: u16, b: u16, c: u16) -> i16 {
        match self {
            Subpixel::Off => 0,
            Subpixel::Parabola => parabola_offset(a, b, c),
            Subpixel::Equiangular | Subpixel::Corrected => {
                let limits = self.limits().expect("these modes have limits");
                offset_within(&limits, a, b, c)
            }
        }
    }
}

/// [`Subpixel::offset`] of a mode with these limits, without a branch.
#[inline(always)]
pub fn offset_within(limits: &[u16; LIMITS], a: u16, b: u16, c: u16) -> i16 {
    let smaller = u32::from(a.min(c) - b) * LIMIT_UNIT;
    let larger = u32::from(a.max(c) - b);
    let below = limits.map(|limit| i16::from(smaller < u32::from(limit) * larger));
    let offset: i16 = below.iter().sum();
    if a < c { -offset } else { offset }
}

/// Vertex of the parabola through `a`, `b`, `c` at -1, 0, 1, in 1/16, rounded to the nearest (halves
/// upwards): floor((16 (a - c) + den) / (2 den)) with den = a + c - 2 b; 0 if den is 0.
fn parabola_offset(a: u16, b: u16, c: u16) -> i16 {
    let (a, b, c) = (i32::from(a), i32::from(b), i32::from(c));
    let den = a + c - 2 * b;
    if den == 0 { 0 } else { (SUBPIXEL * (a - c) + den).div_euclid(2 * den) as i16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parabola_is_rounded_to_sixteenths() {
        let offset = |a, b, c| Subpixel::Parabola.offset(a, b, c);
        assert_eq!(offset(10, 4, 10), 0);
        assert_eq!(offset(4, 4, 4), 0);
        assert_eq!(offset(4, 4, 10), -8); // (16 * -6 + 6) / 12 = -7.5, downwards.
        assert_eq!(offset(10, 4, 4), 8); // 102 / 12 = 8.5, downwards.
        assert_eq!(offset(10, 4, 8), 2); // (32 + 10) / 20 = 2.1.
        assert_eq!(offset(8, 4, 10), -2); // (-32 + 10) / 20 = -1.1, downwards.
    }

    #[test]
    fn the_lines_meet_where_both_slopes_are_the_steeper_one() {
        let offset = |a, b, c| Subpixel::Equiangular.offset(a, b, c);
        assert_eq!(offset(10, 4, 10), 0);
        assert_eq!(offset(4, 4, 4), 0);
        assert_eq!(offset(4, 4, 10), -8); // q = 0: half way.
        assert_eq!(offset(10, 4, 4), 8);
        assert_eq!(offset(10, 4, 8), 3); // q = 4/6: 8 / 3 = 2.7.
        assert_eq!(offset(8, 4, 10), -3);
        assert_eq!(offset(16, 0, 15), 0); // q = 15/16: 1/2, towards the winner.
        assert_eq!(offset(160, 0, 149), 1); // q = 149/160: 0.55.
    }

    /// Worked out by hand from (1 - q) (4 + 3 q^3) / 8, times 16.
    #[test]
    fn the_corrected_curve_lies_further_from_whole_pixels() {
        let offset = |a, b, c| Subpixel::Corrected.offset(a, b, c);
        assert_eq!(offset(10, 4, 10), 0);
        assert_eq!(offset(4, 4, 4), 0);
        assert_eq!(offset(4, 4, 10), -8); // q = 0: 8.
        assert_eq!(offset(10, 4, 7), 4); // q = 1/2: 4.375.
        assert_eq!(offset(7, 4, 10), -4);
        assert_eq!(offset(2040, 0, 1530), 3); // q = 3/4: 2.63.
        assert_eq!(offset(20, 0, 19), 1); // q = 0.95: 0.66, and 0.4 on straight lines.
    }

    /// The limits follow the documented formulas, to the nearest 1/256.
    #[test]
    fn limits_follow_from_the_formulas() {
        let equiangular = |q: f64| (1.0 - q) / 2.0;
        let corrected = |q: f64| (1.0 - q) * (4.0 + 3.0 * q * q * q) / 8.0;
        limits_of(Subpixel::Equiangular, equiangular);
        limits_of(Subpixel::Corrected, corrected);
    }

    fn limits_of(mode: Subpixel, curve: impl Fn(f64) -> f64) {
        for (k, limit) in mode.limits().unwrap().into_iter().enumerate() {
            let offset = |at: f64| 16.0 * curve(at / f64::from(LIMIT_UNIT));
            let (above, below) = (f64::from(limit) + 0.5, f64::from(limit) - 0.5);
            let half = k as f64 + 0.5;
            assert!(offset(above) < half && half < offset(below), "{mode:?} {k}");
        }
    }

    #[test]
    fn no_interpolation_at_the_ends() {
        for mode in [Subpixel::Parabola, Subpixel::Equiangular, Subpixel::Corrected] {
            assert_eq!(mode.within(&[1, 5, 9], 0), 0);
            assert_eq!(mode.within(&[9, 5, 1], 2), 0);
            assert_eq!(mode.within(&[4], 0), 0);
            assert_eq!(mode.within(&[10, 4, 4], 1), 8);
        }
    }
}
