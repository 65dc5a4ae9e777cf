//! Plane of the ground in a disparity map, which tells attitude and height of the camera.
//!
//! A plane of the scene is a plane in disparity, too (Labayrade et al., Real time obstacle detection in stereovision on
//! non flat road geometry through "v-disparity" representation, IV 2002; Se and Brady, Ground plane estimation, error
//! analysis and applications, Robotics and Autonomous Systems 39, 2002). With the unit vector n from the camera straight
//! down in its optical axes, its height h above the ground, focal length f and baseline B, pixel (x, y) of the ground
//! has the parallax f B / h (n1 (x - cx) / f + n2 (y - cy) / f + n3). [`Plane`] holds f B / h n.
//!
//! Candidates are planes through three random pixels (RANSAC) of a grid, with a fixed seed. The best are fitted by
//! iteratively reweighted least squares with Tukey's bisquare weights, without the surroundings of things that stand on
//! them. The lowest with enough support is the ground.

mod fit;
#[cfg(test)]
mod tests;
mod tracker;

pub use tracker::{NoHeight, State, Tracked, Tracker, Tracking};

use crate::lines::rounded;
use fit::{Fit, Plane, Point, candidates, sample};
use stereod_core::frame::{Matched, StereoGeometry};
use stereod_core::obstacles::Mount;

/// Disparity of a pair, in which the ground is sought.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Width of the map in pixels.
    pub width: usize,
    /// Disparity in 1/16 px, row by row; [`stereod_core::frame::INVALID`] if unknown.
    pub values: &'a [i16],
    /// Confidence of each pixel, as in [`Matched::confidence`]; `None` trusts all alike.
    pub confidence: Option<&'a [u8]>,
    pub geometry: StereoGeometry,
}

/// Limits within which a plane is taken for the ground.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Roll and pitch each differ by at most this many degrees from the starting mount.
    pub tilt_deg: f64,
    /// Least and greatest height of the camera above the ground in metres.
    pub height_m: [f64; 2],
    /// Pixels of less confidence are not used.
    pub least_confidence: u8,
    /// Greatest standard deviation of the pixels from the plane, in pixels of disparity.
    pub spread_px: f64,
    /// Fewest pixels of the grid on the ground.
    pub least_points: usize,
    /// Smallest share of the known pixels on the ground.
    pub least_share: f64,
}

/// The ground as one pair shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ground {
    /// The starting mount with the roll, pitch and height (`position_m[2]`) that were found.
    pub mount: Mount,
    pub deviation: Deviation,
    /// Pixels of the grid on the ground.
    pub points: usize,
    /// Their share of the known pixels of the grid.
    pub share: f64,
    /// Standard deviation of the pixels from the plane, in pixels of disparity.
    pub spread_px: f64,
}

/// Standard deviations of the fit. They contain the spread of the pixels about the plane and the correlation of
/// neighbours, but neither errors of the calibration nor bends of the ground.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Deviation {
    pub roll_deg: f64,
    pub pitch_deg: f64,
    pub height_m: f64,
}

/// Reason why no ground is found, and what helps.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum NoGround {
    #[error("the map, its confidence or the cameras' geometry is not usable: {0}")]
    Unusable(&'static str),
    #[error(
        "only {known} pixels of the grid have a disparity that is sure enough, and {least} are needed: give the scene \
         light and texture, or lower the least confidence"
    )]
    FewPixels { known: usize, least: usize },
    #[error(
        "no plane near the expected attitude holds {:.0} % of the known pixels: let the ground fill more of the image, or \
         state the camera's rough roll and pitch", 100.0 * least_share
    )]
    NoPlane { least_share: f64 },
    #[error(
        "the pixels near the best plane scatter by {spread_px:.2} px or spread without a limit, so it is no even ground \
         (limit: {limit_px:.2} px): take an even place, or check the calibration"
    )]
    Spread { spread_px: f64, limit_px: f64 },
    #[error(
        "the part of the ground in sight is too small: its tilt is known to {tilt_deg:.1} degrees only; let the ground fill \
         more of the image"
    )]
    Undetermined { tilt_deg: f64 },
    #[error(
        "the largest plane has a roll of {roll_deg:.1} and a pitch of {pitch_deg:.1} degrees, more than {limit_deg:.0} from \
         the expected attitude: if it is the ground, state these as the rough roll and pitch; else let the ground fill \
         more of the image"
    )]
    Tilted { roll_deg: f64, pitch_deg: f64, limit_deg: f64 },
    #[error(
        "the largest plane stands upright, {distance_m:.2} m away, and no ground is in sight: turn the camera away from \
         the wall, or let the ground fill more of the image"
    )]
    Wall { distance_m: f64 },
    #[error(
        "the plane found is {height_m:.2} m below the camera, outside {:.2} to {:.2} m: check the baseline of the \
         calibration and the height that the mount states", limits_m[0], limits_m[1]
    )]
    Height { height_m: f64, limits_m: [f64; 2] },
}

/// A plane whose normal lies farther than this from the expected one, in degrees, is called a wall.
const WALL_DEG: f64 = 60.0;

/// Greatest standard deviation of the tilt in degrees, and of the height as a share of it.
const DETERMINED: (f64, f64) = (3.0, 0.2);

/// Fewest blocks of the image with ground. Their spread is the standard deviation ([`Fit`]).
const LEAST_BLOCKS: usize = 6;

/// A lower plane is the ground if it has this share of the support of the largest one.
const LOWER_SHARE: f64 = 0.2;

/// Planes that may lie one above the other: a bonnet, a table, a kerb.
const LEVELS: usize = 4;

/// Number of pixels and rounds that a search may use.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Pixels of the grid.
    points: usize,
    /// Pixels for the fits of candidates.
    coarse: usize,
    /// Planes through three random pixels.
    draws: usize,
    /// Candidates that are fitted.
    kept: usize,
    /// Rounds of a fit, and how often it begins anew without the things that stand on the plane.
    rounds: [usize; 2],
}

const THOROUGH: Effort =
    Effort { points: 4000, coarse: 4000, draws: 6000, kept: 6, rounds: [10, 2] };

impl Default for Limits {
    fn default() -> Self {
        Self {
            tilt_deg: 25.0,
            height_m: [0.02, 100.0],
            least_confidence: 128,
            spread_px: 2.0,
            least_points: 150,
            least_share: 0.05,
        }
    }
}

impl<'a> View<'a> {
    /// Returns the disparity of a matched pair; `None` if the cameras are not known.
    pub fn of(matched: &'a Matched) -> Option<Self> {
        Some(Self {
            width: matched.disparity.width(),
            values: matched.disparity.values(),
            confidence: matched.confidence.as_ref().map(|confidence| confidence.pixels()),
            geometry: matched.geometry?,
        })
    }

    fn check(&self) -> Result<(), NoGround> {
        let StereoGeometry { focal_px, baseline_m, centre_x_px, centre_y_px, right_centre_x_px } =
            self.geometry;
        let size = self.values.len();
        let are_real = [focal_px, baseline_m, centre_x_px, centre_y_px, right_centre_x_px]
            .iter()
            .all(|number| number.is_finite());
        if self.width == 0 || size == 0 || !size.is_multiple_of(self.width) {
            Err(NoGround::Unusable("it has no whole rows"))
        } else if self.confidence.is_some_and(|confidence| confidence.len() != size) {
            Err(NoGround::Unusable("the confidence has another size"))
        } else if !are_real || focal_px <= 0.0 || baseline_m <= 0.0 {
            Err(NoGround::Unusable("focal length and baseline must be positive"))
        } else {
            Ok(())
        }
    }
}

/// Finds the ground near the attitude of `start`, of which yaw, x and y are kept. For a camera that looks straight down, roll
/// and yaw are one rotation, so the standard deviation of the roll is large.
///
/// # Errors
/// If no plane within the limits has enough pixels; the error says why and what helps.
pub fn find_ground(view: &View, start: &Mount, limits: &Limits) -> Result<Ground, NoGround> {
    view.check()?;
    let search = Search::new(view, start, limits, THOROUGH);
    let points = sample(view, limits.least_confidence, search.effort.points);
    search.run(&points, None).or_else(|reason| {
        // Any other plane says more than that there is no ground.
        let fit = search.best(&points, search.least(&points, points.len()), None, Gate::Open);
        let fit = fit.map_err(|_| reason)?;
        search.check_pose(&fit.plane)?;
        Ok(search.ground(&fit, points.len()))
    })
}

/// One search for the ground.
struct Search<'a> {
    /// Focal length times baseline, in pixels and metres.
    scale: f64,
    start: &'a Mount,
    /// Rotation of the starting mount without its yaw.
    rows: [[f64; 3]; 3],
    limits: &'a Limits,
    effort: Effort,
}

/// Whether planes far from the expected attitude and height count.
#[derive(Clone, Copy, PartialEq)]
enum Gate {
    Open,
    Closed,
}

impl<'a> Search<'a> {
    fn new(view: &View, start: &'a Mount, limits: &'a Limits, effort: Effort) -> Self {
        let [roll, pitch, _] = start.attitude_deg;
        let rows = Mount { attitude_deg: [roll, pitch, 0.0], ..*start }.rotation();
        let scale = view.geometry.focal_px * view.geometry.baseline_m;
        Self { scale, start, rows, limits, effort }
    }

    /// Returns the lowest plane with enough support. `known`: a plane to try in any case.
    fn run(&self, points: &[Point], known: Option<Plane>) -> Result<Ground, NoGround> {
        let (found, least) = (points.len(), self.limits.least_points);
        if found < least {
            return Err(NoGround::FewPixels { known: found, least });
        }
        let coarse = &points[..self.effort.coarse.min(found)];
        let least = self.least(points, coarse.len());
        let mut lowest = self.best(coarse, least, known, Gate::Closed)?;
        let mut largest = lowest.inside;
        for _ in 1..LEVELS {
            let least = least.max((LOWER_SHARE * largest as f64) as usize);
            match self.best(&lowest.below(coarse), least, None, Gate::Closed) {
                // The height is the inverse of its length.
                Ok(fit) if fit.plane.length() < lowest.plane.length() => lowest = fit,
                _ => break,
            }
            largest = largest.max(lowest.inside);
        }
        let fit = lowest.settled(points, self.effort.rounds).ok_or(self.no_plane())?;
        self.check_fit(&fit, self.least(points, found))?;
        self.check_pose(&fit.plane)?;
        Ok(self.ground(&fit, found))
    }

    /// Returns the plane that holds the most of these points, and at least so many. Fails with the reason against the
    /// plane that holds the most.
    fn best(
        &self,
        points: &[Point],
        least: usize,
        known: Option<Plane>,
        gate: Gate,
    ) -> Result<Fit, NoGround> {
        let passes = |plane: &Plane| gate == Gate::Open || self.check_pose(plane).is_ok();
        let Effort { draws, kept, rounds, .. } = self.effort;
        let (mut best, mut failure) = (None::<Fit>, (0, self.no_plane()));
        for plane in candidates(points, known, [draws, kept], passes) {
            let Some(fit) = Fit::rough(plane).settled(points, rounds) else { continue };
            let pose = || if gate == Gate::Open { Ok(()) } else { self.check_pose(&fit.plane) };
            match self.check_fit(&fit, least).and_then(|()| pose()) {
                Ok(()) if best.as_ref().is_none_or(|best| best.score < fit.score) => {
                    best = Some(fit);
                }
                Err(reason) if fit.inside > failure.0 => failure = (fit.inside, reason),
                _ => {}
            }
        }
        best.ok_or(failure.1)
    }

    fn no_plane(&self) -> NoGround {
        NoGround::NoPlane { least_share: self.limits.least_share }
    }

    /// Returns how many of the first `count` points must be on the ground.
    fn least(&self, points: &[Point], count: usize) -> usize {
        let part = count as f64 / points.len().max(1) as f64;
        let least = part * self.limits.least_points as f64;
        least.max(self.limits.least_share * count as f64) as usize
    }

    /// Checks that a plane holds enough points, that they lie on it and do not merely cross it, and that they
    /// determine it.
    fn check_fit(&self, fit: &Fit, least: usize) -> Result<(), NoGround> {
        if fit.inside < least {
            return Err(self.no_plane());
        }
        // Points of a wall that crosses the plane are as frequent farther from it: twice as many in twice the room.
        if fit.crosses || fit.around > fit.inside || fit.spread_px > self.limits.spread_px {
            let limit_px = self.limits.spread_px;
            return Err(NoGround::Spread { spread_px: fit.spread_px, limit_px });
        }
        let (tilt, height) = fit.uncertainty();
        if fit.blocks < LEAST_BLOCKS || tilt.to_degrees() > DETERMINED.0 || height > DETERMINED.1 {
            return Err(NoGround::Undetermined { tilt_deg: tilt.to_degrees() });
        }
        Ok(())
    }

    /// Checks attitude and height.
    fn check_pose(&self, plane: &Plane) -> Result<(), NoGround> {
        let Limits { tilt_deg: limit_deg, height_m: limits_m, .. } = *self.limits;
        let (down, height_m) = (plane.normal(), self.scale / plane.length());
        let [ahead, left, up] = self.rows.map(|row| dot(row, down));
        let [roll, pitch] =
            [(-left).atan2(-up), ahead.clamp(-1.0, 1.0).asin()].map(f64::to_degrees);
        if roll.abs() > limit_deg || pitch.abs() > limit_deg {
            let tilt_deg = (-up).clamp(-1.0, 1.0).acos().to_degrees();
            if tilt_deg > WALL_DEG {
                return Err(NoGround::Wall { distance_m: height_m });
            }
            let attitude_deg = mounted(self.start, down, height_m).attitude_deg;
            let [roll_deg, pitch_deg, _] = attitude_deg.map(|angle| rounded(angle, 1));
            return Err(NoGround::Tilted { roll_deg, pitch_deg, limit_deg });
        }
        if !(limits_m[0]..=limits_m[1]).contains(&height_m) {
            return Err(NoGround::Height { height_m, limits_m });
        }
        Ok(())
    }

    /// Returns what a plane of `of` known points says.
    fn ground(&self, fit: &Fit, of: usize) -> Ground {
        let height_m = self.scale / fit.plane.length();
        let [roll, pitch, share] = fit.deviations();
        let [roll_deg, pitch_deg] = [roll, pitch].map(|angle| angle.to_degrees().min(180.0));
        Ground {
            mount: mounted(self.start, fit.plane.normal(), height_m),
            deviation: Deviation { roll_deg, pitch_deg, height_m: share * height_m },
            points: fit.inside,
            share: fit.inside as f64 / of as f64,
            spread_px: fit.spread_px,
        }
    }
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns the direction straight down in the optical axes.
fn down_of(mount: &Mount) -> [f64; 3] {
    mount.rotation()[2].map(|up| -up)
}

/// Returns the starting mount with the attitude for which `down` of the optical axes leads straight down.
fn mounted(start: &Mount, down: [f64; 3], height_m: f64) -> Mount {
    let [x, y, _] = start.position_m;
    let position_m = [x, y, height_m];
    let [right, below, ahead] = down;
    let (roll, pitch) = (right.atan2(below), ahead.clamp(-1.0, 1.0).asin());
    let attitude_deg = [roll.to_degrees(), pitch.to_degrees(), start.attitude_deg[2]];
    Mount { position_m, attitude_deg }
}
