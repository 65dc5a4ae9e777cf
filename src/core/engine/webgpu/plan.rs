//! The stages of matching in order, as shaders, buffers and dispatches for pairs of a size. Files in `shaders/matching/` have
//! the names of the stages of [`crate::matching`].

use wgpu::{BindGroup, Buffer, BufferUsages, ComputePipeline};

use super::device::Gpu;
use super::level::Level;
use super::network::Planned;
use crate::matching::Guide;
use crate::matching::confidence::model;
use crate::matching::filter::Filter;
use crate::matching::texture::RESPONSE_MAX;
use crate::matching::windows::BLOCK;

/// Pixels whose responses to the noise filter a workgroup counts (`texture.wgsl`).
const CHUNK: u32 = 4096;

/// Largest number of workgroups along one side of a grid.
const GROUPS_MAX: u32 = 65535;

/// One dispatch of a shader.
pub(super) struct Step {
    pub stage: &'static str,
    pub pipeline: ComputePipeline,
    pub bindings: BindGroup,
    pub groups: [u32; 3],
    /// Whether it serves the noise thresholds alone.
    pub measures_noise: bool,
}

/// Everything on the device for pairs of a size.
pub(super) struct Plan {
    pub steps: Vec<Step>,
    /// Both images, four pixels in a word.
    pub images: [Buffer; 2],
    /// Those for the network, if they are others.
    pub of_network: Option<[Buffer; 2]>,
    /// Noise threshold of each level.
    pub thresholds: Buffer,
    /// 1 if the images have valid masks, then a bit a pixel, of the left image first.
    pub masks: Buffer,
    /// The prior map, a value in a word, if pairs may come with one.
    pub prior: Option<Buffer>,
    /// The prior map of the network, likewise, if holes are filled with its help on the host.
    pub predicted: Option<Buffer>,
    /// Buffers that must be 0 before each pair.
    pub cleared: Vec<Buffer>,
    /// The map, two values in a word, then the confidence, four in a word.
    pub output: Buffer,
}

/// Buffers of a coarser level that guide the next finer one.
struct Coarser {
    expected: Buffer,
    /// Blocks of each tile of range windows.
    windows: Buffer,
}

/// Buffers that the stages of a level fill.
struct Made {
    map: Buffer,
    confidence: Buffer,
    /// Blocks of each tile of range windows of the next finer level, if it has them.
    windows: Option<Buffer>,
}

/// Rows of a level that are aggregated together.
struct Band {
    first: u32,
    rows: u32,
    costs: Buffer,
    down: Buffer,
}

pub(super) struct Builder<'a> {
    gpu: &'a Gpu,
    steps: Vec<Step>,
    cleared: Vec<Buffer>,
    /// Bound where a shader has no use for a binding.
    nothing: Buffer,
    thresholds: Buffer,
    masks: Buffer,
    lanes: &'static str,
}

/// A grid of at least this many workgroups.
pub(super) fn grid(groups: u32) -> [u32; 3] {
    [groups.min(GROUPS_MAX), groups.div_ceil(GROUPS_MAX), 1]
}

/// Groups of 256 invocations for this many.
pub(super) fn linear(invocations: u32) -> [u32; 3] {
    grid(invocations.div_ceil(256))
}

impl<'a> Builder<'a> {
    /// Plans pairs with these levels. `network` predicts the prior maps, if there is one; `is_denoised`: of other images
    /// than those that are matched.
    pub fn plan(
        gpu: &'a Gpu,
        levels: &[Level],
        network: Option<&Planned>,
        is_denoised: bool,
    ) -> Plan {
        let storage = |words| storage(gpu, u64::from(words));
        let pixels = levels[0].pixels();
        let mut builder = Self {
            gpu,
            steps: Vec::new(),
            cleared: Vec::new(),
            nothing: storage(4),
            thresholds: storage(levels.len() as u32),
            masks: storage(1 + (2 * pixels).div_ceil(32)),
            lanes: if gpu.subgroup().is_some() {
                shader!("lanes_subgroup")
            } else {
                shader!("lanes_shared")
            },
        };
        let views = || [(); 2].map(|()| storage(pixels.div_ceil(4)));
        let images = views();
        let size = (levels[0].width as usize, levels[0].height as usize);
        let mut all = vec![images.clone()];
        builder.halve(&mut all, size, levels.len() - 1);
        let has_prior = levels[0].params.prior_map && levels.len() > 1;
        let prior = has_prior.then(|| builder.words(levels[1].pixels()));
        let of_network = network.filter(|_| is_denoised).map(|_| views());
        if let Some((network, map)) = network.zip(prior.as_ref()) {
            let mut halves = of_network.clone().map_or_else(|| all.clone(), |views| vec![views]);
            let halvings = network.halvings();
            builder.halve(&mut halves, size, halvings);
            builder.predict(network, &halves[halvings], map);
        }
        let nothing = builder.nothing.clone();
        let mut coarser = Coarser { expected: nothing.clone(), windows: nothing.clone() };
        let mut maps = None;
        for (level, images) in levels.iter().zip(&all).rev() {
            let finer = level.number.checked_sub(1).map(|finer| &levels[finer]);
            let given = prior.as_ref().filter(|_| level.number == 1);
            let made = builder.level(level, finer, images, &coarser, given);
            if finer.is_some() {
                coarser.expected = builder.expect(level, &made.map);
            }
            coarser.windows = made.windows.unwrap_or_else(|| nothing.clone());
            maps = Some([made.map, made.confidence]);
        }
        let [map, confidence] = maps.expect("there is a level");
        let output = builder.words(pixels.div_ceil(4) * 3);
        let pack = builder.pipeline(&levels[0], &[shader!("pack")], "main");
        builder.step("output", &pack, &[&map, &confidence, &output], linear(pixels.div_ceil(4)));
        let Self { steps, cleared, thresholds, masks, .. } = builder;
        let asks_network = levels[0].params.fill.is_some_and(|fill| fill.rule.asks_network());
        let predicted = prior.clone().filter(|_| network.is_some() && asks_network);
        let prior = prior.filter(|_| network.is_none());
        Plan { steps, images, of_network, thresholds, masks, prior, predicted, cleared, output }
    }

    /// The stages of one level. `given`: the prior map that replaces its map where it is known.
    fn level(
        &mut self,
        level: &Level,
        finer: Option<&Level>,
        images: &[Buffer; 2],
        coarser: &Coarser,
        given: Option<&Buffer>,
    ) -> Made {
        if level.follows_noise() {
            self.measure_noise(level, &images[0]);
        }
        let (bands, others) = self.bands(level);
        self.compute_costs(level, images, coarser, &bands);
        let [winners, right_winners] =
            self.aggregate_and_select(level, images, coarser, &bands, &others);
        let (map, peaks) = self.check_consistency(level, images, &winners, &right_winners);
        let guided = finer.filter(|finer| finer.params.windows);
        let seen = guided.map(|finer| self.count_blocks(finer, "count_seen", 4, &map)[0].clone());
        let (map, confidence) = self.filter(level, images, map, &peaks);
        if let Some(given) = given {
            let pipeline = self.pipeline(level, &[shader!("replace")], "main");
            self.step("prior", &pipeline, &[given, &map], linear(level.pixels()));
        }
        let windows = guided.zip(seen).map(|(finer, seen)| self.choose_windows(finer, &map, &seen));
        Made { map, confidence, windows }
    }

    pub fn words(&self, words: u32) -> Buffer {
        storage(self.gpu, u64::from(words))
    }

    /// A buffer with these words.
    pub fn filled(&self, words: &[u8]) -> Buffer {
        let buffer = self.words(words.len() as u32 / 4);
        self.gpu.queue.write_buffer(&buffer, 0, words);
        buffer
    }

    fn pipeline(&self, level: &Level, sources: &[&str], entry: &str) -> ComputePipeline {
        self.compile(level.constants.clone(), sources, entry)
    }

    /// Compiles a shader after constants and `common.wgsl`.
    pub fn compile(&self, constants: String, sources: &[&str], entry: &str) -> ComputePipeline {
        let mut all = constants;
        all += shader!("common");
        sources.iter().for_each(|source| all += source);
        if let Some((text, instead)) = self.gpu.options.mutation {
            all = all.replace(text, instead);
        }
        let descriptor = wgpu::ShaderModuleDescriptor {
            label: Some(entry),
            source: wgpu::ShaderSource::Wgsl(all.into()),
        };
        // SAFETY: every index of the shaders lies within its buffer, which the tests check with these checks on; and
        // every loop has an end.
        let module =
            unsafe { self.gpu.device.create_shader_module_trusted(descriptor, super::checks()) };
        self.gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(entry),
            layout: None,
            module: &module,
            entry_point: Some(entry),
            compilation_options: wgpu::PipelineCompilationOptions {
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: None,
        })
    }

    /// Adds a dispatch; the buffers are those of bindings 0, 1, ...
    pub fn step(
        &mut self,
        stage: &'static str,
        pipeline: &ComputePipeline,
        buffers: &[&Buffer],
        groups: [u32; 3],
    ) {
        self.step_from(0, stage, pipeline, buffers, groups);
    }

    /// Adds a dispatch whose first binding has this number.
    pub fn step_from(
        &mut self,
        first: u32,
        stage: &'static str,
        pipeline: &ComputePipeline,
        buffers: &[&Buffer],
        groups: [u32; 3],
    ) {
        let entries: Vec<_> = (first..)
            .zip(buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        let bindings = self.gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let pipeline = pipeline.clone();
        self.steps.push(Step { stage, pipeline, bindings, groups, measures_noise: false });
    }

    /// Measures the noise of the left image, unless its thresholds are given with the pair.
    fn measure_noise(&mut self, level: &Level, left: &Buffer) {
        let responses = self.words(RESPONSE_MAX as u32 + 1);
        self.cleared.push(responses.clone());
        let thresholds = self.thresholds.clone();
        let first = self.steps.len();
        let source = [shader!("texture")];
        let count = self.pipeline(level, &source, "count_responses");
        let groups = grid(level.pixels().div_ceil(CHUNK));
        self.step("texture", &count, &[left, &responses], groups);
        let find = self.pipeline(level, &source, "find_threshold");
        self.step_from(1, "texture", &find, &[&responses, &thresholds], [1, 1, 1]);
        self.steps[first..].iter_mut().for_each(|step| step.measures_noise = true);
    }

    /// Halves both images until there are so many halves of those of this size, which are the first.
    fn halve(&mut self, all: &mut Vec<[Buffer; 2]>, size: (usize, usize), halvings: usize) {
        for before in all.len() - 1..halvings {
            let of = |side: usize, halvings: usize| side.div_ceil(1 << halvings);
            let [finer, half] =
                [before, before + 1].map(|halvings| [of(size.0, halvings), of(size.1, halvings)]);
            let names = ["FINER_WIDTH", "FINER_HEIGHT", "WIDTH", "HEIGHT"];
            let sides = names.iter().zip(finer.iter().chain(&half));
            let constants =
                sides.map(|(name, side)| format!("const {name} = {side}u;\n")).collect();
            let pipeline = self.compile(constants, &[shader!("half")], "main");
            let words = (half[0] * half[1]).div_ceil(4) as u32;
            let views = all[before].clone();
            all.push(views.map(|image| {
                let coarser = self.words(words);
                self.step("pyramid", &pipeline, &[&image, &coarser], linear(words));
                coarser
            }));
        }
    }

    /// The disparities that the map of a level predicts for the next finer one.
    fn expect(&mut self, level: &Level, map: &Buffer) -> Buffer {
        let expected = self.words(level.pixels());
        let pipeline = self.pipeline(level, &[shader!("expect")], "main");
        self.step("prior", &pipeline, &[map, &expected], linear(level.pixels()));
        expected
    }

    /// The bands of a level, and the buffer for the paths of one band that do not go down.
    fn bands(&self, level: &Level) -> (Vec<Band>, Buffer) {
        let of_row = level.width * level.words;
        let paths = |number: usize| (level.steps[number].len() as u32).max(1);
        let band = |first: u32| {
            let rows = level.band_rows.min(level.height - first);
            let costs = self.words(rows * of_row);
            Band { first, rows, costs, down: self.words(rows * of_row * paths(0)) }
        };
        let bands = (0..level.height).step_by(level.band_rows as usize).map(band).collect();
        (bands, self.words(level.band_rows * of_row * paths(1)))
    }

    /// First row, number of rows, whether paths go on, and the steps of the paths.
    fn uniform(&self, band: &Band, goes_on: bool, steps: &[(i32, i32)]) -> Buffer {
        let mut words = [0i32; 4 + 8 * 4];
        words[..3].copy_from_slice(&[band.first as i32, band.rows as i32, i32::from(goes_on)]);
        for (to, step) in words[4..].chunks_exact_mut(4).zip(steps) {
            (to[0], to[1]) = *step;
        }
        self.uniform_of(&words)
    }

    /// A uniform of these words.
    pub fn uniform_of(&self, words: &[i32]) -> Buffer {
        let buffer = self.gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            // A structure in a shader ends at a multiple of 16 bytes.
            size: (size_of_val(words) as u64).next_multiple_of(16),
            usage: BufferUsages::UNIFORM | BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        self.gpu.queue.write_buffer(&buffer, 0, bytemuck::cast_slice(words));
        buffer
    }

    fn compute_costs(
        &mut self,
        level: &Level,
        images: &[Buffer; 2],
        coarser: &Coarser,
        bands: &[Band],
    ) {
        let pixels = level.pixels();
        let features = [(); 2].map(|()| self.words(2 * pixels));
        let pipeline = self.pipeline(level, &[shader!("compute_features")], "main");
        for (image, features) in images.iter().zip(&features) {
            self.step("cost features", &pipeline, &[image, features], linear(pixels));
        }
        let mut blends = self.nothing.clone();
        if level.is_supported() {
            blends = self.words(pixels);
            let pipeline = self.pipeline(level, &[shader!("compute_blends")], "main");
            let thresholds = self.thresholds.clone();
            self.step("texture", &pipeline, &[&images[0], &thresholds, &blends], linear(pixels));
        }
        let pipeline =
            self.pipeline(level, &[shader!("windows"), shader!("compute_costs")], "main");
        let [words, columns, rows] = level.cost_group();
        for band in bands {
            let uniform = self.uniform(band, false, &[]);
            let groups = [
                level.width.div_ceil(columns),
                band.rows.div_ceil(rows),
                level.words.div_ceil(words),
            ];
            let [left, right] = &features;
            let Coarser { expected, windows } = coarser;
            let buffers = [&uniform, left, right, &blends, expected, windows, &band.costs];
            self.step("cost volume", &pipeline, &buffers, groups);
        }
    }

    fn aggregate_and_select(
        &mut self,
        level: &Level,
        images: &[Buffer; 2],
        Coarser { expected, windows }: &Coarser,
        bands: &[Band],
        others: &Buffer,
    ) -> [Buffer; 2] {
        let pixels = level.pixels();
        let guide = match level.params.p2_guide {
            Guide::Picture => images[0].clone(),
            Guide::Smoothed => {
                let smoothed = self.words(pixels.div_ceil(4));
                let pipeline = self.pipeline(level, &[shader!("smooth")], "main");
                self.step(
                    "cost features",
                    &pipeline,
                    &[&images[0], &smoothed],
                    linear(pixels.div_ceil(4)),
                );
                smoothed
            }
        };
        let common = [self.lanes, shader!("windows")];
        let [paths, select] = [shader!("aggregate_paths"), shader!("select_disparities")]
            .map(|source| self.pipeline(level, &[&common[..], &[source]].concat(), "main"));
        let winners = self.words(pixels);
        let right_winners = self.words(pixels);
        self.cleared.push(right_winners.clone());
        let aggregate = |builder: &mut Self,
                         which: usize,
                         band: &Band,
                         goes_on,
                         states: &[Buffer; 2],
                         deltas: &Buffer| {
            let steps = &level.steps[which];
            if steps.is_empty() {
                return;
            }
            let uniform = builder.uniform(band, goes_on, steps);
            let lines = |step: &(i32, i32)| if step.1 == 0 { band.rows } else { level.width };
            let lines = steps.iter().map(lines).max().unwrap_or(0);
            let groups = [lines.div_ceil(level.lines), steps.len() as u32, 1];
            let [before, after] = states;
            let buffers = [&uniform, &band.costs, &guide, expected, windows, before, after, deltas];
            builder.step("aggregation", &paths, &buffers, groups);
        };
        let states = [0, 1].map(|which| {
            let words = level.width * level.words * level.steps[which].len().max(1) as u32;
            [(); 2].map(|()| self.words(words))
        });
        let [mut of_down, mut of_others] = states;
        for (number, band) in bands.iter().enumerate() {
            aggregate(self, 0, band, number > 0, &of_down, &band.down);
            of_down.reverse();
        }
        for (number, band) in bands.iter().enumerate().rev() {
            aggregate(self, 1, band, number + 1 < bands.len(), &of_others, others);
            of_others.reverse();
            let uniform = self.uniform(band, false, &[]);
            let buffers =
                [&uniform, &band.costs, &band.down, others, windows, &winners, &right_winners];
            let groups = [level.width.div_ceil(level.segment()), band.rows, 1];
            self.step("winner", &select, &buffers, groups);
        }
        [winners, right_winners]
    }

    /// The map before its filters, and the peaks.
    fn check_consistency(
        &mut self,
        level: &Level,
        [left, right]: &[Buffer; 2],
        winners: &Buffer,
        right_winners: &Buffer,
    ) -> (Buffer, Buffer) {
        let (pixels, params) = (level.pixels(), &level.params);
        let map = self.words(pixels);
        let peaks = self.words(if params.confidence.is_some() { pixels } else { 1 });
        let masks = self.masks.clone();
        let pipeline = self.pipeline(level, &[shader!("check_consistency")], "main");
        let buffers = [winners, right_winners, left, right, &masks, &map, &peaks];
        self.step("left-right", &pipeline, &buffers, linear(pixels));
        (map, peaks)
    }

    /// The map and its confidence.
    fn filter(
        &mut self,
        level: &Level,
        [left, _]: &[Buffer; 2],
        mut map: Buffer,
        peaks: &Buffer,
    ) -> (Buffer, Buffer) {
        let (pixels, params) = (level.pixels(), &level.params);
        let all = linear(pixels);
        let mut spare = self.words(pixels);
        let mut confidence = self.nothing.clone();
        for filter in params.filters() {
            let stage = filter.name();
            match filter {
                // By `check_consistency`, and by the host as it collects the pair.
                Filter::ValidMask | Filter::ConfidenceOfKnown => {}
                Filter::Confidence { .. } => {
                    confidence = self.words(pixels);
                    let columns = self.words(4 * pixels);
                    let source = [shader!("filter_confidence")];
                    let model = self.model();
                    let sum = self.pipeline(level, &source, "sum_columns");
                    self.step(stage, &sum, &[&map, peaks, &columns], all);
                    let choose = self.pipeline(level, &source, "choose");
                    let buffers = [&map, peaks, &columns, &model, &confidence];
                    self.step(stage, &choose, &buffers, all);
                }
                Filter::Median(_) => {
                    let median = self.pipeline(level, &[shader!("filter_median")], "main");
                    self.step(stage, &median, &[&map, &spare], all);
                    std::mem::swap(&mut map, &mut spare);
                }
                Filter::Speckle(_) => self.filter_speckle(level, &map),
                Filter::Evidence(_) => self.filter_evidence(level, left, &map, &confidence),
                Filter::Spatial(_) => {
                    for entry in ["smooth_rows", "smooth_columns"] {
                        let source = [shader!("filter_spatial")];
                        let pipeline = self.pipeline(level, &source, entry);
                        self.step(stage, &pipeline, &[&map, left, &spare], all);
                        std::mem::swap(&mut map, &mut spare);
                    }
                }
                // By the CPU, on the finished map (`WholeMap`).
                Filter::Smoothing(_) | Filter::Steady(_) | Filter::Fill(_) => {}
            }
        }
        (map, confidence)
    }

    /// Counts by block what a half-size map has in each of so many parts of a tile of a level, and in all of it.
    fn count_blocks(
        &mut self,
        level: &Level,
        entry: &str,
        parts: u32,
        map: &Buffer,
    ) -> [Buffer; 2] {
        let words = level.params.range.count.div_ceil(4 * BLOCK) as u32;
        let tiles = level.tiles();
        let [counted, of_all] = [tiles * parts * words, 4 * words].map(|words| self.words(words));
        self.cleared.push(of_all.clone());
        let pipeline = self.pipeline(level, &[shader!("choose_windows")], entry);
        self.step("prior", &pipeline, &[map, &counted, &of_all], grid(tiles));
        [counted, of_all]
    }

    /// Chooses the blocks of each tile of a level by the half-size map.
    fn choose_windows(&mut self, level: &Level, map: &Buffer, seen: &Buffer) -> Buffer {
        let [votes, of_all] = self.count_blocks(level, "count_votes", 1, map);
        let windows = self.words(2 * level.tiles());
        let pipeline = self.pipeline(level, &[shader!("choose_windows")], "choose");
        let buffers = [&votes, seen, &of_all, &windows];
        self.step_from(3, "prior", &pipeline, &buffers, grid(level.tiles().div_ceil(32)));
        windows
    }

    fn filter_speckle(&mut self, level: &Level, map: &Buffer) {
        let all = linear(level.pixels());
        let [labels, sizes] = [(); 2].map(|()| self.words(level.pixels()));
        let rows = grid(level.height);
        let entries = [
            ("label_runs", 3, rows),
            ("join_rows", 2, all),
            ("count_pixels", 3, all),
            ("remove_small", 3, all),
        ];
        for (entry, bound, groups) in entries {
            let pipeline = self.pipeline(level, &[shader!("filter_speckle")], entry);
            self.step("speckle", &pipeline, &[map, &labels, &sizes][..bound], groups);
        }
    }

    fn filter_evidence(&mut self, level: &Level, left: &Buffer, map: &Buffer, confidence: &Buffer) {
        let all = linear(level.pixels());
        let [sums, evidence] = [(); 2].map(|()| self.words(level.pixels()));
        let occupied = self.words(level.width.div_ceil(16) * level.height.div_ceil(16));
        self.cleared.push(occupied.clone());
        let (thresholds, masks) = (self.thresholds.clone(), self.masks.clone());
        let source = [shader!("filter_evidence")];
        let sum = self.pipeline(level, &source, "sum_levels");
        self.step("evidence", &sum, &[left, &sums], all);
        let find = self.pipeline(level, &source, "find_evidence");
        let buffers = [&sums, &thresholds, map, &evidence, &occupied, &masks];
        self.step_from(1, "evidence", &find, &buffers, all);
        let keep = self.pipeline(level, &source, "keep_supported");
        // Without confidence any buffer will do.
        let confidence = if level.params.confidence.is_some() { confidence } else { &sums };
        let buffers = [map, &evidence, &occupied, &masks, confidence];
        self.step_from(3, "evidence", &keep, &buffers, all);
    }

    /// The tables of the confidence model, then its confidences.
    fn model(&self) -> Buffer {
        let mut bytes: Vec<u8> = bytemuck::cast_slice(&model::TABLES).to_vec();
        bytes.extend(model::CONFIDENCES);
        self.filled(&bytes)
    }
}

fn storage(gpu: &Gpu, words: u64) -> Buffer {
    gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        // Clearing wants whole words, bindings more than none.
        size: 4 * words.max(4),
        usage: BufferUsages::STORAGE | BufferUsages::COPY_DST | BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    })
}
