//! Block matching: costs that compare the windows around two pixels instead of the pixels alone.
//!
//! The sums of absolute (SAD) and of squared differences (SSD), and both of them after each window's mean has
//! been removed (ZSAD, ZSSD), so that a different exposure of the views does no harm (Brown, Burschka and
//! Hager, "Advances in Computational Stereo", PAMI 2003, table 2). Let a and b be the matched pixels of two
//! windows of n pixels. All totals are integers, hence the factors n:
//!
//! | measure | total |
//! | --- | --- |
//! | SAD | sum \|a - b\| |
//! | SSD | sum (a - b)² |
//! | ZSAD | sum \|a' - b'\|, a' = n a - the sum of the window around a, in its image |
//! | ZSSD | n sum (a - b)² - (sum (a - b))² |
//!
//! ZSAD subtracts from each pixel the mean of the window around that pixel. The mean of the compared window
//! would change from pixel to pixel of the map, so that no part of a sum could be reused for the next. In
//! ZSSD, subtracting both means gives the formula above.
//!
//! Window pixels outside the left image are replaced by the nearest pixel inside; each then looks
//! up its own match column.

use std::fmt;
use std::str::FromStr;

use crate::frame::{Image, clamped};

/// The measure that is summed over a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockMeasure {
    /// Absolute differences.
    Sad,
    /// Squared differences.
    Ssd,
    /// Absolute differences without the windows' means.
    ZeroMeanSad,
    /// Squared differences without the windows' means.
    ZeroMeanSsd,
}

impl BlockMeasure {
    /// The name that the command line and the configuration use.
    pub fn name(self) -> &'static str {
        match self {
            BlockMeasure::Sad => "sad",
            BlockMeasure::Ssd => "ssd",
            BlockMeasure::ZeroMeanSad => "zsad",
            BlockMeasure::ZeroMeanSsd => "zssd",
        }
    }

    /// Whether differences are squared.
    pub fn is_squared(self) -> bool {
        matches!(self, BlockMeasure::Ssd | BlockMeasure::ZeroMeanSsd)
    }

    /// Whether the windows' means are removed.
    pub fn is_zero_mean(self) -> bool {
        matches!(self, BlockMeasure::ZeroMeanSad | BlockMeasure::ZeroMeanSsd)
    }
}

/// A window around a pixel, of odd width and height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockWindow {
    /// Width in pixels.
    pub width: u8,
    /// Height in pixels.
    pub height: u8,
}

/// Largest width and height of a window.
pub const SIDE_MAX: u8 = 11;

impl BlockWindow {
    /// The pixel alone.
    pub const PIXEL: Self = Self { width: 1, height: 1 };

    /// Reports whether an engine can sum over the window.
    pub fn is_valid(self) -> bool {
        let valid = |side: u8| side <= SIDE_MAX && side % 2 == 1;
        valid(self.width) && valid(self.height)
    }

    /// Pixels of the window.
    pub fn area(self) -> u32 {
        u32::from(self.width) * u32::from(self.height)
    }

    /// Columns and rows from the centre to the edge.
    pub fn radius(self) -> (usize, usize) {
        (usize::from(self.width / 2), usize::from(self.height / 2))
    }

    /// Positions of the window around (x, y), clamped to an image of this size.
    pub fn around(
        self,
        (x, y): (usize, usize),
        (width, height): (usize, usize),
    ) -> impl Iterator<Item = (usize, usize)> {
        let (across, down) = self.radius();
        let rows = (y as i64 - down as i64)..=(y + down) as i64;
        rows.flat_map(move |y| {
            let columns = (x as i64 - across as i64)..=(x + across) as i64;
            columns.map(move |x| (clamped(x, width), clamped(y, height)))
        })
    }
}

impl fmt::Display for BlockWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

impl FromStr for BlockWindow {
    type Err = String;

    /// A window from its side, "7", or from width and height, "9x5".
    fn from_str(text: &str) -> Result<Self, String> {
        let (width, height) = text.split_once('x').unwrap_or((text, text));
        match (width.parse(), height.parse()) {
            (Ok(width), Ok(height)) if (Self { width, height }).is_valid() => {
                Ok(Self { width, height })
            }
            _ => Err(format!(
                "expected an odd number of pixels from 1 to {SIDE_MAX}, or two of them such as 9x5"
            )),
        }
    }
}

/// Largest sum of a window; larger ones are clamped. The number above it stands for a missing candidate.
pub const SUM_MAX: u32 = i16::MAX as u32 - 1;

/// Scaling of a window's total to a sum of 15 bits, independent of its size: the mean absolute difference in
/// 1/128 of a grey level, or the mean square in 1/16 of a squared grey level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Totals are clamped to this: a root mean square of 45 grey levels.
    pub limit: u32,
    /// Sum per unit of the total, in 1/65536.
    pub factor: u32,
}

impl Scale {
    /// The scale of a measure over windows of this size.
    pub fn of(measure: BlockMeasure, window: BlockWindow) -> Self {
        let pixels = window.area();
        let units = if measure.is_zero_mean() { pixels * pixels } else { pixels };
        match measure.is_squared() {
            true => Self { limit: 2048 * units, factor: (16 << 16) / units },
            false => Self { limit: u32::MAX, factor: (128 << 16) / units },
        }
    }

    /// Returns the sum of a total: min(min(total, limit) factor / 65536, [`SUM_MAX`]).
    pub fn sum(self, total: u32) -> u16 {
        (((total.min(self.limit) * self.factor) >> 16).min(SUM_MAX)) as u16
    }
}

/// The cost of a pixel for the aggregation along paths, from the sum of its window: the mean
/// absolute difference in quarters of a grey level, or the mean square in squared grey levels,
/// rounded to the nearest integer and cut off at `truncation`.
pub fn byte(measure: BlockMeasure, sum: u16, truncation: u8) -> u8 {
    let shift = byte_shift(measure);
    ((u32::from(sum) + (1 << (shift - 1))) >> shift).min(u32::from(truncation)) as u8
}

/// Number of low bits of the sum that [`byte`] rounds off.
pub fn byte_shift(measure: BlockMeasure) -> u32 {
    if measure.is_squared() { 4 } else { 5 }
}

/// Block matching of a pair.
pub struct Blocks<'a> {
    left: &'a Image,
    right: &'a Image,
    measure: BlockMeasure,
    window: BlockWindow,
    truncation: u8,
    /// For ZSAD only: n times each pixel minus the sum of the window around it, for both views.
    zero_mean: [Vec<i32>; 2],
}

impl<'a> Blocks<'a> {
    /// The pair `left`, `right` of equal size; `truncation` is for the aggregation.
    pub fn new(
        left: &'a Image,
        right: &'a Image,
        measure: BlockMeasure,
        window: BlockWindow,
        truncation: u8,
    ) -> Self {
        let zero_mean = match measure {
            BlockMeasure::ZeroMeanSad => [left, right].map(|eye| zero_mean(eye, window)),
            _ => [Vec::new(), Vec::new()],
        };
        Self { left, right, measure, window, truncation, zero_mean }
    }

    /// The sum of pixel (x, y) at disparity `d`.
    pub fn sum(&self, x: usize, y: usize, d: i32) -> u16 {
        Scale::of(self.measure, self.window).sum(self.total(x, y, d))
    }

    /// The cost of pixel (x, y) at disparity `d` for the aggregation ([`byte`]).
    pub fn byte(&self, x: usize, y: usize, d: i32) -> u8 {
        byte(self.measure, self.sum(x, y, d), self.truncation)
    }

    /// The total over the window.
    fn total(&self, x: usize, y: usize, d: i32) -> u32 {
        let width = self.left.width();
        let (mut absolute, mut signed, mut squared, mut zero_mean) = (0u32, 0i32, 0u32, 0u32);
        for (x, y) in self.window.around((x, y), (width, self.left.height())) {
            let match_x = clamped(x as i64 - i64::from(d), width);
            let difference = i32::from(self.left.row(y)[x]) - i32::from(self.right.row(y)[match_x]);
            absolute += difference.unsigned_abs();
            signed += difference;
            squared += difference.pow(2) as u32;
            if let [Some(a), Some(b)] =
                [self.zero_mean[0].get(y * width + x), self.zero_mean[1].get(y * width + match_x)]
            {
                zero_mean += a.abs_diff(*b);
            }
        }
        match self.measure {
            BlockMeasure::Sad => absolute,
            BlockMeasure::Ssd => squared,
            BlockMeasure::ZeroMeanSad => zero_mean,
            BlockMeasure::ZeroMeanSsd => self.window.area() * squared - signed.pow(2) as u32,
        }
    }
}

/// n times each pixel less the sum of the window of n pixels around it, row by row; it fits 16 bits.
pub fn zero_mean(image: &Image, window: BlockWindow) -> Vec<i32> {
    let size = (image.width(), image.height());
    let positions = (0..size.0 * size.1).map(|i| (i % size.0, i / size.0));
    let value = |(x, y): (usize, usize)| i32::from(image.row(y)[x]);
    positions
        .map(|at| {
            let sum: i32 = window.around(at, size).map(value).sum();
            window.area() as i32 * value(at) - sum
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: BlockWindow = BlockWindow { width: 3, height: 3 };

    fn sum(
        measure: BlockMeasure,
        window: BlockWindow,
        pair: [&Image; 2],
        at: (usize, usize),
    ) -> u16 {
        Blocks::new(pair[0], pair[1], measure, window, 255).sum(at.0, at.1, 0)
    }

    #[test]
    fn the_measures_by_hand() {
        // Differences: 1 2 3 / 0 0 0 / -3 0 6.
        let left = Image::from_vec(3, 3, vec![11, 12, 13, 20, 20, 20, 30, 33, 39]);
        let right = Image::from_vec(3, 3, vec![10, 10, 10, 20, 20, 20, 33, 33, 33]);
        let of = |measure| sum(measure, THREE, [&left, &right], (1, 1));
        // Absolute 15; 15 * (128 * 65536 / 9 = 932067) / 65536 = 213.3.
        assert_eq!(of(BlockMeasure::Sad), 213);
        // Squares 1 + 4 + 9 + 9 + 36 = 59; 59 * (1048576 / 9 = 116508) / 65536 = 104.9.
        assert_eq!(of(BlockMeasure::Ssd), 104);
        // Differences sum to 9: 9 * 59 - 81 = 450; 450 * (1048576 / 81 = 12945) / 65536 = 88.9.
        assert_eq!(of(BlockMeasure::ZeroMeanSsd), 88);
        assert_eq!(byte(BlockMeasure::Sad, 213, 255), 7); // 213 / 32 = 6.66.
        assert_eq!(byte(BlockMeasure::Ssd, 104, 255), 7); // 104 / 16 = 6.5.
        assert_eq!(byte(BlockMeasure::Ssd, 104, 4), 4);
    }

    #[test]
    fn zero_mean_sad_takes_from_each_pixel_the_mean_around_it() {
        let left = Image::from_vec(3, 1, vec![10, 20, 60]);
        let right = Image::from_vec(3, 1, vec![0, 0, 0]);
        let window = BlockWindow { width: 3, height: 1 };
        // 30 - (10 + 10 + 20), 60 - 90, 180 - (20 + 60 + 60).
        assert_eq!(zero_mean(&left, window), [-10, -30, 40]);
        // Around column 1: 80; 80 * (8388608 / 9 = 932067) / 65536 = 1137.8. Around column 0 the first twice.
        assert_eq!(sum(BlockMeasure::ZeroMeanSad, window, [&left, &right], (1, 0)), 1137);
        assert_eq!(sum(BlockMeasure::ZeroMeanSad, window, [&left, &right], (0, 0)), 711);
    }

    #[test]
    fn windows_at_the_border_repeat_their_pixels_and_each_looks_up_its_own_match() {
        let left = Image::from_vec(3, 1, vec![1, 2, 4]);
        let right = Image::from_vec(3, 1, vec![8, 16, 32]);
        let window = BlockWindow { width: 3, height: 1 };
        let blocks = Blocks::new(&left, &right, BlockMeasure::Sad, window, 255);
        // At disparity 1, around column 2: 2 - 8, and 4 - 16 twice: 30. 30 * 2796202 / 65536 = 1279.99.
        assert_eq!(blocks.sum(2, 0, 1), 1279);
        // Around column 0: 1 - 8 twice and 2 - 8.
        assert_eq!(blocks.total(0, 0, 1), 20);
    }

    #[test]
    fn a_different_exposure_does_no_harm_without_the_means() {
        let scene = |x: usize, y: usize| (60 + (x * 37 + y * 11) % 90) as u8;
        let left = Image::from_fn(12, 9, scene);
        let right = Image::from_fn(12, 9, |x, y| scene(x, y) + 40);
        for (measure, expected) in [
            (BlockMeasure::Sad, 40 * 128),
            (BlockMeasure::Ssd, 1600 * 16),
            (BlockMeasure::ZeroMeanSad, 0),
            (BlockMeasure::ZeroMeanSsd, 0),
        ] {
            let found = sum(measure, BlockWindow { width: 5, height: 3 }, [&left, &right], (6, 4));
            assert!(found.abs_diff(expected) <= 1, "{measure:?}: {found}");
        }
    }

    #[test]
    fn no_total_leaves_its_bits() {
        for side in (1..=SIDE_MAX).step_by(2) {
            let window = BlockWindow { width: side, height: SIDE_MAX };
            let n = u64::from(window.area());
            for (measure, most) in [
                (BlockMeasure::Sad, 255 * n),
                (BlockMeasure::Ssd, 65025 * n),
                (BlockMeasure::ZeroMeanSad, 2 * 255 * n * n),
                (BlockMeasure::ZeroMeanSsd, 65025 * n * n),
            ] {
                let scale = Scale::of(measure, window);
                assert!(most.min(scale.limit.into()) * u64::from(scale.factor) < 1 << 32);
                assert!(scale.sum(most as u32) > 16000, "{measure:?} {window}");
            }
        }
    }

    #[test]
    fn windows_are_read_as_they_are_written() {
        assert_eq!("7".parse(), Ok(BlockWindow { width: 7, height: 7 }));
        assert_eq!("9x5".parse::<BlockWindow>().map(|w| w.to_string()), Ok("9x5".to_owned()));
        for wrong in ["", "0", "4", "13", "3x", "3x4", "3x3x3", "-3"] {
            assert!(wrong.parse::<BlockWindow>().is_err(), "{wrong}");
        }
    }
}
