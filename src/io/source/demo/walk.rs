//! The way of the left camera through the demo scene: it sways a little, or walks a closed path like a rig that is held
//! by hand, turning its head.
//!
//! All of the walk is in halves of the image, as the room is, so that it stays within the disparities in every format.

use std::array::from_fn;

use super::options::DemoOptions;
use super::texture::seeded;
use stereod_core::pose::{Matrix, Pose};

/// Seconds after which the motion of the ball repeats.
const LOOP_SECONDS: f64 = 8.0;

/// Seconds after which the walk repeats: two loops of the ball.
const WALK_SECONDS: f64 = 2.0 * LOOP_SECONDS;

impl DemoOptions {
    /// Returns the true pose of the left camera of pair `number` in its own frame at pair 0, in metres as
    /// [`DemoOptions::geometry`] defines them.
    pub fn pose(&self, number: u64) -> Pose {
        let camera = |number: u64| self.camera(number as f64 / self.rate);
        camera(0).inverse().then(&camera(number))
    }

    /// Returns the left camera in the scene `seconds` after its start.
    pub(super) fn camera(&self, seconds: f64) -> Pose {
        if self.walks {
            return self.walk((seconds / WALK_SECONDS).fract());
        }
        let [half_x, half_y] = self.half();
        let turn = self.turn(seconds);
        let eye: Vec3 = [0.12 * half_x * sine(turn), 0.04 * half_y * sine(2.0 * turn), 0.0];
        Pose { position_m: eye.map(f64::from), ..Pose::IDENTITY }
    }

    /// Returns the part of the ball's loop that is over, from 0 to 1.
    pub(super) fn turn(&self, seconds: f64) -> f64 {
        let phase = f64::from(seeded(self.seed, 100)) / (f64::from(u32::MAX) + 1.0);
        (seconds / LOOP_SECONDS + phase).fract()
    }

    fn walk(&self, turn: f64) -> Pose {
        let [half_x, half_y] = self.half().map(f64::from);
        let wave = |times: f64, phase: f64| f64::from(sine(times * turn + phase));
        // The wall is to the left, the floor below, and the ball comes near, so the walk leads to the right, up and back.
        let position_m = [
            (0.15 + 0.4 * wave(1.0, 0.0)) * half_x,
            (-0.25 + 0.25 * wave(3.0, 0.1)) * half_y,
            -0.2 + 0.2 * wave(2.0, 0.3),
        ];
        let pitch = 0.08 * half_y * wave(3.0, 0.6);
        let yaw = (0.15 + 0.25 * wave(2.0, 0.0)) * half_x;
        // In a narrow image a small roll already moves the far ends by its width.
        let roll = 0.03 * half_x.min(half_y) / half_x.max(half_y) * wave(4.0, 0.4);
        Pose { rotation: turned_by([pitch, yaw, roll]), position_m }
    }
}

/// Returns the sine of `turns` full turns by the Taylor polynomial of a quarter turn. Unlike the
/// system's sine it has the same bits everywhere.
pub(super) fn sine(turns: f64) -> f32 {
    let turns = turns - turns.round();
    // Fold onto -1/4..=1/4.
    let folded = if turns.abs() > 0.25 { turns.signum() * 0.5 - turns } else { turns };
    let x = folded * std::f64::consts::TAU;
    let term = |sum, k: i32| 1.0 - sum * x * x / f64::from(2 * k * (2 * k + 1));
    (x * (1..7).rev().fold(1.0, term)) as f32
}

/// Returns a rotation about x, y and z by about these small angles in radians: Cayley's rational form, whose vector
/// has half of each, which are tangents of half the angle if there is one alone.
fn turned_by(angles: [f64; 3]) -> Matrix {
    let [x, y, z] = angles.map(|angle| 0.5 * angle);
    let (xx, yy, zz) = (x * x, y * y, z * z);
    let twice = [
        [1.0 + xx - yy - zz, 2.0 * (x * y - z), 2.0 * (x * z + y)],
        [2.0 * (x * y + z), 1.0 + yy - xx - zz, 2.0 * (y * z - x)],
        [2.0 * (x * z - y), 2.0 * (y * z + x), 1.0 + zz - xx - yy],
    ];
    twice.map(|row| row.map(|part| part / (1.0 + xx + yy + zz)))
}

pub(super) type Vec3 = [f32; 3];

/// The left camera in the numbers that rays are cast with.
#[derive(Clone, Copy)]
pub(super) struct Eye {
    pub at: Vec3,
    /// Rows of the rotation from the camera to the scene.
    rows: [Vec3; 3],
}

impl Eye {
    pub(super) fn new(camera: &Pose) -> Self {
        let rows = camera.rotation.map(|row| row.map(|part| part as f32));
        Self { at: camera.position_m.map(|metres| metres as f32), rows }
    }

    /// Returns the eye of a camera that is shifted to the right.
    pub(super) fn shifted(self, by: f32) -> Self {
        Self { at: from_fn(|i| self.at[i] + self.rows[i][0] * by), ..self }
    }

    /// Returns a direction of the scene along the camera's axes.
    pub(super) fn seen(self, direction: Vec3) -> Vec3 {
        from_fn(|axis| (0..3).map(|i| self.rows[i][axis] * direction[i]).sum())
    }

    /// Returns the ray (p, q, 1) of the camera as a direction of the scene.
    #[inline(always)]
    pub(super) fn ray(self, p: f32, q: f32) -> Vec3 {
        self.rows.map(|row| row[0] * p + (row[1] * q + row[2]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_begins_at_the_origin_moves_and_turns_and_comes_back() {
        let options = DemoOptions { walks: true, ..DemoOptions::default() };
        assert_eq!(options.pose(0).position_m, [0.0; 3]);
        assert_eq!(options.pose(480), options.pose(0));
        let poses: Vec<Pose> = (0..480).map(|number| options.pose(number)).collect();
        let span = |of: &dyn Fn(&Pose) -> f64| {
            let values = poses.iter().map(of);
            values.clone().fold(f64::MIN, f64::max) - values.fold(f64::MAX, f64::min)
        };
        for axis in 0..3 {
            let metres = span(&|pose| pose.position_m[axis]);
            assert!((0.2..0.6).contains(&metres), "{metres} m along {axis}");
            let degrees = span(&|pose| 2.0 * pose.quaternion()[axis]).to_degrees();
            assert!((2.0..20.0).contains(&degrees), "{degrees} degrees about {axis}");
        }
        for pair in poses.windows(2) {
            let step = pair[0].inverse().then(&pair[1]);
            let metres = step.position_m.iter().map(|part| part * part).sum::<f64>().sqrt();
            assert!(metres < 0.02 && step.quaternion()[3] > 0.9999, "{step:?}");
            for (row, other) in [(0, 0), (0, 1), (1, 2), (2, 2)] {
                let rows = pair[0].rotation;
                let product: f64 = (0..3).map(|i| rows[row][i] * rows[other][i]).sum();
                assert!((product - f64::from(row == other)).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_camera_that_does_not_walk_sways_without_turning() {
        let options = DemoOptions::default();
        let far = (0..240).map(|number| options.pose(number));
        assert!(far.clone().all(|pose| pose.rotation == Pose::IDENTITY.rotation));
        assert!(far.clone().any(|pose| pose.position_m[0].abs() > 0.05));
    }
}
