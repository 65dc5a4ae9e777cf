//! One camera, and two cameras joined.

use nalgebra::Vector3;

use super::options::{FEWEST_PAIRS, Model, median};
use super::rig::{Free, Pose, Rig, View, rotation, rotation_vector};
use super::sighting::points;
use super::start;
use crate::calibration::Camera;
use crate::calibration::board::Board;
use crate::calibration::board::detect::Detection;

/// Focal lengths to begin with where the boards do not tell one, as parts of the picture's width:
/// from very wide to tele.
const GUESSES: [f64; 4] = [0.8, 0.45, 1.4, 2.5];

/// Those of a fisheye: 180 degrees over the picture's width, and around it.
const FISHEYE_GUESSES: [f64; 3] = [1.0 / std::f64::consts::PI, 0.45, 0.22];

/// Rounds of least squares that tell one beginning from another.
const FIRST_ROUNDS: usize = 15;

/// Rounds of least squares at most; a handful is usual.
const ROUNDS: usize = 200;

/// A root mean square of the error in pixels that no wrong beginning leads to.
const SURELY_RIGHT: f64 = 1.5;

/// The camera that has seen these views, as a rig of one camera with the boards in the order of the
/// views; `None` where they do not determine one.
pub(super) fn solve(views: &[View], size: (usize, usize), model: Model) -> Option<Rig> {
    if views.len() < FEWEST_PAIRS {
        return None;
    }
    let count: usize = views.iter().map(|view| view.points.len()).sum();
    let mut best: Option<(Rig, f64)> = None;
    for focal in beginnings(views, size, model) {
        let Some(mut rig) = begin(views, model.camera(size, focal), model) else { continue };
        // The lens is taken in last: bent with a wrong focal length it may never straighten.
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

/// True where this can be a camera: least squares may run away where the views say too little.
fn plausible(camera: &Camera) -> bool {
    let width = camera.width.max(camera.height) as f64;
    camera.focal.iter().all(|focal| (0.05 * width..100.0 * width).contains(focal))
        && (-width..2.0 * width).contains(&camera.centre[0])
        && (-width..2.0 * width).contains(&camera.centre[1])
}

/// Focal lengths to begin with, the likeliest first.
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

/// Joins two cameras that have seen the same boards in the same order. `views` are those of the left
/// camera, then those of the right one. `None` where they cannot be joined.
pub(super) fn join(left: &Rig, right: &Rig, views: &[View]) -> Option<Rig> {
    let mut rig = Rig {
        model: left.model,
        cameras: vec![left.cameras[0].clone(), right.cameras[0].clone()],
        places: vec![Pose::IDENTITY, usual_place(left, right)],
        boards: left.boards.clone(),
    };
    // The poses first, so that cameras that are right already do not make up for poses that are not.
    rig.refine(views, Free::Poses, FIRST_ROUNDS)?;
    rig.refine(views, Free::All, ROUNDS)?;
    rig.cameras.iter().all(plausible).then_some(rig)
}

/// The median of the right camera's places that the boards tell, one component after the other: up to
/// half of them may be wrong.
pub(super) fn usual_place(left: &Rig, right: &Rig) -> Pose {
    let places: Vec<Pose> =
        left.boards.iter().zip(&right.boards).map(|(l, r)| r.after(&l.inverse())).collect();
    let component = |of: &dyn Fn(&Pose) -> f64| median(places.iter().map(of).collect());
    let turn = [0, 1, 2].map(|i| component(&|place| rotation_vector(&place.rotation)[i]));
    let translation = [0, 1, 2].map(|i| component(&|place| place.translation[i]));
    Pose { rotation: rotation(&Vector3::from(turn)), translation: Vector3::from(translation) }
}

/// Where a board stands that a camera sees: the rotation's columns are its directions to the right,
/// down and into the board, then its top left corner in metres, in the camera's frame. `None` where
/// the corners do not tell.
pub fn seen_from(
    camera: &Camera,
    board: &Board,
    seen: &Detection,
) -> Option<(nalgebra::Matrix3<f64>, Vector3<f64>)> {
    let pose = start::pose(camera, &points(board, seen))?;
    Some((pose.rotation, pose.translation))
}
