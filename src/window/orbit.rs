//! The viewpoint of the points in space: around a pivot in front of the left camera.

use stereod_core::frame::StereoGeometry;

/// A 4x4 matrix, column by column, as shaders take it.
pub(super) type Matrix = [[f32; 4]; 4];

/// Largest angle up or down in radians.
const PITCH_MAX: f32 = 1.5;

/// Smallest and largest distance from the pivot, where 1 is that of the left camera.
const DISTANCE: [f32; 2] = [0.05, 20.0];

/// Viewpoint. The default is the left camera.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Orbit {
    /// Angle around the vertical axis through the pivot, in radians.
    yaw: f32,
    /// Angle up or down, in radians.
    pitch: f32,
    /// Distance from the pivot, as a multiple of that of the left camera.
    distance: f32,
    /// Shift of the scene to the right and down, as a multiple of the pivot's depth.
    pan: [f32; 2],
}

impl Default for Orbit {
    fn default() -> Self {
        Self { yaw: 0.0, pitch: 0.0, distance: 1.0, pan: [0.0; 2] }
    }
}

impl Orbit {
    /// Turns the scene as the mouse moves across and down it, in parts of the pane's height.
    pub fn turn(&mut self, across: f32, down: f32) {
        self.yaw -= across * 2.0;
        self.pitch = (self.pitch - down * 2.0).clamp(-PITCH_MAX, PITCH_MAX);
    }

    /// Moves the scene with the mouse, in parts of the pane's height.
    pub fn shift(&mut self, across: f32, down: f32) {
        let per_height = self.distance;
        self.pan = [self.pan[0] + across * per_height, self.pan[1] + down * per_height];
    }

    /// Moves nearer by a number of steps of the mouse wheel.
    pub fn approach(&mut self, steps: f32) {
        let [nearest, farthest] = DISTANCE;
        self.distance = (self.distance * 0.9_f32.powf(steps)).clamp(nearest, farthest);
    }

    /// Returns the matrix from points in metres from the left camera (x to the right, y down, z forward) to
    /// clip space. The picture of the left camera, `size` pixels, fills the pane, and the pivot is `pivot`
    /// metres in front of it.
    pub(super) fn matrix(&self, geometry: &StereoGeometry, size: (u32, u32), pivot: f32) -> Matrix {
        let (width, height) = (size.0 as f32, size.1 as f32);
        let focal = geometry.focal_px as f32;
        // From the camera's axes to clip space, whose y axis points up.
        let [near, far] = [0.01 * pivot, 1000.0 * pivot];
        let across = 2.0 * (geometry.centre_x_px as f32 + 0.5) / width - 1.0;
        let up = 1.0 - 2.0 * (geometry.centre_y_px as f32 + 0.5) / height;
        let project = [
            [2.0 * focal / width, 0.0, 0.0, 0.0],
            [0.0, -2.0 * focal / height, 0.0, 0.0],
            [across, up, far / (far - near), 1.0],
            [0.0, 0.0, -near * far / (far - near), 0.0],
        ];
        let (sin_yaw, cos_yaw) = self.yaw.sin_cos();
        let (sin_pitch, cos_pitch) = self.pitch.sin_cos();
        // Yaw, then pitch.
        let turn = [
            [cos_yaw, -sin_pitch * sin_yaw, -cos_pitch * sin_yaw],
            [0.0, cos_pitch, -sin_pitch],
            [sin_yaw, sin_pitch * cos_yaw, cos_pitch * cos_yaw],
        ];
        // p becomes turn (p - pivot) + pivot, pan and distance.
        let end = [pivot * self.pan[0], pivot * self.pan[1], pivot * self.distance];
        let shift: [f32; 3] = std::array::from_fn(|row| end[row] - turn[2][row] * pivot);
        let column = |column: [f32; 3], last: f32| [column[0], column[1], column[2], last];
        let view =
            [column(turn[0], 0.0), column(turn[1], 0.0), column(turn[2], 0.0), column(shift, 1.0)];
        view.map(|column| product(&project, column))
    }
}

fn product(matrix: &Matrix, column: [f32; 4]) -> [f32; 4] {
    std::array::from_fn(|row| (0..4).map(|i| matrix[i][row] * column[i]).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: StereoGeometry = StereoGeometry {
        focal_px: 500.0,
        baseline_m: 0.1,
        centre_x_px: 310.0,
        centre_y_px: 250.0,
        right_centre_x_px: 310.0,
    };

    /// Place of a point in a picture of 640x480 pixels, and its depth in clip space.
    fn pixel(orbit: &Orbit, [x, y, z]: [f32; 3]) -> [f32; 3] {
        let [x, y, z, w] = product(&orbit.matrix(&GEOMETRY, (640, 480), 2.0), [x, y, z, 1.0]);
        [(x / w + 1.0) * 320.0 - 0.5, (1.0 - y / w) * 240.0 - 0.5, z / w]
    }

    #[test]
    fn the_default_is_the_left_camera() {
        for (x, y, z) in [(0.0, 0.0, 2.0), (0.4, -0.3, 1.5), (-2.0, 1.0, 9.0)] {
            let [u, v, depth] = pixel(&Orbit::default(), [x, y, z]);
            assert!((u - (310.0 + 500.0 * x / z)).abs() < 1e-2, "{u}");
            assert!((v - (250.0 + 500.0 * y / z)).abs() < 1e-2, "{v}");
            assert!((0.0..1.0).contains(&depth));
        }
    }

    #[test]
    fn the_pivot_stays_while_the_scene_turns_with_the_mouse() {
        let mut orbit = Orbit::default();
        orbit.turn(0.2, 0.1);
        let [u, v, _] = pixel(&orbit, [0.0, 0.0, 2.0]);
        assert!((u - 310.0).abs() < 1e-2 && (v - 250.0).abs() < 1e-2, "{u} {v}");
        // Points in front of the pivot follow the mouse, those behind it go the other way.
        let [front, behind] = [1.5, 2.5].map(|z| pixel(&orbit, [0.0, 0.0, z]));
        assert!(front[0] > 310.0 && front[1] > 250.0, "{front:?}");
        assert!(behind[0] < 310.0 && behind[1] < 250.0, "{behind:?}");
        orbit.turn(0.0, 9.0);
        assert!(orbit.pitch >= -PITCH_MAX);
    }

    #[test]
    fn the_wheel_enlarges_and_panning_moves() {
        let mut orbit = Orbit::default();
        let width =
            |orbit: &Orbit| pixel(orbit, [0.1, 0.0, 2.0])[0] - pixel(orbit, [0.0, 0.0, 2.0])[0];
        let before = width(&orbit);
        orbit.approach(3.0);
        assert!(width(&orbit) > 1.2 * before);
        orbit.shift(0.1, -0.1);
        let [u, v, _] = pixel(&orbit, [0.0, 0.0, 2.0]);
        assert!(u > 320.0 && v < 240.0, "{u} {v}");
        orbit.approach(-1e4);
        assert_eq!(orbit.distance, DISTANCE[1]);
    }
}
