//! Initial values of the least squares: homographies, focal length and poses in closed form.

use nalgebra::{Matrix3, SMatrix, Vector2, Vector3};

use super::rig::Pose;
use crate::Camera;

/// Directions with a smaller part of their length along the optical axis are skipped.
const AHEAD: f64 = 0.05;

/// A point of a plane and its pixel.
type Match = (Vector2<f64>, Vector2<f64>);

/// Returns the homography from the first to the second points, by the direct linear transformation
/// with normalised coordinates (Hartley 1997); `None` if they are too few or collinear.
pub(super) fn homography(matches: &[Match]) -> Option<Matrix3<f64>> {
    if matches.len() < 4 {
        return None;
    }
    let from = normalising(matches.iter().map(|m| m.0))?;
    let to = normalising(matches.iter().map(|m| m.1))?;
    let mut normal = SMatrix::<f64, 9, 9>::zeros();
    for (a, b) in matches {
        let (a, b) = (from * a.push(1.0), to * b.push(1.0));
        for (row, other) in [(0, b.x), (1, b.y)] {
            let mut equation = SMatrix::<f64, 9, 1>::zeros();
            equation.fixed_rows_mut::<3>(3 * row).copy_from(&a);
            equation.fixed_rows_mut::<3>(6).copy_from(&(a * -other));
            normal += equation * equation.transpose();
        }
    }
    let eigen = normal.symmetric_eigen();
    let mut order: Vec<usize> = (0..9).collect();
    order.sort_by(|&a, &b| eigen.eigenvalues[a].total_cmp(&eigen.eigenvalues[b]));
    // A second null direction means that the points are collinear.
    if eigen.eigenvalues[order[1]] < 1e-9 * eigen.eigenvalues[order[8]] {
        return None;
    }
    let h = eigen.eigenvectors.column(order[0]);
    let h = Matrix3::new(h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7], h[8]);
    Some(to.try_inverse()? * h * from)
}

/// Moves points to mean 0 and mean distance sqrt 2.
fn normalising(points: impl Iterator<Item = Vector2<f64>> + Clone) -> Option<Matrix3<f64>> {
    let count = points.clone().count() as f64;
    let mean = points.clone().sum::<Vector2<f64>>() / count;
    let spread = points.map(|p| (p - mean).norm()).sum::<f64>() / count;
    let scale = std::f64::consts::SQRT_2 / spread;
    scale.is_finite().then(|| {
        Matrix3::new(scale, 0.0, -scale * mean.x, 0.0, scale, -scale * mean.y, 0.0, 0.0, 1.0)
    })
}

/// Returns the focal length of a camera with known principal point, from homographies of boards (Zhang 2000,
/// section 3.1, with square pixels); `None` if the boards do not determine it, as when all face the camera.
pub(super) fn focal(homographies: &[Matrix3<f64>], centre: [f64; 2]) -> Option<f64> {
    let shift = Matrix3::new(1.0, 0.0, -centre[0], 0.0, 1.0, -centre[1], 0.0, 0.0, 1.0);
    // Without the camera, the columns of a homography are orthogonal and equally long: with w = 1 /
    // f^2, (a.x b.x + a.y b.y) w + a.z b.z = 0 and similarly for the lengths.
    let (mut above, mut below) = (0.0, 0.0);
    for h in homographies {
        let h = shift * h;
        let scale = 1.0 / (h.column(0).norm() * h.column(1).norm()).sqrt();
        let (a, b): (Vector3<f64>, Vector3<f64>) = (h.column(0) * scale, h.column(1) * scale);
        let flat = |p: &Vector3<f64>, q: &Vector3<f64>| p.x * q.x + p.y * q.y;
        for (slope, constant) in
            [(flat(&a, &b), a.z * b.z), (flat(&a, &a) - flat(&b, &b), a.z * a.z - b.z * b.z)]
        {
            above -= slope * constant;
            below += slope * slope;
        }
    }
    let inverse = above / below;
    (inverse.is_finite() && inverse > 0.0).then(|| 1.0 / inverse.sqrt())
}

/// Returns the pose of a board with points at these pixels; `None` if they do not determine it.
pub(super) fn pose(camera: &Camera, points: &[(Vector3<f64>, Vector2<f64>)]) -> Option<Pose> {
    let projection = camera.projection();
    let seen = |(point, pixel): &(Vector3<f64>, Vector2<f64>)| {
        let direction = projection.direction((*pixel).into())?;
        // A homography cannot represent sideways directions, which fisheyes see.
        let ahead = direction.z > AHEAD * direction.norm();
        ahead.then(|| (point.xy(), direction.xy() / direction.z))
    };
    let matches: Vec<Match> = points.iter().filter_map(seen).collect();
    let h = homography(&matches)?;
    let scale = 2.0 / (h.column(0).norm() + h.column(1).norm());
    // The board is in front of the camera.
    let mean = matches.iter().map(|m| m.0).sum::<Vector2<f64>>() / matches.len() as f64;
    let in_front = (h * mean.push(1.0)).z;
    let h = h * (scale * in_front.signum());
    let (first, second): (Vector3<f64>, Vector3<f64>) =
        (h.column(0).into_owned(), h.column(1).into_owned());
    let third = first.cross(&second);
    let svd = Matrix3::from_columns(&[first, second, third]).svd(true, true);
    let (mut u, v) = (svd.u?, svd.v_t?);
    if (u * v).determinant() < 0.0 {
        u.column_mut(2).neg_mut();
    }
    let found = Pose { rotation: u * v, translation: h.column(2).into_owned() };
    found.translation.iter().all(|value| value.is_finite()).then_some(found)
}

/// Returns the tilt angles of a board in radians: sideways (positive: its right side is farther
/// away) and up or down (positive: its lower side is farther away).
pub(super) fn tilt(pose: &Pose) -> [f64; 2] {
    let normal: Vector3<f64> = pose.rotation.column(2).into_owned();
    [(-normal.x).atan2(normal.z), (-normal.y).atan2(normal.z)]
}

#[cfg(test)]
mod tests {
    use super::super::rig::rotation;
    use super::super::{Model, projection::project};
    use super::*;

    #[test]
    fn homographies_are_found_exactly() {
        let expected = Matrix3::new(200.0, 10.0, 300.0, -20.0, 180.0, 200.0, 0.1, -0.2, 1.0);
        let matches: Vec<Match> = (0..12)
            .map(|i| {
                let from = Vector2::new(f64::from(i % 4), f64::from(i / 4)) * 0.3;
                let to = expected * from.push(1.0);
                (from, to.xy() / to.z)
            })
            .collect();
        let found = homography(&matches).unwrap();
        assert!((found / found[(2, 2)] - expected).norm() < 1e-7, "{found}");
        // The first row is collinear.
        assert!(homography(&matches[..4]).is_none());
        assert!(homography(&matches[..3]).is_none());
    }

    #[test]
    fn focal_length_and_poses_without_a_lens() {
        let camera = Model::PlumbBob.camera((640, 480), 520.0);
        let boards = [[0.3, 0.2, 0.1], [-0.4, 0.1, 0.0], [0.1, -0.5, 0.7]].map(|turn| Pose {
            rotation: rotation(&Vector3::from(turn)),
            translation: Vector3::new(-0.1, -0.05, 0.7),
        });
        let seen = boards.map(|board| -> Vec<_> {
            (0..20)
                .map(|i| {
                    let at = Vector3::new(0.03 * f64::from(i % 5), 0.03 * f64::from(i / 5), 0.0);
                    (at, project(&camera, &board.apply(&at)).unwrap().pixel)
                })
                .collect()
        });
        let homographies = seen.each_ref().map(|seen| {
            homography(&seen.iter().map(|(a, b)| (a.xy(), *b)).collect::<Vec<_>>()).unwrap()
        });
        let found = focal(&homographies, camera.centre).unwrap();
        assert!((found - 520.0).abs() < 1e-5, "{found}");
        for (board, seen) in boards.iter().zip(&seen) {
            let found = pose(&camera, seen).unwrap();
            assert!((found.rotation - board.rotation).norm() < 1e-7);
            assert!((found.translation - board.translation).norm() < 1e-7);
        }
        let straight = Pose { rotation: Matrix3::identity(), translation: Vector3::zeros() };
        assert_eq!(tilt(&straight).map(f64::abs), [0.0, 0.0]);
        let turned = Pose { rotation: rotation(&Vector3::new(0.0, -0.4, 0.0)), ..straight };
        assert!((tilt(&turned)[0] - 0.4).abs() < 1e-12, "{:?}", tilt(&turned));
        assert!(turned.apply(&Vector3::new(1.0, 0.0, 0.0)).z > 0.3);
        let turned = Pose { rotation: rotation(&Vector3::new(0.4, 0.0, 0.0)), ..straight };
        assert!((tilt(&turned)[1] - 0.4).abs() < 1e-12, "{:?}", tilt(&turned));
        assert!(turned.apply(&Vector3::new(0.0, 1.0, 0.0)).z > 0.3);
    }
}
