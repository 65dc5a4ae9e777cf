//! Any number of encoders, of any speed, writes the same file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;

use super::*;
use crate::sink::segments::SegmentLimits;
use crate::sink::video::matroska::tests::frames;

/// A hang ends a test after this long.
const HANG: Duration = Duration::from_secs(120);

const SIZE: (usize, usize) = (64, 48);

/// Makes encoders for a width and height.
type Make = Box<dyn FnOnce(usize, usize) -> Result<Encoders>>;

/// This many encoders.
fn plain(count: usize) -> Make {
    gst::init().unwrap();
    Box::new(move |width, height| Encoders::of(count, width, height))
}

/// An encoder behind each of these elements.
fn behind(elements: &[&'static str]) -> Make {
    let elements = elements.to_vec();
    Box::new(move |width, height| {
        let mut encoders = Encoders::of(elements.len(), width, height)?;
        for (encoder, before) in encoders.elements.iter_mut().zip(elements) {
            let (chain, pads) = (gst::Bin::new(), ["sink", "src"]);
            let before = gst::parse::bin_from_description(before, true)?;
            chain.add_many([before.upcast_ref(), &*encoder])?;
            before.link(encoder)?;
            for (element, pad) in [before.upcast_ref(), &*encoder].into_iter().zip(pads) {
                let pad = element.static_pad(pad).context("an element has a pad")?;
                chain.add_pad(&gst::GhostPad::with_target(&pad)?)?;
            }
            *encoder = chain.upcast();
        }
        Ok(encoders)
    })
}

fn start(encoders: Make, place: Place, size: (usize, usize)) -> Lossless<u16> {
    let description = Description { size, rate: Some(30.0), name: "test" };
    let tags = Box::new(|_| vec![("TITLE", "test".to_owned())]);
    Lossless::create_with(encoders, &place, description, None, tags).unwrap()
}

/// Picture `number`: some are quick to encode, others are not.
fn push(video: &mut Lossless<u16>, number: u64) -> Result<()> {
    let noise = if number.is_multiple_of(3) { 0 } else { 40_503 };
    video.write(Duration::from_millis(7 * number), Duration::ZERO, |y, row| {
        for (x, value) in row.iter_mut().enumerate() {
            *value = (x * y * noise) as u16 ^ number as u16;
        }
        Ok(())
    })
}

/// Returns the file of these encoders for this many images.
fn record(encoders: Make, size: (usize, usize), pictures: u64) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mkv");
    let mut video = start(encoders, Place::New(path.clone()), size);
    (0..pictures).for_each(|number| push(&mut video, number).unwrap());
    video.finish().unwrap();
    assert_eq!(video.written(), pictures);
    fs::read(&path).unwrap()
}

#[test]
fn the_file_is_the_same_whatever_their_number() {
    for size in [(97, 61), (64, 64), (300, 15), (2, 288), (1, 1)] {
        for pictures in [2, 40] {
            let expected = record(plain(1), size, pictures);
            assert_eq!(frames(&expected).len(), pictures as usize);
            for count in [2, 5] {
                let file = record(plain(count), size, pictures);
                assert!(file == expected, "{count} encoders, {pictures} of {size:?}");
            }
        }
    }
}

#[test]
fn no_file_is_left_without_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::New(folder.path().join("a.mkv"));
    start(plain(2), place, (64, 64)).finish().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn slow_encoders_do_not_change_the_order() {
    let expected = record(plain(1), SIZE, 60);
    for elements in [
        ["identity sleep-time=20000", "identity", "identity sleep-time=3000"],
        ["identity", "identity sleep-time=9000", "identity"],
        ["identity sleep-time=1000", "identity sleep-time=1000", "identity sleep-time=30000"],
    ] {
        // Frames in progress are written at the end.
        assert!(record(behind(&elements), SIZE, 60) == expected, "{elements:?}");
    }
}

#[test]
fn a_frame_waits_for_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut video = start(plain(5), Place::New(folder.path().join("a.mkv")), SIZE);
    for number in 0..7 {
        push(&mut video, number).unwrap();
        let begun = Instant::now();
        while video.written() <= number {
            assert!(begun.elapsed() < HANG, "frame {number} does not come");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn an_encoder_that_fails_ends_the_file_before_its_frame() {
    let whole = frames(&record(plain(1), SIZE, 60));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mkv");
    // The first one is slow, so that the others have something to do.
    let elements = ["identity sleep-time=5000", "identity error-after=4", "identity"];
    let mut video = start(behind(&elements), Place::New(path.clone()), SIZE);
    let failed = (0..60).find_map(|number| push(&mut video, number).err());
    let told = failed.expect("an encoder has failed").to_string();
    assert!(told.contains("a.mkv"), "{told}");
    // The first error is the reported one.
    assert_eq!(video.finish().unwrap_err().to_string(), told);
    let kept = fs::read(&path).map_or(Vec::new(), |file| frames(&file));
    assert_eq!(kept.len() as u64, video.written());
    assert!(kept.len() < 60 && kept[..] == whole[..kept.len()], "{} frames", kept.len());
}

#[test]
fn a_frame_that_an_encoder_keeps_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::New(folder.path().join("a.mkv"));
    let mut video = start(behind(&["identity drop-probability=1"]), place, SIZE);
    (0..3).for_each(|number| push(&mut video, number).unwrap());
    let error = video.finish().unwrap_err().to_string();
    assert!(error.contains("a.mkv") && error.contains("of 3 frames"), "{error}");
}

#[test]
fn frames_on_the_way_hold_nobody_up_who_gives_up() {
    let folder = tempfile::tempdir().unwrap();
    let elements = ["identity sleep-time=50000", "identity sleep-time=1000"];
    let mut video = start(behind(&elements), Place::New(folder.path().join("a.mkv")), SIZE);
    (0..6).for_each(|number| push(&mut video, number).unwrap());
    drop(video);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_once_whoever_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full.mkv");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let mut video = start(plain(5), Place::New(path), SIZE);
    let failed = (0..1000).find_map(|number| push(&mut video, number).err());
    let told = failed.expect("the disk is full").to_string();
    assert!(told.contains("full.mkv") && told.contains("disk is full"), "{told}");
    assert_eq!(video.finish().unwrap_err().to_string(), told);
    assert_eq!(video.written(), 0);
}

#[test]
fn segments_are_cut_between_the_same_frames() {
    let segments = |count| {
        let folder = tempfile::tempdir().unwrap();
        let limits = SegmentLimits { size: Some(20_000), ..SegmentLimits::default() };
        let place = Place::Segments(folder.path().join("a.mkv"), limits);
        let mut video = start(plain(count), place, SIZE);
        (0..60).for_each(|number| push(&mut video, number).unwrap());
        video.finish().unwrap();
        let entries = fs::read_dir(folder.path()).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path: &PathBuf| frames(&read(path))).collect::<Vec<_>>()
    };
    let expected = segments(1);
    assert!(expected.len() > 3, "{} segments", expected.len());
    assert_eq!(expected.iter().map(Vec::len).sum::<usize>(), 60);
    assert!(segments(4) == expected);
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap()
}
