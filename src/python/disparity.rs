//! `stereod.Disparity`.

use std::path::PathBuf;

use numpy::{Element, PyArray2, PyArray3};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::arrays::{array2, array3};
use super::calibration::Calibration;
use crate::core::frame::Eye;
use crate::matcher;

/// An array that is made on first use.
type Kept<T> = PyOnceLock<Py<PyArray2<T>>>;

/// The disparity of a pair: arrays (H, W), aligned with the (rectified) left image.
#[pyclass(module = "stereod", frozen)]
pub struct Disparity {
    disparity: matcher::Disparity,
    raw: Kept<i16>,
    pixels: Kept<f32>,
    confidence: Kept<u8>,
    status: Kept<u8>,
}

impl Disparity {
    pub fn of(disparity: matcher::Disparity) -> Self {
        Self {
            disparity,
            raw: PyOnceLock::new(),
            pixels: PyOnceLock::new(),
            confidence: PyOnceLock::new(),
            status: PyOnceLock::new(),
        }
    }

    /// Returns the result itself.
    pub fn inner(&self) -> &matcher::Disparity {
        &self.disparity
    }

    fn width(&self) -> usize {
        self.disparity.map().width()
    }

    fn kept<T: Element>(
        &self,
        py: Python<'_>,
        kept: &Kept<T>,
        values: impl FnOnce() -> Vec<T>,
    ) -> Py<PyArray2<T>> {
        kept.get_or_init(py, || array2(py, values(), self.width())).clone_ref(py)
    }
}

#[pymethods]
impl Disparity {
    /// int16: disparity in 1/16 px; -32768 if unknown.
    #[getter]
    fn raw(&self, py: Python<'_>) -> Py<PyArray2<i16>> {
        self.kept(py, &self.raw, || self.disparity.map().values().to_vec())
    }

    /// float32: disparity in pixels; NaN if unknown.
    #[getter]
    fn disparity(&self, py: Python<'_>) -> Py<PyArray2<f32>> {
        self.kept(py, &self.pixels, || self.disparity.disparity_px())
    }

    /// uint8: confidence, 1 to 255: right within 1 px with the probability c / 255; 0 if the disparity is
    /// unknown or filled. None without confidence.
    #[getter]
    fn confidence(&self, py: Python<'_>) -> Option<Py<PyArray2<u8>>> {
        let confidence = self.disparity.confidence()?;
        Some(self.kept(py, &self.confidence, || confidence.to_vec()))
    }

    /// uint8: origin of the disparity, one of UNKNOWN, FILLED, SUPPORTED and MEASURED. None without
    /// confidence.
    #[getter]
    fn status(&self, py: Python<'_>) -> Option<Py<PyArray2<u8>>> {
        let status = self.disparity.status()?;
        let numbers = || status.into_iter().map(|status| status as u8).collect();
        Some(self.kept(py, &self.status, numbers))
    }

    /// float32: depth in metres; NaN if unknown. `rig` is needed if the matcher has no calibration.
    #[pyo3(signature = (rig=None))]
    fn depth(&self, py: Python<'_>, rig: Option<&Calibration>) -> PyResult<Py<PyArray2<f32>>> {
        let geometry = rig.map(Calibration::geometry);
        let depth = py.detach(|| self.disparity.depth_m(geometry))?;
        Ok(array2(py, depth, self.width()))
    }

    /// float32: standard deviation of the depth in metres, provided that the disparity is right within 1
    /// px, without the error of the calibration (75 % of the errors are smaller indoors, 44 % on roads);
    /// NaN if the depth is unknown, filled or without evidence of its own. None without confidence.
    /// `rig` is needed if the matcher has no calibration.
    #[pyo3(signature = (rig=None))]
    fn depth_std(
        &self,
        py: Python<'_>,
        rig: Option<&Calibration>,
    ) -> PyResult<Option<Py<PyArray2<f32>>>> {
        let geometry = rig.map(Calibration::geometry);
        let deviation = py.detach(|| self.disparity.depth_deviation_m(geometry))?;
        Ok(deviation.map(|deviation| array2(py, deviation, self.width())))
    }

    /// float32 (H, W, 3): points in metres from the left camera, x to the right, y down, z forward;
    /// NaN if unknown. `rig` is needed if the matcher has no calibration.
    #[pyo3(signature = (rig=None))]
    fn points(&self, py: Python<'_>, rig: Option<&Calibration>) -> PyResult<Py<PyArray3<f32>>> {
        let geometry = rig.map(Calibration::geometry);
        let points = py.detach(|| self.disparity.points_m(geometry))?;
        Ok(array3(py, points, self.width()))
    }

    /// uint8: the left image as it was matched.
    #[getter]
    fn left(&self, py: Python<'_>) -> Py<PyArray2<u8>> {
        array2(py, self.disparity.picture(Eye::Left).to_vec(), self.width())
    }

    /// uint8: the right image as it was matched.
    #[getter]
    fn right(&self, py: Python<'_>) -> Py<PyArray2<u8>> {
        array2(py, self.disparity.picture(Eye::Right).to_vec(), self.width())
    }

    /// (height, width) of the arrays.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.disparity.map().height(), self.width())
    }

    /// Writes a 16-bit PNG in KITTI's coding: 256 times the disparity, 0 if unknown.
    fn write_png(&self, file: PathBuf) -> PyResult<()> {
        Ok(self.disparity.write_png(file)?)
    }

    /// Writes the points as a binary PLY file, in the grey of the left image.
    #[pyo3(signature = (file, rig=None))]
    fn write_ply(&self, file: PathBuf, rig: Option<&Calibration>) -> PyResult<usize> {
        Ok(self.disparity.write_ply(file, rig.map(Calibration::geometry))?)
    }

    fn __repr__(&self) -> String {
        let map = self.disparity.map();
        let known = map.values().iter().filter(|&&value| value != crate::INVALID).count();
        let share = 100.0 * known as f64 / map.values().len() as f64;
        format!("Disparity({}x{}, {share:.1} % known)", map.width(), map.height())
    }
}
