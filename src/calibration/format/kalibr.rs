//! YAML of pinhole cameras with their poses. The camchain of Kalibr (github.com/ethz-asl/kalibr, wiki page
//! "YAML formats") has all cameras of a rig: `cam0` is the left one, `cam1` the right one, `cam2` a third one.
//! EuRoC's data sets (Burri et al., IJRR 2016) have one sensor.yaml for each camera.

use nalgebra::{Matrix3, Vector3};

use super::draft::{Draft, ReadOptions};
use super::lens::{self, Model};
use super::tree::At;
use crate::check::Sources;
use crate::error::Result;
use crate::{Camera, Lens, StereoCalibration};

/// Rotation and translation from one frame into another.
pub(super) type Motion = (Matrix3<f64>, Vector3<f64>);

/// Returns the transformation from one camera to the other, which lead into one frame by `from` and `to`.
pub(super) fn between(from: &Motion, to: &Motion) -> Motion {
    let back = to.0.transpose();
    (back * from.0, back * (from.1 - to.1))
}

pub(super) fn inverse((rotation, translation): &Motion) -> Motion {
    (rotation.transpose(), -rotation.transpose() * translation)
}

/// Returns the transformation from the camera into the inertial sensor's frame, given in either direction.
fn to_imu(cam: &At) -> Result<Option<Motion>> {
    if let Some(motion) = cam.get("T_imu_cam") {
        return motion.motion().map(Some);
    }
    let motion = cam.get("T_cam_imu").map(|motion| motion.motion()).transpose()?;
    Ok(motion.as_ref().map(inverse))
}

/// Reads a camera; `hint` follows the message that its model is not supported.
fn camera(cam: &At, coefficients: &[&str], hint: &str) -> Result<Camera> {
    let model = cam.need("camera_model")?;
    if model.text()? != "pinhole" {
        let name = model.text()?;
        return Err(model.error(format!("the camera model {name:?} is not supported{hint}")));
    }
    let (width, height) = cam.need("resolution")?.size()?;
    let [fx, fy, cx, cy] = cam.need("intrinsics")?.exactly()?;
    let model = lens::named(&cam.need("distortion_model")?)?;
    let lens = match cam.any(coefficients) {
        None if model == Model::None => Lens::Brown([0.0; 14]),
        _ => lens::read(model, &cam.need_any(coefficients)?)?,
    };
    Ok(Camera { width, height, focal: [fx, fy], centre: [cx, cy], skew: 0.0, lens })
}

/// Returns the transformation from one camera of the chain to the next, and its source's name.
fn step(from: &At, to: &At, name: &str) -> Result<(Motion, String)> {
    let through_imu = match (to_imu(from)?, to_imu(to)?) {
        (Some(from), Some(to)) => Some(between(&from, &to)),
        _ => None,
    };
    let Some(direct) = to.get("T_cn_cnm1") else {
        let motion = through_imu.map_or_else(|| to.need("T_cn_cnm1")?.motion(), Ok)?;
        return Ok((motion, "T_cam_imu or T_imu_cam".into()));
    };
    let motion = direct.motion()?;
    if let Some(other) = through_imu
        && !((motion.0 - other.0).amax() < 5e-3
            && (motion.1 - other.1).norm() < 5e-3 * motion.1.norm())
    {
        return Err(direct.error(
            "contradicts the poses to the inertial sensor (T_cam_imu or T_imu_cam) in the same file; \
             remove the one that is wrong",
        ));
    }
    Ok((motion, format!("{name}.T_cn_cnm1")))
}

pub(super) fn read(root: &At, options: &ReadOptions) -> Result<Draft> {
    let (cam0, cam1) = (root.need("cam0")?, root.need("cam1")?);
    let third = root.get("cam2");
    let (mut motion, mut pose) = step(&cam0, &cam1, "cam1")?;
    let (mut right, mut name, mut notes) = (&cam1, "cam1", Vec::new());
    let file = root.file();
    match &third {
        Some(cam2) if options.third => {
            let ((rotation, translation), last) = step(&cam1, cam2, "cam2")?;
            motion = (rotation * motion.0, rotation * motion.1 + translation);
            pose = format!("{pose}, {last}");
            (right, name) = (cam2, "cam2");
        }
        Some(_) => notes.push(format!(
            "{file}: more than two cameras; cam0 is taken as the left camera, cam1 as the right one"
        )),
        None => {}
    }
    let sources = Sources::of_file(file, ["cam0", name, &pose, "rectification"]).convertible(file);
    let (rotation, translation) = motion;
    let camera = |cam: &At| {
        let hint = ": calibrate with pinhole-radtan or pinhole-equi";
        camera(cam, &["distortion_coeffs", "distortion_coefficients"], hint)
    };
    let (left, right) = (camera(&cam0)?, camera(right)?);
    let calibration = StereoCalibration { left, right, rotation, translation, rectification: None };
    Ok(Draft { notes, ..Draft::new(calibration, sources) })
}

/// Reads the sensor.yaml of both cameras of EuRoC.
pub(super) fn read_euroc(left: &At, right: &At) -> Result<Draft> {
    let euroc = |root: &At| {
        if let Some(kind) = root.get("sensor_type")
            && kind.text()? != "camera"
        {
            return Err(kind.error(format!("a sensor of type {:?} is no camera", kind.text()?)));
        }
        camera(root, &["distortion_coefficients"], "")
    };
    let cameras = (euroc(left)?, euroc(right)?);
    // T_BS transforms from the sensor's frame into the body's.
    let (from, to) = (left.need("T_BS")?.motion()?, right.need("T_BS")?.motion()?);
    let (rotation, translation) = between(&from, &to);
    let sources = Sources {
        left: left.file().into(),
        right: right.file().into(),
        pose: format!("{} and {} (T_BS)", left.file(), right.file()),
        swap: format!("name the files in the order {},{}", right.file(), left.file()),
        files: format!("{},{}", left.file(), right.file()),
        ..Sources::default()
    };
    let (left, right) = cameras;
    let calibration = StereoCalibration { left, right, rotation, translation, rectification: None };
    Ok(Draft::new(calibration, sources))
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Loaded, ReadOptions, parse};
    use super::*;
    use crate::Lens;

    const INTRINSICS: &str = "  camera_model: pinhole\n  intrinsics: [461.6, 460.3, 362.7, 248.1]\n  \
                              resolution: [752, 480]\n";
    /// The right camera 0.11 m to the right of the left one, as Kalibr writes it.
    const BASELINE: &str = "  T_cn_cnm1:\n  - [1.0, 0.0, 0.0, -0.11]\n  - [0.0, 1.0, 0.0, 0.0]\n  - [0.0, \
                            0.0, 1.0, 0.0]\n  - [0.0, 0.0, 0.0, 1.0]\n";
    const RADTAN: &str =
        "  distortion_coeffs: [-0.27, 0.06, 0.0006, 0.0003]\n  distortion_model: radtan\n";

    fn loaded(text: &str) -> Result<Loaded, String> {
        parse(&[("k.yaml", text)], &ReadOptions::default()).map_err(|error| error.to_string())
    }

    fn rig(cam0: &str, cam1: &str) -> String {
        format!("cam0:\n{INTRINSICS}{RADTAN}{cam0}cam1:\n{INTRINSICS}{RADTAN}{cam1}")
    }

    /// Returns the transformation from the inertial sensor to a camera at x, turned by 90 degrees.
    fn from_imu(x: f64) -> String {
        format!(
            "  T_cam_imu:\n  - [0.0, 1.0, 0.0, {x:?}]\n  - [-1.0, 0.0, 0.0, 0.2]\n  - [0.0, 0.0, 1.0, \
             0.3]\n  - [0.0, 0.0, 0.0, 1.0]\n"
        )
    }

    #[test]
    fn poses_to_each_other_and_to_the_inertial_sensor() {
        let direct = loaded(&rig("", BASELINE)).unwrap();
        assert_eq!(direct.format, Format::Kalibr);
        assert_eq!(direct.calibration.translation, Vector3::new(-0.11, 0.0, 0.0));
        let mut lens = [0.0; 14];
        lens[..4].copy_from_slice(&[-0.27, 0.06, 0.0006, 0.0003]);
        assert_eq!(direct.calibration.right.lens, Lens::Brown(lens));

        let imu = (from_imu(0.05), from_imu(-0.06));
        let through = loaded(&rig(&imu.0, &imu.1)).unwrap().calibration;
        assert!((through.translation - direct.calibration.translation).norm() < 1e-15);
        assert!((through.rotation - direct.calibration.rotation).amax() < 1e-15);
        // The other direction, as some write it: the camera's place in the sensor's frame.
        let to_imu = |y: f64| {
            format!(
                "  T_imu_cam:\n  - [0.0, -1.0, 0.0, 0.2]\n  - [1.0, 0.0, 0.0, {y:?}]\n  - [0.0, 0.0, 1.0, \
                 -0.3]\n  - [0.0, 0.0, 0.0, 1.0]\n"
            )
        };
        let other = loaded(&rig(&to_imu(-0.05), &to_imu(0.06))).unwrap().calibration;
        assert!((other.translation - direct.calibration.translation).norm() < 1e-15);

        // Both, agreeing or not.
        loaded(&rig(&imu.0, &format!("{BASELINE}{}", imu.1))).unwrap();
        let wrong = from_imu(-0.07);
        let error = loaded(&rig(&imu.0, &format!("{BASELINE}{wrong}"))).unwrap_err();
        assert!(error.contains("cam1.T_cn_cnm1: contradicts"), "{error}");
    }

    #[test]
    fn a_third_camera_is_reached_along_the_chain() {
        // It looks down from 0.2 m above the right one, and has a larger image.
        let larger = INTRINSICS.replace("[752, 480]", "[1504, 960]");
        let above = "  T_cn_cnm1:\n  - [1.0, 0.0, 0.0, 0.0]\n  - [0.0, 0.0, -1.0, 0.2]\n  - [0.0, 1.0, 0.0, \
                     0.0]\n  - [0.0, 0.0, 0.0, 1.0]\n";
        let three = format!("{}cam2:\n{larger}{RADTAN}{above}", rig("", BASELINE));
        let options = ReadOptions { third: true, ..ReadOptions::default() };
        let found = parse(&[("k.yaml", &three)], &options).unwrap().calibration;
        assert_eq!((found.right.width, found.right.height), (1504, 960));
        assert_eq!(found.translation, Vector3::new(-0.11, 0.2, 0.0));
        assert_eq!(found.rotation * Vector3::y(), Vector3::z());
        // A chain of two is the pair of the left camera and the third one.
        let two = parse(&[("k.yaml", &rig("", BASELINE))], &options).unwrap().calibration;
        assert_eq!(two.translation, Vector3::new(-0.11, 0.0, 0.0));
    }

    #[test]
    fn fisheye_and_what_is_not_supported() {
        let equi = rig("", BASELINE).replace("radtan", "equi");
        let fisheye = Lens::Fisheye([-0.27, 0.06, 0.0006, 0.0003]);
        assert_eq!(loaded(&equi).unwrap().calibration.left.lens, fisheye);
        let none = rig("", BASELINE).replace(RADTAN, "  distortion_model: none\n");
        assert_eq!(loaded(&none).unwrap().calibration.left.lens, Lens::Brown([0.0; 14]));
        let three = rig("", BASELINE) + "cam2:\n" + INTRINSICS;
        assert!(loaded(&three).unwrap().notes[0].contains("more than two cameras"));
        for (text, words) in [
            (
                rig("", BASELINE).replace("pinhole", "omni"),
                "k.yaml:2: cam0.camera_model: the camera model \"omni\"",
            ),
            (rig("", BASELINE).replace("radtan", "fov"), "the lens model \"fov\""),
            (rig("", ""), "cam1: `T_cn_cnm1` is missing"),
            (rig("", &BASELINE.replace("-0.11", "0.11")), "--swap k.yaml"),
            (rig("", &BASELINE.replace("0.0, 0.0, 0.0, 1.0", "0.0, 0.0, 0.0, 2.0")), "0 0 0 1"),
            (
                rig("", BASELINE).replace("0.0003]", "0.0003, 0.1, 0.2]"),
                "6 distortion coefficients",
            ),
            (rig("", BASELINE).replace("cam1:", "cam3:"), "`cam1` is missing"),
        ] {
            let error = loaded(&text).unwrap_err();
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
