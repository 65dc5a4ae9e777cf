//! Coverage of an image by the board.

use serde::Serialize;

use crate::board::Detection;

/// Columns and rows of the fine grid.
const FINE: (usize, usize) = (8, 6);

/// Smallest number of corners in a ninth of the image for an image to count there.
const CORNERS: usize = 2;

/// Numbers of detected corners in each part of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Corners in each cell of a grid of 8 columns and 6 rows, row by row.
    pub cells: Vec<[usize; FINE.0]>,
    /// Images with at least two corners in each ninth, row by row.
    pub ninths: [[usize; 3]; 3],
    /// Width and height of the image.
    #[serde(skip)]
    size: (usize, usize),
}

/// A part of the image, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A third of the image: 0 is left, 1 the middle, 2 right.
    Column(usize),
    /// A third of the image: 0 is the upper one.
    Row(usize),
    /// A ninth: column and row.
    Ninth(usize, usize),
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const ROWS: [&str; 3] = ["upper", "middle", "lower"];
        const COLUMNS: [&str; 3] = ["left", "middle", "right"];
        match *self {
            Part::Column(column) => write!(f, "the {} third", COLUMNS[column]),
            Part::Row(row) => write!(f, "the {} third", ROWS[row]),
            Part::Ninth(1, 1) => f.write_str("the middle"),
            Part::Ninth(1, row) => write!(f, "the {} middle", ROWS[row]),
            Part::Ninth(column, 1) => write!(f, "the {} middle", COLUMNS[column]),
            Part::Ninth(column, row) => write!(f, "the {} {} corner", ROWS[row], COLUMNS[column]),
        }
    }
}

impl Coverage {
    /// Starts without images of this width and height.
    pub fn new(size: (usize, usize)) -> Self {
        Self { cells: vec![[0; FINE.0]; FINE.1], ninths: [[0; 3]; 3], size }
    }

    /// Counts an image.
    pub fn add(&mut self, seen: &Detection) {
        let mut ninths = [[0; 3]; 3];
        for corner in &seen.corners {
            let at = |pixel: f64, size: usize, parts: usize| {
                let part = (pixel + 0.5) / size as f64 * parts as f64;
                (part.max(0.0) as usize).min(parts - 1)
            };
            let [x, y] = corner.pixel;
            self.cells[at(y, self.size.1, FINE.1)][at(x, self.size.0, FINE.0)] += 1;
            ninths[at(y, self.size.1, 3)][at(x, self.size.0, 3)] += 1;
        }
        for (count, corners) in self.ninths.iter_mut().flatten().zip(ninths.iter().flatten()) {
            *count += usize::from(*corners >= CORNERS);
        }
    }

    /// Returns the part of the image's area with corners, 0 to 1.
    pub fn area(&self) -> f64 {
        let seen = self.cells.iter().flatten().filter(|count| **count > 0).count();
        seen as f64 / (FINE.0 * FINE.1) as f64
    }

    /// Returns the parts with the board in fewer than `least` images; a third if all of it is missing.
    pub fn missing(&self, least: usize) -> Vec<Part> {
        let mut open = self.ninths.map(|row| row.map(|count| count < least));
        let mut parts = Vec::new();
        let all = open;
        for i in 0..3 {
            if (0..3).all(|row| all[row][i]) {
                parts.push(Part::Column(i));
                open.iter_mut().for_each(|row| row[i] = false);
            }
        }
        for i in 0..3 {
            if all[i].iter().all(|open| *open) {
                parts.push(Part::Row(i));
                open[i] = [false; 3];
            }
        }
        for (row, ninths) in open.iter().enumerate() {
            let ninths = ninths.iter().enumerate().filter(|(_, open)| **open);
            parts.extend(ninths.map(|(column, _)| Part::Ninth(column, row)));
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_parts_are_named() {
        let mut coverage = Coverage::new((600, 300));
        assert_eq!(coverage.missing(1).len(), 6);
        coverage.ninths = [[1, 1, 0], [1, 1, 0], [0, 1, 0]];
        let words: Vec<_> = coverage.missing(1).iter().map(ToString::to_string).collect();
        assert_eq!(words, ["the right third", "the lower left corner"]);
        coverage.ninths = [[2, 1, 2], [2, 2, 2], [0, 0, 0]];
        let words: Vec<_> = coverage.missing(2).iter().map(ToString::to_string).collect();
        assert_eq!(words, ["the lower third", "the upper middle"]);
    }
}
