//! Settings of ORB-SLAM2 and ORB-SLAM3 (github.com/UZ-SLAMLab/ORB_SLAM3, `Settings.cc`): YAML of OpenCV with the
//! left camera as `Camera1.fx` and so on (before version 1.0 `Camera.fx`), the right one as `Camera2.fx`, and
//! `Stereo.T_c1_c2` (before `Tlr`), which leads from the right camera to the left one. Rectified images have one
//! camera, and `Stereo.b` or `Camera.bf`. Files with `LEFT.K` are read as OpenCV's.

use super::draft::{Draft, ReadOptions};
use super::kalibr::inverse;
use super::lens::{self, Model};
use super::rectified::{self, Eye, Pair};
use super::tree::At;
use crate::check::Sources;
use crate::error::Result;
use crate::{Camera, Lens, StereoCalibration};

/// Prefixes of the left camera's keys.
const LEFT: [&str; 2] = ["Camera1", "Camera"];
const RIGHT: &str = "Camera2";
const POSE: [&str; 2] = ["Stereo.T_c1_c2", "Tlr"];

fn prefix(root: &At) -> Option<&'static str> {
    LEFT.into_iter().find(|prefix| root.get(&format!("{prefix}.fx")).is_some())
}

pub(super) fn is_settings(root: &At) -> bool {
    prefix(root).is_some() && root.get("LEFT.K").is_none()
}

fn number(root: &At, camera: &str, key: &str) -> Result<f64> {
    root.need(&format!("{camera}.{key}"))?.number()
}

/// Returns focal lengths and principal point.
fn pinhole(root: &At, camera: &str) -> Result<Eye> {
    let of = |key: &str| number(root, camera, key);
    Ok(Eye { focal: [of("fx")?, of("fy")?], centre: [of("cx")?, of("cy")?] })
}

fn lens(root: &At, camera: &str, model: Model) -> Result<Lens> {
    let names: &[&str] = match model {
        Model::Fisheye => &["k1", "k2", "k3", "k4"],
        _ => &["k1", "k2", "p1", "p2", "k3"],
    };
    // All but k3 are there, or none.
    let first = root.get(&format!("{camera}.k1"));
    let used = first.map_or(&names[..0], |_| {
        match root.get(&format!("{camera}.{}", names[names.len() - 1])) {
            Some(_) => names,
            None => &names[..4],
        }
    });
    let coefficients = used.iter().map(|name| number(root, camera, name));
    lens::lens(model, &coefficients.collect::<Result<Vec<_>>>()?).map_err(|what| root.error(what))
}

fn size(root: &At, options: &ReadOptions) -> Result<(usize, usize)> {
    match (root.get("Camera.width"), root.get("Camera.height"), options.size) {
        (Some(width), Some(height), _) => Ok((width.side()?, height.side()?)),
        (_, _, Some(size)) => Ok(size),
        _ => Err(rectified::without_size(root.file())),
    }
}

pub(super) fn read(root: &At, options: &ReadOptions) -> Result<Draft> {
    let file = root.file();
    let left = prefix(root).unwrap_or(LEFT[0]);
    if root.get("DepthMapFactor").or_else(|| root.get("RGBD.DepthMapFactor")).is_some() {
        return Err(root.error(
            "settings of ORB-SLAM for a depth camera (DepthMapFactor), not for a stereo pair",
        ));
    }
    let size = size(root, options)?;
    let Some(pose) = root.any(&POSE) else { return of_rectified(root, left, size) };
    let kind = root.need("Camera.type")?;
    let model = lens::named(&kind)?;
    let camera = |name: &str| -> Result<Camera> {
        let Eye { focal, centre } = pinhole(root, name)?;
        let lens = lens(root, name, model)?;
        Ok(Camera { width: size.0, height: size.1, focal, centre, skew: 0.0, lens })
    };
    let (rotation, translation) = inverse(&pose.motion()?);
    let calibration = StereoCalibration {
        left: camera(left)?,
        right: camera(RIGHT)?,
        rotation,
        translation,
        rectification: None,
    };
    let sources = Sources::of_file(file, [left, RIGHT, pose.path(), "rectification"]);
    Ok(Draft::new(calibration, sources.convertible(file)))
}

fn of_rectified(root: &At, left: &str, size: (usize, usize)) -> Result<Draft> {
    let (file, eye) = (root.file(), pinhole(root, left)?);
    let baseline_m = match (root.get("Stereo.b"), root.get("Camera.bf")) {
        (Some(baseline), _) => baseline.number()?,
        (_, Some(product)) => product.number()? / eye.focal[0],
        _ => {
            return Err(root.error(
                "settings of ORB-SLAM for one camera; those of a pair have Camera2.fx and Stereo.T_c1_c2, or \
                 Stereo.b or Camera.bf if the pictures are rectified",
            ));
        }
    };
    let mut notes = Vec::new();
    if lens(root, left, Model::Brown)? != Lens::Brown([0.0; 14]) {
        notes.push(format!(
            "{file}: without Stereo.T_c1_c2 and LEFT.K the pictures are taken as rectified, and the coefficients \
             of the lens are left out"
        ));
    }
    let right = Eye { ..eye };
    let draft =
        rectified::draft(Pair { file, keys: [left, left], size, left: eye, right, baseline_m });
    Ok(Draft { notes, ..draft })
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Loaded, parse};
    use super::*;

    /// As in the examples of ORB-SLAM3, whose keys need no blank after them.
    const FISHEYE: &str = "%YAML:1.0\n\nFile.version: \"1.0\"\nCamera.type: \"KannalaBrandt8\"\n\
        Camera1.fx: 190.9\nCamera1.fy: 190.8\nCamera1.cx: 254.9\nCamera1.cy: 256.8\n\
        Camera1.k1: 0.003\nCamera1.k2: 0.0007\nCamera1.k3: -0.002\nCamera1.k4: 0.0002\n\
        Camera2.fx: 190.4\nCamera2.fy: 190.3\nCamera2.cx: 252.5\nCamera2.cy: 254.9\n\
        Camera2.k1: 0.0034\nCamera2.k2: 0.0017\nCamera2.k3: -0.0026\nCamera2.k4: 0.0003\n\
        Stereo.T_c1_c2: !!opencv-matrix\n  rows: 4\n  cols: 4\n  dt: f\n  data:[ 1.0, 0.0, 0.0, 0.101,\n\
        \x20   0.0, 1.0, 0.0, 0.002,\n    0.0, 0.0, 1.0, 0.001,\n    0.0,0.0,0.0,1.0]\n\
        Camera.width: 512\nCamera.height: 512\nViewer.PointSize:2\n";

    const RECTIFIED: &str = "%YAML:1.0\nCamera.type: \"Rectified\"\nCamera1.fx: 718.856\nCamera1.fy: 718.856\n\
        Camera1.cx: 607.1928\nCamera1.cy: 185.2157\nCamera.width: 1241\nCamera.height: 376\nStereo.b: 0.53716\n";

    fn read(text: &str) -> Result<Loaded> {
        parse(&[("orb.yaml", text)], &ReadOptions::default())
    }

    #[test]
    fn raw_pairs_of_both_models_and_versions_are_read() {
        let loaded = read(FISHEYE).unwrap();
        assert_eq!((loaded.format, loaded.notes.len()), (Format::OrbSlam, 0), "{:?}", loaded.notes);
        let StereoCalibration { left, right, translation, .. } = &loaded.calibration;
        assert_eq!(left.lens, Lens::Fisheye([0.003, 0.0007, -0.002, 0.0002]));
        assert_eq!((right.focal, right.centre), ([190.4, 190.3], [252.5, 254.9]));
        // The file's pose leads from the right camera to the left one.
        assert_eq!(<[f64; 3]>::from(*translation), [-0.101, -0.002, -0.001]);
        // Before version 1.0.
        let old = FISHEYE.replace("Camera1.", "Camera.").replace("Stereo.T_c1_c2", "Tlr");
        let old = old.replace("rows: 4", "rows: 3").replace(",\n    0.0,0.0,0.0,1.0]", "]");
        assert_eq!(read(&old).unwrap().calibration, loaded.calibration);
        let pinhole =
            FISHEYE.replace("KannalaBrandt8", "PinHole").replace("k3", "p1").replace("k4", "p2");
        let mut lens = [0.0; 14];
        lens[..4].copy_from_slice(&[0.003, 0.0007, -0.002, 0.0002]);
        assert_eq!(read(&pinhole).unwrap().calibration.left.lens, Lens::Brown(lens));
    }

    #[test]
    fn rectified_pairs_are_read() {
        let loaded = read(RECTIFIED).unwrap();
        assert!(loaded.calibration.comes_rectified() && loaded.notes.is_empty());
        assert_eq!(loaded.calibration.translation.x, -0.53716);
        let old = RECTIFIED
            .replace("Camera1.", "Camera.")
            .replace("Stereo.b: 0.53716", "Camera.bf: 71.8856");
        assert!((read(&old).unwrap().calibration.translation.x + 0.1).abs() < 1e-12);
        let bent = read(
            &(old.clone() + "Camera.k1: 0.1\nCamera.k2: 0.1\nCamera.p1: 0.0\nCamera.p2: 0.0\n"),
        );
        assert!(bent.unwrap().notes[0].contains("taken as rectified"));
        for (text, words) in [
            (old.replace("Camera.bf: 71.8856", ""), "for one camera"),
            (old.clone() + "DepthMapFactor: 5000.0\n", "for a depth camera"),
            (FISHEYE.replace("Camera2.fy: 190.3\n", ""), "`Camera2.fy` is missing"),
            (FISHEYE.replace("KannalaBrandt8", "Omni"), "the lens model \"Omni\""),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
