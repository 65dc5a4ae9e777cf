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
pub mod row;
mod schema;
mod size;
mod source;
mod suggest;
mod window;

use serde::Deserialize;

pub use alignment::Alignment;
pub use calibration::Calibration;
pub use camera::Camera;
pub use colour::Colour;
pub use demo::Demo;
pub use engine::Engine;
pub use layers::{Error, Layers, Loaded, Origin};
pub use locate::{Places, config_file};
pub use log::Log;
pub use matching::Matching;
pub use metrics::Metrics;
pub use output::{Output, Stats};
pub use queue::Queue;
pub use schema::{row, rows};
pub use size::Size;
pub use source::{Pace, Source};
pub use window::{AtEnd, Window, WindowMode};

/// Every key with its default and a comment: `config/default.toml`.
pub const DEFAULT_TOML: &str = include_str!("../../config/default.toml");

/// Everything the program can be told.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
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

impl Default for Settings {
    fn default() -> Self {
        Layers::new().finish().expect("the defaults fit together").settings
    }
}

impl Settings {
    /// Whether the values fit together; the name of the section with the one that does not.
    ///
    /// # Errors
    /// The first value that does not.
    fn check(&self) -> Result<(), (&'static str, Unfit)> {
        self.source.check().map_err(|unfit| ("source", unfit))?;
        self.output.check().map_err(|unfit| ("output", unfit))?;
        self.colour.check().map_err(|unfit| ("colour", unfit))
    }
}

/// The settings that are so much different from the defaults; whether a key refuses a value.
#[cfg(test)]
mod test_support {
    use super::*;

    pub(crate) fn settings(assignments: &[&str]) -> Settings {
        let mut layers = Layers::new();
        assignments.iter().for_each(|argument| layers.assignment(argument));
        layers.finish().unwrap().settings
    }

    pub(crate) fn refused(section: &str, key: &str, value: impl Into<toml::Value>) -> bool {
        row(section, key).unwrap().check(&value.into()).is_err()
    }
}

/// A value that does not fit the others.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unfit {
    /// The key within its section.
    key: &'static str,
    /// What the key takes beside the others, to follow the word "expected".
    expected: String,
}

impl Unfit {
    fn new(key: &'static str, expected: impl Into<String>) -> Self {
        Unfit { key, expected: expected.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::row::Kind;
    use super::*;

    /// The file says exactly what the table says, and why.
    #[test]
    fn default_file_has_every_key_with_its_default_and_a_comment() {
        let file: toml::Table = DEFAULT_TOML.parse().unwrap();
        assert_eq!(&file, schema::defaults());

        let mut before = "";
        for line in DEFAULT_TOML.lines() {
            if line.contains(" = ") && !line.starts_with('#') {
                assert!(before.starts_with("# "), "no comment above `{line}`");
            }
            assert!(line.chars().count() <= 100, "too long: {line}");
            before = line;
        }
    }

    /// A default is a value that the key takes, and what is said of names is said of all of them.
    #[test]
    fn rows_agree_with_themselves() {
        for (section, row) in rows() {
            assert_eq!(row.check(&row.default.into()), Ok(()), "{section}.{}", row.key);
            let Kind::Names(names) = row.kind else { continue };
            let about = if row.flag.is_some() { names.len() } else { 0 };
            assert_eq!(row.about.len(), about, "{section}.{}", row.key);
        }
    }

    /// The names that a row takes are those of its field, no more and no fewer.
    #[test]
    fn every_name_is_one_of_the_field() {
        let with = |section: &str, key: &str, name: &str| {
            let mut values = Layers::new().finish().unwrap().values().clone();
            let keys = values[section].as_table_mut().unwrap();
            for row in rows().filter(|row| row.0 == section).map(|row| row.1) {
                if row.none.is_some() && keys[row.key].as_str() == row.none {
                    keys.remove(row.key);
                }
            }
            keys.insert(key.into(), name.into());
            keys.clone()
        };
        let read = |section: &str, keys: toml::Table| -> Result<(), toml::de::Error> {
            match section {
                "source" => Source::deserialize(keys).map(drop),
                "camera" => Camera::deserialize(keys).map(drop),
                "matching" => Matching::deserialize(keys).map(drop),
                "engine" => Engine::deserialize(keys).map(drop),
                "output" => Output::deserialize(keys).map(drop),
                "colour" => Colour::deserialize(keys).map(drop),
                "window" => Window::deserialize(keys).map(drop),
                other => panic!("no names in [{other}]"),
            }
        };
        for (section, row) in rows() {
            let Kind::Names(names) = row.kind else { continue };
            let names: Vec<_> = names.iter().filter(|name| Some(**name) != row.none).collect();
            for name in &names {
                assert!(read(section, with(section, row.key, name)).is_ok(), "{} {name}", row.key);
            }
            let error = read(section, with(section, row.key, "?")).unwrap_err().to_string();
            assert_eq!(error.matches('`').count(), 2 * (names.len() + 1), "{error}");
        }
    }
}
