//! Parts that every room needs: frames, memory, threads, queues, clocks and text.

pub mod backoff;
pub mod camera;
pub mod chroma;
pub mod clock;
pub mod control;
#[cfg(feature = "ros2")]
pub mod dds;
pub mod ebml;
#[warn(missing_docs)]
pub mod frame;
pub mod memory;
pub mod playback;
pub mod pool;
pub mod queue;
pub mod reading;
pub mod redact;
pub mod text;
pub mod thread;
pub mod warnings;
