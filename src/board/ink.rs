//! The printed black of a board.

use super::charuco::markers;
use stereod_core::calibration::board::pattern::{Board, Pattern};

/// A black rectangle of a board in metres, from the board's top left corner; x to the right, y down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ink {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// Returns all black rectangles.
pub fn ink(board: &Board) -> Vec<Ink> {
    let (squares_x, squares_y) = board.pattern.squares();
    let side = board.square_m;
    let mut ink = Vec::new();
    let mut marker = 0;
    for y in 0..squares_y {
        for x in 0..squares_x {
            let (left, top) = (x as f64 * side, y as f64 * side);
            if (x + y) % 2 == 0 {
                ink.push(Ink { x: left, y: top, width: side, height: side });
            } else if let Pattern::Charuco { marker_ratio, dictionary, .. } = board.pattern {
                let inset = (1.0 - marker_ratio) / 2.0 * side;
                let corner = (left + inset, top + inset);
                let dictionary = markers(dictionary);
                let (code, modules) = (dictionary.codes()[marker], dictionary.marker_size());
                marker_ink(code, modules, corner, marker_ratio * side, &mut ink);
                marker += 1;
            }
        }
    }
    ink
}

/// Returns the black runs of a marker: a border of one module around the code's bits.
pub(super) fn marker_ink(
    code: u64,
    bits: usize,
    (left, top): (f64, f64),
    side: f64,
    ink: &mut Vec<Ink>,
) {
    let modules = bits + 2;
    let module = side / modules as f64;
    let black = |x: usize, y: usize| {
        let inside = (1..=bits).contains(&x) && (1..=bits).contains(&y);
        !inside || code >> ((y - 1) * bits + x - 1) & 1 == 1
    };
    for y in 0..modules {
        let mut x = 0;
        while x < modules {
            let run = (x..modules).take_while(|&x| black(x, y)).count();
            if run > 0 {
                ink.push(Ink {
                    x: left + x as f64 * module,
                    y: top + y as f64 * module,
                    width: run as f64 * module,
                    height: module,
                });
            }
            x += run.max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::Vector3;

    use super::*;

    #[test]
    fn half_the_squares_of_a_chessboard_are_black() {
        let board = Board::new(Pattern::chessboard(9, 6).unwrap(), 0.02).unwrap();
        assert_eq!(ink(&board).len(), 35);
        assert_eq!(board.count(), 54);
        assert_eq!(board.point(0), Vector3::new(0.02, 0.02, 0.0));
        assert!((board.point(10) - Vector3::new(0.04, 0.04, 0.0)).norm() < 1e-15);
        assert_eq!(ink(&board)[1].x, 0.04);
    }
}
