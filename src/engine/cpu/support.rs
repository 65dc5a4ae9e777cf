//! What supports the cost, prepared a picture and then a band: the weights of window and prior at every
//! pixel, and the costs that are made of them ([`crate::matching::support`]).

use super::cost::Padding;
use super::geometry::Geometry;
use super::simd::{Kernel, Lanes};
use crate::frame::{INVALID, SUBPIXEL};
use crate::matching::Params;
use crate::matching::prior::{REACH, VARIATION_MAX};
use crate::matching::support::Blend;
use crate::matching::window::UNIT;

/// What the cost of a pixel is made of, and where the prior expects it.
#[derive(Clone, Copy, Default)]
pub struct PixelSupport {
    /// The parts.
    pub blend: Blend,
    /// Number of the expected candidate, which may lie outside the range; meaningless where the prior
    /// counts nothing.
    pub expected: i16,
}

/// What pixels with these ranges of grey levels have, where the prior expects nothing yet.
pub fn of_ranges(params: &Params, threshold: u32) -> [PixelSupport; 256] {
    std::array::from_fn(|range| {
        let blend = Blend::of(params, range as u8, threshold);
        PixelSupport { blend, expected: 0 }
    })
}

/// The map of the half-size pictures.
#[derive(Clone, Copy)]
pub struct Coarse<'a> {
    /// Its values, row by row.
    pub values: &'a [i16],
    /// Its size.
    pub size: (usize, usize),
}

/// Writes the support of a row of a picture.
pub struct SupportRow<'a> {
    /// How the picture is cut up.
    pub geometry: &'a Geometry,
    /// Those of [`of_ranges`].
    pub of_ranges: &'a [PixelSupport; 256],
    /// The map of the half-size pictures, where there is one.
    pub coarse: Option<Coarse<'a>>,
    /// The row.
    pub y: usize,
    /// Ranges of grey levels along it.
    pub ranges: &'a [u8],
    /// [`support_scratch`] numbers.
    pub scratch: &'a mut [i16],
    /// The support of its pixels.
    pub to: &'a mut [PixelSupport],
}

/// Numbers that [`SupportRow`] needs for rows of this width.
pub fn support_scratch(width: usize) -> usize {
    4 * (width.div_ceil(2) + 2)
}

impl Kernel for SupportRow<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let half = self.scratch.len() / 4;
        let (columns, expectation) = self.scratch.split_at_mut(2 * half);
        let (expected, known) = expectation.split_at_mut(half);
        match self.coarse {
            Some(coarse) => {
                coarse.expected(self.y / 2, self.geometry.min, columns, expected, known)
            }
            None => known.fill(0),
        }
        // The last pixel of an odd width stands alone.
        let (pairs, alone) = self.to.as_chunks_mut::<2>();
        let (ranges, last) = self.ranges.as_chunks::<2>();
        let count = pairs.len();
        let of = |range: u8, i: usize| {
            let PixelSupport { mut blend, .. } = self.of_ranges[usize::from(range)];
            blend.prior &= known[i] as u16;
            PixelSupport { blend, expected: expected[i] }
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
    /// Writes what the map's row `y` expects of the columns of the finer picture, two each: the number of a candidate from
    /// `min` on, and all bits where that is known; the map says nothing where it is unknown or varies. `columns`: memory
    /// for two numbers a column, and two more.
    #[inline(always)]
    fn expected(
        &self,
        y: usize,
        min: i32,
        columns: &mut [i16],
        expected: &mut [i16],
        known: &mut [i16],
    ) {
        let (width, height) = self.size;
        let of = |y: usize| &self.values[y * width..][..width];
        let rows = [of(y.saturating_sub(1)), of(y), of((y + 1).min(height - 1))];
        // The least and the greatest of three rows, between margins that repeat the ends.
        let (least, greatest) = columns.split_at_mut(width + 2);
        for x in 0..width {
            let (a, b, c) = (rows[0][x], rows[1][x], rows[2][x]);
            least[1 + x] = a.min(b).min(c);
            greatest[1 + x] = a.max(b).max(c);
        }
        for column in [&mut *least, &mut *greatest] {
            (column[0], column[width + 1]) = (column[1], column[width]);
        }
        const { assert!(INVALID == i16::MIN, "the least of all where one is invalid") };
        let (expected, known, greatest) =
            (&mut expected[..width], &mut known[..width], &greatest[..width + 2]);
        for x in 0..width {
            let centre = i32::from(rows[1][x]);
            let low = least[x].min(least[x + 1]).min(least[x + 2]);
            let high = greatest[x].max(greatest[x + 1]).max(greatest[x + 2]);
            let even = (centre - i32::from(low) <= VARIATION_MAX)
                & (i32::from(high) - centre <= VARIATION_MAX)
                & (low != INVALID);
            let disparity = (2 * centre + SUBPIXEL / 2).div_euclid(SUBPIXEL);
            expected[x] = (disparity - min) as i16;
            known[x] = -i16::from(even);
        }
    }
}

/// Writes the supported costs of a band of rows into memory.
pub struct SupportBand<'a> {
    /// How the picture is cut up.
    pub geometry: &'a Geometry,
    /// Pixels from the window's centre to its edge; 0 without a window.
    pub radius: usize,
    /// First row and number of rows of the band.
    pub rows: (usize, usize),
    /// The costs of single pixels of the rows [`rows_around`], [row][x][depth].
    pub pixel_costs: *const u8,
    /// What supports them, of the whole picture.
    pub support: &'a [PixelSupport],
    /// Sums over the window's rows, [x][depth]; empty without a window.
    pub columns: &'a mut [u16],
    /// The candidate of every place of a pair, [depth].
    pub numbers: *const i16,
    /// What costs become beyond the range.
    pub padding: Padding,
    /// The costs of the band, [row][x][depth].
    pub band_costs: *mut u8,
}

/// First row and number of rows whose pixel costs a band needs.
pub fn rows_around(
    geometry: &Geometry,
    (first, count): (usize, usize),
    radius: usize,
) -> (usize, usize) {
    let begin = first.saturating_sub(radius);
    (begin, (first + count + radius).min(geometry.height) - begin)
}

// Without iterators and closures where vectors are: a compiler that does not inline one of them makes a call
// of every instruction.
impl Kernel for SupportBand<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(mut self) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.radius {
                0 => self.rows::<V, 1>(),
                1 => self.rows::<V, 3>(),
                _ => self.rows::<V, 5>(),
            }
        }
    }
}

impl SupportBand<'_> {
    /// Writes the costs of all rows with a window of `SIDE` pixels across and down.
    #[inline(always)]
    unsafe fn rows<V: Lanes, const SIDE: usize>(&mut self) {
        let (first, count) = self.rows;
        let radius = SIDE as i64 / 2;
        self.columns.fill(0);
        // SAFETY: the rows lie around the band; the caller vouches for the memory.
        unsafe {
            if SIDE > 1 {
                for down in 0..SIDE as i64 {
                    self.add_row::<V>(first as i64 - radius + down, None);
                }
            }
            for y in first..first + count {
                if SIDE > 1 && y > first {
                    self.add_row::<V>(y as i64 + radius, Some(y as i64 - 1 - radius));
                }
                self.write_row::<V, SIDE>(y);
            }
        }
    }

    /// The pixel costs of a row, clamped into the picture.
    #[inline(always)]
    unsafe fn row(&self, y: i64) -> *const u8 {
        let Geometry { width, depth, height, .. } = *self.geometry;
        let (begin, _) = rows_around(self.geometry, self.rows, self.radius);
        let y = y.clamp(0, height as i64 - 1) as usize - begin;
        // SAFETY: the row lies around the band.
        unsafe { self.pixel_costs.add(y * width * depth) }
    }

    /// Adds a row to the sums of the columns, and takes another away.
    #[inline(always)]
    unsafe fn add_row<V: Lanes>(&mut self, enters: i64, leaves: Option<i64>) {
        let (len, half) = (self.columns.len(), V::N / 2);
        let sums = self.columns.as_mut_ptr().cast::<i16>();
        // SAFETY: rows and sums have a number for each lane of each pixel.
        unsafe {
            let enters = self.row(enters);
            let leaves = match leaves {
                Some(leaves) => self.row(leaves),
                None => std::ptr::null(),
            };
            let mut at = 0;
            while at < len {
                let [mut low, mut high] = V::load(enters.add(at)).widen();
                if !leaves.is_null() {
                    let [less_low, less_high] = V::load(leaves.add(at)).widen();
                    (low, high) = (V::sub_wide(low, less_low), V::sub_wide(high, less_high));
                }
                let (to_low, to_high) = (sums.add(at), sums.add(at + half));
                V::store_wide(V::add_wide(V::load_wide(to_low), low), to_low);
                V::store_wide(V::add_wide(V::load_wide(to_high), high), to_high);
                at += V::N;
            }
        }
    }

    /// Writes the costs of a row of the band.
    #[inline(always)]
    unsafe fn write_row<V: Lanes, const SIDE: usize>(&mut self, y: usize) {
        let Geometry { width, depth, chunks, .. } = *self.geometry;
        let support = &self.support[y * width..][..width];
        // SAFETY: every column below lies in the picture, and every vector in the range of a pixel.
        unsafe {
            let own = self.row(y as i64);
            let to = self.band_costs.add((y - self.rows.0) * width * depth);
            let sums = self.columns.as_ptr().cast::<i16>();
            for (x, &PixelSupport { blend, expected }) in support.iter().enumerate() {
                let mut parts = Parts::<V, SIDE>::new(blend, expected, self.numbers);
                if SIDE > 1 {
                    for i in 0..SIDE {
                        let column = (x + i).saturating_sub(SIDE / 2).min(width - 1);
                        parts.columns[i] = sums.add(column * depth);
                    }
                }
                for c in 0..chunks {
                    let at = c * V::N;
                    let pixel = V::load(own.add(x * depth + at));
                    let cost = if blend.own == UNIT as u16 && blend.prior == 0 {
                        pixel
                    } else {
                        let [low, high] = pixel.widen();
                        let high_at = at + V::N / 2;
                        V::narrow_512([parts.blended(low, at), parts.blended(high, high_at)])
                    };
                    self.padding.apply(cost, c).store(to.add(x * depth + at));
                }
            }
        }
    }
}

/// What the costs of a pixel are made of, in every lane.
struct Parts<V: Lanes, const SIDE: usize> {
    own: V::Wide,
    window: V::Wide,
    prior: V::Wide,
    expected: V::Wide,
    reach: V::Wide,
    rounding: V::Wide,
    counts_window: bool,
    counts_prior: bool,
    /// Candidates by place.
    numbers: *const i16,
    /// Sums of the window's columns.
    columns: [*const i16; SIDE],
}

impl<V: Lanes, const SIDE: usize> Parts<V, SIDE> {
    #[inline(always)]
    unsafe fn new(blend: Blend, expected: i16, numbers: *const i16) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                own: V::splat_wide(blend.own as i16),
                window: V::splat_wide(blend.window as i16),
                prior: V::splat_wide(blend.prior as i16),
                expected: V::splat_wide(expected),
                reach: V::splat_wide(REACH as i16),
                rounding: V::splat_wide(UNIT as i16 / 2),
                counts_window: SIDE > 1 && blend.window > 0,
                counts_prior: blend.prior > 0,
                numbers,
                columns: [std::ptr::null(); SIDE],
            }
        }
    }

    /// 512 times the costs of the candidates at the places from `at` on. All parts together fit 16 bits (`SUPPORTED_MAX`), but
    /// for the lanes beyond the range.
    #[inline(always)]
    unsafe fn blended(&self, pixel: V::Wide, at: usize) -> V::Wide {
        // SAFETY: the columns have a number for each candidate.
        unsafe {
            let mut parts = V::add_wide(self.rounding, V::mul_wide(pixel, self.own));
            if self.counts_window {
                let mut sum = V::load_wide(self.columns[0].add(at));
                for i in 1..SIDE {
                    sum = V::add_wide(sum, V::load_wide(self.columns[i].add(at)));
                }
                parts = V::add_wide(parts, V::mul_wide(sum, self.window));
            }
            if self.counts_prior {
                let k = V::load_wide(self.numbers.add(at));
                let far = V::sub_wide(V::max_wide(k, self.expected), V::min_wide(k, self.expected));
                let far = V::min_wide(far, self.reach);
                parts = V::add_wide(parts, V::mul_wide(far, self.prior));
            }
            parts
        }
    }
}
