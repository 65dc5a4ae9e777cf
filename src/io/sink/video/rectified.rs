//! Writes the lossless video of one rectified view: FFV1, 8-bit grey or RGB, in Matroska.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::lossless::{Bgrx, Description, Lossless};
use super::tags;
use crate::sink::check_same_size;
use crate::sink::place::Place;
use stereod_core::frame::{Eye, Image, StereoGeometry};

/// Properties of a video, needed before its first image.
#[derive(Clone, Copy, Debug)]
pub struct RectifiedVideoOptions {
    /// View of the images.
    pub eye: Eye,
    /// Width and height in pixels.
    pub size: (usize, usize),
    /// Images a second, if known. Images keep their own times in any case.
    pub rate: Option<f64>,
    /// Cameras for the computation of depth, if known; written into the tags.
    pub geometry: Option<StereoGeometry>,
    /// True for a video in colour.
    pub colour: bool,
}

/// Writes the rectified images of one view bit-exactly. Times are kept to the microsecond; an
/// image that is not later than its predecessor follows it one frame later.
pub struct RectifiedVideo {
    path: PathBuf,
    size: (usize, usize),
    frames: Frames,
}

enum Frames {
    Grey(Lossless<u8>),
    Colour(Lossless<Bgrx>),
}

impl RectifiedVideo {
    /// Creates the file (an earlier one is replaced) and starts the encoder.
    pub fn create(path: &Path, options: &RectifiedVideoOptions) -> Result<Self> {
        let RectifiedVideoOptions { eye, size, rate, geometry, colour } = *options;
        let name = match eye {
            Eye::Left => "left",
            Eye::Right => "right",
        };
        let tags = Box::new(move |origin| tags::of_rectified(eye, size, geometry.as_ref(), origin));
        let description = Description { size, rate, name };
        let place = &Place::from(path);
        let frames = match colour {
            true => Frames::Colour(Lossless::create(place, description, None, tags)?),
            false => Frames::Grey(Lossless::create(place, description, None, tags)?),
        };
        Ok(Self { path: path.to_path_buf(), size, frames })
    }

    /// Adds an image captured at `time`: red, green and blue of a video in colour, of a grey one its
    /// intensity alone. The `origin` of the first image is at 0 in the file: both views' files have
    /// the same, so that the distance of their capture times is kept, too.
    ///
    /// # Panics
    /// If there are not as many channels as the video has.
    pub fn write(&mut self, channels: &[&Image], time: Duration, origin: Duration) -> Result<()> {
        for channel in channels {
            check_same_size(self.size, (channel.width(), channel.height()))
                .with_context(|| format!("cannot write {}", self.path.display()))?;
        }
        match &mut self.frames {
            Frames::Grey(video) => {
                let [grey] = channels else { panic!("a grey video has one channel") };
                video.write(time, origin, |y, row| {
                    row.copy_from_slice(grey.row(y));
                    Ok(())
                })
            }
            Frames::Colour(video) => {
                let [red, green, blue] = channels else { panic!("colours have three channels") };
                video.write(time, origin, |y, row| {
                    let colours = blue.row(y).iter().zip(green.row(y)).zip(red.row(y));
                    for (pixel, ((&b, &g), &r)) in row.iter_mut().zip(colours) {
                        *pixel = [b, g, r, 0];
                    }
                    Ok(())
                })
            }
        }
    }

    /// Writes the remaining images, the duration and the index.
    pub fn finish(&mut self) -> Result<()> {
        match &mut self.frames {
            Frames::Grey(video) => video.finish(),
            Frames::Colour(video) => video.finish(),
        }
    }
}
