//! Obstacles as messages: a scan, zones and things, and the place of the camera on the vehicle.

use anyhow::{Context, Result};

use super::{BODY_FRAME, Cdr, Heading, NOT_TURNED, Transform};
use stereod_core::frame::Matched;
use stereod_core::obstacles::{Bin, Mount, Nearest, Obstacles, Thing, Zone};

/// Frame of the vehicle (REP 105). Rigs of one vehicle share it, so it has no prefix.
pub(super) const BASE_FRAME: &str = "base_link";

/// Frame of the scan: the position of the left camera with the axes of the vehicle, because a scan is horizontal.
const SCAN_FRAME: &str = "stereo_scan";

/// A `vision_msgs/Detection3D` without its header.
struct Detection<'a> {
    class: &'a str,
    id: &'a str,
    score: f64,
    position_m: [f64; 3],
    /// Along the axes of the camera: ahead, to the left, up. 0 if unknown.
    size_m: [f64; 3],
}

fn found(frame: &Matched) -> Result<&Obstacles> {
    frame.obstacles.as_ref().context("the pair has no obstacles; give --set obstacles.find=true")
}

/// Returns the scan with clear as +inf and unknown as NaN (REP 117), anticlockwise.
pub(super) fn scan(frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
    let scan = &found(frame)?.scan;
    let ranges = scan.bins.iter().map(|bin| match bin {
        Bin::Obstacle(nearest) => nearest.distance_m as f32,
        Bin::Clear => f32::INFINITY,
        Bin::Unknown => f32::NAN,
    });
    // Consumers drop ranges below the least one. That would hide an obstacle.
    let least = ranges.clone().fold(scan.near_m as f32, f32::min);
    let last = scan.bins.len().saturating_sub(1);
    let [first, last] = [0, last].map(|bin| scan.direction_deg(bin).to_radians() as f32);
    let mut cdr = Cdr::with_room(128 + 4 * scan.bins.len());
    head.write(&mut cdr, SCAN_FRAME);
    cdr.f32(first).f32(last).f32(scan.bin_deg.to_radians() as f32);
    // Between two measurements, because all are of one moment, and between two scans, which is not known.
    cdr.f32(0.0).f32(0.0);
    cdr.f32(least).f32(scan.far_m as f32).length(scan.bins.len());
    for range in ranges {
        cdr.f32(range);
    }
    cdr.length(0);
    Ok(cdr.finish())
}

/// Returns the occupied zones and the things with a distance.
pub(super) fn detections(frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
    let found = found(frame)?;
    let zones = found.zones.iter().filter_map(of_zone);
    let things = found.things.iter().filter_map(|thing| of_thing(thing, found, frame));
    let detections: Vec<Detection<'_>> = zones.chain(things).collect();
    let attitude = quaternion(&found.mount);
    let mut cdr = Cdr::with_room(128 + 640 * detections.len());
    super::header(&mut cdr, head.stamp, BASE_FRAME);
    cdr.length(detections.len());
    for Detection { class, id, score, position_m, size_m } in detections {
        super::header(&mut cdr, head.stamp, BASE_FRAME);
        cdr.length(1).text(class).f64s(&[score]).f64s(&position_m).f64s(&attitude);
        // The covariance is not known.
        cdr.f64s(&[0.0; 36]);
        cdr.f64s(&position_m).f64s(&attitude).f64s(&size_m).text(id);
    }
    Ok(cdr.finish())
}

fn of_zone(zone: &Zone) -> Option<Detection<'_>> {
    let nearest = zone.nearest.filter(|_| zone.occupied == Some(true))?;
    let position_m = nearest.position_m;
    Some(Detection { class: &zone.name, id: &zone.name, score: 1.0, position_m, size_m: [0.0; 3] })
}

fn of_thing<'a>(thing: &'a Thing, found: &Obstacles, frame: &Matched) -> Option<Detection<'a>> {
    let nearest = thing.nearest?;
    let focal_px = frame.geometry.map(|geometry| geometry.focal_px);
    Some(Detection {
        class: &thing.label,
        id: thing.id.as_deref().unwrap_or_default(),
        score: thing.score.unwrap_or(1.0),
        position_m: nearest.position_m,
        size_m: focal_px.map_or([0.0; 3], |focal| size_m(thing, &nearest, &found.mount, focal)),
    })
}

/// Returns the size of what a box frames, if all of it is as far from the camera as its nearest part.
fn size_m(thing: &Thing, nearest: &Nearest, mount: &Mount, focal_px: f64) -> [f64; 3] {
    let from_camera = [0, 1, 2].map(|axis| nearest.position_m[axis] - mount.position_m[axis]);
    let depth_m: f64 = mount.rotation().iter().zip(from_camera).map(|(row, m)| row[2] * m).sum();
    let [left, top, right, bottom] = thing.edges_px;
    let metres = |pixels: f64| (pixels * depth_m / focal_px).max(0.0);
    [0.0, metres(right - left), metres(bottom - top)]
}

/// Returns the places of the camera and of the scan on the vehicle.
pub(super) fn mounting(mount: &Mount, head: Heading<'_>) -> [Transform; 2] {
    let frames = [(BODY_FRAME, quaternion(mount)), (SCAN_FRAME, NOT_TURNED)];
    frames.map(|(frame, turn)| (BASE_FRAME.to_owned(), head.named(frame), mount.position_m, turn))
}

/// Returns the attitude of the camera as x, y, z and w.
fn quaternion(mount: &Mount) -> [f64; 4] {
    let [(sin_r, cos_r), (sin_p, cos_p), (sin_y, cos_y)] =
        mount.attitude_deg.map(|angle| (angle.to_radians() / 2.0).sin_cos());
    [
        sin_r * cos_p * cos_y - cos_r * sin_p * sin_y,
        cos_r * sin_p * cos_y + sin_r * cos_p * sin_y,
        cos_r * cos_p * sin_y - sin_r * sin_p * cos_y,
        cos_r * cos_p * cos_y + sin_r * sin_p * sin_y,
    ]
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{TOPICS, tests::matched};
    use super::*;
    use stereod_core::obstacles::Scan;

    const NEAREST: Nearest = Nearest {
        distance_m: 2.0,
        nearest_m: 1.9,
        sigma_m: 0.1,
        position_m: [2.5, -0.5, 0.75],
        pixels: 40,
    };

    /// Returns a scan of three bins, an occupied, a free and an unknown zone, and a thing with and one without a
    /// distance.
    pub fn obstacles() -> Obstacles {
        let zone = |name: &str, occupied, nearest| Zone {
            name: name.to_owned(),
            occupied,
            nearest,
            known: 0.5,
        };
        let thing = |label: &str, nearest| Thing {
            label: label.to_owned(),
            id: Some("17".to_owned()),
            score: None,
            edges_px: [2.0, 1.0, 6.0, 3.0],
            nearest,
            known: 0.5,
        };
        let bins = vec![Bin::Obstacle(NEAREST), Bin::Clear, Bin::Unknown];
        Obstacles {
            scan: Scan { first_deg: -45.0, bin_deg: 30.0, bins, near_m: 2.25, far_m: 10.0 },
            zones: vec![
                zone("gate", Some(true), Some(NEAREST)),
                zone("street", Some(false), Some(NEAREST)),
                zone("yard", None, None),
            ],
            things: vec![thing("person", Some(NEAREST)), thing("cat", None)],
            mount: Mount { position_m: [0.5, 0.0, 1.0], attitude_deg: [0.0, 0.0, 90.0] },
        }
    }

    fn message(path: &str) -> Vec<u8> {
        let topic = TOPICS.iter().find(|topic| topic.path == path).unwrap();
        topic.encode(&matched(), Heading::default()).unwrap()
    }

    fn has<T: bytemuck::Pod>(message: &[u8], values: &[T]) -> bool {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        message.windows(bytes.len()).any(|at| at == bytes)
    }

    #[test]
    fn a_scan_tells_clear_from_unknown() {
        let message = message("/scan");
        let words: Vec<f32> = message[message.len() - 48..]
            .chunks(4)
            .map(|at| f32::from_le_bytes(at.try_into().unwrap()))
            .collect();
        let angles = [-30.0_f32, 30.0, 30.0].map(f32::to_radians);
        let near = |a: f32, b: f32| (a - b).abs() < 1e-6;
        assert!((0..3).all(|angle| near(words[angle], angles[angle])), "{words:?}");
        // The obstacle is nearer than the limit.
        assert_eq!(words[3..7], [0.0, 0.0, 2.0, 10.0]);
        assert_eq!(words[7].to_bits(), 3);
        assert_eq!(words[8..10], [2.0, f32::INFINITY]);
        assert!(words[10].is_nan() && words[11] == 0.0, "{words:?}");
    }

    #[test]
    fn occupied_zones_and_things_with_a_distance_are_detections() {
        let message = message("/obstacles");
        for (word, is_told) in [
            ("gate\0", true),
            ("person\0", true),
            ("17\0", true),
            ("street", false),
            ("yard", false),
            ("cat", false),
        ] {
            assert_eq!(has(&message, word.as_bytes()), is_told, "{word}");
        }
        assert!(has(&message, &NEAREST.position_m));
        // The boxes have the attitude of the camera, which looks to the left.
        let turn = quaternion(&obstacles().mount);
        assert!(has(&message, &turn) && turn[2] > 0.7, "{turn:?}");
    }

    #[test]
    fn a_mount_that_follows_the_ground_is_in_each_pair_instead() {
        let encoded = |path: &str, tracks_ground| {
            let topic = TOPICS.iter().find(|topic| topic.path == path).unwrap();
            let message =
                topic.encode(&matched(), Heading { tracks_ground, ..Heading::default() }).unwrap();
            has(&message, &obstacles().mount.position_m) && has(&message, BASE_FRAME.as_bytes())
        };
        assert!(encoded("/tf_static", false) && !encoded("/tf_static", true));
        assert!(encoded("/tf", true));
    }

    #[test]
    fn the_size_is_that_of_the_box_at_its_distance() {
        let mut found = obstacles();
        found.mount.attitude_deg = [0.0; 3];
        let thing = &found.things[0];
        // 2 m before the camera, 400 px: 5 mm a pixel.
        assert_eq!(size_m(thing, &NEAREST, &found.mount, 400.0), [0.0, 0.02, 0.01]);
        found.mount.attitude_deg = [0.0, 180.0, 0.0];
        assert_eq!(size_m(thing, &NEAREST, &found.mount, 400.0), [0.0; 3]);
    }

    #[test]
    fn a_quaternion_turns_as_the_matrix_does() {
        let attitude_deg = [20.0, -35.0, 110.0];
        let mount = Mount { attitude_deg, ..Mount::default() };
        let [x, y, z, w] = quaternion(&mount);
        // Ahead in the camera's axes is the optical z, up the optical -y.
        let ahead = [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + z * w), 2.0 * (x * z - y * w)];
        let up = [2.0 * (x * z + y * w), 2.0 * (y * z - x * w), 1.0 - 2.0 * (x * x + y * y)];
        for (axis, row) in mount.rotation().iter().enumerate() {
            assert!((row[2] - ahead[axis]).abs() < 1e-12 && (-row[1] - up[axis]).abs() < 1e-12);
        }
    }
}
