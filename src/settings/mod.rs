//! What the program can be told: one file a section, and the layers that fill them in.
//!
//! Built-in defaults < file < environment < `--set` and flags. A wrong key or value in any layer is
//! an error that says where it stands and what would be right. Stages never see this module: the
//! commands hand each one the few parameters it needs.

mod alignment;
mod calibration;
mod camera;
mod colour;
mod demo;
mod engine;
mod layers;
mod locate;
mod log;
mod matching;
mod metrics;
pub mod names;
mod output;
mod print;
mod queue;
mod schema;
mod source;
mod suggest;
mod values;
mod window;

use serde::{Deserialize, Serialize};

pub use alignment::Alignment;
pub use calibration::Calibration;
pub use camera::{Camera, Control, ExposureFrom, PowerLine};
pub use colour::{Colour, ColourMap, RangeMode};
pub use demo::Demo;
pub use engine::{Engine, EngineKind, KernelCache, Simd};
pub use layers::{Error, Layers, Loaded, Origin};
pub use locate::{Places, config_file};
pub use log::Log;
pub use matching::{CostKind, Matching, P2Kind};
pub use metrics::Metrics;
pub use output::{Output, Segmenting, Stats, StreamView};
pub use queue::Queue;
pub use source::{CameraFormat, Pace, PairBy, Reconnect, Source};
pub use values::{OrAuto, OrOff, Unfit};
pub use window::{AtEnd, View, Window, WindowMode};

/// Every key with its default and a comment: `config/default.toml`.
pub const DEFAULT_TOML: &str = include_str!("../../config/default.toml");

/// Everything the program can be told.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)] // Each section's type says it.
pub struct Settings {
    pub source: Source,
    pub camera: Camera,
    pub demo: Demo,
    pub matching: Matching,
    pub engine: Engine,
    pub queue: Queue,
    pub output: Output,
    pub calibration: Calibration,
    pub alignment: Alignment,
    pub colour: Colour,
    pub window: Window,
    pub metrics: Metrics,
    pub log: Log,
}

impl Settings {
    /// Whether every value lies in its range, the names of section and key with the one that does
    /// not.
    ///
    /// # Errors
    /// The first value that does not.
    pub fn check(&self) -> Result<(), (&'static str, Unfit)> {
        let of = |section: &'static str| move |unfit| (section, unfit);
        self.source.check().map_err(of("source"))?;
        self.camera.check().map_err(of("camera"))?;
        self.demo.check().map_err(of("demo"))?;
        self.matching.check().map_err(of("matching"))?;
        self.engine.check().map_err(of("engine"))?;
        self.queue.check().map_err(of("queue"))?;
        self.output.check().map_err(of("output"))?;
        self.calibration.check().map_err(of("calibration"))?;
        self.alignment.check().map_err(of("alignment"))?;
        self.colour.check().map_err(of("colour"))?;
        self.window.check().map_err(of("window"))?;
        self.metrics.check().map_err(of("metrics"))?;
        self.log.check().map_err(of("log"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_file_holds_the_defaults() {
        let read: Settings = toml::from_str(DEFAULT_TOML).unwrap();
        assert_eq!(read, Settings::default());
        assert!(read.check().is_ok());
    }

    /// [`Settings`] fills in what a file leaves out, so equality alone would not notice a key that
    /// is missing from it.
    #[test]
    fn default_file_has_every_key_with_a_comment() {
        let file: toml::Table = DEFAULT_TOML.parse().unwrap();
        let built_in = toml::Table::try_from(Settings::default()).unwrap();
        assert_eq!(file, built_in);

        let mut before = "";
        for line in DEFAULT_TOML.lines() {
            if line.contains(" = ") && !line.starts_with('#') {
                assert!(before.starts_with("# "), "no comment above `{line}`");
            }
            assert!(line.chars().count() <= 100, "too long: {line}");
            before = line;
        }
    }
}
