//! What supports the cost, prepared a picture and then a band: the weights of window and prior at every
//! pixel, and the costs that are made of them ([`crate::matching::support`]).

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

/// The blends by range of grey levels.
pub fn blends(params: &Params, threshold: u32) -> [Blend; 256] {
    std::array::from_fn(|range| Blend::of(params, range as u8, threshold))
}

/// The map of the half-size pictures.
#[derive(Clone, Copy)]
pub struct Coarse<'a> {
    /// Its values, row by row.
    pub values: &'a [i16],
    /// Its size.
    pub size: (usize, usize),
}

impl Coarse<'_> {
    /// Writes what the map says of each column of its row `y`: 1/16 px, or [`INVALID`] where the map is
    /// unknown or varies.
    pub fn speaks(&self, y: usize, row: &mut [i16]) {
        let (width, height) = self.size;
        let of = |y: usize| &self.values[y * width..][..width];
        let rows = [of(y.saturating_sub(1)), of(y), of((y + 1).min(height - 1))];
        for (x, to) in row.iter_mut().enumerate() {
            let centre = rows[1][x];
            let columns = [x.saturating_sub(1), x, (x + 1).min(width - 1)];
            let even = |value: i16| {
                value != INVALID && (i32::from(value) - i32::from(centre)).abs() <= VARIATION_MAX
            };
            let speaks = rows.iter().all(|row| columns.iter().all(|&x| even(row[x])));
            *to = if speaks { centre } else { INVALID };
        }
    }
}

/// Writes the support of row `y` of a picture: `ranges` are the ranges of grey levels along it, and
/// `coarse` what the coarse map says of its columns, two pixels each.
pub fn support_row(
    geometry: &Geometry,
    blends: &[Blend; 256],
    ranges: &[u8],
    coarse: Option<&[i16]>,
    row: &mut [PixelSupport],
) {
    for (x, (to, &range)) in row.iter_mut().zip(ranges).enumerate() {
        let mut blend = blends[usize::from(range)];
        let said = coarse.map_or(INVALID, |coarse| coarse[x / 2]);
        let expected = if said == INVALID {
            blend.prior = 0;
            0
        } else {
            let disparity = (2 * i32::from(said) + SUBPIXEL / 2).div_euclid(SUBPIXEL);
            (disparity - geometry.min) as i16
        };
        *to = PixelSupport { blend, expected };
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
    /// Sums over the window, [depth].
    pub window: &'a mut [u16],
    /// What is or-ed to a pixel's last vector: 255 in the lanes beyond the range, else 0.
    pub padding: *const u8,
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

/// Numbers of candidates, as many as the widest vector has lanes of 16 bits.
static NUMBERS: [i16; 32] = {
    let mut numbers = [0; 32];
    let mut i = 0;
    while i < 32 {
        numbers[i] = i as i16;
        i += 1;
    }
    numbers
};

impl Kernel for SupportBand<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(mut self) {
        let (first, count) = self.rows;
        let radius = self.radius as i64;
        self.columns.fill(0);
        // SAFETY: the rows lie around the band; the caller vouches for the memory.
        unsafe {
            if radius > 0 {
                (-radius..=radius).for_each(|down| self.add_row::<V>(first as i64 + down, None));
            }
            for y in first..first + count {
                if radius > 0 && y > first {
                    self.add_row::<V>(y as i64 + radius, Some(y as i64 - 1 - radius));
                }
                self.write_row::<V>(y);
            }
        }
    }
}

impl SupportBand<'_> {
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
        // SAFETY: rows and sums have a number for each lane of each pixel.
        unsafe {
            let enters = self.row(enters);
            let leaves = leaves.map(|leaves| self.row(leaves));
            for at in (0..len).step_by(V::N) {
                let mut change = V::load(enters.add(at)).widen();
                if let Some(leaves) = leaves {
                    let leaves = V::load(leaves.add(at)).widen();
                    change = [0, 1].map(|i| V::sub_wide(change[i], leaves[i]));
                }
                for (i, change) in change.into_iter().enumerate() {
                    let sum = self.columns.as_mut_ptr().add(at + i * half).cast::<i16>();
                    V::store_wide(V::add_wide(V::load_wide(sum), change), sum);
                }
            }
        }
    }

    /// Slides the window along a row of the band and writes its costs.
    #[inline(always)]
    unsafe fn write_row<V: Lanes>(&mut self, y: usize) {
        let Geometry { width, depth, chunks, .. } = *self.geometry;
        let (radius, half) = (self.radius as i64, V::N / 2);
        let support = &self.support[y * width..][..width];
        // SAFETY: every column below lies in the picture, and every vector in the range of a pixel.
        unsafe {
            let own = self.row(y as i64);
            let to = self.band_costs.add((y - self.rows.0) * width * depth);
            let columns = self.columns.as_ptr().cast::<i16>();
            // Without a window there are none, and nobody looks.
            let column =
                |x: i64| columns.wrapping_add(x.clamp(0, width as i64 - 1) as usize * depth);
            let padding = V::load(self.padding);
            let reach = V::splat_wide(REACH as i16);

            // The window one column before the first.
            self.window.fill(0);
            let window = self.window.as_mut_ptr().cast::<i16>();
            if radius > 0 {
                for across in -1 - radius..radius {
                    let from = column(across);
                    for at in (0..depth).step_by(half) {
                        let sum =
                            V::add_wide(V::load_wide(window.add(at)), V::load_wide(from.add(at)));
                        V::store_wide(sum, window.add(at));
                    }
                }
            }
            for (x, &PixelSupport { blend, expected }) in support.iter().enumerate() {
                let (enters, leaves) = (column(x as i64 + radius), column(x as i64 - 1 - radius));
                let of_own = V::splat_wide(blend.own as i16);
                let of_window = V::splat_wide(blend.window as i16);
                let of_prior = V::splat_wide(blend.prior as i16);
                let expected = V::splat_wide(expected);
                for c in 0..chunks {
                    let at = c * V::N;
                    let pixel = V::load(own.add(x * depth + at)).widen();
                    let mut parts = [V::splat_wide(UNIT as i16 / 2); 2];
                    for (i, parts) in parts.iter_mut().enumerate() {
                        let at = at + i * half;
                        // All parts together fit 16 bits (`SUPPORTED_MAX`), but for the lanes beyond the range.
                        *parts = V::add_wide(*parts, V::mul_wide(pixel[i], of_own));
                        if radius > 0 {
                            let change = V::sub_wide(
                                V::load_wide(enters.add(at)),
                                V::load_wide(leaves.add(at)),
                            );
                            let sum = V::add_wide(V::load_wide(window.add(at)), change);
                            V::store_wide(sum, window.add(at));
                            *parts = V::add_wide(*parts, V::mul_wide(sum, of_window));
                        }
                        if blend.prior > 0 {
                            let first = V::splat_wide(at as i16);
                            let k = V::add_wide(V::load_wide(NUMBERS.as_ptr()), first);
                            let far =
                                V::sub_wide(V::max_wide(k, expected), V::min_wide(k, expected));
                            let far = V::min_wide(far, reach);
                            *parts = V::add_wide(*parts, V::mul_wide(far, of_prior));
                        }
                    }
                    let cost = V::narrow_512(parts);
                    let cost = if c + 1 == chunks { cost.or(padding) } else { cost };
                    cost.store(to.add(x * depth + at));
                }
            }
        }
    }
}
