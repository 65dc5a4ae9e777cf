//! The matching cost C(p, d) of two pixels, an integer from 0 (alike) to the cost's maximum.
//!
//! A match column outside the image is replaced by the nearest column of its row (the "modified"
//! absolute difference: clamped, never undefined).

use crate::frame::{Image, clamped};
use crate::matching::block::{BlockMeasure, BlockWindow, Blocks, SIDE_MAX};
use crate::matching::census::{BITS_MAX, CensusWindow, descriptors};
use crate::matching::mutual_information::{CostTable, TRUNCATION_MAX};

/// Matching cost of two pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cost {
    /// Absolute difference of intensities, clamped to `truncation` grey levels (1 to 255), and averaged over
    /// a square window of `window` x `window` pixels (odd; 1 is the pixel alone).
    Ad {
        /// Largest cost a pixel can have.
        truncation: u8,
        /// Side of the window in pixels: 1, 3, 5 or 7.
        window: u8,
    },
    /// Hamming distance of census descriptors.
    Census {
        /// Pixels that a descriptor compares.
        window: CensusWindow,
    },
    /// Census, gradient and intensity together: (census_weight * Hamming distance of the 5 x 5 census +
    /// gradient_weight * min(abs(g_l - g_r), gradient_truncation) + intensity_weight * min(abs(I_l - I_r),
    /// intensity_truncation) + 8) / 16, rounded down, with g(x) = I(x + 1) - I(x - 1).
    Combined(CombinedWeights),
    /// Differences of intensity summed over a window, reduced to bytes for aggregation.
    Block {
        /// The summed difference.
        measure: BlockMeasure,
        /// The window.
        window: BlockWindow,
        /// Largest cost in the aggregation (1 to 255), in its unit.
        truncation: u8,
    },
    /// Mutual information of the grey levels, learnt from the pairs.
    MutualInformation {
        /// Largest cost (1 to 127), in eighths of a bit.
        truncation: u8,
    },
}

/// Weights and truncations of [`Cost::Combined`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CombinedWeights {
    /// Weight of a differing bit in sixteenths; all weights are at most 127.
    pub census_weight: u8,
    /// Weight of a grey level of difference in gradient, in sixteenths.
    pub gradient_weight: u8,
    /// Weight of a grey level of difference in intensity, in sixteenths.
    pub intensity_weight: u8,
    /// Largest difference in gradient that counts.
    pub gradient_truncation: u8,
    /// Largest difference in intensity that counts.
    pub intensity_truncation: u8,
}

/// A value that kernels and shaders are compiled with, by its name in both; 1 is true.
pub(crate) type Constant = (&'static str, i64);

/// The census window of [`Cost::Combined`].
pub const COMBINED_CENSUS: CensusWindow = CensusWindow::Plain { width: 5, height: 5 };

/// Largest weight in [`Cost::Combined`]: vector units multiply by signed bytes.
pub const WEIGHT_MAX: u8 = 127;

/// Properties of a cost in addition to its parameters.
pub struct CostInfo {
    /// Name on the command line and in the configuration.
    pub name: &'static str,
    /// Line of `--help`.
    pub about: &'static str,
    /// Flags that lower the largest cost.
    max_keys: &'static str,
    /// Other parameters that suit the cost.
    pub defaults: CostDefaults,
}

/// Parameters of the matcher that suit a cost. docs/accuracy.md says how they were found.
#[derive(Clone, Copy)]
#[allow(missing_docs)] // As in `Params`.
pub struct CostDefaults {
    /// Side of the window over which the cost is averaged; 0: none.
    pub window: u8,
    /// Coarser levels of the prior; 0: none.
    pub prior: u8,
    /// Number of directions.
    pub paths: u32,
    /// Penalty of a step by one disparity.
    pub p1: u8,
    /// Penalty of a larger step.
    pub p2: u8,
    /// Smallest P2 at steps in brightness.
    pub p2_min: u8,
    /// Decrease of P2 for each grey level of such a step, in sixteenths.
    pub p2_slope_16: u16,
    /// Side of the median filter's window.
    pub median: u8,
    /// 0: no speckle filter.
    pub speckle_size: u32,
}

/// All costs; the first is the default.
pub const COSTS: [CostInfo; 8] = [
    CostInfo {
        name: "combined",
        about: "Census, gradient and intensity together",
        max_keys: "the weights and truncations (`census_weight`, `gradient_weight`, \
                    `gradient_truncation`, `intensity_weight`, `intensity_truncation`)",
        defaults: CostDefaults {
            window: 5,
            prior: 2,
            paths: 4,
            p1: 32,
            p2: 155,
            p2_min: 25,
            p2_slope_16: 152,
            median: 3,
            speckle_size: 40,
        },
    },
    CostInfo {
        name: "census",
        about: "Hamming distance of census descriptors, which do not depend on exposure",
        max_keys: "the number of bits (`census_window`)",
        defaults: CostDefaults {
            p1: 20,
            p2: 60,
            p2_min: 15,
            p2_slope_16: 28,
            median: 3,
            ..UNSUPPORTED
        },
    },
    CostInfo {
        name: "ad",
        about: "Absolute difference of intensities, cut off at `ad_truncation`",
        max_keys: "`ad_truncation`",
        defaults: CostDefaults { p2_min: 3, speckle_size: 0, ..UNSUPPORTED },
    },
    block("sad", "Sum of absolute differences over `block_window`"),
    block("ssd", "Sum of squared differences over `block_window`"),
    block("zsad", "Sum of absolute differences over `block_window` without the windows' means"),
    block("zssd", "Sum of squared differences over `block_window` without the windows' means"),
    CostInfo {
        name: "mi",
        about: "Mutual information: learns from the pairs how the grey levels of the two views correspond, \
                so that exposure, gamma and even negatives do not matter",
        max_keys: "`mi_truncation`",
        defaults: CostDefaults {
            p1: 40,
            p2: 160,
            p2_min: 25,
            p2_slope_16: 64,
            speckle_size: 0,
            ..UNSUPPORTED
        },
    },
];

/// Defaults that most costs share, without a window or prior.
const UNSUPPORTED: CostDefaults = CostDefaults {
    window: 0,
    prior: 0,
    paths: 8,
    p1: 12,
    p2: 80,
    p2_min: 10,
    p2_slope_16: 32,
    median: 5,
    speckle_size: 80,
};

const fn block(name: &'static str, about: &'static str) -> CostInfo {
    let defaults = CostDefaults { paths: 0, ..UNSUPPORTED };
    CostInfo { name, about, max_keys: "`block_truncation`", defaults }
}

impl Cost {
    /// Returns the largest value of the cost.
    pub fn max(&self) -> u32 {
        match *self {
            Cost::Ad { truncation, .. }
            | Cost::Block { truncation, .. }
            | Cost::MutualInformation { truncation } => u32::from(truncation),
            Cost::Census { window } => window.bits(),
            Cost::Combined(of) => {
                let product = |a: u8, b: u8| u32::from(a) * u32::from(b);
                let sum = u32::from(of.census_weight) * COMBINED_CENSUS.bits()
                    + product(of.gradient_weight, of.gradient_truncation)
                    + product(of.intensity_weight, of.intensity_truncation);
                (sum + 8) >> 4
            }
        }
    }

    /// Returns the constants of all costs. Those of another one have values that change nothing.
    pub(crate) fn constants(&self) -> Vec<Constant> {
        let (mut truncation, mut window, mut measure) = (u8::MAX, COMBINED_CENSUS, None);
        let mut weights = CombinedWeights::default();
        match *self {
            Cost::Ad { truncation: of_cost, .. } => truncation = of_cost,
            Cost::Census { window: of_cost } => window = of_cost,
            Cost::Combined(of_cost) => weights = of_cost,
            Cost::Block { measure: of_cost, .. } => measure = Some(of_cost),
            Cost::MutualInformation { .. } => {}
        }
        let (width, height) = window.size();
        vec![
            ("AD_TRUNCATION", truncation.into()),
            ("SQUARED", measure.is_some_and(BlockMeasure::is_squared).into()),
            ("ZERO_MEAN", measure.is_some_and(BlockMeasure::is_zero_mean).into()),
            ("CENSUS_WIDTH", width as i64),
            ("CENSUS_HEIGHT", height as i64),
            ("CENSUS_BITS", window.bits().into()),
            ("CENSUS_SYMMETRIC", (window == CensusWindow::Symmetric9x7).into()),
            ("CENSUS_WEIGHT", weights.census_weight.into()),
            ("GRADIENT_WEIGHT", weights.gradient_weight.into()),
            ("INTENSITY_WEIGHT", weights.intensity_weight.into()),
            ("GRADIENT_TRUNCATION", weights.gradient_truncation.into()),
            ("INTENSITY_TRUNCATION", weights.intensity_truncation.into()),
        ]
    }

    /// Names the parameters that lower [`Cost::max`], for messages.
    pub(super) fn max_keys(&self) -> &'static str {
        self.info().max_keys
    }

    /// Returns the other parameters that suit the cost.
    pub(super) fn defaults(&self) -> CostDefaults {
        self.info().defaults
    }

    fn info(&self) -> &'static CostInfo {
        COSTS.iter().find(|info| info.name == self.name()).expect("every cost is listed")
    }

    /// Returns the name on the command line and in the configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Cost::Ad { .. } => "ad",
            Cost::Census { .. } => "census",
            Cost::Combined(_) => "combined",
            Cost::Block { measure, .. } => measure.name(),
            Cost::MutualInformation { .. } => "mi",
        }
    }

    /// Checks that an engine supports the cost.
    pub(super) fn check(&self) -> Result<(), CostError> {
        match *self {
            Cost::Ad { truncation: 0, .. } => Err(CostError::Truncation),
            Cost::Ad { window, .. } if !matches!(window, 1 | 3 | 5 | 7) => {
                Err(CostError::Window(window))
            }
            Cost::Census { window } if !window.is_valid() => Err(CostError::Census(window)),
            Cost::Combined(of) => {
                let weights = [
                    (of.census_weight, "`census_weight`"),
                    (of.gradient_weight, "`gradient_weight`"),
                    (of.intensity_weight, "`intensity_weight`"),
                ];
                match weights.into_iter().find(|&(weight, _)| weight > WEIGHT_MAX) {
                    Some((weight, key)) => Err(CostError::Weight { weight, key }),
                    None if self.max() == 0 => Err(CostError::NoWeight),
                    None => Ok(()),
                }
            }
            Cost::Block { truncation: 0, .. } => Err(CostError::BlockTruncation),
            Cost::Block { window, measure, .. }
                if !window.is_valid() || measure.is_zero_mean() && window.area() == 1 =>
            {
                Err(CostError::Block(window, measure.name()))
            }
            Cost::MutualInformation { truncation }
                if !(1..=TRUNCATION_MAX).contains(&truncation) =>
            {
                Err(CostError::MutualInformation(truncation))
            }
            Cost::Ad { .. }
            | Cost::Census { .. }
            | Cost::Block { .. }
            | Cost::MutualInformation { .. } => Ok(()),
        }
    }
}

/// A parameter of the cost that no engine supports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say it all.
#[non_exhaustive]
pub enum CostError {
    #[error("the truncation of the cost is 0; it must be 1 to 255 (`ad_truncation`)")]
    Truncation,
    #[error("the window of the cost is {0} pixels; it must be 1, 3, 5 or 7 (`ad_window`)")]
    Window(u8),
    #[error("the truncation of the cost is 0; it must be 1 to 255 (`block_truncation`)")]
    BlockTruncation,
    #[error(
        "a window of {0} pixels cannot be used for the cost `{1}`; width and height must be odd, 1 to {SIDE_MAX}, and without its mean a single pixel is always 0 (`block_window`)"
    )]
    Block(BlockWindow, &'static str),
    #[error(
        "the truncation of the cost is {0}; it must be 1 to {TRUNCATION_MAX} (`mi_truncation`)"
    )]
    MutualInformation(u8),
    #[error(
        "a census window of {0} pixels cannot be used; width and height must be odd, with 1 to {BITS_MAX} pixels besides the centre (`census_window`)"
    )]
    Census(CensusWindow),
    #[error("a weight of the cost is {weight}; it must be 0 to {WEIGHT_MAX} ({key})")]
    Weight { weight: u8, key: &'static str },
    #[error(
        "the combined cost is always 0; give one of its parts more weight (`census_weight`, `gradient_weight`, `intensity_weight`)"
    )]
    NoWeight,
}

/// Matching cost of a pixel of the left image.
pub trait PixelCost {
    /// Returns C(p, d) for p = (x, y) and disparity `d` in pixels, which may be negative.
    fn at(&self, x: usize, y: usize, d: i32) -> u8;
}

/// Returns the cost between two images of equal size. Mutual information needs its `table`; other
/// costs ignore it.
pub fn pixel_cost<'a>(
    left: &'a Image,
    right: &'a Image,
    cost: Cost,
    table: Option<&'a CostTable>,
) -> Box<dyn PixelCost + 'a> {
    match cost {
        Cost::MutualInformation { .. } => {
            let table = table.expect("mutual information has a table");
            Box::new(LookedUp { left, right, table })
        }
        Cost::Ad { truncation, window: 1 } => {
            Box::new(AbsoluteDifference { left, right, truncation })
        }
        Cost::Ad { truncation, window } => {
            let pixel = AbsoluteDifference { left, right, truncation };
            Box::new(WindowMean { pixel, radius: usize::from(window / 2) })
        }
        Cost::Census { window } => Box::new(CensusDistance::new(left, right, window)),
        Cost::Block { measure, window, truncation } => {
            Box::new(Blocks::new(left, right, measure, window, truncation))
        }
        Cost::Combined(of) => Box::new(Combined {
            census: CensusDistance::new(left, right, COMBINED_CENSUS),
            intensity: AbsoluteDifference { left, right, truncation: of.intensity_truncation },
            of,
        }),
    }
}

/// Truncated absolute difference of intensities: min(abs(I_l(x, y) - I_r(x - d, y)), truncation).
struct AbsoluteDifference<'a> {
    left: &'a Image,
    right: &'a Image,
    truncation: u8,
}

impl PixelCost for AbsoluteDifference<'_> {
    fn at(&self, x: usize, y: usize, d: i32) -> u8 {
        let match_x = clamped(x as i64 - i64::from(d), self.right.width());
        self.left.row(y)[x].abs_diff(self.right.row(y)[match_x]).min(self.truncation)
    }
}

/// Cost from a table of pairs of grey levels.
struct LookedUp<'a> {
    left: &'a Image,
    right: &'a Image,
    table: &'a CostTable,
}

impl PixelCost for LookedUp<'_> {
    fn at(&self, x: usize, y: usize, d: i32) -> u8 {
        let match_x = clamped(x as i64 - i64::from(d), self.right.width());
        self.table.at(self.left.row(y)[x], self.right.row(y)[match_x])
    }
}

impl PixelCost for Blocks<'_> {
    fn at(&self, x: usize, y: usize, d: i32) -> u8 {
        self.byte(x, y, d)
    }
}

/// Mean of [`AbsoluteDifference`] over a square window, rounded to the nearest integer. Window pixels outside
/// the left image are clamped; each then uses its own match column.
struct WindowMean<'a> {
    pixel: AbsoluteDifference<'a>,
    radius: usize,
}

impl PixelCost for WindowMean<'_> {
    fn at(&self, x: usize, y: usize, d: i32) -> u8 {
        let radius = self.radius as i64;
        let (width, height) = (self.pixel.left.width(), self.pixel.left.height());
        let mut sum = 0u32;
        for row in -radius..=radius {
            for column in -radius..=radius {
                let (x, y) = (clamped(x as i64 + column, width), clamped(y as i64 + row, height));
                sum += u32::from(self.pixel.at(x, y, d));
            }
        }
        let area = (2 * self.radius as u32 + 1).pow(2);
        ((sum + area / 2) / area) as u8
    }
}

/// Hamming distance of two census descriptors. Match columns are clamped to the image.
struct CensusDistance {
    width: usize,
    left: Vec<u64>,
    right: Vec<u64>,
}

impl CensusDistance {
    fn new(left: &Image, right: &Image, window: CensusWindow) -> Self {
        let (left_bits, right_bits) = (descriptors(left, window), descriptors(right, window));
        Self { width: left.width(), left: left_bits, right: right_bits }
    }
}

impl PixelCost for CensusDistance {
    fn at(&self, x: usize, y: usize, d: i32) -> u8 {
        let match_x = clamped(x as i64 - i64::from(d), self.width);
        let row = y * self.width;
        (self.left[row + x] ^ self.right[row + match_x]).count_ones() as u8
    }
}

/// Census, gradient and intensity, weighted in sixteenths and rounded to the nearest integer.
struct Combined<'a> {
    census: CensusDistance,
    intensity: AbsoluteDifference<'a>,
    of: CombinedWeights,
}

impl PixelCost for Combined<'_> {
    fn at(&self, x: usize, y: usize, d: i32) -> u8 {
        let (left, right) = (self.intensity.left.row(y), self.intensity.right.row(y));
        let match_x = clamped(x as i64 - i64::from(d), right.len());
        let difference = gradient(left, x).abs_diff(gradient(right, match_x));
        let parts = [
            u32::from(self.census.at(x, y, d)),
            u32::from(difference.min(u16::from(self.of.gradient_truncation))),
            u32::from(self.intensity.at(x, y, d)),
        ];
        let weights = [self.of.census_weight, self.of.gradient_weight, self.of.intensity_weight];
        let sum: u32 = parts.into_iter().zip(weights).map(|(p, w)| p * u32::from(w)).sum();
        ((sum + 8) >> 4) as u8
    }
}

/// I(x + 1) - I(x - 1) along a row, with clamped columns.
fn gradient(row: &[u8], x: usize) -> i16 {
    let (after, before) = (row[(x + 1).min(row.len() - 1)], row[x.saturating_sub(1)]);
    i16::from(after) - i16::from(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_cut_off_and_columns_outside_are_clamped() {
        let left = Image::from_vec(4, 1, vec![10, 20, 30, 40]);
        let right = Image::from_vec(4, 1, vec![12, 90, 30, 7]);
        let cost = pixel_cost(&left, &right, Cost::Ad { truncation: 50, window: 1 }, None);
        assert_eq!(cost.at(0, 0, 0), 2);
        assert_eq!(cost.at(2, 0, 1), 50); // 60 is cut off.
        assert_eq!(cost.at(1, 0, 3), 8); // Column -2 becomes 0.
        assert_eq!(cost.at(3, 0, -5), 33); // Column 8 becomes 3.
    }

    #[test]
    fn the_window_mean_is_rounded_and_its_pixels_are_clamped() {
        let left = Image::from_vec(2, 2, vec![0, 9, 4, 0]);
        let right = Image::from_vec(2, 2, vec![0, 0, 0, 0]);
        let cost = pixel_cost(&left, &right, Cost::Ad { truncation: 255, window: 3 }, None);
        // Rows -1, 0, 1 and columns -1, 0, 1 around (0, 0) become 0 0 1 each:
        // 0 0 9 / 0 0 9 / 4 4 0 sums to 26, and 26 / 9 rounds to 3.
        assert_eq!(cost.at(0, 0, 0), 3);
        // Around (1, 1): 0 9 9 / 4 0 0 / 4 0 0 sums to 26 as well.
        assert_eq!(cost.at(1, 1, 0), 3);
        // Around (1, 0): 0 9 9 / 0 9 9 / 4 0 0 sums to 40, and 40 / 9 rounds to 4.
        assert_eq!(cost.at(1, 0, 0), 4);
    }
    #[test]
    fn the_census_cost_counts_bits_and_takes_the_nearest_descriptor() {
        let left = Image::from_vec(4, 1, vec![5, 3, 8, 8]);
        let right = Image::from_vec(4, 1, vec![9, 1, 2, 2]);
        // Bits (before darker, after darker): left 10, 00, 01, 00 as bit 1, bit 0; right 10, 00, 01, 00.
        let window = CensusWindow::Plain { width: 3, height: 1 };
        let cost = pixel_cost(&left, &right, Cost::Census { window }, None);
        assert_eq!(cost.at(0, 0, 0), 0);
        assert_eq!(cost.at(2, 0, 0), 0);
        assert_eq!(cost.at(2, 0, 1), 1);
        // Column -1 takes the descriptor of column 0, 10, against 01.
        assert_eq!(cost.at(2, 0, 3), 2);
        // Column 6 takes the descriptor of column 3, 00, against 10.
        assert_eq!(cost.at(0, 0, -6), 1);
    }

    #[test]
    fn the_combined_cost_by_hand() {
        // 5x5 windows of a single row repeat it five times.
        let left = Image::from_vec(3, 1, vec![10, 20, 40]);
        let right = Image::from_vec(3, 1, vec![10, 20, 18]);
        let cost = Cost::Combined(CombinedWeights {
            census_weight: 14,
            gradient_weight: 11,
            intensity_weight: 8,
            gradient_truncation: 5,
            intensity_truncation: 6,
        });
        assert_eq!(cost.max(), 27); // (336 + 55 + 48 + 8) / 16 = 27.9.
        let cost = pixel_cost(&left, &right, cost, None);
        // (0, 0): left reads 10 10 10 20 40, right 10 10 10 20 18: nothing is darker. Gradients 10
        // and 10, intensities 10 and 10.
        assert_eq!(cost.at(0, 0, 0), 0);
        // (1, 0): left reads 10 10 20 40 40, right 10 10 20 18 18: in each of five rows the last two
        // differ, 10 bits. Gradients 30 and 8: 5. (140 + 55 + 0 + 8) / 16 = 12.7.
        assert_eq!(cost.at(1, 0, 0), 12);
        // (2, 0): left reads 10 20 40 40 40 (the first two are darker), right 10 20 18 18 18 (only the
        // first): 5 bits. Gradients 20 and -2: 5. Intensities 40 and 18: 6.
        // (70 + 55 + 48 + 8) / 16 = 11.3.
        assert_eq!(cost.at(2, 0, 0), 11);
        // (1, 0) with column 0: the first two of each row differ, 10 bits; gradients 30 and 10: 5;
        // intensities 20 and 10: 6. (140 + 55 + 48 + 8) / 16 = 15.7. A column outside is column 0.
        assert_eq!(cost.at(1, 0, 1), 15);
        assert_eq!(cost.at(1, 0, 7), 15);
        // Gradients reach from -255 to 255, and 255 levels of their difference may count.
        let left = Image::from_vec(3, 1, vec![0, 9, 255]);
        let right = Image::from_vec(3, 1, vec![255, 9, 0]);
        let cost = Cost::Combined(CombinedWeights {
            census_weight: 0,
            gradient_weight: 16,
            intensity_weight: 0,
            gradient_truncation: 255,
            intensity_truncation: 1,
        });
        assert_eq!(pixel_cost(&left, &right, cost, None).at(1, 0, 0), 255);
    }
}
