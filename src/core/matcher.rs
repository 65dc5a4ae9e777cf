//! Disparity for programs: a matcher computes the map of two images.

mod disparity;
mod error;
mod image;
mod recipe;
mod rectifier;
mod stream;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::{Choice, Engine, PairSpec};
use crate::frame::{DisparityMap, INVALID, Image, Mask, Matched, SUBPIXEL, StereoPair};
use crate::matching::Params;
use crate::pool::Pool;
use crate::settings::{self, Layers, Library};

pub use self::disparity::{Disparity, Status};
pub use self::error::Error;
pub use self::image::{ImageBuf, ImageRef};
pub use self::recipe::Device;
use self::recipe::Times;
pub use self::rectifier::Rectifier;
pub use self::stream::Stream;
// For the crate of calibrations and the Python package. The crate `stereod` hands none of these on, so that nobody else reaches the inside of its types.
pub use self::disparity::{disparity_of, matched, of_no_stream};
pub use self::error::{Result, file_error};
pub use self::recipe::Recipe;
pub use self::rectifier::{pairs, rectifier_of};
pub use self::stream::stream_of;

impl Params {
    /// Returns the default parameters with these changes, by the names and values of the command line
    /// and the configuration file: `[("disparities", "128"), ("cost", "census")]`. Defaults that
    /// depend on the cost follow it, as they do in the program.
    ///
    /// # Errors
    /// [`Error::Parameter`], with the accepted values.
    pub fn of_settings<'a>(settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        let mut layers = Layers::<Library>::new();
        for (name, value) in settings {
            if let Ok(("engine", _)) = settings::parameter(name) {
                let message =
                    format!("`{name}` is no parameter of matching; `Device` chooses the engine");
                return Err(Error::parameter(message));
            }
            layers.parameter(name, value);
        }
        let loaded = layers.finish().map_err(|error| Error::parameter(error.to_string()))?;
        Ok(loaded.params)
    }
}

/// A matcher of pairs of one size, from one stream, with one set of parameters. It takes all its
/// memory and, on a GPU, compiles all its kernels when it is made. If the memory does not suffice,
/// images are matched in overlapping bands.
pub struct Matcher {
    engine: Box<dyn Engine>,
    images: Pool<u8>,
    recipe: Recipe,
    times: Times,
    /// Matches the right image against the left one; made on first use.
    mirrored: Option<Box<dyn Engine>>,
}

/// Makes a matcher.
///
/// # Errors
/// As [`Matcher::new`].
pub fn matcher_of(recipe: Recipe) -> Result<Matcher> {
    recipe.check_odometry()?;
    // Pairs come one after the other.
    let (engine, images) = recipe.engine(1)?;
    Ok(Matcher { engine, images, recipe, times: Times::default(), mirrored: None })
}

impl Matcher {
    /// Makes a matcher of rectified pairs of `width` x `height` pixels.
    ///
    /// # Errors
    /// [`Error::Parameter`], [`Error::Size`], [`Error::Device`], [`Error::OutOfMemory`].
    pub fn new(params: &Params, width: usize, height: usize, device: Device) -> Result<Self> {
        matcher_of(Recipe::of(params, PairSpec::rectified(width, height), device))
    }

    /// Makes a matcher of raw pairs, which it rectifies first.
    ///
    /// # Errors
    /// As [`Matcher::new`].
    pub fn rectifying(params: &Params, rectifier: Rectifier, device: Device) -> Result<Self> {
        matcher_of(Recipe::of(params, pairs(&rectifier), device))
    }

    /// Reports whether a GPU matches.
    pub fn is_on_device(&self) -> bool {
        self.engine.choice() != Choice::Cpu
    }

    /// Returns a short description of the device: "CPU (AVX-512, 4 threads)".
    pub fn description(&self) -> String {
        self.engine.description()
    }

    /// Computes the disparity of a pair that belongs to no stream: filters with a memory restart.
    ///
    /// # Errors
    /// [`Error::Size`]: images of another size than the matcher's. [`Error::Failed`]: a lost device.
    pub fn compute<'a>(
        &mut self,
        left: impl Into<ImageRef<'a>>,
        right: impl Into<ImageRef<'a>>,
    ) -> Result<Disparity> {
        self.restart()?;
        Ok(of_no_stream(self.compute_next(left, right, Duration::ZERO)?))
    }

    /// Computes the disparity as [`Matcher::compute`] does, into the caller's memory: of every pixel of the left image,
    /// row by row in 1/16 px, [`INVALID`] if unknown.
    ///
    /// # Errors
    /// As [`Matcher::compute`]. [`Error::Size`]: `out` has another length than the map.
    pub fn compute_into<'a>(
        &mut self,
        left: impl Into<ImageRef<'a>>,
        right: impl Into<ImageRef<'a>>,
        out: &mut [i16],
    ) -> Result<()> {
        let (width, height) = self.recipe.pairs.size;
        if out.len() != width * height {
            return Err(Error::Size(format!(
                "{} values are no map of {width}x{height} pixels",
                out.len()
            )));
        }
        out.copy_from_slice(self.compute(left, right)?.map().values());
        Ok(())
    }

    /// Computes the disparity of the next pair of a stream, captured at `timestamp`, which must
    /// grow from pair to pair. [`Stream`] overlaps several pairs on a GPU.
    ///
    /// # Errors
    /// As [`Matcher::compute`]. [`Error::Parameter`]: a `timestamp` before the last one, without a
    /// [`restart`](Matcher::restart) in between.
    pub fn compute_next<'a>(
        &mut self,
        left: impl Into<ImageRef<'a>>,
        right: impl Into<ImageRef<'a>>,
        timestamp: Duration,
    ) -> Result<Disparity> {
        let pair = self.recipe.pair(&self.images, [left.into(), right.into()], timestamp)?;
        self.times.next(timestamp)?;
        Ok(self.recipe.disparity(match_one(&mut *self.engine, pair)?))
    }

    /// Begins another stream: filters with a memory restart with the next pair.
    ///
    /// # Errors
    /// [`Error::Failed`]: a lost device.
    pub fn restart(&mut self) -> Result<()> {
        self.times = Times::default();
        self.engine.resume(Default::default()).map_err(Error::of_engine)
    }

    /// Computes the disparity of every pixel of the (rectified) right image, in 1/16 px: its pixel
    /// (x, y) corresponds to (x + d, y) of the left one. A second engine, made at the first call,
    /// matches the views exchanged and mirrored.
    ///
    /// # Errors
    /// As [`Matcher::new`] and [`Matcher::compute`]. [`Error::Parameter`]: a disparity of a matcher with
    /// other parameters, or of images of another size.
    pub fn right_map(&mut self, of: &Disparity) -> Result<DisparityMap> {
        let (width, height) = self.recipe.pairs.size;
        if of.params != self.recipe.params
            || (of.map().width(), of.map().height()) != (width, height)
        {
            let message = "`disparity` is the result of another matcher, with other parameters or \
                           another size; use the matcher that computed it";
            return Err(Error::parameter(message.into()));
        }
        let engine = match &mut self.mirrored {
            Some(engine) => engine,
            none => {
                let pairs = PairSpec::rectified(width, height);
                none.insert(Recipe { pairs, ..self.recipe.clone() }.engine(1)?.0)
            }
        };
        engine.resume(Default::default()).map_err(Error::of_engine)?;
        let StereoPair { left, right, .. } = &of.matched.pair;
        let pair = StereoPair::of_stills(mirror(right), mirror(left));
        let mut map = match_one(&mut **engine, pair)?.disparity;
        map.values_mut().chunks_exact_mut(width).for_each(<[i16]>::reverse);
        Ok(map)
    }

    /// Reports for every pixel, row by row, whether only the left camera sees it: its disparity is not
    /// measured, and no candidate leads to a pixel of the right image with the same disparity (Hirschmüller,
    /// PAMI 2008, section 2.6). Other unknown pixels are mismatches. Needs [`Matcher::right_map`].
    ///
    /// # Errors
    /// As [`Matcher::right_map`].
    pub fn occluded(&mut self, of: &Disparity) -> Result<Vec<bool>> {
        let right = self.right_map(of)?;
        let (width, range) = (right.width(), self.recipe.params.range);
        let confidence = of.confidence();
        let is_occluded = |(i, &value): (usize, &i16)| {
            let is_filled = confidence.is_some_and(|confidence| confidence[i] == 0);
            if value != INVALID && !is_filled {
                return false;
            }
            let (x, row) = ((i % width) as i32, &right.values()[i / width * width..][..width]);
            let mut candidates = range.min..=range.max();
            !candidates.any(|d| {
                let seen = usize::try_from(x - d).ok().and_then(|column| row.get(column));
                seen.is_some_and(|&seen| {
                    seen != INVALID && (i32::from(seen) - d * SUBPIXEL).abs() <= SUBPIXEL
                })
            })
        };
        Ok(of.map().values().iter().enumerate().map(is_occluded).collect())
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.recipe.debug(f, "Matcher", &*self.engine)
    }
}

fn match_one(engine: &mut dyn Engine, pair: StereoPair) -> Result<Matched> {
    engine.submit(pair).map_err(Error::of_engine)?;
    let matched = engine.collect().map_err(Error::of_engine)?;
    matched.ok_or_else(|| Error::Failed("the engine lost the pair".into()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{DisparityRange, Eye, INVALID};
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
        let padded = ImageRef::with_stride(&padded, SIZE.0, SIZE.1, stride).unwrap();
        let other = ImageRef::new(&right, SIZE.0, SIZE.1).unwrap();
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
    fn odometry_needs_cameras_and_confidence_and_a_stream() {
        let odometry = Params { odometry: true, ..params() };
        let refused = |params: &Params, pairs| {
            matcher_of(Recipe::of(params, pairs, Device::Cpu(Some(1)))).err().unwrap().to_string()
        };
        let unknown = || PairSpec::rectified(SIZE.0, SIZE.1);
        let error = refused(&odometry, unknown());
        assert!(error.contains("`odometry`") && error.contains("calibration"), "{error}");
        let geometry = Some(crate::StereoGeometry::assumed(SIZE));
        let known = || PairSpec { geometry, ..unknown() };
        let error = refused(&Params { confidence: None, ..odometry.clone() }, known());
        assert!(error.contains("`confidence`"), "{error}");

        let recipe = Recipe::of(&odometry, known(), Device::Cpu(Some(1)));
        let mut matcher = matcher_of(recipe).unwrap();
        let [left, right] = eyes();
        let image = |pixels| ImageRef::new(pixels, SIZE.0, SIZE.1).unwrap();
        let (left, right) = (image(&left), image(&right));
        assert_eq!(matcher.compute(left, right).unwrap().odometry(), None);
        for time in [1, 2] {
            let next = matcher.compute_next(left, right, Duration::from_secs(time)).unwrap();
            assert!(next.odometry().is_some());
            // The second engine matches without cameras.
            matcher.right_map(&next).unwrap();
        }
    }

    #[test]
    fn what_is_no_picture_and_no_device_is_an_error() {
        for (len, width, height, stride) in
            [(11, 4, 3, 4), (12, 0, 3, 4), (12, 4, 0, 4), (12, 4, 3, 3), (9, 4, usize::MAX, 8)]
        {
            let bytes = vec![0; len];
            let error = ImageRef::with_stride(&bytes, width, height, stride).unwrap_err();
            assert!(error.to_string().starts_with(&format!("{len} bytes are no image")));
        }
        let wrong = Params { p1: 200, ..params() };
        assert!(Matcher::new(&wrong, 8, 8, Device::Auto).is_err());
        assert!(Matcher::new(&params(), 8, 8, Device::Cpu(Some(0))).is_err());
        for (width, height) in [(0, 8), (8, 0)] {
            let made = Matcher::new(&params(), width, height, Device::Cpu(Some(1)));
            assert!(matches!(made.err(), Some(Error::Size(_))));
        }
        let mut matcher = Matcher::new(&params(), 8, 8, Device::Cpu(Some(1))).unwrap();
        let [left, right] = eyes();
        let [left, right] = [&left, &right].map(|p| ImageRef::new(p, SIZE.0, SIZE.1).unwrap());
        let error = matcher.compute(left, right).unwrap_err().to_string();
        assert!(error.contains("90x40") && error.contains("8x8"), "{error}");
    }
}
