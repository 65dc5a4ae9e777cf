//! Tags of AprilGrids, Kalibr's boards: Olson's family 36h11 (ICRA 2011) with black squares that join the
//! corners of neighbouring tags, so that each corner is a saddle point.
//!
//! A tag is a quadrilateral of dark pixels whose modules spell a code of the family. Which of its corners
//! comes first, and whether numbers rise upwards (Kalibr) or downwards, follows from the places of all tags, because
//! programs draw the codes in different directions.

use nalgebra::{Matrix3, Matrix3x2, Vector2, Vector3};

use super::charuco::{FAMILY, markers};
use super::refine::{between, inside};
use crate::board::detection::distance;
use stereod_core::frame::Image;

/// Modules along a side of a code.
const BITS: usize = 6;

/// Modules of the black border that Kalibr prints.
pub(super) const BORDER: usize = 2;

/// Widths of borders that are read: Kalibr's, and that of the tags of AprilTag 3.
const BORDERS: [usize; 2] = [BORDER, 1];

/// Wrong bits that are corrected; codes differ by 11 or more.
const CORRECTED: u32 = 2;

/// Wrong modules of a border.
const BORDER_FLAWS: usize = 2;

/// Difference to the mean grey level around a dark pixel.
const DARKER: u64 = 7;

/// Fewest tags that determine the direction of a board, as in Kalibr.
const FEWEST: usize = 4;

/// Smallest sine of the angle between the rows and the columns of a board in an image.
const LEAST_SINE: f64 = 0.2;

/// Shortest side of a tag in pixels.
const SHORTEST: f64 = 10.0;

type Point = [f64; 2];

/// A tag in an image.
#[derive(Clone, Debug)]
pub(super) struct Tag {
    pub id: usize,
    /// Its corners, clockwise from the top left one of OpenCV's drawing.
    pub corners: [Point; 4],
}

/// The codes of the first tags of the family, each as it looks after 0 to 3 quarter turns clockwise.
pub(super) fn codes(count: usize) -> Vec<[u64; 4]> {
    let codes = markers(FAMILY).codes().iter().take(count);
    let turns = |&code: &u64| {
        let once = turned(code);
        let twice = turned(once);
        [code, once, twice, turned(twice)]
    };
    codes.map(turns).collect()
}

/// Turns a code by a quarter clockwise.
fn turned(code: u64) -> u64 {
    let bit = |i: usize| {
        let (x, y) = (i % BITS, i / BITS);
        (code >> i & 1) << (x * BITS + BITS - 1 - y)
    };
    (0..BITS * BITS).fold(0, |all, i| all | bit(i))
}

/// Finds the tags with these codes, each once.
pub(super) fn find(image: &Image, codes: &[[u64; 4]]) -> Vec<Tag> {
    let side = image.width().min(image.height());
    let mut tags: Vec<Tag> = Vec::new();
    // Windows from the modules of small tags to those of large ones.
    for half in [side / 60, side / 20, side / 7] {
        for quad in quads(&dark(image, half.max(3)), image.width()) {
            if let Some(tag) = read(image, quad, codes)
                && tags.iter().all(|known| known.id != tag.id)
            {
                tags.push(tag);
            }
        }
    }
    tags
}

/// Returns the pixels darker than their surroundings, without those at the border of a dark region: corners
/// that touch the squares next to them are separated.
fn dark(image: &Image, half: usize) -> Vec<bool> {
    let (width, height) = (image.width(), image.height());
    let mut sums = vec![0u64; (width + 1) * (height + 1)];
    for y in 0..height {
        let mut row = 0;
        for (x, &value) in image.row(y).iter().enumerate() {
            row += u64::from(value);
            sums[(y + 1) * (width + 1) + x + 1] = sums[y * (width + 1) + x + 1] + row;
        }
    }
    let is_dark = |x: usize, y: usize| {
        let (left, right) = (x.saturating_sub(half), (x + half + 1).min(width));
        let (top, bottom) = (y.saturating_sub(half), (y + half + 1).min(height));
        let at = |x: usize, y: usize| sums[y * (width + 1) + x];
        let sum = at(right, bottom) + at(left, top) - at(left, bottom) - at(right, top);
        let area = ((right - left) * (bottom - top)) as u64;
        (u64::from(image.row(y)[x]) + DARKER) * area < sum
    };
    let dark: Vec<bool> = (0..width * height).map(|i| is_dark(i % width, i / width)).collect();
    let mut inner = vec![false; width * height];
    for y in 1..height - 1 {
        for x in 1..width - 1 {
            let row = |y: usize| &dark[y * width + x - 1..][..3];
            inner[y * width + x] = [y - 1, y, y + 1].into_iter().all(|y| row(y) == [true; 3]);
        }
    }
    inner
}

/// Returns the regions that are quadrilaterals; corners clockwise.
fn quads(dark: &[bool], width: usize) -> Vec<[Point; 4]> {
    let mut left = dark.to_vec();
    let (mut found, mut region, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
    for start in 0..dark.len() {
        if !std::mem::take(&mut left[start]) {
            continue;
        }
        region.clear();
        waiting.push(start);
        // No pixel at the border of the image is dark.
        while let Some(at) = waiting.pop() {
            region.push(at);
            for next in [at - 1, at + 1, at - width, at + width] {
                if std::mem::take(&mut left[next]) {
                    waiting.push(next);
                }
            }
        }
        if region.len() as f64 >= SHORTEST * SHORTEST / 4.0 {
            found.extend(quad(&hull(&mut region, width)));
        }
    }
    found
}

/// Returns the convex hull of pixels, clockwise (Andrew's monotone chain).
fn hull(region: &mut [usize], width: usize) -> Vec<Point> {
    region.sort_unstable();
    let at = |i: usize| [(i % width) as f64, (i / width) as f64];
    let mut ends: Vec<Point> = Vec::new();
    for row in region.chunk_by(|a, b| a / width == b / width) {
        ends.extend([at(row[0]), at(row[row.len() - 1])]);
    }
    let half = |points: &mut dyn Iterator<Item = Point>| {
        let mut chain: Vec<Point> = Vec::new();
        for point in points {
            while let [.., a, b] = chain[..]
                && cross(a, b, point) <= 0.0
            {
                chain.pop();
            }
            chain.push(point);
        }
        chain.pop();
        chain
    };
    let mut hull = half(&mut ends.iter().rev().copied());
    hull.extend(half(&mut ends.iter().copied()));
    hull
}

/// Returns twice the area of a triangle; positive if it is clockwise, with y down.
fn cross(a: Point, b: Point, c: Point) -> f64 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

/// Returns the quadrilateral that a hull is, one pixel larger to all sides.
fn quad(hull: &[Point]) -> Option<[Point; 4]> {
    let pairs = (0..hull.len()).flat_map(|a| (a + 1..hull.len()).map(move |b| (a, b)));
    let length = |&(a, b): &(usize, usize)| distance(hull[a], hull[b]);
    let (a, c) = pairs.max_by(|a, b| length(a).total_cmp(&length(b)))?;
    let farthest = |sign: f64| {
        let off = |point: &Point| sign * cross(hull[a], hull[c], *point);
        hull.iter().copied().max_by(|a, b| off(a).total_cmp(&off(b)))
    };
    // Clockwise, the corner after `a` lies to the left of the diagonal as seen in the image.
    let corners = [hull[a], farthest(-1.0)?, hull[c], farthest(1.0)?];
    let area = |points: &[Point]| {
        points.windows(2).map(|pair| cross(points[0], pair[0], pair[1])).sum::<f64>() / 2.0
    };
    let sides = [0, 1, 2, 3].map(|i| distance(corners[i], corners[(i + 1) % 4]));
    let (least, most) = sides.iter().fold((f64::MAX, 0.0f64), |(l, m), &s| (l.min(s), m.max(s)));
    if least < SHORTEST - 2.0 || least < 0.25 * most || area(&corners) < 0.85 * area(hull) {
        return None;
    }
    let middle = [0, 1].map(|axis| corners.iter().map(|corner| corner[axis]).sum::<f64>() / 4.0);
    Some(corners.map(|corner| {
        let out = std::f64::consts::SQRT_2 / distance(corner, middle);
        [0, 1].map(|axis| corner[axis] + out * (corner[axis] - middle[axis]))
    }))
}

/// Reads the tag in a quadrilateral.
fn read(image: &Image, quad: [Point; 4], codes: &[[u64; 4]]) -> Option<Tag> {
    let to_image = of_unit_square(quad)?;
    BORDERS.into_iter().find_map(|border| {
        let side = BITS + 2 * border;
        let mut greys = Vec::with_capacity(side * side);
        for i in 0..side * side {
            let [u, v] = [i % side, i / side].map(|at| (at as f64 + 0.5) / side as f64);
            let at = to_image * Vector3::new(u, v, 1.0);
            let (x, y) = (at.x / at.z, at.y / at.z);
            greys.push(inside(image, x, y, 0.0).then(|| between(image, x, y))?);
        }
        let (low, high) =
            greys.iter().fold((f64::MAX, 0.0f64), |(low, high), &v| (low.min(v), high.max(v)));
        if high - low < 20.0 {
            return None;
        }
        let (mut code, mut flaws) = (0, 0);
        for (i, grey) in greys.iter().enumerate() {
            let is_black = *grey < (low + high) / 2.0;
            let [x, y] = [i % side, i / side].map(|at| at.wrapping_sub(border));
            if x < BITS && y < BITS {
                code |= u64::from(is_black) << (y * BITS + x);
            } else {
                flaws += usize::from(!is_black);
            }
        }
        if flaws > BORDER_FLAWS {
            return None;
        }
        let all = codes.iter().enumerate();
        let mut all = all.flat_map(|(id, turns)| (0..4).map(move |turn| (id, turn, turns[turn])));
        let (id, turn, _) = all.find(|(.., known)| (known ^ code).count_ones() <= CORRECTED)?;
        Some(Tag { id, corners: [0, 1, 2, 3].map(|i| quad[(i + turn) % 4]) })
    })
}

/// Returns the homography of the unit square, clockwise from the origin, to a quadrilateral (Heckbert 1989).
fn of_unit_square([a, b, c, d]: [Point; 4]) -> Option<Matrix3<f64>> {
    let [b_c, d_c] = [b, d].map(|p| [p[0] - c[0], p[1] - c[1]]);
    let sum = [0, 1].map(|i| a[i] - b[i] + c[i] - d[i]);
    let area = b_c[0] * d_c[1] - d_c[0] * b_c[1];
    let g = (sum[0] * d_c[1] - d_c[0] * sum[1]) / area;
    let h = (b_c[0] * sum[1] - sum[0] * b_c[1]) / area;
    let row = |i: usize| [b[i] - a[i] + g * b[i], d[i] - a[i] + h * d[i], a[i]];
    let ([x1, x2, x3], [y1, y2, y3]) = (row(0), row(1));
    let homography = Matrix3::new(x1, x2, x3, y1, y2, y3, g, h, 1.0);
    homography.iter().all(|v| v.is_finite()).then_some(homography)
}

/// Returns the places of the tags on a board: column and row from the top left one, and the corners clockwise
/// from the top left. Tags that look elsewhere than most are left out. `None` if they are too few
/// or in a line.
pub(super) fn places(tags: &[Tag], (columns, rows): (usize, usize)) -> Option<Vec<Placed>> {
    if tags.len() < FEWEST {
        return None;
    }
    // Kalibr counts rows upwards.
    let upwards = |id: usize| [id % columns, rows - 1 - id / columns];
    let downwards = |id: usize| [id % columns, id / columns];
    let layouts: [&dyn Fn(usize) -> [usize; 2]; 2] = [&upwards, &downwards];
    layouts.into_iter().find_map(|cell| {
        let axes = axes(tags, cell)?;
        // Otherwise the board would be mirrored, or its tags lie in a line.
        let sine = cross([0.0; 2], axes[0], axes[1])
            / (distance([0.0; 2], axes[0]) * distance([0.0; 2], axes[1]));
        if sine.is_nan() || sine < LEAST_SINE {
            return None;
        }
        let turns: Vec<usize> = tags.iter().map(|tag| turn(tag, axes)).collect();
        let votes = |turn: &usize| turns.iter().filter(|own| *own == turn).count();
        let usual = (0..4).max_by_key(votes)?;
        let agreeing = tags.iter().zip(&turns).filter(|(_, turn)| **turn == usual);
        let placed = agreeing.map(|(tag, _)| Placed {
            cell: cell(tag.id),
            corners: [0, 1, 2, 3].map(|i| tag.corners[(i + usual) % 4]),
        });
        let placed: Vec<Placed> = placed.collect();
        (placed.len() >= FEWEST && 3 * placed.len() > 2 * tags.len()).then_some(placed)
    })
}

/// A tag at its place on the board.
pub(super) struct Placed {
    /// Column and row, from the top left one.
    pub cell: [usize; 2],
    /// Corners, clockwise from the top left one.
    pub corners: [Point; 4],
}

fn middle(corners: &[Point; 4]) -> Point {
    [0, 1].map(|axis| corners.iter().map(|corner| corner[axis]).sum::<f64>() / 4.0)
}

/// Returns the steps in the image to the next column and to the next row, by least squares over the middles
/// of the tags.
fn axes(tags: &[Tag], cell: &dyn Fn(usize) -> [usize; 2]) -> Option<[Point; 2]> {
    let (mut normal, mut right) = (Matrix3::zeros(), Matrix3x2::zeros());
    for tag in tags {
        let [column, row] = cell(tag.id).map(|at| at as f64);
        let from = Vector3::new(column, row, 1.0);
        normal += from * from.transpose();
        right += from * Vector2::from(middle(&tag.corners)).transpose();
    }
    let solved = normal.try_inverse()? * right;
    let axis = |i: usize| [solved[(i, 0)], solved[(i, 1)]];
    solved.iter().all(|v| v.is_finite()).then(|| [axis(0), axis(1)])
}

/// Returns the number of the corner of a tag that is its top left one on the board.
fn turn(tag: &Tag, [across, down]: [Point; 2]) -> usize {
    let centre = middle(&tag.corners);
    let up_left = |i: &usize| {
        let corner = tag.corners[*i];
        let off = [corner[0] - centre[0], corner[1] - centre[1]];
        let cosine = |axis: Point| {
            (off[0] * axis[0] + off[1] * axis[1]) / axis[0].hypot(axis[1]).max(f64::MIN_POSITIVE)
        };
        -(cosine(across) + cosine(down))
    };
    (0..4).max_by(|a, b| up_left(a).total_cmp(&up_left(b))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_quarter_turns_are_none() {
        for [code, once, twice, thrice] in codes(587) {
            assert_eq!((turned(thrice), twice), (code, code.reverse_bits() >> 28));
            assert!(once != code && (once ^ code).count_ones() >= 5);
        }
        // A corner: the top left module goes to the top right.
        assert_eq!(turned(1), 1 << (BITS - 1));
    }

    #[test]
    fn the_unit_square_goes_to_the_corners() {
        let quad = [[10.0, 12.0], [50.0, 8.0], [61.0, 40.0], [5.0, 44.0]];
        let homography = of_unit_square(quad).unwrap();
        for ([u, v], due) in [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]].into_iter().zip(quad)
        {
            let at = homography * Vector3::new(u, v, 1.0);
            assert!(distance([at.x / at.z, at.y / at.z], due) < 1e-9);
        }
    }
}
