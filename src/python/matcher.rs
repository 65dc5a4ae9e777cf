//! `stereod.Matcher`.

use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use numpy::{PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

use super::arrays::{Channels, View, array2};
use super::calibration::Calibration;
use super::disparity::Disparity;
use crate::engine::PairSpec;
use crate::matcher::{self, Error, ImageRef, Recipe};
use crate::settings::{Layers, Loaded};

/// Matches pairs of images.
///
/// The engine is made with the first pair, for images of its size, and made again if the size
/// changes. Parameters have the names and values of the command line: `disparities=128`,
/// `cost="census"`, `paths=8`, `engine="cuda"`, `threads=2`. A matcher may be used by several threads,
/// one after the other, and pickled. After a fork a matcher on the CPU makes its engine again; CUDA
/// cannot be used in the child.
#[pyclass(module = "stereod", frozen)]
pub struct Matcher {
    keywords: Py<PyDict>,
    loaded: Loaded,
    calibration: Option<Py<Calibration>>,
    channels: Channels,
    running: Mutex<Option<Running>>,
}

/// A matcher for one size of images.
struct Running {
    /// Process that made it.
    process: u32,
    size: (usize, usize),
    matcher: matcher::Matcher,
}

/// Returns a parameter's value as on the command line; `None` for its default.
fn text_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
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

impl Matcher {
    /// Runs `work` with the matcher for images of this size.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        size: (usize, usize),
        work: impl FnOnce(&mut matcher::Matcher) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let pairs = match &self.calibration {
            None => PairSpec::rectified(size.0, size.1),
            Some(rig) => rig.get().rectifier(py)?.pairs(),
        };
        py.detach(|| {
            let mut running = self.lock();
            if let Some(old) = running.take_if(|old| old.process != process::id()) {
                let is_on_gpu = old.matcher.is_on_device();
                // Its threads were left behind by the fork, so it cannot be dropped.
                std::mem::forget(old);
                if is_on_gpu {
                    return Err(PyRuntimeError::new_err(
                        "CUDA cannot be used in a forked process; start processes with \
                         multiprocessing.set_start_method(\"spawn\"), or make the matcher there",
                    ));
                }
            }
            drop(running.take_if(|old| old.size != size));
            if running.is_none() {
                let Loaded { settings, params, .. } = &self.loaded;
                let recipe = Recipe {
                    params: params.clone(),
                    pairs,
                    choice: settings.engine.kind,
                    options: settings.engine.options(),
                };
                let matcher = matcher::Matcher::of(recipe)?;
                *running = Some(Running { process: process::id(), size, matcher });
            }
            let running = running.as_mut().expect("it was just made");
            Ok(work(&mut running.matcher)?)
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compute<T: Send>(
        &self,
        left: &Bound<'_, PyAny>,
        right: &Bound<'_, PyAny>,
        work: impl FnOnce(&mut matcher::Matcher, [ImageRef<'_>; 2]) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let py = left.py();
        let views =
            [View::of("left", left, self.channels)?, View::of("right", right, self.channels)?];
        let [left, right] = [views[0].image()?, views[1].image()?];
        if self.calibration.is_none()
            && (left.width(), left.height()) != (right.width(), right.height())
        {
            return Err(PyValueError::new_err(format!(
                "left has {}x{} pixels and right {}x{}; a pair has one size",
                left.width(),
                left.height(),
                right.width(),
                right.height()
            )));
        }
        self.with(py, (left.width(), left.height()), |matcher| work(matcher, [left, right]))
    }
}

#[pymethods]
impl Matcher {
    #[new]
    #[pyo3(signature = (*, calibration=None, channels="rgb", confidence=true, **parameters))]
    fn new(
        py: Python<'_>,
        calibration: Option<Py<Calibration>>,
        channels: &str,
        confidence: bool,
        parameters: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let keywords = PyDict::new(py);
        let mut layers = Layers::new();
        for (name, value) in parameters.into_iter().flatten() {
            let name: String = name.extract()?;
            if let Some(text) = text_of(&name, &value)? {
                layers.parameter(&name, &text);
            }
            keywords.set_item(name, value)?;
        }
        keywords.set_item("calibration", &calibration)?;
        keywords.set_item("channels", channels)?;
        keywords.set_item("confidence", confidence)?;
        let mut loaded =
            layers.finish().map_err(|error| PyValueError::new_err(error.to_string()))?;
        if confidence {
            loaded.params.confidence.get_or_insert(0);
        }
        let channels = Channels::of(channels)?;
        let keywords = keywords.unbind();
        Ok(Self { keywords, loaded, calibration, channels, running: Mutex::new(None) })
    }

    /// Returns the disparity of a pair that belongs to no stream. Images are (H, W) of uint8 or
    /// uint16, or (H, W, 3) of uint8. `out`, an int16 array (H, W), receives the disparity in 1/16 px.
    #[pyo3(signature = (left, right, *, out=None))]
    fn __call__(
        &self,
        left: &Bound<'_, PyAny>,
        right: &Bound<'_, PyAny>,
        out: Option<&Bound<'_, PyArray2<i16>>>,
    ) -> PyResult<Disparity> {
        let result = self.compute(left, right, |matcher, [l, r]| matcher.compute(l, r))?;
        if let Some(out) = out {
            let map = result.map();
            if out.shape() != [map.height(), map.width()] {
                return Err(PyValueError::new_err(format!(
                    "out has the shape {:?}; expected ({}, {})",
                    out.shape(),
                    map.height(),
                    map.width()
                )));
            }
            let mut out = out.try_readwrite()?;
            let values = out.as_array_mut().into_iter().zip(map.values());
            values.for_each(|(out, &value)| *out = value);
        }
        Ok(Disparity::of(result))
    }

    /// Returns the disparity of the next pair of a stream, captured at `time` seconds, which must grow
    /// from pair to pair. Filters with a memory (temporal, smoothing, steady) use the earlier pairs.
    fn next(
        &self,
        left: &Bound<'_, PyAny>,
        right: &Bound<'_, PyAny>,
        time: f64,
    ) -> PyResult<Disparity> {
        let time = Duration::try_from_secs_f64(time).map_err(|_| {
            PyValueError::new_err(format!("time is a number of seconds from 0 on, not {time}"))
        })?;
        let result =
            self.compute(left, right, |matcher, [l, r]| matcher.compute_next(l, r, time))?;
        Ok(Disparity::of(result))
    }

    /// Makes filters with a memory restart with the next pair.
    fn restart(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| match &mut *self.lock() {
            Some(running) => Ok(running.matcher.restart()?),
            None => Ok(()),
        })
    }

    /// Returns the disparity of every pixel of the right image, int16 in 1/16 px.
    fn right_map(&self, py: Python<'_>, disparity: &Disparity) -> PyResult<Py<PyArray2<i16>>> {
        let of = disparity.inner();
        let size = self.input_size(py, of)?;
        let map = self.with(py, size, |matcher| matcher.right_map(of))?;
        Ok(array2(py, map.values().to_vec(), map.width()))
    }

    /// Returns for every pixel whether only the left camera sees it, bool.
    fn occluded(&self, py: Python<'_>, disparity: &Disparity) -> PyResult<Py<PyArray2<bool>>> {
        let of = disparity.inner();
        let size = self.input_size(py, of)?;
        let occluded = self.with(py, size, |matcher| matcher.occluded(of))?;
        Ok(array2(py, occluded, of.map().width()))
    }

    /// The processor that matches, in a few words; None before the first pair.
    #[getter]
    fn description(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.lock().as_ref().map(|running| running.matcher.description()))
    }

    /// The parameters that were given.
    #[getter]
    fn parameters(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        Ok(self.keywords.bind(py).copy()?.unbind())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let given = self.keywords.bind(py).iter();
        let given = given.map(|(name, value)| Ok(format!("{name}={}", value.repr()?)));
        Ok(format!("Matcher({})", given.collect::<PyResult<Vec<_>>>()?.join(", ")))
    }

    fn __getnewargs_ex__(&self, py: Python<'_>) -> PyResult<((), Py<PyDict>)> {
        Ok(((), self.parameters(py)?))
    }
}

impl Matcher {
    /// Returns the size of the images that lead to such a map.
    fn input_size(&self, py: Python<'_>, of: &matcher::Disparity) -> PyResult<(usize, usize)> {
        match &self.calibration {
            None => Ok((of.map().width(), of.map().height())),
            Some(rig) => Ok(rig.get().rectifier(py)?.source_size(crate::Eye::Left)),
        }
    }
}
