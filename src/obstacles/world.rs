//! A world of flat ground and boxes, and the disparity that a camera measures in it, for tests.

use std::time::Duration;

use stereod_core::frame::{
    DisparityMap, DisparityRange, INVALID, Image, Matched, SUBPIXEL, StereoGeometry, StereoPair,
};
use stereod_core::obstacles::Mount;

use crate::scan::Rays;

pub const WIDTH: usize = 320;
pub const HEIGHT: usize = 240;

/// Boxes with edges along the vehicle's axes, as their least and greatest corners in metres.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub boxes: Vec<[[f64; 3]; 2]>,
    pub has_ground: bool,
    /// Standard deviation of the noise in pixels of disparity.
    pub noise_px: f64,
}

pub fn geometry() -> StereoGeometry {
    StereoGeometry {
        focal_px: 250.0,
        baseline_m: 0.2,
        centre_x_px: 159.5,
        centre_y_px: 119.5,
        right_centre_x_px: 159.5,
    }
}

/// A camera 1 m above the ground that looks ahead.
pub fn mount() -> Mount {
    Mount { position_m: [0.0, 0.0, 1.0], attitude_deg: [0.0; 3] }
}

impl World {
    /// Returns where a ray from the origin first meets something, in multiples of its direction.
    pub fn hit(&self, origin: [f64; 3], direction: [f64; 3]) -> f64 {
        let ground = if self.has_ground && direction[2] < 0.0 {
            -origin[2] / direction[2]
        } else {
            f64::INFINITY
        };
        let of_box = |[low, high]: &[[f64; 3]; 2]| {
            let (mut begin, mut end) = (0.0f64, f64::INFINITY);
            for axis in 0..3 {
                let sides = [low, high].map(|it| (it[axis] - origin[axis]) / direction[axis]);
                begin = begin.max(sides[0].min(sides[1]));
                end = end.min(sides[0].max(sides[1]));
            }
            if begin < end { begin } else { f64::INFINITY }
        };
        self.boxes.iter().map(of_box).fold(ground, f64::min)
    }

    /// Returns what the camera measures: everything is known.
    pub fn seen(&self, mount: &Mount) -> Matched {
        let rays = Rays::new(mount, geometry());
        let range = DisparityRange { min: 0, count: 128 };
        let mut state = 1u64;
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
            let depth = self.hit(mount.position_m, rays.direction(x as f64, y as f64));
            let disparity = rays.scale() / depth + self.noise_px * noise();
            (disparity * f64::from(SUBPIXEL)).round().clamp(0.0, 127.0 * 16.0) as i16
        });
        let map = DisparityMap::of_values(WIDTH, range, values.collect());
        let image = || Image::from_vec(WIDTH, HEIGHT, vec![0; WIDTH * HEIGHT]);
        let pair =
            StereoPair { timestamp: Duration::ZERO, ..StereoPair::of_stills(image(), image()) };
        Matched { geometry: Some(geometry()), ..Matched::new(pair, map) }
    }
}

/// Makes the pixels of these columns and rows unknown.
pub fn forget(
    matched: &mut Matched,
    columns: std::ops::Range<usize>,
    rows: std::ops::Range<usize>,
) {
    let values = matched.disparity.values_mut();
    rows.for_each(|y| values[y * WIDTH..][columns.clone()].fill(INVALID));
}
