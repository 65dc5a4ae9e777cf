//! Attitude and height of the camera of a moving vehicle, pair by pair.

use std::time::Duration;

use super::fit::{Plane, sample};
use super::{Effort, Ground, Limits, NoGround, Search, View, down_of, mounted};
use stereod_core::obstacles::Mount;
use stereod_core::pose::{Pose, transposed, turned};

const QUICK: Effort = Effort { points: 2500, coarse: 800, draws: 400, kept: 2, rounds: [3, 2] };

/// Settings of a [`Tracker`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tracking {
    /// Roll and pitch each stay within this many degrees of the configured mount.
    pub tilt_deg: f64,
    /// The height stays within this many metres of the configured one.
    pub height_m: f64,
    /// Time constant of the smoothing; 0 takes each pair as it is.
    pub smoothing: Duration,
    /// For how long the last attitude holds while no ground is found.
    pub hold: Duration,
    /// Pixels of less confidence are not used.
    pub least_confidence: u8,
}

/// Follows roll, pitch and height of the camera by the ground.
#[derive(Clone, Debug)]
pub struct Tracker {
    configured: Mount,
    settings: Tracking,
    limits: Limits,
    last: Option<Last>,
}

/// The smoothed state, when ground was last found.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// Direction straight down in the optical axes.
    down: [f64; 3],
    height_m: f64,
    at: Duration,
    /// Pose of the camera, and the part of its path.
    pose: Option<(Pose, u32)>,
}

/// Origin of the mount that a [`Tracker`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// This pair shows the ground.
    Tracked,
    /// An earlier pair showed it.
    Held,
    /// The settings: no ground was found for longer than [`Tracking::hold`].
    Configured,
}

/// Answer of a [`Tracker`] to a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tracked {
    pub mount: Mount,
    pub state: State,
    /// The ground in this pair, before smoothing, or the reason why there is none.
    pub ground: Result<Ground, NoGround>,
}

/// The configured mount says no height above the ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the ground can only be followed near a known height: set z_m of the mount, the height of the left camera above the \
     ground in metres (`stereod calibration mount` finds it)"
)]
pub struct NoHeight;

impl Default for Tracking {
    fn default() -> Self {
        Self {
            tilt_deg: 10.0,
            height_m: 0.3,
            smoothing: Duration::from_millis(200),
            hold: Duration::from_secs(1),
            least_confidence: Limits::default().least_confidence,
        }
    }
}

impl Tracker {
    /// Creates a tracker that begins with the configured mount.
    ///
    /// # Errors
    /// If the mount's height is not positive.
    pub fn new(configured: Mount, settings: Tracking) -> Result<Self, NoHeight> {
        let height = configured.position_m[2];
        if height.is_nan() || height <= 0.0 {
            return Err(NoHeight);
        }
        let limits = Limits {
            tilt_deg: settings.tilt_deg,
            height_m: [(height - settings.height_m).max(0.02), height + settings.height_m],
            least_confidence: settings.least_confidence,
            ..Limits::default()
        };
        Ok(Self { configured, settings, limits, last: None })
    }

    /// Returns the mount for a pair, `at` being the capture time of its left image. After a step back in time, as of a
    /// recording that begins again, earlier pairs are forgotten. `pose` is that of the camera, if it is known
    /// ([`Odometry::known`](stereod_core::pose::Odometry::known)): the attitude turns with it, so that the smoothing does
    /// not lag behind.
    pub fn update(&mut self, view: &View, at: Duration, pose: Option<(Pose, u32)>) -> Tracked {
        let past =
            |last: &Last| at.checked_sub(last.at).is_some_and(|age| age <= self.settings.hold);
        self.last = self.last.filter(past).map(|last| last.turned(pose));
        let ground = self.find(view);
        let state = match (&ground, self.last) {
            (Ok(ground), last) => {
                self.last = Some(Last { pose, ..self.smoothed(last, ground, at) });
                State::Tracked
            }
            (Err(_), Some(_)) => State::Held,
            (Err(_), None) => State::Configured,
        };
        let told = |last: Last| mounted(&self.configured, last.down, last.height_m);
        Tracked { mount: self.last.map_or(self.configured, told), state, ground }
    }

    fn find(&self, view: &View) -> Result<Ground, NoGround> {
        view.check()?;
        let (start, limits) = (&self.configured, &self.limits);
        let search = Search::new(view, start, limits, QUICK);
        let points = sample(view, limits.least_confidence, QUICK.points);
        let (down, height_m) = match self.last {
            Some(last) => (last.down, last.height_m),
            None => (down_of(start), start.position_m[2]),
        };
        search.run(&points, Some(Plane(down.map(|of| of * search.scale / height_m))))
    }

    /// Returns the state after this pair: a low-pass filter of first order.
    fn smoothed(&self, last: Option<Last>, ground: &Ground, at: Duration) -> Last {
        let (down, height_m) = (down_of(&ground.mount), ground.mount.position_m[2]);
        let constant = self.settings.smoothing.as_secs_f64();
        let Some(last) = last.filter(|_| constant > 0.0) else {
            return Last { down, height_m, at, pose: None };
        };
        let gain = 1.0 - (-at.saturating_sub(last.at).as_secs_f64() / constant).exp();
        let mixed = |old: f64, new: f64| old + gain * (new - old);
        let down = Plane([0, 1, 2].map(|i| mixed(last.down[i], down[i]))).normal();
        Last { down, height_m: mixed(last.height_m, height_m), at, pose: None }
    }
}

impl Last {
    /// Returns the state after the rotation of the camera to a pose.
    fn turned(self, pose: Option<(Pose, u32)>) -> Self {
        let (Some((now, part)), Some((before, part_before))) = (pose, self.pose) else {
            return Self { pose: pose.or(self.pose), ..self };
        };
        if part != part_before {
            return Self { pose, ..self };
        }
        let down = turned(&transposed(&now.rotation), turned(&before.rotation, self.down));
        Self { down, pose, ..self }
    }
}
