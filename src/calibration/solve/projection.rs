//! Projection of a point in space to a pixel, with the derivatives for least squares. For lenses
//! that are never solved for, see [`crate::projection`].

use nalgebra::{Matrix2, Matrix2x3, SMatrix, Vector2, Vector3};

use super::Model;
use crate::{Camera, Lens};

/// Largest number of parameters of a camera: two focal lengths, the principal point, eight of the lens.
pub(super) const MOST: usize = 12;

/// Nearer the image plane than this part of their distance, only fisheyes see points.
const GRAZING: f64 = 1e-3;

/// A pixel and its derivatives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Projected {
    pub pixel: Vector2<f64>,
    /// With respect to the point in the camera's frame.
    pub by_point: Matrix2x3<f64>,
    /// With respect to the camera's parameters, in the order of [`parameters`].
    pub by_camera: SMatrix<f64, 2, MOST>,
}

impl Model {
    /// Returns the number of parameters of a camera.
    pub(super) fn count(self) -> usize {
        4 + match self {
            Model::PlumbBob => 5,
            Model::Rational => 8,
            Model::Fisheye => 4,
        }
    }

    /// Returns a camera without distortion.
    pub(super) fn camera(self, (width, height): (usize, usize), focal: f64) -> Camera {
        let lens = match self {
            Model::PlumbBob | Model::Rational => Lens::Brown([0.0; 14]),
            Model::Fisheye => Lens::Fisheye([0.0; 4]),
        };
        let centre = [(width as f64 - 1.0) / 2.0, (height as f64 - 1.0) / 2.0];
        Camera { width, height, focal: [focal; 2], centre, skew: 0.0, lens }
    }
}

/// Moves a camera's parameters by `step`, in the order focal lengths, principal point, lens.
pub(super) fn moved(camera: &Camera, step: &[f64]) -> Camera {
    let mut camera = camera.clone();
    let lens: &mut [f64] = match &mut camera.lens {
        Lens::Brown(coefficients) => coefficients,
        Lens::Fisheye(coefficients) => coefficients,
    };
    let pinhole = camera.focal.iter_mut().chain(&mut camera.centre);
    pinhole.chain(lens).zip(step).for_each(|(value, step)| *value += step);
    camera
}

/// Projects a point in the camera's frame; `None` if the camera cannot see it.
pub(super) fn project(camera: &Camera, point: &Vector3<f64>) -> Option<Projected> {
    let (bent, by_point, by_lens) = match &camera.lens {
        Lens::Brown(coefficients) => brown(coefficients, point)?,
        Lens::Fisheye(coefficients) => fisheye(coefficients, point)?,
    };
    let focal = Matrix2::new(camera.focal[0], 0.0, 0.0, camera.focal[1]);
    let mut by_camera = SMatrix::<f64, 2, MOST>::zeros();
    by_camera[(0, 0)] = bent.x;
    by_camera[(1, 1)] = bent.y;
    by_camera[(0, 2)] = 1.0;
    by_camera[(1, 3)] = 1.0;
    by_camera.fixed_view_mut::<2, 8>(0, 4).copy_from(&(focal * by_lens));
    let pixel = focal * bent + Vector2::from(camera.centre);
    Some(Projected { pixel, by_point: focal * by_point, by_camera })
}

type Bent = (Vector2<f64>, Matrix2x3<f64>, SMatrix<f64, 2, 8>);

/// Projects by Brown-Conrady with the rational part, as OpenCV's projectPoints without thin prism
/// and tilt, which are never solved for.
fn brown(coefficients: &[f64; 14], point: &Vector3<f64>) -> Option<Bent> {
    // Also if the point is the camera's centre.
    if point.z <= GRAZING * point.norm() {
        return None;
    }
    let [k1, k2, p1, p2, k3, k4, k5, k6, ..] = *coefficients;
    let (x, y) = (point.x / point.z, point.y / point.z);
    let (xy, r2) = (x * y, x * x + y * y);
    let (r4, r6) = (r2 * r2, r2 * r2 * r2);
    let above = 1.0 + k1 * r2 + k2 * r4 + k3 * r6;
    let below = 1.0 + k4 * r2 + k5 * r4 + k6 * r6;
    let radial = above / below;
    let slope = (k1 + 2.0 * k2 * r2 + 3.0 * k3 * r4
        - radial * (k4 + 2.0 * k5 * r2 + 3.0 * k6 * r4))
        / below;
    let (tx, ty) = (r2 + 2.0 * x * x, r2 + 2.0 * y * y);
    let bent =
        Vector2::new(x * radial + 2.0 * p1 * xy + p2 * tx, y * radial + p1 * ty + 2.0 * p2 * xy);
    let cross = 2.0 * xy * slope + 2.0 * p1 * x + 2.0 * p2 * y;
    let by_plane = Matrix2::new(
        radial + 2.0 * x * x * slope + 2.0 * p1 * y + 6.0 * p2 * x,
        cross,
        cross,
        radial + 2.0 * y * y * slope + 6.0 * p1 * y + 2.0 * p2 * x,
    );
    let by_point = by_plane * Matrix2x3::new(1.0, 0.0, -x, 0.0, 1.0, -y) / point.z;
    let plain = Vector2::new(x, y) / below;
    let columns = [
        plain * r2,
        plain * r4,
        Vector2::new(2.0 * xy, ty),
        Vector2::new(tx, 2.0 * xy),
        plain * r6,
        plain * (-radial * r2),
        plain * (-radial * r4),
        plain * (-radial * r6),
    ];
    Some((bent, by_point, SMatrix::from_columns(&columns)))
}

/// Projects by Kannala-Brandt, as OpenCV's fisheye::projectPoints without skew.
fn fisheye(coefficients: &[f64; 4], point: &Vector3<f64>) -> Option<Bent> {
    let [k1, k2, k3, k4] = *coefficients;
    let across = Vector2::new(point.x, point.y);
    let rho = across.norm();
    let mut by_lens = SMatrix::<f64, 2, 8>::zeros();
    if rho < 1e-12 * point.z {
        // In the middle the lens has no effect.
        let by_point = Matrix2x3::new(1.0, 0.0, 0.0, 0.0, 1.0, 0.0) / point.z;
        return Some((across / point.z, by_point, by_lens));
    }
    if rho == 0.0 {
        return None;
    }
    let theta = rho.atan2(point.z);
    let t2 = theta * theta;
    let bent_theta = theta * (1.0 + t2 * (k1 + t2 * (k2 + t2 * (k3 + t2 * k4))));
    let slope = 1.0 + t2 * (3.0 * k1 + t2 * (5.0 * k2 + t2 * (7.0 * k3 + t2 * 9.0 * k4)));
    let outwards = across / rho;
    let squared = rho * rho + point.z * point.z;
    let scale = bent_theta / rho;
    // In the radial direction the angle changes, across it only the direction.
    let along = slope * point.z / squared;
    let by_plane = outwards * outwards.transpose() * (along - scale) + Matrix2::identity() * scale;
    let by_depth = outwards * (-slope * rho / squared);
    let by_point = Matrix2x3::from_columns(&[
        by_plane.column(0).into_owned(),
        by_plane.column(1).into_owned(),
        by_depth,
    ]);
    let mut power = theta;
    for column in 0..4 {
        power *= t2;
        by_lens.set_column(column, &(outwards * power));
    }
    Some((outwards * bent_theta, by_point, by_lens))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cameras() -> Vec<(Model, Camera)> {
        let mut brown = [0.0; 14];
        brown[..8].copy_from_slice(&[-0.28, 0.09, 0.002, -0.001, 0.03, 0.02, -0.01, 0.004]);
        [
            (Model::Rational, Lens::Brown(brown)),
            (Model::Fisheye, Lens::Fisheye([-0.02, 0.004, -0.003, 0.0005])),
        ]
        .map(|(model, lens)| {
            let camera = model.camera((640, 480), 400.0);
            (model, Camera { focal: [400.0, 410.0], centre: [318.0, 243.0], lens, ..camera })
        })
        .to_vec()
    }

    #[test]
    fn derivatives_are_those_of_the_projection() {
        for (model, camera) in cameras() {
            let point = Vector3::new(0.31, -0.22, 1.1);
            let here = project(&camera, &point).unwrap();
            let close = |a: Vector2<f64>, b: Vector2<f64>, what: &str| {
                assert!((a - b).norm() < 1e-4 * b.norm().max(1.0), "{model:?} {what}: {a} {b}");
            };
            let step = 1e-6;
            for axis in 0..3 {
                let mut side = [point, point];
                side[0][axis] += step;
                side[1][axis] -= step;
                let [after, before] = side.map(|p| project(&camera, &p).unwrap().pixel);
                let slope = (after - before) / (2.0 * step);
                close(here.by_point.column(axis).into_owned(), slope, "point");
            }
            for parameter in 0..model.count() {
                let mut steps = vec![0.0; model.count()];
                let mut at = |by: f64| {
                    steps[parameter] = by;
                    project(&moved(&camera, &steps), &point).unwrap().pixel
                };
                let slope = (at(step) - at(-step)) / (2.0 * step);
                close(here.by_camera.column(parameter).into_owned(), slope, "camera");
            }
        }
    }

    /// Pixels of cv2.projectPoints and cv2.fisheye.projectPoints (OpenCV 4.10) of (0.31, -0.22, 1.1)
    /// for the cameras above.
    #[test]
    fn pixels_are_those_of_opencv() {
        let expected = [[426.661629666880, 164.020605271243], [426.300918770041, 164.219815539857]];
        for ((model, camera), expected) in cameras().into_iter().zip(expected) {
            let pixel = project(&camera, &Vector3::new(0.31, -0.22, 1.1)).unwrap().pixel;
            assert!((pixel - Vector2::from(expected)).norm() < 1e-9, "{model:?}: {pixel}");
        }
    }

    #[test]
    fn pixels_are_those_of_the_plain_projection() {
        for (model, camera) in cameras() {
            let plain = camera.projection();
            for point in [[0.0, 0.0, 1.0], [0.4, -0.3, 1.0], [-0.5, 0.35, 0.9]] {
                let point = Vector3::from(point);
                let expected = Vector2::from(plain.pixel(point).unwrap());
                let pixel = project(&camera, &point).unwrap().pixel;
                assert!((pixel - expected).norm() < 1e-9, "{model:?} {pixel} {expected}");
            }
        }
    }

    #[test]
    fn what_is_behind_is_not_seen() {
        let brown = &cameras()[0].1;
        assert!(project(brown, &Vector3::new(0.1, 0.0, -1.0)).is_none());
        assert!(project(brown, &Vector3::zeros()).is_none());
        // A fisheye sees beyond 90 degrees.
        assert!(project(&cameras()[1].1, &Vector3::new(1.0, 0.0, -0.05)).is_some());
    }
}
