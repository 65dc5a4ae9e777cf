//! Exact corners give the exact cameras back, and misfits are found.

use nalgebra::{Vector2, Vector3};

use super::projection::project;
use super::rig::{Free, Pose, Rig, View, rotation};
use super::*;
use crate::board::Pattern;
use crate::board::{BoardCorner, Detection, NotFound};
use crate::{Camera, Lens, StereoCalibration};
use stereod_core::frame::Eye;

fn brown(coefficients: &[f64]) -> Lens {
    let mut all = [0.0; 14];
    all[..coefficients.len()].copy_from_slice(coefficients);
    Lens::Brown(all)
}

fn truth(lens: [Lens; 2], focal: f64) -> StereoCalibration {
    let camera = |lens, focal, centre| Camera {
        width: 640,
        height: 480,
        focal: [focal, focal * 1.002],
        centre,
        skew: 0.0,
        lens,
    };
    let [left, right] = lens;
    StereoCalibration {
        left: camera(left, focal, [322.5, 236.25]),
        right: camera(right, focal * 1.01, [315.0, 245.5]),
        rotation: rotation(&Vector3::new(0.01, -0.03, 0.008)),
        translation: Vector3::new(-0.12, 0.002, -0.001),
        rectification: None,
    }
}

fn board() -> Board {
    Board::new(Pattern::chessboard(9, 6).unwrap(), 0.03).unwrap()
}

/// Poses of the boards: tilted to all sides, near and far, in all parts of the picture.
fn poses() -> Vec<Pose> {
    let turns = [[0.4, 0.0], [-0.4, 0.1], [0.1, 0.45], [0.0, -0.45], [0.3, 0.3], [-0.3, -0.25]];
    (0..18)
        .map(|i| {
            let [x, y] = turns[i % turns.len()];
            let turn = rotation(&Vector3::new(x, y, 0.1 * (i % 4) as f64 - 0.15));
            let middle = Vector3::new(
                0.14 * ((i % 3) as f64 - 1.0) + 0.05,
                0.11 * ((i / 3 % 3) as f64 - 1.0),
                0.62 + 0.03 * (i % 5) as f64,
            );
            Pose { rotation: turn, translation: middle - turn * Vector3::new(0.15, 0.105, 0.0) }
        })
        .collect()
}

fn detection(camera: &Camera, pose: &Pose, noise: &mut dyn FnMut() -> f64) -> Option<Detection> {
    let board = board();
    let mut corners = Vec::new();
    for id in 0..board.count() {
        let pixel = project(camera, &pose.apply(&board.point(id)))?.pixel;
        let pixel = [pixel.x + noise(), pixel.y + noise()];
        let inside = (0.0..639.0).contains(&pixel[0]) && (0.0..479.0).contains(&pixel[1]);
        if inside {
            corners.push(BoardCorner { id, pixel });
        }
    }
    (corners.len() > 12).then(|| Detection::of_corners(corners, 2.0))
}

fn sightings(truth: &StereoCalibration, noise: &mut dyn FnMut() -> f64) -> Vec<Sighting> {
    sightings_of(truth, poses(), noise)
}

fn sightings_of(
    truth: &StereoCalibration,
    poses: Vec<Pose>,
    noise: &mut dyn FnMut() -> f64,
) -> Vec<Sighting> {
    let place = Pose { rotation: truth.rotation, translation: truth.translation };
    let pairs = poses.into_iter().enumerate().filter_map(|(i, pose)| {
        let seen = [
            detection(&truth.left, &pose, noise)?,
            detection(&truth.right, &place.after(&pose), noise)?,
        ];
        Some(Sighting { name: format!("pair {i}"), seen: Ok(seen) })
    });
    pairs.collect()
}

fn exactly(model: Model, lens: [Lens; 2], focal: f64) {
    let truth = truth(lens, focal);
    let sightings = sightings(&truth, &mut || 0.0);
    assert!(sightings.len() >= 12, "{}", sightings.len());
    let Solved { calibration: found, report } =
        solve(&board(), [(640, 480); 2], Options { model, ..Options::default() }, sightings)
            .unwrap();
    assert!(report.rms_px < 1e-6, "{}", report.rms_px);
    assert_eq!(report.left_out().count(), 0);
    for (found, truth) in [(&found.left, &truth.left), (&found.right, &truth.right)] {
        for i in 0..2 {
            assert!((found.focal[i] - truth.focal[i]).abs() < 1e-6 * truth.focal[i]);
            assert!((found.centre[i] - truth.centre[i]).abs() < 1e-6 * truth.centre[i]);
        }
        let (found, truth): (&[f64], &[f64]) = match (&found.lens, &truth.lens) {
            (Lens::Brown(found), Lens::Brown(truth)) => (found, truth),
            (Lens::Fisheye(found), Lens::Fisheye(truth)) => (found, truth),
            _ => panic!("another model"),
        };
        // Coefficients of a rational lens compensate each other: their ratio counts.
        let tolerance = if model == Model::Rational { 1e-3 } else { 1e-6 };
        for (found, truth) in found.iter().zip(truth) {
            assert!((found - truth).abs() < tolerance, "{found} instead of {truth}");
        }
    }
    assert!((found.rotation - truth.rotation).norm() < 1e-7);
    assert!((found.translation - truth.translation).norm() < 1e-7);
    assert!((report.baseline_m - truth.translation.norm()).abs() < 1e-7);
    assert!(report.mean_epipolar_error_px < 1e-5);
    assert!(report.rectified_row_error_px.p95 < 1e-5);
}

#[test]
fn plumb_bob_cameras_are_recovered() {
    let left = brown(&[-0.27, 0.08, 0.001, -0.0005, -0.01]);
    let right = brown(&[-0.25, 0.07, -0.0008, 0.0004, 0.02]);
    exactly(Model::PlumbBob, [left, right], 540.0);
}

#[test]
fn a_tele_lens_is_recovered() {
    exactly(Model::PlumbBob, [brown(&[0.05]), brown(&[0.04, -0.01])], 760.0);
}

#[test]
fn rational_cameras_are_recovered() {
    let left = brown(&[0.3, -0.1, 0.001, -0.0005, 0.02, 0.6, -0.15, 0.05]);
    let right = brown(&[0.28, -0.09, -0.0008, 0.0004, 0.01, 0.58, -0.13, 0.04]);
    exactly(Model::Rational, [left, right], 420.0);
}

#[test]
fn fisheye_cameras_are_recovered() {
    let left = Lens::Fisheye([-0.02, 0.004, -0.003, 0.0005]);
    let right = Lens::Fisheye([-0.018, 0.003, -0.002, 0.0004]);
    exactly(Model::Fisheye, [left, right], 330.0);
}

/// Normally distributed numbers from a fixed seed.
fn noise(sigma: f64) -> impl FnMut() -> f64 {
    let mut state = 12345u64;
    move || {
        let mut uniform = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let sum: f64 = (0..12).map(|_| uniform()).sum();
        (sum - 6.0) * sigma
    }
}

fn lenses() -> [Lens; 2] {
    [brown(&[-0.27, 0.08]), brown(&[-0.25, 0.07])]
}

#[test]
fn noise_of_the_corners_is_the_error_that_is_reported() {
    let truth = truth(lenses(), 540.0);
    let mut noise = noise(0.1);
    let solved =
        solve(&board(), [(640, 480); 2], Options::default(), sightings(&truth, &mut noise))
            .unwrap();
    let Solved { calibration: found, report } = solved;
    // Both coordinates of a point are off by 0.1 px.
    assert!((report.rms_px - 0.1414).abs() < 0.01, "{}", report.rms_px);
    let sd = report.focal_sd_px.unwrap();
    assert!((0.05..2.0).contains(&sd[0]), "{sd:?}");
    assert!((found.left.focal[0] - truth.left.focal[0]).abs() < 4.0 * sd[0]);
    let sd = report.baseline_sd_m.unwrap();
    assert!((1e-6..1e-3).contains(&sd), "{sd}");
    assert!((report.baseline_m - truth.translation.norm()).abs() < 4.0 * sd);
    assert_eq!(report.verdict.quality, Quality::Good, "{}", report.verdict);
}

/// Errors of corners.
#[derive(Clone, Copy, Debug)]
struct Errors {
    /// Standard deviation of the independent ones, in pixels.
    noise_px: f64,
    /// The same of a smooth error of each image, as of lighting or of a lens model that does not fit.
    smooth_px: f64,
    /// Bend of the board on 0.1 m.
    bend_m: f64,
}

/// Returns a calibration with these errors before random boards, and its views.
fn with_errors(
    truth: &StereoCalibration,
    pairs: usize,
    errors: Errors,
    random: &mut dyn FnMut() -> f64,
) -> (Rig, Vec<View>) {
    let poses = (0..pairs).map(|_| {
        let turn = [0.3, 0.3, 0.1].map(|most| most * random());
        let middle = [0.05 + 0.09 * random(), 0.07 * random(), 0.7 + 0.08 * random()];
        let rotation = rotation(&Vector3::from(turn));
        let translation = Vector3::from(middle) - rotation * Vector3::new(0.15, 0.105, 0.0);
        Pose { rotation, translation }
    });
    let place = Pose { rotation: truth.rotation, translation: truth.translation };
    let mut rig = Rig {
        model: Model::PlumbBob,
        cameras: vec![truth.left.clone(), truth.right.clone()],
        places: vec![Pose::IDENTITY, place],
        boards: poses.collect(),
    };
    let bend = errors.bend_m * random().signum();
    let mut views = Vec::new();
    for (camera, board) in (0..2).flat_map(|camera| (0..pairs).map(move |board| (camera, board))) {
        let waves = [(); 14].map(|()| errors.smooth_px * random());
        let points = (0..self::board().count()).map(|id| {
            let point = self::board().point(id);
            let (u, v) = ((point.x - 0.15) / 0.1, (point.y - 0.105) / 0.1);
            let real = point + Vector3::new(0.0, 0.0, bend * u * u);
            let in_first = rig.boards[board].apply(&real);
            let seen = project(&rig.cameras[camera], &rig.places[camera].apply(&in_first)).unwrap();
            let shapes = [1.0, u, v, u * u - 0.5, 2.0 * u * v, v * v - 0.5, u * v * v];
            let smooth = |axis: usize| -> f64 {
                shapes.iter().zip(&waves[7 * axis..]).map(|(shape, wave)| shape * wave).sum()
            };
            let noise = Vector2::new(random(), random()) * errors.noise_px;
            (point, seen.pixel + Vector2::new(smooth(0), smooth(1)) + noise)
        });
        views.push(View { camera, board, points: points.collect() });
    }
    rig.refine(&views, Free::All, 50).unwrap();
    (rig, views)
}

#[test]
fn deviations_are_those_of_many_calibrations() {
    const ROUNDS: u32 = 60;
    let truth = truth(lenses(), 540.0);
    let independent = Errors { noise_px: 0.1, smooth_px: 0.0, bend_m: 0.0 };
    let smooth = Errors { noise_px: 0.05, smooth_px: 0.05, bend_m: 0.0 };
    for (pairs, errors) in [
        (3, independent),
        (12, independent),
        (4, smooth),
        (12, smooth),
        (6, Errors { bend_m: 0.001, ..independent }),
        (12, Errors { bend_m: 0.0004, ..smooth }),
    ] {
        let mut random = noise(1.0);
        let mut squares = [0.0; 3];
        for _ in 0..ROUNDS {
            let (rig, views) = with_errors(&truth, pairs, errors, &mut random);
            let known = rig.uncertainty(&views).unwrap();
            let distance = |translation: &Vector3<f64>| translation.norm();
            let off = [
                distance(&rig.places[1].translation) - distance(&truth.translation),
                rig.cameras[0].focal[0] - truth.left.focal[0],
                rig.cameras[1].focal[0] - truth.right.focal[0],
            ];
            let stated = [known.distance(&rig, 1), known.focal(&rig, 0), known.focal(&rig, 1)];
            for ((square, off), stated) in squares.iter_mut().zip(off).zip(stated) {
                *square += (off / stated.all).powi(2) / f64::from(ROUNDS);
            }
        }
        let relative = squares.map(f64::sqrt);
        let right = relative.iter().all(|error| (0.7..1.4).contains(error));
        assert!(right, "{pairs} pairs, {errors:?}: {relative:?} times the stated deviations");
    }
}

#[test]
fn a_bent_board_is_told() {
    let truth = truth(lenses(), 540.0);
    let place = Pose { rotation: truth.rotation, translation: truth.translation };
    let mut random = noise(0.05);
    let mut seen = |pose: &Pose, camera: &Camera| {
        let corners = (0..board().count()).map(|id| {
            let point = board().point(id);
            let real = point + Vector3::new(0.0, 0.0, 0.3 * (point.x - 0.15).powi(2));
            let pixel = project(camera, &pose.apply(&real)).unwrap().pixel;
            BoardCorner { id, pixel: [pixel.x + random(), pixel.y + random()] }
        });
        Detection::of_corners(corners.collect(), 2.0)
    };
    let pairs = poses().into_iter().enumerate().map(|(i, pose)| {
        let seen = [seen(&pose, &truth.left), seen(&place.after(&pose), &truth.right)];
        Sighting { name: format!("pair {i}"), seen: Ok(seen) }
    });
    let solved = solve(&board(), [(640, 480); 2], Options::default(), pairs.collect()).unwrap();
    let (found, report) = (solved.calibration.left.focal[0], solved.report);
    let sd = report.focal_sd_px.unwrap()[0];
    assert!((found - 540.0).abs() < 3.0 * sd && sd > 0.006 * 540.0, "{found} +- {sd}");
    assert!(report.verdict.to_string().contains("the board is bent"), "{}", report.verdict);
}

#[test]
fn pairs_that_do_not_fit_are_left_out() {
    let truth = truth(lenses(), 540.0);
    let mut noise = noise(0.1);
    let mut all = sightings(&truth, &mut noise);
    let count = all.len();
    let clean = solve(&board(), [(640, 480); 2], Options::default(), all.clone()).unwrap().report;
    let seen = |pair: usize| all[pair].seen.clone().unwrap();
    // The views of two pairs are of different moments; one by much, one by 3 mm.
    let [left, _] = seen(2);
    let [_, right] = seen(7);
    let place = Pose { rotation: truth.rotation, translation: truth.translation };
    let mut shaken = poses()[4];
    let other = detection(&truth.left, &shaken, &mut noise).unwrap();
    shaken.translation.y += 0.003;
    let shaken = detection(&truth.right, &place.after(&shaken), &mut noise).unwrap();
    // A picture with a bent board, and a blurred one.
    let [mut bent, straight] = seen(3);
    for corner in &mut bent.corners {
        corner.pixel[1] += 0.02 * (corner.pixel[0] - 300.0).powi(2) / 30.0;
    }
    let [blurred, sharp] = seen(1);
    let blurred = Detection::of_corners(blurred.corners, 7.0);
    let not_found = Reason::NotFound { eye: Some(Eye::Right), seen: NotFound::Nothing };
    for (name, seen) in [
        ("mixed", Ok([left, right])),
        ("shaken", Ok([other, shaken])),
        ("bent", Ok([bent, straight])),
        ("blurred", Ok([blurred, sharp])),
        ("hidden", Err(not_found)),
    ] {
        all.insert(all.len() / 2, Sighting { name: name.into(), seen });
    }
    let solved = solve(&board(), [(640, 480); 2], Options::default(), all).unwrap();
    let mut out: Vec<_> = solved.report.left_out().map(|(n, r)| (n.to_owned(), r.kind())).collect();
    out.sort();
    let expected = [
        ("bent", "misfit"),
        ("blurred", "blurred"),
        ("hidden", "not-found"),
        ("mixed", "moved"),
        ("shaken", "moved"),
    ];
    assert_eq!(out, expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert_eq!(solved.report.used(), count);
    assert!((solved.report.rms_px - clean.rms_px).abs() < 1e-9);
}

#[test]
fn too_little_is_refused_with_the_reasons() {
    let mut pairs = sightings(&truth(lenses(), 540.0), &mut || 0.0);
    for pair in &mut pairs[2..] {
        pair.seen = Err(Reason::Alone(Eye::Left));
    }
    let error =
        solve(&board(), [(640, 480); 2], Options::default(), pairs).unwrap_err().to_string();
    assert!(error.starts_with("only 2 of "), "{error}");
    assert!(error.contains("\n  pair 2: only the left view has this picture\n"), "{error}");
    assert!(error.contains("more"), "{error}");
}

#[test]
fn one_view_again_and_again_is_no_good_calibration() {
    let truth = truth(lenses(), 540.0);
    let pairs = sightings(&truth, &mut noise(0.05));
    let same: Vec<_> = (0..6).map(|_| pairs[0].clone()).collect();
    let error = solve(&board(), [(640, 480); 2], Options::default(), same).unwrap_err().to_string();
    assert!(error.contains("in all 6 pairs the board is in the same place: move it"), "{error}");
}

#[test]
fn wrong_pairing_is_the_first_that_is_told() {
    let truth = truth(lenses(), 540.0);
    let pairs = sightings(&truth, &mut noise(0.05));
    for shift in [1, 2, 5] {
        let seen = |pair: usize| pairs[pair % pairs.len()].seen.clone().unwrap();
        let shifted = (0..pairs.len()).map(|pair| {
            let ([left, _], [_, right]) = (seen(pair), seen(pair + shift));
            Sighting { name: format!("pair {pair}"), seen: Ok([left, right]) }
        });
        let words = match solve(&board(), [(640, 480); 2], Options::default(), shifted.collect()) {
            Ok(mut solved) => {
                assert_eq!(solved.report.verdict.quality, Quality::Bad);
                solved.report.verdict.words.swap_remove(0)
            }
            Err(error) => error.to_string(),
        };
        assert!(words.contains("paired rightly"), "{shift}: {words}");
    }
}

#[test]
fn swapped_eyes_are_told() {
    let truth = truth(lenses(), 540.0);
    let mut pairs = sightings(&truth, &mut noise(0.05));
    pairs.iter_mut().for_each(|pair| pair.seen.as_mut().unwrap().reverse());
    let solved = solve(&board(), [(640, 480); 2], Options::default(), pairs).unwrap();
    assert_eq!(solved.report.verdict.quality, Quality::Bad);
    assert!(solved.report.verdict.to_string().contains("views are swapped"));
    assert!((solved.calibration.rotation.transpose() - truth.rotation).norm() < 1e-2);
}

#[test]
fn a_report_is_one_json_object() {
    let pairs = sightings(&truth(lenses(), 540.0), &mut noise(0.05));
    let report = solve(&board(), [(640, 480); 2], Options::default(), pairs).unwrap().report;
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["board"], "chessboard:9x6");
    assert_eq!(json["D1"].as_array().unwrap().len(), 5);
    assert_eq!(json["verdict"]["quality"], "good");
    assert_eq!(json["pairs"][0]["left_out"], serde_json::Value::Null);
    assert!(json["rectified_row_error_px"]["p95"].as_f64().unwrap() < 0.5);
}

/// Boards parallel to the image, in all parts of it and at several distances.
fn parallel() -> Vec<Pose> {
    let at = |pose: Pose| Pose {
        rotation: rotation(&Vector3::new(0.0, 0.0, 0.1)),
        translation: pose.apply(&Vector3::new(0.15, 0.105, 0.0)) - Vector3::new(0.15, 0.105, 0.0),
    };
    poses().into_iter().map(at).collect()
}

#[test]
fn boards_parallel_to_the_picture_are_told() {
    let truth = truth(lenses(), 540.0);
    let mut noise = noise(0.05);
    let sightings = sightings_of(&truth, parallel(), &mut noise);
    assert!(sightings.len() >= 6, "{}", sightings.len());
    let told = solve(&board(), [(640, 480); 2], Options::default(), sightings);
    let told = told.unwrap_err().to_string();
    assert!(told.contains("parallel to the picture: tilt the board"), "{told}");
}

#[test]
fn a_line_of_corners_is_left_out_by_name() {
    let truth = truth(lenses(), 540.0);
    let mut seen = sightings(&truth, &mut || 0.0);
    let Ok([left, _]) = &mut seen[2].seen else { panic!("it is seen") };
    *left = Detection::of_corners(left.corners[..5].to_vec(), 2.0);
    let name = seen[2].name.clone();
    let solved = solve(&board(), [(640, 480); 2], Options::default(), seen).unwrap();
    let left_out: Vec<_> = solved.report.left_out().collect();
    assert_eq!(left_out, [(name.as_str(), &Reason::Line(Eye::Left))]);
}

#[test]
fn an_error_without_a_number_is_told_in_words() {
    let told = Reason::Moved { rms_px: f64::MAX, usual_px: 0.2 }.to_string();
    assert!(told.len() < 150 && told.contains("by no pose of the board"), "{told}");
}
