//! Sections that only the program needs, the places of its configuration, and its printing.

mod alignment;
mod calibration;
mod camera;
mod colour;
mod demo;
mod flag_names;
mod locate;
mod log;
mod metrics;
mod output;
mod print;
mod queue;
mod serve;
mod size;
mod source;
mod window;

use super::schema::{MATCHER, Section};

pub use alignment::Alignment;
pub use calibration::Calibration;
pub use camera::Camera;
pub use colour::Colour;
pub use demo::Demo;
pub use flag_names::with_flags;
pub use locate::{Places, config_file};
pub use log::Log;
pub use metrics::Metrics;
pub use output::{Output, Stats};
pub use print::{DEFAULT_TOML, default_lines};
pub use queue::Queue;
pub use serve::Serve;
pub use size::Size;
pub use source::{Pace, Source};
pub use window::{AtEnd, Window, WindowMode};

/// All sections, in the order of the flags.
pub(super) const SECTIONS: [Section; 14] = [
    ("source", source::ROWS),
    ("camera", camera::ROWS),
    ("demo", demo::ROWS),
    MATCHER[0],
    MATCHER[1],
    ("queue", queue::ROWS),
    ("window", window::ROWS),
    ("output", output::ROWS),
    ("calibration", calibration::ROWS),
    ("alignment", alignment::ROWS),
    ("metrics", metrics::ROWS),
    ("serve", serve::ROWS),
    ("colour", colour::ROWS),
    ("log", log::ROWS),
];
