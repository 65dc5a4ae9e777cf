//! Damaged files fed to the library.

use std::fs;
use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;

use image::{DynamicImage, ImageFormat};
use stereod::settings::Layers;
use stereod_calibration::format::{self, Format, ReadOptions};
use stereod_core::memory::Budget;
use stereod_core::picture::orientation::Orient;
use stereod_core::picture::still::{read_colours, read_still};
use stereod_core::picture::tone::Tone;
use stereod_io::container::{Stated, refusal};
use stereod_io::control::Switch;
use stereod_io::sink::video::read_recording_tags;
use stereod_io::source::gst::{self, GstOptions};
use stereod_io::source::spec::SourceSpec;

use super::mutate;
use crate::{VIDEOS, scene, within_patience, write_video};

/// Memory budget for reading; `budget.rs` tests that it is kept.
const MIB: u32 = 512;

fn pictures() -> Vec<(&'static str, Vec<u8>)> {
    let grey = DynamicImage::from(scene(40, 24, 0));
    let encoded = |picture: &DynamicImage, format| {
        let mut file = Cursor::new(Vec::new());
        picture.write_to(&mut file, format).unwrap();
        file.into_inner()
    };
    let deep = DynamicImage::from(grey.to_rgba16());
    let mut plain = b"P2\n# plain\n6 2\n255\n".to_vec();
    plain.extend(b"1 2 3 4 5 6\n7 8 9 10 11 255\n");
    let jpeg = encoded(&grey, ImageFormat::Jpeg);
    let pgm = encoded(&grey, ImageFormat::Pnm);
    let with = |file: &[u8], at: usize, part: &[u8]| [&file[..at], part, &file[at..]].concat();
    // Behind the header of the PNG: an animation of 3 images.
    let control = b"\0\0\0\x08acTL\0\0\0\x03\0\0\0\0\0\0\0\0";
    let states_packing = b"\xff\xe3\0\x12_JPSJPS_\0\x04\0\x04\x02\x01\0\0";
    vec![
        ("apng", with(&encoded(&grey, ImageFormat::Png), 33, control)),
        ("mpo", jpeg.repeat(2)),
        ("jps", with(&jpeg, 2, states_packing)),
        ("pgm", pgm.repeat(2)),
        ("png", encoded(&grey, ImageFormat::Png)),
        ("png", encoded(&deep, ImageFormat::Png)),
        ("jpg", jpeg),
        ("jpg", encoded(&DynamicImage::from(grey.to_rgb8()), ImageFormat::Jpeg)),
        ("pgm", pgm),
        ("ppm", encoded(&DynamicImage::from(grey.to_rgb8()), ImageFormat::Pnm)),
        ("pgm", plain),
        ("bmp", encoded(&grey, ImageFormat::Bmp)),
        ("tif", encoded(&deep, ImageFormat::Tiff)),
        ("exr", encoded(&DynamicImage::from(grey.to_rgb32f()), ImageFormat::OpenExr)),
    ]
}

#[test]
fn damaged_pictures_are_refused_or_read() {
    Budget::set_of_process(Some(MIB));
    let folder = tempfile::tempdir().unwrap();
    let (mut read, mut refused) = (0, 0);
    for (kind, (extension, good)) in pictures().into_iter().enumerate() {
        for seed in 0..60 {
            let path = folder.path().join(format!("{kind}-{seed}.{extension}"));
            fs::write(&path, mutate::bytes(&good, seed)).unwrap();
            let name = path.display().to_string();
            let outcome = within_patience(name.clone(), move || {
                read_still(&path, Tone::default())
                    .and_then(|grey| Ok((grey, read_colours(&path, Orient::Ignore)?)))
            });
            match outcome {
                Ok((grey, [red, ..])) => {
                    assert_eq!((grey.width(), grey.height()), (red.width(), red.height()));
                    read += 1;
                }
                Err(error) => {
                    let said = format!("{error:#}");
                    assert!(said.contains(&name), "{said}");
                    refused += 1;
                }
            }
        }
    }
    // Both outcomes occur often.
    assert!(read > 50 && refused > 50, "{read} read, {refused} refused");
}

/// Plays two videos and returns the pairs, or a message that names a file.
fn play(left: &Path, right: &Path) -> Result<u64, String> {
    let spec = SourceSpec::two(left, right);
    let mut source =
        gst::open(&spec, &GstOptions::default()).map_err(|error| format!("{error:#}"))?;
    let mut pairs = 0;
    source
        .run(&Switch::default(), &mut |_, _| {
            pairs += 1;
            // No damage can turn six images into many.
            if pairs > 1000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .map_err(|error| format!("{error:#}"))?;
    Ok(pairs)
}

#[test]
fn damaged_containers_state_something_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let others = [
        ("ogv", "theoraenc ! oggmux"),
        ("flv", "x264enc tune=zerolatency ! flvmux"),
        ("y4m", "video/x-raw,format=I420 ! y4menc"),
        ("mov", "x264enc tune=zerolatency ! qtmux"),
    ];
    for (extension, coding) in VIDEOS.into_iter().chain(others) {
        let whole = folder.path().join(format!("whole.{extension}"));
        write_video(&whole, 0, coding);
        assert_eq!(refusal(&whole).unwrap(), None, "{extension}");
        assert_eq!(Stated::read(&whole), Stated::default(), "{extension}");
        let good = fs::read(&whole).unwrap();
        let joined = [&good[..], &good].concat();
        let path = folder.path().join(format!("joined.{extension}"));
        fs::write(&path, &joined).unwrap();
        let said = refusal(&path).unwrap().unwrap();
        assert!(said.contains(&format!("head -c {} ", good.len())), "{said}");
        for seed in 0..60 {
            let path = folder.path().join(format!("{seed}.{extension}"));
            fs::write(&path, mutate::bytes(&joined, seed)).unwrap();
            within_patience(path.display().to_string(), move || {
                let _ = (refusal(&path).unwrap(), Stated::read(&path));
            });
        }
    }
}

#[test]
fn damaged_videos_are_refused_or_played() {
    Budget::set_of_process(Some(MIB));
    let folder = tempfile::tempdir().unwrap();
    let (mut played, mut refused) = (0, 0);
    for (extension, coding) in VIDEOS {
        let right = folder.path().join(format!("right.{extension}"));
        write_video(&right, 3, coding);
        let whole = folder.path().join(format!("left.{extension}"));
        write_video(&whole, 0, coding);
        assert_eq!(play(&whole, &right), Ok(6));
        let good = fs::read(&whole).unwrap();
        for seed in 0..14 {
            let left = folder.path().join(format!("{seed}.{extension}"));
            fs::write(&left, mutate::bytes(&good, seed)).unwrap();
            let (name, right) = (left.display().to_string(), right.clone());
            match within_patience(name.clone(), move || play(&left, &right)) {
                Ok(pairs) => {
                    assert!(pairs <= 1000, "{name}: {pairs} pairs");
                    played += 1;
                }
                Err(said) => {
                    assert!(!said.is_empty());
                    refused += 1;
                }
            }
        }
    }
    assert!(played > 3 && refused > 3, "{played} played, {refused} refused");
}

#[test]
fn damaged_recordings_have_tags_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.mkv");
    write_video(&path, 0, VIDEOS[0].1);
    let good = fs::read(&path).unwrap();
    for seed in 0..200 {
        fs::write(&path, mutate::bytes(&good, seed)).unwrap();
        // It is not one of our recordings, whole or damaged.
        assert!(read_recording_tags(&path).is_err(), "{seed}");
    }
}

/// Calibrations of every format, from existing files or written here.
fn calibrations() -> Vec<Vec<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calibrations");
    let file = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let opencv = ["opencv.yml", "opencv.json", "opencv.xml"].map(|name| vec![file(name)]);
    let yaml = &opencv[0][0];
    let loaded = format::parse(&[("opencv.yml", yaml)], &ReadOptions::default()).unwrap();
    let written = [Format::Own, Format::OpenCvYaml, Format::Ros]
        .map(|format| format::render(&loaded.calibration, &loaded.report, format).unwrap());
    let two = vec![file("intrinsics.yml"), file("extrinsics.yml")];
    opencv.into_iter().chain(written).chain([two]).collect()
}

#[test]
fn damaged_calibrations_are_refused_or_read() {
    let (mut read, mut refused) = (0, 0);
    for (kind, good) in calibrations().into_iter().enumerate() {
        for seed in 0..120 {
            let texts: Vec<String> =
                good.iter().map(|text| mutate::text(text, seed + kind as u64)).collect();
            let outcome = within_patience(format!("calibration {kind}, seed {seed}"), move || {
                let names = ["a", "b"].into_iter();
                let files: Vec<_> = names.zip(texts.iter().map(String::as_str)).collect();
                let size = Some((640, 480));
                let options = ReadOptions { size, ..ReadOptions::default() };
                let loaded = format::parse(&files, &options)?;
                // Every calibration that can be read can also be printed.
                format::render(&loaded.calibration, &loaded.report, Format::Own)?;
                let _ = loaded.calibration.rectified(None);
                Ok::<_, stereod_calibration::CalibrationError>(())
            });
            match outcome {
                Ok(()) => read += 1,
                Err(error) => {
                    assert!(!error.to_string().contains('\n'), "{error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(read > 50 && refused > 50, "{read} read, {refused} refused");
}

#[test]
fn damaged_configurations_are_refused_or_read() {
    let (mut read, mut refused) = (0, 0);
    for seed in 0..300 {
        let text = mutate::text(include_str!("../../config/default.toml"), seed);
        let outcome = within_patience(format!("configuration, seed {seed}"), move || {
            let mut layers = Layers::new();
            layers.file_text(Path::new("config.toml"), &text);
            layers.finish().map(|loaded| stereod::settings::to_toml(&loaded, true))
        });
        match outcome {
            Ok(_) => read += 1,
            Err(error) => {
                assert!(error.mistakes().iter().all(|mistake| mistake.contains("config.toml")));
                refused += 1;
            }
        }
    }
    assert!(read > 30 && refused > 30, "{read} read, {refused} refused");
}
