//! From a grid of corners of unknown origin and direction to the corners of a known board.

use std::collections::HashMap;

use stereod_core::frame::Image;

/// A corner of a grid: column, row, and position in the image.
pub type GridCorner = (i32, i32, [f64; 2]);

/// Reason why a grid is not the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// It has this many columns and rows; either fewer than the board or more.
    Size(usize, usize),
    /// It is as large as the board, but this many of its corners are missing.
    Holes(usize),
}

/// Rotates grid coordinates by a quarter turn, for an image with y pointing down.
fn turned(corners: &[GridCorner]) -> Vec<GridCorner> {
    corners.iter().map(|&(u, v, at)| (-v, u, at)).collect()
}

/// Returns the corners of a board of `columns` x `rows` inner corners, row by row, in every order
/// that reads it without mirroring and with a black square at the top left. A board that looks the
/// same after half a turn has two orders, a square one up to four.
pub fn orders(
    image: &Image,
    corners: &[GridCorner],
    (columns, rows): (usize, usize),
) -> Result<Vec<Vec<[f64; 2]>>, Misfit> {
    let mut corners = corners.to_vec();
    if is_mirrored(&corners) {
        corners.iter_mut().for_each(|corner| *corner = (corner.1, corner.0, corner.2));
    }
    let mut orders = Vec::new();
    let mut size = extent(&corners);
    size = (size.0.max(size.1), size.0.min(size.1));
    for _ in 0..4 {
        let found = windows(&corners, columns, rows);
        // More than one place to lay the board means that the grid is larger than the board.
        if found.len() > 1 {
            return Err(Misfit::Size(size.0, size.1));
        }
        orders.extend(found);
        corners = turned(&corners);
    }
    if orders.is_empty() {
        return Err(match (columns.max(rows), columns.min(rows)) == size {
            true => Misfit::Holes((columns * rows).saturating_sub(corners.len()).max(1)),
            false => Misfit::Size(size.0, size.1),
        });
    }
    let dark: Vec<_> =
        orders.iter().filter(|order| first_is_black(image, order, columns)).cloned().collect();
    // If the colours cannot be recognised, every order is equally good.
    Ok(if dark.is_empty() { orders } else { dark })
}

/// Reports whether columns to the right and rows down make a left-handed image: most small squares
/// turn the wrong way.
fn is_mirrored(corners: &[GridCorner]) -> bool {
    let at: HashMap<_, _> = corners.iter().map(|&(u, v, at)| ((u, v), at)).collect();
    let mut balance = 0;
    for (&(u, v), here) in &at {
        if let (Some(right), Some(down)) = (at.get(&(u + 1, v)), at.get(&(u, v + 1))) {
            let cross = (right[0] - here[0]) * (down[1] - here[1])
                - (right[1] - here[1]) * (down[0] - here[0]);
            balance += if cross > 0.0 { 1 } else { -1 };
        }
    }
    balance < 0
}

fn extent(corners: &[GridCorner]) -> (usize, usize) {
    let span = |values: &mut dyn Iterator<Item = i32>| {
        let (mut low, mut high) = (i32::MAX, i32::MIN);
        values.for_each(|value| (low, high) = (low.min(value), high.max(value)));
        if low > high { 0 } else { (high - low + 1) as usize }
    };
    (span(&mut corners.iter().map(|c| c.0)), span(&mut corners.iter().map(|c| c.1)))
}

/// Returns every full rectangle of `columns` x `rows` corners in the grid.
fn windows(corners: &[GridCorner], columns: usize, rows: usize) -> Vec<Vec<[f64; 2]>> {
    let at: HashMap<_, _> = corners.iter().map(|&(u, v, at)| ((u, v), at)).collect();
    let mut found = Vec::new();
    for &(left, top, _) in corners {
        let order: Option<Vec<_>> = (0..columns * rows)
            .map(|i| at.get(&(left + (i % columns) as i32, top + (i / columns) as i32)).copied())
            .collect();
        found.extend(order);
    }
    found
}

/// Reports whether the square before the first corner, and the squares of the same colour, are darker than
/// the others. Only squares inside the board count, because its surroundings are unknown.
fn first_is_black(image: &Image, order: &[[f64; 2]], columns: usize) -> bool {
    let (mut same, mut other) = ((0.0, 0), (0.0, 0));
    let rows = order.len() / columns;
    for row in 0..rows - 1 {
        for column in 0..columns - 1 {
            let corner = |c: usize, r: usize| order[r * columns + c];
            let quad = [
                corner(column, row),
                corner(column + 1, row),
                corner(column, row + 1),
                corner(column + 1, row + 1),
            ];
            let middle = |axis: usize| quad.iter().map(|at| at[axis]).sum::<f64>() / 4.0;
            let (x, y) = (middle(0).round(), middle(1).round());
            if x < 0.0 || y < 0.0 || x >= image.width() as f64 || y >= image.height() as f64 {
                continue;
            }
            let value = f64::from(image.row(y as usize)[x as usize]);
            // The square right and below the first corner is diagonal to the first square.
            let group = if (row + column) % 2 == 0 { &mut same } else { &mut other };
            *group = (group.0 + value, group.1 + 1);
        }
    }
    if same.1 == 0 || other.1 == 0 {
        return false;
    }
    same.0 / f64::from(same.1) < other.0 / f64::from(other.1)
}

/// Returns the order that reads most upright: columns to the right, then rows down.
pub fn most_upright(orders: &[Vec<[f64; 2]>], columns: usize) -> usize {
    best(orders, |order| {
        let (across, _) = directions(order, columns);
        across[0] / across[0].hypot(across[1]).max(1e-9)
    })
}

pub fn nearest_to(orders: &[Vec<[f64; 2]>], other: &[[f64; 2]], columns: usize) -> usize {
    let (to, _) = directions(other, columns);
    best(orders, |order| {
        let (across, _) = directions(order, columns);
        (across[0] * to[0] + across[1] * to[1]) / across[0].hypot(across[1]).max(1e-9)
    })
}

fn best(orders: &[Vec<[f64; 2]>], score: impl Fn(&[[f64; 2]]) -> f64) -> usize {
    (0..orders.len())
        .max_by(|&a, &b| score(&orders[a]).total_cmp(&score(&orders[b])))
        .unwrap_or_default()
}

/// Returns the vectors from the first to the last corner of the middle row, and of the middle column.
fn directions(order: &[[f64; 2]], columns: usize) -> ([f64; 2], [f64; 2]) {
    let rows = order.len() / columns;
    let difference = |a: [f64; 2], b: [f64; 2]| [b[0] - a[0], b[1] - a[1]];
    let row = rows / 2 * columns;
    let column = columns / 2;
    (
        difference(order[row], order[row + columns - 1]),
        difference(order[column], order[(rows - 1) * columns + column]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a chessboard of 20 px squares with its first inner corner at (40, 40).
    fn picture(first_black: bool) -> Image {
        Image::from_fn(400, 300, |x, y| {
            let even = (x / 20 + y / 20) % 2 == 0;
            if even == first_black { 30 } else { 220 }
        })
    }

    /// Corners as a detector may number them: turned, shifted, mirrored.
    fn corners(
        columns: i32,
        rows: i32,
        number: impl Fn(i32, i32) -> (i32, i32),
    ) -> Vec<GridCorner> {
        (0..columns * rows)
            .map(|i| {
                let (c, r) = (i % columns, i / columns);
                let (u, v) = number(c, r);
                (u, v, [f64::from(40 + 20 * c) - 0.5, f64::from(40 + 20 * r) - 0.5])
            })
            .collect()
    }

    #[test]
    fn any_numbering_gives_the_same_board() {
        // The square left and above of the first corner is (1, 1), which is even: black.
        let image = picture(true);
        type Numbering = fn(i32, i32) -> (i32, i32);
        let numberings: [Numbering; 4] =
            [|c, r| (c, r), |c, r| (r, 8 - c), |c, r| (3 - c, 7 - r), |c, r| (r, c)];
        for number in numberings {
            let orders = orders(&image, &corners(9, 6, number), (9, 6)).unwrap();
            assert_eq!(orders.len(), 1);
            assert_eq!(orders[0][0], [39.5, 39.5]);
            assert_eq!(orders[0][1], [59.5, 39.5]);
            assert_eq!(orders[0][9], [39.5, 59.5]);
        }
        // With the other colours the board is seen upside down.
        let orders = orders(&picture(false), &corners(9, 6, |c, r| (c, r)), (9, 6)).unwrap();
        assert_eq!((orders.len(), orders[0][53]), (1, [39.5, 39.5]));
    }

    #[test]
    fn symmetric_boards_follow_the_other_eye() {
        let image = picture(true);
        let orders = orders(&image, &corners(8, 6, |c, r| (c, r)), (8, 6)).unwrap();
        assert_eq!(orders.len(), 2);
        let upright = most_upright(&orders, 8);
        assert_eq!(orders[upright][0], [39.5, 39.5]);
        for other in 0..2 {
            assert_eq!(nearest_to(&orders, &orders[other], 8), other);
        }
    }

    #[test]
    fn other_sizes_are_named() {
        let image = picture(true);
        let found = orders(&image, &corners(8, 6, |c, r| (c, r)), (9, 6));
        assert_eq!(found, Err(Misfit::Size(8, 6)));
        let found = orders(&image, &corners(11, 7, |c, r| (c, r)), (9, 6));
        assert_eq!(found, Err(Misfit::Size(11, 7)));
        let mut holes = corners(9, 6, |c, r| (c, r));
        holes.remove(31);
        holes.remove(12);
        assert_eq!(orders(&image, &holes, (9, 6)), Err(Misfit::Holes(2)));
        // One stray corner next to the board does no harm.
        let mut stray = corners(9, 6, |c, r| (c, r));
        stray.push((9, 2, [220.0, 80.0]));
        assert!(orders(&image, &stray, (9, 6)).is_ok());
    }
}
