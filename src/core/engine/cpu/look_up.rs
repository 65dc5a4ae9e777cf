//! Costs from a table of all pairs of grey levels: mutual information.

use super::cost::{BlockCost, FrameCost, Padding, PixelCost, RowCost};
use super::mirrored_rows::{Starts, Stripes};
use super::simd::Vector;
use crate::matching::mutual_information::LEVELS;
use crate::matching::windows::BLOCKS;

#[derive(Clone, Copy)]
pub struct LookUpCost {
    pub left: *const u8,
    pub mirrored: *const u8,
    pub width: usize,
    /// Bytes of a mirrored row.
    pub stride: usize,
    pub stripes: Stripes,
    /// The costs, [left level][right level].
    pub table: *const u8,
    pub padding: Padding,
}

// SAFETY: the pointers are only read, and their data outlives the frame of the cost.
unsafe impl Send for LookUpCost {}
// SAFETY: as above.
unsafe impl Sync for LookUpCost {}

#[derive(Clone, Copy)]
pub struct LookUpRow {
    left: *const u8,
    right: *const u8,
    stripes: Stripes,
    table: *const u8,
    padding: Padding,
}

impl BlockCost for LookUpCost {
    fn of_blocks(self, blocks: [u16; BLOCKS]) -> Self {
        Self { stripes: self.stripes.of_blocks(blocks), ..self }
    }
}

impl FrameCost for LookUpCost {
    type Row<V: Vector> = LookUpRow;

    #[inline(always)]
    unsafe fn row<V: Vector>(&self, y: usize) -> LookUpRow {
        // SAFETY: row `y` lies in the image.
        unsafe {
            LookUpRow {
                left: self.left.add(y * self.width),
                right: self.mirrored.add(y * self.stride),
                stripes: self.stripes,
                table: self.table,
                padding: self.padding,
            }
        }
    }
}

#[derive(Clone, Copy)]
pub struct LookUpPixel {
    /// Costs by right level.
    costs: *const u8,
    right: *const u8,
    starts: Starts,
    padding: Padding,
}

impl<V: Vector> RowCost<V> for LookUpRow {
    type Pixel = LookUpPixel;

    #[inline(always)]
    unsafe fn at(&self, x: usize, chunks: usize) -> LookUpPixel {
        // SAFETY: the column lies in the image, and the table has a row for every level.
        let (costs, starts) = unsafe {
            (self.table.add(usize::from(*self.left.add(x)) * LEVELS), self.stripes.at(x, chunks))
        };
        LookUpPixel { costs, right: self.right, starts, padding: self.padding }
    }
}

impl<V: Vector> PixelCost<V> for LookUpPixel {
    #[inline(always)]
    unsafe fn load(&self, chunk: usize) -> V {
        // SAFETY: the mirrored row holds all vectors of the pixel; a row of the table has 256 costs.
        unsafe {
            let right = self.starts.load::<V>(self.right, chunk);
            self.padding.apply(right.look_up(self.costs), chunk)
        }
    }
}
