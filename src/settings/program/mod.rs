//! Sections that only the program needs, the places of its configuration, and its printing.

pub(super) mod calibration;
pub(super) mod camera;
pub(super) mod colour;
mod locate;
pub(super) mod map;
pub(super) mod metrics;
pub(super) mod obstacles;
pub(super) mod output;
mod print;
pub(super) mod ros2;
pub(super) mod serve;
mod size;
pub(super) mod small;
pub(super) mod source;
pub(super) mod window;

pub use calibration::Calibration;
pub use camera::Camera;
pub use colour::Colour;
pub use locate::{Places, config_file};
pub use map::Mapping;
pub use metrics::Metrics;
pub use obstacles::{BOXES_OF_GRAPH, Ground, MountSettings, Obstacles};
pub use output::{Output, Stats};
#[cfg(test)]
pub use print::commented;
pub use print::{replace_quoted, to_file, to_toml, why_fixed, with_flags};
pub use ros2::Ros2;
pub use serve::Serve;
pub use size::Size;
pub use small::{Alignment, Demo, Log, Queue};
pub use source::{Pace, Source};
pub use window::{AtEnd, Window, WindowMode};
