//! Obstacles from disparity: a scan of distances by direction, zones, and distances of things in boxes; and the messages
//! of vehicles and homes that tell them.

pub mod boxes;
pub mod draw;
pub mod finder;
pub mod ground;
pub mod lines;
#[cfg(feature = "mavlink")]
pub mod mavlink;
#[cfg(feature = "mqtt")]
pub mod mqtt;
mod nearest;
pub mod overlay;
pub mod scan;
pub mod usual;
pub mod words;
#[cfg(test)]
mod world;
pub mod zones;
