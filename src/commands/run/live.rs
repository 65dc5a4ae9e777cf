//! What is looked at and changed while pairs flow.

pub mod findings;
pub mod handles;
pub mod metrics;
pub mod requests;
pub mod service;
pub mod tuning;
