//! What is measured while the pipeline runs.

pub mod accuracy;
