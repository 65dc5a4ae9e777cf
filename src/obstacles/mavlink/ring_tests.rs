//! The ring against geometry by brute force, and the values that both autopilots take.

use proptest::prelude::*;
use stereod_core::obstacles::{Bin, Mount, Nearest, Obstacles, Scan};

use super::around::{ELEMENTS, Limits, Reading, around_vehicle, is_usable, limits};
use super::messages::{forward, points, ring};

/// Returns an obstacle whose pixels are between two distances.
pub fn nearest(nearest_m: f64, distance_m: f64, position_m: [f64; 3]) -> Nearest {
    Nearest { distance_m, nearest_m, sigma_m: 0.1, position_m, pixels: 100 }
}

pub fn obstacles(scan: Scan, x: f64, y: f64) -> Obstacles {
    let mount = Mount { position_m: [x, y, 0.5], ..Mount::default() };
    Obstacles { scan, zones: Vec::new(), things: Vec::new(), mount }
}

/// Returns a clear scan of 80 bins of a degree, from 40 degrees right to 40 left, 0.5 to 10 m.
pub fn clear_ahead() -> Scan {
    Scan { first_deg: -40.0, bin_deg: 1.0, bins: vec![Bin::Clear; 80], near_m: 0.5, far_m: 10.0 }
}

/// A pillar in the plane, in the vehicle's axes.
#[derive(Clone, Debug)]
struct Disc {
    at: [f64; 2],
    radius: f64,
}

#[derive(Clone, Debug)]
struct Rig {
    at: [f64; 2],
    middle_deg: f64,
    bins: usize,
    bin_deg: f64,
    near_m: f64,
    far_m: f64,
    /// How far the pixels of an obstacle reach behind its nearest, and bins that see nothing.
    depth_m: f64,
    unknown: Vec<usize>,
}

/// Returns the same angle from -180 to 180 degrees.
fn wrapped(degrees: f64) -> f64 {
    let (sin, cos) = degrees.to_radians().sin_cos();
    sin.atan2(cos).to_degrees()
}

impl Rig {
    /// Returns what the camera sees exactly: the least distance of the discs in each bin.
    fn see(&self, world: &[Disc]) -> Obstacles {
        let first_deg = self.middle_deg - self.bin_deg * self.bins as f64 / 2.0;
        let bins = (0..self.bins)
            .map(|bin| {
                let right = first_deg + self.bin_deg * bin as f64;
                let least = world
                    .iter()
                    .filter_map(|disc| self.least_m(disc, right))
                    .fold(f64::INFINITY, f64::min);
                match least {
                    _ if self.unknown.contains(&bin) => Bin::Unknown,
                    least if least < self.near_m => Bin::Unknown,
                    least if least <= self.far_m => {
                        Bin::Obstacle(nearest(least, least + self.depth_m, [0.0; 3]))
                    }
                    _ => Bin::Clear,
                }
            })
            .collect();
        let (near_m, far_m) = (self.near_m, self.far_m);
        let scan = Scan { first_deg, bin_deg: self.bin_deg, bins, near_m, far_m };
        obstacles(scan, self.at[0], self.at[1])
    }

    /// Returns the least distance of a disc's points in the bin with this right edge.
    fn least_m(&self, disc: &Disc, right: f64) -> Option<f64> {
        let [x, y] = [disc.at[0] - self.at[0], disc.at[1] - self.at[1]];
        let away = x.hypot(y);
        if away <= disc.radius {
            return Some(0.0);
        }
        let half = (disc.radius / away).asin().to_degrees();
        let middle = y.atan2(x).to_degrees();
        // Directions of the bin relative to the disc's middle.
        let from = wrapped(right + self.bin_deg / 2.0 - middle) - self.bin_deg / 2.0;
        let next = 0.0_f64.clamp(from, from + self.bin_deg);
        let side = away * next.to_radians().sin();
        (next.abs() < half)
            .then(|| away * next.to_radians().cos() - (disc.radius.powi(2) - side * side).sqrt())
    }
}

prop_compose! {
    fn rig()(
        at in [-0.8..0.8, -0.8..0.8_f64],
        middle_deg in -180.0..180.0,
        field_deg in 20.0..130.0_f64,
        bin_deg in 0.8..7.0_f64,
        limits in (0.1..0.8, 4.0..12.0),
        depth_m in 0.0..0.6,
        unknown in prop::collection::vec(0_usize..150, 0..3),
        is_round in prop::bool::weighted(0.1),
    ) -> Rig {
        let bins: f64 = if is_round { (360.0 / bin_deg).ceil() } else { field_deg / bin_deg };
        let bins = (bins as usize).max(1);
        let bin_deg = if is_round { 360.0 / bins as f64 } else { bin_deg };
        Rig { at, middle_deg, bins, bin_deg, near_m: limits.0, far_m: limits.1, depth_m, unknown }
    }
}

fn world() -> impl Strategy<Value = Vec<Disc>> {
    let disc =
        ([-12.0..12.0, -12.0..12.0_f64], 0.1..1.0).prop_map(|(at, radius)| Disc { at, radius });
    prop::collection::vec(disc, 0..6)
}

/// Returns where a point is: degrees clockwise from ahead, and metres, from the vehicle's origin.
fn polar([x, y]: [f64; 2]) -> (f64, f64) {
    ((-y).atan2(x).to_degrees(), x.hypot(y))
}

fn point(clockwise: f64, metres: f64) -> [f64; 2] {
    let (sin, cos) = clockwise.to_radians().sin_cos();
    [cos * metres, -sin * metres]
}

/// Returns degrees from an element's middle.
fn from_middle(clockwise: f64, element: usize) -> f64 {
    wrapped(clockwise - element as f64 * 5.0)
}

/// Reports whether a camera has looked through a point, bin by bin.
fn sees_through(seen: &Obstacles, [x, y]: [f64; 2]) -> bool {
    let scan = &seen.scan;
    let [x, y] = [x - seen.mount.position_m[0], y - seen.mount.position_m[1]];
    let (direction, range) = (y.atan2(x).to_degrees(), x.hypot(y));
    let bin = (direction - scan.first_deg).rem_euclid(360.0) / scan.bin_deg;
    scan.bins.get(bin as usize).is_some_and(|state| {
        let limit = match state {
            Bin::Clear => scan.far_m,
            Bin::Obstacle(nearest) => nearest.nearest_m,
            Bin::Unknown => 0.0,
        };
        range <= limit
    })
}

/// Returns points of an element, widened by some degrees, from the least to the greatest distance.
fn points_of(element: usize, wider: f64, from: f64, to: f64) -> impl Iterator<Item = [f64; 2]> {
    let angles =
        (0..=60).map(move |step| -2.5 - wider + (5.0 + 2.0 * wider) * f64::from(step) / 60.0);
    angles.flat_map(move |angle| {
        // Denser where the camera, which is aside, sees directions change faster.
        let part = |step: i32| (f64::from(step) / 120.0).powi(2);
        (0..=120)
            .map(move |step| point(element as f64 * 5.0 + angle, from + (to - from) * part(step)))
    })
}

/// Returns points of the patches where a rig's obstacles are: of each bin, its points.
fn patches(seen: &Obstacles) -> Vec<Vec<[f64; 2]>> {
    let [x, y, _] = seen.mount.position_m;
    let patch = |(bin, state): (usize, &Bin)| {
        let Bin::Obstacle(nearest) = state else { return None };
        let right = seen.scan.first_deg + seen.scan.bin_deg * bin as f64;
        let mut points = Vec::new();
        for across in 0..=40 {
            let direction = right + seen.scan.bin_deg * f64::from(across) / 40.0;
            let (sin, cos) = direction.to_radians().sin_cos();
            for deep in 0..=10 {
                let range = nearest.nearest_m
                    + (nearest.distance_m - nearest.nearest_m) * f64::from(deep) / 10.0;
                points.push([x + cos * range, y + sin * range]);
            }
        }
        Some(points)
    };
    seen.scan.bins.iter().enumerate().filter_map(patch).collect()
}

fn least(patch: &[[f64; 2]]) -> f64 {
    patch.iter().map(|point| polar(*point).1).fold(f64::INFINITY, f64::min)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever the rigs: no pillar stands in a direction that is called clear.
    #[test]
    fn clear_is_clear(world in world(), rigs in prop::collection::vec(rig(), 1..4)) {
        let seen: Vec<_> = rigs.iter().map(|rig| rig.see(&world)).collect();
        let seen: Vec<_> = seen.iter().collect();
        let (readings, limits) = (around_vehicle(&seen), limits(&seen).unwrap());
        for disc in &world {
            for step in 0..400 {
                // On a spiral over the disc.
                let out = disc.radius * (f64::from(step) / 400.0).sqrt();
                let (sin, cos) = (f64::from(step) * 2.4).sin_cos();
                let place = [disc.at[0] + out * cos, disc.at[1] + out * sin];
                let (clockwise, metres) = polar(place);
                let element = (clockwise / 5.0).round().rem_euclid(72.0) as usize;
                let is_within = metres > limits.min_m && metres < limits.max_m - 1e-3;
                prop_assert!(
                    !is_within || readings[element] != Reading::Clear,
                    "element {} is clear, but a pillar is at {:?}", element, place
                );
            }
        }
    }

    /// One camera: clear is exactly what was looked through.
    #[test]
    fn clear_was_looked_through(world in world(), rig in rig()) {
        let seen = rig.see(&world);
        let (readings, limits) = (around_vehicle(&[&seen]), limits(&[&seen]).unwrap());
        for (element, reading) in readings.iter().enumerate() {
            let all = |wider: f64, from: f64| {
                points_of(element, wider, from, limits.max_m - 1e-3)
                    .all(|point| sees_through(&seen, point))
            };
            match reading {
                Reading::Clear => prop_assert!(all(-1e-3, limits.min_m), "{element}"),
                Reading::Unknown => prop_assert!(!all(2.0, limits.min_m * 0.9), "{element}"),
                Reading::Obstacle(_) => {}
            }
        }
    }

    /// Obstacles are in each direction that they touch and in no other, as near as their nearest point.
    #[test]
    fn obstacles_are_where_they_are(world in world(), rigs in prop::collection::vec(rig(), 1..4)) {
        let seen: Vec<_> = rigs.iter().map(|rig| rig.see(&world)).collect();
        let readings = around_vehicle(&seen.iter().collect::<Vec<_>>());
        let patches: Vec<_> = seen.iter().flat_map(patches).collect();
        for place in patches.iter().flatten() {
            let (clockwise, metres) = polar(*place);
            let element = (clockwise / 5.0).round().rem_euclid(72.0) as usize;
            let is_at_edge = from_middle(clockwise, element).abs() > 2.499;
            let is_told = matches!(readings[element], Reading::Obstacle(told) if told <= metres + 1e-9);
            prop_assert!(is_at_edge || is_told, "{element}: {place:?}");
        }
        // Where the vehicle's origin is within a patch or next to it, its directions are everywhere.
        if patches.iter().any(|patch| least(patch) < 0.3) {
            return Ok(());
        }
        for (element, reading) in readings.iter().enumerate() {
            let Reading::Obstacle(told) = reading else { continue };
            // The rounding of the patches decides about those at the edge of an element.
            let nearest = |half: f64| {
                let touches = |patch: &&Vec<[f64; 2]>| {
                    let angles = patch.iter().map(|place| from_middle(polar(*place).0, element));
                    let ends = (180.0_f64, -180.0_f64);
                    let (min, max) =
                        angles.fold(ends, |(min, max), angle| (min.min(angle), max.max(angle)));
                    // Nothing is as wide as half a turn, except for what is behind and wraps.
                    min < half && max > -half && max - min < 180.0
                };
                patches.iter().filter(touches).map(|patch| least(patch)).reduce(f64::min)
            };
            let (loose, tight) = (nearest(2.6), nearest(2.4));
            let is_at_one = loose.is_some_and(|least| *told > least - 0.05)
                && tight.is_none_or(|least| *told < least + 0.05);
            prop_assert!(is_at_one, "{element}: {told} instead of {loose:?} to {tight:?}");
        }
    }

    /// Numbers that no camera has: no panic, no clear.
    #[test]
    fn bad_scans_are_unknown(
        first_deg in prop::num::f64::ANY,
        bin_deg in prop::num::f64::ANY,
        near_m in prop::num::f64::ANY,
        far_m in prop::num::f64::ANY,
        x in prop::num::f64::ANY,
        measured in prop::num::f64::ANY,
    ) {
        let bins = vec![Bin::Clear, Bin::Obstacle(nearest(measured, near_m, [x; 3])), Bin::Unknown];
        let seen = obstacles(Scan { first_deg, bin_deg, bins, near_m, far_m }, x, measured);
        let readings = around_vehicle(&[&seen]);
        if is_usable(&seen) {
            let limits = limits(&[&seen]).unwrap();
            ring(&readings, limits, 0);
            forward(&readings, limits, 0);
            points(&[&seen], limits, 0);
        } else {
            prop_assert_eq!(readings, [Reading::Unknown; ELEMENTS]);
        }
    }
}

#[test]
fn elements_are_clockwise_and_bins_are_not() {
    let mut scan = clear_ahead();
    // From 12 to 13 degrees to the right, and from 30 to 31 to the left.
    scan.bins[27] = Bin::Obstacle(nearest(3.0, 3.2, [0.0; 3]));
    scan.bins[70] = Bin::Obstacle(nearest(5.0, 5.0, [0.0; 3]));
    // From 14 to 15 degrees to the left: within an element, away from its edges.
    scan.bins[54] = Bin::Unknown;
    let readings = around_vehicle(&[&obstacles(scan, 0.0, 0.0)]);
    let told = |element: usize| match readings[element] {
        Reading::Obstacle(metres) => format!("{metres:.3}"),
        other => format!("{other:?}"),
    };
    assert_eq!([told(68), told(69), told(70)], ["Clear", "Unknown", "Clear"]);
    // 12.5 degrees is the edge between two elements.
    assert_eq!([told(2), told(3)], ["3.000", "3.000"]);
    assert_eq!([told(66), told(1), told(0), told(71)], ["5.000", "Clear", "Clear", "Clear"]);
    assert_eq!(
        [told(7), told(65), told(8), told(64), told(36)],
        ["Clear", "Clear", "Unknown", "Unknown", "Unknown"]
    );
}

#[test]
fn one_camera_sees_through_what_another_cannot() {
    let ahead = clear_ahead();
    let mut blind = clear_ahead();
    blind.bins.fill(Bin::Unknown);
    blind.bins[40] = Bin::Obstacle(nearest(2.0, 2.1, [0.0; 3]));
    let [ahead, blind] = [obstacles(ahead, 0.0, 0.1), obstacles(blind, 0.0, -0.1)];
    let readings = around_vehicle(&[&ahead, &blind]);
    assert_eq!(readings[3], Reading::Clear);
    let Reading::Obstacle(metres) = readings[0] else { panic!("{:?}", readings[0]) };
    assert!((metres - 2.0).abs() < 0.02, "{metres}");
    assert_eq!(around_vehicle(&[&blind])[3], Reading::Unknown);
    // A camera that sees less far proves nothing up to the other's limit.
    let short = Scan { far_m: 4.0, ..clear_ahead() };
    let mut behind = obstacles(short, 0.0, 0.0);
    behind.scan.first_deg = 140.0;
    let readings = around_vehicle(&[&ahead, &behind]);
    assert_eq!([readings[0], readings[36]], [Reading::Clear, Reading::Unknown]);
}

#[test]
fn no_value_means_something_else_to_an_autopilot() {
    let limits = Limits { min_m: 0.501, max_m: 9.999 };
    let mut readings = [Reading::Unknown; ELEMENTS];
    for (element, metres) in [0.0, 0.3, 0.51, 3.219, 9.99, 9.999, 50.0, 1e9].into_iter().enumerate()
    {
        readings[element] = Reading::Obstacle(metres);
    }
    readings[8] = Reading::Clear;
    let message = ring(&readings, limits, 7);
    assert_eq!((message.min_distance, message.max_distance, message.time_usec), (51, 999, 7));
    assert_eq!(message.distances[..10], [51, 51, 51, 321, 998, 998, 998, 998, 1000, 65535]);
    assert_eq!((message.increment, message.increment_f, message.angle_offset), (5, 0.0, 0.0));
    // Far beyond what a message can say.
    let far = ring(&readings, Limits { min_m: 700.0, max_m: 1e6 }, 0);
    assert!(far.min_distance < far.max_distance && far.distances[8] < 65535);
    assert_eq!(far.distances[8], far.max_distance + 1);
}

#[test]
fn ahead_is_told_only_if_it_is_known() {
    let limits = Limits { min_m: 0.5, max_m: 10.0 };
    let mut readings = [Reading::Clear; ELEMENTS];
    assert_eq!(forward(&readings, limits, 3).map(|told| told.current_distance), Some(1001));
    readings[68] = Reading::Unknown;
    assert_eq!(forward(&readings, limits, 3), None);
    readings[67] = Reading::Obstacle(1.0);
    readings[5] = Reading::Obstacle(1.0);
    assert_eq!(forward(&readings, limits, 3), None, "25 degrees are not ahead");
    readings[4] = Reading::Obstacle(2.5);
    readings[69] = Reading::Obstacle(0.1);
    let told = forward(&readings, limits, 3).unwrap();
    assert_eq!((told.current_distance, told.min_distance, told.max_distance), (50, 49, 1000));
}

#[test]
fn the_nearest_of_each_face_is_told_ahead_right_down() {
    let limits = Limits { min_m: 0.5, max_m: 10.0 };
    let mut scan = clear_ahead();
    let put = |metres: [f64; 3]| Bin::Obstacle(nearest(1.0, 1.0, metres));
    // Two ahead, one to the left and below, one at the origin's right, one far, one nowhere.
    scan.bins[0] = put([4.0, 0.1, 0.0]);
    scan.bins[1] = put([3.0, -0.1, 0.2]);
    scan.bins[2] = put([0.0, 2.0, -2.0]);
    scan.bins[3] = put([0.0, -0.2, 0.0]);
    scan.bins[4] = put([-20.0, 0.0, 0.0]);
    scan.bins[5] = put([f64::NAN, 0.0, 0.0]);
    let told = points(&[&obstacles(scan, 0.0, 0.0)], limits, 9);
    let places: Vec<_> = told.iter().map(|told| [told.x, told.y, told.z]).collect();
    let expected = [[0.0, -2.0, 2.0], [3.0, 0.1, -0.2], [0.0, 0.2, 0.0], [-20.0, 0.0, 0.0]];
    assert_eq!(places, expected);
    for told in &told {
        let length = told.x.hypot(told.y).hypot(told.z);
        assert!(
            (told.min_distance..=told.max_distance).contains(&length) && told.time_boot_ms == 9
        );
    }
    let nothing = points(&[&obstacles(clear_ahead(), 0.0, 0.0)], limits, 10);
    assert_eq!(nothing.len(), 1);
    assert!(nothing[0].x > nothing[0].max_distance && nothing[0].time_boot_ms == 10);
}
