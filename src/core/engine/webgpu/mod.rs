//! The engine for any GPU: the stages of [`crate::matching`] as compute shaders (WGSL), which wgpu runs through Vulkan.
//! It gives the same bytes as the other engines.
//!
//! The device has the stages from the pyramid to the spatial filter, and the network that predicts prior maps. The filters with memory, hole filling, the
//! spatio-temporal stage and rectification are those of the CPU engine ([`WholeMap`]), which runs while the device
//! matches the next pair.
//!
//! Unlike on CUDA, no workgroup may wait for another one, so each path is a pass of its own: a group of lanes follows
//! a line and stores L - C, a byte a candidate, for each path; the winners are selected from their sums. An image
//! whose volumes exceed the largest buffer is cut into bands of rows (`level.rs`): first the downward paths of each
//! band, from top to bottom, then from the bottom up the other paths and the winners. So only the downward paths are
//! kept for the whole image.
//!
//! A device may fail at any time: drivers give up, laptops change GPUs. Then the CPU engine takes its place within this
//! one ([`WebGpuEngine::give_up`]), with the pairs in flight and all that the filters remember.

/// The source of a shader.
macro_rules! shader {
    ($name:literal) => {
        include_str!(concat!(env!("GPU_SOURCES"), "/shaders/matching/", $name, ".wgsl"))
    };
}

mod device;
mod learned;
mod level;
mod network;
mod plan;
pub(super) mod trial;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use wgpu::{Buffer, BufferUsages, Features, MapMode, PollType, QuerySet};

use self::device::Gpu;
pub use self::device::{NoDevice, WebGpuDevice, WebGpuOptions, list};
use self::level::Level;
use self::network::Planned;
use self::plan::{Builder, Plan};
use super::cpu::{CpuEngine, CpuOptions, CpuRectifier, RECTIFY, TEMPORAL, WholeMap};
use super::interface::{
    Engine, PairSpec, Refusal, TileEngine, check_dimensions, check_size, check_thresholds, prior_of,
};
use super::prior::{Learned, Predictor, with_network};
use super::{Choice, HalvedNetwork, Options};
use crate::frame::{
    DisparityMap, DisparityRange, INVALID, Image, Mask, Matched, StageTime, StereoGeometry,
    StereoPair, TemporalReport, Whitened, add_time,
};
use crate::matching::confidence::of_known;
use crate::matching::continuity::Continuity;
use crate::matching::levels::prior_map_size;
use crate::matching::prior::half_range;
use crate::matching::scene::Thumbnail;
use crate::matching::tiles::{TileLayout, Tiles};
use crate::matching::{History, Params};
use crate::memory::{Budget, Reserved};
use crate::pool::Pool;

/// Pairs in flight: the device has one, the CPU the other.
const IN_FLIGHT: usize = 2;

/// Longest time to wait for a pair. Drivers give up earlier.
const PATIENCE: Duration = Duration::from_secs(30);

/// Advice to need less memory.
const CURE: &str = "fewer `disparities`, a smaller picture";

/// Checks that are compiled into the shaders: all of them where Rust has its own, as in tests.
fn checks() -> wgpu::ShaderRuntimeChecks {
    if cfg!(debug_assertions) {
        wgpu::ShaderRuntimeChecks::checked()
    } else {
        wgpu::ShaderRuntimeChecks::unchecked()
    }
}

/// Matches pairs of one size with one set of parameters.
pub struct WebGpuEngine {
    gpu: Gpu,
    plan: Plan,
    params: Params,
    size: (usize, usize),
    levels: usize,
    /// Memory of the host for the output of each pair in flight, if it is idle.
    outputs: Vec<Buffer>,
    queue: VecDeque<InFlight>,
    clock: Option<Clock>,
    profile: bool,
    rectifier: Option<CpuRectifier>,
    whole: WholeMap,
    continuity: Continuity,
    depth_from: Option<StereoGeometry>,
    values: Pool<i16>,
    confidences: Pool<u8>,
    /// The valid masks on the device. Rectified pairs share theirs.
    masks: [Option<Arc<Mask>>; 2],
    cpu: CpuOptions,
    /// The network that predicts the prior maps.
    network: Option<HalvedNetwork>,
    /// The engine that took over when the device failed.
    substitute: Option<Substitute>,
    _memory: Reserved,
}

/// The CPU in place of the device.
struct Substitute {
    engine: CpuEngine,
    network: Option<Learned>,
    /// Candidates of the half-size images.
    range: DisparityRange,
}

/// Measures times on the device: one before and one after each stage.
struct Clock {
    queries: QuerySet,
    resolved: Buffer,
    /// Nanoseconds of a tick.
    period: f64,
    stages: Vec<&'static str>,
}

struct InFlight {
    pair: StereoPair,
    /// Buffer that receives the map, and the work to wait for; `None` without a device.
    output: Option<(Buffer, wgpu::SubmissionIndex)>,
    submitted: Instant,
    stages: Vec<StageTime>,
    /// Noise thresholds of the levels, unless they are measured.
    thresholds: Option<Vec<u32>>,
    /// Output of the spatio-temporal stage: the images to match, the whitened one, the report.
    denoised: Option<[Image; 2]>,
    whitened: Option<Whitened>,
    report: Option<TemporalReport>,
    /// Whether the filters of the whole map follow, and continue those of the previous pair.
    of_stream: Option<bool>,
}

impl WebGpuEngine {
    /// Makes an engine with its shaders and all its memory.
    pub fn new(
        params: &Params,
        pairs: &PairSpec,
        options: WebGpuOptions,
        cpu: CpuOptions,
    ) -> anyhow::Result<Self> {
        Self::with_network(params, pairs, None, options, cpu)
    }

    /// Makes an engine for whole images. It runs the network of the program, if the options ask for that.
    pub fn of(params: &Params, pairs: &PairSpec, options: &Options) -> anyhow::Result<Self> {
        let (how, cpu) = (WebGpuOptions::default(), options.cpu);
        let Some(network) = options.own_network(params, pairs.size) else {
            return Self::new(params, pairs, how, cpu);
        };
        let (params, _) = with_network(params, pairs.size)?;
        Self::with_network(&params, pairs, Some(&network), how, cpu)
    }

    /// Makes an engine that predicts the prior maps by the network, if any, for parameters with prior maps.
    pub fn with_network(
        params: &Params,
        pairs: &PairSpec,
        network: Option<&HalvedNetwork>,
        options: WebGpuOptions,
        cpu: CpuOptions,
    ) -> anyhow::Result<Self> {
        let started = Instant::now();
        let (width, height) = pairs.size;
        params.check()?;
        check_dimensions(width, height)?;
        let gpu = Gpu::open(options)?;
        if gpu.is_software() {
            tracing::warn!("{} computes without a GPU, slower than `engine=cpu`", gpu.info.name);
        }
        let levels = Level::all(&gpu, params, pairs.size)?;
        let planned = network.map(|network| Planned::new(&gpu, network, pairs.size)).transpose()?;
        let of_host = Params { evidence: None, spatial: None, ..params.clone() };
        let layout =
            TileLayout::new(Tiles { rows: 1, columns: 1, overlap: 0 }, pairs.size, params.range)?;
        let bytes = WholeMap::bytes_of(&of_host, &layout, cpu)?
            + (width * height * 3 * (IN_FLIGHT + 1)) as u64;
        let memory =
            Budget::of_process().reserve(format!("matching {width}x{height}"), bytes, CURE)?;

        let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let plan = Builder::plan(&gpu, &levels, planned.as_ref(), params.denoises());
        let clock =
            gpu.features.contains(Features::TIMESTAMP_QUERY).then(|| Clock::new(&gpu, &plan));
        let of_clock = clock.as_ref().map_or(0, |clock| clock.resolved.size());
        let of_prior = plan.predicted.as_ref().map_or(0, Buffer::size);
        let outputs = [(); IN_FLIGHT].map(|()| {
            gpu.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("output"),
                size: (plan.output.size() + of_prior).next_multiple_of(8) + of_clock,
                usage: BufferUsages::MAP_READ | BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        });
        if pollster::block_on(scope.pop()).is_some() {
            bail!(Refusal::Memory(format!(
                "{} has too little memory for {width}x{height} with {} disparities; use {CURE}, or `engine=cpu`",
                gpu.info.name, params.range.count
            )));
        }
        gpu.check()?;
        tracing::debug!("wgpu engine ready after {:.0} ms", started.elapsed().as_secs_f64() * 1e3);
        let rectifier = pairs.rectifier.clone();
        Ok(Self {
            gpu,
            plan,
            params: params.clone(),
            size: pairs.size,
            levels: levels.len(),
            outputs: outputs.into(),
            queue: VecDeque::new(),
            clock,
            profile: false,
            rectifier: rectifier.map(|maps| CpuRectifier::new(maps, cpu)).transpose()?,
            whole: WholeMap::new(&of_host, &layout, cpu)?,
            continuity: Continuity::default(),
            depth_from: pairs.geometry,
            values: Pool::new(),
            confidences: Pool::new(),
            masks: [None, None],
            cpu,
            network: network.cloned(),
            substitute: None,
            _memory: memory,
        })
    }

    /// Takes a rectified pair.
    fn take(&mut self, mut pair: InFlight) -> anyhow::Result<()> {
        if self.substitute.is_none() {
            pair.output = Some(self.enqueue(&pair)?);
        }
        self.queue.push_back(pair);
        Ok(())
    }

    /// Hands a pair to the device.
    fn enqueue(&mut self, pair: &InFlight) -> anyhow::Result<(Buffer, wgpu::SubmissionIndex)> {
        let (queue, views) = (&self.gpu.queue, pair.views());
        let thresholds = pair.thresholds.as_deref();
        for (view, buffer) in views.into_iter().zip(&self.plan.images) {
            write_bytes(queue, buffer, view.pixels());
        }
        let rectified = [&pair.pair.left, &pair.pair.right];
        for (view, buffer) in rectified.into_iter().zip(self.plan.of_network.iter().flatten()) {
            write_bytes(queue, buffer, view.pixels());
        }
        if let Some(buffer) = &self.plan.prior {
            let size = prior_map_size(&self.params, self.size);
            let words: Vec<i32> = match prior_of(&pair.pair, size)? {
                Some(prior) => prior.values().iter().map(|&value| value.into()).collect(),
                None => vec![INVALID.into(); buffer.size() as usize / size_of::<i32>()],
            };
            queue.write_buffer(buffer, 0, bytemuck::cast_slice(&words));
        }
        if let Some(thresholds) = thresholds {
            queue.write_buffer(&self.plan.thresholds, 0, bytemuck::cast_slice(thresholds));
        }
        self.write_masks(views.map(Image::shared_valid_mask));

        let output = self.outputs.pop().context("no memory for another pair in flight")?;
        let mut encoder = self.gpu.device.create_command_encoder(&Default::default());
        self.plan.cleared.iter().for_each(|buffer| encoder.clear_buffer(buffer, 0, None));
        let clock = self.clock.as_ref();
        let by_stage = self.plan.steps.chunk_by(|a, b| !self.profile || a.stage == b.stage);
        let passes = by_stage.clone().count() as u32;
        for (steps, number) in by_stage.zip(0..) {
            let timestamp_writes = clock.map(|clock| wgpu::ComputePassTimestampWrites {
                query_set: &clock.queries,
                beginning_of_pass_write_index: Some(2 * number),
                end_of_pass_write_index: Some(2 * number + 1),
            });
            let mut pass = encoder
                .begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes });
            for step in steps.iter().filter(|step| !step.measures_noise || thresholds.is_none()) {
                pass.set_pipeline(&step.pipeline);
                pass.set_bind_group(0, &step.bindings, &[]);
                let [x, y, z] = step.groups;
                pass.dispatch_workgroups(x, y, z);
            }
        }
        let mut end = 0;
        for part in [Some(&self.plan.output), self.plan.predicted.as_ref()].into_iter().flatten() {
            encoder.copy_buffer_to_buffer(part, 0, &output, end, part.size());
            end += part.size();
        }
        if let Some(clock) = clock {
            encoder.resolve_query_set(&clock.queries, 0..2 * passes, &clock.resolved, 0);
            let (to, bytes) = (end.next_multiple_of(8), u64::from(16 * passes));
            encoder.copy_buffer_to_buffer(&clock.resolved, 0, &output, to, bytes);
        }
        let submission = self.gpu.queue.submit([encoder.finish()]);
        // Errors are those of the device, which `check` tells.
        output.map_async(MapMode::Read, .., |_| {});
        Ok((output, submission))
    }

    /// Lets the CPU engine match from now on, because the device failed.
    fn give_up(&mut self, error: &anyhow::Error) -> anyhow::Result<&mut Substitute> {
        tracing::warn!("{error:#}; matching goes on on the CPU");
        let pairs = PairSpec::rectified(self.size.0, self.size.1);
        let of_device = Params { fill: None, ..self.params.of_still() };
        let engine = CpuEngine::new(&of_device, &pairs, self.cpu)?;
        let map = prior_map_size(&self.params, self.size);
        let of_cpu =
            |(network, map): (HalvedNetwork, _)| Learned::new(network, self.size, map, self.cpu);
        let network = self.network.clone().zip(map).map(of_cpu).transpose()?;
        let range = half_range(self.params.range);
        Ok(self.substitute.insert(Substitute { engine, network, range }))
    }

    /// Fails the device, as drivers do; for tests.
    #[doc(hidden)]
    pub fn lose_device(&self) {
        self.gpu.device.destroy();
    }

    fn write_masks(&mut self, masks: [Option<Arc<Mask>>; 2]) {
        let pointers = |masks: &[Option<Arc<Mask>>; 2]| {
            masks.each_ref().map(|mask| mask.as_ref().map(Arc::as_ptr))
        };
        if pointers(&masks) == pointers(&self.masks) {
            return;
        }
        let pixels = self.size.0 * self.size.1;
        let mut words = vec![0u32; 1 + (2 * pixels).div_ceil(32)];
        words[0] = u32::from(masks.iter().any(Option::is_some));
        for (number, mask) in masks.iter().enumerate() {
            for i in (0..pixels).filter(|&i| mask.as_ref().is_none_or(|mask| mask.pixels()[i])) {
                let bit = number * pixels + i;
                words[1 + bit / 32] |= 1 << (bit % 32);
            }
        }
        self.gpu.queue.write_buffer(&self.plan.masks, 0, bytemuck::cast_slice(&words));
        self.masks = masks;
    }

    /// Waits for the device, and returns the map and the confidence before the filters of the whole map.
    fn download(&mut self, taken: &mut InFlight) -> anyhow::Result<Downloaded> {
        let (output, submission) = taken.output.take().context("the pair is not on the device")?;
        let waited = self
            .gpu
            .device
            .poll(PollType::Wait { submission_index: Some(submission), timeout: Some(PATIENCE) });
        self.gpu.check()?;
        waited.with_context(|| format!("{} does not finish a pair", self.gpu.info.name))?;
        let (width, height) = self.size;
        let pixels = width * height;
        let mut values = self.values.try_take(pixels)?;
        let mut confidence = None;
        let mut device_time = None;
        {
            let bytes = output.get_mapped_range(..).context("the map cannot be read")?;
            let words = pixels.div_ceil(4) * 8;
            bytemuck::cast_slice_mut::<i16, u8>(&mut values).copy_from_slice(&bytes[..2 * pixels]);
            if self.params.confidence.is_some() {
                let mut sure = self.confidences.try_take(pixels)?;
                sure.copy_from_slice(&bytes[words..][..pixels]);
                confidence = Some(Image::new(width, height, sure));
            }
            let mut end = self.plan.output.size() as usize;
            if let Some(predicted) = &self.plan.predicted {
                let (half, range) = (width.div_ceil(2), half_range(self.params.range));
                let words = bytes[end..].chunks_exact(4).take(half * height.div_ceil(2));
                let values = words.map(|word| i16::from_le_bytes([word[0], word[1]])).collect();
                taken.pair.prior = Some(Box::new(DisparityMap::of_values(half, range, values)));
                end += predicted.size() as usize;
            }
            if let Some(clock) = &self.clock {
                let from = end.next_multiple_of(8);
                let ticks: Vec<u64> = bytemuck::pod_collect_to_vec(&bytes[from..]);
                let passes = if self.profile { clock.stages.len() } else { 1 };
                let ticks = &ticks[..2 * passes];
                let time = |from: u64, to: u64| {
                    Duration::from_nanos((to.saturating_sub(from) as f64 * clock.period) as u64)
                };
                device_time = Some(time(ticks[0], ticks[2 * passes - 1]));
                if self.profile {
                    for (ticks, stage) in ticks.chunks_exact(2).zip(&clock.stages) {
                        add_time(&mut taken.stages, (stage, time(ticks[0], ticks[1])));
                    }
                }
            }
        }
        output.unmap();
        self.outputs.push(output);
        Ok((DisparityMap::new(width, height, self.params.range, values), confidence, device_time))
    }
}

type Downloaded = (DisparityMap, Option<Image>, Option<Duration>);

impl InFlight {
    fn new(pair: StereoPair) -> Self {
        Self {
            pair,
            output: None,
            submitted: Instant::now(),
            stages: Vec::new(),
            thresholds: None,
            denoised: None,
            whitened: None,
            report: None,
            of_stream: None,
        }
    }

    /// The images to match.
    fn views(&self) -> [&Image; 2] {
        let pair = || [&self.pair.left, &self.pair.right];
        self.denoised.as_ref().map_or_else(pair, |both| both.each_ref())
    }

    /// Matches the pair up to the filters of the whole map.
    fn match_on(
        &mut self,
        Substitute { engine, network, range }: &mut Substitute,
    ) -> anyhow::Result<Downloaded> {
        let predicted = network.as_mut().map(|network| network.predict(&self.pair)).transpose()?;
        let is_denoised = self.denoised.is_some();
        let views = self.denoised.take().unwrap_or_else(|| {
            let nothing = || Image::from_vec(1, 1, vec![0]);
            [&mut self.pair.left, &mut self.pair.right]
                .map(|view| std::mem::replace(view, nothing()))
        });
        let [left, right] = views;
        let given = self.pair.prior.take();
        let prior = predicted.map_or(given, |values| {
            let width = left.width().div_ceil(2);
            Some(Box::new(DisparityMap::of_values(width, *range, values)))
        });
        let pair = StereoPair { prior, ..StereoPair::of_stills(left, right) };
        engine.submit_tile(pair, self.thresholds.as_deref())?;
        let matched = engine.collect()?.context("the CPU engine lost a pair")?;
        self.pair.prior = matched.pair.prior;
        let views = [matched.pair.left, matched.pair.right];
        if is_denoised {
            self.denoised = Some(views);
        } else {
            [self.pair.left, self.pair.right] = views;
        }
        self.stages.extend(matched.stages);
        Ok((matched.disparity, matched.confidence, None))
    }
}

impl Clock {
    fn new(gpu: &Gpu, plan: &Plan) -> Self {
        let stages: Vec<_> =
            plan.steps.chunk_by(|a, b| a.stage == b.stage).map(|steps| steps[0].stage).collect();
        let count = 2 * stages.len() as u32;
        Self {
            queries: gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count,
            }),
            resolved: gpu.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: u64::from(8 * count),
                usage: BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC,
                mapped_at_creation: false,
            }),
            period: gpu.queue.get_timestamp_period().into(),
            stages,
        }
    }
}

/// Writes bytes, of which the last may not fill a word.
fn write_bytes(queue: &wgpu::Queue, buffer: &Buffer, bytes: &[u8]) {
    let (whole, rest) = bytes.split_at(bytes.len() / 4 * 4);
    queue.write_buffer(buffer, 0, whole);
    if !rest.is_empty() {
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        queue.write_buffer(buffer, whole.len() as u64, &last);
    }
}

impl Engine for WebGpuEngine {
    fn description(&self) -> String {
        let name = match &self.substitute {
            Some(cpu) => {
                format!("{}, since {} failed", cpu.engine.description(), self.gpu.info.name)
            }
            None => format!("{} ({})", self.gpu.info.name, self.gpu.info.backend),
        };
        match &self.network {
            Some(network) => format!("{name}, prior of {}", network.description()),
            None => name,
        }
    }

    fn depth(&self) -> usize {
        IN_FLIGHT
    }

    fn submit(&mut self, pair: StereoPair) -> anyhow::Result<()> {
        let mut taken = InFlight::new(pair);
        if let Some(rectifier) = &mut self.rectifier {
            taken.pair = rectifier.rectify(taken.pair)?;
            taken.stages.push((RECTIFY, taken.submitted.elapsed()));
        }
        check_size(&taken.pair, self.size)?;
        let goes_on = self.params.keeps_state()
            && self.continuity.goes_on(taken.pair.timestamp, Thumbnail::of(&taken.pair.left));
        taken.of_stream = Some(goes_on);
        let began = Instant::now();
        if let Some(passed) = self.whole.pass(taken.views(), goes_on)? {
            taken.stages.push((TEMPORAL, began.elapsed()));
            taken.report = Some(passed.report);
            taken.denoised = passed.denoised;
            taken.whitened = passed.whitened;
        }
        self.take(taken)
    }

    fn collect(&mut self) -> anyhow::Result<Option<Matched>> {
        let Some(mut taken) = self.queue.pop_front() else { return Ok(None) };
        let (mut disparity, mut confidence, device_time) = match &mut self.substitute {
            Some(cpu) => taken.match_on(cpu)?,
            None => match self.download(&mut taken) {
                Ok(downloaded) => downloaded,
                Err(error) => taken.match_on(self.give_up(&error)?)?,
            },
        };
        let InFlight { pair, submitted, mut stages, denoised, .. } = taken;
        if let Some(goes_on) = taken.of_stream {
            if let Some(sure) = &mut confidence {
                of_known(disparity.values(), sure.pixels_mut());
            }
            let left = denoised.as_ref().map_or(&pair.left, |both| &both[0]);
            let sure = confidence.as_mut().map(Image::pixels_mut);
            let prior = prior_of(&pair, prior_map_size(&self.params, self.size))?;
            let map = disparity.values_mut();
            let filtered = self.whole.filter(map, sure, left, prior, 0, goes_on);
            stages.extend(filtered);
        }
        Ok(Some(Matched {
            confidence,
            whitened: taken.whitened,
            temporal: taken.report,
            geometry: self.depth_from,
            submitted,
            stages,
            device_time,
            ..Matched::new(pair, disparity)
        }))
    }

    fn set_profiling(&mut self, on: bool) {
        self.profile = on && self.clock.is_some();
    }

    fn take_history(&mut self) -> anyhow::Result<History> {
        let continuity = std::mem::take(&mut self.continuity);
        Ok(History {
            continuity,
            size: self.size,
            states: self.whole.take_states(),
            odometer: None,
        })
    }

    fn resume(&mut self, history: History) -> anyhow::Result<()> {
        self.continuity = history.continuity;
        let is_same = history.size == self.size;
        self.whole.resume(&if is_same { history.states } else { BTreeMap::new() });
        Ok(())
    }

    fn choice(&self) -> Choice {
        if self.substitute.is_some() { Choice::Cpu } else { Choice::Wgpu }
    }
}

impl TileEngine for WebGpuEngine {
    fn submit_tile(&mut self, pair: StereoPair, thresholds: Option<&[u32]>) -> anyhow::Result<()> {
        check_thresholds(thresholds, self.levels)?;
        check_size(&pair, self.size)?;
        self.take(InFlight { thresholds: thresholds.map(<[u32]>::to_vec), ..InFlight::new(pair) })
    }
}
