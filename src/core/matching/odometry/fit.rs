//! The rigid motion of points found again in another pair, from their places and disparities: Gauss-Newton steps with
//! the weights of Geman and McClure, from an expected motion and from the best motion of three random points (RANSAC;
//! Fischler and Bolles, Communications of the ACM 1981).

use super::key::Sight;
use super::rigid::{Camera, Equations, Square, UNKNOWNS, Warp, median, moved};
use crate::pose::Pose;

/// Motions of three points that are tried.
const TRIES: usize = 60;

/// Least points of a motion.
const POINTS_MIN: usize = 6;

/// Steps from three points.
const TRY_STEPS: usize = 4;

/// Most steps from all points.
const STEPS: usize = 10;

/// Differences in pixels beyond this one count alike when motions are compared.
const TRY_LIMIT: f32 = 2.0;

/// A motion is given up as soon as so many points more are too many differences.
const TRY_POINTS: usize = 32;

/// Variance in pixels that every measurement has at least: interpolation is not exact.
const FLOOR: f32 = 0.05 * 0.05;

/// Median and lower quartile of the length of a vector of three normal values.
const MEDIAN_LENGTH: f32 = 1.538;
const QUARTILE_LENGTH: f32 = 1.101;

/// Differences are not smaller than this share of what the variances say.
const SCALE_MIN: f32 = 0.5;

/// Share of the points of a motion that is most of them.
const COVERED: f32 = 0.7;

/// Points agree with a motion up to this many standard deviations: 99 % of normal ones.
const AGREES: f32 = 3.4;

/// Factor of the standard deviations, for errors that the points share.
const SHARED: f64 = 3.0;

/// A motion, and how well points agree with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    pub motion: Pose,
    /// Covariance of a further small motion.
    pub covariance: Square,
    /// Numbers of the points that agree, in order.
    agreeing: Vec<u32>,
    /// Points that were found.
    pub found: usize,
    /// Median difference in pixels of these.
    pub difference: f32,
}

impl Fit {
    /// Returns the number of points that agree.
    pub fn agree(&self) -> usize {
        self.agreeing.len()
    }

    /// Reports whether most of the points that agree with another motion agree with this one, too.
    pub fn covers(&self, other: &Self) -> bool {
        let is_both = |number: &&u32| self.agreeing.binary_search(number).is_ok();
        let both = other.agreeing.iter().filter(is_both).count();
        both as f32 >= COVERED * other.agree() as f32
    }
}

/// A [`Sight`] whose differences are made independent.
struct Whitened<'a> {
    sight: &'a Sight,
    /// Inverse of the lower triangular root of the covariance.
    inverse: [f32; 6],
}

impl Whitened<'_> {
    fn of<'a>(sight: &'a Sight, camera: &Camera, warp: &Warp) -> Option<Whitened<'a>> {
        let [across, mixed, down, depth] = sight.covariance;
        // An error of the first disparity moves the expected place.
        let along = camera.along(warp, sight.ray);
        let before = sight.before + FLOOR;
        let shared = |i: usize, j: usize| along[i] * along[j] * before;
        let l11 = (across + FLOOR + shared(0, 0)).sqrt();
        let l21 = (mixed + shared(1, 0)) / l11;
        let l22 = (down + FLOOR + shared(1, 1) - l21 * l21).sqrt();
        let l31 = shared(2, 0) / l11;
        let l32 = (shared(2, 1) - l31 * l21) / l22;
        let l33 = (depth + FLOOR + shared(2, 2) - l31 * l31 - l32 * l32).sqrt();
        let (i11, i22, i33) = (1.0 / l11, 1.0 / l22, 1.0 / l33);
        let i21 = -l21 * i11 * i22;
        let i32 = -l32 * i22 * i33;
        let i31 = -(l31 * i11 + l32 * i21) * i33;
        let inverse = [i11, i21, i22, i31, i32, i33];
        inverse.iter().all(|value| value.is_finite()).then_some(Whitened { sight, inverse })
    }

    #[inline(always)]
    fn times(&self, [x, y, z]: [f32; 3]) -> [f32; 3] {
        let [i11, i21, i22, i31, i32, i33] = self.inverse;
        [i11 * x, i21 * x + i22 * y, i31 * x + i32 * y + i33 * z]
    }
}

/// The difference in pixels between the expected and the seen place and disparity.
#[inline(always)]
fn difference(camera: &Camera, warp: &Warp, sight: &Sight) -> [f32; 3] {
    let at = camera.pixel(warp.of(sight.ray));
    std::array::from_fn(|i| at[i] - sight.seen[i])
}

fn length([x, y, z]: [f32; 3]) -> f32 {
    (x * x + y * y + z * z).sqrt()
}

/// Finds the motion of the points: the one that `expected` leads to, the motion if the rig moves on as before, and the
/// one with which most points agree. `near` is the motion near which the points were looked for. `None` if the points
/// leave a direction open.
pub fn rigid(
    sights: &[Sight],
    camera: &Camera,
    expected: Option<&Pose>,
    near: &Pose,
) -> [Option<Fit>; 2] {
    let warp = Warp::of_motion(near);
    let points: Vec<Whitened> =
        sights.iter().filter_map(|sight| Whitened::of(sight, camera, &warp)).collect();
    if points.len() < POINTS_MIN {
        return [None, None];
    }
    let even = expected.and_then(|expected| refine(&points, camera, *expected));
    let most = tried(&points, camera, near).and_then(|start| refine(&points, camera, start));
    [even, most]
}

/// The best motion of three points each.
fn tried(points: &[Whitened], camera: &Camera, near: &Pose) -> Option<Pose> {
    let mut random = 0x9e37_79b9u32;
    let mut next = || {
        // Xorshift (Marsaglia, 2003).
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        ((u64::from(random) * points.len() as u64) >> 32) as usize
    };
    let mut best: Option<(Pose, f32)> = None;
    for _ in 0..TRIES {
        let three = [next(), next(), next()].map(|number| &points[number]);
        let Some(motion) = of_three(three, camera, *near) else { continue };
        let warp = Warp::of_motion(&motion);
        let cost = |point: &Whitened| {
            let length = length(difference(camera, &warp, point.sight));
            // Not a number behind the camera.
            if length < TRY_LIMIT { length * length } else { TRY_LIMIT * TRY_LIMIT }
        };
        let least = best.map_or(f32::INFINITY, |best| best.1);
        let mut sum = 0.0;
        let is_better = points.chunks(TRY_POINTS).all(|points| {
            sum = points.iter().fold(sum, |sum, point| sum + cost(point));
            sum < least
        });
        if is_better {
            best = Some((motion, sum));
        }
    }
    best.map(|best| best.0)
}

fn of_three(three: [&Whitened; 3], camera: &Camera, mut motion: Pose) -> Option<Pose> {
    for _ in 0..TRY_STEPS {
        let warp = Warp::of_motion(&motion);
        let mut equations = Equations::default();
        for point in three {
            add(&mut equations, camera, &warp, point, |_| 1.0);
        }
        motion = moved(&motion, equations.step(1e-6)?);
    }
    Some(motion)
}

/// Adds a point to equations; `weight` is that of the length of its difference in standard deviations.
#[inline(always)]
fn add(
    equations: &mut Equations,
    camera: &Camera,
    warp: &Warp,
    point: &Whitened,
    weight: impl Fn(f32) -> f32,
) {
    let difference = point.times(difference(camera, warp, point.sight));
    let weight = weight(length(difference));
    let counts = weight > 0.0;
    if !counts {
        return;
    }
    let [x, y, z] = camera.rows(warp.of(point.sight.ray));
    let columns: [[f32; 3]; UNKNOWNS] = std::array::from_fn(|i| point.times([x[i], y[i], z[i]]));
    for row in 0..3 {
        equations.add(&columns.map(|column| column[row]), difference[row], weight);
    }
}

/// Improves a motion by all points.
fn refine(points: &[Whitened], camera: &Camera, mut motion: Pose) -> Option<Fit> {
    let mut lengths = Vec::with_capacity(points.len());
    for _ in 0..STEPS {
        let warp = Warp::of_motion(&motion);
        let scale = scale(points, camera, &warp, &mut lengths);
        let mut equations = Equations::default();
        for point in points {
            add(&mut equations, camera, &warp, point, |length| {
                let outlying = 1.0 + (length / (2.0 * scale)).powi(2);
                1.0 / (outlying * outlying)
            });
        }
        let step = equations.step(1e-9)?;
        motion = moved(&motion, step);
        let [x, y, z, about_x, about_y, about_z] = step.map(f64::abs);
        let small = 1e-3 / f64::from(camera.focal());
        if about_x + about_y + about_z < small && x + y + z < 1e-4 * f64::from(camera.baseline()) {
            break;
        }
    }
    judge(points, camera, motion, &mut lengths)
}

/// The standard deviations' common factor, by the quartile, so that a quarter of the points suffices; then by the
/// median of those that agree.
fn scale(points: &[Whitened], camera: &Camera, warp: &Warp, lengths: &mut Vec<f32>) -> f32 {
    lengths.clear();
    lengths.extend(points.iter().map(|point| {
        let length = length(point.times(difference(camera, warp, point.sight)));
        if length.is_finite() { length } else { f32::MAX }
    }));
    let quarter = lengths.len() / 4;
    let mut scale = *lengths.select_nth_unstable_by(quarter, f32::total_cmp).1 / QUARTILE_LENGTH;
    for _ in 0..2 {
        scale = scale.max(SCALE_MIN);
        lengths.retain(|&length| length <= AGREES * scale);
        scale = median(lengths) / MEDIAN_LENGTH;
    }
    scale.max(SCALE_MIN)
}

fn judge(
    points: &[Whitened],
    camera: &Camera,
    motion: Pose,
    lengths: &mut Vec<f32>,
) -> Option<Fit> {
    let warp = Warp::of_motion(&motion);
    let scale = scale(points, camera, &warp, lengths);
    let mut equations = Equations::default();
    let mut agreeing = Vec::with_capacity(points.len());
    lengths.clear();
    for point in points {
        let away = difference(camera, &warp, point.sight);
        if length(point.times(away)) <= AGREES * scale {
            agreeing.push(point.sight.number);
            lengths.push(length(away));
            add(&mut equations, camera, &warp, point, |_| 1.0);
        }
    }
    let factor = (f64::from(scale) * SHARED).powi(2);
    let covariance = equations.inverse()?.map(|row| row.map(|value| value * factor));
    let difference = median(lengths);
    Some(Fit { motion, covariance, agreeing, found: points.len(), difference })
}
