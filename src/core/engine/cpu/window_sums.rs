//! Sums over windows, row by row: a running sum down every column of cells, and one of these along the row.
//! So the time is independent of the window.
//!
//! The terms are the [`Parts`] of a cell (a pixel and a candidate): its cost, or the differences of block
//! matching (`matching/block.rs`). A [`Sink`] receives the sums.

use super::buffers::Scratch;
use super::geometry::Geometry;
use super::mirrored_rows::Stripes;
use super::simd::{SimdKernel, Vector};
use crate::frame::Image;
use crate::matching::BlockMeasure;
use crate::matching::block::{SUM_MAX, Scale, byte_shift};

/// Largest number of candidates of a pixel, in whole vectors (`Params::check`).
const DEPTH_MAX: usize = 1024;

/// A number with wrapping addition, so that intermediate overflow cancels.
pub trait Number: Copy + Into<u32> {
    const ZERO: Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn memory(scratch: &mut Scratch) -> Memory<'_, Self>;
}

pub struct Memory<'a, T> {
    /// Sums over the window's rows, [x][part][depth].
    pub columns: &'a mut [T],
    /// Sums over the window, [part][depth].
    pub window: &'a mut [T],
    /// Output sums of one pixel, [depth].
    pub sums: &'a mut [i16],
}

macro_rules! number {
    ($number:ty, $columns:ident, $window:ident) => {
        impl Number for $number {
            const ZERO: Self = 0;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn memory(scratch: &mut Scratch) -> Memory<'_, Self> {
                let Scratch { $columns: columns, $window: window, pixel_sums: sums, .. } = scratch;
                Memory { columns, window, sums }
            }
        }
    };
}
number!(u16, window_columns, window_sums);
number!(u32, wide_columns, wide_sums);

/// The terms that are summed over the cells of a row.
pub trait Parts: Copy {
    type Sum: Number;
    /// Number of terms per cell, [part][depth] per pixel.
    const PARTS: usize;

    /// Adds the cells of row `y` to `columns`, [x][part][depth], or subtracts them.
    ///
    /// # Safety
    /// The row lies in the image, and its cells were prepared.
    unsafe fn add_row<V: Vector>(
        &self,
        geometry: &Geometry,
        y: usize,
        add: bool,
        columns: &mut [Self::Sum],
    );
}

/// Stored costs of single pixels: row y, [x][depth], at place y mod `places`.
#[derive(Clone, Copy)]
pub struct PixelCosts {
    pub costs: *const u8,
    /// Capacity in rows.
    pub places: usize,
}

impl Parts for PixelCosts {
    type Sum = u16;
    const PARTS: usize = 1;

    #[inline(always)]
    unsafe fn add_row<V: Vector>(
        &self,
        geometry: &Geometry,
        y: usize,
        add: bool,
        columns: &mut [u16],
    ) {
        let len = geometry.width * geometry.depth;
        // SAFETY: the place holds a row.
        let row = unsafe { std::slice::from_raw_parts(self.costs.add(y % self.places * len), len) };
        for (sum, &cost) in columns.iter_mut().zip(row) {
            let cost = u16::from(cost);
            *sum = if add { sum.plus(cost) } else { sum.minus(cost) };
        }
    }
}

/// Squared differences of intensity and, with `MEAN`, the differences after them.
#[derive(Clone, Copy)]
pub struct Squares<'a, const MEAN: bool> {
    pub left: &'a Image,
    /// Mirrored rows of the right image (`mirrored_rows.rs`).
    pub mirrored: *const u8,
    pub stripes: Stripes,
}

impl<const MEAN: bool> Parts for Squares<'_, MEAN> {
    type Sum = u32;
    const PARTS: usize = if MEAN { 2 } else { 1 };

    #[inline(always)]
    unsafe fn add_row<V: Vector>(
        &self,
        geometry: &Geometry,
        y: usize,
        add: bool,
        columns: &mut [u32],
    ) {
        let Geometry { depth, chunks, .. } = *geometry;
        let stride = geometry.mirrored_stride();
        // SAFETY: the mirrored rows hold `stride` bytes each and are no longer written to.
        let mirrored = unsafe { std::slice::from_raw_parts(self.mirrored.add(y * stride), stride) };
        let columns = columns.chunks_exact_mut(Self::PARTS * depth);
        let mut right = [0; DEPTH_MAX];
        let right = &mut right[..depth];
        for (x, (column, &left)) in columns.zip(self.left.row(y)).enumerate() {
            // SAFETY: the column lies in the image.
            let starts = unsafe { self.stripes.at(x, chunks) };
            // Copied into one row, because compilers do not vectorise loops over single vectors.
            for (c, right) in right.chunks_exact_mut(V::N).enumerate() {
                // SAFETY: the pixel has the vector.
                right.copy_from_slice(&mirrored[unsafe { starts.at(c) }..][..V::N]);
            }
            let (squares, differences) = column.split_at_mut(depth);
            for (sum, &right) in squares.iter_mut().zip(&*right) {
                let square = u32::from(left.abs_diff(right)).pow(2);
                *sum = if add { sum.plus(square) } else { sum.minus(square) };
            }
            for (sum, &right) in differences.iter_mut().zip(&*right) {
                let difference = (i32::from(left) - i32::from(right)) as u32;
                *sum = if add { sum.plus(difference) } else { sum.minus(difference) };
            }
        }
    }
}

/// Absolute differences of pixels minus their local mean (`zero_mean.rs`).
#[derive(Clone, Copy)]
pub struct ZeroMean {
    /// The left view's, [row][feature stride].
    pub left: *const i16,
    /// The right view's, mirrored.
    pub mirrored: *const i16,
    pub stripes: Stripes,
}

impl Parts for ZeroMean {
    type Sum = u32;
    const PARTS: usize = 1;

    #[inline(always)]
    unsafe fn add_row<V: Vector>(
        &self,
        geometry: &Geometry,
        y: usize,
        add: bool,
        columns: &mut [u32],
    ) {
        let Geometry { width, depth, chunks, .. } = *geometry;
        let (left_stride, stride) = (geometry.feature_stride(), geometry.mirrored_stride());
        // SAFETY: the rows have these lengths and are no longer written to.
        let (left, mirrored) = unsafe {
            (
                std::slice::from_raw_parts(self.left.add(y * left_stride), width),
                std::slice::from_raw_parts(self.mirrored.add(y * stride), stride),
            )
        };
        for (x, (column, &left)) in columns.chunks_exact_mut(depth).zip(left).enumerate() {
            // SAFETY: the column lies in the image.
            let starts = unsafe { self.stripes.at(x, chunks) };
            for (c, sums) in column.chunks_exact_mut(V::N).enumerate() {
                // SAFETY: the pixel has the vector.
                let right = &mirrored[unsafe { starts.at(c) }..][..V::N];
                for (sum, &right) in sums.iter_mut().zip(right) {
                    let difference = u32::from(left.abs_diff(right));
                    *sum = if add { sum.plus(difference) } else { sum.minus(difference) };
                }
            }
        }
    }
}

/// Conversion of a window's parts into one number of 15 bits.
#[derive(Clone, Copy)]
pub enum Total {
    /// Costs of pixels, added up.
    Plain,
    /// The first part, scaled.
    Scaled(Scale),
    /// The first part times the number of pixels of the window, minus the square of the second, scaled.
    Variance(Scale, u32),
}

/// A receiver of the sums of a pixel.
pub trait Sink {
    /// Receives the sums of the pixel in column `x`, including padding.
    ///
    /// # Safety
    /// The column lies in the image.
    unsafe fn take(&mut self, x: usize, sums: &[i16]);
}

/// Stores the sums, [x][depth].
pub struct ToSums(pub *mut i16);

impl Sink for ToSums {
    #[inline(always)]
    unsafe fn take(&mut self, x: usize, sums: &[i16]) {
        // SAFETY: there is room for a row.
        unsafe {
            std::ptr::copy_nonoverlapping(sums.as_ptr(), self.0.add(x * sums.len()), sums.len())
        };
    }
}

/// Stores costs, [x][depth], 255 beyond the candidates: min((sum + half) factor / 2^(16 + shift), most).
pub struct ToBytes {
    pub to: *mut u8,
    /// Mask ORed into them, [depth]: 255 beyond the range, else 0.
    pub padding: *const u8,
    pub rounding: Rounding,
}

#[derive(Clone, Copy)]
pub struct Rounding {
    half: u16,
    factor: u32,
    shift: u32,
    most: u16,
}

impl Rounding {
    /// The rounding of `matching::block::byte`.
    pub fn of_block(measure: BlockMeasure, truncation: u8) -> Self {
        let shift = byte_shift(measure);
        Self { half: 1 << (shift - 1), factor: 1 << 16, shift, most: truncation.into() }
    }

    /// The mean over windows of 9, 25 or 49 pixels.
    pub fn to_mean(area: u32) -> Self {
        // (sum + area / 2) / area as a multiplication: exact below 43690.
        let (factor, shift) = match area {
            9 => (58255, 3),
            25 => (41944, 4),
            _ => (42800, 5),
        };
        Self { half: (area / 2) as u16, factor, shift, most: u8::MAX.into() }
    }

    #[inline(always)]
    fn byte(self, sum: u16) -> u8 {
        let rounded = u32::from(sum + self.half);
        ((((rounded * self.factor) >> 16) as u16) >> self.shift).min(self.most) as u8
    }
}

impl Sink for ToBytes {
    #[inline(always)]
    unsafe fn take(&mut self, x: usize, sums: &[i16]) {
        let len = sums.len();
        // SAFETY: there is room for a row, and padding for a pixel.
        let (to, padding) = unsafe {
            (
                std::slice::from_raw_parts_mut(self.to.add(x * len), len),
                std::slice::from_raw_parts(self.padding, len),
            )
        };
        for ((byte, &sum), &padding) in to.iter_mut().zip(sums).zip(padding) {
            *byte = self.rounding.byte(sum as u16) | padding;
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Row {
    pub y: usize,
    /// True for the first row of a piece.
    pub begins: bool,
}

/// Sums over the windows of row `y`; unless it `begins`, the columns hold those around row `y - 1`.
pub struct SumRow<'a, P: Parts, S> {
    pub geometry: &'a Geometry,
    pub parts: P,
    pub radius: (usize, usize),
    pub total: Total,
    pub y: usize,
    /// Whether the columns are still empty.
    pub begins: bool,
    pub memory: Memory<'a, P::Sum>,
    pub sink: S,
}

impl<P: Parts, S: Sink> SimdKernel for SumRow<'_, P, S> {
    #[inline(always)]
    unsafe fn run<V: Vector>(mut self) {
        let (_, down) = self.radius;
        // SAFETY: rows are clamped into the image.
        unsafe {
            if self.begins {
                self.memory.columns.fill(P::Sum::ZERO);
                for row in -(down as i64)..=down as i64 {
                    self.add_row::<V>(self.y as i64 + row, true);
                }
            } else {
                self.add_row::<V>(self.y as i64 + down as i64, true);
                self.add_row::<V>(self.y as i64 - 1 - down as i64, false);
            }
            self.slide();
        }
    }
}

impl<P: Parts, S: Sink> SumRow<'_, P, S> {
    #[inline(always)]
    unsafe fn add_row<V: Vector>(&mut self, y: i64, add: bool) {
        let y = y.clamp(0, self.geometry.height as i64 - 1) as usize;
        // SAFETY: the row lies in the image.
        unsafe { self.parts.add_row::<V>(self.geometry, y, add, self.memory.columns) };
    }

    #[inline(always)]
    unsafe fn slide(&mut self) {
        let Geometry { width, depth, .. } = *self.geometry;
        let (len, across) = (P::PARTS * depth, self.radius.0 as i64);
        let column = |x: i64| x.clamp(0, width as i64 - 1) as usize * len;
        self.memory.window.fill(P::Sum::ZERO);
        for x in -across..=across {
            let from = &self.memory.columns[column(x)..][..len];
            for (sum, &column) in self.memory.window.iter_mut().zip(from) {
                *sum = sum.plus(column);
            }
        }
        for x in 0..width {
            if x > 0 {
                let enters = &self.memory.columns[column(x as i64 + across)..][..len];
                let leaves = &self.memory.columns[column(x as i64 - 1 - across)..][..len];
                for ((sum, &enters), &leaves) in
                    self.memory.window.iter_mut().zip(enters).zip(leaves)
                {
                    *sum = sum.plus(enters).minus(leaves);
                }
            }
            self.add_up();
            // SAFETY: x lies in the row.
            unsafe { self.sink.take(x, self.memory.sums) };
        }
    }

    #[inline(always)]
    fn add_up(&mut self) {
        let (first, second) = self.memory.window.split_at(self.geometry.depth);
        match self.total {
            Total::Plain => {
                for (sum, &first) in self.memory.sums.iter_mut().zip(first) {
                    *sum = {
                        let total: u32 = first.into();
                        total as i16
                    };
                }
            }
            Total::Scaled(Scale { limit, factor }) => {
                for (sum, &first) in self.memory.sums.iter_mut().zip(first) {
                    let total: u32 = first.into();
                    *sum = ((total.min(limit).wrapping_mul(factor) >> 16).min(SUM_MAX)) as i16;
                }
            }
            Total::Variance(Scale { limit, factor }, pixels) => {
                for ((sum, &first), &second) in self.memory.sums.iter_mut().zip(first).zip(second) {
                    let (squares, difference): (u32, u32) = (first.into(), second.into());
                    let squared = difference.wrapping_mul(difference);
                    let total = squares.wrapping_mul(pixels).wrapping_sub(squared).min(limit);
                    *sum = ((total.wrapping_mul(factor) >> 16).min(SUM_MAX)) as i16;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_division_is_exact() {
        for area in [9, 25, 49] {
            let mean = Rounding::to_mean(area);
            for sum in 0..=255 * area {
                assert_eq!(u32::from(mean.byte(sum as u16)), (sum + area / 2) / area);
            }
        }
    }
}
