//! Settings of the program: one file per section, and the layers that provide their values.
//!
//! Built-in defaults < file < environment < `--set` and flags. A wrong key or value in any layer is
//! an error with its place and a correct alternative. Stages never see this module: the commands
//! pass each one the few parameters it needs.

mod alignment;
mod all;
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
pub mod row;
mod schema;
mod size;
mod source;
mod suggest;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;
mod window;

pub use alignment::Alignment;
pub use all::Settings;
pub use calibration::Calibration;
pub use camera::Camera;
pub use colour::Colour;
pub use demo::Demo;
pub use engine::Engine;
pub use layers::{Error, Fitted, Layers, Loaded, Origin};
pub use locate::{Places, config_file};
pub use log::Log;
pub use matching::Matching;
pub use metrics::Metrics;
pub use output::{Output, Stats};
pub use print::DEFAULT_TOML;
pub use queue::Queue;
pub use schema::{row, rows};
pub use size::Size;
pub use source::{Pace, Source};
pub use window::{AtEnd, Window, WindowMode};
