//! A run while pairs flow: the parts that watch and change it.

pub mod handles;
#[cfg(feature = "serve")]
pub mod metrics;
pub mod observations;
pub mod requests;
pub mod service;
pub mod tuning;
