//! A run while pairs flow: who looks at it, and what changes it.

pub mod handles;
pub mod metrics;
pub mod observations;
pub mod requests;
pub mod service;
pub mod tuning;
