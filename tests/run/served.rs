//! The live page's server, as a client sees it that is not the page.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Bytes, Message, WebSocket};

use super::*;

type Socket = WebSocket<MaybeTlsStream<TcpStream>>;

/// A run with a live page.
struct Served {
    child: Child,
    /// Host and port.
    host: String,
    token: String,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Served {
    fn start(folder: &Path, address: &str, arguments: &[&str]) -> Self {
        let arguments =
            [&["run", "--headless", "-d", "16", "--serve", address], arguments].concat();
        let mut child = stereod(folder, &arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut all = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let line = all.find(|line| line.contains("page on http://")).expect("it says where");
        let (host, rest) = line.split_once("http://").unwrap().1.split_once('/').unwrap();
        let in_file = || std::fs::read_to_string(folder.join("token")).unwrap();
        let token = rest.strip_prefix("?token=").map_or_else(in_file, str::to_owned);
        let (send, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || all.for_each(|line| drop(send.send(line))));
        Self { child, host: host.replace("0.0.0.0", "127.0.0.1"), token, lines }
    }

    /// Connects to the page's WebSocket, or returns the status of the refusal.
    fn connect(&self, query: &str, headers: &[(&'static str, &str)]) -> Result<Socket, u16> {
        self.open(&format!("/live{query}"), headers)
    }

    /// Connects with the Foxglove protocol.
    fn foxglove(&self, token: &str, origin: &str) -> Result<Socket, u16> {
        let headers = [("sec-websocket-protocol", "foxglove.sdk.v1"), ("origin", origin)];
        self.open(&format!("/foxglove?token={token}"), &headers)
    }

    fn open(&self, path: &str, headers: &[(&'static str, &str)]) -> Result<Socket, u16> {
        let uri = format!("ws://{}{path}", self.host);
        let mut request = uri.into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match tungstenite::connect(request) {
            Ok((socket, _)) => {
                let MaybeTlsStream::Plain(stream) = socket.get_ref() else { panic!("no TLS here") };
                stream.set_read_timeout(Some(LIMIT)).unwrap();
                Ok(socket)
            }
            Err(tungstenite::Error::Http(answer)) => Err(answer.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    /// Sends the head of a request, or a part of it.
    fn begin(&self, head: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    /// Begins a WebSocket that nobody reads and that answers nothing, as that of a sleeping phone.
    fn asleep(&self, query: &str) -> TcpStream {
        let mut stream = self.begin(&format!(
            "GET /live{query} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        ));
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 101");
        stream
    }

    /// A number of the process's status, such as its threads.
    #[cfg(target_os = "linux")]
    fn number(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap().split_whitespace().next().unwrap().parse().unwrap()
    }

    fn with_token(&self) -> Socket {
        self.connect(&format!("?token={}", self.token), &[]).unwrap()
    }

    fn get(&self, path: &str) -> (u16, Vec<u8>) {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let mut answer = agent.get(format!("http://{}{path}", self.host)).call().unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_vec().unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `take` makes of the next message that it takes. If none comes, it fails with the last ones that came instead.
fn next<T>(socket: &mut Socket, what: &str, take: impl Fn(&Message) -> Option<T>) -> T {
    let (mut patience, mut others) = (Patience::begin(), VecDeque::new());
    loop {
        let message = socket.read();
        if let Some(taken) = message.as_ref().ok().and_then(&take) {
            return taken;
        }
        let is_over = message.is_err() || patience.is_over();
        others.push_back(match message {
            Ok(Message::Text(text)) => text.chars().take(300).collect(),
            Ok(message) => format!("{} bytes", message.len()),
            Err(error) => error.to_string(),
        });
        assert!(!is_over, "waited in vain for {what}; these came: {others:#?}");
        others.drain(..others.len().saturating_sub(20));
    }
}

/// The next text of this type that `is_it`.
fn until_text(socket: &mut Socket, kind: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    next(socket, kind, |message| {
        let Message::Text(text) = message else { return None };
        let value: Value = serde_json::from_str(text).unwrap();
        ((value["type"] == kind || value["op"] == kind) && is_it(&value)).then_some(value)
    })
}

/// The next text of this type.
fn next_text(socket: &mut Socket, kind: &str) -> Value {
    until_text(socket, kind, |_| true)
}

/// The next binary message for which `is_it` holds.
fn until_bytes(socket: &mut Socket, is_it: impl Fn(&[u8]) -> bool) -> Bytes {
    next(socket, "bytes", |message| match message {
        Message::Binary(bytes) => is_it(bytes).then(|| bytes.clone()),
        _ => None,
    })
}

/// The next frame: header and disparity in 1/16 px.
fn next_frame(socket: &mut Socket) -> (Value, Vec<i16>) {
    frame(&until_bytes(socket, |_| true))
}

fn frame(bytes: &[u8]) -> (Value, Vec<i16>) {
    let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[4..4 + length]).unwrap();
    let size = |part: &str| header[part].as_u64().unwrap() as usize;
    let begin = 4 + length + size("jpeg");
    assert_eq!(&bytes[4 + length..][..2], b"\xff\xd8", "a JPEG");
    let steps = fdeflate::decompress_to_vec(&bytes[begin..begin + size("disparity")]).unwrap();
    let (low, high) = steps.split_at(steps.len() / 2);
    let width = size("width");
    let mut numbers: Vec<i16> = Vec::new();
    for i in 0..low.len() {
        let above = i.checked_sub(width).map_or(0, |above| numbers[above]);
        numbers.push(i16::from_le_bytes([low[i], high[i]]).wrapping_add(above));
    }
    assert_eq!(begin + size("disparity") + size("confidence"), bytes.len());
    (header, numbers)
}

fn send(socket: &mut Socket, message: &Value) {
    socket.send(Message::text(message.to_string())).unwrap();
}

fn acknowledge(socket: &mut Socket, header: &Value) {
    send(socket, &json!({ "type": "ack", "seq": header["seq"] }));
}

/// The reason for which a connection is closed at once.
fn refusal(mut socket: Socket) -> String {
    match socket.read().unwrap() {
        Message::Close(Some(reason)) => reason.reason.to_string(),
        other => panic!("it was let in: {other:?}"),
    }
}

/// Reads until the server closes the connection, and returns code and reason.
fn closing(socket: &mut Socket) -> (u16, String) {
    next(socket, "the end", |message| match message {
        Message::Close(Some(end)) => Some((end.code.into(), end.reason.to_string())),
        _ => None,
    })
}

/// A link to `to` that takes so many bytes a second from it.
fn slow_link(to: &str, bytes_a_second: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, to) = (listener.local_addr().unwrap().to_string(), to.to_owned());
    std::thread::spawn(move || {
        for client in listener.incoming().map(Result::unwrap) {
            let mut server = TcpStream::connect(&to).unwrap();
            let (mut asks, mut asked) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut asks, &mut asked));
            std::thread::spawn(move || {
                let (mut client, mut part) = (client, vec![0; bytes_a_second / 20]);
                while let Ok(length @ 1..) = server.read(&mut part) {
                    if client.write_all(&part[..length]).is_err() {
                        break;
                    }
                    std::thread::sleep(Duration::from_secs_f64(
                        length as f64 / bytes_a_second as f64,
                    ));
                }
            });
        }
    });
    address
}

const DEMO: [&str; 3] = ["--demo", "--demo-size", "96x64"];

#[test]
fn frames_are_the_numbers_that_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let more = ["--pictures", "out", "--set=source.pace=realtime", "--frames", "100000"];
    let served = Served::start(folder.path(), "0", &[&DEMO[..], &more].concat());
    let mut socket = served.with_token();
    assert_eq!(next_text(&mut socket, "hello")["may_change"], true);
    send(&mut socket, &json!({ "type": "quality", "scale": 1 }));
    let mut frames = Vec::new();
    wait_until("frames in full size", || {
        let (header, numbers) = next_frame(&mut socket);
        acknowledge(&mut socket, &header);
        if header["scale"] == 1 {
            frames.push((header, numbers));
        }
        frames.len() == 10
    });
    // A status is up to a second old.
    let mut status = Value::Null;
    wait_until("ten pairs", || {
        status = next_text(&mut socket, "status");
        // The frames before it were left out here.
        acknowledge(&mut socket, &json!({ "seq": 1_000_000 }));
        status["matched"].as_u64().unwrap() >= 10
    });
    assert!(status["banners"].is_array(), "{status}");
    let half = json!({ "type": "quality", "scale": 2 });
    send(&mut socket, &half);
    let (mut header, mut numbers) = (Value::Null, Vec::new());
    wait_until("half the size", || {
        (header, numbers) = next_frame(&mut socket);
        acknowledge(&mut socket, &header);
        header["scale"] == 2
    });
    assert_eq!((&header["width"], numbers.len()), (&json!(48), 48 * 32));
    assert_eq!(served.get("/snapshot/disparity.png").0, 200);
    let (status, cloud) = served.get("/snapshot/cloud.ply");
    assert!(status == 200 && cloud.starts_with(b"ply\n"), "{}", String::from_utf8_lossy(&cloud));
    drop(served);
    for (header, numbers) in frames {
        let name = format!("out/{:06}.png", header["seq"].as_u64().unwrap());
        let stored = image::open(folder.path().join(&name)).unwrap().into_luma16().into_raw();
        let shown =
            numbers.iter().map(|&value| if value == i16::MIN { 0 } else { 16 * value as u16 });
        assert!(shown.eq(stored), "{name}");
    }
}

#[test]
fn a_page_shows_to_this_machine_and_changes_nothing_without_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "0", &DEMO);
    let (status, page) = served.get("/");
    assert!(status == 200 && page.starts_with(b"<!"), "{}", String::from_utf8_lossy(&page));
    assert_eq!(served.get("/metrics").0, 200);
    assert_eq!(served.get("/metrics?token=0123456789abcdef").0, 401);
    assert!(refusal(served.connect("?token=0", &[]).unwrap()).contains("token"));
    assert_eq!(served.connect("", &[("origin", "http://evil.example")]).err(), Some(403));
    assert_eq!(served.connect("", &[("host", "evil.example")]).err(), Some(421));
    let own = format!("http://{}", served.host);
    let mut looker = served.connect("", &[("origin", &own)]).unwrap();
    assert_eq!(next_text(&mut looker, "hello")["may_change"], false);
    let knobs = next_text(&mut looker, "knobs");
    // There is no other one before this one is acknowledged.
    let (first, _) = next_frame(&mut looker);
    send(&mut looker, &json!({ "type": "pause", "on": true }));
    send(&mut looker, &json!({ "type": "tune", "number": 1, "values": [["matching", "p1", "9"]] }));
    send(&mut looker, &json!(["nonsense"]));
    looker.send(Message::Binary(vec![1, 2].into())).unwrap();
    // Each is answered.
    for (kind, expected) in [
        ("note", "the token"),
        ("knobs", "the token"),
        ("note", "not understood"),
        ("note", "it is binary"),
    ] {
        let answer = next_text(&mut looker, kind);
        assert!(
            answer["answers"].to_string().contains(expected)
                || answer["text"].to_string().contains(expected)
        );
    }
    acknowledge(&mut looker, &first);
    let (second, _) = next_frame(&mut looker);
    assert!(second["seq"].as_u64() > first["seq"].as_u64(), "the run was paused");

    let mut owner = served.with_token();
    assert_eq!(next_text(&mut owner, "knobs")["knobs"], knobs["knobs"], "settings were changed");
    let values = json!([["matching", "uniqueness", "17"]]);
    send(&mut owner, &json!({ "type": "tune", "number": 7, "values": values }));
    let changed = next_text(&mut owner, "knobs");
    assert_eq!(changed["answers"], json!([{ "number": 7, "problem": null }]), "{changed}");
    // Every viewer hears of it, but only one has asked.
    assert_eq!(next_text(&mut looker, "knobs")["answers"], json!([]));
    let line = served.lines.iter().find(|line| line.contains("tuned: ")).unwrap();
    assert!(line.contains("uniqueness = 17"), "{line}");
    send(&mut owner, &json!({ "type": "tune", "number": 8, "values": [["matching", "p1", "x"]] }));
    let refused = next_text(&mut owner, "knobs");
    assert!(refused["answers"][0]["problem"].as_str().unwrap().contains("p1"), "{refused}");
    send(&mut owner, &json!({ "type": "pause", "on": true }));
    until_text(&mut owner, "status", |status| status["paused"] == true);
}

/// The rest of a longer message is taken, so that the reason arrives.
#[test]
fn a_message_that_is_too_long_ends_its_connection_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "0", &DEMO);
    for length in [(64 << 10) + 1, 1 << 20] {
        for mut socket in [served.with_token(), served.foxglove(&served.token, "").unwrap()] {
            socket.send(Message::Text("x".repeat(length).into())).unwrap();
            let (code, reason) = closing(&mut socket);
            assert!(code == 1009 && reason.contains("more than 64 KiB"), "{code}: {reason}");
        }
    }
    next_frame(&mut served.with_token());
}

#[test]
fn skipped_images_are_counted_also_in_a_part_of_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let part = ["--frames", "500.."];
    let served = Served::start(folder.path(), "0", &[&DEMO[..], &part].concat());
    let mut viewer = served.with_token();
    let mut numbers: Vec<u64> = Vec::new();
    wait_until("a skipped image", || match viewer.read().unwrap() {
        Message::Binary(bytes) => {
            numbers.push(frame(&bytes).0["seq"].as_u64().unwrap());
            false
        }
        Message::Text(text) => {
            let status: Value = serde_json::from_str(&text).unwrap();
            let (Some(skipped), Some(&first), Some(&last)) =
                (status["client"]["skipped"].as_u64(), numbers.first(), numbers.last())
            else {
                return false;
            };
            // Others have come since.
            acknowledge(&mut viewer, &json!({ "seq": last }));
            assert_eq!(skipped, last - first + 1 - numbers.len() as u64, "{numbers:?}");
            assert!(first >= 500, "{numbers:?}");
            skipped > 0
        }
        _ => false,
    });
}

#[test]
fn other_machines_need_the_token_even_to_look() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "0.0.0.0:0", &DEMO);
    next_frame(&mut served.with_token());
    // The page asks for the token.
    assert_eq!(served.get("/").0, 200);
    for path in ["/metrics", "/healthz", "/snapshot/disparity.png", "/snapshot/settings.toml"] {
        assert_eq!(served.get(path).0, 401, "{path}");
        assert_eq!(served.get(&format!("{path}?token={}", served.token)).0, 200, "{path}");
    }
    assert!(refusal(served.connect("", &[]).unwrap()).contains("token"));
}

#[test]
fn stalled_clients_cost_their_own_frames_and_give_way() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "0", &DEMO);
    let token = format!("?token={}", served.token);
    let stalled: Vec<TcpStream> = (0..7).map(|_| served.asleep(&token)).collect();
    let mut quick = served.with_token();
    for _ in 0..40 {
        let (header, _) = next_frame(&mut quick);
        acknowledge(&mut quick, &header);
    }
    // Nobody has waited for their end: all are still there.
    assert_eq!(next_text(&mut quick, "status")["viewers"].as_array().unwrap().len(), 8);
    // Two hundred more fall asleep. Each gets in, and so do their owner and his other viewers.
    let asleep: Vec<TcpStream> = (0..200).map(|_| served.asleep(&token)).collect();
    let mut owner = served.with_token();
    assert_eq!(next_text(&mut owner, "hello")["may_change"], true);
    next_frame(&mut owner);
    let mut foxglove = served.foxglove(&served.token, "").unwrap();
    next_text(&mut foxglove, "serverInfo");
    drop((stalled, asleep));
}

#[test]
fn viewers_are_listed_and_closed_and_no_token_displaces_none_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "0", &DEMO);
    let mut owner = served.with_token();
    let mut looker = served.connect("", &[]).unwrap();
    assert_eq!(next_text(&mut looker, "status")["viewers"], Value::Null);
    // The first status may be of the time before the second viewer.
    let mut viewers = Value::Null;
    wait_until("two viewers", || {
        viewers = next_text(&mut owner, "status")["viewers"].take();
        viewers.as_array().unwrap().len() == 2
    });
    let [first, second] = [0_usize, 1].map(|place| &viewers[place]);
    assert_eq!((&first["own"], &first["may_change"]), (&json!(true), &json!(true)), "{viewers}");
    assert_eq!((&second["kind"], &second["address"]), (&json!("page"), &json!("127.0.0.1")));
    // Only the token closes another viewer.
    send(&mut looker, &json!({ "type": "close", "viewer": first["id"] }));
    assert!(next_text(&mut looker, "note")["text"].to_string().contains("the token"));
    next_text(&mut owner, "status");
    send(&mut owner, &json!({ "type": "close", "viewer": second["id"] }));
    let (code, reason) = closing(&mut looker);
    assert!(code == 4000 && reason.contains("closed by another"), "{code}: {reason}");

    let owners: Vec<TcpStream> =
        (0..7).map(|_| served.asleep(&format!("?token={}", served.token))).collect();
    assert!(refusal(served.connect("", &[]).unwrap()).contains("too many"));
    drop(owners);
}

/// A viewer that answers no question for 30 s is lost.
#[test]
fn the_place_of_a_sleeping_viewer_becomes_free() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "0", &DEMO);
    let begun = std::time::Instant::now();
    let asleep = served.asleep("");
    let mut owner = served.with_token();
    let count = |owner: &mut Socket| loop {
        match owner.read().unwrap() {
            Message::Text(text) => {
                let value: Value = serde_json::from_str(&text).unwrap();
                if let Some(viewers) = value["viewers"].as_array() {
                    return viewers.len();
                }
            }
            Message::Binary(_) => acknowledge(owner, &json!({ "seq": 1_000_000 })),
            _ => {}
        }
    };
    assert_eq!(count(&mut owner), 2);
    wait_until("its place is free", || count(&mut owner) == 1);
    // One that answers pings, as reading does, stays.
    assert!(begun.elapsed() > Duration::from_secs(20));
    next_frame(&mut owner);
    drop(asleep);
}

/// Two hundred requests without an end, as many that nobody reads, and snapshots for clients that have hung up.
#[test]
#[cfg(target_os = "linux")]
fn two_hundred_clients_neither_delay_health_nor_take_threads() {
    let folder = tempfile::tempdir().unwrap();
    let cameras = ["--focal", "300", "--baseline", "0.1", "--demo", "--demo-size", "320x240"];
    let served = Served::start(folder.path(), "0", &cameras);
    next_frame(&mut served.with_token());
    let threads = served.number("Threads");
    let time = |path: &str| {
        let begun = std::time::Instant::now();
        assert_eq!(served.get(path).0, 200, "{path}");
        begun.elapsed()
    };
    // Each of so many clients may cost as much as an answer to one of them on this machine.
    let alone = (0..9).map(|_| time("/metrics")).max().unwrap();
    let limit = Duration::from_secs(15).max(200 * alone);
    let answers = |path: &str| {
        let took = time(path);
        assert!(took < limit, "{path} took {took:?}, {alone:?} without the others");
    };
    let halves: Vec<_> =
        (0..200).map(|_| served.begin("GET /healthz HTTP/1.1\r\nHost: localhost\r\n")).collect();
    ["/healthz", "/metrics"].iter().for_each(|path| answers(path));
    let snapshot = "GET /snapshot/cloud.ply HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let unread: Vec<_> = (0..200).map(|_| served.begin(snapshot)).collect();
    ["/healthz", "/metrics"].iter().for_each(|path| answers(path));
    for _ in 0..10 {
        (0..200).for_each(|_| drop(served.begin(snapshot)));
        ["/healthz", "/metrics"].iter().for_each(|path| answers(path));
        let now = served.number("Threads");
        assert!(now <= threads + 8, "{now} threads, before {threads}");
    }
    drop((halves, unread));
    wait_until("a snapshot", || served.get("/snapshot/cloud.ply").0 == 200);
    assert_eq!(served.get("/snapshot/nothing").0, 404);
}

#[test]
fn a_page_of_another_site_gets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "0", &DEMO);
    next_frame(&mut served.with_token());
    let ask = |path: &str, site: &str, dest: &str| {
        let mut stream = served.begin(&format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nSec-Fetch-Site: {site}\r\nSec-Fetch-Dest: {dest}\r\n\r\n",
            served.host
        ));
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };
    for path in ["/snapshot/disparity.png", "/snapshot/cloud.ply", "/metrics", "/page.js"] {
        assert!(ask(path, "cross-site", "image").starts_with("HTTP/1.1 403"), "{path}");
    }
    assert!(ask("/", "cross-site", "document").starts_with("HTTP/1.1 200"), "a link to the page");
    let own = ask("/snapshot/disparity.png", "same-origin", "image");
    assert!(own.starts_with("HTTP/1.1 200"), "{own}");
    assert!(own.contains("cross-origin-resource-policy: same-origin\r\n"), "{own}");
}

#[test]
fn behind_a_proxy_the_token_is_needed_to_look() {
    let folder = tempfile::tempdir().unwrap();
    let more = ["--set=serve.require_token=true"];
    let served = Served::start(folder.path(), "0", &[&DEMO[..], &more].concat());
    assert_eq!((served.get("/").0, served.get("/healthz").0), (200, 401));
    assert!(refusal(served.connect("", &[]).unwrap()).contains("token"));
    next_frame(&mut served.with_token());
    // A proxy that tells for whom it asks needs no setting.
    let served = Served::start(folder.path(), "0", &DEMO);
    let forwarded = ("x-forwarded-for", "192.0.2.7");
    assert!(refusal(served.connect("", &[forwarded]).unwrap()).contains("token"));
    next_frame(&mut served.connect(&format!("?token={}", served.token), &[forwarded]).unwrap());
}

#[test]
fn the_end_of_a_recording_is_told_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    // Ten seconds, in which the viewers come.
    let more = ["--set=demo.rate=6", "--frames", "60", "--set=window.at_end=close"];
    let mut served = Served::start(folder.path(), "0", &[&DEMO[..], &more].concat());
    let (mut viewer, mut foxglove) =
        (served.with_token(), served.foxglove(&served.token, "").unwrap());
    let _asleep = served.asleep("");
    for socket in [&mut viewer, &mut foxglove] {
        let (code, reason) = closing(socket);
        assert!(code == 1000 && reason == "the run has ended after 60 pairs", "{code}: {reason}");
    }
    assert_eq!(served.child.wait().unwrap().code(), Some(0));

    let mut stopped = Served::start(folder.path(), "0", &DEMO);
    let mut viewer = stopped.with_token();
    next_frame(&mut viewer);
    signal(&stopped.child, libc::SIGTERM);
    let (code, reason) = closing(&mut viewer);
    assert!(code == 1001 && reason == "stereod was stopped", "{code}: {reason}");
    assert_eq!(stopped.child.wait().unwrap().code(), Some(0));
}

/// The next status with this value of `playing`.
fn until_playing(socket: &mut Socket, key: &str, value: &Value) {
    let mut playing = Value::Null;
    wait_until(&format!("{key} is {value}"), || {
        playing = next_text(socket, "status")["playing"].take();
        // The frames before it were left out here.
        acknowledge(socket, &json!({ "seq": 1_000_000 }));
        playing[key] == *value
    });
}

#[test]
fn a_recording_waits_at_its_end_and_is_moved_through_with_the_token() {
    let folder = tempfile::tempdir().unwrap();
    recordings::write_demo(&folder.path().join("a.mcap"), 40);
    let demo = [&DEMO[..], &["--frames", "40"]].concat();
    // The pairs behind a limit do not exist.
    for (source, last) in [(&["a.mcap"][..], 39), (&demo, 39), (&["a.mcap", "--frames", "7"], 6)] {
        let mut served = Served::start(folder.path(), "0", source);
        let waits = served.lines.iter().find(|line| line.contains("is at its end")).unwrap();
        assert!(waits.contains("Ctrl-C") && waits.contains("window.at_end=close"), "{waits}");
        // Whoever comes late sees the last pair.
        let mut owner = served.with_token();
        let hello = next_text(&mut owner, "hello");
        let length = hello["timeline"]["length"].as_f64().unwrap();
        let pair_length = (last + 1) as f64 / 30.0;
        assert!((length - pair_length).abs() < 0.05, "{hello}");
        let shows = |socket: &mut Socket, number: u64| {
            wait_until(&format!("pair {number}"), || {
                let (header, _) = next_frame(socket);
                acknowledge(socket, &header);
                header["seq"] == number
            });
        };
        shows(&mut owner, last);
        until_playing(&mut owner, "at_end", &json!(true));

        let mut looker = served.connect("", &[]).unwrap();
        for message in [
            json!({ "type": "move", "to": 0 }),
            json!({ "type": "move", "to": "before" }),
            json!({ "type": "mark", "end": true, "at": 0 }),
            json!({ "type": "play", "repeats": true }),
        ] {
            send(&mut looker, &message);
            let note = next_text(&mut looker, "note");
            assert!(note["text"].to_string().contains("the token"), "{message}: {note}");
            acknowledge(&mut looker, &json!({ "seq": 1_000_000 }));
        }
        // All see where the one with the token moves.
        for (to, number) in [
            (json!("before"), last - 1),
            (json!(0), 0),
            (json!("next"), 1),
            (json!("before"), 0),
            (json!(1e9), last),
        ] {
            send(&mut owner, &json!({ "type": "move", "to": to }));
            shows(&mut owner, number);
            shows(&mut looker, number);
        }
        for wrong in [json!(-1), json!(1e300)] {
            send(&mut owner, &json!({ "type": "move", "to": wrong }));
            let note = next_text(&mut owner, "note");
            assert!(note["text"].to_string().contains("no time in seconds"), "{note}");
            acknowledge(&mut owner, &json!({ "seq": 1_000_000 }));
        }
        send(&mut owner, &json!({ "type": "play", "speed": 64 }));
        until_playing(&mut owner, "speed", &json!(4.0));
        // Once more, and then again and again.
        send(&mut owner, &json!({ "type": "pause", "on": false }));
        shows(&mut owner, last);
        until_playing(&mut owner, "at_end", &json!(true));
        send(&mut owner, &json!({ "type": "mark", "end": true, "at": 0.0334 }));
        assert!(next_text(&mut owner, "note")["text"].to_string().contains("--duration 0.050"));
        acknowledge(&mut owner, &json!({ "seq": 1_000_000 }));
        send(&mut owner, &json!({ "type": "play", "repeats": true }));
        until_playing(&mut owner, "repeats", &json!(true));
        send(&mut owner, &json!({ "type": "pause", "on": false }));
        for _ in 0..3 {
            shows(&mut owner, 1);
            shows(&mut owner, 0);
        }

        signal(&served.child, libc::SIGTERM);
        assert_eq!(closing(&mut owner), (1001, "stereod was stopped".into()));
        assert_eq!(served.child.wait().unwrap().code(), Some(0), "{source:?}");
        let mut summary = String::new();
        served.child.stdout.take().unwrap().read_to_string(&mut summary).unwrap();
        assert!(summary.contains("pairs"), "{summary}");
    }
}

/// A source that cannot be moved waits at its end, too.
#[test]
fn what_only_the_page_shows_stays_on_it() {
    let folder = tempfile::tempdir().unwrap();
    write_eyes(folder.path(), 20, 20);
    let eye = |video: &str| format!("filesrc location={video} ! matroskademux ! avdec_ffv1");
    let (left, right) = (eye("l.mkv"), eye("r.mkv"));
    let mut served = Served::start(folder.path(), "0", &["--left", &left, "--right", &right]);
    served.lines.iter().find(|line| line.contains("is at its end")).unwrap();
    let mut owner = served.with_token();
    next_frame(&mut owner);
    until_text(&mut owner, "status", |status| status["ended"] == true);
    let hello = next_text(&mut served.with_token(), "hello");
    assert!(hello["timeline"].as_str().unwrap().contains("have a timeline"), "{hello}");
    signal(&served.child, libc::SIGTERM);
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_served_run_that_writes_or_sends_something_ends_with_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let ends = |faces: &[&str]| {
        let few = ["run", "--headless", "-d", "16", "--frames", "3"];
        let (status, _, stderr) = run(folder.path(), &[&few[..], &DEMO, faces].concat());
        assert!(status == 0 && !stderr.contains("at its end"), "{faces:?}: {stderr}");
    };
    for [flag, file] in [["--record", "o.mkv"], ["--stats", "s.json"], ["--pictures", "out"]] {
        ends(&["--serve", "0", flag, file]);
    }
    ends(&["--metrics", "0"]);
}

/// No further frame comes that would be sent in another size.
#[test]
fn a_viewer_that_comes_during_a_pause_gets_its_pair_in_full_size() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "0", &DEMO);
    let mut owner = served.with_token();
    next_frame(&mut owner);
    send(&mut owner, &json!({ "type": "pause", "on": true }));
    until_text(&mut owner, "status", |status| status["paused"] == true);
    let mut late = served.with_token();
    let mut scales: Vec<u64> = Vec::new();
    let mut numbers = Vec::new();
    let mut next = |late: &mut Socket| {
        let (header, _) = next_frame(late);
        acknowledge(late, &header);
        numbers.push(header["seq"].clone());
        scales.push(header["scale"].as_u64().unwrap());
        scales.clone()
    };
    // It takes as many steps as while the run goes on, unless this machine is slow.
    wait_until("full size", || next(&mut late).ends_with(&[1]));
    for scale in [4, 1, 2] {
        send(&mut late, &json!({ "type": "quality", "scale": scale }));
        assert!(next(&mut late).ends_with(&[scale]));
    }
    assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
}

/// Warnings that came before anybody looked, too.
#[test]
#[cfg(unix)]
fn warnings_of_the_terminal_reach_viewers() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "0123456789abcdef").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let more = ["--set=serve.token_file=token"];
    let served = Served::start(folder.path(), "0", &[&DEMO[..], &more].concat());
    let mut viewer = served.with_token();
    let is_of_token = |text: &str| text.contains("other users may read the token");
    let is_there = |it: &Value| is_of_token(it["text"].as_str().unwrap()) && it["count"] == 1;
    until_text(&mut viewer, "status", |status| {
        status["warnings"].as_array().unwrap().iter().any(is_there)
    });
    let mut foxglove = served.foxglove(&served.token, "").unwrap();
    let diagnostics = json!([{ "id": 1, "channelId": next_text(&mut foxglove, "advertise")["channels"][0]["id"] }]);
    send(&mut foxglove, &json!({ "op": "subscribe", "subscriptions": diagnostics }));
    until_bytes(&mut foxglove, |bytes| is_of_token(&String::from_utf8_lossy(bytes)));
}

/// Over 1.2 Mbit/s the images become small enough within seconds, and their age can be measured.
#[test]
fn a_slow_link_gets_small_images_within_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let demo = ["--demo", "--demo-size", "640x480", "--set=source.pace=realtime", "--paths", "4"];
    let mut served = Served::start(folder.path(), "0", &demo);
    served.host = slow_link(&served.host, 150_000);
    let mut viewer = served.with_token();
    let (mut scales, mut captured) = (Vec::new(), 0.0);
    // An image of half the width takes over 200 ms on this link, whatever the machine: such images are tried for about
    // a second, and given up. A machine that needs that long for small ones tries none.
    wait_until("small images again", || {
        let (header, _) = next_frame(&mut viewer);
        scales.push(header["scale"].as_u64().unwrap());
        let before = std::mem::replace(&mut captured, header["captured"].as_f64().unwrap());
        assert!(captured > before, "{header}");
        acknowledge(&mut viewer, &header);
        scales.ends_with(&[4, 4]) && (scales.contains(&2) || scales.len() > 100)
    });
    assert_eq!(scales[0], 4, "the first image is small");
    let large = scales.iter().filter(|scale| **scale < 4).count();
    assert!(!scales.contains(&1) && large <= 6, "{scales:?}");
    send(&mut viewer, &json!({ "type": "clock", "at": 12.5 }));
    let clock = next_text(&mut viewer, "clock");
    let server = clock["server"].as_f64().unwrap();
    assert!(clock["at"] == 12.5 && server > captured, "{clock}");
    // Both are Unix times in milliseconds. The system's clock may have been corrected since the start.
    let unix = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64() * 1000.0;
    assert!((server - unix).abs() < 60_000.0 && captured > unix - 120_000.0, "{unix} {clock}");
}

/// A message of points2 takes half a minute here.
#[test]
fn a_message_may_take_any_time_while_it_progresses() {
    let folder = tempfile::tempdir().unwrap();
    let cameras = ["--focal", "80", "--baseline", "0.1", "--demo", "--demo-size", "640x480"];
    let mut served = Served::start(folder.path(), "0", &cameras);
    served.host = slow_link(&served.host, 150_000);
    let mut viewer = served.foxglove(&served.token, "").unwrap();
    next_text(&mut viewer, "advertise");
    let channels = next_text(&mut viewer, "advertise")["channels"].clone();
    let all = channels.as_array().unwrap();
    let points = all.iter().find(|it| it["topic"] == "/points2").unwrap()["id"].clone();
    let subscribe =
        json!({ "op": "subscribe", "subscriptions": [{ "id": 1, "channelId": points }] });
    send(&mut viewer, &subscribe);
    let begun = std::time::Instant::now();
    let length = until_bytes(&mut viewer, |_| true).len();
    assert!(
        length > 640 * 480 * 16 && begun.elapsed() > Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_token_in_a_file_is_not_printed() {
    let folder = tempfile::tempdir().unwrap();
    let file = "--set=serve.token_file=token";
    let close = "--set=window.at_end=close";
    let arguments = ["run", "--headless", "--serve", "0", "--frames", "3", file, close];
    let mut command = stereod(folder.path(), &[&arguments[..], &DEMO].concat());
    let (status, _, stderr) = outcome(&mut command);
    assert_eq!(status, 0, "{stderr}");
    let token = std::fs::read_to_string(folder.path().join("token")).unwrap();
    assert!(token.trim().len() == 32 && !stderr.contains(token.trim()), "{stderr}");
    assert!(stderr.contains("page on http://127.0.0.1:"), "{stderr}");
    assert!(stderr.contains("/ with the token in token\n"), "{stderr}");
}

#[test]
fn the_page_says_what_a_rig_waits_for() {
    let folder = tempfile::tempdir().unwrap();
    let absent = ["--left", "/dev/video777", "--right", "/dev/video778"];
    let arguments = [&absent[..], &["--set", "source.wait_s=600"]].concat();
    let served = Served::start(folder.path(), "0", &arguments);
    let (status, page) = served.get("/");
    assert!(status == 200 && String::from_utf8(page).unwrap().contains("page.js"));
    wait_until("the reason", || {
        let (code, reason) = closing(&mut served.with_token());
        // A browser connects again.
        assert_eq!(code, 1001, "{reason}");
        reason.starts_with("waiting for the source: /dev/video777: no camera")
    });
    assert_eq!(served.get("/snapshot/settings.toml").0, 503);
}

#[test]
fn a_viewer_of_another_origin_needs_the_token_and_gets_newest_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let cameras = ["--focal", "80", "--baseline", "0.1"];
    let served = Served::start(folder.path(), "0", &[&DEMO[..], &cameras].concat());
    let (own, other) = (format!("http://{}", served.host), "https://app.foxglove.dev");
    assert_eq!(served.foxglove("", other).err(), Some(403));
    assert_eq!(served.open("/foxglove", &[]).err(), Some(400), "it has no subprotocol");
    let mut looker = served.foxglove("", &own).unwrap();
    let info = next_text(&mut looker, "serverInfo");
    assert_eq!(info["capabilities"], json!([]));
    assert!(info["sessionId"].as_str().is_some_and(|id| id.contains('-')), "{info}");
    send(&mut looker, &json!({ "op": "setParameters", "parameters": [] }));
    let refused = next_text(&mut looker, "status");
    assert!(refused["message"].as_str().unwrap().contains("token"), "{refused}");

    let mut owner = served.foxglove(&served.token, other).unwrap();
    assert_eq!(next_text(&mut owner, "advertise")["channels"][0]["topic"], "/diagnostics");
    let channels = next_text(&mut owner, "advertise")["channels"].clone();
    let of = |topic: &str| {
        let channel = channels.as_array().unwrap().iter().find(|it| it["topic"] == topic);
        channel.unwrap_or_else(|| panic!("{topic} in {channels}"))["id"].clone()
    };
    let subscriptions = json!([
        { "id": 5, "channelId": of("/depth/image_rect") },
        { "id": 6, "channelId": of("/tf_static") },
        { "id": 7, "channelId": 999 },
    ]);
    send(&mut owner, &json!({ "op": "subscribe", "subscriptions": subscriptions }));
    let warning = next_text(&mut owner, "status");
    assert!(warning["message"].as_str().unwrap().contains("no channel 999"), "{warning}");
    let (mut depths, mut transforms) = (Vec::new(), 0);
    while depths.len() < 10 {
        let bytes = until_bytes(&mut owner, |_| true);
        assert_eq!((bytes[0], &bytes[13..17]), (1, &[0, 1, 0, 0][..]), "little-endian CDR");
        match bytes[1] {
            5 => {
                depths.push(u64::from_le_bytes(bytes[5..13].try_into().unwrap()));
                assert!(bytes.len() > 96 * 64 * 2 && bytes.len() < 96 * 64 * 2 + 200);
            }
            6 => transforms += 1,
            other => panic!("nobody has subscribed {other}"),
        }
    }
    assert!(depths.is_sorted() && transforms == 1, "{depths:?}, {transforms}");

    let set = json!({ "op": "setParameters", "id": "mine",
        "parameters": [{ "name": "matching.uniqueness", "value": 17.0 }] });
    send(&mut owner, &set);
    let values = next_text(&mut owner, "parameterValues");
    let changed = json!({ "name": "matching.uniqueness", "value": 17 });
    assert!(values["parameters"].as_array().unwrap().contains(&changed), "{values}");
    assert_eq!(values["id"], "mine");
    let unknown = json!({ "op": "setParameters", "parameters": [{ "name": "p", "value": 1 }] });
    send(&mut owner, &unknown);
    assert!(next_text(&mut owner, "status")["message"].as_str().unwrap().contains("parameter p"));
    send(&mut owner, &json!({ "op": "unsubscribe", "subscriptionIds": [5, 6] }));
    send(&mut owner, &json!({ "op": "getParameters", "parameterNames": [], "id": "all" }));
    assert_eq!(next_text(&mut owner, "parameterValues")["id"], "all");
}

#[test]
fn a_mount_is_sent_once_unless_it_is_tuned_or_follows_the_ground() {
    for (ground, is_moving) in [("fixed", false), ("track", true)] {
        let folder = tempfile::tempdir().unwrap();
        let follows = format!("--set=mount.ground={ground}");
        let more = ["--focal", "80", "--baseline", "0.1", "--set=mount.z_m=0.8", &follows];
        let obstacles = ["--set", "obstacles.find=true"];
        let served = Served::start(folder.path(), "0", &[&DEMO[..], &more, &obstacles].concat());
        let mut viewer = served.foxglove(&served.token, "").unwrap();
        next_text(&mut viewer, "advertise");
        let channels = next_text(&mut viewer, "advertise")["channels"].clone();
        let of = |topic: &str| {
            let channel = channels.as_array().unwrap().iter().find(|it| it["topic"] == topic);
            channel.map(|channel| channel["id"].clone())
        };
        assert!(of("/tf_static").is_some() && of("/tf").is_some() == is_moving, "{channels}");
        let topic = if is_moving { "/tf" } else { "/tf_static" };
        let subscriptions = json!([{ "id": 1, "channelId": of(topic) }]);
        send(&mut viewer, &json!({ "op": "subscribe", "subscriptions": subscriptions }));
        let mut times = Vec::new();
        while times.len() < 3 {
            let bytes = until_bytes(&mut viewer, |_| true);
            assert!(bytes.windows(9).any(|at| at == b"base_link"), "{bytes:?}");
            times.push(u64::from_le_bytes(bytes[5..13].try_into().unwrap()));
            // What holds for the whole stream comes again if it is tuned.
            let x = json!([{ "name": "mount.x_m", "value": 0.25 * times.len() as f64 }]);
            send(&mut viewer, &json!({ "op": "setParameters", "parameters": x }));
        }
        assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
    }
}

/// A client that changes settings and hears of all changes.
struct Tuner {
    socket: Socket,
    is_page: bool,
    sent: u64,
    /// Its requests that were answered, and the problems.
    answers: Vec<(u64, Option<String>)>,
    /// The settings in effect as it knows them.
    values: std::collections::BTreeMap<String, String>,
}

impl Tuner {
    fn new(served: &Served, is_page: bool) -> Self {
        let mut socket = match is_page {
            true => served.with_token(),
            false => served.foxglove(&served.token, "").unwrap(),
        };
        if !is_page {
            send(&mut socket, &json!({ "op": "subscribeParameterUpdates" }));
        }
        Self { socket, is_page, sent: 0, answers: Vec::new(), values: Default::default() }
    }

    fn set(&mut self, name: &str, value: u32) {
        self.sent += 1;
        let message = match self.is_page {
            true => {
                let (section, key) = name.split_once('.').unwrap();
                let values = json!([[section, key, value.to_string()]]);
                json!({ "type": "tune", "number": self.sent, "values": values })
            }
            false => {
                let parameters = json!([{ "name": name, "value": value }]);
                json!({ "op": "setParameters", "id": self.sent.to_string(), "parameters": parameters })
            }
        };
        send(&mut self.socket, &message);
    }

    /// Reads until all requests are answered and these settings have these values.
    fn wait_for(&mut self, expected: &[(&str, u32)]) {
        let mut patience = Patience::begin();
        let mut problem = None;
        loop {
            let holds =
                |(name, value): &(&str, u32)| self.values.get(*name) == Some(&value.to_string());
            if self.answers.len() as u64 == self.sent && expected.iter().all(holds) {
                break;
            }
            assert!(!patience.is_over(), "{:?} {:?}", self.answers, self.values);
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let message: Value = serde_json::from_str(&text).unwrap();
            let text =
                |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if message["type"] == "knobs" {
                for answer in message["answers"].as_array().unwrap() {
                    let problem = answer["problem"].as_str().map(str::to_owned);
                    self.answers.push((answer["number"].as_u64().unwrap(), problem));
                }
                for knob in message["knobs"].as_array().unwrap() {
                    let name = format!("{}.{}", text(&knob["section"]), text(&knob["key"]));
                    self.values.insert(name, text(&knob["value"]));
                }
            } else if message["op"] == "status" {
                problem = Some(text(&message["message"]));
            } else if message["op"] == "parameterValues" {
                if let Some(id) = message["id"].as_str() {
                    self.answers.push((id.parse().unwrap(), problem.take()));
                }
                for parameter in message["parameters"].as_array().unwrap() {
                    self.values.insert(text(&parameter["name"]), text(&parameter["value"]));
                }
            }
        }
        let numbers: Vec<u64> = self.answers.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, Vec::from_iter(1..=self.sent), "each once, in their order");
    }
}

#[test]
fn all_clients_keep_what_they_change_and_hear_what_others_change() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "0", &DEMO);
    let mut value = 10;
    for kinds in [[true, true], [true, false], [false, true], [false, false]] {
        let [mut first, mut second] = kinds.map(|is_page| Tuner::new(&served, is_page));
        for is_answered in [false, true] {
            // Different settings at once. One sends two requests.
            value += 2;
            first.set("matching.p1", value);
            if is_answered {
                first.wait_for(&[]);
            }
            second.set("matching.uniqueness", value);
            second.set("matching.left_right", value % 8);
            let all = [
                ("matching.p1", value),
                ("matching.uniqueness", value),
                ("matching.left_right", value % 8),
            ];
            first.wait_for(&all);
            second.wait_for(&all);
            // The same one at once: either wins, and both know.
            first.set("matching.p1", value + 1);
            if is_answered {
                first.wait_for(&[]);
            }
            second.set("matching.p1", value + 2);
            first.wait_for(&[]);
            second.wait_for(&[]);
            let mut witness = Tuner::new(&served, true);
            witness.wait_for(&[("matching.uniqueness", value)]);
            let last: u32 = witness.values["matching.p1"].parse().unwrap();
            assert!(last == value + 2 || (last == value + 1 && !is_answered), "{last} of {value}");
            first.wait_for(&[("matching.p1", last)]);
            second.wait_for(&[("matching.p1", last)]);
            // One after the other.
            first.set("matching.p1", value + 3);
            second.wait_for(&[("matching.p1", value + 3)]);
        }
        assert!([first, second].iter().all(|it| it.answers.iter().all(|(_, no)| no.is_none())));
    }
}

/// Such settings are right by themselves, and the images are too small for them.
#[test]
fn an_engine_that_cannot_be_made_is_told_to_who_asked_and_to_all_viewers() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "0", &DEMO);
    let said = "the engine cannot change: ";
    for is_page in [true, false] {
        let mut asks = Tuner::new(&served, is_page);
        asks.set("matching.min_disparity", 100);
        asks.wait_for(&[("matching.min_disparity", 0)]);
        let problem = asks.answers[0].1.as_deref().unwrap();
        assert!(
            problem.starts_with(said) && problem.contains("images 96 pixels wide"),
            "{problem}"
        );
    }
    let mut page = served.connect("", &[]).unwrap();
    let is_there = |warning: &Value| warning["text"].as_str().unwrap().contains(said);
    until_text(&mut page, "status", |status| {
        status["warnings"].as_array().unwrap().iter().any(is_there)
    });
    let mut foxglove = served.foxglove(&served.token, "").unwrap();
    let diagnostics = json!([{ "id": 1, "channelId": next_text(&mut foxglove, "advertise")["channels"][0]["id"] }]);
    send(&mut foxglove, &json!({ "op": "subscribe", "subscriptions": diagnostics }));
    let first = until_bytes(&mut foxglove, |_| true);
    assert!(String::from_utf8_lossy(&first).contains(said));
}

#[test]
fn files_are_written_while_somebody_wants_them() {
    let folder = tempfile::tempdir().unwrap();
    let outputs = ["--record", "o.mcap", "--on-demand", "--set=source.pace=realtime", "--frames=0"];
    let served = Served::start(folder.path(), "0", &[&DEMO[..], &outputs].concat());
    let mut owner = served.with_token();
    let status = next_text(&mut owner, "status");
    assert_eq!(status["recording"], json!({ "on": false, "outputs": ["o.mcap"] }));
    let record = |on: bool| json!({ "type": "record", "on": on });
    let mut looker = served.connect("", &[]).unwrap();
    send(&mut looker, &record(true));
    assert!(next_text(&mut looker, "note")["text"].to_string().contains("the token"));
    let written = || -> Vec<String> {
        let all = std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name());
        let mut names: Vec<_> = all.map(|name| name.into_string().unwrap()).collect();
        // One that is not begun is hidden.
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        names
    };
    assert_eq!(written(), [""; 0], "nobody with the token has asked");
    for files in [1, 2] {
        send(&mut owner, &record(true));
        wait_until("a file is written", || written().len() == files);
        send(&mut owner, &record(false));
        until_text(&mut owner, "status", |status| status["recording"]["on"] == false);
        wait_until("the file is complete", || {
            written().iter().all(|name| {
                let file = std::fs::read(folder.path().join(name)).unwrap();
                mcap::Summary::read(&file).is_ok_and(|summary| summary.is_some())
            })
        });
    }
    let names = written();
    assert!(names[0].ends_with("-00001.mcap") && names[1] == "o.mcap", "{names:?}");
    // A name is a plain one that no file has.
    let named = |name: &str| json!({ "type": "record", "on": true, "name": name });
    for (name, why) in [("../yard", "names a folder"), (".yard", "a dot"), ("o", "there already")] {
        send(&mut owner, &named(name));
        let note = next_text(&mut owner, "note");
        assert!(note["ok"] == false && note["text"].as_str().unwrap().contains(why), "{note}");
    }
    assert_eq!(next_text(&mut owner, "status")["recording"]["on"], false);
    send(&mut owner, &named("yard"));
    wait_until("the file is written", || written().contains(&"yard.mcap".to_owned()));
    let yard = json!(["yard.mcap"]);
    until_text(&mut owner, "status", |status| status["recording"]["outputs"] == yard);
    let listed = served.get(&format!("/recordings?token={}", served.token)).1;
    let listed: Value = serde_json::from_slice(&listed).unwrap();
    let has = |name: &str| listed["files"].as_array().unwrap().iter().any(|it| it["name"] == name);
    assert!(has("yard.mcap") && has("o.mcap") && listed["free"].is_u64(), "{listed}");
}
