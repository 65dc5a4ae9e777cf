//! Sources that are faster than the engine.

use super::*;

#[test]
fn a_rate_out_of_reach_takes_all_that_is_cheaper() {
    let folder = tempfile::tempdir().unwrap();
    let scene = ["--demo", "--demo-size", "640x480", "--frames", "2", "--engine", "cpu"];
    for (rate, told, kept) in [("0.1", "settings as they are", true), ("1000", "prior = 0", false)]
    {
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
