//! `[alignment]`: row alignment of the two views.

use serde::Deserialize;

use crate::observe::alignment::Limits;
use stereod_core::settings::row::Plain::{Real, Switch};
use stereod_core::settings::row::{Kind, Row};

/// Check of the row alignment of the two views.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // `ROWS` says what each is.
pub struct Alignment {
    pub check: bool,
    pub warn_px: f64,
}

pub(in crate::settings) const ROWS: &[Row] = &[
    Row::new("check", Switch(true), Kind::Switch)
        .help(
            "Watch whether the rows of the two views are aligned, and warn if they certainly are not.",
        )
        .more(
            "Causes are a rig that was bumped, left and right exchanged, inputs that are not rectified, \
             and rows that drift. Takes a few milliseconds of one core four times per second.",
        ),
    Row::real("warn_px", Real(1.5), [0.1, 100.0])
        .help("Row error in pixels (root mean square over the image) above which to warn, 0.1 to 100.")
        .more("Matching suffers from about 1 px on; good rigs stay below 0.5.")
        .live(),
];

impl Alignment {
    /// Returns the limits of a good alignment; `calibrated`: a calibration was given, by which a
    /// point at infinity has the disparity `farthest_px`, and the rows of exchanged views would differ by
    /// `exchanged_px`.
    pub fn limits(&self, calibrated: bool, farthest_px: f64, exchanged_px: Option<f64>) -> Limits {
        Limits { warn_px: self.warn_px, calibrated, farthest_px, exchanged_px }
    }
}
