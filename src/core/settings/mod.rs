//! Settings of the matcher, and the layers that provide the values of any settings: built-in defaults < file
//! < environment < `--set` and flags. Stages never see this module: they are passed the few parameters that
//! they need.

mod engine;
mod layers;
mod matching;
pub mod row;
pub mod schema;
mod suggest;
#[cfg(test)]
mod test_support;

use serde::Deserialize;

pub use engine::{Engine, MEMORY_MIB_MAX};
pub use layers::{Error, FILE_MAX, Fitted, Layers, Loaded, MISTAKES_MAX, Origin, variable};
pub use matching::Matching;
pub use matching::presets::PRESETS;
pub use row::Conflict;
pub use schema::{Schema, Section, parameter, parameters};

/// Sections of the matcher.
pub const MATCHER: [Section; 2] = [
    (
        "matching",
        "Parameters of the matcher. `auto`: the value that suits the cost; `stereod config print` \
         shows it.",
        matching::ROWS,
    ),
    ("engine", "The engine that matches, and what it may use of the machine.", engine::ROWS),
];

/// The settings of the library: the matcher's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Library {
    pub matching: Matching,
    pub engine: Engine,
}

impl Schema for Library {
    const SECTIONS: &'static [Section] = &MATCHER;

    fn matching(&self) -> &Matching {
        &self.matching
    }
}

impl Default for Matching {
    fn default() -> Self {
        let defaults = Layers::<Library>::new().finish();
        defaults.expect("the defaults fit together").settings.matching
    }
}
