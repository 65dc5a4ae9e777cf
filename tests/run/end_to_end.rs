//! From source to files: every kind of input gives the bytes of the plain reference.

use std::path::Path;

use serde_json::json;

use super::*;

const DEMO: [&str; 4] = ["--demo", "--demo-size", "96x64", "--headless"];

/// Numbered 16-bit pictures of a folder, in order.
fn pictures(folder: &Path) -> Vec<Vec<u16>> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "png"))
        .collect();
    files.sort();
    files.iter().map(|file| image::open(file).unwrap().into_luma16().into_raw()).collect()
}

#[test]
fn the_demo_scene_comes_out_as_the_reference_says() {
    let folder = tempfile::tempdir().unwrap();
    let outputs = ["--frames", "7", "--record", "d.mkv", "--preview", "d.mp4", "--pictures", "p"];
    let statistics = statistics(folder.path(), &[&DEMO[..], &outputs].concat());
    for (key, value) in [("pairs", 7), ("matched", 7), ("recorded", 7), ("dropped", 0)] {
        assert_eq!(statistics[key], json!(value), "{key}: {statistics}");
    }
    assert_eq!(statistics["frames"], json!({ "left": 7, "right": 7 }));
    assert_eq!(statistics["unpaired"], json!({ "left": 0, "right": 0 }));
    assert!(statistics["engine_ms"]["p99"].as_f64().unwrap() > 0.0);
    assert_eq!(statistics["settings"]["matching"]["disparities"], json!(24));
    // In black and white noise, nearly all pixels would be bad.
    let bad = statistics["accuracy"]["bad_1_of_valid"].as_f64().unwrap();
    assert!(bad < 20.0, "{statistics}");
    assert_eq!(statistics["accuracy"]["frames"], json!(7));

    let expected: Vec<_> = (0..7).map(reference).collect();
    assert!(expected[0] != expected[6], "the scene moves");
    assert_eq!(recorded(&folder.path().join("d.mkv")), expected);
    assert_eq!(pictures(&folder.path().join("p")), expected);
    let preview = player::Player::open(
        &folder.path().join("d.mp4"),
        "qtdemux ! avdec_h264 ! video/x-raw,format=I420",
    );
    assert_eq!(preview.unwrap().play().len(), 7);
}

/// The wheel of the program (`scripts/program_wheel.sh`) has OpenH264 in place of x264, and no libav.
#[test]
#[cfg(unix)]
fn a_preview_needs_no_x264() {
    let folder = tempfile::tempdir().unwrap();
    gst::init().unwrap();
    let registry = gst::Registry::get();
    for name in
        ["app", "coreelements", "isomp4", "openh264", "videoconvertscale", "videoparsersbad"]
    {
        let Some(file) = registry.find_plugin(name).and_then(|plugin| plugin.filename()) else {
            eprintln!("skipped: this machine's GStreamer has no plug-in {name}");
            return;
        };
        std::os::unix::fs::symlink(&file, folder.path().join(file.file_name().unwrap())).unwrap();
    }
    let run = |outputs: &[&str]| {
        let mut command = stereod(folder.path(), &with_statistics(&[&DEMO[..], outputs].concat()));
        command.env("GST_PLUGIN_SYSTEM_PATH_1_0", folder.path());
        command.env("GST_REGISTRY_1_0", folder.path().join("registry"));
        outcome(&mut command)
    };
    let (status, _, stderr) = run(&["--frames", "7", "--preview", "d.mp4", "--record", "d.mcap"]);
    assert_eq!(status, 0, "{stderr}");
    let preview = player::Player::open(
        &folder.path().join("d.mp4"),
        "qtdemux ! avdec_h264 ! video/x-raw,format=I420",
    );
    assert_eq!(preview.unwrap().play().len(), 7);
    let (status, _, stderr) = run(&["--record", "d.mkv"]);
    assert!(status != 0 && stderr.contains("unlike to .mcap, needs"), "{stderr}");
}

#[test]
fn every_kind_of_recording_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_eyes(folder.path(), 5, 5);
    let expected: Vec<_> = (0..5).map(reference).collect();

    // Both views in one image.
    let (width, height) = SIZE;
    let rows = |pair: &StereoPair| {
        (0..height).flat_map(|y| [pair.left.row(y), pair.right.row(y)].concat()).collect()
    };
    let pairs: Vec<_> = (0..5).map(demo_pair).collect();
    let beside: Vec<Vec<u8>> = pairs.iter().map(rows).collect();
    write_grey(&at("beside.mkv"), (2 * width, height), &beside, LOSSLESS);
    let above: Vec<Vec<u8>> =
        pairs.iter().map(|p| [p.left.pixels(), p.right.pixels()].concat()).collect();
    write_grey(&at("above.mkv"), (width, 2 * height), &above, LOSSLESS);
    // Numbered pictures, not from 0.
    for eye in ["left", "right"] {
        std::fs::create_dir(at(eye)).unwrap();
    }
    for (i, pair) in pairs.iter().enumerate() {
        for (eye, picture) in [("left", &pair.left), ("right", &pair.right)] {
            let path = at(eye).join(format!("{:04}.png", 12 + i));
            let (width, height) = (width as u32, height as u32);
            image::save_buffer(path, picture.pixels(), width, height, image::ColorType::L8)
                .unwrap();
        }
    }

    let fragment = |name: &str| {
        format!("filesrc location={} ! matroskademux ! avdec_ffv1", at(name).display())
    };
    let (left, right) = (fragment("l.mkv"), fragment("r.mkv"));
    for source in [
        &["--left", "l.mkv", "--right", "r.mkv"][..],
        &["--side-by-side", "beside.mkv"],
        &["--top-bottom", "above.mkv"],
        &["--left", "left/%04d.png", "--right", "right/%04d.png"],
        &["--left", &left, "--right", &right],
    ] {
        let statistics = statistics(folder.path(), &[source, &["--record", "o.mkv"]].concat());
        assert_eq!(statistics["recorded"], json!(5), "{source:?}: {statistics}");
        assert!(recorded(&at("o.mkv")) == expected, "{source:?}");
    }
}

#[test]
fn the_longer_eye_is_counted_and_nothing_is_mismatched() {
    let folder = tempfile::tempdir().unwrap();
    write_eyes(folder.path(), 9, 6);
    let arguments = ["--left", "l.mkv", "--right", "r.mkv", "--record", "o.mkv"];
    let statistics = statistics(folder.path(), &arguments);
    assert_eq!(statistics["frames"], json!({ "left": 9, "right": 6 }), "{statistics}");
    assert_eq!(statistics["unpaired"], json!({ "left": 3, "right": 0 }));
    assert_eq!(statistics["recorded"], json!(6));
    assert_eq!(recorded(&folder.path().join("o.mkv")), (0..6).map(reference).collect::<Vec<_>>());

    // The same if pairs are made by number; an unknown method of pairing is refused.
    let by_index = [&arguments[..], &["--set", "source.pair_by=index"]].concat();
    assert_eq!(super::statistics(folder.path(), &by_index)["recorded"], json!(6));
    let wrong = [&["run"], &arguments[..], &["--set", "source.pair_by=number"]].concat();
    let (status, _, stderr) = run(folder.path(), &wrong);
    assert!(status == 2 && stderr.contains("index"), "{stderr}");
}

#[test]
fn stills_of_any_size_are_matched() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (width, height) in [(1u32, 1u32), (1, 40), (13, 7), (96, 64)] {
        let pair = demo_pair(3);
        for (name, picture) in [("l.png", &pair.left), ("r.png", &pair.right)] {
            let cut = image::GrayImage::from_fn(width, height, |x, y| {
                image::Luma([picture.row(y as usize)[x as usize]])
            });
            cut.save(at(name)).unwrap();
        }
        for output in ["o.png", "o.pfm", "o.pgm"] {
            let arguments = ["match", "l.png", "r.png", "-o", output, "-d", "24", "-q"];
            let (status, _, stderr) = run(folder.path(), &arguments);
            assert_eq!((status, stderr.as_str()), (0, ""), "{width}x{height} {output}");
        }
        let map = image::open(at("o.png")).unwrap().into_luma16();
        assert_eq!(map.dimensions(), (width, height));
        if (width, height) == (96, 64) {
            assert_eq!(map.into_raw(), reference(3));
        }
    }
}

#[test]
fn without_display_or_output_the_statistics_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["run", "--demo", "--demo-size", "96x64", "-d", "24", "--frames", "3"];
    let (status, stdout, stderr) = run(folder.path(), &arguments);
    assert_eq!(status, 0, "{stderr}");
    assert!(stderr.contains("headless") && stderr.contains("DISPLAY"), "{stderr}");
    for part in ["3 pairs of 96x64 pixels", "matched 3", "engine p50", "against the truth"] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
}
