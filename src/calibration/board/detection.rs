//! Detections of boards in images.

use super::grid;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoardCorner {
    /// Number of the corner: [`Board::point`](super::Board::point) gives its position on the board.
    pub id: usize,
    /// Position in pixels; (0, 0) is the centre of the first pixel.
    pub pixel: [f64; 2],
}

/// A board in an image.
#[derive(Clone, Debug, PartialEq)]
pub struct Detection {
    /// The corners, by rising number.
    pub corners: Vec<BoardCorner>,
    /// Width of the edges between squares in pixels, in the direction of the widest: 1 to 3 in a sharp image.
    pub blur_px: f64,
    /// Median side of the squares in pixels.
    pub square_px: f64,
    /// The other orders of corners of a symmetric board.
    pub others: Vec<Vec<[f64; 2]>>,
    pub columns: usize,
}

/// Reason why no board was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    #[error("no board is seen whole")]
    Nothing,
    /// A chessboard of another size; or part of the board.
    #[error("a grid of {columns}x{rows} corners is seen instead of {wanted_columns}x{wanted_rows}")]
    Size {
        /// Corners along the longer side.
        columns: usize,
        /// Corners along the shorter side.
        rows: usize,
        /// Corners along a row of the board.
        wanted_columns: usize,
        /// Corners along a column of the board.
        wanted_rows: usize,
    },
    #[error("the board is seen, but not {missing} of its {all} corners")]
    Holes {
        /// Corners not seen.
        missing: usize,
        /// Corners of the board.
        all: usize,
    },
    #[error(
        "squares are seen, but not the markers of this board; is it another dictionary or size?"
    )]
    Markers,
    /// Too little of a ChArUco board.
    #[error("only {0} corners of the board are seen")]
    Few(usize),
}

impl Detection {
    /// Makes a detection of all corners of a chessboard, row by row, as sharp as the others.
    pub fn of_chessboard(corners: &[[f64; 2]], columns: usize) -> Self {
        let rows = corners.chunks(columns);
        let sides = rows.flat_map(|row| row.windows(2).map(|pair| distance(pair[0], pair[1])));
        Self {
            square_px: median(sides.collect()).unwrap_or_default(),
            blur_px: 1.0,
            corners: (0..).zip(corners).map(|(id, &pixel)| BoardCorner { id, pixel }).collect(),
            others: Vec::new(),
            columns,
        }
    }

    /// Makes a detection from corners (by rising number) and the width of edges in the image.
    #[cfg(test)]
    pub(crate) fn of_corners(corners: Vec<BoardCorner>, blur_px: f64) -> Self {
        Self { corners, blur_px, square_px: 40.0, others: Vec::new(), columns: 9 }
    }

    /// Returns the position of a corner, if it was seen.
    pub fn pixel(&self, id: usize) -> Option<[f64; 2]> {
        let at = self.corners.binary_search_by_key(&id, |corner| corner.id).ok()?;
        Some(self.corners[at].pixel)
    }

    /// Returns the corners in both detections, with their positions.
    pub fn shared<'a>(
        &'a self,
        other: &'a Detection,
    ) -> impl Iterator<Item = ([f64; 2], [f64; 2])> + 'a {
        self.corners.iter().filter_map(|c| Some((c.pixel, other.pixel(c.id)?)))
    }

    /// Returns the mean distance between the corners of two detections in pixels; `None` if they share none.
    pub fn distance(&self, other: &Detection) -> Option<f64> {
        let distances: Vec<_> = self.shared(other).map(|(a, b)| distance(a, b)).collect();
        (!distances.is_empty()).then(|| distances.iter().sum::<f64>() / distances.len() as f64)
    }

    /// Chooses the order of a symmetric board that the other view has.
    pub fn read_as(&mut self, other: &Detection) {
        if self.others.is_empty() {
            return;
        }
        let places = |detection: &Detection| -> Vec<_> {
            detection.corners.iter().map(|corner| corner.pixel).collect()
        };
        let mut orders = std::mem::take(&mut self.others);
        orders.push(places(self));
        let chosen = orders.swap_remove(grid::nearest_to(&orders, &places(other), self.columns));
        self.corners.iter_mut().zip(chosen).for_each(|(corner, pixel)| corner.pixel = pixel);
        self.others = orders;
    }
}

pub fn distance(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

/// Returns the upper median; `None` for no values.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
