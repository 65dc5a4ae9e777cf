//! The guided window, on a virtual screen, driven by recordings of a moving board.

use std::fs::File;

use image::RgbaImage;
use stereod_calibration::board::Board;

use super::rendered::{motion, write_videos};
use super::scene::{Stand, small_eyes, stands};
use super::*;
use crate::common::screen::X;

const ARGUMENTS: [&str; 11] = [
    "--left",
    "l.mkv",
    "--right",
    "r.mkv",
    "--board",
    "chessboard:8x5",
    "--square",
    "0.04",
    "--window",
    "-o",
    "out.toml",
];

fn videos(path: &[Stand]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let board =
        Board::new(stereod_calibration::board::pattern("chessboard:8x5").unwrap(), 0.04).unwrap();
    write_videos(folder.path(), path, &small_eyes(), &board);
    folder
}

fn start(x: &X, folder: &Path) -> std::process::Child {
    let mut command = command(folder, &ARGUMENTS);
    let log = File::create(folder.join("log")).unwrap();
    command.env("DISPLAY", x.display()).stdout(Stdio::piped()).stderr(log);
    command.spawn().unwrap()
}

/// What the last run in this folder has said.
fn said(folder: &Path) -> String {
    let said = std::fs::read_to_string(folder.join("log")).unwrap();
    assert!(!said.contains("panicked"), "{said}");
    said
}

/// Counts pixels of a colour, with some tolerance, in the part of the screen that begins at these
/// fractions of its size.
fn pixels(screen: &RgbaImage, colour: [u8; 3], (left, top): (f32, f32)) -> usize {
    let (width, height) = (screen.width(), screen.height());
    let from = ((left * width as f32) as u32, (top * height as f32) as u32);
    let near = |pixel: &image::Rgba<u8>| (0..3).all(|i| pixel.0[i].abs_diff(colour[i]) < 25);
    let counted = screen
        .enumerate_pixels()
        .filter(|(x, y, pixel)| *x >= from.0 && *y >= from.1 && near(pixel));
    counted.count()
}

/// Position of the text with the missing poses or the result on this screen.
const WORDS: (f32, f32) = (0.38, 0.51);

const GREEN: [u8; 3] = [90, 220, 110];
const FIRST_ROW: [u8; 3] = [255, 70, 60];
const LAST_ROW: [u8; 3] = [70, 160, 255];

#[test]
fn a_recording_is_calibrated_in_the_window() {
    let Some(x) = X::start("a guided calibration", (1280, 720)) else { return };
    let folder = videos(&motion(&stands(), 10));
    let child = start(&x, folder.path());
    let window = x.window("stereod calibrate");
    x.wait_for("the board in both views", |screen| {
        pixels(screen, FIRST_ROW, (0.0, 0.0)) > 60 && pixels(screen, LAST_ROW, (0.0, 0.0)) > 60
    });
    x.wait_for("a pair that was taken", |screen| pixels(screen, GREEN, (0.0, 0.0)) > 4000);
    x.save("guided-taken");
    // The recording ends and there are enough pairs: the message is green.
    x.wait_for("the verdict", |screen| {
        pixels(screen, GREEN, WORDS) > 150 && pixels(screen, GREEN, (0.0, 0.0)) < 6000
    });
    x.save("guided-verdict");
    x.key(&window, "q");
    let (status, stdout, _) = outcome_of(ended(child));
    let stderr = said(folder.path());
    assert_eq!(status, 0, "{stderr}");
    assert!(stdout.contains("pairs used"), "{stdout}");
    assert!(stdout.contains("written to out.toml"), "{stdout}");
    assert!(stderr.contains("pair 10 taken"), "{stderr}");
    assert!(folder.path().join("out.toml").exists());
}

#[test]
fn keys_take_calibrate_and_quit() {
    let Some(x) = X::start("the keys of a guided calibration", (1280, 720)) else { return };
    // The board is never still, so no pair is taken without a key.
    let slow: Vec<Stand> = stands()
        .windows(2)
        .take(5)
        .flat_map(|two| (0..40).map(|i| two[0].towards(&two[1], f64::from(i) / 40.0)))
        .collect();
    let folder = videos(&slow);
    let child = start(&x, folder.path());
    let window = x.window("stereod calibrate");
    x.wait_for("the board", |screen| pixels(screen, FIRST_ROW, (0.0, 0.0)) > 60);
    x.key(&window, "space");
    wait_until("a pair that was taken", || said(folder.path()).contains("pair 1 taken"));
    // One pair is not enough.
    x.key(&window, "Return");
    x.wait_for("that there is no calibration", |screen| {
        pixels(screen, [250, 110, 100], WORDS) > 60
    });
    x.save("guided-failed");
    x.key(&window, "q");
    let (status, ..) = outcome_of(ended(child));
    let stderr = said(folder.path());
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("only 1 of "), "{stderr}");

    // Quitting before anything was done says so.
    let child = start(&x, folder.path());
    let window = x.window("stereod calibrate");
    x.wait_for("the board", |screen| pixels(screen, FIRST_ROW, (0.0, 0.0)) > 60);
    x.key(&window, "q");
    let (status, ..) = outcome_of(ended(child));
    let stderr = said(folder.path());
    assert_eq!(status, 1);
    assert!(stderr.contains("quit before there was a calibration"), "{stderr}");
    assert!(!folder.path().join("out.toml").exists());
}
