//! The parameters of the matcher and what they may be.

use std::fmt;
use std::str::FromStr;

use crate::frame::DisparityRange;

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
}

impl Cost {
    /// Largest value the cost can take.
    pub fn max(&self) -> u32 {
        match *self {
            Cost::Ad { truncation, .. } => u32::from(truncation),
        }
    }

    /// The name that the command line and the configuration use.
    pub fn name(&self) -> &'static str {
        match self {
            Cost::Ad { .. } => "ad",
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
}

/// Smallest and largest disparity that a map can hold, in whole pixels: 1/16 px in an `i16`.
const DISPARITY_LIMITS: (i32, i32) = (-2047, 2046);

impl Params {
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
        let Cost::Ad { truncation, window } = self.cost;
        if truncation == 0 {
            return Err(ParamsError::Truncation);
        }
        if !matches!(window, 1 | 3 | 5 | 7) {
            return Err(ParamsError::Window(window));
        }
        if self.p2 < self.p1 {
            return Err(ParamsError::PenaltyOrder { p1: self.p1, p2: self.p2 });
        }
        if let P2Mode::Linear { min, .. } = self.p2_mode
            && min > self.p2
        {
            return Err(ParamsError::PenaltyFloor { min, p2: self.p2 });
        }
        if self.cost.max() + u32::from(self.p2) > PATH_COST_MAX {
            return Err(ParamsError::PathCost { cost: self.cost.max(), p2: self.p2 });
        }
        if self.uniqueness > 99 {
            return Err(ParamsError::Uniqueness(self.uniqueness));
        }
        Ok(())
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
    #[error("P2 is {p2} and P1 is {p1}; P2 must be at least P1 (--p1, --p2)")]
    PenaltyOrder { p1: u8, p2: u8 },
    #[error("the smallest P2 is {min} and P2 is {p2}; it must be at most P2 (--p2-min)")]
    PenaltyFloor { min: u8, p2: u8 },
    #[error("the largest cost ({cost}) and P2 ({p2}) add up to {}; together they must be at most {PATH_COST_MAX}, so lower --p2 or the cost's truncation", .cost + u32::from(*.p2))]
    PathCost { cost: u32, p2: u8 },
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
