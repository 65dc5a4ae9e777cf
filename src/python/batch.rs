//! `stereod.Batch`: the disparities of a stack of pairs.

use numpy::{Element, PyArray3};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyTuple};

use super::arrays::stack;
use super::disparity::Disparity;
use crate::raised;
use stereod_core::matcher::{self, Error};

/// Arrays (N, H, W); `None` without confidence.
type Stack<T> = PyResult<Option<Py<PyArray3<T>>>>;

/// Seconds between the times of two pairs. Filters with a memory restart after a gap of this length, so that
/// the pairs are independent.
const APART: f64 = 10.0;

/// The disparities of a stack of pairs: a sequence of `Disparity`, and stacks of their arrays, made at each
/// use. `Matcher.batch` makes it.
#[pyclass(module = "stereod", frozen)]
pub struct Batch(Vec<Py<Disparity>>);

/// Returns the pairs of two stacks, as a stream takes them.
pub fn pairs<'py>(
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyIterator>> {
    for (name, stack) in [("left", left), ("right", right)] {
        let shape = stack.getattr("shape").and_then(|shape| shape.extract::<Vec<usize>>());
        // One image in colour would pass for a stack of images that are 3 pixels wide.
        if let Ok(shape) = shape
            && (shape.len() < 3 || shape.len() == 3 && shape[2] <= 4)
        {
            return Err(PyValueError::new_err(format!(
                "{name} has the shape {shape:?} of one image; a stack is (N, H, W) or (N, H, W, 3), \
                 and matcher(left, right) takes one pair"
            )));
        }
    }
    match (left.len()?, right.len()?) {
        (0, _) => Err(PyValueError::new_err("left has no images")),
        (count, other) if count != other => Err(PyValueError::new_err(format!(
            "left has {count} images and right {other}; a stack has as many of each"
        ))),
        (count, _) => {
            let times: Vec<f64> = (0..count).map(|number| APART * number as f64).collect();
            left.py().import("builtins")?.call_method1("zip", (left, right, times))?.try_iter()
        }
    }
}

impl Batch {
    /// Takes the disparities, of which there is at least one.
    pub fn of(disparities: Vec<Py<Disparity>>) -> Self {
        Self(disparities)
    }

    /// Returns the arrays of all disparities as one; `None` if one has none.
    fn stacked<T: Element + Clone>(
        &self,
        py: Python<'_>,
        values: impl Fn(&matcher::Disparity) -> Result<Option<Vec<T>>, Error> + Sync,
    ) -> Stack<T> {
        let map = self.0[0].get().inner().map();
        let all = py.detach(|| {
            let all = self.0.iter().map(|disparity| values(disparity.get().inner()));
            all.collect::<Result<Option<Vec<_>>, _>>()
        });
        let all = all.map_err(raised)?.map(|all| all.concat());
        Ok(all.map(|all| stack(py, all, (map.height(), map.width()))))
    }
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        PyTuple::new(py, &self.0)?.as_any().get_item(index)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyTuple::new(py, &self.0)?.try_iter()
    }

    /// int16 (N, H, W): disparity in 1/16 px; -32768 if unknown.
    #[getter]
    fn raw(&self, py: Python<'_>) -> Stack<i16> {
        self.stacked(py, |disparity| Ok(Some(disparity.map().values().to_vec())))
    }

    /// float32 (N, H, W): disparity in pixels; NaN if unknown.
    #[getter]
    fn disparity(&self, py: Python<'_>) -> Stack<f32> {
        self.stacked(py, |disparity| Ok(Some(disparity.disparity_px())))
    }

    /// uint8 (N, H, W): confidence as of `Disparity`. None without confidence.
    #[getter]
    fn confidence(&self, py: Python<'_>) -> Stack<u8> {
        self.stacked(py, |disparity| Ok(disparity.confidence().map(<[u8]>::to_vec)))
    }

    /// uint8 (N, H, W): verdicts as of `Disparity`. None without a check.
    #[getter]
    fn verdicts(&self, py: Python<'_>) -> Stack<u8> {
        self.stacked(py, |disparity| {
            Ok(matcher::matched(disparity).verdicts.as_ref().map(|it| it.pixels().to_vec()))
        })
    }

    /// float32 (N, H, W): depth in metres; NaN if unknown. `rig` is needed if the matcher has no calibration.
    #[pyo3(signature = (rig=None))]
    fn depth(&self, py: Python<'_>, rig: Option<&Bound<'_, PyAny>>) -> Stack<f32> {
        let geometry = self.0[0].get().geometry(rig)?;
        self.stacked(py, |disparity| disparity.depth_m(geometry).map(Some))
    }
}
