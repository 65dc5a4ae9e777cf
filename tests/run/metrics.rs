//! Metrics over HTTP while the program runs, read as Prometheus reads them.

use std::io::{BufRead, BufReader};

use openmetrics_parser::openmetrics::parse_openmetrics;

use super::*;

const LIVE_EYE: &str = "videotestsrc is-live=true pattern=ball ! \
                        video/x-raw,format=GRAY8,width=96,height=64,framerate=30/1";

/// A run that publishes its metrics, and their address.
fn published(folder: &Path, arguments: &[&str]) -> (Child, String) {
    let arguments = [&["run", "-d", "24", "--metrics", "0"], arguments].concat();
    let mut child =
        stereod(folder, &arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains("metrics on http://")).expect("it says where");
    let url = line.split_whitespace().last().unwrap().trim_end_matches("/metrics").to_owned();
    // Other output must not fill the pipe.
    std::thread::spawn(move || lines.for_each(drop));
    (child, url)
}

fn get(url: &str) -> (u16, String) {
    let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
    let mut answer = agent.get(url).call().unwrap();
    (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
}

/// The value of a sample, as text.
fn value(page: &str, sample: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {sample} in:\n{page}")).parse().unwrap()
}

fn end(mut child: Child) {
    signal(&child, libc::SIGTERM);
    assert_eq!(ended_with(&mut child).code(), Some(0));
}

#[test]
fn a_live_run_tells_how_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--left", LIVE_EYE, "--right", LIVE_EYE, "--record", "o.mkv"];
    let patient = [&PATIENT[..], &["--set", "metrics.unhealthy_s=600"]].concat();
    let (child, url) = published(folder.path(), &[&arguments[..], &patient].concat());
    let scrape = || get(&format!("{url}/metrics"));
    let recorded = "stereod_output_frames_total{output=\"recording o.mkv\"}";
    // Outputs follow matching.
    wait_until("ten pairs", || value(&scrape().1, recorded) >= 10.0);
    let (status, page) = scrape();
    assert_eq!(status, 200);
    let parsed = parse_openmetrics(&page).unwrap_or_else(|error| panic!("{error}:\n{page}"));
    for family in ["stereod_latency_seconds", "stereod_engine_seconds", "stereod_skew_seconds"] {
        assert!(parsed.families.contains_key(family), "no {family} in:\n{page}");
        assert!(value(&page, &format!("{family}_count")) >= 5.0, "{page}");
    }
    let matched = value(&page, "stereod_matched_total");
    assert!(value(&page, "stereod_latency_seconds_bucket{le=\"+Inf\"}") >= matched - 1.0);
    assert!(value(&page, "stereod_pairs_total") >= matched);
    assert!(value(&page, "stereod_frames_total{eye=\"left\"}") >= matched);
    assert!((0.0..=1.0).contains(&value(&page, "stereod_valid_ratio")));
    assert!(value(&page, "process_resident_memory_bytes") > 1e6);
    assert_eq!(value(&page, "stereod_healthy"), 1.0);
    assert_eq!(value(&page, "stereod_reconnects_total{eye=\"left\"}"), 0.0);
    assert_eq!(value(&page, "stereod_lost_cameras"), 0.0);
    assert!(!page.contains("output=\"figures\""), "{page}");
    let (status, health) = get(&format!("{url}/healthz"));
    assert_eq!(status, 200, "{health}");
    assert!(health.starts_with("ok: "), "{health}");
    end(child);
}

#[test]
fn a_camera_that_falls_silent_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    // An image every two seconds counts as silence if the limit is half a second.
    let eye = format!("{LIVE_EYE} ! identity sleep-time=2000000");
    let mut arguments = vec!["--left", &eye, "--right", &eye];
    // It must not count as lost either, which would restart it each time.
    for setting in ["metrics.unhealthy_s=0.5", "source.reconnect=off"] {
        arguments.extend(["--set", setting]);
    }
    let (child, url) = published(folder.path(), &arguments);
    let health = || get(&format!("{url}/healthz"));
    let matched = || value(&get(&format!("{url}/metrics")).1, "stereod_matched_total");
    wait_until("the first pair", || matched() >= 1.0);
    let mut reason = String::new();
    wait_until("silence", || {
        let (status, said) = health();
        reason = said;
        status == 503
    });
    assert!(reason.starts_with("no pair was matched for "), "{reason}");
    wait_until("the next pair", || health().0 == 200);
    end(child);
}

#[test]
fn a_taken_port_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let arguments = ["run", "--demo", "--metrics", &port, "--record", "o.mkv"];
    let (status, _, stderr) = run(folder.path(), &arguments);
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("another program listens there"), "{stderr}");
    assert!(!folder.path().join("o.mkv").exists());
    let (status, _, stderr) = run(folder.path(), &["run", "--demo", "--metrics", "host:x"]);
    assert_eq!(status, 2, "{stderr}");
    assert!(stderr.contains("--metrics") && stderr.contains("0.0.0.0:9100"), "{stderr}");
}

/// The camera is missing, and everybody who looks is told so at once.
#[test]
fn a_rig_that_waits_for_its_camera_is_served_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let absent = ["--left", "/dev/video777", "--right", "/dev/video778", "--serve", "0"];
    let arguments = [&absent[..], &["--headless", "--set", "source.wait_s=600"]].concat();
    let (mut child, url) = published(folder.path(), &arguments);
    wait_until("the reason", || get(&format!("{url}/healthz")).1.contains("/dev/video777"));
    let (status, said) = get(&format!("{url}/healthz"));
    assert!(status == 503 && said.starts_with("waiting for the source: /dev/video777: no camera"));
    let (status, page) = get(&format!("{url}/metrics"));
    assert_eq!(
        (status, value(&page, "stereod_healthy"), value(&page, "stereod_pairs_total")),
        (200, 0.0, 0.0)
    );
    parse_openmetrics(&page).unwrap_or_else(|error| panic!("{error}:\n{page}"));
    signal(&child, libc::SIGTERM);
    assert_eq!(ended_with(&mut child).code(), Some(0));
}
