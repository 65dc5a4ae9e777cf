//! Sources of a band's costs: computed on the fly by each sweep, or stored before the sweeps.

use super::band_costs::{BandCost, FillBand};
use super::buffers::Scratch;
use super::cost::FrameCost;
use super::frame::Frame;
use super::geometry::Geometry;
use super::pixel_rows::{self, PixelRows};
use super::shape::Shape;
use super::support::SupportBand;
use super::window_sums::{Rounding, Row, ToBytes};

/// Rows of a frame: the first row and the number of rows.
pub type Rows = (usize, usize);

/// A source of the costs of bands.
pub trait CostSource: Sync {
    /// The cost as the kernels see it.
    type Cost: FrameCost;

    /// Computes the costs of a band; `again` if an earlier sweep already did.
    fn compute_costs<S: Shape>(&self, scratch: &mut Scratch, rows: Rows, again: bool)
    -> Self::Cost;
}

/// A cost that the kernels compute on the fly.
impl<C: FrameCost> CostSource for C {
    type Cost = C;

    fn compute_costs<S: Shape>(&self, _: &mut Scratch, _: Rows, _: bool) -> C {
        *self
    }
}

/// Writes costs into memory.
pub trait CostWriter: Sync {
    /// Writes the costs of rows to `to`, [row][x][depth]. `to` has room for them.
    fn write<S: Shape>(&self, scratch: &mut Scratch, rows: Rows, to: *mut u8);
}

/// Writes a cost of single pixels.
pub struct PixelWriter<'a, C> {
    /// Layout of the frame.
    pub geometry: &'a Geometry,
    pub cost: C,
}

impl<C: FrameCost> CostWriter for PixelWriter<'_, C> {
    fn write<S: Shape>(&self, _: &mut Scratch, rows: Rows, band_costs: *mut u8) {
        let Self { geometry, cost } = *self;
        // SAFETY: there is room for the rows, which are this thread's; the simd was found on this
        // machine; the planes were finished before.
        unsafe { S::run(FillBand { geometry, cost, rows, band_costs }) }
    }
}

/// Writes a cost over windows, with sums rounded to bytes.
pub struct WindowWriter<'a> {
    pub frame: &'a Frame<'a>,
    pub rounding: Rounding,
}

impl CostWriter for WindowWriter<'_> {
    fn write<S: Shape>(&self, scratch: &mut Scratch, (first, rows): Rows, to: *mut u8) {
        let Geometry { width, depth, .. } = *self.frame.geometry;
        for row in 0..rows {
            // SAFETY: there is room for the rows.
            let to = unsafe { to.add(row * width * depth) };
            let padding = self.frame.shared.padding.ptr();
            let sink = ToBytes { to, padding, rounding: self.rounding };
            let row = Row { y: first + row, begins: row == 0 };
            self.frame.sum_windows::<S, _>(scratch, row, sink);
        }
    }
}

/// Costs stored before the sweeps, blended with the adaptive window and the prior.
pub struct StoredCosts<'a, W> {
    pub frame: &'a Frame<'a>,
    /// The cost of a single pixel.
    pub writer: W,
}

impl Frame<'_> {
    /// The memory for the costs of a band's rows, and whether an earlier sweep has filled it.
    pub(super) fn band_costs(&self, scratch: &Scratch, rows: Rows, again: bool) -> (*mut u8, bool) {
        let Geometry { width, depth, keeps_costs, .. } = *self.geometry;
        match keeps_costs {
            // SAFETY: there is room for all rows; each band belongs to one thread.
            true => (unsafe { self.shared.whole_costs.ptr().add(rows.0 * width * depth) }, again),
            false => (scratch.band_costs.ptr(), false),
        }
    }
}

impl<W: CostWriter> CostSource for StoredCosts<'_, W> {
    type Cost = BandCost<false>;

    fn compute_costs<S: Shape>(
        &self,
        scratch: &mut Scratch,
        rows: Rows,
        again: bool,
    ) -> Self::Cost {
        let frame = self.frame;
        let Geometry { width, depth, .. } = *frame.geometry;
        let (band_costs, stored) = frame.band_costs(scratch, rows, again);
        let cost = BandCost { band_costs, first: rows.0, width, depth };
        if stored {
            return cost;
        }
        let Some(support) = frame.support else {
            self.writer.write::<S>(scratch, rows, band_costs);
            return cost;
        };
        let radius = pixel_rows::radius(frame.params);
        let pixel_rows = PixelRows::write(
            frame.geometry,
            rows,
            radius,
            scratch.pixel_costs.ptr(),
            &frame.shared.handed_on,
            |rows, to| self.writer.write::<S>(scratch, rows, to),
        );
        // SAFETY: no thread writes to the rows, and the costs are this thread's; the simd was found on this
        // machine.
        unsafe {
            S::run(SupportBand {
                geometry: frame.geometry,
                radius,
                rows,
                pixel_rows,
                support,
                columns: &mut scratch.window_columns,
                numbers: frame.shared.numbers.ptr(),
                padding: frame.padding(),
                band_costs,
            });
        }
        cost
    }
}
