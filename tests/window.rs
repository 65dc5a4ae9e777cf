//! The window's picture: off-screen, and as it arrives on a real X screen (Xvfb) driven by keys.
//!
//! Needs a graphics driver (mesa-vulkan-drivers will do); the tests on a screen also need xvfb and
//! xdotool. Tests that cannot run here say so and pass.

mod window_support;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use image::{Rgba, RgbaImage};
use stereod::control::Control;
use stereod::frame::{
    DisparityMap, DisparityRange, INVALID, Image, Matched, StereoGeometry, StereoPair,
};
use stereod::pool::Pooled;
use stereod::sink::Sink;
use stereod::sink::colour::ColourMap;
use stereod::sink::window::{
    Banner, Counts, Histogram, Hover, Legend, Limits, Offscreen, OverlayContent, Rates, Rows,
    Scene, View, Window, WindowOptions, WindowSink, WindowStats, panes,
};
use window_support::{Child, X};

/// Disparity of each block of the picture, in 1/16 px.
const BLOCKS: [[i16; 4]; 3] =
    [[0, 160, 331, INVALID], [480, 512, 800, 1000], [1008, 1023, 1024, -48]];

/// Width and height of a block.
const BLOCK: usize = 40;

/// Width and height of the picture.
const PICTURE: (u32, u32) = (4 * BLOCK as u32, 3 * BLOCK as u32);

/// Limits of the colours: 0 to 63 px.
const LIMITS: Limits = Limits { low: 0, high: 1008 };

/// The candidates that give these limits.
const RANGE: DisparityRange = DisparityRange { min: 0, count: 64 };

/// What the frames' depth is computed from.
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
    let now = Instant::now();
    Arc::new(Matched {
        pair: StereoPair {
            left: Image::from_fn(width, height, grey),
            right: Image::from_fn(width, height, |_, _| 0),
            sequence,
            timestamp: Duration::from_millis(sequence * 40),
            skew_ns: 0,
            arrived: now,
            truth: None,
        },
        disparity: DisparityMap::new(width, height, Pooled::unpooled(values)),
        geometry: Some(GEOMETRY),
        submitted: now,
        finished: now + Duration::from_millis(7),
    })
}

/// The left picture: every block of one grey, so that smoothing changes nothing inside.
fn grey(x: usize, y: usize) -> u8 {
    (10 + 20 * (x / BLOCK) + 60 * (y / BLOCK)) as u8
}

fn scene(view: View, colour_map: ColourMap) -> Scene {
    Scene { view, colour_map, limits: LIMITS, taken: 0 }
}

/// The colour that the disparity of a block has to have.
fn colour(map: ColourMap, value: i16) -> Rgba<u8> {
    if value == INVALID {
        return Rgba([0, 0, 0, 255]);
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
fn assert_left(picture: &RgbaImage, (left, top): (u32, u32), scale: f64) {
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

/// An off-screen renderer, or a visible word that there is none.
fn offscreen(test: &str) -> Option<Offscreen> {
    match Offscreen::new() {
        Ok(offscreen) => Some(offscreen),
        Err(error) => {
            eprintln!("skipped: {test}: {error:#}");
            None
        }
    }
}

const MAPS: [ColourMap; 3] = [ColourMap::Turbo, ColourMap::Viridis, ColourMap::Grey];

#[test]
fn every_pixel_has_exactly_its_colour() {
    let Some(mut offscreen) = offscreen("every_pixel_has_exactly_its_colour") else { return };
    let frame = frame(0);
    for map in MAPS {
        let shown = offscreen.render(&frame, &scene(View::Disparity, map), PICTURE, None).unwrap();
        for (x, y, seen) in shown.enumerate_pixels() {
            let value = BLOCKS[y as usize / BLOCK][x as usize / BLOCK];
            assert_eq!(*seen, colour(map, value), "{map:?} at {x},{y}");
        }
    }
    let shown =
        offscreen.render(&frame, &scene(View::Left, ColourMap::Turbo), PICTURE, None).unwrap();
    for (x, y, seen) in shown.enumerate_pixels() {
        let grey = frame.pair.left.row(y as usize)[x as usize];
        assert_eq!(*seen, Rgba([grey, grey, grey, 255]), "{x},{y}");
    }
}

/// Every disparity that fits into the range, against the table, one pixel each.
#[test]
fn every_disparity_has_the_colour_of_its_table_entry() {
    let name = "every_disparity_has_the_colour_of_its_table_entry";
    let Some(mut offscreen) = offscreen(name) else { return };
    let (width, height) = (512, 128);
    let values: Vec<i16> = (0..width * height).map(|i| (i as i32 - 32768) as i16).collect();
    let mut all = Arc::into_inner(frame(0)).unwrap();
    all.pair.left = Image::from_fn(width, height, |_, _| 0);
    all.pair.right = Image::from_fn(width, height, |_, _| 0);
    all.disparity = DisparityMap::new(width, height, Pooled::unpooled(values.clone()));
    for (low, high) in [(-32767, 32767), (-160, 3000), (0, 1), (7, 7), (0, 255)] {
        let limits = Limits { low, high };
        let scene = Scene { view: View::Disparity, colour_map: ColourMap::Turbo, limits, taken: 0 };
        let size = (width as u32, height as u32);
        let shown = offscreen.render(&all, &scene, size, None).unwrap();
        let table = ColourMap::Turbo.table();
        for (&value, seen) in values.iter().zip(shown.pixels()) {
            let expected = match value {
                INVALID => [0, 0, 0],
                _ => table[limits.table_entry(value)],
            };
            assert_eq!(seen.0[..3], expected, "{value} in {limits:?}");
        }
    }
}

#[test]
fn bars_keep_the_aspect() {
    let Some(mut offscreen) = offscreen("bars_keep_the_aspect") else { return };
    let frame = frame(0);
    let disparity = scene(View::Disparity, ColourMap::Viridis);
    // Twice as large, with 40 pixels to spare on either side.
    let wide = offscreen.render(&frame, &disparity, (400, 240), None).unwrap();
    assert_black(&wide, [0, 0, 40, 240]);
    assert_black(&wide, [360, 0, 400, 240]);
    assert_disparity(&wide, ColourMap::Viridis, (40, 0), 2.0);
    assert_eq!(*wide.get_pixel(40, 0), colour(ColourMap::Viridis, 0), "the corner");
    assert_eq!(*wide.get_pixel(359, 239), colour(ColourMap::Viridis, -48), "the corner");
    // One and a half times, with 30 pixels above and below.
    let high = offscreen.render(&frame, &disparity, (240, 240), None).unwrap();
    assert_black(&high, [0, 0, 240, 30]);
    assert_black(&high, [0, 210, 240, 240]);
    assert_disparity(&high, ColourMap::Viridis, (0, 30), 1.5);
    // Half the size.
    let small = offscreen.render(&frame, &disparity, (80, 60), None).unwrap();
    assert_disparity(&small, ColourMap::Viridis, (0, 0), 0.5);
}

#[test]
fn side_by_side_shows_both() {
    let Some(mut offscreen) = offscreen("side_by_side_shows_both") else { return };
    let scene = scene(View::SideBySide, ColourMap::Grey);
    let shown = offscreen.render(&frame(0), &scene, (640, 280), None).unwrap();
    assert_black(&shown, [0, 0, 640, 20]);
    assert_black(&shown, [0, 260, 640, 280]);
    assert_left(&shown, (0, 20), 2.0);
    assert_disparity(&shown, ColourMap::Grey, (320, 20), 2.0);
}

#[test]
fn frames_of_another_size_and_silly_targets_are_taken() {
    let name = "frames_of_another_size_and_silly_targets_are_taken";
    let Some(mut offscreen) = offscreen(name) else { return };
    let scene = scene(View::SideBySide, ColourMap::Turbo);
    offscreen.render(&frame(0), &scene, (320, 120), None).unwrap();
    let mut one = Arc::into_inner(frame(0)).unwrap();
    one.pair.left = Image::from_fn(1, 1, |_, _| 200);
    one.pair.right = Image::from_fn(1, 1, |_, _| 100);
    one.disparity = DisparityMap::new(1, 1, Pooled::unpooled(vec![504]));
    let shown = offscreen.render(&one, &scene, (2, 1), None).unwrap();
    assert_eq!(shown.get_pixel(0, 0).0, [200, 200, 200, 255]);
    assert_eq!(*shown.get_pixel(1, 0), colour(ColourMap::Turbo, 504));
    for size in [(0, 0), (0, 5), (5, 0), (1_000_000, 1)] {
        let error = offscreen.render(&one, &scene, size, None).unwrap_err().to_string();
        assert!(error.contains("cannot draw"), "{error}");
    }
    offscreen.render(&one, &scene, (1, 1), Some(&full_overlay())).unwrap();
}

fn full_overlay() -> OverlayContent {
    OverlayContent {
        rates: Rates {
            frames_per_second: Some(29.97),
            latency: Some(Duration::from_micros(12_345)),
            latency_p95: Some(Duration::from_micros(15_900)),
        },
        on_screen: Some(Duration::from_micros(18_200)),
        picture: Some(PICTURE),
        engine: "CPU (AVX2, 4 threads)".into(),
        counts: Some(Counts { pairs: 1234, dropped: 5, unpaired: 1 }),
        alignment: Some(("rows 3.2 px  roll 0.12 deg  rows off".into(), true)),
        legend: Some(Legend { colour_map: ColourMap::Turbo, limits: LIMITS }),
        hover: Some(Hover {
            pixel: (60, 100),
            disparity: Some(31.5),
            depth: Some(1.672),
            marks: vec![(484.0, 400.0)],
        }),
        paused: true,
        ended: true,
        error: Some("the left camera is gone: /dev/video0 was unplugged".into()),
        notice: Some("saved stereod-20260101-000000-000-000012-disparity.png".into()),
        rows: None,
        histograms: Some([
            Histogram::of_latency((5..90).map(Duration::from_millis)),
            Histogram::of_skew((-40..50).map(|i| i * 50_000)),
        ]),
        banners: vec![
            Banner { text: "left camera lost, trying again (for 12 s)".into(), trouble: true },
            Banner { text: "right camera back after 3 s".into(), trouble: false },
        ],
        help: true,
    }
}

/// The overlay covers its panels and nothing else; what is empty leaves no trace.
#[test]
fn the_overlay_is_where_it_should_be() {
    let Some(mut offscreen) = offscreen("the_overlay_is_where_it_should_be") else { return };
    let scene = scene(View::Disparity, ColourMap::Turbo);
    let size = (752, 564);
    let bare = offscreen.render(&frame(0), &scene, size, None).unwrap();
    let figures = OverlayContent {
        help: false,
        error: None,
        notice: None,
        ended: false,
        paused: false,
        hover: None,
        histograms: None,
        banners: Vec::new(),
        ..full_overlay()
    };
    let shown = offscreen.render(&frame(0), &scene, size, Some(&figures)).unwrap();
    let differs = |x, y| bare.get_pixel(x, y) != shown.get_pixel(x, y);
    let count = |xs: std::ops::Range<u32>, ys: std::ops::Range<u32>| {
        xs.flat_map(|x| ys.clone().map(move |y| (x, y))).filter(|&(x, y)| differs(x, y)).count()
    };
    let bright = |xs: std::ops::Range<u32>, ys: std::ops::Range<u32>| {
        xs.flat_map(|x| ys.clone().map(move |y| (x, y)))
            .filter(|&(x, y)| shown.get_pixel(x, y).0[..3].iter().all(|&v| v > 200))
            .count()
    };
    assert!(bright(8..420, 8..110) > 300, "the figures are written at the top left");
    assert!(bright(480..744, 520..556) > 100, "the legend's numbers are at the bottom right");
    assert_eq!(count(0..752, 120..500), 0, "the middle stays free");
    let all = count(0..752, 0..564);
    assert!(all < 752 * 564 / 8, "the overlay covers {all} pixels");
    let full = offscreen.render(&frame(0), &scene, size, Some(&full_overlay())).unwrap();
    assert_ne!(full, shown);
    let again = offscreen.render(&frame(0), &scene, size, None).unwrap();
    assert_eq!(again, bare, "the overlay leaves nothing behind");
}

/// Both eyes side by side, with lines that run through both at the same rows.
#[test]
fn both_eyes_are_shown_with_lines_along_their_rows() {
    let name = "both_eyes_are_shown_with_lines_along_their_rows";
    let Some(mut offscreen) = offscreen(name) else { return };
    let mut frame = Arc::into_inner(frame(0)).unwrap();
    let (width, height) = (PICTURE.0 as usize, PICTURE.1 as usize);
    frame.pair.right = Image::from_fn(width, height, |x, y| 255 - grey(x, y));
    let scene = scene(View::Pair, ColourMap::Turbo);
    let size = (2 * PICTURE.0 * 2, PICTURE.1 * 2);
    let bare = offscreen.render(&frame, &scene, size, None).unwrap();
    assert_left(&bare, (0, 0), 2.0);
    each_block(|column, row| {
        let (x, y) = middle(column, row, 2.0);
        let grey = 255 - grey(column * BLOCK, row * BLOCK);
        assert_eq!(bare.get_pixel(2 * PICTURE.0 + x, y).0, [grey, grey, grey, 255]);
    });
    let panes = panes(View::Pair, PICTURE, size);
    let rows = Rows { panes, picture: PICTURE, mouse: Some(100) };
    let content = OverlayContent { rows: Some(rows), help: true, ..Default::default() };
    let shown = offscreen.render(&frame, &scene, size, Some(&content)).unwrap();
    // Away from the panels: a column of each eye is crossed at the same heights.
    let crossed = |x: u32| -> Vec<u32> {
        (90..size.1).filter(|&y| shown.get_pixel(x, y) != bare.get_pixel(x, y)).collect()
    };
    let left = crossed(120);
    assert_eq!(left, crossed(size.0 - 130));
    // 16 rows from line to line at two pixels a row, from row 8 on; the mouse's is white.
    for row in [56, 72, 88, 104] {
        assert!(left.contains(&(2 * row + 1)), "no line at row {row}: {left:?}");
    }
    let white = |x: u32| shown.get_pixel(x, 2 * 100 + 1).0[..3].iter().all(|&value| value > 200);
    assert!(white(120) && white(size.0 - 130), "the mouse's row");
    assert!(left.len() < 40, "{left:?}");
}

#[test]
fn no_display_is_an_error_in_words() {
    let command = || {
        let mut command = Child::command("probe");
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").env_remove("WAYLAND_SOCKET");
        command
    };
    let said = probe(&mut command());
    assert!(said.contains("probe: no display (neither DISPLAY nor"), "{said}");
    let said = probe(command().env("DISPLAY", ":4711"));
    assert!(said.contains("probe: no display"), "{said}");
}

/// What the connection to a display says.
fn probe(command: &mut std::process::Command) -> String {
    let output = command.output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The real window on a real X screen, driven by real keys.
#[test]
fn the_window_shows_the_off_screen_picture_and_obeys_its_keys() {
    let name = "the_window_shows_the_off_screen_picture_and_obeys_its_keys";
    let Some(mut offscreen) = offscreen(name) else { return };
    let Some(x) = X::start(name, (1280, 800)) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut child = Child::start("window", &x, folder.path());
    let window = x.window("stereod window test");
    child.expect("ready");
    let mut expect = |x: &X, view, map, what: &str| {
        let (left, top, width, height) = x.geometry(&window);
        let expected =
            offscreen.render(&frame(0), &scene(view, map), (width, height), None).unwrap();
        x.wait_for(what, |screen| {
            let shown = image::imageops::crop_imm(screen, left, top, width, height).to_image();
            shown == expected
        });
        let shown = x.screen();
        (image::imageops::crop_imm(&shown, left, top, width, height).to_image(), width, height)
    };

    // The overlay is there at first; without it the screen shows the off-screen picture.
    let (left, top, width, height) = x.geometry(&window);
    assert_eq!((width, height), (640, 480), "160x120 enlarged by a whole number");
    x.wait_for("the picture with its overlay", |screen| {
        let pixel = |x, y| *screen.get_pixel(left + x, top + y);
        pixel(320, 240) == colour(ColourMap::Turbo, 800) && pixel(12, 12) != pixel(150, 150)
    });
    x.save(&format!("{name}-overlay"));
    x.key(&window, "o");
    let (shown, ..) = expect(&x, View::Disparity, ColourMap::Turbo, "disparity");
    assert_disparity(&shown, ColourMap::Turbo, (0, 0), 4.0);

    // The colours go round.
    x.key(&window, "c");
    let (shown, ..) = expect(&x, View::Disparity, ColourMap::Viridis, "viridis");
    assert_disparity(&shown, ColourMap::Viridis, (0, 0), 4.0);
    x.key(&window, "c");
    expect(&x, View::Disparity, ColourMap::Grey, "grey");
    x.key(&window, "c");
    expect(&x, View::Disparity, ColourMap::Turbo, "turbo again");

    // The views go round.
    x.key(&window, "l");
    let (shown, ..) = expect(&x, View::SideBySide, ColourMap::Turbo, "side by side");
    assert_left(&shown, (0, 120), 2.0);
    assert_disparity(&shown, ColourMap::Turbo, (320, 120), 2.0);
    assert_black(&shown, [0, 0, 640, 120]);
    x.key(&window, "l");
    let (shown, ..) = expect(&x, View::Left, ColourMap::Turbo, "the left picture");
    assert_left(&shown, (0, 0), 4.0);
    x.key(&window, "l");
    expect(&x, View::Disparity, ColourMap::Turbo, "disparity again");

    // Resizing keeps the aspect.
    x.resize(&window, (900, 480));
    let (shown, width, height) = expect(&x, View::Disparity, ColourMap::Turbo, "the wider window");
    assert_eq!((width, height), (900, 480));
    assert_black(&shown, [0, 0, 130, 480]);
    assert_black(&shown, [770, 0, 900, 480]);
    assert_disparity(&shown, ColourMap::Turbo, (130, 0), 4.0);

    // Space holds the source and lets it go.
    x.key(&window, "space");
    child.expect("paused true");
    x.key(&window, "space");
    child.expect("paused false");

    // A snapshot.
    x.key(&window, "s");
    let files = window_support::wait_for_files(folder.path(), 2);
    assert_snapshot(&files);

    // A point cloud: every pixel with a depth, beside the snapshot.
    x.key(&window, "p");
    let files = window_support::wait_for_files(folder.path(), 3);
    let cloud = files.iter().find(|file| file.extension().is_some_and(|e| e == "ply")).unwrap();
    let cloud = std::fs::read(cloud).unwrap();
    let frame = frame(0);
    let points = frame.disparity.values().iter().filter(|&&value| value > 0).count();
    let count = format!("element vertex {points}\n");
    assert!(cloud.windows(count.len()).any(|part| part == count.as_bytes()), "{count}");

    // The pixel under the mouse is described.
    x.key(&window, "o");
    x.save(&format!("{name}-before-hover"));
    let before = x.screen();
    x.mouse(&window, (300, 200));
    let corner = |picture: &RgbaImage| {
        let (left, top, _, height) = x.geometry(&window);
        image::imageops::crop_imm(picture, left, top + height - 40, 200, 40).to_image()
    };
    x.wait_for("the text under the mouse", |screen| corner(screen) != corner(&before));
    x.save(&format!("{name}-hover"));

    // A new frame is shown when it comes, and the end of the stream is announced.
    child.say("inverse");
    x.wait_for("the next frame", |screen| {
        *screen.get_pixel(left + 450, top + 240) == colour(ColourMap::Turbo, 1008 - 800)
    });
    let before = x.screen();
    child.say("ended");
    x.wait_for("the end of the stream", |screen| *screen != before);
    x.save(&format!("{name}-ended"));
    // Nothing of the left picture is red.
    x.key(&window, "l");
    x.key(&window, "l");
    x.wait_for("the left picture", |screen| red(screen) == 0);
    child.say("failed");
    x.wait_for("the error's red", |screen| red(screen) > 2000);
    x.save(&format!("{name}-failed"));

    // Quitting stops the pipeline.
    x.key(&window, "q");
    child.expect("stop true");
    child.expect_success();
}

/// Snapshots that cannot be written are a message in the window; Escape and a closed window quit.
#[test]
fn a_snapshot_that_fails_is_no_crash_and_escape_quits() {
    let name = "a_snapshot_that_fails_is_no_crash_and_escape_quits";
    if offscreen(name).is_none() {
        return;
    }
    let Some(x) = X::start(name, (1000, 700)) else { return };
    // A display is not enough.
    let said = probe(
        Child::command("probe")
            .env("DISPLAY", x.display())
            .env_remove("WAYLAND_DISPLAY")
            .env("WGPU_BACKEND", "vulkan")
            .env("VK_DRIVER_FILES", "/nowhere")
            .env("VK_ICD_FILENAMES", "/nowhere"),
    );
    assert!(said.contains("probe: no graphics adapter; install"), "{said}");

    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let mut child = Child::start("window", &x, &missing);
    let window = x.window("stereod window test");
    child.expect("ready");
    x.wait_for("the window", |screen| *screen.get_pixel(320, 240) == colour(ColourMap::Turbo, 800));
    // Nothing of the left picture is red.
    x.key(&window, "l");
    x.key(&window, "l");
    x.wait_for("the left picture", |screen| red(screen) == 0);
    x.key(&window, "s");
    x.wait_for("the error's red", |screen| red(screen) > 2000);
    x.save(name);
    x.key(&window, "Escape");
    child.expect("stop true");
    child.expect_success();
}

/// How many pixels are of the colour of an error.
fn red(screen: &RgbaImage) -> usize {
    screen.pixels().filter(|p| p.0[0] > 120 && p.0[1] < 70 && p.0[2] < 70).count()
}

/// The two files of a snapshot of the test frame, shown as disparity through turbo.
fn assert_snapshot(files: &[PathBuf]) {
    let name = |i: usize| files[i].file_name().unwrap().to_string_lossy().into_owned();
    assert!(name(0).starts_with("stereod-2") && name(0).ends_with("-000000-disparity.png"));
    assert!(name(1).starts_with("stereod-2") && name(1).ends_with("-000000-view.png"));
    let disparity = match image::open(&files[0]).unwrap() {
        image::DynamicImage::ImageLuma16(picture) => picture,
        other => panic!("16-bit grey, not {:?}", other.color()),
    };
    assert_eq!(disparity.dimensions(), PICTURE);
    for (x, y, seen) in disparity.enumerate_pixels() {
        let value = BLOCKS[y as usize / BLOCK][x as usize / BLOCK];
        if value == INVALID {
            assert_eq!(seen.0, [0], "{x},{y}");
        } else if value > 0 {
            assert_eq!(seen.0, [value as u16 * 16], "{x},{y}");
        } else {
            assert_ne!(seen.0, [0], "{x},{y}");
        }
    }
    let view = image::open(&files[1]).unwrap().to_rgba8();
    assert_eq!(view.dimensions(), PICTURE);
    assert_disparity(&view, ColourMap::Turbo, (0, 0), 1.0);
}

/// Not a test of its own: what the tests above start this binary again for, told by
/// [`window_support::ROLE`].
#[test]
fn the_other_process() {
    match std::env::var(window_support::ROLE).as_deref() {
        Err(_) => (),
        Ok("probe") => match Window::connect() {
            Ok(_) => println!("probe: there is a display"),
            Err(error) => println!("probe: {error:#}"),
        },
        Ok("window") => show_window(),
        Ok(other) => panic!("no role {other}"),
    }
}

/// Opens the window with the test frame; reports switches on the standard output and takes words
/// on the standard input.
fn show_window() {
    let window = Window::connect().unwrap();
    let remote = window.remote();
    let mut sink = WindowSink::new(remote.clone());
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
        remote.stats(WindowStats {
            engine: "CPU (test)".into(),
            counts: Counts { pairs: 1, ..Counts::default() },
            banners: Vec::new(),
            alignment: Some(("rows 0.1 px  roll 0.01 deg".into(), false)),
        });
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
    options.snapshot_dir = PathBuf::from(std::env::var_os(window_support::FOLDER).unwrap());
    window.run(options, control.clone()).unwrap();
    println!("stop {}", control.stop.is_set());
}
