//! Cameras of an RTSP server, which states their times of capture by its clock. The network delays the right one by
//! 80 ms.

use std::io::{BufRead, BufReader, Read};

use super::*;

#[test]
fn cameras_over_rtsp_are_paired_by_the_servers_clock() {
    const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run/rtsp_cameras.py");
    let mut command = Command::new("/usr/bin/python3");
    command.arg(SERVER).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // It ends with its standard input.
    let Ok(mut server) = command.spawn() else {
        return eprintln!("skipped: this system has no /usr/bin/python3");
    };
    let mut said = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut said).unwrap();
    let addresses: Vec<&str> = said.split_whitespace().collect();
    let [left, right] = addresses[..] else {
        let mut error = String::new();
        server.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        let is_missing =
            ["No module named 'gi'", "not available"].iter().any(|m| error.contains(m));
        assert!(is_missing, "{error}");
        return eprintln!(
            "skipped: no RTSP server (install gir1.2-gst-rtsp-server-1.0 and python3-gi)"
        );
    };
    let folder = tempfile::tempdir().unwrap();
    // Reports come every few seconds; one frame comes every 100 ms.
    let flags =
        ["-d", "16", "--headless", "--stats", "-", "--frames", "150", "--set", "source.wait_s=60"];
    // Without the offset, a delay of more than half a frame is taken for an error of the clocks.
    let arguments =
        [&["run", "--left", left, "--right", right, "--offset", "-80"], &flags[..]].concat();
    let (status, stdout, stderr) = run(folder.path(), &arguments);
    assert_eq!(status, 0, "{stderr}");
    assert!(stderr.contains("by the cameras' NTP clocks from now on"), "{stderr}");
    let statistics: Value = serde_json::from_str(&stdout).unwrap();
    let known = &statistics["live"]["synchronisation"];
    assert_eq!(known["sender_clock"], "NTP", "{known}");
    let late = known["arrival_ms"].as_f64().unwrap();
    // The quickest frames count, so a busy machine changes it little.
    assert!((50.0..500.0).contains(&late), "{known}");
    assert!(known["difference_ms"]["p50"].as_f64().unwrap() < 10.0, "{known}");
    drop(server.stdin.take());
    server.wait().unwrap();
}
