//! Rectifying rotations after Bouguet: each camera turns by half of the rotation between them, then
//! both turn until their x axes lie along the baseline.
//!
//! The results equal cv::stereoRectify and cv::fisheye::stereoRectify with CALIB_ZERO_DISPARITY, apart from
//! their single-precision rounding and unconverged iterations, so that the rectified images are OpenCV's.

use nalgebra::{Matrix3, Matrix3x4, Rotation3, UnitQuaternion, Vector3};
use stereod_core::rectify::RectifyError;

use super::projection::Projection;
use super::{Camera, Lens};
use super::{Rectification, RectifiedView, StereoCalibration};

/// Points along each side of the grid that samples the image's border.
const GRID: usize = 9;
/// Fixed-point steps of OpenCV's undistortion.
const STEPS: usize = 5;

/// The part of a rectified plane that a camera sees, in pixels: borders left, top, right, bottom.
struct Bounds {
    /// The largest part with only visible pixels.
    inner: [f64; 4],
    /// The smallest part with every pixel that the camera sees.
    outer: [f64; 4],
}

impl StereoCalibration {
    /// Returns the rectification for rectified images of `size` (width, height).
    ///
    /// `alpha` chooses the focal length: 0 shows only pixels that both cameras see (except a few on the
    /// border, which is sampled at nine points a side), 1 everything that they see, with black margins;
    /// `None` keeps the cameras' own, as OpenCV does by default. If both lenses are fisheye, `alpha` is
    /// OpenCV's balance, which uses the middles of the image's sides instead of its corners; `None` again
    /// keeps the cameras' own. OpenCV's cameras have images of one size; those of others count
    /// as if scaled to the height of the left camera's.
    pub fn rectify(
        &self,
        alpha: Option<f64>,
        size: (usize, usize),
    ) -> Result<Rectification, RectifyError> {
        if let Some(alpha) = alpha.filter(|alpha| !(0.0..=1.0).contains(alpha)) {
            return Err(RectifyError::Alpha(alpha));
        }
        self.check_numbers(size)?;
        let rotations = self.level()?;
        let moved = rotations[1] * self.translation;
        let fisheye = [&self.left, &self.right].map(|c| matches!(c.lens, Lens::Fisheye(_)));
        let (focal, centre) = match (fisheye, alpha) {
            ([true, true], Some(balance)) => self.fisheye_view(&rotations, balance, size),
            ([true, true], None) => self.central_view(&rotations, size),
            _ => self.pinhole_view(&rotations, alpha, size),
        };
        if !(focal > 0.0 && focal.is_finite() && centre.iter().all(|c| c.is_finite())) {
            let why = format!("they rectify to a focal length of {focal} pixels");
            return Err(RectifyError::Numbers("lens model", why));
        }
        let view = |rotation: Matrix3<f64>, shift: f64| RectifiedView {
            rotation,
            projection: projection(focal, centre, shift),
        };
        let [left, right] = rotations;
        Ok(Rectification {
            width: size.0,
            height: size.1,
            left: view(left, 0.0),
            right: view(right, focal * moved.x),
        })
    }

    fn check_numbers(&self, size: (usize, usize)) -> Result<(), RectifyError> {
        if size.0 == 0 || size.1 == 0 {
            return Err(RectifyError::Numbers("picture size", format!("{}x{}", size.0, size.1)));
        }
        let eyes = [("left camera", &self.left), ("right camera", &self.right)];
        for (what, camera) in eyes {
            let Camera { width, height, focal, centre, .. } = camera;
            let usable = *width > 0
                && *height > 0
                && focal.iter().all(|f| f.is_finite() && *f > 0.0)
                && centre.iter().all(|c| c.is_finite());
            if !usable {
                let why = format!("{width}x{height} pixels, focal {focal:?}, centre {centre:?}");
                return Err(RectifyError::Numbers(what, why));
            }
        }
        let finite = self.rotation.iter().chain(self.translation.iter()).all(|v| v.is_finite());
        if !finite || (self.rotation.determinant() - 1.0).abs() > 0.1 {
            let why = format!("{:?}, {:?}", self.rotation.as_slice(), self.translation.as_slice());
            return Err(RectifyError::Numbers("rotation and translation", why));
        }
        Ok(())
    }

    /// Returns the rotation of either camera.
    fn level(&self) -> Result<[Matrix3<f64>; 2], RectifyError> {
        // Files round their numbers, so the nearest rotation is taken.
        let svd = self.rotation.svd(true, true);
        let nearest = match (svd.u, svd.v_t) {
            (Some(u), Some(v_t)) => u * v_t,
            _ => self.rotation,
        };
        let between =
            UnitQuaternion::from_rotation_matrix(&Rotation3::from_matrix_unchecked(nearest));
        let half = between.powf(-0.5).to_rotation_matrix().into_inner();
        let baseline = half * self.translation;
        let length = baseline.norm();
        if length == 0.0 {
            return Err(RectifyError::NoBaseline);
        }
        if baseline.x.abs() <= baseline.y.abs() {
            let t = self.translation;
            return Err(RectifyError::Vertical(t.x, t.y, t.z));
        }
        // The shortest rotation from the baseline to the x axis.
        let axis = baseline.cross(&Vector3::new(baseline.x.signum(), 0.0, 0.0));
        let sine = axis.norm();
        let angle = sine.atan2(baseline.x.abs());
        let turn = if sine > 0.0 { axis * (angle / sine) } else { Vector3::zeros() };
        let turn = Rotation3::new(turn).into_inner();
        Ok([turn * half.transpose(), turn * half])
    }

    /// Returns the mean of the vertical focal lengths in images of this height.
    fn mean_focal(&self, height: usize) -> f64 {
        let focal = |camera: &Camera| camera.focal[1] * (height as f64 / camera.height as f64);
        (focal(&self.left) + focal(&self.right)) / 2.0
    }

    /// Returns focal length and principal point as cv::stereoRectify chooses them.
    fn pinhole_view(
        &self,
        rotations: &[Matrix3<f64>; 2],
        alpha: Option<f64>,
        (width, height): (usize, usize),
    ) -> (f64, [f64; 2]) {
        let cameras = [&self.left, &self.right];
        let projections = cameras.map(Projection::new);
        let own = (self.left.width as f64, self.left.height as f64);
        let stretch = [width as f64 / own.0, height as f64 / own.1];
        let focal = self.mean_focal(height);
        // The images' corners lie around the centre of the rectified image.
        let mut centre = [0.0; 2];
        for ((camera, lens), rotation) in cameras.iter().zip(&projections).zip(rotations) {
            let mean = mean_of_corners(camera, lens, rotation, focal);
            centre[0] += ((own.0 - 1.0) / 2.0 - mean[0]) / 2.0;
            centre[1] += ((own.1 - 1.0) / 2.0 - mean[1]) / 2.0;
        }
        let placed = [centre[0] * stretch[0], centre[1] * stretch[1]];
        let Some(alpha) = alpha else { return (focal, placed) };
        let last = [width as f64 - 1.0, height as f64 - 1.0];
        // Enlargement of the plane that moves a border onto the rectified image's border.
        let scales = |border: [f64; 4]| {
            [
                placed[0] / (centre[0] - border[0]),
                placed[1] / (centre[1] - border[1]),
                (last[0] - placed[0]) / (border[2] - centre[0]),
                (last[1] - placed[1]) / (border[3] - centre[1]),
            ]
        };
        let (mut only_seen, mut all_seen) = (f64::MIN, f64::MAX);
        for ((camera, lens), rotation) in cameras.iter().zip(&projections).zip(rotations) {
            let bounds = bounds(camera, lens, rotation, focal, centre);
            only_seen = scales(bounds.inner).into_iter().fold(only_seen, f64::max);
            all_seen = scales(bounds.outer).into_iter().fold(all_seen, f64::min);
        }
        (focal * (only_seen * (1.0 - alpha) + all_seen * alpha), placed)
    }

    /// Returns the cameras' own focal length, with unchanged optical axes. The sides of a
    /// very wide image lie almost at a right angle, and a plane with them would show little else.
    fn central_view(&self, rotations: &[Matrix3<f64>; 2], size: (usize, usize)) -> (f64, [f64; 2]) {
        let focal = self.mean_focal(size.1);
        let mut centre = [0.0; 2];
        for (camera, rotation) in [&self.left, &self.right].into_iter().zip(rotations) {
            let ahead = rotation.column(2);
            let own = [size.0 as f64 / camera.width as f64, size.1 as f64 / camera.height as f64];
            for i in 0..2 {
                centre[i] += (camera.centre[i] * own[i] - focal * ahead[i] / ahead[2]) / 2.0;
            }
        }
        (focal, centre)
    }

    /// Returns focal length and principal point as cv::fisheye::stereoRectify chooses them.
    fn fisheye_view(
        &self,
        rotations: &[Matrix3<f64>; 2],
        balance: f64,
        size: (usize, usize),
    ) -> (f64, [f64; 2]) {
        let views = [(&self.left, &rotations[0]), (&self.right, &rotations[1])]
            .map(|(camera, rotation)| fisheye_eye(camera, rotation, balance, size));
        let [(left, l), (right, r)] = views;
        (left.min(right), [(l[0] + r[0]) / 2.0, (l[1] + r[1]) / 2.0])
    }
}

/// Makes a projection matrix; `shift` is entry (0, 3).
fn projection(focal: f64, [x, y]: [f64; 2], shift: f64) -> Matrix3x4<f64> {
    Matrix3x4::new(focal, 0.0, x, shift, 0.0, focal, y, 0.0, 0.0, 0.0, 1.0, 0.0)
}

/// Returns the mean position of the image's corners on the rectified plane, with principal point 0.
fn mean_of_corners(
    camera: &Camera,
    lens: &Projection,
    rotation: &Matrix3<f64>,
    focal: f64,
) -> [f64; 2] {
    // OpenCV keeps these points in single precision.
    let single = |v: f64| f64::from(v as f32);
    let (right, bottom) = (camera.width as f64 - 1.0, camera.height as f64 - 1.0);
    let mut mean = [0.0; 2];
    for corner in [[0.0, 0.0], [right, 0.0], [0.0, bottom], [right, bottom]] {
        let [x, y] = ray(lens, corner);
        let turned = rotation * Vector3::new(single(x), single(y), 1.0);
        mean[0] += single(turned.x / turned.z * focal) / 4.0;
        mean[1] += single(turned.y / turned.z * focal) / 4.0;
    }
    mean
}

/// Returns the ray (x / z, y / z) of a pixel as OpenCV computes it.
fn ray(lens: &Projection, pixel: [f64; 2]) -> [f64; 2] {
    // OpenCV does not support a fisheye lens next to one of another kind: computed exactly.
    // Directions beyond a right angle have no place on a plane.
    let direction = || lens.direction(pixel).filter(|d| d.z > 0.0);
    lens.ray_after(pixel, STEPS)
        .or_else(|| direction().map(|d| [d.x / d.z, d.y / d.z]))
        .unwrap_or([f64::NAN; 2])
}

/// Returns the part of the rectified plane that a camera sees.
fn bounds(
    camera: &Camera,
    lens: &Projection,
    rotation: &Matrix3<f64>,
    focal: f64,
    centre: [f64; 2],
) -> Bounds {
    let mut inner = [f64::MIN, f64::MIN, f64::MAX, f64::MAX];
    let mut outer = [f64::MAX, f64::MAX, f64::MIN, f64::MIN];
    let last = GRID - 1;
    let step = [camera.width, camera.height].map(|side| (side as f64 - 1.0) / last as f64);
    for (row, column) in (0..GRID * GRID).map(|i| (i / GRID, i % GRID)) {
        let [x, y] = ray(lens, [column as f64 * step[0], row as f64 * step[1]]);
        let turned = rotation * Vector3::new(x, y, 1.0);
        let x = turned.x / turned.z * focal + centre[0];
        let y = turned.y / turned.z * focal + centre[1];
        outer = [outer[0].min(x), outer[1].min(y), outer[2].max(x), outer[3].max(y)];
        let edge = [column == 0, row == 0, column == last, row == last];
        let at = [x, y, x, y];
        for side in (0..4).filter(|side| edge[*side]) {
            inner[side] =
                if side < 2 { inner[side].max(at[side]) } else { inner[side].min(at[side]) };
        }
    }
    Bounds { inner, outer }
}

/// Returns focal length and principal point of one fisheye camera: between the longest and the shortest focal
/// length that put the middle of a side of the image onto the border of the rectified one.
fn fisheye_eye(
    camera: &Camera,
    rotation: &Matrix3<f64>,
    balance: f64,
    size: (usize, usize),
) -> (f64, [f64; 2]) {
    let lens = camera.projection();
    let (width, height) = (camera.width as f64, camera.height as f64);
    // OpenCV's middles are whole pixels.
    let middle = [(camera.width / 2) as f64, (camera.height / 2) as f64];
    let aspect = camera.focal[0] / camera.focal[1];
    let middles = [[middle[0], 0.0], [width, middle[1]], [middle[0], height], [0.0, middle[1]]]
        .map(|pixel| {
            let direction = lens.direction(pixel).unwrap_or(Vector3::repeat(f64::NAN));
            let turned = rotation * direction;
            [turned.x / turned.z, turned.y / turned.z * aspect]
        });
    let mean = [0, 1].map(|i| middles.iter().map(|m| m[i]).sum::<f64>() / 4.0);
    let least = [0, 1].map(|i| middles.iter().map(|m| m[i]).fold(f64::MAX, f64::min));
    let most = [0, 1].map(|i| middles.iter().map(|m| m[i]).fold(f64::MIN, f64::max));
    let half = [width * 0.5, height * 0.5 * aspect];
    let focals = [
        half[0] / (mean[0] - least[0]),
        half[0] / (most[0] - mean[0]),
        half[1] / (mean[1] - least[1]),
        half[1] / (most[1] - mean[1]),
    ];
    let shortest = focals.into_iter().fold(f64::MAX, f64::min);
    let longest = focals.into_iter().fold(f64::MIN, f64::max);
    let focal = balance * shortest + (1.0 - balance) * longest;
    let stretch = [size.0 as f64 / width, size.1 as f64 / height];
    let centre = [half[0] - mean[0] * focal, (half[1] - mean[1] * focal) / aspect];
    (focal / aspect * stretch[1], [centre[0] * stretch[0], centre[1] * stretch[1]])
}

#[cfg(test)]
mod tests;
