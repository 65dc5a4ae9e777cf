//! Rectification map: source position of every rectified pixel, and bilinear interpolation there.
//! Every engine must reproduce this definition byte for byte.

use std::sync::Arc;

use super::error::RectifyError;
use crate::frame::{Image, Mask};
use crate::memory;

/// Largest number of pixels of an image: vector units count with 31 bits.
const SOURCE_PIXELS: usize = 1 << 30;

/// Rectification of one view: bilinear interpolation at fixed-point positions.
///
/// A position is rounded to the nearest 1/256 px; if that lies outside [0, W - 1] x [0, H - 1]
/// of the source, the pixel is invalid and 0. Else, with the whole parts sx, sy and the fractions fx,
/// fy in 0..=255 of the position and the source's pixels
/// a = (sx, sy), b = (sx + 1, sy), c = (sx, sy + 1), d = (sx + 1, sy + 1), its value is
///
/// ```text
/// (((256 - fx) a + fx b) (256 - fy) + ((256 - fx) c + fx d) fy + 32768) >> 16
/// ```
///
/// In the last column fx is 0 and in the last row fy is 0: taps outside the source have no weight,
/// and count as 0. An implementation that cannot read there may read another pixel in their place,
/// such as (sx + (fx > 0), sy + (fy > 0)), which always lies inside.
#[derive(Clone, Debug)]
pub struct RectifyMap {
    source: (usize, usize),
    width: usize,
    offsets: Vec<u32>,
    weights: Vec<u16>,
    mask: Option<Arc<Mask>>,
}

impl RectifyMap {
    /// The offset of an invalid pixel, which the camera does not see.
    pub const UNSEEN: u32 = u32::MAX;

    /// Returns the map from images of size `source` to images of `size` (width, height). Their pixel (x, y)
    /// shows `position(x, y)`, in pixels of the source.
    pub fn from_positions(
        source: (usize, usize),
        size: (usize, usize),
        position: impl Fn(usize, usize) -> Option<[f64; 2]>,
    ) -> Result<Self, RectifyError> {
        for (width, height) in [source, size] {
            match width.checked_mul(height) {
                Some(0) => {
                    return Err(RectifyError::Numbers("picture size", format!("{width}x{height}")));
                }
                Some(1..=SOURCE_PIXELS) => {}
                _ => return Err(RectifyError::TooLarge(width, height)),
            }
        }
        let ends = [source.0, source.1].map(|side| (side - 1) as f64 * 256.0);
        let pixels = size.0 * size.1;
        let (mut offsets, mut weights) = (Vec::<u32>::new(), Vec::<u16>::new());
        offsets.try_reserve_exact(pixels).map_err(|_| memory::refused::<u32>(pixels))?;
        weights.try_reserve_exact(pixels).map_err(|_| memory::refused::<u16>(pixels))?;
        for y in 0..size.1 {
            for x in 0..size.0 {
                let fixed = position(x, y).map(|p| p.map(|v| (v * 256.0 + 0.5).floor()));
                match fixed {
                    Some([u, v])
                        if (0.0..=ends[0]).contains(&u) && (0.0..=ends[1]).contains(&v) =>
                    {
                        let (u, v) = (u as usize, v as usize);
                        offsets.push(((v / 256) * source.0 + u / 256) as u32);
                        weights.push(((u % 256) | ((v % 256) << 8)) as u16);
                    }
                    _ => {
                        offsets.push(Self::UNSEEN);
                        weights.push(0);
                    }
                }
            }
        }
        let valid: Vec<bool> = offsets.iter().map(|&offset| offset != Self::UNSEEN).collect();
        let mask = valid.contains(&false).then(|| Arc::new(Mask::new(size.0, valid)));
        Ok(Self { source, width: size.0, offsets, weights, mask })
    }

    /// Returns the largest size in bytes of a map to images of this size, with its mask.
    pub fn bytes_of((width, height): (usize, usize)) -> u64 {
        memory::product([size_of::<u32>() + size_of::<u16>() + size_of::<bool>(), width, height])
    }

    /// Returns width and height of the camera's images; rows are packed, so that the width is the stride.
    pub fn source_size(&self) -> (usize, usize) {
        self.source
    }

    /// Returns width and height of the rectified images.
    pub fn size(&self) -> (usize, usize) {
        (self.width, self.offsets.len() / self.width)
    }

    /// Returns sy * source width + sx for every rectified pixel, row by row; [`RectifyMap::UNSEEN`]
    /// if invalid.
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// Returns fx | fy << 8 for every rectified pixel, row by row; 0 if invalid.
    pub fn weights(&self) -> &[u16] {
        &self.weights
    }

    /// Returns the pixel of the source nearest to rectified pixel (x, y); `None` if that is invalid.
    pub fn nearest(&self, x: usize, y: usize) -> Option<(usize, usize)> {
        let at = y * self.width + x;
        let (offset, weights) = (self.offsets[at], self.weights[at]);
        let stride = self.source.0 as u32;
        // A fraction of 1/2 or more selects the next pixel, which exists: the last one has fraction 0.
        let beyond = |weight: u16| usize::from(weight >= 128);
        (offset != Self::UNSEEN).then(|| {
            let (x, y) = ((offset % stride) as usize, (offset / stride) as usize);
            (x + beyond(weights & 255), y + beyond(weights >> 8))
        })
    }

    /// Returns the valid mask of the rectified images; `None` if the camera sees every pixel.
    pub fn mask(&self) -> Option<Arc<Mask>> {
        self.mask.clone()
    }

    /// Reports whether the camera sees any pixel of the rectified image.
    pub fn sees_anything(&self) -> bool {
        self.offsets.iter().any(|&offset| offset != Self::UNSEEN)
    }

    /// Returns the value of pixel (x, y) of the rectified image, which must lie inside it; the
    /// sizes must fit as in [`RectifyMap::apply`].
    pub fn value(&self, from: &Image, x: usize, y: usize) -> u8 {
        assert_eq!((from.width(), from.height()), self.source, "size of a picture to be rectified");
        let i = y * self.width + x;
        interpolate(from.pixels(), self.source.0, self.offsets[i], self.weights[i])
    }

    /// Rectifies an image of the source's size into `to`, of the rectified image's, a byte per pixel.
    pub fn apply(&self, from: &Image, to: &mut [u8]) {
        assert_eq!((from.width(), from.height()), self.source, "size of a picture to be rectified");
        assert_eq!(to.len(), self.offsets.len(), "pixels of a rectified picture");
        let source = from.pixels();
        for ((value, &offset), &weights) in to.iter_mut().zip(&self.offsets).zip(&self.weights) {
            *value = interpolate(source, self.source.0, offset, weights);
        }
    }
}

/// Returns the value at a position in an image with rows of `stride`; the offset must lie inside.
#[inline]
pub fn interpolate(source: &[u8], stride: usize, offset: u32, weights: u16) -> u8 {
    if offset == RectifyMap::UNSEEN {
        return 0;
    }
    let at = offset as usize;
    let (fx, fy) = (u32::from(weights & 255), u32::from(weights >> 8));
    let tap = |at: usize| source.get(at).map_or(0, |&v| u32::from(v));
    let above = (256 - fx) * tap(at) + fx * tap(at + 1);
    let below = (256 - fx) * tap(at + stride) + fx * tap(at + stride + 1);
    ((above * (256 - fy) + below * fy + 32768) >> 16) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_pixel_of_the_source_is_found() {
        let at = [[0.0, 0.0], [1.4, 2.0], [1.6, 0.5], [3.0, 2.0], [5.0, 0.0]];
        let map = RectifyMap::from_positions((4, 3), (5, 1), |x, _| Some(at[x])).unwrap();
        let nearest: Vec<_> = (0..5).map(|x| map.nearest(x, 0)).collect();
        assert_eq!(nearest, [Some((0, 0)), Some((1, 2)), Some((2, 1)), Some((3, 2)), None]);
    }

    #[test]
    fn values_are_rounded_as_written() {
        let picture = Image::from_vec(3, 2, vec![10, 20, 250, 40, 80, 255]);
        let positions = [
            Some([0.5, 0.5]),                      // (10 + 20 + 40 + 80) / 4 = 37.5, upwards.
            Some([1.25, 0.0]),                     // 20 + 230 / 4 = 77.5, upwards.
            Some([2.0, 0.75]),                     // 253.75.
            Some([2.0, 1.0]),                      // The last pixel.
            Some([0.0, 1.0 / 512.0 - 1e-9]),       // Rounds to 0.
            Some([0.0, 1.0 / 512.0]),              // Rounds to 1/256: 10.117.
            Some([-1.0 / 512.0, 1.0]),             // Rounds to 0.
            Some([-1.0 / 512.0 - 1e-9, 1.0]),      // Outside.
            Some([2.0 + 1.0 / 512.0 - 1e-9, 0.0]), // Rounds to the last column.
            Some([2.0 + 1.0 / 512.0, 0.0]),        // Outside.
            Some([f64::NAN, 0.0]),
            None,
        ];
        let map = RectifyMap::from_positions((3, 2), (4, 3), |x, y| positions[4 * y + x]).unwrap();
        let mut values = vec![99; 12];
        map.apply(&picture, &mut values);
        assert_eq!(values, [38, 78, 254, 255, 10, 10, 40, 0, 250, 0, 0, 0]);
        let mask = map.mask().unwrap();
        let unseen: Vec<usize> = (0..12).filter(|&i| !mask.pixels()[i]).collect();
        assert_eq!(unseen, [7, 9, 10, 11]);
        assert_eq!((map.offsets()[1], map.weights()[1]), (1, 64));
        assert_eq!((map.offsets()[2], map.weights()[2]), (2, 192 << 8));
    }

    #[test]
    fn impossible_sizes_are_refused() {
        let nowhere = |_, _| None;
        assert!(RectifyMap::from_positions((0, 4), (4, 4), nowhere).is_err());
        assert!(RectifyMap::from_positions((4, 4), (4, 0), nowhere).is_err());
        let large = RectifyMap::from_positions((1 << 20, 1 << 20), (4, 4), nowhere).unwrap_err();
        assert_eq!(large, RectifyError::TooLarge(1 << 20, 1 << 20));
    }
}
