//! Errors of the library.

use std::sync::Arc;
use std::{fmt, io};

use crate::engine::Refusal;
use crate::engine::cuda::{TooLarge, Unusable};
use crate::matching::ParamsError;
use crate::memory::{Refused, TooMuch};

/// Result of the library's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reason why something failed, in words that name the remedy where there is one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A parameter has a value that cannot be used.
    Parameter {
        /// Name of the parameter, such as `p2`; the first one if several contradict each other.
        name: String,
        /// The reason.
        message: String,
    },
    /// An image has no pixels, fewer than its size needs, or another size than expected.
    Size(String),
    /// The device does not exist, or cannot be used.
    Device(String),
    /// The memory does not suffice.
    OutOfMemory(String),
    /// A file is no calibration, or a useless one. The message begins with the file and, where it is
    /// known, the line.
    Calibration(String),
    /// A file cannot be read or written.
    File {
        /// The reason, with the file.
        message: String,
        /// The system's error, if there was one; `message` holds its text already.
        cause: Option<Arc<io::Error>>,
    },
    /// Depth was asked for, but no cameras are known.
    NoGeometry,
    /// Matching failed; the message says why.
    Failed(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Parameter { message, .. } | Error::File { message, .. } => message,
            Error::Size(message)
            | Error::Device(message)
            | Error::OutOfMemory(message)
            | Error::Calibration(message)
            | Error::Failed(message) => message,
            Error::NoGeometry => {
                "depth needs cameras; make the matcher with a calibration, or give the geometry"
            }
        })
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::File { cause: Some(cause), .. } => Some(&**cause),
            _ => None,
        }
    }
}

impl From<ParamsError> for Error {
    fn from(error: ParamsError) -> Self {
        Error::parameter(error.to_string())
    }
}

impl Error {
    /// Wraps the message on a parameter, which quotes its name, or its name and its value (`paths=16`).
    pub(super) fn parameter(message: String) -> Self {
        Error::Parameter { name: quoted(&message), message }
    }

    /// Sorts an engine's error.
    pub(super) fn of_engine(error: anyhow::Error) -> Self {
        let message = format!("{error:#}");
        if let Some(refusal) = error.downcast_ref() {
            match refusal {
                Refusal::Size(_) => Error::Size(message),
                Refusal::Device(_) => Error::Device(message),
                Refusal::Parameter(reason) => Error::Parameter { name: quoted(reason), message },
                Refusal::Memory(_) => Error::OutOfMemory(message),
            }
        } else if error.is::<ParamsError>() {
            Error::parameter(message)
        } else if is_device(&error) {
            Error::Device(message)
        } else if error.is::<TooMuch>() || error.is::<Refused>() || error.is::<TooLarge>() {
            Error::OutOfMemory(message)
        } else {
            Error::Failed(message)
        }
    }
}

/// Wraps the error of a file.
pub fn file_error(error: anyhow::Error) -> Error {
    let cause = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    // It is no copy, because those of the system cannot be cloned.
    let cause = cause.map(|cause| match cause.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(cause.kind(), cause.to_string()),
    });
    Error::File { message: format!("{error:#}"), cause: cause.map(Arc::new) }
}

/// Returns the name that a message quotes.
fn quoted(message: &str) -> String {
    let quoted = message.split('`').nth(1).unwrap_or_default();
    quoted.split('=').next().unwrap_or_default().to_owned()
}

/// Reports whether an engine failed because of the device that was asked for.
fn is_device(error: &anyhow::Error) -> bool {
    #[cfg(feature = "wgpu")]
    if error.is::<crate::engine::webgpu::NoDevice>() {
        return true;
    }
    error.is::<Unusable>()
}
