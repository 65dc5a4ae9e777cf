//! Row kernels of the spatio-temporal stage: sums of the equations, the background, and the outputs.

use std::ops::Range;

use crate::engine::cpu::simd::{SimdKernel, Vector};
use crate::engine::cpu::texture::PixelRows;
use crate::matching::temporal::background::{age, denoise, remember, residual, whiten};
use crate::matching::temporal::shifts::{OfReference, SUMS};

/// Numbers per pixel that [`ReferenceRow`] writes: grey level, doubled gradients across and down, steps
/// across and down, and 1 if the pixel counts; otherwise all 0.
pub const OF_REFERENCE: usize = 6;

#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// Above, the row itself, below.
    pub rows: [&'a [u8]; 3],
}

impl<'a> Around<'a> {
    /// Row `y` of an image, which is neither the first nor the last.
    #[inline(always)]
    pub fn of(picture: PixelRows<'a>, y: usize) -> Self {
        let width = picture.size.0;
        Self { rows: [y - 1, y, y + 1].map(|y| &picture.pixels[y * width..][..width]) }
    }

    /// Pixel `x` with its neighbours: grey level, doubled gradients across and down, steps across and down.
    #[inline(always)]
    fn pixel(self, x: usize) -> [i16; 5] {
        let [above, own, below] = self.rows;
        let [left, grey, right] = [own[x - 1], own[x], own[x + 1]].map(i16::from);
        let [up, down] = [above[x], below[x]].map(i16::from);
        [grey, right - left, down - up, right - grey, down - grey]
    }

    /// [`LANES`] pixels starting at a column, number by number.
    #[inline(always)]
    fn pixels(self, from: usize) -> [[i16; LANES]; 5] {
        let wide = |row: &[u8], from: usize| {
            let mut pixels = [0i16; LANES];
            let row = &row[from..from + LANES];
            pixels.iter_mut().zip(row).for_each(|(to, &pixel)| *to = i16::from(pixel));
            pixels
        };
        let [above, own, below] = self.rows;
        let (left, grey, right) = (wide(own, from - 1), wide(own, from), wide(own, from + 1));
        let (up, down) = (wide(above, from), wide(below, from));
        let less = |a: &[i16; LANES], b: &[i16; LANES]| {
            let mut difference = *a;
            difference.iter_mut().zip(b).for_each(|(to, &b)| *to -= b);
            difference
        };
        [grey, less(&right, &left), less(&down, &up), less(&right, &grey), less(&down, &grey)]
    }
}

const LANES: usize = 16;

/// Position of the previous image, and the largest difference of matching pixels.
#[derive(Clone, Copy)]
pub struct Newest<'a> {
    /// Its row that corresponds to the reference's row.
    pub of: Around<'a>,
    /// Its shift in columns.
    pub offset: i32,
    /// See [`agree`](crate::matching::temporal::shifts::agree).
    pub tolerance: i32,
}

pub struct ReferenceRow<'a> {
    pub of: Around<'a>,
    pub columns: Range<usize>,
    /// Motion ages of the pixels, in the two rows of the full-size image; `None`: all pixels count.
    pub ages: Option<[&'a [u8]; 2]>,
    /// The previous image; `None`: all pixels agree.
    pub newest: Option<Newest<'a>>,
    /// [`OF_REFERENCE`] rows of numbers.
    pub to: &'a mut [i16],
    pub sums: &'a mut OfReference,
}

impl SimdKernel for ReferenceRow<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let (width, columns) = (self.of.rows[1].len(), self.columns);
        let len = columns.len();
        let mut rows = self.to.chunks_exact_mut(width);
        let [grey, across, down, to_right, to_below, counts] =
            std::array::from_fn(|_| match rows.next() {
                Some(row) => &mut row[..len],
                None => &mut [],
            });
        for i in 0..len {
            let [own, h, g, x, y] = self.of.pixel(columns.start + i);
            (grey[i], across[i], down[i], to_right[i], to_below[i]) = (own, h, g, x, y);
            counts[i] = 1;
        }
        if let Some(Newest { of, offset, tolerance }) = self.newest {
            let from = (columns.start as i64 - i64::from(offset)) as usize;
            for i in 0..len {
                let [b, h, g, ..] = of.pixel(from + i);
                let slope = (across[i].abs() + down[i].abs()).min(h.abs() + g.abs());
                counts[i] = i16::from((grey[i] - b).abs() <= tolerance as i16 + slope);
            }
        }
        if let Some(ages) = self.ages {
            let last = ages[0].len() - 1;
            for (i, x) in columns.enumerate() {
                let [a, b] = [2 * x, (2 * x + 1).min(last)];
                if ages[0][a] | ages[0][b] | ages[1][a] | ages[1][b] != 0 {
                    counts[i] = 0;
                }
            }
        }
        for row in [&mut *grey, &mut *across, &mut *down, &mut *to_right, &mut *to_below] {
            row.iter_mut().zip(&*counts).for_each(|(value, &counts)| *value *= counts);
        }
        let sum = |row: &[i16]| row.iter().map(|&value| i64::from(value)).sum::<i64>();
        // Products of this many pixels stay within 2^31.
        const PIXELS: usize = 1024;
        let products = |a: &[i16], b: &[i16]| {
            let parts = a.chunks(PIXELS).zip(b.chunks(PIXELS));
            let of_part = |(a, b): (&[i16], &[i16])| {
                let products = a.iter().zip(b).map(|(&a, &b)| i32::from(a) * i32::from(b));
                i64::from(products.sum::<i32>())
            };
            parts.map(of_part).sum::<i64>()
        };
        *self.sums += OfReference {
            count: sum(counts),
            grey: sum(grey),
            gradients: [sum(across), sum(down)],
            steps: [products(to_right, to_right), products(to_below, to_below)],
            crossed: 2 * products(across, down),
        };
    }
}

/// Adds the terms of a row of another image with a row of the reference.
pub struct ShiftRow<'a> {
    pub reference: &'a [i16],
    /// The corresponding row of the other image.
    pub of: Around<'a>,
    /// Shift of the image in columns.
    pub offset: i32,
    pub columns: Range<usize>,
    /// The sums over both.
    pub sums: &'a mut [i64; SUMS],
}

impl SimdKernel for ShiftRow<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let (width, columns) = (self.of.rows[1].len(), self.columns);
        let from = (columns.start as i64 - i64::from(self.offset)) as usize;
        let len = columns.len();
        let whole = len - len % LANES;
        // The sums over all runs of a row stay within 2^31.
        let mut lanes = [[0i32; LANES]; SUMS];
        for begin in (0..whole).step_by(LANES) {
            let row = |number: usize| -> [i32; LANES] {
                let mut values = [0; LANES];
                let row = &self.reference[number * width + begin..][..LANES];
                values.iter_mut().zip(row).for_each(|(to, &value)| *to = i32::from(value));
                values
            };
            let reference: [_; OF_REFERENCE] = std::array::from_fn(row);
            let other = self.of.pixels(from + begin);
            for lane in 0..LANES {
                let a: [i32; OF_REFERENCE] = std::array::from_fn(|i| reference[i][lane]);
                let b: [i32; 5] = std::array::from_fn(|i| i32::from(other[i][lane]));
                let added = terms(a, b);
                for (sums, added) in lanes.iter_mut().zip(added) {
                    sums[lane] += added;
                }
            }
        }
        for (all, lanes) in self.sums.iter_mut().zip(lanes) {
            *all += lanes.iter().map(|&sum| i64::from(sum)).sum::<i64>();
        }
        for i in whole..len {
            let a = std::array::from_fn(|number| i32::from(self.reference[number * width + i]));
            let b = self.of.pixel(from + i).map(i32::from);
            for (all, added) in self.sums.iter_mut().zip(terms(a, b)) {
                *all += i64::from(added);
            }
        }
    }
}

/// Terms of a pixel of the reference and one of another image for the sums.
#[inline(always)]
fn terms(
    [a, h, g, x, y, counts]: [i32; OF_REFERENCE],
    [b, hb, gb, xb, yb]: [i32; 5],
) -> [i32; SUMS] {
    [
        h * b - hb * a,
        g * b - gb * a,
        x * xb,
        y * yb,
        h * gb + g * hb,
        h * hb,
        g * gb,
        b * counts,
        hb * counts,
        gb * counts,
    ]
}

/// A remembered image, and its contribution to the background.
#[derive(Clone, Copy)]
pub struct Remembered<'a> {
    pub pixels: &'a [u8],
    pub coefficient: i32,
    pub offset: [i32; 2],
}

pub struct ResidualRow<'r, 'a, F: Fn(usize) -> Remembered<'a>> {
    pub of: PixelRows<'r>,
    pub y: usize,
    pub count: usize,
    pub remembered: F,
    pub background: &'r mut [i32],
    pub to: &'r mut [i16],
}

impl<'a, F: Fn(usize) -> Remembered<'a>> SimdKernel for ResidualRow<'_, 'a, F> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let (width, height) = self.of.size;
        let background = &mut self.background[..width];
        background.fill(0);
        for slot in 0..self.count {
            let Remembered { pixels, coefficient, offset } = (self.remembered)(slot);
            let y = (self.y as i64 - i64::from(offset[1])).clamp(0, height as i64 - 1) as usize;
            let row = &pixels[y * width..][..width];
            // The columns with counterparts inside; others are clamped.
            let by = i64::from(offset[0]);
            let first = by.clamp(0, width as i64) as usize;
            let last = (width as i64 + by).clamp(first as i64, width as i64) as usize;
            let add = |sum: &mut i32, pixel: u8| *sum += coefficient * i32::from(pixel);
            background[..first].iter_mut().for_each(|sum| add(sum, row[0]));
            background[last..].iter_mut().for_each(|sum| add(sum, row[width - 1]));
            if first < last {
                let from = (first as i64 - by) as usize;
                let inside = background[first..last].iter_mut().zip(&row[from..]);
                inside.for_each(|(sum, &pixel)| add(sum, pixel));
            }
        }
        let own = &self.of.pixels[self.y * width..][..width];
        for ((to, &pixel), &sum) in self.to.iter_mut().zip(own).zip(&*background) {
            *to = residual(pixel, sum);
        }
    }
}

/// Writes the outputs of a row after its residuals were judged.
pub struct FinishRow<'a> {
    pub row: &'a [u8],
    /// Its residuals, weights, and motion flags.
    pub residuals: &'a [i16],
    pub weights: &'a [i32],
    pub moving: &'a [u8],
    /// Motion ages of the pixels.
    pub ages: &'a mut [u8],
    pub stored: &'a mut [u8],
    pub history: u8,
    pub denoised: Option<&'a mut [u8]>,
    pub whitened: Option<&'a mut [u16]>,
}

impl SimdKernel for FinishRow<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let pixels = self.row.iter().zip(self.residuals);
        let kept = self.ages.iter_mut().zip(self.stored).zip(self.moving);
        for ((&pixel, &e), ((before, stored), &moving)) in pixels.clone().zip(kept) {
            *before = age(*before, moving != 0);
            *stored = remember(pixel, e, *before, self.history);
        }
        if let Some(to) = self.denoised {
            for ((to, (&pixel, &e)), &weight) in to.iter_mut().zip(pixels).zip(self.weights) {
                *to = denoise(pixel, e, weight);
            }
        }
        if let Some(to) = self.whitened {
            for ((to, &e), &moving) in to.iter_mut().zip(self.residuals).zip(self.moving) {
                *to = whiten(e, moving != 0);
            }
        }
    }
}
