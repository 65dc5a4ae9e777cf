//! `[alignment]`: whether the rows of the two eyes agree.

use serde::{Deserialize, Serialize};

use super::values::Unfit;

/// Whether the rows of the two eyes agree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Alignment {
    /// Whether it is looked at.
    pub check: bool,
    /// Row error in pixels above which there is a warning.
    pub warn_px: f64,
}

impl Default for Alignment {
    fn default() -> Self {
        Alignment { check: true, warn_px: 1.5 }
    }
}

impl Alignment {
    pub(super) fn check(&self) -> Result<(), Unfit> {
        Unfit::within("warn_px", self.warn_px, 0.1..=100.0)
    }
}
