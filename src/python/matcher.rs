//! `stereod.Matcher`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::{mem, process};

use numpy::{PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{Channels, array2};
use super::batch::{self, Batch};
use super::calibration::Calibration;
use super::disparity::Disparity;
use super::forks::held_off;
use super::parameters::{self, Given, argument, optional, text_of};
use super::setup::Setup;
use super::stream::Stream;
use super::waiting::interruptible;
use crate::raised;
use stereod_core::matcher::{self, Error, ImageRef, Recipe};
use stereod_core::thread::locked;

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
    setup: Arc<Setup>,
    /// Locked only with the interpreter held, so never by another thread while one forks.
    engine: Mutex<OfProcess>,
}

/// The engine of a process. A fork leaves its threads behind, and its lock may be held by one of them.
struct OfProcess {
    process: u32,
    /// Always there until it is dropped.
    engine: Option<Arc<Engine>>,
}

/// An engine that threads share.
#[derive(Default)]
struct Engine {
    is_on_gpu: AtomicBool,
    running: Mutex<Option<Running>>,
    /// The engine of the newest batch. Locked only with the interpreter held.
    batches: Mutex<Option<matcher::Stream>>,
}

const DISPARITY: &str = "a stereod.Disparity, which a call of the matcher returns";

struct Running {
    size: (usize, usize),
    matcher: matcher::Matcher,
}

impl OfProcess {
    fn new() -> Self {
        Self { process: process::id(), engine: Some(Arc::default()) }
    }

    /// Returns the engine of this process.
    fn engine(&mut self) -> PyResult<Arc<Engine>> {
        let is_on_gpu = |engine: &Arc<Engine>| engine.is_on_gpu.load(Ordering::Relaxed);
        if self.process != process::id() {
            if self.engine.as_ref().is_some_and(is_on_gpu) {
                return Err(PyRuntimeError::new_err(
                    "CUDA cannot be used in a forked process; start processes with \
                     multiprocessing.set_start_method(\"spawn\"), or make the matcher there",
                ));
            }
            *self = Self::new();
        }
        Ok(self.engine.clone().expect("it is there until the drop"))
    }
}

impl Drop for OfProcess {
    fn drop(&mut self) {
        // The drop of another process's engine would wait for threads that do not exist here.
        if self.process != process::id() {
            mem::forget(self.engine.take());
        }
    }
}

impl Engine {
    /// Runs `work` with the matcher for images of this size, which is made if necessary.
    fn with<T>(
        &self,
        size: (usize, usize),
        recipe: Recipe,
        work: impl FnOnce(&mut matcher::Matcher) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut running = locked(&self.running);
        drop(running.take_if(|old| old.size != size));
        if running.is_none() {
            let matcher = held_off(|| matcher::matcher_of(recipe))?;
            self.is_on_gpu.store(matcher.is_on_device(), Ordering::Relaxed);
            *running = Some(Running { size, matcher });
        }
        work(&mut running.as_mut().expect("it was just made").matcher)
    }
}

impl Matcher {
    fn engine(&self) -> PyResult<Arc<Engine>> {
        locked(&self.engine).engine()
    }

    /// Runs `work` with the matcher for images of this size.
    fn with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        size: (usize, usize),
        work: impl FnOnce(&mut matcher::Matcher) -> Result<T, Error> + Send + 'static,
    ) -> PyResult<T> {
        let (recipe, engine) = (self.setup.recipe(py, size)?, self.engine()?);
        interruptible(py, move || engine.with(size, recipe, work))?.map_err(raised)
    }

    fn compute(
        &self,
        left: &Bound<'_, PyAny>,
        right: &Bound<'_, PyAny>,
        work: impl FnOnce(&mut matcher::Matcher, [ImageRef<'_>; 2]) -> Result<matcher::Disparity, Error>
        + Send
        + 'static,
    ) -> PyResult<Disparity> {
        let (views, size) = self.setup.views(left, right)?;
        let (disparity, _views) = self.with(left.py(), size, move |matcher| {
            let disparity = work(matcher, [views[0].image()?, views[1].image()?])?;
            // Arrays are given back with the interpreter held.
            Ok((disparity, views))
        })?;
        Ok(self.setup.wrapped(disparity))
    }
}

#[pymethods]
impl Matcher {
    #[new]
    #[pyo3(signature = (*, calibration=None, channels="rgb", confidence=true, **parameters))]
    fn new(
        py: Python<'_>,
        calibration: Option<&Bound<'_, PyAny>>,
        channels: &str,
        confidence: bool,
        parameters: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let calibration: Option<Py<Calibration>> =
            optional("calibration", calibration, "a stereod.Calibration")?;
        let keywords = PyDict::new(py);
        let mut given = Given { parameters: Vec::new(), confidence };
        for (name, value) in parameters.into_iter().flatten() {
            let name: String = name.extract()?;
            keywords.set_item(&name, &value)?;
            if let Some(text) = text_of(&name, &value)? {
                given.parameters.push((name, text));
            }
        }
        keywords.set_item("calibration", &calibration)?;
        keywords.set_item("channels", channels)?;
        keywords.set_item("confidence", confidence)?;
        let loaded = given.load()?;
        let setup = Setup {
            given: Arc::new(given),
            params: Arc::new(loaded.params.clone()),
            loaded,
            calibration,
            channels: Channels::of(channels)?,
        };
        Ok(Self {
            keywords: keywords.unbind(),
            setup: Arc::new(setup),
            engine: Mutex::new(OfProcess::new()),
        })
    }

    /// Returns the disparity of a pair that belongs to no stream. Images are (H, W) of uint8 or
    /// uint16, or (H, W, 3) of uint8. `out`, an int16 array (H, W), receives the disparity in 1/16 px.
    #[pyo3(signature = (left, right, *, out=None))]
    fn __call__(
        &self,
        left: &Bound<'_, PyAny>,
        right: &Bound<'_, PyAny>,
        out: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Disparity> {
        let out = optional::<Bound<'_, PyArray2<i16>>>("out", out, "an int16 array (H, W)")?;
        let result = self.compute(left, right, |matcher, [l, r]| matcher.compute(l, r))?;
        if let Some(out) = out {
            let map = result.inner().map();
            if out.shape() != [map.height(), map.width()] {
                return Err(PyValueError::new_err(format!(
                    "out has the shape {:?}; expected ({}, {})",
                    out.shape(),
                    map.height(),
                    map.width()
                )));
            }
            let mut out = out
                .try_readwrite()
                .map_err(|error| PyTypeError::new_err(format!("out cannot be written: {error}")))?;
            let values = out.as_array_mut().into_iter().zip(map.values());
            values.for_each(|(out, &value)| *out = value);
        }
        Ok(result)
    }

    /// Returns the disparity of the next pair of a stream, captured at `time` seconds, which must grow
    /// from pair to pair. Filters with a memory (temporal, smoothing, steady) use the earlier pairs.
    fn next(
        &self,
        left: &Bound<'_, PyAny>,
        right: &Bound<'_, PyAny>,
        time: &Bound<'_, PyAny>,
    ) -> PyResult<Disparity> {
        let time = parameters::time(time)?;
        self.compute(left, right, move |matcher, [l, r]| matcher.compute_next(l, r, time))
    }

    /// Matches the pairs of a stream: tuples (left, right, time), or the pairs of `stereod.open`. Returns an
    /// iterator over their disparities, in order. On a GPU several pairs are in flight.
    fn stream(slf: Py<Self>, pairs: &Bound<'_, PyAny>) -> PyResult<Stream> {
        Ok(Stream::of(slf.get().setup.clone(), pairs.try_iter()?.unbind(), None))
    }

    /// Returns the disparities of a stack of pairs that belong to no stream: (N, H, W) of uint8 or uint16,
    /// (N, H, W, 3) of uint8, or sequences of images. On a GPU several pairs are in flight.
    fn batch(
        slf: Py<Self>,
        py: Python<'_>,
        left: &Bound<'_, PyAny>,
        right: &Bound<'_, PyAny>,
    ) -> PyResult<Batch> {
        let pairs = batch::pairs(left, right)?;
        let engine = slf.get().engine()?;
        let stream =
            Stream::of(slf.get().setup.clone(), pairs.unbind(), locked(&engine.batches).take());
        let mut disparities = Vec::new();
        while let Some(disparity) = stream.__next__(py)? {
            disparities.push(Py::new(py, disparity.of_no_stream())?);
        }
        if let Some(used) = stream.into_engine() {
            engine.is_on_gpu.store(used.is_on_device(), Ordering::Relaxed);
            *locked(&engine.batches) = Some(used);
        }
        Ok(Batch::of(disparities))
    }

    /// Makes filters with a memory restart with the next pair.
    fn restart(&self, py: Python<'_>) -> PyResult<()> {
        let engine = self.engine()?;
        interruptible(py, move || match &mut *locked(&engine.running) {
            Some(running) => Ok(running.matcher.restart().map_err(raised)?),
            None => Ok(()),
        })?
    }

    /// Returns the disparity of every pixel of the right image, int16 in 1/16 px. `disparity` is a result
    /// of this matcher, or of one with the same parameters.
    fn right_map(
        &self,
        py: Python<'_>,
        disparity: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyArray2<i16>>> {
        let disparity: Py<Disparity> = argument("disparity", disparity, DISPARITY)?;
        let size = self.input_size(py, disparity.get().inner())?;
        let map = self.with(py, size, move |matcher| {
            Ok((matcher.right_map(disparity.get().inner())?, disparity))
        });
        let (map, _) = map?;
        Ok(array2(py, map.values().to_vec(), map.width()))
    }

    /// Returns for every pixel whether only the left camera sees it, bool. `disparity` is a result of this
    /// matcher, or of one with the same parameters.
    fn occluded(
        &self,
        py: Python<'_>,
        disparity: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyArray2<bool>>> {
        let disparity: Py<Disparity> = argument("disparity", disparity, DISPARITY)?;
        let size = self.input_size(py, disparity.get().inner())?;
        let occluded = self.with(py, size, move |matcher| {
            Ok((matcher.occluded(disparity.get().inner())?, disparity))
        });
        let (occluded, disparity) = occluded?;
        Ok(array2(py, occluded, disparity.get().inner().map().width()))
    }

    /// The processor that matches, in a few words; None before the first pair.
    #[getter]
    fn description(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let engine = self.engine()?;
        let describe = move || Some(locked(&engine.running).as_ref()?.matcher.description());
        interruptible(py, describe)
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
        match &self.setup.calibration {
            None => Ok((of.map().width(), of.map().height())),
            Some(rig) => Ok(rig.get().rectifier(py)?.source_size(stereod_core::Eye::Left)),
        }
    }
}
