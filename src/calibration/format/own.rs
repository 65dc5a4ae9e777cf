//! Our own format: one TOML file for both cameras, with comments, for people to read and edit.

use nalgebra::{Matrix3, Matrix3x4, Vector3};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::draft::{Draft, ReadOptions, Report};
use super::{digits, joined, lens};
use crate::check::Sources;
use crate::error::Result;
use crate::{CalibrationError, Camera, Lens, Rectification, RectifiedView, StereoCalibration};

const VERSION: u32 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    calibration_version: u32,
    #[serde(default)]
    report: Report,
    left: CameraTable,
    right: CameraTable,
    rectification: Option<RectificationTable>,
    pose: PoseTable,
}

/// A list of exact length: serde's own arrays accept extra items.
struct Exactly<T, const N: usize>([T; N]);

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for Exactly<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items = Vec::<T>::deserialize(deserializer)?;
        let found = items.len();
        let wrong = |_| D::Error::custom(format!("expected a list of {N}, found {found}"));
        items.try_into().map(Exactly).map_err(wrong)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CameraTable {
    size: Exactly<u16, 2>,
    focal: Exactly<f64, 2>,
    centre: Exactly<f64, 2>,
    #[serde(default)]
    skew: f64,
    lens: LensName,
    distortion: Vec<f64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LensName {
    Brown,
    Fisheye,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PoseTable {
    rotation: Exactly<Exactly<f64, 3>, 3>,
    translation: Exactly<f64, 3>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RectificationTable {
    size: Exactly<u16, 2>,
    left_rotation: Exactly<Exactly<f64, 3>, 3>,
    right_rotation: Exactly<Exactly<f64, 3>, 3>,
    left_projection: Exactly<Exactly<f64, 4>, 3>,
    right_projection: Exactly<Exactly<f64, 4>, 3>,
}

fn matrix3(rows: &Exactly<Exactly<f64, 3>, 3>) -> Matrix3<f64> {
    Matrix3::from_fn(|row, column| rows.0[row].0[column])
}

fn matrix3x4(rows: &Exactly<Exactly<f64, 4>, 3>) -> Matrix3x4<f64> {
    Matrix3x4::from_fn(|row, column| rows.0[row].0[column])
}

fn parse(file: &str, text: &str) -> Result<File> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        let message = error.message().replace('\n', ", ");
        // A missing table has no line of its own.
        let missing = message.starts_with("missing field") && line == 1;
        let (place, hint) = match missing {
            true => (String::new(), ": the file is incomplete or cut off"),
            false => (format!(":{line}"), ""),
        };
        CalibrationError::new(format!("{file}{place}: {message}{hint}"))
    })
}

pub(super) fn read(file: &str, text: &str, _: &ReadOptions) -> Result<Draft> {
    let parsed = parse(file, text)?;
    if parsed.calibration_version != VERSION {
        return Err(CalibrationError::new(format!(
            "{file}: calibration_version is {}, and this stereod reads {VERSION}; update stereod",
            parsed.calibration_version
        )));
    }
    let report = parsed.report;
    if [report.rms_px, report.epipolar_error_px].iter().flatten().any(|v| !v.is_finite()) {
        return Err(CalibrationError::new(format!(
            "{file}: [report] has a number that is not finite"
        )));
    }
    let rectification = parsed.rectification.as_ref().map(rectification);
    if rectification.as_ref().is_some_and(|r| r.width == 0 || r.height == 0) {
        return Err(CalibrationError::new(format!(
            "{file}: rectification.size must be at least 1 by 1 pixels"
        )));
    }
    let calibration = StereoCalibration {
        left: camera(file, "left", parsed.left)?,
        right: camera(file, "right", parsed.right)?,
        rotation: matrix3(&parsed.pose.rotation),
        translation: Vector3::from(parsed.pose.translation.0),
        rectification,
    };
    let sources = Sources::of_file(file, ["[left]", "[right]", "[pose]", "[rectification]"])
        .convertible(file);
    Ok(Draft { report, ..Draft::new(calibration, sources) })
}

fn rectification(table: &RectificationTable) -> Rectification {
    let [width, height] = table.size.0.map(usize::from);
    let view = |rotation, projection| RectifiedView {
        rotation: matrix3(rotation),
        projection: matrix3x4(projection),
    };
    let left = view(&table.left_rotation, &table.left_projection);
    let right = view(&table.right_rotation, &table.right_projection);
    Rectification { width, height, left, right }
}

fn camera(file: &str, eye: &str, table: CameraTable) -> Result<Camera> {
    let model = match table.lens {
        LensName::Brown => lens::Model::Brown,
        LensName::Fisheye => lens::Model::Fisheye,
    };
    let lens = lens::lens(model, &table.distortion)
        .map_err(|what| CalibrationError::new(format!("{file}: {eye}.distortion: {what}")))?;
    let [width, height] = table.size.0.map(usize::from);
    let CameraTable { focal, centre, skew, .. } = table;
    if skew != 0.0 && model == lens::Model::Brown {
        return Err(CalibrationError::new(format!(
            "{file}: {eye}.skew: only a fisheye lens may have a skew"
        )));
    }
    Ok(Camera { width, height, focal: focal.0, centre: centre.0, skew, lens })
}

/// Returns the text of the file; the pose is last, so that a truncated file never passes for a whole one.
pub(super) fn write(calibration: &StereoCalibration, report: &Report) -> String {
    let mut text = format!(
        "\
# Calibration of a stereo pair, for `stereod --calibration`. Lengths are in metres, pixels count from
# the centre of the first one, axes point to the right (x), down (y) and forward (z).
calibration_version = {VERSION}
"
    );
    let report = report_table(report);
    if !report.is_empty() {
        text +=
            &format!("\n# How the calibration was made, and how good it is.\n[report]\n{report}");
    }
    for (eye, camera) in [("left", &calibration.left), ("right", &calibration.right)] {
        text += &camera_table(eye, camera);
    }
    if let Some(rectification) = &calibration.rectification {
        text += &rectification_table(rectification);
    }
    text += &format!(
        "
# A point x in the left camera's frame is rotation * x + translation in the right one's. The first
# number of the translation is negative: the right camera stands to the right.
[pose]
rotation = [
{}]
translation = [{}]
",
        rows(calibration.rotation.transpose().as_slice(), 3),
        joined(calibration.translation.as_slice())
    );
    text
}

fn report_table(report: &Report) -> String {
    let text = |value: &String| toml::Value::String(value.clone()).to_string();
    let number = |value: &f64| digits(*value);
    let lines = [
        ("made_by", report.made_by.as_ref().map(text), ""),
        ("date", report.date.as_ref().map(text), ""),
        ("rms_px", report.rms_px.as_ref().map(number), "  # reprojection error, root mean square"),
        (
            "epipolar_error_px",
            report.epipolar_error_px.as_ref().map(number),
            "  # mean distance from the epipolar line",
        ),
        ("pairs", report.pairs.map(|pairs| pairs.to_string()), "  # picture pairs that were used"),
    ];
    let line = |(key, value, comment): &(&str, Option<String>, &str)| {
        value.as_ref().map(|value| format!("{key} = {value}{comment}\n"))
    };
    lines.iter().filter_map(line).collect()
}

fn camera_table(eye: &str, camera: &Camera) -> String {
    let (name, order) = match camera.lens {
        Lens::Brown(_) => {
            ("brown", "k1 k2 p1 p2 k3, then k4 k5 k6, s1 s2 s3 s4, tau_x tau_y (OpenCV's order)")
        }
        Lens::Fisheye(_) => ("fisheye", "k1 k2 k3 k4 (equidistant)"),
    };
    let skew = match camera.skew {
        0.0 => String::new(),
        skew => format!("skew = {}  # entry (0, 1) of the camera matrix in pixels\n", digits(skew)),
    };
    format!(
        "
[{eye}]
size = [{}, {}]  # width and height of the pictures in pixels
focal = [{}]  # focal lengths in pixels, horizontally and vertically
centre = [{}]  # principal point in pixels
{skew}lens = \"{name}\"  # {order}
distortion = [{}]
",
        camera.width,
        camera.height,
        joined(&camera.focal),
        joined(&camera.centre),
        joined(lens::coefficients(&camera.lens)),
    )
}

fn rectification_table(rectification: &Rectification) -> String {
    let Rectification { width, height, left, right } = rectification;
    format!(
        "
# How the pictures are rectified: R1, R2, P1 and P2 of OpenCV's stereoRectify. Without this section
# stereod computes it.
[rectification]
size = [{width}, {height}]  # of the rectified pictures
left_rotation = [
{}]
right_rotation = [
{}]
left_projection = [
{}]
right_projection = [
{}]
",
        rows(left.rotation.transpose().as_slice(), 3),
        rows(right.rotation.transpose().as_slice(), 3),
        rows(left.projection.transpose().as_slice(), 4),
        rows(right.projection.transpose().as_slice(), 4),
    )
}

/// Formats a matrix, one row per line.
fn rows(values: &[f64], columns: usize) -> String {
    values.chunks(columns).map(|row| format!("    [{}],\n", joined(row))).collect()
}
