//! Mutual information: how much a grey level of the left picture tells about that of the right one, learnt from
//! the pair itself. It holds where the eyes differ in exposure, in gamma, or are negatives of each other
//! (Viola and Wells, IJCV 1997; as a cost of single pixels Hirschmüller, PAMI 2008, section 2.2).
//!
//! P(i, k) counts how often a pixel of grey level i was matched with one of level k in the map f that is known so
//! far. With g a Gaussian of seven levels and N the number of counted pixels
//!
//! h(.) = log2(P (*) g + 1/N) (*) g,   cost(i, k) = h_left(i) + h_right(k) - h(i, k),
//!
//! of which the least of each row is taken off and the rest becomes a byte: [`CostTable`]. What all candidates of a
//! pixel have in common changes no winner. Begun with f = 0, [`ROUNDS`] of these tables, each from the map that
//! the one before has led to, are needed; in a stream the map of the pair before leads to one that is as good.

use crate::frame::{DisparityRange, INVALID, Image, SUBPIXEL};
use crate::matching::filter::State;

/// Name under which the map lies in a stream's history.
pub const NAME: &str = "mutual information";

/// Rounds of a pair that goes on from no map.
pub const ROUNDS: usize = 3;

/// Grey levels.
pub const LEVELS: usize = 256;

/// The Gaussian of standard deviation 1, in 1/1024.
pub const GAUSSIAN: [u32; 7] = [6, 62, 248, 392, 248, 62, 6];

/// Bits of the Gaussian's unit.
pub const GAUSSIAN_BITS: u32 = 10;

/// Levels to either side that the Gaussian reaches.
const RADIUS: usize = GAUSSIAN.len() / 2;

/// Bits behind the point of a logarithm.
pub const LOG_BITS: u32 = 12;

/// Largest truncation: with more, sums of a window would not fit 16 bits ([`window`](crate::matching::window)).
pub const TRUNCATION_MAX: u8 = 127;

/// What a bit of information counts in the cost.
pub const PER_BIT: u32 = 8;

/// Costs of all pairs of grey levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostTable(Box<[u8]>);

impl CostTable {
    /// The table of these costs, [left level][right level].
    pub fn new(costs: Box<[u8]>) -> Self {
        assert_eq!(costs.len(), LEVELS * LEVELS, "costs of a table");
        Self(costs)
    }

    /// The table for a pair of which `map` is known so far, cut off at `truncation`.
    pub fn of(left: &Image, right: &Image, map: &[i32], truncation: u8) -> Self {
        let mut counts = vec![0; LEVELS * LEVELS];
        for y in 0..left.height() {
            let map = &map[y * left.width()..][..left.width()];
            count_row(left.row(y), right.row(y), map, &mut counts);
        }
        let logarithms: Vec<i32> = (0..LEVELS).flat_map(|i| joint_row(&counts, i)).collect();
        let marginals = Marginals::of(&counts);
        let rows = (0..LEVELS).flat_map(|i| cost_row(&logarithms, &marginals, i, truncation));
        Self::new(rows.collect())
    }

    /// The cost of a pixel of level `left` matched with one of level `right`.
    pub fn at(&self, left: u8, right: u8) -> u8 {
        self.0[usize::from(left) * LEVELS + usize::from(right)]
    }
}

/// The map that a pair begins with that goes on from none: the candidate nearest to 0 everywhere.
pub fn beginning(range: DisparityRange) -> i32 {
    range.min.max(0).min(range.max()) * SUBPIXEL
}

/// A map as a stream's history keeps it.
pub fn state_of(map: &[i16]) -> State {
    map.iter().copied().map(i32::from).collect()
}

/// Counts the pairs of grey levels along a row: those of pixels that have a disparity, by which they lie in the
/// right picture. Disparities are taken to the nearest pixel, halves upwards.
pub fn count_row(left: &[u8], right: &[u8], map: &[i32], counts: &mut [u32]) {
    for (x, (&level, &value)) in left.iter().zip(map).enumerate() {
        if value == i32::from(INVALID) {
            continue;
        }
        let d = (value + SUBPIXEL / 2).div_euclid(SUBPIXEL);
        if let Ok(match_x) = usize::try_from(x as i64 - i64::from(d))
            && let Some(&other) = right.get(match_x)
        {
            counts[usize::from(level) * LEVELS + usize::from(other)] += 1;
        }
    }
}

/// log2(x), rounded down to [`LOG_BITS`] bits behind the point; `x` is at least 1, and of its bits the first
/// 13 count. A bit of the logarithm is found by squaring.
pub fn log2(x: u64) -> i32 {
    let whole = x.ilog2();
    let mantissa = if whole > LOG_BITS { x >> (whole - LOG_BITS) } else { x << (LOG_BITS - whole) };
    let (mut y, mut bits) = ((mantissa as u32) << (30 - LOG_BITS), 0);
    for _ in 0..LOG_BITS {
        let square = (u64::from(y) * u64::from(y)) >> 30;
        let above = square >> 31;
        y = (square >> above) as u32;
        bits = 2 * bits + above as i32;
    }
    ((whole as i32) << LOG_BITS) + bits
}

/// A level so far away, or the nearest that exists.
fn beside(level: usize, tap: usize) -> usize {
    (level + tap).saturating_sub(RADIUS).min(LEVELS - 1)
}

/// A row of numbers smoothed by the Gaussian, in its unit.
fn smoothed(row: &[u64; LEVELS]) -> [u64; LEVELS] {
    let mut padded = [0; LEVELS + 2 * RADIUS];
    for (tap, to) in padded.iter_mut().enumerate() {
        *to = row[beside(tap, 0)];
    }
    let mut sums = [0; LEVELS];
    for (tap, &weight) in GAUSSIAN.iter().enumerate() {
        for (sum, &number) in sums.iter_mut().zip(&padded[tap..]) {
            *sum += u64::from(weight) * number;
        }
    }
    sums
}

/// Smoothed logarithms of a row, rounded to their own unit, halves upwards.
fn smoothed_logarithms(row: &[i32; LEVELS]) -> [i32; LEVELS] {
    let mut padded = [0; LEVELS + 2 * RADIUS];
    for (tap, to) in padded.iter_mut().enumerate() {
        *to = row[beside(tap, 0)];
    }
    let mut sums = [1 << (GAUSSIAN_BITS - 1); LEVELS];
    for (tap, &weight) in GAUSSIAN.iter().enumerate() {
        for (sum, &number) in sums.iter_mut().zip(&padded[tap..]) {
            *sum += weight as i32 * number;
        }
    }
    sums.map(|sum| sum >> GAUSSIAN_BITS)
}

/// Row `i` of log2(P (*) g + 1/N), less log2(1/N).
pub fn joint_row(counts: &[u32], i: usize) -> [i32; LEVELS] {
    let mut across = [0u64; LEVELS];
    for (tap, &weight) in GAUSSIAN.iter().enumerate() {
        let row = &counts[beside(i, tap) * LEVELS..][..LEVELS];
        for (sum, &count) in across.iter_mut().zip(row) {
            *sum += u64::from(weight) * u64::from(count);
        }
    }
    let unit = 2 * GAUSSIAN_BITS;
    smoothed(&across).map(|sum| log2(sum + (1 << unit)) - (unit << LOG_BITS) as i32)
}

/// What each eye's levels tell by themselves.
pub struct Marginals {
    left: [i32; LEVELS],
    right: [i32; LEVELS],
    /// Whether a level of the right picture was counted.
    occurs: [bool; LEVELS],
}

impl Marginals {
    /// h of both eyes.
    pub fn of(counts: &[u32]) -> Self {
        let (mut left, mut right) = ([0u64; LEVELS], [0u64; LEVELS]);
        for (row, left) in counts.chunks_exact(LEVELS).zip(&mut left) {
            for (&count, right) in row.iter().zip(&mut right) {
                *left += u64::from(count);
                *right += u64::from(count);
            }
        }
        let told = |counts: &[u64; LEVELS]| {
            let logarithms = smoothed(counts)
                .map(|sum| log2(sum + (1 << GAUSSIAN_BITS)) - (GAUSSIAN_BITS << LOG_BITS) as i32);
            smoothed_logarithms(&logarithms)
        };
        Self { left: told(&left), right: told(&right), occurs: right.map(|count| count > 0) }
    }
}

/// Row `i` of the costs, from all rows of [`joint_row`]: what lies above the least cost of a level that
/// occurs, in [`PER_BIT`]ths of a bit to the nearest, at least 0 and at most `truncation`.
pub fn cost_row(
    logarithms: &[i32],
    marginals: &Marginals,
    i: usize,
    truncation: u8,
) -> [u8; LEVELS] {
    let mut across = [1 << (GAUSSIAN_BITS - 1); LEVELS];
    for (tap, &weight) in GAUSSIAN.iter().enumerate() {
        let row = &logarithms[beside(i, tap) * LEVELS..][..LEVELS];
        for (sum, &logarithm) in across.iter_mut().zip(row) {
            *sum += weight as i32 * logarithm;
        }
    }
    let joint = smoothed_logarithms(&across.map(|sum| sum >> GAUSSIAN_BITS));
    let mut costs = [0; LEVELS];
    for (k, cost) in costs.iter_mut().enumerate() {
        *cost = marginals.left[i] + marginals.right[k] - joint[k];
    }
    let occurring = costs.iter().zip(&marginals.occurs).filter(|&(_, &occurs)| occurs);
    let least = occurring.map(|(&cost, _)| cost).min();
    costs.map(|cost| match least {
        Some(least) => {
            let above = (cost - least).max(0) as u32 * PER_BIT;
            ((above + (1 << (LOG_BITS - 1))) >> LOG_BITS).min(truncation.into()) as u8
        }
        None => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_rounded_down() {
        for x in (1..5000u64).chain([1 << 20, (1 << 40) + 12345, u64::from(u32::MAX) << 15]) {
            let whole = x.ilog2().saturating_sub(LOG_BITS);
            let exact = (((x >> whole) as f64).log2() + f64::from(whole)) * 4096.0;
            let error = exact - f64::from(log2(x));
            assert!((-1e-6..1.0 + 1e-2).contains(&error), "{x}: {error}");
        }
        // log2(3) = 1.5849625.
        assert_eq!((log2(1), log2(2), log2(3), log2(1 << 44)), (0, 4096, 6491, 44 * 4096));
    }

    #[test]
    fn levels_are_counted_where_their_disparity_is_known() {
        let mut counts = vec![0; LEVELS * LEVELS];
        // To the nearest pixel these are 0, none, 1, 3 (beside the picture), -1 (beside it) and 1.
        let map = [7, i32::from(INVALID), 8, 48 - 8, -9, 23];
        count_row(&[1, 2, 3, 4, 5, 6], &[10, 20, 30, 40, 50, 60], &map, &mut counts);
        let mut found: Vec<_> = (0..counts.len()).filter(|&at| counts[at] > 0).collect();
        found.sort_unstable();
        assert_eq!(
            found,
            [LEVELS + 10, 3 * LEVELS + 20, 4 * LEVELS + 10, 5 * LEVELS + 60, 6 * LEVELS + 50]
        );
        assert_eq!(counts.iter().sum::<u32>(), 5);
    }
}
