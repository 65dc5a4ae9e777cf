//! Number of disparities: a warning if it is too small, automatic choice, and the same image given
//! as both views.

use std::path::Path;

use serde_json::{Value, json};

use super::run;
use crate::common::data::data;

const TOO_FEW: &str = "too few disparities";

/// A textured wall, `near` pixels of disparity in its middle third and 10 around it, moved by `shift`.
fn wall(near: u32, shift: usize) -> [image::GrayImage; 2] {
    let texture = |x: u32, y: u32| {
        let noise = (x / 2).wrapping_mul(0x9e37_79b9) ^ (y / 2).wrapping_mul(0x85eb_ca6b);
        image::Luma([(noise.wrapping_mul(0xc2b2_ae35) >> 11) as u8])
    };
    let (far, shift) = (10, shift as u32);
    let middle = 120..220;
    let eye = |near: u32, far: u32| {
        image::GrayImage::from_fn(320, 96, |x, y| match middle.contains(&(x + near)) {
            true => texture(x + near + shift + 1000, y),
            false => texture(x + far + shift, y),
        })
    };
    [eye(0, 0), eye(near, far)]
}

/// Writes `pairs` numbered pairs of the wall and returns the sources' names.
pub fn walls(folder: &Path, pairs: usize) -> [&'static str; 2] {
    for number in 0..pairs {
        let [left, right] = wall(52, 2 * number);
        left.save(folder.join(format!("left{number:02}.png"))).unwrap();
        right.save(folder.join(format!("right{number:02}.png"))).unwrap();
    }
    ["left%02d.png", "right%02d.png"]
}

fn match_first(folder: &Path, more: &[&str]) -> String {
    let arguments = ["match", "left00.png", "right00.png"];
    let (status, _, stderr) = run(folder, &[&arguments[..], more].concat());
    assert_eq!(status, 0, "{more:?}: {stderr}");
    stderr
}

pub fn run_all(folder: &Path, [left, right]: [&str; 2], more: &[&str]) -> (Value, String) {
    let arguments = ["run", "--left", left, "--right", right, "--headless", "--stats", "-"];
    let (status, stdout, stderr) = run(folder, &[&arguments[..], more].concat());
    assert_eq!(status, 0, "{more:?}: {stderr}");
    (serde_json::from_str(&stdout).unwrap(), stderr)
}

#[test]
fn match_names_a_number_that_would_do_and_chooses_it_itself() {
    let folder = tempfile::tempdir().unwrap();
    walls(folder.path(), 1);
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let stderr = match_first(folder.path(), &["-d", "32", "-o", "few.png"]);
    assert!(stderr.contains(TOO_FEW) && stderr.contains("--disparities 64 would do"), "{stderr}");
    let stderr = match_first(folder.path(), &["-d", "64", "-o", "enough.png"]);
    assert!(!stderr.contains(TOO_FEW), "{stderr}");
    let stderr = match_first(folder.path(), &["-d", "auto", "-o", "auto.png"]);
    assert!(stderr.contains("64 disparities, chosen from the pair"), "{stderr}");
    assert!(!stderr.contains(TOO_FEW), "{stderr}");
    assert!(read("auto.png") == read("enough.png"), "the same map");
    let more = ["-d", "auto", "--min-disparity", "8", "-o", "from8.png"];
    let stderr = match_first(folder.path(), &more);
    assert!(stderr.contains("48 disparities, chosen"), "{stderr}");
}

#[test]
fn run_chooses_from_the_first_pairs_and_loses_none_of_them() {
    let folder = tempfile::tempdir().unwrap();
    for pairs in [1, 3, 7] {
        let sources = walls(folder.path(), pairs);
        let dir = |name: &str| format!("{name}{pairs}");
        let (auto, given) = (dir("auto"), dir("given"));
        let (statistics, stderr) =
            run_all(folder.path(), sources, &["-d", "auto", "--pictures", &auto]);
        assert!(stderr.contains("80 disparities, chosen from the"), "{stderr}");
        assert_eq!(statistics["settings"]["matching"]["disparities"], 80, "{statistics}");
        assert_eq!(statistics["written"], json!({ "pictures": pairs }), "{statistics}");
        let (statistics, _) = run_all(folder.path(), sources, &["-d", "80", "--pictures", &given]);
        assert_eq!(statistics["matched"], pairs);
        for entry in std::fs::read_dir(folder.path().join(&given)).unwrap() {
            let name = entry.unwrap().file_name();
            if name == ".stereod-files" {
                // It has times.
                continue;
            }
            let of = |dir: &str| std::fs::read(folder.path().join(dir).join(&name)).unwrap();
            assert!(of(&auto) == of(&given), "{name:?}");
        }
    }
    let sources = ["left%02d.png", "right%02d.png"];
    let more = ["--set", "matching.disparities=auto", "--frames", "2", "--record", "two.mkv"];
    let (statistics, _) = run_all(folder.path(), sources, &more);
    assert_eq!((&statistics["matched"], &statistics["recorded"]), (&json!(2), &json!(2)));
    assert_eq!(statistics["pairs"], 2);
}

#[test]
fn run_says_once_that_disparities_are_too_few() {
    let folder = tempfile::tempdir().unwrap();
    let sources = walls(folder.path(), 6);
    let (statistics, stderr) = run_all(folder.path(), sources, &["-d", "32"]);
    assert_eq!(stderr.matches(TOO_FEW).count(), 1, "{stderr}");
    assert_eq!(statistics["too_few_disparities"]["enough"], 80, "{statistics}");
    let told = &statistics["warnings"][0];
    assert_eq!((&told["check"], &told["stands"]), (&json!("range"), &json!(true)), "{statistics}");
    let (statistics, stderr) = run_all(folder.path(), sources, &["-d", "64"]);
    assert!(!stderr.contains(TOO_FEW), "{stderr}");
    assert_eq!(statistics.get("too_few_disparities"), None);
    assert_eq!(statistics.get("warnings"), None);
}

#[test]
fn strict_jobs_fail_if_a_warning_still_holds() {
    let folder = tempfile::tempdir().unwrap();
    let [left, right] = walls(folder.path(), 6);
    let ran = |more: &[&str]| {
        let arguments =
            ["run", "--left", left, "--right", right, "--headless", "--pictures", "out"];
        run(folder.path(), &[&arguments[..], more].concat())
    };
    let (status, stdout, _) = ran(&["-d", "32"]);
    assert_eq!(status, 0);
    assert!(stdout.contains("\n  warning: too few disparities: about"), "{stdout}");
    let (status, _, stderr) = ran(&["-d", "32", "--strict"]);
    assert_eq!(status, 5, "{stderr}");
    assert!(stderr.contains("error: the pair check warns (--strict):\n  - too few"), "{stderr}");
    assert!(folder.path().join("out/000005.png").exists());
    let (status, stdout, stderr) = ran(&["-d", "64", "--strict"]);
    assert!(status == 0 && !stdout.contains("warning"), "{stdout} {stderr}");
    let matched = |disparities| {
        let arguments = ["match", "left00.png", "right00.png", "-o", "o.png", "--strict", "-d"];
        run(folder.path(), &[&arguments[..], &[disparities]].concat())
    };
    let (status, _, stderr) = matched("32");
    assert!(status == 5 && stderr.contains("--disparities 64 would do"), "{stderr}");
    assert!(folder.path().join("o.png").exists());
    assert_eq!(matched("64").0, 0);
}

/// Later pairs may show nearer objects than `auto` has seen; the advice must not be `auto` then.
#[test]
fn auto_is_not_the_advice_to_whoever_said_auto() {
    let folder = tempfile::tempdir().unwrap();
    // Maps are checked every two seconds.
    for number in 0..90 {
        let [left, right] = wall(if number < 8 { 12 } else { 52 }, 0);
        left.save(folder.path().join(format!("left{number:02}.png"))).unwrap();
        right.save(folder.path().join(format!("right{number:02}.png"))).unwrap();
    }
    let more = ["-d", "auto", "--set", "source.pace=realtime"];
    let (statistics, stderr) = run_all(folder.path(), ["left%02d.png", "right%02d.png"], &more);
    assert!(stderr.contains("32 disparities, chosen from the first 4 pairs"), "{stderr}");
    assert_eq!(stderr.matches(TOO_FEW).count(), 1, "{stderr}");
    let told = "--disparities 80 would do (auto has looked at the first pairs only)";
    assert!(stderr.contains(told), "{stderr}");
    assert_eq!(statistics["too_few_disparities"]["enough"], 80, "{statistics}");
}

#[test]
fn one_picture_as_both_eyes_is_noticed() {
    const SAME: &str = "left and right are the same picture";
    let folder = tempfile::tempdir().unwrap();
    walls(folder.path(), 6);
    std::fs::copy(folder.path().join("left00.png"), folder.path().join("copy.png")).unwrap();
    let matched = |right: &str| {
        let arguments = ["match", "left00.png", right, "-o", "o.png"];
        run(folder.path(), &arguments).2
    };
    for right in ["left00.png", "copy.png"] {
        assert_eq!(matched(right).matches(SAME).count(), 1);
    }
    assert!(!matched("right00.png").contains(SAME));
    let (_, stderr) = run_all(folder.path(), ["left%02d.png"; 2], &[]);
    assert_eq!(stderr.matches(SAME).count(), 1, "{stderr}");
    let (_, stderr) = run_all(folder.path(), ["left%02d.png", "right%02d.png"], &[]);
    assert!(!stderr.contains(SAME), "{stderr}");
}

#[test]
fn what_each_output_wrote_and_how_fast_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let sources = walls(folder.path(), 3);
    let (statistics, _) = run_all(folder.path(), sources, &["-d", "64", "--pictures", "p"]);
    assert_eq!(statistics["written"], json!({ "pictures": 3 }), "{statistics}");
    assert_eq!(statistics.get("recorded"), None, "nothing was to be recorded");
    assert_eq!(statistics.get("latency_ms"), None, "pairs waited in queues");
    assert!(statistics["engine_ms"]["p50"].as_f64().unwrap() > 0.0);
    let more = ["-d", "64", "--record", "d.mkv", "--preview", "d.mp4", "--set"];
    let more = [&more[..], &["source.pace=realtime"]].concat();
    let (statistics, _) = run_all(folder.path(), sources, &more);
    assert_eq!(statistics["written"], json!({ "recording": 3, "preview": 3 }), "{statistics}");
    assert_eq!(statistics["recorded"], 3);
    assert!(statistics["latency_ms"]["p50"].as_f64().unwrap() > 0.0);
}

#[test]
fn the_colours_of_match_span_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    walls(folder.path(), 1);
    let coloured = |more: &[&str]| {
        let arguments = ["-d", "128", "-o", "o.png", "--colour", "c.png", "--colour-map", "grey"];
        let stderr = match_first(folder.path(), &[&arguments[..], more].concat());
        let picture = image::open(folder.path().join("c.png")).unwrap().into_luma8();
        // Of the near part and of the far one.
        let [near, far] = [170, 280].map(|x| picture.get_pixel(x, 48).0[0]);
        (near, far, stderr)
    };
    let (near, far, stderr) = coloured(&[]);
    assert!(near > 240 && far < 15, "{near} {far}");
    assert!(stderr.contains("c.png: the colours span "), "{stderr}");
    let (near, far, _) = coloured(&["--set", "colour.range=fixed"]);
    assert!((95..115).contains(&near) && (15..25).contains(&far), "{near} {far}");
}

/// Pairs that a live source delivers while the first pairs are examined are matched, or counted as
/// dropped.
#[test]
fn every_pair_of_a_live_source_is_accounted_for() {
    let folder = tempfile::tempdir().unwrap();
    let eye = "videotestsrc is-live=true pattern=snow ! \
               video/x-raw,width=320,height=240,framerate=30/1";
    let (statistics, stderr) =
        run_all(folder.path(), [eye, eye], &["-d", "auto", "--frames", "30"]);
    let count = |key: &str| statistics[key].as_u64().unwrap();
    assert!(stderr.contains("the first 4 pairs"), "{stderr}");
    assert!(count("matched") >= 4, "{statistics}");
    assert_eq!(count("matched") + count("dropped"), count("pairs"), "{statistics}");
    assert!(statistics["latency_ms"]["p50"].as_f64().unwrap() > 0.0);
}

/// Images of real scenes, with half of the disparities they have and with all of them.
#[test]
fn real_pictures_with_half_of_their_range_are_told_from_those_with_all_of_it() {
    for (below, left, right, few, enough) in [
        ("kitti2015/000020_10", "image_2.png", "image_3.png", "48", "128"),
        ("kitti2015/000008_10", "image_2.png", "image_3.png", "48", "128"),
        ("middlebury_v2/teddy", "imL.png", "imR.png", "32", "64"),
        ("middlebury_v2/venus", "imL.png", "imR.png", "16", "32"),
    ] {
        let Some(folder) = data(below) else { return };
        let out = tempfile::tempdir().unwrap();
        let output = out.path().join("o.pfm");
        let told = |disparities: &str| {
            let output = output.to_str().unwrap();
            let arguments = ["match", left, right, "-d", disparities, "-o", output];
            let (status, _, stderr) = run(&folder, &arguments);
            assert_eq!(status, 0, "{stderr}");
            stderr
        };
        assert!(told(few).contains(TOO_FEW), "{below} with {few}");
        assert!(!told(enough).contains(TOO_FEW), "{below} with {enough}");
        assert!(told("auto").contains("disparities, chosen from the pair"), "{below}");
    }
}
