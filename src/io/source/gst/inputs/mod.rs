//! Inputs: what is named, opened and wired up to raw video.

pub(super) mod camera;
pub(super) mod camera_pools;
pub(super) mod entry;
pub(super) mod found;
pub(super) mod input;
pub(super) mod interleaved;
pub(super) mod libav;
pub(super) mod multipart;
pub(super) mod orientation;
pub(in crate::source) mod packing;
pub(super) mod stills;
pub(super) mod wiring;
