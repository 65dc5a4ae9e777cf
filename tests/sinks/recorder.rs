//! The lossless recording.

use std::fs;
use std::path::Path;
use std::time::Duration;

use gstreamer as gst;
use gstreamer::prelude::*;
use stereod::{DisparityRange, INVALID, Steady, StereoGeometry, Temporal, TemporalMode};
use stereod_core::picture::encoding::Encoding;
use stereod_core::picture::numbers::{DepthUnit, Quantity};
use stereod_io::clock::CaptureClock;
use stereod_io::labels::Labels;
use stereod_io::sink::video::{Recorder, RecordingTags, read_recording_tags};
use stereod_io::sink::{Sink, StagesInTime, StreamInfo};

use crate::common::maps::{Random, matched, random_values};
use crate::common::player::{Player, RECORDING};

const GEOMETRY: StereoGeometry = StereoGeometry {
    focal_px: 435.25,
    baseline_m: 0.11007,
    centre_x_px: 367.5,
    centre_y_px: 252.25,
    right_centre_x_px: 367.5,
};

/// Depth is recorded in whole millimetres, and the file's tags say so.
#[test]
fn depth_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("depth.mkv");
    let stream = StreamInfo { geometry: Some(GEOMETRY), ..stream(4, 4, 0, 64) };
    let mut recorder =
        Recorder::create(&path, &stream, Quantity::Depth(DepthUnit::default())).unwrap();
    let mut values = vec![INVALID; 16];
    values[..5].copy_from_slice(&[16 * 20, 16 * 20 + 8, 16 * 63, 1, 0]);
    recorder.consume(&matched(4, values, 0, Duration::ZERO)).unwrap();
    recorder.finish().unwrap();
    let tags = read_recording_tags(&path).unwrap();
    assert_eq!(
        (tags.quantity, tags.geometry),
        (Quantity::Depth(DepthUnit::default()), Some(GEOMETRY))
    );
    // 435.25 * 0.11007 = 47.9079675 px m, over 20, 20.5, 63 and 1/16 px.
    let frames = Player::open(&path, RECORDING).unwrap().play();
    assert_eq!(frames[0].numbers()[..6], [2395, 2337, 760, 0, 0, 0]);

    let nothing_known = StreamInfo { geometry: None, ..stream };
    let error = Recorder::create(&path, &nothing_known, Quantity::Depth(DepthUnit::default()))
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(error.contains("--calibration"), "{error}");
}

fn stream(width: usize, height: usize, min: i32, count: usize) -> StreamInfo {
    StreamInfo {
        size: (width, height),
        rate: Some(20.0),
        range: DisparityRange { min, count },
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

/// Records `frames` random maps at irregular times from 1 h on, and gives their numbers and times.
fn record(path: &Path, stream: &StreamInfo, frames: u64) -> Vec<(Duration, Vec<u16>)> {
    let (width, height) = stream.size;
    let mut random = Random(7 + width as u64);
    let mut recorder = Recorder::create(path, stream, Quantity::Disparity).unwrap();
    let encoding = Encoding::for_range(stream.range);
    let mut time = Duration::from_secs(3600);
    let mut written = Vec::new();
    for sequence in 0..frames {
        let values = random_values(&mut random, width * height, stream.range);
        let mut numbers = vec![0; values.len()];
        encoding.encode(&values, &mut numbers);
        written.push((time - Duration::from_secs(3600), numbers));
        recorder.consume(&matched(width, values, sequence, time)).unwrap();
        time += Duration::from_micros(20_000 + random.below(60_000));
    }
    recorder.finish().unwrap();
    written
}

#[test]
fn every_number_and_time_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    for (width, height, min, count) in [
        (97, 61, 0, 64),
        (64, 48, -20, 100),
        (33, 17, -512, 1024),
        (16, 16, 0, 300),
        (15, 9, 3, 9),
        (2, 2, 0, 256),
        (700, 33, 0, 64),
        (1500, 3, 0, 64),
        (2, 288, 0, 64),
        (2, 2000, 0, 64),
        (1, 999, 0, 64),
        (353, 2, 0, 64),
        (3, 289, 0, 64),
        (353, 3, 0, 64),
        (1, 288, 0, 64),
        (999, 1, 0, 64),
        (63, 64, 0, 64),
        (64, 64, 0, 64),
        (300, 15, 0, 64),
        (15, 1700, 0, 64),
        (1, 40, 0, 64),
        (40, 1, 0, 64),
        (1, 1, 0, 1),
    ] {
        let path = dir.path().join(format!("{width}x{height}.mkv"));
        let written = record(&path, &stream(width, height, min, count), 12);
        let player = Player::open(&path, RECORDING).unwrap();
        let decoded = player.play();
        assert_eq!(player.messages().0, None);
        assert_eq!(decoded.len(), written.len(), "{width}x{height}");
        for (decoded, (time, numbers)) in decoded.iter().zip(&written) {
            assert_eq!(decoded.time, *time, "{width}x{height}");
            // Sides shorter than four pixels are padded with "unknown".
            let (stored, mut cropped) = (decoded.numbers(), Vec::<u16>::new());
            for (y, row) in stored.chunks(width.max(4)).enumerate() {
                let inside = if y < height { width } else { 0 };
                cropped.extend(&row[..inside]);
                assert!(row[inside..].iter().all(|&number| number == 0), "{width}x{height}");
            }
            assert!(cropped == *numbers, "{width}x{height} at {time:?}");
        }
    }
}

#[test]
fn a_finished_file_has_duration_and_seeks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.mkv");
    let written = record(&path, &stream(64, 48, 0, 64), 200);
    let player = Player::open(&path, RECORDING).unwrap();
    let (last, _) = written.last().unwrap();
    assert_eq!(player.duration(), Some(*last + Duration::from_millis(50)));
    // The frame starts later than the nominal duration of the one before, which GStreamer would
    // otherwise use as its time.
    let late = |i: &usize| written[*i].0 - written[*i - 1].0 > Duration::from_millis(50);
    let chosen = (100..200).find(late).unwrap();
    let (time, numbers) = &written[chosen];
    let target = gst::ClockTime::try_from(*time).unwrap();
    player.pipeline.seek_simple(gst::SeekFlags::FLUSH | gst::SeekFlags::ACCURATE, target).unwrap();
    let decoded = player.play();
    assert_eq!(decoded[0].time, *time);
    assert!(decoded[0].numbers() == *numbers);
    assert_eq!(decoded.len(), written.len() - chosen);
}

#[test]
fn tags_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.mkv");
    let mut stream = stream(20, 10, -8, 72);
    stream.geometry = Some(GEOMETRY);
    let temporal = Temporal { mode: TemporalMode::Denoise, history: 9, degree: 1 };
    let stages = StagesInTime { temporal: Some(temporal), steady: Some(Steady { strength: 8 }) };
    stream.stages = stages;
    record(&path, &stream, 3);
    let expected = RecordingTags {
        quantity: Quantity::Disparity,
        encoding: Encoding::for_range(stream.range),
        range: stream.range,
        geometry: Some(GEOMETRY),
        stages,
        first_timestamp: Duration::from_secs(3600),
        utc_offset_ns: None,
    };
    assert_eq!(read_recording_tags(&path).unwrap(), expected);

    // GStreamer shows them as the comment.
    let player = Player::open(&path, RECORDING).unwrap();
    let (_, tags) = player.messages();
    let comment = tags.get::<gst::tags::Comment>().expect("a comment");
    let comment = comment.get();
    for part in [
        "DISPARITY_SCALE=256",
        "DISPARITY_OFFSET=-8",
        "DISPARITY_INVALID=0",
        "DISPARITY_MIN=-8",
        "DISPARITY_COUNT=72",
        "FOCAL_LENGTH_PX=435.25",
        "BASELINE_M=0.11007",
        "CENTRE_X_PX=367.5",
        "CAPTURE_CLOCK=SOURCE",
    ] {
        assert!(comment.contains(part), "{part} in {comment}");
    }
}

/// The capture clock of a live source: the file states the time of day of its frames.
#[test]
fn capture_times_can_be_told_to_the_microsecond() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.mkv");
    let clock = CaptureClock {
        zero: Duration::from_nanos(7_000_000_000_123),
        utc_offset_ns: 1_795_256_100_000_000_456,
    };
    let stream = StreamInfo { clock: Some(clock), ..stream(20, 10, 0, 64) };
    let written = record(&path, &stream, 5);
    let tags = read_recording_tags(&path).unwrap();
    assert_eq!(tags.first_timestamp, Duration::from_nanos(10_600_000_000_123));
    assert_eq!(tags.utc_offset_ns, Some(1_795_256_100_000_000_456));
    let frames = Player::open(&path, RECORDING).unwrap().play();
    for (frame, (time, _)) in frames.iter().zip(&written) {
        let told = tags.time_of_day(frame.time).unwrap();
        let true_time = clock.time_of_day(Duration::from_secs(3600) + *time);
        let wrong = told.duration_since(true_time).unwrap_or_else(|error| error.duration());
        assert!(wrong < Duration::from_micros(1), "{wrong:?}");
    }
    // Other programs find the first frame's time of day: 2026-11-21 10:15:00 and 10600 s.
    let (_, shown) = Player::open(&path, RECORDING).unwrap().messages();
    let shown = shown.get::<gst::tags::DateTime>().expect("a date").get().to_string();
    assert!(shown.starts_with("2026-11-21T13:11:40"), "{shown}");
}

#[test]
fn other_files_have_no_tags() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.mkv");
    let error = format!("{:#}", read_recording_tags(&path).unwrap_err());
    assert!(error.contains("a.mkv") && error.contains("No such file"), "{error}");
    for content in [&b""[..], b"not a video", &[0x1a, 0x45, 0xdf, 0xa3]] {
        fs::write(&path, content).unwrap();
        let error = format!("{:#}", read_recording_tags(&path).unwrap_err());
        assert!(error.contains("no Matroska file"), "{error}");
    }
    fs::write(&path, [0x1a, 0x45, 0xdf, 0xa3, 0x80]).unwrap();
    let error = format!("{:#}", read_recording_tags(&path).unwrap_err());
    assert!(error.contains("lacks the tag DISPARITY_SCALE"), "{error}");
}

#[test]
fn a_recording_without_frames_is_no_file() {
    let dir = tempfile::tempdir().unwrap();
    record(&dir.path().join("a.mkv"), &stream(20, 10, 0, 64), 0);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn an_earlier_file_is_replaced_with_the_first_frame() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.mkv");
    fs::write(&path, b"earlier").unwrap();
    for is_finished in [false, true] {
        let mut recorder =
            Recorder::create(&path, &stream(16, 16, 0, 64), Quantity::Disparity).unwrap();
        if is_finished {
            recorder.finish().unwrap();
        }
        drop(recorder);
        assert_eq!(fs::read(&path).unwrap(), b"earlier");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
    let mut recorder =
        Recorder::create(&path, &stream(16, 16, 0, 64), Quantity::Disparity).unwrap();
    let frames =
        |sequence| matched(16, vec![0; 256], sequence, Duration::from_millis(sequence * 50));
    // Some wait in the encoders, of which there are several.
    for sequence in 0..500 {
        recorder.consume(&frames(sequence)).unwrap();
    }
    // It can be read while it is written.
    assert_eq!(read_recording_tags(&path).unwrap().range.count, 64);
    recorder.finish().unwrap();
    assert_eq!(Player::open(&path, RECORDING).unwrap().play().len(), 500);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn times_that_do_not_rise_are_spread() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.mkv");
    let mut recorder = Recorder::create(&path, &stream(4, 4, 0, 64), Quantity::Disparity).unwrap();
    for sequence in 0..5 {
        recorder.consume(&matched(4, vec![0; 16], sequence, Duration::ZERO)).unwrap();
    }
    recorder.finish().unwrap();
    let times: Vec<u128> = Player::open(&path, RECORDING)
        .unwrap()
        .play()
        .iter()
        .map(|frame| frame.time.as_millis())
        .collect();
    assert_eq!(times, [0, 50, 100, 150, 200]);
}

#[test]
fn wrong_names_and_places_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |path: &Path, words: &str| {
        let error = Recorder::create(path, &stream(8, 8, 0, 64), Quantity::Disparity)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(&*path.to_string_lossy()) && error.contains(words), "{error}");
    };
    refused(&dir.path().join("a.avi"), "name it .mkv");
    refused(&dir.path().join("a"), "name it .mkv");
    refused(&dir.path().join("no/such/a.mkv"), "mkdir -p");
    fs::create_dir(dir.path().join("folder.mkv")).unwrap();
    refused(&dir.path().join("folder.mkv"), "is a folder");

    let mut locked = fs::metadata(dir.path()).unwrap().permissions();
    let open = locked.clone();
    locked.set_readonly(true);
    fs::set_permissions(dir.path(), locked).unwrap();
    if fs::write(dir.path().join("probe"), b"").is_ok() {
        eprintln!("skipped: a folder cannot be locked against this user");
    } else {
        refused(&dir.path().join("a.mkv"), "no permission");
    }
    fs::set_permissions(dir.path(), open).unwrap();
}

#[test]
fn a_change_of_size_ends_the_recording_cleanly() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.mkv");
    let mut recorder = Recorder::create(&path, &stream(8, 8, 0, 64), Quantity::Disparity).unwrap();
    recorder.consume(&matched(8, vec![16; 64], 0, Duration::ZERO)).unwrap();
    let error = recorder.consume(&matched(8, vec![16; 72], 1, Duration::from_secs(1))).unwrap_err();
    assert!(format!("{error:#}").contains("from 8x8 to 8x9"), "{error:#}");
    recorder.finish().unwrap();
    assert_eq!(Player::open(&path, RECORDING).unwrap().play().len(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_and_not_a_hang() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("full.mkv");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let mut recorder =
        Recorder::create(&path, &stream(64, 48, 0, 64), Quantity::Disparity).unwrap();
    let error = (0..1000)
        .find_map(|i| {
            let frame = matched(64, vec![16; 64 * 48], i, Duration::from_millis(i * 20));
            recorder.consume(&frame).err()
        })
        .expect("the disk is full");
    let error = error.to_string();
    assert!(error.contains("full.mkv") && error.contains("disk is full"), "{error}");
    assert!(error.contains("0 frames") || !error.contains("frames)"), "{error}");
    assert_eq!(recorder.finish().unwrap_err().to_string(), error);

    // If the failure shows only at the end, the end reports it.
    let mut recorder =
        Recorder::create(&path, &stream(64, 48, 0, 64), Quantity::Disparity).unwrap();
    let consumed = recorder.consume(&matched(64, vec![16; 64 * 48], 0, Duration::ZERO));
    assert!(consumed.is_err() || recorder.finish().is_err());
}
