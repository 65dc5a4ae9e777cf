//! Live streams: their times, and their return after a loss.

pub(super) mod arrivals;
pub(super) mod find_offset;
pub(super) mod live_times;
pub(super) mod reconnect;
pub(super) mod sender_times;
