//! NumPy arrays as images, and results as arrays.

use numpy::ndarray::Array;
use numpy::{
    Element, IntoPyArray, PyArray2, PyArray3, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods,
    PyUntypedArray, PyUntypedArrayMethods, dtype,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::matcher::{ImageBuf, ImageRef};

/// Order of the samples of a pixel in colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// Red, green, blue.
    Rgb,
    /// Blue, green, red, as OpenCV reads pictures.
    Bgr,
}

impl Channels {
    /// Returns the order of this name.
    pub fn of(name: &str) -> PyResult<Self> {
        match name {
            "rgb" => Ok(Channels::Rgb),
            "bgr" => Ok(Channels::Bgr),
            _ => Err(PyValueError::new_err(format!("channels is `rgb` or `bgr`, not `{name}`"))),
        }
    }
}

/// An image from Python.
pub enum View<'py> {
    /// Bytes of an array, which stays alive and unchanged meanwhile.
    Borrowed { array: Bound<'py, PyArray2<u8>>, stride: usize },
    /// Converted samples.
    Converted(ImageBuf),
}

impl<'py> View<'py> {
    /// Takes the argument of this name: (H, W) of uint8 or uint16, or (H, W, 3) of uint8.
    pub fn of(name: &str, argument: &Bound<'py, PyAny>, channels: Channels) -> PyResult<Self> {
        let array = argument.cast::<PyUntypedArray>().map_err(|_| {
            let kind = argument.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
            PyTypeError::new_err(format!("{name} is {kind}, not a NumPy array (use numpy.asarray)"))
        })?;
        if array.is_empty() {
            let shape = array.shape();
            return Err(PyValueError::new_err(format!(
                "{name} has no pixels: its shape is {shape:?}"
            )));
        }
        let py = argument.py();
        let (shape, kind) = (array.shape().to_vec(), array.dtype());
        match shape[..] {
            [_, _] if kind.is_equiv_to(&dtype::<u8>(py)) => {
                let stride = row_stride(name, array, 1)?;
                Ok(View::Borrowed { array: array.cast::<PyArray2<u8>>()?.clone(), stride })
            }
            [height, width] if kind.is_equiv_to(&dtype::<u16>(py)) => {
                let samples = samples::<u16>(name, array)?;
                Ok(View::Converted(ImageBuf::from_16_bit(&samples, width, height)?))
            }
            [height, width, 3] if kind.is_equiv_to(&dtype::<u8>(py)) => {
                let mut samples = samples::<u8>(name, array)?;
                if channels == Channels::Bgr {
                    samples.chunks_exact_mut(3).for_each(<[u8]>::reverse);
                }
                Ok(View::Converted(ImageBuf::from_rgb(&samples, width, height)?))
            }
            _ => Err(PyValueError::new_err(format!(
                "{name} has the shape {shape:?} and the type {kind}; expected (H, W) of uint8 or \
                 uint16, or (H, W, 3) of uint8"
            ))),
        }
    }

    /// Returns the image.
    pub fn image(&self) -> PyResult<ImageRef<'_>> {
        match self {
            View::Converted(image) => Ok(image.into()),
            View::Borrowed { array, stride } => {
                let (height, width) = (array.shape()[0], array.shape()[1]);
                let len = (height - 1) * stride + width;
                // SAFETY: the array has pixels, and its rows are `stride` bytes apart and hold `width`
                // adjacent bytes, as was checked; it lives as long as `self`.
                let pixels = unsafe { std::slice::from_raw_parts(array.data().cast_const(), len) };
                Ok(ImageRef::with_stride(pixels, width, height, *stride)?)
            }
        }
    }
}

/// Returns the bytes from row to row of an array whose pixels are adjacent.
fn row_stride(name: &str, array: &Bound<'_, PyUntypedArray>, pixel: isize) -> PyResult<usize> {
    let (strides, shape) = (array.strides(), array.shape());
    let is_narrow = shape[1] < 2 || strides[1] == pixel;
    let rows = if shape[0] < 2 { shape[1] as isize * pixel } else { strides[0] };
    if !is_narrow || rows < shape[1] as isize * pixel {
        return Err(PyValueError::new_err(format!(
            "{name} has the strides {strides:?}; the pixels of a row must be adjacent and rows in \
             order (use numpy.ascontiguousarray)"
        )));
    }
    Ok(rows as usize)
}

/// Copies the samples of an array, in order.
fn samples<T: Element + Copy>(name: &str, array: &Bound<'_, PyUntypedArray>) -> PyResult<Vec<T>> {
    let wrong = |_| PyTypeError::new_err(format!("{name} has samples in another byte order"));
    let array = array.cast::<PyArrayDyn<T>>().map_err(|_| wrong(()))?;
    Ok(array.readonly().as_array().iter().copied().collect())
}

/// Hands over values of an image as an array (H, W).
pub fn array2<T: Element>(py: Python<'_>, values: Vec<T>, width: usize) -> Py<PyArray2<T>> {
    let shape = (values.len() / width, width);
    let array = Array::from_shape_vec(shape, values).expect("whole rows");
    array.into_pyarray(py).unbind()
}

/// Hands over points of an image as an array (H, W, 3).
pub fn array3(py: Python<'_>, points: Vec<[f32; 3]>, width: usize) -> Py<PyArray3<f32>> {
    let shape = (points.len() / width, width, 3);
    let array = Array::from_shape_vec(shape, points.into_flattened()).expect("whole rows");
    array.into_pyarray(py).unbind()
}
