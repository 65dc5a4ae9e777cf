//! Coarse start of a motion: direct alignment of grey levels at sure pixels, from coarse to fine, from several starts
//! (Steinbrücker, Sturm and Cremers, ICCV workshops 2011, section 3), robust by the weights of Geman and McClure.

use super::rigid::{Camera, Equations, Ray, Warp, median, moved};
use crate::frame::Image;
use crate::matching::pyramid::{half, smooth};
use crate::pose::Pose;

/// Shortest side of the coarsest image.
const SIDE_MIN: usize = 12;

/// Longest width of the finest image that is aligned.
const WIDTH_MAX: usize = 400;

/// Most points of a level, and the least.
const POINTS: [usize; 2] = [600, 60];

/// Smallest sum of the slopes to the right and down of a point that counts, in grey levels.
const SLOPE_MIN: i32 = 5;

/// At most one of so many pixels of a level is a point.
const SPREAD: usize = 3;

/// Most pixels of a level that are examined, for each of its points.
const EXAMINED: usize = 16;

/// Most steps of a level.
const STEPS: usize = 8;

/// Steps below this length in pixels of a level end the search.
const STEP_MIN: f32 = 0.02;

/// Images of half the size each, below the full one.
#[derive(Debug)]
pub struct Halves {
    halves: Vec<Image>,
    /// Number of the finest level that is aligned, counted from the full image.
    finest: usize,
    /// Levels that are aligned, smoothed, from the finest on.
    smooth: Vec<Image>,
}

impl Halves {
    /// Makes the levels of an image.
    pub fn of(image: &Image) -> Self {
        let mut halves: Vec<Image> = Vec::new();
        loop {
            let last = halves.last().unwrap_or(image);
            if last.width().min(last.height()) < 2 * SIDE_MIN {
                break;
            }
            let next = half(last);
            halves.push(next);
        }
        let coarse = |width: usize| width <= WIDTH_MAX;
        let finest =
            1 + halves.iter().position(|level| coarse(level.width())).unwrap_or(halves.len());
        let smooth = halves.iter().skip(finest - 1).map(smooth).collect();
        Self { halves, finest, smooth }
    }

    /// Returns the levels below the full image.
    pub fn levels(&self) -> &[Image] {
        &self.halves
    }
}

/// Points of an image with their grey levels, of each level.
#[derive(Clone, Debug, PartialEq)]
pub struct Greys {
    levels: Vec<Level>,
}

/// A point after a motion, the difference of its grey levels, and the slopes there.
type Seen = (Ray, f32, [f32; 2]);

#[derive(Clone, Debug, PartialEq)]
struct Level {
    /// Pixels of the full image along one of this level.
    scale: f32,
    points: Vec<Ray>,
    greys: Vec<f32>,
}

impl Greys {
    /// Collects the points of an image whose disparity is sure; `sure` returns it in pixels.
    pub fn of(
        halves: &Halves,
        camera: &Camera,
        sure: impl Fn(usize, usize) -> Option<f32>,
    ) -> Self {
        let level = |(number, image): (usize, &Image)| {
            let side = 1usize << (halves.finest + number);
            let found: Vec<[f32; 3]> = textured(image)
                .filter_map(|at| {
                    let [x, y] = at.map(|at| at * side + side / 2);
                    Some([x as f32, y as f32, sure(x, y)?])
                })
                .collect();
            let most = POINTS[0].min(image.width() * image.height() / SPREAD);
            let every = found.len().div_ceil(most).max(1);
            let (mut points, mut greys) = (Vec::new(), Vec::new());
            for pixel in found.into_iter().step_by(every) {
                if let Some([grey, ..]) = sample(image, side as f32, pixel[0], pixel[1]) {
                    points.push(camera.ray(pixel));
                    greys.push(grey);
                }
            }
            Level { scale: side as f32, points, greys }
        };
        Self { levels: halves.smooth.iter().enumerate().map(level).collect() }
    }

    /// Returns the motion of the points to another image that fits best from any of the starts.
    pub fn align(&self, to: &Halves, camera: &Camera, starts: &[Pose]) -> Option<Pose> {
        let mut found: Vec<Pose> = starts.to_vec();
        let levels = self.levels.iter().zip(&to.smooth).rev();
        let mut aligned = None;
        for (level, image) in levels.filter(|(level, _)| level.points.len() >= POINTS[1]) {
            let ends = found.iter().filter_map(|start| level.align(image, camera, *start));
            let mut ends: Vec<(Pose, f32)> = ends.collect();
            ends.sort_by(|a, b| a.1.total_cmp(&b.1));
            // The coarsest level may be wrong about the best one.
            ends.truncate(if aligned.is_none() { 2 } else { 1 });
            aligned = Some(ends.first()?.0);
            found = ends.into_iter().map(|end| end.0).collect();
        }
        aligned
    }
}

/// Pixels of an image that have texture, of those that are examined.
fn textured(image: &Image) -> impl Iterator<Item = [usize; 2]> {
    let (width, height) = (image.width(), image.height());
    let slope = |a: u8, b: u8| (i32::from(a) - i32::from(b)).abs();
    let has_texture = move |&[x, y]: &[usize; 2]| {
        let [above, row, below] = [y - 1, y, y + 1].map(|y| image.row(y));
        slope(row[x + 1], row[x - 1]) + slope(below[x], above[x]) >= SLOPE_MIN
    };
    let every = (width * height).div_ceil(EXAMINED * POINTS[0]);
    let pixels = (0..width * height).step_by(every).map(move |i| [i % width, i / width]);
    let is_inside = move |&[x, y]: &[usize; 2]| x > 0 && y > 0 && x + 1 < width && y + 1 < height;
    pixels.filter(is_inside).filter(has_texture)
}

/// The grey level of an image of a level at a full pixel and its slopes per pixel of the level; `None` at the border.
#[inline(always)]
pub fn sample(image: &Image, scale: f32, x: f32, y: f32) -> Option<[f32; 3]> {
    let at = [x, y].map(|full| (full - (scale - 1.0) / 2.0) / scale);
    let inside = |at: f32, side: usize| at >= 1.0 && at < side as f32 - 2.0;
    if !inside(at[0], image.width()) || !inside(at[1], image.height()) {
        return None;
    }
    let (x, y) = (at[0] as usize, at[1] as usize);
    let (fx, fy) = (at[0] - x as f32, at[1] - y as f32);
    let rows: [&[u8]; 4] = std::array::from_fn(|row| &image.row(y + row - 1)[x - 1..x + 3]);
    let grey = |row: usize, column: usize| f32::from(rows[row][column]);
    // Along rows, then along columns.
    let along = |row: usize, first: usize| {
        grey(row, first) + fx * (grey(row, first + 1) - grey(row, first))
    };
    let between = |one: f32, other: f32| one + fy * (other - one);
    let value = between(along(1, 1), along(2, 1));
    let right = between(along(1, 2), along(2, 2));
    let left = between(along(1, 0), along(2, 0));
    let up = between(along(0, 1), along(1, 1));
    let down = between(along(2, 1), along(3, 1));
    Some([value, (right - left) / 2.0, (down - up) / 2.0])
}

impl Level {
    /// Improves a motion. Returns it with the remaining difference in grey levels.
    fn align(&self, image: &Image, camera: &Camera, start: Pose) -> Option<(Pose, f32)> {
        let mut motion = start;
        let mut scale = f32::INFINITY;
        let mut seen: Vec<Seen> = Vec::with_capacity(self.points.len());
        let mut differences = Vec::with_capacity(self.points.len());
        for _ in 0..STEPS {
            let warp = Warp::of_motion(&motion);
            seen.clear();
            for (&point, &grey) in self.points.iter().zip(&self.greys) {
                let ray = warp.of(point);
                let [x, y, _] = camera.pixel(ray);
                if let Some([value, across, down]) = sample(image, self.scale, x, y) {
                    seen.push((ray, value - grey, [across, down]));
                }
            }
            if 2 * seen.len() < self.points.len() {
                return None;
            }
            // The median is the change of exposure.
            differences.clear();
            differences.extend(seen.iter().map(|seen| seen.1));
            let exposure = median(&mut differences);
            differences.iter_mut().for_each(|value| *value = (*value - exposure).abs());
            scale = 1.4826 * median(&mut differences) + 0.5;
            let step = self.step(camera, &seen, exposure, scale)?;
            motion = moved(&motion, step);
            if self.length(step, &seen, camera) < STEP_MIN {
                break;
            }
        }
        Some((motion, scale))
    }

    /// The step of weighted least squares; differences beyond the scale count less (Geman and McClure).
    fn step(&self, camera: &Camera, seen: &[Seen], exposure: f32, scale: f32) -> Option<[f64; 6]> {
        let mut equations = Equations::default();
        for &(ray, difference, slopes) in seen {
            let difference = difference - exposure;
            let outlying = 1.0 + (difference / (2.0 * scale)).powi(2);
            let weight = 1.0 / (outlying * outlying);
            let [across, down] = slopes.map(|slope| slope / self.scale);
            let [x, y, _] = camera.rows(ray);
            let row = std::array::from_fn(|i| across * x[i] + down * y[i]);
            equations.add(&row, difference, weight);
        }
        equations.step(1e-4)
    }

    /// About how far a step moves the points, in pixels of the level.
    fn length(&self, step: [f64; 6], seen: &[Seen], camera: &Camera) -> f32 {
        let nearness = seen.get(seen.len() / 2).map_or(0.0, |seen| seen.0[2].abs());
        let [x, y, z, about_x, about_y, about_z] = step.map(|part| part.abs() as f32);
        let angle = (x + y + z) * nearness + about_x + about_y + about_z;
        angle * camera.focal() / self.scale
    }
}
