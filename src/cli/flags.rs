//! Flags that several commands share, and their conversion into a layer of the settings.

use std::iter::zip;
use std::path::PathBuf;

use clap::builder::{
    BoolValueParser, OsStringValueParser, PossibleValue, PossibleValuesParser, StringValueParser,
    TypedValueParser, ValueParser,
};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint, value_parser};
use toml::Value;

use crate::outputs::{self, OUTPUTS};
use crate::settings::names::text_of;
use crate::settings::{Layers, MEMORY_MIB_MAX, Size, replace_quoted, row, rows};
use crate::telemetry::logs::Verbosity;
use stereod_core::engine::PriorFrom;
use stereod_core::matching::{BlockWindow, CensusWindow};
use stereod_core::settings::row::{
    CALIBRATION, ENGINE, Flag, Group, Integer, Kind, MATCHING, Plain, QUANTITY, RECTIFIED, Row,
};

/// Flags of settings that `--help` shows; `--help-all` shows all.
const MOST_USED: [&str; 14] = [
    "--calibration",
    "--colour-map",
    "--depth",
    "--disparities",
    "--engine",
    "--fill",
    "--fit",
    "--pictures",
    "--preset",
    "--preview",
    "--record",
    "--serve",
    "--stats",
    "--swap",
];

/// Settings that were given as flags, in the order in which they are laid on the settings.
#[derive(Clone, Debug, Default)]
pub struct FlagLayer(Vec<(&'static str, &'static str, &'static str, Value)>);

impl FlagLayer {
    pub fn put(
        &mut self,
        section: &'static str,
        key: &'static str,
        flag: &'static str,
        value: Option<impl Into<Value>>,
    ) {
        self.0.extend(value.map(|value| (section, key, flag, value.into())));
    }

    pub fn add<const G: Group>(&mut self, flags: &SettingFlags<G>) {
        self.0.extend(flags.0.0.iter().cloned());
    }

    pub fn over(self, mut layers: Layers) -> Layers {
        for (section, key, flag, value) in self.0 {
            layers.flag(section, key, flag, value);
        }
        layers
    }
}

/// The flags of a group of settings, as the table of settings has them.
#[derive(Clone, Debug, Default)]
pub struct SettingFlags<const G: Group>(FlagLayer);

impl<const G: Group> SettingFlags<G> {
    pub fn is_empty(&self) -> bool {
        self.0.0.is_empty()
    }

    fn all() -> impl Iterator<Item = (&'static str, &'static Row, Flag)> {
        let flags = rows().filter_map(|(section, row)| Some((section, row, row.flag?)));
        flags.filter(|(_, _, flag)| flag.group == G)
    }
}

impl<const G: Group> Args for SettingFlags<G> {
    fn augment_args(command: Command) -> Command {
        let taken: Vec<String> =
            command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
        // A command may replace a flag by its own, which takes several values.
        let flags =
            Self::all().filter(|(_, _, flag)| !taken.iter().any(|taken| taken == id(*flag)));
        command.args(flags.map(|(section, row, flag)| {
            let default = match row.default {
                Plain::Switch(_) | Plain::Text("") => String::new(),
                default => format!(" [default: {default}]"),
            };
            let help = spelled(section, row.help) + &default;
            let arg = Arg::new(id(flag)).long(id(flag)).help(help);
            let arg = arg.hide_short_help(!MOST_USED.contains(&flag.name));
            let shorter = flag.shorter.filter(|shorter| !taken.iter().any(|id| id == shorter));
            let arg = shorter.map_or(arg.clone(), |shorter| arg.visible_alias(shorter));
            let arg = match flag.value {
                "" => arg.action(ArgAction::SetTrue),
                value => arg
                    .value_name(value)
                    .value_parser(parser_of(section, row))
                    .allow_negative_numbers(matches!(row.kind, Kind::Real(_) | Kind::Whole(..))),
            };
            with_details(flag, arg)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const G: Group> FromArgMatches for SettingFlags<G> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut layer = FlagLayer::default();
        for (section, row, flag) in Self::all() {
            let value = match flag.value {
                "" => matches.get_flag(id(flag)).then_some(Value::Boolean(true)),
                _ => matches.get_one(id(flag)).cloned(),
            };
            layer.put(section, row.key, flag.name, value);
        }
        Ok(Self(layer))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Adds what the table of settings cannot express.
fn with_details(flag: Flag, arg: Arg) -> Arg {
    let spelled = |text: String| Value::from(text);
    match flag.name {
        "--disparities" => arg.short('d'),
        "--min-disparity" => arg.value_parser(value_parser!(i32).map(Value::from)),
        "--census-window" => arg.value_parser(move |text: &str| {
            text.parse().map(|window: CensusWindow| spelled(window.to_string()))
        }),
        "--block-window" => arg.value_parser(move |text: &str| {
            text.parse().map(|window: BlockWindow| spelled(window.to_string()))
        }),
        "--prior" => arg.value_parser(|text: &str| match PriorFrom::is_meant(text) {
            true => Ok(Value::from(text)),
            false => number_or_word(row("matching", "prior").expect("a key"), text),
        }),
        "--device" => {
            arg.value_parser(value_parser!(u16).map(|number| Value::from(i64::from(number))))
        }
        "--multiprocessors" => {
            let number = value_parser!(u32).range(1..=1024);
            arg.value_parser(number.map(|number| Value::from(i64::from(number))))
        }
        "--memory" => {
            let mib = value_parser!(u64).range(1..=MEMORY_MIB_MAX as u64);
            arg.value_parser(mib.map(|number| Value::from(number as i64)))
        }
        "--swap" | "--rate" => arg.conflicts_with("demo"),
        "--offset" => arg.allow_negative_numbers(true),
        "--size" => arg.conflicts_with("demo").value_parser(move |text: &str| {
            text.parse().map(|size: Size| spelled(size.to_string()))
        }),
        "--format" => arg.ignore_case(true).conflicts_with("demo"),
        "--window-settings" => arg.value_hint(ValueHint::FilePath).conflicts_with("headless"),
        "--colour-map" => arg.alias("color-map"),
        "--alpha" => arg.value_parser(|text: &str| text.parse::<f64>().map(Value::from)),
        "--focal" | "--baseline" | "--centre" => arg.conflicts_with("calibration"),
        "--calibration" | "--align" => arg.value_hint(ValueHint::FilePath),
        name => {
            match OUTPUTS.iter().find(|output| output.flag == name).map(|output| &output.kind) {
                Some(outputs::Kind::Folder(..)) => arg.value_hint(ValueHint::DirPath),
                Some(_) => arg.value_hint(ValueHint::FilePath),
                None => arg,
            }
        }
    }
}

fn id(flag: Flag) -> &'static str {
    flag.name.trim_start_matches('-')
}

/// Returns a text of the table for the command line: flags in place of settings, no full stop.
fn spelled(section: &str, text: &str) -> String {
    replace_quoted(text.trim_end_matches('.'), |quoted| {
        let (section, key) = quoted.split_once('.').unwrap_or((section, quoted));
        Some(row(section, key)?.flag?.name.to_owned())
    })
}

/// Returns the parser of a flag for `section.key`, which must exist.
pub fn parser(section: &str, key: &str) -> ValueParser {
    parser_of(section, row(section, key).expect("a key of the table"))
}

fn parser_of(section: &str, row: &'static Row) -> ValueParser {
    match row.kind {
        Kind::Switch => BoolValueParser::new().map(Value::from).into(),
        Kind::Path => OsStringValueParser::new().map(|name| Value::from(text_of(&name))).into(),
        Kind::Text(_) => StringValueParser::new().map(Value::from).into(),
        Kind::Names(names) => {
            let second = |name| {
                let switched = row.switch.into_iter().flat_map(|on| zip(["false", "true"], on));
                let spelt = row.alias.into_iter().map(|[second, name]| (second, name));
                spelt.chain(switched).filter(move |pair| pair.1 == name).map(|pair| pair.0)
            };
            let listed = names.iter().zip(row.about);
            let listed: Vec<PossibleValue> = listed
                .map(|(&name, about)| {
                    PossibleValue::new(name).help(spelled(section, about)).aliases(second(name))
                })
                .collect();
            let parser = PossibleValuesParser::new(listed.clone());
            let named = move |given: String| {
                let meant = listed.iter().find(|name| name.matches(&given, true));
                Value::from(meant.map_or(&*given, PossibleValue::get_name))
            };
            parser.map(named).into()
        }
        Kind::OneOf(_, numbers) => PossibleValuesParser::new(numbers.iter().chain(row.words))
            .map(|text| text.parse::<i64>().map_or(Value::from(&*text), Value::from))
            .into(),
        _ if !row.words.is_empty() => (|text: &str| number_or_word(row, text)).into(),
        Kind::Whole(Integer::U64, [low, high]) => {
            let parser = value_parser!(u64).range(low as u64..=high as u64);
            parser.map(|number| Value::from(number as i64)).into()
        }
        Kind::Whole(_, [low, high]) => value_parser!(i64).range(low..=high).map(Value::from).into(),
        Kind::Real(_) => (|text: &str| text.parse::<f64>().map(Value::from)).into(),
    }
}

fn number_or_word(row: &Row, text: &str) -> Result<Value, String> {
    let number = match row.kind {
        _ if row.words.contains(&text) => return Ok(text.into()),
        Kind::Real(_) => {
            text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::from)
        }
        _ => text.parse::<i64>().ok().map(Value::from),
    };
    let number = number.ok_or_else(|| format!("expected {}", row.expected()))?;
    if let Kind::Whole(..) = row.kind {
        row.check(&number).map_err(|expected| format!("expected {expected}"))?;
    }
    Ok(number)
}

/// A name, its meaning, and its line in `--help`.
pub type Named<T> = (&'static str, T, &'static str);

pub fn named<T>(names: &'static [Named<T>]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let listed = names.iter().map(|(name, _, help)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(listed).map(|given| {
        let meant = names.iter().find(|(name, ..)| *name == given);
        meant.expect("no other name is let through").1
    })
}

/// Whether warnings fail a command.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Strict {
    /// Exit with status 5 if a warning about the two views still holds at the end: rows, order, moments,
    /// brightness, disparities beyond the range
    #[arg(long, hide_short_help = true)]
    pub strict: bool,
}

/// Flags that every command with settings takes.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Configuration and logs")]
pub struct Common {
    /// Configuration file, instead of ~/.config/stereod/config.toml or /etc/stereod/config.toml
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,

    /// Take the settings of this [[rig]] of the configuration file; without it, `run` runs all rigs at once
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub rig: Option<String>,

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
    /// Returns the same flags for one rig of the configuration.
    pub fn of_rig(&self, rig: Option<&String>) -> Self {
        Self { rig: rig.cloned(), ..self.clone() }
    }

    pub fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Configured,
            (false, level) => Verbosity::Verbose(level),
        }
    }
}

/// Calibration, parameters and engine.
#[derive(Clone, Debug, Args)]
pub struct Computation {
    #[command(flatten, next_help_heading = "Cameras")]
    calibration: SettingFlags<CALIBRATION>,

    #[command(flatten, next_help_heading = "Matching")]
    matching: SettingFlags<MATCHING>,

    #[command(flatten, next_help_heading = "Engine")]
    compute: SettingFlags<ENGINE>,
}

impl Computation {
    pub fn flags(&self) -> FlagLayer {
        let mut layer = FlagLayer::default();
        layer.add(&self.calibration);
        layer.add(&self.matching);
        layer.add(&self.compute);
        layer
    }
}

/// The two cameras, and what outputs say by them.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cameras")]
pub struct RigFlags {
    #[command(flatten)]
    pub cameras: CameraFlags,

    #[command(flatten)]
    pub quantity: SettingFlags<QUANTITY>,
}

impl RigFlags {
    pub fn lay(&self, layer: &mut FlagLayer) {
        self.cameras.lay(layer);
        layer.add(&self.quantity);
    }
}

/// The two cameras.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cameras")]
pub struct CameraFlags {
    #[command(flatten)]
    pub calibration: SettingFlags<CALIBRATION>,

    #[command(flatten)]
    pub rectified: SettingFlags<RECTIFIED>,
}

impl CameraFlags {
    pub fn lay(&self, layer: &mut FlagLayer) {
        layer.add(&self.calibration);
        layer.add(&self.rectified);
        // The numbers replace a calibration file of a lower layer.
        let none = (!self.rectified.is_empty()).then_some("");
        layer.put("calibration", "file", "--focal", none);
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::settings::Settings;
    use stereod_core::matching::{
        BlockMeasure, BlockWindow, CensusWindow, CombinedWeights, Cost, Fill, FillRule, Guide,
        Median, P2Mode, Paths, Prior, Smoothing, Spatial, Speckle, Steady, Subpixel, Temporal,
        TemporalMode, Window,
    };
    use stereod_core::settings::row::MATCHING;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        matching: SettingFlags<MATCHING>,
        #[command(flatten)]
        common: Common,
    }

    fn parse(arguments: &str) -> Result<Only, clap::Error> {
        Only::try_parse_from(["x"].into_iter().chain(arguments.split_whitespace()))
    }

    #[test]
    fn every_matching_flag_reaches_the_parameters() {
        let only = parse(
            "--preset dense -d 48 --min-disparity -16 --cost ad --paths 5 --p1 11 --p2 99 --p2-mode linear \
             --p2-min 4 --p2-slope 1.5 --ad-truncation 33 --ad-window 3 --uniqueness 7 \
             --left-right off --median 5 --subpixel parabola --min-confidence 33 --census-window 7x5 --census-weight 1 \
             --gradient-weight 2 --intensity-weight 3 --gradient-truncation 4 \
             --intensity-truncation 5 --speckle-size 44 --speckle-range 0.5 \
             --smoothing 0.25 --smoothing-guard 1.5 --fill rays --fill-max 31 \
             --cost-window 3 --cost-window-where everywhere --prior 1 --prior-strength 5 \
             --p2-guide picture --block-window 5x3 --block-truncation 9 --mi-truncation 8 \
             --steady 6 --temporal whiten --history 9 --degree 1 --evidence off --spatial 2 \
             --surface off --windows auto",
        )
        .unwrap();
        let mut layer = FlagLayer::default();
        layer.add(&only.matching);
        // `--odometry` is among the flags of outputs.
        let is_here = |section: &str, key: &str| section == "matching" && key != "odometry";
        let keys = rows().filter(|(section, row)| is_here(section, row.key)).count();
        assert_eq!(layer.0.len(), keys, "a key of [matching] has no flag");
        let params = layer.over(Layers::new()).finish().unwrap().params;
        assert_eq!((params.range.count, params.range.min), (48, -16));
        assert_eq!(params.cost, Cost::Ad { truncation: 33, window: 3 });
        assert_eq!((params.paths, params.surface), (Paths::Five, false));
        assert!(params.windows);
        assert_eq!(params.sum_window, BlockWindow { width: 5, height: 3 });
        assert_eq!(params.smoothing, Some(Smoothing { weight_256: 64, guard_16: 24 }));
        assert_eq!((params.evidence, params.steady), (None, Some(Steady { strength: 6 })));
        assert_eq!(params.spatial, Some(Spatial { reach: 2 }));
        let mode = TemporalMode::Whiten;
        assert_eq!(params.temporal, Some(Temporal { mode, history: 9, degree: 1 }));
        assert_eq!(params.fill, Some(Fill { rule: FillRule::Rays, reach: 31 }));
        assert_eq!(params.window, Some(Window { side: 3, by_texture: false }));
        assert_eq!(params.prior, Some(Prior { levels: 1, strength: 5 }));
        assert_eq!((params.p1, params.p2), (11, 99));
        assert_eq!(params.p2_mode, P2Mode::Linear { min: 4, slope_16: 24 });
        assert_eq!(params.p2_guide, Guide::Picture);
        assert_eq!(params.uniqueness, 7);
        assert_eq!((params.left_right, params.confidence), (None, Some(85)));
        assert_eq!(params.median, Median::Five);
        assert_eq!(params.subpixel, Subpixel::Parabola);
        assert_eq!(params.speckle, Some(Speckle { size: 44, range_16: 8 }));
        let cost = |flag: &str| {
            let more = "--census-window 7x5 --census-weight 1 --gradient-weight 2 \
                        --intensity-weight 3 --gradient-truncation 4 --intensity-truncation 5";
            let mut layer = FlagLayer::default();
            layer.add(&parse(&format!("{flag} {more}")).unwrap().matching);
            layer.over(Layers::new()).finish().unwrap().params.cost
        };
        let window = CensusWindow::Plain { width: 7, height: 5 };
        assert_eq!(cost("--cost mi --mi-truncation 8"), Cost::MutualInformation { truncation: 8 });
        assert_eq!(cost("--cost census"), Cost::Census { window });
        // Nothing else is called so here.
        let (measure, window) = (BlockMeasure::Ssd, BlockWindow { width: 7, height: 7 });
        let block = "--cost ssd --window 7 --block-truncation 9";
        assert_eq!(cost(block), Cost::Block { measure, window, truncation: 9 });
        assert_eq!(
            cost("--cost combined"),
            Cost::Combined(CombinedWeights {
                census_weight: 1,
                gradient_weight: 2,
                intensity_weight: 3,
                gradient_truncation: 4,
                intensity_truncation: 5,
            })
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
        layer.add(&parse(flags).unwrap().matching);
        let params = layer.over(layers).finish().unwrap().params;
        assert_eq!(params, Settings::default().matching.params().unwrap());
    }

    #[test]
    fn no_flag_changes_nothing() {
        let mut layer = FlagLayer::default();
        layer.add(&parse("").unwrap().matching);
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
        layer.add(&parse("--speckle-range nan").unwrap().matching);
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
}
