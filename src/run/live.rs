//! A run while pairs flow: the parts that watch and change it.

mod changes;
pub mod finding;
pub mod handles;
pub mod observations;
pub mod opened;
pub mod requests;
pub mod tuning;
