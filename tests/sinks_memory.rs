//! A long job needs no more memory than a short one. Alone in its binary, so that no other test
//! uses memory meanwhile.

#![cfg(all(feature = "cli", feature = "window", feature = "serve"))]
#![cfg(target_os = "linux")]

mod common {
    pub mod maps;
}

use std::time::Duration;

use common::maps::{Random, matched, random_values};
use stereod::DisparityRange;
use stereod_core::picture::numbers::Quantity;
use stereod_io::labels::Labels;
use stereod_io::sink::colour::{ColourMap, ColourRange};
use stereod_io::sink::colouring::{Colouring, LiveColouring};
use stereod_io::sink::pictures::Pictures;
use stereod_io::sink::still::StillFormat;
use stereod_io::sink::video::{Preview, Recorder, VideoView};
use stereod_io::sink::{Sink, StagesInTime, StreamInfo};

const WIDTH: usize = 160;
const HEIGHT: usize = 120;
const RANGE: DisparityRange = DisparityRange { min: 0, count: 64 };

/// Resident memory of this process in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Growth of memory from frame 500 to frame 2500.
fn growth(mut sink: Box<dyn Sink>) -> u64 {
    let values = random_values(&mut Random(5), WIDTH * HEIGHT, RANGE);
    let mut before = 0;
    for i in 0..2500 {
        // The numbers of the images repeat, so that the test leaves few files.
        let frame = matched(WIDTH, values.clone(), i % 10, Duration::from_millis(i * 40));
        sink.consume(&frame).unwrap();
        if i == 500 {
            before = resident();
        }
    }
    let grown = resident().saturating_sub(before);
    sink.finish().unwrap();
    grown
}

#[test]
fn memory_does_not_grow() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name| dir.path().join(name);
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
    let colouring = Colouring { map: ColourMap::Turbo, span: ColourRange::ADAPTIVE };
    let colouring = LiveColouring::new(colouring);
    let recorder = Recorder::create(&file("a.mkv"), &stream, quantity).unwrap();
    let preview =
        Preview::create(&file("a.mp4"), &stream, VideoView::Disparity, colouring, 20).unwrap();
    let pictures =
        Pictures::create(&file("pictures"), &stream, quantity, StillFormat::Png).unwrap();
    for (sink, grown) in [
        ("recorder", growth(Box::new(recorder))),
        ("preview", growth(Box::new(preview))),
        ("pictures", growth(Box::new(pictures))),
    ] {
        println!("{sink}: {} KiB", grown >> 10);
        // 2000 frames of 38 kB would be 77 MB. With more than two processors there are further encoders, each of
        // which takes 3 MB with its first frame, which may come late.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let late = cores.saturating_sub(2).div_ceil(2).min(14) as u64 * (3 << 20);
        assert!(grown < (8 << 20) + late, "{sink}: grown by {grown} bytes");
    }
}
