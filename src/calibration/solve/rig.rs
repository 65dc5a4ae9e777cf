//! Least squares over a rigid set of cameras and the boards in front of them.

use nalgebra::{DMatrix, DVector, Matrix2xX, Matrix3, RowVector3, SMatrix, Vector2, Vector3};

use super::Model;
use super::projection::{MOST, moved, project};
use crate::Camera;

/// Rigid transformation: x becomes `rotation * x + translation`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pose {
    pub rotation: Matrix3<f64>,
    pub translation: Vector3<f64>,
}

impl Pose {
    pub(super) const IDENTITY: Pose = Pose {
        rotation: Matrix3::new(1., 0., 0., 0., 1., 0., 0., 0., 1.),
        translation: Vector3::new(0., 0., 0.),
    };

    pub(super) fn apply(&self, point: &Vector3<f64>) -> Vector3<f64> {
        self.rotation * point + self.translation
    }

    pub(super) fn inverse(&self) -> Pose {
        let rotation = self.rotation.transpose();
        Pose { rotation, translation: -(rotation * self.translation) }
    }

    /// Composes: first `other`, then this.
    pub(super) fn after(&self, other: &Pose) -> Pose {
        Pose {
            rotation: self.rotation * other.rotation,
            translation: self.apply(&other.translation),
        }
    }

    /// Makes a transformation from a rotation vector (radians) and a translation.
    fn moved(&self, step: &[f64]) -> Pose {
        let turn = rotation(&Vector3::new(step[0], step[1], step[2]));
        Pose {
            rotation: turn * self.rotation,
            translation: self.translation + Vector3::new(step[3], step[4], step[5]),
        }
    }
}

/// Returns the rotation around a vector by its length in radians.
pub(super) fn rotation(around: &Vector3<f64>) -> Matrix3<f64> {
    *nalgebra::Rotation3::new(*around).matrix()
}

pub(super) fn rotation_vector(rotation: &Matrix3<f64>) -> Vector3<f64> {
    // By a quaternion, exact also for hardly any rotation: a cosine rounded above 1 has no angle.
    let rotation = nalgebra::Rotation3::from_matrix_unchecked(*rotation);
    nalgebra::UnitQuaternion::from_rotation_matrix(&rotation).scaled_axis()
}

/// Cameras with their poses, and the poses of the boards.
#[derive(Clone, Debug)]
pub(super) struct Rig {
    pub model: Model,
    pub cameras: Vec<Camera>,
    /// From the first camera's frame to each camera's; the first stays the identity.
    pub places: Vec<Pose>,
    /// From each board's frame to the first camera's.
    pub boards: Vec<Pose>,
}

#[derive(Clone, Debug)]
pub(super) struct View {
    pub camera: usize,
    pub board: usize,
    /// Points of the board in metres, and their pixels.
    pub points: Vec<(Vector3<f64>, Vector2<f64>)>,
}

/// Number of parameters of a board's shape: z = a x^2 + b x y + c y^2.
pub(super) const BEND: usize = 3;

/// Largest number of parameters that a view depends on: camera, pose, board's pose, board's shape.
const OF_VIEW: usize = MOST + 6 + 6 + BEND;

#[derive(Clone, Copy, Debug)]
pub(super) struct Offsets {
    cameras: usize,
    of_camera: usize,
}

impl Offsets {
    pub(super) fn camera(&self, camera: usize) -> usize {
        camera * self.of_camera
    }

    /// Returns the place of a camera's pose; the first camera has none.
    pub(super) fn place(&self, camera: usize) -> usize {
        self.cameras * self.of_camera + (camera - 1) * 6
    }

    pub(super) fn board(&self, board: usize) -> usize {
        self.cameras * self.of_camera + (self.cameras - 1) * 6 + board * 6
    }
}

pub(super) struct Normal {
    pub matrix: DMatrix<f64>,
    pub gradient: DVector<f64>,
}

impl Normal {
    pub(super) fn zeros(count: usize) -> Self {
        Self { matrix: DMatrix::zeros(count, count), gradient: DVector::zeros(count) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Free {
    /// Everything.
    All,
    /// All but the lens and the principal point.
    Pinhole,
    Poses,
    Boards,
}

impl Rig {
    pub(super) fn offsets(&self) -> Offsets {
        Offsets { cameras: self.cameras.len(), of_camera: self.model.count() }
    }

    /// Returns the residuals of a view, observed minus projected; `None` if a point cannot be seen.
    pub(super) fn residuals(&self, view: &View) -> Option<Matrix2xX<f64>> {
        let mut all = Matrix2xX::zeros(view.points.len());
        for (i, (point, pixel)) in view.points.iter().enumerate() {
            let in_camera = self.places[view.camera].apply(&self.boards[view.board].apply(point));
            let seen = project(&self.cameras[view.camera], &in_camera)?;
            all.set_column(i, &(pixel - seen.pixel));
        }
        Some(all)
    }

    /// Returns the sum of squares in pixels; `None` if a point cannot be seen.
    pub(super) fn cost(&self, views: &[View]) -> Option<f64> {
        let mut sum = 0.0;
        for view in views {
            sum += self.residuals(view)?.norm_squared();
        }
        sum.is_finite().then_some(sum)
    }

    fn normal(&self, views: &[View], free: Free) -> Option<Normal> {
        let offsets = self.offsets();
        let count = offsets.board(self.boards.len());
        let mut normal = Normal::zeros(count);
        for view in views {
            self.add(view, offsets.board(view.board), None, &mut normal)?;
        }
        let Normal { mut matrix, mut gradient } = normal;
        let all_cameras = self.cameras.len() * offsets.of_camera;
        let held: Vec<usize> = match free {
            Free::All => Vec::new(),
            Free::Pinhole => (0..all_cameras).filter(|i| i % offsets.of_camera > 1).collect(),
            Free::Poses => (0..all_cameras).collect(),
            Free::Boards => (0..offsets.board(0)).collect(),
        };
        for at in held {
            matrix.row_mut(at).fill(0.0);
            matrix.column_mut(at).fill(0.0);
            matrix[(at, at)] = 1.0;
            gradient[at] = 0.0;
        }
        Some(Normal { matrix, gradient })
    }

    /// Adds one view's part; `board` and `bend` are the offsets of its board's pose and free shape.
    pub(super) fn add(
        &self,
        view: &View,
        board: usize,
        bend: Option<usize>,
        normal: &mut Normal,
    ) -> Option<()> {
        let (local, slope) = self.local(view)?;
        let offsets = self.offsets();
        // Place of each parameter in the view's part, and in the whole.
        let mut at = Vec::with_capacity(OF_VIEW);
        let mut put = |own: usize, whole: usize, count: usize| {
            at.extend((0..count).map(|i| (own + i, whole + i)));
        };
        put(0, offsets.camera(view.camera), offsets.of_camera);
        if view.camera > 0 {
            put(MOST, offsets.place(view.camera), 6);
        }
        put(MOST + 6, board, 6);
        if let Some(bend) = bend {
            put(MOST + 12, bend, BEND);
        }
        for &(i, row) in &at {
            normal.gradient[row] += slope[i];
            for &(j, column) in &at {
                normal.matrix[(row, column)] += local[(i, j)];
            }
        }
        Some(())
    }

    /// Returns one view's part of the normal equations: camera, pose, board's pose, board's shape.
    fn local(
        &self,
        view: &View,
    ) -> Option<(SMatrix<f64, OF_VIEW, OF_VIEW>, SMatrix<f64, OF_VIEW, 1>)> {
        let (place, board) = (&self.places[view.camera], &self.boards[view.board]);
        let mut matrix = SMatrix::zeros();
        let mut gradient = SMatrix::zeros();
        for (point, pixel) in &view.points {
            let turned = board.rotation * point;
            let in_first = turned + board.translation;
            let placed = place.rotation * in_first;
            let seen = project(&self.cameras[view.camera], &(placed + place.translation))?;
            let mut row = SMatrix::<f64, 2, OF_VIEW>::zeros();
            row.fixed_view_mut::<2, MOST>(0, 0).copy_from(&seen.by_camera);
            let by_place = seen.by_point * placed.cross_matrix() * -1.0;
            row.fixed_view_mut::<2, 3>(0, MOST).copy_from(&by_place);
            row.fixed_view_mut::<2, 3>(0, MOST + 3).copy_from(&seen.by_point);
            let by_first = seen.by_point * place.rotation;
            let by_board = by_first * turned.cross_matrix() * -1.0;
            row.fixed_view_mut::<2, 3>(0, MOST + 6).copy_from(&by_board);
            row.fixed_view_mut::<2, 3>(0, MOST + 9).copy_from(&by_first);
            let by_height = by_first * board.rotation.column(2);
            let bend = RowVector3::new(point.x * point.x, point.x * point.y, point.y * point.y);
            row.fixed_view_mut::<2, BEND>(0, MOST + 12).copy_from(&(by_height * bend));
            matrix += row.transpose() * row;
            gradient += row.transpose() * (pixel - seen.pixel);
        }
        Some((matrix, gradient))
    }

    fn moved(&self, step: &DVector<f64>) -> Rig {
        let offsets = self.offsets();
        let part = |at: usize, count: usize| &step.as_slice()[at..at + count];
        let mut rig = self.clone();
        for (i, camera) in rig.cameras.iter_mut().enumerate() {
            *camera = moved(camera, part(offsets.camera(i), offsets.of_camera));
        }
        for (i, place) in rig.places.iter_mut().enumerate().skip(1) {
            *place = place.moved(part(offsets.place(i), 6));
        }
        for (i, board) in rig.boards.iter_mut().enumerate() {
            *board = board.moved(part(offsets.board(i), 6));
        }
        rig
    }

    /// Minimises the sum of squares by the method of Levenberg and Marquardt (Marquardt 1963) in at
    /// most `rounds` steps. Returns the sum; `None` if a point cannot be seen at the start.
    pub(super) fn refine(&mut self, views: &[View], free: Free, rounds: usize) -> Option<f64> {
        let mut cost = self.cost(views)?;
        let mut damping = 1e-3;
        for _ in 0..rounds {
            let normal = self.normal(views, free)?;
            let Some((better, next)) = self.step(views, &normal, cost, &mut damping) else { break };
            let gained = cost - next;
            (*self, cost) = (better, next);
            // The rest is rounding.
            if gained <= 1e-14 * cost || cost < 1e-24 {
                break;
            }
        }
        Some(cost)
    }

    /// Takes the first step that reduces the sum, with increasing damping.
    fn step(
        &self,
        views: &[View],
        normal: &Normal,
        cost: f64,
        damping: &mut f64,
    ) -> Option<(Rig, f64)> {
        while *damping < 1e12 {
            let mut matrix = normal.matrix.clone();
            for i in 0..matrix.nrows() {
                matrix[(i, i)] += *damping * matrix[(i, i)] + 1e-12;
            }
            if let Some(factor) = matrix.cholesky() {
                let moved = self.moved(&factor.solve(&normal.gradient));
                if let Some(next) = moved.cost(views).filter(|next| *next < cost) {
                    *damping = (*damping / 10.0).max(1e-15);
                    return Some((moved, next));
                }
            }
            *damping *= 10.0;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poses_are_composed_and_turned_back() {
        let a = Pose {
            rotation: rotation(&Vector3::new(0.3, -0.2, 0.5)),
            translation: Vector3::new(1.0, 2.0, 3.0),
        };
        let b = Pose {
            rotation: rotation(&Vector3::new(-0.1, 0.7, 0.2)),
            translation: Vector3::new(-1.0, 0.5, 0.25),
        };
        let point = Vector3::new(0.4, -0.3, 1.7);
        assert!((a.after(&b).apply(&point) - a.apply(&b.apply(&point))).norm() < 1e-14);
        assert!((a.inverse().apply(&a.apply(&point)) - point).norm() < 1e-14);
        let vector = rotation_vector(&a.rotation);
        assert!((vector - Vector3::new(0.3, -0.2, 0.5)).norm() < 1e-12);
    }

    #[test]
    fn the_gradient_is_that_of_the_cost() {
        let model = Model::PlumbBob;
        let camera = model.camera((640, 480), 500.0);
        let mut rig = Rig {
            model,
            cameras: vec![camera.clone(), camera],
            places: vec![
                Pose::IDENTITY,
                Pose::IDENTITY.moved(&[0.02, -0.1, 0.03, -0.1, 0.01, 0.0]),
            ],
            boards: vec![Pose::IDENTITY.moved(&[0.3, 0.2, -0.4, -0.1, -0.05, 0.6])],
        };
        let views = [0, 1].map(|camera| View {
            camera,
            board: 0,
            points: (0..12)
                .map(|i| {
                    let at = Vector3::new(0.03 * f64::from(i % 4), 0.04 * f64::from(i / 4), 0.0);
                    (at, Vector2::new(300.0 + f64::from(i), 200.0))
                })
                .collect(),
        });
        rig.cameras[1] =
            moved(&rig.cameras[1], &[3.0, 5.0, 1.0, 2.0, -0.2, 0.05, 0.001, 0.002, 0.01]);
        let normal = rig.normal(&views, Free::All).unwrap();
        for parameter in 0..normal.gradient.len() {
            let at = |by: f64| {
                let mut step = DVector::zeros(normal.gradient.len());
                step[parameter] = by;
                rig.moved(&step).cost(&views).unwrap()
            };
            let slope = (at(1e-6) - at(-1e-6)) / 2e-6;
            let expected = -2.0 * normal.gradient[parameter];
            let close = (slope - expected).abs() < 1e-4 * expected.abs().max(100.0);
            assert!(close, "parameter {parameter}: {slope} instead of {expected}");
        }
    }
}
