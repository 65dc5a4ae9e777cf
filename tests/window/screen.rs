//! The window on a real X screen, controlled by keys.

use super::*;

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

/// Message of the connection to a display.
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
        let mut scene = scene(view, map);
        if view == View::Points {
            scene.orbit = Orbit::aside(&frame(0));
        }
        let expected = offscreen.render(&frame(0), &scene, (width, height), None).unwrap();
        x.wait_for(what, |screen| {
            let shown = image::imageops::crop_imm(screen, left, top, width, height).to_image();
            shown == expected
        });
        let shown = x.screen();
        (image::imageops::crop_imm(&shown, left, top, width, height).to_image(), width, height)
    };

    // The overlay is shown at first; without it the screen shows the off-screen image.
    let (left, top, width, height) = x.geometry(&window);
    assert_eq!((width, height), (640, 569), "160x120 enlarged by a whole number, and the bar");
    x.wait_for("the picture above its bar", |screen| {
        let pixel = |x, y| *screen.get_pixel(left + x, top + y);
        pixel(320, 240) == colour(ColourMap::Turbo, 800) && pixel(2, 567) == Rgba([24, 24, 24, 255])
    });
    x.save(&format!("{name}-overlay"));
    x.key(&window, "o");
    x.resize(&window, (640, 480));
    let (shown, ..) = expect(&x, View::Disparity, ColourMap::Turbo, "disparity");
    assert_disparity(&shown, ColourMap::Turbo, (0, 0), 4.0);

    // The colour maps cycle.
    x.key(&window, "c");
    let (shown, ..) = expect(&x, View::Disparity, ColourMap::Viridis, "viridis");
    assert_disparity(&shown, ColourMap::Viridis, (0, 0), 4.0);
    x.key(&window, "c");
    expect(&x, View::Disparity, ColourMap::Grey, "grey");
    x.key(&window, "c");
    expect(&x, View::Disparity, ColourMap::Turbo, "turbo again");

    // The views cycle.
    x.key(&window, "l");
    let (shown, ..) = expect(&x, View::SideBySide, ColourMap::Turbo, "side by side");
    assert_left(&shown, (0, 120), 2.0);
    assert_disparity(&shown, ColourMap::Turbo, (320, 120), 2.0);
    assert_black(&shown, [0, 0, 640, 120]);
    x.key(&window, "l");
    expect(&x, View::Points, ColourMap::Turbo, "points in space");
    x.key(&window, "l");
    let (shown, ..) = expect(&x, View::Confidence, ColourMap::Turbo, "the confidence");
    assert_grey(&shown, (0, 0), 4.0, |x, y| 255 - grey(x, y));
    x.key(&window, "l");
    let (shown, ..) = expect(&x, View::Right, ColourMap::Turbo, "the right picture");
    assert_black(&shown, [0, 0, 640, 480]);
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

    // Space pauses and resumes the source.
    x.key(&window, "space");
    child.expect("paused true");
    x.key(&window, "space");
    child.expect("paused false");

    // A snapshot.
    x.key(&window, "s");
    let files = child::wait_for_files(folder.path(), 2);
    assert_snapshot(&files);

    // A point cloud: every pixel with a depth, beside the snapshot.
    x.key(&window, "p");
    let files = child::wait_for_files(folder.path(), 3);
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

    // A new frame is shown when it arrives, and the end of the stream is announced.
    child.say("inverse");
    x.wait_for("the next frame", |screen| {
        *screen.get_pixel(left + 500, top + 200) == colour(ColourMap::Turbo, 1008 - 800)
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

/// At 200 % the window starts twice as large, if the screen has room for it.
#[test]
fn the_window_follows_the_scale_of_the_screen() {
    let name = "the_window_follows_the_scale_of_the_screen";
    if offscreen(name).is_none() {
        return;
    }
    for (screen, scale, expected) in [
        ((3840, 2160), 1, (640, 569)),
        ((3840, 2160), 2, (1280, 1138)),
        // Nine tenths of the screen, and a whole multiple of the image above the bar.
        ((1280, 720), 2, (480, 630)),
    ] {
        let Some(x) = X::start(name, screen) else { return };
        let folder = tempfile::tempdir().unwrap();
        let mut child = Child::start_scaled("window", &x, folder.path(), scale);
        let window = x.window("stereod window test");
        child.expect("ready");
        let (left, top, width, height) = x.geometry(&window);
        assert_eq!((width, height), expected, "{screen:?} at {scale}00 %");
        x.wait_for("the window", |screen| {
            *screen.get_pixel(left + width / 2, top + height / 3) == colour(ColourMap::Turbo, 800)
        });
        // The sheet with the keys is closed by a click, which does nothing else, and by Escape.
        x.mouse(&window, (width / 2, height / 2));
        let plain = |screen: &RgbaImage| {
            *screen.get_pixel(left + width - 4, top + height / 3) == colour(ColourMap::Turbo, 1000)
        };
        x.wait_for("the map", plain);
        for closes in ["click", "Escape"] {
            x.key(&window, "h");
            x.wait_for("the dimmed map", |screen| !plain(screen));
            x.save(&format!("{name}-{}x{scale}-help", screen.0));
            match closes {
                "click" => x.click(),
                key => x.key(&window, key),
            }
            x.wait_for("the map again", plain);
        }
        x.save(&format!("{name}-{}x{scale}", screen.0));
        x.key(&window, "q");
        child.expect("stop true");
        child.expect_success();
    }
}

/// If snapshots cannot be written, the window shows a message; Escape and closing the window quit.
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

/// Counts the pixels in the colour of an error.
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
