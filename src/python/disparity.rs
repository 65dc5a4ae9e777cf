//! `stereod.Disparity`.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use numpy::{Element, PyArray2, PyArray3, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};

use super::arrays::{array2, array3};
use super::calibration::Calibration;
use super::obstacles::Wanted;
use super::parameters::{Given, argument, optional};
use crate::raised;
use stereod_core::floats::floats;
use stereod_core::frame::{DisparityMap, Eye, Image, Mask, Matched, StereoGeometry, StereoPair};
use stereod_core::matcher;
use stereod_core::obstacles::Mount;
use stereod_core::picture::colours::ColourMap;
use stereod_core::picture::png;
use stereod_core::pool::Pooled;
use stereod_core::pose::{Lost, Odometry, Pose, to_json};

/// An array that is made on first use.
type Kept<T> = OnceLock<Py<PyArray2<T>>>;

/// A pickled image: its pixels and its valid mask.
type Picture<P, M> = (P, Option<M>);

/// A pickled pose of the rig: rotation and position, covariance, velocity, why it is lost, breaks and points, length of
/// the path, position and attitude of the camera.
type Path = (
    ([[f64; 3]; 3], [f64; 3]),
    [[f64; 6]; 6],
    Option<[f64; 6]>,
    Option<String>,
    (u32, [u32; 2]),
    f64,
    [[f64; 3]; 2],
);

/// A pickled result: the parameters of its matcher, its images, the disparity, the confidence and the verdicts, the
/// time in nanoseconds, the cameras and the pose of the rig.
type State<P, M, D> = (
    (Vec<(String, String)>, bool),
    [Picture<P, M>; 2],
    D,
    [Option<P>; 2],
    u64,
    Option<[f64; 5]>,
    Option<Path>,
);
type Arrays = State<Py<PyArray2<u8>>, Py<PyArray2<bool>>, Py<PyArray2<i16>>>;
type Borrowed<'py> =
    State<PyReadonlyArray2<'py, u8>, PyReadonlyArray2<'py, bool>, PyReadonlyArray2<'py, i16>>;

/// Copies the values of an array, if it has this shape.
fn values<T: Element + Copy>(
    array: &PyReadonlyArray2<'_, T>,
    shape: [usize; 2],
) -> PyResult<Vec<T>> {
    match array.shape() == shape {
        true => Ok(array.as_array().iter().copied().collect()),
        false => Err(PyValueError::new_err("the arrays of a pickled result differ in shape")),
    }
}

fn path_of(odometry: &Odometry) -> Path {
    let Odometry { pose, covariance, velocity, lost, breaks, path_m, points, mount } = *odometry;
    (
        (pose.rotation, pose.position_m),
        covariance,
        velocity,
        lost.map(|lost| lost.in_words().to_owned()),
        (breaks, points),
        path_m,
        [mount.position_m, mount.attitude_deg],
    )
}

fn odometry_of(path: Path) -> PyResult<Box<Odometry>> {
    let (pose, covariance, velocity, lost, (breaks, points), path_m, mount) = path;
    let reason = |words: String| {
        let known = Lost::ALL.into_iter().find(|lost| lost.in_words() == words);
        known.ok_or_else(|| PyValueError::new_err("a pickled result is lost for no known reason"))
    };
    Ok(Box::new(Odometry {
        pose: Pose { rotation: pose.0, position_m: pose.1 },
        covariance,
        velocity,
        lost: lost.map(reason).transpose()?,
        breaks,
        path_m,
        points,
        mount: Mount { position_m: mount[0], attitude_deg: mount[1] },
    }))
}

/// The disparity of a pair: arrays (H, W), aligned with the (rectified) left image.
#[pyclass(module = "stereod", frozen)]
pub struct Disparity {
    disparity: matcher::Disparity,
    given: Arc<Given>,
    raw: Kept<i16>,
    pixels: Kept<f32>,
    confidence: Kept<u8>,
    status: Kept<u8>,
    verdicts: Kept<u8>,
}

impl Disparity {
    /// Wraps the result of a matcher with these parameters.
    pub fn of(disparity: matcher::Disparity, given: Arc<Given>) -> Self {
        let (raw, pixels, confidence) = (Kept::new(), Kept::new(), Kept::new());
        let (status, verdicts) = (Kept::new(), Kept::new());
        Self { disparity, given, raw, pixels, confidence, status, verdicts }
    }

    /// Returns the result of a pair that belongs to no stream.
    pub fn of_no_stream(self) -> Self {
        Self { disparity: matcher::of_no_stream(self.disparity), ..self }
    }

    /// Returns the result itself.
    pub fn inner(&self) -> &matcher::Disparity {
        &self.disparity
    }

    /// Returns the cameras of an argument that may replace the matcher's.
    pub fn geometry(&self, rig: Option<&Bound<'_, PyAny>>) -> PyResult<Option<StereoGeometry>> {
        let rig: Option<Py<Calibration>> = optional("rig", rig, "a stereod.Calibration")?;
        let size = (self.width(), self.disparity.map().height());
        rig.map(|rig| rig.get().geometry_of(size)).transpose()
    }

    fn width(&self) -> usize {
        self.disparity.map().width()
    }

    /// Returns the colours of `to_image`.
    fn colours(&self, low: Option<f32>, high: Option<f32>) -> PyResult<Vec<[u8; 3]>> {
        let pixels = self.disparity.disparity_px();
        let mut known: Vec<f32> = pixels.iter().copied().filter(|px| !px.is_nan()).collect();
        known.sort_by(f32::total_cmp);
        let at = |percent: usize| known.get((known.len() * percent / 100).min(known.len() - 1));
        let percentile =
            |percent| if known.is_empty() { 0.0 } else { *at(percent).expect("inside") };
        let (low, high) = (low.unwrap_or(percentile(2)), high.unwrap_or(percentile(98)));
        if !(low.is_finite() && high.is_finite() && low <= high) {
            return Err(PyValueError::new_err(format!(
                "low is {low} and high {high}; expected two disparities in order"
            )));
        }
        let scale = 255.0 / (high - low).max(f32::MIN_POSITIVE);
        let (table, unknown) = (ColourMap::Turbo.table(), ColourMap::Turbo.unknown());
        let colour = |px: f32| match px.is_nan() {
            true => unknown,
            // The conversion saturates.
            false => table[usize::from(((px - low) * scale).round() as u8)],
        };
        Ok(pixels.into_iter().map(colour).collect())
    }

    fn kept<T: Element>(
        &self,
        py: Python<'_>,
        kept: &Kept<T>,
        values: impl FnOnce() -> Vec<T>,
    ) -> Py<PyArray2<T>> {
        // Not made within the lock: Python may run other threads meanwhile, and one of them may fork.
        let made = kept
            .get()
            .map_or_else(|| array2(py, values(), self.width()), |array| array.clone_ref(py));
        kept.get_or_init(|| made).clone_ref(py)
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

    /// float32: disparity in pixels without its steps of 1/16 px, as in files of floats; within 1/32 px
    /// of `disparity`; NaN if unknown.
    fn smooth(&self, py: Python<'_>) -> Py<PyArray2<f32>> {
        let smooth = py.detach(|| floats(self.disparity.map()));
        array2(py, smooth, self.width())
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

    /// uint8: verdict on the network (`check="sgm"`): 0 neither knows the pixel, 1 network and matching agree, 2 only
    /// the network knows it for sure, 3 only matching knows it, 4 they contradict each other. None without a check.
    #[getter]
    fn verdicts(&self, py: Python<'_>) -> Option<Py<PyArray2<u8>>> {
        let verdicts = matcher::matched(&self.disparity).verdicts.as_ref()?;
        Some(self.kept(py, &self.verdicts, || verdicts.pixels().to_vec()))
    }

    /// float64 (4, 4): pose of the left camera in its own frame at the first pair of the stream, which a point is
    /// multiplied by; x to the right, y down, z forward, in metres. None without `odometry`, while the rig is lost, and
    /// for a pair that belongs to no stream.
    #[getter]
    fn pose(&self, py: Python<'_>) -> Option<Py<PyArray2<f64>>> {
        let Odometry { pose, lost: None, .. } = self.disparity.odometry()? else { return None };
        let rows = pose.rotation.iter().zip(pose.position_m);
        let rows = rows.flat_map(|([x, y, z], shift)| [*x, *y, *z, shift]);
        Some(array2(py, rows.chain([0.0, 0.0, 0.0, 1.0]).collect(), 4))
    }

    /// The odometry of the vehicle as in a line of JSON (docs/odometry.md). None without `odometry`, and for a pair that
    /// belongs to no stream.
    #[getter]
    fn odometry<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let json = self.disparity.odometry().map(|odometry| to_json(odometry).to_string());
        json.map(|json| py.import("json")?.call_method1("loads", (json,))).transpose()
    }

    /// float32: depth in metres; NaN if unknown. `rig` is needed if the matcher has no calibration.
    #[pyo3(signature = (rig=None))]
    fn depth(&self, py: Python<'_>, rig: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyArray2<f32>>> {
        let geometry = self.geometry(rig)?;
        let depth = py.detach(|| self.disparity.depth_m(geometry)).map_err(raised)?;
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
        rig: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<PyArray2<f32>>>> {
        let geometry = self.geometry(rig)?;
        let deviation = py.detach(|| self.disparity.depth_deviation_m(geometry)).map_err(raised)?;
        Ok(deviation.map(|deviation| array2(py, deviation, self.width())))
    }

    /// float32 (H, W, 3): points in metres from the left camera, x to the right, y down, z forward;
    /// NaN if unknown. `rig` is needed if the matcher has no calibration.
    #[pyo3(signature = (rig=None))]
    fn points(
        &self,
        py: Python<'_>,
        rig: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyArray3<f32>>> {
        let geometry = self.geometry(rig)?;
        let points = py.detach(|| self.disparity.points_m(geometry)).map_err(raised)?;
        Ok(array3(py, points, self.width()))
    }

    /// What stands around a vehicle: the nearest obstacle, a scan of distances by direction, and distances of boxes, as
    /// docs/obstacles.md describes. `position_m` (ahead, left, up) and `attitude_deg` (roll, pitch, yaw) place the left
    /// camera on the vehicle; `boxes` are (label, (left, top, right, bottom)) in pixels. `rig` is needed if the matcher
    /// has no calibration.
    #[pyo3(signature = (rig=None, **wanted))]
    fn obstacles<'py>(
        &self,
        py: Python<'py>,
        rig: Option<&Bound<'py, PyAny>>,
        wanted: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let geometry = self.geometry(rig)?.or(self.disparity.geometry());
        let geometry = geometry.ok_or_else(|| raised(matcher::Error::NoGeometry))?;
        let wanted = Wanted::new(wanted)?;
        let found = py.detach(|| wanted.find(&self.disparity, geometry));
        let json = found.map_err(PyValueError::new_err)?;
        py.import("json")?.call_method1("loads", (json,))
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
    fn write_png(&self, file: &Bound<'_, PyAny>) -> PyResult<()> {
        let file: PathBuf = argument("file", file, "the name of a file")?;
        self.disparity.write_png(file).map_err(raised)
    }

    /// Writes the points as a binary PLY file, in the grey of the left image.
    #[pyo3(signature = (file, rig=None))]
    fn write_ply(
        &self,
        file: &Bound<'_, PyAny>,
        rig: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<usize> {
        let file: PathBuf = argument("file", file, "the name of a file")?;
        self.disparity.write_ply(file, self.geometry(rig)?).map_err(raised)
    }

    /// uint8 (H, W, 3): the disparity in colours (red, green, blue) of Google's Turbo, from blue (far) to red
    /// (near); grey if unknown. `low` and `high` are the disparities of the first and the last colour in pixels;
    /// without them, the 2nd and the 98th percentile.
    #[pyo3(signature = (low=None, high=None))]
    fn to_image(
        &self,
        py: Python<'_>,
        low: Option<&Bound<'_, PyAny>>,
        high: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyArray3<u8>>> {
        let low = optional("low", low, "a disparity in pixels")?;
        let high = optional("high", high, "a disparity in pixels")?;
        let colours = self.colours(low, high)?;
        Ok(array3(py, colours, self.width()))
    }

    /// The picture of `to_image`, for notebooks.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let (colours, height) = (self.colours(None, None)?, self.disparity.map().height());
        let png = png::encode_rgb(colours.as_flattened(), self.width(), height)
            .map_err(|error| PyRuntimeError::new_err(format!("{error:#}")))?;
        let text = py.import("base64")?.call_method1("b64encode", (PyBytes::new(py, &png),))?;
        let text: String = text.call_method1("decode", ("ascii",))?.extract()?;
        let about = self.__repr__();
        Ok(format!("<img src=\"data:image/png;base64,{text}\" alt=\"{about}\"><br>{about}"))
    }

    fn __repr__(&self) -> String {
        let map = self.disparity.map();
        let known = map.values().iter().filter(|&&value| value != stereod_core::INVALID).count();
        let share = 100.0 * known as f64 / map.values().len() as f64;
        format!("Disparity({}x{}, {share:.1} % known)", map.width(), map.height())
    }

    /// Makes the result that was pickled.
    #[classmethod]
    #[pyo3(name = "_restore")]
    fn restore(_class: &Bound<'_, PyType>, state: Borrowed<'_>) -> PyResult<Self> {
        let ((parameters, has_confidence), pair, raw, levels, nanoseconds, geometry, path) = state;
        let given = Given { parameters, confidence: has_confidence };
        let params = given.load()?.params;
        let [height, width] = [raw.shape()[0], raw.shape()[1]];
        let shape = [height, width];
        if shape.contains(&0) {
            return Err(PyValueError::new_err("a pickled result has no pixels"));
        }
        let image = |pixels: &PyReadonlyArray2<'_, u8>| -> PyResult<Image> {
            Ok(Image::from_vec(width, height, values(pixels, shape)?))
        };
        let masked =
            |(pixels, mask): &Picture<PyReadonlyArray2<'_, u8>, PyReadonlyArray2<'_, bool>>| {
                let mask = mask.as_ref().map(|mask| values(mask, shape)).transpose()?;
                let mask = mask.map(|valid| Arc::new(Mask::new(width, valid)));
                PyResult::Ok(image(pixels)?.with_valid_mask(mask))
            };
        let pair = StereoPair::of_stills(masked(&pair[0])?, masked(&pair[1])?);
        let raw = Pooled::unpooled(values(&raw, shape)?);
        let pair = StereoPair { timestamp: Duration::from_nanos(nanoseconds), ..pair };
        let map = DisparityMap::new(width, height, params.range, raw);
        let [confidence, verdicts] = levels.map(|it| it.map(|it| image(&it)).transpose());
        let matched = Matched {
            confidence: confidence?,
            verdicts: verdicts?,
            geometry: geometry.map(|[focal_px, baseline_m, x, y, right_x]| StereoGeometry {
                focal_px,
                baseline_m,
                centre_x_px: x,
                centre_y_px: y,
                right_centre_x_px: right_x,
            }),
            odometry: path.map(odometry_of).transpose()?,
            ..Matched::new(pair, map)
        };
        let disparity = matcher::disparity_of(matched, Arc::new(params));
        Ok(Self::of(disparity, Arc::new(given)))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Arrays,))> {
        let (py, own) = (slf.py(), slf.get());
        let Matched { pair, geometry, odometry, .. } = matcher::matched(&own.disparity);
        let image = |image: &Image| {
            let mask =
                image.valid_mask().map(|mask| array2(py, mask.pixels().to_vec(), own.width()));
            (array2(py, image.pixels().to_vec(), own.width()), mask)
        };
        let geometry = geometry
            .map(|g| [g.focal_px, g.baseline_m, g.centre_x_px, g.centre_y_px, g.right_centre_x_px]);
        let state = (
            (own.given.parameters.clone(), own.given.confidence),
            [image(&pair.left), image(&pair.right)],
            own.raw(py),
            [own.confidence(py), own.verdicts(py)],
            u64::try_from(pair.timestamp.as_nanos()).unwrap_or(u64::MAX),
            geometry,
            odometry.as_deref().map(path_of),
        );
        Ok((slf.get_type().getattr("_restore")?, (state,)))
    }
}
