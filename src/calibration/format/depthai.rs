//! The calibration that DepthAI devices (OAK) carry and `dai.CalibrationHandler` writes as JSON:
//! cameras by socket, each with its pose to the next one, lengths in centimetres.

use nalgebra::{Matrix3, Vector3};

use super::kalibr::Motion;
use super::lens::{self, Model};
use super::tree::At;
use super::{Draft, Report};
use crate::calibration::check::Sources;
use crate::calibration::{CalibrationError, Camera};

/// The mono cameras of an OAK-D, where the file does not say which are the eyes.
const LEFT: usize = 1;
const RIGHT: usize = 2;

/// Translations are in centimetres.
const METRES: f64 = 0.01;

/// The camera at a socket: `cameraData` is a list of [socket, camera].
fn socket<'a>(cameras: &At<'a>, number: usize) -> Result<At<'a>, CalibrationError> {
    for entry in cameras.items() {
        if let [name, camera] = entry.items().as_slice()
            && name.whole()? == number
        {
            return Ok(camera.clone());
        }
    }
    Err(cameras.error(format!("no camera at socket {number}, which is one of the eyes")))
}

fn camera(data: &At) -> Result<Camera, CalibrationError> {
    let (focal, centre) = data.need("intrinsicMatrix")?.camera_matrix()?;
    let kind = data.get("cameraType");
    let coefficients = data.need("distortionCoeff")?;
    let mut values = coefficients.numbers()?;
    let model = match kind.as_ref().map(At::whole).transpose()? {
        None | Some(0) => Model::Brown,
        Some(1) => {
            // The device always stores 14, of which a fisheye lens uses four.
            if values.len() > 4 && values[4..].iter().all(|k| *k == 0.0) {
                values.truncate(4);
            }
            Model::Fisheye
        }
        Some(other) => {
            let what = format!("camera type {other} is not supported (0: perspective, 1: fisheye)");
            return Err(kind.as_ref().unwrap_or(data).error(what));
        }
    };
    let lens = lens::lens(model, &values).map_err(|what| coefficients.error(what))?;
    let (width, height) = (data.need("width")?.side()?, data.need("height")?.side()?);
    Ok(Camera { width, height, focal, centre, lens })
}

/// From the frame of the camera at one socket to that of another, along the chain that the file
/// describes; nothing where it leads elsewhere.
fn chain(cameras: &At, from: usize, to: usize) -> Result<Option<Motion>, CalibrationError> {
    let (mut rotation, mut translation) = (Matrix3::identity(), Vector3::zeros());
    let mut here = from;
    for _ in 0..16 {
        let extrinsics = socket(cameras, here)?.need("extrinsics")?;
        let next = extrinsics.need("toCameraSocket")?;
        let next = if next.number()? < 0.0 { return Ok(None) } else { next.whole()? };
        let step = extrinsics.need("rotationMatrix")?.matrix3()?;
        let lengths = extrinsics.need("translation")?;
        let part = |axis: &str| lengths.need(axis)?.number();
        let offset = Vector3::new(part("x")?, part("y")?, part("z")?) * METRES;
        (rotation, translation) = (step * rotation, step * translation + offset);
        if next == to {
            return Ok(Some((rotation, translation)));
        }
        here = next;
    }
    Ok(None)
}

/// Reads a device's calibration.
pub(super) fn read(root: &At) -> Result<Draft, CalibrationError> {
    let cameras = root.need("cameraData")?;
    let eye = |key: &str, otherwise: usize| -> Result<usize, CalibrationError> {
        let number = root.get("stereoRectificationData").and_then(|data| data.get(key));
        match number {
            Some(number) if number.number()? >= 0.0 => number.whole(),
            _ => Ok(otherwise),
        }
    };
    let (left, right) = (eye("leftCameraSocket", LEFT)?, eye("rightCameraSocket", RIGHT)?);
    let motion = match chain(&cameras, left, right)? {
        Some(motion) => motion,
        None => {
            let (rotation, translation) = chain(&cameras, right, left)?.ok_or_else(|| {
                cameras.error(format!("no extrinsics lead from socket {left} to socket {right}"))
            })?;
            (rotation.transpose(), -rotation.transpose() * translation)
        }
    };
    let file = root.file();
    let sources = Sources {
        left: format!("{file} (socket {left})"),
        right: format!("{file} (socket {right})"),
        pose: format!("{file} (extrinsics of socket {left})"),
        rectification: String::new(),
        swap: format!(
            "`stereod calibration convert --swap {file} -o OUT.toml` exchanges the sockets {left} and \
             {right}"
        ),
    };
    Ok(Draft {
        left: camera(&socket(&cameras, left)?)?,
        right: camera(&socket(&cameras, right)?)?,
        rotation: motion.0,
        translation: motion.1,
        // The file has the rotations of a rectification, but no projections.
        rectification: None,
        sources,
        report: Report::default(),
        notes: Vec::new(),
    })
}
