//! Calibrations for another mode of the same sensor, with images of another size.

use std::fmt;

use nalgebra::Matrix3x4;

use super::error::Result;
use super::{CalibrationError, Camera, Rectification, StereoCalibration};

/// Adaptation of a calibration to a size of images.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fit {
    /// The size of the calibration.
    Exact,
    /// The whole image, scaled.
    Scaled {
        /// Width and height of the calibrated images.
        from: (usize, usize),
        /// Width and height of the present images.
        to: (usize, usize),
    },
    /// Scaled, then cut to the middle; that the cut is central is assumed.
    Cropped {
        /// Width and height of the calibrated images.
        from: (usize, usize),
        /// Width and height of the present images.
        to: (usize, usize),
    },
}

impl Fit {
    /// Reports whether it is the whole image in another size.
    fn is_scaled(self) -> bool {
        matches!(self, Fit::Scaled { .. })
    }

    /// Reports whether it rests on an assumption that the files do not confirm.
    pub fn is_assumed(self) -> bool {
        matches!(self, Fit::Cropped { .. })
    }
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fit::Exact => f.write_str("the calibration is for this size of pictures"),
            Fit::Scaled { from, to } => write!(
                f,
                "the calibration is for {}x{} and was scaled to {}x{}",
                from.0, from.1, to.0, to.1
            ),
            Fit::Cropped { from, to } => write!(
                f,
                "the calibration is for {}x{}; it is assumed that {}x{} shows the middle of that picture \
                 (calibrate at {}x{} to be sure)",
                from.0, from.1, to.0, to.1, to.0, to.1
            ),
        }
    }
}

/// A mapping of pixels: x' = (x + 1/2) * scale - 1/2 - offset. Pixel centres are at whole numbers,
/// so that the first pixel's edge is at -1/2.
#[derive(Clone, Copy)]
struct Mapping {
    scale: [f64; 2],
    offset: [f64; 2],
}

impl Mapping {
    fn point(&self, at: [f64; 2]) -> [f64; 2] {
        [0, 1].map(|i| (at[i] + 0.5) * self.scale[i] - 0.5 - self.offset[i])
    }

    fn camera(&self, camera: &Camera, (width, height): (usize, usize)) -> Camera {
        Camera {
            width,
            height,
            focal: [0, 1].map(|i| camera.focal[i] * self.scale[i]),
            centre: self.point(camera.centre),
            skew: camera.skew * self.scale[0],
            lens: camera.lens.clone(),
        }
    }

    fn rectified(&self, from: &Rectification, (width, height): (usize, usize)) -> Rectification {
        let mut result = Rectification { width, height, ..from.clone() };
        for view in [&mut result.left, &mut result.right] {
            view.projection = self.projection(&view.projection);
        }
        result
    }

    fn projection(&self, projection: &Matrix3x4<f64>) -> Matrix3x4<f64> {
        let mut result = *projection;
        for i in 0..2 {
            // Pixels are (row . X) / (third row . X), so a shift adds multiples of the third row.
            let shift = 0.5 * self.scale[i] - 0.5 - self.offset[i];
            for column in 0..4 {
                result[(i, column)] =
                    projection[(i, column)] * self.scale[i] + projection[(2, column)] * shift;
            }
        }
        result
    }
}

/// Part of a camera's full image that its driver delivers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    /// Column and row of its first pixel in the full image.
    pub offset: [usize; 2],
    /// Width and height in pixels of the full image.
    pub size: (usize, usize),
    /// Binning: number of pixels along a row and along a column that become one, from 1.
    pub binning: [usize; 2],
}

impl Window {
    /// Reports whether it differs from a whole image of this size.
    pub fn is_part_of(&self, full: (usize, usize)) -> bool {
        self.binning != [1, 1] || self.size != full
    }

    fn delivered(&self) -> (usize, usize) {
        (self.size.0 / self.binning[0], self.size.1 / self.binning[1])
    }

    fn mapping(&self) -> Mapping {
        let scale = self.binning.map(|binning| 1.0 / binning as f64);
        Mapping { scale, offset: [0, 1].map(|i| self.offset[i] as f64 * scale[i]) }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset: [x, y], size: (width, height), binning } = self;
        write!(f, "the region {width}x{height} at ({x}, {y})")?;
        match binning {
            [1, 1] => Ok(()),
            [across, down] => write!(f, " binned {across}x{down}"),
        }
    }
}

impl StereoCalibration {
    /// Returns the calibration for these parts of the left and the right camera's images. The
    /// rectified images show the left part, so that their rows correspond as before.
    pub(super) fn within(self, windows: [Window; 2]) -> Self {
        self.mapped(windows.map(|window| (window.mapping(), window.delivered())))
    }

    /// Returns the calibration for images that are mapped to these sizes. A rectification follows the left
    /// image if its images are as large, and is dropped otherwise.
    fn mapped(self, [(left, size), (right, other)]: [(Mapping, (usize, usize)); 2]) -> Self {
        let full = (self.left.width, self.left.height);
        let fits = |r: &Rectification| (r.width, r.height) == full;
        Self {
            left: left.camera(&self.left, size),
            right: right.camera(&self.right, other),
            rectification: self.rectification.filter(fits).map(|r| left.rectified(&r, size)),
            ..self
        }
    }

    /// Returns the calibration for images of another size of the same sensor, and the adaptation.
    ///
    /// Images of the same shape are scaled. Others are taken as the middle of the calibrated image scaled by
    /// 1 or by one over a whole number, as cameras read out and bin their sensors: 1280x720 and 640x360 of
    /// 1280x800. Other changes are refused: a larger image of another shape may show more than was
    /// calibrated, and no mode cuts off nearly half of an image, as for two views in one image.
    ///
    /// A rectification is scaled and cut in the same way if its images are as large as the camera's: rows
    /// correspond as before. If it has another size, it is dropped, to be computed again.
    pub fn for_size(&self, width: usize, height: usize) -> Result<(StereoCalibration, Fit)> {
        let to = (width, height);
        let from = (self.left.width, self.left.height);
        // The right camera's images change in the same proportion.
        let other = (self.right.width, self.right.height);
        let part = |own: usize, to: usize, from: usize| (own * to + from / 2) / from.max(1);
        let of_right = (part(other.0, to.0, from.0), part(other.1, to.1, from.1));
        let (calibration, [fit, _]) = self.for_views([to, of_right], false)?;
        Ok((calibration, fit))
    }

    /// As [`StereoCalibration::for_size`] for the sizes of the left and the right view, with the adaptation of
    /// each. `are_packed`: the views are the halves of one image.
    pub fn for_views(
        &self,
        sizes: [(usize, usize); 2],
        are_packed: bool,
    ) -> Result<(StereoCalibration, [Fit; 2])> {
        let cameras = [&self.left, &self.right].map(|camera| (camera.width, camera.height));
        if cameras == sizes {
            return Ok((self.clone(), [Fit::Exact; 2]));
        }
        let [left, right] = [0, 1].map(|eye| {
            let (from, to) = (cameras[eye], sizes[eye]);
            let own = if cameras[0] == cameras[1] { "" } else { [" left", " right"][eye] };
            let refusal = || CalibrationError::new(refusal(own, from, to, are_packed));
            mapping(from, to).ok_or_else(refusal)
        });
        let ((left, of_left), (right, of_right)) = (left?, right?);
        let calibration = self.clone().mapped([(left, sizes[0]), (right, sizes[1])]);
        Ok((calibration, [of_left, of_right]))
    }
}

/// Returns the error of a calibration that does not serve images of this size, with a remedy.
fn refusal(eye: &str, from: (usize, usize), to: (usize, usize), are_packed: bool) -> String {
    let what = format!(
        "the calibration is for{eye} pictures of {}x{}, but these are {}x{}",
        from.0, from.1, to.0, to.1
    );
    let is_of = |size| size == from || mapping(from, size).is_some_and(|(_, fit)| fit.is_scaled());
    if are_packed {
        for (full, side) in [((2 * to.0, to.1), "width"), ((to.0, 2 * to.1), "height")] {
            if is_of(full) {
                return format!(
                    "{what}: the views are squeezed to half their {side}; give --half, which stretches them"
                );
            }
        }
    } else {
        for (half, name, flag) in [
            ((to.0 / 2, to.1), "a side-by-side picture", "--side-by-side"),
            ((to.0, to.1 / 2), "a top-bottom picture", "--top-bottom"),
        ] {
            if is_of(half) {
                return format!(
                    "{what}: {name}, which holds both views, is the likely reason: use {flag}, so that each \
                     view has {}x{}",
                    half.0, half.1
                );
            }
        }
    }
    format!(
        "{what}, which is neither the same picture scaled nor its middle as far as can be told; run \
         the cameras at {}x{}, or calibrate them at {}x{}",
        from.0, from.1, to.0, to.1
    )
}

/// Smallest part of an image's width or height that a mode keeps: 16:9 of a square sensor leaves
/// 0.56 of its rows.
const LEAST_KEPT: f64 = 0.55;

/// Returns the mapping from pixels of one size to the other's.
fn mapping(from: (usize, usize), to: (usize, usize)) -> Option<(Mapping, Fit)> {
    if to.0 == 0 || to.1 == 0 {
        return None;
    }
    let sides = [(from.0 as f64, to.0 as f64), (from.1 as f64, to.1 as f64)];
    let scale = sides.map(|(from, to)| to / from);
    // The same shape, except for rounding to whole pixels, of halves up or down.
    let same =
        |larger: f64| sides.iter().all(|(from, to)| (from * larger - to).abs() <= 0.5 + 1e-9);
    if from == to {
        return Some((Mapping { scale, offset: [0.0; 2] }, Fit::Exact));
    }
    if same(scale[0]) || same(scale[1]) {
        return Some((Mapping { scale, offset: [0.0; 2] }, Fit::Scaled { from, to }));
    }
    let (least, scale) = (scale[0].min(scale[1]), scale[0].max(scale[1]));
    let binning = 1.0 / scale;
    let is_binned = binning >= 1.0 && (binning - binning.round()).abs() <= 1e-9;
    if !is_binned || least < LEAST_KEPT * scale {
        return None;
    }
    let offset = sides.map(|(from, to)| (from * scale - to) / 2.0);
    Some((Mapping { scale: [scale; 2], offset }, Fit::Cropped { from, to }))
}

#[cfg(test)]
mod tests;
