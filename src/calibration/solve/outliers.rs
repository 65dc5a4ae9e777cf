//! Rejection of pairs that do not fit, and the cameras from the rest.

use super::camera;
use super::rig::{Free, Rig, View};
use super::sighting::{Reason, Sighting, points};
use super::start;
use super::{FEWEST_PAIRS, Options, SolveError, median};
use crate::board::{Board, Detection};
use stereod_core::frame::Eye;

/// Width of edges in pixels that is never called blurred, because corners are still precise.
pub(super) const SHARP_PX: f64 = 4.0;

/// Width of blurred edges relative to the median of all images.
pub(super) const BLURRED: f64 = 1.8;

/// Error of an outlier relative to the median.
const FAR: f64 = 3.0;

/// Smallest error of an outlier in pixels.
const NEAR_PX: f64 = 0.5;

/// Largest tilt of a board that is parallel to the image, in radians.
const PARALLEL: f64 = 0.1;

/// Pairs that fit, and their calibration.
pub(super) struct Kept {
    /// Both cameras and the boards of the pairs that fit, in their order.
    pub rig: Rig,
    /// The left views of these pairs, then the right ones.
    pub views: Vec<View>,
    /// Root mean square of the reprojection errors of each camera by itself, in pixels.
    pub alone_rms_px: [f64; 2],
    /// Reason for skipping each sighting; `None` if it is used.
    pub left_out: Vec<Option<Reason>>,
}

/// Returns the root mean square of an error in pixels per point.
pub(super) fn rms(rig: &Rig, views: &[View]) -> f64 {
    let count: usize = views.iter().map(|view| view.points.len()).sum();
    (rig.cost(views).unwrap_or(f64::INFINITY) / count.max(1) as f64).sqrt()
}

/// Calibrates and drops the worst pair until every pair fits.
pub(super) fn solve(
    board: &Board,
    sizes: [(usize, usize); 2],
    options: Options,
    sightings: &[Sighting],
) -> Result<Kept, SolveError> {
    let mut left_out: Vec<Option<Reason>> =
        sightings.iter().map(|sighting| sighting.seen.as_ref().err().cloned()).collect();
    leave_out_rows(board, sightings, &mut left_out);
    if !options.keep_all {
        leave_out_blurred(sightings, &mut left_out);
    }
    // With `keep_all` nothing is an outlier.
    let far = if options.keep_all { f64::INFINITY } else { FAR };
    loop {
        let used: Vec<usize> = (0..sightings.len()).filter(|i| left_out[*i].is_none()).collect();
        if used.len() < FEWEST_PAIRS {
            return Err(too_few(sightings, &left_out, used.len()));
        }
        let views = Eye::BOTH.map(|eye| views(board, sightings, &used, eye));
        let mut alone = Vec::new();
        for (eye, views) in Eye::BOTH.into_iter().zip(&views) {
            // By itself, every camera is the first one of its rig.
            let own: Vec<View> = views.iter().map(|v| View { camera: 0, ..v.clone() }).collect();
            let rig = camera::solve(&own, sizes[eye.index()], options.model)
                .ok_or(SolveError::Undetermined(eye))?;
            alone.push((rig, own));
        }
        let tilts = || alone.iter().flat_map(|(rig, _)| &rig.boards).flat_map(start::tilt);
        if tilts().all(|tilt| tilt.abs() < PARALLEL) {
            return Err(SolveError::Parallel(used.len()));
        }
        let errors = [0, 1].map(|eye: usize| -> Vec<f64> {
            let (rig, own): &(Rig, Vec<View>) = &alone[eye];
            own.iter().map(|view| rms(rig, std::slice::from_ref(view))).collect()
        });
        let worst = [0, 1]
            .into_iter()
            .filter_map(|eye| Some((eye, out_of_the_ordinary(&errors[eye], far)?)))
            .max_by(|a, b| (a.1.1 / a.1.2).total_cmp(&(b.1.1 / b.1.2)));
        if let Some((eye, (pair, rms_px, usual_px))) = worst {
            left_out[used[pair]] = Some(Reason::Misfit { eye: Eye::BOTH[eye], rms_px, usual_px });
            continue;
        }
        let (left, right) = (&alone[0].0, &alone[1].0);
        // Large outliers would bias all other pairs: dropped before both cameras are solved together.
        let apart = apart(left, right, &views);
        if let Some((pair, rms_px, usual_px)) = out_of_the_ordinary(&apart, 2.0 * far) {
            left_out[used[pair]] = Some(Reason::Moved { rms_px, usual_px });
            continue;
        }
        let alone_rms_px = [0, 1].map(|eye: usize| rms(&alone[eye].0, &alone[eye].1));
        let views = views.concat();
        let rig = camera::join(left, right, &views).ok_or(SolveError::Apart)?;
        let together: Vec<f64> = (0..used.len()).map(|pair| pair_rms(&rig, &views, pair)).collect();
        match out_of_the_ordinary(&together, far) {
            Some((pair, rms_px, usual_px)) => {
                left_out[used[pair]] = Some(Reason::Moved { rms_px, usual_px });
            }
            None => return Ok(Kept { rig, views, alone_rms_px, left_out }),
        }
    }
}

/// Returns the root mean square of a pair's errors in both views.
pub(super) fn pair_rms(rig: &Rig, views: &[View], pair: usize) -> f64 {
    let count = views.len() / 2;
    rms(rig, &[views[pair].clone(), views[count + pair].clone()])
}

/// Returns the error of each pair with the cameras in their median pose and its board free.
fn apart(left: &Rig, right: &Rig, views: &[Vec<View>; 2]) -> Vec<f64> {
    let place = camera::usual_place(left, right);
    let rig = Rig {
        model: left.model,
        cameras: vec![left.cameras[0].clone(), right.cameras[0].clone()],
        places: vec![left.places[0], place],
        boards: Vec::new(),
    };
    let errors = left.boards.iter().enumerate().map(|(pair, board)| {
        let own = [0, 1].map(|eye: usize| View { board: 0, ..views[eye][pair].clone() });
        let mut rig = Rig { boards: vec![*board], ..rig.clone() };
        // With the camera's pose held, because this board's own estimate of it is in doubt.
        rig.refine(&own, Free::Boards, 30).map_or(f64::MAX, |_| rms(&rig, &own))
    });
    errors.collect()
}

/// Returns the worst of the errors and the median, if it is `far` times as large.
fn out_of_the_ordinary(errors: &[f64], far: f64) -> Option<(usize, f64, f64)> {
    // Three pairs are the fewest: none of them can be dropped.
    if errors.len() <= FEWEST_PAIRS {
        return None;
    }
    let usual = median(errors.to_vec());
    let (worst, error) = errors.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
    (*error > NEAR_PX && *error > far * usual).then_some((worst, *error, usual))
}

fn views(board: &Board, sightings: &[Sighting], used: &[usize], eye: Eye) -> Vec<View> {
    let camera = eye.index();
    let seen = |pair: usize| sightings[pair].seen.as_ref().ok();
    let views = used.iter().filter_map(|pair| seen(*pair)).enumerate();
    views.map(|(i, seen)| View { camera, board: i, points: points(board, &seen[camera]) }).collect()
}

/// Leaves out boards of which only one line of corners is seen, which has no tilt.
fn leave_out_rows(board: &Board, sightings: &[Sighting], left_out: &mut [Option<Reason>]) {
    for (sighting, reason) in sightings.iter().zip(left_out) {
        let Ok(seen) = &sighting.seen else { continue };
        let is_line = |seen: &Detection| {
            let points = points(board, seen);
            start::homography(&points.iter().map(|(at, _)| (at.xy(), at.xy())).collect::<Vec<_>>())
                .is_none()
        };
        if let Some(eye) = Eye::BOTH.into_iter().find(|eye| is_line(&seen[eye.index()])) {
            reason.get_or_insert(Reason::Line(eye));
        }
    }
}

fn leave_out_blurred(sightings: &[Sighting], left_out: &mut [Option<Reason>]) {
    let seen = |eye: usize| -> Vec<f64> {
        sightings.iter().filter_map(|s| Some(s.seen.as_ref().ok()?[eye].blur_px)).collect()
    };
    let limits = [0, 1].map(|eye| (BLURRED * median(seen(eye))).max(SHARP_PX));
    for (sighting, reason) in sightings.iter().zip(left_out) {
        let Ok(seen) = &sighting.seen else { continue };
        for ((eye, width_px), limit_px) in
            Eye::BOTH.into_iter().zip(seen.each_ref().map(|seen| seen.blur_px)).zip(limits)
        {
            if reason.is_none() && width_px > limit_px {
                *reason = Some(Reason::Blurred { eye, width_px, limit_px });
            }
        }
    }
}

fn too_few(sightings: &[Sighting], left_out: &[Option<Reason>], used: usize) -> SolveError {
    const SHOWN: usize = 5;
    let mut reasons: Vec<String> = sightings
        .iter()
        .zip(left_out)
        .filter_map(|(s, reason)| Some(format!("{}: {}", s.name, reason.as_ref()?)))
        .collect();
    let more = reasons.len().saturating_sub(SHOWN);
    reasons.truncate(SHOWN);
    if more > 0 {
        reasons.push(format!("and {more} more"));
    }
    let reasons = reasons.iter().map(|reason| format!("\n  {reason}")).collect();
    SolveError::TooFew { used, all: sightings.len(), reasons }
}
