//! Flags that several commands share, and how flags become a layer of the settings.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgAction, Args, ValueEnum, ValueHint};
use toml::Value;

use crate::matching::CensusWindow;
use crate::matching::params::WEIGHT_MAX;
use crate::settings::{CostKind, Engine, EngineKind, Layers, OrAuto, OrOff, P2Kind};
use crate::telemetry::logs::Verbosity;

/// Settings that were given as flags, in the order in which they are laid on the settings.
#[derive(Clone, Debug, Default)]
pub struct FlagLayer(Vec<(&'static str, &'static str, &'static str, Value)>);

impl FlagLayer {
    /// Adds a flag's value for `section.key`, if it was given.
    pub fn put(
        &mut self,
        section: &'static str,
        key: &'static str,
        flag: &'static str,
        value: Option<impl Into<Value>>,
    ) {
        self.0.extend(value.map(|value| (section, key, flag, value.into())));
    }

    /// Like [`FlagLayer::put`] for a whole number. One that TOML cannot hold becomes the largest
    /// that it can, which no key takes.
    pub fn put_whole(
        &mut self,
        section: &'static str,
        key: &'static str,
        flag: &'static str,
        value: Option<impl TryInto<i64>>,
    ) {
        self.put(section, key, flag, value.map(|value| value.try_into().unwrap_or(i64::MAX)));
    }

    /// Like [`FlagLayer::put`] for a number or `auto`.
    pub fn put_auto(
        &mut self,
        section: &'static str,
        key: &'static str,
        flag: &'static str,
        value: Option<OrAuto<impl Into<Value>>>,
    ) {
        let value = value.map(|value| value.value().map_or(Value::from("auto"), Into::into));
        self.put(section, key, flag, value);
    }

    /// Like [`FlagLayer::put`] for a name.
    pub fn put_name(
        &mut self,
        section: &'static str,
        key: &'static str,
        flag: &'static str,
        value: Option<impl ValueEnum>,
    ) {
        let name = value.and_then(|value| value.to_possible_value());
        self.put(section, key, flag, name.map(|name| name.get_name().to_owned()));
    }

    /// Lays the flags over `layers`.
    pub fn over(self, mut layers: Layers) -> Layers {
        for (section, key, flag, value) in self.0 {
            layers.flag(section, key, flag, value);
        }
        layers
    }
}

/// Flags that every command with settings takes.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Configuration and logs")]
pub struct Common {
    /// Configuration file, instead of ~/.config/stereod/config.toml or /etc/stereod/config.toml
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,

    /// Set any setting, for example --set matching.p1=7; may be repeated
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE", action = ArgAction::Append)]
    pub assignments: Vec<String>,

    /// Log errors only, and show no progress
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Log more; -vv and -vvv still more
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

impl Common {
    /// How much is logged.
    pub fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Configured,
            (false, level) => Verbosity::Verbose(level),
        }
    }
}

/// What computes.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Engine")]
pub struct Compute {
    /// What computes
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<EngineKind>,

    /// Threads of the CPU engine; 0 is one a core
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=Engine::THREADS_MAX as u64))]
    pub threads: Option<u64>,

    /// CUDA device to use, as `stereod devices` numbers them
    #[arg(long, value_name = "N")]
    pub device: Option<u16>,

    /// Most memory that is taken, in MiB, instead of half of what is free
    #[arg(long, value_name = "MIB")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=u64::from(Engine::MEMORY_MIB_MAX)))]
    pub memory: Option<u64>,
}

impl Compute {
    /// Adds the flags to the layer.
    pub fn lay(&self, layer: &mut FlagLayer) {
        layer.put_name("engine", "kind", "--engine", self.engine);
        layer.put_whole("engine", "threads", "--threads", self.threads);
        layer.put_whole("engine", "device", "--device", self.device);
        layer.put_whole("engine", "memory_mib", "--memory", self.memory);
    }
}

/// What is computed.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Matching")]
pub struct MatchingFlags {
    /// Number of candidate disparities, 1 to 1024; `auto`: as many as the first pairs need
    #[arg(short, long, value_name = "N|auto", value_parser = disparities)]
    pub disparities: Option<OrAuto<usize>>,

    /// Smallest candidate disparity in pixels; may be negative
    #[arg(long, value_name = "PX", allow_negative_numbers = true)]
    pub min_disparity: Option<i32>,

    /// How well two pixels agree
    #[arg(long, value_name = "COST")]
    pub cost: Option<CostKind>,

    /// Directions along which costs are summed
    #[arg(long, value_name = "N", value_parser = ["4", "5", "8"])]
    pub paths: Option<String>,

    /// Penalty for a disparity step of one pixel, 0 to 255; `auto` here and below: what suits the cost
    #[arg(long, value_name = "COST|auto")]
    pub p1: Option<OrAuto<u8>>,

    /// Penalty for a larger step, P1 to 255
    #[arg(long, value_name = "COST|auto")]
    pub p2: Option<OrAuto<u8>>,

    /// How P2 depends on the step in brightness
    #[arg(long, value_name = "MODE")]
    pub p2_mode: Option<P2Kind>,

    /// Smallest P2 of the mode `linear`
    #[arg(long, value_name = "COST|auto")]
    pub p2_min: Option<OrAuto<u8>>,

    /// What P2 loses for every grey level of step in the mode `linear`, 0 to 255
    #[arg(long, value_name = "COST|auto")]
    pub p2_slope: Option<OrAuto>,

    /// Cost `ad`: differences larger than this many grey levels count as this much, 1 to 255
    #[arg(long, value_name = "LEVELS")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..))]
    pub ad_truncation: Option<u8>,

    /// Cost `ad`: side of the window over which the difference is averaged, in pixels
    #[arg(long, value_name = "PX", value_parser = ["1", "3", "5", "7"])]
    pub ad_window: Option<String>,

    /// Cost `census`: 9x7-symmetric, or a plain window such as 5x5 of at most 65 pixels
    #[arg(long, value_name = "WINDOW")]
    pub census_window: Option<CensusWindow>,

    /// Cost `combined`: sixteenths that each of 24 differing census bits counts, 0 to 127
    #[arg(long, value_name = "SIXTEENTHS")]
    #[arg(value_parser = clap::value_parser!(u8).range(..=i64::from(WEIGHT_MAX)))]
    pub census_weight: Option<u8>,

    /// Cost `combined`: sixteenths that a grey level of difference in gradient counts, 0 to 127
    #[arg(long, value_name = "SIXTEENTHS")]
    #[arg(value_parser = clap::value_parser!(u8).range(..=i64::from(WEIGHT_MAX)))]
    pub gradient_weight: Option<u8>,

    /// Cost `combined`: sixteenths that a grey level of difference in intensity counts, 0 to 127
    #[arg(long, value_name = "SIXTEENTHS")]
    #[arg(value_parser = clap::value_parser!(u8).range(..=i64::from(WEIGHT_MAX)))]
    pub intensity_weight: Option<u8>,

    /// Cost `combined`: larger differences in gradient count as this many grey levels, 0 to 255
    #[arg(long, value_name = "LEVELS")]
    pub gradient_truncation: Option<u8>,

    /// Cost `combined`: larger differences in intensity count as this many grey levels, 0 to 255
    #[arg(long, value_name = "LEVELS")]
    pub intensity_truncation: Option<u8>,

    /// Invalidate pixels where another disparity is this close, in percent; 0 is off
    #[arg(long, value_name = "PERCENT")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=99))]
    pub uniqueness: Option<u8>,

    /// Invalidate pixels whose disparities seen from either eye differ by more pixels, or `off`
    #[arg(long, value_name = "PX|off")]
    pub left_right: Option<OrOff>,

    /// Side of the median filter's window in pixels; 0 is off
    #[arg(long, value_name = "PX", value_parser = ["0", "3", "5", "auto"])]
    pub median: Option<String>,

    /// Invalidate connected regions of fewer pixels; 0 is off
    #[arg(long, value_name = "PIXELS|auto")]
    pub speckle_size: Option<OrAuto<u32>>,

    /// Largest difference in disparity between neighbours of a region
    #[arg(long, value_name = "PX")]
    pub speckle_range: Option<f64>,

    /// Sixteenths of a pixel instead of whole ones
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    pub subpixel: Option<bool>,
}

impl MatchingFlags {
    /// Adds the flags to the layer.
    pub fn lay(&self, layer: &mut FlagLayer) {
        const SECTION: &str = "matching";
        // Clap has let only the listed numbers through.
        let listed =
            |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<i64>().ok());
        let disparities = self.disparities.map(|count| match count {
            OrAuto::Auto => OrAuto::Auto,
            OrAuto::Value(count) => OrAuto::Value(count as i64),
        });
        layer.put_auto(SECTION, "disparities", "--disparities", disparities);
        layer.put_whole(SECTION, "min_disparity", "--min-disparity", self.min_disparity);
        layer.put_name(SECTION, "cost", "--cost", self.cost);
        layer.put(SECTION, "paths", "--paths", listed(&self.paths));
        layer.put_auto(SECTION, "p1", "--p1", self.p1);
        layer.put_auto(SECTION, "p2", "--p2", self.p2);
        layer.put_name(SECTION, "p2_mode", "--p2-mode", self.p2_mode);
        layer.put_auto(SECTION, "p2_min", "--p2-min", self.p2_min);
        layer.put_auto(SECTION, "p2_slope", "--p2-slope", self.p2_slope);
        layer.put_whole(SECTION, "ad_truncation", "--ad-truncation", self.ad_truncation);
        layer.put(SECTION, "ad_window", "--ad-window", listed(&self.ad_window));
        let window = self.census_window.map(|window| window.to_string());
        layer.put(SECTION, "census_window", "--census-window", window);
        for (key, flag, value) in [
            ("census_weight", "--census-weight", self.census_weight),
            ("gradient_weight", "--gradient-weight", self.gradient_weight),
            ("intensity_weight", "--intensity-weight", self.intensity_weight),
            ("gradient_truncation", "--gradient-truncation", self.gradient_truncation),
            ("intensity_truncation", "--intensity-truncation", self.intensity_truncation),
        ] {
            layer.put_whole(SECTION, key, flag, value);
        }
        layer.put_whole(SECTION, "uniqueness", "--uniqueness", self.uniqueness);
        let left_right = self.left_right.map(|limit| match limit {
            OrOff::Off => Value::from("off"),
            OrOff::Value(pixels) => Value::from(i64::from(pixels)),
        });
        layer.put(SECTION, "left_right", "--left-right", left_right);
        let median = self.median.as_ref().map(|side| match side.parse::<i64>() {
            Ok(side) => Value::from(side),
            Err(_) => Value::from(side.as_str()),
        });
        layer.put(SECTION, "median", "--median", median);
        layer.put_auto(SECTION, "speckle_size", "--speckle-size", self.speckle_size);
        layer.put(SECTION, "speckle_range", "--speckle-range", self.speckle_range);
        layer.put(SECTION, "subpixel", "--subpixel", self.subpixel);
    }
}

/// A number of candidate disparities, or `auto`.
fn disparities(text: &str) -> Result<OrAuto<usize>, String> {
    match text.parse() {
        Ok(OrAuto::Value(count)) if !(1..=1024).contains(&count) => {
            Err("expected `auto` or a number from 1 to 1024".to_owned())
        }
        parsed => parsed,
    }
}

/// Width and height in pixels, written 640x480.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
}

impl Size {
    /// Largest width and height.
    pub const MAX: usize = crate::settings::Demo::SIZE_MAX;
}

impl FromStr for Size {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let side = |text: &str| text.parse().ok().filter(|side| (1..=Size::MAX).contains(side));
        text.split_once(['x', 'X', '×'])
            .and_then(|(width, height)| Some(Size { width: side(width)?, height: side(height)? }))
            .ok_or_else(|| {
                format!("expected WIDTHxHEIGHT such as 640x480, each 1 to {}", Size::MAX)
            })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::matching::{Cost, Median, P2Mode, Paths, Speckle};
    use crate::settings::Settings;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        matching: MatchingFlags,
        #[command(flatten)]
        common: Common,
    }

    fn parse(arguments: &str) -> Result<Only, clap::Error> {
        Only::try_parse_from(["x"].into_iter().chain(arguments.split_whitespace()))
    }

    #[test]
    fn every_matching_flag_reaches_the_parameters() {
        let only = parse(
            "-d 48 --min-disparity -16 --cost ad --paths 5 --p1 11 --p2 99 --p2-mode linear \
             --p2-min 4 --p2-slope 1.5 --ad-truncation 33 --ad-window 3 --uniqueness 7 \
             --left-right off --median 5 --subpixel false --census-window 7x5 --census-weight 1 \
             --gradient-weight 2 --intensity-weight 3 --gradient-truncation 4 \
             --intensity-truncation 5 --speckle-size 44 --speckle-range 0.5",
        )
        .unwrap();
        let mut layer = FlagLayer::default();
        only.matching.lay(&mut layer);
        let keys = toml::Table::try_from(Settings::default().matching).unwrap().len();
        assert_eq!(layer.0.len(), keys, "a key of [matching] has no flag");
        let params = layer.over(Layers::new()).finish().unwrap().params;
        assert_eq!((params.range.count, params.range.min), (48, -16));
        assert_eq!(params.cost, Cost::Ad { truncation: 33, window: 3 });
        assert_eq!(params.paths, Paths::Five);
        assert_eq!((params.p1, params.p2), (11, 99));
        assert_eq!(params.p2_mode, P2Mode::Linear { min: 4, slope_16: 24 });
        assert_eq!(params.uniqueness, 7);
        assert_eq!(params.left_right, None);
        assert_eq!(params.median, Median::Five);
        assert!(!params.subpixel);
        assert_eq!(params.speckle, Some(Speckle { size: 44, range_16: 8 }));
        let cost = |flag: &str| {
            let more = "--census-window 7x5 --census-weight 1 --gradient-weight 2 \
                        --intensity-weight 3 --gradient-truncation 4 --intensity-truncation 5";
            let mut layer = FlagLayer::default();
            parse(&format!("{flag} {more}")).unwrap().matching.lay(&mut layer);
            layer.over(Layers::new()).finish().unwrap().params.cost
        };
        let window = CensusWindow::Plain { width: 7, height: 5 };
        assert_eq!(cost("--cost census"), Cost::Census { window });
        assert_eq!(
            cost("--cost combined"),
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
    fn auto_as_a_flag_undoes_the_layers_below() {
        let mut layers = Layers::new();
        for assignment in ["p1=3", "p2=90", "p2_min=2", "p2_slope=9", "median=0", "speckle_size=7"]
        {
            layers.assignment(&format!("matching.{assignment}"));
        }
        let mut layer = FlagLayer::default();
        let flags = "--p1 auto --p2 auto --p2-min auto --p2-slope auto --median auto \
                     --speckle-size auto";
        parse(flags).unwrap().matching.lay(&mut layer);
        let params = layer.over(layers).finish().unwrap().params;
        assert_eq!(params, Settings::default().matching.params().unwrap());
    }

    #[test]
    fn no_flag_changes_nothing() {
        let mut layer = FlagLayer::default();
        parse("").unwrap().matching.lay(&mut layer);
        assert!(layer.0.is_empty());
    }

    #[test]
    fn wrong_values_are_refused() {
        for wrong in [
            "--p1 300",
            "--p1 -1",
            "--disparities 0",
            "--disparities 1025",
            "--disparities all",
            "--paths 6",
            "--median 4",
            "--ad-window 2",
            "--ad-truncation 0",
            "--uniqueness 100",
            "--p2-min automatic",
            "--census-window 4x5",
            "--census-window 9x9",
            "--census-weight 128",
            "--intensity-truncation 256",
            "--speckle-size -1",
            "--left-right of",
            "--subpixel maybe",
            "--cost zncc",
            "--quiet -v",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_flag_out_of_range_is_named() {
        let mut layer = FlagLayer::default();
        parse("--speckle-range nan").unwrap().matching.lay(&mut layer);
        let error = layer.over(Layers::new()).finish().unwrap_err().to_string();
        assert!(error.starts_with("--speckle-range: wrong value nan"), "{error}");
    }

    #[test]
    fn verbosity_counts() {
        let verbosity = |arguments| parse(arguments).unwrap().common.verbosity();
        assert_eq!(verbosity(""), Verbosity::Configured);
        assert_eq!(verbosity("-q"), Verbosity::Quiet);
        assert_eq!(verbosity("-vv"), Verbosity::Verbose(2));
    }

    #[test]
    fn sizes() {
        assert_eq!("640x480".parse(), Ok(Size { width: 640, height: 480 }));
        assert_eq!(Size { width: 640, height: 480 }.to_string(), "640x480");
        for wrong in ["640", "x", "0x1", "1x-1", "1x2x3", "99999x1", " 1x1", ""] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}
