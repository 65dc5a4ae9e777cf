//! Commands of the program: one file each.

pub mod batch;
pub mod bench;
pub mod calibrate;
pub mod calibration;
pub mod completions;
pub mod config;
pub mod devices;
mod error;
pub mod evaluate;
pub mod info;
pub mod inputs;
pub mod man;
pub mod match_still;
mod prepare;
mod program;
mod progress;
pub mod rectify;
pub mod run;
mod signals;
mod stdout;
mod stills;
mod verify;

pub use error::{Error, told};
use prepare::loading::{inputs, layers, load, read, read_over};
pub use program::program;
use progress::progress_bar;
use stdout::print;
