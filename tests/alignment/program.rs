//! Messages of the program about alignment.

use serde_json::{Value, json};
use stereod_core::picture::png::encode_grey;

use super::*;
use crate::common::outcome::outcome;
use crate::common::program::stereod;

/// Standard output and standard error of `stereod ARGUMENTS` in `folder`, which must succeed.
fn succeed(folder: &Path, arguments: &[&str]) -> (String, String) {
    let (status, stdout, stderr) = outcome(stereod(arguments).current_dir(folder));
    assert_eq!(status, 0, "{arguments:?}: {stderr}");
    (stdout, stderr)
}

/// Settings that make maps quickly: the check looks at the pictures alone.
const QUICK: [&str; 8] = ["-d", "32", "--prior", "0", "--evidence", "off", "--spatial", "off"];

/// `stereod run --headless` over two streams: its statistics and the log's lines about the
/// alignment.
fn run(folder: &Path, left: &str, right: &str, more: &[&str]) -> (Value, Vec<String>) {
    let arguments = ["run", "--headless", "--left", left, "--right", right, "--stats", "-"];
    let (stdout, stderr) = succeed(folder, &[&arguments, &QUICK[..], more].concat());
    let about = [
        "rows of the two",
        "rows aligned",
        "not rectified",
        "not well rectified",
        "to be exchanged",
        "different moments",
        "in common",
    ];
    let lines = stderr.lines().filter(|line| about.iter().any(|word| line.contains(word)));
    (serde_json::from_str(&stdout).unwrap(), lines.map(str::to_owned).collect())
}

#[test]
fn run_says_once_how_the_eyes_are_aligned() {
    let Some(folder) = data("euroc_v1_01") else { return };
    let frames = ["--frames", "20"];
    for (left, right, verdict, level, words) in [
        ("rectified/left.mp4", "rectified/right.mp4", "good", "INFO", "rows aligned to 0."),
        ("rectified/right.mp4", "rectified/left.mp4", "swapped", "WARN", "exchange the two inputs"),
        ("cam0.mp4", "cam1.mp4", "not-rectified", "WARN", "give --calibration FILE"),
        // Six frames end before the check has settled; its result is reported all the same.
        ("png/cam0/%06d.png", "png/cam1/%06d.png", "not-rectified", "WARN", "not rectified"),
    ] {
        let (statistics, lines) = run(&folder, left, right, &frames);
        let alignment = &statistics["alignment"];
        assert_eq!(alignment["verdict"], verdict, "{left}: {statistics}");
        assert_eq!(lines.len(), 1, "{left}: {lines:?}");
        assert!(lines[0].contains(level) && lines[0].contains(words), "{left}: {lines:?}");
        assert!(alignment["measurements"].as_u64().unwrap() >= 1, "{alignment}");
        let error = alignment["row_error_px"].as_f64().unwrap();
        if verdict == "not-rectified" {
            assert!((11.0..15.0).contains(&error), "{alignment}");
        } else {
            assert!(error < 0.2 && alignment["roll_deg"].as_f64().unwrap().abs() < 0.02);
        }
        // The check does not count as an output.
        assert_eq!(statistics["outputs"], serde_json::json!([]), "{statistics}");
    }
}

/// Raw views with a calibration: exchanged, their rows differ by more than a bump would explain; of different
/// moments, they agree.
#[test]
fn views_that_are_exchanged_or_of_other_moments_are_told_under_a_calibration() {
    let Some(folder) = data("euroc_v1_01") else { return };
    let calibrated = ["--calibration", "kalibr_camchain.yaml"];
    let (statistics, lines) = run(&folder, "cam1.mp4", "cam0.mp4", &calibrated);
    assert_eq!(statistics["alignment"]["verdict"], "swapped", "{statistics}");
    assert!(lines.len() == 1 && lines[0].contains("exchange the two inputs"), "{lines:?}");
    for (offset, cure) in [("500", "`--offset 0`"), ("-1000", "`--offset 0`")] {
        let shifted = [&calibrated[..], &["--offset", offset]].concat();
        let (statistics, lines) = run(&folder, "cam0.mp4", "cam1.mp4", &shifted);
        assert_eq!(statistics["alignment"]["verdict"], "other-moment", "{statistics}");
        assert!(lines.iter().any(|line| line.contains(cure)), "{lines:?}");
    }
    let (statistics, lines) = run(&folder, "cam0.mp4", "cam1.mp4", &calibrated);
    assert_eq!(statistics["alignment"]["verdict"], "good", "{statistics}");
    assert!(lines.len() == 1 && lines[0].contains("rows aligned to 0."), "{lines:?}");
}

#[test]
fn the_check_can_be_switched_off_and_its_limit_set() {
    let Some(folder) = data("euroc_v1_01") else { return };
    let off = ["--frames", "12", "--set", "alignment.check=false"];
    let (statistics, lines) = run(&folder, "cam0.mp4", "cam1.mp4", &off);
    assert_eq!((lines, statistics.get("alignment")), (vec![], None));
    let Some(folder) = data("oakd_patio/rectified") else { return };
    let strict = ["--frames", "12", "--set", "alignment.warn_px=0.5"];
    let (statistics, lines) = run(&folder, "left.mp4", "right.mp4", &strict);
    assert_eq!(statistics["alignment"]["verdict"], "rows-off");
    // The rows have never agreed in this run, so a bump cannot be diagnosed.
    assert!(lines.len() == 1 && lines[0].contains("differ by") && !lines[0].contains("bumped"));
}

#[test]
fn people_read_it_after_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["run", "--headless", "--demo", "--demo-size", "320x240", "--frames", "3"];
    let (stdout, _) = succeed(folder.path(), &arguments);
    assert!(stdout.contains("alignment of the views: good, rows differ by 0.0"), "{stdout}");
}

#[test]
fn match_warns_as_well() {
    let Some(folder) = data("euroc_v1_01") else { return };
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("o.png").display().to_string();
    let warning = |left: &str, right: &str, more: &[&str]| {
        let arguments = [&["match", left, right, "-o", &out][..], more].concat();
        let (_, stderr) = succeed(&folder, &arguments);
        stderr.lines().filter(|line| line.contains("WARN")).map(str::to_owned).collect::<Vec<_>>()
    };
    let (left, right) = ("rectified/png/cam0/000016.png", "rectified/png/cam1/000016.png");
    assert_eq!(warning(left, right, &[]), [""; 0]);
    let exchanged = warning(right, left, &[]);
    assert!(exchanged.iter().any(|line| line.contains("exchanged (")), "{exchanged:?}");
    let (left, right) = ("png/cam0/000016.png", "png/cam1/000016.png");
    let raw = warning(left, right, &[]);
    assert!(raw.iter().any(|line| line.contains("give --calibration FILE")), "{raw:?}");
    assert_eq!(warning(left, right, &["--set", "alignment.check=false"]), [""; 0]);
    // Under a calibration the rows of exchanged views are far apart.
    let calibrated = ["--calibration", "kalibr_camchain.yaml"];
    assert_eq!(warning(left, right, &calibrated), [""; 0]);
    let exchanged = warning(right, left, &calibrated);
    assert!(exchanged.iter().any(|line| line.contains("exchanged (")), "{exchanged:?}");
}

#[test]
fn match_can_be_strict_about_views_that_do_not_fit_together() {
    let folder = tempfile::tempdir().unwrap();
    let (width, height) = (200, 150);
    let texture = |seed: usize, shift: usize| {
        Image::from_fn(width, height, move |x, y| {
            let mixed = ((x + shift) / 2).wrapping_mul(0x9e37_79b9)
                ^ (y / 2 + 1000 * seed).wrapping_mul(0x85eb_ca6b);
            (mixed.wrapping_mul(0xc2b2_ae35) >> 11) as u8 / 2 + 60
        })
    };
    let white = |shift| {
        let view: Image = texture(1, shift);
        Image::from_fn(width, height, |x, y| if y < 60 { 255 } else { view.row(y)[x] })
    };
    for (name, view) in [
        ("l", texture(1, 0)),
        ("r", texture(1, 5)),
        ("other", texture(2, 0)),
        ("white-l", white(0)),
        ("white-r", white(5)),
    ] {
        let file = encode_grey(view.pixels(), width, height).unwrap();
        std::fs::write(folder.path().join(name), file).unwrap();
    }
    let matched = |left: &str, right: &str, strict: &[&str]| {
        let arguments = [&["match", left, right, "-o", "d.png", "-d", "16"][..], strict].concat();
        let (status, _, stderr) = outcome(stereod(&arguments).current_dir(folder.path()));
        (status, stderr)
    };
    for (left, right, words) in [
        ("l", "other", "% of the pixels have a disparity, so the views hardly fit together"),
        ("white-l", "white-r", "view's pixels are white, where nothing can be matched"),
        ("l", "l", "the same picture"),
    ] {
        let (status, stderr) = matched(left, right, &[]);
        assert!(status == 0 && stderr.contains(words), "{left} {right}: {status} {stderr}");
        let (status, stderr) = matched(left, right, &["--strict"]);
        assert!(status == 5 && stderr.contains(words), "{left} {right}: {status} {stderr}");
    }
    let (status, stderr) = matched("l", "r", &["--strict"]);
    assert!(status == 0 && !stderr.contains("WARN"), "{stderr}");

    // The share of known pixels, in words and as JSON with the keys of a run's statistics.
    let said = |right: &str, more: &[&str]| {
        let arguments = [&["match", "l", right, "-o", "d.pfm", "-d", "16"][..], more].concat();
        let (status, stdout, stderr) = outcome(stereod(&arguments).current_dir(folder.path()));
        assert_eq!(status, 0, "{stderr}");
        stdout
    };
    let json: Value = serde_json::from_str(&said("r", &["--json", "--verify"])).unwrap();
    let floats = std::fs::read(folder.path().join("d.pfm")).unwrap();
    let pixels = floats[floats.len() - 4 * width * height..].as_chunks::<4>().0;
    let known = pixels.iter().filter(|bytes| f32::from_le_bytes(**bytes).is_finite()).count();
    let known = 100.0 * known as f64 / (width * height) as f64;
    assert!((json["known"].as_f64().unwrap() - known).abs() < 0.01 && known > 50.0, "{json}");
    assert_eq!(said("r", &[]), format!("pixels with a disparity: {known:.1} %\n"));
    assert_eq!(said("r", &["-q"]), "");
    assert_eq!((&json["width"], &json["disparities"]), (&width.into(), &16.into()));
    assert_eq!(json["verified"], width * height);
    assert_eq!((&json["alignment"]["verdict"], &json["warnings"]), (&"good".into(), &json!([])));
    let json: Value = serde_json::from_str(&said("other", &["--json"])).unwrap();
    assert!(json["warnings"].as_array().unwrap().iter().any(|told| told["check"] == "density"));
}

/// If the rows move up and down all the time, as with a loose camera, no calibration is advised.
#[test]
fn wandering_rows_are_told_with_their_range() {
    let Some(folder) = data("euroc_v1_01/rectified/png") else { return };
    let pairs = EUROC.map(|number| euroc(&folder, number));
    let clip = tempfile::tempdir().unwrap();
    for i in 0..90usize {
        let pair = &pairs[i / 4 % 6];
        let rows = (-2.0 + 12.0 * (i as f64 * 0.15).sin()).round() as i64;
        let moved = Image::from_fn(752, 480, |x, y| {
            pair.right.row((y as i64 - rows).clamp(0, 479) as usize)[x]
        });
        for (name, picture) in [("l", &pair.left), ("r", &moved)] {
            let file = encode_grey(picture.pixels(), 752, 480).unwrap();
            std::fs::write(clip.path().join(format!("{name}{i:03}.png")), file).unwrap();
        }
    }
    let more = ["--set", "source.picture_rate=10", "--set", "source.pace=realtime"];
    let (statistics, lines) = run(clip.path(), "l%03d.png", "r%03d.png", &more);
    let alignment = &statistics["alignment"];
    assert_eq!(alignment["verdict"], "wandering", "{statistics}");
    assert!(alignment["wandered_px"][0].as_f64().unwrap() < -8.0, "{alignment}");
    assert!(alignment["wandered_px"][1].as_f64().unwrap() > 5.0, "{alignment}");
    assert!(!lines.is_empty() && lines.len() < 5, "{lines:?}");
    for line in &lines {
        assert!(line.contains("wander") && line.contains("synchronise"), "{lines:?}");
        assert!(!line.contains("--calibration") && !line.contains("bumped"), "{lines:?}");
    }
}
