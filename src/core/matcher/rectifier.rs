//! Rectification of raw images.

use std::sync::Arc;

use super::error::Result;
use super::{Error, ImageBuf, ImageRef};
use crate::engine::PairSpec;
use crate::frame::{Eye, StereoGeometry, StereoPair};
use crate::pool::Pool;
use crate::rectify;

/// Returns the pairs that a rectifier rectifies.
pub fn pairs(rectifier: &Rectifier) -> PairSpec {
    PairSpec::raw(rectifier.0.clone())
}

/// Returns the rectifier with these maps.
pub fn rectifier_of(maps: rectify::Rectifier) -> Rectifier {
    Rectifier(Arc::new(maps))
}

/// Rectifies the images of two cameras. Clones share its maps.
#[derive(Clone, Debug)]
pub struct Rectifier(Arc<rectify::Rectifier>);

impl Rectifier {
    /// Returns the cameras of the rectified images, for depth.
    pub fn geometry(&self) -> StereoGeometry {
        self.0.geometry()
    }

    /// Returns width and height of the rectified images.
    pub fn size(&self) -> (usize, usize) {
        self.0.size()
    }

    /// Returns width and height of a camera's raw images.
    pub fn source_size(&self, eye: Eye) -> (usize, usize) {
        self.0.source_size(eye)
    }

    /// Rectifies a pair of raw images.
    ///
    /// # Errors
    /// [`Error::Size`]: images of another size than the cameras'.
    pub fn rectify<'a>(
        &self,
        left: impl Into<ImageRef<'a>>,
        right: impl Into<ImageRef<'a>>,
    ) -> Result<[ImageBuf; 2]> {
        let images = [(Eye::Left, left.into()), (Eye::Right, right.into())];
        for (eye, image) in &images {
            let (width, height) = self.source_size(*eye);
            if (image.width(), image.height()) != (width, height) {
                return Err(Error::Size(format!(
                    "the {eye} image has {}x{} pixels, but the calibration is for {width}x{height}",
                    image.width(),
                    image.height()
                )));
            }
        }
        let pool = Pool::new();
        let [left, right] = images.map(|(_, image)| image.to_image(&pool, false));
        Ok(self.0.rectify_pair(&StereoPair::of_stills(left?, right?)).map(ImageBuf::of_image))
    }
}
