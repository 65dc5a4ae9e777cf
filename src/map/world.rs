//! A room with boxes, and the disparity that a camera measures in it, for tests.

use stereod_core::frame::{
    DisparityMap, DisparityRange, Image, Matched, SUBPIXEL, StereoGeometry, StereoPair,
};
use stereod_core::pose::{Pose, turned};

pub const WIDTH: usize = 160;
pub const HEIGHT: usize = 120;

/// Boxes with edges along the axes, as their least and greatest corners in metres, in the map's frame (x to the right,
/// y down, z ahead).
#[derive(Clone, Debug)]
pub struct World {
    /// The camera is inside it.
    pub room: [[f64; 3]; 2],
    pub boxes: Vec<[[f64; 3]; 2]>,
    /// Standard deviation of the noise in pixels of disparity.
    pub noise_px: f64,
}

pub fn geometry() -> StereoGeometry {
    StereoGeometry {
        focal_px: 120.0,
        baseline_m: 0.6,
        centre_x_px: 79.5,
        centre_y_px: 59.5,
        right_centre_x_px: 79.5,
    }
}

/// Returns a pose that looks to the right by an angle.
pub fn looking(angle: f64, position_m: [f64; 3]) -> Pose {
    let (sin, cos) = angle.sin_cos();
    Pose { rotation: [[cos, 0.0, sin], [0.0, 1.0, 0.0], [-sin, 0.0, cos]], position_m }
}

impl World {
    /// Returns where a ray meets something, in multiples of its direction.
    fn hit(&self, from: [f64; 3], along: [f64; 3]) -> f64 {
        let crossing = |[low, high]: &[[f64; 3]; 2]| {
            let (mut begin, mut end) = (0.0f64, f64::INFINITY);
            for axis in 0..3 {
                let sides = [low, high].map(|it| (it[axis] - from[axis]) / along[axis]);
                begin = begin.max(sides[0].min(sides[1]));
                end = end.min(sides[0].max(sides[1]));
            }
            (begin, end)
        };
        let of_box = |of: &[[f64; 3]; 2]| {
            let (begin, end) = crossing(of);
            if begin < end { begin } else { f64::INFINITY }
        };
        self.boxes.iter().map(of_box).fold(crossing(&self.room).1, f64::min)
    }

    /// Returns the distance of a point from the nearest surface.
    pub fn distance(&self, point: [f64; 3]) -> f64 {
        let all = std::iter::once(&self.room).chain(&self.boxes);
        let of = |[low, high]: &[[f64; 3]; 2]| {
            let outside = [0, 1, 2].map(|i| (low[i] - point[i]).max(point[i] - high[i]));
            let nearest = outside.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let beyond = outside.map(|it| it.max(0.0)).iter().map(|it| it * it).sum::<f64>();
            if nearest > 0.0 { beyond.sqrt() } else { -nearest }
        };
        all.map(of).fold(f64::INFINITY, f64::min)
    }

    /// Returns what the camera measures at a pose, with this confidence; `seed` chooses the noise.
    pub fn seen(&self, pose: &Pose, confidence: u8, seed: u64) -> Matched {
        let of = geometry();
        let mut state = seed;
        let mut noise = || {
            // The sum of four even numbers is nearly normal: variance 1 / 3.
            let mut sum = 0.0;
            for _ in 0..4 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                sum += (state >> 40) as f64 / (1u64 << 24) as f64 - 0.5;
            }
            sum * 3f64.sqrt()
        };
        let pixels = (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (x, y)));
        let values = pixels.map(|(x, y)| {
            let (right, down) = (x as f64 - of.centre_x_px, y as f64 - of.centre_y_px);
            let along = turned(&pose.rotation, [right / of.focal_px, down / of.focal_px, 1.0]);
            let disparity = of.disparity_px(self.hit(pose.position_m, along));
            let measured = disparity + self.noise_px * noise();
            (measured * f64::from(SUBPIXEL)).round().clamp(0.0, 127.0 * 16.0) as i16
        });
        let range = DisparityRange { min: 0, count: 128 };
        let map = DisparityMap::of_values(WIDTH, range, values.collect());
        let image = || Image::from_vec(WIDTH, HEIGHT, vec![100; WIDTH * HEIGHT]);
        let confidence = Some(Image::from_vec(WIDTH, HEIGHT, vec![confidence; WIDTH * HEIGHT]));
        let pair = StereoPair::of_stills(image(), image());
        Matched { geometry: Some(of), confidence, ..Matched::new(pair, map) }
    }
}
