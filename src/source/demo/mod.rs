//! The built-in scene: a room with a brick wall, a tiled floor, a plastered wall with a blank
//! board, a column, and a ball that bounces around the column, with its true disparity.
//!
//! Every pixel of either view is a ray of its own into the same 3-D scene ([`scene`]), so textures
//! agree to a fraction of a pixel, and points that one view cannot see are truly hidden. The bytes
//! of a frame depend only on the options and its number, not on the machine or the number of
//! threads.

mod render;
mod scene;
mod shading;
mod texture;

#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::core::control::Switch;
use crate::core::frame::{DisparityRange, Image, StereoPair, Truth};
use crate::core::memory::{Budget, Refused, product};
use crate::core::pool::Pool;
use crate::matching::saturation::WHITE;
use crate::source::{Source, SourceCounts, SourceInfo};
use render::{Renderer, RowOut, Sensor};

/// Largest side of the demo scene's images.
const SIDE_MAX: usize = 16384;

/// Pixels that are worth a thread of their own.
const PIXELS_PER_THREAD: usize = 64 * 1024;

/// More threads than this are left to the matcher.
const THREADS_MAX: usize = 4;

/// Options of the scene.
#[derive(Clone, Debug, PartialEq)]
pub struct DemoOptions {
    /// Width of each view in pixels.
    pub width: usize,
    /// Height of each view in pixels.
    pub height: usize,
    /// Number of pairs; `None`: without end.
    pub frames: Option<u64>,
    /// Pairs per second of scene time; the motion repeats after 8 seconds.
    pub rate: f64,
    /// Seed of the texture, the noise and the start of the motion.
    pub seed: u64,
    /// Standard deviation of the sensor noise of both views in grey levels; 0: none.
    pub noise: f32,
    /// Factor of the right view's brightness.
    pub right_gain: f32,
    /// Grey levels added to the right view's brightness after the factor.
    pub right_offset: f32,
    /// Disparities between which the scene lies: it spans about a tenth to nine tenths of them.
    pub disparities: DisparityRange,
}

impl Default for DemoOptions {
    fn default() -> Self {
        Self {
            width: 640,
            height: 480,
            frames: None,
            rate: 30.0,
            seed: 1,
            noise: 1.0,
            right_gain: 1.0,
            right_offset: 0.0,
            disparities: DisparityRange { min: 0, count: 64 },
        }
    }
}

/// The demo scene as a [`Source`].
pub struct DemoSource {
    options: DemoOptions,
    info: SourceInfo,
    renderer: Renderer,
    threads: usize,
    delivered: u64,
    pictures: Pool<u8>,
    disparities: Pool<f32>,
    visibilities: Pool<bool>,
}

impl DemoSource {
    /// Creates the scene that `options` describe.
    pub fn new(options: DemoOptions) -> Result<Self> {
        let DemoOptions { width, height, rate, noise, right_gain, right_offset, .. } = options;
        let range = options.disparities;
        ensure!(
            (1..=SIDE_MAX).contains(&width) && (1..=SIDE_MAX).contains(&height),
            "the demo scene cannot be {width}x{height} pixels; each side must be 1 to {SIDE_MAX}"
        );
        ensure!(
            rate.is_finite() && rate > 0.0,
            "the demo scene cannot have {rate} frames a second; the rate must be above 0"
        );
        ensure!(
            noise.is_finite() && noise >= 0.0,
            "the demo scene's noise cannot be {noise} grey levels; it must be 0 (none) or above"
        );
        ensure!(
            right_gain.is_finite() && right_offset.is_finite(),
            "the right view's brightness cannot be {right_gain} times the left one's plus \
             {right_offset}; both must be finite"
        );
        ensure!(
            (1..=1024).contains(&range.count) && (-2047..=2047).contains(&range.min),
            "the demo scene cannot span {} disparities from {}; there must be 1 to 1024 from \
             -2047 or above",
            range.count,
            range.min
        );
        let what = format!("the demo scene of {width}x{height}");
        Budget::of_process().check(what, Self::bytes_of(width, height), "a smaller scene")?;
        let sensor = Sensor { right_gain, right_offset, noise };
        let renderer = Renderer::new((width, height), range, options.seed, sensor);
        let useful = (width * height / PIXELS_PER_THREAD).clamp(1, THREADS_MAX);
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let info = SourceInfo {
            description: format!("demo scene (seed {})", options.seed),
            width,
            height,
            rate: Some(rate),
            pairs: options.frames,
            live: false,
            has_truth: true,
            has_colour: false,
            white: WHITE,
        };
        Ok(Self {
            options,
            info,
            renderer,
            threads: useful.min(cores),
            delivered: 0,
            pictures: Pool::new(),
            disparities: Pool::new(),
            visibilities: Pool::new(),
        })
    }

    /// Returns the same scene with its images in memory of this pool.
    #[must_use]
    pub fn with_pool(self, pictures: Pool<u8>) -> Self {
        Self { pictures, ..self }
    }

    /// Returns pair number `number`, from 0; the number of frames in the options is ignored.
    ///
    /// # Panics
    /// If there is no memory for it: see [`DemoSource::try_pair`].
    pub fn pair(&self, number: u64) -> StereoPair {
        self.try_pair(number).unwrap_or_else(|refused| panic!("{refused}"))
    }

    /// Bytes of a pair of `width` x `height` pixels, its true disparity included.
    pub fn bytes_of(width: usize, height: usize) -> u64 {
        let pixel = 2 * size_of::<u8>() + size_of::<f32>() + size_of::<bool>();
        product([pixel, width, height])
    }

    /// Does the same as [`DemoSource::pair`], but returns an error if there is no memory.
    pub fn try_pair(&self, number: u64) -> Result<StereoPair, Refused> {
        let (width, height) = (self.options.width, self.options.height);
        let seconds = number as f64 / self.options.rate;
        let frame = self.renderer.frame(number, seconds);

        let mut left = self.pictures.try_take(width * height)?;
        let mut right = self.pictures.try_take(width * height)?;
        let mut disparity = self.disparities.try_take(width * height)?;
        let mut visible = self.visibilities.try_take(width * height)?;
        let images = left.chunks_exact_mut(width).zip(right.chunks_exact_mut(width));
        let truth = disparity.chunks_exact_mut(width).zip(visible.chunks_exact_mut(width));
        // Each thread takes the next row when it is done with one; rows do not depend on each
        // other.
        let rows = Mutex::new(images.zip(truth).enumerate());
        let next = || rows.lock().expect("no thread panics while it holds the lock").next();
        let work = || {
            while let Some((y, ((left, right), (disparity, visible)))) = next() {
                frame.row(RowOut { y, left, right, disparity, visible });
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads {
                scope.spawn(work);
            }
            work();
        });

        Ok(StereoPair {
            left: Image::new(width, height, left),
            right: Image::new(width, height, right),
            sequence: number,
            timestamp: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
            skew_ns: 0,
            arrived: Instant::now(),
            truth: Some(Box::new(Truth { disparity, visible })),
        })
    }
}

impl Source for DemoSource {
    fn info(&self) -> &SourceInfo {
        &self.info
    }

    fn run(
        &mut self,
        stop: &Switch,
        emit: &mut dyn FnMut(StereoPair, SourceCounts) -> ControlFlow<()>,
    ) -> Result<()> {
        while self.options.frames.is_none_or(|frames| self.delivered < frames) && !stop.is_set() {
            let pair = self.try_pair(self.delivered)?;
            self.delivered += 1;
            if emit(pair, self.counts()).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn counts(&self) -> SourceCounts {
        let n = self.delivered;
        SourceCounts { left: n, right: n, pairs: n, ..SourceCounts::default() }
    }
}
