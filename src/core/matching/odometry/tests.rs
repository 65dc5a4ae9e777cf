//! Paths through a textured room, rendered with exact motion and disparity.

use std::time::Duration;

use super::Odometer;
use super::rigid::turn;
use crate::frame::{DisparityMap, DisparityRange, INVALID, Image, StereoGeometry};
use crate::pose::{Odometry, Pose};

const SIZE: (usize, usize) = (240, 180);

const GEOMETRY: StereoGeometry = StereoGeometry {
    focal_px: 165.0,
    baseline_m: 0.15,
    centre_x_px: 121.0,
    centre_y_px: 88.0,
    right_centre_x_px: 118.5,
};

/// Sides of the room in metres, in the axes of the rig at first.
const ROOM: [[f64; 2]; 3] = [[-2.5, 2.0], [-1.2, 1.0], [-3.0, 4.0]];

/// A room, and a picture that hangs in front of the rig.
#[derive(Clone, Copy)]
struct Scene {
    /// Number of the room.
    seed: u32,
    /// Centre of the picture in the axes of the room.
    picture: Option<[f64; 3]>,
    /// Standard deviation of the noise is about half of this.
    noise: u32,
}

const EMPTY: Scene = Scene { seed: 1, picture: None, noise: 4 };

struct Pair {
    images: [Image; 2],
    map: DisparityMap,
    confidence: Image,
}

fn hash(values: [i64; 3]) -> u32 {
    let mut state = 0x811c_9dc5u32;
    for value in values {
        state = (state ^ value as u32).wrapping_mul(0x0100_0193);
        state ^= state >> 15;
        state = state.wrapping_mul(0x2c1b_3c6d);
        state ^= state >> 12;
    }
    state
}

/// Smooth noise from 0 to 1.
fn texture(x: f64, y: f64, seed: i64) -> f64 {
    let (left, top) = (x.floor(), y.floor());
    let smooth = |share: f64| share * share * (3.0 - 2.0 * share);
    let (fx, fy) = (smooth(x - left), smooth(y - top));
    let at = |right: i64, down: i64| {
        f64::from(hash([left as i64 + right, top as i64 + down, seed]) & 0xffff) / 65535.0
    };
    let above = at(0, 0) + fx * (at(1, 0) - at(0, 0));
    let below = at(0, 1) + fx * (at(1, 1) - at(0, 1));
    above + fy * (below - above)
}

impl Scene {
    /// The distance along a ray, and the grey level there.
    fn hit(&self, from: [f64; 3], along: [f64; 3]) -> (f64, f64) {
        let at = |share: f64| [0, 1, 2].map(|axis| from[axis] + share * along[axis]);
        let mut nearest = (f64::INFINITY, 0.0);
        for axis in 0..3 {
            let side = usize::from(along[axis] > 0.0);
            let share = (ROOM[axis][side] - from[axis]) / along[axis];
            if share > 0.0 && share < nearest.0 {
                let point = at(share);
                let place = [point[(axis + 1) % 3], point[(axis + 2) % 3]];
                nearest = (share, self.grey(place, (2 * axis + side) as u32));
            }
        }
        if let Some(centre) = self.picture {
            let share = (centre[2] - from[2]) / along[2];
            let point = at(share);
            let place = [point[0] - centre[0], point[1] - centre[1]];
            if share > 0.0 && share < nearest.0 && place[0].abs() < 0.5 && place[1].abs() < 0.6 {
                nearest = (share, self.grey(place, 9));
            }
        }
        nearest
    }

    fn grey(&self, place: [f64; 2], surface: u32) -> f64 {
        let seed = i64::from(self.seed * 16 + surface);
        let octave = |per_metre: f64, share: f64| {
            share * texture(per_metre * place[0], per_metre * place[1], seed)
        };
        20.0 + 200.0 * (octave(3.0, 0.5) + octave(8.0, 0.3) + octave(14.0, 0.2))
    }

    /// The pair that a rig at this pose sees.
    fn pair(&self, pose: &Pose, number: usize) -> Pair {
        let g = GEOMETRY;
        let view = |eye: usize| {
            let offset = [eye as f64 * g.baseline_m, 0.0, 0.0];
            let centre = [g.centre_x_px, g.right_centre_x_px][eye];
            let from = pose.apply(offset);
            let ray = |x: f64, y: f64| {
                let ahead = [(x - centre) / g.focal_px, (y - g.centre_y_px) / g.focal_px, 1.0];
                self.hit(from, crate::pose::turned(&pose.rotation, ahead))
            };
            let mut depths = Vec::new();
            let mut pixels = Vec::new();
            for (x, y) in (0..SIZE.1).flat_map(|y| (0..SIZE.0).map(move |x| (x, y))) {
                let (depth, grey) = ray(x as f64, y as f64);
                depths.push(depth);
                let random = hash([number as i64, (y * SIZE.0 + x) as i64, eye as i64]);
                let noise = (random % (self.noise + 1)) as f64 - f64::from(self.noise) / 2.0;
                pixels.push((grey + noise).round().clamp(0.0, 255.0) as u8);
            }
            (Image::from_vec(SIZE.0, SIZE.1, pixels), depths)
        };
        let ((left, depths), (right, _)) = (view(0), view(1));
        let values = depths.iter().map(|&depth| (16.0 * g.disparity_px(depth)).round() as i16);
        let range = DisparityRange { min: 0, count: 64 };
        let map = DisparityMap::of_values(SIZE.0, range, values.collect());
        let confidence = Image::from_fn(SIZE.0, SIZE.1, |_, _| 230);
        Pair { images: [left, right], map, confidence }
    }
}

fn next(odometer: &mut Odometer, pair: &Pair, number: usize) -> Odometry {
    let [left, right] = &pair.images;
    let time = Duration::from_millis(50 * number as u64);
    odometer.next(left, right, &pair.map, &pair.confidence, &GEOMETRY, time)
}

/// A pair without light.
fn dark() -> Pair {
    let image = || Image::from_fn(SIZE.0, SIZE.1, |x, y| 2 + ((x * 7 + y * 13) % 5 == 0) as u8);
    let map = DisparityMap::of_values(
        SIZE.0,
        DisparityRange { min: 0, count: 64 },
        vec![INVALID; SIZE.0 * SIZE.1],
    );
    Pair { images: [image(), image()], map, confidence: Image::from_fn(SIZE.0, SIZE.1, |_, _| 0) }
}

/// A pair of a wall without texture, whose disparity is known.
fn bare() -> Pair {
    let image = || Image::from_fn(SIZE.0, SIZE.1, |x, _| 120 + (x / 40) as u8);
    let map = DisparityMap::of_values(
        SIZE.0,
        DisparityRange { min: 0, count: 64 },
        vec![300; SIZE.0 * SIZE.1],
    );
    Pair { images: [image(), image()], map, confidence: Image::from_fn(SIZE.0, SIZE.1, |_, _| 230) }
}

/// A rig in the hand at pair `number`.
fn walk(number: usize) -> Pose {
    let time = number as f64 / 20.0;
    let rotation = turn([0.02 * time, -0.06 * time, 0.01 * time]);
    Pose { rotation, position_m: [0.3 * time, 0.05 * time, 0.6 * time - 0.2 * time * time] }
}

fn distance(one: &Pose, other: &Pose) -> f64 {
    let squares = (0..3).map(|i| (one.position_m[i] - other.position_m[i]).powi(2));
    squares.sum::<f64>().sqrt()
}

/// The angle between two poses in radians, if it is small.
fn angle(one: &Pose, other: &Pose) -> f64 {
    let [x, y, z, _] = one.inverse().then(other).quaternion();
    2.0 * (x * x + y * y + z * z).sqrt()
}

#[test]
fn a_walk_is_followed_within_its_own_covariance() {
    let mut odometer = Odometer::new();
    let mut length = 0.0;
    for number in 0..30 {
        let found = next(&mut odometer, &EMPTY.pair(&walk(number), number), number);
        assert_eq!((found.lost, found.breaks), (None, 0), "{number}");
        if number == 0 {
            assert_eq!((found.pose, found.velocity), (Pose::IDENTITY, None));
            continue;
        }
        let step = walk(number - 1).inverse().then(&walk(number));
        length += distance(&Pose::IDENTITY, &step);
        let away = distance(&found.pose, &walk(number));
        let sigma = (0..3).map(|i| found.covariance[i][i]).sum::<f64>().sqrt();
        assert!(away < 0.005 && away < 3.0 * sigma + 1e-3, "{number}: {away} m, sigma {sigma}");
        assert!(angle(&found.pose, &walk(number)) < 0.002, "{number}");
        let motion = odometer.motion().unwrap();
        assert!(distance(&motion, &step.inverse()) < 0.004, "{number}");
        let velocity = found.velocity.unwrap();
        let speed = velocity[..3].iter().map(|part| part * part).sum::<f64>().sqrt();
        assert!(
            (speed - 20.0 * distance(&Pose::IDENTITY, &step)).abs() < 0.08,
            "{number}: {speed}"
        );
        // Cayley's vector is the tangent of half the angle.
        assert!((velocity[4] + 0.12).abs() < 0.03, "{number}: {velocity:?}");
        assert!((found.path_m - length).abs() < 0.03, "{} instead of {length}", found.path_m);
    }
}

#[test]
fn a_rig_at_rest_does_not_drift() {
    let mut odometer = Odometer::new();
    for number in 0..25 {
        let found = next(&mut odometer, &EMPTY.pair(&Pose::IDENTITY, number), number);
        assert_eq!(found.lost, None);
        assert!(distance(&found.pose, &Pose::IDENTITY) < 0.001, "{:?}", found.pose);
        assert_eq!(found.path_m, 0.0);
    }
}

#[test]
fn a_thing_that_moves_in_front_of_the_rig_is_no_motion_of_it() {
    for moves in [false, true] {
        let mut odometer = Odometer::new();
        for number in 0..12 {
            // 40 % of the image, 5 cm per pair to the side and 2 ahead.
            let time = number as f64;
            let picture = Some([-0.3 + 0.05 * time, 0.0, 1.3 + 0.02 * time]);
            let scene = Scene { picture, ..EMPTY };
            let truth = if moves { walk(number / 2) } else { Pose::IDENTITY };
            let found = next(&mut odometer, &scene.pair(&truth, number), number);
            assert_eq!((found.lost, found.breaks), (None, 0), "{number}");
            let away = distance(&found.pose, &truth);
            assert!(away < 0.01, "{number}: {away} m");
        }
    }
}

#[test]
fn darkness_and_bare_walls_are_told_and_the_path_goes_on_after_them() {
    for hidden in [dark as fn() -> Pair, bare] {
        let mut odometer = Odometer::new();
        for number in 0..22 {
            let is_hidden = (5..17).contains(&number);
            let pair = if is_hidden { hidden() } else { EMPTY.pair(&walk(number / 2), number) };
            let found = next(&mut odometer, &pair, number);
            // The pair that is seen again may be the second one.
            assert!(found.lost.is_some() == is_hidden || number == 17, "{number}: {found:?}");
            assert_eq!(found.breaks, 0);
            // The motion since a pair that was lost is not known.
            let is_known = (1..5).contains(&number) || number > 18;
            assert!(odometer.motion().is_some() == is_known || number == 18, "{number}");
            assert_eq!(found.velocity.is_some(), odometer.motion().is_some(), "{number}");
            let expected = if is_hidden { walk(2) } else { walk(number / 2) };
            if found.lost.is_none() || is_hidden {
                assert!(distance(&found.pose, &expected) < 0.006, "{number}: {found:?}");
            }
        }
    }
}

#[test]
fn a_cut_breaks_the_path_when_the_new_place_is_known_well() {
    let mut odometer = Odometer::new();
    let mut last = Pose::IDENTITY;
    for number in 0..20 {
        let scene = Scene { seed: if number < 5 { 1 } else { 77 }, ..EMPTY };
        let found = next(&mut odometer, &scene.pair(&walk(number), number), number);
        let is_lost = (5..15).contains(&number);
        assert_eq!(
            (found.lost.is_some(), found.breaks),
            (is_lost, u32::from(number >= 15)),
            "{number}"
        );
        if number < 5 {
            last = found.pose;
        } else if is_lost {
            assert_eq!(found.pose, last, "{number}");
            // The motion is known all the same, from pair to pair.
            assert_eq!(odometer.motion().is_some(), number > 5, "{number}");
        } else {
            let expected = last.then(&walk(5).inverse().then(&walk(number)));
            assert!(distance(&found.pose, &expected) < 0.006, "{number}: {found:?}");
        }
    }
}

#[test]
fn a_stream_that_begins_at_full_speed_is_followed() {
    // Four baselines ahead and three degrees between pairs: near things move by a sixth of the image.
    let drive = |number: usize| {
        let step = Pose { rotation: turn([0.0, 0.026, 0.0]), position_m: [0.0, 0.0, 0.6] };
        (0..number).fold(Pose::IDENTITY, |pose, _| pose.then(&step))
    };
    let mut odometer = Odometer::new();
    for number in 0..5 {
        let found = next(&mut odometer, &EMPTY.pair(&drive(number), number), number);
        assert_eq!(found.lost, None, "{number}");
        assert!(distance(&found.pose, &drive(number)) < 0.01, "{number}: {found:?}");
    }
}

#[test]
fn a_gap_a_step_back_in_time_and_another_geometry_break_nothing() {
    let mut odometer = Odometer::new();
    for (number, time) in [0.0, 0.05, 9.0, 9.05, 3.0, 3.05].into_iter().enumerate() {
        let pair = EMPTY.pair(&walk(number), number);
        let [left, right] = &pair.images;
        // A calibration that is corrected a little.
        let focal_px = GEOMETRY.focal_px + if number > 2 { 0.2 } else { 0.0 };
        let geometry = StereoGeometry { focal_px, ..GEOMETRY };
        let time = Duration::from_secs_f64(time);
        let found = odometer.next(left, right, &pair.map, &pair.confidence, &geometry, time);
        assert_eq!((found.lost, found.breaks), (None, 0), "{number}");
        assert!(distance(&found.pose, &walk(number)) < 0.006, "{number}: {found:?}");
        assert_eq!(found.velocity.is_some(), number != 0 && number != 4, "{number}");
    }
}

#[test]
fn fewer_points_are_less_certain() {
    let deviation = |sure: fn(usize) -> bool| {
        let mut odometer = Odometer::new();
        let mut all = [[0.0; 6]; 6];
        for number in 0..3 {
            let mut pair = EMPTY.pair(&walk(number), number);
            pair.confidence = Image::from_fn(SIZE.0, SIZE.1, |_, y| if sure(y) { 230 } else { 90 });
            let found = next(&mut odometer, &pair, number);
            assert_eq!(found.lost, None);
            all = found.covariance;
        }
        for i in 0..6 {
            for j in 0..6 {
                assert!((all[i][j] - all[j][i]).abs() < 1e-15 && all[i][i] > 0.0);
                assert!(all[i][j].powi(2) <= all[i][i] * all[j][j] * (1.0 + 1e-9));
            }
        }
        (0..3).map(|i| all[i][i]).sum::<f64>().sqrt()
    };
    let (many, few) = (deviation(|_| true), deviation(|y| y < 90));
    assert!(few > 1.3 * many, "{few} and {many}");
}

#[test]
fn a_copy_goes_on_alike() {
    let mut odometer = Odometer::new();
    next(&mut odometer, &EMPTY.pair(&walk(0), 0), 0);
    let mut other = odometer.clone();
    for number in 1..4 {
        let pair = EMPTY.pair(&walk(number), number);
        let [one, other] = [&mut odometer, &mut other].map(|from| next(from, &pair, number));
        assert_eq!(one, other);
    }
    assert_eq!(odometer, other);
}

#[test]
fn odd_input_is_lost_and_never_wrong() {
    let mut odometer = Odometer::new();
    let pair = EMPTY.pair(&walk(0), 0);
    assert_eq!(next(&mut odometer, &pair, 0).lost, None);
    // Tiny and flat images, of other sizes, and geometries that are none.
    for (width, height) in [(1, 1), (8, 8), (40, 3), (3, 40), (64, 64)] {
        let image = Image::from_fn(width, height, |x, y| (x * 31 + y * 57) as u8);
        let range = DisparityRange { min: -20, count: 40 };
        for value in [INVALID, -320, 0, i16::MAX] {
            let map = DisparityMap::of_values(width, range, vec![value; width * height]);
            let confidence = Image::from_fn(width, height, |_, _| 255);
            for focal_px in [0.0, 100.0, f64::NAN, f64::INFINITY] {
                let geometry = StereoGeometry { focal_px, ..GEOMETRY };
                let time = Duration::from_secs(1);
                let found = odometer.next(&image, &image, &map, &confidence, &geometry, time);
                assert!(found.lost.is_some(), "{width}x{height} {value} {focal_px}: {found:?}");
                assert_eq!(found.pose, Pose::IDENTITY);
            }
        }
    }
}
