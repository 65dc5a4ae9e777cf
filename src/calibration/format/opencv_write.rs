//! Files for OpenCV's FileStorage, with the names of its stereo functions.

use nalgebra::{Matrix3x4, Matrix4};

use super::{joined, lens};
use crate::{Camera, Lens, StereoCalibration};

enum Item {
    /// Whole numbers.
    List(Vec<usize>),
    Text(&'static str),
    /// A matrix with this number of rows, row by row.
    Matrix(usize, Vec<f64>),
}

fn items(calibration: &StereoCalibration) -> Vec<(&'static str, Item)> {
    let camera = |camera: &Camera| {
        let ([fx, fy], [cx, cy]) = (camera.focal, camera.centre);
        let d = lens::coefficients(&camera.lens);
        // OpenCV's fisheye functions take a column, the others a row.
        let rows = if matches!(camera.lens, Lens::Fisheye(_)) { d.len() } else { 1 };
        (
            Item::Matrix(3, vec![fx, camera.skew, cx, 0.0, fy, cy, 0.0, 0.0, 1.0]),
            Item::Matrix(rows, d.to_vec()),
        )
    };
    let (k1, d1) = camera(&calibration.left);
    let (k2, d2) = camera(&calibration.right);
    let [size, other] =
        [&calibration.left, &calibration.right].map(|c| Item::List(vec![c.width, c.height]));
    let mut items = match (size, other) {
        (Item::List(size), Item::List(other)) if size != other => {
            vec![("image_size_1", Item::List(size)), ("image_size_2", Item::List(other))]
        }
        (size, _) => vec![("image_size", size)],
    };
    items.extend([
        ("K1", k1),
        ("D1", d1),
        ("K2", k2),
        ("D2", d2),
        ("R", Item::Matrix(3, calibration.rotation.transpose().as_slice().to_vec())),
        ("T", Item::Matrix(3, calibration.translation.as_slice().to_vec())),
    ]);
    let fisheye = |camera: &Camera| matches!(camera.lens, Lens::Fisheye(_));
    match (fisheye(&calibration.left), fisheye(&calibration.right)) {
        (true, true) => items.insert(1, ("distortion_model", Item::Text("fisheye"))),
        (true, false) => items.insert(1, ("distortion_model_1", Item::Text("fisheye"))),
        (false, true) => items.insert(1, ("distortion_model_2", Item::Text("fisheye"))),
        (false, false) => {}
    }
    if let Some(rectification) = &calibration.rectification {
        let (left, right) = (&rectification.left, &rectification.right);
        let matrix3x4 = |p: &Matrix3x4<f64>| Item::Matrix(3, p.transpose().as_slice().to_vec());
        let rotation =
            |r: &nalgebra::Matrix3<f64>| Item::Matrix(3, r.transpose().as_slice().to_vec());
        items.extend([
            ("rectified_size", Item::List(vec![rectification.width, rectification.height])),
            ("R1", rotation(&left.rotation)),
            ("R2", rotation(&right.rotation)),
            ("P1", matrix3x4(&left.projection)),
            ("P2", matrix3x4(&right.projection)),
            ("Q", Item::Matrix(4, q(&left.projection, &right.projection))),
        ]);
    }
    items
}

/// Returns the matrix Q of OpenCV's stereoRectify: (x, y, d, 1) to homogeneous coordinates.
fn q(p1: &Matrix3x4<f64>, p2: &Matrix3x4<f64>) -> Vec<f64> {
    let (f, cx, cy) = (p1[(0, 0)], p1[(0, 2)], p1[(1, 2)]);
    let tx = p2[(0, 3)] / p2[(0, 0)];
    #[rustfmt::skip]
    let q = Matrix4::new(
        1.0, 0.0, 0.0, -cx,
        0.0, 1.0, 0.0, -cy,
        0.0, 0.0, 0.0, f,
        0.0, 0.0, -1.0 / tx, (cx - p2[(0, 2)]) / tx,
    );
    q.transpose().as_slice().to_vec()
}

pub(super) fn yaml(calibration: &StereoCalibration) -> String {
    let mut text = "%YAML:1.0\n---\n".to_owned();
    for (name, item) in items(calibration) {
        text += &match item {
            Item::List(list) => format!("{name}: {}\n", spaced(&list)),
            Item::Text(word) => format!("{name}: {word}\n"),
            Item::Matrix(rows, values) => {
                let cols = values.len() / rows;
                let lines: Vec<_> = values.chunks(cols.max(3)).map(joined).collect();
                format!(
                    "{name}: !!opencv-matrix\n   rows: {rows}\n   cols: {cols}\n   dt: d\n   data: [ \
                     {} ]\n",
                    lines.join(",\n       ")
                )
            }
        };
    }
    text
}

fn spaced(list: &[usize]) -> String {
    let words: Vec<_> = list.iter().map(usize::to_string).collect();
    format!("[ {} ]", words.join(", "))
}

pub(super) fn xml(calibration: &StereoCalibration) -> String {
    let mut text = "<?xml version=\"1.0\"?>\n<opencv_storage>\n".to_owned();
    for (name, item) in items(calibration) {
        text += &match item {
            Item::List(list) => {
                let words: Vec<_> = list.iter().map(usize::to_string).collect();
                format!("<{name}>\n  {}</{name}>\n", words.join(" "))
            }
            Item::Text(word) => format!("<{name}>{word}</{name}>\n"),
            Item::Matrix(rows, values) => {
                let cols = values.len() / rows;
                let words = |row: &[f64]| joined(row).replace(',', "");
                let lines: Vec<_> = values.chunks(cols.max(3)).map(words).collect();
                format!(
                    "<{name} type_id=\"opencv-matrix\">\n  <rows>{rows}</rows>\n  <cols>{cols}</cols>\n  \
                     <dt>d</dt>\n  <data>\n    {}</data></{name}>\n",
                    lines.join("\n    ")
                )
            }
        };
    }
    text + "</opencv_storage>\n"
}

pub(super) fn json(calibration: &StereoCalibration) -> String {
    let entry = |(name, item): (&str, Item)| match item {
        Item::List(list) => format!("    \"{name}\": {}", spaced(&list)),
        Item::Text(word) => format!("    \"{name}\": \"{word}\""),
        Item::Matrix(rows, values) => {
            let cols = values.len() / rows;
            let lines: Vec<_> = values.chunks(cols.max(3)).map(joined).collect();
            format!(
                "    \"{name}\": {{\n        \"type_id\": \"opencv-matrix\",\n        \"rows\": {rows},\n        \
                 \"cols\": {cols},\n        \"dt\": \"d\",\n        \"data\": [ {} ]\n    }}",
                lines.join(",\n            ")
            )
        }
    };
    let entries: Vec<_> = items(calibration).into_iter().map(entry).collect();
    format!("{{\n{}\n}}\n", entries.join(",\n"))
}
