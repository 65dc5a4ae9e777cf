//! `stereod calibration refine`: turns that were put into calibrations of real recordings are found again.

use std::fs;
use std::path::Path;

use nalgebra::{Rotation3, Vector3};
use stereod_core::calibration::format::{self, Format, Report};
use stereod_core::calibration::{Rectifier, StereoCalibration};

use super::*;

/// Copies the recording into a folder as `l.mp4` and `r.mp4`.
fn recording(folder: &Path) -> Option<StereoCalibration> {
    let root = data("")?;
    for (from, to) in [("cam0.mp4", "l.mp4"), ("cam1.mp4", "r.mp4")] {
        fs::copy(root.join("euroc_v1_01").join(from), folder.join(to)).unwrap();
    }
    Some(read(&root, EUROC_SENSORS).calibration)
}

fn write(calibration: &StereoCalibration, path: &Path) {
    let texts = format::render(calibration, &Report::default(), Format::Own).unwrap();
    fs::write(path, texts.concat()).unwrap();
}

/// Turns the right camera by these degrees about x, y and z.
fn bumped(calibration: &StereoCalibration, degrees: [f64; 3]) -> StereoCalibration {
    let turn = Rotation3::new(Vector3::from(degrees.map(f64::to_radians))).into_inner();
    StereoCalibration {
        rotation: turn * calibration.rotation,
        translation: turn * calibration.translation,
        ..calibration.clone()
    }
}

fn refine(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = stereod(&[&["calibration", "refine", "l.mp4", "r.mp4"], arguments].concat());
    outcome(command.current_dir(folder))
}

fn refined(folder: &Path, from: &str, to: &str) -> (StereoCalibration, String) {
    let (status, stdout, stderr) = refine(folder, &["--calibration", from, "-o", to]);
    assert_eq!(status, 0, "{stderr}");
    (format::read(&[folder.join(to)]).unwrap().calibration, stdout)
}

/// Degrees between two rotations about each axis.
fn turned(from: &StereoCalibration, to: &StereoCalibration) -> Vector3<f64> {
    let between = to.rotation * from.rotation.transpose();
    Rotation3::from_matrix_unchecked(between).scaled_axis().map(f64::to_degrees)
}

#[test]
fn a_bumped_camera_is_turned_back() {
    let folder = tempfile::tempdir().unwrap();
    let Some(good) = recording(folder.path()) else { return };
    write(&good, &folder.path().join("good.toml"));
    let (best, _) = refined(folder.path(), "good.toml", "best.toml");
    // The factory's calibration has small errors of its own.
    let own = turned(&good, &best);
    assert!(own.x.abs() < 0.1 && own.z.abs() < 0.1 && own.y.abs() < 0.5, "{own}");
    for (name, degrees) in
        [("pitch", [0.5, 0.0, 0.0]), ("yaw", [0.0, 0.8, 0.0]), ("all", [-0.4, 0.6, 0.5])]
    {
        write(&bumped(&good, degrees), &folder.path().join("bumped.toml"));
        let (again, said) = refined(folder.path(), "bumped.toml", &format!("{name}.toml"));
        let off = turned(&best, &again);
        assert!(
            off.x.abs() < 0.02 && off.y.abs() < 0.1 && off.z.abs() < 0.02,
            "{name}: {off} {said}"
        );
        assert!(said.contains("pitch: ") && !said.contains("not determined"), "{said}");
        // Both show nearly the same.
        let focal =
            |rig: &StereoCalibration| Rectifier::new(rig, None).unwrap().geometry().focal_px;
        assert!((focal(&best) - focal(&again)).abs() < 2.0, "{name}");
    }
}

#[test]
fn what_cannot_be_refined_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let Some(good) = recording(folder.path()) else { return };
    write(&good, &folder.path().join("good.toml"));
    fs::write(folder.path().join("there.toml"), "kept").unwrap();
    for (arguments, status, words) in [
        (&["--calibration", "good.toml", "-o", "there.toml"][..], 2, "exists and is kept"),
        (&["--calibration", "good.toml", "-o", "out.yml"], 2, "written as .toml"),
        (&["-o", "out.toml"], 2, "nothing to refine"),
    ] {
        let (found, _, stderr) = refine(folder.path(), arguments);
        assert!(found == status && stderr.contains(words), "{found} {stderr}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("there.toml")).unwrap(), "kept");
    // A wall without texture.
    let grey = "videotestsrc num-buffers=8 pattern=solid-color foreground-color=0xff808080 ! \
                video/x-raw,format=GRAY8,width=752,height=480";
    let blank =
        ["calibration", "refine", grey, grey, "--calibration", "good.toml", "-o", "out.toml"];
    let (status, _, stderr) = outcome(stereod(&blank).current_dir(folder.path()));
    assert!(status == 1 && stderr.contains("too few points in common"), "{status} {stderr}");
    assert!(!folder.path().join("out.toml").exists());
}
