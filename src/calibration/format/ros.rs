//! camera_info of ROS (sensor_msgs/CameraInfo): one YAML file for each eye, as camera_calibration writes
//! and camera_info_manager reads it, or as `ros2 topic echo` prints the message.
//!
//! Neither file says how the cameras stand to each other: that follows from the rectifications.

use nalgebra::{Matrix3, Matrix3x4};

use super::digits::joined;
use super::draft::{Draft, Report};
use super::lens::{self, Model};
use super::tree::At;
use crate::calibration::check::Sources;
use crate::calibration::{
    CalibrationError, Camera, Rectification, RectifiedView, StereoCalibration,
};

// The names in a file, in a message of ROS 1 and in one of ROS 2.
const WIDTH: [&str; 2] = ["image_width", "width"];
const HEIGHT: [&str; 2] = ["image_height", "height"];
const MODEL: [&str; 1] = ["distortion_model"];
const K: [&str; 3] = ["camera_matrix", "K", "k"];
const D: [&str; 3] = ["distortion_coefficients", "D", "d"];
const R: [&str; 3] = ["rectification_matrix", "R", "r"];
const P: [&str; 3] = ["projection_matrix", "P", "p"];

/// True where a file is a camera_info, whole or cut off.
pub(super) fn is_camera_info(root: &At) -> bool {
    let has = |keys: &[&str]| root.any(keys).is_some();
    let message = root.any(&["K", "k"]).is_some() && has(&MODEL);
    let file = root.get("image_width").is_some()
        && (root.get("camera_name").is_some() || has(&MODEL))
        && root.get("nframes").is_none();
    has(&["projection_matrix", "rectification_matrix"]) || message || file
}

struct Eye {
    camera: Camera,
    view: RectifiedView,
}

fn eye(root: &At) -> Result<Eye, CalibrationError> {
    let (width, height) = (root.need_any(&WIDTH)?.side()?, root.need_any(&HEIGHT)?.side()?);
    let (focal, centre) = root.need_any(&K)?.camera_matrix()?;
    let named = root.any(&MODEL);
    let name = named.as_ref().map(At::text).transpose()?.unwrap_or("plumb_bob");
    let model = lens::model(name)
        .ok_or_else(|| named.as_ref().unwrap_or(root).error(lens::unknown_model(name)))?;
    let coefficients = root.need_any(&D)?;
    let values = coefficients.numbers()?;
    // ROS lets a camera without distortion have no coefficients.
    let model = if values.is_empty() { Model::None } else { model };
    let lens = lens::lens(model, &values).map_err(|what| coefficients.error(what))?;
    let rotation = root.need_any(&R)?;
    if rotation.matrix3()? == Matrix3::zeros() {
        return Err(rotation.error("all zeros: the camera has not been calibrated"));
    }
    Ok(Eye {
        camera: Camera { width, height, focal, centre, lens },
        view: RectifiedView {
            rotation: rotation.matrix3()?,
            projection: root.need_any(&P)?.matrix3x4()?,
        },
    })
}

/// Reads the files of both eyes.
pub(super) fn read(left: &At, right: &At) -> Result<Draft, CalibrationError> {
    let (left_eye, right_eye) = (eye(left)?, eye(right)?);
    let (p1, p2) = (&left_eye.view.projection, &right_eye.view.projection);
    let baseline = |p: &Matrix3x4<f64>| p.fixed_view::<2, 1>(0, 3).amax();
    if baseline(p1) > 0.0 && baseline(p2) == 0.0 {
        return Err(left.need_any(&P)?.error(format!(
            "this is the right eye's file (its fourth column has the baseline): name the files in the \
             order {},{}",
            right.file(),
            left.file()
        )));
    }
    if baseline(p2) == 0.0 {
        return Err(right.need_any(&P)?.error(
            "the fourth column has no baseline: the cameras were calibrated one by one, and how they \
             stand to each other is missing; calibrate them as a stereo pair",
        ));
    }
    if !(p2[(0, 0)] > 0.0 && p2[(1, 1)] > 0.0) {
        return Err(right.need_any(&P)?.error("a focal length is not above 0"));
    }
    let rectification = Rectification {
        width: left_eye.camera.width,
        height: left_eye.camera.height,
        left: left_eye.view,
        right: right_eye.view,
    };
    let (rotation, translation) = rectification.pose();
    let both =
        format!("{} and {} (rectification_matrix, projection_matrix)", left.file(), right.file());
    let sources = Sources {
        left: left.file().into(),
        right: right.file().into(),
        pose: both.clone(),
        rectification: both,
        swap: format!("name the files in the order {},{}", right.file(), left.file()),
    };
    Ok(Draft {
        left: left_eye.camera,
        right: right_eye.camera,
        rotation,
        translation,
        rectification: Some(rectification),
        disparities: None,
        sources,
        report: Report::default(),
        notes: Vec::new(),
    })
}

/// The files of the left and the right eye. Lenses with more than 8 coefficients are called rational too,
/// as ROS has no name for them: image_geometry hands all coefficients to OpenCV.
pub(super) fn write(calibration: &StereoCalibration) -> Result<[String; 2], CalibrationError> {
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
    text += &matrix("camera_matrix", 3, &[fx, 0.0, cx, 0.0, fy, cy, 0.0, 0.0, 1.0]);
    // The model stands before what it explains, as ROS itself writes it: a file without its end must
    // not pass for one of another lens.
    text += &format!("distortion_model: {}\n", lens::ros_name(&camera.lens));
    text += &matrix("distortion_coefficients", 1, lens::coefficients(&camera.lens));
    // nalgebra goes column by column, the file row by row.
    text += &matrix("rectification_matrix", 3, view.rotation.transpose().as_slice());
    text += &matrix("projection_matrix", 3, view.projection.transpose().as_slice());
    text
}
