//! `stereod calibration refine`: turns that were put into calibrations of real recordings are found again.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use nalgebra::{Rotation3, Vector3};
use stereod_calibration::StereoCalibration;
use stereod_calibration::format::{self, Format, Report};

use super::*;
use crate::common::outcome::{ended, outcome_of, wait_until};

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
        let focal = |rig: &StereoCalibration| rig.rectifier(None).unwrap().geometry().focal_px;
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

/// A live camera that shows the first image of a recording for ever.
fn still(video: &str) -> String {
    format!(
        "filesrc location={video} ! decodebin ! videoconvert ! imagefreeze is-live=true ! \
         video/x-raw,framerate=10/1"
    )
}

/// Returns the rotations that a live run reports, and what it said. `until` is waited for.
fn live(folder: &Path, calibration: &str, limit: &str, until: &str) -> (Value, String) {
    let (left, right) = (still("l.mp4"), still("r.mp4"));
    let limit = format!("alignment.refine_deg={limit}");
    let mut command = stereod(&["run", "--headless", "--left", &left, "--right", &right]);
    command.args(["--calibration", calibration, "-d", "16", "--stats", "s.json", "--set", &limit]);
    command.args(["--set", "matching.paths=0", "--set", "matching.prior=0"]);
    let log = folder.join("log");
    let said = || fs::read_to_string(&log).unwrap();
    command.stdout(Stdio::null());
    let log_file = fs::File::create(&log).unwrap();
    let child = command.current_dir(folder).stderr(log_file).spawn().unwrap();
    wait_until(until, || said().contains(until));
    // SAFETY: the process is our child and not yet waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGTERM) }, 0);
    let (status, ..) = outcome_of(ended(child));
    assert_eq!(status, 0, "{}", said());
    let text = fs::read_to_string(folder.join("s.json")).unwrap();
    let statistics: Value = serde_json::from_str(&text).unwrap();
    (statistics["alignment"]["refined_deg"].clone(), said())
}

#[test]
fn a_live_run_turns_a_bumped_camera_back_within_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let Some(good) = recording(folder.path()) else { return };
    write(&good, &folder.path().join("good.toml"));
    let (best, _) = refined(folder.path(), "good.toml", "best.toml");
    write(&bumped(&best, [0.6, 0.0, -0.5]), &folder.path().join("bumped.toml"));
    let (turned, said) = live(folder.path(), "bumped.toml", "2", "rows aligned again");
    assert_eq!(said.matches("calibration refined").count(), 1, "{said}");
    let turned: Vec<_> = turned.as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect();
    // The rectified frame is nearly that of the camera; yaw shows little in one picture.
    assert!((turned[0] + 0.6).abs() < 0.05 && (turned[2] - 0.5).abs() < 0.05, "{turned:?} {said}");

    let (turned, said) = live(folder.path(), "bumped.toml", "0.4", "refine_deg allows 0.4");
    assert!(turned.is_null() && !said.contains("calibration refined"), "{said}");
}

#[test]
fn the_calibration_of_a_recording_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let Some(good) = recording(folder.path()) else { return };
    write(&good, &folder.path().join("good.toml"));
    let run = ["run", "--headless", "--frames", "1", "-d", "16", "--set", "alignment.refine_deg=1"];
    for (source, words) in [
        (
            &["--left", "l.mp4", "--right", "r.mp4", "--calibration", "good.toml"][..],
            "calibration refine`",
        ),
        (&["--demo"], "there is no calibration of raw pictures"),
    ] {
        let (status, _, said) =
            outcome(stereod(&[&run, source].concat()).current_dir(folder.path()));
        assert!(status == 0 && said.contains(words), "{status} {said}");
    }
}
