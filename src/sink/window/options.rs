//! Options of the window: its first view, and facts that it needs.

use std::path::PathBuf;

use super::scene::View;
use super::tuning::Tuning;
use crate::frame::DisparityRange;
use crate::sink::colour::{ColourMap, ColourRange};

/// Options of the window: its first view, and facts that it needs.
#[derive(Clone, Debug)]
pub struct WindowOptions {
    pub title: String,
    /// Width and height of the pictures that will come.
    pub picture: (u32, u32),
    pub colour_map: ColourMap,
    pub disparities: DisparityRange,
    /// Which disparities span the colours.
    pub colour_range: ColourRange,
    pub view: View,
    pub snapshot_dir: PathBuf,
    /// File for the settings; `None`: one beside the snapshots.
    pub settings_file: Option<PathBuf>,
    /// Settings that can be changed from the window, if any.
    pub tuning: Option<Tuning>,
    /// Pictures smaller than this (width, height) are enlarged at the start.
    pub smallest: (u32, u32),
    /// The window is no larger than this (width, height) at the start, nor than the monitor.
    pub largest: (u32, u32),
    /// True where it starts on the full screen.
    pub full_screen: bool,
}

impl WindowOptions {
    /// The usual window for pictures of this size with these candidate disparities.
    pub fn new(title: impl Into<String>, picture: (u32, u32), disparities: DisparityRange) -> Self {
        Self {
            title: title.into(),
            picture,
            colour_map: ColourMap::Turbo,
            disparities,
            colour_range: ColourRange::Full,
            view: View::Disparity,
            snapshot_dir: PathBuf::from("."),
            settings_file: None,
            tuning: None,
            smallest: (640, 360),
            largest: (1600, 1000),
            full_screen: false,
        }
    }
}
