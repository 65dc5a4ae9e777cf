use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::metrics::{Process, text};
use super::*;
use crate::followed::{self, Followed};
use crate::observe::alignment::Measurement;
use crate::observe::exposure::{Exposure, EyeExposure};
use crate::observe::map_metrics::Shares;
use crate::pipeline::SinkCounts;
use crate::status::{Counts, Judged, RunStatus};
use crate::telemetry::progress::Progress;
use crate::telemetry::progress::{Health, TIME_CLASSES_US};
use stereod_core::pose::{Lost, Odometry};
use stereod_io::source::live::EyeSummary;

fn status() -> Arc<RunStatus> {
    let progress = Progress::default();
    for ms in [2, 20, 30, 3000] {
        progress.count_matched(Duration::from_millis(ms), Duration::ZERO, None);
    }
    let exposure = Exposure {
        left: EyeExposure { noise: 1.25, brightness: 101.0, saturated: 0.0 },
        right: EyeExposure { noise: 2.5, brightness: 99.5, saturated: 0.125 },
    };
    let alignment = Measurement { row_error_px: 0.5, roll_deg: -0.25, ..Measurement::default() };
    let lost = followed::tests::odometry([0.0; 3], Some(Lost::Unseen));
    let followed = Followed::with(None, Odometry { breaks: 2, ..lost });
    let output = SinkCounts {
        counted_as: Some("record"),
        name: "recording o.mkv".into(),
        frames: 3,
        dropped: 1,
        failed: 2,
        is_check: false,
    };
    Arc::new(RunStatus {
        source: "a \"quoted\" \\ name".into(),
        engine: "CPU".into(),
        frames: [5, 6],
        unpaired: [0, 1],
        pairs: 5,
        counts: Counts { matched: 4, dropped: 1 },
        outputs: vec![output],
        latency: Some(progress.latency_within(&TIME_CLASSES_US)),
        cameras: Some([
            EyeSummary { lost: true, reconnects: 3, ..EyeSummary::default() },
            EyeSummary { broken: 1, missed: 2, mistimed: 4, ..EyeSummary::default() },
        ]),
        valid_share: Some(0.75),
        verdicts: Some(Shares { contradict: 12.5, ..Shares::default() }),
        exposure: Some(Judged { measured: Some(exposure), ..Judged::default() }),
        alignment: Some(Judged { alarm: true, measured: Some(alignment), text: String::new() }),
        odometry: Some(Judged { alarm: true, measured: Some(followed), text: String::new() }),
        ..RunStatus::default()
    })
}

#[test]
fn the_text_is_what_the_format_wants() {
    let process = Process { resident_bytes: 4096, ..Process::default() };
    let text = text(Some((status(), true)), Some(process)).unwrap();
    for line in [
        "stereod_frames_total{eye=\"right\"} 6",
        "stereod_noise_levels{eye=\"left\"} 1.25",
        "stereod_brightness_levels{eye=\"right\"} 99.5",
        "stereod_saturated_ratio{eye=\"right\"} 0.125",
        "stereod_unpaired_frames_total{eye=\"right\"} 1",
        "stereod_output_dropped_frames_total{output=\"recording o.mkv\",cause=\"busy\"} 1",
        "stereod_output_dropped_frames_total{output=\"recording o.mkv\",cause=\"failed\"} 2",
        "stereod_latency_seconds_bucket{le=\"0.025\"} 2",
        "stereod_latency_seconds_bucket{le=\"0.033333\"} 3",
        "stereod_latency_seconds_bucket{le=\"+Inf\"} 4",
        "stereod_latency_seconds_count 4",
        "stereod_reconnects_total{eye=\"left\"} 3",
        "stereod_broken_frames_total{eye=\"right\"} 7",
        "stereod_lost_cameras 1.0",
        "stereod_healthy 1.0",
        "stereod_valid_ratio 0.75",
        "stereod_verdicts_ratio{verdict=\"contradict\"} 0.125",
        "stereod_row_error_pixels 0.5",
        "stereod_roll_degrees -0.25",
        "stereod_misaligned 1.0",
        "stereod_odometry_path_meters 20.0",
        "stereod_odometry_drift_ratio 0.01",
        "stereod_odometry_lost 1.0",
        "stereod_odometry_lost_pairs_total 1",
        "stereod_odometry_breaks_total 2",
        "process_resident_memory_bytes 4096.0",
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line), "no {line} in:\n{text}");
    }
    assert!(text.contains(r#"source="a \"quoted\" \\ name""#), "{text}");
    let parsed = openmetrics_parser::openmetrics::parse_openmetrics(&text);
    let parsed = parsed.unwrap_or_else(|error| panic!("{error}:\n{text}"));
    assert!(parsed.families.contains_key("stereod_latency_seconds"), "{text}");
}

struct Fixed(Health);

impl State for Fixed {
    fn status(&self) -> Arc<RunStatus> {
        status()
    }
    fn health(&self) -> Health {
        self.0.clone()
    }
    fn settings(&self) -> String {
        String::new()
    }
}

fn start(state: Fixed) -> Server {
    let any_port = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(any_port).unwrap();
    let (hosts, state) = (Arc::default(), Arc::new(state));
    let runs = Runs::new(&[String::new()]);
    runs.open(0, Run { state, live: None });
    let site = Site { hosts, access: Access::default(), runs };
    Server::start(listener, site).unwrap()
}

#[test]
fn health_is_a_status() {
    for (health, status) in [(Ok("fine".into()), 200), (Err("no pair for 9 s".into()), 503)] {
        let server = start(Fixed(health));
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let get =
            |path: &str| agent.get(format!("http://{}{path}", server.address())).call().unwrap();
        let mut answer = get("/healthz");
        assert_eq!(answer.status(), status);
        let body = answer.body_mut().read_to_string().unwrap();
        assert!(body == "ok: fine\n" || body == "no pair for 9 s\n", "{body}");
        assert_eq!(get("/elsewhere").status(), 404);
        let url = format!("http://{}/metrics", server.address());
        assert_eq!(agent.post(url).send("x").unwrap().status(), 405);
    }
}

#[test]
fn a_rig_that_has_failed_says_why_and_the_process_is_counted_once() {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let runs = Runs::new(&["good", "bad", "late"].map(str::to_owned));
    let state = Arc::new(Fixed(Ok("fine".into())));
    runs.open(0, Run { state: state.clone(), live: None });
    runs.failed(1, "there is no recording x.mcap");
    let (hosts, access) = (Arc::default(), Access::default());
    let server = Server::start(listener, Site { hosts, access, runs: runs.clone() }).unwrap();
    let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
    let get = |path: &str| {
        let mut answer = agent.get(format!("http://{}{path}", server.address())).call().unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    };
    let why = "failed: there is no recording x.mcap\n";
    let all = format!("good: ok: fine\nbad: {why}late: not started yet\n");
    assert_eq!(get("/healthz"), (503, all));
    assert_eq!(get("/bad/healthz"), (503, why.to_owned()));
    let (status, metrics) = get("/bad/metrics");
    assert!(status == 200 && metrics.contains("stereod_healthy 0"), "{metrics}");
    runs.waits(2, "waiting for a camera");
    assert_eq!(get("/late/healthz"), (503, "waiting for a camera\n".to_owned()));
    // One that fails while it runs.
    runs.open(2, Run { state, live: None });
    assert_eq!(get("/late/healthz").0, 200);
    runs.failed(2, "no memory");
    assert!(get("/healthz").1.ends_with("late: failed: no memory\n"));
    let (status, metrics) = get("/good/metrics");
    assert!(status == 200 && !metrics.contains("process_"), "{metrics}");
    let (status, metrics) = get("/metrics");
    assert!(status == 200 && !metrics.contains("stereod_"), "{metrics}");
    assert_eq!(metrics.contains("process_cpu_seconds_total"), Process::now().is_some());
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
}

#[test]
fn clients_that_say_nothing_or_nonsense_do_no_harm() {
    let server = start(Fixed(Ok(String::new())));
    let silent: Vec<_> = (0..8).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    let mut garbage = TcpStream::connect(server.address()).unwrap();
    garbage.write_all(b"\x16\x03\x01 this is no HTTP\r\n\r\n").unwrap();
    let mut answer = String::new();
    garbage.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let url = format!("http://{}/metrics", server.address());
    assert_eq!(ureq::get(url).call().unwrap().status(), 200);
    drop(silent);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever somebody sends is answered with a status, or the connection is closed; the next one
    /// is served.
    #[test]
    fn requests_of_any_bytes_do_no_harm(
        begin in prop::sample::select(vec!["", "GET ", "GET /metrics HTTP/1.1\r\nHost: ", "POST /"]),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let server = start(Fixed(Ok("fine".into())));
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(&[begin.as_bytes(), &bytes].concat()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        // A server that closes before it has read all resets the connection.
        let closed = stream.read_to_end(&mut answer).is_err();
        prop_assert!(closed || answer.is_empty() || answer.starts_with(b"HTTP/1."), "{:?}", answer);
        prop_assert!(!answer.windows(15).any(|part| part == b"stereod_matched"));
        let health = format!("http://{}/healthz", server.address());
        prop_assert_eq!(ureq::get(health).call().unwrap().status(), 200);
    }
}

/// Twice as many silent connections as there is room for; the limit is no measure of speed.
#[test]
fn idle_connections_keep_nobody_out() {
    let server = start(Fixed(Ok("fine".into())));
    let connect = || {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream
    };
    let mut silent: Vec<_> = (0..32).map(|_| connect()).collect();
    let mut asking = connect();
    asking.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    asking.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // The first one was closed to make room.
    let closed = silent[0].read(&mut [0]);
    let is_reset = |e: &std::io::Error| e.kind() == std::io::ErrorKind::ConnectionReset;
    assert!(closed.as_ref().is_ok_and(|count| *count == 0) || closed.is_err_and(|e| is_reset(&e)));
}

#[test]
fn other_names_are_refused() {
    let server = start(Fixed(Ok("fine".into())));
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let of = |host: &str| {
        ask(&format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    };
    let refused = of("evil.example:9100");
    assert!(refused.starts_with("HTTP/1.1 421 "), "{refused}");
    assert!(
        refused.contains("not known as evil.example; where it is, add that to `hosts`"),
        "{refused}"
    );
    assert!(!refused.contains("stereod_matched"), "{refused}");
    assert!(of("localhost").starts_with("HTTP/1.1 200 "));
    let old = ask("GET /healthz HTTP/1.0\r\n\r\n");
    assert!(old.starts_with("HTTP/1.0 200 "), "{old}");
}

#[test]
fn a_taken_port_is_called_so() {
    let server = start(Fixed(Ok(String::new())));
    let error = Listener::bind(server.address()).unwrap_err().to_string();
    assert!(error.contains("another program listens there"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn this_process_has_memory_threads_and_files() {
    let process = Process::now().unwrap();
    assert!(process.resident_bytes > 1 << 20 && process.threads > 0 && process.open_files > 2);
}
