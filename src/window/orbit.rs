//! The scene in three dimensions: the viewpoint, and the way from pixels to points and to the screen.

use super::pane::Pane;
use stereod_core::frame::{INVALID, Matched, SUBPIXEL, StereoGeometry};

/// A 4x4 matrix, column by column, as shaders take it.
pub(super) type Matrix = [[f32; 4]; 4];

/// A point in metres from the left camera: x to the right, y down, z forward.
pub(super) type Point = [f32; 3];

/// Largest angle up or down in radians.
const PITCH_MAX: f32 = 1.5;

/// Smallest and largest distance from the pivot, where 1 is that of the left camera.
const DISTANCE: [f32; 2] = [0.05, 20.0];

/// Number of pixels by which the extent of a scene is judged.
const SAMPLES: usize = 4096;

/// Largest number of pixels among which one is picked.
const PICKED: usize = 1 << 20;

/// Viewpoint. The default is the left camera.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Orbit {
    stage: Stage,
    /// Angle around the vertical axis through the pivot, in radians.
    yaw: f32,
    /// Angle up or down, in radians.
    pitch: f32,
    /// Distance from the pivot, as a multiple of that of the left camera.
    distance: f32,
    /// Shift of the scene to the right and down, as a multiple of the pivot's depth.
    pan: [f32; 2],
}

/// Extent of a scene in metres. It stays while the scene moves, so that the view is steady.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stage {
    /// Depth of the pivot on the axis of the left camera: that of the middle point.
    pivot: f32,
    /// Distance of the lowest points below the camera.
    ground: f32,
    /// Side of a square of the grid.
    square: f32,
}

impl Stage {
    fn new(pivot: f32, ground: f32) -> Self {
        // The largest of 1, 2, 5 and their multiples by ten that is at most a fifth of the pivot's depth.
        let most = (pivot / 5.0).max(1e-6);
        let ten = 10.0_f32.powf(most.log10().floor());
        let steps = [5.0, 2.0, 1.0];
        let step = steps.into_iter().find(|step| step * ten <= most * 1.0001).unwrap_or(1.0);
        Self { pivot, ground, square: step * ten }
    }

    fn of(frame: &Matched) -> Option<Self> {
        let geometry = geometry_of(frame);
        let map = &frame.disparity;
        let skip = map.values().len().div_ceil(SAMPLES).max(1);
        let samples = (0..map.values().len()).step_by(skip | 1);
        let points = samples.filter_map(|i| {
            let pixel = ((i % map.width()) as f32, (i / map.width()) as f32);
            point(&geometry, pixel, map.values()[i])
        });
        let (mut heights, mut depths): (Vec<f32>, Vec<f32>) =
            points.map(|[_, y, z]| (y, z)).unzip();
        let middle = depths.len().checked_sub(1)? / 2;
        let (_, pivot, _) = depths.select_nth_unstable_by(middle, f32::total_cmp);
        let low = heights.len() * 97 / 100;
        let (_, ground, _) = heights.select_nth_unstable_by(low, f32::total_cmp);
        Some(Self::new(*pivot, ground.max(0.1 * *pivot)))
    }
}

impl Default for Orbit {
    fn default() -> Self {
        let stage = Stage::new(1.0, 0.5);
        Self { stage, yaw: 0.0, pitch: 0.0, distance: 1.0, pan: [0.0; 2] }
    }
}

impl Orbit {
    /// Returns a viewpoint beside and above the left camera from which the scene of a frame is seen.
    pub fn aside(frame: &Matched) -> Self {
        Self { yaw: 0.35, pitch: -0.3, distance: 1.9, ..Self::left_camera(frame) }
    }

    pub(super) fn left_camera(frame: &Matched) -> Self {
        let default = Self::default();
        Self { stage: Stage::of(frame).unwrap_or(default.stage), ..default }
    }

    pub(super) fn is_left_camera(&self) -> bool {
        *self == Self { stage: self.stage, ..Self::default() }
    }

    /// Returns the side of a square of the grid in metres.
    pub(super) fn square(&self) -> f32 {
        self.stage.square
    }

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

    /// Returns the matrix from points to clip space, and the extent there of a metre to the right and down.
    /// The image of the left camera, `size` pixels, fits into the pane, and the pivot is in front of it.
    fn matrix(
        &self,
        geometry: &StereoGeometry,
        size: (u32, u32),
        pane: (u32, u32),
    ) -> (Matrix, [f32; 2]) {
        let pivot = self.stage.pivot;
        let [size, pane] = [size, pane].map(|(width, height)| [width as f32, height as f32]);
        let fit = (pane[0] / size[0]).min(pane[1] / size[1]);
        // Shares of the pane that the image of the left camera covers.
        let share = [0, 1].map(|axis| fit * size[axis] / pane[axis]);
        let focal = geometry.focal_px as f32;
        // From the camera's axes to clip space, whose y axis points up.
        let [near, far] = [0.01 * pivot, 1000.0 * pivot];
        let across = 2.0 * (geometry.centre_x_px as f32 + 0.5) / size[0] - 1.0;
        let up = 1.0 - 2.0 * (geometry.centre_y_px as f32 + 0.5) / size[1];
        let spread = [2.0 * focal / size[0] * share[0], -2.0 * focal / size[1] * share[1]];
        let project = [
            [spread[0], 0.0, 0.0, 0.0],
            [0.0, spread[1], 0.0, 0.0],
            [across * share[0], up * share[1], far / (far - near), 1.0],
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
        let shift: Point = std::array::from_fn(|row| end[row] - turn[2][row] * pivot);
        let column = |column: Point, last: f32| [column[0], column[1], column[2], last];
        let view =
            [column(turn[0], 0.0), column(turn[1], 0.0), column(turn[2], 0.0), column(shift, 1.0)];
        (view.map(|column| product(&project, column)), spread)
    }
}

fn product(matrix: &Matrix, column: [f32; 4]) -> [f32; 4] {
    std::array::from_fn(|row| (0..4).map(|i| matrix[i][row] * column[i]).sum())
}

/// Returns the cameras of a frame. If they are unknown, depths have the right order and no true unit.
pub(super) fn geometry_of(frame: &Matched) -> StereoGeometry {
    let size = [frame.disparity.width(), frame.disparity.height()];
    let [centre_x_px, centre_y_px] = size.map(|side| 0.5 * (side as f64 - 1.0));
    frame.geometry.unwrap_or(StereoGeometry {
        focal_px: size[0].max(size[1]) as f64,
        baseline_m: 0.1,
        centre_x_px,
        centre_y_px,
        right_centre_x_px: centre_x_px,
    })
}

/// Returns the point of a pixel with this disparity in 1/16 px; `None` if it is unknown or at infinity.
pub(super) fn point(geometry: &StereoGeometry, (x, y): (f32, f32), value: i16) -> Option<Point> {
    let known = Some(f64::from(value) / f64::from(SUBPIXEL)).filter(|_| value != INVALID);
    let depth = geometry.depth_m(known?)? as f32;
    let focal = geometry.focal_px as f32;
    let (right, down) = (x - geometry.centre_x_px as f32, y - geometry.centre_y_px as f32);
    Some([right * depth / focal, down * depth / focal, depth])
}

/// A frame in three dimensions on a pane.
pub(super) struct Space {
    pub(super) geometry: StereoGeometry,
    pub(super) orbit: Orbit,
    pane: Pane,
    pub(super) matrix: Matrix,
    pub(super) spread: [f32; 2],
}

impl Space {
    pub(super) fn new(
        orbit: Orbit,
        geometry: StereoGeometry,
        size: (u32, u32),
        pane: Pane,
    ) -> Self {
        let (matrix, spread) = orbit.matrix(&geometry, size, (pane.width, pane.height));
        Self { geometry, orbit, pane, matrix, spread }
    }

    /// Returns the size of the points' squares relative to that of their pixels.
    pub(super) fn swell(&self) -> f32 {
        let aside = self.orbit.yaw.abs().max(self.orbit.pitch.abs());
        1.0 + (2.0 * aside).min(0.5)
    }

    pub(super) fn lowest(&self) -> f32 {
        self.orbit.stage.ground
    }

    /// Returns the place of a point on the target, and its distance; `None` behind the viewer.
    pub(super) fn place(&self, [x, y, z]: Point) -> Option<((f64, f64), f32)> {
        let [x, y, _, w] = product(&self.matrix, [x, y, z, 1.0]);
        let at = |share: f32, begin: u32, extent: u32| {
            f64::from(begin) + f64::from(0.5 * (1.0 + share)) * f64::from(extent)
        };
        let Pane { x: left, y: top, width, height, .. } = self.pane;
        (w > 0.0).then(|| ((at(x / w, left, width), at(-y / w, top, height)), w))
    }

    /// Returns the pixel whose point is seen at a place of the target, or within `reach` pixels of it: the
    /// nearest to the viewer among those close by.
    pub(super) fn pick(&self, frame: &Matched, at: (f64, f64), reach: f64) -> Option<(u32, u32)> {
        let map = &frame.disparity;
        let skip = (map.values().len().div_ceil(PICKED) as f64).sqrt().ceil() as usize;
        let mut best: Option<((bool, f64), (u32, u32))> = None;
        for y in (0..map.height()).step_by(skip) {
            for x in (0..map.width()).step_by(skip) {
                let value = map.values()[y * map.width() + x];
                let seen = point(&self.geometry, (x as f32, y as f32), value);
                let Some((place, distance)) = seen.and_then(|point| self.place(point)) else {
                    continue;
                };
                let away = (place.0 - at.0).hypot(place.1 - at.1);
                let is_close = 3.0 * away <= reach;
                let key = (!is_close, if is_close { f64::from(distance) } else { away });
                if away <= reach && best.is_none_or(|(least, _)| key < least) {
                    best = Some((key, (x as u32, y as u32)));
                }
            }
        }
        best.map(|(_, pixel)| pixel)
    }
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

    fn orbit() -> Orbit {
        Orbit { stage: Stage::new(2.0, 1.0), ..Orbit::default() }
    }

    /// Place of a point in a picture of 640x480 pixels, and its depth in clip space.
    fn pixel(orbit: &Orbit, [x, y, z]: [f32; 3]) -> [f32; 3] {
        let [x, y, z, w] =
            product(&orbit.matrix(&GEOMETRY, (640, 480), (640, 480)).0, [x, y, z, 1.0]);
        [(x / w + 1.0) * 320.0 - 0.5, (1.0 - y / w) * 240.0 - 0.5, z / w]
    }

    #[test]
    fn the_default_is_the_left_camera() {
        for (x, y, z) in [(0.0, 0.0, 2.0), (0.4, -0.3, 1.5), (-2.0, 1.0, 9.0)] {
            let [u, v, depth] = pixel(&orbit(), [x, y, z]);
            assert!((u - (310.0 + 500.0 * x / z)).abs() < 1e-2, "{u}");
            assert!((v - (250.0 + 500.0 * y / z)).abs() < 1e-2, "{v}");
            assert!((0.0..1.0).contains(&depth));
        }
    }

    #[test]
    fn the_pivot_stays_while_the_scene_turns_with_the_mouse() {
        let mut orbit = orbit();
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
        let mut orbit = orbit();
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
    #[test]
    fn a_grid_has_round_squares() {
        for (pivot, square) in
            [(1.0, 0.2), (2.0, 0.2), (2.6, 0.5), (5.0, 1.0), (40.0, 5.0), (0.3, 0.05)]
        {
            let found = Stage::new(pivot, 1.0).square;
            assert!((found - square).abs() < 1e-4 * square, "{pivot}: {found}");
        }
    }

    /// A wide pane shows the image of the left camera in its middle, and more on both sides.
    #[test]
    fn points_are_found_where_they_are_seen() {
        let values = (0..32 * 24).map(|i| if i % 32 < 16 { 400 } else { 200 + (i % 32) as i16 });
        let range = stereod_core::frame::DisparityRange { min: 0, count: 64 };
        let map = stereod_core::frame::DisparityMap::of_values(32, range, values.collect());
        let grey = || stereod_core::frame::Image::from_fn(32, 24, |_, _| 0);
        let pair = stereod_core::frame::StereoPair::of_stills(grey(), grey());
        let frame = Matched::new(pair, map);
        let content = super::super::options::Content::Points;
        let pane =
            Pane { content, part: [0.0, 0.0, 1.0, 1.0], x: 7, y: 5, width: 960, height: 480 };
        for orbit in [Orbit::left_camera(&frame), Orbit::aside(&frame)] {
            let geometry = geometry_of(&frame);
            let space = Space::new(orbit, geometry, (32, 24), pane);
            for pixel in [(3, 4), (28, 20), (15, 12)] {
                let value = frame.disparity.values()[pixel.1 * 32 + pixel.0];
                let at = point(&geometry, (pixel.0 as f32, pixel.1 as f32), value).unwrap();
                let (place, _) = space.place(at).unwrap();
                assert_eq!(space.pick(&frame, place, 6.0), Some((pixel.0 as u32, pixel.1 as u32)));
            }
            assert_eq!(space.pick(&frame, (-300.0, 0.0), 6.0), None);
        }
        // 480 / 24 pixels a pixel, in the middle of 960.
        let space = Space::new(Orbit::left_camera(&frame), geometry_of(&frame), (32, 24), pane);
        let at = point(&geometry_of(&frame), (0.0, 0.0), 400).unwrap();
        let ((x, y), _) = space.place(at).unwrap();
        assert!((x - (7.0 + 160.0 + 10.0)).abs() < 0.1 && (y - 15.0).abs() < 0.1, "{x} {y}");
    }
}
