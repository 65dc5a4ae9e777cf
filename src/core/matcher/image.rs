//! Images that go into the matcher.

use std::path::Path;

use super::Error;
use super::error::{Result, file_error};
use crate::frame::{Image, intensity};
use crate::picture::still;
use crate::picture::tone::Tone;
use crate::pool::Pool;

/// A borrowed image: 8 bits of grey per pixel, with rows from the top, `stride` bytes apart; or 16 bits of grey, or
/// red, green and blue, with rows that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct ImageRef<'a> {
    samples: Samples<'a>,
    width: usize,
    height: usize,
}

#[derive(Clone, Copy, Debug)]
enum Samples<'a> {
    Grey { pixels: &'a [u8], stride: usize },
    Deep(&'a [u16]),
    Rgb(&'a [u8]),
}

impl<'a> ImageRef<'a> {
    /// Wraps an image of `width` x `height` pixels whose rows follow each other without a gap.
    ///
    /// # Errors
    /// [`Error::Size`]: an image without pixels, or another number of bytes than pixels.
    pub fn new(pixels: &'a [u8], width: usize, height: usize) -> Result<Self> {
        let image = Self::with_stride(pixels, width, height, width)?;
        if pixels.len() > width * height {
            return Err(Error::Size(format!(
                "{} bytes are too many for {width}x{height} grey pixels of 8 bits; `from_rgb` and `from_16_bit` take \
                 colour and 16 bits, `with_stride` rows with gaps",
                pixels.len()
            )));
        }
        Ok(image)
    }

    /// Wraps an image of `width` x `height` pixels whose rows start `stride` bytes apart. Bytes after
    /// the last row, such as the colour planes of a camera's image, are ignored.
    ///
    /// # Errors
    /// [`Error::Size`]: an image without pixels, too few bytes, or a stride below the width.
    pub fn with_stride(
        pixels: &'a [u8],
        width: usize,
        height: usize,
        stride: usize,
    ) -> Result<Self> {
        let needed = height.checked_sub(1).and_then(|rows| rows.checked_mul(stride));
        let needed = needed.and_then(|before| before.checked_add(width));
        if width == 0 || stride < width || needed.is_none_or(|needed| pixels.len() < needed) {
            return Err(Error::Size(format!(
                "{} bytes are no image of {width}x{height} pixels with rows {stride} bytes apart",
                pixels.len()
            )));
        }
        Ok(Self { samples: Samples::Grey { pixels, stride }, width, height })
    }

    /// Wraps an image of 16-bit samples (a camera's 10, 12 or 16 bits). The matcher reduces them to 8 bits with a
    /// local gain, which preserves faint texture. Rows follow each other without a gap.
    ///
    /// # Errors
    /// [`Error::Size`]: an image without pixels, or another number of samples than pixels.
    pub fn from_16_bit(samples: &'a [u16], width: usize, height: usize) -> Result<Self> {
        check_length(samples.len(), [width, height, 1])?;
        Ok(Self { samples: Samples::Deep(samples), width, height })
    }

    /// Wraps an image of red, green and blue, 8 bits each, of which the matcher takes the intensity by Rec. 709; a
    /// network of three channels gets the colours. Rows follow each other without a gap.
    ///
    /// # Errors
    /// [`Error::Size`]: an image without pixels, or another number of samples than three per pixel.
    pub fn from_rgb(samples: &'a [u8], width: usize, height: usize) -> Result<Self> {
        check_length(samples.len(), [width, height, 3])?;
        Ok(Self { samples: Samples::Rgb(samples), width, height })
    }

    /// Returns the width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Copies the image into memory of the pool, which an engine reads without another copy. It keeps its colour if
    /// `has_colour` is set.
    pub(super) fn to_image(self, pool: &Pool<u8>, has_colour: bool) -> Result<Image> {
        let pixels = pool.try_take(self.width * self.height);
        let mut pixels = pixels.map_err(|error| Error::OutOfMemory(error.to_string()))?;
        match self.samples {
            Samples::Grey { pixels: from, stride } => {
                for (to, from) in pixels.chunks_exact_mut(self.width).zip(from.chunks(stride)) {
                    to.copy_from_slice(&from[..self.width]);
                }
            }
            Samples::Deep(samples) => Tone::Local.reduce(samples, self.width, &mut pixels),
            Samples::Rgb(samples) => {
                for (to, &[red, green, blue]) in pixels.iter_mut().zip(samples.as_chunks().0) {
                    *to = intensity(red, green, blue);
                }
            }
        }
        let image = Image::new(self.width, self.height, pixels);
        Ok(match self.samples {
            Samples::Rgb(samples) if has_colour => {
                image.with_rgb(samples.as_chunks().0.iter().copied())
            }
            _ => image,
        })
    }
}

/// Checks the number of samples of an image of this width, height and number of samples per pixel.
fn check_length(length: usize, [width, height, channels]: [usize; 3]) -> Result<()> {
    let needed = width.checked_mul(height).and_then(|pixels| pixels.checked_mul(channels));
    if length == 0 || needed != Some(length) {
        return Err(Error::Size(format!(
            "{length} samples are no image of {width}x{height} pixels of {channels} channels"
        )));
    }
    Ok(())
}

/// An owned grey image: 8 bits per pixel, rows from the top without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageBuf {
    pixels: Vec<u8>,
    width: usize,
}

impl ImageBuf {
    /// Reads an image file: PNG, JPEG, PNM, BMP, TIFF or OpenEXR. Colour becomes intensity by
    /// Rec. 709, and samples of more than 8 bits are reduced as by [`ImageBuf::from_16_bit`].
    ///
    /// # Errors
    /// [`Error::File`]: a file that cannot be read, or a damaged image.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        still::read_still(path.as_ref(), Tone::Local).map(Self::of_image).map_err(file_error)
    }

    /// Converts an image of 16-bit samples as [`ImageRef::from_16_bit`] does.
    ///
    /// # Errors
    /// As [`ImageRef::from_16_bit`].
    pub fn from_16_bit(samples: &[u16], width: usize, height: usize) -> Result<Self> {
        Self::of(ImageRef::from_16_bit(samples, width, height)?)
    }

    /// Converts an image of red, green and blue as [`ImageRef::from_rgb`] does.
    ///
    /// # Errors
    /// As [`ImageRef::from_rgb`].
    pub fn from_rgb(samples: &[u8], width: usize, height: usize) -> Result<Self> {
        Self::of(ImageRef::from_rgb(samples, width, height)?)
    }

    fn of(image: ImageRef<'_>) -> Result<Self> {
        image.to_image(&Pool::new(), false).map(Self::of_image)
    }

    pub(super) fn of_image(image: Image) -> Self {
        Self { pixels: image.pixels().to_vec(), width: image.width() }
    }

    /// Returns the width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the height in pixels.
    pub fn height(&self) -> usize {
        self.pixels.len() / self.width
    }

    /// Returns every pixel, row by row.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }
}

impl<'a> From<&'a ImageBuf> for ImageRef<'a> {
    fn from(image: &'a ImageBuf) -> Self {
        let (width, height) = (image.width, image.height());
        let samples = Samples::Grey { pixels: &image.pixels, stride: width };
        Self { samples, width, height }
    }
}

#[cfg(feature = "image")]
impl<'a> TryFrom<&'a image::GrayImage> for ImageRef<'a> {
    type Error = Error;

    fn try_from(image: &'a image::GrayImage) -> Result<Self> {
        // The memory of an image may be larger than its pixels.
        let (width, height) = (image.width() as usize, image.height() as usize);
        Self::with_stride(image.as_raw(), width, height, width)
    }
}

#[cfg(feature = "image")]
impl From<ImageBuf> for image::GrayImage {
    fn from(image: ImageBuf) -> Self {
        let (width, height) = (image.width() as u32, image.height() as u32);
        Self::from_raw(width, height, image.pixels).expect("there is a byte for each pixel")
    }
}
