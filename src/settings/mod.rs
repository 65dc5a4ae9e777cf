//! Settings of the program: one file per section.
//!
//! `stereod_core::settings` has the layers that provide their values.

mod all;
#[cfg(test)]
mod layer_tests;
#[cfg(test)]
mod live_tests;
pub mod names;
mod program;
#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;

pub use all::Settings;
pub use program::{
    AtEnd, Calibration, Camera, Output, Pace, Places, Queue, Size, Source, Stats, WindowMode,
    config_file, replace_quoted, to_file, to_toml, why_fixed, with_flags,
};
pub use stereod_core::settings::{
    Engine, Error, Fitted, MEMORY_MIB_MAX, Matching, Origin, parameter,
};

use stereod_core::settings::row::Row;
use stereod_core::settings::schema;

/// Settings under construction.
pub type Layers = stereod_core::settings::Layers<Settings>;

/// The settings in effect.
pub type Loaded = stereod_core::settings::Loaded<Settings>;

/// Returns every row with the name of its section.
pub fn rows() -> impl Iterator<Item = (&'static str, &'static Row)> {
    schema::rows::<Settings>()
}

/// Returns the row of a key.
pub fn row(section: &str, key: &str) -> Option<&'static Row> {
    schema::row::<Settings>(section, key)
}
