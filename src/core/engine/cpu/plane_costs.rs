//! Costs on prepared planes (`features.rs`).

use super::cost::{BlockCost, FrameCost, Padding, PixelCost, RowCost};
use super::features::{Features, GRADIENT_PLANES};
use super::mirrored_rows::{Starts, Stripes};
use super::simd::Vector;
use crate::matching;
use crate::matching::cost::{COMBINED_CENSUS, CombinedWeights};
use crate::matching::windows::BLOCKS;

/// Planes of the descriptors in the combined cost; gradient and intensity follow.
const COMBINED_BYTES: usize = 3;

impl Features {
    pub fn new(cost: matching::Cost) -> Self {
        match cost {
            matching::Cost::Ad { .. }
            | matching::Cost::Block { .. }
            | matching::Cost::MutualInformation { .. } => Features::of(None, false),
            matching::Cost::Census { window } => Features::of(Some(window), false),
            matching::Cost::Combined(_) => Features::of(Some(COMBINED_CENSUS), true),
        }
    }
}

#[derive(Clone, Copy)]
pub struct Planes {
    /// Planes of the left view, [row][plane][stride].
    pub left: *const u8,
    /// Bytes of a left row of a plane.
    pub left_stride: usize,
    /// Mirrored planes of the right view, [row][plane][stride].
    pub right: *const u8,
    /// Bytes of a mirrored row of a plane.
    pub right_stride: usize,
    pub stripes: Stripes,
    pub count: usize,
    pub padding: Padding,
}

#[derive(Clone, Copy)]
pub struct PlanesRow {
    left: *const u8,
    left_stride: usize,
    /// The first mirrored plane.
    right: *const u8,
    right_stride: usize,
    stripes: Stripes,
    padding: Padding,
}

impl Planes {
    fn of_blocks(self, blocks: [u16; BLOCKS]) -> Self {
        Self { stripes: self.stripes.of_blocks(blocks), ..self }
    }

    #[inline(always)]
    unsafe fn row(&self, y: usize) -> PlanesRow {
        // SAFETY: row `y` lies in the image.
        unsafe {
            PlanesRow {
                left: self.left.add(y * self.count * self.left_stride),
                left_stride: self.left_stride,
                right: self.right.add(y * self.count * self.right_stride),
                right_stride: self.right_stride,
                stripes: self.stripes,
                padding: self.padding,
            }
        }
    }
}

impl PlanesRow {
    #[inline(always)]
    unsafe fn at<V: Vector, const COUNT: usize>(
        &self,
        x: usize,
        chunks: usize,
    ) -> PlanesPixel<V, COUNT> {
        // SAFETY: the column lies in the image.
        unsafe {
            let mut left = [V::splat(0); COUNT];
            for (plane, left) in left.iter_mut().enumerate() {
                *left = V::splat(*self.left.add(plane * self.left_stride + x));
            }
            PlanesPixel {
                left,
                right: self.right,
                right_stride: self.right_stride,
                starts: self.stripes.at(x, chunks),
                padding: self.padding,
            }
        }
    }
}

#[derive(Clone, Copy)]
pub struct PlanesPixel<V, const COUNT: usize> {
    left: [V; COUNT],
    right: *const u8,
    right_stride: usize,
    starts: Starts,
    padding: Padding,
}

impl<V: Vector, const COUNT: usize> PlanesPixel<V, COUNT> {
    #[inline(always)]
    unsafe fn right(&self, plane: usize, chunk: usize) -> V {
        // SAFETY: a mirrored row holds all vectors of the pixel.
        unsafe { self.starts.load::<V>(self.right.add(plane * self.right_stride), chunk) }
    }

    #[inline(always)]
    unsafe fn distance<const BYTES: usize>(&self, chunk: usize) -> V {
        // SAFETY: the caller's promise.
        unsafe {
            let mut distance = self.left[0].xor(self.right(0, chunk)).count_ones();
            for plane in 1..BYTES {
                let differ = self.left[plane].xor(self.right(plane, chunk));
                distance = distance.adds(differ.count_ones());
            }
            distance
        }
    }

    #[inline(always)]
    unsafe fn difference(&self, plane: usize, chunk: usize) -> V {
        // SAFETY: the caller's promise.
        unsafe { self.left[plane].abs_diff(self.right(plane, chunk)) }
    }
}

#[derive(Clone, Copy)]
pub struct CensusCost<const BYTES: usize>(pub Planes);

// SAFETY: the pointers are only read, and their data outlives the frame of the cost.
unsafe impl<const BYTES: usize> Send for CensusCost<BYTES> {}
// SAFETY: as above.
unsafe impl<const BYTES: usize> Sync for CensusCost<BYTES> {}

#[derive(Clone, Copy)]
pub struct CensusRow<const BYTES: usize>(PlanesRow);

#[derive(Clone, Copy)]
pub struct CensusPixel<V, const BYTES: usize>(PlanesPixel<V, BYTES>);

impl<const BYTES: usize> BlockCost for CensusCost<BYTES> {
    fn of_blocks(self, blocks: [u16; BLOCKS]) -> Self {
        Self(self.0.of_blocks(blocks))
    }
}

impl<const BYTES: usize> FrameCost for CensusCost<BYTES> {
    type Row<V: Vector> = CensusRow<BYTES>;

    #[inline(always)]
    unsafe fn row<V: Vector>(&self, y: usize) -> CensusRow<BYTES> {
        // SAFETY: the caller's promise.
        CensusRow(unsafe { self.0.row(y) })
    }
}

impl<V: Vector, const BYTES: usize> RowCost<V> for CensusRow<BYTES> {
    type Pixel = CensusPixel<V, BYTES>;

    #[inline(always)]
    unsafe fn at(&self, x: usize, chunks: usize) -> CensusPixel<V, BYTES> {
        // SAFETY: the caller's promise.
        CensusPixel(unsafe { self.0.at(x, chunks) })
    }
}

impl<V: Vector, const BYTES: usize> PixelCost<V> for CensusPixel<V, BYTES> {
    #[inline(always)]
    unsafe fn load(&self, chunk: usize) -> V {
        // SAFETY: the caller's promise.
        unsafe { self.0.padding.apply(self.0.distance::<BYTES>(chunk), chunk) }
    }
}

/// Census, gradient and intensity with the weights of [`crate::matching::Cost::Combined`].
#[derive(Clone, Copy)]
pub struct CombinedCost {
    pub planes: Planes,
    pub of: CombinedWeights,
}

// SAFETY: the pointers are only read, and their data outlives the frame of the cost.
unsafe impl Send for CombinedCost {}
// SAFETY: as above.
unsafe impl Sync for CombinedCost {}

#[derive(Clone, Copy)]
pub struct CombinedRow<V> {
    planes: PlanesRow,
    weights: [u8; 3],
    truncations: [V; 2],
}

#[derive(Clone, Copy)]
pub struct CombinedPixel<V> {
    planes: PlanesPixel<V, { COMBINED_BYTES + GRADIENT_PLANES }>,
    weights: [u8; 3],
    truncations: [V; 2],
}

impl BlockCost for CombinedCost {
    fn of_blocks(self, blocks: [u16; BLOCKS]) -> Self {
        Self { planes: self.planes.of_blocks(blocks), ..self }
    }
}

impl FrameCost for CombinedCost {
    type Row<V: Vector> = CombinedRow<V>;

    #[inline(always)]
    unsafe fn row<V: Vector>(&self, y: usize) -> CombinedRow<V> {
        let of = self.of;
        // SAFETY: the caller's promise.
        unsafe {
            CombinedRow {
                planes: self.planes.row(y),
                weights: [of.census_weight, of.gradient_weight, of.intensity_weight],
                truncations: [V::splat(of.gradient_truncation), V::splat(of.intensity_truncation)],
            }
        }
    }
}

impl<V: Vector> RowCost<V> for CombinedRow<V> {
    type Pixel = CombinedPixel<V>;

    #[inline(always)]
    unsafe fn at(&self, x: usize, chunks: usize) -> CombinedPixel<V> {
        // SAFETY: the caller's promise.
        let planes = unsafe { self.planes.at(x, chunks) };
        CombinedPixel { planes, weights: self.weights, truncations: self.truncations }
    }
}

impl<V: Vector> PixelCost<V> for CombinedPixel<V> {
    #[inline(always)]
    unsafe fn load(&self, chunk: usize) -> V {
        let planes = &self.planes;
        // SAFETY: the caller's promise.
        unsafe {
            // The positive and the negative parts differ in opposite directions, so that the absolute
            // difference of the gradients is the sum of both absolute differences; values beyond 255 are
            // truncated anyway.
            let above = planes.difference(COMBINED_BYTES, chunk);
            let gradient = above.adds(planes.difference(COMBINED_BYTES + 1, chunk));
            let intensity = planes.difference(COMBINED_BYTES + 2, chunk);
            let parts = [
                planes.distance::<COMBINED_BYTES>(chunk),
                gradient.min(self.truncations[0]),
                intensity.min(self.truncations[1]),
            ];
            planes.padding.apply(V::weigh(parts, self.weights), chunk)
        }
    }
}
