//! `stereod.open`: the pairs of recordings and cameras, in builds with video.

use numpy::PyArray2;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

/// A pair of images of one moment.
#[pyclass(module = "stereod", frozen)]
pub struct Pair {
    /// The left image, (H, W) of uint8.
    #[pyo3(get)]
    left: Py<PyArray2<u8>>,
    /// The right image, (H, W) of uint8.
    #[pyo3(get)]
    right: Py<PyArray2<u8>>,
    /// Capture time in seconds.
    #[pyo3(get)]
    time: f64,
}

impl Pair {
    /// Returns the left image, the right one, and the time.
    pub fn parts<'py>(&self, py: Python<'py>) -> PyResult<[Bound<'py, PyAny>; 3]> {
        let view = |array: &Py<PyArray2<u8>>| array.bind(py).clone().into_any();
        Ok([view(&self.left), view(&self.right), self.time.into_bound_py_any(py)?])
    }
}

#[cfg(not(feature = "video"))]
mod reading {
    use pyo3::exceptions::PyImportError;
    use pyo3::prelude::*;

    use super::Pair;

    /// The pairs of a source; there are none.
    #[pyclass(module = "stereod", frozen)]
    pub struct Pairs(std::convert::Infallible);

    #[pymethods]
    impl Pairs {
        #[getter]
        fn size(&self) -> (usize, usize) {
            match self.0 {}
        }

        fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
            slf
        }

        fn __next__(&self) -> Option<Pair> {
            match self.0 {}
        }
    }

    /// Opens two recordings or cameras; this build cannot.
    #[pyfunction]
    #[pyo3(signature = (left, right=None))]
    pub fn open(left: &Bound<'_, PyAny>, right: Option<&Bound<'_, PyAny>>) -> PyResult<Pairs> {
        let _ = (left, right);
        Err(PyImportError::new_err(
            "this build of stereod reads no video; read frames with OpenCV, PyAV or imageio, or build \
             the package with video: `maturin build --release --features video` (needs GStreamer)",
        ))
    }
}

#[cfg(feature = "video")]
mod reading {
    use std::ops::ControlFlow;
    use std::path::PathBuf;
    use std::sync::Mutex;
    use std::time::Duration;

    use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
    use pyo3::exceptions::PyOSError;
    use pyo3::prelude::*;

    use super::Pair;
    use crate::arrays::array2;
    use stereod_core::frame::{Image, StereoPair};
    use stereod_core::thread::locked;
    use stereod_io::control::Switch;
    use stereod_io::source::gst::{self, GstOptions};
    use stereod_io::source::spec::SourceSpec;

    /// Pairs that are read ahead.
    const AHEAD: usize = 2;

    /// Time between two looks for an interrupt from the keyboard.
    const POLL: Duration = Duration::from_millis(50);

    /// The pairs of a source, in order; an iterator.
    #[pyclass(module = "stereod", frozen)]
    pub struct Pairs {
        pairs: Mutex<Receiver<Result<StereoPair, String>>>,
        stop: Switch,
        description: String,
        size: (usize, usize),
    }

    /// Opens two recordings or cameras, or one that holds both views side by side.
    #[pyfunction]
    #[pyo3(signature = (left, right=None))]
    pub fn open(py: Python<'_>, left: PathBuf, right: Option<PathBuf>) -> PyResult<Pairs> {
        let spec = match right {
            Some(right) => SourceSpec::two(left, right),
            None => SourceSpec::side_by_side(left),
        };
        let failed = |error: anyhow::Error| PyOSError::new_err(format!("{error:#}"));
        let source = py.detach(|| gst::open(&spec, &GstOptions::default())).map_err(failed)?;
        let (info, stop) = (source.info().clone(), Switch::default());
        let (send, pairs) = bounded(AHEAD);
        let stopped = stop.clone();
        let read = move || {
            let mut source = source;
            let ended = source.run(&stopped, &mut |pair, _| match send.send(Ok(pair)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            });
            if let Err(error) = ended {
                let _ = send.send(Err(format!("{error:#}")));
            }
        };
        std::thread::Builder::new().name("stereod source".into()).spawn(read)?;
        let (description, size) = (info.description, (info.width, info.height));
        Ok(Pairs { pairs: Mutex::new(pairs), stop, description, size })
    }

    #[pymethods]
    impl Pairs {
        /// (width, height) of the images.
        #[getter]
        fn size(&self) -> (usize, usize) {
            self.size
        }

        fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
            slf
        }

        fn __next__(&self, py: Python<'_>) -> PyResult<Option<Pair>> {
            loop {
                match py.detach(|| locked(&self.pairs).recv_timeout(POLL)) {
                    Ok(Ok(pair)) => {
                        let array =
                            |image: &Image| array2(py, image.pixels().to_vec(), image.width());
                        let (left, right) = (array(&pair.left), array(&pair.right));
                        return Ok(Some(Pair { left, right, time: pair.timestamp.as_secs_f64() }));
                    }
                    Ok(Err(reason)) => return Err(PyOSError::new_err(reason)),
                    Err(RecvTimeoutError::Disconnected) => return Ok(None),
                    Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                }
            }
        }

        fn __repr__(&self) -> String {
            format!("Pairs({}, {}x{})", self.description, self.size.0, self.size.1)
        }
    }

    impl Drop for Pairs {
        fn drop(&mut self) {
            self.stop.set(true);
        }
    }
}

pub use reading::{Pairs, open};
