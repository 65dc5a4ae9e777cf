//! The link against pymavlink with both autopilots' rules, and lines that block, vanish and have no peer.

use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use ::mavlink::MavlinkReader;
use ::mavlink::dialects::ardupilotmega::MavMessage;
use serde_json::Value;
use serialport::{SerialPort, TTYPort};
use stereod_core::obstacles::{Bin, Mount, Obstacles, Scan};
use stereod_core::pose::{Lost, Odometry, Pose};

use super::ring_tests::{clear_ahead, nearest, obstacles};
use super::{Address, FRESH, Link, Messages, Settings, Trouble, Troubles};

/// Guard against hangs, not a measure of speed.
const GUARD: Duration = Duration::from_secs(120);
/// Time between scans.
const PAIR: Duration = Duration::from_millis(20);

fn settings(address: &str, messages: Messages) -> Settings {
    let settings = Settings::new(address.parse().unwrap());
    Settings { messages, rate_hz: 50.0, ..settings }
}

const ALL: Messages = Messages { ring: true, points: true, forward: true };

fn unix() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap()
}

/// Sends what the rigs see until something happens.
fn feed_until(
    link: &Link,
    rigs: &[Arc<Obstacles>],
    what: &str,
    mut happened: impl FnMut() -> bool,
) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < GUARD, "{what}; {} scans were lost", link.losses());
        for (rig, seen) in rigs.iter().enumerate() {
            link.send(rig, seen.clone(), 0.0, unix());
        }
        std::thread::sleep(PAIR);
    }
}

/// Returns a scan with obstacles at many places, so that a burst is long.
fn crowded() -> Arc<Obstacles> {
    let mut scan = clear_ahead();
    for (bin, state) in scan.bins.iter_mut().enumerate() {
        let angle = bin as f64;
        let place = [angle.cos() * 3.0, angle.sin() * 3.0, (angle * 0.7).tan()];
        *state = Bin::Obstacle(nearest(3.0, 3.1, place));
    }
    Arc::new(obstacles(scan, 0.0, 0.0))
}

/// The program that plays the autopilots. It ends with its standard input.
struct Autopilots {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
}

fn python() -> String {
    std::env::var("STEREOD_TEST_PYTHON").unwrap_or_else(|_| "python3".into())
}

impl Autopilots {
    /// Returns the program and the port where it listens; `None`, visibly, without pymavlink.
    fn start() -> Option<(Self, u64)> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mavlink.py");
        let has_pymavlink = Command::new(python()).args(["-c", "import pymavlink"]).output();
        if !script.exists() || !has_pymavlink.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: {} has no pymavlink (pip install pymavlink)", python());
            return None;
        }
        let mut child = Command::new(python())
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).expect("a line of JSON");
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let autopilots = Self { child, stdin, lines };
        let port = autopilots.lines.recv_timeout(GUARD).unwrap()["port"].as_u64().unwrap();
        Some((autopilots, port))
    }

    /// Takes what was printed since.
    fn heard(&self) -> Vec<Value> {
        self.lines.try_iter().collect()
    }

    /// Waits for a line.
    fn wait_for(&self, mut is_it: impl FnMut(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let left = GUARD.saturating_sub(start.elapsed());
            let line = self.lines.recv_timeout(left).expect("the line comes");
            if is_it(&line) {
                return line;
            }
        }
    }
}

impl Drop for Autopilots {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.wait();
    }
}

/// Returns what ArduPilot believes of the sectors of its middle layer, in metres.
fn sectors(line: &Value) -> [Option<f64>; 8] {
    std::array::from_fn(|sector| line["ardupilot"][2][sector].as_f64())
}

#[test]
fn both_autopilots_believe_the_truth() {
    let Some((autopilots, port)) = Autopilots::start() else { return };
    let ring = Messages { ring: true, points: false, forward: false };
    let link = Link::open(settings(&format!("udp://127.0.0.1:{port}"), ring)).unwrap();
    // A camera that looks ahead, 0.2 m ahead of the origin, and one that looks back, as far behind. Ahead a post at 3
    // m and 12 degrees to the right, and one in the second sector; behind one at 0.2 m, which is below the least
    // distance.
    let mut ahead = clear_ahead();
    ahead.bins[27] = Bin::Obstacle(nearest(3.0, 3.0, [2.9, -0.6, 0.0]));
    ahead.bins[3] = Bin::Obstacle(nearest(6.0, 6.2, [4.8, -3.6, 0.0]));
    ahead.bins[60] = Bin::Unknown;
    let mut behind = clear_ahead();
    behind.first_deg = 140.0;
    behind.bins[40] = Bin::Obstacle(nearest(0.01, 0.01, [-0.2, 0.0, 0.0]));
    let rigs = [Arc::new(obstacles(ahead, 0.2, 0.0)), Arc::new(obstacles(behind, -0.2, 0.0))];

    // The origin's distance to the posts, by hand: at 12 and 13, and at 36 and 37 degrees to the right of the camera.
    let from_origin = |range: f64, degrees: f64| {
        let (sin, cos) = degrees.to_radians().sin_cos();
        (0.2 + range * cos).hypot(range * sin)
    };
    let cm = |metres: f64| (metres * 100.0).floor() / 100.0;
    let expected = [(0, cm(from_origin(3.0, 13.0))), (1, cm(from_origin(6.0, 37.0))), (4, 0.7)];
    let mut last = Value::Null;
    feed_until(&link, &rigs, "what ArduPilot should believe", || {
        for line in autopilots.heard() {
            assert_eq!(line["errors"], Value::Array(vec![]));
            if line["message"] == "OBSTACLE_DISTANCE" {
                let time_usec = line["fields"]["time_usec"].as_u64().unwrap();
                // It was switched on 1000 s ago; how well that is known depends on how long messages take.
                assert!(time_usec == 0 || time_usec > 900_000_000, "no time of the vehicle");
                last = line;
            }
        }
        let is_stamped = last["fields"]["time_usec"].as_u64().unwrap_or(0) > 0;
        let told = sectors(&last);
        is_stamped
            && (0..8).all(|sector| {
                told[sector] == expected.iter().find(|row| row.0 == sector).map(|row| row.1)
            })
    });
    check_fields(&last);
    check_px4(&last, expected[0].1);

    // When no more pairs come, both notice by themselves: nothing is repeated, but the heartbeat goes on.
    let mut beats = None;
    autopilots.wait_for(|line| {
        beats = match line["message"].as_str() {
            Some("SILENCE") => Some(0),
            Some("OBSTACLE_DISTANCE") => None,
            Some("HEARTBEAT") => beats.map(|beats| beats + 1),
            _ => beats,
        };
        if beats.is_some() {
            assert_eq!(line["ardupilot"], Value::Null);
            assert!(line["px4"].as_array().unwrap().iter().all(|bin| bin == "unknown"));
        }
        beats == Some(3)
    });
}

fn check_fields(line: &Value) {
    assert_eq!((line["system"].as_u64(), line["component"].as_u64()), (Some(1), Some(196)));
    let fields = &line["fields"];
    let number = |name: &str| fields[name].as_f64().unwrap();
    let expected = [
        ("increment", 5.0),
        ("increment_f", 0.0),
        ("angle_offset", 0.0),
        ("frame", 12.0),
        ("min_distance", 70.0),
        ("max_distance", 980.0),
    ];
    for (name, value) in expected {
        assert_eq!(number(name), value, "{name}");
    }
    // The vehicle started a thousand seconds before the test, and the scan was captured since.
    let captured_s = number("time_usec") / 1e6;
    assert!((1000.0..1000.0 + 2.0 * GUARD.as_secs_f64()).contains(&captured_s), "{captured_s}");
}

fn check_px4(line: &Value, post_m: f64) {
    let bin = |degrees: usize| &line["px4"][degrees / 5];
    let post_cm = Value::from((post_m * 100.0).round() as u64);
    assert_eq!([bin(0), bin(5), bin(350), bin(335)], ["clear"; 4]);
    assert_eq!(bin(10), &post_cm);
    // Where the unknown bin is, where it is seen from the origin close by, and outside the view.
    assert_eq!([bin(340), bin(345), bin(90), bin(270)], ["unknown"; 4]);
    assert_eq!(
        [bin(180), bin(160), bin(200)],
        [&Value::from(70), &"clear".into(), &"clear".into()]
    );
}

#[test]
fn the_motion_of_the_vehicle_is_told_while_it_is_known() {
    let Some((autopilots, port)) = Autopilots::start() else { return };
    let none = Messages { ring: false, points: false, forward: false };
    let link = Link::open(settings(&format!("udp://127.0.0.1:{port}"), none)).unwrap();
    link.claim_motion(1).unwrap();
    link.claim_motion(1).unwrap();
    let error = link.claim_motion(0).unwrap_err().to_string();
    assert!(error.contains("mavlink_odometry"), "{error}");

    let odometry = Odometry {
        pose: Pose { position_m: [-1.0, 0.25, 2.0], ..Pose::IDENTITY },
        covariance: [[0.0; 6]; 6],
        velocity: Some([0.0, 0.0, 3.0, 0.0, -0.5, 0.0]),
        lost: None,
        breaks: 3,
        path_m: 2.0,
        points: [150, 200],
        mount: Mount::default(),
    };
    let lost = Odometry { lost: Some(Lost::Unseen), breaks: 9, ..odometry };
    let mut told = Value::Null;
    let start = Instant::now();
    while told.is_null() {
        assert!(start.elapsed() < GUARD, "no ODOMETRY");
        for told in [lost, odometry] {
            link.send_motion(Box::new(told), unix());
            std::thread::sleep(PAIR);
        }
        for line in autopilots.heard().into_iter().filter(|line| line["message"] == "ODOMETRY") {
            assert_eq!(line["fields"]["reset_counter"], 3, "while it is lost, nothing is told");
            told = line;
        }
    }
    let fields = &told["fields"];
    let number = |name: &str| fields[name].as_f64().unwrap();
    for (name, expected) in [
        ("frame_id", 20.0),
        ("child_frame_id", 12.0),
        ("estimator_type", 2.0),
        ("quality", 75.0),
        ("x", 2.0),
        ("y", -1.0),
        ("z", 0.25),
        ("vx", 3.0),
        ("yawspeed", -0.5),
    ] {
        assert_eq!(number(name), expected, "{name}");
    }
    assert_eq!(fields["q"], serde_json::json!([1.0, 0.0, 0.0, 0.0]));
    assert_eq!(fields["velocity_covariance"][0], Value::Null, "it is not known");
    let captured = Duration::from_micros(fields["time_usec"].as_u64().unwrap());
    assert!(unix().abs_diff(captured) < GUARD, "{captured:?}");
}

#[test]
fn ardupilot_takes_points_of_one_image_at_once() {
    let Some((autopilots, port)) = Autopilots::start() else { return };
    let points = Messages { ring: false, points: true, forward: true };
    let link = Link::open(settings(&format!("udp://127.0.0.1:{port}"), points)).unwrap();
    let mut scan = clear_ahead();
    // Ahead and to the right, high and low.
    scan.bins[40] = Bin::Obstacle(nearest(4.0, 4.0, [4.0, 0.0, 0.0]));
    scan.bins[9] = Bin::Obstacle(nearest(3.0, 3.0, [3.0, -3.0, 3.0]));
    scan.bins[10] = Bin::Obstacle(nearest(3.0, 3.0, [3.0, -3.0, -5.0]));
    let seen = [Arc::new(obstacles(scan, 0.0, 0.0))];
    let believes = |line: &Value| {
        let metres = |layer: usize, sector: usize| line["ardupilot"][layer][sector].as_f64();
        let near =
            |told: Option<f64>, truth: f64| told.is_some_and(|told| (told - truth).abs() < 0.011);
        near(metres(2, 0), 4.0)
            && near(metres(3, 1), 27.0_f64.sqrt())
            && near(metres(0, 1), 43.0_f64.sqrt())
    };
    let mut stamps = std::collections::BTreeSet::new();
    let mut is_believed = false;
    feed_until(&link, &seen, "the points", || {
        for line in autopilots.heard() {
            is_believed |= believes(&line);
            if line["message"] == "OBSTACLE_DISTANCE_3D" {
                stamps.insert(line["fields"]["time_boot_ms"].as_u64().unwrap());
            }
            if line["message"] == "DISTANCE_SENSOR" {
                assert_eq!(line["fields"]["current_distance"], 400);
                assert_eq!(line["px4"][0], 400);
            }
        }
        is_believed && stamps.len() > 2
    });
    // Nothing remains when the obstacles have gone.
    let clear = [Arc::new(obstacles(clear_ahead(), 0.0, 0.0))];
    feed_until(&link, &clear, "an empty boundary", || {
        let is_empty = |line: &Value| {
            let layers = line["ardupilot"].as_array();
            layers.is_some_and(|layers| {
                layers.iter().flat_map(|layer| layer.as_array().unwrap()).all(Value::is_null)
            })
        };
        let lines = autopilots.heard();
        lines.iter().any(|line| line["message"] == "OBSTACLE_DISTANCE_3D" && is_empty(line))
    });
}

#[test]
fn requests_for_the_time_are_answered() {
    let Some((autopilots, port)) = Autopilots::start() else { return };
    let _link =
        Link::open(settings(&format!("udp://127.0.0.1:{port}"), Messages::default())).unwrap();
    let answer = autopilots.wait_for(|line| {
        line["message"] == "TIMESYNC" && line["fields"]["tc1"].as_i64().is_some_and(|tc1| tc1 != 0)
    });
    // The request mirrored, with our time.
    let fields = &answer["fields"];
    assert!(fields["ts1"].as_i64().unwrap() >= 1_000_000_000_000);
    let told = Duration::from_nanos(fields["tc1"].as_u64().unwrap());
    assert!(unix().abs_diff(told) < GUARD, "{told:?}");
}

/// A pseudo-terminal under a name that outlives it, as udev gives serial ports.
struct Port {
    name: PathBuf,
    folder: tempfile::TempDir,
    /// Terminals of which nobody holds this end look unplugged to the other.
    held: Vec<TTYPort>,
}

impl Port {
    fn new() -> (Self, TTYPort) {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("port");
        let mut port = Self { name, folder, held: Vec::new() };
        let master = port.plug_in();
        (port, master)
    }

    /// Returns the autopilot's end of a new terminal.
    fn plug_in(&mut self) -> TTYPort {
        let (master, slave) = TTYPort::pair().unwrap();
        let new = self.folder.path().join("new");
        std::os::unix::fs::symlink(slave.name().unwrap(), &new).unwrap();
        std::fs::rename(new, &self.name).unwrap();
        self.held.push(slave);
        master
    }

    fn address(&self) -> String {
        format!("serial://{}?baud=921600", self.name.display())
    }
}

/// Reads messages on a thread until the other end hangs up.
fn read_messages(mut master: TTYPort) -> Receiver<MavMessage> {
    let (send, messages) = channel();
    master.set_timeout(GUARD).unwrap();
    std::thread::spawn(move || {
        let mut reader = MavlinkReader::new(master);
        while let Ok((_, message)) = reader.read_any_message::<MavMessage>() {
            if send.send(message).is_err() {
                return;
            }
        }
    });
    messages
}

fn is_ring(message: &MavMessage) -> bool {
    matches!(message, MavMessage::OBSTACLE_DISTANCE(_))
}

#[test]
fn a_serial_line_that_nobody_reads_stops_nothing() {
    let (port, master) = Port::new();
    let link = Link::open(settings(&port.address(), ALL)).unwrap();
    let seen = [crowded()];
    feed_until(&link, &seen, "a blocked line is noticed", || link.losses() > 5);
    // As soon as somebody reads, messages are whole again.
    let messages = read_messages(master);
    feed_until(&link, &seen, "messages arrive", || messages.try_iter().filter(is_ring).count() > 5);
}

#[test]
fn a_blocked_line_does_not_hold_up_the_end() {
    let (port, _master) = Port::new();
    let link = Link::open(settings(&port.address(), ALL)).unwrap();
    feed_until(&link, &[crowded()], "a blocked line is noticed", || link.losses() > 0);
    let (send, ended) = channel();
    std::thread::spawn(move || {
        drop(link);
        send.send(()).unwrap();
    });
    ended.recv_timeout(GUARD).expect("the link ends");
}

#[test]
fn a_port_that_vanishes_is_opened_again() {
    let (mut port, master) = Port::new();
    let link = Link::open(settings(&port.address(), ALL)).unwrap();
    let seen = [crowded()];
    let messages = read_messages(master);
    feed_until(&link, &seen, "the first messages", || messages.try_iter().any(|it| is_ring(&it)));
    // The reader closes it when the next message comes.
    drop(messages);
    feed_until(&link, &seen, "the loss is counted", || link.losses() > 5);
    let messages = read_messages(port.plug_in());
    feed_until(&link, &seen, "messages after the return", || {
        messages.try_iter().any(|it| is_ring(&it))
    });
}

#[test]
fn a_peer_may_come_late() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let peer = socket.local_addr().unwrap();
    drop(socket);
    let link = Link::open(settings(&format!("udp://{peer}"), Messages::default())).unwrap();
    let seen = [crowded()];
    feed_until(&link, &seen, "the missing peer is noticed", || link.losses() > 1);
    let socket = UdpSocket::bind(peer).unwrap();
    socket.set_read_timeout(Some(PAIR)).unwrap();
    let mut received = 0;
    feed_until(&link, &seen, "messages after the peer has come", || {
        let mut bytes = [0; 300];
        received += usize::from(socket.recv(&mut bytes).is_ok_and(|size| size > 150));
        received > 5
    });
}

#[test]
fn the_rate_is_limited_and_the_newest_scan_wins() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(8 * FRESH)).unwrap();
    let peer = socket.local_addr().unwrap();
    let ring = Settings::new(format!("udp://{peer}").parse().unwrap());
    let link = Link::open(Settings { rate_hz: 4.0, ..ring }).unwrap();
    let mut reader = MavlinkReader::new(Datagrams(socket));
    let start = Instant::now();
    let (mut distances, mut quiet) = (Vec::new(), 8 * FRESH);
    let send = |centimetres: u32| {
        let mut scan = clear_ahead();
        let metres = f64::from(centimetres) / 100.0 + 0.001;
        scan.bins.fill(Bin::Obstacle(nearest(metres, metres, [1.0; 3])));
        link.send(0, Arc::new(obstacles(scan, 0.0, 0.0)), 0.0, unix());
        std::thread::sleep(PAIR / 2);
    };
    (100..200).for_each(send);
    // The last is sent even though nothing follows. On a busy machine it may be too old by then, and is sent again.
    while distances.last() != Some(&199) {
        match reader.read_any_message::<MavMessage>() {
            Ok((_, MavMessage::OBSTACLE_DISTANCE(told))) => distances.push(told.distances[0]),
            Ok(_) => {
                let is_silent = start.elapsed() > quiet;
                if is_silent {
                    send(199);
                    quiet = start.elapsed() + 8 * FRESH;
                }
            }
            Err(_) => {}
        }
        assert!(start.elapsed() < GUARD, "{distances:?}");
    }
    let most = start.elapsed().as_secs_f64() * 4.0 + 1.0;
    assert!(distances.len() as f64 <= most, "{distances:?} in {:?}", start.elapsed());
    assert!(distances.is_sorted(), "{distances:?}");
}

struct Datagrams(UdpSocket);

impl std::io::Read for Datagrams {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.0.recv(bytes)
    }
}

#[test]
fn impossible_scans_are_counted() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = format!("udp://{}", socket.local_addr().unwrap());
    let link = Link::open(settings(&address, ALL)).unwrap();
    let bad = Scan { far_m: f64::NAN, ..clear_ahead() };
    let seen = [Arc::new(obstacles(bad, 0.0, 0.0))];
    feed_until(&link, &seen, "the loss is counted", || link.losses() > 2);
}

#[test]
fn addresses_and_settings_name_what_is_wrong() {
    let serial = Address::Serial { path: "/dev/ttyUSB0".into(), baud: 57600 };
    assert_eq!("serial:///dev/ttyUSB0?baud=57600".parse::<Address>().unwrap(), serial);
    assert_eq!(
        "serial:///dev/a".parse::<Address>().unwrap().to_string(),
        "serial:///dev/a?baud=921600"
    );
    assert_eq!("udp://[::1]:14550".parse::<Address>().unwrap().to_string(), "udp://[::1]:14550");
    let wrong = [
        "",
        "tcp://a:1",
        "udp://",
        "udp://:14550",
        "udp://host",
        "udp://host:0",
        "udp://host:99999",
        "serial://",
        "serial:///dev/a?baud=",
        "serial:///dev/a?baud=0",
        "serial:///dev/a?speed=9600",
    ];
    for address in wrong {
        let error = address.parse::<Address>().unwrap_err().to_string();
        let has_cure =
            error.contains("udp://127.0.0.1:14550") || error.contains("serial:///dev/ttyUSB0");
        assert!(error.contains(&format!("address {address}")) && has_cure, "{error}");
    }
    let open = |address: &str| format!("{:#}", Link::open(settings(address, ALL)).unwrap_err());
    assert!(open("serial:///dev/no-such-port").contains("/dev/no-such-port: check the name"));
    let file = tempfile::NamedTempFile::new().unwrap();
    let name = file.path().to_str().unwrap();
    assert!(open(&format!("serial://{name}")).contains(name), "a file is no port");
    assert!(open("udp://no-such-host.invalid:1").contains("no-such-host.invalid:1: no such host"));
    for rate_hz in [f64::NAN, 0.0, -1.0, 1e9] {
        let settings = Settings { rate_hz, ..settings("udp://127.0.0.1:9", ALL) };
        assert!(Link::open(settings).unwrap_err().to_string().contains("2 to 50"));
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn each_kind_of_trouble_is_told_each_rig_once_and_when_it_is_over() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    tracing::subscriber::with_default(subscriber, || {
        let address = "udp://127.0.0.1:14550".parse().unwrap();
        let mut troubles = Troubles::new(address, Arc::default());
        troubles.meet(Trouble::NoPeer, "no rig has lost anything yet");
        troubles.rigs.insert(0, tracing::error_span!("rig", name = "front"));
        for _ in 0..3 {
            troubles.lose(1);
            troubles.meet(Trouble::NoPeer, "refused");
            troubles.meet(Trouble::Blocked, "full");
            troubles.end(Instant::now());
        }
        troubles.end(Instant::now() + Duration::from_secs(60));
        troubles.end(Instant::now() + Duration::from_secs(61));
        troubles.meet(Trouble::NoPeer, "refused");
        troubles.rigs.insert(1, tracing::error_span!("rig", name = "rear"));
        for _ in 0..2 {
            troubles.meet(Trouble::NoPeer, "refused");
            troubles.meet_of(1, Trouble::Unusable, "bins");
        }
    });
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 7, "{text}");
    assert!(lines[..5].iter().all(|line| line.contains("front")), "{text}");
    assert!(lines[5].contains("rear") && lines[5].contains("nobody is there"), "{text}");
    assert!(lines[6].contains("rear") && lines[6].contains("is left out"), "{text}");
    assert!(
        lines[0].contains("WARN") && lines[0].contains("udp://127.0.0.1:14550: nobody is there")
    );
    assert!(lines[1].contains("WARN") && lines[1].contains("blocked"));
    assert!(lines[2].contains("3 scans were lost") && lines[3].contains("3 scans were lost"));
    assert!(lines[4].contains("WARN") && lines[4].contains("nobody is there"));
}
