//! Blending of the cost with adaptive window and prior ([`crate::matching::support`]): the weights of every
//! pixel are prepared for the image, then the costs are blended band by band.

use super::cost::Padding;
use super::geometry::Geometry;
use super::pixel_rows::PixelRows;
use super::shape::ShapedKernel;
use super::simd::{SimdKernel, Vector};
use crate::frame::{INVALID, SUBPIXEL};
use crate::matching::Params;
use crate::matching::prior::{BEND_MAX, BEND_REACH, REACH};
use crate::matching::support::Blend;
use crate::matching::window::{SUPPORTED_MAX, UNIT};

/// Weights of a pixel's cost, and the candidate predicted by the prior.
#[derive(Clone, Copy, Default)]
pub struct PixelSupport {
    pub blend: Blend,
    /// Number of the predicted candidate, possibly outside the range; [`UNKNOWN`] if none is predicted.
    pub expected: i16,
}

/// No predicted candidate.
pub const UNKNOWN: i16 = i16::MIN;

/// Returns the support of pixels by their range of grey levels, without the prior's prediction.
pub fn of_ranges(params: &Params, threshold: u32) -> [PixelSupport; 256] {
    std::array::from_fn(|range| {
        let blend = Blend::of(params, range as u8, threshold);
        PixelSupport { blend, expected: UNKNOWN }
    })
}

/// The map of the half-size images.
#[derive(Clone, Copy)]
pub struct Coarse<'a> {
    /// Its values, row by row.
    pub values: &'a [i16],
    pub size: (usize, usize),
}

/// Writes the support of a row of an image.
pub struct SupportRow<'a> {
    pub geometry: &'a Geometry,
    /// Support by range ([`of_ranges`]).
    pub of_ranges: &'a [PixelSupport; 256],
    /// The map of the half-size images, if there is one.
    pub coarse: Option<Coarse<'a>>,
    pub y: usize,
    /// Ranges of grey levels along it.
    pub ranges: &'a [u8],
    /// [`support_scratch`] numbers.
    pub scratch: &'a mut [i16],
    pub to: &'a mut [PixelSupport],
}

/// Rows of the coarse map around a pixel that decide what it predicts.
const ROWS: usize = 2 * BEND_REACH + 1;

/// Scratch numbers of [`SupportRow`] for rows of this width.
pub fn support_scratch(width: usize) -> usize {
    let half = width.div_ceil(2);
    ROWS * (half + 2 * BEND_REACH) + 2 * half
}

impl SimdKernel for SupportRow<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let half = self.to.len().div_ceil(2);
        let (expected, scratch) = self.scratch.split_at_mut(half);
        match self.coarse {
            Some(coarse) => coarse.expect(self.y / 2, self.geometry.min, scratch, expected),
            None => expected.fill(UNKNOWN),
        }
        // The last pixel of an odd width is single.
        let (pairs, alone) = self.to.as_chunks_mut::<2>();
        let (ranges, last) = self.ranges.as_chunks::<2>();
        let count = pairs.len();
        let of = |range: u8, i: usize| {
            let PixelSupport { mut blend, .. } = self.of_ranges[usize::from(range)];
            let expected = expected[i];
            blend.prior = if expected == UNKNOWN { 0 } else { blend.prior };
            PixelSupport { blend, expected }
        };
        for (i, (pair, ranges)) in pairs.iter_mut().zip(ranges).enumerate() {
            *pair = [of(ranges[0], i), of(ranges[1], i)];
        }
        if let ([alone], [range]) = (alone, last) {
            *alone = of(*range, count);
        }
    }
}

impl Coarse<'_> {
    /// Predicts candidates from the map's row `y`, one for every two columns of the finer image: their numbers,
    /// starting at `min`, or [`UNKNOWN`] where the map is not known and flat. `scratch`: [`ROWS`] rows with
    /// margins, and one without.
    #[inline(always)]
    fn expect(&self, y: usize, min: i32, scratch: &mut [i16], expected: &mut [i16]) {
        let (width, height) = self.size;
        let (flat, rows) = scratch.split_at_mut(width);
        let stride = width + 2 * BEND_REACH;
        // The margins repeat the ends.
        for (i, row) in rows.chunks_exact_mut(stride).take(ROWS).enumerate() {
            let from = (y + i).saturating_sub(BEND_REACH).min(height - 1) * width;
            let from = &self.values[from..][..width];
            row[..BEND_REACH].fill(from[0]);
            row[BEND_REACH..][..width].copy_from_slice(from);
            row[BEND_REACH + width..].fill(from[width - 1]);
        }
        let at = |right: isize, down: isize| {
            let row = (BEND_REACH as isize + down) as usize * stride;
            &rows[row + (BEND_REACH as isize + right) as usize..][..width]
        };
        let centre = at(0, 0);
        for (flat, &centre) in flat.iter_mut().zip(centre) {
            *flat = -i16::from(centre != INVALID);
        }
        for k in 1..=BEND_REACH as isize {
            for (right, down) in [(k, 0), (0, k), (k, k), (k, -k)] {
                let (before, behind) = (at(-right, -down), at(right, down));
                for x in 0..width {
                    // If one difference saturates, the other one never is as large, so the sum exceeds the limit.
                    let [a, b] = [before[x], behind[x]].map(|end| end.saturating_sub(centre[x]));
                    let is_flat = (before[x] != INVALID)
                        & (behind[x] != INVALID)
                        & (a.saturating_add(b).saturating_abs() <= BEND_MAX);
                    flat[x] &= -i16::from(is_flat);
                }
            }
        }
        for ((to, &flat), &centre) in expected.iter_mut().zip(&*flat).zip(centre) {
            let disparity = (2 * i32::from(centre) + SUBPIXEL / 2).div_euclid(SUBPIXEL);
            *to = if flat != 0 { (disparity - min) as i16 } else { UNKNOWN };
        }
    }
}

/// Writes the supported costs of a band of rows; at most `MAX` vectors per pixel, exactly `MAX` if `EXACT`.
///
/// The sums over windows slide along with the pixels: in every column the entering row is added and the
/// leaving row subtracted, and a pixel's window is the previous pixel's, plus one column and minus one.
pub struct SupportBand<'a> {
    pub geometry: &'a Geometry,
    /// Radius of the window in pixels; 0 without a window.
    pub radius: usize,
    /// First row and number of rows of the band.
    pub rows: (usize, usize),
    /// The costs of single pixels of the band and around it.
    pub pixel_rows: PixelRows,
    pub support: &'a [PixelSupport],
    /// Sums over the window's rows, [x][depth]; empty without a window. Every leaving row adds [`BIAS`].
    pub columns: &'a mut [u16],
    /// The candidate at every place of a pair, [depth].
    pub numbers: *const i16,
    /// Padding of costs beyond the range.
    pub padding: Padding,
    /// The costs of the band, [row][x][depth].
    pub band_costs: *mut u8,
}

/// Offset that makes a difference of two costs an unsigned byte. It stays in the sums of the
/// columns, and cancels when one column is subtracted from another.
const BIAS: u8 = 128;
const _: () = assert!(SUPPORTED_MAX < BIAS as u32, "differences of costs fit a byte");

// No closure computes with vectors: a compiler that does not inline it turns every instruction into a call.
impl ShapedKernel for SupportBand<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector, const MAX: usize, const EXACT: bool>(mut self) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.radius {
                0 => self.rows::<V, MAX, EXACT, 1>(),
                1 => self.rows::<V, MAX, EXACT, 3>(),
                _ => self.rows::<V, MAX, EXACT, 5>(),
            }
        }
    }
}

impl SupportBand<'_> {
    /// Writes the costs of all rows with a window of `SIDE` pixels across and down.
    #[inline(always)]
    unsafe fn rows<V: Vector, const MAX: usize, const EXACT: bool, const SIDE: usize>(&mut self) {
        let (first, count) = self.rows;
        let radius = SIDE as i64 / 2;
        let chunks = if EXACT { MAX } else { self.geometry.chunks };
        self.columns.fill(0);
        // SAFETY: the rows lie around the band; the caller vouches for the memory.
        unsafe {
            // All rows of the first window except the one that enters with the first row.
            for above in -radius..radius {
                let enters = self.row(first as i64 + above);
                for x in 0..self.geometry.width {
                    self.slide::<V>(x, chunks, Change { enters, leaves: std::ptr::null() });
                }
            }
            for y in first..first + count {
                self.write_row::<V, MAX, SIDE>(y, chunks);
            }
        }
    }

    /// The pixel costs of a row, clamped into the image.
    #[inline(always)]
    unsafe fn row(&self, y: i64) -> *const u8 {
        // SAFETY: the row lies around the band.
        unsafe { self.pixel_rows.row(y.clamp(0, self.geometry.height as i64 - 1) as usize) }
    }

    /// Moves the sums of a column to the next row.
    #[inline(always)]
    unsafe fn slide<V: Vector>(&mut self, column: usize, chunks: usize, rows: Change) {
        for c in 0..chunks {
            // SAFETY: the caller's promise.
            unsafe { self.slide_vector::<V>(column * self.geometry.depth + c * V::N, rows) };
        }
    }

    /// Moves a vector of the sums of a column to the next row, and returns it.
    #[inline(always)]
    unsafe fn slide_vector<V: Vector>(&mut self, at: usize, rows: Change) -> [V::Wide; 2] {
        // SAFETY: rows and sums have a number for each lane of each pixel.
        unsafe {
            let mut change = V::load(rows.enters.add(at));
            if !rows.leaves.is_null() {
                change = change.sub(V::load(rows.leaves.add(at))).xor(V::splat(BIAS));
            }
            let [low, high] = change.widen();
            let [old_low, old_high] = self.sums::<V>(at);
            let sums = [V::add_wide(old_low, low), V::add_wide(old_high, high)];
            let to = self.columns.as_mut_ptr().cast::<i16>().add(at);
            V::store_wide(sums[0], to);
            V::store_wide(sums[1], to.add(V::N / 2));
            sums
        }
    }

    /// A vector of the sums of the columns.
    #[inline(always)]
    unsafe fn sums<V: Vector>(&self, at: usize) -> [V::Wide; 2] {
        // SAFETY: there is a number for each lane of each pixel.
        unsafe {
            let from = self.columns.as_ptr().cast::<i16>().add(at);
            [V::load_wide(from), V::load_wide(from.add(V::N / 2))]
        }
    }

    /// Sums over the window of the pixel to the left of the first one.
    #[inline(always)]
    unsafe fn window_before_first<V: Vector, const MAX: usize, const SIDE: usize>(
        &self,
        row: usize,
        chunks: usize,
    ) -> [[V::Wide; 2]; MAX] {
        let Geometry { width, depth, .. } = *self.geometry;
        // Total bias of the columns.
        let bias = (row * SIDE) as i16 * i16::from(BIAS);
        // SAFETY: the columns lie in the image.
        unsafe {
            let mut window = [[V::splat_wide(-bias); 2]; MAX];
            for across in 0..SIDE {
                let column = across.saturating_sub(SIDE / 2 + 1).min(width - 1);
                for (c, [low, high]) in window.iter_mut().enumerate().take(chunks) {
                    let [more_low, more_high] = self.sums::<V>(column * depth + c * V::N);
                    *low = V::add_wide(*low, more_low);
                    *high = V::add_wide(*high, more_high);
                }
            }
            window
        }
    }

    /// Returns a vector of the sums over a pixel's window, from those of the previous pixel, and moves the
    /// entering column to this row.
    #[inline(always)]
    unsafe fn next_window<V: Vector, const SIDE: usize>(
        &mut self,
        [low, high]: [V::Wide; 2],
        (x, c): (usize, usize),
        rows: Change,
    ) -> [V::Wide; 2] {
        let Geometry { width, depth, .. } = *self.geometry;
        let radius = SIDE / 2;
        let enters = (x + radius).min(width - 1) * depth + c * V::N;
        let leaves = x.saturating_sub(radius + 1) * depth + c * V::N;
        // SAFETY: both columns lie in the image.
        unsafe {
            let more = match x + radius < width {
                true => self.slide_vector::<V>(enters, rows),
                false => self.sums::<V>(enters),
            };
            let less = self.sums::<V>(leaves);
            [
                V::add_wide(low, V::sub_wide(more[0], less[0])),
                V::add_wide(high, V::sub_wide(more[1], less[1])),
            ]
        }
    }

    /// Writes the costs of a row of the band.
    #[inline(always)]
    unsafe fn write_row<V: Vector, const MAX: usize, const SIDE: usize>(
        &mut self,
        y: usize,
        chunks: usize,
    ) {
        let Geometry { width, depth, .. } = *self.geometry;
        let (row, radius) = (y - self.rows.0, SIDE / 2);
        let support = &self.support[y * width..][..width];
        // SAFETY: every column below lies in the image, and every vector in the range of a pixel.
        unsafe {
            let own = self.row(y as i64);
            let to = self.band_costs.add(row * width * depth);
            let leaves = match row {
                0 => std::ptr::null(),
                _ => self.row(y as i64 - 1 - radius as i64),
            };
            let rows = Change { enters: self.row((y + radius) as i64), leaves };
            let mut window = [[V::splat_wide(0); 2]; MAX];
            if SIDE > 1 {
                for x in 0..radius.min(width) {
                    self.slide::<V>(x, chunks, rows);
                }
                window = self.window_before_first::<V, MAX, SIDE>(row, chunks);
            }
            for (x, &PixelSupport { blend, expected }) in support.iter().enumerate() {
                let parts = Parts::<V>::new(blend, expected, self.numbers);
                let alone = blend.own == UNIT as u16 && blend.prior == 0;
                for (c, window) in window.iter_mut().enumerate().take(chunks) {
                    if SIDE > 1 {
                        *window = self.next_window::<V, SIDE>(*window, (x, c), rows);
                    }
                    let at = c * V::N;
                    let pixel = V::load(own.add(x * depth + at));
                    let cost = if alone {
                        pixel
                    } else {
                        let ([low, high], [low_sum, high_sum]) = (pixel.widen(), *window);
                        V::narrow_512([
                            parts.blend(low, low_sum, at),
                            parts.blend(high, high_sum, at + V::N / 2),
                        ])
                    };
                    self.padding.apply(cost, c).store(to.add(x * depth + at));
                }
            }
        }
    }
}

/// The rows that enter and leave the column sums.
#[derive(Clone, Copy)]
struct Change {
    /// Pixel costs of the entering row.
    enters: *const u8,
    /// Pixel costs of the leaving row, or null.
    leaves: *const u8,
}

/// Weights of a pixel's cost, in every lane.
pub struct Parts<V: Vector> {
    own: V::Wide,
    window: V::Wide,
    prior: V::Wide,
    expected: V::Wide,
    counts_prior: bool,
    /// Candidates by place.
    numbers: *const i16,
}

impl<V: Vector> Parts<V> {
    /// The parts of a pixel; `numbers` are its candidates by place.
    ///
    /// # Safety
    /// As [`Vector::splat`].
    #[inline(always)]
    pub unsafe fn new(blend: Blend, expected: i16, numbers: *const i16) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                own: V::splat_wide(blend.own as i16),
                window: V::splat_wide(blend.window as i16),
                prior: V::splat_wide(blend.prior as i16),
                expected: V::splat_wide(expected),
                counts_prior: blend.prior > 0,
                numbers,
            }
        }
    }

    /// 512 times the blended costs of the candidates starting at place `at`, from the costs of the pixel and
    /// of the window. All parts together fit 16 bits (`SUPPORTED_MAX`), except in lanes beyond the range.
    ///
    /// # Safety
    /// There is a number for each candidate.
    #[inline(always)]
    pub unsafe fn blend(&self, pixel: V::Wide, window: V::Wide, at: usize) -> V::Wide {
        // SAFETY: there is a number for each candidate.
        unsafe {
            let own = V::add_wide(V::splat_wide(UNIT as i16 / 2), V::mul_wide(pixel, self.own));
            let mut parts = V::add_wide(own, V::mul_wide(window, self.window));
            if self.counts_prior {
                let k = V::load_wide(self.numbers.add(at));
                let far = V::sub_wide(V::max_wide(k, self.expected), V::min_wide(k, self.expected));
                let far = V::min_wide(far, V::splat_wide(REACH as i16));
                parts = V::add_wide(parts, V::mul_wide(far, self.prior));
            }
            parts
        }
    }
}
