//! Plausibility checks: an impossible calibration is refused, an unlikely one gets a note.

use nalgebra::{Matrix3, Vector3};

use super::error::{CalibrationError, Result};
use super::{Camera, Lens, Rectification, StereoCalibration};
pub use sources::Sources;

mod sources;
mod view;

fn wrong<T>(what: String) -> Result<T> {
    Err(CalibrationError::new(what))
}

/// Reports whether a value is at most its limit; NaN is not.
fn within(value: f64, limit: f64) -> bool {
    value <= limit
}

/// Largest distance from a rotation of a matrix written with few digits.
const FEW_DIGITS: f64 = 2e-3;

/// Below this, a matrix is a rotation up to rounding, and is kept.
const ALL_DIGITS: f64 = 1e-6;

/// Replaces rotations written with few digits by the nearest true ones.
pub fn make_rotations(calibration: &mut StereoCalibration, sources: &Sources) -> Result<()> {
    make_rotation(&mut calibration.rotation, &sources.pose, "the rotation between the cameras")?;
    if let Some(rectification) = &mut calibration.rectification {
        let source = &sources.rectification;
        make_rotation(&mut rectification.left.rotation, source, "the left camera's rotation")?;
        make_rotation(&mut rectification.right.rotation, source, "the right camera's rotation")?;
    }
    Ok(())
}

fn make_rotation(matrix: &mut Matrix3<f64>, source: &str, what: &str) -> Result<()> {
    let off = (matrix.transpose() * *matrix - Matrix3::identity()).amax();
    let determinant = matrix.determinant();
    // `max` would skip NaN.
    if !matrix.iter().all(|value| value.is_finite()) || off > FEW_DIGITS {
        return wrong(format!(
            "{source}: {what} is no rotation matrix (columns that are not perpendicular or not of length 1, \
                 off by {off:.3}); it has been damaged or holds something else"
        ));
    }
    if determinant < 0.0 {
        return wrong(format!("{source}: {what} is a mirror image (determinant -1), no rotation"));
    }
    if off > ALL_DIGITS {
        let parts = matrix.svd(true, true);
        let (Some(u), Some(v)) = (parts.u, parts.v_t) else { return Ok(()) };
        *matrix = u * v;
    }
    Ok(())
}

/// Checks a calibration; unlikely but possible properties are returned as sentences.
pub fn check(calibration: &StereoCalibration, sources: &Sources) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    check_camera(&calibration.left, &sources.left, &mut notes)?;
    check_camera(&calibration.right, &sources.right, &mut notes)?;
    check_rotation(&calibration.rotation, sources)?;
    check_distance(&calibration.translation, sources)?;
    check_direction(calibration, sources)?;
    check_translation(&calibration.translation, sources, &mut notes)?;
    if let Some(rectification) = &calibration.rectification {
        check_rectification(calibration, rectification, sources)?;
        notes.extend(view::note(calibration, rectification, &sources.rectification));
    }
    Ok(notes)
}

/// Checks a calibration of the left camera and a third one, which may look and stand anywhere near.
pub fn check_third(calibration: &StereoCalibration, sources: &Sources) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    check_camera(&calibration.left, &sources.left, &mut notes)?;
    check_camera(&calibration.right, &sources.right, &mut notes)?;
    check_distance(&calibration.translation, sources)?;
    Ok(notes)
}

/// Sizes of images of other modes relative to the image, with centres distinct from its own.
const OTHER_MODES: [f64; 4] = [2.0, 0.5, 1.0 / 3.0, 0.25];

fn check_camera(camera: &Camera, source: &str, notes: &mut Vec<String>) -> Result<()> {
    let Camera { width, height, focal, centre, skew, ref lens } = *camera;
    let coefficients = match lens {
        Lens::Brown(all) => all.as_slice(),
        Lens::Fisheye(all) => all.as_slice(),
    };
    let finite =
        [&focal[..], &centre[..], &[skew], coefficients].concat().iter().all(|v| v.is_finite());
    if !finite {
        return wrong(format!("{source}: the camera has a number that is not finite"));
    }
    if width == 0 || height == 0 {
        return wrong(format!("{source}: {width}x{height} is no size of a picture"));
    }
    if focal[0] <= 0.0 || focal[1] <= 0.0 {
        return wrong(format!(
            "{source}: focal lengths of {} and {} px: both must be above 0",
            focal[0], focal[1]
        ));
    }
    check_pixels(camera, source)?;
    check_centre(camera, source, notes)?;
    let ratio = focal[0] / focal[1];
    if !(0.5..=2.0).contains(&ratio) {
        notes.push(format!(
            "{source}: focal lengths of {:.1} and {:.1} px differ much for one lens",
            focal[0], focal[1]
        ));
    }
    Ok(())
}

/// Smallest focal length relative to the image's shorter side. A fisheye lens of 360 degrees has 0.16.
const SHORTEST: f64 = 0.1;

/// Checks that focal lengths and principal point are in pixels.
fn check_pixels(camera: &Camera, source: &str) -> Result<()> {
    let Camera { width, height, focal, centre, .. } = *camera;
    let side = width.min(height) as f64;
    // Those of a telephoto lens in mm may pass for pixels, but its principal point then lies in the corner.
    let is_corner = centre[0] < 0.15 * width as f64 && centre[1] < 0.15 * height as f64;
    let shortest = focal[0].min(focal[1]);
    let is_set = centre != [0.0, 0.0];
    if shortest < SHORTEST * side || is_set && is_corner && shortest < 0.5 * side {
        let is_half = |part: f64| (0.4..=0.6).contains(&part);
        let by_width = centre[1] * width as f64 / height as f64;
        let why = if is_half(centre[0]) && is_half(centre[1]) {
            "the camera matrix seems to be divided by the image size: multiply its first row by the width \
             and its second row by the height"
        } else if is_half(centre[0]) && is_half(by_width) {
            "the camera matrix seems to be divided by the image width: multiply its first two rows by it"
        } else {
            "the camera matrix seems to be in mm: divide its first two rows by the size of a pixel in mm"
        };
        return wrong(format!(
            "{source}: focal lengths of {:.4} and {:.4} px are of no camera of {width}x{height}; {why}",
            focal[0], focal[1]
        ));
    }
    if centre.contains(&0.0) {
        return wrong(format!(
            "{source}: the principal point is ({}, {}), so it was not set; it is near the middle of the \
             picture, ({:.1}, {:.1}); calibrate again, or write the middle if the pictures are rectified",
            centre[0],
            centre[1],
            (width as f64 - 1.0) / 2.0,
            (height as f64 - 1.0) / 2.0
        ));
    }
    Ok(())
}

/// Checks that the principal point fits the size of the image.
fn check_centre(camera: &Camera, source: &str, notes: &mut Vec<String>) -> Result<()> {
    let Camera { width, height, centre, .. } = *camera;
    // Relative to the image: 0 at its first edge and 1 at the other.
    let parts = [(centre[0] + 0.5) / width as f64, (centre[1] + 0.5) / height as f64];
    let middle_of = |times: f64| parts.iter().all(|part| (part - times / 2.0).abs() < 0.1 * times);
    if let Some(times) = OTHER_MODES.into_iter().find(|times| middle_of(*times)) {
        let what = format!(
            "the principal point ({:.1}, {:.1}) is the middle of a picture of {:.0}x{:.0}, not of \
             {width}x{height}: the camera matrix is of that mode (binned or scaled), and the size of \
             another; correct the size",
            centre[0],
            centre[1],
            width as f64 * times,
            height as f64 * times
        );
        // An image cut out of the camera's may have it elsewhere, but not on its corner.
        if times > 1.0 {
            return wrong(format!("{source}: {what}"));
        }
        notes.push(format!("{source}: {what}, unless it is a part of the camera's picture"));
    } else if is_crossed(camera) {
        notes.push(format!(
            "{source}: the principal point ({:.1}, {:.1}) is the middle of a picture of {height}x{width}, not of \
             {width}x{height}: the size seems to be height by width; correct it",
            centre[0], centre[1]
        ));
    } else {
        for (part, at, name) in [(parts[0], centre[0], "x"), (parts[1], centre[1], "y")] {
            if !(-0.1..=1.1).contains(&part) {
                return wrong(format!(
                    "{source}: the principal point ({:.1}, {:.1}) lies outside the {width}x{height} picture: \
                         the size or the camera matrix belongs to another mode of the camera",
                    centre[0], centre[1]
                ));
            }
            if !(0.25..=0.75).contains(&part) {
                notes.push(format!(
                    "{source}: the principal point's {name} of {at:.1} px is far from the middle of the \
                     {width}x{height} picture; if that surprises, the size belongs to another mode"
                ));
            }
        }
    }
    Ok(())
}

/// Reports whether the principal point is the middle of an image whose height is this width.
fn is_crossed(camera: &Camera) -> bool {
    let Camera { width, height, centre, .. } = *camera;
    let is_middle = |sides: [usize; 2]| {
        centre.iter().zip(sides).all(|(at, side)| ((at + 0.5) / side as f64 - 0.5).abs() < 0.1)
    };
    is_middle([height, width]) && !is_middle([width, height])
}

/// Returns the angle between two rotations in radians.
fn angle(a: &Matrix3<f64>, b: &Matrix3<f64>) -> f64 {
    let between = a.transpose() * b;
    // The sine from the antisymmetric part, because the cosine of small angles is imprecise.
    let twice_sine = Vector3::new(
        between[(2, 1)] - between[(1, 2)],
        between[(0, 2)] - between[(2, 0)],
        between[(1, 0)] - between[(0, 1)],
    )
    .norm();
    twice_sine.atan2(between.trace() - 1.0)
}

fn check_rotation(rotation: &Matrix3<f64>, sources: &Sources) -> Result<()> {
    let turned = angle(&Matrix3::identity(), rotation).to_degrees();
    if !within(turned, 45.0) {
        let source = &sources.pose;
        // About the optical axis, as a camera mounted upside down or on its side.
        let roll = rotation[(1, 0)].atan2(rotation[(0, 0)]).to_degrees();
        let (quarters, axis_off) =
            ((roll / 90.0).round(), rotation[(2, 2)].min(1.0).acos().to_degrees());
        if quarters != 0.0 && axis_off < 30.0 && (roll - 90.0 * quarters).abs() < 20.0 {
            let (how, by) = match quarters as i32 {
                2 | -2 => ("upside down", "hflip,vflip"),
                _ => ("on its side", "transpose"),
            };
            return wrong(format!(
                "{source}: one view is turned by {turned:.0} degrees about its axis against the other, as of \
                 a camera mounted {how}: turn the pictures of that camera (ffmpeg -vf {by}) or the camera, \
                 and calibrate again"
            ));
        }
        return wrong(format!(
            "{source}: the views are turned by {turned:.0} degrees to each other, too much for a stereo pair: \
                 do both poses mean the same frame, and in the same direction?"
        ));
    }
    Ok(())
}

/// Refuses a pose that is the inverse of the one in the rectification.
fn check_direction(calibration: &StereoCalibration, sources: &Sources) -> Result<()> {
    let (Some(rectification), Some(inverse)) = (&calibration.rectification, &sources.inverse)
    else {
        return Ok(());
    };
    let (rotation, translation) = rectification.pose();
    let is_pose = |c: &StereoCalibration| {
        within(angle(&rotation, &c.rotation), TOLERANCE)
            && within((translation - c.translation).norm(), 2.0 * TOLERANCE * translation.norm())
    };
    let inverted = calibration.clone().inverted();
    if !is_pose(calibration) && is_pose(&inverted) && inverted.translation.x < 0.0 {
        return wrong(format!(
            "{}: the pose leads from the right camera to the left one, as {} shows: {inverse}",
            sources.pose, sources.rectification
        ));
    }
    Ok(())
}

/// Longest plausible baseline in metres.
const BASELINE_MAX_M: f64 = 10.0;

/// Shortest plausible baseline in metres; endoscopes have 4 mm.
const BASELINE_SHORT_M: f64 = 0.002;

fn check_distance(translation: &Vector3<f64>, sources: &Sources) -> Result<()> {
    let (baseline, source) = (translation.norm(), &sources.pose);
    if !baseline.is_finite() {
        return wrong(format!("{source}: the translation has a number that is not finite"));
    }
    if baseline < 1e-6 {
        return wrong(format!(
            "{source}: the baseline is 0: the file of one view was given for both, or the cameras were calibrated \
             one by one; `stereod calibrate` calibrates them together"
        ));
    }
    if baseline > BASELINE_MAX_M {
        return wrong(format!(
            "{source}: a baseline of {baseline:.4} m is not plausible; {}",
            sources
                .other_unit(baseline)
                .as_deref()
                .unwrap_or("correct the translation, which is in metres")
        ));
    }
    Ok(())
}

fn check_translation(
    translation: &Vector3<f64>,
    sources: &Sources,
    notes: &mut Vec<String>,
) -> Result<()> {
    let [x, y, z] = (*translation).into();
    let (baseline, source) = (translation.norm(), &sources.pose);
    if y.abs() > x.abs() && y.abs() >= z.abs() {
        return wrong(format!(
            "{source}: the cameras stand one above the other (translation {x:.4}, {y:.4}, {z:.4} m), but \
                 stereod matches along rows: turn both cameras by 90 degrees and calibrate again"
        ));
    }
    if z.abs() > x.abs() {
        return wrong(format!(
            "{source}: the cameras stand one behind the other (translation {x:.4}, {y:.4}, {z:.4} m), not \
                 side by side: is the translation that of the right camera?"
        ));
    }
    if x > 0.0 {
        return Err(reversed(x, sources));
    }
    let unit = sources.other_unit(baseline);
    if baseline < BASELINE_SHORT_M {
        let why = unit.clone().unwrap_or_else(|| {
            "translations are in metres, and entry (0, 3) of a right projection (P[3]) is -f * B, the focal \
             length in pixels times the baseline in metres, not the baseline alone: correct it (or give \
             --focal and --baseline in its place), or depth will be wrong by the same factor"
                .into()
        });
        let baseline = baseline * 1e3;
        notes.push(format!("{source}: a baseline of {baseline:.3} mm is hardly plausible; {why}"));
    }
    if baseline > 2.0 {
        let why = unit.map_or_else(String::new, |unit| format!("; if that surprises: {unit}"));
        notes.push(format!("{source}: a baseline of {baseline:.2} m is long{why}"));
    }
    Ok(())
}

/// Returns the error of a right camera that stands `x` metres to the left of the left one.
fn reversed(x: f64, sources: &Sources) -> CalibrationError {
    let (source, swap, mm) = (&sources.pose, &sources.swap, x * 1e3);
    let what = format!("{source}: the right camera stands {mm:.1} mm to the left of the left one");
    match &sources.inverse {
        Some(inverse) if sources.pose != sources.rectification => CalibrationError::of_reversed(
            what,
            &format!(
                ": if the pose leads from the right camera to the left one, {inverse}; if left and right are \
                 swapped, {swap}; `stereod match` with a pair of pictures tells which"
            ),
        ),
        _ => CalibrationError::new(format!("{what}, so left and right are swapped: {swap}")),
    }
}

/// Relative difference between two descriptions that rounding explains.
const TOLERANCE: f64 = 2e-3;

fn check_rectification(
    calibration: &StereoCalibration,
    rectification: &Rectification,
    sources: &Sources,
) -> Result<()> {
    let source = &sources.rectification;
    let (left, right) = (&rectification.left, &rectification.right);
    let (p1, p2) = (&left.projection, &right.projection);
    if !p1.iter().chain(p2.iter()).all(|value| value.is_finite()) {
        return wrong(format!("{source}: a projection has a number that is not finite"));
    }
    for (projection, eye) in [(p1, "left"), (p2, "right")] {
        let of = |row, column| projection[(row, column)];
        let zeros = [of(0, 1), of(1, 0), of(2, 0), of(2, 1)];
        if zeros.iter().any(|value| *value != 0.0) || of(2, 2) != 1.0 {
            return wrong(format!(
                "{source}: the {eye} projection is none of a rectified camera, whose rows are f 0 cx tx, \
                     0 f cy ty and 0 0 1 0"
            ));
        }
        if of(0, 0) <= 0.0 || of(1, 1) <= 0.0 {
            return wrong(format!("{source}: the {eye} projection has a focal length below 0"));
        }
    }
    if p1[(0, 3)] != 0.0 && p2[(0, 3)] == 0.0 {
        return wrong(format!(
            "{source}: left and right are swapped: the left projection has the baseline (entry 4), which \
                 belongs to the right one; {}",
            sources.swap
        ));
    }
    if p1.column(3).iter().any(|value| *value != 0.0) {
        return wrong(format!(
            "{source}: the left projection has a translation; only the right one has it"
        ));
    }
    let rows = "rows would not correspond";
    let columns = "the disparity of one depth would change across the picture";
    for (row, column, name, why) in [(0, 0, "fx", columns), (1, 1, "fy", rows), (1, 2, "cy", rows)]
    {
        let (a, b) = (p1[(row, column)], p2[(row, column)]);
        if !within((a - b).abs(), 1e-4 * p1[(0, 0)]) {
            return wrong(format!(
                "{source}: the projections do not fit each other: {name} is {a:.3} px for the left view and \
                     {b:.3} px for the right one, so that {why}; were the views calibrated together?"
            ));
        }
    }
    contradictions(calibration, rectification, sources)
}

/// Returns contradictions between the poses in the rectification and in rotation and translation.
fn contradictions(
    calibration: &StereoCalibration,
    rectification: &Rectification,
    sources: &Sources,
) -> Result<()> {
    let (pose, source) = (&sources.pose, &sources.rectification);
    let contradiction = |what: String| {
        Err(CalibrationError::new(format!(
            "{source} contradicts {pose}: {what}; the files are of different calibrations, or one was \
             edited"
        )))
    };
    let (rotation, translation) = rectification.pose();
    let apart = angle(&rotation, &calibration.rotation);
    if !within(apart, TOLERANCE) {
        return contradiction(format!(
            "by the rectification the views are turned {:.2} degrees otherwise",
            apart.to_degrees()
        ));
    }
    let (told, due) = (translation.norm(), calibration.translation.norm());
    if !within((told - due).abs(), TOLERANCE * due) {
        return contradiction(format!(
            "the baseline is {:.6} m by the projections and {:.6} m by the translation",
            told, due
        ));
    }
    if !within((translation - calibration.translation).norm(), 2.0 * TOLERANCE * due) {
        return contradiction(
            "the rotations do not turn the baseline into the rows of the picture".into(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
