//! Printed boards are to scale, and are found in what is printed.

use stereod_calibration::board::Board;
use stereod_calibration::board::detect::Detector;
use stereod_core::frame::Image;

use super::*;

/// Pixels a millimetre of the drawn page.
const DOTS: f64 = 4.0;

/// Prints a board; the paper's size in mm and its black rectangles (x, y, width, height) in mm.
type Drawing = ((f64, f64), Vec<[f64; 4]>);

fn printed(name: &str, arguments: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [&["--print-board", "-o", name], arguments].concat();
    let (status, stdout, stderr) = run(folder.path(), &arguments);
    assert_eq!(status, 0, "{stderr}");
    assert!(stdout.contains("print it at 100 %"), "{stdout}");
    std::fs::read(folder.path().join(name)).unwrap()
}

fn numbers(text: &str) -> Vec<f64> {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
        .filter_map(|word| word.parse().ok())
        .collect()
}

/// Reads the SVG's size and the rectangles of its black path.
fn from_svg(svg: &[u8]) -> Drawing {
    let text = std::str::from_utf8(svg).unwrap();
    let attribute = |name: &str| {
        let from = text.find(name).unwrap() + name.len();
        let value = &text[from..];
        value[..value.find('"').unwrap()].to_owned()
    };
    let view = numbers(&attribute("viewBox=\""));
    let size = (numbers(&attribute("width=\""))[0], numbers(&attribute("height=\""))[0]);
    assert_eq!((view[2], view[3]), size, "a unit of the drawing is a millimetre");
    assert!(attribute("width=\"").ends_with("mm"));
    let path = attribute("fill=\"black\" d=\"");
    let rectangles = path.split('M').skip(1).map(|one| {
        let one = numbers(&one.replace(['h', 'v'], " "));
        [one[0], one[1], one[2], one[3]]
    });
    (size, rectangles.collect())
}

/// Reads the PDF's page size and the rectangles of its content, which is not compressed.
fn from_pdf(pdf: &[u8]) -> Drawing {
    let text = String::from_utf8_lossy(pdf);
    let after = |word: &str| &text[text.find(word).unwrap() + word.len()..];
    let page = numbers(&after("/MediaBox")[..60]);
    let content = after("stream\n");
    let content = &content[..content.find("endstream").unwrap()];
    let mut lines = content.lines();
    let scale = numbers(lines.find(|line| line.ends_with(" cm")).unwrap());
    let point = 25.4 / 72.0;
    assert!((scale[0] * point - 1.0).abs() < 1e-5, "{scale:?}");
    assert!((scale[3] * point + 1.0).abs() < 1e-5, "{scale:?}");
    let rectangles = content.lines().filter(|line| line.ends_with(" re")).map(|line| {
        let one = numbers(line);
        [one[0], one[1], one[2], one[3]]
    });
    ((page[2] * point, page[3] * point), rectangles.collect())
}

/// Draws the page as a printer would.
fn draw((size, rectangles): &Drawing) -> Image {
    let (width, height) = ((size.0 * DOTS) as usize, (size.1 * DOTS) as usize);
    let mut page = vec![255u8; width * height];
    for [x, y, w, h] in rectangles {
        let at = |length: f64| (length * DOTS).round() as usize;
        for row in at(*y)..at(y + h) {
            page[row * width..][at(*x)..at(x + w)].fill(20);
        }
    }
    Image::from_vec(width, height, page)
}

fn check(pattern: &str, square_mm: f64, page: &str, expected: (f64, f64)) {
    let square = (square_mm / 1e3).to_string();
    let arguments = ["--board", pattern, "--square", &square, "--page", page];
    for drawing in
        [from_svg(&printed("board.svg", &arguments)), from_pdf(&printed("board.pdf", &arguments))]
    {
        let size = drawing.0;
        assert!(
            (size.0 - expected.0).abs() < 0.01 && (size.1 - expected.1).abs() < 0.01,
            "{size:?}"
        );
        let board =
            Board::new(stereod_calibration::board::pattern(pattern).unwrap(), square_mm / 1e3)
                .unwrap();
        let seen = Detector::new(board).detect(&draw(&drawing)).unwrap();
        assert_eq!(seen.corners.len(), board.count(), "{pattern}");
        let first = seen.corners[0];
        for corner in &seen.corners {
            let moved = board.point(corner.id) - board.point(first.id);
            for axis in 0..2 {
                let found = (corner.pixel[axis] - first.pixel[axis]) / DOTS;
                // Printed dots are a quarter of a millimetre.
                assert!((found - 1e3 * moved[axis]).abs() < 0.3, "{pattern} {}", corner.id);
            }
        }
        // All on the paper, with a margin.
        for [x, y, w, h] in &drawing.1 {
            assert!(*x >= 9.99 && *y >= 9.99);
            assert!(x + w <= size.0 - 9.99 && y + h <= size.1 - 9.99);
        }
    }
}

#[test]
fn chessboards_are_to_scale() {
    check("chessboard:9x6", 25.0, "auto", (297.0, 210.0));
    check("chessboard:6x8", 25.0, "letter", (215.9, 279.4));
    check("chessboard:7x5", 30.0, "board", (260.0, 214.0));
}

#[test]
fn charuco_boards_are_to_scale() {
    check("charuco:9x6", 28.0, "a4", (297.0, 210.0));
    check("charuco:11x8:0.7:5x5_100", 30.0, "a3", (420.0, 297.0));
}

#[test]
fn what_cannot_be_printed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, words) in [
        (&["--square", "0.05", "--page", "a4", "-o", "b.pdf"][..], "does not fit on A4"),
        (&["--square", "0.02", "-o", "b.png"], ".pdf or .svg"),
        (&["--square", "25", "-o", "b.pdf"], "in metres"),
    ] {
        let all = [&["--print-board", "--board", "chessboard:9x6"], arguments].concat();
        let (status, _, stderr) = run(folder.path(), &all);
        assert_eq!(status, 2, "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
