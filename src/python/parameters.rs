//! The parameters of a matcher.

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
