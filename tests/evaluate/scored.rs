//! Comparison with the scoring script of the test data, which this project does not ship: equal to
//! the last digit.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::data::data;
use crate::common::outcome::outcome;
use crate::common::program::stereod;

/// A Python that can run the script. If there is none, prints a note and returns nothing.
fn python() -> Option<String> {
    let find = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/python.sh");
    let (status, stdout, stderr) = outcome(Command::new(find).args(["numpy", "cv2"]));
    if status != 0 {
        eprintln!("skipped: {}", stderr.trim_end());
        return None;
    }
    Some(stdout.trim_end().to_owned())
}

/// Rounds the floats of a PFM file to the values of the map, which are scored.
fn round_to_sixteenths(path: &str) {
    let mut file = std::fs::read(path).unwrap();
    let lines = file.iter().enumerate().filter(|&(_, &byte)| byte == b'\n');
    let header = lines.map(|(at, _)| at + 1).nth(2).unwrap();
    for bytes in file[header..].as_chunks_mut().0 {
        *bytes = ((16.0 * f32::from_le_bytes(*bytes)).round() / 16.0).to_le_bytes();
    }
    std::fs::write(path, file).unwrap();
}

#[test]
fn figures_are_those_of_the_scoring_script() {
    let (Some(script), Some(python)) = (data("score.py"), python()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let map = folder.path().join("map.pfm");
    let map = map.to_str().unwrap();
    // Three masks; truth of non-occluded pixels alone; no mask, and pictures in JPEG; floats.
    for (item, flags) in [
        ("middlebury_v2/tsukuba", &[][..]),
        ("middlebury_v2/venus", &["--uniqueness", "40", "--min-disparity", "-3"]),
        ("kitti2015/000002_10", &["--cost", "census"]),
        ("middlebury_2006/aloe", &["--paths", "4"]),
        ("more/sceneflow_flyingthings/0", &["--cost", "ad", "--paths", "4"]),
        ("more/tartanair_clip/000008", &["--paths", "4"]),
    ] {
        let Some(item) = data(item) else { continue };
        let shown = item.to_str().unwrap();
        let arguments = ["evaluate", shown, "--json", "-", "--repeat", "1"];
        let (status, stdout, stderr) = outcome(&mut stereod(&[&arguments, flags].concat()));
        assert_eq!(status, 0, "{stderr}");
        let report: Value = serde_json::from_str(&stdout).unwrap();
        let ours = &report["datasets"][0]["items"][0];

        let text = std::fs::read_to_string(item.join("item.json")).unwrap();
        let about: Value = serde_json::from_str(&text).unwrap();
        let file = |eye: &str| item.join(about[eye].as_str().unwrap()).to_str().unwrap().to_owned();
        let (left, right, count) = (file("left"), file("right"), ours["disparities"].to_string());
        let arguments = ["match", &left, &right, "-o", map, "-q", "-d", &count];
        let (status, _, stderr) = outcome(&mut stereod(&[&arguments, flags].concat()));
        assert_eq!(status, 0, "{stderr}");

        round_to_sixteenths(map);

        for (fill, kind) in [("none", "unfilled"), ("kitti", "dense")] {
            let mut score = Command::new(&python);
            let (status, stdout, stderr) =
                outcome(score.arg("-B").arg(&script).args([shown, map, "--fill", fill]));
            assert_eq!(status, 0, "{stdout}{stderr}");
            let theirs: Value = serde_json::from_str(&stdout).unwrap();
            // Without a mask, the pixels near discontinuities are found in the truth.
            let disc = about["masks"]["disc"].as_str().map(|_| "disc");
            for area in ["nonocc", "all"].into_iter().chain(disc) {
                let theirs = theirs.get(area).unwrap_or(&Value::Null);
                let mut ours = ours[kind][area].clone();
                // The script does not separate too near from too far.
                ours.as_object_mut().map(|figures| figures.remove("nearer_valid"));
                assert_eq!(&ours, theirs, "{shown}, {kind}, {area}");
            }
            assert_eq!(ours["image_density"], theirs["image_density"], "{shown}");
        }
    }
}
