//! A map of the places that a moving rig sees: the depth of its pairs, fused along its path.
//!
//! The map consists of voxels in a spatial hash. Each is the mean of the points measured in it, with evidence for and
//! against it: a voxel that later pairs see through disappears, so things that move leave no trails. Memory is bounded.

mod blocks;
pub mod files;
mod free;
mod fusion;
mod grid;
mod surface;
mod view;
#[cfg(test)]
mod world;

pub use fusion::{Added, Map, Rules, usual_voxel_m};
pub use surface::MapPoint;
pub use view::Unusable;
