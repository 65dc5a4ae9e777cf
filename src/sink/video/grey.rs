//! Writes the lossless video of one view: FFV1, 8-bit grey, in Matroska.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::lossless::{Description, Lossless};
use super::tags;
use crate::core::frame::{Eye, Image, StereoGeometry};
use crate::sink::check_same_size;
use crate::sink::output::Place;

/// Properties of a video, needed before its first image.
#[derive(Clone, Copy, Debug)]
pub struct GreyVideoOptions {
    /// View of the images.
    pub eye: Eye,
    /// Width and height in pixels.
    pub size: (usize, usize),
    /// Images a second, if known. Images keep their own times in any case.
    pub rate: Option<f64>,
    /// Cameras for the computation of depth, if known; written into the tags.
    pub geometry: Option<StereoGeometry>,
}

/// Writes the rectified images of one view bit-exactly. Times are kept to the microsecond; an
/// image that is not later than its predecessor follows it one frame later.
pub struct GreyVideo {
    path: PathBuf,
    size: (usize, usize),
    video: Lossless<u8>,
}

impl GreyVideo {
    /// Creates the file (an earlier one is replaced) and starts the encoder.
    pub fn create(path: &Path, options: &GreyVideoOptions) -> Result<Self> {
        let GreyVideoOptions { eye, size, rate, geometry } = *options;
        let name = match eye {
            Eye::Left => "left",
            Eye::Right => "right",
        };
        let tags = move |origin| tags::of_rectified(eye, size, geometry.as_ref(), origin);
        let description = Description { size, rate, name };
        let video =
            Lossless::create(Place::File(path.to_path_buf()), description, None, Box::new(tags))?;
        Ok(Self { path: path.to_path_buf(), size, video })
    }

    /// Adds an image captured at `time`. The `origin` of the first image is at 0 in the file:
    /// both views' files have the same, so that the distance of their capture times is kept, too.
    pub fn write(&mut self, picture: &Image, time: Duration, origin: Duration) -> Result<()> {
        check_same_size(self.size, (picture.width(), picture.height()))
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        self.video.write(time, origin, |y, row| {
            row.copy_from_slice(picture.row(y));
            Ok(())
        })
    }

    /// Writes the remaining images, the duration and the index.
    pub fn finish(&mut self) -> Result<()> {
        self.video.finish()
    }
}
