//! `stereod calibration` and the readers behind it, on real calibrations and on damaged ones.

mod refine;

use std::path::Path;

use nalgebra::Matrix3;
use serde_json::Value;
use stereod_calibration::format::{self, Format, Loaded, ReadOptions, Report};
use stereod_calibration::{Lens, StereoCalibration};

use crate::common::data::data;
use crate::common::outcome::outcome;
use crate::common::program::stereod;

/// Calibrations of real cameras, every one in each of its formats.
const EUROC_ROS: &[&str] = &["euroc_v1_01/left.yaml", "euroc_v1_01/right.yaml"];
const EUROC_KALIBR: &[&str] = &["euroc_v1_01/kalibr_camchain.yaml"];
const EUROC_SENSORS: &[&str] = &["euroc_v1_01/cam0_sensor.yaml", "euroc_v1_01/cam1_sensor.yaml"];
const OAKD_OPENCV: &[&str] = &["oakd_patio/stereo_opencv.json"];
const OAKD_DEVICE: &[&str] = &["oakd_patio/calib.json"];
const CHESS_ROS: &[&str] = &["opencv_calib/left.yaml", "opencv_calib/right.yaml"];
const CHESS_OPENCV: &[&str] = &["opencv_calib/reference_stereo.json"];
const ALL: [&[&str]; 7] =
    [EUROC_ROS, EUROC_KALIBR, EUROC_SENSORS, OAKD_OPENCV, OAKD_DEVICE, CHESS_ROS, CHESS_OPENCV];

fn read(root: &Path, files: &[&str]) -> Loaded {
    let paths: Vec<_> = files.iter().map(|file| root.join(file)).collect();
    format::read(&paths).unwrap_or_else(|error| panic!("{error}"))
}

/// Differences between two descriptions of one rig: pixels and coefficients of the cameras, the
/// rotation between them, and metres.
fn apart(a: &StereoCalibration, b: &StereoCalibration) -> (f64, f64, f64) {
    let mut cameras = 0.0_f64;
    for (a, b) in [(&a.left, &b.left), (&a.right, &b.right)] {
        assert_eq!((a.width, a.height), (b.width, b.height));
        let (Lens::Brown(k), Lens::Brown(l)) = (&a.lens, &b.lens) else {
            panic!("no fisheye here")
        };
        let of = |focal: [f64; 2], centre: [f64; 2], k: &[f64]| [&focal, &centre, k].concat();
        for (a, b) in of(a.focal, a.centre, k).into_iter().zip(of(b.focal, b.centre, l)) {
            cameras = cameras.max((a - b).abs());
        }
    }
    let turned = (a.rotation - b.rotation).amax();
    (cameras, turned, (a.translation - b.translation).norm())
}

#[test]
fn calibrations_of_one_rig_agree() {
    let Some(root) = data("") else { return };
    let euroc = read(&root, EUROC_ROS);
    assert_eq!(euroc.format, Format::Ros);
    for (files, format) in [(EUROC_KALIBR, Format::Kalibr), (EUROC_SENSORS, Format::Euroc)] {
        let other = read(&root, files);
        assert_eq!(other.format, format);
        let (cameras, turned, metres) = apart(&euroc.calibration, &other.calibration);
        // The rectification is that of the sensor.yaml files within 6e-14; f has single precision.
        assert!(cameras == 0.0 && turned < 1e-12 && metres < 1e-8, "{cameras} {turned} {metres}");
        assert_eq!(other.calibration.rectification, None);
    }
    let baseline = euroc.calibration.translation.norm();
    assert!((baseline - 0.110_077_844).abs() < 1e-8, "{baseline}");
    let geometry = euroc.calibration.rectification.unwrap().geometry();
    assert!((geometry.focal_px - 435.2046959714599).abs() < 1e-12);
    assert!((geometry.baseline_m - baseline).abs() < 1e-8);

    let oakd = (read(&root, OAKD_OPENCV), read(&root, OAKD_DEVICE));
    assert_eq!((oakd.0.format, oakd.1.format), (Format::OpenCvJson, Format::DepthAi));
    let (cameras, turned, metres) = apart(&oakd.0.calibration, &oakd.1.calibration);
    assert!(cameras < 1e-9 && turned == 0.0 && metres < 1e-9, "{cameras} {turned} {metres}");
    let Lens::Brown(k) = oakd.0.calibration.left.lens else { panic!("a rational lens") };
    assert_eq!((k[0], k[7], k[8]), (-9.209368705749512, -87.8282699584961, 0.0));

    let chess = (read(&root, CHESS_ROS), read(&root, CHESS_OPENCV));
    let (cameras, turned, metres) = apart(&chess.0.calibration, &chess.1.calibration);
    // The JSON file has ten decimals, of the translation too.
    assert!(cameras < 1e-9 && turned < 1e-9 && metres < 1e-9, "{cameras} {turned} {metres}");
    assert_eq!(chess.1.report.rms_px, Some(0.4439));
    assert_eq!(chess.1.report.epipolar_error_px, Some(0.2619));
    let between = chess.0.calibration.rotation - Matrix3::identity();
    assert!(between.amax() > 1e-3, "the rotation is not just taken for none");
}

/// Truncates every file at regular intervals. Each part gives one message, or the same calibration
/// if only unneeded data is missing; never a panic or other numbers.
#[test]
fn cut_files_are_refused() {
    let Some(root) = data("") else { return };
    for files in ALL {
        let whole = read(&root, files);
        let texts: Vec<String> =
            files.iter().map(|file| std::fs::read_to_string(root.join(file)).unwrap()).collect();
        let mut passed = 0;
        for cut in 0..files.len() {
            for end in (0..texts[cut].len()).step_by(50) {
                let mut parts: Vec<_> =
                    files.iter().zip(&texts).map(|(file, text)| (*file, text.as_str())).collect();
                parts[cut].1 = &texts[cut][..end];
                match format::parse(&parts, &Default::default()) {
                    Ok(loaded) => {
                        let apart = apart(&loaded.calibration, &whole.calibration);
                        assert_eq!(apart, (0.0, 0.0, 0.0), "{} at {end}", files[cut]);
                        passed += 1;
                    }
                    Err(error) => {
                        let message = error.to_string();
                        assert!(message.contains(files[cut]), "{message}");
                        assert!(message.len() < 800 && !message.contains('\n'), "{message}");
                    }
                }
            }
        }
        // Only Kalibr's and EuRoC's files end with keys that are not needed.
        assert!(passed <= 1, "{files:?}: {passed}");
    }
}

/// `stereod calibration` with these arguments, in this folder.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    outcome(stereod(&[&["calibration"], arguments].concat()).current_dir(folder))
}

fn prints(folder: &Path, arguments: &[&str]) -> String {
    let (status, stdout, stderr) = run(folder, arguments);
    assert_eq!(status, 0, "{arguments:?}: {stderr}");
    stdout
}

/// Expects one message with these words, and status 2.
fn refuses(folder: &Path, arguments: &[&str], words: &str) {
    let (status, stdout, stderr) = run(folder, arguments);
    assert_eq!((status, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
    assert!(stderr.starts_with("error: ") && stderr.contains(words), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

/// A folder with the calibrations that OpenCV wrote; see tests/calibrations/README.md.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calibrations");
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    folder
}

#[test]
fn show_tells_people_and_programs() {
    let folder = folder();
    let text = prints(folder.path(), &["show", "opencv.yml"]);
    for part in [
        "opencv.yml: OpenCV YAML\n",
        "640x480",
        "focal lengths 512.250 and 511.750 px",
        "plumb bob (-0.28500 0.08100 0.00019 0.00002 -0.00710)",
        "baseline      62.51 mm (the right camera stands 62.4",
        "focal length 495.148 px",
        // 495.148 px * 0.0625078 m / 63.
        "0.491 m to 30.951 m with 64 disparities",
        "reprojection error 0.310 px",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = prints(folder.path(), &["show", "opencv.json", "--json"]);
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["format"], "OpenCV JSON");
    assert_eq!(value["size"], serde_json::json!([640, 480]));
    assert_eq!(value["left"]["focal_px"][0], 512.25);
    // cv2.Rodrigues of R: the right camera is turned by 0.012, -0.02, 0.007 rad into the left one's
    // frame, so seen from the left camera the rotation is the opposite.
    for (name, radians) in [("pitch_deg", -0.012), ("yaw_deg", 0.02), ("roll_deg", -0.007)] {
        let degrees = value["turned"][name].as_f64().unwrap();
        assert!((degrees - f64::to_degrees(radians)).abs() < 0.01, "{name} {degrees}");
    }
    assert!((value["baseline_mm"].as_f64().unwrap() - 62.507_759_51).abs() < 1e-6);
    assert!((value["rectified"]["focal_px"].as_f64().unwrap() - 495.1478763379912).abs() < 1e-9);
    assert_eq!(value["report"]["date"], "2024-05-31");

    let two = ["show", "extrinsics.yml,intrinsics.yml", "--size", "640x480", "--json"];
    let value: Value = serde_json::from_str(&prints(folder.path(), &two)).unwrap();
    assert_eq!(value["format"], "OpenCV YAML");
    assert!(value["notes"][0].as_str().unwrap().contains("640x480 is assumed"));

    let half = prints(folder.path(), &["show", "opencv.yml", "--mode", "320x180"]);
    assert!(half.contains("320x180") && half.contains("focal length 247.574 px"), "{half}");
    assert!(half.contains("assumed that 320x180 shows the middle"), "{half}");
    refuses(folder.path(), &["show", "opencv.yml", "--mode", "500x400"], "640x480");
}

#[test]
fn convert_writes_every_format() {
    let folder = folder();
    let at = folder.path();
    let read = |files: &str| {
        let files: Vec<_> = files.split(',').map(|file| at.join(file)).collect();
        format::read(&files).unwrap_or_else(|error| panic!("{error}"))
    };
    let due = read("opencv.xml").calibration;
    std::fs::create_dir(at.join("ros")).unwrap();
    for (from, to, format) in [
        ("opencv.xml", "a.toml", Format::Own),
        ("a.toml", "b.yml", Format::OpenCvYaml),
        ("b.yml", "c.json", Format::OpenCvJson),
        ("c.json", "d.xml", Format::OpenCvXml),
        ("d.xml", "a.toml", Format::Own),
    ] {
        assert_eq!(prints(at, &["convert", from, "-o", to]), "");
        let loaded = read(to);
        assert_eq!((loaded.format, loaded.calibration), (format, due.clone()), "{to}");
    }
    assert_eq!(
        prints(at, &["convert", "a.toml"]),
        std::fs::read_to_string(at.join("a.toml")).unwrap()
    );
    for (to, files) in [("ros", "ros/left.yaml,ros/right.yaml"), ("l.yaml,r.yaml", "l.yaml,r.yaml")]
    {
        prints(at, &["convert", "a.toml", "-o", to]);
        let ros = read(files);
        assert_eq!(ros.format, Format::Ros);
        let (cameras, turned, metres) = apart(&ros.calibration, &due);
        assert!(cameras == 0.0 && turned < 1e-7 && metres < 1e-7, "{turned} {metres}");
        assert_eq!(ros.calibration.rectification, due.rectification);
    }
    // Comments for people.
    let own = std::fs::read_to_string(at.join("a.toml")).unwrap();
    assert!(
        own.starts_with("# Calibration of a stereo pair")
            && own.contains("# focal lengths in pixels")
    );

    refuses(at, &["convert", "a.toml", "-o", "a.toml"], "also an input");
    refuses(at, &["convert", "a.toml", "-o", "a.txt"], "does not say the format");
    refuses(at, &["convert", "a.toml", "--format", "ros"], "two files");
    let (status, _, stderr) = run(at, &["convert", "a.toml", "-o", "none/a.toml"]);
    assert!(status == 1 && stderr.contains("none does not exist"), "{stderr}");
}

#[test]
fn what_is_wrong_is_said_with_the_file_and_the_cure() {
    let folder = folder();
    let at = folder.path();
    let yml = std::fs::read_to_string(at.join("opencv.yml")).unwrap();
    let change = |name: &str, from: &str, to: &str| {
        assert!(yml.contains(from), "{from}");
        std::fs::write(at.join(name), yml.replace(from, to)).unwrap();
    };
    prints(at, &["convert", "opencv.yml", "-o", "left.yaml,right.yaml"]);
    change("mm.yml", "[ -0.0625, 0.00089999999999999998,", "[ -62.5, 0.9,");
    change("swapped.yml", "[ -0.0625,", "[ 0.0625,");
    change("vertical.yml", "[ -0.0625, 0.00089999999999999998,", "[ -0.001, -0.0625,");
    change("size.yml", "image_height: 480", "x: 1");
    change("six.yml", "-0.28499999999999998, 0.081", "-0.28499999999999998, 0., 0.081");
    change("other.yml", "[ -0.0625, 0.00089", "[ -0.0725, 0.00089");
    std::fs::write(at.join("cut.yml"), &yml[..1000]).unwrap();
    std::fs::write(at.join("empty.yml"), "").unwrap();
    std::fs::write(at.join("text.yml"), "no calibration at all\n").unwrap();
    std::fs::write(at.join("binary.yml"), [0xff, 0xfe, 0, 1]).unwrap();
    for (file, words) in [
        ("mm.yml", "mm.yml (R, T): a baseline of 62.5"),
        ("swapped.yml", "stereod calibration convert --swap swapped.yml -o OUT.toml"),
        ("vertical.yml", "one above the other"),
        ("size.yml", "size.yml: the size of the pictures is missing"),
        ("six.yml", "six.yml:11: D1: 1 rows and 5 columns, but 6 numbers"),
        ("other.yml", "other.yml (R1, R2, P1, P2) contradicts other.yml (R, T)"),
        ("cut.yml", "cut off"),
        ("empty.yml", "empty.yml: the file is empty"),
        ("text.yml", "text.yml: no calibration that is known"),
        ("binary.yml", "binary.yml: not a text"),
        ("missing.yml", "missing.yml: the calibration cannot be read"),
        (".", "a folder"),
        ("right.yaml,left.yaml", "name the files in the order left.yaml,right.yaml"),
        ("left.yaml", "describes one camera"),
        ("left.yaml,opencv.yml", "of different formats"),
        ("left.yaml,left.yaml", "named twice"),
        ("a,b,c", "names no calibration"),
        ("intrinsics.yml,extrinsics.yml", "--size WIDTHxHEIGHT"),
        ("extrinsics.yml", "intrinsics.yml,extrinsics.yml"),
    ] {
        refuses(at, &["show", file], words);
        refuses(at, &["convert", file, "-o", "out.toml"], words);
        assert!(!at.join("out.toml").exists(), "{file}");
    }
    refuses(at, &["show", "opencv.yml", "--swap"], "left and right are swapped");
    // The suggested remedies work.
    change(
        "mm.yml",
        "[ -0.0625, 0.00089999999999999998, -0.00040000000000000002 ]",
        "[ -62.5, 0.9, -0.4 ]",
    );
    let mm = std::fs::read_to_string(at.join("mm.yml")).unwrap();
    std::fs::write(at.join("mm.yml"), mm.replace("-30.950584380141503", "-30950.584380141503"))
        .unwrap();
    prints(at, &["convert", "--unit", "mm", "mm.yml", "-o", "metres.toml"]);
    assert!(prints(at, &["show", "metres.toml"]).contains("62.51 mm"));
    prints(at, &["show", "size.yml", "--size", "640x480"]);
}

/// The share of an image's pixels whose depth lies between these millimetres.
fn share_of_depth(folder: &Path, arguments: &[&str], depth_mm: std::ops::Range<u16>) -> f64 {
    let more = ["--depth", "-d", "128", "-o", "depth.png"];
    let mut command = stereod(&[&["match"], arguments, &more[..]].concat());
    let (status, _, stderr) = outcome(command.current_dir(folder));
    assert_eq!(status, 0, "{stderr}");
    let depth = image::open(folder.join("depth.png")).unwrap().to_luma16();
    let inside = depth.iter().filter(|value| depth_mm.contains(value)).count();
    inside as f64 / depth.len() as f64
}

#[test]
fn what_a_camera_info_says_of_the_picture_gives_the_right_depth() {
    let Some(bugs) = data("bugs") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let share = |pictures: [&str; 2], files: [&str; 2], depth_mm| {
        let path = |name: &str| bugs.join(name).display().to_string();
        let [left, right] = pictures.map(path);
        let calibration = files.map(path).join(",");
        let arguments = [&*left, &*right, "--calibration", &*calibration];
        share_of_depth(scratch.path(), &arguments, depth_mm)
    };
    // A box at 1.5 m before a wall, in a region of the sensor.
    let pictures = ["roi/left.png", "roi/right.png"];
    let of_box = share(pictures, ["roi/left.yaml", "roi/right.yaml"], 1450..1550);
    assert!(of_box > 0.3, "{of_box}");
    let pictures = ["camera-info/fish-left.png", "camera-info/fish-right.png"];
    for kind in ["fish-ok", "fish-cm", "fish-cm-skew"] {
        let files = ["left", "right"].map(|eye| format!("camera-info/{kind}-{eye}.yaml"));
        let known = share(pictures, [&files[0], &files[1]], 1400..4500);
        assert!(known > 0.95, "{kind}: {known}");
    }
}

/// Returns all that is told of an OpenCV file with this calibration after a change.
fn told(of: &StereoCalibration, change: &dyn Fn(&mut StereoCalibration)) -> String {
    let mut calibration = StereoCalibration { rectification: None, ..of.clone() };
    change(&mut calibration);
    let text = format::render(&calibration, &Report::default(), Format::OpenCvYaml).unwrap();
    match format::parse(&[("a.yml", &text.concat())], &ReadOptions::default()) {
        Ok(loaded) => loaded.notes.concat(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn mistakes_in_real_calibrations_are_told_and_nothing_else() {
    let Some(root) = data("") else { return };
    let in_unit = |times: f64| move |c: &mut StereoCalibration| c.translation *= times;
    let camera_in = |unit: f64| {
        move |c: &mut StereoCalibration| {
            for camera in [&mut c.left, &mut c.right] {
                camera.focal = camera.focal.map(|px| px * unit);
                camera.centre = camera.centre.map(|px| px * unit);
            }
        }
    };
    for files in ALL {
        let loaded = read(&root, files);
        assert_eq!(loaded.notes, Vec::<String>::new(), "{files:?}");
        let calibration = &loaded.calibration;
        for (told, words) in [
            (told(calibration, &|_| {}), ""),
            (told(calibration, &in_unit(1000.0)), "mm with --unit mm"),
            (told(calibration, &in_unit(100.0)), "mm with --unit cm"),
            (told(calibration, &in_unit(1.0 / 0.0254)), "mm with --unit inch"),
            (told(calibration, &in_unit(0.01)), "hardly plausible"),
            (told(calibration, &camera_in(0.006)), "in mm"),
            (
                told(calibration, &|c| camera_in(1.0 / c.left.width as f64)(c)),
                "divided by the image",
            ),
            (told(calibration, &|c| c.right.centre = [0.0; 2]), "was not set"),
            (told(calibration, &|c| *c = c.clone().inverted()), "--inverse-pose a.yml"),
            (told(calibration, &|c| *c = c.clone().swapped()), "--swap a.yml"),
        ] {
            let fits = if words.is_empty() { told.is_empty() } else { told.contains(words) };
            assert!(fits, "{files:?}: {words}: {told}");
        }
    }
}

#[test]
fn files_of_users_are_read_or_refused_with_the_cure() {
    let Some(bugs) = data("bugs") else { return };
    let told = |name: &str| match format::read(&[bugs.join(name)]) {
        Ok(loaded) => {
            let baseline_mm = loaded.calibration.translation.norm() * 1e3;
            format!(
                "{baseline_mm:.1} mm, {:?}: {}",
                loaded.calibration.left.lens,
                loaded.notes.concat()
            )
        }
        Err(error) => error.to_string(),
    };
    let no_lens = format!("{:?}", Lens::Brown([0.0; 14]));
    for (name, words) in [
        ("unit-cm/stereo.yml", "100 mm with --unit cm, 10 mm with --unit mm"),
        ("k-normalised/normalised.yml", "divided by the image size"),
        ("k-normalised/mm.yml", "in mm"),
        ("k-normalised/zero-centre.yml", "was not set"),
        ("empty-d/stereo.yml", &no_lens),
        ("empty-d/kalibr.yaml", &no_lens),
        ("oak-links/both-to-rgb.json", "100.0 mm"),
        ("oak-links/spec-only.json", "specTranslation"),
        ("oak-links/metres.json", "100 mm with --unit m"),
        ("npz-mat/rig.npz", "numpy.load"),
        ("npz-mat/rig.mat", "scipy.io.loadmat"),
    ] {
        let told = told(name);
        assert!(told.contains(words), "{name}: {words}: {told}");
    }
}

#[test]
fn show_rectifies_as_the_settings_say() {
    let folder = folder();
    let rectified = |more: &[&str]| {
        let arguments = [&["show", "opencv.yml", "--json"], more].concat();
        let shown: Value = serde_json::from_str(&prints(folder.path(), &arguments)).unwrap();
        shown["rectified"]["focal_px"].as_f64().unwrap()
    };
    let (own, whole) = (rectified(&[]), rectified(&["--set", "calibration.alpha=1"]));
    assert!(whole < 0.98 * own, "{own} {whole}");
    assert!((rectified(&["--set", "calibration.alpha=0"]) - own).abs() < 0.01 * own);
}

#[test]
fn pictures_tell_an_inverted_pose_from_exchanged_cameras() {
    let Some(bugs) = data("bugs") else { return };
    let options = ReadOptions { unit_m: Some(0.01), ..ReadOptions::default() };
    let rig = format::read_with(&[bugs.join("unit-cm/stereo.yml")], &options).unwrap().calibration;
    let folder = tempfile::tempdir().unwrap();
    let views = ["left.jpg", "right.jpg"].map(|view| bugs.join("unit-cm").join(view));
    let advice = |calibration: StereoCalibration, views: [&Path; 2]| {
        let text = format::render(&calibration, &Report::default(), Format::OpenCvYaml).unwrap();
        std::fs::write(folder.path().join("a.yml"), text.concat()).unwrap();
        let mut command = stereod(&["match", "--calibration", "a.yml", "-o", "d.png"]);
        let (status, _, stderr) = outcome(command.args(views).current_dir(folder.path()));
        assert_eq!(status, 2, "{stderr}");
        stderr
    };
    let [left, right] = views.each_ref().map(|view| view.as_path());
    let inverted = advice(rig.clone().inverted(), [left, right]);
    assert!(
        inverted.contains("--inverse-pose a.yml") && !inverted.contains("--swap"),
        "{inverted}"
    );
    let swapped = advice(rig.clone().swapped(), [left, right]);
    assert!(swapped.contains("--swap a.yml") && !swapped.contains("--inverse-pose"), "{swapped}");
    let both = advice(rig.swapped(), [right, left]);
    assert!(both.contains("--swap a.yml") && both.contains("exchange the two inputs"), "{both}");
}

#[test]
fn a_focal_length_that_is_not_in_pixels_is_refused() {
    let Some(bugs) = data("bugs") else { return };
    let folder = tempfile::tempdir().unwrap();
    let views = ["left.jpg", "right.jpg"].map(|view| bugs.join("unit-cm").join(view));
    let mut command = stereod(&["match", "--focal", "0.75", "--baseline", "0.1", "-o", "d.png"]);
    let (status, _, stderr) = outcome(command.args(views).current_dir(folder.path()));
    assert!(status == 2 && stderr.contains("relative to the width by 640"), "{stderr}");
}
