//! The network that predicts the prior map ([`crate::matching::learned`]), before the levels of matching. All its values
//! lie in one buffer.

use wgpu::{Buffer, ComputePipeline};

use super::network::Planned;
use super::plan::{Builder, grid, linear};
use crate::engine::learned::device::{BLOCK, Convolution, FOUR, Place, Step, Work};
use crate::matching::learned::Correlation;

/// Name of the stage.
const STAGE: &str = "network";

/// Groups of 16 input channels that a workgroup adds in a step (`learned_convolve.wgsl`).
const GROUPS: usize = 4;
/// Invocations of a workgroup.
const INVOCATIONS: usize = 128;

impl Builder<'_> {
    /// Predicts the prior map, a value in a word, of images that were halved for the network.
    pub fn predict(&mut self, planned: &Planned, images: &[Buffer; 2], map: &Buffer) {
        let Planned { network, pairs, schedule } = planned;
        let size = network.image_size(*pairs);
        let memory = self.words(words(schedule.bytes));
        self.fill_planes(&schedule.planes, size, images, &memory);
        // For 16 output channels and for 32.
        let convolve = [1, 2].map(|blocks| {
            let channels = format!("const CHANNELS = {}u;\n", blocks * BLOCK);
            self.compile(channels, &[shader!("learned_convolve")], "main")
        });
        let correlate = self.compile(String::new(), &[shader!("learned_correlate")], "main");
        for step in &schedule.steps {
            match &step.work {
                Work::Convolution(convolution) => {
                    self.convolve(step, convolution, &convolve, &memory);
                }
                Work::Correlation(correlation, channels) => {
                    self.correlate(step, correlation, *channels, &correlate, &memory);
                }
            }
        }
        self.interpolate(planned, &memory, map);
    }

    fn fill_planes(
        &mut self,
        planes: &Place,
        (width, height): (usize, usize),
        [left, right]: &[Buffer; 2],
        memory: &Buffer,
    ) {
        let sizes = [width, height, planes.width, planes.height, words(planes.offset) as usize];
        let uniform = self.uniform_of(&sizes.map(|number| number as i32));
        let pipeline = self.compile(String::new(), &[shader!("learned_planes")], "main");
        let groups = linear(words(planes.views * planes.view_bytes()));
        self.step(STAGE, &pipeline, &[&uniform, left, right, memory], groups);
    }

    fn convolve(
        &mut self,
        step: &Step,
        convolution: &Convolution,
        pipelines: &[ComputePipeline; 2],
        memory: &Buffer,
    ) {
        let mut groups: Vec<[i32; 8]> =
            step.inputs.iter().flat_map(|input| groups_of(convolution, input)).collect();
        let channels = convolution.blocks * BLOCK;
        let mut weights = convolution.weights.clone();
        // Groups whose weights are 0.
        groups.resize(groups.len().next_multiple_of(GROUPS), groups[0]);
        weights.resize(groups.len() * FOUR * channels, 0);
        let numbers =
            convolution.biases.chunks_exact(FOUR).zip(convolution.shifts.chunks_exact(FOUR));
        let ends: Vec<i32> =
            numbers.flat_map(|(biases, shifts)| biases.iter().chain(shifts)).copied().collect();
        let uniform = self.uniform_of(&layer(step, convolution, groups.len()));
        let buffers = [
            &uniform,
            memory,
            &self.filled(bytemuck::cast_slice(&groups)),
            &self.filled(bytemuck::cast_slice(&weights)),
            &self.filled(bytemuck::cast_slice(&ends)),
        ];
        let of_group = if convolution.blocks.is_multiple_of(2) { 2 } else { 1 };
        let parts = convolution.blocks / of_group;
        let pixels = INVOCATIONS * FOUR * FOUR / (of_group * BLOCK);
        let [across, down, _] =
            grid((step.output.width * step.output.height).div_ceil(pixels) as u32);
        let all = [across, down, (parts * step.output.views) as u32];
        self.step(STAGE, &pipelines[of_group - 1], &buffers, all);
    }

    fn correlate(
        &mut self,
        step: &Step,
        correlation: &Correlation,
        channels: usize,
        pipeline: &ComputePipeline,
        memory: &Buffer,
    ) {
        let (features, output) = (&step.inputs[0], &step.output);
        let numbers = [
            output.width,
            output.height,
            channels,
            correlation.candidates,
            correlation.groups,
            correlation.shift.into(),
            features.offset / 4,
            features.words,
            (features.offset + features.view_bytes()) / 4,
            output.offset / 4,
            output.words,
        ];
        let uniform = self.uniform_of(&numbers.map(|number| number as i32));
        self.step(STAGE, pipeline, &[&uniform, memory], linear(words(output.view_bytes())));
    }

    fn interpolate(
        &mut self,
        Planned { network, pairs, schedule }: &Planned,
        memory: &Buffer,
        map: &Buffer,
    ) {
        let (of, head) = (&network.network, &schedule.head);
        let (width, height) = (pairs.0.div_ceil(2), pairs.1.div_ceil(2));
        let numbers = [
            head.width as i32,
            head.height as i32,
            words(head.offset) as i32,
            head.words as i32,
            of.candidates as i32,
            of.reach as i32,
            of.table.len() as i32,
            of.threshold.into(),
            network.step() as i32 / 2,
            width as i32,
            height as i32,
        ];
        let uniform = self.uniform_of(&numbers);
        let table: Vec<u32> = of.table.iter().map(|&weight| weight.into()).collect();
        let table = self.filled(bytemuck::cast_slice(&table));
        let count = (head.width * head.height) as u32;
        let cells = self.words(count);
        let [decode, interpolate] = ["decode", "interpolate"]
            .map(|entry| self.compile(String::new(), &[shader!("learned_map")], entry));
        self.step(STAGE, &decode, &[memory, &table, &uniform, &cells], linear(count));
        let groups = linear((width * height) as u32);
        self.step_from(2, STAGE, &interpolate, &[&uniform, &cells, map], groups);
    }
}

fn words(bytes: usize) -> u32 {
    (bytes / 4) as u32
}

/// The groups of an input in the order of the weights, as the shader reads them.
fn groups_of(convolution: &Convolution, input: &Place) -> impl Iterator<Item = [i32; 8]> {
    let Convolution { kernel, dilation, .. } = *convolution;
    let taps = kernel * kernel;
    let is_planes = input.words < FOUR;
    let (taps_of_group, of_tap) = if is_planes { (FOUR, 1) } else { (1, input.words / FOUR) };
    let input = *input;
    let groups = (0..taps)
        .step_by(taps_of_group)
        .flat_map(move |tap| (0..of_tap).map(move |group| (tap, group)));
    groups.map(move |(tap, group)| {
        let from_centre = |tap: usize| (tap as i32 - kernel as i32 / 2) * dilation as i32;
        let [x, y] = match is_planes {
            true => [tap as i32, 0],
            false => [from_centre(tap % kernel), from_centre(tap / kernel)],
        };
        [
            x,
            y,
            (input.offset / 4 + group * FOUR) as i32,
            input.width as i32,
            input.words as i32,
            words(input.view_bytes()) as i32,
            input.doublings as i32,
            0,
        ]
    })
}

/// The numbers of a convolution as the shader reads them.
fn layer(step: &Step, convolution: &Convolution, groups: usize) -> [i32; 20] {
    let (input, output) = (&step.inputs[0], &step.output);
    let add = convolution.add.as_ref();
    let numbers = [
        output.width,
        output.height,
        input.width << input.doublings,
        input.height << input.doublings,
        convolution.kernel,
        convolution.stride,
        convolution.dilation,
        groups,
        convolution.blocks * BLOCK,
        output.offset / 4,
        convolution.is_wide.into(),
        add.is_some().into(),
        0,
        0,
        add.map_or(0, |add| add.offset / 4),
        add.map_or(0, |add| add.width),
        add.map_or(0, |add| add.view_bytes() / 4),
        add.map_or(0, |add| add.doublings as usize),
        0,
        0,
    ];
    let mut numbers = numbers.map(|number| number as i32);
    (numbers[12], numbers[13]) = (convolution.low, convolution.high);
    numbers
}
