//! Mutual information: the information that a grey level of the left image gives about the right one's,
//! learnt from the pair itself. It tolerates views that differ in exposure or gamma, or are negatives of each
//! other (Viola and Wells, IJCV 1997; as a cost of single pixels Hirschmüller, PAMI 2008, section 2.2).
//!
//! P(i, k) counts the matches of a pixel of grey level i with one of level k in the current map f. With g a
//! Gaussian of seven levels and N the number of counted pixels
//!
//! h(.) = log2(P (*) g + 1/N) (*) g,   cost(i, k) = h_left(i) + h_right(k) - h(i, k),
//!
//! The least cost of each row is subtracted and the rest is stored as a byte: [`CostTable`]. A term that all
//! candidates of a pixel share changes no winner, so h_left is omitted.
//!
//! Without a map, pixels are counted at several disparities ([`beginnings`]), and [`ROUNDS`] tables are made,
//! each from the map of the previous table. In a stream, the map of the previous pair is as good a start.
//! Starting from disparity 0 alone fails if all disparities are far from 0.

use std::ops::{AddAssign, Mul};

use crate::frame::{DisparityRange, INVALID, Image, SUBPIXEL};

/// Key of the map in a stream's history.
pub const NAME: &str = "mutual information";

/// Rounds for a pair without a previous map.
pub const ROUNDS: usize = 3;

/// Grey levels.
pub const LEVELS: usize = 256;

/// The Gaussian of standard deviation 1, in 1/1024.
pub const GAUSSIAN: [u32; 7] = [6, 62, 248, 392, 248, 62, 6];

/// Fractional bits of the Gaussian's weights.
pub const GAUSSIAN_BITS: u32 = 10;

/// Radius of the Gaussian in levels.
const RADIUS: usize = GAUSSIAN.len() / 2;

/// Fractional bits of a logarithm.
pub const LOG_BITS: u32 = 12;

/// Largest truncation; with more, sums of a window would not fit 16 bits
/// ([`window`](crate::matching::window)).
pub const TRUNCATION_MAX: u8 = 127;

/// Cost of one bit of information.
pub const PER_BIT: u32 = 8;

/// Costs of all pairs of grey levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostTable(Box<[u8]>);

impl CostTable {
    /// Wraps costs in the order [left level][right level].
    pub fn new(costs: Box<[u8]>) -> Self {
        assert_eq!(costs.len(), LEVELS * LEVELS, "costs of a table");
        Self(costs)
    }

    /// Returns the table for a pair, from its `map` or the candidates; costs are at most `truncation`.
    pub fn of(
        left: &Image,
        right: &Image,
        map: Option<&[i32]>,
        range: DisparityRange,
        truncation: u8,
    ) -> Self {
        let mut counts = vec![0; LEVELS * LEVELS];
        for y in 0..left.height() {
            let (left_row, right_row) = (left.row(y), right.row(y));
            match map {
                Some(map) => {
                    let map = &map[y * left.width()..][..left.width()];
                    count_row(left_row, right_row, map, &mut counts);
                }
                None => count_row_by(left_row, right_row, &beginnings(range), &mut counts),
            }
        }
        let logarithms: Vec<i32> = (0..LEVELS).flat_map(|i| joint_row(&counts, i)).collect();
        let marginal = Marginal::of(&counts);
        let rows = (0..LEVELS).flat_map(|i| cost_row(&logarithms, &marginal, i, truncation));
        Self::new(rows.collect())
    }

    /// The cost of a pixel of level `left` matched with one of level `right`.
    pub fn at(&self, left: u8, right: u8) -> u8 {
        self.0[usize::from(left) * LEVELS + usize::from(right)]
    }
}

/// Returns the disparities in pixels for counting a pair without a map: the first candidate, and the
/// candidates at a quarter, a half and three quarters of the range.
pub fn beginnings(range: DisparityRange) -> [i32; 4] {
    [0, 1, 2, 3].map(|quarter| range.min + (quarter * range.count / 4) as i32)
}

/// Converts a map to its form in a stream's history.
pub fn state_of(map: &[i16]) -> Vec<i32> {
    map.iter().copied().map(i32::from).collect()
}

/// Counts the pairs of grey levels along a row without a map: every pixel at each of these disparities.
pub fn count_row_by(left: &[u8], right: &[u8], disparities: &[i32], counts: &mut [u32]) {
    for &d in disparities {
        for (x, &level) in left.iter().enumerate() {
            count(level, right, x as i64 - i64::from(d), counts);
        }
    }
}

/// Counts the pairs of grey levels of valid pixels; disparities are rounded, halves upwards.
pub fn count_row(left: &[u8], right: &[u8], map: &[i32], counts: &mut [u32]) {
    for (x, (&level, &value)) in left.iter().zip(map).enumerate() {
        if value == i32::from(INVALID) {
            continue;
        }
        let d = (value + SUBPIXEL / 2).div_euclid(SUBPIXEL);
        count(level, right, x as i64 - i64::from(d), counts);
    }
}

/// Counts a pair of grey levels, if the match column lies inside the image.
#[inline]
fn count(level: u8, right: &[u8], match_x: i64, counts: &mut [u32]) {
    if let Ok(match_x) = usize::try_from(match_x)
        && let Some(&other) = right.get(match_x)
    {
        counts[usize::from(level) * LEVELS + usize::from(other)] += 1;
    }
}

/// log2(x), rounded down to [`LOG_BITS`] fractional bits. `x` is at least 1; only its first 13 bits count.
/// Each bit of the logarithm is found by squaring.
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

/// The level at a tap of the Gaussian, clamped.
fn beside(level: usize, tap: usize) -> usize {
    (level + tap).saturating_sub(RADIUS).min(LEVELS - 1)
}

/// A row smoothed by the Gaussian, in the Gaussian's unit, plus `begin`. `number` converts a weight.
fn smoothed<T: Copy + Default + AddAssign + Mul<Output = T>>(
    row: &[T; LEVELS],
    begin: T,
    number: impl Fn(u32) -> T,
) -> [T; LEVELS] {
    let mut padded = [T::default(); LEVELS + 2 * RADIUS];
    for (tap, to) in padded.iter_mut().enumerate() {
        *to = row[beside(tap, 0)];
    }
    let mut sums = [begin; LEVELS];
    for (tap, &weight) in GAUSSIAN.iter().enumerate() {
        for (sum, &value) in sums.iter_mut().zip(&padded[tap..]) {
            *sum += number(weight) * value;
        }
    }
    sums
}

/// log2(s + 1) of the smoothed numbers s, in units of 2^`unit`.
fn logarithms(row: &[u64; LEVELS], unit: u32) -> [i32; LEVELS] {
    smoothed(row, 1 << unit, u64::from).map(|sum| log2(sum) - (unit << LOG_BITS) as i32)
}

/// Smoothed logarithms of a row, rounded to their own unit, halves upwards.
fn smoothed_logarithms(row: &[i32; LEVELS]) -> [i32; LEVELS] {
    let sums = smoothed(row, 1 << (GAUSSIAN_BITS - 1), |weight| weight as i32);
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
    logarithms(&across, 2 * GAUSSIAN_BITS)
}

/// Marginal distribution of the right image's grey levels.
pub struct Marginal {
    /// h_right.
    told: [i32; LEVELS],
    /// Whether a level was counted.
    occurs: [bool; LEVELS],
}

impl Marginal {
    /// The marginal of these counts.
    pub fn of(counts: &[u32]) -> Self {
        let mut right = [0u64; LEVELS];
        for row in counts.chunks_exact(LEVELS) {
            right.iter_mut().zip(row).for_each(|(sum, &count)| *sum += u64::from(count));
        }
        let logarithms = logarithms(&right, GAUSSIAN_BITS);
        Self { told: smoothed_logarithms(&logarithms), occurs: right.map(|count| count > 0) }
    }
}

/// Returns row `i` of the costs, from all rows of [`joint_row`]: the difference to the least cost of a level
/// that occurs, in 1/[`PER_BIT`] bits, rounded to the nearest and clamped to 0 to `truncation`.
pub fn cost_row(logarithms: &[i32], marginal: &Marginal, i: usize, truncation: u8) -> [u8; LEVELS] {
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
        *cost = marginal.told[k] - joint[k];
    }
    let occurring = costs.iter().zip(&marginal.occurs).filter(|&(_, &occurs)| occurs);
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
    use std::time::Duration;

    use super::*;
    use crate::frame::StereoPair;
    use crate::matching::{Cost, History, Params, match_next, match_pair};

    #[test]
    fn logarithms_are_rounded_down() {
        for x in (1..5000u64).chain([1 << 20, (1 << 40) + 12345, u64::from(u32::MAX) << 15]) {
            let whole = x.ilog2().saturating_sub(LOG_BITS);
            let exact = (((x >> whole) as f64).log2() + f64::from(whole)) * 4096.0;
            let error = exact - f64::from(log2(x));
            assert!((-1e-6..1.0 + 1e-2).contains(&error), "{x}: {error}");
        }
        // log2(3) = 1.5849625.
        assert_eq!((log2(1), log2(2), log2(3), log2(1 << 44)), (0, 4096, 6492, 44 * 4096));
    }

    #[test]
    fn levels_are_counted_where_their_disparity_is_known() {
        let mut counts = vec![0; LEVELS * LEVELS];
        // To the nearest pixel these are 0, none, 1, 3, -1 and 1.
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

    /// Expected costs of some levels from an independent floating-point program, minus the least of the
    /// levels 20, 50 and 53.
    #[test]
    fn a_table_by_the_formula() {
        let mut counts = vec![0; LEVELS * LEVELS];
        for (i, k, count) in [(100, 50, 3000), (100, 53, 40), (200, 20, 900)] {
            counts[i * LEVELS + k] = count;
        }
        let logarithms: Vec<i32> = (0..LEVELS).flat_map(|i| joint_row(&counts, i)).collect();
        let marginal = Marginal::of(&counts);
        for (i, expected) in [
            (100, [47, 2, 0, 1, 2, 0]),    // 47.157, 1.999, 0, 1.351, 1.883, -14.656
            (101, [44, 4, 0, 2, 3, 0]),    // 43.677, 3.558, 0, 2.251, 3.296, -18.136
            (200, [0, 59, 26, 42, 55, 0]), // 0, 59.341, 26.453, 42.228, 54.714, -16.394
            (150, [19, 33, 0, 16, 28, 0]), // 18.967, 32.889, 0, 15.776, 28.262, -42.847
        ] {
            let row = cost_row(&logarithms, &marginal, i, 127);
            assert_eq!([20, 50, 53, 52, 51, 120].map(|k| row[k]), expected, "{i}");
            let cut = cost_row(&logarithms, &marginal, i, 20);
            assert!((0..LEVELS).all(|k| cut[k] == row[k].min(20)), "{i}");
        }
        let nothing = [0; LEVELS * LEVELS];
        let logarithms: Vec<i32> = (0..LEVELS).flat_map(|i| joint_row(&nothing, i)).collect();
        assert_eq!(cost_row(&logarithms, &Marginal::of(&nothing), 3, 127), [0; LEVELS]);
    }

    #[test]
    fn counts_of_the_largest_picture_fit() {
        let mut counts = vec![0; LEVELS * LEVELS];
        counts[0] = u32::MAX;
        let logarithms: Vec<i32> = (0..LEVELS).flat_map(|i| joint_row(&counts, i)).collect();
        assert_eq!(cost_row(&logarithms, &Marginal::of(&counts), 0, 127)[0], 0);
    }

    /// A scene with halves at 2 and 6 px; `grey` maps the grey levels of the right camera.
    fn pair(grey: impl Fn(u8) -> u8) -> [Image; 2] {
        let scene = |x: usize, y: usize| {
            let cell = (x / 3).wrapping_mul(0x9e37_79b9) ^ (y / 3).wrapping_mul(0x85eb_ca6b);
            (cell.wrapping_mul(0xc2b2_ae35) >> 13) as u8
        };
        let disparity = |y: usize| if y < 30 { 2 } else { 6 };
        let left = Image::from_fn(90, 60, |x, y| scene(x + 20, y));
        [left, Image::from_fn(90, 60, |x, y| grey(scene(x + 20 + disparity(y), y)))]
    }

    #[test]
    fn exposure_gamma_and_negatives_do_not_matter() {
        let range = DisparityRange { min: 0, count: 12 };
        let cost = Cost::MutualInformation { truncation: 60 };
        let params = Params { left_right: Some(1), ..Params::bare(range, cost, (12, 80)) };
        let gamma = |v: u8| (255.0 * (f64::from(v) / 255.0).powf(2.2)) as u8;
        let eyes: [&dyn Fn(u8) -> u8; 4] = [&|v| v, &|v| v / 3 + 90, &gamma, &|v| 255 - v];
        for (number, grey) in eyes.into_iter().enumerate() {
            let [left, right] = pair(grey);
            let map = match_pair(&left, &right, &params);
            let right_ones = (0..60)
                .flat_map(|y| (12..90).map(move |x| (x, y)))
                .filter(|&(x, y)| map.values()[y * 90 + x] == if y < 30 { 32 } else { 96 });
            let share = right_ones.count() as f64 / (60.0 * 78.0);
            // The gamma leaves few levels of the dark ones.
            assert!(share > if number == 2 { 0.9 } else { 0.95 }, "{number}: {share}");
        }
    }

    #[test]
    fn a_stream_learns_from_the_pair_before_until_the_scene_is_another() {
        let range = DisparityRange { min: 0, count: 12 };
        let cost = Cost::MutualInformation { truncation: 60 };
        let params = Params::bare(range, cost, (12, 80));
        let [left, right] = pair(|v| 255 - v);
        let mut history = History::default();
        let mut next = |left: &Image, right: &Image, ms| {
            let pair = StereoPair::of_stills(left.copy(), right.copy());
            let pair = StereoPair { timestamp: Duration::from_millis(ms), ..pair };
            match_next(&pair, &params, &mut history).map.values().to_vec()
        };
        let alone = match_pair(&left, &right, &params).values().to_vec();
        assert_eq!(next(&left, &right, 0), alone);
        // One round from that map.
        let map: Vec<i32> = alone.iter().map(|&value| value.into()).collect();
        let table = CostTable::of(&left, &right, Some(&map), range, 60);
        let second = next(&left, &right, 33);
        let by_table = |x: usize, y: usize, d: i32| {
            let match_x = (x as i32 - d).max(0) as usize;
            table.at(left.row(y)[x], right.row(y)[match_x])
        };
        assert_eq!(by_table(50, 10, 2), 0);
        assert_eq!(second[10 * 90 + 50], 32);
        // The same image upside down.
        let turned = |image: &Image| Image::from_fn(90, 60, |x, y| image.row(59 - y)[x]);
        let [left, right] = [&left, &right].map(turned);
        assert_eq!(next(&left, &right, 66), match_pair(&left, &right, &params).values());
    }
}
