//! NumPy arrays as images, and results as arrays.

use std::slice;

use numpy::ndarray::Array;
use numpy::{
    AllowTypeChange, Element, IntoPyArray, PyArray2, PyArray3, PyArrayDescrMethods, PyArrayDyn,
    PyArrayLikeDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods, dtype,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::raised;
use stereod_core::matcher::{Error, ImageBuf, ImageRef};

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

/// An image from Python, which may move to another thread.
pub enum View {
    /// Bytes of an array, which stays alive and unchanged meanwhile.
    Borrowed { pixels: &'static [u8], size: (usize, usize), stride: usize, _array: Py<PyAny> },
    /// Copied bytes of an array whose rows are not in memory as an image's.
    Copied { pixels: Vec<u8>, size: (usize, usize) },
    /// Red, green and blue of each pixel.
    Rgb { samples: Vec<u8>, size: (usize, usize) },
    /// Converted samples.
    Converted(ImageBuf),
}

impl View {
    /// Takes the argument of this name: (H, W) or (H, W, 1) of uint8 or uint16, or (H, W, 3) of uint8.
    pub fn of(name: &str, argument: &Bound<'_, PyAny>, channels: Channels) -> PyResult<Self> {
        let (array, channels) = as_array(name, argument, channels)?;
        let array = &array;
        if array.is_empty() {
            let shape = array.shape();
            return Err(PyValueError::new_err(format!(
                "{name} has no pixels: its shape is {shape:?}"
            )));
        }
        let py = argument.py();
        let (shape, kind) = (array.shape().to_vec(), array.dtype());
        match shape[..] {
            [height, width] | [height, width, 1] if kind.is_equiv_to(&dtype::<u8>(py)) => {
                let size = (width, height);
                let Some(stride) = row_stride(array) else {
                    return Ok(View::Copied { pixels: samples(name, array)?, size });
                };
                let array = array.cast::<PyArrayDyn<u8>>()?;
                let len = (height - 1) * stride + width;
                // SAFETY: the array has pixels, and its rows are `stride` bytes apart and hold `width`
                // adjacent bytes, as `row_stride` checked. The view keeps the array alive, and nothing
                // takes the slice out of the view.
                let pixels = unsafe { slice::from_raw_parts(array.data().cast_const(), len) };
                let _array = array.clone().into_any().unbind();
                Ok(View::Borrowed { pixels, size, stride, _array })
            }
            [height, width] | [height, width, 1] if kind.is_equiv_to(&dtype::<u16>(py)) => {
                let samples = samples::<u16>(name, array)?;
                let image = py.detach(|| ImageBuf::from_16_bit(&samples, width, height));
                Ok(View::Converted(image.map_err(raised)?))
            }
            [height, width, 3] if kind.is_equiv_to(&dtype::<u8>(py)) => {
                let mut samples = samples::<u8>(name, array)?;
                if channels == Channels::Bgr {
                    py.detach(|| samples.chunks_exact_mut(3).for_each(<[u8]>::reverse));
                }
                Ok(View::Rgb { samples, size: (width, height) })
            }
            _ => Err(PyValueError::new_err(format!(
                "{name} has the shape {shape:?} and the type {kind}; expected (H, W) of uint8 or \
                 uint16, or (H, W, 3) of uint8"
            ))),
        }
    }

    /// Returns the image.
    pub fn image(&self) -> Result<ImageRef<'_>, Error> {
        match self {
            View::Borrowed { pixels, size: (width, height), stride, .. } => {
                ImageRef::with_stride(pixels, *width, *height, *stride)
            }
            View::Copied { pixels, size: (width, height) } => {
                ImageRef::new(pixels, *width, *height)
            }
            View::Rgb { samples, size: (width, height) } => {
                ImageRef::from_rgb(samples, *width, *height)
            }
            View::Converted(image) => Ok(image.into()),
        }
    }
}

/// Returns an argument as an array, and the order of its channels.
fn as_array<'py>(
    name: &str,
    argument: &Bound<'py, PyAny>,
    channels: Channels,
) -> PyResult<(Bound<'py, PyUntypedArray>, Channels)> {
    if let Ok(array) = argument.cast::<PyUntypedArray>() {
        return Ok((array.clone(), channels));
    }
    let (py, kind) = (argument.py(), argument.get_type().fully_qualified_name()?.to_string());
    let has = |name: &str| argument.hasattr(name);
    let from = match () {
        () if has("__array_interface__")? || has("__array__")? => "asarray",
        () if has("__dlpack__")? => "from_dlpack",
        () if is_on_gpu(argument) => return Err(of_gpu(name, &kind, argument)),
        () => {
            return Err(PyTypeError::new_err(format!(
                "{name} is {kind}, not a NumPy array (use numpy.asarray)"
            )));
        }
    };
    // Numbers of a palette or of another colour space would pass for grey levels or for red, green and blue.
    let is_pillow = kind.starts_with("PIL.");
    if is_pillow {
        let mode: String = argument.getattr("mode")?.extract()?;
        if mode != "L" && mode != "RGB" && !mode.starts_with("I;16") {
            return Err(PyValueError::new_err(format!(
                "{name} is an image of Pillow's mode {mode}; use {name}.convert(\"RGB\")"
            )));
        }
    }
    let array = py.import("numpy")?.call_method1(from, (argument,)).map_err(|error| {
        // Some libraries copy to the host here, and others refuse.
        if !is_on_gpu(argument) {
            return error;
        }
        let of_gpu = of_gpu(name, &kind, argument);
        of_gpu.set_cause(py, Some(error));
        of_gpu
    })?;
    Ok((array.cast_into()?, if is_pillow { Channels::Rgb } else { channels }))
}

/// Reports whether an argument's numbers lie in the memory of a GPU, by CUDA's interface or DLPack's.
fn is_on_gpu(argument: &Bound<'_, PyAny>) -> bool {
    /// DLPack's numbers of memory that the host may read: its own, and page-locked for CUDA and for ROCm.
    const HOST: [i32; 3] = [1, 3, 11];
    let device = || argument.call_method0("__dlpack_device__")?.extract::<(i32, i32)>();
    argument.getattr("__cuda_array_interface__").is_ok()
        || device().is_ok_and(|(kind, _)| !HOST.contains(&kind))
}

/// Returns the error for an array in the memory of a GPU, with its library's way to the host.
fn of_gpu(name: &str, kind: &str, argument: &Bound<'_, PyAny>) -> PyErr {
    // PyTorch, CuPy and Numba.
    let ways = ["cpu", "get", "copy_to_host"];
    let way = ways.into_iter().find(|way| argument.hasattr(*way).unwrap_or(false));
    let cure = way.map_or("copy it to the host first".into(), |way| format!("give {name}.{way}()"));
    PyTypeError::new_err(format!(
        "{name} is {kind} in the memory of a GPU; the matcher reads the host's: {cure}"
    ))
}

/// Takes an argument's numbers, with the array's shape.
fn numbers(name: &str, argument: &Bound<'_, PyAny>) -> PyResult<(Vec<usize>, Vec<f64>)> {
    let array = argument.extract::<PyArrayLikeDyn<'_, f64, AllowTypeChange>>();
    let array =
        array.map_err(|_| PyValueError::new_err(format!("{name} is no array of numbers")))?;
    Ok((array.shape().to_vec(), array.as_array().iter().copied().collect()))
}

/// Takes a matrix (3, 3).
pub fn matrix3(name: &str, argument: &Bound<'_, PyAny>) -> PyResult<[[f64; 3]; 3]> {
    match numbers(name, argument)? {
        (shape, cells) if shape == [3, 3] => {
            Ok(std::array::from_fn(|row| std::array::from_fn(|column| cells[3 * row + column])))
        }
        (shape, _) => {
            Err(PyValueError::new_err(format!("{name} has the shape {shape:?}; expected [3, 3]")))
        }
    }
}

/// Takes the numbers of a row or a column.
pub fn vector(name: &str, argument: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    match numbers(name, argument)? {
        (shape, cells) if shape.iter().filter(|side| **side != 1).count() < 2 => Ok(cells),
        (shape, _) => Err(PyValueError::new_err(format!(
            "{name} has the shape {shape:?}; expected a row or a column"
        ))),
    }
}

/// Returns the bytes from row to row; `None` unless pixels are adjacent and rows in order.
fn row_stride(array: &Bound<'_, PyUntypedArray>) -> Option<usize> {
    let (strides, shape) = (array.strides(), array.shape());
    let is_adjacent = shape[1] < 2 || strides[1] == 1;
    let rows = if shape[0] < 2 { shape[1] as isize } else { strides[0] };
    (is_adjacent && rows >= shape[1] as isize).then_some(rows as usize)
}

/// Takes the corners of a chessboard in one image: (N, 2), or (N, 1, 2) as OpenCV 4 returns them.
pub fn corners(name: &str, argument: &Bound<'_, PyAny>) -> PyResult<Vec<[f64; 2]>> {
    let wrong = |what: String| {
        PyValueError::new_err(format!(
            "{name} {what}; expected the corners of one image, (N, 2) or (N, 1, 2), as \
             cv2.findChessboardCorners returns them"
        ))
    };
    if argument.is_none() {
        return Err(wrong("is None, because no board was found: leave this pair out".into()));
    }
    let found = numbers(name, argument).map_err(|_| wrong("is no array of numbers".into()))?;
    match (&found.0[..], &found.1) {
        ([_, 2] | [_, 1, 2] | [1, _, 2], numbers) => Ok(numbers.as_chunks().0.to_vec()),
        (shape, _) => Err(wrong(format!("has the shape {shape:?}"))),
    }
}

/// Copies the samples of an array, in order.
fn samples<T: Element + Copy>(name: &str, array: &Bound<'_, PyUntypedArray>) -> PyResult<Vec<T>> {
    let wrong = |_| PyTypeError::new_err(format!("{name} has samples in another byte order"));
    let array = array.cast::<PyArrayDyn<T>>().map_err(|_| wrong(()))?;
    Ok(array.try_readonly()?.as_array().iter().copied().collect())
}

/// Hands over values of an image as an array (H, W).
pub fn array2<T: Element>(py: Python<'_>, values: Vec<T>, width: usize) -> Py<PyArray2<T>> {
    let shape = (values.len() / width, width);
    let array = Array::from_shape_vec(shape, values).expect("whole rows");
    array.into_pyarray(py).unbind()
}

/// Hands over the values of several images as an array (N, H, W).
pub fn stack<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    (height, width): (usize, usize),
) -> Py<PyArray3<T>> {
    let shape = (values.len() / (height * width), height, width);
    let array = Array::from_shape_vec(shape, values).expect("whole images");
    array.into_pyarray(py).unbind()
}

/// Hands over points or colours of an image as an array (H, W, 3).
pub fn array3<T: Element>(py: Python<'_>, points: Vec<[T; 3]>, width: usize) -> Py<PyArray3<T>> {
    let shape = (points.len() / width, width, 3);
    let array = Array::from_shape_vec(shape, points.into_flattened()).expect("whole rows");
    array.into_pyarray(py).unbind()
}
