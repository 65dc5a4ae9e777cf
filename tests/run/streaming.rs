//! Images sent live through a fragment of a GStreamer pipeline, and received at the other end.

use std::net::{TcpListener, TcpStream, UdpSocket};

use gstreamer_app::AppSink;
use stereod_io::sink::colour::{ColourMap, ColourRange, ColourScale, colourise};

use super::*;

const DEMO: [&str; 4] = ["--demo", "--demo-size", "96x64", "--headless"];

#[test]
fn raw_pictures_of_every_kind() {
    let folder = tempfile::tempdir().unwrap();
    let (width, height) = SIZE;
    let streamed = |view: &str| {
        let arguments = ["--frames", "10", "--stream-view", view, "--set", "colour.range=fixed"];
        let stream = ["--stream", "filesink location=o.raw"];
        let statistics = statistics(folder.path(), &[&DEMO[..], &arguments, &stream].concat());
        let output = &statistics["outputs"][0];
        assert_eq!(output["name"], "stream to filesink");
        assert_eq!((&output["frames"], &output["dropped"]), (&10.into(), &0.into()), "{view}");
        // At the rate of cameras.
        assert!(statistics["seconds"].as_f64().unwrap() > 0.25, "{statistics}");
        std::fs::read(folder.path().join("o.raw")).unwrap()
    };

    let numbers: Vec<u16> =
        streamed("numbers").as_chunks().0.iter().map(|&pair| u16::from_le_bytes(pair)).collect();
    assert!(numbers == (0..10).flat_map(reference).collect::<Vec<_>>());
    let lefts = (0..10).flat_map(|n| demo_pair(n).left.pixels().to_vec());
    assert!(streamed("left") == lefts.collect::<Vec<_>>());

    let scale = ColourScale::new(ColourRange::Full, params().range);
    let in_colours = |n| {
        let pair = demo_pair(n);
        let mut picture = vec![0; width * height * 4];
        let map = match_pair(&pair.left, &pair.right, &params());
        colourise::<4>(&map, ColourMap::Turbo, &scale, &mut picture, width * 4);
        picture
    };
    // The fourth byte of a pixel has no meaning.
    let visible = |bytes: &[u8]| -> Vec<u8> {
        bytes.as_chunks::<4>().0.iter().flat_map(|pixel| pixel[..3].to_vec()).collect()
    };
    assert!(
        visible(&streamed("disparity"))
            == visible(&(0..10).flat_map(in_colours).collect::<Vec<_>>())
    );
    let both = streamed("side-by-side");
    for (n, picture) in (0..10).zip(both.chunks(2 * width * height * 4)) {
        let (colours, pair) = (in_colours(n), demo_pair(n));
        for (y, row) in picture.chunks(2 * width * 4).enumerate() {
            let (left, right) = row.split_at(width * 4);
            assert!(visible(right) == visible(&colours[y * width * 4..][..width * 4]));
            let greys: Vec<u8> = pair.left.row(y).iter().flat_map(|&grey| [grey; 3]).collect();
            assert!(visible(left) == greys, "row {y} of {n}");
        }
    }
}

#[test]
fn what_is_wrong_is_told_before_anything_begins() {
    let folder = tempfile::tempdir().unwrap();
    for (fragment, status, words) in [
        ("videoconvert ! queue", 2, "end it with a sink"),
        ("videoconvert ! fakesink colour=red", 2, "colour"),
        ("videoconvert ! no_such_sink", 1, "gst-inspect-1.0 no_such_sink"),
        // The pipeline is valid but cannot start.
        ("filesink location=none/o.raw", 1, "none/o.raw"),
    ] {
        let arguments = ["run", "--demo", "--stream", fragment, "--record", "o.mkv"];
        let (code, _, stderr) = run(folder.path(), &arguments);
        assert_eq!(code, status, "{fragment}: {stderr}");
        assert!(stderr.contains("--stream") && stderr.contains(words), "{fragment}: {stderr}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{fragment}");
    }
}

/// Reports whether GStreamer has the element; prints a note if not.
fn has(element: &str) -> bool {
    gst::init().unwrap();
    let found = gst::ElementFactory::find(element).is_some();
    if !found {
        eprintln!("skipped: this machine's GStreamer has no {element}");
    }
    found
}

/// A running receiver: a chain that ends in an appsink.
struct Receiver {
    pipeline: gst::Pipeline,
    sink: AppSink,
}

impl Receiver {
    /// A socket may exist a moment before a listener does, so this retries for a while.
    fn start(chain: &str) -> Self {
        gst::init().unwrap();
        let text = format!("{chain} ! appsink name=out sync=false max-buffers=100");
        let mut receiver = None;
        wait_until(chain, || {
            let pipeline = gst::parse::launch(&text).unwrap().downcast::<gst::Pipeline>().unwrap();
            let sink = pipeline.by_name("out").unwrap().downcast::<AppSink>().unwrap();
            let started = Self { pipeline, sink };
            let is_playing = started.pipeline.set_state(gst::State::Playing).is_ok();
            receiver = is_playing.then_some(started);
            is_playing
        });
        receiver.unwrap()
    }

    /// The next picture.
    fn next(&self) -> Vec<u8> {
        let sample = self.sink.try_pull_sample(gst::ClockTime::from_seconds(LIMIT.as_secs()));
        let sample = sample.expect("a picture");
        sample.buffer().unwrap().map_readable().unwrap().to_vec()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

fn endless(folder: &Path, arguments: &[&str]) -> Child {
    let all = [&DEMO[..], &["--frames", "0"], arguments].concat();
    let mut command = stereod(folder, &with_statistics(&all));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn numbers_carry_unit_cameras_and_stamps() {
    let folder = tempfile::tempdir().unwrap();
    let fragment = "avenc_ffv1 gop-size=1 ! matroskamux streamable=true ! filesink location=o.mkv";
    let cameras = ["--focal", "80", "--baseline", "0.1"];
    let arguments = ["--frames", "10", "--stream-view", "numbers", "--stream", fragment];
    statistics(folder.path(), &[&DEMO[..], &cameras, &arguments].concat());
    let player = player::Player::open(&folder.path().join("o.mkv"), player::RECORDING).unwrap();
    let frames = player.play();
    assert_eq!(frames.len(), 10);
    for (n, frame) in (0..).zip(&frames) {
        assert!(frame.numbers() == reference(n), "pair {n}");
        // The demo scene has 30 pairs a second, and Matroska milliseconds.
        let apart = frame.time.as_secs_f64() - n as f64 / 30.0;
        assert!(apart.abs() < 0.001, "{n}: {:?}", frame.time);
    }
    let (error, tags) = player.messages();
    assert_eq!(error, None);
    // GStreamer escapes it.
    let comment = tags.get::<gst::tags::Comment>().unwrap().get().replace(['\\', '"'], "");
    assert!(comment.starts_with("disparity in pixels = value / scale + offset; "), "{comment}");
    let parts: Vec<_> = comment.split(';').map(str::trim).collect();
    for tag in [
        "DISPARITY_SCALE=256",
        "DISPARITY_OFFSET=0",
        "FOCAL_LENGTH_PX=80",
        "BASELINE_M=0.1",
        "FIRST_TIMESTAMP_NS=0",
        "CAPTURE_CLOCK=SOURCE",
    ] {
        assert!(parts.contains(&tag), "{tag}: {comment}");
    }
}

#[test]
fn shared_memory_for_one_receiver_after_the_other() {
    if !has("shmsink") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("stereod");
    let fragment = format!(
        "shmsink socket-path={} wait-for-connection=false shm-size=2000000",
        socket.display()
    );
    let child = endless(folder.path(), &["--stream", &fragment, "--stream-view", "numbers"]);
    wait_until("the socket is there", || socket.exists());
    let mut later = 0;
    for _ in 0..2 {
        let receiver = Receiver::start(&format!(
            "shmsrc socket-path={} ! video/x-raw,format=GRAY16_LE,width=96,height=64,framerate=30/1",
            socket.display()
        ));
        let numbers = |bytes: Vec<u8>| -> Vec<u16> {
            bytes.as_chunks().0.iter().map(|&pair| u16::from_le_bytes(pair)).collect()
        };
        // Exactly the numbers of the reference, for whichever pair this is.
        let first = numbers(receiver.next());
        let found = (later..later + 3000).find(|&n| reference(n) == first);
        let found = found.expect("a pair of the demo scene");
        assert!(numbers(receiver.next()) == reference(found + 1));
        later = found + 2;
    }
    let (status, _, stderr) = end(child);
    assert_eq!(status, 0, "{stderr}");
}

#[test]
fn rtp_over_udp() {
    if !(has("x264enc") && has("rtph264pay") && has("udpsink")) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let receiver = Receiver::start(&format!(
        "udpsrc address=127.0.0.1 port={port} caps=application/x-rtp,media=video,\
         encoding-name=H264,clock-rate=90000,payload=96 ! rtph264depay ! h264parse ! avdec_h264 ! \
         videoconvert ! video/x-raw,format=GRAY8"
    ));
    let fragment = format!(
        "videoconvert ! x264enc tune=zerolatency bitrate=4000 key-int-max=15 ! \
         rtph264pay config-interval=1 ! udpsink host=127.0.0.1 port={port}"
    );
    let child = endless(folder.path(), &["--stream", &fragment, "--stream-view", "left"]);
    let picture = receiver.next();
    let (status, statistics, stderr) = end(child);
    assert_eq!(status, 0, "{stderr}");
    let (width, height) = SIZE;
    assert_eq!(picture.len(), width * height);
    // It is one of the pairs, slightly degraded by the coding, and no other one.
    let difference = |n| {
        let left = demo_pair(n).left;
        let apart = left.pixels().iter().zip(&picture).map(|(&a, &b)| u64::from(a.abs_diff(b)));
        apart.sum::<u64>() as f64 / picture.len() as f64
    };
    let (best, apart) = (0..statistics["matched"].as_u64().unwrap())
        .map(|n| (n, difference(n)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap();
    assert!(apart < 4.0, "{apart} from pair {best}");
    assert!(difference(best + 60) > 2.0 * apart, "every picture looks alike");
}

#[test]
fn a_receiver_that_goes_away_costs_frames_of_the_stream_only() {
    if !has("tcpclientsink") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let port = address.port();
    let read = |server: &TcpListener, pictures: usize| -> TcpStream {
        let (mut peer, _) = server.accept().unwrap();
        let mut pictures = vec![0; pictures * 96 * 64];
        std::io::Read::read_exact(&mut peer, &mut pictures).unwrap();
        assert!(pictures.iter().any(|&grey| grey != pictures[0]), "a picture of nothing");
        peer
    };
    let eye = "videotestsrc is-live=true pattern=ball ! \
               video/x-raw,format=GRAY8,width=96,height=64,framerate=30/1";
    let fragment = format!("tcpclientsink host=127.0.0.1 port={port}");
    let arguments = ["--left", eye, "--right", eye, "--headless", "--record", "o.mkv"];
    let stream = ["--stream", &fragment, "--stream-view", "left"];
    let all = [&arguments[..], &stream].concat();
    let mut command = stereod(folder.path(), &with_statistics(&all));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The run begins before there is a receiver.
    let recording = folder.path().join("o.mkv");
    wait_until("the recording grows", || {
        recording.metadata().is_ok_and(|about| about.len() > 10_000)
    });
    let server = TcpListener::bind(address).unwrap();
    drop(read(&server, 90));
    // The receiver has disconnected; the next one is accepted, and stays to the end.
    let _peer = read(&server, 20);
    let (status, statistics, stderr) = end(child);
    assert_eq!(status, 1, "{stderr}");
    // One failure without a receiver, one after the disconnection; no failure in between.
    assert_eq!(stderr.matches("stream to tcpclientsink failed: ").count(), 2, "{stderr}");
    assert!(stderr.contains("stream to tcpclientsink is being written again"), "{stderr}");
    assert!(stderr.contains("frames could not be written: cannot send pictures"), "{stderr}");
    let outputs = &statistics["outputs"];
    assert!(outputs[1]["failed"].as_u64().unwrap() > 0, "{statistics}");
    let written = outputs[0]["frames"].as_u64().unwrap() + outputs[0]["dropped"].as_u64().unwrap();
    assert_eq!(written, statistics["matched"].as_u64().unwrap());
}

#[test]
fn where_nobody_calls_a_run_goes_on_and_ends() {
    if !has("srtsink") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let fragment = format!(
        "videoconvert ! x264enc tune=zerolatency ! mpegtsmux ! srtsink \
         uri=srt://127.0.0.1:{port}?mode=listener"
    );
    let child = endless(folder.path(), &["--stream", &fragment, "--pictures", "p"]);
    let count = || std::fs::read_dir(folder.path().join("p")).map_or(0, Iterator::count);
    wait_until("pictures are written", || count() > 30);
    let (status, statistics, stderr) = end(child);
    assert_eq!(status, 0, "{stderr}");
    let pictures = &statistics["outputs"][0];
    assert_eq!(pictures["frames"], statistics["matched"], "{statistics}");
    assert!(statistics["outputs"][1]["dropped"].as_u64().unwrap() > 10, "{statistics}");
}
