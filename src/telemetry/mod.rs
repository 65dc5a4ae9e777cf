//! What the running program tells about itself: logs, live counters, accuracy, statistics.

pub mod accuracy;
pub mod logs;
pub mod progress;
pub mod statistics;
