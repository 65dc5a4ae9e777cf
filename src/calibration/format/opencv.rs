//! Results of OpenCV's stereoCalibrate and stereoRectify as YAML, XML or JSON, in one file or two (intrinsics
//! and extrinsics). OpenCV prescribes no names, so common ones are accepted: K1 D1, M1 D1 (OpenCV's sample
//! stereo_calib), cameraMatrix1 distCoeffs1, camera_matrix_left, LEFT.K, and similar ones.

use nalgebra::{Matrix3, Rotation3, Vector3};

use super::draft::{Draft, ReadOptions, Report};
use super::lens::{self, Model};
pub(super) use super::opencv_names::is_calibration;
use super::opencv_names::{
    CAMERA_MODEL, D, Entries, K, MIRROR, MODEL, P, R, ROTATION, ROTATION_VECTOR, SIDES,
    TRANSLATION, numbers_of, owned, sided,
};
use super::tree::{At, Node, Value};
use super::{Format, Loaded};
use crate::check::{self, Sources};
use crate::error::Result;
use crate::{CalibrationError, Camera, Lens, Rectification, RectifiedView, StereoCalibration};

/// A camera of OpenCV: the camera matrix, and the distortion coefficients.
pub type Matrices<'a> = ([[f64; 3]; 3], &'a [f64]);

/// Makes a calibration of the results of OpenCV's stereoCalibrate, or of its fisheye's. The translation is in metres.
pub fn of_cameras(
    cameras: [Matrices; 2],
    rotation: [[f64; 3]; 3],
    translation: [f64; 3],
    (width, height): (usize, usize),
    is_fisheye: bool,
) -> Result<Loaded> {
    let model = if is_fisheye { Model::Fisheye } else { Model::Brown };
    let camera = |eye: usize| {
        let (number, (matrix, coefficients)) = (eye + 1, cameras[eye]);
        let [[fx, skew, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]] = matrix else {
            return Err(CalibrationError::new(format!(
                "K{number} is {matrix:?}; a camera matrix is [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]"
            )));
        };
        let lens = lens::lens(model, coefficients)
            .map_err(|what| CalibrationError::new(format!("D{number} has {what}")))?;
        Ok(Camera { width, height, focal: [fx, fy], centre: [cx, cy], skew, lens })
    };
    let sources = Sources {
        left: "K1, D1".into(),
        right: "K2, D2".into(),
        pose: "R, T".into(),
        inverse: Some("give R.T and -R.T @ T".into()),
        unit: Some("T is in metres; divide one in mm by 1000".into()),
        ..Sources::default()
    };
    let mut calibration = StereoCalibration {
        left: camera(0)?,
        right: camera(1)?,
        rotation: Matrix3::from(rotation).transpose(),
        translation: translation.into(),
        rectification: None,
    };
    check::make_rotations(&mut calibration, &sources)?;
    let notes = check::check(&calibration, &sources)?;
    Ok(Loaded { notes, ..Loaded::of(calibration, Format::OpenCvYaml) })
}

/// Returns the names of some values and their files, such as `a.yml (K1, D1)`.
fn locations(values: &[&At]) -> String {
    let mut files: Vec<(&str, Vec<&str>)> = Vec::new();
    for at in values {
        match files.iter_mut().find(|(file, _)| *file == at.file()) {
            Some((_, paths)) => paths.push(at.path()),
            None => files.push((at.file(), vec![at.path()])),
        }
    }
    let text = |(file, paths): &(&str, Vec<&str>)| format!("{file} ({})", paths.join(", "));
    files.iter().map(text).collect::<Vec<_>>().join(" and ")
}

struct Eye<'a> {
    camera: Camera,
    k: At<'a>,
    d: At<'a>,
}

/// Reads one file, or intrinsics and extrinsics in either order.
pub(super) fn read(roots: &[At], options: &ReadOptions) -> Result<Draft> {
    let entries = Entries::of(roots);
    let files = roots.iter().map(At::file).collect::<Vec<_>>().join(" and ");
    let Some((sides, k_left, k_right)) = find_eyes(&entries)? else {
        return Err(CalibrationError::new(without_cameras(roots, &entries, &files)));
    };
    let mut notes = Vec::new();
    let left = eye(&entries, k_left, sides[0], options, &files)?;
    let right = eye(&entries, k_right, sides[1], options, &files)?;
    if let Some(size) = options.size
        && find_size(&entries, sides[0])?.is_none()
    {
        notes.push(format!("{files}: says no picture size; {}x{} is assumed", size.0, size.1));
    }
    notes.extend(doubt_of_lens(&entries, sides, [&left, &right])?);
    let views = views(&entries, sides, &files, &mut notes)?;
    let (views, source) = views.unzip();
    let source = source.unwrap_or_default();
    let (width, height) =
        find_rectified_size(&entries)?.unwrap_or((left.camera.width, left.camera.height));
    let mut rectification = views.map(|[left, right]| Rectification { width, height, left, right });
    let (rotation, translation, unit, pose) =
        pose(&entries, rectification.as_ref(), &files, &source)?;
    if let Some(rectification) = &mut rectification {
        rectification.scale_translations(unit);
    }
    let sources = Sources {
        left: locations(&[&left.k, &left.d]),
        right: locations(&[&right.k, &right.d]),
        pose,
        rectification: source,
        unit_m: unit,
        ..Sources::default()
    };
    let sources = sources.convertible(&roots.iter().map(At::file).collect::<Vec<_>>().join(","));
    let (left, right) = (left.camera, right.camera);
    let report = report(&entries)?;
    let calibration = StereoCalibration { left, right, rotation, translation, rectification };
    Ok(Draft { report, notes, ..Draft::new(calibration, sources) })
}

/// Returns the names of both sides, and the camera matrices of the left and the right view.
fn find_eyes<'a>(entries: &Entries<'a>) -> Result<Option<([&'static str; 2], At<'a>, At<'a>)>> {
    for sides in SIDES {
        if let (Some(left), Some(right)) =
            (entries.of_eye(K, sides[0])?, entries.of_eye(K, sides[1])?)
        {
            return Ok(Some((sides, left, right)));
        }
    }
    Ok(None)
}

/// Returns a note if the model of a lens with four coefficients is a guess.
fn doubt_of_lens(entries: &Entries, sides: [&str; 2], eyes: [&Eye; 2]) -> Result<Option<String>> {
    for eye in eyes {
        if let (Lens::Brown(_), 4) = (&eye.camera.lens, numbers_of(&eye.d).len())
            && model(entries, sides)?.is_none()
        {
            return Ok(Some(format!(
                "{}: 4 coefficients are taken as k1 k2 p1 p2; for a fisheye lens add the line \
                 `distortion_model: fisheye`",
                locations(&[&eye.d])
            )));
        }
    }
    Ok(None)
}

fn without_cameras(roots: &[At], entries: &Entries, files: &str) -> String {
    let keys = roots.iter().map(At::keys).collect::<Vec<_>>().join(", ");
    let mono = entries.list.iter().any(|(name, at)| name == "cameramatrix" && at.is_matrix());
    let pose = entries.list.iter().any(|(name, _)| name == "t" || name == "r1");
    match (mono, roots.len()) {
        (true, 1) => format!(
            "{files}: describes one camera only (camera_matrix); a stereo calibration has those of both \
             views and how they stand to each other (K1 D1 K2 D2 R T); `stereod calibrate` makes one"
        ),
        (true, _) => format!(
            "{files}: describe one camera each, but not how they stand to each other (R, T); calibrate \
             them as a stereo pair: `stereod calibrate`"
        ),
        (false, 1) if pose => format!(
            "{files}: has no camera matrices of both views (K1, K2; keys: {keys}); if they are in a file \
             of their own, name both files with a comma between them: intrinsics.yml,extrinsics.yml"
        ),
        _ => format!(
            "{files}: no camera matrices of both views (such as K1 and K2; keys: {keys}); incomplete or \
             cut off"
        ),
    }
}

fn eye<'a>(
    entries: &Entries<'a>,
    k: At<'a>,
    side: &str,
    options: &ReadOptions,
    files: &str,
) -> Result<Eye<'a>> {
    let d = entries.of_eye(D, side)?.ok_or_else(|| {
        k.error(
            "the distortion coefficients of this camera (D1, D2) are missing: incomplete or cut off",
        )
    })?;
    let values = match d.numbers() {
        // Some programs write the coefficients as a list in a list, in any shape.
        Err(_) if d.items().len() == 1 => d.items()[0].numbers()?,
        other => other?,
    };
    let model = model(entries, [side, side])?.unwrap_or(Model::Brown);
    let lens = lens::lens(model, &values).map_err(|what| d.error(what))?;
    let size = match find_size(entries, side)?.or(options.size) {
        Some(size) => size,
        None => {
            return Err(CalibrationError::without_size(format!(
                "{files}: the size of the pictures is missing: add the line `image_size: [ WIDTH, \
                 HEIGHT ]`, or give the size (on the command line --size WIDTHxHEIGHT)"
            )));
        }
    };
    Ok(Eye { camera: k.camera(size, lens)?, k, d })
}

fn model(entries: &Entries, sides: [&str; 2]) -> Result<Option<Model>> {
    let find = |bases: &str, fits: fn(&Node) -> bool| {
        let mut names = owned(bases);
        sides.iter().for_each(|side| names.extend(sided(bases, side)));
        entries.find(&names, fits)
    };
    if let Some(mirror) = find(MIRROR, |_| true)? {
        return Err(mirror.error(
            "an omnidirectional lens (cv::omnidir) is not supported; calibrate it as a fisheye lens",
        ));
    }
    let is_word = |node: &Node| !node.is_matrix();
    let distortion = find(MODEL, is_word)?;
    match distortion.as_ref().map(|at| &at.node.value) {
        Some(Value::Number(flag)) => Ok((*flag != 0.0).then_some(Model::Fisheye)),
        Some(Value::Text(flag)) if flag == "true" => Ok(Some(Model::Fisheye)),
        Some(Value::Text(flag)) if flag == "false" => Ok(None),
        _ => {
            // `model` may be the name of the camera.
            let is_lens = |node: &Node| match &node.value {
                Value::Text(name) => lens::model(name).is_some(),
                _ => false,
            };
            let camera = find(CAMERA_MODEL, is_word)?;
            let camera = if camera.is_none() { find("model", is_lens)? } else { camera };
            lens::of_file(distortion.as_ref(), camera.as_ref())
        }
    }
}

/// Returns width and height of the images, if a file has them.
fn find_size(entries: &Entries, side: &str) -> Result<Option<(usize, usize)>> {
    let size = "imagesize size imgsize picturesize framesize resolution";
    let (width, height) =
        ("imagewidth width w nx imagesizewidth", "imageheight height h ny imagesizeheight");
    let find =
        |bases: &str, fits: fn(&Node) -> bool| match entries.find(&sided(bases, side), fits)? {
            Some(found) => Ok(Some(found)),
            None => entries.find(&owned(bases), fits),
        };
    let two = match (find(width, Node::is_number)?, find(height, Node::is_number)?) {
        (Some(width), Some(height)) => Some((width.side()?, height.side()?)),
        _ => None,
    };
    let Some(list) = find(size, Node::is_matrix)? else { return Ok(two) };
    let one = list.size()?;
    match two {
        Some(two) if two != one => Err(list.error(format!(
            "contradicts the width and height of {}x{} in the same calibration",
            two.0, two.1
        ))),
        _ => Ok(Some(one)),
    }
}

fn find_rectified_size(entries: &Entries) -> Result<Option<(usize, usize)>> {
    let names = "rectifiedsize newimagesize rectifiedimagesize";
    entries.matrix(names)?.map(|at| at.size()).transpose()
}

/// Returns R1, P1 and R2, P2, and their places; `None` if the files have no rectification.
fn views(
    entries: &Entries,
    sides: [&str; 2],
    files: &str,
    notes: &mut Vec<String>,
) -> Result<Option<([RectifiedView; 2], String)>> {
    let (r1, r2) = (entries.of_eye(R, sides[0])?, entries.of_eye(R, sides[1])?);
    let (p1, p2) = (entries.of_eye(P, sides[0])?, entries.of_eye(P, sides[1])?);
    let view = |r: &At, p: &At| -> Result<RectifiedView> {
        Ok(RectifiedView { rotation: r.matrix3()?, projection: p.matrix3x4()? })
    };
    match [&r1, &r2, &p1, &p2] {
        [Some(r1), Some(r2), Some(p1), Some(p2)] => {
            Ok(Some(([view(r1, p1)?, view(r2, p2)?], locations(&[r1, r2, p1, p2]))))
        }
        [None, None, None, None] => Ok(None),
        [Some(_), Some(_), None, None] => {
            notes.push(format!("{files}: R1 and R2 without P1 and P2 are left out"));
            Ok(None)
        }
        parts => {
            let there: Vec<&At> = parts.into_iter().flatten().collect();
            Err(CalibrationError::new(format!(
                "{}: a rectification has R1, R2, P1 and P2; some are missing: the file is incomplete or \
                 cut off",
                locations(&there)
            )))
        }
    }
}

/// Returns rotation, translation in metres, metres per unit of the projections, and their place.
fn pose(
    entries: &Entries,
    rectification: Option<&Rectification>,
    files: &str,
    rectified: &str,
) -> Result<(Matrix3<f64>, Vector3<f64>, f64, String)> {
    // Files may have both; the matrix needs no conversion.
    let rotation = match entries.matrix(ROTATION)? {
        None => entries.matrix(ROTATION_VECTOR)?,
        matrix => matrix,
    };
    let mut translation = None;
    let units =
        TRANSLATION.iter().flat_map(|(names, unit)| names.split(' ').map(move |name| (name, unit)));
    for (name, unit) in units {
        let Some(found) = entries.matrix(name)? else { continue };
        let metres = Vector3::from(found.exactly()?) * *unit;
        match &translation {
            None => translation = Some((found, metres, *unit)),
            Some((first, other, _)) if (*other - metres).norm() > 1e-6 * metres.norm() => {
                return Err(
                    found.error(format!("contradicts {}; remove the wrong one", first.path()))
                );
            }
            _ => {}
        }
    }
    match (rotation, translation, rectification) {
        (Some(r), Some((t, metres, unit)), _) => {
            let matrix = match numbers_of(&r).len() {
                3 => Rotation3::from_scaled_axis(Vector3::from(r.exactly()?)).into_inner(),
                _ => r.matrix3()?,
            };
            Ok((matrix, metres, unit, locations(&[&r, &t])))
        }
        (None, None, Some(rectification)) => {
            let p = &rectification.right.projection;
            if !(p[(0, 0)] > 0.0 && p[(1, 1)] > 0.0) {
                return Err(CalibrationError::new(format!(
                    "{rectified}: the right projection has a focal length that is not above 0"
                )));
            }
            let (rotation, translation) = rectification.pose();
            Ok((rotation, translation, 1.0, rectified.to_owned()))
        }
        (r, t, _) => Err(CalibrationError::new(format!(
            "{files}: {} missing, so that it is not known how the cameras stand to each other; if it is \
             in a file of its own, name both with a comma between them: intrinsics.yml,extrinsics.yml",
            match (r, t) {
                (None, None) => "rotation and translation (R, T) are",
                (None, _) => "the rotation (R) is",
                _ => "the translation (T) is",
            }
        ))),
    }
}

/// Returns the quality of the calibration in the files.
fn report(entries: &Entries) -> Result<Report> {
    let number = |names: &str| -> Option<f64> {
        let found = entries.find(&owned(names), Node::is_number).ok()??;
        found.number().ok().filter(|value| *value >= 0.0)
    };
    let names = owned("calibrationdate calibrationtime date");
    let date = entries.find(&names, |node| matches!(node.value, Value::Text(_)))?;
    Ok(Report {
        date: date.map(|at| at.text().map(str::to_owned)).transpose()?,
        rms_px: number("rmspx rms rmse rmserror stereorms reprojectionerror"),
        epipolar_error_px: number("meanepipolarerrorpx epipolarerror epipolarerrorpx"),
        ..Report::default()
    })
}
