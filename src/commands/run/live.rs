//! A run while pairs flow: the parts that watch and change it.

mod changes;
pub mod handles;
pub mod observations;
pub mod requests;
#[cfg(feature = "serve")]
pub mod served;
#[cfg(not(feature = "serve"))]
#[path = "live/not_served.rs"]
pub mod served;
pub mod service;
pub mod tuning;
