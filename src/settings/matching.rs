//! `[matching]`: what is computed.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::values::{OrAuto, OrOff, Unfit};
use crate::frame::{DisparityRange, SUBPIXEL};
use crate::matching::params::{SLOPE_UNIT, WEIGHT_MAX};
use crate::matching::{CensusWindow, Cost, Median, P2Mode, Params, ParamsError, Paths, Speckle};

/// How well two pixels agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum CostKind {
    /// Census, gradient and intensity together.
    #[default]
    Combined,
    /// Hamming distance of census descriptors, which take no notice of exposure.
    Census,
    /// Absolute difference of intensities, cut off at `ad_truncation`.
    Ad,
}

/// What the keys that say `auto` mean for a cost: costs differ in size and in what they get wrong.
struct Suited {
    p1: u8,
    p2: u8,
    p2_min: u8,
    p2_slope: f64,
    median: u8,
    speckle_size: u32,
}

impl CostKind {
    /// What suits the cost; docs/accuracy.md says how it was found.
    fn suited(self) -> Suited {
        match self {
            CostKind::Combined => {
                Suited { p1: 30, p2: 100, p2_min: 16, p2_slope: 3.0, median: 3, speckle_size: 80 }
            }
            CostKind::Census => {
                Suited { p1: 20, p2: 60, p2_min: 15, p2_slope: 1.75, median: 3, speckle_size: 80 }
            }
            CostKind::Ad => {
                Suited { p1: 12, p2: 80, p2_min: 3, p2_slope: 2.0, median: 5, speckle_size: 0 }
            }
        }
    }

    /// The name in a file and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            CostKind::Combined => "combined",
            CostKind::Census => "census",
            CostKind::Ad => "ad",
        }
    }
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
    /// Number of candidate disparities; `auto`: chosen from the first pairs.
    pub disparities: OrAuto<usize>,
    /// Smallest candidate in pixels.
    pub min_disparity: i32,
    /// How well two pixels agree.
    pub cost: CostKind,
    /// Largest difference that counts, in grey levels.
    pub ad_truncation: u8,
    /// Side in pixels of the window over which the difference is averaged.
    pub ad_window: u8,
    /// What a census descriptor compares.
    #[serde(with = "window_text")]
    pub census_window: CensusWindow,
    /// Weight of a differing bit in the combined cost, in sixteenths.
    pub census_weight: u8,
    /// Weight of a grey level of difference in gradient, in sixteenths.
    pub gradient_weight: u8,
    /// Weight of a grey level of difference in intensity, in sixteenths.
    pub intensity_weight: u8,
    /// Largest difference in gradient that counts, in grey levels.
    pub gradient_truncation: u8,
    /// Largest difference in intensity that counts, in grey levels.
    pub intensity_truncation: u8,
    /// Number of directions along which costs are summed.
    pub paths: u32,
    /// Penalty for a step of one pixel.
    pub p1: OrAuto<u8>,
    /// Penalty for a larger step.
    pub p2: OrAuto<u8>,
    /// How P2 depends on the picture.
    pub p2_mode: P2Kind,
    /// Smallest P2 of the mode `linear`.
    pub p2_min: OrAuto<u8>,
    /// What P2 loses for every grey level of step in the mode `linear`.
    pub p2_slope: OrAuto<f64>,
    /// Uniqueness in percent; 0 is off.
    pub uniqueness: u8,
    /// Whether disparity is interpolated to 1/16 px.
    pub subpixel: bool,
    /// Largest difference between the eyes' disparities in pixels.
    pub left_right: OrOff,
    /// Side of the median window in pixels; 0 is off.
    pub median: OrAuto<u8>,
    /// Regions of fewer pixels become invalid; 0 is off.
    pub speckle_size: OrAuto<u32>,
    /// Largest difference between neighbours of a region in pixels.
    pub speckle_range: f64,
}

impl Default for Matching {
    fn default() -> Self {
        Matching {
            disparities: OrAuto::Value(STAND_IN),
            min_disparity: 0,
            cost: CostKind::Combined,
            ad_truncation: 32,
            ad_window: 3,
            census_window: CensusWindow::Symmetric9x7,
            census_weight: 14,
            gradient_weight: 11,
            intensity_weight: 8,
            gradient_truncation: 5,
            intensity_truncation: 6,
            paths: 8,
            p1: OrAuto::Auto,
            p2: OrAuto::Auto,
            p2_mode: P2Kind::Linear,
            p2_min: OrAuto::Auto,
            p2_slope: OrAuto::Auto,
            uniqueness: 8,
            subpixel: true,
            left_right: OrOff::Value(1),
            median: OrAuto::Auto,
            speckle_size: OrAuto::Auto,
            speckle_range: 2.0,
        }
    }
}

/// The default number of disparities. It stands in for a number that has not been chosen yet, where one
/// is needed before there are pictures.
const STAND_IN: usize = 64;

/// The keys of `[matching]` that say `auto` unless told otherwise.
pub(super) const SUITED_KEYS: [&str; 6] =
    ["p1", "p2", "p2_min", "p2_slope", "median", "speckle_size"];

/// A census window as text.
mod window_text {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::matching::CensusWindow;

    pub fn serialize<S: Serializer>(window: &CensusWindow, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(window)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<CensusWindow, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

/// Largest slope: P2 then falls from 255 to nothing within one grey level.
const SLOPE_MAX: f64 = 255.0;

/// Largest difference of disparities in a map.
const SPECKLE_RANGE_MAX: f64 = 4095.0;

impl Matching {
    /// The same with the number that suits the cost in place of every `auto` that the cost decides.
    pub fn resolved(&self) -> Matching {
        let suited = self.cost.suited();
        Matching {
            p1: self.p1.or(suited.p1),
            p2: self.p2.or(suited.p2),
            p2_min: self.p2_min.or(suited.p2_min),
            p2_slope: self.p2_slope.or(suited.p2_slope),
            median: self.median.or(suited.median),
            speckle_size: self.speckle_size.or(suited.speckle_size),
            ..self.clone()
        }
    }

    /// The parameters that an engine takes. Where the number of disparities is not chosen yet, the
    /// default stands in for it.
    ///
    /// # Errors
    /// The first value that no engine can work with, naming its flag.
    pub fn params(&self) -> Result<Params, ParamsError> {
        let suited = self.cost.suited();
        let cost = match self.cost {
            CostKind::Combined => Cost::Combined {
                census_weight: self.census_weight,
                gradient_weight: self.gradient_weight,
                intensity_weight: self.intensity_weight,
                gradient_truncation: self.gradient_truncation,
                intensity_truncation: self.intensity_truncation,
            },
            CostKind::Census => Cost::Census { window: self.census_window },
            CostKind::Ad => Cost::Ad { truncation: self.ad_truncation, window: self.ad_window },
        };
        let p2_mode = match self.p2_mode {
            P2Kind::Fixed => P2Mode::Fixed,
            P2Kind::InverseGradient => P2Mode::InverseGradient,
            // A float becomes the nearest u16 that exists, so even an unchecked slope cannot wrap.
            P2Kind::Linear => P2Mode::Linear {
                min: self.p2_min.value().unwrap_or(suited.p2_min),
                slope_16: (self.p2_slope.value().unwrap_or(suited.p2_slope) * f64::from(SLOPE_UNIT))
                    .round() as u16,
            },
        };
        let params = Params {
            range: DisparityRange {
                min: self.min_disparity,
                count: self.disparities.value().unwrap_or(STAND_IN),
            },
            cost,
            paths: Paths::try_from(self.paths)?,
            p1: self.p1.value().unwrap_or(suited.p1),
            p2: self.p2.value().unwrap_or(suited.p2),
            p2_mode,
            uniqueness: self.uniqueness,
            subpixel: self.subpixel,
            left_right: self.left_right.value(),
            median: match self.median.value().unwrap_or(suited.median) {
                3 => Median::Three,
                5 => Median::Five,
                _ => Median::Off,
            },
            speckle: match self.speckle_size.value().unwrap_or(suited.speckle_size) {
                0 => None,
                size => Some(Speckle {
                    size,
                    range_16: (self.speckle_range * f64::from(SUBPIXEL)).round() as u16,
                }),
            },
        };
        params.check()?;
        Ok(params)
    }

    pub(super) fn check(&self) -> Result<(), Unfit> {
        if let OrAuto::Value(count) = self.disparities {
            Unfit::within("disparities", count, 1..=1024)
                .map_err(|unfit| Unfit::new(unfit.key, format!("`auto` or {}", unfit.expected)))?;
        }
        Unfit::within("min_disparity", self.min_disparity, -2047..=2046)?;
        Unfit::within("ad_truncation", self.ad_truncation, 1..=255)?;
        Unfit::one_of("ad_window", self.ad_window, &[1, 3, 5, 7])?;
        Unfit::one_of("paths", self.paths, &[4, 5, 8])?;
        Unfit::within("census_weight", self.census_weight, 0..=WEIGHT_MAX)?;
        Unfit::within("gradient_weight", self.gradient_weight, 0..=WEIGHT_MAX)?;
        Unfit::within("intensity_weight", self.intensity_weight, 0..=WEIGHT_MAX)?;
        if let OrAuto::Value(slope) = self.p2_slope {
            Unfit::within("p2_slope", slope, 0.0..=SLOPE_MAX)?;
        }
        Unfit::within("uniqueness", self.uniqueness, 0..=99)?;
        if let OrAuto::Value(side) = self.median {
            Unfit::one_of("median", side, &[0, 3, 5])?;
        }
        Unfit::within("speckle_range", self.speckle_range, 0.0..=SPECKLE_RANGE_MAX)
    }
}

/// The keys of `[matching]` whose values together make up an error, so that a message can say where
/// they were set.
pub(super) fn keys_of(error: &ParamsError, cost: CostKind) -> &'static [&'static str] {
    match error {
        ParamsError::Disparities(_) => &["disparities"],
        ParamsError::Range(_) => &["min_disparity", "disparities"],
        ParamsError::Paths(_) => &["paths"],
        ParamsError::Truncation => &["ad_truncation"],
        ParamsError::Window(_) => &["ad_window"],
        ParamsError::Census(_) => &["census_window"],
        ParamsError::Weight { .. } | ParamsError::NoWeight => COMBINED_KEYS,
        ParamsError::PenaltyOrder { .. } => &["cost", "p1", "p2"],
        ParamsError::PenaltyFloor { .. } => &["cost", "p2_min", "p2"],
        ParamsError::PathCost { .. } => match cost {
            CostKind::Combined => COMBINED_KEYS,
            CostKind::Census => &["p2", "census_window"],
            CostKind::Ad => &["p2", "ad_truncation"],
        },
        ParamsError::Uniqueness(_) => &["uniqueness"],
    }
}

/// The keys that make up the size of the combined cost, and P2.
const COMBINED_KEYS: &[&str] = &[
    "p2",
    "census_weight",
    "gradient_weight",
    "intensity_weight",
    "gradient_truncation",
    "intensity_truncation",
];

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: [CostKind; 3] = [CostKind::Combined, CostKind::Census, CostKind::Ad];

    fn of_cost(cost: CostKind) -> Matching {
        Matching { cost, ..Matching::default() }
    }

    #[test]
    fn defaults_can_be_computed() {
        let params = Matching::default().params().unwrap();
        assert_eq!(params.range, DisparityRange { min: 0, count: 64 });
        assert_eq!(params.paths, Paths::Eight);
        assert_eq!(params.cost.max(), 27);
        assert_eq!((params.p1, params.p2), (30, 100));
        assert_eq!(params.p2_mode, P2Mode::Linear { min: 16, slope_16: 48 });
        assert_eq!(params.median, Median::Three);
        assert_eq!(params.speckle, Some(Speckle { size: 80, range_16: 32 }));
        assert_eq!(params.left_right, Some(1));
    }

    #[test]
    fn every_cost_has_defaults_of_its_own() {
        let params = of_cost(CostKind::Ad).params().unwrap();
        assert_eq!(params.cost, Cost::Ad { truncation: 32, window: 3 });
        assert_eq!((params.p1, params.p2), (12, 80));
        assert_eq!(params.p2_mode, P2Mode::Linear { min: 3, slope_16: 32 });
        assert_eq!((params.median, params.speckle), (Median::Five, None));
        let params = of_cost(CostKind::Census).params().unwrap();
        assert_eq!(params.cost, Cost::Census { window: CensusWindow::Symmetric9x7 });
        for cost in COSTS {
            let name = cost.to_possible_value().unwrap();
            assert_eq!(name.get_name(), cost.name());
            assert_eq!(of_cost(cost).params().unwrap().cost.name(), cost.name());
        }
    }

    #[test]
    fn resolved_says_what_is_computed_and_what_was_given_wins() {
        for cost in COSTS {
            let matching = of_cost(cost);
            let resolved = matching.resolved();
            assert_eq!(resolved.params(), matching.params());
            assert_eq!(resolved.resolved(), resolved);
            let table = toml::Table::try_from(resolved).unwrap();
            let before = toml::Table::try_from(matching).unwrap();
            for (key, value) in table {
                assert_ne!(value, toml::Value::from("auto"), "{key}");
                let auto = before[&key] == toml::Value::from("auto");
                assert_eq!(auto, SUITED_KEYS.contains(&&*key), "{key}");
            }
            let given = Matching {
                p1: OrAuto::Value(5),
                p2: OrAuto::Value(51),
                p2_min: OrAuto::Value(7),
                p2_slope: OrAuto::Value(0.5),
                median: OrAuto::Value(0),
                speckle_size: OrAuto::Value(9),
                speckle_range: 0.75,
                ..of_cost(cost)
            };
            assert_eq!(given.resolved(), given);
            let params = given.params().unwrap();
            assert_eq!((params.p1, params.p2), (5, 51));
            assert_eq!(params.p2_mode, P2Mode::Linear { min: 7, slope_16: 8 });
            assert_eq!(params.median, Median::Off);
            assert_eq!(params.speckle, Some(Speckle { size: 9, range_16: 12 }));
        }
    }

    #[test]
    fn slope_becomes_the_nearest_sixteenth() {
        for (slope, sixteenths) in [(0.0, 0), (0.03, 0), (0.04, 1), (2.6, 42), (255.0, 4080)] {
            let matching = Matching { p2_slope: OrAuto::Value(slope), ..Matching::default() };
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
            cost: CostKind::Ad,
            p2_mode: P2Kind::Fixed,
            left_right: OrOff::Off,
            median: OrAuto::Value(0),
            speckle_size: OrAuto::Value(0),
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
        assert_eq!(params.speckle, None);
        assert_eq!((params.subpixel, params.uniqueness), (false, 0));
        assert_eq!(params.paths, Paths::Five);
        assert_eq!(params.cost, Cost::Ad { truncation: 32, window: 3 });
        assert_eq!(params.range.min, -9);

        let window = CensusWindow::Plain { width: 7, height: 3 };
        let census = Matching { census_window: window, ..of_cost(CostKind::Census) };
        assert_eq!(census.params().unwrap().cost, Cost::Census { window });
        let combined = Matching {
            census_weight: 1,
            gradient_weight: 2,
            intensity_weight: 3,
            gradient_truncation: 4,
            intensity_truncation: 5,
            ..Matching::default()
        };
        assert_eq!(
            combined.params().unwrap().cost,
            Cost::Combined {
                census_weight: 1,
                gradient_weight: 2,
                intensity_weight: 3,
                gradient_truncation: 4,
                intensity_truncation: 5,
            }
        );
    }

    #[test]
    fn what_no_engine_can_compute_is_refused() {
        let keys = |matching: Matching| {
            let error = matching.params().unwrap_err();
            (error.to_string(), keys_of(&error, matching.cost))
        };
        let (order, named) = keys(Matching { p1: OrAuto::Value(190), ..Matching::default() });
        assert!(order.contains("--p1, --p2"), "{order}");
        assert_eq!(named, ["cost", "p1", "p2"]);
        let (sum, named) = keys(Matching { ad_truncation: 200, ..of_cost(CostKind::Ad) });
        assert!(sum.contains("--p2 or --ad-truncation"), "{sum}");
        assert_eq!(named, ["p2", "ad_truncation"]);
        let (sum, named) = keys(Matching { p2: OrAuto::Value(230), ..of_cost(CostKind::Census) });
        assert!(sum.contains("(31) and P2 (230)") && sum.contains("--census-window"), "{sum}");
        assert_eq!(named, ["p2", "census_window"]);
        let (sum, named) = keys(Matching { census_weight: 127, ..Matching::default() });
        assert!(sum.contains("--census-weight"), "{sum}");
        assert!(named.contains(&"census_weight") && named.contains(&"p2"));
        assert!(Matching { paths: 6, ..Matching::default() }.params().is_err());
        // What the cost does not use is not looked at.
        assert!(Matching { ad_truncation: 200, ..Matching::default() }.params().is_ok());
    }

    #[test]
    fn single_values_are_checked_with_their_key() {
        let unfit = |matching: Matching| matching.check().unwrap_err().key;
        let base = Matching::default;
        assert_eq!(unfit(Matching { disparities: OrAuto::Value(0), ..base() }), "disparities");
        assert_eq!(unfit(Matching { min_disparity: -3000, ..base() }), "min_disparity");
        assert_eq!(unfit(Matching { ad_window: 2, ..base() }), "ad_window");
        assert_eq!(unfit(Matching { census_weight: 128, ..base() }), "census_weight");
        assert_eq!(unfit(Matching { gradient_weight: 128, ..base() }), "gradient_weight");
        assert_eq!(unfit(Matching { intensity_weight: 128, ..base() }), "intensity_weight");
        assert_eq!(unfit(Matching { p2_slope: OrAuto::Value(-1.0), ..base() }), "p2_slope");
        assert_eq!(unfit(Matching { median: OrAuto::Value(4), ..base() }), "median");
        assert_eq!(unfit(Matching { uniqueness: 100, ..base() }), "uniqueness");
        assert_eq!(unfit(Matching { speckle_range: -0.5, ..base() }), "speckle_range");
        assert_eq!(unfit(Matching { speckle_range: f64::NAN, ..base() }), "speckle_range");
    }
}
