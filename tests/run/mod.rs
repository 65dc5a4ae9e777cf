//! The whole program at its main task: stereo video in, disparity out, and every way in which that
//! can fail.

mod bad_input;
mod colour;
mod damaged;
#[cfg(target_os = "linux")]
mod deaf;
mod end_to_end;
mod endings;
mod film;
mod folders;
mod inputs;
mod keeping_up;
#[cfg(target_os = "linux")]
mod manager;
mod messages;
mod metrics;
mod obstacles;
mod odometry;
mod outputs;
mod over_http;
mod over_rtsp;
mod parts;
mod ranges;
mod recording;
mod recordings;
#[cfg(target_os = "linux")]
mod reload;
mod reports;
mod rigs;
mod served;
#[cfg(target_os = "linux")]
mod service;
mod several_rigs;
mod streaming;
mod timeline;
mod times;
mod window;

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use gstreamer as gst;
use gstreamer::prelude::*;
use serde_json::Value;
use stereod::{DisparityMap, INVALID, Params};
use stereod_core::frame::StereoPair;
use stereod_core::matching::match_pair;
use stereod_core::picture::encoding::Encoding;
use stereod_core::settings::Matching;
use stereod_io::source::demo::{DemoOptions, DemoSource};

use crate::common::outcome::{LIMIT, Patience, ended, kill, outcome, outcome_of, wait_until};
use crate::common::video_file::write_video;
use crate::common::{player, program};

/// Size of the pictures in these tests.
const SIZE: (usize, usize) = (96, 64);

/// No camera counts as lost because a busy machine does not come to it.
const PATIENT: [&str; 2] = ["--set", "source.silence_s=600"];

/// Candidate disparities in these tests.
const DISPARITIES: usize = 24;

/// `stereod` with these arguments in `folder`.
fn stereod(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = program::stereod(arguments);
    command.current_dir(folder);
    command
}

/// Exit status, standard output and standard error.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    outcome(&mut stereod(folder, arguments))
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

/// Expected frame of a recording for pair `number`, by the plain reference.
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
    let player = player::Player::open(path, player::RECORDING).unwrap();
    player.play().iter().map(player::Decoded::numbers).collect()
}

/// Writes images (grey, one after the other) as a video at 30 images per second; `coding` is the
/// chain of elements between raw video and the file.
fn write_grey(path: &Path, size: (usize, usize), pictures: &[Vec<u8>], coding: &str) {
    write_grey_at(30, path, size, pictures, coding);
}

/// As [`write_grey`], with so many images per second.
fn write_grey_at(
    rate: u32,
    path: &Path,
    (width, height): (usize, usize),
    pictures: &[Vec<u8>],
    coding: &str,
) {
    // GStreamer lays grey rows out in multiples of four bytes.
    assert_eq!(width % 4, 0);
    let time = |i: u32| Duration::from_secs(1) * i / rate;
    let buffers = (0..).zip(pictures).map(|(i, picture)| (picture.clone(), time(i))).collect();
    write_video(path, ("GRAY8", width, height), buffers, rate as i32, coding);
}

/// Lossless coding into Matroska.
const LOSSLESS: &str = "avenc_ffv1 ! matroskamux";

/// Writes the first pairs of the demo scene as l.mkv and r.mkv, without loss.
fn write_eyes(folder: &Path, left: u64, right: u64) {
    write_eyes_at(30, folder, left, right);
}

/// As [`write_eyes`], with so many pairs per second. Played at their own pace, few of them last for as long as a test
/// may take.
fn write_eyes_at(rate: u32, folder: &Path, left: u64, right: u64) {
    let pictures = |count, eye: fn(StereoPair) -> Vec<u8>| {
        (0..count).map(|n| eye(demo_pair(n))).collect::<Vec<_>>()
    };
    let lefts = pictures(left, |pair| pair.left.pixels().to_vec());
    write_grey_at(rate, &folder.join("l.mkv"), SIZE, &lefts, LOSSLESS);
    let rights = pictures(right, |pair| pair.right.pixels().to_vec());
    write_grey_at(rate, &folder.join("r.mkv"), SIZE, &rights, LOSSLESS);
}

/// Sends a signal to a run.
fn signal(child: &Child, signal: i32) {
    // SAFETY: the process is our child and not yet waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

/// Exit status, statistics and messages of a run that is asked to end.
fn end(child: Child) -> (i32, Value, String) {
    signal(&child, libc::SIGTERM);
    let (status, stdout, stderr) = outcome_of(ended(child));
    let statistics = serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{e}: {stderr}"));
    (status, statistics, stderr)
}

/// Status of a run that has ended. One that does not end is killed.
fn ended_with(child: &mut Child) -> ExitStatus {
    let mut patience = Patience::begin();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if patience.is_over() {
            kill(child.id());
            panic!("the process does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
