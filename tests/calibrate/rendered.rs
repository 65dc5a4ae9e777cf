//! Rendered boards before known cameras.

use std::time::Duration;

use stereod_calibration::board::Board;
use stereod_core::frame::Image;

use super::scene::{Eye, Painter, Stand, copy, eyes, save, small_eyes, stands};
use super::*;

fn painters(board: &Board, eyes: &[Eye; 2]) -> [Painter; 2] {
    [Painter::new(&eyes[0], board), Painter::new(&eyes[1], board)]
}

/// Checks that the cameras were found again.
fn check(found: &Value, eyes: &[Eye; 2], part: f64) {
    for (eye, camera) in eyes.iter().zip(["K1", "K2"]) {
        close(number(found, &format!("/{camera}/0/0")), eye.focal, part, "focal length");
        for axis in 0..2 {
            let centre = number(found, &format!("/{camera}/{axis}/2"));
            let off = (centre - eye.centre[axis]).abs();
            assert!(off < part * eye.focal, "{camera}: centre {centre}, off by {off}");
        }
    }
    close(number(found, "/baseline_m"), eyes[1].translation.norm(), part, "baseline");
    for (value, sd, truth) in [
        ("/baseline_m", "/baseline_sd_m", eyes[1].translation.norm()),
        ("/K1/0/0", "/focal_sd_px/0", eyes[0].focal),
        ("/K2/0/0", "/focal_sd_px/1", eyes[1].focal),
    ] {
        let (off, sd) = (number(found, value) - truth, number(found, sd));
        assert!(off.abs() < 3.5 * sd, "{value} is off by {off}, {sd} is stated");
    }
    assert!(number(found, "/rectified_row_error_px/mean") < 0.15, "{found}");
}

#[test]
fn charuco_boards_that_leave_the_picture_give_the_cameras_back() {
    let folder = tempfile::tempdir().unwrap();
    let board =
        Board::new(stereod_calibration::board::pattern("charuco:11x8").unwrap(), 0.045).unwrap();
    let eyes = eyes();
    let [left, right] = painters(&board, &eyes);
    for (i, stand) in stands().iter().enumerate() {
        save(&left.paint(stand), &folder.path().join(format!("l{i:02}.png")));
        save(&right.paint(stand), &folder.path().join(format!("r{i:02}.png")));
    }
    let arguments =
        ["--left-pictures", "l*.png", "--right-pictures", "r*.png", "--square", "0.045"];
    let found = report(folder.path(), &[&arguments[..], &["--board", "charuco:11x8"]].concat());
    check(&found, &eyes, 0.003);
    assert!(found["pairs_used"].as_u64().unwrap() >= 16, "{:?}", left_out(&found));
    assert_eq!(found["verdict"]["quality"], "good", "{}", found["verdict"]);
    // The written file is a calibration that the rest of the program can read.
    let mut show = stereod(&["calibration", "show", "out.toml"]);
    let (status, _, stderr) = outcome(show.current_dir(folder.path()));
    assert_eq!(status, 0, "{stderr}");

    // The same board with markers of another dictionary is not found, and a message says so.
    let wrong = ["--board", "charuco:11x8:0.75:6x6_250", "-o", "wrong.toml"];
    let (status, _, stderr) = run(folder.path(), &[&arguments[..], &wrong].concat());
    assert_eq!(status, 1);
    assert!(stderr.contains("not the markers of this board"), "{stderr}");
}

/// The right camera has smaller images than the left one.
#[test]
fn an_aprilgrid_gives_unlike_cameras_back() {
    let folder = tempfile::tempdir().unwrap();
    let board =
        Board::new(stereod_calibration::board::pattern("aprilgrid:6x5:0.25").unwrap(), 0.064)
            .unwrap();
    let ([left, _], [_, right]) = (eyes(), small_eyes());
    let eyes = [left, right];
    let [left, right] = painters(&board, &eyes);
    for (i, stand) in stands().iter().enumerate() {
        save(&left.paint(stand), &folder.path().join(format!("l{i:02}.png")));
        save(&right.paint(stand), &folder.path().join(format!("r{i:02}.png")));
    }
    let arguments = ["--left-pictures", "l*.png", "--right-pictures", "r*.png"];
    let board = ["--board", "aprilgrid:6x5:0.25", "--square", "0.064"];
    let found = report(folder.path(), &[&arguments[..], &board].concat());
    check(&found, &eyes, 0.003);
    assert_eq!(
        (&found["image_size"], &found["right_image_size"]),
        (&json!([640, 480]), &json!([480, 360]))
    );
    assert!(found["pairs_used"].as_u64().unwrap() >= 16, "{:?}", left_out(&found));
    assert_eq!(found["verdict"]["quality"], "good", "{}", found["verdict"]);
    let wrong = ["--board", "aprilgrid:2x2", "--square", "0.064", "-o", "wrong.toml"];
    let (status, _, stderr) = run(folder.path(), &[&arguments[..], &wrong].concat());
    assert!(status == 1 && stderr.contains("corners of the board are seen"), "{stderr}");
}

/// A board that is moved from pose to pose and held still in each for a number of frames.
pub fn motion(stands: &[Stand], held: usize) -> Vec<Stand> {
    const MOVING: usize = 6;
    let mut path = Vec::new();
    for (stand, next) in stands.iter().zip(stands.iter().cycle().skip(1)) {
        path.extend(vec![*stand; held]);
        path.extend((1..MOVING).map(|i| stand.towards(next, i as f64 / MOVING as f64)));
    }
    path
}

pub fn write_videos(folder: &Path, path: &[Stand], eyes: &[Eye; 2], board: &Board) {
    for (painter, name) in painters(board, eyes).iter().zip(["l.mkv", "r.mkv"]) {
        // Where the board is held still, the picture is painted once.
        let mut frames: Vec<(Image, Duration)> = Vec::new();
        for (i, stand) in path.iter().enumerate() {
            let picture = match i.checked_sub(1).filter(|&before| path[before] == *stand) {
                Some(before) => copy(&frames[before].0),
                None => painter.paint(stand),
            };
            frames.push((picture, Duration::from_nanos(i as u64 * 1_000_000_000 / 30)));
        }
        numbered_videos::write(&folder.join(name), &frames, 30, "avenc_ffv1 ! matroskamux");
    }
}

#[test]
fn still_and_different_pairs_of_a_video_are_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let board =
        Board::new(stereod_calibration::board::pattern("chessboard:8x5").unwrap(), 0.04).unwrap();
    let eyes = small_eyes();
    write_videos(folder.path(), &motion(&stands(), 8), &eyes, &board);
    let arguments =
        ["--left", "l.mkv", "--right", "r.mkv", "--board", "chessboard:8x5", "--square", "0.04"];
    let found = report(folder.path(), &arguments);
    check(&found, &eyes, 0.006);
    // One pair of every pose that both cameras see completely, none from the motion between two.
    let used = found["pairs_used"].as_u64().unwrap();
    assert!((10..=18).contains(&used), "{used}");
    for pair in found["pairs"].as_array().unwrap() {
        let name = pair["name"].as_str().unwrap();
        let number: usize = name.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(number % 13 < 9, "{name} was taken while the board moved");
    }
    // Of a part, which begins at the fourth pose, pairs keep their numbers; and no more are taken than are wanted.
    let part = ["--start", "1.3", "--max-pairs", "7"];
    let later = report(folder.path(), &[&arguments[..], &part].concat());
    let names = later["pairs"].as_array().unwrap().iter().map(|pair| pair["name"].as_str());
    let numbers: Vec<usize> = names
        .map(|name| name.unwrap().split_whitespace().nth(1).unwrap().parse().unwrap())
        .collect();
    assert!(numbers.len() == 7 && numbers.iter().all(|&number| number >= 39), "{numbers:?}");
}

#[test]
fn numbered_pictures_as_a_stream_may_be_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let board =
        Board::new(stereod_calibration::board::pattern("chessboard:8x5").unwrap(), 0.04).unwrap();
    let eyes = small_eyes();
    let [left, right] = painters(&board, &eyes);
    for (i, stand) in stands().iter().enumerate() {
        let (left, right) = (left.paint(stand), right.paint(stand));
        let both =
            Image::from_fn(
                960,
                360,
                |x, y| {
                    if x < 480 { left.row(y)[x] } else { right.row(y)[x - 480] }
                },
            );
        save(&both, &folder.path().join(format!("{i:03}.png")));
    }
    let arguments = ["--side-by-side", "%03d.png", "--board", "chessboard:8x5", "--square", "0.04"];
    check(&report(folder.path(), &arguments), &eyes, 0.006);
}

/// Cameras without a window: the log gives the instructions, and an interrupt ends the run.
#[test]
fn a_person_without_a_window_is_told_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let board =
        Board::new(stereod_calibration::board::pattern("chessboard:8x5").unwrap(), 0.04).unwrap();
    let painters = painters(&board, &small_eyes());
    for (painter, name) in painters.iter().zip(["l.png", "r.png"]) {
        save(&painter.paint(&stands()[4]), &folder.path().join(name));
    }
    let camera = |name: &str| {
        format!(
            "filesrc location={name} ! pngdec ! imagefreeze is-live=true ! \
             video/x-raw,framerate=15/1"
        )
    };
    let (left, right) = (camera("l.png"), camera("r.png"));
    let arguments = ["--left", &left, "--right", &right, "--board", "chessboard:8x5"];
    let mut command =
        command(folder.path(), &[&arguments[..], &["--square", "0.04", "-o", "o.toml"]].concat());
    let log = folder.path().join("log");
    let child = command.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
    let said = || std::fs::read_to_string(&log).unwrap();
    wait_until("the second of two like pairs", || said().contains("taken already"));
    // SAFETY: the process is our child and not yet waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    let (output, stderr) = (ended(child), said());
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("pair 1 taken"), "{stderr}");
    assert!(stderr.contains("taken already: move the board; wanted: the board in"), "{stderr}");
    assert!(stderr.contains("only 1 of ") && stderr.contains(" like others"), "{stderr}");
}
