//! Costs stored for a band of rows before the paths need them: costs over a window, because neighbouring
//! pixels share work (`window_sums.rs`), and costs that are too slow to compute five times.

use super::cost::{FrameCost, PixelCost, RowCost};
use super::geometry::Geometry;
use super::shape::ShapedKernel;
use super::simd::Vector;

/// A cost stored for the rows of a band: [row][x][depth].
#[derive(Clone, Copy)]
pub struct BandCost<const WINDOWED: bool> {
    /// First byte of row `first`.
    pub band_costs: *const u8,
    pub first: usize,
    pub width: usize,
    /// Bytes per pixel.
    pub depth: usize,
}

// SAFETY: a band's costs belong to one thread, which writes them before it makes the cost.
unsafe impl<const WINDOWED: bool> Send for BandCost<WINDOWED> {}
// SAFETY: as above.
unsafe impl<const WINDOWED: bool> Sync for BandCost<WINDOWED> {}

#[derive(Clone, Copy)]
pub struct BandRow {
    row: *const u8,
    depth: usize,
}

impl<const WINDOWED: bool> FrameCost for BandCost<WINDOWED> {
    type Row<V: Vector> = BandRow;
    const WINDOWED: bool = WINDOWED;

    #[inline(always)]
    unsafe fn row<V: Vector>(&self, y: usize) -> BandRow {
        // SAFETY: the row lies in the band.
        let row = unsafe { self.band_costs.add((y - self.first) * self.width * self.depth) };
        BandRow { row, depth: self.depth }
    }
}

impl<V: Vector> RowCost<V> for BandRow {
    type Pixel = BandPixel;

    #[inline(always)]
    unsafe fn at(&self, x: usize, _: usize) -> BandPixel {
        // SAFETY: the pixel lies in the band's row.
        BandPixel(unsafe { self.row.add(x * self.depth) })
    }
}

#[derive(Clone, Copy)]
pub struct BandPixel(*const u8);

impl<V: Vector> PixelCost<V> for BandPixel {
    #[inline(always)]
    unsafe fn load(&self, chunk: usize) -> V {
        // SAFETY: the pixel has all vectors of the range.
        unsafe { V::load(self.0.add(chunk * V::N)) }
    }
}

/// Stores a cost that can be computed on the fly, for the rows of a band.
pub struct FillBand<'a, C> {
    pub geometry: &'a Geometry,
    pub cost: C,
    /// First row and number of rows.
    pub rows: (usize, usize),
    /// The costs of the band, [row][x][depth].
    pub band_costs: *mut u8,
}

impl<C: FrameCost> ShapedKernel for FillBand<'_, C> {
    #[inline(always)]
    unsafe fn run<V: Vector, const MAX: usize, const EXACT: bool>(self) {
        let Geometry { width, depth, chunks, .. } = *self.geometry;
        let chunks = if EXACT { MAX } else { chunks };
        let (first, rows) = self.rows;
        for row in 0..rows {
            // SAFETY: the row lies in the image, and the band has room for it.
            unsafe {
                let costs = self.cost.row::<V>(first + row);
                let to = self.band_costs.add(row * width * depth);
                for x in 0..width {
                    let pixel = costs.at(x, chunks);
                    for c in 0..chunks {
                        pixel.load(c).store(to.add(x * depth + c * V::N));
                    }
                }
            }
        }
    }
}
