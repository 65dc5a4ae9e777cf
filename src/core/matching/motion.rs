//! Guess of the rig's motion between two left images where odometry is not sure of it, for maps that are compared pixel by
//! pixel. It comes from their grey levels and the disparities of the first one:
//! Gauss-Newton steps on the differences of the grey levels at sure pixels, from coarse to fine (Steinbrücker,
//! Sturm and Cremers, ICCV workshops 2011, with disparities instead of depths). No calibration is needed, because
//! the focal length in image widths matters little ([`FOCAL`]).

use crate::frame::Image;
use crate::matching::odometry::{median, root, sample, solve};
use crate::matching::pyramid::{half, smooth};

/// Assumed focal length in image widths: a horizontal field of view of 80 degrees.
const FOCAL: f32 = 0.6;

/// Levels of the images, from half size on.
const LEVELS: usize = 4;

/// Most pixels of a level that count, and the least.
const POINTS: [usize; 2] = [200, 3000];

/// Most steps of a level.
const STEPS: usize = 6;

/// A rigid motion of small angles: rotations about y, z and x, then the translation in baselines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Motion(pub(super) [f32; 6]);

/// A pixel: its column and row from the image's centre and its disparity, each divided by the image's width.
pub type Point = [f32; 3];

impl Motion {
    /// Returns the place of a point in the next image.
    #[inline(always)]
    pub fn of(&self, [x, y, d]: Point) -> Point {
        let [yaw, roll, pitch, right, down, _] = self.0;
        let depth = self.depth([x, y, d]);
        let (x, y) = (x + yaw + roll * y + right * d, y + pitch - roll * x + down * d);
        [x / depth, y / depth, d / depth]
    }

    /// The new depth of a point relative to its old one.
    #[inline(always)]
    pub fn depth(&self, [x, y, d]: Point) -> f32 {
        let [yaw, _, pitch, _, _, back] = self.0;
        1.0 - (yaw * x + pitch * y) / (FOCAL * FOCAL) + back * d
    }
}

/// Converts between pixels and [`Point`]s.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    width: f32,
    centre: [f32; 2],
}

impl Frame {
    /// Returns the frame of images of this size.
    pub fn of((width, height): (usize, usize)) -> Self {
        let centre = [width, height].map(|side| (side as f32 - 1.0) / 2.0);
        Self { width: width as f32, centre }
    }

    /// Returns the point of a pixel and its disparity.
    #[inline(always)]
    pub fn point(&self, [x, y, d]: [f32; 3]) -> Point {
        [(x - self.centre[0]) / self.width, (y - self.centre[1]) / self.width, d / self.width]
    }

    /// Returns the pixel and the disparity of a point.
    #[inline(always)]
    pub fn pixel(&self, [x, y, d]: Point) -> [f32; 3] {
        [x * self.width + self.centre[0], y * self.width + self.centre[1], d * self.width]
    }
}

/// An image at half size and less, smoothed.
#[derive(Debug)]
pub struct Levels(Vec<Image>);

impl Levels {
    /// Makes the levels of an image.
    pub fn of(image: &Image) -> Self {
        let mut next = half(image);
        let mut levels = Vec::with_capacity(LEVELS);
        while levels.len() < LEVELS && next.width().min(next.height()) >= 8 {
            let coarser = half(&next);
            levels.push(smooth(&std::mem::replace(&mut next, coarser)));
        }
        Self(levels)
    }
}

/// Estimates the motion from one image to the next. `sure` returns the disparity in pixels of a sure pixel of the
/// first image. `before` is the motion before this one: the search begins there and at rest. Returns `None` if too few
/// pixels are sure.
pub fn estimate(
    [from, to]: [&Levels; 2],
    size: (usize, usize),
    sure: impl Fn(usize, usize) -> Option<f32>,
    before: Option<Motion>,
) -> Option<Motion> {
    let frame = Frame::of(size);
    let mut found: Option<Motion> = None;
    for (number, (from, to)) in from.0.iter().zip(&to.0).enumerate().rev() {
        let scale = 2 << number;
        let points = sure_points(size, scale, &sure);
        if points.len() < POINTS[0] {
            // The coarsest levels of small images have too few pixels.
            continue;
        }
        let level = Level::new(frame, scale, from, to, points);
        let starts = match found {
            Some(found) => [Some(found), None],
            None => [Some(Motion::default()), before],
        };
        let ends = starts.into_iter().flatten().filter_map(|start| level.align(start));
        let best = ends.min_by(|a, b| a.1.total_cmp(&b.1))?;
        found = Some(best.0);
    }
    found
}

/// The sure pixels near the centres of a level's pixels, thinned out evenly.
fn sure_points(
    size: (usize, usize),
    scale: usize,
    sure: &impl Fn(usize, usize) -> Option<f32>,
) -> Vec<Point> {
    let frame = Frame::of(size);
    let centres = |side: usize| (scale / 2..side).step_by(scale);
    let mut points = Vec::new();
    for y in centres(size.1) {
        points.extend(centres(size.0).filter_map(|x| {
            let disparity = sure(x, y)?;
            Some(frame.point([x as f32, y as f32, disparity]))
        }));
    }
    let every = points.len().div_ceil(POINTS[1]).max(1);
    points.into_iter().step_by(every).collect()
}

struct Level<'a> {
    frame: Frame,
    scale: f32,
    to: &'a Image,
    points: Vec<Point>,
    /// Grey levels of the points in the first image.
    greys: Vec<f32>,
}

impl<'a> Level<'a> {
    fn new(frame: Frame, scale: usize, from: &Image, to: &'a Image, points: Vec<Point>) -> Self {
        let mut level = Self { frame, scale: scale as f32, to, points, greys: Vec::new() };
        let grey = |&point: &Point| level.sample(from, point).map_or(0.0, |grey| grey[0]);
        level.greys = level.points.iter().map(grey).collect();
        level
    }

    /// The grey level of an image of this level at a point and its slopes per pixel; `None` at the border.
    fn sample(&self, image: &Image, point: Point) -> Option<[f32; 3]> {
        let [x, y, _] = self.frame.pixel(point);
        sample(image, self.scale, x, y)
    }

    /// Improves a motion. Returns it with the remaining difference in grey levels.
    fn align(&self, mut motion: Motion) -> Option<(Motion, f32)> {
        let mut scale = f32::INFINITY;
        for _ in 0..STEPS {
            let seen: Vec<(Point, f32, [f32; 2])> = self
                .points
                .iter()
                .zip(&self.greys)
                .filter_map(|(&point, &grey)| {
                    let [value, across, down] = self.sample(self.to, motion.of(point))?;
                    Some((point, value - grey, [across, down]))
                })
                .collect();
            if 2 * seen.len() < self.points.len() {
                return None;
            }
            // The median is the change of exposure.
            let mut differences: Vec<f32> = seen.iter().map(|seen| seen.1).collect();
            let exposure = median(&mut differences);
            differences.iter_mut().for_each(|value| *value = (*value - exposure).abs());
            scale = 1.4826 * median(&mut differences) + 0.5;
            let step = self.step(&motion, &seen, exposure, scale)?;
            let mut largest = 0.0f32;
            for (value, step) in motion.0.iter_mut().zip(step) {
                *value += step as f32;
                largest = largest.max(step.abs() as f32);
            }
            if largest < 1e-6 {
                break;
            }
        }
        motion.0.iter().all(|value| value.is_finite()).then_some((motion, scale))
    }

    /// The step of weighted least squares; differences beyond the scale count less (Geman and McClure).
    fn step(
        &self,
        motion: &Motion,
        seen: &[(Point, f32, [f32; 2])],
        exposure: f32,
        scale: f32,
    ) -> Option<[f64; 6]> {
        let (mut squares, mut sums) = ([[0.0f64; 6]; 6], [0.0f64; 6]);
        let per_width = self.frame.width / self.scale;
        for &(point, difference, slopes) in seen {
            let difference = difference - exposure;
            let outlying = 1.0 + (difference / (2.0 * scale)).powi(2);
            let weight = 1.0 / (outlying * outlying);
            let [x, y, d] = point;
            let [to_x, to_y, _] = motion.of(point);
            let [across, down] = slopes.map(|slope| slope * per_width / motion.depth(point));
            let along = across * to_x + down * to_y;
            let focal = FOCAL * FOCAL;
            let row = [
                across + along * x / focal,
                across * y - down * x,
                down + along * y / focal,
                across * d,
                down * d,
                -along * d,
            ];
            for i in 0..6 {
                let weighted = f64::from(weight * row[i]);
                sums[i] -= weighted * f64::from(difference);
                for j in 0..=i {
                    squares[i][j] += weighted * f64::from(row[j]);
                }
            }
        }
        for (i, row) in squares.iter_mut().enumerate() {
            row[i] += row[i] * 1e-4 + 1e-9;
        }
        Some(solve(&root(squares)?, sums))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A textured plane whose disparity grows downwards, seen after a motion: the grey level of the old image at
    /// the place from which each pixel came.
    fn views(motion: Motion) -> [Image; 2] {
        const SIZE: (usize, usize) = (320, 240);
        let frame = Frame::of(SIZE);
        let grey = |x: f32, y: f32| {
            let wave = |a: f32, b: f32, phase: f32| (a * x + b * y + phase).sin();
            let sum = wave(0.11, 0.05, 0.3) + wave(-0.04, 0.13, 1.1) + wave(0.21, -0.17, 2.0);
            (128.0 + 36.0 * sum) as u8
        };
        let moved = Image::from_fn(SIZE.0, SIZE.1, |x, y| {
            // The inverse by fixed-point steps.
            let mut from = [x as f32, y as f32];
            for _ in 0..20 {
                let to = frame.pixel(motion.of(frame.point([from[0], from[1], plane(from[1])])));
                from = [from[0] + x as f32 - to[0], from[1] + y as f32 - to[1]];
            }
            grey(from[0], from[1])
        });
        [Image::from_fn(SIZE.0, SIZE.1, |x, y| grey(x as f32, y as f32)), moved]
    }

    fn plane(y: f32) -> f32 {
        8.0 + y / 8.0
    }

    #[test]
    fn a_rigid_motion_is_found_from_grey_levels() {
        for motion in [
            Motion([0.01, 0.004, -0.006, 0.02, -0.05, 0.3]),
            Motion([-0.03, -0.01, 0.01, 0.1, 0.02, -0.2]),
        ] {
            let [from, to] = views(motion);
            let levels = [Levels::of(&from), Levels::of(&to)];
            let sure = |_: usize, y: usize| Some(plane(y as f32));
            let found = estimate([&levels[0], &levels[1]], (320, 240), sure, None).unwrap();
            let frame = Frame::of((320, 240));
            for (x, y) in [(30.0, 30.0), (160.0, 120.0), (290.0, 40.0), (60.0, 200.0)] {
                let point = frame.point([x, y, plane(y)]);
                let [is, expected] = [found, motion].map(|motion| frame.pixel(motion.of(point)));
                for (is, expected) in is.into_iter().zip(expected) {
                    assert!((is - expected).abs() < 0.1, "{is} instead of {expected}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn without_sure_pixels_no_motion_is_found() {
        let [from, to] = views(Motion::default()).map(|view| Levels::of(&view));
        assert_eq!(estimate([&from, &to], (320, 240), |_, _| None, None), None);
        // Without texture the equations say nothing, and the rig rests.
        let flat = Levels::of(&Image::from_fn(320, 240, |_, _| 90));
        let found = estimate([&flat, &flat], (320, 240), |_, _| Some(9.0), None);
        let rests = |motion: Motion| motion.0.iter().all(|part| part.abs() < 1e-3);
        assert!(found.is_some_and(rests), "{found:?}");
    }
}
