//! Pattern and size of a board.

use std::fmt;

use nalgebra::Vector3;

/// Largest number of squares along a side; more is a typing error.
pub const MOST_SQUARES: usize = 200;

/// Shortest side of a square in metres: boards for microscopes have squares of 50 um.
const SQUARE_MIN_M: f64 = 1e-5;

#[derive(Clone, Copy, Debug)]
pub enum Pattern {
    /// Black and white squares; the top left one is black.
    Chessboard {
        /// Inner corners along a row: one less than squares.
        columns: usize,
        /// Inner corners along a column.
        rows: usize,
    },
    /// A chessboard with a marker in every white square (Garrido-Jurado et al. 2014). It is printed
    /// as by OpenCV since 4.6, with a black square at the top left; older boards with an even
    /// number of rows, which start with a white square, are detected, too.
    Charuco {
        /// Squares along a row.
        squares_x: usize,
        /// Squares along a column.
        squares_y: usize,
        /// Side of a marker relative to the square's.
        marker_ratio: f64,
        /// Name of the dictionary of markers, in OpenCV's numbering.
        dictionary: &'static str,
    },
    /// A grid of AprilTags with black squares between their corners, as Kalibr prints it.
    AprilGrid {
        /// Tags along a row.
        columns: usize,
        /// Tags along a column.
        rows: usize,
        /// Distance between tags relative to a tag's side.
        spacing: f64,
    },
}

/// A board of a known size.
#[derive(Clone, Copy, Debug)]
pub struct Board {
    pub pattern: Pattern,
    /// Side of a square, or of a tag of an AprilGrid.
    pub square_m: f64,
}

/// Reason why there is no such board.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BoardError(pub String);

impl Pattern {
    /// Makes a chessboard with these numbers of inner corners.
    pub fn chessboard(columns: usize, rows: usize) -> Result<Self, BoardError> {
        if columns.min(rows) < 3 || columns.max(rows) >= MOST_SQUARES {
            return Err(BoardError(format!(
                "a chessboard has 3 to {} inner corners along each side, not {columns}x{rows}; \
                 count where four squares meet",
                MOST_SQUARES - 1
            )));
        }
        Ok(Self::Chessboard { columns, rows })
    }

    /// Returns the inner corners, or those of the tags, along a row and along a column.
    pub fn corners(&self) -> (usize, usize) {
        match *self {
            Self::Chessboard { columns, rows } => (columns, rows),
            Self::Charuco { squares_x, squares_y, .. } => (squares_x - 1, squares_y - 1),
            Self::AprilGrid { columns, rows, .. } => (2 * columns, 2 * rows),
        }
    }

    /// Returns the squares of a chessboard along a row and along a column.
    pub fn squares(&self) -> (usize, usize) {
        let (columns, rows) = self.corners();
        (columns + 1, rows + 1)
    }

    /// Returns the distance of this corner of a row or column from the board's edge, in sides of a square. The corner
    /// after the last one is the other edge.
    fn place(&self, corner: usize) -> f64 {
        match *self {
            Self::AprilGrid { spacing, .. } => {
                (corner / 2) as f64 * (1.0 + spacing) + spacing + (corner % 2) as f64
            }
            _ => (corner + 1) as f64,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chessboard { columns, rows } => write!(f, "chessboard:{columns}x{rows}"),
            Self::Charuco { squares_x, squares_y, marker_ratio, dictionary } => {
                let name = dictionary.trim_start_matches("DICT_").to_lowercase();
                write!(f, "charuco:{squares_x}x{squares_y}:{marker_ratio}:{name}")
            }
            Self::AprilGrid { columns, rows, spacing } => {
                write!(f, "aprilgrid:{columns}x{rows}:{spacing}")
            }
        }
    }
}

impl Board {
    /// Makes a board with squares of this side in metres.
    pub fn new(pattern: Pattern, square_m: f64) -> Result<Self, BoardError> {
        if !(SQUARE_MIN_M..10.0).contains(&square_m) {
            return Err(BoardError(format!(
                "the side of a square is given in metres, such as 0.025, not {square_m}"
            )));
        }
        Ok(Self { pattern, square_m })
    }

    /// Returns the number of corners; they are counted row by row from the top left one.
    pub fn count(&self) -> usize {
        let (columns, rows) = self.pattern.corners();
        columns * rows
    }

    /// Returns the position of a corner on the board, in metres from its top left corner; x
    /// to the right, y down, z into the board.
    pub fn point(&self, corner: usize) -> Vector3<f64> {
        let (columns, _) = self.pattern.corners();
        let at = |corner: usize| self.pattern.place(corner) * self.square_m;
        Vector3::new(at(corner % columns), at(corner / columns), 0.0)
    }

    /// Returns width and height of all squares in metres.
    pub fn size_m(&self) -> (f64, f64) {
        let (columns, rows) = self.pattern.corners();
        let end = |corners: usize| self.pattern.place(corners) * self.square_m;
        (end(columns), end(rows))
    }
}
