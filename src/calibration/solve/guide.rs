//! Live selection of pairs: which to keep, and which poses are still missing.

use std::fmt;
use std::time::Duration;

use super::camera::seen_from;
use super::coverage::{Coverage, Part};
use super::outliers::{BLURRED, SHARP_PX};
use super::sighting::Reason;
use super::start;
use super::{Model, median};
use crate::Camera;
use crate::board::Board;
use crate::board::{Detection, NotFound};
use crate::solve::rig::Pose;
use stereod_core::frame::Eye;

/// Speed of a still board at most, in parts of the image's width per second: cameras that are 10 ms
/// apart would see it 0.25 px apart in 640.
const STILL: f64 = 0.04;

/// Largest time between two sightings for measuring speed.
pub const RECENT: Duration = Duration::from_millis(500);

/// Least mean distance of the corners of a new pose from every other pose, relative to the image's width.
const NEW: f64 = 0.025;

/// Weight of a change of shape against a move: a tilt of 30 degrees moves the corners of a board
/// that fills a third of the image by 1 % of its width.
const SHAPE: f64 = 2.5;

/// Smallest angle of a tilt in radians.
const TILTED: f64 = 0.3;

/// Part of the image's width that a near and a far board spans.
const SPANS: [f64; 2] = [0.45, 0.32];

/// Number of pairs that each wish needs.
const EACH: usize = 3;

/// Number of pairs needed in all.
const IN_ALL: usize = 15;

/// Number of recent widths of edges in the median.
const WIDTHS: usize = 64;

/// A kind of pair that is still missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The board in this part of one view.
    Part(Eye, Part),
    /// The board close by.
    Near,
    /// The board far away.
    Far,
    /// Its right side farther away than its left one, or the other way round.
    TiltedSideways {
        /// The side that is farther away.
        right: bool,
    },
    /// Its lower side farther away than its upper one, or the other way round.
    TiltedUpright {
        /// The side that is farther away.
        lower: bool,
    },
    /// More pairs of any kind.
    Pairs,
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wish::Part(eye, part) => write!(f, "the board in {part} of the {eye} picture"),
            Wish::Near => f.write_str("the board nearer"),
            Wish::Far => f.write_str("the board farther away"),
            Wish::TiltedSideways { right: true } => f.write_str("its right side tilted away"),
            Wish::TiltedSideways { right: false } => f.write_str("its left side tilted away"),
            Wish::TiltedUpright { lower: true } => f.write_str("its lower side tilted away"),
            Wish::TiltedUpright { lower: false } => f.write_str("its upper side tilted away"),
            Wish::Pairs => f.write_str("pairs"),
        }
    }
}

/// A wish and its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub wish: Wish,
    /// Number of pairs so far.
    pub have: usize,
    pub need: usize,
}

/// Reason for not keeping a pair.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The board is not seen in both views, or not sharply.
    Unfit(Reason),
    /// The board moves: its speed in pixels per second, and the limit.
    Moving(f64, f64),
    /// The board has just come into view, so that its speed is not known.
    New,
    /// There is a similar pair.
    Known,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Unfit(reason) => reason.fmt(f),
            Refusal::Moving(speed, limit) => {
                write!(f, "the board moves ({speed:.0} px/s, up to {limit:.0} is still): hold it")
            }
            Refusal::New => f.write_str("hold the board still"),
            Refusal::Known => f.write_str("taken already: move the board"),
        }
    }
}

/// Decision on a pair.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// Keep it: it is sharp, still and new.
    Keep,
    /// Do not.
    Refuse(Refusal),
}

/// Selects pairs of a source.
#[derive(Clone, Debug)]
pub struct Guide {
    board: Board,
    sizes: [(usize, usize); 2],
    /// Set if the board may move between pairs, as with single images.
    stills: bool,
    cameras: [Camera; 2],
    kept: Vec<[Detection; 2]>,
    tilts: Vec<[f64; 2]>,
    coverage: [Coverage; 2],
    last: Option<(Duration, [Detection; 2])>,
    widths: [Vec<f64>; 2],
}

impl Guide {
    /// Makes a guide for images of these sizes; the times of `stills` do not give the board's speed.
    pub fn new(board: Board, sizes: [(usize, usize); 2], model: Model, stills: bool) -> Self {
        // A guess that suffices for tilts: 60 degrees over the image's width.
        let part = if model == Model::Fisheye { 1.0 / std::f64::consts::PI } else { 0.87 };
        let camera = |size: (usize, usize)| model.camera(size, part * size.0 as f64);
        Self {
            board,
            sizes,
            stills,
            cameras: sizes.map(camera),
            kept: Vec::new(),
            tilts: Vec::new(),
            coverage: sizes.map(Coverage::new),
            last: None,
            widths: [Vec::new(), Vec::new()],
        }
    }

    pub fn assess(&mut self, time: Duration, seen: &[Result<Detection, NotFound>; 2]) -> Judgement {
        let refuse = |reason| Judgement::Refuse(Refusal::Unfit(reason));
        let seen = match fit(seen) {
            Ok(seen) => seen,
            Err(reason) => {
                self.last = None;
                return refuse(reason);
            }
        };
        let limits = [0, 1].map(|eye: usize| self.sharp_up_to(eye));
        let last = self.last.replace((time, seen.clone()));
        for (widths, seen) in self.widths.iter_mut().zip(&seen) {
            widths.push(seen.blur_px);
            if widths.len() > WIDTHS {
                widths.remove(0);
            }
        }
        for (eye, name) in Eye::BOTH.into_iter().enumerate() {
            let (width_px, limit_px) = (seen[eye].blur_px, limits[eye]);
            if width_px > limit_px {
                return refuse(Reason::Blurred { eye: name, width_px, limit_px });
            }
        }
        if !self.stills {
            let limit = STILL * self.width();
            match speed(last.as_ref(), time, &seen) {
                None => return Judgement::Refuse(Refusal::New),
                Some(speed) if speed > limit => {
                    return Judgement::Refuse(Refusal::Moving(speed, limit));
                }
                Some(_) => {}
            }
        }
        let near = NEW * self.width();
        let known = |kept: &[Detection; 2]| apart(kept, &seen).is_some_and(|apart| apart < near);
        match self.kept.iter().any(known) {
            true => Judgement::Refuse(Refusal::Known),
            false => Judgement::Keep,
        }
    }

    /// Counts a pair as kept.
    pub fn keep(&mut self, seen: [Detection; 2]) {
        for (coverage, seen) in self.coverage.iter_mut().zip(&seen) {
            coverage.add(seen);
        }
        let pose = seen_from(&self.cameras[0], &self.board, &seen[0]);
        let tilt = pose.map(|(rotation, translation)| start::tilt(&Pose { rotation, translation }));
        self.tilts.push(tilt.unwrap_or_default());
        self.kept.push(seen);
    }

    pub fn coverage(&self) -> &[Coverage; 2] {
        &self.coverage
    }

    /// Returns the wishes that are still open.
    pub fn missing(&self) -> Vec<Wanted> {
        let mut wishes = self.wishes();
        wishes.retain(|wanted| wanted.have < wanted.need);
        wishes
    }

    /// Returns the fulfilled part of all wishes, 0 to 1.
    pub fn progress(&self) -> f64 {
        let (mut have, mut need) = (0, 0);
        for wanted in self.wishes() {
            have += wanted.have.min(wanted.need);
            need += wanted.need;
        }
        // Each ninth of an image is one wish, whether or not it is named alone.
        for coverage in &self.coverage {
            have += coverage.ninths.iter().flatten().filter(|count| **count > 0).count();
            need += 9;
        }
        have as f64 / need as f64
    }

    fn wishes(&self) -> Vec<Wanted> {
        let mut wishes = Vec::new();
        for (eye, coverage) in Eye::BOTH.into_iter().zip(&self.coverage) {
            let parts = coverage.missing(1).into_iter().map(|part| Wish::Part(eye, part));
            wishes.extend(parts.map(|wish| Wanted { wish, have: 0, need: 1 }));
        }
        let (columns, _) = self.board.pattern.corners();
        let spans = |fits: &dyn Fn(f64) -> bool| {
            let span =
                |seen: &[Detection; 2]| seen[0].square_px * columns as f64 / self.sizes[0].0 as f64;
            self.kept.iter().filter(|seen| fits(span(seen))).count()
        };
        let tilted = |axis: usize, sign: f64| {
            self.tilts.iter().filter(|tilt| sign * tilt[axis] > TILTED).count()
        };
        let rest = [
            (Wish::Near, spans(&|span| span > SPANS[0]), EACH),
            (Wish::Far, spans(&|span| span < SPANS[1]), EACH),
            (Wish::TiltedSideways { right: true }, tilted(0, 1.0), EACH),
            (Wish::TiltedSideways { right: false }, tilted(0, -1.0), EACH),
            (Wish::TiltedUpright { lower: true }, tilted(1, 1.0), EACH),
            (Wish::TiltedUpright { lower: false }, tilted(1, -1.0), EACH),
            (Wish::Pairs, self.kept.len(), IN_ALL),
        ];
        wishes.extend(rest.map(|(wish, have, need)| Wanted { wish, have, need }));
        wishes
    }

    /// Returns the width of the wider view in pixels, in which distances of corners are judged.
    fn width(&self) -> f64 {
        self.sizes[0].0.max(self.sizes[1].0) as f64
    }

    fn sharp_up_to(&self, eye: usize) -> f64 {
        (BLURRED * median(self.widths[eye].clone())).max(SHARP_PX)
    }
}

pub fn fit(seen: &[Result<Detection, NotFound>; 2]) -> Result<[Detection; 2], Reason> {
    let (eye, seen) = match seen {
        [Ok(left), Ok(right)] => return Ok([left.clone(), right.clone()]),
        [Err(left), Err(right)] if left == right => (None, left),
        // A board of another size is the more useful reason.
        [Ok(_), Err(seen)] | [Err(NotFound::Nothing), Err(seen)] => (Some(Eye::Right), seen),
        [Err(seen), _] => (Some(Eye::Left), seen),
    };
    Err(Reason::NotFound { eye, seen: *seen })
}

/// Returns the speed of the corners in pixels per second, in the view with the higher speed.
fn speed(
    last: Option<&(Duration, [Detection; 2])>,
    time: Duration,
    seen: &[Detection; 2],
) -> Option<f64> {
    let (then, last) = last?;
    let passed = time.checked_sub(*then).filter(|passed| !passed.is_zero() && *passed < RECENT)?;
    let mut eyes = last.iter().zip(seen).map(|(last, seen)| last.distance(seen));
    let far = eyes.try_fold(0.0, |far: f64, distance| Some(far.max(distance?)))?;
    Some(far / passed.as_secs_f64())
}

/// Returns the difference of two pairs in pixels, in the view with the larger difference: the mean distance
/// of their corners, or the change of the board's shape by a tilt. Returns `None` if they share no corner.
pub fn apart(a: &[Detection; 2], b: &[Detection; 2]) -> Option<f64> {
    let mut eyes = a.iter().zip(b).map(|(a, b)| {
        let moved: Vec<[f64; 2]> = a.shared(b).map(|(a, b)| [b[0] - a[0], b[1] - a[1]]).collect();
        let mean =
            |of: &dyn Fn(&[f64; 2]) -> f64| moved.iter().map(of).sum::<f64>() / moved.len() as f64;
        let [x, y] = [mean(&|by| by[0]), mean(&|by| by[1])];
        let shape = mean(&|by| (by[0] - x).hypot(by[1] - y));
        let far = mean(&|by| by[0].hypot(by[1])).max(SHAPE * shape);
        (!moved.is_empty()).then_some(far)
    });
    eyes.try_fold(0.0, |far: f64, eye| Some(far.max(eye?)))
}

/// Returns the `most` pairs that differ most from each other, in their order: the first one, then
/// repeatedly the one farthest from all chosen ones.
pub fn most_diverse(pairs: &[[Detection; 2]], most: usize) -> Vec<usize> {
    if pairs.len() <= most {
        return (0..pairs.len()).collect();
    }
    // Pairs without common corners count as most distant.
    let distance = |a: usize, b: usize| apart(&pairs[a], &pairs[b]).unwrap_or(f64::INFINITY);
    let mut chosen = vec![0];
    let mut nearest: Vec<f64> = (0..pairs.len()).map(|pair| distance(pair, 0)).collect();
    while chosen.len() < most {
        let Some(next) = (0..pairs.len()).max_by(|&a, &b| nearest[a].total_cmp(&nearest[b])) else {
            break;
        };
        chosen.push(next);
        for (pair, near) in nearest.iter_mut().enumerate() {
            *near = near.min(distance(pair, next));
        }
        nearest[next] = f64::NEG_INFINITY;
    }
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests;
