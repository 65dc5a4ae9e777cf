//! The built-in scene: a room with a brick wall, a wooden floor with a rug, and a papered wall with a picture and
//! a door, in which a ball bounces around a column, with its true disparity.
//!
//! Every pixel of either view is a ray of its own into the same 3-D scene ([`scene`]), so textures agree to a
//! fraction of a pixel, and points that one view cannot see are truly hidden. The bytes of a frame depend
//! only on the options and its number, not on the machine or the number of threads.

mod options;
mod paint;
mod render;
mod scene;
mod texture;
mod walk;

#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::control::Switch;
use crate::source::{Place, Source, SourceCounts, SourceInfo};
pub use options::DemoOptions;
use scene::{Frame, Scene};
use stereod_core::frame::{Image, StereoPair, Truth};
use stereod_core::matching::saturation::WHITE;
use stereod_core::memory::{Budget, Refused, product};
use stereod_core::pool::Pool;
use stereod_core::thread;

/// Pixels that are worth a thread of their own.
const PIXELS_PER_THREAD: usize = 64 * 1024;

/// More threads than this are left to the matcher.
const THREADS_MAX: usize = 4;

/// The demo scene as a [`Source`].
pub struct DemoSource {
    info: SourceInfo,
    scene: Scene,
    threads: usize,
    /// Number of the next pair.
    next: u64,
    delivered: u64,
    pictures: Pool<u8>,
    disparities: Pool<f32>,
    visibilities: Pool<bool>,
}

impl DemoSource {
    /// Creates the scene that `options` describe. Fails if the budget is too small for a pair.
    pub fn new(options: DemoOptions) -> Result<Self> {
        let DemoOptions { width, height, rate, .. } = options;
        let what = format!("the demo scene of {width}x{height}");
        Budget::of_process().check(what, Self::bytes_of(width, height), "a smaller scene")?;
        let useful = (width * height / PIXELS_PER_THREAD).clamp(1, THREADS_MAX);
        let cores = thread::available();
        let info = SourceInfo {
            description: format!("demo scene (seed {})", options.seed),
            width,
            height,
            rate: Some(rate),
            pairs: options.frames,
            length: options.frames.map(|frames| Duration::from_secs_f64(frames as f64 / rate)),
            seekable: true,
            has_truth: true,
            white: WHITE,
            ..SourceInfo::default()
        };
        Ok(Self {
            info,
            scene: Scene::new(options),
            threads: useful.min(cores),
            next: 0,
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
        let DemoOptions { width, height, rate, .. } = self.scene.options;
        let seconds = number as f64 / rate;
        let frame = Frame::new(&self.scene, number, seconds);

        let mut left = self.pictures.try_take(width * height)?;
        let mut right = self.pictures.try_take(width * height)?;
        let mut disparity = self.disparities.try_take(width * height)?;
        let mut visible = self.visibilities.try_take(width * height)?;
        let images = left.chunks_exact_mut(width).zip(right.chunks_exact_mut(width));
        let truth = disparity.chunks_exact_mut(width).zip(visible.chunks_exact_mut(width));
        // Each thread takes the next row when it is done with one; rows do not depend on each other.
        let rows = Mutex::new(images.zip(truth).enumerate());
        let next = || rows.lock().expect("no thread panics while it holds the lock").next();
        let work = || {
            while let Some((y, ((left, right), (disparity, visible)))) = next() {
                frame.row(y, [left, right], disparity, visible);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads {
                // Without further threads this one does all.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });

        Ok(StereoPair {
            left: Image::new(width, height, left),
            right: Image::new(width, height, right),
            sequence: number,
            timestamp: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
            skew_ns: Some(0),
            arrived: Instant::now(),
            truth: Some(Box::new(Truth { disparity, visible })),
            prior: None,
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
        while self.scene.options.frames.is_none_or(|frames| self.next < frames) && !stop.is_set() {
            let pair = self.try_pair(self.next)?;
            self.next += 1;
            self.delivered += 1;
            if emit(pair, self.counts()).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn seek(&mut self, place: Place) -> Result<()> {
        self.next = match place {
            Place::Time(time) => (time.as_secs_f64() * self.scene.options.rate) as u64,
            Place::Pair(number) => number,
        };
        Ok(())
    }

    fn counts(&self) -> SourceCounts {
        let n = self.delivered;
        SourceCounts { left: n, right: n, pairs: n, ..SourceCounts::default() }
    }
}
