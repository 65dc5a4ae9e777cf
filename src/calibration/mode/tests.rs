use nalgebra::{Matrix3, Vector3};

use super::*;
use crate::{Lens, RectifiedView};

fn calibration() -> StereoCalibration {
    let camera = Camera {
        width: 1280,
        height: 800,
        focal: [808.0, 807.0],
        centre: [634.0, 407.0],
        skew: 0.0,
        lens: Lens::Brown([0.1; 14]),
    };
    let view = |tx| RectifiedView {
        rotation: Matrix3::identity(),
        projection: Matrix3x4::new(
            900.0, 0.0, 640.0, tx, 0.0, 900.0, 400.0, 0.0, 0.0, 0.0, 1.0, 0.0,
        ),
    };
    StereoCalibration {
        left: camera.clone(),
        right: camera,
        rotation: Matrix3::identity(),
        translation: Vector3::new(-0.1, 0.0, 0.0),
        rectification: Some(Rectification {
            width: 1280,
            height: 800,
            left: view(0.0),
            right: view(-90.0),
        }),
    }
}

#[test]
fn the_same_size_changes_nothing() {
    let whole = calibration();
    assert_eq!(whole.for_size(1280, 800).unwrap(), (whole.clone(), Fit::Exact));
}

#[test]
fn half_the_size_halves_about_the_corner_of_the_picture() {
    let (half, fit) = calibration().for_size(640, 400).unwrap();
    assert_eq!(fit, Fit::Scaled { from: (1280, 800), to: (640, 400) });
    let left = &half.left;
    assert_eq!((left.width, left.height, left.focal), (640, 400, [404.0, 403.5]));
    // The centre of a pixel of the half picture lies between two of the whole one.
    assert_eq!(left.centre, [316.75, 203.25]);
    let rectification = half.rectification.unwrap();
    assert_eq!((rectification.width, rectification.height), (640, 400));
    let p = rectification.right.projection;
    assert_eq!((p[(0, 0)], p[(0, 2)], p[(1, 2)], p[(0, 3)]), (450.0, 319.75, 199.75, -45.0));
    let geometry = half_geometry(&p);
    assert_eq!(geometry, 0.1);
}

fn half_geometry(p: &Matrix3x4<f64>) -> f64 {
    -p[(0, 3)] / p[(0, 0)]
}

#[test]
fn other_shapes_are_the_middle_of_the_picture() {
    let (wide, fit) = calibration().for_size(1280, 720).unwrap();
    assert_eq!(fit, Fit::Cropped { from: (1280, 800), to: (1280, 720) });
    assert_eq!((wide.left.focal, wide.left.centre), ([808.0, 807.0], [634.0, 367.0]));
    let p = wide.rectification.unwrap().left.projection;
    assert_eq!((p[(0, 2)], p[(1, 2)], p[(0, 3)]), (640.0, 360.0, 0.0));
    assert!(fit.to_string().contains("assumed that 1280x720"), "{fit}");

    // Half of it, cut to 16:9: row 20 of 400 is the first one.
    let (half, fit) = calibration().for_size(640, 360).unwrap();
    assert_eq!(fit, Fit::Cropped { from: (1280, 800), to: (640, 360) });
    assert_eq!((half.left.focal[0], half.left.centre), (404.0, [316.75, 183.25]));
}

/// A point in space is seen at the same place of the scene through either calibration.
#[test]
fn projections_follow_the_pixels() {
    let whole = calibration();
    for (size, scale, rows) in [((640, 400), 0.5, 0.0), ((1280, 720), 1.0, 40.0)] {
        let (fitted, _) = whole.for_size(size.0, size.1).unwrap();
        let views = |c: &StereoCalibration| c.rectification.clone().unwrap().right.projection;
        let point = nalgebra::Vector4::new(0.3, -0.2, 2.0, 1.0);
        let at = |p: Matrix3x4<f64>| {
            let seen = p * point;
            [seen.x / seen.z, seen.y / seen.z]
        };
        let (before, after) = (at(views(&whole)), at(views(&fitted)));
        assert!(((before[0] + 0.5) * scale - 0.5 - after[0]).abs() < 1e-9);
        assert!(((before[1] + 0.5) * scale - 0.5 - rows - after[1]).abs() < 1e-9);
    }
}

#[test]
fn rounded_halves_are_scaled() {
    let mut odd = calibration();
    for camera in [&mut odd.left, &mut odd.right] {
        (camera.width, camera.height) = (1242, 375);
    }
    for height in [187, 188] {
        let (half, fit) = odd.for_size(621, height).unwrap();
        assert_eq!(fit, Fit::Scaled { from: (1242, 375), to: (621, height) });
        assert_eq!(half.left.height, height);
        // The rectified pictures had another size: they are to be computed again.
        assert_eq!(half.rectification, None);
    }
}

#[test]
fn sizes_that_no_mode_has_are_refused_with_both_named() {
    for (width, height) in [
        (1000, 700),
        (1280, 960),
        (1920, 1080),
        (0, 0),
        (640, 0),
        (800, 480),
        // Larger and of another shape: it may show more than was calibrated.
        (2560, 1440),
        // Nearly half of the picture would be missing, which no mode leaves out.
        (1280, 420),
        (640, 800),
    ] {
        let error = calibration().for_size(width, height).unwrap_err().to_string();
        assert!(
            error.contains("1280x800") && error.contains(&format!("{width}x{height}")),
            "{error}"
        );
        assert!(!error.contains('\n'));
    }
}

/// A calibration of one view with a picture of both views is an error, not guessed at.
#[test]
fn both_eyes_in_one_picture_are_recognised() {
    for (size, flag, half) in [
        ((2560, 800), "--side-by-side", "1280x800"),
        ((1280, 400), "--side-by-side", "640x400"),
        ((1280, 1600), "--top-bottom", "1280x800"),
        ((640, 800), "--top-bottom", "640x400"),
    ] {
        let error = calibration().for_size(size.0, size.1).unwrap_err().to_string();
        assert!(error.contains(flag) && error.contains(half), "{size:?}: {error}");
    }
    // Views that are halves already are squeezed.
    for (size, side) in [((640, 800), "width"), ((320, 400), "width"), ((1280, 400), "height")] {
        let error = calibration().for_views([size; 2], true).unwrap_err().to_string();
        assert!(error.contains(&format!("half their {side}; give --half")), "{size:?}: {error}");
        assert!(!error.contains("--top-bottom") && !error.contains("--side-by-side"), "{error}");
    }
    let error = calibration().for_size(1000, 700).unwrap_err().to_string();
    assert!(!error.contains("--side-by-side") && error.contains("calibrate them"), "{error}");
}

#[test]
fn unlike_cameras_are_adapted_each_by_itself() {
    let mut unlike = calibration();
    unlike.right = Mapping { scale: [0.5; 2], offset: [0.0; 2] }.camera(&unlike.right, (640, 400));
    let sizes = [(1280, 800), (640, 400)];
    assert_eq!(unlike.for_views(sizes, false).unwrap(), (unlike.clone(), [Fit::Exact; 2]));
    // Both at the left camera's size are a pair of like cameras.
    let (like, fits) = unlike.for_views([(1280, 800); 2], false).unwrap();
    let scaled = Fit::Scaled { from: (640, 400), to: (1280, 800) };
    assert_eq!(fits, [Fit::Exact, scaled]);
    assert_eq!(like.right, calibration().right);
    assert_eq!(like.rectification, calibration().rectification);
    // By the left view's size alone, the right camera changes in proportion.
    let (half, fit) = unlike.for_size(640, 400).unwrap();
    assert_eq!(fit, Fit::Scaled { from: (1280, 800), to: (640, 400) });
    assert_eq!((half.right.width, half.right.height), (320, 200));
    let error = unlike.for_views([(1280, 800), (1000, 700)], false).unwrap_err().to_string();
    assert!(error.contains("is for right pictures of 640x400, but these are 1000x700"), "{error}");
}
