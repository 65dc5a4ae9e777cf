//! Calibration of one camera, and joining of two.

use nalgebra::Vector3;

use super::rig::{Free, Pose, Rig, View, rotation, rotation_vector};
use super::sighting::points;
use super::start;
use super::{FEWEST_PAIRS, Model, median};
use crate::Camera;
use crate::board::Board;
use crate::board::Detection;

/// Initial focal lengths relative to the width if the boards determine none: very wide to tele.
const GUESSES: [f64; 4] = [0.8, 0.45, 1.4, 2.5];

/// The same for a fisheye lens: 180 degrees over the image's width, and around it.
const FISHEYE_GUESSES: [f64; 3] = [1.0 / std::f64::consts::PI, 0.45, 0.22];

/// Rounds of least squares to compare initial values.
const FIRST_ROUNDS: usize = 15;

/// Largest number of rounds of least squares; a handful is usual.
const ROUNDS: usize = 200;

/// Root mean square error in pixels that no wrong initial value reaches.
const SURELY_RIGHT: f64 = 1.5;

/// Returns the camera of these views, as a rig of one camera with the boards in the order of the
/// views; `None` if they do not determine one.
pub(super) fn solve(views: &[View], size: (usize, usize), model: Model) -> Option<Rig> {
    if views.len() < FEWEST_PAIRS {
        return None;
    }
    let count: usize = views.iter().map(|view| view.points.len()).sum();
    let mut best: Option<(Rig, f64)> = None;
    for focal in beginnings(views, size, model) {
        let Some(mut rig) = begin(views, model.camera(size, focal), model) else { continue };
        // The lens comes last: with a wrong focal length it may never recover.
        let refined = rig
            .refine(views, Free::Pinhole, FIRST_ROUNDS)
            .and_then(|_| rig.refine(views, Free::All, FIRST_ROUNDS));
        let Some(cost) = refined.filter(|_| plausible(&rig.cameras[0])) else { continue };
        if best.as_ref().is_none_or(|(_, least)| cost < *least) {
            best = Some((rig, cost));
        }
        if (cost / count as f64).sqrt() < SURELY_RIGHT {
            break;
        }
    }
    let (mut rig, _) = best?;
    rig.refine(views, Free::All, ROUNDS)?;
    plausible(&rig.cameras[0]).then_some(rig)
}

/// Reports whether the result is plausible, because least squares may diverge.
fn plausible(camera: &Camera) -> bool {
    let width = camera.width.max(camera.height) as f64;
    camera.focal.iter().all(|focal| (0.05 * width..100.0 * width).contains(focal))
        && (-width..2.0 * width).contains(&camera.centre[0])
        && (-width..2.0 * width).contains(&camera.centre[1])
}

/// Returns initial focal lengths, the likeliest first.
fn beginnings(views: &[View], size: (usize, usize), model: Model) -> Vec<f64> {
    let width = size.0.max(size.1) as f64;
    if model == Model::Fisheye {
        return FISHEYE_GUESSES.map(|part| part * width).to_vec();
    }
    let plane = |view: &View| -> Vec<_> {
        view.points.iter().map(|(point, pixel)| (point.xy(), *pixel)).collect()
    };
    let homographies: Vec<_> =
        views.iter().filter_map(|view| start::homography(&plane(view))).collect();
    let told = start::focal(&homographies, model.camera(size, width).centre);
    told.into_iter().chain(GUESSES.map(|part| part * width)).collect()
}

fn begin(views: &[View], camera: Camera, model: Model) -> Option<Rig> {
    let boards: Option<Vec<Pose>> =
        views.iter().map(|view| start::pose(&camera, &view.points)).collect();
    let (cameras, places) = (vec![camera], vec![Pose::IDENTITY]);
    let mut rig = Rig { model, cameras, places, boards: boards? };
    rig.refine(views, Free::Poses, FIRST_ROUNDS)?;
    Some(rig)
}

/// Joins two cameras that have seen the same boards in the same order. `views` are the left camera's, then
/// the right one's. Returns `None` if they cannot be joined.
pub(super) fn join(left: &Rig, right: &Rig, views: &[View]) -> Option<Rig> {
    let mut rig = Rig {
        model: left.model,
        cameras: vec![left.cameras[0].clone(), right.cameras[0].clone()],
        places: vec![Pose::IDENTITY, usual_place(left, right)],
        boards: left.boards.clone(),
    };
    // Poses first, so that good cameras do not compensate for bad poses.
    rig.refine(views, Free::Poses, FIRST_ROUNDS)?;
    rig.refine(views, Free::All, ROUNDS)?;
    rig.cameras.iter().all(plausible).then_some(rig)
}

/// Returns the median of the right camera's poses, component by component: up to half may be wrong.
pub(super) fn usual_place(left: &Rig, right: &Rig) -> Pose {
    let places: Vec<Pose> =
        left.boards.iter().zip(&right.boards).map(|(l, r)| r.after(&l.inverse())).collect();
    let component = |of: &dyn Fn(&Pose) -> f64| median(places.iter().map(of).collect());
    let turn = [0, 1, 2].map(|i| component(&|place| rotation_vector(&place.rotation)[i]));
    let translation = [0, 1, 2].map(|i| component(&|place| place.translation[i]));
    Pose { rotation: rotation(&Vector3::from(turn)), translation: Vector3::from(translation) }
}

/// Returns the pose of a board in the camera's frame: the rotation's columns are its directions to
/// the right, down and into the board; the translation is its top left corner in metres. Returns
/// `None` if the corners do not determine it.
pub fn seen_from(
    camera: &Camera,
    board: &Board,
    seen: &Detection,
) -> Option<(nalgebra::Matrix3<f64>, Vector3<f64>)> {
    let pose = start::pose(camera, &points(board, seen))?;
    Some((pose.rotation, pose.translation))
}
