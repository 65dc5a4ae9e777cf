//! Grey images in their stored depth, until they are reduced to 8 bits.

use image::{DynamicImage, ImageBuffer};

use super::tone::Tone;
use crate::frame::{Image, intensity, intensity_16};

/// A grey image of 8 or of 16 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grey {
    width: usize,
    height: usize,
    samples: Samples,
}

/// Every sample, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Samples {
    Bytes(Vec<u8>),
    Words(Vec<u16>),
}

impl Grey {
    /// Returns the intensity of a decoded image at its own depth; colour is converted by Rec. 709.
    pub fn of(picture: DynamicImage) -> Self {
        fn bytes<const CHANNELS: usize>(samples: &[u8]) -> Samples {
            let pixels = samples.as_chunks::<CHANNELS>().0.iter();
            Samples::Bytes(pixels.map(|p| intensity(p[0], p[1], p[2])).collect())
        }
        fn words<const CHANNELS: usize>(samples: &[u16]) -> Samples {
            let pixels = samples.as_chunks::<CHANNELS>().0.iter();
            Samples::Words(pixels.map(|p| intensity_16(p[0], p[1], p[2])).collect())
        }
        let (width, height) = (picture.width() as usize, picture.height() as usize);
        let samples = match picture {
            DynamicImage::ImageLuma8(p) => Samples::Bytes(p.into_raw()),
            DynamicImage::ImageLumaA8(p) => {
                Samples::Bytes(p.as_raw().iter().step_by(2).copied().collect())
            }
            DynamicImage::ImageRgb8(p) => bytes::<3>(p.as_raw()),
            DynamicImage::ImageRgba8(p) => bytes::<4>(p.as_raw()),
            DynamicImage::ImageLuma16(p) => Samples::Words(p.into_raw()),
            DynamicImage::ImageLumaA16(p) => {
                Samples::Words(p.as_raw().iter().step_by(2).copied().collect())
            }
            DynamicImage::ImageRgb16(p) => words::<3>(p.as_raw()),
            DynamicImage::ImageRgba16(p) => words::<4>(p.as_raw()),
            // Floating-point samples have become words.
            other => bytes::<3>(other.to_rgb8().as_raw()),
        };
        Self { width, height, samples }
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn height(&self) -> usize {
        self.height
    }

    /// Returns the `width` x `height` pixels that begin at (x, y).
    ///
    /// # Panics
    /// If they are not all in the image.
    pub fn part(&self, [x, y]: [usize; 2], [width, height]: [usize; 2]) -> Self {
        fn cut<T: Copy>(all: &[T], stride: usize, [x, y]: [usize; 2], size: [usize; 2]) -> Vec<T> {
            let rows = all.chunks_exact(stride).skip(y).take(size[1]);
            rows.flat_map(|row| &row[x..x + size[0]]).copied().collect()
        }
        assert!(x + width <= self.width && y + height <= self.height, "a part of the picture");
        let samples = match &self.samples {
            Samples::Bytes(all) => Samples::Bytes(cut(all, self.width, [x, y], [width, height])),
            Samples::Words(all) => Samples::Words(cut(all, self.width, [x, y], [width, height])),
        };
        Self { width, height, samples }
    }

    /// Returns the image in 8 bits: unchanged if it has no more, else reduced by `tone`.
    pub fn into_image(self, tone: Tone) -> Image {
        let pixels = match self.samples {
            Samples::Bytes(pixels) => pixels,
            Samples::Words(words) => {
                let mut pixels = vec![0; words.len()];
                tone.reduce(&words, self.width, &mut pixels);
                pixels
            }
        };
        Image::from_vec(self.width, self.height, pixels)
    }
}

impl From<Grey> for DynamicImage {
    fn from(Grey { width, height, samples }: Grey) -> Self {
        let (width, height) = (width as u32, height as u32);
        let picture = match samples {
            Samples::Bytes(bytes) => {
                ImageBuffer::from_raw(width, height, bytes).map(DynamicImage::ImageLuma8)
            }
            Samples::Words(words) => {
                ImageBuffer::from_raw(width, height, words).map(DynamicImage::ImageLuma16)
            }
        };
        picture.expect("there is a sample for each pixel")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_keeps_its_depth() {
        let words = vec![1, 300, 3, 4, 5, 600];
        let grey = Grey { width: 3, height: 2, samples: Samples::Words(words) };
        let part = Grey { width: 2, height: 1, samples: Samples::Words(vec![5, 600]) };
        assert_eq!(grey.part([1, 1], [2, 1]), part);
        let grey = Grey { width: 2, height: 2, samples: Samples::Bytes(vec![1, 2, 3, 4]) };
        let image = grey.part([1, 0], [1, 2]).into_image(Tone::Local);
        assert_eq!((image.width(), image.height(), image.pixels()), (1, 2, &[2, 4][..]));
    }

    #[test]
    fn colour_becomes_grey_at_its_own_depth() {
        let picture = image::ImageBuffer::from_raw(2, 1, vec![65535u16, 0, 0, 10, 257, 999]);
        let grey = Grey::of(DynamicImage::ImageRgb16(picture.unwrap()));
        // 0.2125 * 65535 = 13926.2; 2.125 + 183.858 + 72.028 = 258.0.
        assert_eq!(grey.samples, Samples::Words(vec![13926, 258]));
    }
}
