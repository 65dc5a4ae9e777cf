//! Odometry of a run: poses, the map, and what is told when the rig is lost.

use std::sync::LazyLock;

use super::*;
use stereod_core::frame::DisparityRange;
use stereod_core::picture::png;
use stereod_core::pose::Pose;

const SIZE: (usize, usize) = (320, 240);

fn options() -> DemoOptions {
    let (width, height) = SIZE;
    let disparities = DisparityRange { min: 0, count: 48 };
    DemoOptions { width, height, disparities, walks: true, ..DemoOptions::default() }
}

fn walk<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let walk = ["run", "--demo", "--demo-size", "320x240", "--set", "demo.walk=true", "-d", "48"];
    [&walk[..], &["--headless", "--frames", "0..45"], more].concat()
}

/// The positions of a file in KITTI's format.
fn positions(path: &Path) -> Vec<[f64; 3]> {
    let text = std::fs::read_to_string(path).unwrap();
    let line = |line: &str| {
        let numbers: Vec<f64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        assert_eq!(numbers.len(), 12, "{line}");
        [3, 7, 11].map(|at| numbers[at])
    };
    text.lines().map(line).collect()
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

#[test]
fn the_path_of_the_demo_is_found_and_its_room_is_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let outputs = ["--poses", "path.kitti", "--map", "room.ply", "--stats", "-"];
    let (status, stdout, stderr) = run(folder.path(), &walk(&outputs));
    assert_eq!(status, 0, "{stderr}");
    let truth: Vec<Pose> = (0..45).map(|number| options().pose(number)).collect();
    let length: f64 =
        truth.windows(2).map(|two| distance(two[0].position_m, two[1].position_m)).sum();
    let found = positions(&folder.path().join("path.kitti"));
    assert_eq!(found.len(), 45);
    for (number, (found, truth)) in found.iter().zip(&truth).enumerate() {
        let error = distance(*found, truth.position_m);
        assert!(error < 0.02 * length, "{number}: {error} m of {length} m");
    }
    let statistics: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(statistics["written"]["poses"], 45);
    assert_eq!(statistics["written"]["map"], 45);
    let odometry = &statistics["odometry"];
    assert_eq!((&odometry["found"], &odometry["lost"]), (&45.into(), &0.into()));
    assert!((odometry["path_m"].as_f64().unwrap() / length - 1.0).abs() < 0.1, "{odometry}");
    let points = points(&folder.path().join("room.ply"));
    assert!(points.len() > 300, "{} points", points.len());
    let mut errors: Vec<f64> = points.iter().filter_map(|&point| error_m(point)).collect();
    errors.sort_by(f64::total_cmp);
    // Voxels have 0.2 m. Beside the column, the first pair shows what is behind it.
    let (half, most) = (errors[errors.len() / 2], errors[errors.len() * 3 / 4]);
    assert!(
        errors.len() > 200 && half < 0.1 && most < 0.2,
        "{half} m, {most} m of {}",
        errors.len()
    );
}

/// The points of a PLY file, whose frame is that of the camera at the first pair.
fn points(path: &Path) -> Vec<[f64; 3]> {
    /// Bytes of a point, which begins with its position.
    const SIZE: usize = 39;
    let file = std::fs::read(path).unwrap();
    let end = file.windows(11).position(|text| text == b"end_header\n").unwrap() + 11;
    let header = String::from_utf8_lossy(&file[..end]).into_owned();
    let count = header.lines().find_map(|line| line.strip_prefix("element vertex ")).unwrap();
    assert_eq!(file.len() - end, SIZE * count.parse::<usize>().unwrap(), "{header}");
    let float = |bytes: &[u8]| f64::from(f32::from_le_bytes(bytes.try_into().unwrap()));
    let point = |bytes: &[u8]| [0, 4, 8].map(|at| float(&bytes[at..at + 4]));
    file[end..].chunks(SIZE).map(point).collect()
}

/// The distance of a point from the surface that the first pair shows there; `None` outside of the image.
fn error_m(point: [f64; 3]) -> Option<f64> {
    /// Pixels to each side that are looked at.
    const REACH: usize = 12;
    static FIRST: LazyLock<StereoPair> =
        LazyLock::new(|| DemoSource::new(options()).unwrap().pair(0));
    let (geometry, truth) = (options().geometry(), FIRST.truth.as_ref().unwrap());
    let inside = |part: f64, centre: f64, side: usize| {
        let at = (geometry.focal_px * part / point[2] + centre).round();
        (at >= 0.0 && at < side as f64).then_some(at as usize)
    };
    let x = inside(point[0], geometry.centre_x_px, SIZE.0)?;
    let y = inside(point[1], geometry.centre_y_px, SIZE.1)?;
    let around = |at: usize, side: usize| at.saturating_sub(REACH)..(at + REACH + 1).min(side);
    let rows = around(y, SIZE.1).flat_map(|y| around(x, SIZE.0).map(move |x| (x, y)));
    let distances = rows.filter_map(|(x, y)| {
        let disparity = truth.disparity[y * SIZE.0 + x];
        Some(distance(geometry.point_m(x as f64, y as f64, disparity.into())?, point))
    });
    distances.min_by(f64::total_cmp)
}

#[test]
fn a_rig_in_the_dark_is_lost_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let scene = DemoSource::new(options()).unwrap();
    let (width, height) = SIZE;
    // Four pairs in the dark; the walk goes on behind it.
    let is_dark = |number: u64| (6..10).contains(&number);
    for number in 0..14 {
        let pair = scene.pair(number);
        for (view, image) in [("l", &pair.left), ("r", &pair.right)] {
            let pixels = match is_dark(number) {
                true => image.pixels().iter().map(|&grey| grey / 128).collect(),
                false => image.pixels().to_vec(),
            };
            let file = png::encode_grey(&pixels, width, height).unwrap();
            std::fs::write(folder.path().join(format!("{view}{number:02}.png")), file).unwrap();
        }
    }
    let geometry = options().geometry();
    let (focal, baseline) = (geometry.focal_px.to_string(), geometry.baseline_m.to_string());
    let source = ["run", "--left", "l%02d.png", "--right", "r%02d.png", "--headless", "-d", "48"];
    let outputs = ["--focal", &focal, "--baseline", &baseline, "--poses", "path.ndjson"];
    let (status, _, stderr) = run(folder.path(), &[&source[..], &outputs].concat());
    assert_eq!(status, 0, "{stderr}");
    assert!(stderr.contains("the rig is lost in pair 6"), "{stderr}");
    assert!(stderr.contains("lost in 4 of 14 pairs"), "{stderr}");
    let text = std::fs::read_to_string(folder.path().join("path.ndjson")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 14);
    for (number, line) in (0..).zip(&lines) {
        assert_eq!(line["lost"].is_string(), is_dark(number), "{line}");
        assert_eq!(line["breaks"], 0, "{line}");
    }
    // The last pose is that of the walk, in the axes of the vehicle.
    let [right, down, ahead] = options().pose(13).position_m;
    let last: [f64; 3] = serde_json::from_value(lines[13]["position_m"].clone()).unwrap();
    assert!(distance(last, [ahead, -right, -down]) < 0.005, "{last:?}: {right} {down} {ahead}");
}

#[test]
fn what_cannot_be_followed_is_refused_with_the_cure() {
    let folder = tempfile::tempdir().unwrap();
    let demo = |more: &[&'static str]| walk(more);
    for (arguments, word) in [
        (demo(&["--poses", "path.csv"]), ".kitti"),
        (demo(&["--map", "map.obj"]), ".glb"),
        (demo(&["--map", "a.ply", "--poses", "a.ply"]), ".tum"),
        (demo(&["--map", "none/a.ply"]), "none"),
    ] {
        let (status, _, stderr) = run(folder.path(), &arguments);
        assert!([1, 2].contains(&status) && stderr.contains(word), "{arguments:?}: {stderr}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    for name in ["l.png", "r.png"] {
        let file = png::encode_grey(&[90; 64 * 48], 64, 48).unwrap();
        std::fs::write(folder.path().join(name), file).unwrap();
    }
    let unknown = ["run", "--left", "l.png", "--right", "r.png", "--headless", "--odometry"];
    let (status, _, stderr) = run(folder.path(), &unknown);
    assert!(status != 0 && stderr.contains("--calibration"), "{stderr}");
}
