//! Wrong usage says what is right.

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
    assert!(stderr.contains("l1.png + r1.png: in both eyes no board is seen"), "{stderr}");
    assert!(stderr.contains("l3.png: only the left eye has this picture"), "{stderr}");
    assert!(!folder.path().join("o.toml").exists());

    let (status, _, stderr) = run(
        folder.path(),
        &[&["--left-pictures", "l3.png", "--right-pictures", "r1.png", "-o", "o.toml"], &board[..]]
            .concat(),
    );
    assert_eq!(status, 1);
    assert!(stderr.contains("it is no PNG, JPEG"), "{stderr}");
}
