use std::time::Duration;

use proptest::prelude::*;

use super::*;
use stereod_core::frame::INVALID;
use stereod_core::pose::Pose;

const SIZE: [usize; 2] = [320, 240];

/// A level plane at a height above the ground (`x` ahead and `y` to the left are its limits), or a wall across the view.
#[derive(Clone, Copy)]
enum Surface {
    Level { z: f64, x: [f64; 2], y: [f64; 2] },
    Wall { x: f64, z: [f64; 2] },
}

use Surface::{Level, Wall};

const FLOOR: Surface = Level { z: 0.0, x: [-1e3, 1e3], y: [-1e3, 1e3] };

#[derive(Clone, Copy)]
struct Noise {
    /// Standard deviation in pixels.
    px: f64,
    /// Side of the blocks of pixels that err alike.
    side: usize,
    /// Share of pixels of any disparity.
    outliers: f64,
    seed: u64,
}

const QUIET: Noise = Noise { px: 0.3, side: 1, outliers: 0.05, seed: 1 };

fn camera(height_m: f64, [roll, pitch]: [f64; 2]) -> Mount {
    Mount { position_m: [1.0, 2.0, height_m], attitude_deg: [roll, pitch, 30.0] }
}

/// The views see infinity at a disparity of 3 px.
fn geometry(baseline_m: f64) -> StereoGeometry {
    StereoGeometry {
        focal_px: 260.0,
        baseline_m,
        centre_x_px: 165.0,
        centre_y_px: 118.0,
        right_centre_x_px: 162.0,
    }
}

/// Returns the map of these surfaces by casting a ray for each pixel.
fn map(mount: &Mount, geometry: &StereoGeometry, surfaces: &[Surface], noise: Noise) -> Vec<i16> {
    let level =
        Mount { attitude_deg: [mount.attitude_deg[0], mount.attitude_deg[1], 0.0], ..*mount };
    let (rows, height) = (level.rotation(), mount.position_m[2]);
    let mut random = Random(noise.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let blocks = SIZE.map(|side| side.div_ceil(noise.side));
    let errors: Vec<f64> = (0..blocks[0] * blocks[1]).map(|_| noise.px * random.gauss()).collect();
    let mut values = Vec::new();
    for y in 0..SIZE[1] {
        for x in 0..SIZE[0] {
            let u = (x as f64 - geometry.centre_x_px) / geometry.focal_px;
            let v = (y as f64 - geometry.centre_y_px) / geometry.focal_px;
            let ray = rows.map(|row| dot(row, [u, v, 1.0]));
            let hits = surfaces.iter().filter_map(|surface| surface.hit(ray, height));
            let depth = hits.fold(f64::INFINITY, f64::min);
            let error = errors[y / noise.side * blocks[0] + x / noise.side];
            let disparity = match random.unit() < noise.outliers {
                true => 3.0 + 64.0 * random.unit(),
                false => geometry.disparity_px(depth) + error,
            };
            let is_known = depth.is_finite() && disparity < 2000.0;
            values.push(if is_known { (disparity * 16.0).round() as i16 } else { INVALID });
        }
    }
    values
}

impl Surface {
    /// Returns the depth at which a ray from the camera meets the surface.
    fn hit(self, ray: [f64; 3], height: f64) -> Option<f64> {
        let depth = match self {
            Level { z, .. } => (z - height) / ray[2],
            Wall { x, .. } => x / ray[0],
        };
        let [x, y, z] = [depth * ray[0], depth * ray[1], height + depth * ray[2]];
        let is_within = |value: f64, [low, high]: [f64; 2]| low <= value && value <= high;
        let is_hit = match self {
            Level { x: along, y: across, .. } => is_within(x, along) && is_within(y, across),
            Wall { z: limits, .. } => is_within(z, limits),
        };
        (is_hit && depth > 0.0).then_some(depth)
    }
}

/// xorshift64* again, for noise of its own.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn gauss(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

fn find_in(values: &[i16], geometry: StereoGeometry, start: &Mount) -> Result<Ground, NoGround> {
    let view = View { width: SIZE[0], values, confidence: None, geometry };
    find_ground(&view, start, &Limits::default())
}

/// Finds the ground below a camera 1.2 m high, from level.
fn seen(attitude: [f64; 2], surfaces: &[Surface], noise: Noise) -> Result<Ground, NoGround> {
    let geometry = geometry(0.3);
    let values = map(&camera(1.2, attitude), &geometry, surfaces, noise);
    find_in(&values, geometry, &camera(0.0, [0.0; 2]))
}

/// Returns by how much roll, pitch and height differ from those of the true mount.
fn errors(ground: &Ground, truth: &Mount) -> [f64; 3] {
    let [roll, pitch, _] = ground.mount.attitude_deg;
    let due = truth.attitude_deg;
    [roll - due[0], pitch - due[1], ground.mount.position_m[2] - truth.position_m[2]]
}

fn is_close(ground: &Ground, attitude: [f64; 2], height_m: f64) -> bool {
    let errors = errors(ground, &camera(height_m, attitude));
    errors.iter().zip([0.3, 0.3, 0.02]).all(|(error, limit)| error.abs() < limit)
}

fn deviations(ground: &Ground) -> [f64; 3] {
    let Deviation { roll_deg, pitch_deg, height_m } = ground.deviation;
    [roll_deg, pitch_deg, height_m]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_attitude_is_found_within_its_deviation(
        attitude in [-20.0..20.0, -8.0..24.0],
        height in 0.3..3.0,
        px in 0.0..1.0,
        outliers in 0.0..0.5,
        seed in any::<u64>(),
    ) {
        let (truth, geometry) = (camera(height, attitude), geometry(height / 4.0));
        let values = map(&truth, &geometry, &[FLOOR], Noise { px, side: 1, outliers, seed });
        let ground = find_in(&values, geometry, &camera(0.0, [0.0; 2])).unwrap();
        // What is not seen stays.
        prop_assert_eq!(&ground.mount.position_m[..2], &truth.position_m[..2]);
        prop_assert_eq!(ground.mount.attitude_deg[2], truth.attitude_deg[2]);
        let of = errors(&ground, &truth);
        for ((error, sd), rest) in of.iter().zip(deviations(&ground)).zip([0.02, 0.02, 0.001]) {
            prop_assert!(error.abs() < 5.0 * sd + rest, "{:?} ± {:?}", of, ground.deviation);
        }
    }
}

/// Returns the ratios of the spread of roll, pitch and height over seeds to the stated deviations.
fn spread_by_stated(noise: Noise) -> [f64; 3] {
    const SEEDS: u64 = 40;
    let truth = camera(1.2, [3.0, 6.0]);
    let (mut squares, mut stated) = ([0.0; 3], [0.0; 3]);
    for seed in 0..SEEDS {
        let surfaces = [FLOOR, Wall { x: 12.0, z: [0.0, 9.0] }];
        let ground = seen([3.0, 6.0], &surfaces, Noise { seed: seed + 1, ..noise }).unwrap();
        let (errors, sd) = (errors(&ground, &truth), deviations(&ground));
        for i in 0..3 {
            squares[i] += errors[i] * errors[i];
            stated[i] += sd[i];
        }
    }
    [0, 1, 2].map(|i| (squares[i] / SEEDS as f64).sqrt() / (stated[i] / SEEDS as f64))
}

#[test]
fn the_stated_deviation_is_the_spread_over_seeds() {
    for (px, side, outliers) in
        [(0.2, 1, 0.0), (1.0, 1, 0.1), (0.5, 1, 0.5), (0.5, 8, 0.1), (0.5, 16, 0.0)]
    {
        let ratios = spread_by_stated(Noise { px, side, outliers, seed: 0 });
        assert!(ratios.iter().all(|ratio| (0.5..2.0).contains(ratio)), "{px} {side}: {ratios:?}");
    }
}

#[test]
fn walls_and_tables_are_not_the_ground() {
    let wall = Wall { x: 3.0, z: [0.0, 9.0] };
    let near = Wall { x: 2.0, z: [0.0, 9.0] };
    let far = Wall { x: 6.0, z: [0.0, 9.0] };
    let table = Level { z: 0.75, x: [0.3, 1.2], y: [-0.8, 0.9] };
    let bonnet = Level { z: 0.9, x: [0.0, 0.9], y: [-0.9, 0.9] };
    let box_top = Level { z: 0.4, x: [1.5, 2.5], y: [0.1, 0.9] };
    let verge = Level { z: 0.15, x: [0.0, 99.0], y: [0.8, 99.0] };
    let cases: [(&str, [f64; 2], &[Surface]); 7] = [
        ("wall", [0.0, 5.0], &[FLOOR, wall]),
        ("near wall", [2.0, 15.0], &[FLOOR, near]),
        ("table", [1.0, 20.0], &[FLOOR, far, table]),
        ("bonnet", [0.0, 5.0], &[FLOOR, bonnet]),
        ("box", [-4.0, 12.0], &[FLOOR, box_top, Wall { x: 1.5, z: [0.0, 0.4] }]),
        ("raised verge", [0.0, 8.0], &[FLOOR, verge]),
        ("empty", [5.0, -5.0], &[FLOOR]),
    ];
    for (name, attitude, surfaces) in cases {
        let ground = seen(attitude, surfaces, QUIET).unwrap_or_else(|no| panic!("{name}: {no}"));
        assert!(is_close(&ground, attitude, 1.2), "{name}: {ground:?}");
    }
}

#[test]
fn stairs_that_lead_up_leave_the_floor() {
    let steps = (0..8).flat_map(|i| {
        let (x, z) = (3.0 + 0.28 * f64::from(i), 0.18 * f64::from(i));
        let (x2, z2) = (x + 0.28, z + 0.18);
        [Wall { x, z: [z, z2] }, Level { z: z2, x: [x, x2], y: [-9.0, 9.0] }]
    });
    let surfaces: Vec<_> = [FLOOR].into_iter().chain(steps).collect();
    let ground = seen([0.0, 20.0], &surfaces, QUIET).unwrap();
    assert!(is_close(&ground, [0.0, 20.0], 1.2), "{ground:?}");
}

#[test]
fn what_is_no_ground_is_refused_with_the_reason() {
    let wall = |x| Wall { x, z: [-9.0, 9.0] };
    let told = |surfaces: &[Surface], attitude, outliers| {
        seen(attitude, surfaces, Noise { outliers, ..QUIET }).unwrap_err()
    };
    for attitude in [[0.0, 0.0], [4.0, 15.0], [0.0, -10.0]] {
        let Err(NoGround::Wall { distance_m }) = seen(attitude, &[wall(2.0)], QUIET) else {
            panic!("{:?}", seen(attitude, &[wall(2.0)], QUIET));
        };
        assert!((distance_m - 2.0).abs() < 0.05, "{distance_m}");
    }
    let NoGround::Tilted { roll_deg, pitch_deg, .. } = told(&[FLOOR], [2.0, 50.0], 0.05) else {
        panic!("{}", told(&[FLOOR], [2.0, 50.0], 0.05));
    };
    assert!((roll_deg - 2.0).abs() < 0.3 && (pitch_deg - 50.0).abs() < 0.3);
    // With a rough attitude it is found.
    let geometry = geometry(0.3);
    let values = map(&camera(1.2, [2.0, 50.0]), &geometry, &[FLOOR], QUIET);
    assert!(is_close(
        &find_in(&values, geometry, &camera(0.0, [0.0, 40.0])).unwrap(),
        [2.0, 50.0],
        1.2
    ));
    for (name, surfaces) in [("noise", vec![FLOOR]), ("noise on a wall", vec![FLOOR, wall(2.0)])] {
        let reason = told(&surfaces, [0.0, 5.0], 1.0);
        assert!(
            matches!(reason, NoGround::NoPlane { .. } | NoGround::Spread { .. }),
            "{name}: {reason}"
        );
    }
    assert_eq!(told(&[], [0.0; 2], 0.0), NoGround::FewPixels { known: 0, least: 150 });
}

#[test]
fn heights_beyond_the_limits_and_unusable_input_are_refused() {
    let (geometry, start) = (geometry(0.3), camera(0.0, [0.0; 2]));
    let values = map(&camera(1.2, [0.0, 5.0]), &geometry, &[FLOOR], QUIET);
    let view = View { width: SIZE[0], values: &values, confidence: None, geometry };
    let limits = Limits { height_m: [2.0, 3.0], ..Limits::default() };
    let reason = find_ground(&view, &start, &limits).unwrap_err();
    assert!(
        matches!(reason, NoGround::Height { height_m, .. } if (height_m - 1.2).abs() < 0.02),
        "{reason}"
    );
    let small = [255; 7];
    for view in [
        View { width: 0, ..view },
        View { width: 321, ..view },
        View { values: &[], ..view },
        View { confidence: Some(&small), ..view },
        View { geometry: StereoGeometry { baseline_m: 0.0, ..geometry }, ..view },
        View { geometry: StereoGeometry { focal_px: f64::NAN, ..geometry }, ..view },
    ] {
        let reason = find_ground(&view, &start, &Limits::default());
        assert!(matches!(reason, Err(NoGround::Unusable(_))), "{reason:?}");
    }
}

#[test]
fn only_sure_pixels_count() {
    let geometry = geometry(0.3);
    let mut values = map(&camera(1.2, [0.0, 10.0]), &geometry, &[FLOOR], QUIET);
    let table = [FLOOR, Level { z: -0.5, x: [-9.0, 99.0], y: [-9.0, 99.0] }];
    let deep = map(&camera(1.2, [0.0, 10.0]), &geometry, &table[1..], QUIET);
    // A mirror-like floor: two of three pixels show what is reflected in it.
    let mut sure = vec![255; values.len()];
    for i in (0..values.len()).filter(|i| (i / 320 + i) % 3 > 0) {
        (values[i], sure[i]) = (deep[i], 100);
    }
    let find = |confidence| {
        let view = View { width: SIZE[0], values: &values, confidence, geometry };
        find_ground(&view, &camera(0.0, [0.0; 2]), &Limits::default()).unwrap()
    };
    assert!(is_close(&find(Some(&sure)), [0.0, 10.0], 1.2));
    assert!(is_close(&find(None), [0.0, 10.0], 1.7));
}

#[test]
fn a_camera_that_looks_steeply_down_is_found() {
    let geometry = geometry(0.3);
    let truth = Mount { position_m: [0.0, 0.0, 2.5], attitude_deg: [0.0, 75.0, 0.0] };
    let values = map(&truth, &geometry, &[FLOOR], QUIET);
    let start = Mount { position_m: [0.0; 3], attitude_deg: [0.0, 60.0, 0.0] };
    let ground = find_in(&values, geometry, &start).unwrap();
    assert!((ground.mount.position_m[2] - 2.5).abs() < 0.03, "{ground:?}");
    let cosine = dot(down_of(&ground.mount), down_of(&truth));
    assert!(cosine > 1.0 - 1e-4, "{ground:?}");
}

/// A vehicle's map, and the tracker's answer at a time in milliseconds.
fn told(tracker: &mut Tracker, attitude: [f64; 2], height: f64, at_ms: u64) -> Tracked {
    let geometry = geometry(0.3);
    let surfaces: &[Surface] = if height > 0.0 { &[FLOOR] } else { &[] };
    let values = map(&camera(height, attitude), &geometry, surfaces, QUIET);
    let view = View { width: SIZE[0], values: &values, confidence: None, geometry };
    tracker.update(&view, Duration::from_millis(at_ms), None)
}

#[test]
fn the_tracker_smooths_holds_and_returns() {
    let configured = camera(1.2, [0.0, 10.0]);
    let mut tracker = Tracker::new(configured, Tracking::default()).unwrap();
    let pitch = |told: &Tracked| told.mount.attitude_deg[1];
    let none = [0.0; 2];
    let first = told(&mut tracker, none, 0.0, 0);
    assert_eq!((first.state, first.mount), (State::Configured, configured));
    let first = told(&mut tracker, [0.0, 12.0], 1.2, 100);
    assert!(first.state == State::Tracked && (pitch(&first) - 12.0).abs() < 0.2, "{first:?}");
    // After one time constant 63 % of a step is passed.
    let next = told(&mut tracker, [0.0, 16.0], 1.2, 300);
    assert!((pitch(&next) - (12.0 + 4.0 * 0.632)).abs() < 0.2, "{next:?}");
    let held = told(&mut tracker, none, 0.0, 1300);
    assert_eq!((held.state, held.mount), (State::Held, next.mount));
    assert!(held.ground.is_err());
    let lost = told(&mut tracker, none, 0.0, 1301);
    assert_eq!((lost.state, lost.mount), (State::Configured, configured));
    // Afterwards, and in a recording that begins again, nothing is smoothed with what was before.
    for at in [1400, 5] {
        let again = told(&mut tracker, [3.0, 5.0], 1.3, at);
        assert!(again.state == State::Tracked && (pitch(&again) - 5.0).abs() < 0.2, "{again:?}");
        assert!((again.mount.position_m[2] - 1.3).abs() < 0.02, "{again:?}");
        assert_eq!(&again.mount.position_m[..2], &configured.position_m[..2]);
    }
}

#[test]
fn the_attitude_turns_with_the_pose_without_a_lag() {
    let configured = camera(1.2, [0.0, 10.0]);
    let mut tracker = Tracker::new(configured, Tracking::default()).unwrap();
    let mut told = |pitch: f64, height: f64, at_ms: u64, part: u32| {
        let (sin, cos) = pitch.to_radians().sin_cos();
        // The camera's axes in those of a level one: it looks down by the pitch.
        let rotation = [[1.0, 0.0, 0.0], [0.0, cos, sin], [0.0, -sin, cos]];
        let geometry = geometry(0.3);
        let surfaces: &[Surface] = if height > 0.0 { &[FLOOR] } else { &[] };
        let values = map(&camera(height, [0.0, pitch]), &geometry, surfaces, QUIET);
        let view = View { width: SIZE[0], values: &values, confidence: None, geometry };
        let pose = Some((Pose { rotation, position_m: [0.0; 3] }, part));
        tracker.update(&view, Duration::from_millis(at_ms), pose).mount.attitude_deg[1]
    };
    assert!((told(12.0, 1.2, 100, 0) - 12.0).abs() < 0.2);
    let now = told(16.0, 1.2, 120, 0);
    assert!((now - 16.0).abs() < 0.2, "{now}");
    // While no ground is seen, it turns, too.
    let now = told(9.0, 0.0, 140, 0);
    assert!((now - 9.0).abs() < 0.2, "{now}");
    // Nobody knows how it turned in a break of the path.
    let now = told(13.0, 0.0, 160, 1);
    assert!((now - 9.0).abs() < 0.2, "{now}");
}

#[test]
fn the_tracker_keeps_to_its_limits() {
    let configured = camera(1.2, [0.0, 10.0]);
    for (attitude, height, is_within) in [
        ([0.0, 18.0], 1.2, true),
        ([0.0, 22.0], 1.2, false),
        ([-8.0, 10.0], 1.2, true),
        ([-12.0, 10.0], 1.2, false),
        ([0.0, 10.0], 1.45, true),
        ([0.0, 10.0], 1.6, false),
        ([0.0, 10.0], 0.8, false),
    ] {
        let mut tracker = Tracker::new(configured, Tracking::default()).unwrap();
        let told = told(&mut tracker, attitude, height, 10);
        let state = if is_within { State::Tracked } else { State::Configured };
        assert_eq!(told.state, state, "{attitude:?} {height}: {:?}", told.ground);
    }
    assert_eq!(Tracker::new(camera(0.0, [0.0; 2]), Tracking::default()).err(), Some(NoHeight));
    assert_eq!(Tracker::new(camera(f64::NAN, [0.0; 2]), Tracking::default()).err(), Some(NoHeight));
}
