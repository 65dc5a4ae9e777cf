//! The learned prior: a small network that predicts roughly where surfaces are.
//!
//! The network divides the images into *cells* of `step` x `step` px and predicts one disparity and one confidence
//! for each. Activations and weights are integers, so every engine computes the same numbers. Layers run one after
//! the other: those of the first list on each view, those of the second on what both views give.
//! `scripts/learned_prior` trains networks and contains the same arithmetic in numpy. [`file`](self::file) reads
//! networks.

pub mod file;
mod map;
#[cfg(test)]
pub(crate) mod tests;

pub use map::{prior_map, prior_row};

use crate::frame::Image;

/// Values of the images that the first convolution reads, per pixel.
pub const PLANES: usize = 4;
/// Largest number of pixels of images that [`Cells::Auto`] gives to the fine network.
pub const FINE_MAX: usize = 500_000;
/// Largest activation; the least is 0, for features to be compared -127.
pub const ACTIVATION_MAX: i16 = 127;

/// A trained network.
///
/// Layers read and write numbered *values*, images of several channels. Value 0 has the [`image_planes`] of a view.
#[derive(Clone, Debug)]
pub struct Network {
    /// Side of a cell in pixels. Candidate k is a disparity of k * `step` px.
    pub step: usize,
    /// Images are enlarged to a multiple of this size.
    pub multiple: usize,
    /// Number of candidates.
    pub candidates: usize,
    /// Candidates on either side of the best that the disparity is averaged over.
    pub reach: usize,
    /// Weight of a candidate whose logit is t below the best, `[t]`.
    pub table: Vec<u8>,
    /// Least confidence of a cell that counts as known.
    pub threshold: i16,
    /// Shapes of the values.
    pub values: Vec<Value>,
    /// Layers of each view.
    pub view: Vec<Layer>,
    /// Layers of the pair; they see the left view's values and the features of both.
    pub pair: Vec<Layer>,
    /// Number of the value with the features to be compared.
    pub features: usize,
    /// Number of the value with the logits of the candidates and of the confidence.
    pub head: usize,
}

/// Cells of the program's own network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cells {
    /// Fine for images of up to [`FINE_MAX`] pixels, else coarse.
    #[default]
    Auto,
    /// 4 x 4 px, and 48 candidates: four times the work of the coarse ones.
    Fine,
    /// 8 x 8 px, and 24 candidates.
    Coarse,
}

/// Shape of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// Numbers per cell.
    pub channels: usize,
    /// Pixels of the enlarged images per row and column of the value.
    pub size: usize,
}

/// A layer: it writes one value.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Values that it reads, concatenated in this order.
    pub inputs: Vec<usize>,
    /// Value that it writes.
    pub output: usize,
    /// Arithmetic between them.
    pub operation: Operation,
}

/// Arithmetic of a layer.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Weighted sums of a neighbourhood.
    Convolution(Convolution),
    /// Comparison of the two views.
    Correlation(Correlation),
    /// Every cell becomes 2 x 2 cells.
    Double,
}

/// A convolution: zero-padded so that stride 1 keeps the size.
#[derive(Clone, Debug)]
pub struct Convolution {
    /// Channels of all inputs together.
    pub channels_in: usize,
    /// Channels of the output.
    pub channels_out: usize,
    /// Rows and columns of weights: 1 or 3.
    pub kernel: usize,
    /// Input cells from a cell of the output to the next one: 1 or 2.
    pub stride: usize,
    /// Input cells from a weight to the next one.
    pub dilation: usize,
    /// Least result, at most 0.
    pub low: i16,
    /// Greatest result, at least 0.
    pub high: i16,
    /// Value that is added to the limited result; the sum is limited to 0..=127.
    pub add: Option<usize>,
    /// Weights -127..=127, `[out][in][y][x]`.
    pub weights: Vec<i8>,
    /// Numbers that are added to the sums, `[out]`; half of 2^shift included, so that the shift rounds.
    pub biases: Vec<i32>,
    /// Bits that the sums lose, `[out]`.
    pub shifts: Vec<u8>,
}

/// Comparison of the features of a left cell with those of right cells, in groups of channels.
#[derive(Clone, Copy, Debug)]
pub struct Correlation {
    /// Number of right cells per left cell.
    pub candidates: usize,
    /// Number of groups of channels.
    pub groups: usize,
    /// Bits that the sums lose.
    pub shift: u8,
}

/// Output of a network, `[cell]`; cell (x, y) covers the pixels from (x * `step`, y * `step`) on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prediction {
    /// Cells in a row.
    pub width: usize,
    /// Rows of cells.
    pub height: usize,
    /// Side of a cell in pixels.
    pub step: usize,
    /// Least confidence of a cell that counts as known.
    pub threshold: i16,
    /// 1/16 of a candidate.
    pub disparity: Vec<u16>,
    /// 1/16 of the log-odds that the disparity is nearly right.
    pub confidence: Vec<i16>,
}

/// Activations of one value, `[channel][y][x]`.
#[derive(Clone, Default)]
struct Plane {
    width: usize,
    height: usize,
    data: Vec<i16>,
}

impl Network {
    /// Returns the network of the program with these cells, for images of this size.
    ///
    /// # Panics
    /// Never; a test reads both.
    pub fn own(cells: Cells, (width, height): (usize, usize)) -> Self {
        let bytes: &[u8] = match cells {
            Cells::Auto if width.saturating_mul(height) > FINE_MAX => {
                include_bytes!("eighth.prior")
            }
            Cells::Auto | Cells::Fine => include_bytes!("quarter.prior"),
            Cells::Coarse => include_bytes!("eighth.prior"),
        };
        Self::read(bytes).expect("the program's own network")
    }

    /// Returns the size of a value for images of this size.
    pub fn size_of(&self, value: usize, image: (usize, usize)) -> (usize, usize) {
        let of = |side: usize| side.next_multiple_of(self.multiple) / self.values[value].size;
        (of(image.0), of(image.1))
    }

    /// Returns the prediction for a rectified pair.
    ///
    /// # Panics
    /// If the two images differ in size, or are empty.
    pub fn run(&self, left: &Image, right: &Image) -> Prediction {
        let size = (left.width(), left.height());
        assert_eq!(size, (right.width(), right.height()), "size of views");
        let mut values = self.run_view(left);
        let right = self.run_view(right).swap_remove(self.features);
        for layer in &self.pair {
            values[layer.output] = layer.run(&values, &right);
        }
        let (width, height) = self.size_of(self.head, size);
        let logits = |cell: usize| values[self.head].data.iter().skip(cell).step_by(width * height);
        let cells = 0..width * height;
        let (disparity, confidence) =
            cells.map(|cell| self.decode(&logits(cell).copied().collect::<Vec<_>>())).unzip();
        let Self { step, threshold, .. } = *self;
        Prediction { width, height, step, threshold, disparity, confidence }
    }

    fn run_view(&self, image: &Image) -> Vec<Plane> {
        let mut values = vec![Plane::default(); self.values.len()];
        let (width, height) = self.size_of(0, (image.width(), image.height()));
        let mut data = vec![0; PLANES * width * height];
        for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
            for (channel, value) in
                image_planes(image, (width, height), x, y).into_iter().enumerate()
            {
                data[(channel * height + y) * width + x] = value;
            }
        }
        values[0] = Plane { width, height, data };
        for layer in &self.view {
            values[layer.output] = layer.run(&values, &Plane::default());
        }
        values
    }

    /// Returns the disparity in 1/16 of a candidate, and the confidence, from the logits of a cell.
    ///
    /// The disparity is the mean of the best candidate and its neighbours, weighted by the table. The smallest of
    /// equally good candidates is the best.
    pub fn decode(&self, logits: &[i16]) -> (u16, i16) {
        let (logits, confidence) = (&logits[..self.candidates], logits[self.candidates]);
        let largest = logits.iter().copied().max().unwrap_or_default();
        let best = logits.iter().position(|&logit| logit == largest).unwrap_or_default();
        let (mut total, mut moment) = (0u32, 0u32);
        let near = best.saturating_sub(self.reach)..(best + self.reach + 1).min(self.candidates);
        for candidate in near {
            let below = i32::from(largest) - i32::from(logits[candidate]);
            let weight = u32::from(self.table[(below as usize).min(self.table.len() - 1)]);
            (total, moment) = (total + weight, moment + weight * candidate as u32);
        }
        (((32 * moment + total) / (2 * total)) as u16, confidence)
    }
}

/// Returns the inputs of the first convolution at a pixel of an image whose last row and column are repeated up to
/// `size`: half the grey level; its horizontal and vertical differences plus 64; 64 plus four times its difference
/// from the mean of 3 x 3 pixels. All are limited to 0..=127; borders are repeated.
pub fn image_planes(image: &Image, size: (usize, usize), x: usize, y: usize) -> [i16; PLANES] {
    let [xs, ys] =
        [(x, size.0, image.width()), (y, size.1, image.height())].map(|(at, size, image)| {
            [at.saturating_sub(1), at, (at + 1).min(size - 1)].map(|at| at.min(image - 1))
        });
    let at = |column: usize, row: usize| i16::from(image.row(ys[row])[xs[column]]);
    let total: i16 = (0..9).map(|i| at(i % 3, i / 3)).sum();
    let limited = |value: i16| (64 + value).clamp(0, ACTIVATION_MAX);
    let (across, down) = (at(2, 1) - at(0, 1), at(1, 2) - at(1, 0));
    [at(1, 1) >> 1, limited(across), limited(down), limited(4 * (at(1, 1) - (total + 4) / 9))]
}

impl Layer {
    /// Computes the output; `right` has the right view's features.
    fn run(&self, values: &[Plane], right: &Plane) -> Plane {
        let input = &values[self.inputs[0]];
        match &self.operation {
            Operation::Convolution(convolution) => convolution.run(&self.inputs, values),
            Operation::Correlation(correlation) => correlation.run(input, right),
            Operation::Double => {
                let (width, height) = (2 * input.width, 2 * input.height);
                let row = |y: usize| &input.data[y / 2 * input.width..][..input.width];
                let rows = (0..2 * (input.data.len() / input.width)).map(row);
                let data = rows.flat_map(|row| row.iter().flat_map(|&v| [v, v])).collect();
                Plane { width, height, data }
            }
        }
    }
}

impl Convolution {
    /// Limits of what the layer writes.
    pub fn limits(&self) -> (i16, i16) {
        if self.add.is_some() { (0, ACTIVATION_MAX) } else { (self.low, self.high) }
    }

    /// limit((sum of weight * input + bias) >> shift, low, high), plus the value to be added.
    fn run(&self, inputs: &[usize], values: &[Plane]) -> Plane {
        let Plane { width, height, .. } = values[inputs[0]];
        let planes = inputs.iter().flat_map(|&i| values[i].data.chunks(width * height));
        let planes: Vec<&[i16]> = planes.collect();
        let (columns, rows) = (width.div_ceil(self.stride), height.div_ceil(self.stride));
        let mut data = Vec::with_capacity(self.channels_out * columns * rows);
        let margin = self.dilation * (self.kernel / 2);
        for out in 0..self.channels_out {
            for (y, x) in (0..rows).flat_map(|y| (0..columns).map(move |x| (y, x))) {
                let mut sum = self.biases[out];
                for (ky, kx) in (0..self.kernel).flat_map(|y| (0..self.kernel).map(move |x| (y, x)))
                {
                    // Place among the pixels with their margin, where rows and columns beyond the image are 0.
                    let place = |at: usize, k: usize| at * self.stride + k * self.dilation;
                    let (y, x) =
                        (place(y, ky).wrapping_sub(margin), place(x, kx).wrapping_sub(margin));
                    if y < height && x < width {
                        for (channel, plane) in planes.iter().enumerate() {
                            let weight = ((out * planes.len() + channel) * self.kernel + ky)
                                * self.kernel
                                + kx;
                            sum +=
                                i32::from(self.weights[weight]) * i32::from(plane[y * width + x]);
                        }
                    }
                }
                let value =
                    (sum >> self.shifts[out]).clamp(self.low.into(), self.high.into()) as i16;
                data.push(match self.add {
                    Some(add) => (value + values[add].data[data.len()]).clamp(0, ACTIVATION_MAX),
                    None => value,
                });
            }
        }
        Plane { width: columns, height: rows, data }
    }
}

impl Correlation {
    /// Channel g * candidates + d: sum of `left[x] * right[x - d]` over the channels of group g, shifted and limited
    /// to 0..=127. Right cells outside the image count as 0.
    fn run(&self, left: &Plane, right: &Plane) -> Plane {
        let Plane { width, height, .. } = *left;
        let channels = left.data.len() / (width * height) / self.groups;
        let mut data = Vec::with_capacity(self.groups * self.candidates * width * height);
        for (group, d) in (0..self.groups).flat_map(|g| (0..self.candidates).map(move |d| (g, d))) {
            for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
                let product = |channel: usize| {
                    let row = (channel * height + y) * width;
                    i32::from(left.data[row + x]) * i32::from(right.data[row + x - d])
                };
                let channels = group * channels..(group + 1) * channels;
                let sum: i32 = if d <= x { channels.map(product).sum() } else { 0 };
                data.push((sum >> self.shift).clamp(0, ACTIVATION_MAX.into()) as i16);
            }
        }
        Plane { width, height, data }
    }
}
