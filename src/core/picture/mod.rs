//! Still images and point clouds: reading and writing.

pub mod cloud;
pub mod colours;
pub mod encoding;
mod exr;
pub mod grey;
pub mod header;
pub mod jpeg;
mod light;
pub mod numbers;
pub mod orientation;
pub mod packing;
pub mod png;
mod several;
pub mod still;
pub mod stretch;
mod tiff;
pub mod tone;
pub mod unread;
