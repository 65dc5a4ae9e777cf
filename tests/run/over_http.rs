//! Streams over HTTP: cameras that never end, and files.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use super::*;

/// A server that answers every request for `.../live` with an endless stream of JPEG images at their own
/// pace, as cameras and phones do, one for `.../file` with a video of known length, and one for
/// `.../unknown` with the same video without its length. It ends with the test's process.
struct Server {
    address: String,
}

/// Frames of the video.
const FRAMES: u64 = 12;

/// Frames per second of the endless streams: more than any machine matches with [`SLOW`] settings, and few enough that
/// frames of a loaded machine still find their partners by arrival.
const RATE: f64 = 40.0;

const SLOW: [&str; 8] = ["-d", "256", "--paths", "8", "--engine", "cpu", "--threads", "1"];

impl Server {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("video.ts");
        let pair = demo_pair(0);
        let grey: Vec<_> = (0..FRAMES).map(|_| pair.left.pixels().to_vec()).collect();
        write_grey(&path, SIZE, &grey, "jpegenc ! matroskamux streamable=true");
        let video = std::fs::read(&path).unwrap();
        let text = "videotestsrc num-buffers=1 pattern=smpte ! \
                    video/x-raw,format=GRAY8,width=640,height=480 ! jpegenc ! filesink name=out";
        let pipeline = gst::parse::launch(text).unwrap().downcast::<gst::Pipeline>().unwrap();
        let path = folder.path().join("image.jpg");
        pipeline.by_name("out").unwrap().set_property("location", &path);
        crate::common::video_file::play_to_end({
            pipeline.set_state(gst::State::Playing).unwrap();
            &pipeline
        });
        let image = std::fs::read(&path).unwrap();
        std::thread::spawn(move || {
            for peer in listener.incoming() {
                let (video, image) = (video.clone(), image.clone());
                // A client that leaves ends its thread with an error.
                std::thread::spawn(move || answer(&peer?, &video, &image));
            }
        });
        Self { address }
    }

    fn pair(&self, name: &str) -> [String; 4] {
        let uri = |eye: &str| format!("http://{}/{eye}/{name}", self.address);
        ["--left".into(), uri("l"), "--right".into(), uri("r")]
    }

    /// Runs with these views; the statistics, and what was said.
    fn run(&self, views: &[String; 4], arguments: &[&str]) -> (Value, String) {
        let folder = tempfile::tempdir().unwrap();
        let views: Vec<&str> = views.iter().map(String::as_str).collect();
        let all = [&["run", "--headless", "--stats", "-"], &views[..], arguments].concat();
        let (status, stdout, stderr) = run(folder.path(), &all);
        assert_eq!(status, 0, "{stderr}");
        (serde_json::from_str(&stdout).unwrap(), stderr)
    }
}

fn answer(mut peer: &TcpStream, video: &[u8], image: &[u8]) -> std::io::Result<()> {
    let mut request = String::new();
    let mut lines = BufReader::new(peer);
    lines.read_line(&mut request)?;
    let mut header = String::new();
    while lines.read_line(&mut header)? > 2 {
        header.clear();
    }
    if request.contains("/live") {
        peer.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=frame\r\n\r\n",
        )?;
        let (start, mut sent) = (Instant::now(), 0.0);
        loop {
            let part =
                format!("--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {}", image.len());
            peer.write_all(&[part.as_bytes(), b"\r\n\r\n", image, b"\r\n"].concat())?;
            sent += 1.0;
            let due = Duration::from_secs_f64(sent / RATE);
            std::thread::sleep(due.saturating_sub(start.elapsed()));
        }
    }
    let length = match request.contains("/file") {
        true => format!("Content-Length: {}\r\n", video.len()),
        false => String::new(),
    };
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{length}\r\n");
    peer.write_all(&[head.as_bytes(), video].concat())
}

#[test]
fn an_endless_stream_is_live_whatever_its_element_says() {
    let server = Server::new();
    let [left, right] = ["l", "r"].map(|eye| {
        format!(
            "souphttpsrc location=http://{}/{eye}/live ! multipartdemux ! jpegdec",
            server.address
        )
    });
    let fragments = |left, right| ["--left".into(), left, "--right".into(), right];
    let [live_left, live_right] =
        [&left, &right].map(|text| text.replace("souphttpsrc", "souphttpsrc is-live=true"));
    for views in [server.pair("live"), fragments(left, right), fragments(live_left, live_right)] {
        let (statistics, said) = server.run(&views, &[&SLOW[..], &["--frames", "20"]].concat());
        assert!(said.contains("640x480, live"), "{said}");
        assert!(statistics["dropped"].as_u64().unwrap() > 0, "{statistics}");
        assert!(statistics["latency_ms"]["p50"].is_number(), "{statistics}");
        // Its frames have no capture times, so none are compared.
        assert!(said.contains("times unknown: paired by arrival"), "{said}");
        assert_eq!(statistics["live"]["by_arrival"], true);
        assert!(statistics["live"].get("synchronisation").is_none(), "{statistics}");
    }
}

#[test]
fn a_file_over_http_is_matched_completely() {
    let server = Server::new();
    let (statistics, said) = server.run(&server.pair("file"), &["-d", "24"]);
    assert!(statistics.get("live").is_none() && !said.contains("times unknown"), "{said}");
    assert_eq!((&statistics["matched"], &statistics["dropped"]), (&FRAMES.into(), &0.into()));
    // Without a length it may be an endless stream; it is not if the user says so.
    let off = ["-d", "24", "--live", "off"];
    let (statistics, said) = server.run(&server.pair("unknown"), &off);
    assert!(statistics.get("live").is_none(), "{said}");
    assert_eq!((&statistics["matched"], &statistics["dropped"]), (&FRAMES.into(), &0.into()));
    let on = ["-d", "24", "--live", "on", "--set", "source.reconnect=off"];
    let (statistics, said) = server.run(&server.pair("file"), &on);
    assert_eq!(statistics["live"]["by_arrival"], true, "{said}");
}

#[test]
fn what_live_does_not_decide_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let grey: Vec<_> = (0..FRAMES).map(|_| demo_pair(0).left.pixels().to_vec()).collect();
    for name in ["l.mkv", "r.mkv"] {
        write_grey(&folder.path().join(name), SIZE, &grey, "jpegenc ! matroskamux");
    }
    let files = ["run", "--left", "l.mkv", "--right", "r.mkv", "--headless", "--live", "on"];
    let (status, _, said) = run(folder.path(), &files);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("changes nothing of l.mkv and r.mkv"), "{said}");
}

#[test]
fn one_element_is_a_source() {
    let folder = tempfile::tempdir().unwrap();
    let of = |text: &str| {
        let arguments = ["run", "--left", text, "--right", text, "--headless", "--frames", "3"];
        run(folder.path(), &arguments)
    };
    let (status, _, said) = of("videotestsrc is-live=true");
    assert!(status == 0 && said.contains(": 320x240, ") && said.contains(", live"), "{said}");
    let (status, _, said) = of("nosuchcamerasrc");
    assert!(status == 1 && said.contains("no element \"nosuchcamerasrc\""), "{said}");
}
