use nalgebra::{Matrix3x4, Rotation3};

use super::*;
use crate::RectifiedView;

/// Two cameras 0.1 m apart, slightly turned, with a rectification that fits.
fn good() -> StereoCalibration {
    let camera = Camera {
        width: 640,
        height: 480,
        focal: [500.0, 501.0],
        centre: [320.0, 240.0],
        skew: 0.0,
        lens: Lens::Brown([0.0; 14]),
    };
    let turn = |x, y, z| Rotation3::from_scaled_axis(Vector3::new(x, y, z)).into_inner();
    let view = |rotation, tx| RectifiedView {
        rotation,
        projection: Matrix3x4::new(
            480.0, 0.0, 321.0, tx, 0.0, 480.0, 241.0, 0.0, 0.0, 0.0, 1.0, 0.0,
        ),
    };
    let rectification = Rectification {
        width: 640,
        height: 480,
        left: view(turn(0.01, -0.02, 0.005), 0.0),
        right: view(turn(-0.01, 0.01, -0.003), -48.0),
    };
    let (rotation, translation) = rectification.pose();
    StereoCalibration {
        left: camera.clone(),
        right: camera,
        rotation,
        translation,
        rectification: Some(rectification),
    }
}

/// Returns the error for a calibration after a change.
fn refused(change: impl FnOnce(&mut StereoCalibration)) -> String {
    let mut calibration = good();
    change(&mut calibration);
    let sources = Sources::default();
    let result = make_rotations(&mut calibration, &sources)
        .and_then(|()| check(&calibration, &sources).map(|_| ()));
    let message = result.expect_err("the change is a mistake").to_string();
    assert!(!message.contains('\n') && !message.contains("NaN degrees"), "{message}");
    message
}

fn bare(change: impl FnOnce(&mut StereoCalibration)) -> String {
    refused(|calibration| {
        calibration.rectification = None;
        change(calibration);
    })
}

#[test]
fn a_good_calibration_passes_without_a_word() {
    let mut calibration = good();
    make_rotations(&mut calibration, &Sources::default()).unwrap();
    assert_eq!(calibration, good(), "good rotations stay as they are");
    assert_eq!(check(&calibration, &Sources::default()).unwrap(), Vec::<String>::new());
}

#[test]
fn cameras_that_cannot_be() {
    for (message, words) in [
        (bare(|c| c.left.focal[1] = -500.0), "the left camera: focal lengths of 500 and -500"),
        (bare(|c| c.right.focal[0] = 0.0), "the right camera: focal lengths"),
        (bare(|c| c.left.focal[0] = f64::NAN), "not finite"),
        (bare(|c| c.left.lens = Lens::Fisheye([0.0, f64::INFINITY, 0.0, 0.0])), "not finite"),
        (bare(|c| c.left.centre[0] = 900.0), "outside the 640x480 picture"),
        (bare(|c| c.right.centre[1] = -100.0), "outside the 640x480 picture"),
        (bare(|c| c.right.width = 0), "no size"),
        (
            bare(|c| (c.left.focal, c.left.centre) = ([0.75, 1.0], [0.5, 0.49])),
            "divided by the image size",
        ),
        (
            bare(|c| (c.left.focal, c.left.centre) = ([0.75, 0.75], [0.5, 0.37])),
            "divided by the image width",
        ),
        (bare(|c| (c.left.focal, c.left.centre) = ([2.9, 2.9], [1.95, 1.4])), "in mm"),
        (bare(|c| (c.left.focal, c.left.centre) = ([100.0, 100.0], [18.0, 12.0])), "in mm"),
        (bare(|c| c.left.centre = [0.0; 2]), "was not set"),
    ] {
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn poses_that_cannot_be() {
    let half_turn = Rotation3::from_scaled_axis(Vector3::new(0.0, 0.0, 3.1)).into_inner();
    let quarter_turn = Rotation3::from_scaled_axis(Vector3::new(0.0, 0.05, -1.5)).into_inner();
    let backwards = Rotation3::from_scaled_axis(Vector3::new(0.0, 3.0, 0.0)).into_inner();
    for (message, words) in [
        (bare(|c| c.rotation *= 1.1), "no rotation matrix"),
        (bare(|c| c.rotation = Matrix3::zeros()), "no rotation matrix"),
        (bare(|c| c.rotation[(0, 1)] = f64::NAN), "no rotation matrix"),
        (bare(|c| c.rotation.column_mut(2).neg_mut()), "mirror image"),
        (bare(|c| c.rotation = half_turn), "mounted upside down"),
        (bare(|c| c.rotation = quarter_turn), "mounted on its side"),
        (bare(|c| c.rotation = backwards), "in the same direction?"),
        (bare(|c| c.translation = Vector3::zeros()), "baseline is 0"),
        (bare(|c| c.translation[1] = f64::NAN), "not finite"),
        (bare(|c| c.translation *= 1000.0), "--unit mm"),
        (bare(|c| c.translation.x = 0.1), "the right camera stands 100.0 mm to the left"),
        (bare(|c| c.translation = Vector3::new(-0.01, -0.1, 0.0)), "one above the other"),
        (bare(|c| c.translation = Vector3::new(-0.01, 0.0, 0.1)), "one behind the other"),
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn rectifications_that_contradict() {
    fn views(c: &mut StereoCalibration) -> &mut Rectification {
        c.rectification.as_mut().expect("it has one")
    }
    let turned = Rotation3::from_scaled_axis(Vector3::new(0.0, 0.02, 0.0)).into_inner();
    for (message, words) in [
        (
            refused(|c| c.translation *= 1.01),
            "the baseline is 0.100000 m by the projections and 0.101",
        ),
        (refused(|c| views(c).right.projection[(0, 3)] *= 1000.0), "the baseline is 100.0"),
        (refused(|c| c.rotation = turned * c.rotation), "turned 1.15 degrees otherwise"),
        (
            refused(|c| {
                // Both views alike, so that they still agree with each other.
                let r = views(c);
                r.left.rotation = turned * r.left.rotation;
                r.right.rotation = turned * r.right.rotation;
            }),
            "do not turn the baseline into the rows",
        ),
        (refused(|c| views(c).right.projection[(1, 2)] += 2.0), "cy is 241.000 px"),
        (refused(|c| views(c).right.projection[(0, 0)] += 2.0), "fx is 480.000 px"),
        (refused(|c| views(c).left.projection[(0, 0)] = -480.0), "focal length below 0"),
        (refused(|c| views(c).left.projection[(0, 1)] = 1.0), "none of a rectified camera"),
        (refused(|c| views(c).right.projection[(0, 3)] = f64::NAN), "not finite"),
        (
            refused(|c| {
                let r = views(c);
                std::mem::swap(&mut r.left.projection, &mut r.right.projection);
            }),
            "swapped",
        ),
        (refused(|c| views(c).left.projection[(0, 3)] = 5.0), "only the right one has it"),
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn few_digits_are_mended() {
    let mut calibration = good();
    calibration.rectification = None;
    let exact = calibration.rotation;
    calibration.rotation = exact.map(|value| (value * 1e4).round() / 1e4);
    make_rotations(&mut calibration, &Sources::default()).unwrap();
    let rotation = calibration.rotation;
    assert!((rotation.transpose() * rotation - Matrix3::identity()).amax() < 1e-14);
    assert!((rotation - exact).amax() < 1e-4);
}

#[test]
fn what_is_only_unlikely_is_a_note() {
    let notes = |change: fn(&mut StereoCalibration)| {
        let mut calibration = good();
        calibration.rectification = None;
        change(&mut calibration);
        check(&calibration, &Sources::default()).unwrap()
    };
    for (notes, words) in [
        (notes(|c| c.left.centre[0] = 600.0), "600.0 px is far from the middle"),
        (notes(|c| c.right.focal[0] = 2000.0), "differ much"),
        (notes(|c| (c.left.width, c.left.height) = (480, 640)), "height by width"),
        (notes(|c| c.translation *= 40.0), "a baseline of 4.00 m is long"),
    ] {
        assert!(notes.len() == 1 && notes[0].contains(words), "{notes:?}");
    }
}

#[test]
fn the_likeliest_unit_is_named_first() {
    let told = |metres: f64, unit_m: f64| {
        let sources = Sources { unit_m, ..Sources::default() };
        let mut calibration = good();
        calibration.rectification = None;
        calibration.translation *= metres / calibration.translation.norm();
        match check(&calibration, &sources) {
            Ok(notes) => notes.concat(),
            Err(error) => error.to_string(),
        }
    };
    for (metres, unit_m, words) in [
        (10.01, 1.0, "100 mm with --unit cm, 10 mm with --unit mm, 254 mm with --unit inch"),
        (
            65.0,
            1.0,
            "65 mm with --unit mm, 650 mm with --unit cm; `stereod calibration convert --unit mm FILE",
        ),
        (4.0, 1.0, "40 mm with --unit cm, 102 mm with --unit inch"),
        // Metres in a file whose unit is the centimetre.
        (0.001, 0.01, "100 mm with --unit m"),
        (0.0001, 1.0, "P[3]"),
        (20_000.0, 1.0, "correct the translation"),
    ] {
        let told = told(metres, unit_m);
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!(told(0.004, 1.0) + &told(1.9, 1.0), "");
}

#[test]
fn an_inverted_pose_is_told_from_exchanged_cameras() {
    let sources = || Sources::default().convertible("a.yml");
    let refused = |calibration: &StereoCalibration, sources: Sources| {
        check(calibration, &sources).expect_err("it is wrong").to_string()
    };
    // The rectification shows which of both it is.
    let inverted = good().inverted();
    let told = refused(&inverted, sources());
    assert!(told.contains("--inverse-pose a.yml") && !told.contains("--swap"), "{told}");
    assert_eq!(check(&inverted.inverted(), &sources()).unwrap(), Vec::<String>::new());
    // Without it both are named.
    let bare = StereoCalibration { rectification: None, ..good().inverted() };
    let told = refused(&bare, sources());
    assert!(told.contains("--inverse-pose a.yml") && told.contains("--swap a.yml"), "{told}");
    // A pose that the rectification alone has cannot be inverted.
    let rectified = Sources { rectification: "P".into(), pose: "P".into(), ..sources() };
    assert!(!refused(&bare, rectified).contains("--inverse-pose"));
    let told = refused(&good().inverted(), sources().inverted());
    assert!(told.contains("leave out --inverse-pose"), "{told}");
}

#[test]
fn projections_for_pictures_of_another_size_are_told() {
    let notes = |change: &dyn Fn(&mut Rectification)| {
        let mut calibration = good();
        calibration.rectification = Some(calibration.rectified(Some(0.5)).unwrap());
        change(calibration.rectification.as_mut().expect("it has one"));
        check(&calibration, &Sources::default()).unwrap()
    };
    let scaled = |by: f64| {
        notes(&|r| {
            for view in [&mut r.left, &mut r.right] {
                view.projection.fixed_rows_mut::<2>(0).scale_mut(by);
            }
        })
    };
    assert_eq!(scaled(1.0), Vec::<String>::new());
    let told = scaled(2.0);
    assert!(
        told.len() == 1 && told[0].contains("keeps 2") && told[0].contains("--alpha 0"),
        "{told:?}"
    );
    assert!(scaled(0.5)[0].contains("shows the left view in 2"), "{:?}", scaled(0.5));
    // As large as its pictures.
    let larger = notes(&|r| {
        (r.width, r.height) = (1280, 960);
        for view in [&mut r.left, &mut r.right] {
            view.projection.fixed_rows_mut::<2>(0).scale_mut(2.0);
        }
    });
    assert_eq!(larger, Vec::<String>::new());
}
