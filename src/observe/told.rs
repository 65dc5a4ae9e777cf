//! Warnings of the pair check: given once while pairs flow, repeated in the report with their last figures.

use std::sync::{Arc, Mutex};

use serde::Serialize;

use stereod_core::thread::locked;

/// Part of the pair check that may warn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// Both views are one image.
    SameImage,
    /// Rows of the two views.
    Alignment,
    /// Moments that the two views show.
    Moment,
    /// Share of the pixels with a disparity.
    Density,
    /// Disparities beyond the candidates.
    Range,
    /// Brightness and saturation of the two views.
    Exposure,
}

/// A warning of the pair check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Told {
    /// The check that warned.
    pub check: Check,
    /// Text of the warning, with the last figures.
    pub text: String,
    /// Number of times it was logged.
    pub count: u64,
    /// True if it still held at the end of the run.
    pub stands: bool,
}

/// Warnings of a run, one for each check. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Mutex<Vec<Told>>>);

impl Warnings {
    /// Logs a warning, and keeps it in place of an earlier one of the same check.
    pub fn warn(&self, check: Check, text: String) {
        tracing::warn!("{text}");
        let mut all = locked(&self.0);
        match all.iter_mut().find(|told| told.check == check) {
            Some(told) => *told = Told { check, text, count: told.count + 1, stands: true },
            None => all.push(Told { check, text, count: 1, stands: true }),
        }
    }

    /// Renews the figures of a warning that was given; without a text it holds no longer.
    pub fn renew(&self, check: Check, text: Option<String>) {
        if let Some(told) = locked(&self.0).iter_mut().find(|told| told.check == check) {
            told.stands = text.is_some();
            told.text = text.unwrap_or_else(|| std::mem::take(&mut told.text));
        }
    }

    pub fn all(&self) -> Vec<Told> {
        locked(&self.0).clone()
    }
}
