//! The whole binary at its main job: stereo video in, disparity out, and every way in which that can
//! go wrong.

mod bad_input;
mod damaged;
#[cfg(target_os = "linux")]
mod deaf;
mod end_to_end;
mod endings;
mod inputs;
mod metrics;
mod outputs;
mod ranges;
mod recording;
#[cfg(target_os = "linux")]
mod reload;
mod rigs;
#[cfg(target_os = "linux")]
mod service;
mod streaming;
#[path = "../sinks/support.rs"]
#[allow(dead_code, reason = "only the decoding half is used here")]
mod support;
#[path = "../test_data/mod.rs"]
mod test_data;
mod window;
#[path = "../window_support/mod.rs"]
#[allow(dead_code, reason = "only the screen is used here")]
mod window_support;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use gstreamer as gst;
use gstreamer::prelude::*;
use serde_json::Value;
use stereod::frame::{DisparityMap, INVALID, StereoPair};
use stereod::matching::{Params, match_pair};
use stereod::settings::Matching;
use stereod::sink::encoding::Encoding;
use stereod::source::demo::{DemoOptions, DemoSource};

/// Size of the pictures in these tests.
const SIZE: (usize, usize) = (96, 64);

/// Candidate disparities in these tests.
const DISPARITIES: usize = 24;

/// `stereod` with these arguments in `folder`, without a display and blind to the machine's own
/// configuration.
fn stereod(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stereod"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("STEREOD_") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    for display in ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"] {
        command.env_remove(display);
    }
    command.args(arguments).current_dir(folder).env("XDG_CONFIG_HOME", "/nonexistent");
    command.stdin(Stdio::null());
    command
}

/// Exit status, standard output and standard error.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = stereod(folder, arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    let (stdout, stderr) = (text(stdout), text(stderr));
    assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
    (status.code().expect("no signal"), stdout, stderr)
}

/// `stereod run ARGUMENTS -d 24 --stats -` that must succeed: its statistics.
fn statistics(folder: &Path, arguments: &[&str]) -> Value {
    let (status, stdout, stderr) = run(folder, &with_statistics(arguments));
    assert_eq!(status, 0, "{arguments:?}: {stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

fn with_statistics<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["run", "-d", "24", "--stats", "-"], arguments].concat()
}

/// The default parameters with the tests' number of disparities.
fn params() -> Params {
    Matching { disparities: Some(DISPARITIES), ..Matching::default() }.params().unwrap()
}

/// Pair `number` of the demo scene as `--demo --demo-size 96x64` shows it.
fn demo_pair(number: u64) -> StereoPair {
    let (width, height) = SIZE;
    let disparities = params().range;
    let options = DemoOptions { width, height, disparities, ..DemoOptions::default() };
    DemoSource::new(options).unwrap().pair(number)
}

/// What a recording holds for pair `number`, by the plain reference.
fn reference(number: u64) -> Vec<u16> {
    let pair = demo_pair(number);
    stored(&match_pair(&pair.left, &pair.right, &params()))
}

fn stored(map: &DisparityMap) -> Vec<u16> {
    let mut stored = vec![0; map.values().len()];
    Encoding::for_range(params().range).encode(map.values(), &mut stored);
    assert!(map.values().iter().any(|&value| value != INVALID), "an empty map proves nothing");
    stored
}

/// Every frame of a recording.
fn recorded(path: &Path) -> Vec<Vec<u16>> {
    let player = support::Player::open(path, support::RECORDING).unwrap();
    player.play().iter().map(support::Decoded::numbers).collect()
}

/// Writes pictures (grey, one after the other) as a video at 30 pictures a second; `coding` is what
/// stands between raw video and the file.
fn write_video(path: &Path, (width, height): (usize, usize), pictures: &[Vec<u8>], coding: &str) {
    gst::init().unwrap();
    let text = format!(
        "appsrc name=in format=time caps=video/x-raw,format=GRAY8,width={width},height={height},\
         framerate=30/1 ! {coding} ! filesink name=out"
    );
    let pipeline = gst::parse::launch(&text).unwrap().downcast::<gst::Pipeline>().unwrap();
    pipeline.by_name("out").unwrap().set_property("location", path);
    let source = pipeline.by_name("in").unwrap().downcast::<gstreamer_app::AppSrc>().unwrap();
    pipeline.set_state(gst::State::Playing).unwrap();
    for (i, picture) in pictures.iter().enumerate() {
        // GStreamer lays grey rows out in multiples of four bytes.
        assert_eq!((picture.len(), width % 4), (width * height, 0));
        let mut buffer = gst::Buffer::from_slice(picture.clone());
        let time = gst::ClockTime::from_nseconds(i as u64 * 1_000_000_000 / 30);
        let buffer_ref = buffer.get_mut().unwrap();
        buffer_ref.set_pts(time);
        buffer_ref.set_duration(gst::ClockTime::from_nseconds(1_000_000_000 / 30));
        source.push_buffer(buffer).unwrap();
    }
    source.end_of_stream().unwrap();
    let bus = pipeline.bus().unwrap();
    let message = bus.timed_pop_filtered(
        gst::ClockTime::from_seconds(60),
        &[gst::MessageType::Eos, gst::MessageType::Error],
    );
    pipeline.set_state(gst::State::Null).unwrap();
    assert_eq!(message.unwrap().type_(), gst::MessageType::Eos, "{coding}");
}

/// Lossless coding into Matroska.
const LOSSLESS: &str = "avenc_ffv1 ! matroskamux";

/// Writes the first pairs of the demo scene as l.mkv and r.mkv, without loss.
fn write_eyes(folder: &Path, left: u64, right: u64) {
    let pictures = |count, eye: fn(StereoPair) -> Vec<u8>| {
        (0..count).map(|n| eye(demo_pair(n))).collect::<Vec<_>>()
    };
    let lefts = pictures(left, |pair| pair.left.pixels().to_vec());
    write_video(&folder.join("l.mkv"), SIZE, &lefts, LOSSLESS);
    let rights = pictures(right, |pair| pair.right.pixels().to_vec());
    write_video(&folder.join("r.mkv"), SIZE, &rights, LOSSLESS);
}

/// Exit status, statistics and messages of a run that is asked to end.
fn end(child: std::process::Child) -> (i32, Value, String) {
    // SAFETY: the process is our child and not yet waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGTERM) }, 0);
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert!(!stderr.contains("panicked"), "{stderr}");
    let statistics = serde_json::from_slice(&stdout).unwrap_or_else(|e| panic!("{e}: {stderr}"));
    (status.code().expect("no signal"), statistics, stderr)
}

/// Waits until `is_so`, for at most five minutes: some machines are slow and busy.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..30_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited in vain: {what}");
}
