//! `[window]`: content and behaviour of the window.

use std::path::PathBuf;

use serde::Deserialize;

use crate::settings::names::path_of;
use crate::window::View;
use stereod_core::settings::row::Plain::Switch;
use stereod_core::settings::row::{Kind, OUTPUT, Row};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowMode {
    Auto,
    /// Yes, or fail.
    On,
    Off,
}

/// Behaviour of the window and of the live page after the source has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AtEnd {
    /// Show the last pair until the window is closed, or the run stopped.
    Stay,
    Close,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    pub mode: WindowMode,
    pub view: View,
    pub full_screen: bool,
    pub snapshots: String,
    pub settings: String,
    pub at_end: AtEnd,
}

pub(in crate::settings) const ROWS: &[Row] = &[
    Row::names("mode", "auto", &["auto", "on", "off"]).help("Whether to open a window.").about(&[
        "If there is a display",
        "Yes, or fail",
        "No",
    ]),
    Row::names(
        "view",
        "side-by-side",
        &[
            "disparity",
            "left",
            "side-by-side",
            "pair",
            "right",
            "points",
            "confidence",
            "whitened",
            "check",
        ],
    )
    .help("View at the start.")
    .about(&[
        "The disparity in colours",
        "The left image",
        "The left image, and the disparity in colours",
        "Both images, with lines along their rows",
        "The right image",
        "The points in space",
        "The confidence: lighter is more certain",
        "The left image minus its background, with temporal = \"whiten\"",
        "Whether a network and matching agree, with engine.check = \"sgm\"",
    ]),
    Row::new("full_screen", Switch(false), Kind::Switch).help("Start in full screen."),
    Row::text("snapshots", ".", |text| match text {
        "" => Err("a folder, for example \".\"".into()),
        _ => Ok(()),
    })
    .help("Folder for the snapshots that the key s takes."),
    Row::path("settings")
        .flag(OUTPUT, "--window-settings", "FILE.toml")
        .help("File for settings tuned in the window (key w); without it, a new file each time.")
        .more(
            "An earlier file is replaced; new files stand next to the snapshots. It is never the \
             configuration that is read.",
        ),
    Row::names("at_end", "stay", &["stay", "close"])
        .help("Behaviour after the source has ended.")
        .about(&[
            "The window stays until the user closes it; a recording on the live page that writes \
             and sends nothing waits to be played again",
            "Closes",
        ]),
];

impl Window {
    /// Returns the file for tuned settings; `None`: a new one next to the snapshots.
    pub fn settings(&self) -> Option<PathBuf> {
        path_of(&self.settings)
    }
}
