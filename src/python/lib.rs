//! The compiled part of the Python package, `stereod._native`. The package around it is in
//! `src/python/stereod/`.
//!
//! Images are NumPy arrays: borrowed where their pixels are bytes, otherwise converted once. The
//! interpreter is free while images are matched.

mod arrays;
mod batch;
mod calibration;
mod disparity;
mod forks;
mod matcher;
mod obstacles;
mod pairs;
mod parameters;
mod setup;
mod stream;
mod waiting;

use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use stereod_core::matcher::Error;
use stereod_core::settings::{self, Library};

type Layers = settings::Layers<Library>;
type Loaded = settings::Loaded<Library>;

pyo3::create_exception!(
    stereod,
    DeviceError,
    PyRuntimeError,
    "The GPU that was asked for does not exist or cannot be used."
);
pyo3::create_exception!(
    stereod,
    CalibrationError,
    PyValueError,
    "A file is no calibration, or a useless one; the message begins with the file and the line."
);

/// Returns the exception of an error.
fn raised(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Parameter { .. } | Error::Size(_) | Error::NoGeometry => {
            PyValueError::new_err(message)
        }
        Error::Device(_) => DeviceError::new_err(message),
        Error::OutOfMemory(_) => PyMemoryError::new_err(message),
        Error::Calibration(_) => CalibrationError::new_err(message),
        Error::File { .. } => PyOSError::new_err(message),
        _ => PyRuntimeError::new_err(message),
    }
}

/// The module `stereod._native`.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    forks::register(module.py())?;
    // NumPy's functions are looked up now, because a fork in the middle would leave the lock of that to the child.
    drop(PyArray1::<u8>::zeros(module.py(), 1, false).readonly());
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("INVALID_RAW", stereod_core::INVALID)?;
    module.add("PARAMETERS", PyTuple::new(module.py(), settings::parameters())?)?;
    module.add("DeviceError", module.py().get_type::<DeviceError>())?;
    module.add("CalibrationError", module.py().get_type::<CalibrationError>())?;
    module.add_class::<matcher::Matcher>()?;
    module.add_class::<disparity::Disparity>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<calibration::Calibration>()?;
    module.add_class::<pairs::Pairs>()?;
    module.add_class::<pairs::Pair>()?;
    module.add_function(wrap_pyfunction!(pairs::open, module)?)
}
