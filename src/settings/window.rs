//! `[window]`: what is shown.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::names::path_of;
use super::values::Unfit;

/// Whether there is a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum WindowMode {
    /// Where there is a display.
    #[default]
    Auto,
    /// Yes, or an error.
    On,
    /// No.
    Off,
}

/// What the window shows at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// The disparity.
    #[default]
    Disparity,
    /// The left picture.
    Left,
    /// Both.
    SideBySide,
    /// The left and the right picture.
    Pair,
}

/// What the window does when the source has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum AtEnd {
    /// Show the last pair until it is closed.
    #[default]
    Stay,
    /// Close.
    Close,
}

/// What is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Window {
    /// Whether there is a window.
    pub mode: WindowMode,
    /// What it shows at first.
    pub view: View,
    /// Whether it starts without a frame, over the whole screen.
    pub full_screen: bool,
    /// Folder into which the key `s` writes its pictures.
    pub snapshots: String,
    /// File into which the key `w` writes the tuned settings; empty: a new one beside the pictures.
    pub settings: String,
    /// What happens when the source has ended.
    pub at_end: AtEnd,
}

impl Default for Window {
    fn default() -> Self {
        Window {
            mode: WindowMode::Auto,
            view: View::Disparity,
            full_screen: false,
            snapshots: ".".into(),
            settings: String::new(),
            at_end: AtEnd::Stay,
        }
    }
}

impl Window {
    /// File for the tuned settings; `None`: a new one beside the pictures.
    pub fn settings(&self) -> Option<PathBuf> {
        (!self.settings.is_empty()).then(|| path_of(&self.settings))
    }

    pub(super) fn check(&self) -> Result<(), Unfit> {
        if self.snapshots.is_empty() {
            return Err(Unfit::new("snapshots", "a folder, for example \".\""));
        }
        Ok(())
    }
}
