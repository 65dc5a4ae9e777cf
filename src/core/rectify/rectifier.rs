//! Rectification of both views, and the cameras of the result.

use std::sync::Arc;

use super::{RectifyError, RectifyMap};
use crate::chroma::Resampling;
use crate::frame::{Eye, Image, StereoGeometry, StereoPair};
use crate::memory::Reserved;
use crate::pool::Pooled;

/// Rectifies the images of two cameras.
#[derive(Clone, Debug)]
pub struct Rectifier {
    left: RectifyMap,
    right: RectifyMap,
    geometry: StereoGeometry,
    /// The memory that the maps take, if it was reserved for them.
    _memory: Option<Arc<Reserved>>,
}

impl Rectifier {
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

    /// Keeps the memory that was reserved for the maps as long as they are used.
    #[must_use]
    pub fn with_memory(self, memory: Reserved) -> Self {
        Self { _memory: Some(Arc::new(memory)), ..self }
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
