//! What the running program tells about itself: logs and live counters.

pub mod logs;
pub mod progress;
