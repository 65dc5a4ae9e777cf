//! The motion of the vehicle as messages (REP 105): its pose and velocity, the transform that places it, and the ground plan
//! of the map along its path.

use anyhow::{Context, Result};

use super::obstacles::BASE_FRAME;
use super::{Cdr, Heading, NOT_TURNED, Transform};
use stereod_core::frame::Matched;
use stereod_core::obstacles::Mount;
use stereod_core::pose::{Odometry, Pose, turned};

/// Frame in which the vehicle moves (REP 105): that of the vehicle at the stream's first pair.
pub(super) const ODOM_FRAME: &str = "odom";

/// Variance of a velocity whose error is not known. nav_msgs has no sign for that: RTAB-Map takes this number as one, and
/// a filter such as robot_localization gives such a velocity no weight, while it trusts one with a variance of 0.
const UNKNOWN_VARIANCE: f64 = 9999.0;

/// Reports whether the pair has a pose and a velocity.
pub(super) fn is_moving(frame: &Matched) -> bool {
    vehicle(frame).is_some_and(|vehicle| vehicle.velocity.is_some())
}

/// Returns a `nav_msgs/Odometry`: pose and velocity of the vehicle with their covariances, by rows.
pub(super) fn odometry(frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
    let Odometry { pose, covariance, velocity, .. } =
        vehicle(frame).context("the pair has no pose; give --odometry")?;
    let velocity = velocity.context("the pair has no velocity")?;
    let mut cdr = Cdr::with_room(768);
    head.write(&mut cdr, ODOM_FRAME);
    cdr.text(BASE_FRAME).f64s(&pose.position_m).f64s(&pose.quaternion());
    cdr.f64s(covariance.as_flattened()).f64s(&velocity);
    for row in 0..6 {
        let mut variances = [0.0; 6];
        variances[row] = UNKNOWN_VARIANCE;
        cdr.f64s(&variances);
    }
    Ok(cdr.finish())
}

/// Returns a `nav_msgs/OccupancyGrid`: the ground plan in percent, -1 if unknown.
pub(super) fn grid(frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
    let grid = frame.grid.as_ref().context("the pair has no new ground plan")?;
    let mut cdr = Cdr::with_room(160 + grid.cells.len());
    head.write(&mut cdr, ODOM_FRAME);
    // The plan is as old as the pair.
    cdr.i32(head.stamp.as_secs() as i32).u32(head.stamp.subsec_nanos());
    cdr.f32(grid.resolution_m as f32).u32(grid.width as u32).u32(grid.height as u32);
    let [x, y] = grid.origin_m;
    cdr.f64s(&[x, y, 0.0]).f64s(&NOT_TURNED);
    cdr.bytes(|out| out.extend(bytemuck::cast_slice::<i8, u8>(&grid.cells)));
    Ok(cdr.finish())
}

/// Returns the place of the vehicle, if it is known. A frame has one parent, so only a rig without a prefix, which is
/// alone, places the vehicle that all rigs share.
pub(super) fn place(frame: &Matched, head: Heading<'_>) -> Option<Transform> {
    let pose = vehicle(frame).filter(|_| places(head.prefix))?.pose;
    Some((head.named(ODOM_FRAME), BASE_FRAME.to_owned(), pose.position_m, pose.quaternion()))
}

/// Reports whether a rig with this prefix places the vehicle.
pub(super) fn places(prefix: &str) -> bool {
    prefix.is_empty()
}

/// Returns the odometry of the vehicle, if its pose is known.
fn vehicle(frame: &Matched) -> Option<Odometry> {
    let odometry = frame.odometry.as_deref().filter(|odometry| odometry.lost.is_none())?;
    let mount = frame.obstacles.as_ref().map_or(odometry.mount, |found| found.mount);
    Some(of_vehicle(odometry, &mount))
}

/// Returns the odometry of a vehicle on which the camera is now at `mount`, which may follow the ground, and was at that of
/// the odometry at the first pair.
fn of_vehicle(odometry: &Odometry, mount: &Mount) -> Odometry {
    let camera = |mount: &Mount| Pose { rotation: mount.rotation(), position_m: mount.position_m };
    let (first, to_camera) = (camera(&odometry.mount), camera(mount).inverse());
    // The axes of the first mount, and the place of the vehicle's origin in the camera's frame by the present one.
    let position_m = turned(&first.rotation, to_camera.position_m).map(|metres| -metres);
    let mixed = Odometry { mount: Mount { position_m, ..odometry.mount }, ..*odometry };
    Odometry {
        pose: first.then(&odometry.pose).then(&to_camera),
        covariance: mixed.of_vehicle().covariance,
        velocity: Odometry { mount: *mount, ..*odometry }.of_vehicle().velocity,
        ..*odometry
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::super::{TOPICS, Topic, tests::matched};
    use super::*;
    use stereod_core::grid::Grid;
    use stereod_core::pose::Lost;

    /// A camera a metre ahead of the vehicle's origin, which has driven 2 m ahead and turned by 90 degrees to the left.
    const MOUNT: Mount = Mount { position_m: [1.0, 0.0, 0.5], attitude_deg: [0.0; 3] };

    pub fn odometry() -> Odometry {
        let rotation = [[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]];
        // Symmetric: the larger number of row and column before the point, the smaller one behind it.
        let covariance =
            |row: usize, column: usize| row.max(column) as f64 + 0.1 * row.min(column) as f64 + 1.0;
        Odometry {
            pose: Pose { rotation, position_m: [0.0, 0.0, 2.0] },
            covariance: std::array::from_fn(|row| std::array::from_fn(|at| covariance(row, at))),
            velocity: Some([0.0, 0.0, 2.0, 0.0, -0.5, 0.0]),
            lost: None,
            breaks: 0,
            path_m: 3.0,
            points: [90, 100],
            mount: MOUNT,
        }
    }

    /// Three cells along x, two along y.
    pub fn grid() -> Grid {
        let cells = vec![0, 100, -1, 50, -1, 7];
        Grid { origin_m: [-1.5, 2.25], resolution_m: 0.25, width: 3, height: 2, cells }
    }

    /// Reads CDR from its header on.
    struct Reader<'a> {
        bytes: &'a [u8],
        at: usize,
    }

    impl Reader<'_> {
        fn number<const SIZE: usize>(&mut self) -> [u8; SIZE] {
            let begin = 4 + (self.at - 4).next_multiple_of(SIZE);
            self.at = begin + SIZE;
            self.bytes[begin..self.at].try_into().unwrap()
        }

        fn u32(&mut self) -> u32 {
            u32::from_le_bytes(self.number())
        }

        fn text(&mut self) -> String {
            let (length, begin) = (self.u32() as usize, self.at);
            self.at += length;
            String::from_utf8(self.bytes[begin..self.at - 1].to_vec()).unwrap()
        }

        fn f64s<const COUNT: usize>(&mut self) -> [f64; COUNT] {
            std::array::from_fn(|_| f64::from_le_bytes(self.number()))
        }

        /// The seconds and the frame of a header.
        fn header(&mut self) -> (u32, String) {
            let [sec, _] = [self.u32(), self.u32()];
            (sec, self.text())
        }
    }

    fn topic(path: &str) -> &'static Topic {
        TOPICS.iter().find(|topic| topic.path == path).unwrap()
    }

    fn message(path: &str, frame: &Matched, head: Heading<'_>) -> Vec<u8> {
        topic(path).encode(frame, head).unwrap()
    }

    /// Outer and inner frame, position and attitude of each transform.
    fn transforms(path: &str, frame: &Matched, head: Heading<'_>) -> Vec<Transform> {
        let bytes = message(path, frame, head);
        let mut reader = Reader { bytes: &bytes, at: 4 };
        let transforms = (0..reader.u32()).map(|_| {
            let (outer, inner) = (reader.header().1, reader.text());
            (outer, inner, reader.f64s(), reader.f64s())
        });
        transforms.collect()
    }

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12)
    }

    #[test]
    fn a_message_has_pose_and_velocity_of_the_vehicle_along_its_axes() {
        let frame = Matched { obstacles: None, ..matched() };
        let stamp = Duration::from_secs(7);
        let bytes = message("/odom", &frame, Heading { stamp, ..Heading::default() });
        let mut reader = Reader { bytes: &bytes, at: 4 };
        assert_eq!(reader.header(), (7, "odom".to_owned()));
        assert_eq!(reader.text(), "base_link");
        // The origin, which was a metre behind the camera, is now a metre to the right of it.
        assert!(close(&reader.f64s::<3>(), &[3.0, -1.0, 0.0]));
        let half = 0.5_f64.sqrt();
        assert!(close(&reader.f64s::<4>(), &[0.0, 0.0, half, half]));
        let covariance = reader.f64s::<36>();
        assert!(close(&covariance, odometry().of_vehicle().covariance.as_flattened()));
        // Roll is about the optical z, pitch about -x.
        assert!(close(&[covariance[3 * 6 + 3], covariance[3 * 6 + 4]], &[6.5, -6.3]));
        assert!(close(&reader.f64s::<6>(), &[2.0, -0.5, 0.0, 0.0, 0.0, 0.5]));
        let of_velocity = reader.f64s::<36>();
        for (place, value) in of_velocity.into_iter().enumerate() {
            assert_eq!(value, if place % 7 == 0 { 9999.0 } else { 0.0 }, "{place}");
        }
        assert_eq!(reader.at, bytes.len());
    }

    #[test]
    fn a_ground_plan_has_its_corner_and_its_cells() {
        let stamp = Duration::new(7, 5);
        let bytes = message("/grid", &matched(), Heading { stamp, ..Heading::default() });
        let mut reader = Reader { bytes: &bytes, at: 4 };
        assert_eq!(reader.header(), (7, "odom".to_owned()));
        assert_eq!([reader.u32(), reader.u32()], [7, 5]);
        assert_eq!(f32::from_bits(reader.u32()), 0.25);
        assert_eq!([reader.u32(), reader.u32()], [3, 2]);
        assert_eq!(reader.f64s::<7>(), [-1.5, 2.25, 0.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(reader.u32(), 6);
        assert_eq!(bytes[reader.at..], [0, 100, 255, 50, 255, 7]);
    }

    #[test]
    fn what_is_not_known_of_a_lost_rig_is_not_told() {
        let frame = |lost, velocity| {
            let odometry = Box::new(Odometry { lost, velocity, ..odometry() });
            Matched { obstacles: None, odometry: Some(odometry), ..matched() }
        };
        let told = |frame: &Matched, prefix: &str| {
            let head = Heading { prefix, ..Heading::default() };
            ["/odom", "/tf", "/tf_static"].map(|path| topic(path).is_in(frame, head))
        };
        let velocity = odometry().velocity;
        assert_eq!(told(&frame(None, velocity), ""), [true, true, true]);
        assert_eq!(told(&frame(None, velocity), "front_"), [true, false, true]);
        assert_eq!(told(&frame(None, None), ""), [false, true, true]);
        let lost = frame(Some(Lost::Unseen), velocity);
        assert_eq!(told(&lost, ""), [false, false, true]);
        assert!(topic("/odom").encode(&lost, Heading::default()).is_err());
        // The ground is followed, whether the rig is lost or not.
        let lost = Matched { obstacles: matched().obstacles, ..lost };
        let head = Heading { tracks_ground: true, ..Heading::default() };
        assert!(topic("/tf").is_in(&lost, head));
        assert_eq!(transforms("/tf", &lost, head).len(), 2);
    }

    #[test]
    fn every_frame_has_one_parent_and_one_root() {
        for (has_obstacles, tracks_ground, prefix) in
            [(false, false), (false, true), (true, false), (true, true)]
                .into_iter()
                .flat_map(|(has, tracks)| ["", "front_"].map(|prefix| (has, tracks, prefix)))
        {
            let whole = matched();
            let obstacles = whole.obstacles.clone().filter(|_| has_obstacles);
            let frame = Matched { obstacles, ..whole };
            let head = Heading { tracks_ground, prefix, ..Heading::default() };
            let all = [transforms("/tf_static", &frame, head), transforms("/tf", &frame, head)];
            let all = all.concat();
            let parents: std::collections::BTreeMap<&str, &str> =
                all.iter().map(|(outer, inner, ..)| (&**inner, &**outer)).collect();
            assert_eq!(parents.len(), all.len(), "{all:?}");
            let optical = format!("{prefix}right_optical_frame");
            let mut root = &*optical;
            while let Some(parent) = parents.get(root) {
                root = parent;
            }
            let is_placed = prefix.is_empty();
            assert_eq!(root, if is_placed { "odom" } else { "base_link" }, "{all:?}");
            let link = format!("{prefix}stereo_link");
            assert_eq!(parents.get(&*link), Some(&"base_link"));
            let scan = format!("{prefix}stereo_scan");
            assert_eq!(parents.contains_key(&*scan), has_obstacles, "{all:?}");
        }
    }

    #[test]
    fn a_camera_whose_mount_follows_the_ground_stays_where_the_odometry_saw_it() {
        // The obstacles have another mount than the odometry.
        let frame = matched();
        let (now, first) = (frame.obstacles.as_ref().unwrap().mount, odometry().mount);
        assert_ne!(now, first);
        let head = Heading { tracks_ground: true, ..Heading::default() };
        let all = transforms("/tf", &frame, head);
        assert_eq!((&*all[0].0, &*all[0].1), ("odom", "base_link"));
        let vehicle = vehicle(&frame).unwrap();
        assert!(close(&all[0].2, &vehicle.pose.position_m));
        assert!(close(&all[0].3, &vehicle.pose.quaternion()));
        let camera =
            |mount: &Mount| Pose { rotation: mount.rotation(), position_m: mount.position_m };
        let (expected, placed) =
            (camera(&first).then(&odometry().pose), vehicle.pose.then(&camera(&now)));
        assert!(close(&placed.position_m, &expected.position_m), "{placed:?}");
        assert!(close(placed.rotation.as_flattened(), expected.rotation.as_flattened()));
        // Without a change of the mount, all is as the odometry has it.
        let same = of_vehicle(&odometry(), &first);
        let plain = odometry().of_vehicle();
        assert_eq!((same.pose, same.velocity), (plain.pose, plain.velocity));
        assert!(close(same.covariance.as_flattened(), plain.covariance.as_flattened()));
        // The error of the camera's position alone is that of the vehicle's, along the axes of the first mount.
        let mut covariance = [[0.0; 6]; 6];
        covariance[2][2] = 4.0;
        let moved = of_vehicle(&Odometry { covariance, ..odometry() }, &now);
        assert!(close(&moved.covariance[0], &[4.0, 0.0, 0.0, 0.0, 0.0, 0.0]));
        // The camera looks to the left: its way ahead is the vehicle's to the left.
        assert!(close(&moved.velocity.unwrap()[..2], &[0.0, 1.75]), "{:?}", moved.velocity);
    }
}
