//! `[camera]`: controls of the cameras.

use serde::Deserialize;

use stereod_core::frame::Eye;
use stereod_core::settings::row::{Plain, Row};
use stereod_io::source::v4l2::{Controls, KNOBS};

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Camera {
    #[serde(flatten)]
    pub controls: Controls,
    /// The camera whose exposure, gain and white balance both have; `None`: each its own.
    pub exposure_from: Option<Eye>,
}

/// Rows of controls with an automatic mode, and of the rest.
pub(in crate::settings) const ROWS: &[Row] = &{
    let mut rows = [EXPOSURE_FROM; KNOBS.len() + 2];
    let mut at = 0;
    while at < KNOBS.len() {
        let number = Row::real(KNOBS[at].key, Plain::Text("keep"), [0.0, KNOBS[at].largest]);
        let number = number.unit("a number").help(KNOBS[at].help);
        rows[at] = Row { words: &["keep", "auto"], ..number };
        at += 1;
    }
    rows[at] = POWER_LINE;
    rows
};

const POWER_LINE: Row = Row::names("power_line", "keep", &["keep", "off", "50", "60", "auto"])
    .help("Correction for lamps that flicker with the mains.")
    .about(&["As it is", "None", "For 50 Hz", "For 60 Hz", "Left to the camera"]);

const EXPOSURE_FROM: Row = Row {
    none: Some("each"),
    ..Row::names("exposure_from", "each", &["each", "left", "right"])
        .help(
            "Camera whose exposure, gain and white balance are copied to the other, so that both see \
             the same brightness.",
        )
        .about(&["None: each keeps its own", "The left one", "The right one"])
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::tests::{refused, settings};
    use stereod_io::source::v4l2::{PowerLine, Setting};

    #[test]
    fn controls_are_words_or_numbers() {
        let told = ["exposure_ms=8", "gain=auto", "focus=1.5", "power_line=50"];
        let camera =
            settings(&told.map(|told| format!("camera.{told}")).each_ref().map(|t| &**t)).camera;
        let controls = Controls {
            exposure_ms: Setting::Value(8.0),
            gain: Setting::Auto,
            focus: Setting::Value(1.5),
            power_line: PowerLine::Hz50,
            ..Controls::default()
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
