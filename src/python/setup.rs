//! Parameters, calibration and channels, which a matcher shares with its streams.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::arrays::{Channels, View};
use super::calibration::Calibration;
use super::disparity::Disparity;
use super::parameters::Given;
use crate::Loaded;
use crate::raised;
use stereod_core::engine::PairSpec;
use stereod_core::matcher::{self, Recipe};
use stereod_core::matching::Params;

pub struct Setup {
    pub given: Arc<Given>,
    pub loaded: Loaded,
    pub params: Arc<Params>,
    pub calibration: Option<Py<Calibration>>,
    pub channels: Channels,
}

impl Setup {
    /// Returns the recipe of an engine for images of this size.
    pub fn recipe(&self, py: Python<'_>, size: (usize, usize)) -> PyResult<Recipe> {
        let pairs = match &self.calibration {
            None => PairSpec::rectified(size.0, size.1),
            Some(rig) => matcher::pairs(rig.get().rectifier(py)?),
        };
        let settings = &self.loaded.settings.engine;
        let (params, choice, options) =
            (self.params.clone(), settings.kind.clone(), settings.options());
        Ok(Recipe { params, pairs, choice, options })
    }

    /// Wraps the result of an engine with these parameters.
    pub fn wrapped(&self, disparity: matcher::Disparity) -> Disparity {
        Disparity::of(disparity, self.given.clone())
    }

    /// Takes two images, and returns the size of the left one.
    pub fn views(
        &self,
        left: &Bound<'_, PyAny>,
        right: &Bound<'_, PyAny>,
    ) -> PyResult<([View; 2], (usize, usize))> {
        let views =
            [View::of("left", left, self.channels)?, View::of("right", right, self.channels)?];
        let [left, right] = [views[0].image().map_err(raised)?, views[1].image().map_err(raised)?];
        let [size, other] = [left, right].map(|image| (image.width(), image.height()));
        if self.calibration.is_none() && size != other {
            return Err(PyValueError::new_err(format!(
                "left has {}x{} pixels and right {}x{}; a pair has one size",
                size.0, size.1, other.0, other.1
            )));
        }
        Ok((views, size))
    }
}
