//! Small sections: `[alignment]`, row alignment of the two views; `[queue]`, the bounded links between the stages; `[log]`,
//! messages on standard error; `[demo]`, the synthetic scene.

use serde::Deserialize;

use crate::observe::alignment::Limits;
use crate::settings::Size;
use crate::telemetry::logs;
use stereod_core::frame::DisparityRange;
use stereod_core::settings::row::Integer::U64;
use stereod_core::settings::row::Plain::{Real, Switch, Text, Whole};
use stereod_core::settings::row::{Kind, Row};
use stereod_io::source::demo::DemoOptions;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alignment {
    pub check: bool,
    pub warn_px: f64,
    pub refine_deg: Option<f64>,
}

pub(in crate::settings) const ALIGNMENT: &[Row] = &[
    Row::new("check", Switch(true), Kind::Switch)
        .help(
            "Watch whether the rows of the two views are aligned, and warn if they certainly are not.",
        )
        .more(
            "Causes are a rig that was bumped, left and right exchanged, inputs that are not rectified, \
             and rows that drift. Takes a few milliseconds of one core four times per second.",
        ),
    Row::real("warn_px", Real(1.5), [0.1, 100.0])
        .help("Row error in pixels (root mean square over the image) above which to warn, 0.1 to 100.")
        .more("Matching suffers from about 1 px on; good rigs stay below 0.5.")
        .live(),
    Row::real("refine_deg", Text("off"), [0.01, 10.0])
        .or(&["off"])
        .unit("degrees")
        .help(
            "Turn the right camera of the calibration while a live run goes on, once the rows certainly differ, \
             by at most this many degrees in all.",
        )
        .more(
            "For rigs that are bumped or that warp. Each turn is logged with its standard deviations; the \
             rectified cameras and the calibration file stay as they are. Needs `check`.",
        ),
];

impl Alignment {
    /// Returns the limits of a good alignment; `calibrated`: a calibration was given, by which a
    /// point at infinity has the disparity `farthest_px`, and the rows of exchanged views would differ by
    /// `exchanged_px`.
    pub fn limits(&self, calibrated: bool, farthest_px: f64, exchanged_px: Option<f64>) -> Limits {
        Limits { warn_px: self.warn_px, calibrated, farthest_px, exchanged_px }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    pub pairs: usize,
    pub results: usize,
}

pub(in crate::settings) const QUEUE: &[Row] = &[
    Row::whole("pairs", Whole(4), U64, [1, 1024])
        .help("Pairs that may wait between the source and the engine."),
    Row::whole("results", Whole(8), U64, [1, 1024])
        .help("Results that may wait between the engine and each output."),
];

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// A level, or levels of modules, as in the variable RUST_LOG.
    pub filter: String,
    pub format: logs::Format,
    pub time: logs::Time,
}

pub(in crate::settings) const LOG: &[Row] = &[
    Row::text("filter", "info", |text| {
        logs::check_filter(text).map_err(|_| {
            "`off`, `error`, `warn`, `info`, `debug` or `trace`, \
             or levels of modules such as `info,stereod::engine=debug`"
                .into()
        })
    })
    .help("Level of the log: off, error, warn, info, debug or trace.")
    .more(
        "Also for single modules: \"info,stereod::engine=debug\". The variable RUST_LOG overrides it.",
    )
    .live(),
    Row::names("format", "text", &["text", "json"])
        .help("Form of a line.")
        .about(&["Plain text", "An object with timestamp, level, message and target"]),
    Row::names("time", "uptime", &["uptime", "clock"])
        .help("Time in lines of text.")
        .about(&["Seconds since the start", "Date and time, UTC"]),
];

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demo {
    pub width: usize,
    pub height: usize,
    pub frames: u64,
    pub rate: f64,
    pub seed: u64,
    pub noise: f64,
    pub gain: f64,
    pub offset: f64,
    pub walk: bool,
}

pub(in crate::settings) const DEMO: &[Row] = &[
    Row::whole("width", Whole(640), U64, [1, Size::MAX as i64])
        .help("Width of each view, in pixels."),
    Row::whole("height", Whole(480), U64, [1, Size::MAX as i64])
        .help("Height of each view, in pixels."),
    Row::whole("frames", Whole(300), U64, [0, i64::MAX]).help("Number of pairs; 0: endless."),
    Row::real("rate", Real(30.0), [0.01, 1000.0]).help("Pairs per second."),
    Row::whole("seed", Whole(1), U64, [0, i64::MAX])
        .help("Seed: the same seed gives the same images."),
    Row::real("noise", Real(1.0), [0.0, 255.0])
        .help("Standard deviation of the noise, in grey levels; 0: none."),
    Row::real("gain", Real(1.0), [0.01, 100.0])
        .help("The right view is this many times as bright as the left one ..."),
    Row::real("offset", Real(0.0), [-255.0, 255.0]).help("... and this many grey levels brighter."),
    Row::new("walk", Switch(false), Kind::Switch)
        .help("The cameras walk through the room, along a path that closes after 16 seconds; else they sway a little."),
];

impl Demo {
    /// Returns the options of the scene, which spans the candidate disparities.
    pub fn options(&self, disparities: DisparityRange) -> DemoOptions {
        DemoOptions {
            width: self.width,
            height: self.height,
            frames: (self.frames > 0).then_some(self.frames),
            rate: self.rate,
            seed: self.seed,
            noise: self.noise as f32,
            right_gain: self.gain as f32,
            right_offset: self.offset as f32,
            disparities,
            walks: self.walk,
        }
    }
}
