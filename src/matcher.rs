//! Disparity for Rust programs: a matcher computes the map of two images.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::calibration::{Rectifier, format};
use crate::core::frame::{DisparityMap, Eye, Image, Mask, Matched, StereoGeometry, StereoPair};
use crate::core::pool::Pool;
use crate::engine::{self, Choice, Engine, Options, PairSpec};
use crate::matching::Params;

/// An error with its causes and, if known, a remedy.
#[derive(Debug)]
pub struct Error(anyhow::Error);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Error {}

fn failed(error: impl Into<anyhow::Error>) -> Error {
    Error(error.into())
}

/// A borrowed grey image: 8 bits per pixel, rows from the top, `stride` bytes apart.
#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    pixels: &'a [u8],
    width: usize,
    height: usize,
    stride: usize,
}

impl<'a> Picture<'a> {
    /// Wraps an image of `width` x `height` pixels whose rows follow each other without a gap.
    ///
    /// # Errors
    /// An image without pixels, or with more than `pixels` holds.
    pub fn new(pixels: &'a [u8], width: usize, height: usize) -> Result<Self, Error> {
        Self::with_stride(pixels, width, height, width)
    }

    /// Wraps an image of `width` x `height` pixels whose rows start `stride` bytes apart.
    ///
    /// # Errors
    /// As [`Picture::new`], and a stride below the width.
    pub fn with_stride(
        pixels: &'a [u8],
        width: usize,
        height: usize,
        stride: usize,
    ) -> Result<Self, Error> {
        let needed = height.checked_sub(1).and_then(|rows| rows.checked_mul(stride));
        let needed = needed.and_then(|before| before.checked_add(width));
        if width == 0 || stride < width || needed.is_none_or(|needed| pixels.len() < needed) {
            return Err(Error(anyhow::anyhow!(
                "{} bytes are no picture of {width}x{height} pixels with rows {stride} bytes apart",
                pixels.len()
            )));
        }
        Ok(Self { pixels, width, height, stride })
    }

    /// Copies the image into memory of the pool, which an engine reads without another copy.
    fn to_image(self, pool: &Pool<u8>) -> Result<Image, Error> {
        let mut pixels = pool.try_take(self.width * self.height).map_err(failed)?;
        for (to, from) in pixels.chunks_exact_mut(self.width).zip(self.pixels.chunks(self.stride)) {
            to.copy_from_slice(&from[..self.width]);
        }
        Ok(Image::new(self.width, self.height, pixels))
    }
}

/// The processor that matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// A usable NVIDIA GPU if there is one, else the CPU.
    #[default]
    Fastest,
    /// The NVIDIA GPU of this number, or the first one.
    Cuda(Option<usize>),
    /// This number of CPU threads, or all.
    Cpu(Option<usize>),
}

impl Device {
    fn options(self) -> (Choice, Options) {
        let mut options = Options::default();
        let choice = match self {
            Device::Fastest => Choice::Auto,
            Device::Cuda(device) => {
                options.cuda.device = device;
                Choice::Cuda
            }
            Device::Cpu(threads) => {
                options.cpu.threads = threads;
                Choice::Cpu
            }
        };
        // Pairs come one after the other.
        options.cuda.in_flight = 1;
        (choice, options)
    }
}

impl Rectifier {
    /// Reads the rectifier of a calibration file, or of one file for each camera, for images of
    /// this width and height. It accepts every format that `stereod calibration` knows. `alpha` is
    /// the field of view, from 0 (only valid pixels) to 1 (the whole raw images); `None` leaves it
    /// to the file.
    ///
    /// # Errors
    /// Files that cannot be read or understood, or images of another size than the calibration is
    /// for.
    pub fn read(
        files: &[impl AsRef<Path>],
        (width, height): (usize, usize),
        alpha: Option<f64>,
    ) -> Result<Self, Error> {
        let options = format::ReadOptions { size: Some((width, height)), ..Default::default() };
        let files: Vec<_> = files.iter().map(|file| file.as_ref().to_owned()).collect();
        let loaded = format::read_with(&files, &options).map_err(failed)?;
        let (calibration, _) = loaded.calibration.for_size(width, height).map_err(failed)?;
        Rectifier::new(&calibration, alpha).map_err(failed)
    }
}

/// A matcher of pairs of one size, from one stream, with one set of parameters. It takes all its
/// memory and, on a GPU, compiles all its kernels when it is made. If the memory does not suffice,
/// images are matched in overlapping bands.
pub struct Matcher {
    engine: Box<dyn Engine>,
    pictures: Pool<u8>,
    params: Params,
    device: Device,
    pairs: PairSpec,
    /// Matches the right image against the left one; made on first use.
    mirrored: Option<Box<dyn Engine>>,
}

impl Matcher {
    /// Makes a matcher of rectified pairs of `width` x `height` pixels.
    ///
    /// # Errors
    /// Parameters or a size that cannot be matched, a missing device, too little memory.
    pub fn new(
        params: &Params,
        width: usize,
        height: usize,
        device: Device,
    ) -> Result<Self, Error> {
        Self::of(params, PairSpec::rectified(width, height), device)
    }

    /// Makes a matcher of raw pairs, which it rectifies first.
    ///
    /// # Errors
    /// As [`Matcher::new`].
    pub fn rectifying(
        params: &Params,
        rectifier: Rectifier,
        device: Device,
    ) -> Result<Self, Error> {
        Self::of(params, PairSpec::raw(Arc::new(rectifier)), device)
    }

    fn of(params: &Params, pairs: PairSpec, device: Device) -> Result<Self, Error> {
        let engine = engine_of(params, &pairs, device)?;
        let pictures = Pool::new();
        if let Some(memory) = engine.picture_memory() {
            pictures.take_from(memory);
        }
        Ok(Self { engine, pictures, params: params.clone(), device, pairs, mirrored: None })
    }

    /// Returns a short description of the device: "CPU (AVX-512, 4 threads)".
    pub fn description(&self) -> String {
        self.engine.description()
    }

    /// Computes the disparity of a pair that belongs to no stream: filters with a memory restart.
    ///
    /// # Errors
    /// Images of another size than the matcher's, a lost device.
    pub fn compute(&mut self, left: Picture<'_>, right: Picture<'_>) -> Result<Disparity, Error> {
        self.engine.resume(Default::default()).map_err(failed)?;
        self.compute_next(left, right, Duration::ZERO)
    }

    /// Computes the disparity of the next pair of a stream, captured at `timestamp`, which must
    /// grow from pair to pair.
    ///
    /// # Errors
    /// As [`Matcher::compute`].
    pub fn compute_next(
        &mut self,
        left: Picture<'_>,
        right: Picture<'_>,
        timestamp: Duration,
    ) -> Result<Disparity, Error> {
        let [left, right] = [left.to_image(&self.pictures)?, right.to_image(&self.pictures)?];
        let pair = StereoPair { timestamp, ..StereoPair::of_stills(left, right) };
        Ok(Disparity(match_one(&mut *self.engine, pair)?))
    }

    /// Computes the disparity of every pixel of the (rectified) right image, in 1/16 px: its pixel
    /// (x, y) corresponds to (x + d, y) of the left one. A second engine, made at the first call,
    /// matches the views exchanged and mirrored.
    ///
    /// # Errors
    /// As [`Matcher::new`] and [`Matcher::compute`].
    pub fn right_map(&mut self, of: &Disparity) -> Result<DisparityMap, Error> {
        let (width, height) = self.pairs.size;
        let engine = match &mut self.mirrored {
            Some(engine) => engine,
            none => none.insert(engine_of(
                &self.params,
                &PairSpec::rectified(width, height),
                self.device,
            )?),
        };
        engine.resume(Default::default()).map_err(failed)?;
        let StereoPair { left, right, .. } = &of.0.pair;
        let pair = StereoPair::of_stills(mirror(right), mirror(left));
        let mut map = match_one(&mut **engine, pair)?.disparity;
        map.values_mut().chunks_exact_mut(width).for_each(<[i16]>::reverse);
        Ok(map)
    }
}

fn engine_of(params: &Params, pairs: &PairSpec, device: Device) -> Result<Box<dyn Engine>, Error> {
    params.check().map_err(failed)?;
    let (choice, options) = device.options();
    engine::create(choice, params, pairs, &options).map_err(failed)
}

fn match_one(engine: &mut dyn Engine, pair: StereoPair) -> Result<Matched, Error> {
    engine.submit(pair).map_err(failed)?;
    let lost = || Error(anyhow::anyhow!("the engine lost the pair"));
    engine.collect().map_err(failed)?.ok_or_else(lost)
}

/// Mirrors the image left to right.
fn mirror(image: &Image) -> Image {
    let (width, height) = (image.width(), image.height());
    let mask = image.valid_mask().map(|mask| {
        let valid = mask.pixels().chunks_exact(width).flat_map(|row| row.iter().rev().copied());
        Arc::new(Mask::new(width, valid.collect()))
    });
    Image::from_fn(width, height, |x, y| image.row(y)[width - 1 - x]).with_valid_mask(mask)
}

/// The disparity of a pair, with its images and cameras.
#[derive(Debug)]
pub struct Disparity(Matched);

impl Disparity {
    /// Returns the disparity of every pixel of the (rectified) left image, in 1/16 px.
    pub fn map(&self) -> &DisparityMap {
        &self.0.disparity
    }

    /// Returns the confidence of every pixel, rows tightly packed: 1 to 255, and 0 if the
    /// disparity is unknown; `None` unless [`Params::confidence`] asks for it.
    pub fn confidence(&self) -> Option<&[u8]> {
        self.0.confidence.as_ref().map(Image::pixels)
    }

    /// Returns the pixels of a view as it was matched, rows tightly packed.
    pub fn picture(&self, eye: Eye) -> &[u8] {
        match eye {
            Eye::Left => self.0.pair.left.pixels(),
            Eye::Right => self.0.pair.right.pixels(),
        }
    }

    /// Returns the cameras for depth; `None` for rectified pairs.
    pub fn geometry(&self) -> Option<StereoGeometry> {
        self.0.geometry
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::frame::{DisparityRange, INVALID};
    use crate::matching::match_pair;

    const SIZE: (usize, usize) = (90, 40);

    /// Blots of grey, of which the right view sees those above the middle 4 columns, those below 9
    /// columns to the left.
    fn eyes() -> [Vec<u8>; 2] {
        let grey = |x: usize, y: usize| {
            let blot = (x / 2).wrapping_mul(0x9e37_79b9) ^ (y / 2).wrapping_mul(0x85eb_ca6b);
            (blot.wrapping_mul(0xc2b2_ae35) >> 13) as u8
        };
        let shift = |y: usize| if y < SIZE.1 / 2 { 4 } else { 9 };
        let pixels = || (0..SIZE.0 * SIZE.1).map(|i| (i % SIZE.0, i / SIZE.0));
        [
            pixels().map(|(x, y)| grey(x + 10, y)).collect(),
            pixels().map(|(x, y)| grey(x + 10 + shift(y), y)).collect(),
        ]
    }

    fn params() -> Params {
        let range = DisparityRange { min: 0, count: 16 };
        Params { range, confidence: Some(0), ..Params::default() }
    }

    #[test]
    fn maps_of_both_eyes_are_those_of_the_definition() {
        let [left, right] = eyes();
        let mut matcher = Matcher::new(&params(), SIZE.0, SIZE.1, Device::Cpu(Some(1))).unwrap();
        // Rows with something behind them.
        let stride = SIZE.0 + 3;
        let mut padded = vec![255; stride * SIZE.1 - 3];
        for (to, from) in padded.chunks_mut(stride).zip(left.chunks(SIZE.0)) {
            to[..SIZE.0].copy_from_slice(from);
        }
        let padded = Picture::with_stride(&padded, SIZE.0, SIZE.1, stride).unwrap();
        let other = Picture::new(&right, SIZE.0, SIZE.1).unwrap();
        let disparity = matcher.compute(padded, other).unwrap();
        let image = |pixels: &[u8]| Image::from_vec(SIZE.0, SIZE.1, pixels.to_vec());
        let expected = match_pair(&image(&left), &image(&right), &params());
        assert_eq!(disparity.map().values(), expected.values());
        // Sub-pixel disparities may be off by the smallest step.
        let is = |map: &DisparityMap, (x, y), expected: f32| {
            map.at(x, y).is_some_and(|disparity| (disparity - expected).abs() <= 1.0 / 16.0)
        };
        assert!(is(disparity.map(), (45, 8), 4.0) && is(disparity.map(), (45, 31), 9.0));
        assert_eq!((disparity.geometry(), disparity.point_m(45, 8)), (None, None));
        assert_eq!(disparity.picture(Eye::Right), right);
        let confidence = disparity.confidence().unwrap();
        let known = expected.values().iter().map(|&value| value != INVALID);
        assert!(known.eq(confidence.iter().map(|&sure| sure > 0)));
        assert!(confidence[8 * SIZE.0 + 45] > 100);

        let seen_from_the_right = matcher.right_map(&disparity).unwrap();
        assert!(is(&seen_from_the_right, (40, 8), 4.0));
        assert!(is(&seen_from_the_right, (36, 31), 9.0));
        let known = |map: &DisparityMap, x| map.values()[8 * SIZE.0 + x] != INVALID;
        // Areas only one view shows lie at the left edge of the left view and
        // the right edge of the right one.
        assert!(known(disparity.map(), 88) && known(&seen_from_the_right, 1));
    }

    #[test]
    fn what_is_no_picture_and_no_device_is_an_error() {
        for (len, width, height, stride) in
            [(11, 4, 3, 4), (12, 0, 3, 4), (12, 4, 0, 4), (12, 4, 3, 3), (9, 4, usize::MAX, 8)]
        {
            let bytes = vec![0; len];
            let error = Picture::with_stride(&bytes, width, height, stride).unwrap_err();
            assert!(error.to_string().starts_with(&format!("{len} bytes are no picture")));
        }
        let wrong = Params { p1: 200, ..params() };
        assert!(Matcher::new(&wrong, 8, 8, Device::Fastest).is_err());
        assert!(Matcher::new(&params(), 8, 8, Device::Cpu(Some(0))).is_err());
        let mut matcher = Matcher::new(&params(), 8, 8, Device::Cpu(Some(1))).unwrap();
        let [left, right] = eyes();
        let [left, right] = [&left, &right].map(|p| Picture::new(p, SIZE.0, SIZE.1).unwrap());
        let error = matcher.compute(left, right).unwrap_err().to_string();
        assert!(error.contains("90x40") && error.contains("8x8"), "{error}");
    }
}
