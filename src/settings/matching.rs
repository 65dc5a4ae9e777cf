//! `[matching]`: what is computed.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::values::{OrOff, Unfit};
use crate::frame::DisparityRange;
use crate::matching::params::SLOPE_UNIT;
use crate::matching::{Cost, Median, P2Mode, Params, ParamsError, Paths};

/// How well two pixels agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum CostKind {
    /// Absolute difference of intensities, cut off at `ad_truncation`.
    #[default]
    Ad,
}

/// How the penalty of a large step depends on the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum P2Kind {
    /// P2 everywhere.
    Fixed,
    /// P2 divided by the step in brightness, at least P1.
    InverseGradient,
    /// P2 less `p2_slope` for every grey level of the step, at least `p2_min`.
    #[default]
    Linear,
}

/// What is computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Matching {
    /// Number of candidate disparities.
    pub disparities: usize,
    /// Smallest candidate in pixels.
    pub min_disparity: i32,
    /// How well two pixels agree.
    pub cost: CostKind,
    /// Largest difference that counts, in grey levels.
    pub ad_truncation: u8,
    /// Side in pixels of the window over which the difference is averaged.
    pub ad_window: u8,
    /// Number of directions along which costs are summed.
    pub paths: u32,
    /// Penalty for a step of one pixel.
    pub p1: u8,
    /// Penalty for a larger step.
    pub p2: u8,
    /// How P2 depends on the picture.
    pub p2_mode: P2Kind,
    /// Smallest P2 of the mode `linear`.
    pub p2_min: u8,
    /// What P2 loses for every grey level of step in the mode `linear`.
    pub p2_slope: f64,
    /// Uniqueness in percent; 0 is off.
    pub uniqueness: u8,
    /// Whether disparity is interpolated to 1/16 px.
    pub subpixel: bool,
    /// Largest difference between the eyes' disparities in pixels.
    pub left_right: OrOff,
    /// Side of the median window in pixels; 0 is off.
    pub median: u8,
}

impl Default for Matching {
    fn default() -> Self {
        Matching {
            disparities: 64,
            min_disparity: 0,
            cost: CostKind::Ad,
            ad_truncation: 32,
            ad_window: 3,
            paths: 8,
            p1: 12,
            p2: 80,
            p2_mode: P2Kind::Linear,
            p2_min: 3,
            p2_slope: 2.0,
            uniqueness: 8,
            subpixel: true,
            left_right: OrOff::Value(1),
            median: 5,
        }
    }
}

/// Largest slope: P2 then falls from 255 to nothing within one grey level.
const SLOPE_MAX: f64 = 255.0;

impl Matching {
    /// The parameters that an engine takes.
    ///
    /// # Errors
    /// The first value that no engine can work with, naming its flag.
    pub fn params(&self) -> Result<Params, ParamsError> {
        let cost = match self.cost {
            CostKind::Ad => Cost::Ad { truncation: self.ad_truncation, window: self.ad_window },
        };
        let p2_mode = match self.p2_mode {
            P2Kind::Fixed => P2Mode::Fixed,
            P2Kind::InverseGradient => P2Mode::InverseGradient,
            // A float becomes the nearest u16 that exists, so even an unchecked slope cannot wrap.
            P2Kind::Linear => P2Mode::Linear {
                min: self.p2_min,
                slope_16: (self.p2_slope * f64::from(SLOPE_UNIT)).round() as u16,
            },
        };
        let params = Params {
            range: DisparityRange { min: self.min_disparity, count: self.disparities },
            cost,
            paths: Paths::try_from(self.paths)?,
            p1: self.p1,
            p2: self.p2,
            p2_mode,
            uniqueness: self.uniqueness,
            subpixel: self.subpixel,
            left_right: self.left_right.value(),
            median: match self.median {
                3 => Median::Three,
                5 => Median::Five,
                _ => Median::Off,
            },
            speckle: None,
        };
        params.check()?;
        Ok(params)
    }

    pub(super) fn check(&self) -> Result<(), Unfit> {
        Unfit::within("disparities", self.disparities, 1..=1024)?;
        Unfit::within("min_disparity", self.min_disparity, -2047..=2046)?;
        Unfit::within("ad_truncation", self.ad_truncation, 1..=255)?;
        Unfit::one_of("ad_window", self.ad_window, &[1, 3, 5, 7])?;
        Unfit::one_of("paths", self.paths, &[4, 5, 8])?;
        Unfit::within("p2_slope", self.p2_slope, 0.0..=SLOPE_MAX)?;
        Unfit::within("uniqueness", self.uniqueness, 0..=99)?;
        Unfit::one_of("median", self.median, &[0, 3, 5])
    }
}

/// The keys of `[matching]` whose values together make up an error, so that a message can say where
/// they were set.
pub(super) fn keys_of(error: &ParamsError) -> &'static [&'static str] {
    match error {
        ParamsError::Disparities(_) => &["disparities"],
        ParamsError::Range(_) => &["min_disparity", "disparities"],
        ParamsError::Paths(_) => &["paths"],
        ParamsError::Truncation => &["ad_truncation"],
        ParamsError::Window(_) => &["ad_window"],
        ParamsError::Census(_) | ParamsError::Weight { .. } | ParamsError::NoWeight => &["cost"],
        ParamsError::PenaltyOrder { .. } => &["p1", "p2"],
        ParamsError::PenaltyFloor { .. } => &["p2_min", "p2"],
        ParamsError::PathCost { .. } => &["p2", "ad_truncation"],
        ParamsError::Uniqueness(_) => &["uniqueness"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_can_be_computed() {
        let params = Matching::default().params().unwrap();
        assert_eq!(params.range, DisparityRange { min: 0, count: 64 });
        assert_eq!(params.paths, Paths::Eight);
        assert_eq!(params.median, Median::Five);
        assert_eq!(params.left_right, Some(1));
    }

    #[test]
    fn slope_becomes_the_nearest_sixteenth() {
        for (slope, sixteenths) in [(0.0, 0), (0.03, 0), (0.04, 1), (2.6, 42), (255.0, 4080)] {
            let matching = Matching { p2_slope: slope, ..Matching::default() };
            assert!(matching.check().is_ok());
            let P2Mode::Linear { slope_16, .. } = matching.params().unwrap().p2_mode else {
                panic!("the default mode is linear");
            };
            assert_eq!(slope_16, sixteenths, "{slope}");
        }
    }

    #[test]
    fn every_switch_reaches_the_parameters() {
        let matching = Matching {
            p2_mode: P2Kind::Fixed,
            left_right: OrOff::Off,
            median: 0,
            subpixel: false,
            uniqueness: 0,
            paths: 5,
            ad_window: 3,
            min_disparity: -9,
            ..Matching::default()
        };
        let params = matching.params().unwrap();
        assert_eq!(params.p2_mode, P2Mode::Fixed);
        assert_eq!(params.left_right, None);
        assert_eq!(params.median, Median::Off);
        assert_eq!((params.subpixel, params.uniqueness), (false, 0));
        assert_eq!(params.paths, Paths::Five);
        assert_eq!(params.cost, Cost::Ad { truncation: 32, window: 3 });
        assert_eq!(params.range.min, -9);
    }

    #[test]
    fn what_no_engine_can_compute_is_refused() {
        let order = Matching { p1: 90, ..Matching::default() }.params().unwrap_err();
        assert!(order.to_string().contains("--p1, --p2"), "{order}");
        assert_eq!(keys_of(&order), ["p1", "p2"]);
        let sum = Matching { ad_truncation: 200, ..Matching::default() }.params().unwrap_err();
        assert_eq!(keys_of(&sum), ["p2", "ad_truncation"]);
        assert!(Matching { paths: 6, ..Matching::default() }.params().is_err());
    }

    #[test]
    fn single_values_are_checked_with_their_key() {
        let unfit = |matching: Matching| matching.check().unwrap_err().key;
        let base = Matching::default;
        assert_eq!(unfit(Matching { disparities: 0, ..base() }), "disparities");
        assert_eq!(unfit(Matching { min_disparity: -3000, ..base() }), "min_disparity");
        assert_eq!(unfit(Matching { ad_window: 2, ..base() }), "ad_window");
        assert_eq!(unfit(Matching { p2_slope: -1.0, ..base() }), "p2_slope");
        assert_eq!(unfit(Matching { median: 4, ..base() }), "median");
        assert_eq!(unfit(Matching { uniqueness: 100, ..base() }), "uniqueness");
    }
}
