//! `stereod` turns two camera or file streams into disparity, live.
//!
//! ```text
//! left  ── GStreamer ── appsink ─┐
//!                                ├─ pair ─▶ [bounded lock-free link] ─▶ engine: rectify ▶ match ▶ refine ─▶ fan-out ─▶ window
//! right ── GStreamer ── appsink ─┘          (live: oldest dropped and                                         │  ├▶ recorder (16-bit lossless video)
//!                                            counted; files: blocks)                                          │  ├▶ preview video, pictures
//!                                                                                                             └▶ alignment, statistics
//! ```

mod alignment;
mod backoff;
mod calibration;
mod cli;
mod clock;
mod commands;
mod control;
mod engine;
mod frame;
#[doc(hidden)]
pub mod internals;
mod matcher;
mod matching;
mod memory;
mod pace;
mod pair;
mod pipeline;
mod pool;
mod queue;
mod range;
mod reading;
mod redact;
mod sameness;
mod settings;
mod sink;
mod source;
mod synchronisation;
mod telemetry;
mod text;
mod thread;

pub use calibration::Rectifier;
pub use frame::{DisparityMap, DisparityRange, Eye, INVALID, SUBPIXEL, StereoGeometry};
pub use matcher::{Device, Disparity, Error, Matcher, Picture};
pub use matching::{CensusWindow, Cost, Median, P2Mode, Params, ParamsError, Paths, Speckle};

#[doc(hidden)]
pub use commands::program;
