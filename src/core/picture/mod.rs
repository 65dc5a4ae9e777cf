//! Still images and point clouds: reading and writing.

pub mod cloud;
pub mod colours;
pub mod encoding;
pub mod grey;
pub mod header;
pub mod jpeg;
pub mod numbers;
pub mod orientation;
pub mod png;
pub mod still;
pub mod stretch;
pub mod tone;
