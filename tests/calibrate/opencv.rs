//! OpenCV's own example images, and OpenCV's result for them (reference_stereo.json next to the
//! images describes the procedure).

use std::fs;

use super::*;

const BOARD: [&str; 4] = ["--board", "chessboard:9x6", "--square", "0.025"];

fn pictures(folder: &Path) -> Vec<String> {
    let pattern = |eye: &str| folder.join(format!("{eye}*.???")).display().to_string();
    let all =
        ["--left-pictures", &pattern("left[0-9]"), "--right-pictures", &pattern("right[0-9]")];
    all.iter().chain(&BOARD).map(|text| text.to_string()).collect()
}

fn of_pictures(folder: &Path, more: &[&str]) -> Value {
    let scratch = tempfile::tempdir().unwrap();
    let arguments = pictures(folder);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    report(scratch.path(), &[&arguments[..], more].concat())
}

fn reference(folder: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join("reference_stereo.json")).unwrap())
        .unwrap()
}

/// With OpenCV's corner window and all pairs, the numbers equal OpenCV's.
#[test]
fn as_opencv_finds_it() {
    let Some(folder) = data("opencv_calib") else { return };
    let (found, expected) =
        (of_pictures(&folder, &["--corner-window", "11", "--keep-all"]), reference(&folder));
    assert_eq!(found["pairs_used"], 13);
    for key in ["/rms_px", "/mean_epipolar_error_px", "/baseline_m"] {
        close(number(&found, key), number(&expected, key), 0.02, key);
    }
    for camera in ["K1", "K2"] {
        for (row, column) in [(0, 0), (1, 1), (0, 2), (1, 2)] {
            let key = format!("/{camera}/{row}/{column}");
            close(number(&found, &key), number(&expected, &key), 0.002, &key);
        }
    }
}

/// With windows that fit the squares, the same camera model fits better: the squares of some pairs
/// are smaller than OpenCV's window.
#[test]
fn better_than_opencv_finds_it() {
    let Some(folder) = data("opencv_calib") else { return };
    let (found, expected) = (of_pictures(&folder, &[]), reference(&folder));
    assert_eq!(left_out(&found), []);
    for key in ["/rms_px", "/mean_epipolar_error_px", "/rectified_row_error_px/mean"] {
        let (found, expected) = (number(&found, key), number(&expected, key));
        assert!(found < expected, "{key}: {found}, OpenCV {expected}");
    }
    close(number(&found, "/baseline_m"), number(&expected, "/baseline_m"), 0.02, "baseline");
    close(number(&found, "/K1/0/0"), number(&expected, "/K1/0/0"), 0.02, "focal length");
    // Result of OpenCV 4.10 with a cornerSubPix window of 7 instead of 11 (its best): RMS 0.2010
    // px, baseline 0.083173 m, focal lengths 533.66 and 537.22 px.
    assert!(number(&found, "/rms_px") < 1.02 * 0.2010);
    close(number(&found, "/baseline_m"), 0.083173, 0.002, "baseline");
    close(number(&found, "/K1/0/0"), 533.66, 0.002, "focal length");
    close(number(&found, "/K2/0/0"), 537.22, 0.002, "focal length");
}

/// Calibrations of two halves of the pairs differ by about as much as their deviations say.
#[test]
fn halves_differ_by_their_deviations() {
    let Some(folder) = data("opencv_calib") else { return };
    const SPLITS: usize = 6;
    let mut numbers: Vec<u32> = (1..=14).filter(|number| *number != 10).collect();
    let mut state = 1u64;
    let mut squares = [0.0; 3];
    for split in 0..SPLITS {
        for i in (1..numbers.len()).rev() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            numbers.swap(i, (state >> 33) as usize % (i + 1));
        }
        let halves = numbers.split_at(6 + split % 2);
        let [one, other] = [halves.0, halves.1].map(|half| {
            let scratch = tempfile::tempdir().unwrap();
            for number in half {
                for eye in ["left", "right"] {
                    let name = format!("{eye}{number:02}.jpg");
                    fs::copy(folder.join(&name), scratch.path().join(&name)).unwrap();
                }
            }
            of_pictures(scratch.path(), &["--force"])
        });
        let of = |found: &Value| {
            [
                ("/baseline_m", "/baseline_sd_m"),
                ("/K1/0/0", "/focal_sd_px/0"),
                ("/K2/0/0", "/focal_sd_px/1"),
            ]
            .map(|(value, sd)| (number(found, value), number(found, sd)))
        };
        for (square, (one, other)) in squares.iter_mut().zip(of(&one).into_iter().zip(of(&other))) {
            *square += (one.0 - other.0).powi(2) / (one.1.powi(2) + other.1.powi(2));
        }
    }
    let relative = squares.map(|square| (square / SPLITS as f64).sqrt());
    assert!(relative.iter().all(|error| (0.5..1.4).contains(error)), "{relative:?}");
}

/// Unusable images do not affect the result.
#[test]
fn what_is_wrong_is_found_and_left_out() {
    let Some(folder) = data("opencv_calib") else { return };
    let clean = of_pictures(&folder, &[]);
    let mixed = tempfile::tempdir().unwrap();
    let at = |name: &str| mixed.path().join(name);
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "jpg") {
            fs::copy(&path, at(path.file_name().unwrap().to_str().unwrap())).unwrap();
        }
    }
    let copy = |from: &str, to: &str| {
        fs::copy(folder.join(from), at(to)).unwrap();
    };
    let open = |name: &str| image::open(folder.join(name)).unwrap().to_luma8();
    // Blurred by 2 px, by 4 px, and along a row as by a moving hand.
    for (number, sigma) in [(20, 2.0), (21, 4.0)] {
        let blurred = image::imageops::blur(&open("left03.jpg"), sigma);
        blurred.save(at(&format!("left{number}.png"))).unwrap();
        copy("right03.jpg", &format!("right{number}.jpg"));
    }
    let sharp = open("right06.jpg");
    let smeared = image::GrayImage::from_fn(sharp.width(), sharp.height(), |x, y| {
        let sum: u32 = (0..9).map(|i| u32::from(sharp.get_pixel((x + i).min(639), y).0[0])).sum();
        image::Luma([(sum / 9) as u8])
    });
    copy("left06.jpg", "left22.jpg");
    smeared.save(at("right22.png")).unwrap();
    // Views from two moments; a view that is upside down counts as one of another moment.
    copy("left07.jpg", "left23.jpg");
    copy("right03.jpg", "right23.jpg");
    // Moved a little: by 3 rows.
    copy("left04.jpg", "left24.jpg");
    let still = open("right04.jpg");
    let moved =
        image::GrayImage::from_fn(640, 480, |x, y| *still.get_pixel(x, y.saturating_sub(3)));
    moved.save(at("right24.png")).unwrap();
    // Damaged: cut off, empty, not an image.
    let whole = fs::read(folder.join("left05.jpg")).unwrap();
    fs::write(at("left25.jpg"), &whole[..whole.len() / 3]).unwrap();
    copy("right05.jpg", "right25.jpg");
    fs::write(at("left26.jpg"), b"").unwrap();
    copy("right05.jpg", "right26.jpg");
    fs::write(at("left27.jpg"), b"this is no picture").unwrap();
    copy("right05.jpg", "right27.jpg");
    // Without a partner, without a board, and of another size.
    copy("left08.jpg", "left28.jpg");
    copy("left08.jpg", "left29.jpg");
    image::GrayImage::from_fn(640, 480, |x, y| image::Luma([(x / 3 + y / 4) as u8]))
        .save(at("right29.png"))
        .unwrap();
    copy("left09.jpg", "left30.jpg");
    image::imageops::resize(&open("right09.jpg"), 800, 600, image::imageops::FilterType::Triangle)
        .save(at("right30.png"))
        .unwrap();

    let found = of_pictures(mixed.path(), &[]);
    let expected = [
        ("left20.png + right20.jpg", "blurred"),
        ("left21.png + right21.jpg", "blurred|not-found"),
        ("left22.jpg + right22.png", "blurred"),
        ("left23.jpg + right23.jpg", "moved"),
        ("left24.jpg + right24.png", "moved"),
        ("left25.jpg + right25.jpg", "unreadable|not-found"),
        ("left26.jpg + right26.jpg", "unreadable"),
        ("left27.jpg + right27.jpg", "unreadable"),
        ("left28.jpg", "alone"),
        ("left29.jpg + right29.png", "not-found"),
        ("left30.jpg + right30.png", "size"),
    ];
    let out = left_out(&found);
    assert_eq!(out.len(), expected.len(), "{out:#?}");
    for ((name, kind), (expected_name, kinds)) in out.iter().zip(expected) {
        assert_eq!(name, expected_name);
        assert!(kinds.split('|').any(|one| one == kind), "{name}: {kind} instead of {kinds}");
    }
    assert_eq!(found["pairs_used"], 13);
    for key in ["/rms_px", "/mean_epipolar_error_px", "/baseline_m"] {
        close(number(&found, key), number(&clean, key), 1e-6, key);
    }
}

/// In ChArUco boards of OpenCV before 4.6, the first square is white.
#[test]
fn boards_of_older_versions_are_found_without_a_warning() {
    let Some(folder) = data("bugs/charuco-legacy") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let [left, right] =
        ["left*.jpg", "right*.jpg"].map(|name| folder.join(name).display().to_string());
    let board = ["--board", "charuco:8x6:0.75:4x4_50", "--square", "0.03"];
    let pictures = ["--left-pictures", &left, "--right-pictures", &right];
    // Four pairs are too few for a good calibration.
    let more = ["--force", "-o", "out.toml", "--json", "-"];
    let (status, stdout, stderr) = run(scratch.path(), &[&pictures[..], &board, &more].concat());
    assert_eq!((status, stderr.as_str()), (0, ""));
    let found: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((found["pairs_used"].as_u64(), left_out(&found)), (Some(4), Vec::new()));
    assert!(number(&found, "/rms_px") < 0.2, "{found}");
}
