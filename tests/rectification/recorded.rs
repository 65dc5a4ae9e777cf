//! Against what OpenCV makes of recorded rigs, where they are at hand.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use nalgebra::Matrix3x4;
use stereod::calibration::format;
use stereod::calibration::{Rectifier, StereoCalibration};
use stereod::control::Switch;
use stereod::frame::{Eye, Image, StereoPair};
use stereod::source::gst::{GstOptions, StreamSpec, open};
use stereod::source::still::read_still;

use crate::register::{mean_difference, shift};

/// Pixels at the border that are not compared.
const MARGIN: usize = 12;

/// A folder of recordings, or nothing with a visible note.
fn data(below: &str) -> Option<PathBuf> {
    let root = std::env::var_os("STEREOD_TEST_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"),
        PathBuf::from,
    );
    let path = root.join(below);
    if !path.exists() {
        eprintln!("skipped: no {}; set STEREOD_TEST_DATA", path.display());
        return None;
    }
    Some(path)
}

fn calibration(folder: &Path, files: &[&str]) -> StereoCalibration {
    let files: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
    format::read(&files).unwrap_or_else(|error| panic!("{error}")).calibration
}

/// Pair `number` of two videos.
fn frame(left: &Path, right: &Path, number: u64) -> StereoPair {
    let [left, right] = [left, right].map(|path| path.display().to_string());
    let spec = StreamSpec::Two { left, right };
    let mut source = open(&spec, &GstOptions::default()).unwrap();
    let mut found = None;
    source
        .run(&Switch::default(), &mut |pair, _| match pair.sequence == number {
            true => {
                found = Some(pair);
                ControlFlow::Break(())
            }
            false => ControlFlow::Continue(()),
        })
        .unwrap();
    found.unwrap()
}

fn rectified(rectifier: &Rectifier, eye: Eye, raw: &Image) -> Image {
    let (width, height) = rectifier.size();
    let mut pixels = vec![0; width * height];
    rectifier.map(eye).apply(raw, &mut pixels);
    Image::from_vec(width, height, pixels)
}

/// Compares a picture with OpenCV's.
fn check(name: &str, ours: &Image, theirs: &Image, most: f64) {
    let (mean, [dx, dy]) = (mean_difference(ours, theirs, MARGIN), shift(ours, theirs, MARGIN));
    eprintln!("{name}: mean difference {mean:.4} grey levels, shift {dx:+.5}, {dy:+.5} px");
    assert!(mean < most, "{name}: {mean} grey levels");
    assert!(dx.abs() < 0.05 && dy.abs() < 0.05, "{name}: shifted by {dx}, {dy}");
}

#[test]
fn euroc_pictures_are_those_of_opencv() {
    let Some(folder) = data("euroc_v1_01") else { return };
    let calibration = calibration(&folder, &["left.yaml", "right.yaml"]);
    let rectifier = Rectifier::new(&calibration, None).unwrap();
    for number in (0..6).map(|i| 16 * i) {
        for (eye, camera) in [(Eye::Left, "cam0"), (Eye::Right, "cam1")] {
            let name = format!("png/{camera}/{number:06}.png");
            let raw = read_still(&folder.join(&name)).unwrap();
            let theirs = read_still(&folder.join("rectified").join(&name)).unwrap();
            check(&name, &rectified(&rectifier, eye, &raw), &theirs, 0.6);
        }
    }
}

/// Every 80th pixel from (40, 40) of frame 70 of the OAK-D's videos, as cv2.initUndistortRectifyMap
/// and cv2.remap (OpenCV 4.10, bilinear) rectify their luma planes with stereo_opencv.json.
const OAKD_LEFT: [[u8; 16]; 10] = [
    [218, 72, 171, 70, 58, 34, 25, 24, 27, 23, 21, 22, 25, 34, 97, 123],
    [165, 44, 159, 34, 27, 33, 43, 35, 37, 38, 29, 17, 21, 47, 126, 114],
    [178, 173, 55, 42, 45, 35, 45, 48, 54, 45, 61, 81, 35, 128, 126, 126],
    [55, 62, 81, 71, 116, 56, 85, 91, 81, 95, 111, 170, 150, 126, 142, 145],
    [235, 209, 158, 93, 102, 83, 92, 144, 125, 122, 207, 227, 147, 225, 234, 140],
    [171, 235, 235, 235, 235, 175, 139, 235, 145, 222, 186, 192, 166, 207, 172, 230],
    [146, 177, 133, 87, 116, 163, 172, 235, 235, 234, 235, 231, 202, 178, 235, 234],
    [129, 121, 117, 107, 107, 115, 234, 184, 235, 235, 235, 235, 235, 235, 235, 235],
    [101, 163, 233, 113, 108, 147, 142, 174, 235, 235, 235, 235, 235, 235, 235, 235],
    [119, 126, 106, 126, 100, 106, 150, 200, 220, 138, 136, 130, 104, 205, 210, 216],
];
/// See [`OAKD_LEFT`].
const OAKD_RIGHT: [[u8; 16]; 10] = [
    [235, 113, 82, 70, 24, 27, 24, 25, 26, 23, 23, 21, 38, 92, 104, 116],
    [155, 55, 86, 33, 25, 33, 43, 36, 37, 40, 34, 19, 23, 118, 131, 119],
    [172, 48, 45, 43, 49, 33, 45, 45, 53, 51, 64, 89, 117, 132, 130, 135],
    [41, 74, 57, 51, 106, 31, 78, 104, 80, 87, 100, 194, 204, 141, 173, 195],
    [235, 184, 121, 142, 103, 104, 104, 114, 110, 114, 200, 175, 206, 166, 191, 175],
    [150, 150, 235, 235, 232, 186, 235, 146, 140, 230, 190, 149, 153, 179, 198, 236],
    [59, 236, 129, 112, 234, 146, 235, 235, 234, 209, 235, 216, 235, 235, 234, 204],
    [113, 110, 106, 109, 92, 168, 182, 204, 235, 235, 235, 235, 235, 235, 235, 235],
    [110, 235, 133, 101, 125, 122, 142, 235, 235, 235, 235, 235, 235, 235, 235, 235],
    [134, 111, 108, 105, 94, 109, 161, 207, 150, 134, 128, 123, 179, 196, 205, 224],
];

#[test]
fn oak_d_pictures_are_those_of_opencv() {
    let Some(folder) = data("oakd_patio") else { return };
    let calibration = calibration(&folder, &["stereo_opencv.json"]);
    let rectifier = Rectifier::new(&calibration, None).unwrap();
    let raw = frame(&folder.join("left.mp4"), &folder.join("right.mp4"), 70);
    let [left, right] = rectifier.rectify_pair(&raw);
    for (eye, ours, theirs) in [(Eye::Left, &left, OAKD_LEFT), (Eye::Right, &right, OAKD_RIGHT)] {
        let pixels = theirs.iter().enumerate().flat_map(|(row, values)| {
            values.iter().enumerate().map(move |(column, &value)| {
                ours.row(40 + 80 * row)[40 + 80 * column].abs_diff(value)
            })
        });
        let differences: Vec<u8> = pixels.collect();
        let mean = differences.iter().map(|&d| f64::from(d)).sum::<f64>() / 160.0;
        eprintln!("{eye}: mean difference {mean:.3} of 160 pixels, {:?}", differences.iter().max());
        assert!(mean < 0.6, "{eye}: {differences:?}");
    }
    // The same frame after OpenCV and a lossy encoder: its noise is more than 0.6 grey levels.
    let theirs = frame(&folder.join("rectified/left.mp4"), &folder.join("rectified/right.mp4"), 10);
    check("oakd_patio left", &left, &theirs.left, 2.5);
    check("oakd_patio right", &right, &theirs.right, 2.5);
}

/// The largest difference of two projections.
fn off(a: &Matrix3x4<f64>, b: &Matrix3x4<f64>) -> f64 {
    (a - b).amax()
}

#[test]
fn rotations_and_projections_are_those_of_the_files() {
    let rigs = [
        ("oakd_patio", vec!["stereo_opencv.json"], 0.0),
        ("opencv_calib", vec!["reference_stereo.json"], 0.0),
    ];
    for (below, files, alpha) in rigs {
        let Some(folder) = data(below) else { continue };
        let calibration = calibration(&folder, &files);
        let expected = calibration.rectification.as_ref().expect("R1, R2, P1, P2");
        let size = (expected.width, expected.height);
        let found = calibration.rectify(Some(alpha), size).unwrap();
        for (eye, found, expected) in
            [("left", &found.left, &expected.left), ("right", &found.right, &expected.right)]
        {
            let rotation = (found.rotation - expected.rotation).amax();
            let projection = off(&found.projection, &expected.projection);
            eprintln!("{below} {eye}: off by {rotation:.2e}, {projection:.2e}");
            assert!(rotation < 1e-6 && projection < 1e-6, "{rotation} {projection}");
        }
    }
}

/// The rotations only: OpenCV chose the focal length in another way when these numbers were made.
#[test]
fn euroc_rotations_are_those_of_the_files() {
    let Some(folder) = data("euroc_v1_01") else { return };
    let prescribed = calibration(&folder, &["left.yaml", "right.yaml"]).rectification.unwrap();
    let rig = calibration(&folder, &["kalibr_camchain.yaml"]);
    let found = rig.rectify(Some(0.0), (752, 480)).unwrap();
    for (found, expected) in [(&found.left, &prescribed.left), (&found.right, &prescribed.right)] {
        let rotation = (found.rotation - expected.rotation).amax();
        eprintln!("euroc: off by {rotation:.2e}");
        assert!(rotation < 1e-6, "{rotation}");
    }
}

/// Rows of the two eyes correspond after rectification, which they do not before.
#[test]
fn rectified_rows_correspond() {
    let Some(folder) = data("euroc_v1_01") else { return };
    let rectifier = Rectifier::new(&calibration(&folder, &["kalibr_camchain.yaml"]), None).unwrap();
    let read =
        |camera: &str| read_still(&folder.join("png").join(camera).join("000000.png")).unwrap();
    let (left, right) = (read("cam0"), read("cam1"));
    let before = row_error(&left, &right);
    let after = row_error(
        &rectified(&rectifier, Eye::Left, &left),
        &rectified(&rectifier, Eye::Right, &right),
    );
    eprintln!("rows differ by {before:+.2} px before, {after:+.2} px after");
    assert!(before.abs() > 2.0, "{before}");
    assert!(after.abs() < 0.3, "{after}");
}

/// The median over blocks of the row difference at which blocks of the left picture agree best with
/// the right one, over a range of disparities.
fn row_error(left: &Image, right: &Image) -> f64 {
    const SIDE: usize = 15;
    let mut rows = Vec::new();
    for y in (60..left.height() - 60).step_by(24) {
        for x in (150..left.width() - 60).step_by(24) {
            let block = |image: &Image, x: usize, y: usize| -> Vec<i32> {
                let pixels =
                    (0..SIDE * SIDE).map(|i| i32::from(image.row(y + i / SIDE)[x + i % SIDE]));
                pixels.collect()
            };
            let own = block(left, x, y);
            let mean = own.iter().sum::<i32>() / own.len() as i32;
            if own.iter().map(|v| (v - mean).abs()).sum::<i32>() < 12 * own.len() as i32 {
                continue;
            }
            let cost = |dy: i32, d: usize| -> i32 {
                let other = block(right, x - d, (y as i32 + dy) as usize);
                own.iter().zip(&other).map(|(a, b)| (a - b).abs()).sum()
            };
            let least = |dy: i32| (0..64).map(|d| cost(dy, d)).min().unwrap();
            let costs: Vec<i32> = (-12..=12).map(least).collect();
            let best = (0..costs.len()).min_by_key(|&i| costs[i]).unwrap();
            if best == 0 || best + 1 == costs.len() {
                continue;
            }
            let [a, b, c] = [costs[best - 1], costs[best], costs[best + 1]].map(f64::from);
            rows.push(best as f64 - 12.0 + (a - c) / (2.0 * (a + c - 2.0 * b)).max(1.0));
        }
    }
    assert!(rows.len() > 30, "{} blocks with texture", rows.len());
    rows.sort_by(f64::total_cmp);
    rows[rows.len() / 2]
}
