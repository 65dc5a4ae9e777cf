//! `stereod` turns two camera or file streams into disparity, live.
//!
//! ```text
//! left  ── GStreamer ── appsink ─┐
//!                                ├─ pair ─▶ [bounded lock-free link] ─▶ engine: rectify ▶ match ▶ refine ─▶ fan-out ─▶ window
//! right ── GStreamer ── appsink ─┘          (live: oldest dropped and                                         │  ├▶ recorder (16-bit lossless video)
//!                                            counted; files: blocks)                                          │  ├▶ preview video, pictures
//!                                                                                                             └▶ alignment, statistics
//! ```

pub mod alignment;
pub mod backoff;
pub mod calibration;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod control;
pub mod engine;
pub mod frame;
pub mod matcher;
pub mod matching;
pub mod memory;
pub mod pace;
pub mod pair;
pub mod pipeline;
pub mod pool;
pub mod queue;
pub mod range;
pub mod reading;
pub mod redact;
pub mod sameness;
pub mod settings;
pub mod sink;
pub mod source;
pub mod synchronisation;
pub mod telemetry;
pub mod text;
pub mod thread;
