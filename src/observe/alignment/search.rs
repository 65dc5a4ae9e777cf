//! Finds a point in the other view: over all disparities and many rows of a small image, then
//! within larger ones, finally to a fraction of a pixel.

use std::ops::RangeInclusive;

use nalgebra::{Matrix2, Vector2};

use super::planes::{Level, Window};

/// Half the side of the windows that are compared.
pub(super) const HALF: i32 = 4;

const SIDE: usize = 2 * HALF as usize + 1;

/// Number of windows that are compared at once.
const LANES: usize = 16;

/// Half the side of the window for the subpixel position.
pub(super) const FINE_HALF: i32 = 5;

/// Lowest correlation of a match.
const SIMILAR: f32 = 0.75;

/// Smallest lead over the second best correlation, against repetitive texture.
const DISTINCT: f32 = 0.04;

/// Small image of a view, prepared for a full search.
#[derive(Debug)]
pub(super) struct Searchable {
    width: i32,
    height: i32,
    /// Grey levels row by row, with zeros behind the last row so that whole vectors can be read.
    values: Vec<f32>,
    /// Inverse norm of the window around each pixel; 0 if it is flat or not inside.
    weights: Vec<f32>,
}

/// Norm below which a window is flat: a standard deviation of one grey level.
const FLAT: f32 = 9.0;

/// A displacement in pixels of a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Peak {
    pub(super) dx: i32,
    pub(super) dy: i32,
    correlation: f32,
}

impl Searchable {
    pub(super) fn new(level: &Level) -> Self {
        let (width, height) = (level.width as i32, level.height as i32);
        let mut values: Vec<f32> =
            (0..level.height).flat_map(|y| level.row(y).iter().map(|&v| f32::from(v))).collect();
        values.resize(values.len() + LANES, 0.0);
        let weights = inverse_norms(level);
        Self { width, height, values, weights }
    }

    /// Searches the window around (x, y) of `level`. Returns the displacement of the best
    /// correlation if it is good and no other position is nearly as good.
    pub(super) fn find(
        &self,
        level: &Level,
        (x, y): (i32, i32),
        dx: &RangeInclusive<i32>,
        dy: &RangeInclusive<i32>,
        scores: &mut Vec<f32>,
    ) -> Option<Peak> {
        let window = level.window(x, y, HALF).filter(|window| window.norm > FLAT)?;
        // Limited to windows inside the image.
        let first = (*dx.start()).max(HALF - x);
        let last = (*dx.end()).min(self.width - 1 - HALF - x);
        let top = (*dy.start()).max(HALF - y);
        let bottom = (*dy.end()).min(self.height - 1 - HALF - y);
        if first > last || top > bottom {
            return None;
        }
        let count = (last - first + 1) as usize;
        scores.clear();
        for dy in top..=bottom {
            let start = scores.len();
            scores.resize(start + count, 0.0);
            let row_scores = &mut scores[start..];
            let corner = ((y + dy - HALF) * self.width + x + first - HALF) as usize;
            for (chunk, at) in row_scores.chunks_mut(LANES).zip((corner..).step_by(LANES)) {
                let sums = self.products(&window.values, at);
                chunk.copy_from_slice(&sums[..chunk.len()]);
            }
            let weights = &self.weights[((y + dy) * self.width + x + first) as usize..][..count];
            for (score, weight) in row_scores.iter_mut().zip(weights) {
                *score *= weight / window.norm;
            }
        }
        let best = scores.iter().copied().fold(f32::MIN, f32::max);
        if best < SIMILAR {
            return None;
        }
        let at = scores.iter().position(|&score| score == best)?;
        let (row, column) = (at / count, at % count);
        let mut second = f32::MIN;
        for (other, scores) in scores.chunks_exact(count).enumerate() {
            let best_of = |scores: &[f32]| scores.iter().copied().fold(f32::MIN, f32::max);
            second = second.max(if other.abs_diff(row) > 2 {
                best_of(scores)
            } else {
                let after = (column + 3).min(count);
                best_of(&scores[..column.saturating_sub(2)]).max(best_of(&scores[after..]))
            });
        }
        (best - second >= DISTINCT).then_some(Peak {
            dx: first + column as i32,
            dy: top + row as i32,
            correlation: best,
        })
    }

    /// Computes the products of a template with the windows that begin at pixel `at` and to the right of it.
    /// Windows that cross the end of a row are meaningless.
    fn products(&self, template: &[f32], at: usize) -> [f32; LANES] {
        let mut sums = [0.0; LANES];
        for (row, template) in template.as_chunks::<SIDE>().0.iter().enumerate() {
            let values = &self.values[at + row * self.width as usize..];
            let values = values.first_chunk::<{ LANES + SIDE - 1 }>().expect("padded at the end");
            for shift in 0..SIDE {
                for lane in 0..LANES {
                    sums[lane] += template[shift] * values[shift + lane];
                }
            }
        }
        sums
    }
}

/// Computes the inverse norm of the window around each pixel; 0 if it is flat or not inside.
fn inverse_norms(level: &Level) -> Vec<f32> {
    let (width, height, side) = (level.width, level.height, SIDE);
    let mut weights = vec![0.0; width * height];
    // Running sums of the values and of their squares, down the columns and along the rows.
    let mut columns = vec![[0u32; 2]; width];
    for y in 0..height {
        for (x, column) in columns.iter_mut().enumerate() {
            let value = u32::from(level.row(y)[x]);
            let gone = if y >= side { u32::from(level.row(y - side)[x]) } else { 0 };
            column[0] = column[0] + value - gone;
            column[1] = column[1] + value * value - gone * gone;
        }
        if y + 1 < side {
            continue;
        }
        let mut sums = [0u32; 2];
        for x in 0..width {
            let gone = if x >= side { columns[x - side] } else { [0; 2] };
            sums = [sums[0] + columns[x][0] - gone[0], sums[1] + columns[x][1] - gone[1]];
            if x + 1 >= side {
                let squares = sums[1] as f32 - (sums[0] as f32).powi(2) / (side * side) as f32;
                if squares > FLAT * FLAT {
                    let centre = (y - HALF as usize) * width + x - HALF as usize;
                    weights[centre] = 1.0 / squares.sqrt();
                }
            }
        }
    }
    weights
}

/// Returns the displacement of the best correlation within two pixels of `near`, in the next larger
/// level.
pub(super) fn refine_in_next_level(
    left: &Level,
    right: &Level,
    (x, y): (i32, i32),
    near: (i32, i32),
) -> Option<Peak> {
    let window = left.window(x, y, HALF)?;
    // Read the searched area once.
    let (first, top) = (x + near.0 - 2, y + near.1 - 2);
    let inside = |at: i32, size: usize| at >= HALF && at + 4 + HALF < size as i32;
    if window.norm <= FLAT || !inside(first, right.width) || !inside(top, right.height) {
        return None;
    }
    let mut area = [[0.0f32; SIDE + 4]; SIDE + 4];
    for (values, row) in area.iter_mut().zip((top - HALF) as usize..) {
        let row = &right.row(row)[(first - HALF) as usize..];
        for (value, &grey) in values.iter_mut().zip(row) {
            *value = f32::from(grey);
        }
    }
    let mut best: Option<Peak> = None;
    for (down, dy) in (near.1 - 2..=near.1 + 2).enumerate() {
        let (mut products, mut sums, mut squares) = ([0.0f32; 5], [0.0f32; 5], [0.0f32; 5]);
        for (template, values) in window.values.chunks_exact(SIDE).zip(&area[down..]) {
            for (column, value) in template.iter().enumerate() {
                for (across, other) in values[column..column + 5].iter().enumerate() {
                    products[across] += value * other;
                    sums[across] += other;
                    squares[across] += other * other;
                }
            }
        }
        for (across, dx) in (near.0 - 2..=near.0 + 2).enumerate() {
            let square = squares[across] - sums[across] * sums[across] / (SIDE * SIDE) as f32;
            if square <= FLAT * FLAT {
                continue;
            }
            let correlation = products[across] / (window.norm * square.sqrt());
            if best.is_none_or(|best| correlation > best.correlation) {
                best = Some(Peak { dx, dy, correlation });
            }
        }
    }
    best.filter(|best| best.correlation >= SIMILAR)
}

/// A displacement to a fraction of a pixel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Exact {
    pub(super) dx: f64,
    pub(super) dy: f64,
    /// Standard deviation of `dy`, estimated from the residual grey levels.
    pub(super) dy_sigma: f64,
}

/// Aligns the window of the right image, invariant to gain and offset (Lucas and Kanade, IJCAI
/// 1981, in the inverse form of Baker and Matthews, IJCV 2004).
pub(super) fn refine_to_subpixel(
    left: &Level,
    right: &Level,
    (x, y): (i32, i32),
    near: Peak,
) -> Option<Exact> {
    const STEPS: usize = 12;
    let side = (2 * FINE_HALF + 1) as usize;
    // One pixel more on each side for the gradients.
    let wide = left.window(x, y, FINE_HALF + 1)?;
    let at = |column: usize, row: usize| wide.values[row * (side + 2) + column];
    let mut gradients = Vec::with_capacity(side * side);
    let mut values = Vec::with_capacity(side * side);
    let mut matrix = Matrix2::zeros();
    for row in 1..=side {
        for column in 1..=side {
            let gradient = Vector2::new(
                0.5 * f64::from(at(column + 1, row) - at(column - 1, row)),
                0.5 * f64::from(at(column, row + 1) - at(column, row - 1)),
            );
            matrix += gradient * gradient.transpose();
            gradients.push(gradient);
            values.push(at(column, row));
        }
    }
    let template = Window::of(values);
    let inverse = matrix.try_inverse()?;
    let mut place = Vector2::new(f64::from(near.dx), f64::from(near.dy));
    for _ in 0..STEPS {
        let here = interpolate_window(right, f64::from(x) + place.x, f64::from(y) + place.y)?;
        if here.norm <= 0.0 {
            return None;
        }
        let gain = template.norm / here.norm;
        let mut push = Vector2::zeros();
        let mut squares = 0.0;
        for ((gradient, value), other) in gradients.iter().zip(&template.values).zip(&here.values) {
            let error = f64::from(gain * other - value);
            push += gradient * error;
            squares += error * error;
        }
        let step = inverse * push;
        place -= step;
        let moved = place - Vector2::new(f64::from(near.dx), f64::from(near.dy));
        if moved.amax() > 2.0 {
            return None;
        }
        if step.norm() < 0.01 {
            let variance = squares / (side * side - 4) as f64;
            let correlated = template.correlation(&here) >= SIMILAR;
            return correlated.then_some(Exact {
                dx: place.x,
                dy: place.y,
                dy_sigma: (variance * inverse[(1, 1)]).sqrt(),
            });
        }
    }
    None
}

/// Interpolates the window around a subpixel position bilinearly.
fn interpolate_window(level: &Level, x: f64, y: f64) -> Option<Window> {
    let (column, row) = (x.floor(), y.floor());
    let (u, v) = ((x - column) as f32, (y - row) as f32);
    let (left, top) = (column as i32 - FINE_HALF, row as i32 - FINE_HALF);
    let side = 2 * FINE_HALF + 1;
    let inside = |first: i32, size: usize| first >= 0 && first + side < size as i32;
    if !inside(left, level.width) || !inside(top, level.height) {
        return None;
    }
    let (left, side) = (left as usize, side as usize);
    let mut values = Vec::with_capacity(side * side);
    for row in top as usize..top as usize + side {
        let above = &level.row(row)[left..][..=side];
        let below = &level.row(row + 1)[left..][..=side];
        let upright = |i: usize| (1.0 - v) * f32::from(above[i]) + v * f32::from(below[i]);
        values.extend((0..side).map(|i| (1.0 - u) * upright(i) + u * upright(i + 1)));
    }
    Some(Window::of(values))
}
