//! Rectification of both views, and the cameras of the result.

use std::sync::Arc;

use super::error::{LARGER_MAX, RectifyError};
use super::{Lens, Rectification, RectifyMap, StereoCalibration};
use crate::chroma::Resampling;
use crate::frame::{Eye, Image, StereoGeometry, StereoPair};
use crate::memory::{Budget, Reserved};
use crate::pool::Pooled;

/// Rectifies the images of two cameras.
#[derive(Clone, Debug)]
pub struct Rectifier {
    left: RectifyMap,
    right: RectifyMap,
    geometry: StereoGeometry,
    /// Reserved memory, if the maps were made here.
    _memory: Option<Arc<Reserved>>,
}

impl StereoCalibration {
    /// Returns a rectifier. Without `alpha` it applies the rectification of the calibration, or if there is
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
}

impl Rectifier {
    /// Returns a rectifier with the rectification of [`StereoCalibration::rectified`].
    ///
    /// # Errors
    /// As [`StereoCalibration::rectify`]; also a rectification without valid pixels, or to images much larger
    /// than the camera's or than the memory allows.
    pub fn new(calibration: &StereoCalibration, alpha: Option<f64>) -> Result<Self, RectifyError> {
        let (left, right) = (&calibration.left, &calibration.right);
        let rectification = calibration.rectified(alpha)?;
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
            let left = scope.spawn(|| RectifyMap::new(left, &rectification.left, size));
            let right = RectifyMap::new(right, &rectification.right, size);
            (left.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), right)
        });
        let rectifier = Self::from_maps(left?, right?, rectification.geometry())?;
        Ok(Self { _memory: Some(Arc::new(memory)), ..rectifier })
    }

    /// Returns a rectifier of given maps.
    ///
    /// # Errors
    /// A map without valid pixels.
    ///
    /// # Panics
    /// If the maps make images of different sizes.
    pub fn from_maps(
        left: RectifyMap,
        right: RectifyMap,
        geometry: StereoGeometry,
    ) -> Result<Self, RectifyError> {
        assert_eq!(left.size(), right.size(), "size of the rectified pictures");
        for (map, eye) in [(&left, Eye::Left), (&right, Eye::Right)] {
            if !map.sees_anything() {
                return Err(RectifyError::NothingSeen(eye));
            }
        }
        Ok(Self { left, right, geometry, _memory: None })
    }

    /// Returns the map of a view.
    pub fn map(&self, eye: Eye) -> &RectifyMap {
        match eye {
            Eye::Left => &self.left,
            Eye::Right => &self.right,
        }
    }

    /// Returns the cameras for depth.
    pub fn geometry(&self) -> StereoGeometry {
        self.geometry
    }

    /// Returns width and height of a camera's images.
    pub fn source_size(&self, eye: Eye) -> (usize, usize) {
        self.map(eye).source_size()
    }

    /// Returns width and height of the rectified images.
    pub fn size(&self) -> (usize, usize) {
        self.left.size()
    }

    /// Wraps the rectified pixels of `raw`, with the valid mask of its view and the colour of `raw`.
    pub fn rectified_image(self: &Arc<Self>, eye: Eye, pixels: Pooled<u8>, raw: Image) -> Image {
        let (width, height) = self.size();
        let through = || Arc::new(OfEye { rectifier: self.clone(), eye });
        let chroma = raw.into_chroma().map(|chroma| chroma.with_resampling(through()));
        Image::new(width, height, pixels).with_valid_mask(self.map(eye).mask()).with_chroma(chroma)
    }

    /// Rectifies both views, left and right, with their valid masks.
    ///
    /// # Panics
    /// If an image does not have its camera's size.
    pub fn rectify_pair(&self, pair: &StereoPair) -> [Image; 2] {
        [(&self.left, &pair.left), (&self.right, &pair.right)].map(|(map, from)| {
            let (width, height) = map.size();
            let mut pixels = vec![0; width * height];
            map.apply(from, &mut pixels);
            Image::from_vec(width, height, pixels).with_valid_mask(map.mask())
        })
    }
}

/// Returns the map of a view, for the parts attached to an image.
#[derive(Debug)]
struct OfEye {
    rectifier: Arc<Rectifier>,
    eye: Eye,
}

impl Resampling for OfEye {
    fn size(&self) -> (usize, usize) {
        self.rectifier.size()
    }

    fn origin(&self, x: usize, y: usize) -> Option<(usize, usize)> {
        self.rectifier.map(self.eye).nearest(x, y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::examples;

    #[test]
    fn alpha_0_sees_hardly_less_than_all_and_alpha_1_has_margins() {
        for rig in [examples::chessboards(), examples::euroc()] {
            let whole = Rectifier::new(&rig, None).unwrap();
            let wide = Rectifier::new(&rig, Some(1.0)).unwrap();
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
        let own = Rectifier::new(&rig, None).unwrap();
        assert_eq!(own.size(), (700, 400));
        assert_eq!(own.source_size(Eye::Right), (752, 480));
        let asked = Rectifier::new(&rig, Some(-1.0)).unwrap();
        assert_eq!(asked.size(), (752, 480));
        assert!((asked.geometry().focal_px - 456.715).abs() < 1e-9);
        assert_eq!(Rectifier::new(&rig, Some(2.0)).unwrap_err(), RectifyError::Alpha(2.0));
    }

    #[test]
    fn a_size_out_of_all_proportion_is_refused_before_anything_is_computed() {
        let mut rig = examples::euroc();
        let mut rectification = rig.rectify(None, (752, 480)).unwrap();
        (rectification.width, rectification.height) = (32768, 32768);
        rig.rectification = Some(rectification);
        let error = Rectifier::new(&rig, None).unwrap_err().to_string();
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
        let error = Rectifier::new(&rig, None).unwrap_err();
        assert_eq!(error, RectifyError::NothingSeen(Eye::Right));
    }
}
