//! The result of a pair.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Error;
use super::error::{Result, file_error};
use crate::files;
use crate::frame::{DisparityMap, Eye, INVALID, Image, Matched, StereoGeometry};
use crate::matching::Params;
use crate::matching::confidence::deviation_px;
use crate::matching::filter::{evidence, steady};
use crate::picture::cloud::{self, CloudOptions};
use crate::picture::numbers::{Numbers, Quantity};
use crate::picture::png::DisparityPng;
use crate::pose::Odometry;

const _: () = assert!(evidence::CONFIDENCE == steady::HELD, "both mean `Status::Supported`");

/// The disparity of a pair, with its images and cameras. Clones share them.
#[derive(Clone, Debug)]
pub struct Disparity {
    pub(super) matched: Arc<Matched>,
    /// Parameters of the matcher.
    pub(super) params: Arc<Params>,
}

/// Wraps the result of an engine that was made with these parameters.
pub fn disparity_of(matched: Matched, params: Arc<Params>) -> Disparity {
    Disparity { matched: Arc::new(matched), params }
}

/// Returns the result of a pair that belongs to no stream: where the rig is since another pair has no meaning.
pub fn of_no_stream(mut disparity: Disparity) -> Disparity {
    if let Some(matched) = Arc::get_mut(&mut disparity.matched) {
        matched.odometry = None;
    }
    disparity
}

/// Returns the result of the engine.
pub fn matched(disparity: &Disparity) -> &Matched {
    &disparity.matched
}

/// Origin of a pixel's disparity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// It is unknown.
    Unknown = 0,
    /// Hole filling took it from other pixels or from a network.
    Filled = 1,
    /// The pixel has no evidence of its own: evidence around it supports the disparity, or an earlier
    /// map did ([`Params::steady`]).
    Supported = 2,
    /// It was measured.
    Measured = 3,
}

impl Disparity {
    /// Returns the disparity of every pixel of the (rectified) left image, in 1/16 px.
    pub fn map(&self) -> &DisparityMap {
        &self.matched.disparity
    }

    /// Returns the disparity of every pixel in pixels, row by row; NaN if unknown.
    pub fn disparity_px(&self) -> Vec<f32> {
        let of = |&value: &i16| match value {
            INVALID => f32::NAN,
            value => f32::from(value) / crate::SUBPIXEL as f32,
        };
        self.map().values().iter().map(of).collect()
    }

    /// Returns the confidence of every pixel, row by row: the disparity is right within 1 px with the
    /// probability c / 255; 1 without evidence of its own, and 0 if the disparity is unknown or filled;
    /// `None` unless [`Params::confidence`] asks for it.
    pub fn confidence(&self) -> Option<&[u8]> {
        self.matched.confidence.as_ref().map(Image::pixels)
    }

    /// Returns the origin of every pixel's disparity, row by row; `None` without confidence.
    pub fn status(&self) -> Option<Vec<Status>> {
        let pixels = self.map().values().iter().zip(self.confidence()?);
        let of = |(&value, &confidence): (&i16, &u8)| match (value, confidence) {
            (INVALID, _) => Status::Unknown,
            (_, 0) => Status::Filled,
            (_, evidence::CONFIDENCE) => Status::Supported,
            _ => Status::Measured,
        };
        Some(pixels.map(of).collect())
    }

    /// Returns the pixels of a view as it was matched, row by row.
    pub fn picture(&self, eye: Eye) -> &[u8] {
        match eye {
            Eye::Left => self.matched.pair.left.pixels(),
            Eye::Right => self.matched.pair.right.pixels(),
        }
    }

    /// Returns the capture time that the pair was given.
    pub fn timestamp(&self) -> Duration {
        self.matched.pair.timestamp
    }

    /// Returns the cameras for depth; `None` for rectified pairs.
    pub fn geometry(&self) -> Option<StereoGeometry> {
        self.matched.geometry
    }

    /// Returns where the rig is since the first pair of its stream, if [`Params::odometry`] asks for it; `None` for
    /// pairs that belong to no stream.
    pub fn odometry(&self) -> Option<&Odometry> {
        self.matched.odometry.as_deref()
    }

    /// Returns the point of pixel (x, y) in metres from the left camera; `None` if disparity or
    /// cameras are unknown.
    ///
    /// # Panics
    /// If the pixel lies outside the map.
    pub fn point_m(&self, x: usize, y: usize) -> Option<[f64; 3]> {
        let disparity = self.map().at(x, y)?;
        self.geometry()?.point_m(x as f64, y as f64, f64::from(disparity))
    }

    /// Returns the depth of every pixel in metres, row by row; NaN if unknown. `geometry` replaces
    /// the cameras of the matcher.
    ///
    /// # Errors
    /// [`Error::NoGeometry`].
    pub fn depth_m(&self, geometry: Option<StereoGeometry>) -> Result<Vec<f32>> {
        let geometry = geometry.or(self.geometry()).ok_or(Error::NoGeometry)?;
        let depth = |disparity: f32| geometry.depth_m(f64::from(disparity));
        let of = |disparity| depth(disparity).map_or(f32::NAN, |metres| metres as f32);
        Ok(self.disparity_px().into_iter().map(of).collect())
    }

    /// Returns the standard deviation of every pixel's depth in metres, row by row, provided that its
    /// disparity is right within 1 px ([`Disparity::confidence`]), without the error of the calibration (75 %
    /// of the errors are smaller indoors, 44 % on roads); NaN if the depth is unknown, filled or without
    /// evidence of its own. `geometry` replaces the cameras of the matcher. `None` without confidence.
    ///
    /// # Errors
    /// [`Error::NoGeometry`].
    pub fn depth_deviation_m(&self, geometry: Option<StereoGeometry>) -> Result<Option<Vec<f32>>> {
        let geometry = geometry.or(self.geometry()).ok_or(Error::NoGeometry)?;
        let of = |(disparity, &confidence): (f32, &u8)| {
            let deviation = deviation_px(confidence)
                .and_then(|px| geometry.depth_deviation_m(f64::from(disparity), px));
            deviation.map_or(f32::NAN, |metres| metres as f32)
        };
        let pixels = |confidence| self.disparity_px().into_iter().zip(confidence).map(of).collect();
        Ok(self.confidence().map(pixels))
    }

    /// Returns the point of every pixel in metres from the left camera, row by row: x to the right, y
    /// down, z forward; three NaN if unknown. `geometry` replaces the cameras of the matcher.
    ///
    /// # Errors
    /// [`Error::NoGeometry`].
    pub fn points_m(&self, geometry: Option<StereoGeometry>) -> Result<Vec<[f32; 3]>> {
        let geometry = geometry.or(self.geometry()).ok_or(Error::NoGeometry)?;
        let width = self.map().width();
        let of = |(i, disparity): (usize, f32)| {
            let (x, y) = ((i % width) as f64, (i / width) as f64);
            let point = geometry.point_m(x, y, f64::from(disparity));
            point.map_or([f32::NAN; 3], |point| point.map(|metres| metres as f32))
        };
        Ok(self.disparity_px().into_iter().enumerate().map(of).collect())
    }

    /// Writes the disparity as a 16-bit PNG in the coding of KITTI: 256 times the disparity, 0 if
    /// unknown. Larger disparities are coded by 128 or 64, as the file's text says.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn write_png(&self, path: impl AsRef<Path>) -> Result<()> {
        let numbers = Numbers::new(Quantity::Disparity, self.map().range(), None);
        let write = || -> anyhow::Result<()> {
            let mut png = DisparityPng::default();
            files::write_whole(path.as_ref(), png.encode(self.map(), &numbers?)?)
        };
        write().map_err(file_error)
    }

    /// Writes the points as a binary PLY file in the grey of the left image, and returns their number.
    ///
    /// # Errors
    /// [`Error::NoGeometry`], [`Error::File`].
    pub fn write_ply(
        &self,
        path: impl AsRef<Path>,
        geometry: Option<StereoGeometry>,
    ) -> Result<usize> {
        let geometry = geometry.or(self.geometry()).ok_or(Error::NoGeometry)?;
        let colour = |x, y| self.matched.pair.left.rgb_at(x, y);
        let (confidence, options) = (self.matched.confidence.as_ref(), CloudOptions::default());
        cloud::write_cloud(path.as_ref(), self.map(), confidence, &geometry, options, colour)
            .map_err(file_error)
    }
}
