//! `[camera]`: how the cameras of both eyes are set.

use serde::Deserialize;

use super::row::{Plain, Row};
use crate::frame::Eye;
use crate::source::v4l2::Controls;

/// How the cameras of both eyes are set.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Camera {
    /// Exposure and the like.
    #[serde(flatten)]
    pub controls: Controls,
    /// Whose exposure, gain and white balance both have; `None`: each its own.
    pub exposure_from: Option<Eye>,
}

const fn control(key: &'static str, largest: f64) -> Row {
    Row {
        words: &["keep", "auto"],
        ..Row::real(key, Plain::Text("keep"), [0.0, largest]).unit("a number")
    }
}

pub(super) const ROWS: &[Row] = &[
    control("exposure_ms", 100_000.0),
    control("gain", 1e9),
    control("white_balance", 100_000.0),
    control("focus", 1e9),
    Row::names("power_line", "keep", &["keep", "off", "50", "60", "auto"]),
    Row { none: Some("each"), ..Row::names("exposure_from", "each", &["each", "left", "right"]) },
];
