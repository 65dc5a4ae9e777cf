//! What the running program tells about itself: logs, live counters, statistics.

pub mod logs;
pub mod progress;
pub mod statistics;
