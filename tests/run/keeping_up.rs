//! Sources that are faster than matching.

use super::*;

#[test]
fn a_rate_out_of_reach_takes_all_that_is_cheaper() {
    let folder = tempfile::tempdir().unwrap();
    let scene = ["--demo", "--frames", "2", "--engine", "cpu", "--paths", "8"];
    // Any machine has ten seconds for a small pair, and none a millisecond for a large one.
    for (size, rate, told, kept) in
        [("96x64", "0.1", "with your settings", true), ("640x480", "1000", "prior = 0", false)]
    {
        let arguments = [&scene[..], &["--demo-size", size, "--fit", rate]].concat();
        let (status, stdout, stderr) = run(folder.path(), &with_statistics(&arguments));
        assert!(status == 0 && stderr.contains(told), "{stderr}");
        assert_eq!(stderr.contains("paths = 4"), !kept, "{stderr}");
        let statistics: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(statistics["matched"], 2);
    }
}

/// Runs until `told` is said, and returns all that was said.
fn run_until_told(arguments: &[&str], told: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    // Too slow on any machine.
    let slow = ["-d", "256", "--paths", "8", "--engine", "cpu", "--threads", "1", "--headless"];
    let mut command = stereod(folder.path(), &[&["run"], arguments, &slow].concat());
    command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
    let mut child = command.spawn().unwrap();
    let read = || std::fs::read_to_string(&log).unwrap();
    wait_until(told, || read().contains(told));
    signal(&child, libc::SIGTERM);
    assert!(ended_with(&mut child).success(), "{}", read());
    read()
}

const CURE: &str = "what would keep up: --fit ";

#[test]
fn a_live_source_that_is_too_fast_is_told_with_a_cure() {
    let eye = "videotestsrc is-live=true pattern=ball ! \
               video/x-raw,format=GRAY8,width=640,height=480,framerate=120/1";
    let said = run_until_told(&["--left", eye, "--right", eye], CURE);
    assert_eq!(said.matches(CURE).count(), 1, "{said}");
    assert!(said.contains("the source gives "), "{said}");
}

#[test]
fn a_recording_that_plays_too_slowly_is_told_with_a_cure() {
    let scene = ["--demo", "--demo-size", "640x480", "--set", "demo.rate=120"];
    let pace = ["--set", "source.pace=realtime", "--set", "demo.frames=0"];
    let said = run_until_told(&[&scene[..], &pace].concat(), CURE);
    assert_eq!(said.matches(CURE).count(), 1, "{said}");
    assert!(said.contains("so it plays too slowly"), "{said}");
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
