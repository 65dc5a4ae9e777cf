//! Against OpenCV, and there and back.

use super::*;
use crate::examples::{self, brown, camera};

const K: [f64; 4] = [808.25, 807.5, 634.5, 407.75];
const RAYS: [[f64; 2]; 5] = [[0.0, 0.0], [0.3, -0.2], [-0.55, 0.41], [0.7, 0.45], [-0.12, -0.48]];

fn check(lens: Lens, expected: [[f64; 2]; 5]) {
    let projection = camera((1280, 800), K, lens).projection();
    for ([x, y], expected) in RAYS.into_iter().zip(expected) {
        let pixel = projection.pixel(Vector3::new(x, y, 1.0) * 3.0).unwrap();
        for i in 0..2 {
            assert!((pixel[i] - expected[i]).abs() < 1e-9, "{pixel:?}, not {expected:?}");
        }
    }
}

// cv2.projectPoints and cv2.fisheye.projectPoints, with 4.10 and 5.0 alike.

#[test]
fn all_fourteen_coefficients() {
    check(
        examples::all_coefficients(),
        [
            [634.5, 407.75],
            [866.704565322035, 253.13159959188812],
            [252.77609114213487, 691.8750691508096],
            [1100.158492983695, 707.0313841691169],
            [545.8387645595725, 53.56791669425985],
        ],
    );
}

#[test]
fn the_fisheye_lens() {
    check(
        Lens::Fisheye([-0.02, 0.013, -0.007, 0.0011]),
        [
            [634.5, 407.75],
            [866.701455094348, 253.0926745118581],
            [247.14709019286522, 696.2360436170112],
            [1102.9077852428788, 708.5898726748815],
            [544.7667297837479, 49.149984165178864],
        ],
    );
}

/// OpenCV 5.0: cv2.fisheye.projectPoints with alpha = skew / fx.
#[test]
fn a_skewed_fisheye_camera() {
    let lens = Lens::Fisheye([0.05, -0.01, 0.004, -0.001]);
    let camera = Camera { skew: -0.9, ..camera((640, 480), [260.0, 261.0, 322.0, 238.0], lens) };
    for (point, expected) in [
        ([0.31, -0.22, 1.1], [393.10510895, 187.46836115]),
        ([1.5, 2.0, 0.7], [537.00411234, 527.1090846]),
    ] {
        let projection = camera.projection();
        let pixel = projection.pixel(Vector3::from(point)).unwrap();
        assert!((pixel[0] - expected[0]).hypot(pixel[1] - expected[1]) < 1e-7, "{pixel:?}");
        let back = projection.direction(pixel).unwrap();
        assert!((back - Vector3::from(point).normalize()).norm() < 1e-9);
    }
}

#[test]
fn the_way_back_finds_every_pixel() {
    let rigs = [examples::oakd(), examples::chessboards(), examples::tilted(), examples::fisheye()];
    for camera in rigs.iter().flat_map(|rig| [&rig.left, &rig.right]) {
        let projection = camera.projection();
        let mut found = 0;
        for (x, y) in (0..400).map(|i| (i % 20, i / 20)) {
            let pixel = [x, y].map(|v| v as f64 / 19.0);
            let pixel = [pixel[0] * camera.width as f64, pixel[1] * camera.height as f64];
            let Some(direction) = projection.direction(pixel) else { continue };
            found += 1;
            assert!((direction.norm() - 1.0).abs() < 1e-12);
            let again = projection.pixel(direction).unwrap();
            let miss = (again[0] - pixel[0]).hypot(again[1] - pixel[1]) / camera.focal[0];
            assert!(miss < 1e-10, "{pixel:?}: off by {miss} focal lengths");
        }
        // No direction leads to the ring around the pole of an OAK-D's lens.
        let pole = matches!(camera.lens, Lens::Brown(k) if k[5] < -1.0);
        let least = if pole { 300 } else { 400 };
        assert!(found >= least, "{found} of 400 for {camera:?}");
    }
}

#[test]
fn what_lies_behind_is_not_seen_but_beside_a_fisheye_is() {
    let pinhole = camera((640, 480), [500.0, 500.0, 320.0, 240.0], brown([])).projection();
    assert_eq!(pinhole.pixel(Vector3::new(1.0, 1.0, -1.0)), None);
    assert_eq!(pinhole.pixel(Vector3::new(1.0, 0.0, 0.0)), None);
    assert_eq!(pinhole.pixel(Vector3::new(0.1, 0.0, 0.5)), Some([420.0, 240.0]));
    let wide = camera((640, 480), [100.0; 4], Lens::Fisheye([0.0; 4])).projection();
    let beside = wide.pixel(Vector3::new(0.0, 2.0, 0.0)).unwrap();
    assert!((beside[1] - 100.0 - 50.0 * std::f64::consts::PI).abs() < 1e-9);
    let direction = wide.direction([100.0, 100.0 + 200.0]).unwrap();
    assert!((direction - Vector3::new(0.0, 2f64.sin(), 2f64.cos())).norm() < 1e-12);
}

#[test]
fn a_lens_model_that_folds_back_shows_nothing_twice() {
    // r (1 - 0.3 r^2) is largest at r = 1.054; r = 1.6 gives the same value as 0.4.
    let folding = camera((640, 480), [300.0, 300.0, 320.0, 240.0], brown([-0.3]));
    let projection = folding.projection();
    assert!((projection.limit - 1.054f64.atan()).abs() < 0.01, "{}", projection.limit);
    assert!(projection.pixel(Vector3::new(1.0, 0.0, 1.0)).is_some());
    assert_eq!(projection.pixel(Vector3::new(1.6, 0.0, 1.0)), None);
    // No direction is that far out: the sensor's corner.
    assert_eq!(projection.direction([639.0, 479.0]), None);
    // The pole next to a zero of an OAK-D's lens, at r = 0.776, is no fold.
    for camera in [examples::oakd().left, examples::oakd().right] {
        let projection = camera.projection();
        assert!(projection.limit > 1.0, "{}", projection.limit);
        assert!(projection.pixel(Vector3::new(0.8, 0.4, 1.0)).is_some());
    }
}
