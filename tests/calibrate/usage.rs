//! Wrong usage gives a message with the correct usage.

use stereod_calibration::board::Board;

use super::scene::{Painter, save, small_eyes, stands};
use super::*;

#[test]
fn wrong_usage_exits_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let grey = image::GrayImage::from_fn(64, 48, |x, y| image::Luma([(x + y) as u8]));
    for name in ["l1.png", "l2.png", "lx.png", "r1.png"] {
        grey.save(folder.path().join(name)).unwrap();
    }
    let board = ["--board", "chessboard:9x6", "--square", "0.025"];
    let pictures = ["--left-pictures", "l?.png", "--right-pictures", "r?.png"];
    let cases: [(Vec<&str>, &str); 8] = [
        ([&board[..], &["-o", "o.toml"]].concat(), "--left-pictures"),
        ([&board[..], &pictures, &["-o", "o.yml"]].concat(), "stereod calibration convert"),
        ([&board[..], &pictures, &["-o", "."]].concat(), "it is a folder"),
        // lx.png has no number, so only the order could tell, and there are three and one.
        ([&board[..], &pictures, &["-o", "o.toml"]].concat(), "3 left and 1 right"),
        (
            [&board[..], &["--left-pictures", "q*.png", "--right-pictures", "r*", "-o", "o.toml"]]
                .concat(),
            "no file is called q*.png",
        ),
        ([&board[..2], &["--square", "0", "-o", "o.toml"], &pictures].concat(), "in metres"),
        (
            [&board[..], &["--marker", "0.02", "-o", "o.toml"], &pictures].concat(),
            "a chessboard has no markers",
        ),
        (
            [
                &["--board", "charuco:9x6:0.7:nonsense", "--square", "1", "-o", "o.toml"],
                &pictures[..],
            ]
            .concat(),
            "4x4_50",
        ),
    ];
    for (arguments, words) in cases {
        let (status, _, stderr) = run(folder.path(), &arguments);
        assert_eq!(status, 2, "{arguments:?}: {stderr}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
    }
    // An output that is an input.
    let own = ["--left-pictures", "l1.png", "--right-pictures", "r1.png", "--json", "l1.png"];
    let (status, _, stderr) = run(folder.path(), &[&board[..], &own, &["-o", "o.toml"]].concat());
    assert_eq!((status, stderr.contains("it is also an input")), (2, true), "{stderr}");
}

#[test]
fn pictures_without_a_board_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let grey = image::GrayImage::from_fn(320, 240, |x, y| image::Luma([(x / 2 + y / 3) as u8]));
    for name in ["l1.png", "l2.png", "r1.png", "r2.png"] {
        grey.save(folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("l3.png"), "no picture").unwrap();
    let arguments = ["--left-pictures", "l*.png", "--right-pictures", "r*.png", "-o", "o.toml"];
    let board = ["--board", "chessboard:9x6", "--square", "0.025"];
    let (status, _, stderr) = run(folder.path(), &[&arguments[..], &board].concat());
    assert_eq!(status, 1);
    assert!(stderr.contains("only 0 of 3 pairs can be used"), "{stderr}");
    assert!(stderr.contains("l1.png + r1.png: in both views no board is seen"), "{stderr}");
    assert!(stderr.contains("l3.png: only the left view has this picture"), "{stderr}");
    assert!(!folder.path().join("o.toml").exists());

    let (status, _, stderr) = run(
        folder.path(),
        &[&["--left-pictures", "l3.png", "--right-pictures", "r1.png", "-o", "o.toml"], &board[..]]
            .concat(),
    );
    assert_eq!(status, 1);
    assert!(stderr.contains("it is no PNG, JPEG"), "{stderr}");
}

/// One image given as both views: whatever the figures, it is no calibration, and an existing good
/// one stays.
#[test]
fn what_is_bad_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let board =
        Board::new(stereod_calibration::board::pattern("chessboard:8x5").unwrap(), 0.04).unwrap();
    let [left, _] = &small_eyes();
    let painter = Painter::new(left, &board);
    for (i, stand) in stands().iter().take(10).enumerate() {
        save(&painter.paint(stand), &folder.path().join(format!("{i:02}.png")));
    }
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("o.toml"), "good").unwrap();
    std::fs::write(at("o.json"), "good").unwrap();
    let arguments = ["--left-pictures", "??.png", "--right-pictures", "??.png", "-o", "o.toml"];
    let more = ["--board", "chessboard:8x5", "--square", "0.04", "--json", "o.json"];
    let arguments = [&arguments[..], &more].concat();
    let (status, stdout, stderr) = run(folder.path(), &arguments);
    assert_eq!(status, 1, "{stdout}{stderr}");
    for words in ["o.toml is not written", "in one place", "give each view its own", "--force"] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    assert!(!stderr.contains("known to") && !stdout.contains("written to"), "{stdout}{stderr}");
    for name in ["o.toml", "o.json"] {
        assert_eq!(std::fs::read_to_string(at(name)).unwrap(), "good");
    }
    let (status, stdout, stderr) = run(folder.path(), &[&arguments[..], &["--force"]].concat());
    assert_eq!(status, 0, "{stderr}");
    assert!(stdout.contains("written to o.toml") && stdout.contains("bad: "), "{stdout}");
    assert!(std::fs::read_to_string(at("o.toml")).unwrap().contains("[left]"));
}

/// Images were taken one by one, so none is reported as "moving", however few there are.
#[test]
fn too_few_pairs_say_how_many_are_needed() {
    let folder = tempfile::tempdir().unwrap();
    let board =
        Board::new(stereod_calibration::board::pattern("chessboard:8x5").unwrap(), 0.04).unwrap();
    let painters = small_eyes().map(|eye| Painter::new(&eye, &board));
    let [left, right] = painters.each_ref().map(|painter| painter.paint(&stands()[0]));
    let both = stereod_core::frame::Image::from_fn(960, 360, |x, y| {
        if x < 480 { left.row(y)[x] } else { right.row(y)[x - 480] }
    });
    for (name, picture) in [("l1.png", &left), ("r1.png", &right), ("both.png", &both)] {
        save(picture, &folder.path().join(name));
    }
    let board = ["--board", "chessboard:8x5", "--square", "0.04", "-o", "o.toml"];
    for source in [
        &["--side-by-side", "both.png"][..],
        &["--left-pictures", "l?.png", "--right-pictures", "r?.png"],
    ] {
        let (status, _, stderr) = run(folder.path(), &[source, &board[..]].concat());
        assert_eq!(status, 1, "{stderr}");
        assert!(
            stderr.contains("only 1 of 1 pairs can be used, at least 3 are needed"),
            "{stderr}"
        );
        assert!(
            stderr.contains("another place and tilt") && !stderr.contains("moving"),
            "{stderr}"
        );
    }
    // If no frame of a video could be kept, the message counts the frames.
    numbered_videos::write(
        &folder.path().join("both.mkv"),
        &[(both, std::time::Duration::ZERO)],
        30,
        "avenc_ffv1 ! matroskamux",
    );
    let (status, _, stderr) =
        run(folder.path(), &[&["--side-by-side", "both.mkv"], &board[..]].concat());
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("only 0 of 1 pairs can be used"), "{stderr}");
    assert!(stderr.contains("1 with the board just come into view"), "{stderr}");
}
