//! The device, the parameters and the pairs that an engine is made for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::disparity::{Disparity, disparity_of};
use super::error::{Error, Result};
use super::image::ImageRef;
use crate::engine::{self, Choice, Engine, Options, PairSpec, PriorFrom};
use crate::frame::{Eye, Matched, StereoPair};
use crate::matching::Params;
use crate::pool::Pool;

/// The processor that matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// A usable NVIDIA GPU if there is one, else the CPU.
    #[default]
    Auto,
    /// The NVIDIA GPU of this number, or the first one.
    Cuda(Option<usize>),
    /// A GPU of any maker, with the feature `wgpu`, or an error.
    Wgpu,
    /// This number of CPU threads, or all.
    Cpu(Option<usize>),
}

impl Device {
    fn options(self) -> (Choice, Options) {
        let mut options = Options::default();
        let choice = match self {
            Device::Auto => Choice::Auto,
            Device::Cuda(device) => {
                options.cuda.device = device;
                Choice::Cuda
            }
            Device::Wgpu => Choice::Wgpu,
            Device::Cpu(threads) => {
                options.cpu.threads = threads;
                Choice::Cpu
            }
        };
        (choice, options)
    }
}

/// Everything that an engine is made from.
#[derive(Clone)]
pub struct Recipe {
    /// Parameters of the matching.
    pub params: Arc<Params>,
    /// Size and cameras of the pairs.
    pub pairs: PairSpec,
    /// The engine that was asked for.
    pub choice: Choice,
    /// Settings of the engines.
    pub options: Options,
}

impl Recipe {
    pub(super) fn of(params: &Params, pairs: PairSpec, device: Device) -> Self {
        let (choice, options) = device.options();
        Self { params: Arc::new(params.clone()), pairs, choice, options }
    }

    /// Fails if odometry is asked for without the cameras or the confidence that it needs.
    pub(super) fn check_odometry(&self) -> Result<()> {
        let lacks = match (self.params.odometry, &self.pairs.geometry, self.params.confidence) {
            (true, None, _) => "needs known cameras; make the matcher with a calibration",
            (true, _, None) => "chooses its points by their confidence; set `confidence` as well",
            _ => return Ok(()),
        };
        Err(Error::parameter(format!("`odometry` {lacks}")))
    }

    /// Makes an engine that holds up to `in_flight` pairs on a GPU, and a pool of images for it.
    pub(super) fn engine(&self, in_flight: usize) -> Result<(Box<dyn Engine>, Pool<u8>)> {
        let Self { params, pairs, choice, options } = self;
        params.check()?;
        let (width, height) = pairs.size;
        if width == 0 || height == 0 {
            return Err(Error::Size(format!("a matcher of {width}x{height} pixels has none")));
        }
        let mut options = options.clone();
        options.cuda.in_flight = in_flight;
        let engine = engine::create(choice, params, pairs, &options).map_err(Error::of_engine)?;
        let images = Pool::new();
        if let Some(memory) = engine.picture_memory() {
            images.take_from(memory);
        }
        Ok((engine, images))
    }

    /// Wraps the engine's result.
    pub(super) fn disparity(&self, matched: Matched) -> Disparity {
        disparity_of(matched, self.params.clone())
    }

    /// Takes two images for the engine.
    pub(super) fn pair(
        &self,
        images: &Pool<u8>,
        views: [ImageRef<'_>; 2],
        timestamp: Duration,
    ) -> Result<StereoPair> {
        for (eye, view) in Eye::BOTH.into_iter().zip(&views) {
            let rectifier = self.pairs.rectifier.as_ref();
            let (width, height) =
                rectifier.map_or(self.pairs.size, |rectifier| rectifier.source_size(eye));
            if (view.width(), view.height()) != (width, height) {
                return Err(Error::Size(format!(
                    "the {eye} image has {}x{} pixels, but the matcher was made for {width}x{height}",
                    view.width(),
                    view.height()
                )));
            }
        }
        let is_network = matches!(self.choice, Choice::Network(_))
            || matches!(self.options.prior_from, PriorFrom::Network(_));
        let [left, right] = views.map(|view| view.to_image(images, is_network));
        Ok(StereoPair { timestamp, ..StereoPair::of_stills(left?, right?) })
    }

    /// Formats a matcher or stream of this recipe.
    pub(super) fn debug(
        &self,
        f: &mut fmt::Formatter<'_>,
        name: &str,
        engine: &dyn Engine,
    ) -> fmt::Result {
        let mut fields = f.debug_struct(name);
        fields.field("size", &self.pairs.size).field("engine", &engine.description());
        fields.field("params", &self.params).finish_non_exhaustive()
    }
}

/// The times of a stream, which do not go back.
#[derive(Default)]
pub(super) struct Times(Option<Duration>);

impl Times {
    /// Takes the time of the next pair.
    pub(super) fn next(&mut self, time: Duration) -> Result<()> {
        if let Some(before) = self.0.filter(|before| time < *before) {
            let [time, before] = [time, before].map(|time| time.as_secs_f64());
            return Err(Error::Parameter {
                name: "timestamp".into(),
                message: format!(
                    "the time of this pair, {time} s, is before that of the last one, {before} s; give the pairs of \
                     a stream in order; for another stream, call `restart` or make a new one"
                ),
            });
        }
        self.0 = Some(time);
        Ok(())
    }
}
