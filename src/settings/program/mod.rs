//! Sections that only the program needs, the places of its configuration, and its printing.

pub(super) mod alignment;
pub(super) mod calibration;
pub(super) mod camera;
pub(super) mod colour;
pub(super) mod demo;
mod locate;
pub(super) mod log;
pub(super) mod metrics;
pub(super) mod output;
mod print;
pub(super) mod queue;
pub(super) mod ros2;
pub(super) mod serve;
mod size;
pub(super) mod source;
pub(super) mod window;

pub use alignment::Alignment;
pub use calibration::Calibration;
pub use camera::Camera;
pub use colour::Colour;
pub use demo::Demo;
pub use locate::{Places, config_file};
pub use log::Log;
pub use metrics::Metrics;
pub use output::{Output, Stats};
#[cfg(test)]
pub use print::commented;
pub use print::{replace_quoted, to_file, to_toml, why_fixed, with_flags};
pub use queue::Queue;
pub use ros2::Ros2;
pub use serve::Serve;
pub use size::Size;
pub use source::{Pace, Source};
pub use window::{AtEnd, Window, WindowMode};
