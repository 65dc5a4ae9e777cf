//! Sources that are faster than matching.

use std::time::Instant;

use super::*;

#[test]
fn a_rate_out_of_reach_takes_all_that_is_cheaper() {
    let folder = tempfile::tempdir().unwrap();
    let scene = ["--demo", "--demo-size", "640x480", "--frames", "2", "--engine", "cpu"];
    for (rate, told, kept) in [("0.1", "with your settings", true), ("1000", "prior = 0", false)] {
        let arguments = [&scene[..], &["--fit", rate, "--paths", "8"]].concat();
        let output = stereod(folder.path(), &with_statistics(&arguments)).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.contains(told), "{stderr}");
        assert_eq!(stderr.contains("paths = 4"), !kept, "{stderr}");
        let statistics: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(statistics["matched"], 2);
    }
}

#[test]
fn a_live_source_that_is_too_fast_is_told_with_a_cure() {
    let folder = tempfile::tempdir().unwrap();
    let eye = "videotestsrc is-live=true pattern=ball ! \
               video/x-raw,format=GRAY8,width=640,height=480,framerate=120/1";
    let arguments =
        ["run", "--left", eye, "--right", eye, "-d", "256", "--paths", "8", "--engine", "cpu"];
    // The first five seconds do not count.
    let more = ["--frames", "1500", "--headless"];
    let output = stereod(folder.path(), &[&arguments[..], &more].concat()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stderr.matches("what would keep up: --fit ").count(), 1, "{stderr}");
}

#[test]
fn a_recording_that_plays_too_slowly_is_told_with_a_cure() {
    let folder = tempfile::tempdir().unwrap();
    let scene = ["run", "--demo", "--demo-size", "640x480", "--set", "demo.rate=120"];
    let slow = ["-d", "256", "--paths", "8", "--engine", "cpu", "--threads", "1", "--headless"];
    let pace = ["--set", "source.pace=realtime", "--set", "demo.frames=0"];
    let mut command = stereod(folder.path(), &[&scene[..], &slow, &pace].concat());
    let log = folder.path().join("log");
    command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
    let mut child = command.spawn().unwrap();
    let read = || std::fs::read_to_string(&log).unwrap();
    let (start, told) = (Instant::now(), "the recording has 120 pairs/s and ");
    while !read().contains(told) && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    signal(&child, libc::SIGTERM);
    assert!(child.wait().unwrap().success(), "{}", read());
    assert_eq!(read().matches(told).count(), 1, "{}", read());
    assert!(read().contains("what would keep up: --fit 120 "), "{}", read());
}

/// Cheaper settings still cover near objects.
#[test]
fn a_rate_never_costs_disparities_that_the_pictures_need() {
    let folder = tempfile::tempdir().unwrap();
    let sources = ranges::walls(folder.path(), 3);
    let fit = ["-d", "128", "--fit", "1000", "--engine", "cpu", "--threads", "1"];
    let (statistics, stderr) = ranges::run_all(folder.path(), sources, &fit);
    let disparities = statistics["settings"]["matching"]["disparities"].as_u64().unwrap();
    assert_eq!(disparities, 80, "{stderr}");
    assert!(!stderr.contains("too few disparities"), "{stderr}");
    let told = "can be had, with prior = 0, cost_window = 0, disparities = 80 (";
    assert!(stderr.contains(told), "{stderr}");
    assert!(
        stderr.contains("; fewer than 80 disparities might miss what is near; pictures of"),
        "{stderr}"
    );
}
