//! Finds corners: the best one of every cell of a grid.

use super::planes::{Level, Unseen};

/// Half the side of the window over which gradients are summed.
const HALF: usize = 3;

/// Smallest response of a corner: the smaller eigenvalue of the mean gradient matrix, in squared
/// grey levels a pixel. Noise reaches this value.
const STEEP: f32 = 6.0;

/// Cells per corner; the strongest corners are kept.
const CELLS: usize = 3;

/// Returns at most `count` corners of a pyramid level, the strongest ones of a grid's cells. A
/// window of half side `room` around each lies inside the image and is valid.
///
/// A corner maximises the smaller eigenvalue of the gradient matrix (Shi and Tomasi, "Good features to
/// track", CVPR 1994): there a match is fixed in x and in y.
pub(super) fn find_corners(
    level: &Level,
    unseen: &Unseen,
    count: usize,
    room: i32,
) -> Vec<(i32, i32)> {
    let (width, height) = (level.width, level.height);
    if width < 2 * HALF + 3 || height < 2 * HALF + 3 {
        return Vec::new();
    }
    let response = corner_responses(level);
    let cells = (CELLS * count.max(1)) as f32;
    let cell = ((width * height) as f32 / cells).sqrt().max(4.0);
    let columns = ((width as f32 / cell) as usize).max(1);
    let rows = ((height as f32 / cell) as usize).max(1);
    let mut corners: Vec<(f32, i32, i32)> = Vec::with_capacity(columns * rows);
    for row in 0..rows {
        for column in 0..columns {
            let mut best = (STEEP, -1, -1);
            for y in row * height / rows..(row + 1) * height / rows {
                for x in column * width / columns..(column + 1) * width / columns {
                    let value = response[y * width + x];
                    if value > best.0 && unseen.all_seen(x as i32, y as i32, room) {
                        best = (value, x as i32, y as i32);
                    }
                }
            }
            if best.1 >= 0 {
                corners.push(best);
            }
        }
    }
    corners.sort_unstable_by(|(a, ..), (b, ..)| b.total_cmp(a));
    // Two cells may share a corner, which must count once.
    let mut chosen: Vec<(i32, i32)> = Vec::with_capacity(count);
    for (_, x, y) in corners {
        let apart = |(other_x, other_y): &(i32, i32)| {
            (x - other_x).abs() > HALF as i32 || (y - other_y).abs() > HALF as i32
        };
        if chosen.iter().all(apart) {
            chosen.push((x, y));
        }
        if chosen.len() == count {
            break;
        }
    }
    chosen
}

/// Computes the smaller eigenvalue of the mean gradient matrix around every pixel; 0 at the edges.
fn corner_responses(level: &Level) -> Vec<f32> {
    let (width, height) = (level.width, level.height);
    // Running sums down the columns of the products xx, xy, yy of doubled gradients, a window high.
    let mut columns = vec![[0i32; 3]; width];
    let mut products = vec![[0i32; 3]; width * height];
    let mut response = vec![0.0; width * height];
    let side = 2 * HALF + 1;
    let area = (4 * side * side) as f32;
    for y in 1..height - 1 {
        let (above, here, below) = (level.row(y - 1), level.row(y), level.row(y + 1));
        let (done, rest) = products.split_at_mut(y * width);
        let leaving = (y > side).then(|| &done[(y - side) * width..][..width]);
        for x in 1..width - 1 {
            let along = i32::from(here[x + 1]) - i32::from(here[x - 1]);
            let down = i32::from(below[x]) - i32::from(above[x]);
            rest[x] = [along * along, along * down, down * down];
            let gone = leaving.map_or([0; 3], |row| row[x]);
            for k in 0..3 {
                columns[x][k] += rest[x][k] - gone[k];
            }
        }
        if y < side {
            continue;
        }
        let centre = y - HALF;
        let mut sum = [0i32; 3];
        for x in 1..width - 1 {
            for k in 0..3 {
                sum[k] += columns[x][k] - if x > side { columns[x - side][k] } else { 0 };
            }
            if x >= side {
                let [xx, xy, yy] = sum.map(|sum| sum as f32 / area);
                let spread = (0.25 * (xx - yy) * (xx - yy) + xy * xy).sqrt();
                response[centre * width + x - HALF] = 0.5 * (xx + yy) - spread;
            }
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::super::planes::Pyramid;
    use super::*;
    use stereod_core::frame::Image;

    fn found(image: &Image, count: usize) -> Vec<(i32, i32)> {
        let pyramid = Pyramid::new(image, 0);
        let unseen = Unseen::new(image, &pyramid.levels[0], 0);
        find_corners(&pyramid.levels[0], &unseen, count, 4)
    }

    #[test]
    fn responses_are_those_of_the_definition() {
        let image = Image::from_fn(24, 21, |x, y| ((x * 37 + y * 91 + x * y * 13) % 251) as u8);
        let pyramid = Pyramid::new(&image, 0);
        let response = corner_responses(&pyramid.levels[0]);
        let at = |x: usize, y: usize| f32::from(image.row(y)[x]);
        for (x, y) in [(4, 4), (11, 9), (19, 16), (4, 16)] {
            let mut sums = [0.0f32; 3];
            for v in y - HALF..=y + HALF {
                for u in x - HALF..=x + HALF {
                    let along = 0.5 * (at(u + 1, v) - at(u - 1, v));
                    let down = 0.5 * (at(u, v + 1) - at(u, v - 1));
                    sums[0] += along * along / 49.0;
                    sums[1] += along * down / 49.0;
                    sums[2] += down * down / 49.0;
                }
            }
            let matrix = nalgebra::Matrix2::new(sums[0], sums[1], sums[1], sums[2]);
            let smaller = matrix.symmetric_eigenvalues().min();
            let value = response[y * 24 + x];
            assert!((value - smaller).abs() < 1e-3 * smaller, "{value} instead of {smaller}");
        }
    }

    #[test]
    fn a_corner_is_found_and_an_edge_is_not() {
        // A bright quadrant: two edges, and one corner at (30, 20).
        let image = Image::from_fn(64, 48, |x, y| if x >= 30 && y >= 20 { 200 } else { 50 });
        let corners = found(&image, 12);
        assert!(!corners.is_empty());
        for (x, y) in corners {
            assert!((x - 30).abs() <= 4 && (y - 20).abs() <= 4, "({x}, {y})");
        }
        assert!(
            found(&Image::from_fn(64, 48, |x, _| if x > 30 { 200 } else { 50 }), 12).is_empty()
        );
        assert!(found(&Image::from_fn(64, 48, |_, _| 128), 12).is_empty());
        for (width, height) in [(1, 1), (3, 40), (9, 9)] {
            found(&Image::from_fn(width, height, |x, y| (x * y * 77) as u8), 12);
        }
    }
}
