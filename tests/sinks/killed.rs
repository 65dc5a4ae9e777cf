//! Files of a program that is killed while writing can be read up to that point.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use stereod::DisparityRange;
use stereod_core::picture::encoding::Encoding;
use stereod_core::picture::numbers::Quantity;
use stereod_io::labels::Labels;
use stereod_io::sink::colour::{ColourMap, ColourRange};
use stereod_io::sink::colouring::{Colouring, LiveColouring};
use stereod_io::sink::pictures::Pictures;
use stereod_io::sink::still::StillFormat;
use stereod_io::sink::video::{Preview, Recorder, VideoView, read_recording_tags};
use stereod_io::sink::{Sink, StagesInTime, StreamInfo};

use crate::common::maps::{Random, matched, random_values};
use crate::common::player::{Player, RECORDING};

const WIDTH: usize = 96;
const HEIGHT: usize = 64;
const RANGE: DisparityRange = DisparityRange { min: -3, count: 64 };
/// Folder for the child's files; set only for the child.
const CHILD: &str = "STEREOD_TEST_KILLED_CHILD";

/// The map of frame `i`: the parent knows it too.
fn values(i: u64) -> Vec<i16> {
    random_values(&mut Random(1000 + i), WIDTH * HEIGHT, RANGE)
}

/// Not a test of its own: the program that [`files_of_a_killed_program_are_readable`] starts and
/// kills. Without its environment variable it does nothing.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Some(dir) = std::env::var_os(CHILD) else { return };
    let dir = Path::new(&dir);
    let stream = StreamInfo {
        size: (WIDTH, HEIGHT),
        rate: Some(25.0),
        range: RANGE,
        geometry: None,
        has_colour: false,
        has_obstacles: false,
        has_odometry: false,
        has_verdicts: false,
        tracks_ground: false,
        clock: None,
        stages: StagesInTime::default(),
        labels: Labels::default(),
    };
    let quantity = Quantity::Disparity;
    let colouring = Colouring { map: ColourMap::Viridis, span: ColourRange::ADAPTIVE };
    let colouring = LiveColouring::new(colouring);
    let mut sinks: [Box<dyn Sink>; 3] = [
        Box::new(Recorder::create(&dir.join("a.mkv"), &stream, quantity).unwrap()),
        Box::new(
            Preview::create(&dir.join("a.mp4"), &stream, VideoView::Disparity, colouring, 20)
                .unwrap(),
        ),
        Box::new(
            Pictures::create(&dir.join("pictures"), &stream, quantity, StillFormat::Png).unwrap(),
        ),
    ];
    for i in 0.. {
        for sink in &mut sinks {
            sink.consume(&matched(WIDTH, values(i), i, Duration::from_millis(i * 40))).unwrap();
        }
        // Stderr, because the test harness keeps stdout.
        writeln!(std::io::stderr(), "written {i}").unwrap();
    }
}

#[test]
fn files_of_a_killed_program_are_readable() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["sinks::killed::child_that_writes_until_it_is_killed", "--exact", "--nocapture"])
        .env(CHILD, dir.path())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let enough = lines.map_while(Result::ok).any(|line| line == "written 400");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(enough, "the child wrote 400 frames before it ended");

    // The recording: everything but the few frames that were not yet encoded: three, and two for each encoder.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let encoders = if cores > 1 { (cores.div_ceil(2) + 1).min(16) } else { 1 };
    let path = dir.path().join("a.mkv");
    let tags = read_recording_tags(&path).unwrap();
    assert_eq!((tags.range, tags.geometry), (RANGE, None));
    let player = Player::open(&path, RECORDING).unwrap();
    let frames = player.play();
    assert!(frames.len() + 3 + 2 * encoders >= 400, "{} frames", frames.len());
    for (i, frame) in (0..).zip(&frames) {
        assert_eq!(frame.time, Duration::from_millis(i * 40));
        let mut decoded = vec![0; WIDTH * HEIGHT];
        tags.encoding.decode(&frame.numbers(), &mut decoded);
        assert!(decoded == values(i), "frame {i}");
    }

    // The preview: all but the encoder's look-ahead and the last fragment.
    let chain = "qtdemux ! h264parse ! avdec_h264 ! videoconvert ! video/x-raw,format=RGB";
    let frames = Player::open(&dir.path().join("a.mp4"), chain).unwrap().play();
    assert!(frames.len() > 300, "{} frames", frames.len());

    // The pictures: all of them, whole.
    let mut count = 0;
    for i in 0..=400 {
        let path = dir.path().join(format!("pictures/{i:06}.png"));
        let numbers = image::open(path).unwrap().into_luma16().into_raw();
        let mut decoded = vec![0; numbers.len()];
        Encoding::for_range(RANGE).decode(&numbers, &mut decoded);
        assert!(decoded == values(i), "picture {i}");
        count += 1;
    }
    assert_eq!(count, 401);
}
