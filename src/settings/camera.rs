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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::test_support::{refused, settings};
    use crate::source::v4l2::{PowerLine, Setting};

    #[test]
    fn controls_are_words_or_numbers() {
        let told = ["exposure_ms=8", "gain=auto", "focus=1.5", "power_line=50"];
        let camera =
            settings(&told.map(|told| format!("camera.{told}")).each_ref().map(|t| &**t)).camera;
        let controls = Controls {
            exposure_ms: Setting::Value(8.0),
            gain: Setting::Auto,
            white_balance: Setting::Keep,
            focus: Setting::Value(1.5),
            power_line: PowerLine::Hz50,
        };
        assert_eq!(camera, Camera { controls, exposure_from: None });
        assert!(refused("camera", "gain", "much") && refused("camera", "gain", true));
        assert!(refused("camera", "power_line", "55"));
        for wrong in [-1.0, f64::NAN, 1e10] {
            assert!(refused("camera", "gain", wrong), "{wrong}");
        }
        let of_left = settings(&["camera.exposure_from=left"]).camera;
        assert_eq!(of_left.exposure_from, Some(Eye::Left));
    }
}
