//! Raw images become metric results: `--calibration`, `--depth` and `--cloud`.

use serde_json::json;
use stereod::{Eye, StereoGeometry};
use stereod_calibration::format;
use stereod_core::frame::Image;
use stereod_core::picture::numbers::{DepthUnit, Numbers, Quantity};
use stereod_core::rectify::Rectifier;
use stereod_io::sink::video::read_recording_tags;

use super::*;
use crate::common::data::data;

/// A rig whose raw pictures are those of the demo scene: slightly distorted and turned.
pub fn write_rig(folder: &Path) -> Rectifier {
    let (width, height) = SIZE;
    let rig = json!({
        "image_size": [width, height],
        "K1": [[90.0, 0.0, 47.0], [0.0, 90.0, 31.0], [0.0, 0.0, 1.0]],
        "D1": [-0.1, 0.02, 0.001, -0.001, 0.0],
        "K2": [[92.0, 0.0, 48.5], [0.0, 92.0, 32.0], [0.0, 0.0, 1.0]],
        "D2": [-0.12, 0.03, 0.0, 0.0, 0.0],
        "R": [[0.999_95, -0.009_999_833, 0.0], [0.009_999_833, 0.999_95, 0.0], [0.0, 0.0, 1.0]],
        "T": [-0.12, 0.001, 0.0],
    });
    let path = folder.join("rig.json");
    std::fs::write(&path, rig.to_string()).unwrap();
    let loaded = format::read(&[path]).unwrap();
    // The whole image, so that there are pixels that no camera sees.
    loaded.calibration.rectifier(Some(1.0)).unwrap()
}

/// Depth in millimetres of pair `number`, raw, by the plain definitions.
fn depth(rectifier: &Rectifier, number: u64) -> Vec<u16> {
    let [left, right] = rectifier.rectify_pair(&demo_pair(number));
    assert!(left.valid_mask().is_some(), "the corners are unseen");
    let map = match_pair(&left, &right, &params());
    let geometry = rectifier.geometry();
    let mut stored = vec![0; map.values().len()];
    let numbers =
        Numbers::new(Quantity::Depth(DepthUnit::default()), params().range, Some(&geometry))
            .unwrap();
    numbers.encode(map.values(), &mut stored);
    assert!(
        stored.iter().filter(|&&number| number > 0).count() > 500,
        "an empty map proves nothing"
    );
    stored
}

#[test]
fn raw_video_becomes_depth() {
    let folder = tempfile::tempdir().unwrap();
    let rectifier = write_rig(folder.path());
    write_eyes(folder.path(), 4, 4);
    let arguments = [
        "--left",
        "l.mkv",
        "--right",
        "r.mkv",
        "--calibration",
        "rig.json",
        "--alpha",
        "1",
        "--depth",
        "--record",
        "d.mkv",
        "--pictures",
        "p",
        "--headless",
    ];
    let statistics = statistics(folder.path(), &arguments);
    assert_eq!(statistics["matched"], json!(4), "{statistics}");
    let expected: Vec<_> = (0..4).map(|number| depth(&rectifier, number)).collect();
    assert_eq!(recorded(&folder.path().join("d.mkv")), expected);
    let picture = image::open(folder.path().join("p/000002.png")).unwrap();
    assert_eq!(picture.into_luma16().into_raw(), expected[2]);
    let tags = read_recording_tags(&folder.path().join("d.mkv")).unwrap();
    assert_eq!(
        (tags.quantity, tags.geometry),
        (Quantity::Depth(DepthUnit::default()), Some(rectifier.geometry()))
    );
    let described = std::fs::read_to_string(folder.path().join("p/disparity.json")).unwrap();
    assert!(described.contains("depth in metres = value / 1000"), "{described}");

    // In another unit, which its tags name.
    let unit = [&arguments[..], &["--depth-unit", "0.5"]].concat();
    super::statistics(folder.path(), &unit);
    let tags = read_recording_tags(&folder.path().join("d.mkv")).unwrap();
    assert_eq!(tags.quantity, Quantity::Depth(DepthUnit::of_millimetres(0.5)));
    let halves = recorded(&folder.path().join("d.mkv"));
    for (&half, &whole) in halves[2].iter().zip(&expected[2]).filter(|(half, _)| **half != 0) {
        assert!(half.abs_diff(2 * whole) <= 1, "{half} of 0.5 mm, {whole} mm");
    }
    let described = std::fs::read_to_string(folder.path().join("p/disparity.json")).unwrap();
    assert!(described.contains("depth in metres = value / 2000"), "{described}");
    for unit in [&["--depth", "--depth-unit", "20"][..], &["--depth-unit", "10"]] {
        let (status, _, stderr) = run(folder.path(), &[&["run", "--demo"], unit].concat());
        assert_eq!(status, 2, "{stderr}");
        assert!(stderr.contains("depth") && stderr.contains("unit"), "{stderr}");
    }

    // The same in the configuration, and disparity with the calibration in its tags.
    let config = "[calibration]\nfile = \"rig.json\"\nalpha = 1.0\n";
    std::fs::write(folder.path().join("c.toml"), config).unwrap();
    let arguments =
        ["--left", "l.mkv", "--right", "r.mkv", "--config", "c.toml", "--record", "e.mkv"];
    super::statistics(folder.path(), &arguments);
    let tags = read_recording_tags(&folder.path().join("e.mkv")).unwrap();
    assert_eq!((tags.quantity, tags.geometry), (Quantity::Disparity, Some(rectifier.geometry())));
}

#[test]
fn pictures_become_depth_and_points() {
    let folder = tempfile::tempdir().unwrap();
    let rectifier = write_rig(folder.path());
    let pair = demo_pair(3);
    let save = |name: &str, image: &Image| {
        let (width, height) = SIZE;
        // In colour: red unchanged, green reduced, blue zero.
        let pixels = image.pixels().iter().flat_map(|&v| [v, v / 2, 0]).collect();
        let picture = image::RgbImage::from_raw(width as u32, height as u32, pixels).unwrap();
        picture.save(folder.path().join(name)).unwrap();
    };
    save("l.png", &pair.left);
    save("r.png", &pair.right);
    let arguments =
        ["match", "l.png", "r.png", "-d", "24", "--calibration", "rig.json", "--alpha", "1"];
    let rest = ["--depth", "-o", "z.png", "--cloud", "c.ply", "--verify", "--engine", "cpu"];
    let (status, stdout, stderr) = run(folder.path(), &[&arguments[..], &rest].concat());
    assert_eq!(status, 0, "{stderr}");
    assert!(stdout.contains("identical with the reference"), "{stdout}");
    let depth = image::open(folder.path().join("z.png")).unwrap().into_luma16().into_raw();
    let known = depth.iter().filter(|&&number| number > 0).count();
    assert!(known > 500, "{known}");

    // The cloud: every known pixel at its depth, in the colour of the rectified left picture.
    let cloud = std::fs::read(folder.path().join("c.ply")).unwrap();
    let end = cloud.windows(11).position(|part| part == b"end_header\n").unwrap() + 11;
    let points: Vec<_> = cloud[end..].chunks_exact(15).collect();
    let mut red = vec![0; depth.len()];
    rectifier.map(Eye::Left).apply(&pair.left, &mut red);
    let geometry: StereoGeometry = rectifier.geometry();
    // Floats have no steps of 1/16 px; rounded to such steps they are the numbers, in millimetres up to 65.535 m.
    let scale = geometry.focal_px * geometry.baseline_m;
    let stored = |z: f64| 1000.0 * scale / ((16.0 * scale / z).round() / 16.0);
    let is_of = |z: f64, number: u16| (stored(z) - f64::from(number)).abs() <= 0.51;
    let depth_of = |point: &[u8]| f64::from(f32::from_le_bytes(point[8..12].try_into().unwrap()));
    let mut at = points.iter().filter(|point| stored(depth_of(point)) < 65_535.5);
    for (pixel, &number) in depth.iter().enumerate().filter(|&(_, &number)| number > 0) {
        let point = at.next().unwrap();
        let float = |i: usize| f32::from_le_bytes(point[4 * i..][..4].try_into().unwrap());
        let (x, z) = ((pixel % SIZE.0) as f64, depth_of(point));
        assert!(is_of(z, number), "{z} {number}");
        let expected = (x - geometry.centre_x_px) * z / geometry.focal_px;
        assert!((f64::from(float(0)) - expected).abs() < 1e-4 * z.max(1.0), "{expected}");
        assert_eq!((point[12], point[14]), (red[pixel], 0));
    }

    // Floats in metres.
    let rest = ["--depth", "-o", "z.pfm"];
    assert_eq!(run(folder.path(), &[&arguments[..], &rest].concat()).0, 0);
    let file = std::fs::read(folder.path().join("z.pfm")).unwrap();
    let floats: Vec<f32> = file[file.len() - 4 * depth.len()..]
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
        .collect();
    let last_row = &depth[depth.len() - SIZE.0..];
    for (&metres, &number) in floats.iter().zip(last_row) {
        assert!(number == 0 || is_of(f64::from(metres), number));
    }
}

#[test]
fn what_is_missing_or_contradictory_is_said_before_anything_begins() {
    let folder = tempfile::tempdir().unwrap();
    write_rig(folder.path());
    std::fs::write(folder.path().join("half.json"), "{\"K1\": [[90.0, 0.0").unwrap();
    for (arguments, expected) in [
        (&["run", "--left", "l.mkv", "--right", "r.mkv", "--depth"][..], "--calibration FILE"),
        (&["match", "l.png", "r.png", "-o", "z.png", "--near", "1"], "--colour or --cloud"),
        (&["run", "--demo", "--near", "2", "--far", "1"], "more than output.near_m"),
        (&["run", "--demo", "--focal", "400"], "both --focal and --baseline"),
        (&["run", "--demo", "--calibration", "none.toml"], "none.toml"),
        (&["run", "--demo", "--calibration", "half.json"], "half.json"),
        (&["run", "--demo", "--demo-size", "100x90", "--calibration", "rig.json"], "100x90"),
        (&["run", "--demo", "--calibration", "rig.json", "--alpha", "2"], "alpha"),
        (&["match", "l.png", "r.png", "-o", "z.pgm", "--depth"], ".pfm"),
        (&["match", "l.png", "r.png", "-o", "z.png", "--cloud", "c.ply"], "--calibration FILE"),
        (
            &[
                "match",
                "l.png",
                "r.png",
                "-o",
                "z.png",
                "--cloud",
                "c.obj",
                "--calibration",
                "rig.json",
            ],
            ".ply",
        ),
    ] {
        let (status, _, stderr) = run(folder.path(), arguments);
        assert_eq!(status, 2, "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}

/// A real rig with one known distance: a camera above a patio, whose floor is 2.75 m away.
#[test]
fn the_floor_of_the_patio_is_where_it_is() {
    let Some(rig) = data("oakd_patio") else { return };
    let folder = tempfile::tempdir().unwrap();
    let name = |file: &str| rig.join(file).to_str().unwrap().to_owned();
    let (left, right) = (name("left.mp4"), name("right.mp4"));
    // The first two seconds are over-exposed.
    let arguments = [
        "run",
        "-d",
        "64",
        "--paths",
        "4",
        "--left",
        &left,
        "--right",
        &right,
        "--start",
        "2.1",
        "--frames",
        "2",
        "--calibration",
        &name("stereo_opencv.json"),
        "--depth",
        "--pictures",
        "p",
        "--headless",
    ];
    let (status, _, stderr) = run(folder.path(), &arguments);
    assert_eq!(status, 0, "{stderr}");
    let picture = image::open(folder.path().join("p/000064.png")).unwrap().into_luma16();
    let mut floor: Vec<u16> = (300..500)
        .flat_map(|y| (500..1100).map(move |x| (x, y)))
        .map(|(x, y)| picture.get_pixel(x, y).0[0])
        .filter(|&number| number > 0)
        .collect();
    assert!(floor.len() > 60_000, "{} pixels of the floor are known", floor.len());
    floor.sort_unstable();
    let median = f64::from(floor[floor.len() / 2]) / 1000.0;
    assert!((median - 2.75).abs() < 0.03 * 2.75, "the floor is at {median} m");
}
