//! The window's image: off-screen, and on a real X screen (Xvfb) controlled by keys.
//!
//! Needs a graphics driver (mesa-vulkan-drivers suffices); the tests on a screen also need xvfb and
//! xdotool. Tests that cannot run print a note and pass.

mod child;
mod picture;
mod screen;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use child::Child;
use image::{Rgba, RgbaImage};
use stereod::status::{Banner, Counts, Judged, RunStatus};
use stereod::window::{
    ALL_DEPTHS, Around, Bar, Histogram, Hover, Legend, Limits, Offscreen, Orbit, OverlayContent,
    Rates, Rows, Scene, Sheet, Side, Timeline, Timing, View, Window, WindowOptions, WindowSink,
    Wipe, panes,
};
use stereod::{DisparityRange, INVALID, StereoGeometry};
use stereod_core::frame::{Image, Matched, StereoPair};
use stereod_core::pool::Pooled;
use stereod_io::control::Control;
use stereod_io::sink::Sink;
use stereod_io::sink::colour::ColourMap;

use crate::common::screen::X;

/// Disparity of each block of the picture, in 1/16 px.
const BLOCKS: [[i16; 4]; 3] =
    [[0, 160, 331, INVALID], [480, 512, 800, 1000], [1008, 1023, 1024, -48]];

/// Width and height of a block.
const BLOCK: usize = 40;

/// Width and height of the picture.
const PICTURE: (u32, u32) = (4 * BLOCK as u32, 3 * BLOCK as u32);

/// Limits of the colours: 0 to 63 px.
const LIMITS: Limits = Limits { low: 0, high: 1008 };

/// Candidates that give these limits.
const RANGE: DisparityRange = DisparityRange { min: 0, count: 64 };

/// Calibration for the frames' depth.
const GEOMETRY: StereoGeometry = StereoGeometry {
    focal_px: 400.0,
    baseline_m: 0.12,
    centre_x_px: 80.0,
    centre_y_px: 60.0,
    right_centre_x_px: 80.0,
};

fn frame(sequence: u64) -> Arc<Matched> {
    let (width, height) = (PICTURE.0 as usize, PICTURE.1 as usize);
    let values = (0..width * height)
        .map(|i| BLOCKS[i / width / BLOCK][i % width / BLOCK])
        .collect::<Vec<_>>();
    let left = Image::from_fn(width, height, grey);
    let right = Image::from_fn(width, height, |_, _| 0);
    let timestamp = Duration::from_millis(sequence * 40);
    let pair = StereoPair { sequence, timestamp, ..StereoPair::of_stills(left, right) };
    let disparity = stereod::DisparityMap::of_values(width, RANGE, values);
    let matched = Matched::new(pair, disparity);
    let finished = matched.submitted + Duration::from_millis(7);
    let confidence = Some(Image::from_fn(width, height, |x, y| 255 - grey(x, y)));
    Arc::new(Matched { confidence, geometry: Some(GEOMETRY), finished, ..matched })
}

/// The left picture: every block of one grey, so that smoothing changes nothing inside.
fn grey(x: usize, y: usize) -> u8 {
    (10 + 20 * (x / BLOCK) + 60 * (y / BLOCK)) as u8
}

fn scene(view: View, colour_map: ColourMap) -> Scene {
    Scene::new(view, colour_map, LIMITS)
}

/// Expected colour of the disparity of a block.
fn colour(map: ColourMap, value: i16) -> Rgba<u8> {
    if value == INVALID {
        let [red, green, blue] = map.unknown();
        return Rgba([red, green, blue, 255]);
    }
    let [red, green, blue] = map.table()[LIMITS.table_entry(value)];
    Rgba([red, green, blue, 255])
}

/// Checks the middle of every block of a disparity pane that starts at (left, top) and shows
/// `scale` pixels for every pixel of the picture.
fn assert_disparity(picture: &RgbaImage, map: ColourMap, (left, top): (u32, u32), scale: f64) {
    each_block(|column, row| {
        let (x, y) = middle(column, row, scale);
        let seen = picture.get_pixel(left + x, top + y);
        assert_eq!(*seen, colour(map, BLOCKS[row][column]), "{map:?} block {column},{row}");
    });
}

/// As [`assert_disparity`], for a pane with the left picture.
fn assert_left(picture: &RgbaImage, at: (u32, u32), scale: f64) {
    assert_grey(picture, at, scale, grey);
}

/// Checks that every block has the grey of its first pixel.
fn assert_grey(
    picture: &RgbaImage,
    (left, top): (u32, u32),
    scale: f64,
    grey: impl Fn(usize, usize) -> u8,
) {
    each_block(|column, row| {
        let (x, y) = middle(column, row, scale);
        let grey = grey(column * BLOCK, row * BLOCK);
        let seen = picture.get_pixel(left + x, top + y);
        assert_eq!(*seen, Rgba([grey, grey, grey, 255]), "block {column},{row}");
    });
}

fn each_block(mut check: impl FnMut(usize, usize)) {
    (0..3).for_each(|row| (0..4).for_each(|column| check(column, row)));
}

fn middle(column: usize, row: usize, scale: f64) -> (u32, u32) {
    let at = |block: usize| ((block as f64 + 0.5) * BLOCK as f64 * scale) as u32;
    (at(column), at(row))
}

/// Checks that a rectangle (left, top, right, bottom) is black all over.
fn assert_black(picture: &RgbaImage, [left, top, right, bottom]: [u32; 4]) {
    for y in top..bottom {
        for x in left..right {
            assert_eq!(*picture.get_pixel(x, y), Rgba([0, 0, 0, 255]), "bar at {x},{y}");
        }
    }
}

/// An off-screen renderer; if there is none, prints a note.
fn offscreen(test: &str) -> Option<Offscreen> {
    match Offscreen::new() {
        Ok(offscreen) => Some(offscreen),
        Err(error) => {
            eprintln!("skipped: {test}: {error:#}");
            None
        }
    }
}

/// Not a test of its own: the role in which the tests above start this binary again, selected by
/// [`child::ROLE`].
#[test]
fn the_other_process() {
    match std::env::var(child::ROLE).as_deref() {
        Err(_) => (),
        Ok("probe") => match Window::connect() {
            Ok(_) => println!("probe: there is a display"),
            Err(error) => println!("probe: {error:#}"),
        },
        Ok("window") => show_window(),
        Ok(other) => panic!("no role {other}"),
    }
}

/// Opens the window with the test frame; reports switches on standard output and reads commands
/// from standard input.
fn show_window() {
    let window = Window::connect().unwrap();
    let remote = window.remote();
    let mut sink = WindowSink::new(remote.clone(), Timing::Latency);
    let control = Control::default();
    let watched = control.clone();
    std::thread::spawn(move || {
        let mut paused = false;
        loop {
            if watched.pause.is_set() != paused {
                paused = !paused;
                println!("paused {paused}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    std::thread::spawn(move || {
        let alignment = Judged { text: "rows 0.1 px  roll 0.01 deg".into(), ..Judged::default() };
        remote.status(Arc::new(RunStatus {
            engine: "CPU (test)".into(),
            pairs: 1,
            alignment: Some(alignment),
            ..RunStatus::default()
        }));
        sink.consume(&frame(0)).unwrap();
        println!("ready");
        for line in std::io::stdin().lines() {
            match line.unwrap().as_str() {
                "inverse" => {
                    let mut next = Arc::into_inner(frame(1)).unwrap();
                    for value in next.disparity.values_mut() {
                        *value = if *value == INVALID { INVALID } else { 1008 - *value };
                    }
                    sink.consume(&Arc::new(next)).unwrap();
                }
                "ended" => remote.ended(),
                "failed" => remote.failed("the left camera is gone"),
                other => panic!("no word {other}"),
            }
        }
    });
    let mut options = WindowOptions::new("stereod window test", PICTURE, RANGE);
    options.snapshot_dir = PathBuf::from(std::env::var_os(child::FOLDER).unwrap());
    window.run(options, control.clone()).unwrap();
    println!("stop {}", control.stop.is_set());
}
