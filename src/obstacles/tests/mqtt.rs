//! Messages to Debian's mosquitto, as its own tools read them: plain, with a password, with TLS, and while the broker
//! vanishes, blocks or comes back.

use std::io::{BufRead as _, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, Once};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use stereod_core::obstacles::{Bin, Mount, Nearest, Obstacles, Scan, Zone};
use stereod_obstacles::mqtt::{Broker, Frigate, PASSWORD, Settings, USER};
use tempfile::TempDir;

/// Guard against hangs; no test waits for it.
const GUARD: Duration = Duration::from_secs(120);

const STAMP: Duration = Duration::from_millis(1_764_412_800_250);

/// A broker process that ends with the test.
struct Mosquitto {
    process: Child,
    port: u16,
    folder: TempDir,
}

impl Mosquitto {
    /// Starts a broker on a free port, with further lines of settings made from its folder. Returns none, and says so,
    /// where it is not installed.
    fn start(settings: impl Fn(&Path) -> String) -> Option<Self> {
        for tool in ["mosquitto", "mosquitto_sub", "mosquitto_pub", "mosquitto_passwd", "openssl"] {
            if Command::new(tool)
                .arg("--help")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_err()
            {
                println!("skipped: {tool} is not installed");
                return None;
            }
        }
        // Another program may take the port in between, so a second and a third one are tried.
        (0..3).find_map(|_| {
            let folder = tempfile::tempdir().unwrap();
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let more = settings(folder.path());
            // As root it would become a user who may not read the folder.
            let text = format!("listener {port} 127.0.0.1\nuser root\npersistence false\n{more}\n");
            std::fs::write(folder.path().join("broker.conf"), text).unwrap();
            run(folder.path(), port).map(|process| Self { process, port, folder })
        })
    }

    fn restart(&mut self) {
        self.process = run(self.folder.path(), self.port).expect("the port was taken");
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn signal(&self, signal: &str) {
        assert!(
            Command::new("kill")
                .args([signal, &self.process.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
    }

    fn address(&self) -> String {
        format!("mqtt://127.0.0.1:{}", self.port)
    }

    fn publish(&self, topic: &str, payload: &str) {
        let port = self.port.to_string();
        let status = Command::new("mosquitto_pub")
            .args(["-h", "127.0.0.1", "-p", &port, "-t", topic, "-m", payload])
            .status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _ended = self.process.wait();
    }
}

/// Starts the broker of a folder and waits until it listens. Returns none if it ended.
fn run(folder: &Path, port: u16) -> Option<Child> {
    let mut command = Command::new("mosquitto");
    command.arg("-c").arg(folder.join("broker.conf")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = command.spawn().unwrap();
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if process.try_wait().unwrap().is_some() {
            return None;
        }
        assert!(start.elapsed() < GUARD, "mosquitto does not listen");
        thread::sleep(Duration::from_millis(10));
    }
    Some(process)
}

/// A `mosquitto_sub` that reads all topics, as lines "RETAINED TOPIC PAYLOAD".
struct Subscriber {
    process: Child,
    lines: Receiver<String>,
}

impl Subscriber {
    fn start(port: u16, more: &[&str]) -> Self {
        let mut command = Command::new("mosquitto_sub");
        command.args(["-p", &port.to_string(), "-t", "#", "-F", "%r %t %p"]).args(more);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        Self { lines: lines(process.stdout.take().unwrap()), process }
    }

    /// Returns the first line that fits, while `show` is called again and again.
    fn find(&self, mut show: impl FnMut(), mut fits: impl FnMut(&str) -> bool) -> String {
        let start = Instant::now();
        let mut seen = Vec::new();
        loop {
            assert!(start.elapsed() < GUARD, "not received; but {seen:?}");
            show();
            match self.lines.recv_timeout(Duration::from_millis(20)) {
                Ok(line) if fits(&line) => return line,
                Ok(line) => seen.push(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("mosquitto_sub ended after {seen:?}"),
            }
        }
    }

    fn wait(&self, part: &str) -> String {
        self.find(|| (), |line| line.contains(part))
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _ended = self.process.wait();
    }
}

fn lines(output: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    receiver
}

/// What all tests of this process log.
static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the lines of the log with all these words.
fn logged(words: &[&str]) -> Vec<String> {
    let log = String::from_utf8(LOG.lock().unwrap().clone()).unwrap();
    log.lines()
        .filter(|line| words.iter().all(|word| line.contains(word)))
        .map(String::from)
        .collect()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < GUARD, "{what} does not come; the log: {:#?}", logged(&[]));
        thread::sleep(Duration::from_millis(10));
    }
}

fn settings(address: String) -> Settings {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing_subscriber::fmt().with_writer(|| Log).init());
    let zones = vec!["Gate".into(), "门 & Tür".into()];
    Settings { address, name: "porch".into(), zones, ..Settings::default() }
}

/// An obstacle at a distance in the first zone and ahead; the second zone is not known.
fn obstacles(occupied: Option<bool>, distance_m: f64) -> Obstacles {
    let position_m = [distance_m, 0.0, 0.4];
    let nearest =
        Nearest { distance_m, nearest_m: distance_m, sigma_m: 0.01, position_m, pixels: 50 };
    let zone =
        |name: &str, occupied, nearest| Zone { name: name.into(), occupied, nearest, known: 0.5 };
    let bins = vec![Bin::Unknown, Bin::Obstacle(nearest), Bin::Clear];
    Obstacles {
        scan: Scan { first_deg: -15.0, bin_deg: 10.0, bins, near_m: 0.5, far_m: 10.0 },
        zones: vec![zone("Gate", occupied, Some(nearest)), zone("门 & Tür", None, None)],
        things: Vec::new(),
        mount: Mount::default(),
    }
}

fn payload(line: &str) -> Value {
    serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap()
}

#[test]
fn states_discovery_and_boxes_pass_through_the_broker() {
    let Some(mosquitto) = Mosquitto::start(|_| "allow_anonymous true".into()) else { return };
    let early = Subscriber::start(mosquitto.port, &[]);
    let frigate = Frigate { camera: "front".into(), size: [640, 480], ..Frigate::default() };
    // So slow that a second message of a topic within the test is one that was sent at once.
    let broker = Broker::open(Settings {
        rate: 0.01,
        frigate: Some(frigate),
        ..settings(mosquitto.address())
    })
    .unwrap();
    early.wait(" stereod/porch/status online");
    broker.show(&obstacles(None, 2.0), STAMP);
    let unknown = early.wait("0 stereod/porch/zone/门 & Tür");
    assert_eq!(payload(&unknown)["occupied"], Value::Null);
    let nearest = early.wait("0 stereod/porch/nearest");
    assert_eq!(
        payload(&nearest),
        serde_json::json!({"distance_m": 2.0, "direction_deg": 0.0, "height_m": 0.4, "stamp": 1764412800.25})
    );
    broker.show(&obstacles(None, 3.0), STAMP);
    broker.show(&obstacles(Some(true), 4.0), STAMP);
    let line = early.wait("0 stereod/porch/zone/Gate");
    let expected = serde_json::json!(
        {"occupied": true, "distance_m": 4.0, "nearest_m": 4.0, "known": 0.5, "stamp": 1764412800.25}
    );
    assert_eq!(payload(&line), expected);

    let event = r#"{"type": "new", "before": {}, "after": {"id": "1.5-a", "camera": "front", "label": "person",
        "score": 0.8, "box": [64, 120, 320, 480], "frame_time": 1764412800.0, "false_positive": false}}"#;
    mosquitto.publish("frigate/events", "nonsense");
    mosquitto.publish("frigate/events", event);
    until("a box", || !broker.newest(STAMP).is_empty());
    assert_eq!((broker.newest(STAMP)[0].edges, broker.refused()), ([0.1, 0.25, 0.5, 1.0], 1));
    mosquitto.publish("frigate/events", &event.replace("new", "end"));
    until("the end", || broker.newest(STAMP).is_empty());

    // Who comes later finds who is there, but no state that may be old. Retained messages come before the others.
    let late = Subscriber::start(mosquitto.port, &[]);
    let mut first = vec![late.wait("stereod/porch")];
    mosquitto.publish("mark", "end");
    late.find(
        || (),
        |line| {
            first.push(line.to_owned());
            line == "0 mark end"
        },
    );
    let is_there = |start: &str| first.iter().any(|line| line.starts_with(start));
    assert!(
        is_there("1 homeassistant/device/stereod_stereod_porch_")
            && is_there("1 stereod/porch/status online")
    );
    assert!(!is_there("1 stereod/porch/zone") && !is_there("1 stereod/porch/nearest"), "{first:?}");
    drop(broker);
    early.wait("0 stereod/porch/status offline");
}

#[test]
fn a_broker_that_is_killed_or_blocks_never_stops_the_run() {
    let Some(mut mosquitto) = Mosquitto::start(|_| "allow_anonymous true".into()) else { return };
    let subscriber = Subscriber::start(mosquitto.port, &[]);
    let broker = Broker::open(Settings { rate: 100.0, ..settings(mosquitto.address()) }).unwrap();
    let show = |distance: f64| broker.show(&obstacles(Some(true), distance), STAMP);
    let has = |distance: f64| {
        let part = format!("\"distance_m\":{distance:?}");
        move |line: &str| line.contains("zone/Gate") && line.contains(&part)
    };
    subscriber.find(|| show(1.0), has(1.0));
    let port = format!(":{}", mosquitto.port);

    mosquitto.kill();
    until("a loss", || {
        show(2.0);
        broker.losses() > 10
    });
    until("a message", || !logged(&[&port, "is lost"]).is_empty());
    mosquitto.restart();
    let subscriber = Subscriber::start(mosquitto.port, &[]);
    subscriber.find(|| show(3.0), has(3.0));
    // The new process of the broker had forgotten these.
    Subscriber::start(mosquitto.port, &[]).wait("1 homeassistant/device/");
    Subscriber::start(mosquitto.port, &[]).wait("1 stereod/porch/status online");
    assert_eq!(logged(&[&port, "is lost"]).len(), 1, "{:?}", logged(&[&port]));
    assert_eq!(logged(&[&port, "is back"]).len(), 1, "{:?}", logged(&[&port]));

    mosquitto.signal("-STOP");
    for pair in 0..20_000 {
        broker.show(&obstacles(Some(pair % 2 == 0), 4.0), STAMP);
    }
    mosquitto.signal("-CONT");
    subscriber.find(|| show(5.0), has(5.0));
}

#[test]
fn a_port_that_never_answers_is_told_and_delays_no_end() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let broker = Broker::open(settings(format!("mqtt://127.0.0.1:{port}"))).unwrap();
    let words = [&format!(":{port} ") as &str, "is not there", "goes on"];
    until("a message", || {
        broker.show(&obstacles(None, 1.0), STAMP);
        !logged(&words).is_empty()
    });
    drop(broker);
}

/// Environment variable that makes a process of this test send states to the address in it until it is killed.
const CHILD: &str = "STEREOD_TEST_MQTT_ADDRESS";

struct Sender {
    process: Child,
    lines: Receiver<String>,
}

impl Sender {
    fn start(test: &str, address: &str, user: &str, password: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([test, "--exact", "--nocapture"])
            .env(CHILD, address)
            .env(USER, user)
            .env(PASSWORD, password);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        Self { lines: lines(process.stdout.take().unwrap()), process }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _ended = self.process.wait();
    }
}

fn send_states(address: String) {
    tracing_subscriber::fmt().with_writer(std::io::stdout).init();
    let zones = vec!["Gate".into(), "门 & Tür".into()];
    let broker =
        Broker::open(Settings { address, name: "porch".into(), zones, ..Settings::default() })
            .unwrap();
    let start = Instant::now();
    while start.elapsed() < GUARD {
        broker.show(&obstacles(Some(true), 2.0), STAMP);
        thread::sleep(Duration::from_millis(20));
    }
}

fn set_password(folder: &Path, password: &str) {
    let mut command = Command::new("mosquitto_passwd");
    command
        .arg("-b")
        .arg("-c")
        .arg(folder.join("users"))
        .args(["stereo", password])
        .stderr(Stdio::null());
    assert!(command.status().unwrap().success());
}

#[test]
fn the_login_comes_from_the_environment() {
    if let Ok(address) = std::env::var(CHILD) {
        return send_states(address);
    }
    let Some(mosquitto) = Mosquitto::start(|folder| {
        set_password(folder, "first");
        format!("allow_anonymous false\npassword_file {}", folder.join("users").display())
    }) else {
        return;
    };
    let subscriber = Subscriber::start(mosquitto.port, &["-u", "stereo", "-P", "first"]);
    let test = "the_login_comes_from_the_environment";
    let sender = Sender::start(test, &mosquitto.address(), "stereo", "first");
    subscriber.wait(" stereod/porch/status online");
    subscriber.wait("0 stereod/porch/zone/Gate");
    // It is killed, so that only the last will can say this.
    drop(sender);
    subscriber.wait("0 stereod/porch/status offline");

    let sender = Sender::start(test, &mosquitto.address(), "stereo", "second");
    let mut said = Vec::new();
    while !said.iter().any(|line: &String| line.contains(PASSWORD)) {
        said.push(sender.lines.recv_timeout(GUARD).unwrap());
    }
    let said = said.join("\n");
    assert!(said.contains(USER) && said.contains("refuses") && !said.contains("second"), "{said}");
    // It goes on, and is let in when the broker knows the password.
    set_password(mosquitto.folder.path(), "second");
    mosquitto.signal("-HUP");
    subscriber_after_reload(&mosquitto).wait("1 stereod/porch/status online");
    assert!(sender.lines.try_iter().all(|line| !line.contains("second")));

    // Without a login.
    let broker = Broker::open(settings(mosquitto.address())).unwrap();
    let port = format!(":{} ", mosquitto.port);
    until("a message", || !logged(&[&port, USER, PASSWORD, "not set"]).is_empty());
    drop(broker);
}

/// Waits until the sender was let in: the status is retained, and was offline before.
fn subscriber_after_reload(mosquitto: &Mosquitto) -> Subscriber {
    let start = Instant::now();
    loop {
        let subscriber = Subscriber::start(mosquitto.port, &["-u", "stereo", "-P", "second"]);
        let line = subscriber.wait("1 stereod/porch/status");
        if line.ends_with("online") {
            return Subscriber::start(mosquitto.port, &["-u", "stereo", "-P", "second"]);
        }
        assert!(start.elapsed() < GUARD, "it is not let in");
        thread::sleep(Duration::from_millis(200));
    }
}

/// Writes an authority and a certificate for localhost with others' tool.
fn certificates(folder: &Path) {
    let script = "
        openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test-authority
        openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost
        printf 'subjectAltName=DNS:localhost\\nbasicConstraints=CA:FALSE\\n' > server.ext
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 \
            -extfile server.ext";
    let mut command = Command::new("sh");
    command.args(["-ec", script]).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().unwrap().success());
}

#[test]
fn tls_checks_the_authority_and_the_host_name() {
    let Some(mosquitto) = Mosquitto::start(|folder| {
        certificates(folder);
        let file = |name: &str| folder.join(name).display().to_string();
        format!(
            "allow_anonymous true\ncertfile {}\nkeyfile {}",
            file("server.pem"),
            file("server.key")
        )
    }) else {
        return;
    };
    let ca = mosquitto.folder.path().join("ca.pem");
    let ca_text = ca.display().to_string();
    let subscriber = Subscriber::start(mosquitto.port, &["-h", "localhost", "--cafile", &ca_text]);
    let port = mosquitto.port;

    let refused = |address: String, ca: Option<&Path>, words: &[&str]| {
        let before = logged(words).len();
        let broker =
            Broker::open(Settings { ca: ca.map(Into::into), ..settings(address) }).unwrap();
        until(&format!("{words:?}"), || logged(words).len() > before);
        drop(broker);
    };
    let by_number = format!("127.0.0.1:{port} ");
    let by_name = format!("localhost:{port} ");
    // The certificate is for another name; the authority is none that the system knows; TLS is expected.
    refused(
        format!("mqtts://127.0.0.1:{port}"),
        Some(&ca),
        &[&by_number, "TLS", "not valid for name"],
    );
    refused(format!("mqtts://localhost:{port}"), None, &[&by_name, "TLS", "UnknownIssuer"]);
    refused(format!("mqtt://localhost:{port}"), None, &[&by_name, "is not there"]);

    let broker =
        Broker::open(Settings { ca: Some(ca), ..settings(format!("mqtts://localhost:{port}")) })
            .unwrap();
    subscriber.find(
        || broker.show(&obstacles(Some(true), 1.5), STAMP),
        |line| line.contains("\"distance_m\":1.5"),
    );
    drop(broker);
    subscriber.wait("0 stereod/porch/status offline");
}
