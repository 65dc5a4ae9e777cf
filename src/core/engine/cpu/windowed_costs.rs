//! Costs of the candidates that range windows leave ([`crate::matching::windows`]), stored band by band and tile by
//! tile. A pixel near the border of a tile needs the costs of the pixels beyond it at its own tile's candidates, so
//! each tile computes them for itself.

use super::band_costs::BandCost;
use super::buffers::Scratch;
use super::cost::{BlockCost, PixelCost, RowCost};
use super::cost_source::{CostSource, Rows};
use super::frame::Frame;
use super::geometry::Geometry;
use super::pixel_rows::radius;
use super::shape::{Shape, ShapedKernel};
use super::simd::Vector;
use super::striping::StripedOrder;
use super::support::{Parts, PixelSupport};
use super::windows::{Tile, View};
use crate::matching::window::UNIT;
use crate::matching::windows::{CANDIDATES, TILE};

/// Costs of tiles, stored before the sweeps.
pub struct WindowedCosts<'a, C> {
    pub frame: &'a Frame<'a>,
    pub windows: View<'a>,
    pub cost: C,
}

impl<C: BlockCost> CostSource for WindowedCosts<'_, C> {
    type Cost = BandCost<true>;

    fn compute_costs<S: Shape>(
        &self,
        scratch: &mut Scratch,
        rows: Rows,
        again: bool,
    ) -> Self::Cost {
        let frame = self.frame;
        let (band_costs, stored) = frame.band_costs(scratch, rows, again);
        let Geometry { width, depth, .. } = *frame.geometry;
        if !stored {
            // SAFETY: the rows' costs are this thread's; the simd was found on this machine; the planes were
            // finished before.
            unsafe {
                S::run(WindowedBand {
                    geometry: frame.geometry,
                    cost: self.cost,
                    windows: self.windows,
                    radius: radius(frame.params),
                    rows,
                    support: frame.support.expect("windows need a prior"),
                    pixel_costs: scratch.pixel_costs.ptr(),
                    column_sums: scratch.window_columns.as_mut_ptr().cast(),
                    band_costs,
                });
            }
        }
        BandCost { band_costs, first: rows.0, width, depth }
    }
}

struct WindowedBand<'a, C> {
    geometry: &'a Geometry,
    cost: C,
    windows: View<'a>,
    /// Radius of the window of costs in pixels; 0 without one.
    radius: usize,
    /// First row and number of rows of the band.
    rows: Rows,
    support: &'a [PixelSupport],
    /// [`TILE_COSTS`](super::geometry::TILE_COSTS) bytes, [row][column][depth].
    pixel_costs: *mut u8,
    /// [`TILE_SUMS`](super::geometry::TILE_SUMS) numbers, [column][depth].
    column_sums: *mut i16,
    /// The costs of the band, [row][x][depth].
    band_costs: *mut u8,
}

impl<C: BlockCost> ShapedKernel for WindowedBand<'_, C> {
    #[inline(always)]
    unsafe fn run<V: Vector, const MAX: usize, const EXACT: bool>(self) {
        let chunks = if EXACT { MAX } else { self.geometry.chunks };
        for (number, tile) in self.windows.row(self.rows.0).iter().enumerate() {
            let first = number * TILE;
            let columns = first..(first + TILE).min(self.geometry.width);
            // Without weak texture nothing is averaged.
            let radius = if self.averages(&columns) { self.radius } else { 0 };
            // SAFETY: the caller's promise.
            unsafe {
                self.write_pixels::<V>(tile, &columns, radius, chunks);
                self.write_costs::<V, MAX>(tile, &columns, radius, chunks);
            }
        }
    }
}

impl<C: BlockCost> WindowedBand<'_, C> {
    /// Whether any pixel of these columns of the band has the mean of a window in its cost.
    fn averages(&self, columns: &std::ops::Range<usize>) -> bool {
        let row = |row: usize| &self.support[(self.rows.0 + row) * self.geometry.width..];
        (0..self.rows.1).any(|y| row(y)[columns.clone()].iter().any(|of| of.blend.window > 0))
    }

    /// Writes the costs of single pixels in and around a tile's part of the band, clamped into the image.
    #[inline(always)]
    unsafe fn write_pixels<V: Vector>(
        &self,
        tile: &Tile,
        columns: &std::ops::Range<usize>,
        radius: usize,
        chunks: usize,
    ) {
        let Geometry { width, height, .. } = *self.geometry;
        let (first, count) = self.rows;
        let cost = self.cost.of_blocks(tile.blocks);
        let mut to = self.pixel_costs;
        for row in 0..count + 2 * radius {
            let y = (first + row).saturating_sub(radius).min(height - 1);
            // SAFETY: row and columns lie in the image, and there is room for all.
            unsafe {
                let costs = cost.row::<V>(y);
                for column in columns.start..columns.end + 2 * radius {
                    let x = column.saturating_sub(radius).min(width - 1);
                    let pixel = costs.at(x, chunks);
                    for c in 0..chunks {
                        pixel.load(c).store(to);
                        to = to.add(V::N);
                    }
                }
            }
        }
    }

    /// Writes the supported costs of a tile's part of the band.
    #[inline(always)]
    unsafe fn write_costs<V: Vector, const MAX: usize>(
        &self,
        tile: &Tile,
        columns: &std::ops::Range<usize>,
        radius: usize,
        chunks: usize,
    ) {
        let Geometry { width, depth, .. } = *self.geometry;
        let (first, count) = self.rows;
        let (numbers, beyond) = places_of(tile, StripedOrder::of(self.geometry));
        let across = columns.len() + 2 * radius;
        // SAFETY: rows and columns lie in the tile and around it.
        unsafe {
            let pixel_row = |row: usize| self.pixel_costs.add(row * across * depth).cast_const();
            if radius > 0 {
                self.column_sums.write_bytes(0, across * depth);
                for row in 0..2 * radius {
                    self.slide::<V>(pixel_row(row), std::ptr::null(), across * depth);
                }
            }
            for row in 0..count {
                let y = first + row;
                let own = pixel_row(row + radius).add(radius * depth);
                let to = self.band_costs.add((row * width + columns.start) * depth);
                if radius > 0 {
                    let leaves = if row > 0 { pixel_row(row - 1) } else { std::ptr::null() };
                    self.slide::<V>(pixel_row(row + 2 * radius), leaves, across * depth);
                }
                let mut window = [[V::splat_wide(0); 2]; MAX];
                for column in 0..2 * radius {
                    self.add_column::<V, MAX, false>(&mut window, column, chunks);
                }
                for (i, x) in columns.clone().enumerate() {
                    if radius > 0 {
                        self.add_column::<V, MAX, false>(&mut window, i + 2 * radius, chunks);
                    }
                    let PixelSupport { blend, expected } = self.support[y * width + x];
                    let parts = Parts::<V>::new(blend, expected, numbers.as_ptr());
                    let alone = blend.own == UNIT as u16 && blend.prior == 0;
                    for (c, sums) in window.iter().enumerate().take(chunks) {
                        let at = c * V::N;
                        let pixel = V::load(own.add(i * depth + at));
                        let cost = if alone {
                            pixel
                        } else {
                            let ([low, high], [low_sum, high_sum]) = (pixel.widen(), *sums);
                            V::narrow_512([
                                parts.blend(low, low_sum, at),
                                parts.blend(high, high_sum, at + V::N / 2),
                            ])
                        };
                        cost.or(V::load(beyond.as_ptr().add(at))).store(to.add(i * depth + at));
                    }
                    if radius > 0 {
                        self.add_column::<V, MAX, true>(&mut window, i, chunks);
                    }
                }
            }
        }
    }

    /// Moves the sums of all columns to the next row; `leaves` is null if no row leaves.
    #[inline(always)]
    unsafe fn slide<V: Vector>(&self, enters: *const u8, leaves: *const u8, len: usize) {
        for at in (0..len).step_by(V::N) {
            // SAFETY: rows and sums are this long.
            unsafe {
                let to = self.column_sums.add(at);
                let [mut low, mut high] = V::load(enters.add(at)).widen();
                if !leaves.is_null() {
                    let [less_low, less_high] = V::load(leaves.add(at)).widen();
                    (low, high) = (V::sub_wide(low, less_low), V::sub_wide(high, less_high));
                }
                V::store_wide(V::add_wide(V::load_wide(to), low), to);
                let to = to.add(V::N / 2);
                V::store_wide(V::add_wide(V::load_wide(to), high), to);
            }
        }
    }

    /// Adds the sums of a column to those of a window, or subtracts those of one that leaves it.
    #[inline(always)]
    unsafe fn add_column<V: Vector, const MAX: usize, const LEAVES: bool>(
        &self,
        window: &mut [[V::Wide; 2]; MAX],
        column: usize,
        chunks: usize,
    ) {
        for (c, [low, high]) in window.iter_mut().enumerate().take(chunks) {
            // SAFETY: the column has sums.
            unsafe {
                let from = self.column_sums.add(column * self.geometry.depth + c * V::N);
                let (more_low, more_high) = (V::load_wide(from), V::load_wide(from.add(V::N / 2)));
                if LEAVES {
                    (*low, *high) = (V::sub_wide(*low, more_low), V::sub_wide(*high, more_high));
                } else {
                    (*low, *high) = (V::add_wide(*low, more_low), V::add_wide(*high, more_high));
                }
            }
        }
    }
}

/// The candidates of a tile at the places of a pair, and 255 at the places of bytes beyond the range.
#[inline(always)]
fn places_of(tile: &Tile, order: StripedOrder) -> ([i16; CANDIDATES], [u8; CANDIDATES]) {
    let (mut numbers, mut beyond) = ([0; CANDIDATES], [0; CANDIDATES]);
    for place in 0..CANDIDATES {
        numbers[order.place_of_wide(place)] = tile.candidate(place) as i16;
    }
    if tile.beyond > 0 {
        let inside = CANDIDATES - usize::from(tile.beyond);
        for (byte, place) in beyond.iter_mut().zip(order.candidates()) {
            *byte = if place < inside { 0 } else { 255 };
        }
    }
    (numbers, beyond)
}
