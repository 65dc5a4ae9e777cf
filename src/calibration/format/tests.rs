//! Reads files as OpenCV and other programs write them, and reports their errors.

mod ros;
mod round_trips;

use nalgebra::Vector3;

use super::*;
use crate::Lens;

/// Files that OpenCV itself wrote; see tests/calibrations/README.md.
macro_rules! opencv_file {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../tests/calibrations/", $name)))
    };
}

fn read_texts(files: &[(&str, &str)]) -> Result<Loaded> {
    parse(files, &ReadOptions::default())
}

fn refused(files: &[(&str, &str)]) -> String {
    let message = read_texts(files).expect_err("it is wrong").to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

#[test]
fn what_opencv_writes() {
    let one = |name, text| read_texts(&[(name, text)]).unwrap();
    let (name, text) = opencv_file!("opencv.yml");
    let yaml = one(name, text);
    assert_eq!(yaml.format, Format::OpenCvYaml);
    let calibration = &yaml.calibration;
    assert_eq!((calibration.left.width, calibration.left.height), (640, 480));
    assert_eq!(calibration.left.focal, [512.25, 511.75]);
    assert_eq!(calibration.right.centre, [322.75, 236.5]);
    let mut lens = [0.0; 14];
    lens[..5].copy_from_slice(&[-0.285, 0.081, 0.00019, 1.7e-5, -0.0071]);
    assert_eq!(calibration.left.lens, Lens::Brown(lens));
    // cv2.Rodrigues([0.012, -0.02, 0.007]).
    assert_eq!(calibration.rotation[(0, 1)], -0.007119302257296469);
    assert_eq!(calibration.rotation[(2, 0)], 0.020040021316481704);
    assert_eq!(calibration.translation, Vector3::new(-0.0625, 0.0009, -0.0004));
    let rectification = calibration.rectification.as_ref().unwrap();
    assert_eq!(rectification.right.projection[(0, 3)], -30.950584380141503);
    assert_eq!(rectification.left.rotation[(0, 1)], -0.021438906604590028);
    assert_eq!((rectification.width, rectification.height), (640, 480));
    assert_eq!(yaml.report.rms_px, Some(0.31));
    assert_eq!(yaml.report.date.as_deref(), Some("2024-05-31"));

    let (name, text) = opencv_file!("opencv.xml");
    let xml = one(name, text);
    assert_eq!((xml.format, &xml.calibration), (Format::OpenCvXml, calibration));
    let (name, text) = opencv_file!("opencv.json");
    let json = one(name, text);
    assert_eq!((json.format, &json.calibration), (Format::OpenCvJson, calibration));

    // The sample's two files, which do not tell the picture's size, in either order.
    let (intrinsics, extrinsics) = (opencv_file!("intrinsics.yml"), opencv_file!("extrinsics.yml"));
    let options = ReadOptions { size: Some((640, 480)), ..ReadOptions::default() };
    for files in [[intrinsics, extrinsics], [extrinsics, intrinsics]] {
        let two = parse(&files, &options).unwrap();
        assert_eq!(two.calibration, *calibration);
        assert!(two.notes.len() == 1 && two.notes[0].contains("640x480 is assumed"), "{two:?}");
        let error = read_texts(&files).unwrap_err();
        assert!(error.lacks_size() && error.to_string().contains("--size"), "{error}");
    }
    let error = refused(&[extrinsics]);
    assert!(error.contains("no camera matrices") && error.contains("intrinsics.yml,"), "{error}");
    let error = parse(&[intrinsics], &options).unwrap_err().to_string();
    assert!(error.contains("(R, T) are missing"), "{error}");
}

#[test]
fn names_that_are_in_use() {
    let (_, text) = opencv_file!("opencv.yml");
    let due = read_texts(&[("a", text)]).unwrap().calibration;
    let rename = |pairs: &[(&str, &str)]| {
        let mut text = text.to_owned();
        for (from, to) in pairs {
            let (from, to) = (format!("\n{from}:"), format!("\n{to}:"));
            assert!(text.contains(&from), "{from}");
            text = text.replace(&from, &to);
        }
        text
    };
    for names in [
        &[
            ("K1", "cameraMatrix1"),
            ("D1", "distCoeffs1"),
            ("K2", "cameraMatrix2"),
            ("D2", "distCoeffs2"),
        ][..],
        &[("K1", "camera_matrix_left"), ("D1", "distortion_coefficients_left")],
        &[("K1", "mtxL"), ("K2", "mtxR"), ("D1", "distL"), ("D2", "distR")],
        &[("K1", "left_camera_matrix"), ("K2", "right_camera_matrix")],
        &[("K1", "K0"), ("K2", "K1"), ("D1", "D0"), ("D2", "D1"), ("R1", "R0"), ("P1", "P0")],
        &[("T", "translation_vector"), ("R", "rotation_matrix")],
        &[("T", "T_m")],
    ] {
        let mut names = names.to_vec();
        // A file with words for the left view has words for both views throughout.
        let words = names[0].1.contains("left") || names[0].1 == "mtxL";
        if words {
            for (plain, left, right) in [
                ("K", "camera_matrix_left", "camera_matrix_right"),
                ("D", "distortion_left", "distortion_right"),
                ("R", "R_left", "R_right"),
                ("P", "P_left", "P_right"),
            ] {
                for (eye, word) in [("1", left), ("2", right)] {
                    let name = format!("{plain}{eye}");
                    if !names.iter().any(|(from, _)| *from == name) {
                        names.push((name.leak(), word));
                    }
                }
            }
        }
        if names[0].1 == "K0" {
            names.extend([("R2", "R1"), ("P2", "P1")]);
        }
        let text = rename(&names);
        let loaded = read_texts(&[("a", &text)]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(loaded.calibration, due, "{names:?}");
    }
    // Groups of one view each, rows in lists.
    let grouped = "{\"stereo\": {\"left\": {\"K\": [[500, 0, 320], [0, 500, 240], [0, 0, 1]], \"dist\": [[0, 0, 0, 0, 0]]}, \
                   \"right\": {\"K\": [[500, 0, 320], [0, 500, 240], [0, 0, 1]], \"dist\": [0, 0, 0, 0, 0]}, \
                   \"rvec\": [0, 0.01, 0], \"T_mm\": [-60, 0, 0], \"resolution\": [640, 480]}}";
    let loaded = read_texts(&[("a", grouped)]).unwrap();
    assert_eq!(loaded.calibration.translation, Vector3::new(-0.06, 0.0, 0.0));
    assert!((loaded.calibration.rotation[(0, 2)] - 0.01_f64.sin()).abs() < 1e-15);
    assert_eq!(loaded.notes, Vec::<String>::new());
}

/// ORB_SLAM2's files tell no pose: it follows from the rectification.
#[test]
fn a_rectification_tells_the_pose() {
    let (_, text) = opencv_file!("opencv.yml");
    let due = read_texts(&[("a", text)]).unwrap().calibration;
    let mut renamed = String::new();
    let mut passed_over = false;
    for line in text.lines() {
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        passed_over = match key {
            "R" | "T" => true,
            _ if key.starts_with(' ') => passed_over,
            _ => false,
        };
        if passed_over {
            continue;
        }
        renamed += &match key.as_bytes() {
            [what, b'1'] => format!("LEFT.{}:{value}\n", *what as char),
            [what, b'2'] => format!("RIGHT.{}:{value}\n", *what as char),
            _ => format!("{line}\n"),
        };
    }
    assert!(renamed.contains("\nRIGHT.P:") && !renamed.contains("\nT:"), "{renamed}");
    let found = read_texts(&[("a", &renamed)]).unwrap().calibration;
    assert_eq!(found.rectification, due.rectification);
    // OpenCV's own R1 and R2 fit R and T no better than this.
    assert!((found.rotation - due.rotation).amax() < 1e-12);
    assert!((found.translation - due.translation).norm() < 1e-12);
}

#[test]
fn a_fisheye_lens_of_opencv_has_to_be_named() {
    let text = |model: &str, d: &str| {
        format!(
            "%YAML:1.0\n---\nimage_size: [ 640, 480 ]\n{model}K1: [[300, 0, 320], [0, 300, 240], [0, 0, 1]]\nK2: \
             [[300, 0, 320], [0, 300, 240], [0, 0, 1]]\nD1: {d}\nD2: {d}\nR: [[1, 0, 0], [0, 1, 0], \
             [0, 0, 1]]\nT: [-0.1, 0, 0]\n"
        )
    };
    let lens = |model: &str, d: &str| {
        let loaded = read_texts(&[("a", &text(model, d))]).unwrap();
        (loaded.calibration.right.lens, loaded.notes.len())
    };
    let four = "[0.1, 0.2, 0.3, 0.4]";
    let fisheye = (Lens::Fisheye([0.1, 0.2, 0.3, 0.4]), 0);
    for model in [
        "fisheye_model: 1\n",
        "distortion_model: equidistant\n",
        "fisheye: true\n",
        "camera_model: fisheye\n",
        "Camera.type: \"KannalaBrandt8\"\n",
        "model: fisheye\n",
        "camera_model: pinhole\ndistortion_model: equi\n",
    ] {
        assert_eq!(lens(model, four), fisheye, "{model}");
    }
    // The name of a product is no lens.
    assert_eq!(lens("model: Mk II\n", "[0, 0, 0, 0, 0]"), (Lens::Brown([0.0; 14]), 0));
    let mut brown = [0.0; 14];
    brown[..4].copy_from_slice(&[0.1, 0.2, 0.3, 0.4]);
    assert_eq!(lens("", four), (Lens::Brown(brown), 1));
    assert_eq!(lens("fisheye_model: 0\n", four), (Lens::Brown(brown), 1));
    assert_eq!(lens("distortion_model: plumb_bob\n", four), (Lens::Brown(brown), 0));
    for (model, d, words) in [
        ("fisheye_model: 1\n", "[0.1, 0.2, 0.3, 0.4, 0.5]", "a:7: D1: 5 distortion coefficients"),
        ("", "[0.1, 0.2, 0.3]", "a:6: D1: 3 distortion coefficients, but this lens has 4 ("),
        ("", "[0.1, 0.2, 0.3, 0.4, .Nan]", "a:6: D1[4]: NaN is not a finite number"),
        ("distortion_model: omni\n", four, "a:4: distortion_model: the lens model \"omni\""),
        ("camera_model: omni\n", four, "a:4: camera_model: the lens model \"omni\""),
        ("xi1: 1.2\n", four, "omnidirectional"),
        (
            "camera_model: fisheye\ndistortion_model: plumb_bob\n",
            four,
            "camera_model: contradicts distortion_model",
        ),
    ] {
        let error = refused(&[("a", &text(model, d))]);
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn contradictions_are_told() {
    let (_, text) = opencv_file!("opencv.yml");
    let with = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        refused(&[("a.yml", &text.replace(from, to))])
    };
    for (message, words) in [
        (
            with("data: [ -0.0625, 0.0008", "data: [ -0.0725, 0.0008"),
            "a.yml (R1, R2, P1, P2) contradicts a.yml (R, T)",
        ),
        (with("data: [ -0.0625, 0.0008", "data: [ 62.5, 0.0008"), "--unit mm"),
        (
            with("rms: 0.31", "image_size: [ 752, 480 ]"),
            "contradicts the width and height of 640x480",
        ),
        (with("rms: 0.31", "M1: [ 1, 0, 1, 0, 1, 1, 0, 0, 1 ]"), "M1: contradicts K1 of a.yml"),
        (with("rms: 0.31", "K1: 1"), "`K1` is there twice"),
        (with("\nR2:", "\nX2:"), "some are missing"),
        (with("\nD2:", "\nX2:"), "(D1, D2) are missing"),
        (with("\nT:", "\nX:"), "translation (T) is missing"),
        (with("512.25, 0., 318.5", "512.25, 30., 318.5"), "skew of 30"),
        (
            with(
                "512.25, 0., 318.5, 0., 511.75, 242.125, 0., 0., 1.",
                "512.25, 0., 0., 0., 511.75, 0., 318.5, 242.125, 1.",
            ),
            "transposed",
        ),
        (
            with("512.25, 0., 318.5, 0., 511.75,", "512.25, 0., 318.5, 511.75,"),
            "3 rows and 3 columns, but 8 numbers",
        ),
        (with("image_width: 640", "image_width: 0"), "0 pixels is no side"),
        (with("image_width: 640", "image_width: 64.5"), "expected a whole number, found 64.5"),
        (with("image_width: 640", "image_width: 240"), "outside the 240x480 picture"),
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
    // Two files that are not of one calibration.
    let other = text.replace("512.25", "612.25");
    let error = refused(&[("a.yml", text), ("b.yml", &other)]);
    assert!(error.contains("b.yml:6: K1: contradicts K1 of a.yml"), "{error}");
}

#[test]
fn units_and_order_can_be_told() {
    let (_, text) = opencv_file!("opencv.yml");
    let metres = read_texts(&[("a", text)]).unwrap().calibration;
    // The same in millimetres, as from a board measured in millimetres.
    let millimetres = text
        .replace("-0.0625, 0.00089999999999999998, -0.00040000000000000002", "-62.5, 0.9, -0.4");
    let millimetres = millimetres.replace("-30.950584380141503", "-30950.584380141503");
    assert!(refused(&[("a", &millimetres)]).contains("--unit mm"));
    let options = ReadOptions { unit_m: Some(0.001), ..ReadOptions::default() };
    let converted = parse(&[("a", &millimetres)], &options).unwrap().calibration;
    assert!((converted.translation - metres.translation).norm() < 1e-15);
    let tx = |c: &StereoCalibration| c.rectification.as_ref().unwrap().right.projection[(0, 3)];
    assert!((tx(&converted) - tx(&metres)).abs() < 1e-12);

    let swap = ReadOptions { swap: true, ..ReadOptions::default() };
    let error = parse(&[("a", text)], &swap).unwrap_err().to_string();
    assert!(error.contains("left and right are swapped"), "{error}");
    assert!(error.contains("leave out --swap") && !error.contains("OUT.toml"), "{error}");
    let turned = StereoCalibration { rectification: None, ..metres.clone().swapped() };
    let text = render(&turned, &Report::default(), Format::OpenCvYaml).unwrap();
    let error = refused(&[("t.yml", &text[0])]);
    assert!(error.contains("--swap t.yml -o OUT.toml"), "{error}");
    let back = parse(&[("t.yml", &text[0])], &swap).unwrap().calibration;
    assert_eq!((&back.left, &back.right), (&metres.left, &metres.right));
    assert!((back.translation - metres.translation).norm() < 1e-15);
    assert!((back.rotation - metres.rotation).amax() < 1e-15);
}

#[test]
fn our_own_file_is_strict() {
    let (_, text) = opencv_file!("opencv.yml");
    let calibration = read_texts(&[("a", text)]).unwrap().calibration;
    let text = render(&calibration, &Report::default(), Format::Own).unwrap().remove(0);
    let with = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}\n{text}");
        refused(&[("s.toml", &text.replacen(from, to, 1))])
    };
    for (message, words) in [
        (with("focal =", "fokal ="), "unknown field `fokal`"),
        (with("[pose]", "[poses]"), "unknown field `poses`"),
        (with("calibration_version = 1", "calibration_version = 2"), "calibration_version is 2"),
        (with("calibration_version = 1", ""), "missing field `calibration_version`"),
        (with("lens = \"brown\"", "lens = \"omni\""), "unknown variant `omni`"),
        (with("size = [640, 480]", "size = [640, 480, 3]"), "s.toml:6:"),
        (with("size = [640, 480]", "size = [-640, 480]"), "s.toml:6:"),
        (with("size = [640, 480]", "size = [0, 480]"), "s.toml ([left]): 0x480"),
        (with("focal = [512.25", "focal = [nan"), "not finite"),
        (with("distortion = [", "distortion = [0.0, "), "s.toml: left.distortion: 6 distortion"),
        (with("translation = [-0.0625", "translation = [0.0625"), "swapped"),
    ] {
        assert!(message.starts_with("s.toml") && message.contains(words), "{words}: {message}");
    }
    let error = refused(&[("s.toml", &text), ("t.toml", &text)]);
    assert!(error.contains("both cameras in one file"), "{error}");
    // Whole numbers are numbers too.
    let whole = text.replace("512.25", "512").replace("511.75", "512");
    assert_eq!(read_texts(&[("a", &whole)]).unwrap().calibration.left.focal, [512.0, 512.0]);
}

#[test]
fn messages_of_ros_are_read_too() {
    let eye = |tx: f64| {
        format!(
            "header:\n  frame_id: camera\nheight: 480\nwidth: 640\ndistortion_model: plumb_bob\nd: []\n\
             k: [500.0, 0.0, 320.0, 0.0, 500.0, 240.0, 0.0, 0.0, 1.0]\nr: [1.0, 0.0, 0.0, 0.0, 1.0, \
             0.0, 0.0, 0.0, 1.0]\np: [500.0, 0.0, 320.0, {tx:?}, 0.0, 500.0, 240.0, 0.0, 0.0, 0.0, 1.0, \
             0.0]\n---\n"
        )
    };
    let (left, right) = (eye(0.0), eye(-60.0));
    let loaded = read_texts(&[("l", &left), ("r", &right)]).unwrap();
    assert_eq!(loaded.format, Format::Ros);
    assert_eq!(loaded.calibration.translation, Vector3::new(-0.12, 0.0, 0.0));
    assert_eq!(loaded.calibration.left.lens, Lens::Brown([0.0; 14]));
    for (files, words) in [
        ([("r", &right), ("l", &left)], "name the files in the order l,r"),
        ([("l", &left), ("m", &left)], "no baseline"),
        (
            [
                ("l", &left),
                (
                    "v",
                    &left.replace(
                        "240.0, 0.0, 0.0, 0.0, 1.0, 0.0]",
                        "240.0, -60.0, 0.0, 0.0, 1.0, 0.0]",
                    ),
                ),
            ],
            "one above the other",
        ),
        (
            [("l", &left), ("r", &right.replace("plumb_bob", "double_sphere"))],
            "\"double_sphere\" is not supported",
        ),
        (
            [("l", &left), ("r", &right.replace("d: []", "d: [1, 2, 3, 4, 5, 6, 7, 8]"))],
            "r:6: d: 8 distortion coefficients, but a plumb-bob lens",
        ),
        ([("l", &left), ("r", &right.replace("r: [1.0", "r: [2.0"))], "no rotation matrix"),
        (
            [
                ("l", &left),
                (
                    "r",
                    &right.replace(
                        "p: [500.0, 0.0, 320.0, -60.0, 0.0, 500.0",
                        "p: [400.0, 0.0, 320.0, -60.0, 0.0, 400.0",
                    ),
                ),
            ],
            "projections do not fit each other",
        ),
    ] {
        let error = refused(&files.map(|(name, text)| (name, text.as_str())));
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn sizes_and_lenses_as_programs_write_them() {
    let (_, text) = opencv_file!("opencv.yml");
    let due = read_texts(&[("a", text)]).unwrap().calibration;
    let sized = |size: &str| {
        let text = text.replace("image_width: 640\n", size).replace("image_height: 480\n", "");
        read_texts(&[("a", &text)]).unwrap().calibration
    };
    for size in [
        "image_size: !!opencv-matrix\n   rows: 1\n   cols: 2\n   dt: i\n   data: [ 640, 480 ]\n",
        "image_size: !!opencv-matrix\n   rows: 2\n   cols: 1\n   dt: d\n   data: [ 640., 480. ]\n",
        "imageSize: [640, 480]\n",
        "imageSize: [[640, 480]]\n",
        "imageSize: [[640], [480]]\n",
        "image_size: { width: 640, height: 480 }\n",
        "nx: 640\nny: 480\n",
        // OpenCV needs no blank after a key.
        "image_size:[640, 480]\n",
    ] {
        assert_eq!(sized(size), due, "{size}");
    }
    // An empty matrix is a lens without distortion.
    let plain = |d: &str| {
        let json = format!(
            "{{\"K1\": [[500,0,320],[0,500,240],[0,0,1]], \"K2\": [[500,0,320],[0,500,240],[0,0,1]], \
             \"D1\": {d}, \"D2\": {d}, \"R\": [[1,0,0],[0,1,0],[0,0,1]], \"om\": [0,0,0], \
             \"T_mm\": [-60,0,0], \"image_size\": [640,480]}}"
        );
        read_texts(&[("a.json", &json)]).unwrap().calibration.left.lens
    };
    for d in ["[]", "[[]]", "{\"rows\": 0, \"cols\": 0, \"dt\": \"d\", \"data\": []}"] {
        assert_eq!(plain(d), Lens::Brown([0.0; 14]), "{d}");
    }
    let (_, xml) = opencv_file!("opencv.xml");
    let (start, end) = (xml.find("<D1").unwrap(), xml.find("</D1>").unwrap());
    let empty = "<D1 type_id=\"opencv-matrix\"><rows>0</rows><cols>0</cols><dt>d</dt><data></data>";
    let xml = format!("{}{empty}{}", &xml[..start], &xml[end..]);
    assert_eq!(
        read_texts(&[("a.xml", &xml)]).unwrap().calibration.left.lens,
        Lens::Brown([0.0; 14])
    );
}
