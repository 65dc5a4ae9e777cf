//! The library of stereod: Semi-Global Matching on an NVIDIA GPU or on the CPU, with identical results,
//! and rectification. The crate `stereod` hands it on, with an introduction.
//!
//! The documented items are its interface. Other modules are for the program and change without notice.

// Parts of tests that the executables in `tests` share.
#[cfg(test)]
extern crate self as stereod_core;

#[doc(hidden)]
pub mod chroma;
#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod files;
#[doc(hidden)]
pub mod floats;
#[cfg_attr(doc, doc(hidden))]
#[warn(missing_docs)]
pub mod frame;
#[doc(hidden)]
pub mod grid;
#[cfg_attr(doc, doc(hidden))]
#[warn(missing_docs)]
pub mod matcher;
#[cfg_attr(doc, doc(hidden))]
#[warn(missing_docs)]
pub mod matching;
#[doc(hidden)]
pub mod memory;
#[doc(hidden)]
pub mod obstacles;
#[doc(hidden)]
pub mod picture;
#[doc(hidden)]
pub mod pool;
#[cfg_attr(doc, doc(hidden))]
#[warn(missing_docs)]
pub mod pose;
#[doc(hidden)]
pub mod reading;
#[doc(hidden)]
pub mod rectify;
#[doc(hidden)]
pub mod redact;
#[doc(hidden)]
pub mod settings;
#[doc(hidden)]
pub mod thread;

pub use frame::{DisparityMap, DisparityRange, Eye, INVALID, SUBPIXEL, StereoGeometry};
pub use matcher::{
    Device, Disparity, Error, ImageBuf, ImageRef, Matcher, Rectifier, Status, Stream,
};
pub use matching::{
    BlockMeasure, BlockWindow, CensusWindow, CombinedWeights, Cost, CostError, Evidence, Fill,
    FillRule, Guide, Median, P2Mode, Params, ParamsError, Paths, Prior, Smoothing, Spatial,
    Speckle, Steady, Subpixel, Temporal, TemporalMode, Window,
};
pub use obstacles::Mount;
pub use pose::{Lost, Odometry, Pose};
