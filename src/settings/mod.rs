//! Settings of the program: one file per section, and the layers that provide their values.
//!
//! Built-in defaults < file < environment < `--set` and flags. A wrong key or value in any layer is
//! an error with its place and a correct alternative. Stages never see this module: the commands
//! pass each one the few parameters it needs.

mod all;
mod engine;
mod layers;
mod matching;
pub mod names;
#[cfg(feature = "cli")]
mod program;
pub mod row;
mod schema;
mod suggest;
#[cfg(test)]
mod test_support;
#[cfg(all(test, feature = "cli"))]
mod tests;

pub use all::Settings;
pub use engine::{Engine, MEMORY_MIB_MAX};
pub use layers::{Error, Fitted, Layers, Loaded, Origin};
pub use matching::Matching;
#[cfg(feature = "cli")]
pub use program::{
    AtEnd, Calibration, Camera, Output, Pace, Places, Queue, Size, Source, Stats, WindowMode,
    config_file, replace_quoted, with_flags,
};
#[cfg(feature = "python")]
pub use schema::parameters;
pub use schema::{parameter, row, rows};
