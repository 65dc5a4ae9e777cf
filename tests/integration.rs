//! The tests that need no process of their own, in one executable, so that they are linked once.

#![cfg(all(feature = "cli", feature = "window", feature = "serve"))]

mod alignment;
mod batch;
mod calibrate;
mod calibration;
mod cli;
mod common {
    pub mod data;
    pub mod maps;
    pub mod numbered_videos;
    pub mod outcome;
    pub mod player;
    pub mod program;
    pub mod screen;
    pub mod video_file;
}
mod docs;
mod evaluate;
mod ingest;
mod rectification;
mod run;
mod scripts;
mod sinks;
mod window;
