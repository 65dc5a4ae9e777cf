//! camera_info of ROS (sensor_msgs/CameraInfo): one YAML file for each camera, as camera_calibration writes
//! and camera_info_manager reads it, or as `ros2 topic echo` prints the message.
//!
//! Neither file has the relative pose of the cameras: it follows from the rectifications.

use nalgebra::{Matrix3, Matrix3x4, Vector3};

use super::draft::{Draft, ReadOptions, Topics};
use super::joined;
use super::lens::{self, Model};
use super::tree::At;
use crate::check::Sources;
use crate::error::Result;
use crate::mode::Window;
use crate::{CalibrationError, Camera, Lens, Rectification, RectifiedView, StereoCalibration};

// The names in a file, in a message of ROS 1 and in one of ROS 2.
const WIDTH: [&str; 2] = ["image_width", "width"];
const HEIGHT: [&str; 2] = ["image_height", "height"];
const MODEL: &str = "distortion_model";
// As Kalibr and others write it.
const CAMERA_MODEL: &str = "camera_model";
const K: [&str; 3] = ["camera_matrix", "K", "k"];
const D: [&str; 3] = ["distortion_coefficients", "D", "d"];
const R: [&str; 3] = ["rectification_matrix", "R", "r"];
const P: [&str; 3] = ["projection_matrix", "P", "p"];

pub(super) fn is_camera_info(root: &At) -> bool {
    let has = |keys: &[&str]| root.any(keys).is_some();
    // A driver may leave the name of the model empty.
    let message =
        has(&["K", "k"]) && (root.get(MODEL).is_some() || has(&["P", "p"]) && has(&["width"]));
    let file = root.get("image_width").is_some()
        && (root.get("camera_name").is_some() || root.get(MODEL).is_some())
        && root.get("nframes").is_none();
    has(&["projection_matrix", "rectification_matrix"]) || message || file
}

#[derive(PartialEq)]
struct Eye {
    camera: Camera,
    view: RectifiedView,
    /// Delivered part of the camera's image.
    window: Window,
}

fn eye(root: &At, topics: Option<Topics>, notes: &mut Vec<String>) -> Result<Eye> {
    let size = (root.need_any(&WIDTH)?.side()?, root.need_any(&HEIGHT)?.side()?);
    let p = root.need_any(&P)?;
    let projection = p.matrix3x4()?;
    let uncalibrated =
        |matrix: &At| matrix.error("a focal length of 0: the camera has not been calibrated");
    if topics == Some(Topics::Rectified) {
        if projection[(0, 0)] == 0.0 {
            return Err(uncalibrated(&p));
        }
        let view = RectifiedView { rotation: Matrix3::identity(), projection };
        return Ok(Eye {
            camera: rectified_camera(size, &projection),
            view,
            window: window(root, size)?,
        });
    }
    let k = root.need_any(&K)?;
    if k.matrix3()?[(0, 0)] == 0.0 {
        return Err(uncalibrated(&k));
    }
    let coefficients = root.need_any(&D)?;
    let values = coefficients.numbers()?;
    let lens = match lens::of_file(root.get(MODEL).as_ref(), root.get(CAMERA_MODEL).as_ref())? {
        Some(model) => lens::lens(model, &values),
        None => {
            let count = values.len();
            if values.iter().any(|value| *value != 0.0) {
                notes.push(coefficients.error(format!(
                    "the file names no distortion_model, so that the {count} coefficients are taken for \
                     plumb_bob (8: rational_polynomial); a fisheye lens needs the line \
                     `distortion_model: equidistant`"
                )).to_string());
            }
            lens::lens(Model::Brown, &values)
        }
    };
    let lens = lens.map_err(|what| coefficients.error(what))?;
    let camera = k.camera(size, lens)?;
    let r = root.need_any(&R)?;
    let mut rotation = r.matrix3()?;
    if rotation == Matrix3::zeros() {
        rotation = Matrix3::identity();
        if camera != rectified_camera(size, &projection) {
            notes.push(r.error(
                "all zeros, so never set; the views are taken as parallel; if the rows of the rectified views do \
                 not agree, calibrate the cameras as a pair",
            ).to_string());
        }
    }
    Ok(Eye { camera, view: RectifiedView { rotation, projection }, window: window(root, size)? })
}

fn rectified_camera((width, height): (usize, usize), p: &Matrix3x4<f64>) -> Camera {
    let (focal, centre) = ([p[(0, 0)], p[(1, 1)]], [p[(0, 2)], p[(1, 2)]]);
    Camera { width, height, focal, centre, skew: 0.0, lens: Lens::Brown([0.0; 14]) }
}

/// Returns the region of interest and the binning, which change the image but not the matrices.
fn window(root: &At, full: (usize, usize)) -> Result<Window> {
    let whole = |at: Option<At>| at.map_or(Ok(0), |at| at.whole());
    let roi = root.get("roi");
    let of_roi = |key: &str| whole(roi.as_ref().and_then(|roi| roi.get(key)));
    let offset = [of_roi("x_offset")?, of_roi("y_offset")?];
    // All zeros mean the full image.
    let size = match (of_roi("width")?, of_roi("height")?) {
        (0, 0) if offset == [0, 0] => full,
        size => size,
    };
    let ends = [offset[0] + size.0, offset[1] + size.1];
    if let Some(roi) = &roi
        && (size.0 == 0 || size.1 == 0 || ends[0] > full.0 || ends[1] > full.1)
    {
        return Err(roi.error(format!(
            "{}x{} pixels at ({}, {}) are no region of a picture of {}x{}",
            size.0, size.1, offset[0], offset[1], full.0, full.1
        )));
    }
    let binning = [whole(root.get("binning_x"))?.max(1), whole(root.get("binning_y"))?.max(1)];
    if binning[0] > size.0 || binning[1] > size.1 {
        return Err(root.error(format!(
            "binning of {}x{} leaves no pixel of {}x{}",
            binning[0], binning[1], size.0, size.1
        )));
    }
    Ok(Window { offset, size, binning })
}

impl Eye {
    /// Returns the focal length of the rectified images in pixels.
    fn focal_px(&self) -> f64 {
        let full = self.view.projection[(0, 0)];
        let full = if full > 0.0 { full } else { self.camera.focal[0] };
        full / self.window.binning[0] as f64
    }
}

/// Reason why the descriptions of both views may be the same.
const ONE_FOR_BOTH: &str =
    "the file of one view was given for both, or the cameras were calibrated one by one";

/// Returns the advice for cameras with a missing or wrong baseline.
fn by_hand(focal_px: f64, topics: Option<Topics>) -> String {
    let flags = format!(
        "`--focal {focal_px} --baseline B`, with the distance B between the cameras in metres"
    );
    match topics {
        Some(Topics::Rectified) => format!("give {flags}"),
        _ => format!(
            "for images that come rectified give {flags}; others need a calibration of both cameras as a pair"
        ),
    }
}

/// Returns the error of projections without a baseline.
fn without_baseline(left: &Eye, right: &Eye, topics: Option<Topics>) -> String {
    let why = match topics {
        None if left == right => format!("; {ONE_FOR_BOTH}"),
        _ => String::new(),
    };
    let cure = by_hand(left.focal_px(), topics);
    format!("no baseline is recorded: the fourth column of both projections is 0{why}; {cure}")
}

fn swapped_files(left: &At, right: &At, topics: Option<Topics>) -> String {
    let order = format!("name the files in the order {},{}", right.file(), left.file());
    let cure = if topics.is_some() { "--swap exchanges the views" } else { &order };
    format!("this is the right view's (its fourth column has the baseline): {cure}")
}

/// Moves the origin to the left camera, if both projections count from another one, as on KITTI's car.
fn measure_from_left(p1: &mut Matrix3x4<f64>, p2: &mut Matrix3x4<f64>) {
    let place = |p: &Matrix3x4<f64>| {
        let z = p[(2, 3)];
        [(p[(0, 3)] - p[(0, 2)] * z) / p[(0, 0)], (p[(1, 3)] - p[(1, 2)] * z) / p[(1, 1)]]
    };
    if p1.column(3).amax() > 0.0 {
        let ([x1, y1], [x2, y2]) = (place(p1), place(p2));
        p1.set_column(3, &Vector3::zeros());
        p2.set_column(3, &Vector3::new(p2[(0, 0)] * (x2 - x1), p2[(1, 1)] * (y2 - y1), 0.0));
    }
}

pub(super) fn read(left: &At, right: &At, options: &ReadOptions) -> Result<Draft> {
    let mut notes = Vec::new();
    let mut left_eye = eye(left, options.topics, &mut notes)?;
    let mut right_eye = eye(right, options.topics, &mut notes)?;
    check_pair((left, &left_eye), (right, &right_eye), options.topics)?;
    let (p1, p2) = (&mut left_eye.view.projection, &mut right_eye.view.projection);
    if p1[(0, 1)] == p2[(0, 1)] {
        // ROS' calibrator copies the skew of fisheye lenses. It shears both rectified images alike,
        // which changes neither rows nor disparities, so it is dropped.
        (p1[(0, 1)], p2[(0, 1)]) = (0.0, 0.0);
    }
    if !(p2[(0, 0)] > 0.0 && p2[(1, 1)] > 0.0) {
        return Err(right.need_any(&P)?.error("a focal length is not above 0"));
    }
    measure_from_left(p1, p2);
    let sources = sources(left, right, left_eye.focal_px(), options.topics);
    let windows = [left_eye.window, right_eye.window];
    let full = (left_eye.camera.width, left_eye.camera.height);
    let part = windows[0];
    let windows = part.is_part_of(full).then_some(windows).filter(|_| {
        // The driver's settings may have changed since, which needs no new calibration.
        let is_full = options.size == Some(full);
        let what = match is_full {
            true => "are full ones, so that roi and binning are left out:".to_owned(),
            false => format!("are {part} of the calibrated"),
        };
        let (width, height) = full;
        let files = format!("{} and {}", left.file(), right.file());
        notes.push(format!("{files}: the pictures {what} {width}x{height}"));
        !is_full
    });
    let rectification =
        Rectification { width: full.0, height: full.1, left: left_eye.view, right: right_eye.view };
    let (rotation, translation) = rectification.pose();
    let calibration = StereoCalibration {
        left: left_eye.camera,
        right: right_eye.camera,
        rotation,
        translation,
        rectification: Some(rectification),
    };
    let by_size = part.is_part_of(full);
    Ok(Draft { windows, by_size, notes, ..Draft::new(calibration, sources) })
}

fn check_pair(
    (left, left_eye): (&At, &Eye),
    (right, right_eye): (&At, &Eye),
    topics: Option<Topics>,
) -> Result<()> {
    let has_baseline = |eye: &Eye| eye.view.projection.fixed_view::<2, 1>(0, 3).amax() > 0.0;
    if !has_baseline(right_eye) {
        return Err(match has_baseline(left_eye) {
            true => left.need_any(&P)?.error(swapped_files(left, right, topics)),
            false => right.need_any(&P)?.error(without_baseline(left_eye, right_eye, topics)),
        });
    }
    if left_eye == right_eye {
        return Err(CalibrationError::new(format!(
            "{} and {} describe one and the same camera: {ONE_FOR_BOTH}; give those of a pair that was \
             calibrated together, left before right",
            left.file(),
            right.file()
        )));
    }
    Ok(())
}

/// Names the origin of each part of the calibration, for errors.
fn sources(left: &At, right: &At, focal_px: f64, topics: Option<Topics>) -> Sources {
    let both =
        format!("{} and {} (rectification_matrix, projection_matrix)", left.file(), right.file());
    let (swap, unit) = match topics {
        Some(_) => (
            format!(
                "P[3] of {} is -f * B and must be below 0; if the views are exchanged, --swap exchanges them",
                right.file()
            ),
            Some(format!("P[3] is -f * B with B in metres; {}", by_hand(focal_px, topics))),
        ),
        None => (
            format!(
                "P[3] of {1} is -f * B and must be below 0: correct its sign, or, if the files are of the \
                 other cameras, exchange them: `stereod calibration convert --swap {0},{1} -o OUT.toml`",
                left.file(),
                right.file()
            ),
            None,
        ),
    };
    let files = format!("{},{}", left.file(), right.file());
    let (left, right) = (left.file().into(), right.file().into());
    let (pose, rectification) = (both.clone(), both);
    Sources { left, right, pose, rectification, swap, unit, files, ..Sources::default() }
}

/// Returns the files of the left and the right camera. Lenses with more than 8 coefficients are called
/// rational, too, because ROS has no name for them: image_geometry passes all coefficients to OpenCV.
pub(super) fn write(calibration: &StereoCalibration) -> Result<[String; 2]> {
    let Some(rectification) = &calibration.rectification else {
        return Err(CalibrationError::new(
            "camera_info of ROS needs the rectification (R1, R2, P1, P2), which this calibration does not \
             have; give the file of stereoRectify too, or write another format",
        ));
    };
    let camera = &calibration.left;
    if (rectification.width, rectification.height) != (camera.width, camera.height) {
        return Err(CalibrationError::new(format!(
            "camera_info of ROS has rectified pictures of the camera's size {}x{}, but here they are \
             {}x{}",
            camera.width, camera.height, rectification.width, rectification.height
        )));
    }
    Ok([
        text("left", &calibration.left, &rectification.left),
        text("right", &calibration.right, &rectification.right),
    ])
}

fn text(name: &str, camera: &Camera, view: &RectifiedView) -> String {
    let mut text = format!(
        "image_width: {}\nimage_height: {}\ncamera_name: {name}\n",
        camera.width, camera.height
    );
    let matrix = |key: &str, rows: usize, values: &[f64]| {
        let cols = values.len() / rows;
        format!("{key}:\n  rows: {rows}\n  cols: {cols}\n  data: [{}]\n", joined(values))
    };
    let ([fx, fy], [cx, cy]) = (camera.focal, camera.centre);
    text += &matrix("camera_matrix", 3, &[fx, camera.skew, cx, 0.0, fy, cy, 0.0, 0.0, 1.0]);
    // Before its coefficients, as in ROS: a truncated file must not pass for one of another lens.
    text += &format!("distortion_model: {}\n", lens::ros_name(&camera.lens));
    text += &matrix("distortion_coefficients", 1, lens::coefficients(&camera.lens));
    // nalgebra goes column by column, the file row by row.
    text += &matrix("rectification_matrix", 3, view.rotation.transpose().as_slice());
    text += &matrix("projection_matrix", 3, view.projection.transpose().as_slice());
    text
}
