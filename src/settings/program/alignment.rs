//! `[alignment]`: row alignment of the two views.

use serde::Deserialize;

use crate::observe::alignment::Limits;
use crate::settings::row::Plain::{Real, Switch};
use crate::settings::row::{Kind, Row};

/// Check of the row alignment of the two views.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // `config/default.toml` says what each is.
pub struct Alignment {
    pub check: bool,
    pub warn_px: f64,
}

pub(in crate::settings) const ROWS: &[Row] = &[
    Row::new("check", Switch(true), Kind::Switch),
    Row::real("warn_px", Real(1.5), [0.1, 100.0]).live(),
];

impl Alignment {
    /// Returns the limits of a good alignment; `calibrated`: a calibration was given, by which a
    /// point at infinity has the disparity `farthest_px`.
    pub fn limits(&self, calibrated: bool, farthest_px: f64) -> Limits {
        Limits { warn_px: self.warn_px, calibrated, farthest_px }
    }
}
