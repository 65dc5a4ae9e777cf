//! The learned prior: a network's layers as launches, up to the prior map (`kernels/learned_*.cu`).

use std::collections::BTreeSet;

use super::super::device::Properties;
use super::super::geometry::{BLOCK_THREADS, WARP};
use super::super::job::Job;
use super::super::launch::{Arg, BufferId, Plan, Scope, Unit};
use crate::engine::HalvedNetwork;
use crate::engine::learned::device::{ALIGNMENT, BLOCK, Convolution, Place, Schedule, Step, Work};
use crate::frame::INVALID;
use crate::matching::learned::{Correlation, Network};

/// Stage in timing reports.
pub const NETWORK: &str = "network";

/// Warps of a block of a convolution.
const WARPS: u32 = 4;

/// Tiles of 16 cells and blocks of 16 channels of a warp, the largest first.
const SHAPES: [[usize; 2]; 8] = [[2, 4], [2, 3], [2, 2], [1, 4], [1, 3], [2, 1], [1, 2], [1, 1]];

/// Number of warps for each multiprocessor that keep it busy.
const WARPS_OF_MULTIPROCESSOR: usize = 8;

/// The units of the network, if there is one.
pub fn units(job: &Job, device: &Properties) -> Vec<Unit> {
    let Some(halved) = job.network else { return Vec::new() };
    let schedule = Schedule::new(&halved.network, halved.image_size(job.size));
    let shapes = schedule.steps.iter().filter_map(|step| match &step.work {
        Work::Convolution(convolution) => Some(shape_of_warp(convolution, &step.output, device)),
        Work::Correlation(..) => None,
    });
    let convolution = |[tiles, blocks]: [usize; 2]| {
        let unit = Unit::new("learned_convolution.cu");
        let unit = unit
            .define("WARPS", WARPS)
            .define("TILES", tiles)
            .define("BLOCKS", blocks)
            .define("UNIT_WORDS", ALIGNMENT / size_of::<u32>());
        Unit { name: unit_of([tiles, blocks]), ..unit }
    };
    let convolutions = shapes.collect::<BTreeSet<[usize; 2]>>().into_iter().map(convolution);
    convolutions.chain([Unit::new("learned_prior.cu").pixelwise()]).collect()
}

/// Name of the unit whose warps have this shape.
fn unit_of([tiles, blocks]: [usize; 2]) -> String {
    format!("learned_convolution of {tiles} x {blocks}")
}

/// The tiles and blocks that a warp computes: many, because it reads inputs and weights once for all of them, but so
/// few that there are warps for all multiprocessors.
fn shape_of_warp(convolution: &Convolution, output: &Place, device: &Properties) -> [usize; 2] {
    let cells = output.width * output.height;
    let enough = WARPS_OF_MULTIPROCESSOR * device.multiprocessors as usize;
    let fits = |[tiles, blocks]: &[usize; 2]| {
        let warps = output.views * cells.div_ceil(tiles * BLOCK) * (convolution.blocks / blocks);
        convolution.blocks.is_multiple_of(*blocks) && warps >= enough
    };
    SHAPES.into_iter().find(fits).unwrap_or([1, 1])
}

/// The weights in the order in which the lanes of a warp load them. A lane has two channels of each block of 16, and
/// of them two words of each eight input words, or one of each remaining four.
fn of_lanes(convolution: &Convolution, inputs: &[Place]) -> Vec<u32> {
    let (weights, channels) = (&convolution.weights, convolution.blocks * BLOCK);
    let taps = convolution.kernel * convolution.kernel;
    let groups = inputs.iter().flat_map(|input| match input.words {
        1 => vec![4; taps.div_ceil(4)],
        words => [vec![8; words / 8], vec![4; words % 8 / 4]].concat().repeat(taps),
    });
    let (mut words, mut first) = (Vec::with_capacity(weights.len()), 0);
    for rows in groups {
        let (blocks, of_lane) = ((0..channels).step_by(BLOCK), rows / 4);
        let lanes = blocks.flat_map(|block| (0..WARP as usize).map(move |lane| (block, lane)));
        for (block, lane) in lanes {
            for column in block + lane / 4 * 2..block + lane / 4 * 2 + 2 {
                let of_column = (0..of_lane).map(|k| first + lane % 4 * of_lane + k);
                words.extend(of_column.map(|row| weights[row * channels + column]));
            }
        }
        first += rows;
    }
    words
}

/// Numbers of the convolutions, one after the other in a table.
#[derive(Default)]
struct Numbers(Vec<u8>);

impl Numbers {
    /// Adds numbers and returns their first byte.
    fn add<T: bytemuck::NoUninit>(&mut self, numbers: &[T]) -> usize {
        let first = self.0.len().next_multiple_of(size_of::<[u32; 4]>());
        self.0.resize(first, 0);
        self.0.extend_from_slice(bytemuck::cast_slice(numbers));
        first
    }
}

/// The network in a plan.
struct Layers<'a> {
    plan: &'a mut Plan,
    device: &'a Properties,
    /// All values.
    values: BufferId,
    /// Weights, biases, shifts and inputs of all convolutions.
    numbers: BufferId,
}

impl Plan {
    /// Predicts the prior map, of a size, from both views of another size.
    pub(super) fn predict(
        &mut self,
        halved: &HalvedNetwork,
        (mut views, mut size): ([BufferId; 2], (usize, usize)),
        map: (usize, usize),
        device: &Properties,
    ) -> BufferId {
        for _ in 0..halved.halvings {
            views = self.half(views, size);
            size = (size.0.div_ceil(2), size.1.div_ceil(2));
        }
        let network = &halved.network;
        let schedule = Schedule::new(network, size);
        let mut numbers = Numbers::default();
        let places: Vec<[usize; 4]> =
            schedule.steps.iter().map(|step| numbers_of(step, &mut numbers)).collect();
        let values = self.buffer("values of the network", schedule.bytes, Scope::Concurrent);
        let numbers = self.table("weights of the network", numbers.0);
        let mut layers = Layers { plan: self, device, values, numbers };
        layers.planes(views, size, &schedule.planes);
        for (step, places) in schedule.steps.iter().zip(places) {
            match &step.work {
                Work::Convolution(convolution) => layers.convolve(convolution, step, places),
                Work::Correlation(correlation, channels) => {
                    layers.correlate(*correlation, *channels, step);
                }
            }
        }
        let prediction = layers.decode(network, &schedule.head);
        layers.map(halved, prediction, &schedule.head, map)
    }
}

/// Adds the numbers of a convolution; returns the places of its inputs, weights, biases and shifts.
fn numbers_of(step: &Step, numbers: &mut Numbers) -> [usize; 4] {
    let Work::Convolution(convolution) = &step.work else { return [0; 4] };
    let inputs: Vec<i32> = (step.inputs.iter())
        .flat_map(|input| {
            [(input.offset / ALIGNMENT) as i32, input.words as i32, input.doublings as i32]
        })
        .collect();
    let Convolution { biases, shifts, .. } = convolution;
    let weights = of_lanes(convolution, &step.inputs);
    [numbers.add(&inputs), numbers.add(&weights), numbers.add(biases), numbers.add(shifts)]
}

impl Layers<'_> {
    fn value(&self, place: &Place) -> Arg {
        Arg::At(self.values, place.offset)
    }

    fn launch(&mut self, symbol: &'static str, items: usize, rows: u32, args: Vec<Arg>) {
        let kernel = self.plan.kernel("learned_prior", symbol);
        let grid = [items.div_ceil(BLOCK_THREADS as usize) as u32, rows];
        self.plan.launch(NETWORK, kernel, grid, [BLOCK_THREADS, 1], args);
    }

    /// Makes the inputs of the first convolution from both views of a size.
    fn planes(&mut self, views: [BufferId; 2], size: (usize, usize), planes: &Place) {
        let mut args = views.map(Arg::Buffer).to_vec();
        args.extend([size.0, size.1, planes.width, planes.height].map(number));
        args.push(self.value(planes));
        self.launch("planes", planes.width * planes.height, 2, args);
    }

    fn convolve(&mut self, convolution: &Convolution, step: &Step, places: [usize; 4]) {
        let (output, input) = (&step.output, &step.inputs[0]);
        let shape = shape_of_warp(convolution, output, self.device);
        let kernel = self.plan.kernel(&unit_of(shape), "convolve");
        let [inputs, weights, biases, shifts] = places.map(|place| Arg::At(self.numbers, place));
        let Convolution { kernel: side, stride, dilation, low, high, add, is_wide, .. } =
            *convolution;
        let mut args = vec![Arg::Buffer(self.values), inputs, number(step.inputs.len())];
        args.extend([weights, biases, shifts]);
        args.extend([side, stride, dilation].map(number));
        args.extend([low, high].map(Arg::I32));
        args.extend([input.width, input.height].map(|n| number(n << input.doublings)));
        let (added, words, doublings) = add.map_or((Arg::Buffer(self.values), 0, 0), |add| {
            (self.value(&add), add.words, add.doublings as usize)
        });
        args.extend([added, number(words), number(doublings)]);
        args.extend([output.width, output.height].map(number));
        args.extend([self.value(output), number(output.words), number(is_wide.into())]);
        let warps = (output.width * output.height).div_ceil(shape[0] * BLOCK) as u32;
        let grid = [warps.div_ceil(WARPS), (convolution.blocks / shape[1]) as u32];
        let launch = self.plan.launch(NETWORK, kernel, grid, [WARP * WARPS, 1], args);
        launch.grid[2] = output.views as u32;
    }

    fn correlate(&mut self, correlation: Correlation, channels: usize, step: &Step) {
        let (features, output) = (&step.inputs[0], &step.output);
        let Correlation { candidates, groups, shift } = correlation;
        let mut args = vec![self.value(features)];
        args.extend([features.words, features.doublings as usize].map(number));
        args.extend([output.width, output.height].map(number));
        args.extend([channels, groups, candidates, usize::from(shift)].map(number));
        args.extend([self.value(output), number(output.words)]);
        self.launch("correlate", output.width * output.words, output.height as u32, args);
    }

    /// Finds the disparity and confidence of each cell.
    fn decode(&mut self, network: &Network, head: &Place) -> BufferId {
        let cells = head.width * head.height;
        let prediction = self.plan.buffer("prediction", size_of::<u32>() * cells, Scope::Slot);
        let table = self.plan.table("weights of candidates", network.table.clone());
        let mut args = vec![self.value(head)];
        args.extend([head.words, cells, network.candidates, network.reach].map(number));
        args.extend([Arg::Buffer(table), number(network.table.len()), Arg::Buffer(prediction)]);
        self.launch("decode", cells, 1, args);
        prediction
    }

    /// Spreads the prediction over a map of a size.
    fn map(
        &mut self,
        halved: &HalvedNetwork,
        prediction: BufferId,
        head: &Place,
        (width, height): (usize, usize),
    ) -> BufferId {
        let map = self.plan.buffer("prior map", size_of::<i16>() * width * height, Scope::Slot);
        let mut args = vec![Arg::Buffer(prediction)];
        args.extend([head.width, head.height, halved.step() / 2].map(number));
        args.push(Arg::I32(halved.network.threshold.into()));
        args.extend([width, height].map(number));
        args.extend([Arg::I32(INVALID.into()), Arg::Buffer(map)]);
        self.launch("prior_map", width * height, 1, args);
        map
    }
}

fn number(n: usize) -> Arg {
    Arg::I32(n as i32)
}
