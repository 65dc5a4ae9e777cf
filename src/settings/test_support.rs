//! Helpers of tests: changed settings, and refused values.

use super::{Layers, Settings, row};

pub(crate) fn settings(assignments: &[&str]) -> Settings {
    let mut layers = Layers::new();
    assignments.iter().for_each(|argument| layers.assignment(argument));
    layers.finish().unwrap().settings
}

pub(crate) fn refused(section: &str, key: &str, value: impl Into<toml::Value>) -> bool {
    row(section, key).unwrap().check(&value.into()).is_err()
}
