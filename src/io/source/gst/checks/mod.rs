//! Checks of streams and files, and explanations of what is wrong with them.

pub(super) mod beginnings;
pub(super) mod ending;
pub(super) mod inspect;
pub(super) mod length;
pub(super) mod limits;
pub(super) mod origin;
pub(super) mod reach;
pub(super) mod server;
pub(super) mod time_jumps;
