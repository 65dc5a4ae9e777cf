//! The parameters of a matcher, and arguments with their names.

use std::time::Duration;

use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};

use crate::{Layers, Loaded};

/// Parameters as they were given: names and texts, and whether confidence is computed.
#[derive(Debug, PartialEq, Eq)]
pub struct Given {
    pub parameters: Vec<(String, String)>,
    pub confidence: bool,
}

impl Given {
    /// Returns the settings.
    pub fn load(&self) -> PyResult<Loaded> {
        let mut layers = Layers::new();
        for (name, text) in &self.parameters {
            layers.parameter(name, text);
        }
        let mut loaded =
            layers.finish().map_err(|error| PyValueError::new_err(error.to_string()))?;
        if self.confidence {
            loaded.params.confidence.get_or_insert(0);
        }
        Ok(loaded)
    }
}

/// Returns a parameter's value as on the command line; `None` for its default.
pub fn text_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if value.is_none() {
        return Ok(None);
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(Some(value.extract::<bool>()?.to_string()));
    }
    let is_plain = value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>()
        || value.is_instance_of::<PyString>();
    // NumPy's numbers are not Python's, but have an index or a float.
    let is_number = value.hasattr("__index__")? || value.hasattr("__float__")?;
    match is_plain || is_number {
        true => Ok(Some(value.str()?.to_string())),
        false => Err(PyTypeError::new_err(format!(
            "{name} is {}, not a number, a text, a bool or None",
            value.get_type().name()?
        ))),
    }
}

/// Takes the argument of this name. PyO3 itself names it in a note only, which Python 3.10 does not have.
pub fn argument<'a, 'py, T: FromPyObject<'a, 'py>>(
    name: &str,
    given: &'a Bound<'py, PyAny>,
    expected: &str,
) -> PyResult<T> {
    /// Longest text of a value in a message.
    const LONGEST: usize = 60;
    given.extract().map_err(|error: T::Error| {
        let error: PyErr = error.into();
        let text = || PyResult::Ok(given.repr()?.to_string());
        let kind = || given.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
        let shown = match given.cast::<PyUntypedArray>() {
            Ok(array) => format!("an array {:?} of {}", array.shape(), array.dtype()),
            Err(_) => text().ok().filter(|text| text.len() <= LONGEST).unwrap_or_else(kind),
        };
        let message = format!("{name} is {shown}; expected {expected}");
        PyErr::from_type(error.get_type(given.py()), message)
    })
}

/// Takes the argument of this name unless it is None.
pub fn optional<'a, 'py, T: FromPyObject<'a, 'py>>(
    name: &str,
    given: Option<&'a Bound<'py, PyAny>>,
    expected: &str,
) -> PyResult<Option<T>> {
    given.map(|given| argument(name, given, expected)).transpose()
}

/// Takes a time in seconds.
pub fn time(given: &Bound<'_, PyAny>) -> PyResult<Duration> {
    const EXPECTED: &str = "a number of seconds from 0 on";
    let seconds: f64 = argument("time", given, EXPECTED)?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("time is {seconds}; expected {EXPECTED}")))
}
