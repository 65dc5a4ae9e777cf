//! Errors of the library.

use std::fmt;

use crate::calibration::error::RectifyError;
use crate::engine::cuda::{TooLarge, Unusable};
use crate::matching::ParamsError;
use crate::memory::{Refused, TooMuch};

/// Result of the library's functions.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Reason why something failed, in words that name the remedy where there is one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter has a value that cannot be used.
    #[error("{message}")]
    Parameter {
        /// Name of the parameter, such as `p2`; the first one if several contradict each other.
        name: String,
        /// The reason.
        message: String,
    },
    /// An image has no pixels, fewer than its size needs, or another size than expected.
    #[error("{0}")]
    Size(String),
    /// The device does not exist, or cannot be used.
    #[error("{0}")]
    Device(String),
    /// The memory does not suffice.
    #[error("{0}")]
    OutOfMemory(String),
    /// A file is no calibration, or a useless one. The message begins with the file and, where it is
    /// known, the line.
    #[error("{0}")]
    Calibration(String),
    /// An image file cannot be read or written.
    #[error("{0}")]
    File(String),
    /// Depth was asked for, but no cameras are known.
    #[error("depth needs cameras; make the matcher with a calibration, or give the geometry")]
    NoGeometry,
    /// Matching failed; the message says why.
    #[error("{0}")]
    Failed(String),
}

impl From<ParamsError> for Error {
    fn from(error: ParamsError) -> Self {
        Error::parameter(error.to_string())
    }
}

impl Error {
    /// Wraps the message on a parameter, which quotes its name.
    pub(super) fn parameter(message: String) -> Self {
        let name = message.split('`').nth(1).unwrap_or_default().to_owned();
        Error::Parameter { name, message }
    }

    /// Wraps the error of a calibration.
    pub(super) fn of_calibration(error: impl fmt::Display) -> Self {
        Error::Calibration(error.to_string())
    }

    /// Sorts the error of a rectification.
    pub(super) fn of_rectification(error: RectifyError) -> Self {
        match error {
            RectifyError::TooMuch(_) | RectifyError::Refused(_) => {
                Error::OutOfMemory(error.to_string())
            }
            _ => Error::Calibration(error.to_string()),
        }
    }

    /// Sorts an engine's error.
    pub(super) fn of_engine(error: anyhow::Error) -> Self {
        let message = format!("{error:#}");
        if error.is::<ParamsError>() {
            Error::parameter(message)
        } else if error.is::<Unusable>() {
            Error::Device(message)
        } else if error.is::<TooMuch>() || error.is::<Refused>() || error.is::<TooLarge>() {
            Error::OutOfMemory(message)
        } else {
            Error::Failed(message)
        }
    }

    /// Wraps the error of a file.
    pub(super) fn of_file(error: anyhow::Error) -> Self {
        Error::File(format!("{error:#}"))
    }
}
