//! Path of a rig from pair to pair, as long as each is found again: frame to key frame.

use std::time::Duration;

use super::fit::{self, Fit};
use super::key::{KeyFrame, View};
use super::rigid::{Placed, UNKNOWNS, moved, scaled};
use crate::pose::{Lost, Pose};

/// Share of a key frame's points that have to remain, in view and found.
const OVERLAP: f32 = 0.7;

/// With fewer points that agree, a pair with twice as many is a better key frame, unless this share of the points remains
/// in view, because the rig rests.
const FEW: usize = 100;
const AT_REST: f32 = 0.98;

/// Least points that agree.
const AGREE_MIN: usize = 20;

/// Share of the points found that have to agree: most of an image may move by itself.
const AGREE_SHARE: f32 = 0.25;

/// With this many times the points of the expected motion, another one with which most of these agree, too, is better.
const MORE: f32 = 1.25;

/// Up to the first of these, the expected motion is better than one that its points contradict; beyond the second one,
/// that is better.
const DOUBT: [f32; 2] = [2.5, 6.0];

/// The same if the motion before is not known.
const NO_DOUBT: f32 = 1.6;

/// Share of the points in view that agree with a motion beyond doubt.
const CLEAR_SHARE: f32 = 0.4;

/// Share of the points in view that have to agree.
const SEEN_SHARE: f32 = 0.15;

/// Both after a cut, or while lost: what is found by chance is not the same scene.
const SURE_SHARES: [f32; 2] = [0.5, 0.25];

/// One of so many points is looked for near a motion that may be wrong. It is given up if less than this part of the
/// share that has to agree does.
const PROBE: usize = 4;
const HOPE: f32 = 0.25;

/// A key frame of which a smaller share agrees is replaced before it is lost.
const LEFT: f32 = 0.2;

/// Largest standard deviation of the translation in baselines, and of the rotation in radians. Beyond them, a direction
/// is open.
const OPEN: [f64; 2] = [0.4, 0.01];

/// Differences that grow by this factor contradict a rigid scene, if they are larger than [`DIFFERENCE_MIN`] pixels.
const GROWN: f32 = 2.0;

const DIFFERENCE_MIN: f32 = 1.0;

/// Share of the newest difference in the typical one.
const NEWEST: f32 = 0.1;

/// A stretch of the path.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    key: KeyFrame,
    /// The key frame's camera in the track's frame.
    place: Placed,
    /// Motion of the points from the key frame to the newest pair that was found.
    motion: Pose,
    /// The camera at the newest pair that was found.
    now: Placed,
    /// Its time.
    time: Duration,
    /// Motion of the points to it from the pair before, and the time between them.
    step: Option<(Pose, Duration)>,
    /// Points that agreed at the first pair after the key frame.
    agreed: Option<usize>,
    /// Typical difference in pixels between places expected and found.
    typical: Option<f32>,
    /// Points that agree, and those in view.
    points: [usize; 2],
}

/// A motion with the number of points in view.
type Shown = (Fit, usize);

/// Shares of the points found, and of those in view, that have to agree.
fn shares(is_cut: bool) -> [f32; 2] {
    if is_cut { SURE_SHARES } else { [AGREE_SHARE, SEEN_SHARE] }
}

impl Track {
    /// Begins a track at its origin; `None` if the pair has too few points.
    pub fn begin(view: &View, time: Duration) -> Option<Self> {
        let key = KeyFrame::of(view, 0)?;
        let points = [key.len(); 2];
        Some(Self {
            key,
            place: Placed::ORIGIN,
            motion: Pose::IDENTITY,
            now: Placed::ORIGIN,
            time,
            step: None,
            agreed: None,
            typical: None,
            points,
        })
    }

    /// Moves the track's origin, which was this pair, to a place.
    pub fn put(&mut self, origin: &Placed) {
        self.place = origin.then(&self.place);
        self.now = origin.then(&self.now);
    }

    /// Returns the newest pair that was found.
    pub fn now(&self) -> &Placed {
        &self.now
    }

    /// Returns the motion of the points between the newest two pairs, and the time.
    pub fn step(&self) -> Option<(Pose, Duration)> {
        self.step
    }

    /// Returns how many points agree, and how many were looked for.
    pub fn points(&self) -> [usize; 2] {
        self.points
    }

    /// Reports whether the pair can be compared: it has the same size.
    pub fn fits(&self, view: &View) -> bool {
        self.key.fits(view)
    }

    /// Forgets the motion, as after pairs that were not found.
    pub fn pause(&mut self) {
        self.step = None;
    }

    /// Follows the rig to a pair. `is_cut`: pairs before it were lost, or it shows another scene than the pair before.
    pub fn follow(&mut self, view: &View, time: Duration, is_cut: bool) -> Result<(), Lost> {
        let elapsed = time.checked_sub(self.time).unwrap_or_default();
        let starts = self.starts(view, elapsed, is_cut);
        self.points = [0, self.key.len()];
        let (fit, in_view) = self.best(view, &starts, is_cut)?;
        self.points = [fit.agree(), in_view];
        self.check(&fit, view, is_cut)?;
        let before = std::mem::replace(&mut self.motion, fit.motion);
        self.step = Some((self.motion.then(&before.inverse()), elapsed));
        self.time = time;
        self.now = self.place.then(&Placed::of_motion(&fit.motion, &fit.covariance));
        let typical = self.typical.get_or_insert(fit.difference);
        *typical += NEWEST * (fit.difference - *typical);
        let agreed = *self.agreed.get_or_insert(fit.agree()) as f32;
        let overlap = self.key.overlap(&fit.motion);
        let least = (OVERLAP * agreed).max(LEFT * in_view as f32);
        let is_kept = overlap >= OVERLAP && fit.agree() as f32 >= least;
        if !is_kept || (overlap < AT_REST && fit.agree() < FEW) {
            self.renew(view, if is_kept { 2 * fit.agree() } else { 0 });
        }
        Ok(())
    }

    /// Makes the newest pair the key frame, if it has enough points.
    fn renew(&mut self, view: &View, least: usize) {
        if let Some(key) = KeyFrame::of(view, least) {
            (self.key, self.place, self.motion) = (key, self.now, Pose::IDENTITY);
            self.agreed = None;
        }
    }

    /// Motions of the points from the key frame at which the search begins; the first one is expected.
    fn starts(&self, view: &View, elapsed: Duration, is_cut: bool) -> Vec<Pose> {
        let mut starts = vec![self.motion];
        if let Some((step, before)) = &self.step {
            let before = before.as_secs_f64();
            let share = if before > 0.0 { (elapsed.as_secs_f64() / before).min(3.0) } else { 1.0 };
            starts.insert(0, scaled(step, share).then(&self.motion));
        }
        if is_cut || self.step.is_none() {
            let length = f64::from(view.camera.baseline());
            let mut add = |step: [f64; UNKNOWNS]| starts.push(moved(&self.motion, step));
            for baselines in [-3.0, -1.5, 1.5] {
                add([0.0, 0.0, baselines * length, 0.0, 0.0, 0.0]);
            }
            for angle in [-0.2, -0.1, -0.05, 0.05, 0.1, 0.2] {
                add([0.0, 0.0, 0.0, angle, 0.0, 0.0]);
                add([0.0, 0.0, 0.0, 0.0, angle, 0.0]);
            }
        }
        starts
    }

    /// Finds the motion. The first of the starts is expected.
    fn best(&self, view: &View, starts: &[Pose], is_cut: bool) -> Result<Shown, Lost> {
        let expected = &starts[0];
        let least = shares(is_cut)[1] * HOPE;
        let has_hope = |shown: &Shown| shown.0.agree() as f32 >= least * shown.1 as f32;
        let probe = |near: &Pose| {
            let [_, most] = self.look(view, None, near, PROBE);
            most.filter(has_hope).map(|most| most.0)
        };
        let is_unsure = is_cut || self.step.is_none();
        let mut found = [None, None];
        if !is_unsure || probe(expected).is_some() {
            found = self.look(view, Some(expected), expected, 1);
        }
        let [even, most] = found;
        if let Some((fit, in_view)) = &even
            && fit.agree() as f32 >= CLEAR_SHARE * *in_view as f32
        {
            return even.ok_or(Lost::Unseen);
        }
        let agree = |most: &Option<Shown>| most.as_ref().map_or(0, |most| most.0.agree());
        let guess = self.key.align(view, starts).and_then(|guess| probe(&guess));
        let guess = guess.filter(|guess| PROBE * guess.agree() > agree(&most));
        // Near a better motion, more points are found.
        let is_other = |most: &Shown| even.as_ref().is_none_or(|even| !most.0.covers(&even.0));
        let most_hope = most.clone().filter(|most| has_hope(most) && is_other(most));
        let better = guess.or_else(|| most_hope.map(|most| most.0));
        let other = better.and_then(|better| {
            let [_, other] = self.look(view, None, &better.motion, 1);
            other.filter(|other| other.0.agree() > agree(&most))
        });
        match (even, other.or(most)) {
            (Some(even), Some(most)) => self.decide(even, most),
            (even, most) => even.or(most).ok_or(Lost::Unseen),
        }
    }

    /// Decides between the motion to which the expected one leads and that with which most points agree.
    fn decide(&self, even: Shown, most: Shown) -> Result<Shown, Lost> {
        let more = most.0.agree() as f32 / even.0.agree() as f32;
        if most.0.covers(&even.0) {
            return Ok(if more > MORE { most } else { even });
        }
        // A large thing that moves has more points than all that rests, but the rig moves evenly.
        let [least, most_of_all] = if self.step.is_some() { DOUBT } else { [NO_DOUBT; 2] };
        if more <= least {
            Ok(even)
        } else if more <= most_of_all {
            Err(Lost::Inconsistent)
        } else {
            Ok(most)
        }
    }

    /// Looks for one of `every` points near a motion. Returns the motion to which the expected one leads, and that with
    /// which most points agree.
    fn look(
        &self,
        view: &View,
        expected: Option<&Pose>,
        near: &Pose,
        every: usize,
    ) -> [Option<Shown>; 2] {
        let (sights, in_view) = self.key.find(view, near, every);
        fit::rigid(&sights, &view.camera, expected, near).map(|fit| Some((fit?, in_view)))
    }

    /// Checks whether a motion is certain.
    fn check(&self, fit: &Fit, view: &View, is_cut: bool) -> Result<(), Lost> {
        let shares = shares(is_cut);
        let [agree, in_view] = self.points.map(|count| count as f32);
        if fit.found < AGREE_MIN || agree < shares[1] * in_view {
            return Err(Lost::Unseen);
        }
        let is_grown = |typical: f32| fit.difference > DIFFERENCE_MIN.max(GROWN * typical);
        let is_few = fit.agree() < AGREE_MIN || agree < shares[0] * fit.found as f32;
        if is_few || self.typical.is_some_and(is_grown) {
            return Err(Lost::Inconsistent);
        }
        let deviation =
            |first: usize| (first..first + 3).map(|i| fit.covariance[i][i]).sum::<f64>().sqrt();
        let limit = OPEN[0] * f64::from(view.camera.baseline());
        let is_open = deviation(0) > limit || deviation(3) > OPEN[1];
        if is_open { Err(Lost::Unseen) } else { Ok(()) }
    }
}
