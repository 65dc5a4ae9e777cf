//! The parameters of the matcher and what they may be.

use std::fmt;
use std::str::FromStr;

use crate::frame::DisparityRange;
use crate::matching::census::{BITS_MAX, CensusWindow};

/// Largest path cost an engine can hold: one byte a candidate.
pub const PATH_COST_MAX: u32 = 255;

/// Denominator of the slope in [`P2Mode::Linear`].
pub const SLOPE_UNIT: u32 = 16;

/// How well two pixels agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Absolute difference of intensities, cut off at `truncation` grey levels (1 to 255), and
    /// averaged over a square window of `window` x `window` pixels (odd; 1 is the pixel alone).
    Ad {
        /// Largest cost a pixel can have.
        truncation: u8,
        /// Side of the window in pixels: 1, 3, 5 or 7.
        window: u8,
    },
    /// Hamming distance of census descriptors.
    Census {
        /// What a descriptor compares.
        window: CensusWindow,
    },
    /// Census, gradient and intensity together: (census_weight * Hamming distance of
    /// the 5 x 5 census + gradient_weight * min(abs(g_l - g_r), gradient_truncation) +
    /// intensity_weight * min(abs(I_l - I_r), intensity_truncation) + 8) / 16, rounded down, where
    /// g(x) = I(x + 1) - I(x - 1).
    Combined {
        /// Sixteenths a bit in which the descriptors differ; as the other weights at most
        /// 127.
        census_weight: u8,
        /// Sixteenths a grey level of difference in gradient.
        gradient_weight: u8,
        /// Sixteenths a grey level of difference in intensity.
        intensity_weight: u8,
        /// Largest difference in gradient that counts.
        gradient_truncation: u8,
        /// Largest difference in intensity that counts.
        intensity_truncation: u8,
    },
}

/// The census window of [`Cost::Combined`].
pub const COMBINED_CENSUS: CensusWindow = CensusWindow::Plain { width: 5, height: 5 };

/// Largest weight in [`Cost::Combined`]: vector units multiply by signed bytes.
pub const WEIGHT_MAX: u8 = 127;

impl Cost {
    /// Largest value the cost can take.
    pub fn max(&self) -> u32 {
        match *self {
            Cost::Ad { truncation, .. } => u32::from(truncation),
            Cost::Census { window } => window.bits(),
            Cost::Combined {
                census_weight,
                gradient_weight,
                intensity_weight,
                gradient_truncation,
                intensity_truncation,
            } => {
                let product = |a: u8, b: u8| u32::from(a) * u32::from(b);
                let sum = u32::from(census_weight) * COMBINED_CENSUS.bits()
                    + product(gradient_weight, gradient_truncation)
                    + product(intensity_weight, intensity_truncation);
                (sum + 8) >> 4
            }
        }
    }

    /// What lowers [`Cost::max`], as flags for people.
    fn max_flags(&self) -> &'static str {
        match self {
            Cost::Ad { .. } => "--ad-truncation",
            Cost::Census { .. } => "the number of bits (--census-window)",
            Cost::Combined { .. } => {
                "the weights and truncations (--census-weight, --gradient-weight, \
                 --gradient-truncation, --intensity-weight, --intensity-truncation)"
            }
        }
    }

    /// The name that the command line and the configuration use.
    pub fn name(&self) -> &'static str {
        match self {
            Cost::Ad { .. } => "ad",
            Cost::Census { .. } => "census",
            Cost::Combined { .. } => "combined",
        }
    }
}

/// The set of directions along which costs are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// The axes: right, left, down, up.
    Four,
    /// Right, left, down, down-right, down-left: one sweep over the picture.
    Five,
    /// The axes and the diagonals.
    Eight,
}

impl Paths {
    /// The steps (dx, dy) from one pixel of a path to the next.
    pub fn steps(self) -> &'static [(i32, i32)] {
        const ALL: [(i32, i32); 8] =
            [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)];
        const FIVE: [(i32, i32); 5] = [(1, 0), (-1, 0), (0, 1), (1, 1), (-1, 1)];
        match self {
            Paths::Four => &ALL[..4],
            Paths::Five => &FIVE,
            Paths::Eight => &ALL,
        }
    }

    /// Number of directions.
    pub fn count(self) -> usize {
        self.steps().len()
    }
}

impl TryFrom<u32> for Paths {
    type Error = ParamsError;
    fn try_from(count: u32) -> Result<Self, ParamsError> {
        match count {
            4 => Ok(Paths::Four),
            5 => Ok(Paths::Five),
            8 => Ok(Paths::Eight),
            _ => Err(ParamsError::Paths(count)),
        }
    }
}

/// How the penalty of a large disparity step depends on the picture: a step in brightness makes a
/// step in depth likelier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum P2Mode {
    /// P2 everywhere.
    Fixed,
    /// max(P1, P2 / step), where step = abs(I(p) - I(p - r)); P2 where the step is 0.
    InverseGradient,
    /// max(min, P2 - slope * step / 16), integer division.
    Linear {
        /// Smallest penalty; may lie below P1.
        min: u8,
        /// Loss per grey level of step, in sixteenths.
        slope_16: u16,
    },
}

impl P2Mode {
    /// The name that the command line and the configuration use.
    pub fn name(&self) -> &'static str {
        match self {
            P2Mode::Fixed => "fixed",
            P2Mode::InverseGradient => "inverse-gradient",
            P2Mode::Linear { .. } => "linear",
        }
    }

    /// The penalty for a brightness step of `step` grey levels.
    pub fn penalty(self, p1: u8, p2: u8, step: u8) -> u8 {
        match self {
            P2Mode::Fixed => p2,
            P2Mode::InverseGradient => p2.checked_div(step).map_or(p2, |p| p.max(p1)),
            P2Mode::Linear { min, slope_16 } => {
                let loss = u32::from(slope_16) * u32::from(step) / SLOPE_UNIT;
                (u32::from(p2).saturating_sub(loss) as u8).max(min)
            }
        }
    }

    /// [`P2Mode::penalty`] for every step.
    pub fn table(self, p1: u8, p2: u8) -> [u8; 256] {
        std::array::from_fn(|step| self.penalty(p1, p2, step as u8))
    }
}

/// Side of the median window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Median {
    /// No median.
    Off,
    /// 3 x 3 pixels.
    Three,
    /// 5 x 5 pixels.
    Five,
}

impl Median {
    /// Pixels from the centre to the window's edge, or `None` for no median.
    pub fn radius(self) -> Option<usize> {
        match self {
            Median::Off => None,
            Median::Three => Some(1),
            Median::Five => Some(2),
        }
    }
}

impl FromStr for Median {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "0" | "off" => Ok(Median::Off),
            "3" => Ok(Median::Three),
            "5" => Ok(Median::Five),
            _ => Err(format!("median is 0 (off), 3 or 5, not {text}")),
        }
    }
}

/// Which regions of the map are too small to be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speckle {
    /// Regions of fewer pixels become invalid.
    pub size: u32,
    /// Neighbouring pixels of a region differ by no more than this, in 1/16 px.
    pub range_16: u16,
}

/// Everything the result depends on besides the two pictures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// Candidate disparities.
    pub range: DisparityRange,
    /// Pixel-wise cost.
    pub cost: Cost,
    /// Directions of aggregation.
    pub paths: Paths,
    /// Penalty for a disparity step of one pixel between neighbours of a path.
    pub p1: u8,
    /// Penalty for a larger step.
    pub p2: u8,
    /// How P2 depends on the picture.
    pub p2_mode: P2Mode,
    /// A pixel is invalid where another disparity's sum is within this many percent of the best
    /// one's (0: no check).
    pub uniqueness: u8,
    /// Whether the disparity is interpolated to 1/16 px.
    pub subpixel: bool,
    /// Largest difference in whole pixels between the disparity seen from the left and from the
    /// right; `None`: no check.
    pub left_right: Option<u16>,
    /// Median filter of the result.
    pub median: Median,
    /// Removal of small regions, after the median; `None`: none.
    pub speckle: Option<Speckle>,
}

/// Smallest and largest disparity that a map can hold, in whole pixels: 1/16 px in an `i16`.
pub const DISPARITY_LIMITS: (i32, i32) = (-2047, 2046);

impl Params {
    /// The winner along eight paths and nothing more: no sub-pixel interpolation, no checks, no filters,
    /// and P2 the same everywhere.
    pub fn bare(range: DisparityRange, cost: Cost, (p1, p2): (u8, u8)) -> Self {
        Self {
            range,
            cost,
            paths: Paths::Eight,
            p1,
            p2,
            p2_mode: P2Mode::Fixed,
            uniqueness: 0,
            subpixel: false,
            left_right: None,
            median: Median::Off,
            speckle: None,
        }
    }

    /// Whether an engine can compute this.
    ///
    /// # Errors
    /// The first value that is out of its range, with what it may be.
    pub fn check(&self) -> Result<(), ParamsError> {
        let range = self.range;
        if !(1..=1024).contains(&range.count) {
            return Err(ParamsError::Disparities(range.count));
        }
        if range.min < DISPARITY_LIMITS.0 || range.max() > DISPARITY_LIMITS.1 {
            return Err(ParamsError::Range(range));
        }
        self.check_cost()?;
        if self.p2 < self.p1 {
            return Err(ParamsError::PenaltyOrder { p1: self.p1, p2: self.p2 });
        }
        if let P2Mode::Linear { min, .. } = self.p2_mode
            && min > self.p2
        {
            return Err(ParamsError::PenaltyFloor { min, p2: self.p2 });
        }
        if self.cost.max() + u32::from(self.p2) > PATH_COST_MAX {
            let (cost, flags) = (self.cost.max(), self.cost.max_flags());
            return Err(ParamsError::PathCost { cost, p2: self.p2, flags });
        }
        if self.uniqueness > 99 {
            return Err(ParamsError::Uniqueness(self.uniqueness));
        }
        Ok(())
    }

    fn check_cost(&self) -> Result<(), ParamsError> {
        match self.cost {
            Cost::Ad { truncation: 0, .. } => Err(ParamsError::Truncation),
            Cost::Ad { window, .. } if !matches!(window, 1 | 3 | 5 | 7) => {
                Err(ParamsError::Window(window))
            }
            Cost::Census { window } if !window.is_valid() => Err(ParamsError::Census(window)),
            Cost::Combined { census_weight, gradient_weight, intensity_weight, .. } => {
                let weights = [
                    (census_weight, "--census-weight"),
                    (gradient_weight, "--gradient-weight"),
                    (intensity_weight, "--intensity-weight"),
                ];
                match weights.into_iter().find(|&(weight, _)| weight > WEIGHT_MAX) {
                    Some((weight, flag)) => Err(ParamsError::Weight { weight, flag }),
                    None if self.cost.max() == 0 => Err(ParamsError::NoWeight),
                    None => Ok(()),
                }
            }
            Cost::Ad { .. } | Cost::Census { .. } => Ok(()),
        }
    }
}

/// A parameter that no engine can work with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say it all.
pub enum ParamsError {
    #[error("the number of disparities is {0}; it must be 1 to 1024 (--disparities)")]
    Disparities(usize),
    #[error("disparities {} to {} do not fit a disparity map; they must lie within {} to {} (--min-disparity, --disparities)",
        .0.min, .0.max(), DISPARITY_LIMITS.0, DISPARITY_LIMITS.1)]
    Range(DisparityRange),
    #[error("the number of paths is {0}; it must be 4, 5 or 8 (--paths)")]
    Paths(u32),
    #[error("the truncation of the cost is 0; it must be 1 to 255 (--ad-truncation)")]
    Truncation,
    #[error("the window of the cost is {0} pixels; it must be 1, 3, 5 or 7 (--ad-window)")]
    Window(u8),
    #[error(
        "a census window of {0} pixels cannot be used; width and height must be odd, with 1 to {BITS_MAX} pixels besides the centre (--census-window)"
    )]
    Census(CensusWindow),
    #[error("a weight of the cost is {weight}; it must be 0 to {WEIGHT_MAX} ({flag})")]
    Weight { weight: u8, flag: &'static str },
    #[error(
        "the combined cost is always 0; give one of its parts more weight (--census-weight, --gradient-weight, --intensity-weight)"
    )]
    NoWeight,
    #[error("P2 is {p2} and P1 is {p1}; P2 must be at least P1 (--p1, --p2)")]
    PenaltyOrder { p1: u8, p2: u8 },
    #[error("the smallest P2 is {min} and P2 is {p2}; it must be at most P2 (--p2-min)")]
    PenaltyFloor { min: u8, p2: u8 },
    #[error("the largest cost ({cost}) and P2 ({p2}) add up to {}; together they must be at most {PATH_COST_MAX}, so lower --p2 or {flags}", .cost + u32::from(*.p2))]
    PathCost { cost: u32, p2: u8, flags: &'static str },
    #[error("uniqueness is {0} %; it must be 0 (off) to 99 (--uniqueness)")]
    Uniqueness(u8),
}

impl fmt::Display for Paths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.count())
    }
}

impl fmt::Display for DisparityRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", self.min, self.max())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(cost: Cost, p2: u8) -> Result<(), ParamsError> {
        let speckle = Some(Speckle { size: u32::MAX, range_16: u16::MAX });
        let range = DisparityRange { min: 0, count: 16 };
        Params { speckle, ..Params::bare(range, cost, (1, p2)) }.check()
    }

    fn combined(weights: [u8; 3], truncations: [u8; 2]) -> Cost {
        Cost::Combined {
            census_weight: weights[0],
            gradient_weight: weights[1],
            intensity_weight: weights[2],
            gradient_truncation: truncations[0],
            intensity_truncation: truncations[1],
        }
    }

    #[test]
    fn every_cost_has_its_largest_value_and_leaves_the_rest_to_p2() {
        let plain = |width, height| Cost::Census { window: CensusWindow::Plain { width, height } };
        let cases = [
            (Cost::Ad { truncation: 32, window: 3 }, 32),
            (plain(5, 5), 24),
            (plain(13, 5), 64),
            (Cost::Census { window: CensusWindow::Symmetric9x7 }, 31),
            (combined([14, 11, 8], [5, 6]), 27),
            (combined([127, 11, 8], [5, 6]), 197),
            (combined([0, 127, 0], [17, 255]), 135),
        ];
        for (cost, max) in cases {
            assert_eq!(cost.max(), max, "{cost:?}");
            assert_eq!(with(cost, (255 - max) as u8), Ok(()));
            if max > 0 {
                let error = with(cost, (256 - max) as u8).unwrap_err();
                assert!(matches!(error, ParamsError::PathCost { .. }), "{error}");
                let text = error.to_string();
                assert!(text.contains("--p2 or ") && text.contains("add up to 256"), "{text}");
            }
        }
    }

    #[test]
    fn what_is_wrong_with_a_cost_is_said_with_its_flag() {
        let plain = |width, height| Cost::Census { window: CensusWindow::Plain { width, height } };
        for (cost, flag) in [
            (Cost::Ad { truncation: 0, window: 1 }, "--ad-truncation"),
            (Cost::Ad { truncation: 9, window: 2 }, "--ad-window"),
            (plain(1, 1), "--census-window"),
            (plain(0, 9), "--census-window"),
            (plain(4, 5), "--census-window"),
            (plain(9, 9), "--census-window"),
            (plain(255, 255), "--census-window"),
            (combined([128, 0, 0], [5, 6]), "--census-weight"),
            (combined([1, 128, 0], [5, 6]), "--gradient-weight"),
            (combined([1, 0, 255], [5, 6]), "--intensity-weight"),
            (combined([0, 1, 1], [3, 4]), "--census-weight"), // (3 + 4 + 8) / 16 = 0.
            (combined([127, 127, 0], [255, 0]), "--gradient-truncation"),
        ] {
            let error = with(cost, 1).unwrap_err().to_string();
            assert!(error.contains(flag), "{cost:?}: {error}");
        }
    }
}
