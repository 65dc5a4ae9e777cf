//! Obstacles as JSON, one line a pair.

use std::time::Duration;

use serde_json::{Value, json};
use stereod_core::obstacles::{Bin, Nearest, Obstacles, Thing, Zone};
use stereod_core::pose::{Lost, Odometry};

/// Returns a pair's obstacles as an object (docs/obstacles.md). `stamp` is the time of capture since the Unix epoch,
/// `latency` the time since then.
pub fn to_json(obstacles: &Obstacles, pair: u64, stamp: Duration, latency: Duration) -> Value {
    let Obstacles { scan, zones, things, mount } = obstacles;
    let nearest = scan.nearest().map(|(direction, nearest)| {
        let mut object = of_nearest(&nearest);
        object["direction_deg"] = json!(rounded(direction, 2));
        object
    });
    let distance = |bin: &Bin| match bin {
        Bin::Obstacle(nearest) => Some(rounded(nearest.distance_m, 3)),
        Bin::Clear | Bin::Unknown => None,
    };
    let state = |bin: &Bin| match bin {
        Bin::Obstacle(_) => 'o',
        Bin::Clear => 'c',
        Bin::Unknown => 'u',
    };
    json!({
        "stamp": rounded(stamp.as_secs_f64(), 6),
        "latency_ms": rounded(latency.as_secs_f64() * 1e3, 2),
        "pair": pair,
        "nearest": nearest,
        "scan": {
            "first_deg": scan.first_deg,
            "bin_deg": scan.bin_deg,
            "near_m": rounded(scan.near_m, 3),
            "far_m": rounded(scan.far_m, 3),
            "states": scan.bins.iter().map(state).collect::<String>(),
            "distances_m": scan.bins.iter().map(distance).collect::<Vec<_>>(),
        },
        "zones": zones.iter().map(of_zone).collect::<Vec<_>>(),
        "things": things.iter().map(of_thing).collect::<Vec<_>>(),
        "mount": { "position_m": mount.position_m, "attitude_deg": mount.attitude_deg },
    })
}

/// Returns the pose of the vehicle as an object (docs/obstacles.md); while it is lost, the last one.
pub fn pose_to_json(odometry: &Odometry) -> Value {
    let Odometry { pose, lost, .. } = odometry.of_vehicle();
    json!({
        "position_m": pose.position_m.map(|metres| rounded(metres, 4)),
        "quaternion": pose.quaternion().map(|part| rounded(part, 6)),
        "lost": lost.map(Lost::in_words),
    })
}

fn of_nearest(nearest: &Nearest) -> Value {
    let Nearest { distance_m, nearest_m, sigma_m, position_m, pixels } = *nearest;
    json!({
        "distance_m": rounded(distance_m, 3),
        "nearest_m": rounded(nearest_m, 3),
        "sigma_m": rounded(sigma_m, 3),
        "position_m": position_m.map(|value| rounded(value, 3)),
        "pixels": pixels,
    })
}

fn of_zone(zone: &Zone) -> Value {
    let Zone { name, occupied, nearest, known } = zone;
    let nearest = nearest.as_ref().map(of_nearest);
    json!({ "name": name, "occupied": occupied, "nearest": nearest, "known": rounded(*known, 3) })
}

fn of_thing(thing: &Thing) -> Value {
    let Thing { label, id, score, edges_px, nearest, known } = thing;
    json!({
        "label": label,
        "id": id,
        "score": score,
        "box_px": edges_px.map(|edge| rounded(edge, 1)),
        "nearest": nearest.as_ref().map(of_nearest),
        "known": rounded(*known, 3),
    })
}

/// Rounds to a number of digits after the point. Zero has no sign.
pub(crate) fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale + 0.0
}

#[cfg(test)]
mod tests {
    use stereod_core::obstacles::Mount;
    use stereod_core::pose::Pose;

    use super::*;

    #[test]
    fn the_pose_is_that_of_the_vehicle() {
        let odometry = Odometry {
            pose: Pose { position_m: [0.5, 0.0, 2.00004], ..Pose::IDENTITY },
            covariance: [[0.0; 6]; 6],
            velocity: None,
            lost: Some(Lost::FewPoints),
            breaks: 0,
            path_m: 2.0,
            points: [0, 10],
            mount: Mount { position_m: [1.0, 2.0, 3.0], ..Mount::default() },
        };
        let expected = json!({
            "position_m": [2.0, -0.5, 0.0],
            "quaternion": [0.0, 0.0, 0.0, 1.0],
            "lost": "too few points with texture and depth",
        });
        assert_eq!(pose_to_json(&odometry), expected);
    }
}
