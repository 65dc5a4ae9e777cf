//! `stereod.Stream`: the disparities of a stream, with several pairs in flight on a GPU.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::{mem, process};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use super::disparity::Disparity;
use super::forks::held_off;
use super::pairs::Pair;
use super::parameters;
use super::setup::Setup;
use super::waiting::interruptible;
use crate::raised;
use stereod_core::matcher;
use stereod_core::thread::locked;

/// The disparities of a stream, in order; an iterator. `Matcher.stream` makes it.
#[pyclass(module = "stereod", frozen)]
pub struct Stream {
    setup: Arc<Setup>,
    pairs: Py<PyIterator>,
    process: u32,
    /// Always there until it is dropped.
    work: Option<Arc<Work>>,
}

/// The work that goes on after an interrupt.
#[derive(Default)]
struct Work {
    /// Made with the first pair. Locked while pairs are matched.
    engine: Mutex<Option<matcher::Stream>>,
    /// An engine that may serve if it is for images of the same size.
    spare: Mutex<Option<matcher::Stream>>,
    /// Results that nobody has taken yet. Locked for moments only.
    done: Mutex<VecDeque<matcher::Disparity>>,
}

impl Stream {
    /// Makes a stream of the pairs of an iterator.
    pub fn of(setup: Arc<Setup>, pairs: Py<PyIterator>, spare: Option<matcher::Stream>) -> Self {
        let work = Work { spare: Mutex::new(spare), ..Work::default() };
        Self { setup, pairs, process: process::id(), work: Some(Arc::new(work)) }
    }

    /// Takes the engine of a stream that has ended.
    pub fn into_engine(mut self) -> Option<matcher::Stream> {
        let work = Arc::into_inner(self.work.take()?)?;
        work.engine.into_inner().ok()?
    }

    /// Matches a pair.
    fn push(&self, py: Python<'_>, item: &Bound<'_, PyAny>, work: Arc<Work>) -> PyResult<()> {
        let [left, right, time] = match item.cast::<Pair>() {
            Ok(pair) => pair.get().parts(py)?,
            Err(_) => item.extract::<(_, _, _)>().map(|(left, right, time)| [left, right, time]).map_err(|_| {
                let kind = item.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
                PyValueError::new_err(format!(
                    "a pair is a tuple (left, right, time) or comes from stereod.open; this one is {kind}"
                ))
            })?,
        };
        let time = parameters::time(&time)?;
        let (views, size) = self.setup.views(&left, &right)?;
        let recipe = self.setup.recipe(py, size)?;
        let push = move || {
            let mut engine = locked(&work.engine);
            let stream = match &mut *engine {
                Some(stream) => stream,
                none => {
                    let size = recipe.pairs.size;
                    let spare = locked(&work.spare).take_if(|spare| spare.size() == size);
                    let made = spare.map_or_else(|| held_off(|| matcher::stream_of(recipe)), Ok);
                    none.insert(made?)
                }
            };
            let done = stream.push(views[0].image()?, views[1].image()?, time)?;
            locked(&work.done).extend(done);
            // Arrays are given back with the interpreter held.
            Ok(views)
        };
        interruptible(py, push)?.map(drop).map_err(raised)
    }
}

#[pymethods]
impl Stream {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    pub fn __next__(&self, py: Python<'_>) -> PyResult<Option<Disparity>> {
        if self.process != process::id() {
            return Err(PyRuntimeError::new_err(
                "a stream does not survive a fork; call Matcher.stream in the child",
            ));
        }
        let work = self.work.as_ref().expect("it is there until the drop");
        loop {
            if let Some(disparity) = locked(&work.done).pop_front() {
                return Ok(Some(self.setup.wrapped(disparity)));
            }
            if let Some(item) = self.pairs.bind(py).clone().next() {
                self.push(py, &item?, work.clone())?;
                continue;
            }
            let rest = work.clone();
            let finish = move || match &mut *locked(&rest.engine) {
                Some(stream) => stream.finish().map(|done| locked(&rest.done).extend(done)),
                None => Ok(()),
            };
            interruptible(py, finish)?.map_err(raised)?;
            if locked(&work.done).is_empty() {
                return Ok(None);
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The drop of another process's engine would wait for threads that do not exist here.
        if self.process != process::id() {
            mem::forget(self.work.take());
        }
    }
}
