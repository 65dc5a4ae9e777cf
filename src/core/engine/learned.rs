//! The learned prior on the CPU: the numbers of [`matching::learned`](crate::matching::learned), vectorised and
//! threaded.
//!
//! Values are stored channels last, one byte each, with a margin of zeros around the image that is as wide as the
//! reach of the convolutions that read it. So a convolution is a sum over *taps*, places of the kernel in one of
//! its inputs, without any border. A piece of work is one row of the output and up to 64 of its channels. All
//! memory is allocated once; margins are never written.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod convolution;
pub mod device;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::cpu::placement::Host;
use super::cpu::team::Team;
use super::cpu::{CpuOptions, Simd};
use crate::frame::Image;
use crate::matching::learned::{
    ACTIVATION_MAX, Correlation, Layer, Network, Operation, PLANES, Prediction, prior_row,
};
use crate::memory::{Budget, Reserved, product};
use convolution::{Packed, Row};
use device::{BLOCK, HalvedNetwork};

/// A network, prepared for images of one size.
pub struct LearnedPrior {
    network: Arc<Network>,
    size: (usize, usize),
    /// Size of the prior maps.
    map: (usize, usize),
    /// Convolutions by the number of their output.
    packed: Vec<Option<Packed>>,
    planes: Vec<Plane>,
    right_features: Plane,
    prediction: Prediction,
    team: Team,
    host: Host,
    _memory: Option<Reserved>,
}

/// Advice to need less memory.
pub const CURE: &str = "`prior_size` 1/2 or 1/4, a smaller picture";

/// Bytes from a pixel of a value to the next one: its channels, rounded up; logits have two bytes.
fn bytes_of_pixel(network: &Network, value: usize) -> usize {
    let blocks = network.values[value].channels.next_multiple_of(BLOCK);
    match value {
        0 => PLANES,
        value if value == network.head => 2 * blocks,
        _ => blocks,
    }
}

/// Estimates the memory for images of a size; margins and weights are small beside it.
fn bytes_of(network: &Network, size: (usize, usize)) -> u64 {
    let of_value = |value: usize| {
        let (width, height) = network.size_of(value, size);
        product([width, height, bytes_of_pixel(network, value)])
    };
    (0..network.values.len()).map(of_value).sum::<u64>() + of_value(network.features)
}

/// Instructions that compute the convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// AVX-512 with VNNI.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// NEON with the dot products of `dotprod`.
    #[cfg(target_arch = "aarch64")]
    NeonDot,
    #[cfg(target_arch = "aarch64")]
    Neon,
    Portable,
}

impl Instructions {
    /// Returns those that this machine has, the fastest first.
    pub fn available() -> Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            let vnni = std::is_x86_feature_detected!("avx512f")
                && std::is_x86_feature_detected!("avx512bw")
                && std::is_x86_feature_detected!("avx512vl")
                && std::is_x86_feature_detected!("avx512vnni");
            let avx2 = std::is_x86_feature_detected!("avx2");
            let all = [(vnni, Self::Avx512), (avx2, Self::Avx2), (true, Self::Portable)];
            all.into_iter().filter(|(has, _)| *has).map(|(_, instructions)| instructions).collect()
        }
        #[cfg(target_arch = "aarch64")]
        {
            let dot = std::arch::is_aarch64_feature_detected!("dotprod").then_some(Self::NeonDot);
            dot.into_iter().chain([Self::Neon, Self::Portable]).collect()
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        vec![Self::Portable]
    }

    /// Returns those that go with the vectors of the CPU engine.
    fn of(simd: Simd) -> Self {
        match (simd, Self::available()[0]) {
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx512, best) => best,
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx2, Self::Avx512 | Self::Avx2) => Self::Avx2,
            #[cfg(target_arch = "aarch64")]
            (Simd::Neon, best) => best,
            _ => Self::Portable,
        }
    }

    /// Computes a row.
    ///
    /// # Safety
    /// The machine has the instructions, and the addresses of the row are valid for all its pixels and blocks.
    unsafe fn row(self, row: &Row<'_>) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                #[cfg(target_arch = "x86_64")]
                Self::Avx512 => avx512::row(row),
                #[cfg(target_arch = "x86_64")]
                Self::Avx2 => avx2::row(row),
                #[cfg(target_arch = "aarch64")]
                Self::NeonDot => neon::row_with_dot(row),
                #[cfg(target_arch = "aarch64")]
                Self::Neon => neon::row(row),
                Self::Portable => portable::row(row),
            }
        }
    }
}

/// Memory of one value, [y][x][channel], with its margin.
#[derive(Default)]
struct Plane {
    width: usize,
    height: usize,
    channels: usize,
    /// Bytes from a pixel to the next one: the channels, rounded up. Those added are 0, or nothing reads them.
    pixel: usize,
    /// Pixels of zeros on each side.
    margin: usize,
    data: Vec<u8>,
}

/// Bytes after a plane, because blocks of channels are read and written whole.
const SLACK: usize = 64;

impl Plane {
    fn new(
        (width, height): (usize, usize),
        (channels, pixel): (usize, usize),
        margin: usize,
    ) -> Self {
        let len = (width + 2 * margin) * (height + 2 * margin) * pixel + SLACK;
        Self { width, height, channels, pixel, margin, data: vec![0; len] }
    }

    /// Bytes from a row to the next one.
    fn pitch(&self) -> usize {
        (self.width + 2 * self.margin) * self.pixel
    }

    /// Index of the first pixel of row `y`.
    fn start(&self, y: usize) -> usize {
        (y + self.margin) * self.pitch() + self.margin * self.pixel
    }

    /// Row `y` without its margin.
    fn row(&self, y: usize) -> &[u8] {
        &self.data[self.start(y)..][..self.width * self.pixel]
    }

    fn rows(&mut self) -> Rows<u8> {
        let (first, pitch) = (self.start(0), self.pitch());
        Rows { first: self.data[first..].as_mut_ptr(), pitch, len: self.width * self.pixel }
    }
}

/// Rows of an image under construction; every thread writes its own parts.
struct Rows<T> {
    first: *mut T,
    /// Elements from a row to the next one, and of a row.
    pitch: usize,
    len: usize,
}

// SAFETY: the threads write different parts, and the image outlives the task.
unsafe impl<T> Sync for Rows<T> {}

impl<T> Rows<T> {
    /// Rows without margins.
    fn of(image: &mut [T], width: usize) -> Self {
        Self { first: image.as_mut_ptr(), pitch: width, len: width }
    }

    fn start(&self, y: usize) -> *mut T {
        self.first.wrapping_add(y * self.pitch)
    }

    /// Row `y`.
    ///
    /// # Safety
    /// The row exists and is borrowed once.
    #[allow(clippy::mut_from_ref)]
    unsafe fn row(&self, y: usize) -> &mut [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start(y), self.len) }
    }
}

impl LearnedPrior {
    /// Prepares a network for pairs and prior maps of these sizes.
    ///
    /// # Errors
    /// If the budget of the process lacks the memory, or a thread cannot be started or placed.
    pub fn new(
        network: &HalvedNetwork,
        pairs: (usize, usize),
        map: (usize, usize),
        options: CpuOptions,
    ) -> anyhow::Result<Self> {
        let (size, step) = (network.image_size(pairs), network.step());
        let network = network.network.clone();
        let what = format!("the network as prior at {}x{}", size.0, size.1);
        let memory = Budget::of_process().reserve(what, bytes_of(&network, size), CURE)?;
        let (simd, team, host) = options.start_team()?;
        let mut made = Self::with_team(network, size, team, Instructions::of(simd));
        made.prediction.step = step;
        Ok(Self { map, host, _memory: Some(memory), ..made })
    }

    fn with_team(
        network: Network,
        size: (usize, usize),
        team: Team,
        instructions: Instructions,
    ) -> Self {
        let mut margins = vec![0; network.values.len()];
        let mut packed: Vec<Option<Packed>> = network.values.iter().map(|_| None).collect();
        for layer in network.view.iter().chain(&network.pair) {
            if let Operation::Convolution(convolution) = &layer.operation {
                for &input in &layer.inputs {
                    let reach = convolution.dilation * (convolution.kernel / 2);
                    margins[input] = reach.max(margins[input]);
                }
                let channels: Vec<usize> =
                    layer.inputs.iter().map(|&input| network.values[input].channels).collect();
                packed[layer.output] = Some(Packed::new(
                    convolution,
                    &channels,
                    layer.output == network.head,
                    instructions,
                ));
            }
        }
        let plane = |(value, margin): (usize, usize)| {
            let shape = (network.values[value].channels, bytes_of_pixel(&network, value));
            Plane::new(network.size_of(value, size), shape, margin)
        };
        let planes: Vec<Plane> = margins.iter().copied().enumerate().map(plane).collect();
        let right_features = plane((network.features, margins[network.features]));
        let (width, height) = network.size_of(network.head, size);
        let (step, threshold) = (network.step, network.threshold);
        let (disparity, confidence) = (vec![0; width * height], vec![0; width * height]);
        let prediction = Prediction { width, height, step, threshold, disparity, confidence };
        Self {
            network: Arc::new(network),
            size,
            map: (size.0.div_ceil(2), size.1.div_ceil(2)),
            packed,
            planes,
            right_features,
            prediction,
            team,
            host: Host::default(),
            _memory: None,
        }
    }

    /// Returns the prior map of a pair: the expected disparity of every pixel of the half-size images, in 1/16 px of
    /// that size.
    ///
    /// # Panics
    /// If an image has another size than the one that was prepared for.
    pub fn predict(&mut self, left: &Image, right: &Image) -> Vec<i16> {
        let mut host = std::mem::take(&mut self.host);
        let map = host.run(|| {
            self.run(left, right);
            let (width, height) = self.map;
            let mut map = vec![0; width * height];
            let (rows, prediction) = (Rows::of(&mut map, width), &self.prediction);
            self.team.rows(height, |_, piece| {
                // SAFETY: every row belongs to one piece.
                piece.for_each(|y| prior_row(prediction, y, unsafe { rows.row(y) }));
            });
            map
        });
        self.host = host;
        map
    }

    /// Computes the prediction of a pair.
    fn run(&mut self, left: &Image, right: &Image) -> &Prediction {
        let network = Arc::clone(&self.network);
        // The left view is the last one, because the layers of the pair read its values.
        for image in [right, left] {
            assert_eq!((image.width(), image.height()), self.size, "size of views");
            std::mem::swap(&mut self.right_features, &mut self.planes[network.features]);
            self.fill_planes(image);
            network.view.iter().for_each(|layer| self.run_layer(layer));
        }
        network.pair.iter().for_each(|layer| self.run_layer(layer));
        self.decode(&network);
        &self.prediction
    }

    /// Computes the inputs of the first convolution.
    fn fill_planes(&mut self, image: &Image) {
        let plane = &mut self.planes[0];
        let (width, height, rows) = (plane.width, plane.height, plane.rows());
        self.team.rows(height, |_, piece| {
            // Three rows, their first and last pixel repeated.
            let mut around = [(); 3].map(|()| vec![0; width + 2]);
            for y in piece {
                for (k, row) in around.iter_mut().enumerate() {
                    let y = (y + k).saturating_sub(1).min(height - 1).min(image.height() - 1);
                    let pixels = image.row(y);
                    row[0] = pixels[0];
                    row[1..=pixels.len()].copy_from_slice(pixels);
                    row[pixels.len() + 1..].fill(pixels[pixels.len() - 1]);
                }
                // SAFETY: every row belongs to one piece.
                planes_of_row(around.each_ref().map(|row| &row[..]), unsafe { rows.row(y) });
            }
        });
    }

    fn run_layer(&mut self, layer: &Layer) {
        let mut output = std::mem::take(&mut self.planes[layer.output]);
        let input = &self.planes[layer.inputs[0]];
        let rows = output.rows();
        match &layer.operation {
            Operation::Convolution(convolution) => {
                if let Some(packed) = &self.packed[layer.output] {
                    let inputs: Vec<&Plane> =
                        layer.inputs.iter().map(|&i| &self.planes[i]).collect();
                    let add = convolution.add.map(|add| &self.planes[add]);
                    packed.run(&mut self.team, &inputs, add, &mut output);
                }
            }
            Operation::Correlation(correlation) => {
                let right = &self.right_features;
                let channels = self.network.values[layer.inputs[0]].channels / correlation.groups;
                let (size, pixel) = ((output.width, channels), output.pixel);
                self.team.share(output.height, &|_, pieces| {
                    let mut scratch = Vec::new();
                    for y in pieces {
                        // SAFETY: every row belongs to one piece.
                        let out = unsafe { rows.row(y) };
                        correlate(
                            correlation,
                            [input.row(y), right.row(y)],
                            size,
                            &mut scratch,
                            (out, pixel),
                        );
                    }
                });
            }
            Operation::Double => {
                self.team.rows(output.height, |_, piece| {
                    for y in piece {
                        // SAFETY: every row belongs to one piece.
                        let out = unsafe { rows.row(y) }.chunks_exact_mut(2 * input.pixel);
                        for (two, one) in out.zip(input.row(y / 2).chunks_exact(input.pixel)) {
                            two.chunks_exact_mut(input.pixel)
                                .for_each(|out| out.copy_from_slice(one));
                        }
                    }
                });
            }
        }
        self.planes[layer.output] = output;
    }

    fn decode(&mut self, network: &Network) {
        let Self { prediction, planes, team, .. } = self;
        let (head, width) = (&planes[network.head], prediction.width);
        let disparity = Rows::of(&mut prediction.disparity, width);
        let confidence = Rows::of(&mut prediction.confidence, width);
        team.rows(prediction.height, |_, piece| {
            let mut logits = vec![0; network.candidates + 1];
            for y in piece {
                // SAFETY: every row belongs to one piece.
                let out = unsafe { disparity.row(y).iter_mut().zip(confidence.row(y)) };
                for ((disparity, confidence), cell) in out.zip(head.row(y).chunks_exact(head.pixel))
                {
                    let (pairs, _) = cell.as_chunks::<2>();
                    logits
                        .iter_mut()
                        .zip(pairs)
                        .for_each(|(logit, &pair)| *logit = i16::from_ne_bytes(pair));
                    (*disparity, *confidence) = network.decode(&logits);
                }
            }
        });
    }
}

/// Computes a row of `image_planes`, four bytes a pixel, from three rows with a further pixel on each side.
fn planes_of_row(rows: [&[u8]; 3], out: &mut [u8]) {
    let count = out.len() / PLANES;
    let wide = |row: usize, k: usize| &rows[row][k..][..count];
    let [a, b, c] = [wide(0, 0), wide(0, 1), wide(0, 2)];
    let [d, e, f] = [wide(1, 0), wide(1, 1), wide(1, 2)];
    let [g, h, i] = [wide(2, 0), wide(2, 1), wide(2, 2)];
    let limited = |value: i16| (64 + value).clamp(0, ACTIVATION_MAX) as u8;
    for (x, out) in out.as_chunks_mut::<PLANES>().0.iter_mut().enumerate() {
        let at = |row: &[u8]| i16::from(row[x]);
        let total = at(a) + at(b) + at(c) + at(d) + at(e) + at(f) + at(g) + at(h) + at(i);
        let mean = ((total + 4) as u16 / 9) as i16;
        *out = [
            e[x] >> 1,
            limited(at(f) - at(d)),
            limited(at(h) - at(b)),
            limited(4 * (at(e) - mean)),
        ];
    }
}

/// Compares the features of a row, of `channels` channels in each group. `scratch` keeps its memory.
fn correlate(
    correlation: &Correlation,
    views: [&[u8]; 2],
    (width, channels): (usize, usize),
    scratch: &mut Vec<i16>,
    (out, out_pixel): (&mut [u8], usize),
) {
    let Correlation { candidates, groups, shift } = *correlation;
    let pixel = views[0].len() / width;
    // Left and right features, [channel][x]; before those of the right row, zeros for cells outside the image.
    let (left_len, right_len) = (pixel * width, pixel * (width + candidates));
    scratch.clear();
    scratch.resize(left_len + right_len, 0);
    let (left, right) = scratch.split_at_mut(left_len);
    for (channels, (view, before)) in
        [(&mut *left, (views[0], 0)), (&mut *right, (views[1], candidates))]
    {
        for (channel, row) in channels.chunks_exact_mut(width + before).enumerate() {
            let values = view[channel..].iter().step_by(pixel);
            row[before..]
                .iter_mut()
                .zip(values)
                .for_each(|(to, &value)| *to = i16::from(value as i8));
        }
    }
    let of_channel = |channel: usize| channel * (width + candidates);
    let mut sums = vec![0i32; width];
    for (group, d) in (0..groups).flat_map(|g| (0..candidates).map(move |d| (g, d))) {
        sums.fill(0);
        for first in (group * channels..(group + 1) * channels).step_by(2) {
            // Two products fit in 16 bits. Without a second channel, its products are not counted.
            let count = (first + 2).min((group + 1) * channels) - first;
            let factor = (count - 1) as i16;
            let [a, b] = [first, first + count - 1].map(|channel| {
                let right = &right[of_channel(channel) + candidates - d..][..width];
                (&left[channel * width..][..width], right)
            });
            let (first, second) = (a.0.iter().zip(a.1), b.0.iter().zip(b.1));
            for (sum, ((a, b), (c, d))) in sums.iter_mut().zip(first.zip(second)) {
                *sum += i32::from(a * b + factor * c * d);
            }
        }
        let out = out[group * candidates + d..].iter_mut().step_by(out_pixel);
        for (out, &sum) in out.zip(&sums) {
            *out = (sum >> shift).clamp(0, ACTIVATION_MAX.into()) as u8;
        }
    }
}
