//! Rigid motions of points that a rectified stereo camera sees: their images after a motion, the derivatives of these,
//! and least-squares steps.

use crate::frame::StereoGeometry;
use crate::pose::{Matrix, Pose, cross, spread, turned};

/// Rows and columns of the equations: translation, then rotation.
pub const UNKNOWNS: usize = 6;

/// A symmetric matrix over translation and rotation.
pub type Square = [[f64; UNKNOWNS]; UNKNOWNS];

/// A point as the left camera sees it: horizontal and vertical tangent of its direction, and its inverse depth in 1/m,
/// which is 0 or negative at infinity.
pub type Ray = [f32; 3];

/// The numbers of [`StereoGeometry`] in the form that every point needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Camera {
    focal: f32,
    centre: [f32; 2],
    /// Disparity at infinity.
    offset: f32,
    /// Disparity of a point at a depth of one metre, less the offset.
    parallax: f32,
}

impl Camera {
    /// Returns the camera; `None` if the geometry is not that of two cameras.
    pub fn of(geometry: &StereoGeometry) -> Option<Self> {
        let camera = Self {
            focal: geometry.focal_px as f32,
            centre: [geometry.centre_x_px as f32, geometry.centre_y_px as f32],
            offset: (geometry.centre_x_px - geometry.right_centre_x_px) as f32,
            parallax: (geometry.focal_px * geometry.baseline_m) as f32,
        };
        let sums = camera.centre[0] + camera.centre[1] + camera.offset;
        let possible = |value: f32| value.is_finite() && value > 0.0;
        (possible(camera.focal) && possible(camera.parallax) && sums.is_finite()).then_some(camera)
    }

    /// Returns the focal length in pixels.
    pub fn focal(&self) -> f32 {
        self.focal
    }

    /// Returns the distance between the cameras in metres.
    pub fn baseline(&self) -> f32 {
        self.parallax / self.focal
    }

    /// Returns the ray of a pixel and its disparity.
    #[inline(always)]
    pub fn ray(&self, [x, y, disparity]: [f32; 3]) -> Ray {
        let along = |at: f32, centre: f32| (at - centre) / self.focal;
        let nearness = (disparity - self.offset) / self.parallax;
        [along(x, self.centre[0]), along(y, self.centre[1]), nearness]
    }

    /// Returns the pixel of a ray and its disparity.
    #[inline(always)]
    pub fn pixel(&self, [x, y, nearness]: Ray) -> [f32; 3] {
        [
            x * self.focal + self.centre[0],
            y * self.focal + self.centre[1],
            nearness * self.parallax + self.offset,
        ]
    }

    /// Returns the derivatives of a point's pixel and disparity for a further small motion, of its ray after the motion
    /// so far.
    #[inline(always)]
    pub fn rows(&self, [x, y, nearness]: Ray) -> [[f32; UNKNOWNS]; 3] {
        let (f, w) = (self.focal, nearness);
        let p = self.parallax * w;
        [
            [f * w, 0.0, -f * x * w, -f * x * y, f * (1.0 + x * x), -f * y],
            [0.0, f * w, -f * y * w, -f * (1.0 + y * y), f * x * y, f * x],
            [0.0, 0.0, -p * w, -p * y, p * x, 0.0],
        ]
    }

    /// Returns the derivatives of a point's pixel and disparity after a motion for its disparity before it.
    pub fn along(&self, warp: &Warp, ray: Ray) -> [f32; 3] {
        let nearer = [ray[0], ray[1], ray[2] + 1.0 / self.parallax];
        let [is, other] = [ray, nearer].map(|ray| self.pixel(warp.of(ray)));
        std::array::from_fn(|i| other[i] - is[i])
    }
}

/// A rigid motion of points, for many of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warp {
    rotation: [[f32; 3]; 3],
    shift: [f32; 3],
}

impl Warp {
    /// Returns the warp of a motion.
    pub fn of_motion(motion: &Pose) -> Self {
        Self {
            rotation: motion.rotation.map(|row| row.map(|value| value as f32)),
            shift: motion.position_m.map(|value| value as f32),
        }
    }

    /// Returns the ray of a point after the motion; not finite if it is then behind the camera.
    #[inline(always)]
    pub fn of(&self, [x, y, nearness]: Ray) -> Ray {
        let row = |i: usize| {
            let [a, b, c] = self.rotation[i];
            a * x + b * y + c + self.shift[i] * nearness
        };
        let depth = row(2);
        let per = if depth > 1e-3 { 1.0 / depth } else { f32::NAN };
        [row(0) * per, row(1) * per, nearness * per]
    }
}

/// Normal equations of weighted least squares.
#[derive(Clone, Debug, Default)]
pub struct Equations {
    /// The lower half of J^T W J.
    squares: Square,
    /// J^T W times the differences.
    sums: [f64; UNKNOWNS],
}

impl Equations {
    /// Adds one row.
    #[inline(always)]
    pub fn add(&mut self, row: &[f32; UNKNOWNS], difference: f32, weight: f32) {
        for i in 0..UNKNOWNS {
            let weighted = weight * row[i];
            self.sums[i] -= f64::from(weighted * difference);
            for (square, other) in self.squares[i].iter_mut().zip(&row[..=i]) {
                *square += f64::from(weighted * other);
            }
        }
    }

    /// Returns the step to the least sum; `damping` shortens it as a share of each diagonal element.
    pub fn step(&self, damping: f64) -> Option<[f64; UNKNOWNS]> {
        let mut squares = self.squares;
        for (i, row) in squares.iter_mut().enumerate() {
            row[i] += row[i] * damping + 1e-12;
        }
        let root = root(squares)?;
        let step = solve(&root, self.sums);
        step.iter().all(|value| value.is_finite()).then_some(step)
    }

    /// Returns the inverse of the matrix; `None` if a direction is open.
    pub fn inverse(&self) -> Option<Square> {
        let root = root(self.squares)?;
        let mut inverse = [[0.0; UNKNOWNS]; UNKNOWNS];
        for (i, column) in inverse.iter_mut().enumerate() {
            let mut unit = [0.0; UNKNOWNS];
            unit[i] = 1.0;
            *column = solve(&root, unit);
        }
        inverse.iter().flatten().all(|value| value.is_finite()).then_some(inverse)
    }
}

/// The lower triangular root of a positive definite matrix, of which the lower half is given (Cholesky).
pub fn root(mut matrix: Square) -> Option<Square> {
    for i in 0..UNKNOWNS {
        let whole = matrix[i][i];
        for j in 0..=i {
            let rest = matrix[i][j] - (0..j).map(|k| matrix[i][k] * matrix[j][k]).sum::<f64>();
            matrix[i][j] = if i > j { rest / matrix[j][j] } else { rest };
        }
        // The rest of the diagonal element is rounding if the row depends on those above.
        let is_definite = matrix[i][i] > 1e-13 * whole && matrix[i][i].is_finite();
        if !is_definite {
            return None;
        }
        matrix[i][i] = matrix[i][i].sqrt();
    }
    Some(matrix)
}

/// Solves the equations of a matrix with this root.
pub fn solve(root: &Square, mut values: [f64; UNKNOWNS]) -> [f64; UNKNOWNS] {
    for i in 0..UNKNOWNS {
        let rest: f64 = (0..i).map(|k| root[i][k] * values[k]).sum();
        values[i] = (values[i] - rest) / root[i][i];
    }
    for i in (0..UNKNOWNS).rev() {
        let rest: f64 = (i + 1..UNKNOWNS).map(|k| root[k][i] * values[k]).sum();
        values[i] = (values[i] - rest) / root[i][i];
    }
    values
}

/// Returns the motion followed by a small one: a translation, and a rotation by the Cayley transform of half its vector,
/// which is exact to the second order and needs no sine.
pub fn moved(motion: &Pose, step: [f64; UNKNOWNS]) -> Pose {
    let [x, y, z, about_x, about_y, about_z] = step;
    let rotation = turn([about_x, about_y, about_z].map(|angle| angle / 2.0));
    Pose { rotation, position_m: [x, y, z] }.then(motion)
}

/// Returns the rotation about an axis, given as the axis times the tangent of half the angle (Cayley).
pub fn turn(tangent: [f64; 3]) -> Matrix {
    let scale = 2.0 / (1.0 + tangent.iter().map(|part| part * part).sum::<f64>());
    let mut rotation = [[0.0; 3]; 3];
    for axis in 0..3 {
        let mut unit = [0.0; 3];
        unit[axis] = 1.0;
        let once = cross(tangent, unit);
        let twice = cross(tangent, once);
        for row in 0..3 {
            rotation[row][axis] = unit[row] + scale * (once[row] + twice[row]);
        }
    }
    rotation
}

/// Returns `share` times a motion, as if it went on evenly; the rotation is below half a turn.
pub fn scaled(motion: &Pose, share: f64) -> Pose {
    let [x, y, z, w] = motion.quaternion();
    let rotation = turn([x, y, z].map(|part| share * part / w.max(0.1)));
    Pose { rotation, position_m: motion.position_m.map(|part| share * part) }
}

/// Returns the rotation vector in radians of a rotation of less than half a turn.
pub fn angles(pose: &Pose) -> [f64; 3] {
    let [x, y, z, _] = pose.quaternion();
    let square = x * x + y * y + z * z;
    // Twice the arc sine over its argument, as a series: six digits up to a radian.
    let series = [3.0 / 40.0, 15.0 / 336.0, 105.0 / 3456.0, 945.0 / 42240.0];
    let tail = series.iter().rev().fold(0.0, |sum, term| (sum + term) * square);
    [x, y, z].map(|part| 2.0 * part * (1.0 + square / 6.0 + tail * square))
}

/// A pose with the covariance of its error: position along the axes of the outer frame, then rotation about them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    pub pose: Pose,
    pub covariance: Square,
}

impl Placed {
    /// The frame itself.
    pub const ORIGIN: Self = Self { pose: Pose::IDENTITY, covariance: [[0.0; UNKNOWNS]; UNKNOWNS] };

    /// Returns the pose in the outer frame of what has the pose `inner` in this one. The errors are independent.
    pub fn then(&self, inner: &Self) -> Self {
        // The error of the outer rotation moves the inner position, too.
        let arm = turned(&self.pose.rotation, inner.pose.position_m);
        let mut carry = [[0.0; UNKNOWNS]; UNKNOWNS];
        for axis in 0..3 {
            let mut unit = [0.0; 3];
            unit[axis] = 1.0;
            let swing = cross(unit, arm);
            for row in 0..3 {
                carry[row][axis] = unit[row];
                carry[row + 3][axis + 3] = unit[row];
                carry[row][axis + 3] = swing[row];
            }
        }
        let mut covariance = spread(&carry, &self.covariance);
        let own = spread(&twice(&self.pose.rotation), &inner.covariance);
        for (row, own) in covariance.iter_mut().zip(&own) {
            row.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        Self { pose: self.pose.then(&inner.pose), covariance }
    }

    /// Returns the pose of a camera that saw its points move, with the covariance of a further small motion of these.
    pub fn of_motion(motion: &Pose, covariance: &Square) -> Self {
        let pose = motion.inverse();
        Self { pose, covariance: spread(&twice(&pose.rotation), covariance) }
    }
}

/// Turns both halves of a vector.
fn twice(rotation: &Matrix) -> Square {
    std::array::from_fn(|row| {
        std::array::from_fn(|column| {
            let same = row / 3 == column / 3;
            if same { rotation[row % 3][column % 3] } else { 0.0 }
        })
    })
}

/// The median, of a list that it reorders; 0 of an empty one.
pub fn median(values: &mut [f32]) -> f32 {
    let middle = values.len() / 2;
    if values.is_empty() { 0.0 } else { *values.select_nth_unstable_by(middle, f32::total_cmp).1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn camera() -> Camera {
        Camera { focal: 500.0, centre: [320.0, 200.0], offset: -3.0, parallax: 60.0 }
    }

    fn motion() -> Pose {
        Pose { rotation: turn([0.01, -0.03, 0.02]), position_m: [0.1, -0.2, -0.4] }
    }

    #[test]
    fn a_warp_is_the_reprojection_of_the_point() {
        let geometry = StereoGeometry {
            focal_px: 500.0,
            baseline_m: 0.12,
            centre_x_px: 320.0,
            centre_y_px: 200.0,
            right_centre_x_px: 323.0,
        };
        let camera = Camera::of(&geometry).unwrap();
        let point = geometry.point_m(100.0, 300.0, 12.0).unwrap();
        let [x, y, z] = motion().apply(point);
        let moved = camera.pixel(Warp::of_motion(&motion()).of(camera.ray([100.0, 300.0, 12.0])));
        let expected = [500.0 * x / z + 320.0, 500.0 * y / z + 200.0, geometry.disparity_px(z)];
        for (is, expected) in moved.into_iter().zip(expected) {
            assert!((f64::from(is) - expected).abs() < 1e-3, "{moved:?} instead of {expected:?}");
        }
        assert_eq!(Camera::of(&StereoGeometry { focal_px: f64::NAN, ..geometry }), None);
        assert_eq!(Camera::of(&StereoGeometry { baseline_m: 0.0, ..geometry }), None);
    }

    #[test]
    fn rows_are_the_derivatives() {
        let camera = camera();
        let ray = Warp::of_motion(&motion()).of(camera.ray([100.0, 300.0, 12.0]));
        let rows = camera.rows(ray);
        for unknown in 0..UNKNOWNS {
            let mut step = [0.0; UNKNOWNS];
            step[unknown] = 1e-3;
            let moved = Warp::of_motion(&moved(&Pose::IDENTITY, step)).of(ray);
            let (after, before) = (camera.pixel(moved), camera.pixel(ray));
            for value in 0..3 {
                let slope = (after[value] - before[value]) / 1e-3;
                assert!((slope - rows[value][unknown]).abs() < 0.01 * slope.abs() + 0.5);
            }
        }
    }

    #[test]
    fn angles_and_shares_of_a_turn() {
        let (sin, cos) = 0.4_f64.sin_cos();
        let pose = Pose {
            rotation: [[cos, 0.0, sin], [0.0, 1.0, 0.0], [-sin, 0.0, cos]],
            position_m: [0.0; 3],
        };
        let [x, y, z] = angles(&pose);
        assert!(x.abs() + z.abs() < 1e-12 && (y - 0.4).abs() < 1e-7, "{y}");
        let twice = angles(&scaled(&scaled(&pose, 0.5), 2.0));
        assert!((twice[1] - 0.4).abs() < 1e-6, "{twice:?}");
    }

    #[test]
    fn an_error_of_rotation_moves_what_is_far_away() {
        let mut outer = Placed::ORIGIN;
        outer.covariance[4][4] = 0.01;
        let inner = Placed {
            pose: Pose { position_m: [0.0, 0.0, 10.0], ..Pose::IDENTITY },
            covariance: [[0.0; UNKNOWNS]; UNKNOWNS],
        };
        let there = outer.then(&inner).covariance;
        // About y, by 0.1 radians: a metre to the side.
        assert!((there[0][0] - 1.0).abs() < 1e-12 && there[2][2].abs() < 1e-12);
        assert!((there[4][4] - 0.01).abs() < 1e-12);
    }

    #[test]
    fn equations_with_an_open_direction_have_no_inverse() {
        let mut equations = Equations::default();
        for i in 0..5 {
            let mut row = [0.0; UNKNOWNS];
            row[i] = 2.0;
            equations.add(&row, -2.0, 1.0);
        }
        assert_eq!(equations.inverse(), None);
        equations.add(&[1.0; UNKNOWNS], 0.0, 1.0);
        assert!(equations.inverse().is_some());
        let step = equations.step(0.0).unwrap();
        assert!((step[0] - 1.0).abs() < 1e-9 && (step[5] + 5.0).abs() < 1e-9, "{step:?}");
    }
}
