//! Tone mapping: reduces samples of 9 to 16 bits to the 8 bits that are matched.
//!
//! The upper 8 bits alone lose faint texture: they have only a few levels in the dark part of a
//! 12-bit linear image, and the images of a camera with 10 bits in the low end of 16 are nearly
//! black. Therefore the difference of each sample from its local mean is amplified where contrast
//! is low, as in local contrast enhancement by unsharp masking with an adaptive gain (Polesel,
//! Ramponi and Mathews, IEEE Transactions on Image Processing 9, 2000).
//!
//! For sample v with 16 bits, the mean m of the window around it and a, the mean absolute
//! difference of neighbours in it:
//!
//! ```text
//! gain   = clamp(DETAIL * 256 / a, 1, 256)
//! lift   = min(4 * (gain - 1), LIFT) * 256 * (1 - m / 65536)
//! result = clamp((m + lift + gain * (v - m)) / 256, 0, 255)
//! ```
//!
//! - Noise alone gives a = 1.13 sigma, so it is amplified to at most `DETAIL` / 1.13 grey levels.
//!   Its strength need not be known.
//! - If neighbours differ by `DETAIL` or more, the gain is 1 and the result is the upper 8 bits. The gain is
//!   never below 1, and one step of a stored word never becomes more than one grey level.
//! - Dark areas are lifted, so that amplified detail is not clipped at black. White stays white,
//!   because saturation is detected by it.
//! - The result depends smoothly on the surroundings alone, so a point of a scene looks the same in
//!   both views and in the next frame.
//!
//! Integer arithmetic makes the bytes equal on every machine. docs/accuracy.md has the gain in accuracy.

/// Reduction of samples of more than 8 bits to 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tone {
    /// With a gain that follows the surroundings.
    #[default]
    Local,
    UpperBits,
}

/// Side of the window in pixels: 64 to the left of the sample and above, 63 to the right and below.
/// The image is mirrored at its borders.
const WINDOW: usize = 128;

/// Pixels before the sample's in the window.
const BEFORE: usize = WINDOW / 2;

/// Target of the amplification: mean absolute difference of neighbours, in grey levels.
const DETAIL: u32 = 2;

/// Largest lift of black areas, in grey levels.
const LIFT: u32 = 64;

/// Largest gain.
const GAIN_MAX: u32 = 256;

/// Sums of differences per entry of [`RESPONSES`].
const STEP: usize = 4096;

/// Smallest index with a gain of 1: differences of `DETAIL` to the left and the upper neighbour.
const PLAIN: usize = 2 * 256 * DETAIL as usize * WINDOW * WINDOW / STEP;

/// Gain and lift for sums of differences.
static RESPONSES: [Response; PLAIN + 1] = responses();

/// Gain and lift of a sample.
#[derive(Clone, Copy)]
struct Response {
    gain: u32,
    /// Lift of black in 1/256 grey levels.
    lift: u32,
}

const fn responses() -> [Response; PLAIN + 1] {
    let mut all = [Response { gain: 256, lift: 0 }; PLAIN + 1];
    let mut i = 0;
    while i < PLAIN {
        // The middle of the sums that have this index.
        let gain = 256 * 2 * PLAIN as u32 / (2 * i as u32 + 1);
        let gain = if gain > 256 * GAIN_MAX { 256 * GAIN_MAX } else { gain };
        let lift = 4 * (gain - 256);
        all[i] = Response { gain, lift: if lift > 256 * LIFT { 256 * LIFT } else { lift } };
        i += 1;
    }
    all
}

impl Tone {
    /// Reduces an image of samples with their highest bit in bit 15, rows of `width`, to 8 bits.
    ///
    /// # Panics
    /// If `samples` is no whole number of rows, or `pixels` of another size.
    pub fn reduce(self, samples: &[u16], width: usize, pixels: &mut [u8]) {
        assert!(width > 0 && samples.len().is_multiple_of(width), "rows of {width} samples");
        assert_eq!(samples.len(), pixels.len(), "pixels of the picture");
        match self {
            Tone::Local => local(samples, width, pixels),
            Tone::UpperBits => {
                pixels.iter_mut().zip(samples).for_each(|(p, s)| *p = (s >> 8) as u8);
            }
        }
    }
}

fn local(samples: &[u16], width: usize, pixels: &mut [u8]) {
    let height = samples.len() / width;
    let mut sums = Sums::new(width);
    let row = |y: usize| Row::of(samples, width, y);
    // Rows count from the first row of the first window, which is above the image.
    let in_window = |y: usize| row(mirror_index(y, height));
    if height > 0 {
        (0..WINDOW).for_each(|y| sums.add(in_window(y)));
    }
    for (y, out) in pixels.chunks_exact_mut(width).enumerate() {
        sums.extend();
        reduce_row(&sums, row(y).samples, out);
        sums.subtract(in_window(y));
        sums.add(in_window(y + WINDOW));
    }
}

/// Returns the pixel of a row or column of `count` that stands for pixel `index` - [`BEFORE`]: its
/// mirror image if it lies outside, at most one length away.
fn mirror_index(index: usize, count: usize) -> usize {
    let inside = match index.checked_sub(BEFORE) {
        Some(inside) => inside.min((2 * count).saturating_sub(1 + inside)),
        None => BEFORE - 1 - index,
    };
    inside.min(count - 1)
}

/// A row of samples with the one above; the first row is its own.
#[derive(Clone, Copy)]
struct Row<'a> {
    samples: &'a [u16],
    above: &'a [u16],
}

impl<'a> Row<'a> {
    fn of(samples: &'a [u16], width: usize, y: usize) -> Self {
        let row = |y: usize| &samples[y * width..][..width];
        Self { samples: row(y), above: row(y.saturating_sub(1)) }
    }
}

/// Sums over the rows of the window, one value per column, extended by half a window on both sides.
struct Sums {
    width: usize,
    samples: Vec<u32>,
    /// Sums of the absolute differences to the left and to the upper neighbour.
    differences: Vec<u32>,
}

impl Sums {
    fn new(width: usize) -> Self {
        let zeros = || vec![0; width + WINDOW];
        Self { width, samples: zeros(), differences: zeros() }
    }

    fn add(&mut self, row: Row) {
        self.update(row, |sum, value| *sum += value);
    }

    fn subtract(&mut self, row: Row) {
        self.update(row, |sum, value| *sum -= value);
    }

    fn update(&mut self, row: Row, change: impl Fn(&mut u32, u32)) {
        let columns = BEFORE..BEFORE + self.width;
        for (sum, &sample) in self.samples[columns.clone()].iter_mut().zip(row.samples) {
            change(sum, sample.into());
        }
        let sums = &mut self.differences[columns];
        change(&mut sums[0], row.samples[0].abs_diff(row.above[0]).into());
        let neighbours = row.samples[1..].iter().zip(row.samples).zip(&row.above[1..]);
        for (sum, ((&sample, &left), &above)) in sums[1..].iter_mut().zip(neighbours) {
            change(sum, u32::from(sample.abs_diff(left)) + u32::from(sample.abs_diff(above)));
        }
    }

    /// Mirrors the columns at the borders of the image.
    fn extend(&mut self) {
        for sums in [&mut self.samples, &mut self.differences] {
            for index in (0..BEFORE).chain(BEFORE + self.width..WINDOW + self.width) {
                sums[index] = sums[BEFORE + mirror_index(index, self.width)];
            }
        }
    }
}

fn reduce_row(sums: &Sums, samples: &[u16], out: &mut [u8]) {
    let first = |sums: &[u32]| sums[..WINDOW].iter().sum::<u32>();
    let (mut sum, mut difference) = (first(&sums.samples), first(&sums.differences));
    let leaves = sums.samples.iter().zip(&sums.differences);
    let enters = sums.samples[WINDOW..].iter().zip(&sums.differences[WINDOW..]);
    let pixels = out.iter_mut().zip(samples);
    for (((pixel, &sample), leaves), enters) in pixels.zip(leaves).zip(enters) {
        let mean = sum / (WINDOW * WINDOW) as u32;
        let Response { gain, lift } = RESPONSES[(difference as usize / STEP).min(PLAIN)];
        let base = mean + ((lift * (65536 - mean)) >> 16);
        // Up to 17 bits of gain times 16 bits: 64-bit arithmetic.
        let detail = (i64::from(gain) * (i64::from(sample) - i64::from(mean))) >> 8;
        *pixel = ((i64::from(base) + detail) >> 8).clamp(0, 255) as u8;
        sum = sum + enters.0 - leaves.0;
        difference = difference + enters.1 - leaves.1;
    }
}

#[cfg(test)]
mod tests;
