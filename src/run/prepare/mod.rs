//! Preparation of a command: settings, cameras, disparity range and speed of the engine.

pub mod fit;
pub mod loading;
pub mod ranging;
pub mod reversed;
pub mod rig;
