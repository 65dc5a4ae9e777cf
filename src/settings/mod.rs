//! Settings of the program: one file per section.
//!
//! `stereod_core::settings` has the layers that provide their values.

#[cfg(test)]
mod layer_tests;
#[cfg(test)]
mod live_tests;
pub mod names;
mod program;
#[cfg(test)]
mod schema_tests;
#[cfg(test)]
pub(crate) mod tests;

use serde::Deserialize;

use program::{
    Alignment, Colour, Demo, Log, Mapping, Metrics, MountSettings, Obstacles, Ros2, Serve, Window,
};
pub use program::{
    AtEnd, BOXES_OF_GRAPH, Calibration, Camera, Ground, Output, Pace, Places, Queue, Size, Source,
    Stats, WindowMode, config_file, replace_quoted, to_file, to_toml, why_fixed, with_flags,
};
use stereod_core::frame::{DisparityRange, StereoGeometry};
use stereod_core::picture::cloud::CloudOptions;
use stereod_core::settings::row::Row;
use stereod_core::settings::{Conflict, MATCHER, Schema, Section, schema};
pub use stereod_core::settings::{
    Engine, Error, Fitted, MEMORY_MIB_MAX, Matching, Origin, parameter,
};
use stereod_io::sink::colour::ColourRange;
use stereod_io::sink::colouring::Colouring;
use stereod_io::sink::messages;

/// Sections that only matter to a run that finds obstacles.
pub const OF_OBSTACLES: [&str; 2] = ["mount", "obstacles"];

pub type Layers = stereod_core::settings::Layers<Settings>;

pub type Loaded = stereod_core::settings::Loaded<Settings>;

pub fn rows() -> impl Iterator<Item = (&'static str, &'static Row)> {
    schema::rows::<Settings>()
}

pub fn row(section: &str, key: &str) -> Option<&'static Row> {
    schema::row::<Settings>(section, key)
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub matching: Matching,
    pub engine: Engine,
    pub source: Source,
    pub camera: Camera,
    pub demo: Demo,
    pub queue: Queue,
    pub output: Output,
    pub calibration: Calibration,
    pub alignment: Alignment,
    pub mount: MountSettings,
    pub obstacles: Obstacles,
    pub map: Mapping,
    pub colour: Colour,
    pub window: Window,
    pub metrics: Metrics,
    pub serve: Serve,
    pub ros2: Ros2,
    pub log: Log,
}

impl Settings {
    /// Returns the disparities that the colours span: between the limits of depth where they are given and
    /// the cameras are known.
    pub fn colour_range(
        &self,
        range: DisparityRange,
        geometry: Option<&StereoGeometry>,
    ) -> ColourRange {
        let Some(geometry) = geometry.filter(|_| self.output.has_depth_limits()) else {
            return self.colour.span(range);
        };
        let CloudOptions { near_m, far_m, .. } = self.output.clouds();
        let limit = |metres: Option<f64>, other: i32| {
            metres.map_or(other as f32, |metres| geometry.disparity_px(metres) as f32)
        };
        ColourRange::Fixed { low: limit(far_m, range.min), high: limit(near_m, range.max()) }
    }

    /// Reports whether obstacles are to be found in the disparity.
    pub fn finds_obstacles(&self) -> bool {
        self.obstacles.are_wanted() || self.output.shows_obstacles() || self.ros2.shows_obstacles()
    }

    /// Reports whether messages show the ground plan of the map.
    pub fn shows_grid(&self) -> bool {
        messages::show_grid(&self.output.mcap)
            || self.ros2.namespace().is_some() && messages::show_grid(&self.ros2.topics)
    }

    /// Reports whether a map is made.
    pub fn makes_map(&self) -> bool {
        self.output.map().is_some() || self.shows_grid()
    }

    pub fn colouring(&self, range: DisparityRange, geometry: Option<&StereoGeometry>) -> Colouring {
        Colouring { map: self.colour.map, span: self.colour_range(range, geometry) }
    }
}

impl Schema for Settings {
    const SECTIONS: &'static [Section] = &[
        (
            "source",
            "Source of `stereod run` if the command line names none, and how frames are read and paired.",
            program::source::ROWS,
        ),
        (
            "camera",
            "Controls of both cameras. `keep` leaves a control as it is, `auto` leaves it to the camera. \
             A control that a camera lacks gives a warning.",
            program::camera::ROWS,
        ),
        ("demo", "The synthetic scene of `stereod run --demo`.", program::small::DEMO),
        MATCHER[0],
        MATCHER[1],
        ("queue", "Links between the stages.", program::small::QUEUE),
        ("output", "Outputs of a run besides the window. \"\": none.", program::output::ROWS),
        (
            "calibration",
            "The two cameras, for rectification and depth.",
            program::calibration::ROWS,
        ),
        ("alignment", "Row alignment of the two views.", program::small::ALIGNMENT),
        ("mount", "The left camera on its vehicle.", program::obstacles::MOUNT),
        (
            "obstacles",
            "Obstacles, zones and distances of things, and who is told of them. \"\": nobody.",
            program::obstacles::OBSTACLES,
        ),
        (
            "map",
            "The map of places along the path of the rig (`output.map`, topic `grid`).",
            program::map::ROWS,
        ),
        ("colour", "Colours of the disparity.", program::colour::ROWS),
        ("window", "The window.", program::window::ROWS),
        ("metrics", "Metrics for Prometheus over HTTP. \"\": none.", program::metrics::ROWS),
        ("serve", "The live page over HTTP. \"\": none.", program::serve::ROWS),
        (
            "ros2",
            "Messages to a ROS 2 graph, in programs that were built with Cargo's feature `ros2`. \
             \"\": nothing is published.",
            program::ros2::ROWS,
        ),
        ("log", "Messages on standard error.", program::small::LOG),
    ];

    // The others are about the whole program.
    const OF_RIGS: &'static [&'static str] = &[
        "source",
        "camera",
        "demo",
        "matching",
        "engine",
        "queue",
        "output",
        "calibration",
        "alignment",
        "mount",
        "obstacles",
        "map",
        "colour",
        "ros2",
    ];

    const RIG_DEFAULTS: &'static [(&'static str, &'static str, &'static str)] =
        &[("output", "frame_prefix", "{rig}_")];

    const INSTEAD: &'static [(&'static str, &'static str, &'static str)] = &[(
        "source",
        "frames",
        "numbers of pairs are given by the flag `--frames` only; `start_s` and `duration_s` name a part by its times",
    )];

    fn matching(&self) -> &Matching {
        &self.matching
    }

    fn check(&self) -> Result<(), (&'static str, Conflict)> {
        self.source.check().map_err(|conflict| ("source", conflict))?;
        self.output.check().map_err(|conflict| ("output", conflict))?;
        if self.obstacles.on_stdout() && self.output.stats() == Some(Stats::Stdout) {
            let conflict = Conflict::new("stats", "a file: obstacles.lines has standard output");
            return Err(("output", conflict));
        }
        self.metrics.check(self.serve.listen()).map_err(|conflict| ("metrics", conflict))?;
        self.colour.check().map_err(|conflict| ("colour", conflict))
    }

    fn shows_odometry(&self) -> bool {
        self.output.shows_odometry()
            || self.ros2.shows_odometry()
            || self.obstacles.tells_odometry()
    }

    fn shows_confidence(&self) -> bool {
        self.output.shows_confidence() || self.ros2.shows_confidence() || self.finds_obstacles()
    }

    // The library names parameters, the program flags.
    fn worded(message: String) -> String {
        program::with_flags(&message)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Layers::new().finish().expect("the defaults fit together").settings
    }
}
