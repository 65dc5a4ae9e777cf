//! Comparison with OpenCV's rectification of recorded rigs, if the recordings are available.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use nalgebra::Matrix3x4;
use stereod::Eye;
use stereod_calibration::{StereoCalibration, format};
use stereod_core::frame::{Image, StereoPair};
use stereod_core::picture::still::read_still;
use stereod_core::picture::tone::Tone;
use stereod_core::rectify::Rectifier;
use stereod_io::control::Switch;
use stereod_io::source::gst::{GstOptions, open};
use stereod_io::source::spec::SourceSpec;

use super::register::{mean_difference, shift};
use crate::common::data::data;

/// Pixels at the border that are not compared.
const MARGIN: usize = 12;

fn calibration(folder: &Path, files: &[&str]) -> StereoCalibration {
    let files: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
    format::read(&files).unwrap_or_else(|error| panic!("{error}")).calibration
}

/// Pair `number` of two videos.
fn frame(left: &Path, right: &Path, number: u64) -> StereoPair {
    let [left, right] = [left, right].map(|path| path.display().to_string());
    let spec = SourceSpec::two(left, right);
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
    let rectifier = calibration.rectifier(None).unwrap();
    for number in (0..6).map(|i| 16 * i) {
        for (eye, camera) in [(Eye::Left, "cam0"), (Eye::Right, "cam1")] {
            let name = format!("png/{camera}/{number:06}.png");
            let raw = read_still(&folder.join(&name), Tone::default()).unwrap();
            let theirs =
                read_still(&folder.join("rectified").join(&name), Tone::default()).unwrap();
            check(&name, &rectified(&rectifier, eye, &raw), &theirs, 0.6);
        }
    }
}

/// Every 80th pixel from (40, 40) of frame 70 of the OAK-D's videos, as cv2.initUndistortRectifyMap
/// and cv2.remap (OpenCV 4.10, bilinear) rectify their luma planes with stereo_opencv.json.
const OAKD_LEFT: [[u8; 16]; 10] = [
    [218, 74, 174, 75, 61, 38, 26, 24, 27, 23, 22, 22, 24, 37, 102, 128],
    [169, 46, 163, 35, 28, 33, 43, 35, 37, 41, 29, 16, 21, 49, 132, 119],
    [181, 179, 57, 43, 47, 37, 46, 50, 55, 49, 66, 89, 36, 131, 129, 132],
    [57, 64, 83, 72, 115, 59, 89, 94, 84, 92, 120, 173, 153, 132, 149, 153],
    [235, 184, 124, 99, 103, 87, 93, 139, 136, 124, 207, 224, 152, 229, 233, 142],
    [175, 235, 233, 235, 235, 179, 137, 235, 149, 227, 184, 196, 174, 213, 181, 230],
    [156, 192, 130, 102, 109, 235, 157, 235, 235, 234, 235, 232, 203, 178, 235, 234],
    [145, 126, 120, 110, 111, 104, 102, 235, 213, 235, 235, 235, 235, 235, 235, 235],
    [102, 128, 235, 126, 111, 136, 149, 156, 233, 235, 235, 235, 235, 235, 235, 235],
    [126, 129, 111, 137, 100, 107, 158, 176, 229, 139, 138, 135, 107, 207, 213, 220],
];
/// See [`OAKD_LEFT`].
const OAKD_RIGHT: [[u8; 16]; 10] = [
    [235, 118, 87, 72, 25, 28, 25, 25, 28, 24, 24, 23, 46, 96, 110, 122],
    [161, 59, 88, 34, 27, 34, 44, 39, 39, 42, 35, 21, 24, 121, 134, 121],
    [178, 49, 46, 45, 50, 33, 48, 47, 56, 53, 71, 94, 126, 130, 134, 139],
    [43, 75, 59, 53, 104, 32, 81, 106, 81, 88, 110, 199, 193, 146, 177, 200],
    [235, 174, 116, 141, 124, 110, 106, 117, 112, 112, 194, 172, 214, 171, 194, 178],
    [151, 146, 233, 235, 233, 184, 226, 234, 144, 230, 197, 154, 155, 187, 198, 235],
    [60, 175, 125, 117, 108, 147, 235, 235, 234, 205, 235, 223, 234, 235, 235, 209],
    [123, 116, 112, 115, 91, 92, 234, 217, 235, 235, 235, 235, 235, 235, 235, 235],
    [115, 233, 230, 107, 126, 137, 139, 229, 234, 235, 235, 235, 235, 235, 235, 235],
    [138, 118, 114, 106, 94, 98, 151, 199, 167, 138, 136, 127, 188, 204, 212, 228],
];

#[test]
fn oak_d_pictures_are_those_of_opencv() {
    let Some(folder) = data("oakd_patio") else { return };
    let calibration = calibration(&folder, &["stereo_opencv.json"]);
    let rectifier = calibration.rectifier(None).unwrap();
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

/// Compares only the rotations: OpenCV chose the focal length in another way when these numbers
/// were made.
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

/// The rows of the two views correspond after rectification, and do not before.
#[test]
fn rectified_rows_correspond() {
    let Some(folder) = data("euroc_v1_01") else { return };
    let rectifier = calibration(&folder, &["kalibr_camchain.yaml"]).rectifier(None).unwrap();
    let read = |camera: &str| {
        read_still(&folder.join("png").join(camera).join("000000.png"), Tone::default()).unwrap()
    };
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

/// Median over blocks of the row difference at which blocks of the left image agree best with the
/// right one, over a range of disparities.
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
