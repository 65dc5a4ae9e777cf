//! Half-size and smoothed images, texture and noise, row by row: the values of [`crate::matching::pyramid`]
//! and [`crate::matching::texture`].

use super::simd::{SimdKernel, Vector};
use crate::matching::filter::evidence::SIDE;
use crate::matching::texture::{RADIUS, UNCLIPPED};

#[derive(Clone, Copy)]
pub struct PixelRows<'a> {
    /// Grey levels.
    pub pixels: &'a [u8],
    pub size: (usize, usize),
}

impl<'a> PixelRows<'a> {
    /// Row `y`, clamped to the image.
    #[inline(always)]
    fn row(&self, y: i64) -> &'a [u8] {
        let y = y.clamp(0, self.size.1 as i64 - 1) as usize;
        &self.pixels[y * self.size.0..][..self.size.0]
    }
}

pub struct HalfRow<'a> {
    pub of: PixelRows<'a>,
    pub y: usize,
    pub to: &'a mut [u8],
}

impl SimdKernel for HalfRow<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let rows = [0, 1].map(|down| self.of.row((2 * self.y) as i64 + down));
        let mean = |a: [u8; 2], b: [u8; 2]| {
            let [a, b, c, d] = [a[0], a[1], b[0], b[1]].map(u16::from);
            ((a + b + c + d + 2) / 4) as u8
        };
        let (above, last_above) = rows[0].as_chunks::<2>();
        let (below, last_below) = rows[1].as_chunks::<2>();
        for ((to, &a), &b) in self.to.iter_mut().zip(above).zip(below) {
            *to = mean(a, b);
        }
        if let ([a], [b]) = (last_above, last_below) {
            self.to[above.len()] = mean([*a; 2], [*b; 2]);
        }
    }
}

/// Writes row `y` of the image smoothed by 1 2 1 along rows and columns.
pub struct SmoothedRow<'a> {
    pub of: PixelRows<'a>,
    pub y: usize,
    pub to: &'a mut [u8],
    /// One number per pixel.
    pub sums: &'a mut [u16],
}

impl SimdKernel for SmoothedRow<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let rows = [-1, 0, 1].map(|down| self.of.row(self.y as i64 + down));
        let width = rows[1].len();
        let sums = &mut self.sums[..width];
        for (((sum, &a), &b), &c) in sums.iter_mut().zip(rows[0]).zip(rows[1]).zip(rows[2]) {
            *sum = u16::from(a) + 2 * u16::from(b) + u16::from(c);
        }
        let of = |a: u16, b: u16, c: u16| ((a + 2 * b + c + 8) / 16) as u8;
        let inside = sums.iter().zip(&sums[1.min(width)..]).zip(&sums[2.min(width)..]);
        for (to, ((&a, &b), &c)) in self.to[1.min(width)..].iter_mut().zip(inside) {
            *to = of(a, b, c);
        }
        let last = width - 1;
        self.to[0] = of(sums[0], sums[0], sums[1.min(last)]);
        self.to[last] = of(sums[last.saturating_sub(1)], sums[last], sums[last]);
    }
}

/// Writes the range of grey levels in the 5 x 5 pixels around each pixel of row `y`.
pub struct RangeRow<'a> {
    pub of: PixelRows<'a>,
    pub y: usize,
    pub to: &'a mut [u8],
    /// [`range_scratch`] bytes.
    pub scratch: &'a mut [u8],
}

pub fn range_scratch(width: usize) -> usize {
    2 * (width + 2 * RADIUS)
}

impl SimdKernel for RangeRow<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        const SIDE: usize = 2 * RADIUS + 1;
        let rows: [&[u8]; SIDE] =
            std::array::from_fn(|i| self.of.row(self.y as i64 + i as i64 - RADIUS as i64));
        let width = rows[0].len();
        // Least and greatest value of the window's columns, between margins that repeat the ends.
        let (least, greatest) =
            self.scratch[..range_scratch(width)].split_at_mut(width + 2 * RADIUS);
        let whole = width - width % V::N;
        for x in (0..whole).step_by(V::N) {
            // SAFETY: the vector lies in the rows, and in the columns between the margins.
            unsafe {
                let load = |row: &[u8]| V::load(row.as_ptr().add(x));
                let (mut low, mut high) = (load(rows[0]), load(rows[0]));
                for row in &rows[1..] {
                    (low, high) = (low.min(load(row)), larger(high, load(row)));
                }
                low.store(least.as_mut_ptr().add(RADIUS + x));
                high.store(greatest.as_mut_ptr().add(RADIUS + x));
            }
        }
        for x in whole..width {
            let column = rows.map(|row| row[x]);
            least[RADIUS + x] = column.into_iter().fold(u8::MAX, u8::min);
            greatest[RADIUS + x] = column.into_iter().fold(0, u8::max);
        }
        for column in [&mut *least, &mut *greatest] {
            let (first, last) = (column[RADIUS], column[RADIUS + width - 1]);
            column[..RADIUS].fill(first);
            column[RADIUS + width..].fill(last);
        }
        for x in (0..whole).step_by(V::N) {
            // SAFETY: the vectors from here to the margin's width further on lie in the columns.
            unsafe {
                let load = |column: &[u8], i: usize| V::load(column.as_ptr().add(x + i));
                let (mut low, mut high) = (load(least, 0), load(greatest, 0));
                for i in 1..SIDE {
                    low = low.min(load(least, i));
                    high = larger(high, load(greatest, i));
                }
                high.subs(low).store(self.to.as_mut_ptr().add(x));
            }
        }
        for x in whole..width {
            let low = least[x..x + SIDE].iter().fold(u8::MAX, |low, &grey| low.min(grey));
            let high = greatest[x..x + SIDE].iter().fold(0, |high, &grey| high.max(grey));
            self.to[x] = high - low;
        }
    }
}

/// Writes the ranges of the sums of 3 x 3 grey levels in the [`SIDE`] x [`SIDE`] pixels around each pixel of
/// row `y` ([`crate::matching::filter::evidence`]).
pub struct SumRangeRow<'a> {
    pub of: PixelRows<'a>,
    pub y: usize,
    pub to: &'a mut [u16],
    /// [`sum_range_scratch`] numbers.
    pub scratch: &'a mut [u16],
}

pub fn sum_range_scratch(width: usize) -> usize {
    (width + 2) + 2 * (width + SIDE - 1)
}

impl SimdKernel for SumRangeRow<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        const REACH: usize = SIDE / 2;
        let (width, height) = self.of.size;
        let (columns, rest) = self.scratch.split_at_mut(width + 2);
        // Least and greatest sum of the window's columns, between margins that repeat the ends.
        let (least, greatest) = rest.split_at_mut(width + SIDE - 1);
        least[REACH..REACH + width].fill(u16::MAX);
        greatest[REACH..REACH + width].fill(0);
        for i in 0..SIDE {
            let y = ((self.y + i).saturating_sub(REACH)).min(height - 1) as i64;
            let [above, row, below] = [-1, 0, 1].map(|down| self.of.row(y + down));
            for (((sum, &a), &b), &c) in columns[1..].iter_mut().zip(above).zip(row).zip(below) {
                *sum = u16::from(a) + u16::from(b) + u16::from(c);
            }
            (columns[0], columns[width + 1]) = (columns[1], columns[width]);
            let [a, b, c] = [0, 1, 2].map(|i| &columns[i..i + width]);
            let least = &mut least[REACH..REACH + width];
            let greatest = &mut greatest[REACH..REACH + width];
            for x in 0..width {
                let sum = a[x] + b[x] + c[x];
                least[x] = least[x].min(sum);
                greatest[x] = greatest[x].max(sum);
            }
        }
        for column in [&mut *least, &mut *greatest] {
            let (first, last) = (column[REACH], column[REACH + width - 1]);
            column[..REACH].fill(first);
            column[REACH + width..].fill(last);
        }
        let least: [&[u16]; SIDE] = std::array::from_fn(|i| &least[i..i + width]);
        let greatest: [&[u16]; SIDE] = std::array::from_fn(|i| &greatest[i..i + width]);
        for (x, to) in self.to[..width].iter_mut().enumerate() {
            let low = least.iter().fold(u16::MAX, |low, column| low.min(column[x]));
            let high = greatest.iter().fold(0, |high, column| high.max(column[x]));
            *to = high - low;
        }
    }
}

/// The larger value, lane by lane.
#[inline(always)]
fn larger<V: Vector>(a: V, b: V) -> V {
    a.adds(b.subs(a))
}

/// Counts the responses of the noise filter along row `y`, which is neither the first nor the last.
pub struct NoiseRow<'a> {
    pub of: PixelRows<'a>,
    pub y: usize,
    /// Pixels by response.
    pub histogram: &'a mut [u32],
    /// One number per pixel.
    pub responses: &'a mut [u16],
}

impl SimdKernel for NoiseRow<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let rows = [-1, 0, 1].map(|down| self.of.row(self.y as i64 + down));
        let width = rows[0].len();
        if width < 3 {
            return;
        }
        let responses = &mut self.responses[..width - 2];
        for (x, response) in responses.iter_mut().enumerate() {
            let of_row = |row: &[u8]| {
                let [a, b, c] = [row[x], row[x + 1], row[x + 2]].map(i16::from);
                a - 2 * b + c
            };
            *response = (of_row(rows[0]) - 2 * of_row(rows[1]) + of_row(rows[2])).unsigned_abs();
        }
        for (&response, grey) in responses.iter().zip(&rows[1][1..]) {
            if (UNCLIPPED.0..=UNCLIPPED.1).contains(grey) {
                self.histogram[usize::from(response)] += 1;
            }
        }
    }
}
