//! The printed black of a board.

use super::aprilgrid::BORDER;
use super::charuco::{FAMILY, markers};
use crate::board::pattern::{Board, Pattern};

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
    if let Pattern::AprilGrid { columns, rows, spacing } = board.pattern {
        april_ink((columns, rows), side, spacing * side, &mut ink);
        return ink;
    }
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
                marker_ink(code, [modules, 1], corner, marker_ratio * side, &mut ink);
                marker += 1;
            }
        }
    }
    ink
}

/// Adds the tags of an AprilGrid and the squares between them, as Kalibr's kalibr_create_target_pdf draws them: the
/// numbers begin at the lower left tag, and each is upside down compared with OpenCV's drawing.
fn april_ink((columns, rows): (usize, usize), side: f64, gap: f64, ink: &mut Vec<Ink>) {
    let family = markers(FAMILY);
    let bits = family.marker_size();
    let step = side + gap;
    for (row, column) in (0..=rows).flat_map(|row| (0..=columns).map(move |c| (row, c))) {
        let (x, y) = (column as f64 * step, row as f64 * step);
        ink.push(Ink { x, y, width: gap, height: gap });
        if row < rows && column < columns {
            let code = family.codes()[(rows - 1 - row) * columns + column];
            let upside_down = code.reverse_bits() >> (64 - bits * bits);
            marker_ink(upside_down, [bits, BORDER], (x + gap, y + gap), side, ink);
        }
    }
}

/// Adds the black runs of a marker: a border of `border` modules around the code's bits.
pub(super) fn marker_ink(
    code: u64,
    [bits, border]: [usize; 2],
    (left, top): (f64, f64),
    side: f64,
    ink: &mut Vec<Ink>,
) {
    let modules = bits + 2 * border;
    let module = side / modules as f64;
    let black = |x: usize, y: usize| {
        let code_at = border..border + bits;
        let inside = code_at.contains(&x) && code_at.contains(&y);
        !inside || code >> ((y - border) * bits + x - border) & 1 == 1
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
