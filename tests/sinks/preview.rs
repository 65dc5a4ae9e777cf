//! The preview video.

use std::path::Path;
use std::time::Duration;

use gstreamer::prelude::*;
use stereod::{DisparityRange, INVALID};
use stereod_io::labels::Labels;
use stereod_io::sink::colour::ColourMap;
use stereod_io::sink::colouring::LiveColouring;
use stereod_io::sink::video::{Preview, VideoView};
use stereod_io::sink::{Sink, StagesInTime, StreamInfo};

use crate::common::maps::matched;
use crate::common::player::Player;

const DECODE: &str = "qtdemux ! h264parse name=parse ! avdec_h264 name=decoder \
                      ! videoconvert ! video/x-raw,format=RGB";

fn stream(width: usize, height: usize) -> StreamInfo {
    StreamInfo {
        size: (width, height),
        rate: Some(25.0),
        range: DisparityRange { min: 0, count: 64 },
        geometry: None,
        has_colour: false,
        has_obstacles: false,
        has_odometry: false,
        has_verdicts: false,
        tracks_ground: false,
        clock: None,
        stages: StagesInTime::default(),
        labels: Labels::default(),
    }
}

/// Left third far, middle unknown, right third near.
fn thirds(width: usize, height: usize) -> Vec<i16> {
    (0..width * height)
        .map(|i| match (i % width) * 3 / width {
            0 => 8 * 16,
            1 => INVALID,
            _ => 56 * 16,
        })
        .collect()
}

fn write(path: &Path, stream: &StreamInfo, times: &[u64]) {
    let mut preview =
        Preview::create(path, stream, VideoView::Disparity, LiveColouring::default(), 20).unwrap();
    for (sequence, &time) in times.iter().enumerate() {
        let (width, height) = stream.size;
        let values = thirds(width, height);
        let time = Duration::from_millis(time);
        preview.consume(&matched(width, values, sequence as u64, time)).unwrap();
    }
    preview.finish().unwrap();
}

#[test]
fn colours_size_profile_and_times() {
    let dir = tempfile::tempdir().unwrap();
    for (width, height) in [(192, 108), (191, 107), (33, 17), (3, 5), (1, 1)] {
        let path = dir.path().join(format!("{width}x{height}.mp4"));
        let stream = stream(width, height);
        let times: Vec<u64> = (0..30).map(|i| 5000 + i * 40).collect();
        write(&path, &stream, &times);

        let player = Player::open(&path, DECODE).unwrap();
        let caps_of = |element: &str| {
            let pad = player.pipeline.by_name(element).unwrap().static_pad("src").unwrap();
            pad.current_caps().unwrap().structure(0).unwrap().to_owned()
        };
        let stream = caps_of("parse");
        let profile = stream.get::<&str>("profile").unwrap();
        assert!(["main", "high"].contains(&profile), "{profile}");
        assert_eq!(stream.get::<&str>("chroma-format").unwrap(), "4:2:0");
        let raw = caps_of("decoder");
        assert_eq!(raw.get::<&str>("format").unwrap(), "I420");
        assert_eq!(raw.get::<&str>("colorimetry").unwrap(), "bt709");
        let side = |side: usize| side.next_multiple_of(2).max(16);
        assert_eq!(raw.get::<i32>("width").unwrap() as usize, side(width));
        assert_eq!(raw.get::<i32>("height").unwrap() as usize, side(height));

        let decoded = player.play();
        assert_eq!(player.messages().0, None);
        assert_eq!(player.duration(), Some(Duration::from_millis(1200)));
        let shown: Vec<u64> = decoded.iter().map(|frame| frame.time.as_millis() as u64).collect();
        let expected: Vec<u64> = (0..30).map(|i| i * 40).collect();
        assert_eq!(shown, expected);
        if width < 33 {
            continue;
        }
        let table = ColourMap::Turbo.table();
        for (x, colour) in [
            (width / 6, table[8 * 255 / 63]),
            (width / 2, ColourMap::Turbo.unknown()),
            (width * 5 / 6, table[56 * 255 / 63 + 1]),
        ] {
            let at = (height / 2 * side(width) + x) * 3;
            let found = &decoded[20].bytes[at..at + 3];
            let close = found.iter().zip(colour).all(|(&f, c)| f.abs_diff(c) < 24);
            assert!(close, "{width}x{height} column {x}: {found:?}, not {colour:?}");
        }
    }
}

#[test]
fn the_legend_is_in_the_lower_right_corner() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.mp4");
    let size = (320, 240);
    let preview = Preview::create(
        &path,
        &stream(320, 240),
        VideoView::SideBySide,
        LiveColouring::default(),
        10,
    );
    let mut preview = preview.unwrap().with_legend(true);
    preview.consume(&matched(320, vec![56 * 16; 320 * 240], 0, Duration::ZERO)).unwrap();
    preview.finish().unwrap();
    let frame = Player::open(&path, DECODE).unwrap().play().remove(0);
    let at = |x: usize, y: usize| &frame.bytes[(y * 2 * size.0 + x) * 3..][..3];
    let near = ColourMap::Turbo.table()[56 * 255 / 63 + 1];
    let is = |found: &[u8], colour: [u8; 3]| {
        found.iter().zip(colour).all(|(&found, colour)| found.abs_diff(colour) < 24)
    };
    assert!(is(at(2 * size.0 - 40, 100), near), "{:?}", at(2 * size.0 - 40, 100));
    // The bar: its ends are far and near; the panel around it is dark.
    let row = size.1 - 32;
    let columns = || (size.0..2 * size.0).map(|x| at(x, row));
    assert!(columns().any(|pixel| is(pixel, ColourMap::Turbo.table()[4])));
    assert!(columns().any(|pixel| is(pixel, ColourMap::Turbo.table()[250])));
    assert!(is(at(size.0 + 80, row), near.map(|channel| (u16::from(channel) * 35 / 100) as u8)));
    // The left image has none.
    assert!((0..size.0 - 8).all(|x| is(at(x, row), [0; 3])));
}

#[test]
fn variable_frame_rate_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.mp4");
    let mut stream = stream(64, 48);
    stream.rate = None;
    let times = [0, 33, 100, 450, 460, 2000, 2100];
    write(&path, &stream, &times);
    let shown: Vec<u64> = Player::open(&path, DECODE)
        .unwrap()
        .play()
        .iter()
        .map(|frame| (frame.time.as_micros() as u64 + 500) / 1000)
        .collect();
    assert_eq!(shown, times);
}

#[test]
fn a_finished_file_is_no_longer_fragmented() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.mp4");
    write(&path, &stream(64, 48), &(0..100).map(|i| i * 40).collect::<Vec<_>>());
    let file = std::fs::read(&path).unwrap();
    // The boxes at the top of the file.
    let mut boxes = Vec::new();
    let mut at = 0;
    while let Some(header) = file.get(at..at + 16) {
        let size = u32::from_be_bytes(header[..4].try_into().unwrap()) as u64;
        let wide = u64::from_be_bytes(header[8..].try_into().unwrap());
        boxes.push(String::from_utf8_lossy(&header[4..8]).into_owned());
        at += if size == 1 { wide } else { size }.max(8) as usize;
    }
    let place = |name: &str| boxes.iter().position(|found| found == name);
    let (index, frames) = (place("moov").unwrap(), place("mdat").unwrap());
    assert!(index < frames && place("moof").is_none(), "{boxes:?}");
    let files: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|f| f.unwrap().path()).collect();
    assert_eq!(files, [path], "nothing else is left");
}

#[test]
fn no_frame_and_one_frame() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("one.mp4");
    let mut variable = stream(64, 48);
    variable.rate = None;
    for stream in [stream(64, 48), variable] {
        write(&path, &stream, &[0]);
        assert_eq!(Player::open(&path, DECODE).unwrap().play().len(), 1);
    }
    let none = dir.path().join("none.mp4");
    write(&none, &stream(64, 48), &[]);
    assert!(!none.exists());
}

#[test]
fn an_earlier_file_is_replaced_with_the_first_fragment() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.mp4");
    std::fs::write(&path, b"earlier").unwrap();
    for is_finished in [false, true] {
        let mut preview = Preview::create(
            &path,
            &stream(64, 48),
            VideoView::Disparity,
            LiveColouring::default(),
            20,
        )
        .unwrap();
        if is_finished {
            preview.finish().unwrap();
        }
        drop(preview);
        assert_eq!(std::fs::read(&path).unwrap(), b"earlier");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
    let mut preview =
        Preview::create(&path, &stream(64, 48), VideoView::Disparity, LiveColouring::default(), 20)
            .unwrap();
    for i in 0..400 {
        let frame = matched(64, thirds(64, 48), i, Duration::from_millis(i * 40));
        preview.consume(&frame).unwrap();
    }
    // The existing part can be played while more is written.
    assert!(!Player::open(&path, DECODE).unwrap().play().is_empty());
    preview.finish().unwrap();
    assert_eq!(Player::open(&path, DECODE).unwrap().play().len(), 400);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn wrong_names_and_places_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |path: &Path, words: &str| {
        let error = Preview::create(
            path,
            &stream(8, 8),
            VideoView::Disparity,
            LiveColouring::default(),
            20,
        )
        .err()
        .unwrap()
        .to_string();
        assert!(error.contains(&*path.to_string_lossy()) && error.contains(words), "{error}");
    };
    refused(&dir.path().join("a.mkv"), "name it .mp4");
    refused(&dir.path().join("no/such/a.mp4"), "mkdir -p");

    let path = dir.path().join("wide.mp4");
    let colours = LiveColouring::default();
    let wide = Preview::create(&path, &stream(16_386, 64), VideoView::Disparity, colours, 20);
    let error = wide.err().unwrap().to_string();
    assert!(error.contains("16386x64") && error.contains("at most 16384"), "{error}");
    assert!(!path.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_and_not_a_hang() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("full.mp4");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let mut preview = match Preview::create(
        &path,
        &stream(64, 48),
        VideoView::Disparity,
        LiveColouring::default(),
        20,
    ) {
        Ok(preview) => preview,
        Err(error) => panic!("{error:#}"),
    };
    let error = (0..2000)
        .find_map(|i| {
            let frame = matched(64, thirds(64, 48), i, Duration::from_millis(i * 40));
            preview.consume(&frame).err()
        })
        .expect("the disk is full");
    let error = error.to_string();
    assert!(error.contains("full.mp4") && error.contains("disk is full"), "{error}");
    assert_eq!(preview.finish().unwrap_err().to_string(), error);
}
