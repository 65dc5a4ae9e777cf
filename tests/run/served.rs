//! The live page's server, as a client sees it that is not the page.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;

use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

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
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut all = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let line = all.find(|line| line.contains("page on http://")).expect("it says where");
        let (host, token) = line.split_once("http://").unwrap().1.split_once("/?token=").unwrap();
        let (send, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || all.for_each(|line| drop(send.send(line))));
        Self { child, host: host.replace("0.0.0.0", "127.0.0.1"), token: token.to_owned(), lines }
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
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::Error::Http(answer)) => Err(answer.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
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

/// The next text of this type.
fn next_text(socket: &mut Socket, kind: &str) -> Value {
    loop {
        if let Message::Text(text) = socket.read().unwrap() {
            let value: Value = serde_json::from_str(&text).unwrap();
            if value["type"] == kind || value["op"] == kind {
                return value;
            }
        }
    }
}

/// The next frame: header and disparity in 1/16 px.
fn next_frame(socket: &mut Socket) -> (Value, Vec<i16>) {
    loop {
        let Message::Binary(bytes) = socket.read().unwrap() else { continue };
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
        return (header, numbers);
    }
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

const DEMO: [&str; 3] = ["--demo", "--demo-size", "96x64"];

#[test]
fn frames_are_the_numbers_that_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let more = ["--pictures", "out", "--set=source.pace=realtime", "--frames", "100000"];
    let served = Served::start(folder.path(), "0", &[&DEMO[..], &more].concat());
    let mut socket = served.with_token();
    assert_eq!(next_text(&mut socket, "hello")["may_change"], true);
    let mut frames = Vec::new();
    for _ in 0..10 {
        let (header, numbers) = next_frame(&mut socket);
        acknowledge(&mut socket, &header);
        frames.push((header, numbers));
    }
    let status = next_text(&mut socket, "status");
    // The frames before it were left out here.
    acknowledge(&mut socket, &json!({ "seq": 1_000_000 }));
    assert!(status["matched"].as_u64().unwrap() >= 10 && status["banners"].is_array(), "{status}");
    let half = json!({ "type": "quality", "half": true });
    send(&mut socket, &half);
    let (header, numbers) = loop {
        let (header, numbers) = next_frame(&mut socket);
        acknowledge(&mut socket, &header);
        if header["scale"] == 2 {
            break (header, numbers);
        }
    };
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
    send(&mut looker, &json!({ "type": "pause", "on": true }));
    send(&mut looker, &json!({ "type": "tune", "number": 1, "values": [["matching", "p1", "9"]] }));
    send(&mut looker, &json!(["nonsense"]));
    let (first, _) = next_frame(&mut looker);
    acknowledge(&mut looker, &first);
    let (second, _) = next_frame(&mut looker);
    assert!(second["seq"].as_u64() > first["seq"].as_u64(), "the run was paused");

    let mut owner = served.with_token();
    assert_eq!(next_text(&mut owner, "knobs")["knobs"], knobs["knobs"], "settings were changed");
    let values: Vec<Value> = knobs["knobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|knob| {
            let value =
                if knob["key"] == "uniqueness" { json!("17") } else { knob["value"].clone() };
            json!([knob["section"], knob["key"], value])
        })
        .collect();
    send(&mut owner, &json!({ "type": "tune", "number": 7, "values": values }));
    let changed = next_text(&mut owner, "knobs");
    assert_eq!((&changed["number"], &changed["problem"]), (&json!(7), &Value::Null), "{changed}");
    // Every viewer hears of it, but only one has asked.
    assert_eq!(next_text(&mut looker, "knobs")["number"], Value::Null);
    let line = served.lines.iter().find(|line| line.contains("tuned: ")).unwrap();
    assert!(line.contains("uniqueness = 17"), "{line}");
    send(&mut owner, &json!({ "type": "tune", "number": 8, "values": [["matching", "p1", "x"]] }));
    let refused = next_text(&mut owner, "knobs");
    assert!(refused["problem"].as_str().unwrap().contains("p1"), "{refused}");
    send(&mut owner, &json!({ "type": "pause", "on": true }));
    while next_text(&mut owner, "status")["paused"] != true {}
}

#[test]
fn other_machines_need_the_token_even_to_look() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "0.0.0.0:0", &DEMO);
    next_frame(&mut served.with_token());
    // The page asks for the token.
    assert_eq!(served.get("/").0, 200);
    for path in ["/metrics", "/healthz", "/snapshot/disparity.png"] {
        assert_eq!(served.get(path).0, 401, "{path}");
        assert_eq!(served.get(&format!("{path}?token={}", served.token)).0, 200, "{path}");
    }
    assert!(refusal(served.connect("", &[]).unwrap()).contains("token"));
}

#[test]
fn a_stalled_client_costs_its_own_frames_and_the_ninth_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), "0", &DEMO);
    let _stalled: Vec<Socket> = (0..7).map(|_| served.with_token()).collect();
    let mut quick = served.with_token();
    let mut numbers = Vec::new();
    for _ in 0..40 {
        let (header, _) = next_frame(&mut quick);
        acknowledge(&mut quick, &header);
        numbers.push(header["seq"].as_u64().unwrap());
    }
    // On a slow machine frames may be skipped, but not all those of the stalled clients' time.
    assert!(numbers[39] - numbers[0] < 400, "{numbers:?}");
    assert!(refusal(served.with_token()).contains("too many"));
}

#[test]
fn a_token_in_a_file_is_not_printed() {
    let folder = tempfile::tempdir().unwrap();
    let file = "--set=serve.token_file=token";
    let arguments = ["run", "--headless", "--serve", "0", "--frames", "3", file];
    let mut command = stereod(folder.path(), &[&arguments[..], &DEMO].concat());
    let (status, _, stderr) = outcome(&mut command);
    assert_eq!(status, 0, "{stderr}");
    let token = std::fs::read_to_string(folder.path().join("token")).unwrap();
    assert!(token.trim().len() == 32 && !stderr.contains(token.trim()), "{stderr}");
    assert!(stderr.contains("page on http://127.0.0.1:"), "{stderr}");
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
    assert_eq!(next_text(&mut looker, "serverInfo")["capabilities"], json!([]));
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
        let Message::Binary(bytes) = owner.read().unwrap() else { continue };
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
fn files_are_written_while_somebody_wants_them() {
    let folder = tempfile::tempdir().unwrap();
    let outputs = ["--record", "o.mcap", "--on-demand", "--set=source.pace=realtime"];
    let served = Served::start(folder.path(), "0", &[&DEMO[..], &outputs].concat());
    let mut owner = served.with_token();
    let status = next_text(&mut owner, "status");
    assert_eq!(status["recording"], json!({ "on": false, "outputs": ["o.mcap"] }));
    let record = |on: bool| json!({ "type": "record", "on": on });
    send(&mut served.connect("", &[]).unwrap(), &record(true));
    std::thread::sleep(Duration::from_millis(500));
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
        std::thread::sleep(Duration::from_millis(300));
        send(&mut owner, &record(false));
        while next_text(&mut owner, "status")["recording"]["on"] != false {}
        wait_until("the file is complete", || {
            written().iter().all(|name| {
                let file = std::fs::read(folder.path().join(name)).unwrap();
                mcap::Summary::read(&file).is_ok_and(|summary| summary.is_some())
            })
        });
    }
    let names = written();
    assert!(names[0].ends_with("-00001.mcap") && names[1] == "o.mcap", "{names:?}");
}
