//! `[window]`: content and behaviour of the window.

use std::path::PathBuf;

use serde::Deserialize;

use crate::settings::names::path_of;
use crate::settings::row::Plain::Switch;
use crate::settings::row::{Kind, OUTPUT, Row};
use crate::window::View;

/// Presence of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowMode {
    /// If there is a display.
    Auto,
    /// Yes, or fail.
    On,
    /// No.
    Off,
}

/// Behaviour of the window after the source has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AtEnd {
    /// Show the last pair until it is closed.
    Stay,
    /// Close.
    Close,
}

/// Settings of the window.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // `config/default.toml` says what each is.
pub struct Window {
    pub mode: WindowMode,
    pub view: View,
    pub full_screen: bool,
    pub snapshots: String,
    pub settings: String,
    pub at_end: AtEnd,
}

pub(in crate::settings) const ROWS: &[Row] = &[
    Row::names("mode", "auto", &["auto", "on", "off"]),
    Row::names(
        "view",
        "side-by-side",
        &["disparity", "left", "side-by-side", "pair", "points", "confidence", "whitened"],
    ),
    Row::new("full_screen", Switch(false), Kind::Switch),
    Row::text("snapshots", ".", |text| match text {
        "" => Err("a folder, for example \".\"".into()),
        _ => Ok(()),
    }),
    Row::path("settings").flag(OUTPUT, "--window-settings", "FILE.toml").help(
        "File for settings tuned in the window (key w); without it, a new \
             file each time",
    ),
    Row::names("at_end", "stay", &["stay", "close"]),
];

impl Window {
    /// Returns the file for tuned settings; `None`: a new one next to the snapshots.
    pub fn settings(&self) -> Option<PathBuf> {
        path_of(&self.settings)
    }
}
