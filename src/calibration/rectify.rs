//! The rectification of a calibration, and its maps.

use nalgebra::Vector3;
use stereod_core::memory::Budget;
use stereod_core::rectify::{LARGER_MAX, Rectifier, RectifyError, RectifyMap};

use super::{Camera, Lens, Rectification, RectifiedView, StereoCalibration};

impl StereoCalibration {
    /// Returns the rectification. Without `alpha` this is that of the calibration, or if there is
    /// none, one computed with alpha 0 (for two fisheye lenses: with the cameras' own focal length). With
    /// `alpha` the rectification is always computed, for rectified images of the left camera's size: see
    /// [`StereoCalibration::rectify`]; -1 is OpenCV's default there, the cameras' own focal length.
    ///
    /// # Errors
    /// As [`StereoCalibration::rectify`].
    pub fn rectified(&self, alpha: Option<f64>) -> Result<Rectification, RectifyError> {
        let fisheye = [&self.left, &self.right].iter().all(|c| matches!(c.lens, Lens::Fisheye(_)));
        let compute = |alpha| self.rectify(alpha, (self.left.width, self.left.height));
        match (alpha, &self.rectification) {
            (None, Some(prescribed)) => Ok(prescribed.clone()),
            (None, None) => compute((!fisheye).then_some(0.0)),
            (Some(-1.0), _) => compute(None),
            (Some(alpha), _) => compute(Some(alpha)),
        }
    }

    /// Returns a rectifier with the rectification of [`StereoCalibration::rectified`].
    ///
    /// # Errors
    /// As [`StereoCalibration::rectify`]; also a rectification without valid pixels, or to images much larger
    /// than the camera's or than the memory allows.
    pub fn rectifier(&self, alpha: Option<f64>) -> Result<Rectifier, RectifyError> {
        let (left, right) = (&self.left, &self.right);
        let rectification = self.rectified(alpha)?;
        let size = (rectification.width, rectification.height);
        let camera = (left.width, left.height);
        let most = |side: usize| side.saturating_mul(LARGER_MAX);
        if size.0 > most(camera.0) || size.1 > most(camera.1) {
            return Err(RectifyError::OutOfProportion { rectified: size, camera });
        }
        let memory = Budget::of_process().reserve(
            format!("rectifying to {}x{}", size.0, size.1),
            RectifyMap::bytes_of(size).saturating_mul(2),
            "smaller pictures",
        )?;
        let (left, right) = std::thread::scope(|scope| {
            let left = scope.spawn(|| rectification.left.map(left, size));
            let right = rectification.right.map(right, size);
            (left.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), right)
        });
        let rectifier = Rectifier::from_maps(left?, right?, rectification.geometry())?;
        Ok(rectifier.with_memory(memory))
    }
}

impl RectifiedView {
    /// Returns the map of a camera to rectified images of `size` (width, height), as
    /// cv::initUndistortRectifyMap computes it, in double precision.
    pub fn map(&self, camera: &Camera, size: (usize, usize)) -> Result<RectifyMap, RectifyError> {
        let rectified = self.projection.fixed_columns::<3>(0) * self.rotation;
        let Some(back) = rectified.try_inverse().filter(|m| m.iter().all(|v| v.is_finite())) else {
            let why = format!("{:?} cannot be inverted", rectified.as_slice());
            return Err(RectifyError::Numbers("rectification and projection", why));
        };
        let lens = camera.projection();
        RectifyMap::from_positions((camera.width, camera.height), size, |x, y| {
            lens.pixel(back * Vector3::new(x as f64, y as f64, 1.0))
        })
    }
}

#[cfg(test)]
mod tests {
    use stereod_core::frame::{Eye, Image};

    use super::*;
    use crate::examples;

    #[test]
    fn alpha_0_sees_hardly_less_than_all_and_alpha_1_has_margins() {
        for rig in [examples::chessboards(), examples::euroc()] {
            let whole = rig.rectifier(None).unwrap();
            let wide = rig.rectifier(Some(1.0)).unwrap();
            let unseen = |rectifier: &Rectifier, eye: Eye| {
                let offsets = rectifier.map(eye).offsets();
                let unseen = offsets.iter().filter(|&&o| o == RectifyMap::UNSEEN).count();
                unseen as f64 / offsets.len() as f64
            };
            for eye in Eye::BOTH {
                let (whole, wide) = (unseen(&whole, eye), unseen(&wide, eye));
                assert!(whole < 1e-3 && wide > 0.1, "{whole} {wide}");
            }
            assert!(wide.geometry().focal_px < whole.geometry().focal_px);
            assert!((wide.geometry().baseline_m - rig.translation.norm()).abs() < 1e-9);
        }
    }

    #[test]
    fn the_calibrations_own_rectification_goes_first_unless_alpha_is_asked_for() {
        let mut rig = examples::euroc();
        rig.rectification = Some(rig.rectify(Some(0.3), (700, 400)).unwrap());
        let own = rig.rectifier(None).unwrap();
        assert_eq!(own.size(), (700, 400));
        assert_eq!(own.source_size(Eye::Right), (752, 480));
        let asked = rig.rectifier(Some(-1.0)).unwrap();
        assert_eq!(asked.size(), (752, 480));
        assert!((asked.geometry().focal_px - 456.715).abs() < 1e-9);
        assert_eq!(rig.rectifier(Some(2.0)).unwrap_err(), RectifyError::Alpha(2.0));
    }

    #[test]
    fn a_size_out_of_all_proportion_is_refused_before_anything_is_computed() {
        let mut rig = examples::euroc();
        let mut rectification = rig.rectify(None, (752, 480)).unwrap();
        (rectification.width, rectification.height) = (32768, 32768);
        rig.rectification = Some(rectification);
        let error = rig.rectifier(None).unwrap_err().to_string();
        assert!(error.contains("32768x32768 pixels of a camera that has 752x480"), "{error}");
    }

    #[test]
    fn a_rectification_of_other_cameras_is_noticed() {
        let mut rig = examples::euroc();
        let mut rectification = rig.rectify(None, (752, 480)).unwrap();
        // Turned round.
        rectification.right.rotation.row_mut(0).neg_mut();
        rectification.right.rotation.row_mut(2).neg_mut();
        rig.rectification = Some(rectification);
        let error = rig.rectifier(None).unwrap_err();
        assert_eq!(error, RectifyError::NothingSeen(Eye::Right));
    }

    fn position(map: &RectifyMap, x: usize, y: usize) -> [f64; 2] {
        let at = y * map.size().0 + x;
        let (offset, weights) = (map.offsets()[at] as usize, map.weights()[at]);
        assert_ne!(map.offsets()[at], RectifyMap::UNSEEN, "({x}, {y})");
        let (stride, _) = map.source_size();
        let part = |whole: usize, fraction: u16| whole as f64 + f64::from(fraction) / 256.0;
        [part(offset % stride, weights & 255), part(offset / stride, weights >> 8)]
    }

    fn check(map: &RectifyMap, expected: &[(usize, usize, f64, f64)]) {
        for &(x, y, u, v) in expected {
            let [got_u, got_v] = position(map, x, y);
            // Half of 1/256 px, and the expected numbers are of single precision.
            let off = (got_u - u).abs().max((got_v - v).abs());
            assert!(off < 0.5 / 256.0 + 1e-4, "({x}, {y}): ({got_u}, {got_v}), not ({u}, {v})");
        }
    }

    // cv2.initUndistortRectifyMap and cv2.fisheye.initUndistortRectifyMap of OpenCV 4.10.

    #[test]
    fn positions_are_those_of_opencv() {
        let rig = examples::tilted();
        let view = rig.rectify(Some(1.0), (1280, 800)).unwrap().left;
        let map = view.map(&rig.left, (1280, 800)).unwrap();
        check(&map, &[(300, 300, 267.59293, 238.26811), (640, 400, 973.2283, 384.2138)]);
        // (1354.58, 683.27) and (496.12, -88.92).
        for (x, y) in [(1000, 650), (420, 120)] {
            assert_eq!(map.offsets()[y * 1280 + x], RectifyMap::UNSEEN);
            assert!(!map.mask().unwrap().row(y)[x]);
        }
    }

    #[test]
    fn fisheye_positions_are_those_of_opencv() {
        let rig: StereoCalibration = examples::fisheye();
        let projection = nalgebra::Matrix3x4::new(
            286.0, 0.0, 420.0, 0.0, //
            0.0, 286.0, 401.0, 0.0, //
            0.0, 0.0, 1.0, 0.0,
        );
        let view = RectifiedView { rotation: rig.rotation, projection };
        let map = view.map(&rig.left, (848, 800)).unwrap();
        check(
            &map,
            &[
                (0, 0, 195.60541, 183.05598),
                (420, 401, 427.89124, 401.74368),
                (700, 650, 625.88214, 577.24634),
                (120, 300, 199.94203, 326.07358),
            ],
        );
        assert!(map.mask().is_none());
    }

    #[test]
    fn the_identity_leaves_the_picture_and_sees_all_of_it() {
        for (width, height) in [(1, 1), (1, 5), (6, 1), (7, 4)] {
            let lens = Lens::Brown([0.0; 14]);
            let camera = examples::camera((width, height), [3.3, 3.1, 2.7, 1.9], lens);
            let projection = nalgebra::Matrix3x4::new(
                3.3, 0.0, 2.7, 0.0, 0.0, 3.1, 1.9, 0.0, 0.0, 0.0, 1.0, 0.0,
            );
            let view = RectifiedView { rotation: nalgebra::Matrix3::identity(), projection };
            let map = view.map(&camera, (width, height)).unwrap();
            assert_eq!(map.mask(), None);
            let picture = Image::from_fn(width, height, |x, y| (40 * y + 7 * x + 3) as u8);
            let mut same = vec![0; width * height];
            map.apply(&picture, &mut same);
            assert_eq!(same, picture.pixels());
        }
    }

    #[test]
    fn impossible_projections_are_refused() {
        let rig = examples::euroc();
        let view =
            RectifiedView { rotation: rig.rotation, projection: nalgebra::Matrix3x4::zeros() };
        let singular = view.map(&rig.left, (752, 480)).unwrap_err();
        assert!(singular.to_string().contains("cannot be inverted"), "{singular}");
    }
}
