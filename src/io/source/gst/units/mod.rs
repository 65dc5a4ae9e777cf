//! Access units of H.264 and H.265.

pub(super) mod access_units;
pub(super) mod references;
