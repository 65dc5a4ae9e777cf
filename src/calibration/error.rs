//! Why a calibration cannot be used.

/// What is wrong with a calibration, with which file, and what to do about it: one message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CalibrationError {
    message: String,
    lacks_size: bool,
}

impl CalibrationError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), lacks_size: false }
    }

    /// The files do not say how large the pictures are.
    pub(super) fn without_size(message: impl Into<String>) -> Self {
        Self { message: message.into(), lacks_size: true }
    }

    /// Whether all that is missing is the size of the pictures: a caller that knows it may read the
    /// files again with [`ReadOptions::size`](super::format::ReadOptions::size).
    pub fn lacks_size(&self) -> bool {
        self.lacks_size
    }
}
