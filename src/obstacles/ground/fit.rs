//! Robust fit of planes to points of a disparity map.

use super::View;
use stereod_core::frame::{INVALID, SUBPIXEL};

/// Pixel of the grid. (u, v) is its place from the principal point, in focal lengths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    u: f32,
    v: f32,
    /// Disparity less that of points at infinity, in pixels.
    parallax: f32,
    weight: f32,
    /// Part of the image that it lies in, below [`CELLS`].
    cell: u16,
}

/// Parallax in pixels as a linear function of (u, v, 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plane(pub [f64; 3]);

/// A plane and the points on it.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    pub plane: Plane,
    /// Standard deviation of the points from the plane in pixels, by the median of the deviations.
    pub spread_px: f64,
    /// Number of points, each counted less the farther it lies from the plane, up to [`REACH`]: of a kerb and the road, the
    /// more even one has more, and not a plane between both.
    pub score: f64,
    /// Points within [`INSIDE`].
    pub inside: usize,
    /// Points from there to [`AROUND`].
    pub around: usize,
    /// Blocks with points on the plane.
    pub blocks: usize,
    /// True if the points lie on something upright.
    pub crosses: bool,
    /// Covariance of the plane.
    covariance: [[f64; 3]; 3],
    /// Cells that are left out, because their points cross the plane, as at the foot of a wall. Point by point they are no
    /// outliers, but they would tilt the plane.
    upright: [bool; CELLS],
}

/// Columns and rows of blocks.
const GRID: [usize; 2] = [16, 12];
const BLOCKS: usize = GRID[0] * GRID[1];

/// Each block has two times two cells.
const CELLS: usize = 4 * BLOCKS;

/// How often the grid of a sparse map is made twice as fine.
const FINER: usize = 2;

/// Points that candidates are scored by.
const SCORED: usize = 512;

/// Points that are added together, so that compilers make vectors.
const LANES: usize = 8;

/// Deviation in pixels at which a point no longer counts for a candidate.
const REACH: f32 = 1.0;

/// Parallax in pixels below which a plane is not compared with points: a candidate's, and least of a fit's. Noise would
/// select the points there, because a matcher finds no disparities below its range.
const NEAR: f32 = 3.0;
const NEAR_FITTED: f64 = 1.0;

/// Parallax in pixels of a plane below which nothing stands on it.
const HORIZON: f64 = 0.5;

/// Standard deviations within which points are on the plane, and around it.
const INSIDE: f64 = 2.5;
const AROUND: f64 = 3.0 * INSIDE;

/// Share of its parallax by which that of a thing differs within a cell.
const AGREE: f64 = 0.05;

/// Constant of Tukey's bisquare weights, for 95 % efficiency with Gaussian noise.
const TUKEY: f64 = 4.685;

/// Limits of the spread in pixels. A candidate begins in the middle.
const SPREAD: [f64; 3] = [0.1, 0.5, 3.0];

/// Counts for the median of deviations.
const BINS: usize = 128;

/// Candidates closer than this, as a share of their length, are one.
const ALIKE: f64 = 0.04;

/// Returns at most about `wanted` known pixels of an even grid, in random order with a fixed seed. The grid is finer in
/// sparse maps.
pub(super) fn sample(view: &View, least_confidence: u8, wanted: usize) -> Vec<Point> {
    let wanted = wanted.max(1);
    let pixels = view.values.len();
    let mut step = (((pixels / wanted) as f64).sqrt().ceil() as usize).max(1);
    let mut points = of_grid(view, least_confidence, step);
    for _ in 0..FINER {
        if step > 1 && points.len() * 4 < wanted {
            step = step.div_ceil(2);
            points = of_grid(view, least_confidence, step);
        }
    }
    let mut random = Random::new();
    for last in (1..points.len()).rev() {
        points.swap(last, random.below(last + 1));
    }
    points
}

fn of_grid(view: &View, least_confidence: u8, step: usize) -> Vec<Point> {
    let (width, height) = (view.width, view.values.len() / view.width);
    let geometry = &view.geometry;
    let [per_px, infinity] =
        [1.0 / geometry.focal_px, geometry.centre_x_px - geometry.right_centre_x_px];
    let mut points = Vec::new();
    for y in (step / 2..height).step_by(step) {
        let v = ((y as f64 - geometry.centre_y_px) * per_px) as f32;
        let row_of_cells = y * 2 * GRID[1] / height * 2 * GRID[0];
        for x in (step / 2..width).step_by(step) {
            let i = y * width + x;
            let sure = view.confidence.map_or(255, |confidence| confidence[i]);
            if view.values[i] == INVALID || sure < least_confidence {
                continue;
            }
            let disparity = f64::from(view.values[i]) / f64::from(SUBPIXEL);
            points.push(Point {
                u: ((x as f64 - geometry.centre_x_px) * per_px) as f32,
                v,
                parallax: (disparity - infinity) as f32,
                // A pixel is right with this probability.
                weight: f32::from(sure) / 255.0,
                cell: (row_of_cells + x * 2 * GRID[0] / width) as u16,
            });
        }
    }
    points
}

/// Returns the planes that most points support, the best first: at most `kept` of `draws` planes through three points that
/// pass, and `known`.
pub(super) fn candidates(
    points: &[Point],
    known: Option<Plane>,
    [draws, kept]: [usize; 2],
    passes: impl Fn(&Plane) -> bool,
) -> Vec<Plane> {
    if points.len() < 3 {
        return Vec::new();
    }
    let scored = Scored::of(points);
    let mut best: Vec<(f32, Plane)> = Vec::with_capacity(kept + 1);
    let mut random = Random::new();
    let drawn = (0..draws).filter_map(|_| {
        let three = [(); 3].map(|()| &points[random.below(points.len())]);
        Plane::through(three).filter(&passes)
    });
    for plane in known.into_iter().chain(drawn) {
        let score = scored.score(&plane);
        if best.len() == kept && best.last().is_some_and(|(least, _)| score <= *least) {
            continue;
        }
        let is_like = |other: &Plane| other.is_like(&plane);
        if best.iter().any(|(other, of)| *other >= score && is_like(of)) {
            continue;
        }
        best.retain(|(_, of)| !is_like(of));
        let at = best.partition_point(|(other, _)| *other >= score);
        best.insert(at, (score, plane));
        best.truncate(kept);
    }
    best.into_iter().map(|(_, plane)| plane).collect()
}

/// Points for scores, coordinate by coordinate.
struct Scored([Vec<f32>; 3]);

impl Scored {
    fn of(points: &[Point]) -> Self {
        let mut axes = [(); 3].map(|()| Vec::with_capacity(SCORED));
        for point in &points[..SCORED.min(points.len()) / LANES * LANES] {
            axes.iter_mut()
                .zip([point.u, point.v, point.parallax])
                .for_each(|(axis, value)| axis.push(value));
        }
        Self(axes)
    }

    /// Returns a count of the points on a plane, in which a point counts less the farther it lies (MSAC: Torr and
    /// Zisserman, CVIU 78, 2000).
    fn score(&self, plane: &Plane) -> f32 {
        let [a, b, c] = plane.0.map(|of| of as f32);
        let [u, v, p] = &self.0;
        let (u, v, p) =
            (u.as_chunks::<LANES>().0, v.as_chunks::<LANES>().0, p.as_chunks::<LANES>().0);
        let mut sums = [0.0; LANES];
        for ((u, v), p) in u.iter().zip(v).zip(p) {
            for i in 0..LANES {
                let due = a * u[i] + b * v[i] + c;
                let off = (p[i] - due) * (1.0 / REACH);
                let score = (1.0 - off * off).max(0.0);
                sums[i] += if due > NEAR { score } else { 0.0 };
            }
        }
        sums.iter().sum()
    }
}

impl Plane {
    /// Returns the plane through three points; `None` if they lie nearly on a line.
    fn through([a, b, c]: [&Point; 3]) -> Option<Self> {
        let from_a = |of: &Point| [of.u - a.u, of.v - a.v, of.parallax - a.parallax].map(f64::from);
        let ([u1, v1, p1], [u2, v2, p2]) = (from_a(b), from_a(c));
        let area = u1 * v2 - u2 * v1;
        let sides = (u1 * u1 + v1 * v1).max(u2 * u2 + v2 * v2);
        if area.abs() < 0.05 * sides || sides < 1e-4 {
            return None;
        }
        let along = [(p1 * v2 - p2 * v1) / area, (u1 * p2 - u2 * p1) / area];
        let rest = f64::from(a.parallax) - along[0] * f64::from(a.u) - along[1] * f64::from(a.v);
        Some(Self([along[0], along[1], rest]))
    }

    /// Returns focal length times baseline over the distance from the camera.
    pub(super) fn length(&self) -> f64 {
        self.0.iter().map(|of| of * of).sum::<f64>().sqrt()
    }

    /// Returns the direction from the camera to the nearest point of the plane, in the optical axes.
    pub(super) fn normal(&self) -> [f64; 3] {
        let length = self.length();
        self.0.map(|of| of / length)
    }

    fn is_like(&self, other: &Self) -> bool {
        let apart = Self([0, 1, 2].map(|i| self.0[i] - other.0[i]));
        apart.length() < ALIKE * self.length()
    }

    fn at(&self, point: &Point) -> f64 {
        let [a, b, c] = self.0;
        a * f64::from(point.u) + b * f64::from(point.v) + c
    }
}

/// Sums for a line by least squares: parallax against that of the plane. Its slope is 1 on the plane and 0 on a wall.
#[derive(Clone, Copy, Default)]
struct Growth([f64; 5]);

impl Growth {
    fn add(&mut self, due: f64, parallax: f64) {
        let terms = [1.0, due, parallax, due * due, due * parallax];
        self.0.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }

    /// Returns the squares of the plane's parallax about its mean, and the products with the parallax of the points.
    fn centred(&self) -> [f64; 2] {
        let [count, due, parallax, squares, products] = self.0;
        if count < 3.0 {
            [0.0; 2]
        } else {
            [squares - due * due / count, products - due * parallax / count]
        }
    }

    fn is_upright(&self, spread_px: f64) -> bool {
        is_upright(self.centred(), spread_px)
    }
}

/// Reports whether points certainly (by two standard deviations) do not grow with the plane.
fn is_upright([squares, products]: [f64; 2], spread_px: f64) -> bool {
    let (slope, sd) = (products / squares, spread_px / squares.sqrt());
    squares > 0.0 && slope < 0.5 && 1.0 - slope > 2.0 * sd
}

/// Points of a cell that lie above the plane.
#[derive(Clone, Copy, Default)]
struct Cell {
    all: u32,
    above: u32,
    /// Sum of the parallaxes above, and of their squares.
    sums: [f64; 2],
}

impl Cell {
    fn add(&mut self, parallax: f64, is_above: bool) {
        self.all += 1;
        if is_above {
            self.above += 1;
            self.sums[0] += parallax;
            self.sums[1] += parallax * parallax;
        }
    }

    /// Reports whether most points lie above the plane and agree, which wrong ones do not.
    fn is_thing(&self, spread_px: f64) -> bool {
        let count = f64::from(self.above.max(1));
        let mean = self.sums[0] / count;
        let deviation = (self.sums[1] / count - mean * mean).max(0.0).sqrt();
        self.above >= 2 && 2 * self.above > self.all && deviation < 3.0 * spread_px + AGREE * mean
    }
}

impl Fit {
    /// Reports whether the points as a whole lie on something upright that crosses the plane.
    fn crosses(&self, points: &[Point]) -> bool {
        let [squares, products] =
            self.growth(points, |_, _| ()).iter().fold([0.0; 2], |sum, growth| {
                let of = growth.centred();
                [sum[0] + of[0], sum[1] + of[1]]
            });
        is_upright([squares, products], self.spread_px)
    }

    /// Creates a fit that is yet to settle.
    pub(super) fn rough(plane: Plane) -> Self {
        Self {
            plane,
            spread_px: SPREAD[1],
            score: 0.0,
            inside: 0,
            around: 0,
            blocks: 0,
            crosses: false,
            covariance: [[0.0; 3]; 3],
            upright: [false; CELLS],
        }
    }

    fn is_left_out(&self, point: &Point) -> bool {
        self.upright[usize::from(point.cell)]
    }

    /// Returns the parallax from which on points are compared with the plane.
    fn nearest(&self) -> f64 {
        NEAR_FITTED.max(4.0 * self.spread_px)
    }

    /// Returns the points that lie certainly below the plane, that is beyond it.
    pub(super) fn below(&self, points: &[Point]) -> Vec<Point> {
        let reach = INSIDE * self.spread_px + 0.25;
        let is_below = |point: &&Point| {
            let due = self.plane.at(point);
            due > self.nearest() && f64::from(point.parallax) < due - reach
        };
        points.iter().filter(is_below).copied().collect()
    }

    /// Fits the plane to these points. Returns `None` if too few are near it, or if they lie on a line.
    /// After each of the `purges`, things that stand on the plane are left out.
    pub(super) fn settled(&self, points: &[Point], [rounds, purges]: [usize; 2]) -> Option<Self> {
        let mut fit = self.clone();
        for purge in 0..=purges {
            for _ in 0..rounds {
                let (before, spread) = (fit.plane, fit.spread_px);
                (fit.plane, fit.spread_px) = fit.step(points)?;
                let apart = Plane([0, 1, 2].map(|i| fit.plane.0[i] - before.0[i])).length();
                if apart < 3e-4 * before.length() && (fit.spread_px - spread).abs() < 3e-3 {
                    break;
                }
            }
            if purge < purges {
                fit.upright = fit.find_upright(points);
            }
        }
        fit.judge(points)
    }

    /// Returns the cells to leave out: those next to things that stand on the plane, and those whose points cross it. Near
    /// the foot of a wall no point is an outlier, but all lie to one side.
    fn find_upright(&self, points: &[Point]) -> [bool; CELLS] {
        let mut cells = [Cell::default(); CELLS];
        let crosses = self.growth(points, |point, due| {
            let parallax = f64::from(point.parallax);
            let is_above = due > HORIZON && parallax - due > INSIDE * self.spread_px;
            cells[usize::from(point.cell)].add(parallax, is_above);
        });
        let crosses = crosses.map(|growth| growth.is_upright(self.spread_px));
        let [columns, rows] = GRID.map(|blocks| 2 * blocks);
        std::array::from_fn(|cell| {
            let (x, y) = (cell % columns, cell / columns);
            let near = |at: usize, end: usize| at.saturating_sub(1)..(at + 2).min(end);
            let mut around =
                near(y, rows).flat_map(|y| near(x, columns).map(move |x| y * columns + x));
            crosses[block_of(cell)] || around.any(|cell| cells[cell].is_thing(self.spread_px))
        })
    }

    /// Compares, within each block, how the parallax of points near the plane grows with that of the plane. Calls `each`
    /// with each point and the plane's parallax there.
    fn growth(&self, points: &[Point], mut each: impl FnMut(&Point, f64)) -> [Growth; BLOCKS] {
        let (nearest, reach) = (self.nearest(), TUKEY * self.spread_px);
        let mut growth = [Growth::default(); BLOCKS];
        for point in points {
            let due = self.plane.at(point);
            let parallax = f64::from(point.parallax);
            each(point, due);
            if due > nearest && (parallax - due).abs() < reach {
                growth[block_of(usize::from(point.cell))].add(due, parallax);
            }
        }
        growth
    }

    /// Returns the plane by weighted least squares, and the spread about the plane before.
    fn step(&self, points: &[Point]) -> Option<(Plane, f64)> {
        let (nearest, reach) = (self.nearest(), TUKEY * self.spread_px);
        let (mut normal, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
        let mut bins = [0_u32; BINS];
        for point in points {
            let due = self.plane.at(point);
            let off = (f64::from(point.parallax) - due) / reach;
            let rest = 1.0 - off * off;
            if due < nearest || rest <= 0.0 || self.is_left_out(point) {
                continue;
            }
            bins[(off.abs() * BINS as f64) as usize] += 1;
            let weight = f64::from(point.weight) * rest * rest;
            let place = [f64::from(point.u), f64::from(point.v), 1.0];
            add_square(&mut normal, place, weight);
            for i in 0..3 {
                right[i] += weight * place[i] * f64::from(point.parallax);
            }
        }
        let inverse = inverse(&normal)?;
        let plane = Plane(inverse.map(|row| super::dot(row, right)));
        // 0.6745 standard deviations hold half of a Gaussian distribution.
        let spread = median(&bins)? * reach / 0.6745;
        Some((plane, spread.clamp(SPREAD[0], SPREAD[2])))
    }

    /// Counts the points on the plane, and estimates its covariance.
    ///
    /// That of the normal equations holds for independent points, but neighbours err together. So the gradients of the
    /// fit are added within each block of the image, and the spread of these sums takes the place of that of single
    /// points (the sandwich estimator with clusters: Liang and Zeger, Biometrika 73, 1986). Its G / (G - 3) corrects
    /// for the three parameters that few blocks determine.
    fn judge(mut self, points: &[Point]) -> Option<Self> {
        let (nearest, reach) = (self.nearest(), TUKEY * self.spread_px);
        let mut curvature = [[0.0; 3]; 3];
        let mut gradients = [[0.0; 3]; BLOCKS];
        let mut counts = [0_u32; BLOCKS];
        (self.score, self.inside, self.around) = (0.0, 0, 0);
        for point in points {
            let due = self.plane.at(point);
            if due < nearest || self.is_left_out(point) {
                continue;
            }
            let residual = f64::from(point.parallax) - due;
            self.score += (1.0 - (residual / f64::from(REACH)).powi(2)).max(0.0);
            let deviations = residual.abs() / self.spread_px;
            self.inside += usize::from(deviations < INSIDE);
            self.around += usize::from((INSIDE..AROUND).contains(&deviations));
            let off = residual / reach;
            let rest = 1.0 - off * off;
            if rest <= 0.0 {
                continue;
            }
            let weight = f64::from(point.weight) * rest;
            let place = [f64::from(point.u), f64::from(point.v), 1.0];
            add_square(&mut curvature, place, weight * (1.0 - 5.0 * off * off));
            let cell = usize::from(point.cell);
            let block = block_of(cell);
            counts[block] += 1;
            for i in 0..3 {
                gradients[block][i] += weight * rest * residual * place[i];
            }
        }
        let mut spread = [[0.0; 3]; 3];
        gradients.iter().for_each(|gradient| add_square(&mut spread, *gradient, 1.0));
        self.blocks = counts.iter().filter(|count| **count > 0).count();
        self.crosses = self.crosses(points);
        let inverse = inverse(&curvature)?;
        let few = self.blocks as f64 / (self.blocks as f64 - 3.0).max(1.0);
        let half = product(&inverse, &spread);
        self.covariance = product(&half, &inverse).map(|row| row.map(|of| of * few));
        Some(self)
    }

    /// Returns the standard deviations of roll and pitch in radians, and of the height as a share of it. The roll is
    /// atan2(a, b), the pitch atan2(c, |(a, b)|), the height the inverse of the length.
    pub(super) fn deviations(&self) -> [f64; 3] {
        let [a, b, c] = self.plane.0;
        let (length, level) = (self.plane.length(), a.hypot(b).max(f64::MIN_POSITIVE));
        let squared = length * length;
        let roll = [b, -a, 0.0].map(|of| of / (level * level));
        let pitch = [-c * a / level, -c * b / level, level].map(|of| of / squared);
        let height = [a, b, c].map(|of| of / squared);
        [roll, pitch, height].map(|gradient| self.deviation(gradient))
    }

    /// Returns the standard deviations of the normal's direction in radians, and of the height as a share of it.
    pub(super) fn uncertainty(&self) -> (f64, f64) {
        let length = self.plane.length();
        let all: f64 = (0..3).map(|i| self.covariance[i][i]).sum();
        let along = self.deviation(self.plane.normal());
        ((all - along * along).max(0.0).sqrt() / length, along / length)
    }

    fn deviation(&self, gradient: [f64; 3]) -> f64 {
        let variance = super::dot(self.covariance.map(|row| super::dot(row, gradient)), gradient);
        variance.max(0.0).sqrt()
    }
}

/// Returns the block of a cell.
fn block_of(cell: usize) -> usize {
    cell / (4 * GRID[0]) * GRID[0] + cell % (2 * GRID[0]) / 2
}

/// Adds `weight` times the products of the elements.
fn add_square(sum: &mut [[f64; 3]; 3], of: [f64; 3], weight: f64) {
    for i in 0..3 {
        for k in 0..3 {
            sum[i][k] += weight * of[i] * of[k];
        }
    }
}

fn product(a: &[[f64; 3]; 3], b: &[[f64; 3]; 3]) -> [[f64; 3]; 3] {
    a.map(|row| [0, 1, 2].map(|k| super::dot(row, [b[0][k], b[1][k], b[2][k]])))
}

/// Returns the inverse of a symmetric matrix; `None` if it is singular.
fn inverse(of: &[[f64; 3]; 3]) -> Option<[[f64; 3]; 3]> {
    let minor = |i: usize, k: usize| {
        let ([r, s], [t, u]) = ([(i + 1) % 3, (i + 2) % 3], [(k + 1) % 3, (k + 2) % 3]);
        of[r][t] * of[s][u] - of[r][u] * of[s][t]
    };
    let determinant: f64 = (0..3).map(|k| of[0][k] * minor(0, k)).sum();
    let size = of[0][0].abs() * of[1][1].abs() * of[2][2].abs();
    if determinant.is_nan() || determinant.abs() <= 1e-9 * size {
        return None;
    }
    Some([0, 1, 2].map(|i| [0, 1, 2].map(|k| minor(k, i) / determinant)))
}

/// Returns the median as a share of all bins; `None` without counts.
fn median(bins: &[u32; BINS]) -> Option<f64> {
    let half = 0.5 * bins.iter().sum::<u32>() as f32;
    let mut below = 0.0;
    for (i, &count) in bins.iter().enumerate().filter(|(_, count)| **count > 0) {
        let count = count as f32;
        if below + count >= half {
            return Some((i as f64 + f64::from((half - below) / count)) / BINS as f64);
        }
        below += count;
    }
    None
}

/// xorshift64* (Marsaglia 2003; Vigna 2016) with a fixed seed, so that each map has one result.
struct Random(u64);

impl Random {
    fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns a number below `end`, which is positive and fits 32 bits.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((high * end as u64) >> 32) as usize
    }
}
