//! The types that flow through the pipeline: pictures, stereo pairs, disparity maps, and the times
//! they carry.

use std::time::{Duration, Instant};

use crate::pool::Pooled;

/// An 8-bit intensity picture, rows tightly packed, top row first.
#[derive(Debug)]
pub struct Image {
    width: usize,
    height: usize,
    pixels: Pooled<u8>,
}

impl Image {
    /// A picture of `width` x `height` pixels.
    ///
    /// # Panics
    /// Where `pixels` does not hold exactly `width * height` bytes, or the picture is empty.
    pub fn new(width: usize, height: usize, pixels: Pooled<u8>) -> Self {
        assert!(width > 0 && height > 0, "a picture has at least one pixel");
        assert_eq!(pixels.len(), width * height, "pixels of a {width}x{height} picture");
        Self { width, height, pixels }
    }

    /// A picture that belongs to no pool.
    ///
    /// # Panics
    /// As [`Image::new`].
    pub fn from_vec(width: usize, height: usize, pixels: Vec<u8>) -> Self {
        Self::new(width, height, Pooled::unpooled(pixels))
    }

    /// A picture whose pixel (x, y) is `value(x, y)`.
    pub fn from_fn(width: usize, height: usize, value: impl Fn(usize, usize) -> u8) -> Self {
        let pixels = (0..width * height).map(|i| value(i % width, i / width)).collect();
        Self::from_vec(width, height, pixels)
    }

    /// Width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Whether a device copies the pixels by itself.
    pub fn is_pinned(&self) -> bool {
        self.pixels.is_pinned()
    }

    /// Every pixel, row by row.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The pixels of row `y`.
    pub fn row(&self, y: usize) -> &[u8] {
        &self.pixels[y * self.width..][..self.width]
    }
}

/// Intensity of an RGB pixel by Rec. 709: 0.2125 R + 0.7154 G + 0.0721 B, rounded.
pub fn intensity(red: u8, green: u8, blue: u8) -> u8 {
    ((2125 * u32::from(red) + 7154 * u32::from(green) + 721 * u32::from(blue) + 5000) / 10000) as u8
}

/// Which of the two cameras a picture comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Eye {
    /// The base picture.
    Left,
    /// The match picture.
    Right,
}

impl std::fmt::Display for Eye {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Eye::Left => "left",
            Eye::Right => "right",
        })
    }
}

/// One picture of one eye, as a source delivers it to the pairing.
#[derive(Debug)]
pub struct EyeFrame {
    /// The picture.
    pub image: Image,
    /// Capture time on the stream's clock; `None` where the stream carries no usable times.
    pub timestamp: Option<Duration>,
    /// Number of this frame within its eye's stream, from 0.
    pub index: u64,
    /// When the picture reached this process.
    pub arrived: Instant,
}

/// The column of a row of `width` pixels that stands for column `x`.
pub fn clamped(x: i64, width: usize) -> usize {
    x.clamp(0, width as i64 - 1) as usize
}

/// Two pictures of one moment.
#[derive(Debug)]
pub struct StereoPair {
    /// Base picture.
    pub left: Image,
    /// Match picture, of the same size.
    pub right: Image,
    /// Number of this pair within the run, from 0, without gaps at the source.
    pub sequence: u64,
    /// Capture time of the left picture on the stream's clock.
    pub timestamp: Duration,
    /// Capture time of the right picture minus that of the left one, in nanoseconds.
    pub skew_ns: i64,
    /// When the later of the two pictures reached this process.
    pub arrived: Instant,
    /// The true disparity, where the source knows it (the demo scene).
    pub truth: Option<Box<Truth>>,
}

/// The true disparity of a synthetic pair, a value per pixel of the left picture.
#[derive(Clone, Debug)]
pub struct Truth {
    /// Disparity in pixels.
    pub disparity: Pooled<f32>,
    /// Whether the point is seen by both eyes.
    pub visible: Pooled<bool>,
}

/// Disparity in sixteenths of a pixel; the value that stands for "unknown".
pub const INVALID: i16 = i16::MIN;

/// Units of a [`DisparityMap`] value per pixel of disparity.
pub const SUBPIXEL: i32 = 16;

/// Disparity of every pixel of the left picture, in 1/16 px; [`INVALID`] where it is unknown.
#[derive(Debug)]
pub struct DisparityMap {
    width: usize,
    height: usize,
    values: Pooled<i16>,
}

impl DisparityMap {
    /// A map of `width` x `height` values in 1/16 px.
    ///
    /// # Panics
    /// Where `values` does not hold exactly `width * height` elements.
    pub fn new(width: usize, height: usize, values: Pooled<i16>) -> Self {
        assert_eq!(values.len(), width * height, "values of a {width}x{height} map");
        Self { width, height, values }
    }

    /// Width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Every value, row by row.
    pub fn values(&self) -> &[i16] {
        &self.values
    }

    /// Every value, row by row, to be changed in place.
    pub fn values_mut(&mut self) -> &mut [i16] {
        &mut self.values
    }

    /// Disparity of pixel (x, y) in pixels, or `None` where it is unknown.
    pub fn at(&self, x: usize, y: usize) -> Option<f32> {
        let value = self.values[y * self.width + x];
        (value != INVALID).then(|| f32::from(value) / SUBPIXEL as f32)
    }
}

/// The candidate disparities: `min <= d < min + count`, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisparityRange {
    /// Smallest candidate; may be negative.
    pub min: i32,
    /// Number of candidates, 1 to 1024.
    pub count: usize,
}

impl DisparityRange {
    /// Largest candidate.
    pub fn max(&self) -> i32 {
        self.min + self.count as i32 - 1
    }
}

/// A pair with its disparity, as every sink receives it.
#[derive(Debug)]
pub struct Matched {
    /// The pair that was matched.
    pub pair: StereoPair,
    /// Disparity of the pair's left picture.
    pub disparity: DisparityMap,
    /// When the engine took the pair.
    pub submitted: Instant,
    /// When the engine handed the result out.
    pub finished: Instant,
}

impl Matched {
    /// From the picture's arrival to its disparity.
    pub fn latency(&self) -> Duration {
        self.finished.saturating_duration_since(self.pair.arrived)
    }
}
