//! A cost that a table gives for every two grey levels: mutual information.

use super::cost::{Cost, PixelCost, RowCost};
use super::simd::Lanes;
use crate::matching::mutual_information::LEVELS;

/// The cost that a table gives.
///
/// The right row is stored mirrored, as for [`AdCost`](super::cost::AdCost).
#[derive(Clone, Copy)]
pub struct LookUpCost {
    /// Pixels of the left picture.
    pub left: *const u8,
    /// Mirrored rows of the right picture.
    pub mirrored: *const u8,
    /// Width of the picture.
    pub width: usize,
    /// Bytes of a mirrored row.
    pub stride: usize,
    /// The costs, [left level][right level].
    pub table: *const u8,
    /// Number of the last vector of a pixel.
    pub last: usize,
    /// What is or-ed to the last vector: 255 in the lanes beyond the range, else 0.
    pub padding: *const u8,
}

// SAFETY: the addresses are only read from, and outlive the frame that the cost was made for.
unsafe impl Send for LookUpCost {}
// SAFETY: as above.
unsafe impl Sync for LookUpCost {}

/// See [`LookUpCost`].
#[derive(Clone, Copy)]
pub struct LookUpRow<V> {
    left: *const u8,
    /// The mirrored right row where candidate 0 of column 0 lies.
    right: *const u8,
    table: *const u8,
    padding: V,
    last: usize,
}

impl Cost for LookUpCost {
    type Row<V: Lanes> = LookUpRow<V>;

    #[inline(always)]
    unsafe fn row<V: Lanes>(&self, y: usize) -> LookUpRow<V> {
        // SAFETY: row `y` lies in the picture; the padding has the length of a vector.
        unsafe {
            LookUpRow {
                left: self.left.add(y * self.width),
                right: self.mirrored.add(y * self.stride + self.width - 1),
                table: self.table,
                padding: V::load(self.padding),
                last: self.last,
            }
        }
    }
}

/// See [`LookUpCost`].
#[derive(Clone, Copy)]
pub struct LookUpPixel<V> {
    /// Costs by right level.
    costs: *const u8,
    right: *const u8,
    padding: V,
    last: usize,
}

impl<V: Lanes> RowCost<V> for LookUpRow<V> {
    type Pixel = LookUpPixel<V>;

    #[inline(always)]
    unsafe fn at(&self, x: usize) -> LookUpPixel<V> {
        // SAFETY: the column lies in the picture, and the table has a row for every level; the mirrored row
        // holds width - 1 bytes before `right`.
        let (costs, right) =
            unsafe { (self.table.add(usize::from(*self.left.add(x)) * LEVELS), self.right.sub(x)) };
        LookUpPixel { costs, right, padding: self.padding, last: self.last }
    }
}

impl<V: Lanes> PixelCost<V> for LookUpPixel<V> {
    #[inline(always)]
    unsafe fn load(&self, chunk: usize) -> V {
        // SAFETY: the mirrored row holds all vectors behind `right`; a row of the table has 256 costs.
        let cost = unsafe { V::load(self.right.add(chunk * V::N)).look_up(self.costs) };
        if chunk == self.last { cost.or(self.padding) } else { cost }
    }
}
