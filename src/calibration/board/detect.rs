//! Detection of a board in an image.
//!
//! Corners and grid come from `calib-targets` (ChESS corners, Bennett and Lasenby 2014, joined by a
//! topological grid finder). The steps that a calibration depends on are here: the exact position of each
//! corner, its number on the board, and the sharpness of the image. The tags of AprilGrids are found in
//! `aprilgrid`.

use std::collections::HashMap;

use calib_targets_charuco::{CharucoDetectError, CharucoDetection, CharucoDetector, CharucoParams};
use calib_targets_chessboard::{
    ChessCorner, ChessboardDetector, ChessboardParams, DetectorConfig, GrayImageView,
    default_chess_config, detect_corners,
};

use super::aprilgrid;
use super::charuco::{CharucoLayout, layouts};
use super::refine::{edge_width, refine};
use crate::board::detection::{BoardCorner, Detection, NotFound, distance, median};
use crate::board::grid::{self, GridCorner, Misfit};
use crate::board::{Board, Pattern};
use stereod_core::frame::Image;

/// Largest half side of the refinement window in pixels, as in OpenCV's examples.
const WINDOW: f64 = 11.0;

/// Largest half side of the refinement window relative to the distance to the next corner; its edges would
/// bias the result. (In OpenCV's own example images, a window of 11 px for squares of 20 px doubles the
/// reprojection error.)
const WINDOW_PART: f64 = 0.33;

/// Images at least this wide are searched at half their size first; corners are refined at full size.
const WIDE: usize = 1100;

/// Below this width or height halving loses too much.
const NARROW: usize = 240;

/// Images with a smaller side are not searched.
const SMALLEST: usize = 32;

/// Smallest number of corners of a partly visible board for a well determined pose.
const FEWEST: usize = 8;

/// ChESS responses below this are no corners. Low, because false corners fit no grid.
const WEAKEST: f32 = 10.0;

pub struct Detector {
    board: Board,
    chessboard: ChessboardDetector,
    /// Layouts of the ChArUco board that are tried; empty for a chessboard.
    charuco: Vec<Charuco>,
    /// Codes of the AprilGrid's tags; empty for other boards.
    codes: Vec<[u64; 4]>,
    config: DetectorConfig,
    /// Half side of the refinement window, if it does not follow from the squares.
    window: Option<usize>,
}

/// Detector of one layout of a ChArUco board.
struct Charuco {
    detector: CharucoDetector,
    /// Rows of the detector's board above the first one of ours.
    rows_above: usize,
}

impl std::fmt::Debug for Detector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Detector").field("board", &self.board).finish_non_exhaustive()
    }
}

impl Detector {
    pub fn new(board: Board) -> Self {
        let mut params = ChessboardParams::default();
        params.min_corner_strength = WEAKEST;
        let chessboard = ChessboardDetector::new(params).expect("these parameters are accepted");
        // The board has enough markers, as checked when it was made.
        let charuco =
            layouts(&board.pattern).into_iter().map(|CharucoLayout { spec, rows_above }| {
                let detector = CharucoDetector::new(CharucoParams::for_board(spec));
                Charuco { detector: detector.expect("a board that was checked"), rows_above }
            });
        let charuco = charuco.collect();
        let codes = match board.pattern {
            Pattern::AprilGrid { columns, rows, .. } => aprilgrid::codes(columns * rows),
            _ => Vec::new(),
        };
        let config = default_chess_config();
        Self { board, chessboard, charuco, codes, config, window: None }
    }

    /// Refines corners in windows of this half side, instead of one that fits the squares.
    pub fn with_window(mut self, half: Option<usize>) -> Self {
        self.window = half.map(|half| half.max(2));
        self
    }

    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Detects the board. A board that can be read in more than one way is read upright.
    pub fn detect(&self, image: &Image) -> Result<Detection, NotFound> {
        let side = image.width().min(image.height());
        // Fewer pixels hold no board, and the library needs images larger than its rings.
        if side < SMALLEST {
            return Err(NotFound::Nothing);
        }
        let whole = || self.at_size(image, image, 1.0);
        // The reason from the search at full size is the better one.
        // Tags need their modules, and those that are seen at half the size may not be all.
        if image.width() >= WIDE && self.codes.is_empty() {
            return self.at_half_size(image).or_else(|_| whole());
        }
        let mut found = whole();
        if found.is_err() && side >= NARROW && self.codes.is_empty() {
            found = self.at_half_size(image).or(found);
        }
        if found.is_err() && image.width() < WIDE && self.has_markers() {
            // Modules of small markers look like corners.
            found = self.at_double_size(image).or(found);
        }
        found
    }

    /// Detects the board in both views in parallel; an ambiguous board is read alike in both.
    pub fn detect_pair(&self, left: &Image, right: &Image) -> [Result<Detection, NotFound>; 2] {
        let (left, mut right) = std::thread::scope(|scope| {
            let other = scope.spawn(|| self.detect(right));
            let left = self.detect(left);
            (left, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        if let (Ok(left), Ok(right)) = (&left, &mut right) {
            right.read_as(left);
        }
        [left, right]
    }

    fn has_markers(&self) -> bool {
        !self.charuco.is_empty() || !self.codes.is_empty()
    }

    fn at_half_size(&self, image: &Image) -> Result<Detection, NotFound> {
        let (width, height) = (image.width() / 2, image.height() / 2);
        let half = Image::from_fn(width, height, |x, y| {
            let (upper, lower) = (image.row(2 * y), image.row(2 * y + 1));
            let sum = |row: &[u8]| u16::from(row[2 * x]) + u16::from(row[2 * x + 1]);
            ((sum(upper) + sum(lower) + 2) / 4) as u8
        });
        self.at_size(image, &half, 2.0)
    }

    fn at_double_size(&self, image: &Image) -> Result<Detection, NotFound> {
        let (width, height) = (image.width(), image.height());
        // Every new pixel lies a quarter of a pixel next to an old one.
        let near = |at: usize, size: usize| {
            let other = if at.is_multiple_of(2) { (at / 2).saturating_sub(1) } else { at / 2 + 1 };
            (at / 2, other.min(size - 1))
        };
        let double = Image::from_fn(2 * width, 2 * height, |x, y| {
            let ((x0, x1), (y0, y1)) = (near(x, width), near(y, height));
            let blend = |row: &[u8]| 3 * u32::from(row[x0]) + u32::from(row[x1]);
            ((3 * blend(image.row(y0)) + blend(image.row(y1)) + 8) / 16) as u8
        });
        self.at_size(image, &double, 0.5)
    }

    /// Detects the grid in `searched`, a copy of the image that is `scale` times smaller.
    fn at_size(&self, image: &Image, searched: &Image, scale: f64) -> Result<Detection, NotFound> {
        let view = GrayImageView {
            width: searched.width(),
            height: searched.height(),
            data: searched.pixels(),
        };
        // The centre of the first small pixel lies between large ones.
        let place = |x: f32, y: f32| [x, y].map(|at| (f64::from(at) + 0.5) * scale - 0.5);
        let found = || detect_corners(&view, &self.config);
        match self.board.pattern {
            Pattern::Chessboard { .. } => self.chessboard(image, &found(), &place),
            Pattern::Charuco { .. } => self.charuco(image, &view, &found(), &place),
            Pattern::AprilGrid { columns, rows, .. } => {
                self.aprilgrid(image, searched, (columns, rows), &place)
            }
        }
    }

    /// Detects an AprilGrid, or a part of it.
    fn aprilgrid(
        &self,
        image: &Image,
        searched: &Image,
        size: (usize, usize),
        place: &dyn Fn(f32, f32) -> [f64; 2],
    ) -> Result<Detection, NotFound> {
        let tags = aprilgrid::find(searched, &self.codes);
        let Some(placed) = aprilgrid::places(&tags, size) else {
            let few = NotFound::Few(4 * tags.len());
            return Err(if tags.is_empty() { NotFound::Nothing } else { few });
        };
        let mut corners: Vec<GridCorner> = Vec::new();
        for tag in placed {
            let pixels = tag.corners.map(|[x, y]| place(x as f32, y as f32));
            let sides = (0..4).map(|i| distance(pixels[i], pixels[(i + 1) % 4]));
            let fitting = sides.fold(f64::INFINITY, f64::min) * self.free_part();
            let half = self.window.unwrap_or(fitting.clamp(2.0, WINDOW) as usize);
            let [u, v] = tag.cell.map(|at| 2 * at as i32);
            for ((u, v), pixel) in
                [(u, v), (u + 1, v), (u + 1, v + 1), (u, v + 1)].into_iter().zip(pixels)
            {
                // A corner that is covered or outside the image is no saddle point.
                let halves = [half, half / 2].into_iter().filter(|half| *half >= 2);
                let refined = halves.filter_map(|half| refine(image, pixel, half)).next();
                corners.extend(refined.map(|refined| (u, v, refined)));
            }
        }
        corners.sort_by_key(|&(u, v, _)| (v, u));
        match corners.len() {
            few @ ..FEWEST => Err(NotFound::Few(few)),
            _ => Ok(self.detection(image, &corners, Vec::new())),
        }
    }

    /// Detects a whole chessboard; `place` converts to the pixels in which corners are refined.
    fn chessboard(
        &self,
        image: &Image,
        found: &[ChessCorner],
        place: &dyn Fn(f32, f32) -> [f64; 2],
    ) -> Result<Detection, NotFound> {
        let (columns, rows) = self.board.pattern.corners();
        let grid = self.chessboard.detect(found).ok_or(NotFound::Nothing)?;
        let corners = grid.corners.iter();
        let mut corners: Vec<GridCorner> =
            corners.map(|c| (c.grid.u, c.grid.v, place(c.position.x, c.position.y))).collect();
        self.refine_all(image, &mut corners);
        let mut orders =
            grid::orders(image, &corners, (columns, rows)).map_err(|misfit| match misfit {
                Misfit::Size(long, short) => NotFound::Size {
                    columns: long,
                    rows: short,
                    wanted_columns: columns,
                    wanted_rows: rows,
                },
                Misfit::Holes(missing) => NotFound::Holes { missing, all: columns * rows },
            })?;
        let order = orders.swap_remove(grid::most_upright(&orders, columns));
        let corners: Vec<GridCorner> = order
            .iter()
            .enumerate()
            .map(|(id, &at)| ((id % columns) as i32, (id / columns) as i32, at))
            .collect();
        Ok(self.detection(image, &corners, orders))
    }

    /// Detects a ChArUco board, or a part of it, in the layout with more visible corners.
    fn charuco(
        &self,
        image: &Image,
        view: &GrayImageView,
        found: &[ChessCorner],
        place: &dyn Fn(f32, f32) -> [f64; 2],
    ) -> Result<Detection, NotFound> {
        let mut best = Err(NotFound::Nothing);
        for Charuco { detector, rows_above } in &self.charuco {
            let seen = detector.detect_with_corners(view, found).map_err(|error| match error {
                CharucoDetectError::ChessboardNotDetected => NotFound::Nothing,
                _ => NotFound::Markers,
            });
            let seen = seen.map(|seen| self.corners_of(&seen, *rows_above, place));
            match (&best, &seen) {
                (Err(NotFound::Nothing), _) => best = seen,
                (Err(_), Ok(_)) => best = seen,
                (Ok(fewer), Ok(more)) if more.len() > fewer.len() => best = seen,
                _ => {}
            }
            // More cannot be seen.
            if best.as_ref().is_ok_and(|corners| corners.len() == self.board.count()) {
                break;
            }
        }
        let mut corners = best?;
        let spans = |of: fn(&GridCorner) -> i32| {
            let (low, high) = (corners.iter().map(of).min(), corners.iter().map(of).max());
            high.zip(low).is_some_and(|(high, low)| high > low)
        };
        if corners.len() < FEWEST || !spans(|c| c.0) || !spans(|c| c.1) {
            return Err(NotFound::Few(corners.len()));
        }
        self.refine_all(image, &mut corners);
        Ok(self.detection(image, &corners, Vec::new()))
    }

    /// Converts the corners of a board with additional rows above to this board's, by rising number.
    fn corners_of(
        &self,
        seen: &CharucoDetection,
        rows_above: usize,
        place: &dyn Fn(f32, f32) -> [f64; 2],
    ) -> Vec<GridCorner> {
        let (columns, rows) = self.board.pattern.corners();
        let corners = seen.corners.iter().filter_map(|c| {
            let (u, v) = (c.id as usize % columns, c.id as usize / columns);
            let v = v.checked_sub(rows_above).filter(|v| *v < rows)?;
            Some((u as i32, v as i32, place(c.position.x, c.position.y)))
        });
        let mut corners: Vec<GridCorner> = corners.collect();
        corners.sort_by_key(|&(u, v, _)| (v, u));
        corners.dedup_by_key(|&mut (u, v, _)| (u, v));
        corners
    }

    fn detection(
        &self,
        image: &Image,
        corners: &[GridCorner],
        others: Vec<Vec<[f64; 2]>>,
    ) -> Detection {
        let (columns, _) = self.board.pattern.corners();
        let reach = self.free_part();
        let at: HashMap<_, _> = corners.iter().map(|&(u, v, at)| ((u, v), at)).collect();
        let (mut widths, mut sides) = ([Vec::new(), Vec::new()], Vec::new());
        for &(u, v, from) in corners {
            for (direction, next) in [(u + 1, v), (u, v + 1)].into_iter().enumerate() {
                let Some(&to) = at.get(&next) else { continue };
                sides.push(distance(from, to));
                widths[direction].extend(edge_width(image, from, to, reach));
            }
        }
        let blur_px = widths.into_iter().filter_map(median).fold(0.0, f64::max);
        // Of an AprilGrid, sides of tags are more than half of them.
        let part = match self.board.pattern {
            Pattern::AprilGrid { spacing, .. } => (1.0 + spacing) / 2.0,
            _ => 1.0,
        };
        let corners = corners
            .iter()
            .map(|&(u, v, pixel)| BoardCorner { id: v as usize * columns + u as usize, pixel });
        Detection {
            corners: corners.collect(),
            blur_px,
            square_px: part * median(sides).unwrap_or_default(),
            others,
            columns,
        }
    }

    /// Returns how far from an edge one side is only black and the other only white, in sides of a square.
    fn free_part(&self) -> f64 {
        match self.board.pattern {
            Pattern::Chessboard { .. } => 0.4,
            Pattern::Charuco { marker_ratio, .. } => (1.0 - marker_ratio) / 2.0,
            // The narrower border of a tag.
            Pattern::AprilGrid { spacing, .. } => spacing.min(0.125),
        }
    }

    /// Refines every corner. If its window leaves the image, a smaller one is used, or the corner stays.
    fn refine_all(&self, image: &Image, corners: &mut [GridCorner]) {
        let at: HashMap<_, _> = corners.iter().map(|&(u, v, at)| ((u, v), at)).collect();
        for (u, v, place) in corners {
            let neighbours = [(*u + 1, *v), (*u - 1, *v), (*u, *v + 1), (*u, *v - 1)];
            let nearest = neighbours
                .iter()
                .filter_map(|next| at.get(next))
                .map(|next| distance(*place, *next))
                .fold(f64::INFINITY, f64::min);
            let part = self.free_part().min(WINDOW_PART);
            let fitting = (nearest * part).clamp(2.0, WINDOW);
            let widest = self.window.unwrap_or(fitting as usize);
            let refined = [widest, widest / 2].into_iter().filter(|half| *half >= 2);
            if let Some(refined) = refined.filter_map(|half| refine(image, *place, half)).next() {
                *place = refined;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::charuco::{markers, pattern};
    use super::super::ink::{Ink, ink, marker_ink};
    use super::*;

    /// Returns a board seen straight on, with squares of `side` px and the first inner corner at
    /// (60.25, 50.5).
    fn straight(board: &Board, side: f64) -> Image {
        drawn(board, &ink(board), side)
    }

    /// Draws the same board with this ink.
    fn drawn(board: &Board, ink: &[Ink], side: f64) -> Image {
        Image::from_fn(640, 480, |x, y| {
            // Means over the pixel, in steps of a quarter.
            let dark = (0..16)
                .filter(|i| {
                    let offset = |part: i32| (f64::from(part) + 0.5) / 4.0 - 0.5;
                    let at = |pixel: usize, part: i32, corner: f64| {
                        ((pixel as f64 + offset(part) - corner) / side + 1.0) * board.square_m
                    };
                    let (u, v) = (at(x, i % 4, 60.25), at(y, i / 4, 50.5));
                    ink.iter()
                        .any(|r| u >= r.x && u < r.x + r.width && v >= r.y && v < r.y + r.height)
                })
                .count();
            (220 - 12 * dark) as u8
        })
    }

    fn check(text: &str, side: f64) {
        let board = Board::new(pattern(text).unwrap(), 0.03).unwrap();
        check_picture(text, &board, &straight(&board, side), side);
    }

    fn check_picture(text: &str, board: &Board, picture: &Image, side: f64) {
        let detection = Detector::new(*board).detect(picture).unwrap();
        assert_eq!(detection.corners.len(), board.count(), "{text}");
        for corner in &detection.corners {
            let point = board.point(corner.id) / board.square_m;
            let expected = [60.25 + (point.x - 1.0) * side, 50.5 + (point.y - 1.0) * side];
            // The error of OpenCV's cornerSubPix if no lens has softened the edges.
            let off = distance(corner.pixel, expected);
            assert!(off < 0.15, "{text}: corner {} is off by {off}", corner.id);
        }
        let (part, limit_px) = match board.pattern {
            // A side of a tag has two corners, each found in a small window.
            Pattern::AprilGrid { spacing, .. } => ((1.0 + spacing) / 2.0, 0.3),
            _ => (1.0, 0.1),
        };
        let off = (detection.square_px - part * side).abs();
        assert!(off < limit_px, "{text}: squares are off by {off}");
        // Two pixels if the edges lie in the middle of one.
        assert!(detection.blur_px <= 2.0, "{}", detection.blur_px);
    }

    #[test]
    fn boards_are_found_where_they_are() {
        check("chessboard:9x6", 40.0);
        check("chessboard:8x6", 31.25);
        check("charuco:11x8", 45.0);
        check("charuco:7x9:0.6:5x5_100", 36.75);
        check("aprilgrid:6x5:0.3", 45.0);
        // The gap is drawn in quarters of a pixel, too.
        check("aprilgrid:9x7:0.5", 36.5);
    }

    /// Returns the ink of a ChArUco board with a white first square, as drawn by OpenCV before 4.6.
    fn older_ink(board: &Board) -> Vec<Ink> {
        let Pattern::Charuco { squares_x, squares_y, marker_ratio, dictionary } = board.pattern
        else {
            panic!("a ChArUco board");
        };
        let side = board.square_m;
        let inset = (1.0 - marker_ratio) / 2.0;
        let mut ink = Vec::new();
        let dictionary = markers(dictionary);
        let mut codes = dictionary.codes().iter();
        for (x, y) in (0..squares_y).flat_map(|y| (0..squares_x).map(move |x| (x as f64, y as f64)))
        {
            if (x + y) % 2.0 == 1.0 {
                ink.push(Ink { x: x * side, y: y * side, width: side, height: side });
            } else {
                let corner = ((x + inset) * side, (y + inset) * side);
                let code = *codes.next().unwrap();
                marker_ink(
                    code,
                    [dictionary.marker_size(), 1],
                    corner,
                    marker_ratio * side,
                    &mut ink,
                );
            }
        }
        ink
    }

    #[test]
    fn boards_that_begin_with_a_white_square_are_found() {
        for (text, side) in [("charuco:8x6", 60.0), ("charuco:7x6:0.7:5x5_100", 60.0)] {
            let board = Board::new(pattern(text).unwrap(), 0.03).unwrap();
            check_picture(text, &board, &drawn(&board, &older_ink(&board), side), side);
        }
    }

    #[test]
    fn what_is_seen_instead_is_told() {
        let board = |text: &str| Board::new(pattern(text).unwrap(), 0.03).unwrap();
        let seen = |board: &str, wanted: &Board| {
            let picture = straight(&self::tests_board(board), 40.0);
            Detector::new(*wanted).detect(&picture).unwrap_err()
        };
        let wanted = board("chessboard:9x6");
        let size = NotFound::Size { columns: 8, rows: 5, wanted_columns: 9, wanted_rows: 6 };
        assert_eq!(seen("chessboard:8x5", &wanted), size);
        assert_eq!(seen("chessboard:8x5", &board("charuco:9x6")), NotFound::Markers);
        let grey = Image::from_fn(640, 480, |x, y| (x / 7 + y / 5) as u8);
        assert_eq!(Detector::new(wanted).detect(&grey), Err(NotFound::Nothing));
        let tiny = Image::from_fn(3, 2, |_, _| 7);
        assert_eq!(Detector::new(wanted).detect(&tiny), Err(NotFound::Nothing));
    }

    fn tests_board(text: &str) -> Board {
        Board::new(pattern(text).unwrap(), 0.03).unwrap()
    }
}
