//! Convolutions: sums of products of activations and weights, and what becomes of the sums.
//!
//! A *tile* is a few pixels of a row and up to four blocks of 16 output channels. Its sums stay in registers while
//! all taps are added, four input channels at a time.

pub(super) use super::device::{BLOCK, FOUR};
use super::{Instructions, Plane, Rows};
use crate::engine::cpu::team::Team;
use crate::matching::learned::{ACTIVATION_MAX, Convolution};

/// Weights of a block for four input channels.
pub(super) const STEP: usize = BLOCK * FOUR;
const BLOCKS_MAX: usize = 4;

/// Sums of a block of output channels for one pixel.
pub(super) type Sums = [i32; BLOCK];

/// Weights of a convolution in the order in which tiles read them.
pub(super) struct Packed {
    instructions: Instructions,
    kernel: usize,
    stride: usize,
    dilation: usize,
    /// Limits of the result.
    limits: (i32, i32),
    /// Whether results have two bytes.
    is_wide: bool,
    /// First block and number of blocks of each group of output channels.
    groups: Vec<(usize, usize)>,
    /// Four input channels at a time, of all taps.
    steps: usize,
    /// [group][tap][four input channels][output and input channel, in the order of the instructions].
    weights: Vec<i8>,
    /// [output channel]; 0 beyond the last.
    biases: Vec<i32>,
    shifts: Vec<i32>,
}

/// A place of the kernel in one of the inputs.
#[derive(Clone, Copy)]
pub(super) struct Tap {
    /// First channel for the first pixel of the output row.
    pub first: *const u8,
    /// Bytes to the first channel for the next pixel.
    pub pixel: usize,
    /// Channels, in fours.
    pub fours: usize,
}

/// A row of the output, of the channels of one group.
pub(super) struct Row<'a> {
    pub taps: &'a [Tap],
    pub width: usize,
    pub blocks: usize,
    weights: *const i8,
    biases: *const i32,
    shifts: *const i32,
    limits: (i32, i32),
    is_wide: bool,
    /// First pixel, and bytes to the next one.
    out: (*mut u8, usize),
    add: Option<(*const u8, usize)>,
}

/// Instructions for the sums of a tile.
pub(super) trait Products {
    /// Returns the sums of P pixels from the address of each tap on, and of Q blocks.
    ///
    /// # Safety
    /// The machine has the instructions. The addresses are those of a [`Row`], and P more pixels exist there.
    unsafe fn sums<const P: usize, const Q: usize>(
        taps: &[Tap],
        x: usize,
        weights: *const i8,
        biases: *const i32,
    ) -> [[Sums; Q]; P];

    /// Shifts and limits the sums of a block, adds what is to be added and writes the results.
    ///
    /// # Safety
    /// The machine has the instructions. There are 16 shifts, numbers to be added and places for results.
    #[inline(always)]
    unsafe fn store(
        sums: &Sums,
        shifts: *const i32,
        (low, high): (i32, i32),
        add: Option<*const u8>,
        out: *mut u8,
        is_wide: bool,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let (mut values, shifts) = (*sums, shifts.cast::<Sums>().read());
            for (value, shift) in values.iter_mut().zip(shifts) {
                *value = (*value >> (shift & 31)).max(low).min(high);
            }
            if let Some(add) = add {
                for (value, add) in values.iter_mut().zip(add.cast::<[u8; BLOCK]>().read()) {
                    *value = (*value + i32::from(add)).max(0).min(ACTIVATION_MAX.into());
                }
            }
            if is_wide {
                out.cast::<[i16; BLOCK]>().write_unaligned(values.map(|value| value as i16));
            } else {
                out.cast::<[u8; BLOCK]>().write(values.map(|value| value as u8));
            }
        }
    }
}

impl Packed {
    /// `channels` are those of each input; `is_wide`: results have two bytes.
    pub fn new(
        convolution: &Convolution,
        channels: &[usize],
        is_wide: bool,
        instructions: Instructions,
    ) -> Self {
        let Convolution { channels_out, kernel, stride, dilation, low, high, .. } = *convolution;
        let blocks = channels_out.div_ceil(BLOCK);
        // Groups of nearly the same number of blocks.
        let count = blocks.div_ceil(instructions.blocks());
        let first = |group: usize| group * blocks / count;
        let groups = (0..count).map(|group| (first(group), first(group + 1) - first(group)));
        let groups: Vec<(usize, usize)> = groups.collect();
        // First channels and number of channels of the steps of one place of the kernel.
        let fours = channels.iter().scan(0, |start, &count| {
            let four = move |first: usize, start: usize| (start + first, FOUR.min(count - first));
            let of_input: Vec<_> =
                (0..count).step_by(FOUR).map(|first| four(first, *start)).collect();
            *start += count;
            Some(of_input)
        });
        let places = kernel * kernel;
        let inputs: Vec<Vec<(usize, usize)>> = fours.collect();
        let mut weights = Vec::new();
        for &(first, count) in &groups {
            for (input, place) in
                inputs.iter().flat_map(|i| (0..places).map(move |place| (i, place)))
            {
                for &(channel, four) in input {
                    let at = |out: usize, k: usize| {
                        let index = (out * convolution.channels_in + channel + k) * places + place;
                        if out < channels_out && k < four { convolution.weights[index] } else { 0 }
                    };
                    let lanes = first * BLOCK..(first + count) * BLOCK;
                    for i in 0..FOUR * lanes.len() {
                        let (lane, k) = instructions.place(i, lanes.len());
                        weights.push(at(lanes.start + lane, k));
                    }
                }
            }
        }
        let padded = |values: &mut dyn Iterator<Item = i32>| {
            let mut values: Vec<i32> = values.collect();
            values.resize(blocks * BLOCK, 0);
            values
        };
        Self {
            instructions,
            kernel,
            stride,
            dilation,
            limits: (low.into(), high.into()),
            is_wide,
            groups,
            steps: places * inputs.iter().map(Vec::len).sum::<usize>(),
            weights,
            biases: padded(&mut convolution.biases.iter().copied()),
            shifts: padded(&mut convolution.shifts.iter().map(|&shift| i32::from(shift))),
        }
    }

    /// Computes all rows of the output.
    pub fn run(&self, team: &mut Team, inputs: &[&Plane], add: Option<&Plane>, output: &mut Plane) {
        let (width, height, pixel) = (output.width, output.height, output.pixel);
        let rows = output.rows();
        // All rows of a group before the next group, so that its weights stay in the cache.
        team.share(self.groups.len() * height, &|_, pieces| {
            let mut taps = Vec::with_capacity(inputs.len() * self.kernel * self.kernel);
            for piece in pieces {
                let (group, y) = (piece / height, piece % height);
                let (first, blocks) = self.groups[group];
                taps.clear();
                inputs.iter().for_each(|input| self.push_taps(input, y, &mut taps));
                let channel = first * BLOCK;
                let row = Row {
                    taps: &taps,
                    width,
                    blocks,
                    weights: self.weights[first * self.steps * STEP..].as_ptr(),
                    biases: self.biases[channel..].as_ptr(),
                    shifts: self.shifts[channel..].as_ptr(),
                    limits: self.limits,
                    is_wide: self.is_wide,
                    out: (out_channel(&rows, y, channel, self.is_wide), pixel),
                    add: add.map(|add| (add.data[add.start(y) + channel..].as_ptr(), add.pixel)),
                };
                // SAFETY: the machine has the instructions, the planes have the size of the layer and a margin
                // as wide as its kernel, and every piece has its own part of the output.
                unsafe { self.instructions.row(&row) }
            }
        });
    }

    fn push_taps(&self, input: &Plane, y: usize, taps: &mut Vec<Tap>) {
        // Place of the kernel's first row and column, counted from the corner of the margin.
        let origin = input.margin - self.dilation * (self.kernel / 2);
        for (ky, kx) in (0..self.kernel).flat_map(|y| (0..self.kernel).map(move |x| (y, x))) {
            let (row, column) =
                (origin + y * self.stride + ky * self.dilation, origin + kx * self.dilation);
            taps.push(Tap {
                first: input.data[row * input.pitch() + column * input.pixel..].as_ptr(),
                pixel: self.stride * input.pixel,
                fours: input.channels.div_ceil(FOUR),
            });
        }
    }
}

fn out_channel(rows: &Rows<u8>, y: usize, channel: usize, is_wide: bool) -> *mut u8 {
    rows.start(y).wrapping_add(if is_wide { 2 * channel } else { channel })
}

impl Instructions {
    /// Most blocks of a tile.
    fn blocks(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => BLOCKS_MAX,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => 1,
            #[cfg(target_arch = "aarch64")]
            Self::NeonDot | Self::Neon => 1,
            Self::Portable => BLOCKS_MAX,
        }
    }

    /// Returns output and input channel of weight `i` of those for four input channels and `lanes` output channels.
    fn place(self, i: usize, lanes: usize) -> (usize, usize) {
        match self {
            Self::Portable => (i % lanes, i / lanes),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 | Self::Avx2 => (i / FOUR, i % FOUR),
            #[cfg(target_arch = "aarch64")]
            Self::NeonDot | Self::Neon => (i / FOUR, i % FOUR),
        }
    }
}

/// Computes a row in tiles of P pixels and Q blocks. The last tile overlaps the one before; narrow rows are
/// computed pixel by pixel.
///
/// # Safety
/// As [`Instructions::row`], and the row has Q blocks.
#[inline(always)]
pub(super) unsafe fn tiles<S: Products, const P: usize, const Q: usize>(row: &Row<'_>) {
    let last = row.width.checked_sub(P);
    // SAFETY: the caller's promise; all pixels of the tiles are in the row.
    unsafe {
        match last {
            Some(last) => {
                for x in (0..last).step_by(P).chain([last]) {
                    tile::<S, P, Q>(row, x);
                }
            }
            None => (0..row.width).for_each(|x| tile::<S, 1, Q>(row, x)),
        }
    }
}

/// Computes P pixels from pixel `x` on.
///
/// # Safety
/// As [`tiles`], and the pixels are in the row.
#[inline(always)]
unsafe fn tile<S: Products, const P: usize, const Q: usize>(row: &Row<'_>, x: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let sums = S::sums::<P, Q>(row.taps, x, row.weights, row.biases);
        for (p, sums) in sums.iter().enumerate() {
            for (q, sums) in sums.iter().enumerate() {
                let channel = q * BLOCK;
                let add = row.add.map(|(first, pixel)| first.add((x + p) * pixel + channel));
                let bytes = if row.is_wide { 2 * channel } else { channel };
                let out = row.out.0.add((x + p) * row.out.1 + bytes);
                S::store(sums, row.shifts.add(channel), row.limits, add, out, row.is_wide);
            }
        }
    }
}
