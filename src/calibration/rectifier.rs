//! Both eyes' maps, and what depth is computed from once they are applied.

use super::bouguet::RectifyError;
use super::{Lens, RectifyMap, StereoCalibration};
use crate::frame::{Eye, Image, StereoGeometry, StereoPair};

/// Turns the pictures of two cameras into a rectified pair.
#[derive(Clone, Debug)]
pub struct Rectifier {
    left: RectifyMap,
    right: RectifyMap,
    geometry: StereoGeometry,
}

impl Rectifier {
    /// Of a calibration. Without `alpha` the rectification is the one that the calibration
    /// prescribes; where it prescribes none, it is computed with alpha 0, so that every pixel is
    /// seen (for two fisheye lenses: with the cameras' own focal length). With `alpha` it is computed
    /// in any case, for rectified pictures of the left camera's size: see
    /// [`StereoCalibration::rectify`]; -1 is OpenCV's default there, the cameras' own focal length.
    ///
    /// # Errors
    /// Those of [`StereoCalibration::rectify`], and a rectification that shows nothing.
    pub fn new(calibration: &StereoCalibration, alpha: Option<f64>) -> Result<Self, RectifyError> {
        let (left, right) = (&calibration.left, &calibration.right);
        let fisheye = [left, right].iter().all(|c| matches!(c.lens, Lens::Fisheye(_)));
        let compute = |alpha| calibration.rectify(alpha, (left.width, left.height));
        let rectification = match (alpha, &calibration.rectification) {
            (None, Some(prescribed)) => prescribed.clone(),
            (None, None) => compute((!fisheye).then_some(0.0))?,
            (Some(-1.0), _) => compute(None)?,
            (Some(alpha), _) => compute(Some(alpha))?,
        };
        let size = (rectification.width, rectification.height);
        let (left, right) = std::thread::scope(|scope| {
            let left = scope.spawn(|| RectifyMap::new(left, &rectification.left, size));
            let right = RectifyMap::new(right, &rectification.right, size);
            (left.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), right)
        });
        Self::from_maps(left?, right?, rectification.geometry())
    }

    /// Of maps that were made some other way.
    ///
    /// # Errors
    /// A map that shows nothing.
    ///
    /// # Panics
    /// Where the maps make pictures of different sizes.
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
        Ok(Self { left, right, geometry })
    }

    /// The map of an eye.
    pub fn map(&self, eye: Eye) -> &RectifyMap {
        match eye {
            Eye::Left => &self.left,
            Eye::Right => &self.right,
        }
    }

    /// What depth is computed from.
    pub fn geometry(&self) -> StereoGeometry {
        self.geometry
    }

    /// Width and height of an eye's camera pictures.
    pub fn source_size(&self, eye: Eye) -> (usize, usize) {
        self.map(eye).source_size()
    }

    /// Width and height of the rectified pictures.
    pub fn size(&self) -> (usize, usize) {
        self.left.size()
    }

    /// The rectified pictures of both eyes, left and right, which know what their cameras have seen.
    ///
    /// # Panics
    /// Where a picture has not its camera's size.
    pub fn rectify_pair(&self, pair: &StereoPair) -> [Image; 2] {
        [(&self.left, &pair.left), (&self.right, &pair.right)].map(|(map, from)| {
            let (width, height) = map.size();
            let mut pixels = vec![0; width * height];
            map.apply(from, &mut pixels);
            Image::from_vec(width, height, pixels).seen_by(map.mask())
        })
    }
}
