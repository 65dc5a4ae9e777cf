//! Values of the parameters with a choice or more than one number.

use std::fmt;
use std::str::FromStr;

/// Denominator of the slope in [`P2Mode::Linear`].
pub const SLOPE_UNIT: u32 = 16;

/// The directions along which costs are aggregated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Paths {
    /// None: winner takes all on the cost itself (local matching).
    None,
    /// The axes: right, left, down, up.
    Four,
    /// Right, left, down, down-right, down-left: one sweep over the image.
    Five,
    /// The axes and the diagonals.
    Eight,
    /// The axes, the diagonals and the knight's moves between them (two pixels along one axis, one along the
    /// other).
    Sixteen,
}

impl Paths {
    /// Returns the steps (dx, dy) from one pixel of a path to the next.
    pub fn steps(self) -> &'static [(i32, i32)] {
        #[rustfmt::skip]
        const ALL: [(i32, i32); 16] = [
            (1, 0), (-1, 0), (0, 1), (0, -1),
            (1, 1), (-1, 1), (-1, -1), (1, -1),
            (2, 1), (1, 2), (-1, 2), (-2, 1), (-2, -1), (-1, -2), (1, -2), (2, -1),
        ];
        const FIVE: [(i32, i32); 5] = [(1, 0), (-1, 0), (0, 1), (1, 1), (-1, 1)];
        match self {
            Paths::None => &[],
            Paths::Four => &ALL[..4],
            Paths::Five => &FIVE,
            Paths::Eight => &ALL[..8],
            Paths::Sixteen => &ALL,
        }
    }

    /// Number of directions.
    pub fn count(self) -> usize {
        self.steps().len()
    }
}

/// Dependence of the penalty of a large disparity step on the image: a step in brightness makes a
/// step in depth likelier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum P2Mode {
    /// P2 everywhere.
    Fixed,
    /// max(P1, P2 / step), with step = abs(I(p) - I(p - r)); P2 if the step is 0.
    InverseGradient,
    /// max(min, P2 - slope * step / 16), integer division.
    Linear {
        /// Smallest penalty; may lie below P1.
        min: u8,
        /// Decrease per grey level of step, in sixteenths.
        slope_16: u16,
    },
}

impl P2Mode {
    /// Returns the name on the command line and in the configuration.
    pub fn name(&self) -> &'static str {
        match self {
            P2Mode::Fixed => "fixed",
            P2Mode::InverseGradient => "inverse-gradient",
            P2Mode::Linear { .. } => "linear",
        }
    }

    /// Returns the penalty for a brightness step of `step` grey levels.
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

    /// Returns [`P2Mode::penalty`] for every step.
    pub fn table(self, p1: u8, p2: u8) -> [u8; 256] {
        std::array::from_fn(|step| self.penalty(p1, p2, step as u8))
    }
}

/// The image that steers the penalty of a large disparity step by its brightness steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Guide {
    /// The left image, unchanged.
    Picture,
    /// The left image smoothed, so that noise makes no steps.
    Smoothed,
}

/// Side of the median window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Median {
    /// No median.
    Off,
    /// 3 x 3 pixels.
    Three,
    /// 5 x 5 pixels.
    Five,
}

impl Median {
    /// Returns the pixels from the centre to the window's edge; `None` for no median.
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

/// Speckle filter: removal of small regions of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speckle {
    /// Regions of fewer pixels become invalid.
    pub size: u32,
    /// Largest difference between neighbouring pixels of a region, in 1/16 px.
    pub range_16: u16,
}

impl fmt::Display for Paths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.count())
    }
}
