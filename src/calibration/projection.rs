//! Projection of a direction in a camera's frame to a pixel, and back.
//!
//! The formulas are exactly OpenCV's (calib3d, "Detailed Description", and its fisheye model),
//! because calibrations are made with them.

use nalgebra::{Matrix3, Vector3};

use super::{Camera, Lens};

/// Largest error of the inverse, in units of the focal length.
const TOLERANCE: f64 = 1e-10;
/// Largest number of steps of Newton's method for the inverse.
const STEPS: usize = 50;
/// Step in radians of the search for the angle at which a lens model folds back.
const FOLD_STEP: f64 = 0.002;
/// A model folds back if a direction this much further out lies nearer to the centre, ...
const FOLD_STRETCH: f64 = 1.1;
/// ... all along this stretch. A pole of a rational model next to a zero is a glitch and no end.
const FOLD_BREADTH: f64 = 1.05;

/// A camera prepared to project many points.
#[derive(Clone, Debug)]
pub struct Projection {
    focal: [f64; 2],
    centre: [f64; 2],
    skew: f64,
    lens: Lens,
    /// The tilted sensor and its inverse; `None` without tilt.
    tilt: Option<[Matrix3<f64>; 2]>,
    /// Largest visible angle from the optical axis.
    limit: f64,
    /// Square of its tangent.
    limit_tan2: f64,
}

impl Camera {
    pub fn projection(&self) -> Projection {
        Projection::new(self)
    }
}

impl Projection {
    pub fn new(camera: &Camera) -> Self {
        let tilt = match &camera.lens {
            Lens::Brown(k) if k[12] != 0.0 || k[13] != 0.0 => {
                let tilt = tilted_sensor(k[12], k[13]);
                tilt.try_inverse().map(|back| [tilt, back])
            }
            _ => None,
        };
        let lens = camera.lens.clone();
        let limit = fold(&lens);
        let limit_tan2 = limit.tan().powi(2);
        let Camera { focal, centre, skew, .. } = *camera;
        Self { focal, centre, skew, lens, tilt, limit, limit_tan2 }
    }

    /// Projects a direction (x to the right, y down, z forward, of any length) to pixels. Returns `None` if
    /// the camera cannot see it: behind it, or beyond the angles of the lens model, which folds back onto
    /// other pixels there.
    pub fn pixel(&self, direction: Vector3<f64>) -> Option<[f64; 2]> {
        let [x, y] = match &self.lens {
            Lens::Brown(k) => {
                if direction.z <= 0.0 {
                    return None;
                }
                let (x, y) = (direction.x / direction.z, direction.y / direction.z);
                if x * x + y * y > self.limit_tan2 {
                    return None;
                }
                self.bend(k, x, y)?
            }
            Lens::Fisheye(k) => {
                let radius = direction.x.hypot(direction.y);
                let angle = radius.atan2(direction.z);
                if angle > self.limit {
                    return None;
                }
                // Along the axis the scale is 1.
                let scale = if radius > 0.0 { fisheye(k, angle) / radius } else { 0.0 };
                [direction.x * scale, direction.y * scale]
            }
        };
        let pixel = [
            x * self.focal[0] + y * self.skew + self.centre[0],
            y * self.focal[1] + self.centre[1],
        ];
        pixel.iter().all(|v| v.is_finite()).then_some(pixel)
    }

    /// Returns the direction of a pixel position, of length 1; `None` if no direction projects onto
    /// it, or none is found to within 1e-10 focal lengths.
    pub fn direction(&self, pixel: [f64; 2]) -> Option<Vector3<f64>> {
        let bent = self.on_sensor(pixel);
        let direction = match &self.lens {
            Lens::Brown(k) => {
                let [x, y] = self.unbend(k, bent)?;
                Vector3::new(x, y, 1.0).normalize()
            }
            Lens::Fisheye(k) => {
                let radius = bent[0].hypot(bent[1]);
                let angle = fisheye_angle(k, radius, self.limit)?;
                let across = if radius > 0.0 { angle.sin() / radius } else { 0.0 };
                Vector3::new(bent[0] * across, bent[1] * across, angle.cos())
            }
        };
        let off_axis = direction.x.hypot(direction.y).atan2(direction.z);
        (off_axis <= self.limit).then_some(direction)
    }

    /// Returns the ray (x / z, y / z) of a position after exactly `steps` steps of OpenCV's
    /// fixed-point iteration, converged or not. cv::undistortPoints takes five, so only five steps
    /// reproduce its numbers. Returns `None` for a fisheye lens.
    pub(super) fn ray_after(&self, pixel: [f64; 2], steps: usize) -> Option<[f64; 2]> {
        match &self.lens {
            Lens::Brown(k) => {
                let [x, y] = self.on_sensor(pixel);
                let start = self.untilt(x, y);
                Some(iterate(k, start, steps))
            }
            Lens::Fisheye(_) => None,
        }
    }

    /// Returns a position in focal lengths from the principal point.
    fn on_sensor(&self, pixel: [f64; 2]) -> [f64; 2] {
        let y = (pixel[1] - self.centre[1]) / self.focal[1];
        [(pixel[0] - self.centre[0] - y * self.skew) / self.focal[0], y]
    }

    fn untilt(&self, x: f64, y: f64) -> [f64; 2] {
        match &self.tilt {
            None => [x, y],
            Some([_, back]) => {
                let straight = back * Vector3::new(x, y, 1.0);
                [straight.x / straight.z, straight.y / straight.z]
            }
        }
    }

    /// Distorts a ray; `None` if the model inverts it.
    fn bend(&self, k: &[f64; 14], x: f64, y: f64) -> Option<[f64; 2]> {
        let r2 = x * x + y * y;
        let scale = radial(k, r2);
        if scale <= 0.0 {
            return None;
        }
        let [dx, dy] = tangential(k, x, y);
        let bent = [x * scale + dx, y * scale + dy];
        Some(match &self.tilt {
            None => bent,
            Some([tilt, _]) => {
                let tilted = tilt * Vector3::new(bent[0], bent[1], 1.0);
                [tilted.x / tilted.z, tilted.y / tilted.z]
            }
        })
    }

    /// Undistorts: OpenCV's fixed-point iteration as a start, then Newton's method with step halving.
    fn unbend(&self, k: &[f64; 14], wanted: [f64; 2]) -> Option<[f64; 2]> {
        let miss = |ray: [f64; 2]| {
            let bent = self.bend(k, ray[0], ray[1])?;
            Some([bent[0] - wanted[0], bent[1] - wanted[1]])
        };
        let length = |[x, y]: [f64; 2]| x.hypot(y);
        let start = self.untilt(wanted[0], wanted[1]);
        // The start with the smallest error.
        let starts = [iterate(k, start, 5), start, [0.0; 2]];
        let missed = starts.into_iter().filter_map(|ray| Some((ray, miss(ray)?)));
        let (mut ray, mut missed) = missed.min_by(|a, b| length(a.1).total_cmp(&length(b.1)))?;
        for _ in 0..STEPS {
            // Well below the tolerance, so that the last step's error does not matter.
            if length(missed) < 1e-4 * TOLERANCE {
                break;
            }
            let Some(step) = newton_step(&miss, ray, missed) else { break };
            let mut share = 1.0;
            let better = loop {
                let next = [ray[0] - share * step[0], ray[1] - share * step[1]];
                match miss(next) {
                    Some(miss) if length(miss) < length(missed) => break Some((next, miss)),
                    _ if share < 1e-4 => break None,
                    _ => share *= 0.5,
                }
            };
            let Some(better) = better else { break };
            (ray, missed) = better;
        }
        (length(missed) < TOLERANCE).then_some(ray)
    }
}

fn newton_step(
    miss: &impl Fn([f64; 2]) -> Option<[f64; 2]>,
    ray: [f64; 2],
    missed: [f64; 2],
) -> Option<[f64; 2]> {
    const H: f64 = 1e-6;
    let slope = |dx: f64, dy: f64| {
        let (ahead, behind) =
            (miss([ray[0] + dx, ray[1] + dy])?, miss([ray[0] - dx, ray[1] - dy])?);
        Some([(ahead[0] - behind[0]) / (2.0 * H), (ahead[1] - behind[1]) / (2.0 * H)])
    };
    let ([a, c], [b, d]) = (slope(H, 0.0)?, slope(0.0, H)?);
    let determinant = a * d - b * c;
    let step = [
        (d * missed[0] - b * missed[1]) / determinant,
        (a * missed[1] - c * missed[0]) / determinant,
    ];
    step.iter().all(|v| v.is_finite()).then_some(step)
}

/// Runs OpenCV's fixed-point iteration, which divides by the radial factor at the present estimate.
fn iterate(k: &[f64; 14], start: [f64; 2], steps: usize) -> [f64; 2] {
    let [mut x, mut y] = start;
    for _ in 0..steps {
        let r2 = x * x + y * y;
        let inverse = denominator(k, r2) / numerator(k, r2);
        if inverse < 0.0 {
            return start;
        }
        let [dx, dy] = tangential(k, x, y);
        (x, y) = ((start[0] - dx) * inverse, (start[1] - dy) * inverse);
    }
    [x, y]
}

pub(super) fn numerator(k: &[f64; 14], r2: f64) -> f64 {
    1.0 + ((k[4] * r2 + k[1]) * r2 + k[0]) * r2
}

pub(super) fn denominator(k: &[f64; 14], r2: f64) -> f64 {
    1.0 + ((k[7] * r2 + k[6]) * r2 + k[5]) * r2
}

fn radial(k: &[f64; 14], r2: f64) -> f64 {
    numerator(k, r2) / denominator(k, r2)
}

/// Returns the shift by tangential distortion and thin prism.
fn tangential(k: &[f64; 14], x: f64, y: f64) -> [f64; 2] {
    let (p1, p2) = (k[2], k[3]);
    let r2 = x * x + y * y;
    [
        2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x) + k[8] * r2 + k[9] * r2 * r2,
        p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y + k[10] * r2 + k[11] * r2 * r2,
    ]
}

/// Returns the homography of a sensor tilted by these angles about its x and y axes.
fn tilted_sensor(tau_x: f64, tau_y: f64) -> Matrix3<f64> {
    let ((sx, cx), (sy, cy)) = (tau_x.sin_cos(), tau_y.sin_cos());
    let about_x = Matrix3::new(1.0, 0.0, 0.0, 0.0, cx, sx, 0.0, -sx, cx);
    let about_y = Matrix3::new(cy, 0.0, -sy, 0.0, 1.0, 0.0, sy, 0.0, cy);
    let turned = about_y * about_x;
    let (xz, yz, zz) = (turned[(0, 2)], turned[(1, 2)], turned[(2, 2)]);
    Matrix3::new(zz, 0.0, -xz, 0.0, zz, -yz, 0.0, 0.0, 1.0) * turned
}

/// Returns the distance from the principal point, in focal lengths, of a direction `angle` off the axis.
pub(super) fn fisheye(k: &[f64; 4], angle: f64) -> f64 {
    let a2 = angle * angle;
    angle * (1.0 + (((k[3] * a2 + k[2]) * a2 + k[1]) * a2 + k[0]) * a2)
}

/// Returns the angle below `limit` with a distance of `radius` focal lengths from the principal point, by
/// bisection: the distance grows with the angle there.
fn fisheye_angle(k: &[f64; 4], radius: f64, limit: f64) -> Option<f64> {
    let (mut below, mut above) = (0.0, limit);
    if fisheye(k, above) < radius {
        return None;
    }
    // Until no number lies between.
    loop {
        let middle = 0.5 * (below + above);
        if middle <= below || middle >= above {
            break;
        }
        if fisheye(k, middle) < radius { below = middle } else { above = middle }
    }
    ((fisheye(k, above) - radius).abs() < TOLERANCE).then_some(above)
}

/// Returns the angle off the axis beyond which the model folds back; the largest valid angle if it does not.
fn fold(lens: &Lens) -> f64 {
    type Distance<'a> = Box<dyn Fn(f64) -> f64 + 'a>;
    let (widest, distance): (f64, Distance) = match lens {
        Lens::Brown(k) => (
            std::f64::consts::FRAC_PI_2,
            Box::new(|angle| {
                let r = angle.tan();
                r * radial(k, r * r)
            }),
        ),
        Lens::Fisheye(k) => (std::f64::consts::PI, Box::new(|angle| fisheye(k, angle))),
    };
    let last = widest - 0.02;
    let samples = (last / FOLD_STEP) as usize;
    let angle = |i: usize| i as f64 * FOLD_STEP;
    let folds = |i: usize| {
        let outer = (angle(i) * FOLD_STRETCH).min(last);
        distance(outer) <= distance(angle(i))
    };
    let mut since = None;
    for i in 1..samples {
        match since {
            _ if !folds(i) => since = None,
            None => since = Some(i),
            Some(first) if angle(i) >= angle(first) * FOLD_BREADTH => {
                // The peak lies in the compared stretch.
                let end = (angle(first) * FOLD_STRETCH).min(last);
                let peak = (first..)
                    .take_while(|&j| angle(j) <= end)
                    .max_by(|&a, &b| distance(angle(a)).total_cmp(&distance(angle(b))));
                return angle(peak.unwrap_or(first));
            }
            Some(_) => {}
        }
    }
    last
}

#[cfg(test)]
mod tests;
