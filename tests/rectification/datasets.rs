//! Calibrations of data sets with rectified images, and images that do not fit a calibration.

use std::path::Path;

use stereod_core::frame::Image;
use stereod_core::picture::png::encode_grey;

use crate::common::outcome::outcome;
use crate::common::program::stereod;

/// Disparity of the whole scene.
const DISPARITY: usize = 8;

const MIDDLEBURY: &str = "\
cam0=[120 0 80; 0 120 48; 0 0 1]
cam1=[120 0 84; 0 120 48; 0 0 1]
doffs=4
baseline=50
width=160
height=96
ndisp=16
";

const KITTI: &str = "\
P0: 120 0 80 0 0 120 48 0 0 0 1 0
P1: 120 0 80 -6.5 0 120 48 0 0 0 1 0
P2: 120 0 80 0.6 0 120 48 0 0 0 1 0
P3: 120 0 80 -5.4 0 120 48 0 0 0 1 0
R0_rect: 1 0 0 0 1 0 0 0 1
";

/// Exit status and standard error of `stereod ARGUMENTS` in a folder.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let (status, _, stderr) = outcome(stereod(arguments).current_dir(folder));
    (status, stderr)
}

/// An image of noise that is shifted by `shift` pixels to the left of another one.
fn noise(width: usize, height: usize, shift: usize) -> Image {
    let grey = |x: usize, y: usize| {
        let mut h = ((x + shift) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ ((y as u64) << 32);
        h = (h ^ (h >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        (h >> 40) as u8
    };
    Image::from_fn(width, height, grey)
}

/// A folder with both calibrations and pictures of both views in this size.
fn folder(width: usize, height: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, shift) in [("l.png", 0), ("r.png", DISPARITY)] {
        let file = encode_grey(noise(width, height, shift).pixels(), width, height).unwrap();
        std::fs::write(folder.path().join(name), file).unwrap();
    }
    std::fs::write(folder.path().join("middlebury.txt"), MIDDLEBURY).unwrap();
    std::fs::write(folder.path().join("kitti.txt"), KITTI).unwrap();
    folder
}

#[test]
fn depth_is_that_of_the_data_sets() {
    let folder = folder(160, 96);
    for (file, millimetres, words) in [
        // Z = f B / (d + doffs) = 120 * 50 mm / (8 + 4).
        ("middlebury.txt", 500, "16 disparities"),
        // Z = f B / d = 120 * (0.6 + 5.4) / 120 * 1000 mm / 8.
        ("kitti.txt", 750, "(P2, P3)"),
    ] {
        let arguments = ["match", "l.png", "r.png", "--calibration", file, "-d", "16"];
        // In whole pixels, as the truth is.
        let more = ["--subpixel", "off", "--depth", "-o", "depth.png"];
        let (status, stderr) = run(folder.path(), &[&arguments[..], &more].concat());
        assert_eq!(status, 0, "{file}: {stderr}");
        assert!(stderr.contains("come rectified") && stderr.contains(words), "{stderr}");
        let depth = image::open(folder.path().join("depth.png")).unwrap().into_luma16();
        let pixels: Vec<u16> =
            depth.enumerate_pixels().filter(|(x, ..)| *x > 24).map(|(.., p)| p.0[0]).collect();
        let right = pixels.iter().filter(|mm| mm.abs_diff(millimetres) <= 2).count();
        assert!(right * 100 > pixels.len() * 95, "{file}: {right} of {}", pixels.len());
    }
    // Rectified inputs are not rectified again, not even by mistake.
    let arguments = ["rectify", "l.png", "r.png", "--calibration", "kitti.txt", "-o", "out"];
    let (status, stderr) = run(folder.path(), &arguments);
    assert!(status == 2 && stderr.contains("there is nothing to do"), "{stderr}");
    assert!(!folder.path().join("out").exists());
}

#[test]
fn both_eyes_in_one_picture_are_no_mode_of_the_camera() {
    for (width, height, flag) in [(320, 96, "--side-by-side"), (160, 192, "--top-bottom")] {
        let folder = folder(width, height);
        let arguments =
            ["match", "l.png", "r.png", "--calibration", "middlebury.txt", "-o", "o.png"];
        let (status, stderr) = run(folder.path(), &arguments);
        assert_eq!(status, 2, "{stderr}");
        assert!(stderr.contains(flag) && stderr.contains("likely reason"), "{stderr}");
        assert!(stderr.contains("160x96") && !folder.path().join("o.png").exists(), "{stderr}");
    }
}
