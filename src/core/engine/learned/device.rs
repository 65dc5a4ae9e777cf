//! The learned prior on a device: its layers in order, where their values are in the device's memory, and their
//! weights in words.
//!
//! A value is stored as `[view][y][x][channel]`, four channels in a word, channel k in byte k % 4. The channels are
//! rounded up to 16; those added have any numbers, and weights of 0. Nothing is doubled in memory: who reads a doubled
//! value reads each of its cells several times.

use crate::matching::learned::{Cells, Correlation, Layer, Network, Operation, PLANES};

/// Channels that are computed together: values have a multiple of them.
pub const BLOCK: usize = 16;
/// Channels in a word.
pub const FOUR: usize = 4;
/// Alignment of values in bytes.
pub const ALIGNMENT: usize = 256;

/// A network and how often its images are halved, so that its candidates cover the range.
#[derive(Clone, Debug)]
pub struct HalvedNetwork {
    pub network: Network,
    pub halvings: u32,
}

impl HalvedNetwork {
    /// Returns the network of the program with these cells, for pairs of a size and disparities up to `most`; its
    /// images are halved at least so often.
    pub fn own(cells: Cells, pairs: (usize, usize), most: i32, least: u32) -> Self {
        let mut halved = Self { network: Network::own(cells, pairs), halvings: 0 };
        loop {
            let Self { network, halvings } = &halved;
            // Those between the last candidate and the next one are few, and the network is unsure of them.
            let covers = most >> halvings < (network.candidates * network.step) as i32;
            if covers && *halvings >= least {
                return halved;
            }
            halved.halvings += 1;
            halved.network = Network::own(cells, halved.image_size(pairs));
        }
    }

    /// Returns the size of the network's images for pairs of a size.
    pub fn image_size(&self, pairs: (usize, usize)) -> (usize, usize) {
        (0..self.halvings).fold(pairs, |(width, height), _| (width.div_ceil(2), height.div_ceil(2)))
    }

    /// Returns the side of a cell in pixels of the pair.
    pub fn step(&self) -> usize {
        self.network.step << self.halvings
    }

    /// Describes it in a few words.
    pub fn description(&self) -> String {
        format!("the network, cells of {0}x{0} px", self.step())
    }
}

/// The layers of a network for images of one size.
#[derive(Debug)]
pub struct Schedule {
    /// The planes of both views.
    pub planes: Place,
    pub steps: Vec<Step>,
    /// The logits, two bytes each.
    pub head: Place,
    /// Memory of all values.
    pub bytes: usize,
}

/// Place of a value in the memory of all values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// First byte: a multiple of [`ALIGNMENT`].
    pub offset: usize,
    /// Cells in a row and rows, as stored.
    pub width: usize,
    pub height: usize,
    /// Words of a cell: 1 for the planes, else a multiple of 4.
    pub words: usize,
    /// 2 for values of each view, else 1.
    pub views: usize,
    /// Cell (x, y) is at (x >> doublings, y >> doublings).
    pub doublings: u32,
}

impl Place {
    /// Bytes of a view.
    pub fn view_bytes(&self) -> usize {
        4 * self.words * self.width * self.height
    }
}

/// A layer: it writes one value, for as many views as that has.
#[derive(Debug)]
pub struct Step {
    /// One or more for a convolution, of one size and concatenated; the features for a correlation, which reads both
    /// views of them.
    pub inputs: Vec<Place>,
    pub output: Place,
    pub work: Work,
}

#[derive(Debug)]
pub enum Work {
    Convolution(Convolution),
    /// The second number: channels of a group.
    Correlation(Correlation, usize),
}

/// A convolution with its weights in words.
#[derive(Debug)]
pub struct Convolution {
    /// 1 or 3.
    pub kernel: usize,
    pub stride: usize,
    pub dilation: usize,
    pub low: i32,
    pub high: i32,
    /// Value that is added to the limited result; the sum is limited to 0..=127.
    pub add: Option<Place>,
    /// Whether results have two bytes: the logits.
    pub is_wide: bool,
    /// Output channels in blocks of 16.
    pub blocks: usize,
    /// `[input][tap][word][output channel]`: four input channels in a word. Of planes, which have one word, the taps
    /// are rounded up to a multiple of 4 by words of 0.
    pub weights: Vec<u32>,
    /// `[output channel]`; 0 beyond the last.
    pub biases: Vec<i32>,
    pub shifts: Vec<i32>,
}

impl Schedule {
    /// Arranges a network for images of a size.
    pub fn new(network: &Network, size: (usize, usize)) -> Self {
        let layers: Vec<&Layer> = network.view.iter().chain(&network.pair).collect();
        let mut places: Vec<Place> =
            (0..network.values.len()).map(|value| place(network, value, size)).collect();
        // Stored values of doubled ones; layers are in order.
        let mut stored: Vec<usize> = (0..places.len()).collect();
        for layer in layers.iter().filter(|layer| matches!(layer.operation, Operation::Double)) {
            let of = layer.inputs[0];
            stored[layer.output] = stored[of];
            places[layer.output] = Place { doublings: places[of].doublings + 1, ..places[of] };
        }
        let lives = lives(network, &layers, &stored);
        let bytes = arrange(&mut places, &stored, &lives);
        let steps = layers.iter().filter_map(|layer| step(network, layer, &places)).collect();
        Self { planes: places[0], steps, head: places[network.head], bytes }
    }
}

/// The place of a value that is not doubled, without its offset.
fn place(network: &Network, value: usize, size: (usize, usize)) -> Place {
    let (width, height) = network.size_of(value, size);
    let words = network.values[value].channels.next_multiple_of(BLOCK) / FOUR;
    let words = match value {
        0 => PLANES / FOUR,
        value if value == network.head => 2 * words,
        _ => words,
    };
    let of_view = value == 0 || network.view.iter().any(|layer| layer.output == value);
    Place { offset: 0, width, height, words, views: 1 + usize::from(of_view), doublings: 0 }
}

/// The layers that write and last read each stored value, counted from 1.
fn lives(network: &Network, layers: &[&Layer], stored: &[usize]) -> Vec<(usize, usize)> {
    let mut lives = vec![(0, 0); stored.len()];
    for (layer, number) in layers.iter().zip(1..) {
        if stored[layer.output] == layer.output {
            lives[layer.output] = (number, number);
        }
        let add = match &layer.operation {
            Operation::Convolution(convolution) => convolution.add,
            _ => None,
        };
        for &value in layer.inputs.iter().chain(&add) {
            lives[stored[value]].1 = number;
        }
    }
    lives[network.head].1 = layers.len() + 1;
    lives
}

/// Gives each stored value the first room that no other one has during its life; returns the bytes of all.
fn arrange(places: &mut [Place], stored: &[usize], lives: &[(usize, usize)]) -> usize {
    let bytes = |place: &Place| (place.views * place.view_bytes()).next_multiple_of(ALIGNMENT);
    let mut all = 0;
    for value in 0..places.len() {
        if stored[value] != value {
            places[value].offset = places[stored[value]].offset;
            continue;
        }
        let (begin, end) = lives[value];
        let meanwhile =
            (0..value).filter(|&other| lives[other].0 <= end && begin <= lives[other].1);
        let meanwhile = meanwhile.filter(|&other| stored[other] == other);
        let mut taken: Vec<(usize, usize)> = meanwhile
            .map(|other| (places[other].offset, places[other].offset + bytes(&places[other])))
            .collect();
        taken.sort_unstable();
        let needed = bytes(&places[value]);
        let mut offset = 0;
        for (first, behind) in taken {
            if offset + needed <= first {
                break;
            }
            offset = offset.max(behind);
        }
        places[value].offset = offset;
        all = all.max(offset + needed);
    }
    all
}

/// The step of a layer; `None` for a doubling.
fn step(network: &Network, layer: &Layer, places: &[Place]) -> Option<Step> {
    let channels = |&value: &usize| network.values[value].channels;
    let work = match &layer.operation {
        Operation::Double => return None,
        Operation::Correlation(correlation) => {
            Work::Correlation(*correlation, channels(&layer.inputs[0]) / correlation.groups)
        }
        Operation::Convolution(convolution) => {
            let inputs: Vec<(usize, bool)> =
                layer.inputs.iter().map(|input| (channels(input), *input == 0)).collect();
            let blocks = convolution.channels_out.div_ceil(BLOCK);
            let padded = |numbers: &mut dyn Iterator<Item = i32>| {
                let numbers = numbers.chain(std::iter::repeat(0));
                numbers.take(blocks * BLOCK).collect::<Vec<i32>>()
            };
            Work::Convolution(Convolution {
                kernel: convolution.kernel,
                stride: convolution.stride,
                dilation: convolution.dilation,
                low: convolution.low.into(),
                high: convolution.high.into(),
                add: convolution.add.map(|add| places[add]),
                is_wide: layer.output == network.head,
                blocks,
                weights: weights(convolution, &inputs),
                biases: padded(&mut convolution.biases.iter().copied()),
                shifts: padded(&mut convolution.shifts.iter().map(|&shift| shift.into())),
            })
        }
    };
    let inputs = layer.inputs.iter().map(|&input| places[input]).collect();
    Some(Step { inputs, output: places[layer.output], work })
}

/// The weights in words; `inputs` has the channels of each, and whether it is the planes.
fn weights(
    convolution: &crate::matching::learned::Convolution,
    inputs: &[(usize, bool)],
) -> Vec<u32> {
    let taps = convolution.kernel * convolution.kernel;
    let padded = convolution.channels_out.next_multiple_of(BLOCK);
    let weight = |out: usize, channel: usize, tap: usize| {
        convolution.weights[(out * convolution.channels_in + channel) * taps + tap]
    };
    let mut words = Vec::new();
    let mut first = 0;
    for &(channels, is_planes) in inputs {
        let (rows, of_tap) = match is_planes {
            true => (taps.next_multiple_of(FOUR), 1),
            false => {
                let of_tap = channels.next_multiple_of(BLOCK) / FOUR;
                (taps * of_tap, of_tap)
            }
        };
        for (row, out) in (0..rows).flat_map(|row| (0..padded).map(move |out| (row, out))) {
            let (tap, word) = (row / of_tap, row % of_tap);
            words.push(u32::from_le_bytes([0, 1, 2, 3].map(|k| {
                let channel = FOUR * word + k;
                let exists = tap < taps && channel < channels && out < convolution.channels_out;
                if exists { weight(out, first + channel, tap) as u8 } else { 0 }
            })));
        }
        first += channels;
    }
    words
}
