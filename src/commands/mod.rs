//! Commands of the program: one file each.

pub mod bench;
pub mod calibrate;
pub mod calibration;
pub mod completions;
pub mod config;
pub mod devices;
mod error;
pub mod evaluate;
mod fit;
mod loading;
pub mod man;
pub mod match_still;
mod program;
mod progress;
mod ranging;
pub mod rectify;
mod rig;
pub mod run;
mod signals;
mod stdout;
mod stills;
mod timing;
mod verify;

pub use error::Error;
use loading::{inputs, layers, load, read};
pub use program::program;
use progress::progress_bar;
use stdout::print;
