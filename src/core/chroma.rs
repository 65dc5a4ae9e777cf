//! Colour of an image: shown and written, never matched. Streams deliver two colour differences, often of
//! half the size, which are converted to red, green and blue only when an output needs them.

use std::sync::{Arc, OnceLock};

use crate::pool::{Pool, Pooled};

/// The colour differences Cb and Cr of a pixel, each 128 without colour.
pub type Differences = [u8; 2];

/// Differences of a pixel without colour.
pub const NONE: Differences = [128; 2];

/// Fractional bits of the weights of [`ColourCoding`].
const FRACTION: u32 = 16;

/// Weights that convert luma and colour differences to red, green and blue (ITU-T H.273, 8.3), in 1/65536.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColourCoding {
    /// Luma of black.
    pub black: i32,
    /// Weight of the luma above black in each colour.
    pub luma: i32,
    /// Weight of Cr - 128 in red.
    pub red_cr: i32,
    /// Weight of Cb - 128 in green.
    pub green_cb: i32,
    /// Weight of Cr - 128 in green.
    pub green_cr: i32,
    /// Weight of Cb - 128 in blue.
    pub blue_cb: i32,
}

impl ColourCoding {
    /// Coding that yields grey for all differences.
    pub const GREY: Self =
        Self { black: 0, luma: 1 << FRACTION, red_cr: 0, green_cb: 0, green_cr: 0, blue_cb: 0 };

    /// Returns the coding whose luma is `red` parts of red, `blue` parts of blue, and green for the
    /// rest. With `full_range` luma has all 256 values; otherwise black is 16, white is 235, and the
    /// differences lie within 112 of 128.
    pub fn new(red: f64, blue: f64, full_range: bool) -> Self {
        let green = 1.0 - red - blue;
        let (black, white, reach) = if full_range { (0, 255, 127.5) } else { (16, 235, 112.0) };
        let fixed = |weight: f64| (weight * f64::from(1 << FRACTION)).round() as i32;
        let (of_red, of_blue) = (255.0 * (1.0 - red) / reach, 255.0 * (1.0 - blue) / reach);
        Self {
            black,
            luma: fixed(255.0 / f64::from(white - black)),
            red_cr: fixed(of_red),
            green_cb: fixed(-of_blue * blue / green),
            green_cr: fixed(-of_red * red / green),
            blue_cb: fixed(of_blue),
        }
    }

    /// Returns the coding of red, green and blue images with [`crate::frame::intensity`] as luma.
    pub fn of_rgb() -> Self {
        Self::new(0.2125, 0.0721, true)
    }

    /// Returns the differences of a colour whose luma is `luma`, in [`ColourCoding::of_rgb`].
    pub fn differences(luma: u8, red: u8, blue: u8) -> Differences {
        // 127.5 / 255 / (1 - part): the inverse of the weights, in 1/65536.
        const OF_RED: i32 = 41610;
        const OF_BLUE: i32 = 35314;
        let difference = |colour: u8, weight: i32| {
            let scaled = (i32::from(colour) - i32::from(luma)) * weight + (1 << (FRACTION - 1));
            ((scaled >> FRACTION) + 128).clamp(0, 255) as u8
        };
        [difference(blue, OF_BLUE), difference(red, OF_RED)]
    }

    /// Returns red, green and blue of a pixel.
    #[inline]
    pub fn rgb(&self, luma: u8, [cb, cr]: Differences) -> [u8; 3] {
        let (cb, cr) = (i32::from(cb) - 128, i32::from(cr) - 128);
        let grey = (i32::from(luma) - self.black) * self.luma + (1 << (FRACTION - 1));
        let colour = |value: i32| (value >> FRACTION).clamp(0, 255) as u8;
        [
            colour(grey + self.red_cr * cr),
            colour(grey + self.green_cb * cb + self.green_cr * cr),
            colour(grey + self.blue_cb * cb),
        ]
    }
}

/// Colour differences of a whole image, of its size or smaller.
#[derive(Debug)]
pub struct ChromaPlane {
    /// Of the image.
    size: (usize, usize),
    width: usize,
    /// Pixels of the image that share a sample: 2 to the power of this, across and down.
    shift: [u32; 2],
    samples: Pooled<Differences>,
}

impl ChromaPlane {
    /// Creates a plane for an image of `size` (width, height), samples row by row, each for
    /// 2^`shift` pixels across and down; of those at the right and lower edge there may be fewer.
    ///
    /// # Panics
    /// If the number of samples is not exactly the one that the image needs.
    pub fn new(size: (usize, usize), shift: [u32; 2], samples: Pooled<Differences>) -> Self {
        let (width, height) = Self::size_for(size, shift);
        assert_eq!(samples.len(), width * height, "samples of a {width}x{height} plane");
        Self { size, width, shift, samples }
    }

    /// Returns the width and height in samples of the plane for an image of `size`.
    pub fn size_for(size: (usize, usize), shift: [u32; 2]) -> (usize, usize) {
        (size.0.div_ceil(1 << shift[0]), size.1.div_ceil(1 << shift[1]))
    }

    /// Returns the width and height in samples.
    pub fn samples_size(&self) -> (usize, usize) {
        (self.width, self.samples.len() / self.width)
    }

    /// Returns every sample, row by row.
    pub fn samples(&self) -> &[Differences] {
        &self.samples
    }

    /// Returns the differences of pixel (x, y): those of the sample it shares, as libyuv does it.
    #[inline]
    pub fn at(&self, x: usize, y: usize) -> Differences {
        self.samples[(y >> self.shift[1]) * self.width + (x >> self.shift[0])]
    }
}

/// Mapping of the pixels of one image to those of another.
pub trait Resampling: Send + Sync + std::fmt::Debug {
    /// Returns the width and height of the other one.
    fn size(&self) -> (usize, usize);
    /// Returns the pixel nearest to the point at (x, y) of the other image; `None` if it lies outside.
    fn origin(&self, x: usize, y: usize) -> Option<(usize, usize)>;
}

/// The colour of an image, which may since have been rectified.
#[derive(Debug)]
pub struct Chroma {
    coding: ColourCoding,
    raw: ChromaPlane,
    through: Option<Arc<dyn Resampling>>,
    resampled: OnceLock<ChromaPlane>,
    pool: Pool<Differences>,
}

impl Chroma {
    /// Copies the colour of an unrectified image.
    pub fn copy(&self) -> Self {
        let raw = &self.raw;
        let samples = Pooled::unpooled(raw.samples.to_vec());
        let copy = ChromaPlane { samples, ..*raw };
        Self { through: self.through.clone(), ..Self::new(self.coding, copy, self.pool.clone()) }
    }

    /// Creates the colour of an unrectified image. `pool` holds it after a later rectification.
    pub fn new(coding: ColourCoding, raw: ChromaPlane, pool: Pool<Differences>) -> Self {
        Self { coding, raw, through: None, resampled: OnceLock::new(), pool }
    }

    /// Returns the colour of the image resampled by `through`. It is computed at its first use.
    #[must_use]
    pub fn with_resampling(self, through: Arc<dyn Resampling>) -> Self {
        Self { through: Some(through), resampled: OnceLock::new(), ..self }
    }

    pub fn coding(&self) -> &ColourCoding {
        &self.coding
    }

    /// Returns the width and height of the image in pixels.
    pub fn size(&self) -> (usize, usize) {
        self.through.as_ref().map_or(self.raw.size, |through| through.size())
    }

    /// Reports whether no pixel has a colour: a grey image that came through a codec for colours.
    pub fn is_neutral(&self) -> bool {
        self.raw.samples.iter().flatten().all(|&difference| difference.abs_diff(NONE[0]) <= 1)
    }

    /// Returns the differences of the image.
    pub fn plane(&self) -> &ChromaPlane {
        let Some(through) = &self.through else { return &self.raw };
        self.resampled.get_or_init(|| {
            let (size, shift) = (through.size(), self.raw.shift);
            let (width, height) = ChromaPlane::size_for(size, shift);
            let mut samples = self.pool.take(width * height);
            for (y, row) in samples.chunks_exact_mut(width).enumerate() {
                for (x, sample) in row.iter_mut().enumerate() {
                    let origin = through.origin(x << shift[0], y << shift[1]);
                    *sample = origin.map_or(NONE, |(x, y)| self.raw.at(x, y));
                }
            }
            ChromaPlane::new(size, shift, samples)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::intensity;

    #[test]
    fn the_usual_codings_have_the_usual_weights() {
        let weights = |coding: ColourCoding| {
            let ColourCoding { luma, red_cr, green_cb, green_cr, blue_cb, .. } = coding;
            [luma, red_cr, green_cb, green_cr, blue_cb].map(|w| f64::from(w) / 65536.0)
        };
        // The tables of ITU-R BT.601 and BT.709 for 8 bits, and of JFIF.
        for (coding, expected) in [
            (ColourCoding::new(0.299, 0.114, false), [1.164, 1.596, -0.392, -0.813, 2.017]),
            (ColourCoding::new(0.2126, 0.0722, false), [1.164, 1.793, -0.213, -0.533, 2.112]),
            (ColourCoding::new(0.299, 0.114, true), [1.0, 1.402, -0.344, -0.714, 1.772]),
        ] {
            for (got, expected) in weights(coding).into_iter().zip(expected) {
                assert!((got - expected).abs() < 6e-4, "{got}, not {expected}");
            }
        }
        let limited = ColourCoding::new(0.299, 0.114, false);
        assert_eq!(limited.rgb(16, NONE), [0; 3]);
        assert_eq!(limited.rgb(235, NONE), [255; 3]);
        // Pure red of BT.601: Y 81, Cb 90, Cr 240.
        assert_eq!(limited.rgb(81, [90, 240]), [254, 0, 0]);
        assert_eq!(ColourCoding::GREY.rgb(77, [3, 250]), [77; 3]);
    }

    #[test]
    fn a_colour_comes_back_from_its_differences() {
        let coding = ColourCoding::of_rgb();
        for red in (0..=255).step_by(15) {
            for green in (0..=255).step_by(15) {
                for blue in (0..=255).step_by(15) {
                    let luma = intensity(red, green, blue);
                    let back = coding.rgb(luma, ColourCoding::differences(luma, red, blue));
                    let off = |a: u8, b: u8| a.abs_diff(b);
                    // Half a step of luma and half of a difference, which counts up to 1.9 times.
                    assert!(
                        off(back[0], red) <= 2 && off(back[2], blue) <= 2,
                        "{red} {green} {blue}"
                    );
                    assert!(off(back[1], green) <= 2, "{red} {green} {blue}: {back:?}");
                }
            }
        }
    }

    #[test]
    fn pixels_share_samples_and_follow_where_they_come_from() {
        /// Exchanges left and right of 3x2, and sees nothing in the first pixel.
        #[derive(Debug)]
        struct Mirror;
        impl Resampling for Mirror {
            fn size(&self) -> (usize, usize) {
                (3, 2)
            }
            fn origin(&self, x: usize, y: usize) -> Option<(usize, usize)> {
                ((x, y) != (0, 0)).then_some((2 - x, y))
            }
        }
        let [a, b, c] = [[1, 2], [3, 4], [5, 6]];
        let half = ChromaPlane::new((3, 2), [1, 1], Pooled::unpooled(vec![a, b]));
        assert_eq!(half.samples_size(), (2, 1));
        assert_eq!([half.at(0, 0), half.at(1, 1), half.at(2, 1)], [a, a, b]);
        let chroma = Chroma::new(ColourCoding::GREY, half, Pool::new());
        assert_eq!(chroma.plane().samples(), [a, b]);
        assert_eq!(chroma.with_resampling(Arc::new(Mirror)).plane().samples(), [NONE, a]);

        let whole = ChromaPlane::new((3, 2), [0, 0], Pooled::unpooled(vec![a, b, c, c, b, a]));
        let chroma = Chroma::new(ColourCoding::GREY, whole, Pool::new());
        let mirrored = chroma.with_resampling(Arc::new(Mirror));
        assert_eq!(mirrored.plane().samples(), [NONE, b, a, a, b, c]);
    }
}
