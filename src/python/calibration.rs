//! `stereod.Calibration`.

use std::path::PathBuf;
use std::sync::OnceLock;

use numpy::PyArray2;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyTuple, PyType};

use super::arrays::{Channels, View, array2, corners, matrix3, vector};
use super::forks::held_off;
use super::parameters::{argument, optional};
use super::waiting::interruptible;
use crate::raised;
use stereod_calibration::{BoardView, Camera, Lens, Rectification};
use stereod_core::frame::StereoGeometry;
use stereod_core::matcher::{ImageBuf, Rectifier};

/// A calibration of two cameras, read from one file or two in any format that `stereod` reads.
///
/// `size` is the (width, height) of the images, for files that lack it or describe another size of
/// the same sensor. `alpha` is the field of view of rectified images, from 0 (only valid pixels) to
/// 1 (everything that the cameras see).
#[pyclass(module = "stereod", frozen)]
pub struct Calibration {
    calibration: stereod_calibration::Calibration,
    alpha: Option<f64>,
    rectification: Rectification,
    rectifier: OnceLock<Rectifier>,
}

const SIZE: &str = "(width, height) in pixels";
const ALPHA: &str = "a number from 0 to 1";

/// The left and the right image.
type Pair = (Py<PyArray2<u8>>, Py<PyArray2<u8>>);

impl Calibration {
    fn of(calibration: stereod_calibration::Calibration, alpha: Option<f64>) -> PyResult<Self> {
        let rectification =
            stereod_calibration::rectification(&calibration, alpha).map_err(raised)?;
        Ok(Self { calibration, alpha, rectification, rectifier: OnceLock::new() })
    }

    /// Returns the cameras of rectified images of this width and height.
    pub fn geometry_of(&self, (width, height): (usize, usize)) -> PyResult<StereoGeometry> {
        let Rectification { width: own_width, height: own_height, .. } = self.rectification;
        if (own_width, own_height) != (width, height) {
            return Err(PyValueError::new_err(format!(
                "rig is for rectified images of {own_width}x{own_height} pixels, but the disparity has \
                 {width}x{height}"
            )));
        }
        Ok(self.rectification.geometry())
    }

    /// Returns the rectifier, made on first use.
    pub fn rectifier(&self, py: Python<'_>) -> PyResult<&Rectifier> {
        if let Some(rectifier) = self.rectifier.get() {
            return Ok(rectifier);
        }
        // Not made within the lock: a fork meanwhile would leave it locked in the child for ever.
        let (calibration, alpha) = (self.calibration.clone(), self.alpha);
        let made = interruptible(py, move || held_off(|| calibration.rectifier(alpha)))?
            .map_err(raised)?;
        Ok(self.rectifier.get_or_init(|| made))
    }
}

fn camera_matrix(py: Python<'_>, of: &Camera) -> Py<PyArray2<f64>> {
    let ([fx, fy], [cx, cy]) = (of.focal, of.centre);
    array2(py, vec![fx, of.skew, cx, 0.0, fy, cy, 0.0, 0.0, 1.0], 3)
}

fn distortion(py: Python<'_>, of: &Camera) -> Py<PyArray2<f64>> {
    let all = match &of.lens {
        Lens::Brown(all) => all.to_vec(),
        Lens::Fisheye(all) => all.to_vec(),
    };
    let count = all.len();
    array2(py, all, count)
}

#[pymethods]
impl Calibration {
    #[new]
    #[pyo3(signature = (*files, size=None, alpha=None))]
    fn new(
        files: &Bound<'_, PyTuple>,
        size: Option<&Bound<'_, PyAny>>,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        if files.is_empty() {
            return Err(PyTypeError::new_err("a calibration is one file or two"));
        }
        let (size, alpha) = (optional("size", size, SIZE)?, optional("alpha", alpha, ALPHA)?);
        let files: Vec<PathBuf> = argument("files", files, "one file or two, by their names")?;
        let calibration = match size {
            None => stereod_calibration::Calibration::read(&files).map_err(raised)?,
            Some(size) => {
                stereod_calibration::Calibration::read_for_size(&files, size).map_err(raised)?
            }
        };
        Self::of(calibration, alpha)
    }

    /// Calibrates two cameras with the inner corners of a chessboard, as OpenCV's
    /// findChessboardCorners returns them: `left[i]` and `right[i]` are the corners of pair i, (N, 2) or
    /// (N, 1, 2). `board` is the number of corners along a row and along a column, `square` the side of a square
    /// in metres, `size` the images' (width, height). Returns the calibration and the root mean square
    /// of the reprojection error in pixels.
    #[classmethod]
    #[pyo3(signature = (left, right, *, board, square, size))]
    fn solve(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        left: &Bound<'_, PyAny>,
        right: &Bound<'_, PyAny>,
        board: &Bound<'_, PyAny>,
        square: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
    ) -> PyResult<(Self, f64)> {
        let board = argument("board", board, "the corners along a row and along a column")?;
        let square = argument("square", square, "the side of a square in metres")?;
        let size = argument("size", size, SIZE)?;
        let views = |name: &str, of: &Bound<'_, PyAny>| -> PyResult<Vec<_>> {
            let numbered = of.try_iter()?.enumerate();
            numbered.map(|(i, view)| corners(&format!("{name}[{i}]"), &view?)).collect()
        };
        let (left, right) = (views("left", left)?, views("right", right)?);
        if left.len() != right.len() {
            return Err(PyTypeError::new_err(format!(
                "there are {} left and {} right views; each pair needs both",
                left.len(),
                right.len()
            )));
        }
        let pairs = left.into_iter().zip(right);
        let views: Vec<_> = pairs.map(|(left, right)| BoardView { left, right }).collect();
        let solve = move || stereod_calibration::Calibration::solve(board, square, size, &views);
        let (calibration, rms_px) = interruptible(py, solve)?.map_err(raised)?;
        Ok((Self::of(calibration, None)?, rms_px))
    }

    /// Makes a calibration of the results of cv2.stereoCalibrate, or with `fisheye=True` of
    /// cv2.fisheye.stereoCalibrate: camera matrices (3, 3), distortion coefficients, the right camera's rotation
    /// (3, 3) and translation in metres. `size` is the images' (width, height).
    #[classmethod]
    #[pyo3(signature = (K1, D1, K2, D2, R, T, size, *, fisheye=false, alpha=None))]
    #[allow(non_snake_case, clippy::too_many_arguments)] // OpenCV's names.
    fn of_cameras(
        _class: &Bound<'_, PyType>,
        K1: &Bound<'_, PyAny>,
        D1: &Bound<'_, PyAny>,
        K2: &Bound<'_, PyAny>,
        D2: &Bound<'_, PyAny>,
        R: &Bound<'_, PyAny>,
        T: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        fisheye: bool,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (size, alpha) = (argument("size", size, SIZE)?, optional("alpha", alpha, ALPHA)?);
        let (matrices, lenses) = ([matrix3("K1", K1)?, matrix3("K2", K2)?], ["D1", "D2"]);
        let lenses = [vector(lenses[0], D1)?, vector(lenses[1], D2)?];
        let (rotation, translation) = (matrix3("R", R)?, vector("T", T)?);
        let translation = translation.try_into().map_err(|given: Vec<f64>| {
            let count = given.len();
            PyValueError::new_err(format!("T has {count} numbers; a translation has x, y and z"))
        })?;
        let cameras = [(matrices[0], &lenses[0][..]), (matrices[1], &lenses[1][..])];
        let made = stereod_calibration::Calibration::of_cameras(
            cameras,
            rotation,
            translation,
            size,
            fisheye,
        );
        Self::of(made.map_err(raised)?, alpha)
    }

    /// Makes the calibration of images that are rectified already. `size` is their (width, height);
    /// `centre_px`, the principal point (x, y), is the middle of the images if it is not given.
    #[classmethod]
    #[pyo3(signature = (size, *, focal_px, baseline_m, centre_px=None))]
    fn of_rectified(
        _class: &Bound<'_, PyType>,
        size: &Bound<'_, PyAny>,
        focal_px: &Bound<'_, PyAny>,
        baseline_m: &Bound<'_, PyAny>,
        centre_px: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let size: (usize, usize) = argument("size", size, SIZE)?;
        let focal_px: f64 = argument("focal_px", focal_px, "the focal length in pixels")?;
        let baseline_m: f64 =
            argument("baseline_m", baseline_m, "the distance of the cameras in metres")?;
        let centre_px: Option<(f64, f64)> =
            optional("centre_px", centre_px, "the principal point (x, y) in pixels")?;
        let middle = |side: usize| (side as f64 - 1.0) / 2.0;
        let (x, y) = centre_px.unwrap_or((middle(size.0), middle(size.1)));
        if !(x.is_finite() && y.is_finite()) {
            return Err(PyValueError::new_err(format!(
                "centre_px is ({x}, {y}), which is no pixel"
            )));
        }
        let geometry = StereoGeometry {
            focal_px,
            baseline_m,
            centre_x_px: x,
            centre_y_px: y,
            right_centre_x_px: x,
        };
        Self::of(
            stereod_calibration::Calibration::of_rectified(size, &geometry).map_err(raised)?,
            None,
        )
    }

    /// Makes a calibration of the text of a stereod TOML file.
    #[classmethod]
    #[pyo3(signature = (text, alpha=None))]
    fn from_toml(
        _class: &Bound<'_, PyType>,
        text: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let text: PyBackedStr = argument("text", text, "the text of a stereod TOML file")?;
        let alpha = optional("alpha", alpha, ALPHA)?;
        Self::of(stereod_calibration::Calibration::of_toml(&text).map_err(raised)?, alpha)
    }

    /// Returns the text of a stereod TOML file with the calibration.
    fn to_toml(&self) -> String {
        self.calibration.to_toml()
    }

    /// Writes the calibration: .toml (stereod), .yml, .xml or .json (OpenCV).
    fn write(&self, file: &Bound<'_, PyAny>) -> PyResult<()> {
        let file: PathBuf = argument("file", file, "the name of a file")?;
        self.calibration.write(file).map_err(raised)
    }

    /// Rectifies a raw pair, each (H, W) of uint8 or uint16 or (H, W, 3) of uint8, and returns two
    /// arrays (H, W) of uint8.
    #[pyo3(signature = (left, right, *, channels="rgb"))]
    fn rectify(
        &self,
        py: Python<'_>,
        left: &Bound<'_, PyAny>,
        right: &Bound<'_, PyAny>,
        channels: &str,
    ) -> PyResult<Pair> {
        let channels = Channels::of(channels)?;
        let views = [View::of("left", left, channels)?, View::of("right", right, channels)?];
        let [left, right] = [views[0].image().map_err(raised)?, views[1].image().map_err(raised)?];
        let rectifier = self.rectifier(py)?;
        let [left, right] = py.detach(|| rectifier.rectify(left, right)).map_err(raised)?;
        let array = |image: ImageBuf| array2(py, image.pixels().to_vec(), image.width());
        Ok((array(left), array(right)))
    }

    /// (width, height) of the left camera's images.
    #[getter]
    fn size(&self) -> (usize, usize) {
        self.calibration.size()
    }

    /// Properties that are possible but unlikely, a sentence each.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.calibration.notes().to_vec()
    }

    /// Camera matrix (3, 3) of the left camera.
    #[getter(K1)]
    fn k1(&self, py: Python<'_>) -> Py<PyArray2<f64>> {
        camera_matrix(py, &stereod_calibration::cameras(&self.calibration).left)
    }

    /// Distortion coefficients (1, N) of the left camera: four of a fisheye lens, otherwise 14 in OpenCV's order.
    #[getter(D1)]
    fn d1(&self, py: Python<'_>) -> Py<PyArray2<f64>> {
        distortion(py, &stereod_calibration::cameras(&self.calibration).left)
    }

    /// Camera matrix (3, 3) of the right camera.
    #[getter(K2)]
    fn k2(&self, py: Python<'_>) -> Py<PyArray2<f64>> {
        camera_matrix(py, &stereod_calibration::cameras(&self.calibration).right)
    }

    /// Distortion coefficients (1, N) of the right camera, as `D1`.
    #[getter(D2)]
    fn d2(&self, py: Python<'_>) -> Py<PyArray2<f64>> {
        distortion(py, &stereod_calibration::cameras(&self.calibration).right)
    }

    /// Rotation (3, 3) from the left camera's frame to the right one's.
    #[getter(R)]
    fn r(&self, py: Python<'_>) -> Py<PyArray2<f64>> {
        array2(
            py,
            stereod_calibration::cameras(&self.calibration)
                .rotation
                .transpose()
                .as_slice()
                .to_vec(),
            3,
        )
    }

    /// Translation (3, 1) in metres: the left camera's centre in the right one's frame.
    #[getter(T)]
    fn t(&self, py: Python<'_>) -> Py<PyArray2<f64>> {
        array2(
            py,
            stereod_calibration::cameras(&self.calibration)
                .translation
                .transpose()
                .as_slice()
                .to_vec(),
            1,
        )
    }

    /// Rotation (3, 3) of the left camera that makes its images rectified.
    #[getter(R1)]
    fn r1(&self, py: Python<'_>) -> Py<PyArray2<f64>> {
        array2(py, self.rectification.left.rotation.transpose().as_slice().to_vec(), 3)
    }

    /// Rotation (3, 3) of the right camera that makes its images rectified.
    #[getter(R2)]
    fn r2(&self, py: Python<'_>) -> Py<PyArray2<f64>> {
        array2(py, self.rectification.right.rotation.transpose().as_slice().to_vec(), 3)
    }

    /// Projection (3, 4) of the rectified left images.
    #[getter(P1)]
    fn p1(&self, py: Python<'_>) -> Py<PyArray2<f64>> {
        array2(py, self.rectification.left.projection.transpose().as_slice().to_vec(), 4)
    }

    /// Projection (3, 4) of the rectified right images.
    #[getter(P2)]
    fn p2(&self, py: Python<'_>) -> Py<PyArray2<f64>> {
        array2(py, self.rectification.right.projection.transpose().as_slice().to_vec(), 4)
    }

    /// (width, height) of the rectified images.
    #[getter]
    fn rectified_size(&self) -> (usize, usize) {
        (self.rectification.width, self.rectification.height)
    }

    /// Focal length of the rectified images in pixels.
    #[getter]
    fn focal_px(&self) -> f64 {
        self.rectification.geometry().focal_px
    }

    /// Distance between the cameras in metres.
    #[getter]
    fn baseline_m(&self) -> f64 {
        self.rectification.geometry().baseline_m
    }

    /// Principal point (x, y) of the rectified left image in pixels.
    #[getter]
    fn centre_px(&self) -> (f64, f64) {
        let geometry = self.rectification.geometry();
        (geometry.centre_x_px, geometry.centre_y_px)
    }

    /// The matrix Q (4, 4) of OpenCV's stereoRectify, for cv2.reprojectImageTo3D.
    #[getter(Q)]
    fn q(&self, py: Python<'_>) -> Py<PyArray2<f64>> {
        let StereoGeometry { focal_px, baseline_m, centre_x_px, centre_y_px, right_centre_x_px } =
            self.rectification.geometry();
        let shift = (right_centre_x_px - centre_x_px) / baseline_m;
        let rows = [
            [1.0, 0.0, 0.0, -centre_x_px],
            [0.0, 1.0, 0.0, -centre_y_px],
            [0.0, 0.0, 0.0, focal_px],
            [0.0, 0.0, 1.0 / baseline_m, shift],
        ];
        array2(py, rows.as_flattened().to_vec(), 4)
    }

    fn __repr__(&self) -> String {
        let ((width, height), geometry) = (self.calibration.size(), self.rectification.geometry());
        format!(
            "Calibration({width}x{height}, focal length {:.1} px, baseline {:.4} m)",
            geometry.focal_px, geometry.baseline_m
        )
    }

    #[allow(clippy::type_complexity)] // A pickle: the function and its arguments.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (String, Option<f64>))> {
        let own = slf.get();
        Ok((slf.get_type().getattr("from_toml")?, (own.to_toml(), own.alpha)))
    }
}
