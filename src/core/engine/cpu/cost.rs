//! The matching cost as the kernels see it: a vector of candidates on request, either computed on the fly or
//! read from stored costs ([`FrameCost`]). Candidates lie in the order of `striping.rs`. Lanes beyond their
//! number must hold 255, so that they never win nor lower a neighbour.

use super::mirrored_rows::{Starts, Stripes};
use super::simd::Vector;
use crate::matching::windows::BLOCKS;

/// A cost of every pixel and candidate.
pub trait FrameCost: Copy + Send + Sync {
    type Row<V: Vector>: RowCost<V>;
    /// Whether it is that of the candidates that range windows leave.
    const WINDOWED: bool = false;

    /// The cost along row `y`.
    ///
    /// # Safety
    /// As [`Vector::splat`]; the row lies in the image, and in the band of a stored cost.
    unsafe fn row<V: Vector>(&self, y: usize) -> Self::Row<V>;
}

/// A cost that can be computed for the candidates of a tile (`windows.rs`).
pub trait BlockCost: FrameCost {
    /// The cost, for these blocks of candidates.
    fn of_blocks(self, blocks: [u16; BLOCKS]) -> Self;
}

pub trait RowCost<V: Vector>: Copy {
    type Pixel: PixelCost<V>;

    /// The cost at column `x`, in `chunks` vectors.
    ///
    /// # Safety
    /// As [`Vector::splat`]; the column lies in the image, and its pixels have this many vectors.
    unsafe fn at(&self, x: usize, chunks: usize) -> Self::Pixel;
}

pub trait PixelCost<V: Vector>: Copy {
    /// The candidates of vector `chunk`.
    ///
    /// # Safety
    /// The vector lies in the range.
    unsafe fn load(&self, chunk: usize) -> V;
}

#[derive(Clone, Copy)]
pub struct Padding {
    /// Mask ORed into the costs of a pixel, [depth].
    pub bytes: *const u8,
    /// Whether any lane lies beyond the range.
    pub needed: bool,
}

impl Padding {
    /// The costs of vector `chunk` with 255 in the lanes beyond the range.
    ///
    /// # Safety
    /// The vector lies in the range.
    #[inline(always)]
    pub unsafe fn apply<V: Vector>(self, cost: V, chunk: usize) -> V {
        // SAFETY: there is a byte for every lane.
        if self.needed { cost.or(unsafe { V::load(self.bytes.add(chunk * V::N)) }) } else { cost }
    }
}

/// Truncated absolute difference, computed on the fly.
#[derive(Clone, Copy)]
pub struct AdCost {
    pub left: *const u8,
    /// Mirrored rows of the right image (`mirrored_rows.rs`).
    pub mirrored: *const u8,
    pub width: usize,
    /// Bytes of a mirrored row.
    pub stride: usize,
    pub stripes: Stripes,
    pub truncation: u8,
    pub padding: Padding,
}

// SAFETY: the pointers are only read, and their data outlives the frame of the cost.
unsafe impl Send for AdCost {}
// SAFETY: as above.
unsafe impl Sync for AdCost {}

#[derive(Clone, Copy)]
pub struct AdRow<V> {
    left: *const u8,
    right: *const u8,
    stripes: Stripes,
    truncation: V,
    padding: Padding,
}

impl BlockCost for AdCost {
    fn of_blocks(self, blocks: [u16; BLOCKS]) -> Self {
        Self { stripes: self.stripes.of_blocks(blocks), ..self }
    }
}

impl FrameCost for AdCost {
    type Row<V: Vector> = AdRow<V>;

    #[inline(always)]
    unsafe fn row<V: Vector>(&self, y: usize) -> AdRow<V> {
        // SAFETY: row `y` lies in the image.
        unsafe {
            AdRow {
                left: self.left.add(y * self.width),
                right: self.mirrored.add(y * self.stride),
                stripes: self.stripes,
                truncation: V::splat(self.truncation),
                padding: self.padding,
            }
        }
    }
}

#[derive(Clone, Copy)]
pub struct AdPixel<V> {
    left: V,
    right: *const u8,
    starts: Starts,
    truncation: V,
    padding: Padding,
}

impl<V: Vector> RowCost<V> for AdRow<V> {
    type Pixel = AdPixel<V>;

    #[inline(always)]
    unsafe fn at(&self, x: usize, chunks: usize) -> AdPixel<V> {
        // SAFETY: the column lies in the image.
        let (left, starts) = unsafe { (V::splat(*self.left.add(x)), self.stripes.at(x, chunks)) };
        let Self { right, truncation, padding, .. } = *self;
        AdPixel { left, right, starts, truncation, padding }
    }
}

impl<V: Vector> PixelCost<V> for AdPixel<V> {
    #[inline(always)]
    unsafe fn load(&self, chunk: usize) -> V {
        // SAFETY: the mirrored row holds all vectors of the pixel.
        unsafe {
            let right = self.starts.load::<V>(self.right, chunk);
            self.padding.apply(self.left.abs_diff(right).min(self.truncation), chunk)
        }
    }
}
