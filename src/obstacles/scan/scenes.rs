//! Scans of rendered and matched images of scenes: what is there is found, and nothing else is.

use stereod_core::matcher::{Device, ImageRef, Matcher};
use stereod_core::matching::Params;

use super::tests::{distance, rules, toward};
use super::*;
use crate::world::{HEIGHT, WIDTH, World, geometry, mount};

/// How the ground looks.
#[derive(Clone, Copy, PartialEq)]
enum Floor {
    Textured,
    Mirror,
}

/// A scene before a wall that is farther than the scan.
struct Scene {
    boxes: Vec<[[f64; 3]; 2]>,
    floor: Floor,
    camera: Mount,
    /// Standard deviation of the noise of the images in grey levels.
    noise: f64,
}

impl Scene {
    fn of(boxes: Vec<[[f64; 3]; 2]>) -> Self {
        Self { boxes, floor: Floor::Textured, camera: mount(), noise: 1.0 }
    }

    /// Returns the scan of what the engine finds in images of the scene.
    fn scan(&self) -> Scan {
        let [left, right] = [0.0, geometry().baseline_m].map(|right| self.view(right));
        let params = Params::default().with_disparities(64).with_confidence(Some(0));
        let mut matcher = Matcher::new(&params, WIDTH, HEIGHT, Device::Cpu(Some(1))).unwrap();
        let [left, right] = [&left, &right].map(|it| ImageRef::new(it, WIDTH, HEIGHT).unwrap());
        let found = matcher.compute(left, right).unwrap();
        let mut matched = World::default().seen(&mount());
        matched.disparity.values_mut().copy_from_slice(found.map().values());
        let confidence = found.confidence().unwrap().to_vec();
        matched.confidence = Some(stereod_core::frame::Image::from_vec(WIDTH, HEIGHT, confidence));
        let rules = Rules { confidence: 128, slope_deg: 1.0, ..rules() };
        Scanner::new(rules, &self.camera).unwrap().scan(&matched, &self.camera, geometry())
    }

    /// Renders what a camera sees so far to the right of the left one, in metres.
    fn view(&self, right_m: f64) -> Vec<u8> {
        let rays = Rays::new(&self.camera, geometry());
        let [x, y, z] = self.camera.position_m;
        let origin = [x, y - right_m, z];
        let mut boxes = self.boxes.clone();
        boxes.push([[25.0, -60.0, -30.0], [26.0, 60.0, 40.0]]);
        let world = World { boxes, has_ground: true, noise_px: 0.0 };
        let mut noise = Noise(1 + (1e3 * right_m) as u64);
        let mut pixel = |place: usize| {
            let (column, row) = ((place % WIDTH) as f64, (place / WIDTH) as f64);
            let parts = [[-0.25, -0.25], [0.25, -0.25], [-0.25, 0.25], [0.25, 0.25]];
            let sum: f64 = parts
                .iter()
                .map(|[dx, dy]| self.light(&world, origin, rays.direction(column + dx, row + dy)))
                .sum();
            (sum / 4.0 + self.noise * noise.normal()).round().clamp(0.0, 255.0) as u8
        };
        (0..WIDTH * HEIGHT).map(&mut pixel).collect()
    }

    /// Returns the grey level that a ray meets.
    fn light(&self, world: &World, origin: [f64; 3], mut direction: [f64; 3]) -> f64 {
        let mut away = world.hit(origin, direction);
        let mut at: [f64; 3] = std::array::from_fn(|i| origin[i] + away * direction[i]);
        if self.floor == Floor::Mirror && at[2].abs() < 1e-9 {
            direction[2] = -direction[2];
            let world = World { has_ground: false, boxes: world.boxes.clone(), ..*world };
            away = world.hit(at, direction);
            at = std::array::from_fn(|i| at[i] + away * direction[i]);
        }
        // Details of all sizes, as nature has them.
        let octaves = [(0.03, 25.0), (0.12, 35.0), (0.5, 40.0), (2.0, 40.0)];
        128.0 + octaves.map(|(cell, contrast)| contrast * texture(at, cell)).iter().sum::<f64>()
    }
}

/// Returns a smooth random number from -1 to 1 of a place, with cells of this many metres.
fn texture(at: [f64; 3], cell: f64) -> f64 {
    let scaled = at.map(|value| value / cell + 1e3);
    let corner = scaled.map(|value| value.floor() as u64);
    (0..8).fold(0.0, |sum, which: u64| {
        let mut hash = 0u64;
        let mut weight = 1.0;
        for axis in 0..3 {
            let is_far = which >> axis & 1;
            let part = scaled[axis] - corner[axis] as f64;
            weight *= if is_far == 1 { part } else { 1.0 - part };
            hash = (hash ^ (corner[axis] + is_far)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 29;
        }
        sum + weight * ((hash >> 40) as f64 / f64::from(1 << 23) - 1.0)
    })
}

struct Noise(u64);

impl Noise {
    /// The sum of four even numbers is nearly normal: variance 1 / 3.
    fn normal(&mut self) -> f64 {
        let even = (0..4).map(|_| {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 40) as f64 / (1u64 << 24) as f64 - 0.5
        });
        even.sum::<f64>() * 3f64.sqrt()
    }
}

/// Returns the bins with something nearer than this.
fn nearer(scan: &Scan, metres: f64) -> Vec<(f64, f64)> {
    let found = scan.bins.iter().enumerate().filter_map(|(bin, state)| match state {
        Bin::Obstacle(nearest) => Some((scan.direction_deg(bin), nearest.distance_m)),
        Bin::Clear | Bin::Unknown => None,
    });
    found.filter(|(_, distance)| *distance < metres).collect()
}

#[test]
fn even_ground_is_no_obstacle_whatever_the_noise() {
    for noise in [0.0, 3.0, 6.0, 10.0] {
        let scan = Scene { noise, ..Scene::of(Vec::new()) }.scan();
        assert_eq!(nearer(&scan, 99.0), [], "noise {noise}");
        let clear = scan.bins.iter().filter(|bin| **bin == Bin::Clear).count();
        assert!(clear >= 30, "noise {noise}: {:?}", scan.bins);
    }
}

#[test]
fn a_thin_pole_is_found_wherever_it_goes() {
    for step in 0..9 {
        let left = 0.25 * f64::from(step) - 1.0;
        let pole = [[3.0, left - 0.025, 0.0], [3.05, left + 0.025, 1.8]];
        for noise in [1.0, 5.0] {
            let scan = Scene { noise, ..Scene::of(vec![pole]) }.scan();
            let found = nearer(&scan, 14.0);
            let (true_deg, true_m) = ((left / 3.0).atan().to_degrees(), left.hypot(3.0));
            // Four pixels wide, it is not always found in much noise, but never seen through.
            assert!(!found.is_empty() || noise > 1.0, "{left}");
            assert_ne!(toward(&scan, true_deg), Bin::Clear, "{left} {noise}");
            for (direction, distance) in found {
                assert!((direction - true_deg).abs() < 3.0, "{direction} for {true_deg}");
                assert!((distance - true_m).abs() < 0.1 * true_m, "{distance} for {true_m}");
            }
        }
    }
}

#[test]
fn the_edge_of_a_table_is_an_obstacle() {
    let table = [[2.0, -0.6, 0.7], [3.0, 0.6, 0.74]];
    for height in [0.4, 1.0] {
        let camera = Mount { position_m: [0.0, 0.0, height], ..mount() };
        let scan = Scene { camera, ..Scene::of(vec![table]) }.scan();
        for degrees in [-11.0, -5.0, 1.0, 5.0, 11.0] {
            let found = distance(toward(&scan, degrees));
            assert!((1.85..2.3).contains(&found), "{found} from {height} m");
        }
    }
}

#[test]
fn a_ramp_is_an_obstacle_where_it_is_too_high() {
    // Steps of 1 cm: a slope of 5 degrees from 3 m on.
    let steps = (0..60).map(|step| {
        let begin = 3.0 + 0.1143 * f64::from(step);
        [[begin, -9.0, 0.0], [begin + 0.1143, 9.0, 0.01 * f64::from(step + 1)]]
    });
    let scan = Scene::of(steps.collect()).scan();
    // Its height exceeds 0.1 m, and 1 degree, from here on.
    let begins = 3.0 + (0.1 + 3.0 * 0.01746) / (0.0875 - 0.01746);
    for degrees in [-9.0, -3.0, 3.0, 9.0] {
        let found = distance(toward(&scan, degrees));
        assert!((begins - 0.8..begins + 0.8).contains(&found), "{found}, not {begins}");
    }
}

#[test]
fn a_mirror_like_floor_neither_hides_nor_shows_what_is_not_there() {
    let thing = [[4.0, -0.5, 0.0], [4.5, 0.5, 1.2]];
    let scan = Scene { floor: Floor::Mirror, ..Scene::of(vec![thing]) }.scan();
    for degrees in [-5.0, -1.0, 1.0, 5.0] {
        let found = distance(toward(&scan, degrees));
        assert!((found - 4.0).abs() < 0.2, "{found}");
    }
    for (direction, _) in nearer(&scan, 14.0) {
        assert!(direction.abs() < 10.0, "{direction}");
    }
}
