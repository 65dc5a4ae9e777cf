//! The folder of numbered pictures.

use std::fs;
use std::time::Duration;

use stereod::{DisparityRange, StereoGeometry};
use stereod_core::picture::encoding::Encoding;
use stereod_core::picture::numbers::Quantity;
use stereod_io::labels::Labels;
use stereod_io::sink::pictures::{PICTURES, Pictures};
use stereod_io::sink::still::StillFormat;
use stereod_io::sink::{Sink, StagesInTime, StreamInfo};

use crate::common::maps::{Random, matched, random_values};

fn stream(min: i32, count: usize) -> StreamInfo {
    let range = DisparityRange { min, count };
    let geometry = StereoGeometry {
        focal_px: 400.0,
        baseline_m: 0.12,
        centre_x_px: 15.0,
        centre_y_px: 3.5,
        right_centre_x_px: 16.0,
    };
    StreamInfo {
        size: (31, 7),
        rate: None,
        range,
        geometry: Some(geometry),
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

#[test]
fn numbered_pictures_hold_the_maps_and_a_file_says_how() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("made/with/parents");
    let stream = stream(-5, 90);
    let mut pictures =
        Pictures::create(&folder, &stream, Quantity::Disparity, StillFormat::Png).unwrap();
    let mut random = Random(3);
    let encoding = Encoding::for_range(stream.range);
    for sequence in [0, 1, 42, 1_234_567] {
        let values = random_values(&mut random, 31 * 7, stream.range);
        pictures.consume(&matched(31, values.clone(), sequence, Duration::ZERO)).unwrap();
        let path = folder.join(format!("{sequence:06}.png"));
        let image::DynamicImage::ImageLuma16(picture) = image::open(path).unwrap() else {
            panic!("not 16-bit grey");
        };
        assert_eq!(picture.dimensions(), (31, 7));
        let mut decoded = vec![0; values.len()];
        encoding.decode(picture.as_raw(), &mut decoded);
        assert_eq!(decoded, values);
    }
    pictures.finish().unwrap();
    // With the record of the files.
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 6);
    let text = fs::read_to_string(folder.join(PICTURES.description)).unwrap();
    let description: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(description["scale"], 256);
    assert_eq!(description["offset"], -5);
    assert_eq!(description["focal_px"], 400.0);
    assert_eq!(description["right_centre_x_px"], 16.0);
    // Images of another run, and their description, are replaced when the first one is written.
    drop(pictures);
    let unknown = StreamInfo { geometry: None, ..stream };
    let mut pictures =
        Pictures::create(&folder, &unknown, Quantity::Disparity, StillFormat::Png).unwrap();
    assert_eq!(fs::read_to_string(folder.join(PICTURES.description)).unwrap(), text);
    pictures.consume(&matched(31, vec![16; 31 * 7], 42, Duration::ZERO)).unwrap();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);
    let text = fs::read_to_string(folder.join(PICTURES.description)).unwrap();
    let description: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(description["baseline_m"], serde_json::Value::Null);
}

#[test]
fn wrong_places_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = Pictures::create(&file, &stream(0, 64), Quantity::Disparity, StillFormat::Png)
        .unwrap_err()
        .to_string();
    assert!(error.contains("is not a folder"), "{error}");
    let error = Pictures::create(
        &file.join("below"),
        &stream(0, 64),
        Quantity::Disparity,
        StillFormat::Png,
    )
    .unwrap_err()
    .to_string();
    assert!(error.contains("file/below"), "{error}");
}
