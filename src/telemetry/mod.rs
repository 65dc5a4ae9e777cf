//! What the program tells about itself.

pub mod logs;
