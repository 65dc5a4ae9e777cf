//! Matching of a stream, with several pairs in flight.

use std::fmt;
use std::time::Duration;

use super::disparity::Disparity;
use super::error::{Error, Result};
use super::image::ImageRef;
use super::recipe::{Device, Recipe, Times};
use super::rectifier::{Rectifier, pairs};
use crate::engine::{Choice, Engine, PairSpec};
use crate::matching::Params;
use crate::pool::Pool;

/// Matches the pairs of a stream. On a GPU several pairs are in flight, so that copies and kernels
/// overlap; results come in order, a few pairs later.
///
/// ```
/// # use stereod_core::{Device, ImageRef, Params, Stream};
/// # let frames = vec![[vec![0; 64 * 48], vec![0; 64 * 48]]; 3];
/// let mut stream = Stream::new(&Params::default(), 64, 48, Device::Auto)?;
/// let mut maps = Vec::new();
/// for (i, [left, right]) in frames.iter().enumerate() {
///     let time = std::time::Duration::from_millis(33 * i as u64);
///     let (left, right) = (ImageRef::new(left, 64, 48)?, ImageRef::new(right, 64, 48)?);
///     maps.extend(stream.push(left, right, time)?);
/// }
/// maps.extend(stream.finish()?);
/// assert_eq!(maps.len(), frames.len());
/// # Ok::<(), stereod_core::Error>(())
/// ```
pub struct Stream {
    engine: Box<dyn Engine>,
    images: Pool<u8>,
    recipe: Recipe,
    times: Times,
    in_flight: usize,
}

/// Pairs in flight on a GPU: one is copied in, one is matched, one is copied out.
const IN_FLIGHT: usize = 3;

/// Makes a stream.
///
/// # Errors
/// As [`Stream::new`].
pub fn stream_of(recipe: Recipe) -> Result<Stream> {
    recipe.check_odometry()?;
    let (engine, images) = recipe.engine(IN_FLIGHT)?;
    Ok(Stream { engine, images, recipe, times: Times::default(), in_flight: 0 })
}

impl Stream {
    /// Makes a stream of rectified pairs of `width` x `height` pixels.
    ///
    /// # Errors
    /// As [`Matcher::new`](super::Matcher::new).
    pub fn new(params: &Params, width: usize, height: usize, device: Device) -> Result<Self> {
        stream_of(Recipe::of(params, PairSpec::rectified(width, height), device))
    }

    /// Makes a stream of raw pairs, which it rectifies first.
    ///
    /// # Errors
    /// As [`Matcher::new`](super::Matcher::new).
    pub fn rectifying(params: &Params, rectifier: Rectifier, device: Device) -> Result<Self> {
        stream_of(Recipe::of(params, pairs(&rectifier), device))
    }

    /// Reports whether a GPU matches.
    pub fn is_on_device(&self) -> bool {
        self.engine.choice() != Choice::Cpu
    }

    /// Returns width and height of the maps.
    pub fn size(&self) -> (usize, usize) {
        self.recipe.pairs.size
    }

    /// Takes the next pair, captured at `timestamp`, which must grow from pair to pair. Returns the
    /// oldest result, if enough pairs are in flight.
    ///
    /// # Errors
    /// As [`Matcher::compute`](super::Matcher::compute). [`Error::Parameter`]: a `timestamp` before the last one.
    pub fn push<'a>(
        &mut self,
        left: impl Into<ImageRef<'a>>,
        right: impl Into<ImageRef<'a>>,
        timestamp: Duration,
    ) -> Result<Option<Disparity>> {
        let pair = self.recipe.pair(&self.images, [left.into(), right.into()], timestamp)?;
        self.times.next(timestamp)?;
        self.engine.submit(pair).map_err(Error::of_engine)?;
        self.in_flight += 1;
        if self.in_flight < self.engine.depth() { Ok(None) } else { self.collect() }
    }

    /// Ends the stream: waits for the pairs in flight, and returns their results in order. Pairs after it are
    /// another stream, so that filters with a memory restart.
    ///
    /// # Errors
    /// [`Error::Failed`]: a lost device.
    pub fn finish(&mut self) -> Result<Vec<Disparity>> {
        let mut rest = Vec::new();
        while let Some(disparity) = self.collect()? {
            rest.push(disparity);
        }
        self.times = Times::default();
        self.engine.resume(Default::default()).map_err(Error::of_engine)?;
        Ok(rest)
    }

    fn collect(&mut self) -> Result<Option<Disparity>> {
        let matched = self.engine.collect().map_err(Error::of_engine)?;
        self.in_flight -= usize::from(matched.is_some());
        Ok(matched.map(|matched| self.recipe.disparity(matched)))
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.recipe.debug(f, "Stream", &*self.engine)
    }
}
