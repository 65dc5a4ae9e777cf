//! Pairs with wrong times, jumping times, and different starts.

use super::*;
use crate::common::numbered_videos::{steady, view, write};
use stereod::Eye;

const RATE: i32 = 30;

/// Frame numbers and their times in seconds as a lossless video.
fn write_view(folder: &Path, eye: Eye, pictures: &[(u8, f64)]) {
    let name = if eye == Eye::Left { "l.mkv" } else { "r.mkv" };
    let at = |&(number, seconds): &(u8, f64)| (view(eye, number), Duration::from_secs_f64(seconds));
    let pictures: Vec<_> = pictures.iter().map(at).collect();
    write(&folder.join(name), &pictures, RATE, LOSSLESS);
}

/// `count` pictures at 30 a second from `start` on.
fn from(start: f64, count: u8) -> Vec<(u8, f64)> {
    let start = Duration::from_secs_f64(start);
    steady(count, RATE as u64, start).into_iter().map(|(n, time)| (n, time.as_secs_f64())).collect()
}

const BOTH: [&str; 4] = ["--left", "l.mkv", "--right", "r.mkv"];

/// Statistics and messages of a run of both views.
fn run_both(folder: &Path, arguments: &[&str]) -> (Value, String) {
    let arguments = with_statistics(&[&BOTH[..], arguments].concat());
    let (status, stdout, stderr) = run(folder, &arguments);
    assert_eq!(status, 0, "{stderr}");
    (serde_json::from_str(&stdout).unwrap(), stderr)
}

#[test]
fn one_wrong_time_in_a_recording_costs_one_picture() {
    // Matroska's blocks reach 32 s.
    for wrong in [30.0, 0.0] {
        let folder = tempfile::tempdir().unwrap();
        let mut left = from(5.0, 61);
        left[10].1 = wrong;
        write_view(folder.path(), Eye::Left, &left);
        write_view(folder.path(), Eye::Right, &from(5.0, 61));
        let (statistics, stderr) = run_both(folder.path(), &[]);
        assert_eq!(statistics["pairs"], 60, "{stderr}");
        assert_eq!(statistics["damaged"]["left"]["mistimed"], 1, "{statistics}");
        assert!(stderr.contains(&format!("a picture's time, {wrong:.3} s, is wrong")), "{stderr}");
        assert!(!stderr.contains("pictures were paired"), "{stderr}");
    }
}

#[test]
fn joined_recordings_are_paired_to_the_end() {
    let folder = tempfile::tempdir().unwrap();
    // The left view's first part is two frames longer.
    let joined = |first| [from(2.0, first), from(2.0, 40)].concat();
    write_view(folder.path(), Eye::Left, &joined(102));
    write_view(folder.path(), Eye::Right, &joined(100));
    let (statistics, stderr) = run_both(folder.path(), &["--record", "o.mkv"]);
    assert_eq!(statistics["pairs"], 140, "{stderr}");
    assert_eq!(stderr.matches("the times of both views jump back").count(), 1, "{stderr}");
    // The recording's times continue.
    let player = player::Player::open(&folder.path().join("o.mkv"), player::RECORDING).unwrap();
    let seconds = player.duration().unwrap().as_secs_f64();
    assert!((4.6..4.9).contains(&seconds), "{seconds}");
}

#[test]
fn a_view_whose_times_jump_alone_is_told_with_the_cure() {
    let folder = tempfile::tempdir().unwrap();
    let jumps = [from(2.0, 100), from(2.0, 40)].concat();
    write_view(folder.path(), Eye::Left, &jumps);
    write_view(folder.path(), Eye::Right, &from(2.0, 140));
    let (statistics, stderr) = run_both(folder.path(), &[]);
    assert_eq!(statistics["pairs"], 100, "{stderr}");
    for part in ["only 100 of 140 left and 140 right pictures", "--set source.pair_by=index"] {
        assert!(stderr.contains(part), "{stderr}");
    }
    let (statistics, stderr) = run_both(folder.path(), &["--set", "source.pair_by=index"]);
    assert_eq!(statistics["pairs"], 140, "{stderr}");
}

#[test]
fn recordings_that_begin_apart_are_told_and_shifted() {
    let folder = tempfile::tempdir().unwrap();
    write_view(folder.path(), Eye::Left, &from(1.0667, 30));
    write_view(folder.path(), Eye::Right, &from(1.0, 30));
    let (statistics, stderr) = run_both(folder.path(), &[]);
    assert_eq!(statistics["pairs"], 28, "{stderr}");
    assert!(stderr.contains("the left recording's first picture is 67.0 ms"), "{stderr}");
    assert!(stderr.contains("(2.0 frames) later") && stderr.contains("`--offset 67`"), "{stderr}");
    for (offset, pairs) in [("66.7", 30), ("-33.3", 27)] {
        let (statistics, stderr) = run_both(folder.path(), &["--offset", offset]);
        assert_eq!(statistics["pairs"], pairs, "{stderr}");
        assert!(!stderr.contains("first picture is"), "{stderr}");
    }
    // Nothing moves in these frames but the stripes of their numbers.
    let arguments = with_statistics(&[&BOTH[..], &["--offset", "auto"]].concat());
    let (status, _, stderr) = run(folder.path(), &arguments);
    assert_eq!(status, 1, "{stderr}");
    assert!(
        stderr.contains("`--offset auto` finds none: ") && stderr.contains("--offset MS"),
        "{stderr}"
    );
}

#[test]
fn views_that_drift_are_told_with_their_rates_in_any_part() {
    let folder = tempfile::tempdir().unwrap();
    write_view(folder.path(), Eye::Left, &from(1.0, 60));
    let slower: Vec<_> = (0..58).map(|n| (n, 1.0 + f64::from(n) / 29.0)).collect();
    write_view(folder.path(), Eye::Right, &slower);
    // A pair lies up to half a frame apart after half a second; within a tenth of one, less than a quarter.
    for (part, is_far) in [(&["--frames", "10..20"][..], true), (&["--frames", "0..4"], false)] {
        let (_, stderr) = run_both(folder.path(), part);
        assert_eq!(stderr.contains("the views of a pair are often"), is_far, "{stderr}");
        let rates = "the left view has 30 frames a second and the right one 2";
        assert_eq!(stderr.matches(rates).count(), usize::from(is_far), "{stderr}");
    }
}

/// A camera that sways up and down; the right view was started 9 frames earlier.
#[test]
fn the_offset_of_two_recordings_is_found_from_their_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let (width, height) = SIZE;
    let picture = |number: usize, near: f64| -> Vec<u8> {
        let t = number as f64;
        let down = 3.0 * ((0.31 * t).sin() + (0.113 * t).sin() + 0.6 * (0.77 * t).cos());
        let grey = |at: usize| {
            let (x, y) = ((at % width) as f64 + near, (at / width) as f64 + down);
            let waves = (0.31 * y + 0.07 * x).sin() + (0.13 * y - 0.05 * x).sin();
            (128.0 + 50.0 * waves + 20.0 * (0.9 * y).sin()) as u8
        };
        (0..width * height).map(grey).collect()
    };
    for (name, near, begin) in [("l.mkv", 0.0, 9), ("r.mkv", 5.0, 0)] {
        let pictures: Vec<_> = (begin..begin + 70).map(|number| picture(number, near)).collect();
        write_grey(&folder.path().join(name), SIZE, &pictures, LOSSLESS);
    }
    let (statistics, stderr) = run_both(folder.path(), &["--offset", "auto"]);
    assert_eq!(statistics["pairs"], 61, "{stderr}");
    let said = "an offset of -300.0 ms (right picture 9 is of the moment of left picture 0)";
    assert!(stderr.contains(said), "{stderr}");
}

#[test]
fn recordings_without_a_common_moment_are_an_error_and_leave_no_file() {
    let folder = tempfile::tempdir().unwrap();
    write_view(folder.path(), Eye::Left, &from(3600.0, 20));
    write_view(folder.path(), Eye::Right, &from(0.0, 20));
    let outputs = ["--record", "o.mkv", "--preview", "p.mp4", "--pictures", "pictures"];
    let (status, _, stderr) = run(folder.path(), &with_statistics(&[&BOTH[..], &outputs].concat()));
    assert_eq!(status, 1, "{stderr}");
    let parts = ["begin at 3600.000 s", "at 0.000 s", "--offset 3600000", "source.pair_by=index"];
    for part in parts {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    // A file that begins late is not reported as damaged either.
    assert!(!stderr.contains("pictures came"), "{stderr}");
    let mut left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    left.sort_by_key(|entry| entry.file_name());
    let names: Vec<_> = left.iter().map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["l.mkv", "pictures", "r.mkv"]);
    assert_eq!(std::fs::read_dir(folder.path().join("pictures")).unwrap().count(), 0);
}

#[test]
fn an_offset_needs_times_and_two_recordings() {
    let folder = tempfile::tempdir().unwrap();
    write_view(folder.path(), Eye::Left, &from(0.0, 10));
    write_view(folder.path(), Eye::Right, &from(0.0, 10));
    let by_number = ["--offset", "33", "--set", "source.pair_by=index"];
    let (status, _, stderr) =
        run(folder.path(), &with_statistics(&[&BOTH[..], &by_number].concat()));
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("offset_ms"), "{stderr}");
    let live = "videotestsrc is-live=true ! video/x-raw,format=GRAY8,width=96,height=64";
    let live = ["--left", live, "--right", live, "--offset", "auto"];
    let (status, _, stderr) = run(folder.path(), &with_statistics(&live));
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("compares two recordings"), "{stderr}");
    let (status, _, stderr) = run(folder.path(), &["run", "--demo", "--offset", "33"]);
    assert_eq!(status, 2, "{stderr}");
}

/// One frame an hour ahead, then the frames of its time again.
#[test]
fn one_wrong_time_of_a_live_view_costs_one_picture() {
    let folder = tempfile::tempdir().unwrap();
    let caps = "video/x-raw,format=GRAY8,width=64,height=48,framerate=30/1";
    let left = format!(
        "videotestsrc is-live=true num-buffers=40 pattern=snow ! {caps} ! c. \
         videotestsrc num-buffers=1 timestamp-offset=3600000000000 ! {caps} ! c. \
         videotestsrc is-live=true pattern=ball ! {caps} ! c. \
         concat name=c adjust-base=false ! identity"
    );
    let right = format!("videotestsrc is-live=true pattern=ball ! {caps}");
    let arguments = ["--left", &left, "--right", &right, "--frames", "120"];
    let statistics = statistics(folder.path(), &[&arguments[..], &PATIENT].concat());
    assert_eq!(statistics["pairs"], 120, "{statistics}");
    assert_eq!(statistics["live"]["left"]["mistimed"], 1, "{statistics}");
}
