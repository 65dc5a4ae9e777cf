//! Helpers of tests: changed settings, and refused values.

use super::{Layers, Library, schema};

pub(crate) fn settings(assignments: &[&str]) -> Library {
    let mut layers = Layers::new();
    assignments.iter().for_each(|argument| layers.assignment(argument));
    layers.finish().unwrap().settings
}

pub(crate) fn refused(section: &str, key: &str, value: impl Into<toml::Value>) -> bool {
    schema::row::<Library>(section, key).unwrap().check(&value.into()).is_err()
}
