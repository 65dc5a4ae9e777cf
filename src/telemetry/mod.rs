//! Information about the running program: logs, live counters, metrics.

pub mod logs;
pub mod progress;
pub mod stderr;
pub mod temporal;
pub mod warnings;
