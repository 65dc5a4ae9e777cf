//! The calibration of DepthAI devices (OAK), as `dai.CalibrationHandler` writes it as JSON: cameras
//! by socket, each with its pose relative to the next one.

use nalgebra::{Matrix3, Vector3};

use super::draft::{Draft, ReadOptions};
use super::kalibr::{Motion, between};
use super::lens::{self, Model};
use super::tree::At;
use crate::check::Sources;
use crate::error::Result;
use crate::{Camera, StereoCalibration};

/// The mono cameras of an OAK-D, if the file does not name the left and right camera.
const LEFT: usize = 1;
const RIGHT: usize = 2;
const COLOUR: usize = 0;

/// Metres per unit of translations, in the order of depthai-core's `LengthUnit`: metre, centimetre,
/// millimetre, inch, foot.
const METRES: [f64; 5] = [1.0, 0.01, 0.001, 0.0254, 0.3048];

/// Unit of files without one.
const CENTIMETRE: usize = 1;

/// Returns the camera at a socket: `cameraData` is a list of [socket, camera].
fn socket<'a>(cameras: &At<'a>, number: usize) -> Result<At<'a>> {
    for entry in cameras.items() {
        if let [name, camera] = entry.items().as_slice()
            && name.whole()? == number
        {
            return Ok(camera.clone());
        }
    }
    Err(cameras.error(format!("no camera at socket {number}, which is one of the two")))
}

fn camera(data: &At) -> Result<Camera> {
    let kind = data.get("cameraType");
    let coefficients = data.need("distortionCoeff")?;
    let model = match kind.as_ref().map(At::whole).transpose()? {
        None | Some(0) => Model::Brown,
        // The device always stores 14 coefficients; a fisheye lens uses four.
        Some(1) => Model::Fisheye,
        Some(other) => {
            let what = format!("camera type {other} is not supported (0: perspective, 1: fisheye)");
            return Err(kind.as_ref().unwrap_or(data).error(what));
        }
    };
    let lens = lens::read(model, &coefficients)?;
    let size = (data.need("width")?.side()?, data.need("height")?.side()?);
    data.need("intrinsicMatrix")?.camera(size, lens)
}

/// Returns metres per unit of a translation.
fn unit(extrinsics: &At) -> Result<f64> {
    let unit = extrinsics.get("lengthUnit");
    let number = unit.as_ref().map_or(Ok(CENTIMETRE), At::whole)?;
    METRES.get(number).copied().ok_or_else(|| {
        let what = "a unit of lengths that is not known (0: m, 1: cm, 2: mm, 3: inch, 4: foot)";
        unit.as_ref().unwrap_or(extrinsics).error(what)
    })
}

/// Returns a translation in metres: the calibrated one, or if that is 0, the one of the design.
fn translation(extrinsics: &At, notes: &mut Vec<String>) -> Result<Vector3<f64>> {
    let lengths = |of: &At| -> Result<Vector3<f64>> {
        let part = |axis: &str| of.need(axis)?.number();
        Ok(Vector3::new(part("x")?, part("y")?, part("z")?) * unit(extrinsics)?)
    };
    let own = extrinsics.need("translation")?;
    let calibrated = lengths(&own)?;
    if calibrated == Vector3::zeros()
        && let Some(design) = extrinsics.get("specTranslation")
    {
        let designed = lengths(&design)?;
        if designed != calibrated {
            let note = "is 0, so the one of the design is taken (specTranslation), which may be a \
                        few percent off; calibrate the pair to be exact";
            notes.push(own.error(note).to_string());
        }
        return Ok(designed);
    }
    Ok(calibrated)
}

/// Returns the sockets that the file's links reach from one, that one first, with the pose from its camera to
/// each.
fn chain(cameras: &At, from: usize, notes: &mut Vec<String>) -> Result<Vec<(usize, Motion)>> {
    let mut reached = vec![(from, (Matrix3::identity(), Vector3::zeros()))];
    let mut here = socket(cameras, from)?;
    for _ in 0..16 {
        let extrinsics = here.need("extrinsics")?;
        let next = extrinsics.need("toCameraSocket")?;
        if next.number()? < 0.0 {
            break;
        }
        let next = next.whole()?;
        let step = extrinsics.need("rotationMatrix")?.matrix3()?;
        let offset = translation(&extrinsics, notes)?;
        let (_, (rotation, before)) = reached[reached.len() - 1];
        reached.push((next, (step * rotation, step * before + offset)));
        // Both cameras may be linked to one that the file does not describe.
        let Ok(camera) = socket(cameras, next) else { break };
        here = camera;
    }
    Ok(reached)
}

/// Returns the pose from the left camera to the right one, over the first camera that both are linked to.
fn pose(cameras: &At, [left, right]: [usize; 2], notes: &mut Vec<String>) -> Result<Motion> {
    let (of_left, of_right) = (chain(cameras, left, notes)?, chain(cameras, right, notes)?);
    notes.sort();
    notes.dedup();
    let shared = of_left.iter().find_map(|(socket, from)| {
        let (_, to) = of_right.iter().find(|(other, _)| other == socket)?;
        Some(between(from, to))
    });
    shared.ok_or_else(|| {
        cameras.error(format!("no extrinsics lead from socket {left} to socket {right}"))
    })
}

pub(super) fn read(root: &At, options: &ReadOptions) -> Result<Draft> {
    let cameras = root.need("cameraData")?;
    let eye = |key: &str, otherwise: usize| -> Result<usize> {
        let number = root.get("stereoRectificationData").and_then(|data| data.get(key));
        match number {
            Some(number) if number.number()? >= 0.0 => number.whole(),
            _ => Ok(otherwise),
        }
    };
    let left = eye("leftCameraSocket", LEFT)?;
    let right = if options.third { COLOUR } else { eye("rightCameraSocket", RIGHT)? };
    let mut notes = Vec::new();
    let motion = pose(&cameras, [left, right], &mut notes)?;
    let file = root.file();
    let eyes = [left, right].map(|socket| format!("socket {socket}"));
    let named = format!("extrinsics of sockets {left} and {right}");
    let sources = Sources {
        unit_m: socket(&cameras, left)?.get("extrinsics").map_or(Ok(1.0), |own| unit(&own))?,
        ..Sources::of_file(file, [&eyes[0], &eyes[1], &named, "rectification"]).convertible(file)
    };
    let calibration = StereoCalibration {
        left: camera(&socket(&cameras, left)?)?,
        right: camera(&socket(&cameras, right)?)?,
        rotation: motion.0,
        translation: motion.1,
        // The file has the rotations of a rectification, but no projections.
        rectification: None,
    };
    Ok(Draft { notes, ..Draft::new(calibration, sources) })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{ReadOptions, parse};
    use super::*;
    use crate::Lens;

    fn socket(number: i64, to: i64, x: f64) -> Value {
        json!([number, {
            "cameraType": 0,
            "distortionCoeff": [0.1, 0.2, 0.3, 0.4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            "extrinsics": {
                "rotationMatrix": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
                "toCameraSocket": to,
                "translation": {"x": x, "y": 0.0, "z": 0.0}
            },
            "height": 800, "width": 1280,
            "intrinsicMatrix": [[800, 0, 640], [0, 800, 400], [0, 0, 1]]
        }])
    }

    fn device(cameras: Vec<Value>, left: i64, right: i64) -> Value {
        json!({
            "cameraData": cameras,
            "stereoRectificationData": {"leftCameraSocket": left, "rightCameraSocket": right}
        })
    }

    fn loaded(device: &Value) -> Result<StereoCalibration, String> {
        parse(&[("d.json", &device.to_string())], &ReadOptions::default())
            .map(|loaded| loaded.calibration)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn poses_are_followed_from_socket_to_socket() {
        // In centimetres: directly, through the colour camera, and the other way round.
        for (cameras, left, right) in [
            (vec![socket(0, -1, 0.0), socket(1, 2, -7.5), socket(2, 0, 3.75)], 1, 2),
            (vec![socket(0, 2, -3.75), socket(1, 0, -3.75), socket(2, -1, 0.0)], 1, 2),
            (vec![socket(1, -1, 0.0), socket(2, 0, 3.75), socket(0, 1, 3.75)], 1, 2),
            // If a file names no sockets, they are 1 and 2.
            (vec![socket(1, 2, -7.5), socket(2, -1, 0.0)], -1, -1),
            (vec![socket(4, 5, -7.5), socket(5, -1, 0.0)], 4, 5),
            // Both are linked to the colour camera, which need not be in the file.
            (vec![socket(0, -1, 0.0), socket(1, 0, -3.75), socket(2, 0, 3.75)], 1, 2),
            (vec![socket(1, 0, -3.75), socket(2, 0, 3.75)], 1, 2),
        ] {
            let calibration = loaded(&device(cameras, left, right)).unwrap();
            let off = calibration.translation - Vector3::new(-0.075, 0.0, 0.0);
            assert!(off.norm() < 1e-15, "{left} {right}: {off}");
        }
    }

    #[test]
    fn translations_are_in_the_unit_that_is_named() {
        let mut device = device(vec![socket(1, 2, -75.0), socket(2, -1, 0.0)], 1, 2);
        device["cameraData"][0][1]["extrinsics"]["lengthUnit"] = json!(2);
        let calibration = loaded(&device).unwrap();
        assert!((calibration.translation.x + 0.075).abs() < 1e-15);
        device["cameraData"][0][1]["extrinsics"]["lengthUnit"] = json!(5);
        assert!(loaded(&device).unwrap_err().contains("lengthUnit: a unit of lengths"));
    }

    #[test]
    fn a_wide_device_has_fisheye_lenses() {
        let mut device = device(vec![socket(1, 2, -7.5), socket(2, -1, 0.0)], 1, 2);
        device["cameraData"][0][1]["cameraType"] = json!(1);
        let calibration = loaded(&device).unwrap();
        assert_eq!(calibration.left.lens, Lens::Fisheye([0.1, 0.2, 0.3, 0.4]));
        assert!(matches!(calibration.right.lens, Lens::Brown(_)));
        device["cameraData"][0][1]["cameraType"] = json!(2);
        assert!(loaded(&device).unwrap_err().contains("camera type 2 is not supported"));
    }

    #[test]
    fn what_is_missing_is_said() {
        let good = || vec![socket(1, 2, -7.5), socket(2, -1, 0.0)];
        let circle = vec![socket(1, 0, -7.5), socket(0, 1, 0.0), socket(2, 3, 0.0)];
        let mut empty = device(good(), 1, 2);
        empty["cameraData"][0][1]["extrinsics"]["translation"] = json!({"x": 0});
        for (device, words) in [
            (device(good(), 1, 3), "no camera at socket 3"),
            (device(circle, 1, 2), "no extrinsics lead from socket 1 to socket 2"),
            (device(good(), 2, 1), "--swap d.json"),
            (empty, "`y` is missing"),
            (json!({"cameraData": 3}), "no camera at socket 1"),
            (json!({"cameraData": [[1], [2, {}]]}), "no camera at socket 1"),
        ] {
            let error = loaded(&device).unwrap_err();
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
