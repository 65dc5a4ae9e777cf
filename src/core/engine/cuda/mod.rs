//! The CUDA engine: the stages of `matching/` as kernels, byte for byte the same, several frames in flight.
//! `units.rs` chooses the kernels (`kernels/*.cu`) and their constants, `plan/` arranges their buffers and
//! launches. Everything else here is independent of the algorithm:
//!
//! - `device.rs` lists and opens devices, `driver.rs` owns the driver's objects.
//! - `compile.rs` compiles the kernels for the exact device with NVRTC (`nvrtc.rs`); `cache.rs` keeps the
//!   code.
//! - `memory.rs` estimates memory before any allocation.
//! - `slot.rs` is a frame in flight; `frames.rs` enqueues its computation.

/// Files of `kernels/` as (name, text); `build.rs` finds the folder.
macro_rules! kernels {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!(env!("GPU_SOURCES"), "/kernels/", $name)))),*]
    };
}

mod cache;
mod compile;
mod cost;
mod device;
mod driver;
mod frames;
mod geometry;
mod job;
mod launch;
mod levels;
mod loaded;
mod memory;
mod nvrtc;
mod pinned;
mod plan;
mod slot;
mod units;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, bail};

pub use crate::memory::Size;
pub use cache::{Cache, Key};
pub use compile::compile;
pub use device::{DeviceInfo, Properties, Unusable, driver as driver_version, is_fitted, list};
pub use driver::Priority;
pub use job::Job;
pub use launch::Unit;
pub use memory::TooLarge;
pub use nvrtc::{Missing, Nvrtc, Target, Version};
pub use units::specialisations;

use self::driver::{Context, Function, Stream};
use self::frames::{Memory, StreamPair, Work};
use self::launch::{BufferId, Input, Plan, Scope};
use self::loaded::Loaded;
use self::memory::Budget;
use self::pinned::PinnedPool;
use self::slot::{Addresses, InFlight, Output, Slot};
use crate::engine::interface::{
    Engine, PairSpec, TileEngine, check_dimensions, check_sizes, check_thresholds, prior_of,
};
use crate::engine::{Choice, HalvedNetwork};
use crate::frame::{
    DisparityMap, DisparityRange, Eye, Image, Matched, StereoGeometry, StereoPair, Whitened,
};
use crate::matching::continuity::Continuity;
use crate::matching::levels::{levels, prior_map_size};
use crate::matching::scene::Thumbnail;
use crate::matching::temporal::layout::{HEADER, Header};
use crate::matching::temporal::report as report_of;
use crate::matching::{History, Params};
use crate::memory::Reserved;
use crate::pool::Pooled;
use crate::rectify::Rectifier;

/// GPU resources of the engine.
#[derive(Clone, Debug)]
pub struct CudaOptions {
    /// Number of the device as `stereod devices` lists it; `None`: the first that will do.
    pub device: Option<usize>,
    /// Number of multiprocessors in use, at least 1; `None`: all.
    pub multiprocessors: Option<u32>,
    pub priority: Priority,
    /// Frames in flight, at least 1.
    pub in_flight: usize,
    /// Cache of compiled kernels.
    pub cache: Cache,
}

impl CudaOptions {
    /// Keys of `[engine]` among these that request a GPU, a part of it, or a priority.
    pub fn asked_for(&self) -> Vec<&'static str> {
        let asked = [
            ("device", self.device.is_some()),
            ("multiprocessors", self.multiprocessors.is_some()),
            ("priority", self.priority != Priority::default()),
        ];
        asked.into_iter().filter_map(|(key, is_asked)| is_asked.then_some(key)).collect()
    }
}

impl Default for CudaOptions {
    fn default() -> Self {
        Self {
            device: None,
            multiprocessors: None,
            priority: Priority::default(),
            in_flight: 3,
            cache: Cache::of_user(),
        }
    }
}

/// Matches pairs of one size with one set of parameters. Fields are dropped in this order.
pub struct CudaEngine {
    slots: Vec<Slot>,
    streams: Vec<StreamPair>,
    upload: Stream,
    download: Stream,
    maps: PinnedPool<i16>,
    /// Memory for the confidence outputs, if requested.
    confidences: Option<PinnedPool<u8>>,
    /// Memory for the whitened pictures, and for the reports of the spatio-temporal stage.
    whitened: Option<PinnedPool<u16>>,
    reports: Option<PinnedPool<i32>>,
    pictures: [PinnedPool<u8>; 2],
    /// Memory for the rectified pictures, if the device makes them.
    rectified: Option<PinnedPool<u8>>,
    rectifier: Option<Arc<Rectifier>>,
    memory: Memory,
    _modules: Loaded,
    context: Arc<Context>,
    size: (usize, usize),
    /// Size of the prior maps that pairs may come with.
    prior_size: Option<(usize, usize)>,
    levels: usize,
    inputs: [Input; 2],
    name: String,
    /// Busy slots in the order of submission.
    queue: VecDeque<usize>,
    profile: bool,
    continuity: Continuity,
    states: Vec<(&'static str, BufferId)>,
    /// The buffers that hold the state of the newest frame.
    known: Vec<BufferId>,
    newest: Option<usize>,
    range: DisparityRange,
    depth_from: Option<StereoGeometry>,
    /// Budget share of the pinned memory.
    _pinned: Option<Reserved>,
}

impl CudaEngine {
    /// Makes an engine with kernels and all its memory; results of raw pairs include rectified pictures.
    pub fn new(params: &Params, pairs: &PairSpec, options: &CudaOptions) -> anyhow::Result<Self> {
        Self::with_network(params, pairs, None, options)
    }

    /// Makes an engine that predicts the prior maps by the network, if any, for parameters with prior maps.
    pub fn with_network(
        params: &Params,
        pairs: &PairSpec,
        network: Option<&HalvedNetwork>,
        options: &CudaOptions,
    ) -> anyhow::Result<Self> {
        let rectifier = pairs.rectifier.as_deref();
        let job = &Job { params, size: pairs.size, rectifier, network };
        let (width, height) = job.size;
        job.params.check()?;
        check_dimensions(width, height)?;
        if options.in_flight == 0 {
            bail!("the CUDA engine needs at least 1 frame in flight, not 0");
        }
        if options.multiprocessors == Some(0) {
            bail!("the CUDA engine needs at least 1 multiprocessor, not 0");
        }
        let started = Instant::now();
        let devices = list().map_err(anyhow::Error::new)?;
        let mut device = device::choose(devices, options.device).map_err(anyhow::Error::new)?;
        let nvrtc = Nvrtc::find().map_err(Unusable::from)?;
        let target = nvrtc.target(device.properties.sm())?;
        let context = match options.multiprocessors {
            None => device.open().map_err(Unusable::from)?,
            Some(count) => device.open_part(count)?,
        };

        let units = specialisations(job, &device.properties);
        let code = compile::compile_all(nvrtc, &units, target, &options.cache)?;
        let modules = Loaded::new(&context, units, &code).with_context(|| {
            format!("kernels compiled by NVRTC {} for {target}", nvrtc.version())
        })?;
        let mut plan = plan::plan(job, &device.properties, &modules)?;
        let (free, total) = context.memory()?;
        let of_process = crate::memory::Budget::of_process();
        let allowed = memory::allowed(free, of_process.given());
        plan.concurrent = memory::concurrent_frames(&plan, options.in_flight, total, allowed);
        plan.check()
            .map_err(|wrong| anyhow::anyhow!("the CUDA engine's plan is wrong: {wrong}"))?;

        let budget = Budget::of(&plan, options.in_flight);
        budget.check(free, total, of_process.given())?;
        let what = format!("pinned memory for {} frames in flight", options.in_flight);
        let host =
            of_process.reserve(what, budget.estimate().host, "a smaller picture, `in_flight=1`")?;
        tracing::info!(
            "GPU memory: {} of {} free, for {} frames in flight",
            Size(budget.device as u64),
            Size(free as u64),
            options.in_flight
        );
        let mut engine = Self::allocate(context, modules, job, &plan, &device, options)?;
        engine.depth_from = pairs.geometry;
        engine.rectifier = pairs.rectifier.clone();
        engine._pinned = Some(host);
        tracing::debug!("CUDA engine ready after {:.0} ms", started.elapsed().as_secs_f64() * 1e3);
        Ok(engine)
    }

    fn allocate(
        context: Arc<Context>,
        modules: Loaded,
        job: &Job,
        plan: &Plan,
        device: &DeviceInfo,
        options: &CudaOptions,
    ) -> anyhow::Result<Self> {
        let functions = modules.functions(plan)?;
        let memory = Memory::new(&context, plan, options.in_flight)?;
        let slots = slots(&context, plan, &functions, &memory, options.in_flight)?;
        let pixels = job.size.0 * job.size.1;
        // One more than frames, for the one in use by an output.
        let ready = options.in_flight + 1;
        let pictures = |input: Input| PinnedPool::new(&context, input.width * input.height, 0);
        let whitens = plan.passed.is_some_and(|passed| passed.whitened.is_some());
        Ok(Self {
            slots,
            streams: (0..plan.concurrent)
                .map(|_| StreamPair::new(&context, options.priority))
                .collect::<driver::Result<_>>()?,
            upload: Stream::new(&context, options.priority)?,
            download: Stream::new(&context, options.priority)?,
            maps: PinnedPool::new(&context, pixels, ready)?,
            confidences: PinnedPool::if_needed(plan.confidence.is_some(), &context, pixels, ready)?,
            whitened: PinnedPool::if_needed(whitens, &context, pixels, ready)?,
            reports: PinnedPool::if_needed(plan.passed.is_some(), &context, HEADER, ready)?,
            // Allocated on demand by sources.
            pictures: [pictures(plan.inputs[0])?, pictures(plan.inputs[1])?],
            rectified: PinnedPool::if_needed(
                plan.rectified.is_some(),
                &context,
                pixels,
                2 * ready,
            )?,
            rectifier: None,
            memory,
            _modules: modules,
            context,
            size: job.size,
            prior_size: prior_map_size(job.params, job.size).filter(|_| job.network.is_none()),
            levels: levels(job.params, job.size).len(),
            inputs: plan.inputs,
            name: name(job, device, options),
            queue: VecDeque::with_capacity(options.in_flight),
            profile: false,
            continuity: Continuity::default(),
            states: plan.states.clone(),
            known: Vec::new(),
            newest: None,
            range: job.params.range,
            depth_from: None,
            _pinned: None,
        })
    }

    /// Enqueues the work for a pair. `thresholds`: noise thresholds, empty to measure them; `of_stream`:
    /// whether it may continue the previous pair.
    fn take(
        &mut self,
        pair: StereoPair,
        thresholds: &[u32],
        of_stream: bool,
    ) -> anyhow::Result<()> {
        check_sizes(&pair, self.inputs.map(|input| (input.width, input.height)))?;
        let prior = prior_of(&pair, self.prior_size)?;
        let Some(number) = self.idle_slot() else {
            bail!(
                "the CUDA engine holds {} pairs at a time; collect one before the next",
                self.slots.len()
            );
        };
        let submitted = Instant::now();
        self.context.make_current()?;
        let output = Output {
            map: self.maps.take()?,
            confidence: self.confidences.as_ref().map(PinnedPool::take).transpose()?,
            whitened: self.whitened.as_ref().map(PinnedPool::take).transpose()?,
            report: self.reports.as_ref().map(PinnedPool::take).transpose()?,
            rectified: match &self.rectified {
                Some(pool) => Some([pool.take()?, pool.take()?]),
                None => None,
            },
        };
        let thumbnail = || match &self.rectifier {
            Some(rectifier) => {
                let map = rectifier.map(Eye::Left);
                Thumbnail::by(map.size(), |x, y| map.value(&pair.left, x, y))
            }
            None => Thumbnail::of(&pair.left),
        };
        let keeps_state = !self.states.is_empty();
        if !(of_stream && keeps_state && self.continuity.goes_on(pair.timestamp, thumbnail())) {
            self.known.clear();
        }
        let before = self.newest.map(|newest| self.slots[newest].chained());
        let slot = &mut self.slots[number];
        slot.upload_prior(prior, &self.upload)?;
        slot.upload(&pair, self.inputs, &self.upload)?;
        let streams = &self.streams[number % self.streams.len()];
        slot.compute(streams, &self.known, thresholds, before, self.profile)?;
        slot.download(&output, &self.download)?;
        slot.in_flight = Some(InFlight { pair, submitted, output });
        self.queue.push_back(number);
        self.newest = Some(number);
        self.known.clear();
        self.known.extend(self.states.iter().map(|&(_, id)| id));
        Ok(())
    }

    fn idle_slot(&self) -> Option<usize> {
        self.slots.iter().position(|slot| slot.in_flight.is_none())
    }

    /// Waits until the device has no work for this engine.
    fn drain(&self) {
        if self.context.make_current().is_err() {
            return;
        }
        let pairs = self.streams.iter().flat_map(|pair| [&pair.main, &pair.side]);
        for stream in [&self.upload].into_iter().chain(pairs).chain([&self.download]) {
            // A lost device has no work either.
            let _ = stream.synchronize();
        }
    }
}

impl Drop for CudaEngine {
    fn drop(&mut self) {
        self.drain();
    }
}

fn name(job: &Job, device: &DeviceInfo, options: &CudaOptions) -> String {
    let name = match options.multiprocessors {
        None => format!("{} (CUDA, {} frames in flight)", device.name, options.in_flight),
        Some(_) => format!(
            "{} (CUDA, {} multiprocessors of it, {} frames in flight)",
            device.name, device.properties.multiprocessors, options.in_flight
        ),
    };
    match job.network {
        None => name,
        Some(network) => format!("{name}, prior of {}", network.description()),
    }
}

fn slots(
    context: &Arc<Context>,
    plan: &Plan,
    functions: &[Function],
    memory: &Memory,
    in_flight: usize,
) -> anyhow::Result<Vec<Slot>> {
    let mut slots = Vec::new();
    for number in 0..in_flight {
        let buffer = |id| memory.of(number, id);
        let work = Work::new(context, &plan.steps, functions, &buffer)?;
        let address = |id| memory.of(number, id).0;
        let addresses = Addresses {
            input: [plan.left, plan.right].map(address),
            rectified: plan.rectified.map(|ids| ids.map(address)),
            disparity: address(plan.disparity),
            confidence: plan.confidence.map(address),
            whitened: plan.passed.and_then(|passed| passed.whitened).map(address),
            report: plan.passed.map(|passed| address(passed.report)),
            prior: plan.prior.map(|id| (address(id), plan.buffers[id.0].bytes / size_of::<i16>())),
        };
        slots.push(Slot::new(context, work, plan.inputs, addresses)?);
    }
    Ok(slots)
}

impl Engine for CudaEngine {
    fn description(&self) -> String {
        self.name.clone()
    }

    fn depth(&self) -> usize {
        self.slots.len()
    }

    fn submit(&mut self, pair: StereoPair) -> anyhow::Result<()> {
        self.take(pair, &[], true)
    }

    fn collect(&mut self) -> anyhow::Result<Option<Matched>> {
        let Some(&number) = self.queue.front() else { return Ok(None) };
        self.context.make_current()?;
        let slot = &mut self.slots[number];
        slot.wait()?;
        let (stages, device_time) = slot.times()?;
        self.queue.pop_front();
        let frame = slot.in_flight.take().context("a slot without a frame was queued")?;
        let values = Pooled::lent(self.maps.lend(frame.output.map));
        let (width, height) = self.size;
        let confidence = self.confidences.as_ref().zip(frame.output.confidence);
        let confidence = confidence
            .map(|(pool, memory)| Image::new(width, height, Pooled::lent(pool.lend(memory))));
        let whitened = self.whitened.as_ref().zip(frame.output.whitened);
        let whitened =
            whitened.map(|(pool, memory)| Whitened::new(width, Pooled::lent(pool.lend(memory))));
        let report = self.reports.as_ref().zip(frame.output.report);
        let temporal = report.map(|(pool, memory)| {
            report_of(&Header::of(&Pooled::lent(pool.lend(memory))), self.size)
        });
        let mut pair = frame.pair;
        if let (Some(pool), Some(rectifier), Some([left, right])) =
            (&self.rectified, &self.rectifier, frame.output.rectified)
        {
            let picture = |eye, memory, raw| {
                rectifier.rectified_image(eye, Pooled::lent(pool.lend(memory)), raw)
            };
            pair.left = picture(Eye::Left, left, pair.left);
            pair.right = picture(Eye::Right, right, pair.right);
        }
        Ok(Some(Matched {
            confidence,
            whitened,
            temporal,
            geometry: self.depth_from,
            submitted: frame.submitted,
            stages,
            device_time: Some(device_time),
            ..Matched::new(pair, DisparityMap::new(width, height, self.range, values))
        }))
    }

    fn set_profiling(&mut self, on: bool) {
        self.profile = on;
    }

    fn take_history(&mut self) -> anyhow::Result<History> {
        if !self.queue.is_empty() {
            bail!("pairs are in flight on the CUDA engine; collect them before its history");
        }
        self.context.make_current()?;
        let mut states = BTreeMap::new();
        for &(name, id) in &self.states {
            if let (true, Some(memory)) = (self.known.contains(&id), &self.memory.engine[id.0]) {
                let mut state = vec![0i32; memory.bytes() / size_of::<i32>()];
                memory.read(bytemuck::cast_slice_mut(&mut state))?;
                states.insert(name, state);
            }
        }
        self.known.clear();
        Ok(History {
            continuity: std::mem::take(&mut self.continuity),
            size: self.size,
            states,
            odometer: None,
        })
    }

    fn resume(&mut self, history: History) -> anyhow::Result<()> {
        self.continuity = history.continuity;
        self.known.clear();
        if history.size != self.size {
            return Ok(());
        }
        self.context.make_current()?;
        for &(name, id) in &self.states {
            let state = history.states.get(name).map(|state| bytemuck::cast_slice(state));
            if let (Some(state), Some(memory)) = (state, &self.memory.engine[id.0])
                && state.len() == memory.bytes()
            {
                memory.write(state)?;
                self.known.push(id);
            }
        }
        Ok(())
    }

    fn choice(&self) -> Choice {
        Choice::Cuda
    }

    fn picture_memory(&self) -> Option<Arc<dyn crate::pool::Memory<u8>>> {
        Some(Arc::new(self.pictures.clone()))
    }
}

impl TileEngine for CudaEngine {
    fn submit_tile(&mut self, pair: StereoPair, thresholds: Option<&[u32]>) -> anyhow::Result<()> {
        check_thresholds(thresholds, self.levels)?;
        self.take(pair, thresholds.unwrap_or_default(), false)
    }
}

impl Memory {
    /// Allocates a plan's buffers: zeros, or their initial content.
    fn new(context: &Arc<Context>, plan: &Plan, slots: usize) -> driver::Result<Self> {
        let of = |scopes: &[Scope]| {
            let buffers = plan.buffers.iter();
            buffers
                .map(|buffer| match scopes.contains(&buffer.scope) {
                    true => {
                        driver::DeviceMemory::new(context, buffer.bytes, &buffer.content).map(Some)
                    }
                    false => Ok(None),
                })
                .collect::<driver::Result<Vec<_>>>()
        };
        let several =
            |scope, count| (0..count).map(|_| of(&[scope])).collect::<driver::Result<_>>();
        let memory = Self {
            engine: of(&[Scope::Engine, Scope::Sequence])?,
            concurrent: several(Scope::Concurrent, plan.concurrent)?,
            slots: several(Scope::Slot, slots)?,
        };
        // The engine's streams do not wait for the initialisation of the buffers.
        context.synchronize()?;
        Ok(memory)
    }
}
