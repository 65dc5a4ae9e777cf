//! Geometry that drivers and calibrators of ROS write changes the cameras accordingly.

use super::*;
use crate::StereoCalibration;

/// The camera_info of one view; `model` are whole lines.
fn view(model: &str, d: &str, skew: f64, tx: f64) -> String {
    format!(
        "image_width: 1280\nimage_height: 960\n{model}distortion_coefficients: {d}\n\
         camera_matrix: [800, {skew}, 639.5, 0, 800, 479.5, 0, 0, 1]\n\
         rectification_matrix: [1, 0, 0, 0, 1, 0, 0, 0, 1]\n\
         projection_matrix: [800, 0, 639.5, {tx}, 0, 800, 479.5, 0, 0, 0, 1, 0]\n"
    )
}

fn pair(model: &str, d: &str, skew: f64) -> [String; 2] {
    [view(model, d, skew, 0.0), view(model, d, skew, -96.0)]
}

fn read_pair(texts: &[String; 2], options: &ReadOptions) -> Loaded {
    let files = [("l.yaml", texts[0].as_str()), ("r.yaml", texts[1].as_str())];
    parse(&files, options).unwrap_or_else(|error| panic!("{error}"))
}

fn refused_pair(texts: &[String; 2]) -> String {
    refused(&[("l.yaml", &texts[0]), ("r.yaml", &texts[1])])
}

const FOUR: &str = "[0.05, -0.01, 0.004, -0.001]";
const PLUMB_BOB: &str = "distortion_model: plumb_bob\n";

#[test]
fn the_lens_is_the_one_that_either_key_names() {
    let lens = |model: &str, d: &str| {
        let loaded = read_pair(&pair(model, d, 0.0), &ReadOptions::default());
        (loaded.calibration.right.lens, loaded.notes)
    };
    let fisheye = Lens::Fisheye([0.05, -0.01, 0.004, -0.001]);
    for model in [
        "distortion_model: fisheye\n",
        "distortion_model: equidistant\n",
        "camera_model: fisheye\n",
        "camera_model: pinhole\ndistortion_model: equidistant\n",
    ] {
        assert_eq!(lens(model, FOUR), (fisheye.clone(), Vec::new()), "{model}");
    }
    assert_eq!(lens("camera_model: fisheye\n", "[]").0, Lens::Fisheye([0.0; 4]));
    // Neither key says it.
    for model in ["", "camera_model: pinhole\n"] {
        let (lens, notes) = lens(model, FOUR);
        assert!(matches!(lens, Lens::Brown(k) if k[..4] == [0.05, -0.01, 0.004, -0.001]));
        let words = ["l.yaml:", "names no distortion_model", "plumb_bob", "equidistant"];
        assert!(notes.len() == 2 && words.iter().all(|w| notes[0].contains(w)), "{notes:?}");
    }
    assert_eq!(lens("", "[]"), (Lens::Brown([0.0; 14]), Vec::new()));
    let both = "camera_model: fisheye\ndistortion_model: plumb_bob\n";
    let error = refused_pair(&pair(both, FOUR, 0.0));
    assert!(error.contains("camera_model: contradicts distortion_model"), "{error}");
}

#[test]
fn fisheye_cameras_keep_their_skew() {
    let texts = pair("distortion_model: fisheye\n", FOUR, -0.9);
    let sheared = texts
        .each_ref()
        .map(|text| text.replace("projection_matrix: [800, 0,", "projection_matrix: [800, -0.9,"));
    for texts in [&texts, &sheared] {
        let calibration = read_pair(texts, &ReadOptions::default()).calibration;
        assert_eq!((calibration.left.skew, calibration.right.skew), (-0.9, -0.9));
        let half = calibration.for_size(640, 480).unwrap().0;
        assert_eq!(half.left.skew, -0.45);
        // The rectified pictures have none, even if the projections have.
        assert_eq!(calibration.rectification.unwrap().left.projection[(0, 1)], 0.0);
    }
    let uneven = [texts[0].clone(), sheared[1].clone()];
    assert!(refused_pair(&uneven).contains("none of a rectified camera"));
    let error = refused_pair(&pair("", FOUR, -0.9));
    assert!(error.contains("a skew of -0.9") && error.contains("distortion_model: fisheye"));
}

#[test]
fn regions_and_binning_cut_and_scale_the_cameras() {
    let with = |lines: &str| pair(PLUMB_BOB, "[]", 0.0).map(|text| text + lines);
    let roi = "roi: {x_offset: 200, y_offset: 300, width: 640, height: 480, do_rectify: true}\n";
    let read = |lines: &str| read_pair(&with(lines), &ReadOptions::default());
    let cameras = |calibration: &StereoCalibration| {
        let (left, rectified) = (&calibration.left, calibration.rectification.as_ref().unwrap());
        let geometry = rectified.geometry();
        assert_eq!((left.width, left.height), (rectified.width, rectified.height));
        assert_eq!(left.centre, [geometry.centre_x_px, geometry.centre_y_px]);
        assert_eq!(left.focal[0], geometry.focal_px);
        assert!((geometry.baseline_m - 0.12).abs() < 1e-12);
        ((left.width, left.height), left.focal[0], left.centre)
    };
    let part = read(roi);
    assert_eq!(cameras(&part.calibration), ((640, 480), 800.0, [439.5, 179.5]));
    let words = "the pictures are the region 640x480 at (200, 300) of the calibrated 1280x960";
    assert!(part.by_size && part.notes[0].ends_with(words), "{:?}", part.notes);

    let binned = read(&format!("{roi}binning_x: 2\nbinning_y: 2\n"));
    assert_eq!(cameras(&binned.calibration), ((320, 240), 400.0, [219.5, 89.5]));
    assert!(binned.notes[0].contains("(200, 300) binned 2x2"), "{:?}", binned.notes);
    let whole =
        "binning_x: 2\nbinning_y: 2\nroi: {x_offset: 0, y_offset: 0, width: 0, height: 0}\n";
    assert_eq!(cameras(&read(whole).calibration), ((640, 480), 400.0, [319.5, 239.5]));

    // Far from the middle: the principal point is outside the pictures.
    let corner = "roi: {x_offset: 0, y_offset: 0, width: 320, height: 240}\n";
    assert_eq!(cameras(&read(corner).calibration), ((320, 240), 800.0, [639.5, 479.5]));

    // Full pictures, although the files were written with a region.
    let options = ReadOptions { size: Some((1280, 960)), ..ReadOptions::default() };
    let full = read_pair(&with(roi), &options);
    assert_eq!(cameras(&full.calibration), ((1280, 960), 800.0, [639.5, 479.5]));
    assert!(full.notes[0].contains("roi and binning are left out: 1280x960"));

    // The same as no region.
    let zeros = read("roi: {x_offset: 0, y_offset: 0, width: 0, height: 0}\nbinning_x: 1\n");
    assert!(!zeros.by_size && zeros.notes.is_empty());
    assert_eq!(cameras(&zeros.calibration), ((1280, 960), 800.0, [639.5, 479.5]));

    for (lines, words) in [
        ("roi: {x_offset: 800, y_offset: 0, width: 640, height: 480}\n", "no region of a picture"),
        ("roi: {x_offset: 8, y_offset: 0, width: 0, height: 0}\n", "no region of a picture"),
        ("binning_x: 4000\n", "leaves no pixel"),
        ("binning_x: -2\n", "expected a whole number"),
    ] {
        let error = refused_pair(&with(lines));
        assert!(error.contains(words), "{words}: {error}");
    }
    let [left, right] = with(roi);
    // Drivers that cut the views to different regions.
    let unlike = [left, right.replace("width: 640,", "width: 600,")];
    let unlike = read_pair(&unlike, &ReadOptions::default()).calibration;
    assert_eq!((unlike.left.width, unlike.right.width), (640, 600));
    assert_eq!(unlike.left.centre, unlike.right.centre);
}

#[test]
fn the_true_cause_is_said() {
    let [left, right] = pair(PLUMB_BOB, "[]", 0.0);
    let of_right = |from: &str, to: &str| {
        assert!(right.contains(from), "{from}");
        [left.clone(), right.replace(from, to)]
    };
    let error = refused_pair(&[left.clone(), left.clone()]);
    assert!(error.contains("the file of one view was given for both"), "{error}");
    let error = refused_pair(&[right.clone(), right.clone()]);
    assert!(error.contains("the file of one view was given for both"), "{error}");
    let error = refused_pair(&of_right("projection_matrix: [800,", "projection_matrix: [790,"));
    assert!(error.contains("fx is 800.000 px") && !error.contains("rows"), "{error}");

    let error = refused_pair(&of_right("-96", "96"));
    assert!(error.contains("must be below 0") && error.contains("--swap l.yaml,r.yaml"), "{error}");

    let short = read_pair(&of_right("-96", "-0.12"), &ReadOptions::default());
    let words = ["0.150 mm", "P[3]", "-f * B"];
    assert!(words.iter().all(|w| short.notes[0].contains(w)), "{:?}", short.notes);

    // The matrix of a picture that is half as large in a file of full size, and the other way round.
    let binned =
        |to: &str| [&left, &right].map(|text| text.replace("800, 0, 639.5, 0, 800, 479.5", to));
    let half = read_pair(&binned("400, 0, 319.5, 0, 400, 239.5"), &ReadOptions::default());
    assert!(half.notes[0].contains("the middle of a picture of 640x480"), "{:?}", half.notes);
    let error = refused_pair(&binned("1600, 0, 1279.5, 0, 1600, 959.5"));
    assert!(error.contains("the middle of a picture of 2560x1920"), "{error}");
    let zeros = refused_pair(&binned("0, 0, 0, 0, 0, 0"));
    assert!(zeros.contains("has not been calibrated"), "{zeros}");
}

#[test]
fn formats_that_are_not_read_are_named() {
    for (text, words) in [
        (
            "# oST version 5.0 parameters\n\n[image]\n\nwidth\n640\n\n[narrow_stereo/left]\n\ncamera \
             matrix\n400.0 0.0 319.5\n",
            "left.yaml,right.yaml",
        ),
        (
            "%YAML:1.0\n---\nmodel_type: PINHOLE\ncamera_name: camera\nimage_width: 752\nimage_height: \
             480\nprojection_parameters:\n   fx: 461.6\n",
            "VINS",
        ),
    ] {
        let error = refused(&[("x", text)]);
        assert!(error.contains(words) && error.contains("which is not read"), "{error}");
    }
}
