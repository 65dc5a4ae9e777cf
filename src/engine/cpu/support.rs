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
    pub pixel_costs: &'a [u8],
    /// What supports them, of the whole picture.
    pub support: &'a [PixelSupport],
    /// Sums over the window's rows, [x][depth]; empty without a window.
    pub columns: &'a mut [u16],
    /// Sums over the window, [depth].
    pub window: &'a mut [u16],
    /// The costs of the band, [row][x][depth].
    pub band_costs: &'a mut [u8],
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

impl Kernel for SupportBand<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(mut self) {
        let (first, count) = self.rows;
        if self.radius == 0 {
            (first..first + count).for_each(|y| self.write_row(y));
            return;
        }
        let radius = self.radius as i64;
        self.columns.fill(0);
        for down in -radius..=radius {
            self.add_row(first as i64 + down);
        }
        for y in first..first + count {
            if y > first {
                self.move_down(y as i64 + radius, y as i64 - 1 - radius);
            }
            self.write_row(y);
        }
    }
}

impl SupportBand<'_> {
    /// The pixel costs of a row, clamped into the picture.
    #[inline(always)]
    fn row(&self, y: i64) -> &[u8] {
        let Geometry { width, depth, height, .. } = *self.geometry;
        let (begin, _) = rows_around(self.geometry, self.rows, self.radius);
        let y = y.clamp(0, height as i64 - 1) as usize - begin;
        &self.pixel_costs[y * width * depth..][..width * depth]
    }

    /// Adds a row to the sums of the columns.
    #[inline(always)]
    fn add_row(&mut self, y: i64) {
        let columns = std::mem::take(&mut self.columns);
        columns.iter_mut().zip(self.row(y)).for_each(|(sum, &cost)| *sum += u16::from(cost));
        self.columns = columns;
    }

    /// Adds a row to the sums of the columns and takes another away.
    #[inline(always)]
    fn move_down(&mut self, enters: i64, leaves: i64) {
        let columns = std::mem::take(&mut self.columns);
        let rows = self.row(enters).iter().zip(self.row(leaves));
        for (sum, (&enters, &leaves)) in columns.iter_mut().zip(rows) {
            *sum = sum.wrapping_add(u16::from(enters)).wrapping_sub(u16::from(leaves));
        }
        self.columns = columns;
    }

    /// Slides the window along a row of the band and writes its costs.
    #[inline(always)]
    fn write_row(&mut self, y: usize) {
        let Geometry { width, depth, count, .. } = *self.geometry;
        let radius = self.radius;
        let band_costs = std::mem::take(&mut self.band_costs);
        let window = std::mem::take(&mut self.window);
        let window = &mut window[..depth];
        let costs = &mut band_costs[(y - self.rows.0) * width * depth..][..width * depth];
        let column = |x: i64| x.clamp(0, width as i64 - 1) as usize * depth;
        window.fill(0);
        if radius > 0 {
            for across in -(radius as i64)..=radius as i64 {
                let from = &self.columns[column(across)..][..depth];
                window.iter_mut().zip(from).for_each(|(sum, &column)| *sum += column);
            }
        }
        let own = self.row(y as i64);
        let support = &self.support[y * width..][..width];
        for (x, &PixelSupport { blend, expected }) in support.iter().enumerate() {
            if radius > 0 && x > 0 {
                let enters = &self.columns[column((x + radius) as i64)..][..depth];
                let leaves = &self.columns[column(x as i64 - 1 - radius as i64)..][..depth];
                for ((sum, &enters), &leaves) in window.iter_mut().zip(enters).zip(leaves) {
                    *sum = sum.wrapping_add(enters).wrapping_sub(leaves);
                }
            }
            let own = &own[x * depth..][..depth];
            let to = &mut costs[x * depth..][..depth];
            // No part is lost: all together fit 16 bits (`SUPPORTED_MAX`), but for the lanes beyond the range.
            let parts = |own: u8, sum: u16| {
                let own = blend.own.wrapping_mul(u16::from(own));
                own.wrapping_add(blend.window.wrapping_mul(sum)).wrapping_add(UNIT as u16 / 2)
            };
            if blend.prior == 0 {
                for ((to, &own), &sum) in to.iter_mut().zip(own).zip(window.iter()) {
                    *to = (parts(own, sum) / UNIT as u16) as u8;
                }
            } else {
                let each = to.iter_mut().zip(own).zip(window.iter());
                for (k, ((to, &own), &sum)) in (0i16..).zip(each) {
                    let far = k.abs_diff(expected).min(REACH as u16);
                    let prior = blend.prior.wrapping_mul(far);
                    *to = (parts(own, sum).wrapping_add(prior) / UNIT as u16) as u8;
                }
            }
            to[count..].fill(255);
        }
        self.band_costs = band_costs;
        self.window = window;
    }
}
