//! Visual odometry of a stereo rig: where the left camera is, from pair to pair, in metres.
//!
//! Corners of a key frame with a sure disparity ([`key`]) are found again in each later pair ([`patch`]), near the
//! places where an even motion of the rig brings them, or else a coarse direct alignment ([`coarse`]). Their places and
//! disparities give the rigid motion, in spite of things that move by themselves ([`fit`]). A key frame is kept until
//! the overlap falls to 70 % ([`track`]). The whole is the usual stereo odometry (Scaramuzza and Fraundorfer, Visual
//! odometry, IEEE Robotics & Automation Magazine 2011 and 2012). The covariances count the errors of the key frame's
//! disparities, too (Matthies and Shafer, Error modeling in stereo navigation, 1987).
//!
//! If a pair is not found again, the rig is lost: each further pair is compared with the last key frame, and with a
//! new one. When the new one has been followed for a while, the path goes on from the last pose, after a break.
//!
//! Values are computed without transcendental functions, so every machine computes the same ones.

mod coarse;
mod fit;
mod key;
mod patch;
mod rigid;
#[cfg(test)]
mod tests;
mod track;

use std::time::Duration;

use crate::frame::{DisparityMap, Image, StereoGeometry};
use crate::matching::continuity::Continuity;
use crate::matching::scene::Thumbnail;
use crate::obstacles::Mount;
use crate::pose::{Lost, Odometry, Pose};
use coarse::Halves;
pub(super) use coarse::sample;
use key::View;
use rigid::{Camera, Placed, angles};
pub(super) use rigid::{median, root, solve};
use track::Track;

/// A path is broken when the pairs have agreed among themselves for so many pairs, or for [`FRESH_TIME`].
const FRESH_PAIRS: u32 = 10;

const FRESH_TIME: Duration = Duration::from_secs(1);

/// The path grows by steps of this share of the baseline, so that noise at rest does not count.
const PATH_STEP: f64 = 0.05;

/// Odometry of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Odometer {
    continuity: Continuity,
    /// The path; `None` before the first pair with enough points, or if its key frame is of another size.
    track: Option<Track>,
    /// While lost: the newest pairs, as far as they agree among themselves.
    fresh: Option<Fresh>,
    /// The newest pose, and whether there was one.
    at: Placed,
    has_begun: bool,
    is_lost: bool,
    breaks: u32,
    path_m: f64,
    /// The place at which the path has last grown.
    corner: [f64; 3],
}

#[derive(Clone, Debug, PartialEq)]
struct Fresh {
    track: Track,
    since: Duration,
    pairs: u32,
}

impl Default for Odometer {
    fn default() -> Self {
        Self::new()
    }
}

impl Odometer {
    /// Makes the odometry of a stream, which begins at its first pair.
    pub fn new() -> Self {
        Self {
            continuity: Continuity::default(),
            track: None,
            fresh: None,
            at: Placed::ORIGIN,
            has_begun: false,
            is_lost: true,
            breaks: 0,
            path_m: 0.0,
            corner: [0.0; 3],
        }
    }

    /// Goes on to the stream's next pair, with its disparity map and confidence.
    pub fn next(
        &mut self,
        left: &Image,
        right: &Image,
        map: &DisparityMap,
        confidence: &Image,
        geometry: &StereoGeometry,
        timestamp: Duration,
    ) -> Odometry {
        let goes_on = self.continuity.goes_on(timestamp, Thumbnail::of(left));
        let size = (left.width(), left.height());
        let fits = [right, confidence].iter().all(|image| (image.width(), image.height()) == size)
            && (map.width(), map.height()) == size;
        let camera = Camera::of(geometry).filter(|_| fits);
        let found = camera.ok_or(Lost::FewPoints).and_then(|camera| {
            let halves = Halves::of(left);
            let view = View { left, right, map, confidence, camera, halves };
            self.follow(&view, timestamp, !goes_on)
        });
        self.settle(found.is_err());
        self.report(found.err(), geometry.baseline_m)
    }

    /// Returns the rigid motion of the points from the previous pair's left camera to the newest one's; `None` if it is
    /// not known. While the rig is lost, it is known as far as the newest pairs agree among themselves.
    pub fn motion(&self) -> Option<Pose> {
        self.newest()?.step().map(|step| step.0)
    }

    /// The track that the newest pair is on.
    fn newest(&self) -> Option<&Track> {
        if self.is_lost {
            self.fresh.as_ref().map(|fresh| &fresh.track)
        } else {
            self.track.as_ref()
        }
    }

    /// Follows the rig to a pair. `is_cut`: it shows another scene than the pair before.
    fn follow(&mut self, view: &View, time: Duration, is_cut: bool) -> Result<(), Lost> {
        self.track = self.track.take().filter(|track| track.fits(view));
        let was_lost = self.is_lost;
        let found = self.track.as_mut().ok_or(Lost::Unseen).and_then(|track| {
            track.follow(view, time, is_cut || was_lost)?;
            if was_lost {
                // The motion since the pair before is not known.
                track.pause();
            }
            Ok(())
        });
        let Err(reason) = found else { return Ok(()) };
        if !self.follow_fresh(view, time, is_cut) {
            return Err(Lost::FewPoints);
        }
        let is_ready = |fresh: &mut Fresh| {
            let lasting = time.checked_sub(fresh.since).unwrap_or_default() >= FRESH_TIME;
            !self.has_begun || fresh.pairs >= FRESH_PAIRS || (lasting && fresh.pairs >= 3)
        };
        let Some(mut fresh) = self.fresh.take_if(is_ready) else { return Err(reason) };
        fresh.track.put(&self.at);
        self.track = Some(fresh.track);
        self.breaks += u32::from(self.has_begun);
        Ok(())
    }

    /// Follows the pairs since the rig is lost, or begins with this one. Returns false if it has too few points.
    fn follow_fresh(&mut self, view: &View, time: Duration, is_cut: bool) -> bool {
        let fresh = self.fresh.take().filter(|fresh| !is_cut && fresh.track.fits(view));
        if let Some(mut fresh) = fresh {
            // Else the next pair begins, because a search and a new key frame take too long for one pair.
            if fresh.track.follow(view, time, false).is_ok() {
                fresh.pairs += 1;
                self.fresh = Some(fresh);
            }
            return true;
        }
        let track = Track::begin(view, time);
        self.fresh = track.map(|track| Fresh { track, since: time, pairs: 0 });
        self.fresh.is_some()
    }

    /// Remembers whether the newest pair was found, and its pose.
    fn settle(&mut self, is_lost: bool) {
        self.is_lost = is_lost;
        let Some(track) = &mut self.track else { return };
        if is_lost {
            track.pause();
        } else {
            self.at = *track.now();
            self.has_begun = true;
            self.fresh = None;
        }
    }

    fn report(&mut self, lost: Option<Lost>, baseline_m: f64) -> Odometry {
        let position = self.at.pose.position_m;
        let square: f64 = position.iter().zip(self.corner).map(|(a, b)| (a - b) * (a - b)).sum();
        if square.sqrt() >= PATH_STEP * baseline_m {
            self.path_m += square.sqrt();
            self.corner = position;
        }
        let track = self.track.as_ref();
        let step = track.filter(|_| lost.is_none()).and_then(Track::step);
        let velocity = step.and_then(|(motion, time)| {
            let seconds = time.as_secs_f64();
            let ([x, y, z], [about_x, about_y, about_z]) = (motion.position_m, angles(&motion));
            // The points move against the camera.
            let all = [x, y, z, about_x, about_y, about_z].map(|part| -part / seconds);
            (seconds > 0.0).then_some(all)
        });
        Odometry {
            pose: self.at.pose,
            covariance: self.at.covariance,
            velocity,
            lost,
            breaks: self.breaks,
            path_m: self.path_m,
            mount: Mount::default(),
            points: track.map_or([0; 2], |track| track.points().map(|count| count as u32)),
        }
    }
}
