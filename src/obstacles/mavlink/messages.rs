//! What the autopilots are told: fields as ArduPilot (AP_Proximity_MAV.cpp) and PX4 (CollisionPrevention.cpp) read
//! them.

use std::f32::consts::FRAC_PI_4;

use ::mavlink::dialects::ardupilotmega::{
    DISTANCE_SENSOR_DATA, HEARTBEAT_DATA, MavAutopilot, MavDistanceSensor, MavEstimatorType,
    MavFrame, MavModeFlag, MavSensorOrientation, MavState, MavType, OBSTACLE_DISTANCE_3D_DATA,
    OBSTACLE_DISTANCE_DATA, ODOMETRY_DATA,
};
use stereod_core::obstacles::{Bin, Obstacles};
use stereod_core::pose::Odometry;

use super::around::{ELEMENT_DEG, ELEMENTS, Limits, Reading};

/// Distance in centimetres that means "unknown" to both.
const UNKNOWN: u16 = u16::MAX;
/// Elements to each side of ahead that one DISTANCE_SENSOR covers: 22.5 degrees, as ArduPilot's sector does.
const FORWARD: usize = 4;
/// Faces of ArduPilot's boundary: sectors of 45 degrees and layers of 30.
const SECTORS: usize = 8;
const LAYERS: usize = 5;
/// ArduPilot takes no obstacle that is exactly at the vehicle's origin.
const LEAST_M: f32 = 0.01;

/// The limits in whole centimetres, inside the given ones.
#[derive(Clone, Copy)]
struct Range {
    min: u16,
    max: u16,
}

impl From<Limits> for Range {
    fn from(limits: Limits) -> Self {
        // Conversions to integers saturate, and `max + 1` must stay below "unknown".
        let min = ((limits.min_m * 100.0).ceil() as u16).clamp(1, UNKNOWN - 3);
        Self { min, max: ((limits.max_m * 100.0).floor() as u16).clamp(min + 1, UNKNOWN - 2) }
    }
}

impl Range {
    /// Returns a reading in centimetres.
    ///
    /// ArduPilot skips what is below min_distance or above max_distance, and PX4 takes max_distance itself for clear.
    /// An obstacle outside is therefore moved to the nearest value that both brake for. PX4 keeps min_distance away
    /// in any case; a smaller min_distance would lower that for good.
    fn centimetres(self, reading: Reading) -> u16 {
        match reading {
            Reading::Obstacle(metres) => ((metres * 100.0) as u16).clamp(self.min, self.max - 1),
            Reading::Clear => self.max + 1,
            Reading::Unknown => UNKNOWN,
        }
    }
}

pub fn heartbeat() -> HEARTBEAT_DATA {
    HEARTBEAT_DATA {
        custom_mode: 0,
        mavtype: MavType::MAV_TYPE_ONBOARD_CONTROLLER,
        autopilot: MavAutopilot::MAV_AUTOPILOT_INVALID,
        base_mode: MavModeFlag::empty(),
        system_status: MavState::MAV_STATE_ACTIVE,
        mavlink_version: 3,
    }
}

/// Returns the ring of distances as OBSTACLE_DISTANCE, captured at `time_usec` of the vehicle's clock (0: unknown).
pub fn ring(
    readings: &[Reading; ELEMENTS],
    limits: Limits,
    time_usec: u64,
) -> OBSTACLE_DISTANCE_DATA {
    let range = Range::from(limits);
    OBSTACLE_DISTANCE_DATA {
        time_usec,
        distances: readings.map(|reading| range.centimetres(reading)),
        min_distance: range.min,
        max_distance: range.max,
        sensor_type: MavDistanceSensor::MAV_DISTANCE_SENSOR_UNKNOWN,
        increment: ELEMENT_DEG as u8,
        increment_f: 0.0,
        angle_offset: 0.0,
        frame: MavFrame::MAV_FRAME_BODY_FRD,
    }
}

/// Returns what is ahead as DISTANCE_SENSOR; `None` if that is unknown.
///
/// A distance beyond max_distance is clear to both: ArduPilot resets the sector, PX4 cuts it to max_distance. PX4's
/// own sign for clear, a distance of -1 with signal quality 0, has no counterpart in this message: its distance is
/// unsigned.
pub fn forward(
    readings: &[Reading; ELEMENTS],
    limits: Limits,
    time_boot_ms: u32,
) -> Option<DISTANCE_SENSOR_DATA> {
    let ahead = || (0..=FORWARD).chain(ELEMENTS - FORWARD..ELEMENTS).map(|i| readings[i]);
    let distances = ahead().filter_map(|reading| match reading {
        Reading::Obstacle(metres) => Some(metres),
        Reading::Clear | Reading::Unknown => None,
    });
    let reading = match distances.reduce(f64::min) {
        Some(metres) => Reading::Obstacle(metres),
        None if ahead().all(|reading| reading == Reading::Clear) => Reading::Clear,
        None => return None,
    };
    let range = Range::from(limits);
    // PX4 discards a distance that is not above min_distance.
    let min_distance = range.min - 1;
    Some(DISTANCE_SENSOR_DATA {
        time_boot_ms,
        min_distance,
        max_distance: range.max,
        current_distance: range.centimetres(reading),
        mavtype: MavDistanceSensor::MAV_DISTANCE_SENSOR_UNKNOWN,
        id: 0,
        orientation: MavSensorOrientation::MAV_SENSOR_ROTATION_NONE,
        covariance: u8::MAX,
        horizontal_fov: FRAC_PI_4,
        vertical_fov: 0.0,
        quaternion: [0.0; 4],
        signal_quality: 0,
    })
}

/// Returns the nearest obstacle of each of ArduPilot's faces as OBSTACLE_DISTANCE_3D, with one stamp.
///
/// ArduPilot takes up what an image showed when the next stamp comes. An image without obstacles is therefore a
/// message, too: one with an obstacle that is out of its range.
pub fn points(
    all: &[&Obstacles],
    limits: Limits,
    time_boot_ms: u32,
) -> Vec<OBSTACLE_DISTANCE_3D_DATA> {
    let mut faces = [None::<([f32; 3], f32)>; SECTORS * LAYERS];
    for bin in all.iter().flat_map(|obstacles| &obstacles.scan.bins) {
        let Bin::Obstacle(nearest) = bin else { continue };
        // Ahead, left, up to ahead, right, down.
        let [x, y, z] = nearest.position_m.map(|metres| metres as f32);
        let Some((point, distance)) = apart([x, -y, -z]) else { continue };
        let face = &mut faces[face(point)];
        if face.is_none_or(|(_, nearer)| distance < nearer) {
            *face = Some((point, distance));
        }
    }
    let [min_m, max_m] = [limits.min_m as f32, limits.max_m as f32];
    let message = |[x, y, z]: [f32; 3], min_distance, max_distance| OBSTACLE_DISTANCE_3D_DATA {
        time_boot_ms,
        x,
        y,
        z,
        min_distance,
        max_distance,
        obstacle_id: u16::MAX,
        sensor_type: MavDistanceSensor::MAV_DISTANCE_SENSOR_UNKNOWN,
        frame: MavFrame::MAV_FRAME_BODY_FRD,
    };
    // ArduPilot skips what is out of the limits, but these come with each obstacle, so they can include it. The
    // margin is for the rounding of the length.
    let within = |(point, distance): ([f32; 3], f32)| {
        message(point, min_m.min(distance * 0.99), max_m.max(distance * 1.01))
    };
    let messages: Vec<_> = faces.into_iter().flatten().map(within).collect();
    if messages.is_empty() {
        return vec![message([2.0 * max_m.max(1.0), 0.0, 0.0], min_m, max_m.max(1.0))];
    }
    messages
}

/// Returns the motion of the vehicle as ODOMETRY, captured at `time_usec` since 1970; `None` while the rig is lost, or
/// if its velocity is not known, because ArduPilot takes the velocity with the pose.
///
/// Of all clocks it is ours, because PX4 converts the time by its own TIMESYNC with us (Timesync.cpp, sync_stamp) and
/// ArduPilot corrects any clock by the arrival of its messages. ArduPilot takes no other frames than these two.
pub fn odometry(odometry: &Odometry, time_usec: u64) -> Option<ODOMETRY_DATA> {
    let Odometry { pose, covariance, velocity, lost, breaks, points: [agree, all], .. } =
        odometry.of_vehicle();
    if lost.is_some() {
        return None;
    }
    // Ahead, left, up to ahead, right, down: of positions, angles and the vector of a quaternion alike.
    let down = |[x, y, z]: [f64; 3]| [x as f32, -y as f32, -z as f32];
    let [vx, vy, vz, about_x, about_y, about_z] = velocity?;
    let ([x, y, z], [vx, vy, vz]) = (down(pose.position_m), down([vx, vy, vz]));
    let [rollspeed, pitchspeed, yawspeed] = down([about_x, about_y, about_z]);
    let [qx, qy, qz, qw] = pose.quaternion();
    let [qx, qy, qz] = down([qx, qy, qz]);
    let mut unknown = [0.0; 21];
    unknown[0] = f32::NAN;
    let share = 100.0 * f64::from(agree) / f64::from(all.max(1));
    Some(ODOMETRY_DATA {
        time_usec,
        x,
        y,
        z,
        q: [qw as f32, qx, qy, qz],
        vx,
        vy,
        vz,
        rollspeed,
        pitchspeed,
        yawspeed,
        pose_covariance: upper_triangle(&covariance),
        velocity_covariance: unknown,
        frame_id: MavFrame::MAV_FRAME_LOCAL_FRD,
        child_frame_id: MavFrame::MAV_FRAME_BODY_FRD,
        // It wraps around.
        reset_counter: breaks as u8,
        estimator_type: MavEstimatorType::MAV_ESTIMATOR_TYPE_VISION,
        // 0 means unknown, and -1 that it has failed.
        quality: share.round().clamp(1.0, 100.0) as i8,
    })
}

/// Returns the upper triangle of a covariance, row by row, with the axes ahead, right, down in place of ahead, left, up.
/// If a variance is no number, its first element says that none is known.
fn upper_triangle(covariance: &[[f64; 6]; 6]) -> [f32; 21] {
    const SIGNS: [f64; 6] = [1.0, -1.0, -1.0, 1.0, -1.0, -1.0];
    let places = (0..6).flat_map(|row| (row..6).map(move |column| (row, column)));
    let mut triangle = [0.0; 21];
    for (value, (row, column)) in triangle.iter_mut().zip(places) {
        *value = (covariance[row][column] * SIGNS[row] * SIGNS[column] + 0.0) as f32;
    }
    if triangle.iter().any(|value| !value.is_finite()) {
        triangle = [0.0; 21];
        triangle[0] = f32::NAN;
    }
    triangle
}

/// Returns a point and its distance, off the origin; `None` if it is not a place.
fn apart([x, y, z]: [f32; 3]) -> Option<([f32; 3], f32)> {
    let distance = x.hypot(y).hypot(z);
    let point = if distance < LEAST_M { [LEAST_M, 0.0, 0.0] } else { [x, y, z] };
    distance.is_finite().then_some((point, distance.max(LEAST_M)))
}

/// Returns which of ArduPilot's faces a point (ahead, right, down) is in.
fn face([x, y, z]: [f32; 3]) -> usize {
    let yaw = (y.atan2(x).to_degrees() + 22.5).rem_euclid(360.0);
    let pitch = (-z).atan2(x.hypot(y)).to_degrees().clamp(-75.0, 74.9);
    let sector = (yaw / 45.0) as usize % SECTORS;
    ((pitch + 75.0) / 30.0) as usize * SECTORS + sector
}

#[cfg(test)]
mod tests {
    use stereod_core::obstacles::Mount;
    use stereod_core::pose::{Lost, Pose};

    use super::*;

    /// Returns what a camera tells that is mounted in the vehicle's origin and has turned to the left by 90 degrees.
    fn turned_left() -> Odometry {
        let rotation = [[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]];
        // By optical axes: right, down, ahead.
        let covariance = std::array::from_fn(|row| {
            std::array::from_fn(|column| match (row, column) {
                (0, 2) | (2, 0) => 0.5,
                _ if row == column => (row + 1) as f64,
                _ => 0.0,
            })
        });
        Odometry {
            pose: Pose { rotation, position_m: [-1.0, 0.25, 2.0] },
            covariance,
            velocity: Some([0.1, -0.2, 3.0, 0.0, -0.5, 0.25]),
            lost: None,
            breaks: 258,
            path_m: 3.0,
            points: [150, 200],
            mount: Mount::default(),
        }
    }

    #[test]
    fn axes_of_odometry_are_ahead_right_and_down() {
        let told = odometry(&turned_left(), 1_700_000_000_000_001).unwrap();
        assert_eq!(told.time_usec, 1_700_000_000_000_001);
        assert_eq!([told.x, told.y, told.z], [2.0, -1.0, 0.25]);
        // To the left, which is against the clock from above, about an axis that points down.
        let half = 0.5_f32.sqrt();
        let expected = [half, 0.0, 0.0, -half];
        assert!(told.q.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{:?}", told.q);
        assert_eq!([told.vx, told.vy, told.vz], [3.0, 0.1, -0.2]);
        assert_eq!([told.rollspeed, told.pitchspeed, told.yawspeed], [0.25, 0.0, -0.5]);
        assert_eq!((told.frame_id as u8, told.child_frame_id as u8), (20, 12));
        assert_eq!((told.reset_counter, told.quality), (2, 75));
        let variances = [0, 6, 11, 15, 18, 20].map(|place| told.pose_covariance[place]);
        assert_eq!(variances, [3.0, 1.0, 2.0, 6.0, 4.0, 5.0]);
        assert_eq!(told.pose_covariance[1], 0.5, "ahead and right are the optical z and x");
        assert!(told.velocity_covariance[0].is_nan());
    }

    #[test]
    fn odometry_that_is_not_known_is_not_told() {
        let known = turned_left();
        assert_eq!(odometry(&Odometry { lost: Some(Lost::Unseen), ..known }, 1), None);
        assert_eq!(odometry(&Odometry { velocity: None, ..known }, 1), None);
        let mut broken = known;
        broken.covariance[4][4] = f64::INFINITY;
        let told = odometry(&Odometry { points: [0, 0], ..broken }, 1).unwrap();
        assert!(told.pose_covariance[0].is_nan() && told.pose_covariance[1..] == [0.0; 20]);
        assert_eq!(told.quality, 1, "0 would mean that it is not known");
    }
}
