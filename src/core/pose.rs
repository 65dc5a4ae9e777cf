//! Poses of a rig, as odometry finds them, and its motions: rotations and positions in metres.

use serde_json::{Value, json};

use crate::obstacles::Mount;

/// A matrix of three rows.
pub type Matrix = [[f64; 3]; 3];

/// Position and attitude of one right-handed frame in another: a point p of the one is `rotation * p + position_m` in the
/// other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    /// Rotation from the one frame to the other.
    pub rotation: Matrix,
    /// Origin of the one frame in the other.
    pub position_m: [f64; 3],
}

/// Answer of odometry to a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Odometry {
    /// The left camera in its own frame at the stream's first pair; of both, the optical axes as the images are
    /// rectified: x to the right, y down, z ahead. While the rig is lost: the last pose that was found.
    pub pose: Pose,
    /// Covariance of the error of `pose` since the stream's first pair: position in metres along the axes of its frame,
    /// then rotation in radians about them.
    pub covariance: [[f64; 6]; 6],
    /// Velocity of the left camera along its axes in metres per second, and about them in radians per second; `None`
    /// without a pose of the pair before.
    pub velocity: Option<[f64; 6]>,
    /// Why there is no pose of this pair.
    pub lost: Option<Lost>,
    /// Number of times that the path was broken: what happened to the rig between poses of unlike numbers is not known.
    pub breaks: u32,
    /// Length of the path in metres, without what happened in the breaks.
    pub path_m: f64,
    /// Points that agree with the motion, and all that were looked at.
    pub points: [u32; 2],
    /// Place of the left camera on the vehicle.
    pub mount: Mount,
}

/// Why a pair has no pose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lost {
    /// Too few points have texture and a known disparity.
    FewPoints,
    /// Too few points were found again, or they leave directions open in which the rig may have moved.
    Unseen,
    /// The points do not move as one rigid scene.
    Inconsistent,
}

impl Lost {
    /// All reasons.
    #[doc(hidden)]
    pub const ALL: [Self; 3] = [Self::FewPoints, Self::Unseen, Self::Inconsistent];

    /// Returns the reason in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::FewPoints => "too few points with texture and depth",
            Self::Unseen => "too few points seen again",
            Self::Inconsistent => "points contradict each other",
        }
    }
}

impl Pose {
    /// Both frames are the same.
    pub const IDENTITY: Self = Self {
        rotation: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        position_m: [0.0; 3],
    };

    /// Returns a point of the one frame in the other.
    pub fn apply(&self, point: [f64; 3]) -> [f64; 3] {
        let [x, y, z] = turned(&self.rotation, point);
        let [right, down, ahead] = self.position_m;
        [x + right, y + down, z + ahead]
    }

    /// Returns the pose in the other frame of what has the pose `inner` in the one.
    pub fn then(&self, inner: &Self) -> Self {
        let columns = transposed(&inner.rotation);
        let product = transposed(&columns.map(|column| turned(&self.rotation, column)));
        Self { rotation: product, position_m: self.apply(inner.position_m) }
    }

    /// Returns the pose of the other frame in the one.
    pub fn inverse(&self) -> Self {
        let rotation = transposed(&self.rotation);
        Self { rotation, position_m: turned(&rotation, self.position_m).map(|metres| -metres) }
    }

    /// Returns the rotation as a unit quaternion x, y, z and w; w is not negative.
    pub fn quaternion(&self) -> [f64; 4] {
        let [[xx, xy, xz], [yx, yy, yz], [zx, zy, zz]] = self.rotation;
        // The largest of the four is computed from the diagonal, so that no small number is divided by (Shepperd,
        // Quaternion from rotation matrix, 1978).
        let sums = [xx - yy - zz, yy - xx - zz, zz - xx - yy, xx + yy + zz];
        let largest = (0..4).max_by(|&a, &b| sums[a].total_cmp(&sums[b])).unwrap_or(3);
        let twice = (1.0 + sums[largest]).max(0.0).sqrt();
        let of = |sum: f64| sum / (2.0 * twice);
        let half = twice / 2.0;
        let [x, y, z, w] = match largest {
            0 => [half, of(xy + yx), of(xz + zx), of(zy - yz)],
            1 => [of(xy + yx), half, of(yz + zy), of(xz - zx)],
            2 => [of(xz + zx), of(yz + zy), half, of(yx - xy)],
            _ => [of(zy - yz), of(xz - zx), of(yx - xy), half],
        };
        let sign = if w < 0.0 { -1.0 } else { 1.0 };
        [x, y, z, w].map(|part| sign * part)
    }

    /// Returns the pose if the axes of both frames are turned around where `signs` has -1.
    #[doc(hidden)]
    pub fn with_axes(&self, signs: [f64; 3]) -> Self {
        let scaled = |row: [f64; 3], by: f64| [0, 1, 2].map(|i| row[i] * signs[i] * by);
        let rotation = [0, 1, 2].map(|row| scaled(self.rotation[row], signs[row]));
        Self { rotation, position_m: scaled(self.position_m, 1.0) }
    }

    /// Returns the pose of the vehicle in its own frame at the first pair, of this pose of its left camera.
    pub fn of_vehicle(&self, mount: &Mount) -> Self {
        let camera = Self { rotation: mount.rotation(), position_m: mount.position_m };
        camera.then(self).then(&camera.inverse())
    }
}

impl Odometry {
    /// Returns the odometry of the vehicle: pose, covariance and velocity of its origin, in and along its axes.
    pub fn of_vehicle(&self) -> Self {
        let mount = &self.mount;
        let turn = mount.rotation();
        // The origin turns about the camera: its position in the camera's frame is the arm.
        let arm = Pose { rotation: turn, position_m: mount.position_m }.inverse().position_m;
        let covariance = moved(&self.covariance, &turn, turned(&self.pose.rotation, arm));
        let velocity = self.velocity.map(|[x, y, z, about_x, about_y, about_z]| {
            let about = [about_x, about_y, about_z];
            let swing = cross(about, arm);
            let [x, y, z] = turned(&turn, [x + swing[0], y + swing[1], z + swing[2]]);
            let [about_x, about_y, about_z] = turned(&turn, about);
            [x, y, z, about_x, about_y, about_z]
        });
        Self { pose: self.pose.of_vehicle(mount), covariance, velocity, ..*self }
    }

    /// Returns the pose of this pair and the part of the path in which it is comparable; `None` while the rig is lost.
    pub fn known(&self) -> Option<(Pose, u32)> {
        self.lost.is_none().then_some((self.pose, self.breaks))
    }

    /// Returns the standard deviation of the position's error as a share of the path; 0 at rest.
    pub fn drift(&self) -> f64 {
        let variance: f64 = (0..3).map(|axis| self.covariance[axis][axis]).sum();
        if self.path_m > 0.0 { variance.sqrt() / self.path_m } else { 0.0 }
    }
}

/// Returns the odometry of the vehicle as a JSON object (docs/odometry.md): numbers that are not finite are null.
pub fn to_json(odometry: &Odometry) -> Value {
    let Odometry { pose, covariance, velocity, lost, breaks, path_m, points, .. } =
        odometry.of_vehicle();
    json!({
        "lost": lost.map(Lost::in_words),
        "position_m": pose.position_m,
        "quaternion": pose.quaternion(),
        "covariance": covariance.as_flattened(),
        "velocity": velocity,
        "breaks": breaks,
        "path_m": path_m,
        "drift": odometry.drift(),
        "points": points,
    })
}

/// Returns the product of a matrix and a vector.
pub fn turned(matrix: &Matrix, vector: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
}

/// Returns the vector product.
pub fn cross([ax, ay, az]: [f64; 3], [bx, by, bz]: [f64; 3]) -> [f64; 3] {
    [ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx]
}

/// Returns the transposed matrix: the inverse of a rotation.
pub fn transposed(matrix: &Matrix) -> Matrix {
    [0, 1, 2].map(|column| matrix.map(|row| row[column]))
}

/// Returns a covariance along turned axes, of a point at the end of an arm.
fn moved(covariance: &[[f64; 6]; 6], turn: &Matrix, arm: [f64; 3]) -> [[f64; 6]; 6] {
    // The point's error is that of the position plus rotation x arm.
    let mut by = [[0.0; 6]; 6];
    for axis in 0..3 {
        let mut unit = [0.0; 3];
        unit[axis] = 1.0;
        let (along, swing) = (turned(turn, unit), turned(turn, cross(unit, arm)));
        for row in 0..3 {
            by[row][axis] = along[row];
            by[row + 3][axis + 3] = along[row];
            by[row][axis + 3] = swing[row];
        }
    }
    spread(&by, covariance)
}

/// Returns the covariance of a matrix times a vector with this covariance.
pub(crate) fn spread(by: &[[f64; 6]; 6], covariance: &[[f64; 6]; 6]) -> [[f64; 6]; 6] {
    let times =
        |row: &[f64; 6], other: &[f64; 6]| row.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
    // The covariance is symmetric, so its rows are its columns.
    let half = by.map(|row| covariance.map(|column| times(&row, &column)));
    half.map(|row| by.map(|column| times(&row, &column)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12)
    }

    /// Turns by an angle about z, then shifts.
    fn about_z(angle: f64, position_m: [f64; 3]) -> Pose {
        let (sin, cos) = angle.sin_cos();
        Pose { rotation: [[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]], position_m }
    }

    #[test]
    fn poses_follow_one_another_and_turn_back() {
        let (one, other) = (about_z(0.3, [1.0, 2.0, 3.0]), about_z(-1.1, [0.5, 0.0, -2.0]));
        let point = [0.2, -0.7, 4.0];
        assert!(close(&one.then(&other).apply(point), &one.apply(other.apply(point))));
        assert!(close(&one.inverse().apply(one.apply(point)), &point));
        assert!(close(&one.then(&one.inverse()).position_m, &[0.0; 3]));
    }

    #[test]
    fn quaternions_of_all_quadrants() {
        for angle in [0.0, 1.0, 3.0, -2.0_f64] {
            let (sin, cos) = (angle / 2.0).sin_cos();
            let sign = if cos < 0.0 { -1.0 } else { 1.0 };
            let expected = [0.0, 0.0, sign * sin, sign * cos];
            assert!(close(&about_z(angle, [0.0; 3]).quaternion(), &expected), "{angle}");
        }
        let half_turn = |rotation| Pose { rotation, position_m: [0.0; 3] }.quaternion();
        assert!(close(
            &half_turn([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]]),
            &[1.0, 0.0, 0.0, 0.0]
        ));
        assert!(close(
            &half_turn([[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]]),
            &[0.0, 1.0, 0.0, 0.0]
        ));
    }

    fn odometry(pose: Pose) -> Odometry {
        let covariance = std::array::from_fn(|row| {
            std::array::from_fn(|column| if row == column { (row + 1) as f64 } else { 0.0 })
        });
        let velocity = Some([0.0, 0.0, 2.0, 0.0, -0.5, 0.0]);
        Odometry {
            pose,
            covariance,
            velocity,
            lost: None,
            breaks: 0,
            path_m: 4.0,
            points: [90, 100],
            mount: Mount::default(),
        }
    }

    #[test]
    fn json_tells_the_vehicle_s_pose() {
        let camera = odometry(Pose { position_m: [0.0, 0.0, 2.0], ..Pose::IDENTITY });
        let told = to_json(&Odometry { lost: Some(Lost::Unseen), breaks: 3, ..camera });
        assert_eq!(told["position_m"], json!([2.0, 0.0, 0.0]));
        assert_eq!(told["quaternion"], json!([0.0, 0.0, 0.0, 1.0]));
        // 2 m/s ahead, turning to the left.
        assert_eq!(told["velocity"], json!([2.0, 0.0, 0.0, 0.0, 0.0, 0.5]));
        assert_eq!(told["covariance"][0], 3.0, "the variance of z of the camera");
        assert_eq!(told["covariance"].as_array().map(Vec::len), Some(36));
        assert_eq!(
            (&told["lost"], &told["breaks"]),
            (&json!("too few points seen again"), &json!(3))
        );
        let Value::Object(object) = to_json(&Odometry { velocity: None, ..camera }) else {
            panic!()
        };
        assert!(object["lost"].is_null() && object["velocity"].is_null());
        assert_eq!((&object["points"], &object["path_m"]), (&json!([90, 100]), &json!(4.0)));
    }

    #[test]
    fn the_pose_of_a_vehicle_is_in_its_own_axes() {
        let mount = Mount { position_m: [1.0, 0.0, 0.5], ..Mount::default() };
        // The camera drives 2 m ahead and turns by 90 degrees to the left: about -y of its optical axes.
        let rotation = [[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]];
        let camera = odometry(Pose { rotation, position_m: [0.0, 0.0, 2.0] });
        let vehicle = Odometry { mount, ..camera }.of_vehicle();
        // The camera is a metre ahead of the origin, so the origin is now a metre to the right of it.
        assert!(close(&vehicle.pose.position_m, &[3.0, -1.0, 0.0]));
        let [x, y, z, w] = vehicle.pose.quaternion();
        assert!(close(&[x, y, z, w], &[0.0, 0.0, 0.5_f64.sqrt(), 0.5_f64.sqrt()]));
        // It turns to the left, so the origin, which lies behind the camera, drifts to the right.
        assert!(close(&vehicle.velocity.unwrap(), &[2.0, -0.5, 0.0, 0.0, 0.0, 0.5]));
        // Without an arm, the axes alone change: ahead is the optical z, left is -x, up is -y.
        let diagonal = |of: &Odometry| [0, 1, 2, 3, 4, 5].map(|axis| of.covariance[axis][axis]);
        assert!(close(&diagonal(&camera.of_vehicle()), &[3.0, 1.0, 2.0, 6.0, 4.0, 5.0]));
        assert!(diagonal(&vehicle)[1] > 1.0);
        assert!((camera.drift() - 6.0_f64.sqrt() / 4.0).abs() < 1e-12);
    }
}
