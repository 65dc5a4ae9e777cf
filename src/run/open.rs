//! Checks and parts of a run before the first pair flows.

pub mod engine;
pub mod first_pairs;
pub mod links;
pub mod map;
pub mod obstacles;
pub mod outputs;
pub mod source;
