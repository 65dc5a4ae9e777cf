//! Errors of calibrations.

pub type Result<T, E = CalibrationError> = std::result::Result<T, E>;

/// Flaw of a calibration, as one message with its file and a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CalibrationError {
    message: String,
    lacks_size: bool,
    reversed: Option<String>,
}

impl CalibrationError {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), lacks_size: false, reversed: None }
    }

    pub(super) fn without_size(message: impl Into<String>) -> Self {
        Self { lacks_size: true, ..Self::new(message) }
    }

    /// Makes the error of a right camera to the left of the left one: the finding, then advice.
    pub(super) fn of_reversed(finding: String, advice: &str) -> Self {
        Self { reversed: Some(finding.clone()), ..Self::new(finding + advice) }
    }

    /// Returns the finding without advice if the right camera stands to the left of the left one: images can
    /// tell why.
    pub fn reversed(&self) -> Option<&str> {
        self.reversed.as_deref()
    }

    /// Reports whether only the size of the images is missing: then the caller may read the files
    /// again with [`ReadOptions::size`](super::format::ReadOptions::size).
    pub fn lacks_size(&self) -> bool {
        self.lacks_size
    }
}
