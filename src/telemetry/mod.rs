//! News that the running program tells about itself: logs, live counters, metrics.

pub mod logs;
pub mod progress;
pub mod stderr;
pub mod temporal;
