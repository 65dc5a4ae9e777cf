//! The matching cost as the kernels see it: a vector of candidates on request.
//!
//! Lanes beyond the number of candidates must hold 255: they then never win, nor lower a neighbour.
//! Another cost is another [`Cost`]: on the fly as [`AdCost`], or through a slab of one band of rows
//! ([`SlabCost`]) where neighbouring pixels share work.

use super::geometry::Geometry;
use super::simd::{Kernel, Lanes};
use crate::frame::Image;

/// A cost of every pixel and candidate.
pub trait Cost: Copy + Send + Sync {
    /// The cost along one row.
    type Row<V: Lanes>: RowCost<V>;

    /// The cost along row `y`.
    ///
    /// # Safety
    /// As [`Lanes::splat`]; the row lies in the picture, and in the slab where there is one.
    unsafe fn row<V: Lanes>(&self, y: usize) -> Self::Row<V>;
}

/// The cost along one row of the left picture.
pub trait RowCost<V: Lanes>: Copy {
    /// The candidates of vector `chunk` at column `x`.
    ///
    /// # Safety
    /// As [`Lanes::splat`]; the column lies in the picture and the vector in the range.
    unsafe fn load(&self, x: usize, chunk: usize) -> V;
}

/// Truncated absolute difference, computed when asked for.
///
/// The right row is stored mirrored, with clamped columns at either end, so that increasing
/// disparities of one pixel lie behind each other: [`mirror`].
#[derive(Clone, Copy)]
pub struct AdCost {
    /// Pixels of the left picture.
    pub left: *const u8,
    /// Mirrored rows of the right picture.
    pub mirrored: *const u8,
    /// Width of the picture.
    pub width: usize,
    /// Bytes of a mirrored row.
    pub stride: usize,
    /// Largest cost.
    pub truncation: u8,
    /// Number of the last vector of a pixel.
    pub last: usize,
    /// What is or-ed to the last vector: 255 in the lanes beyond the range, else 0.
    pub padding: *const u8,
}

// SAFETY: the addresses are only read from, and outlive the frame that the cost was made for.
unsafe impl Send for AdCost {}
// SAFETY: as above.
unsafe impl Sync for AdCost {}

/// See [`AdCost`].
#[derive(Clone, Copy)]
pub struct AdRow<V> {
    left: *const u8,
    /// The mirrored right row where candidate 0 of column 0 lies.
    right: *const u8,
    truncation: V,
    padding: V,
    last: usize,
}

impl Cost for AdCost {
    type Row<V: Lanes> = AdRow<V>;

    #[inline(always)]
    unsafe fn row<V: Lanes>(&self, y: usize) -> AdRow<V> {
        // SAFETY: row `y` lies in the picture; the padding has the length of a vector.
        unsafe {
            AdRow {
                left: self.left.add(y * self.width),
                right: self.mirrored.add(y * self.stride + self.width - 1),
                truncation: V::splat(self.truncation),
                padding: V::load(self.padding),
                last: self.last,
            }
        }
    }
}

impl<V: Lanes> RowCost<V> for AdRow<V> {
    #[inline(always)]
    unsafe fn load(&self, x: usize, chunk: usize) -> V {
        // SAFETY: the mirrored row holds width - 1 bytes before `right` and all vectors behind.
        let (left, right) =
            unsafe { (V::splat(*self.left.add(x)), V::load(self.right.sub(x).add(chunk * V::N))) };
        let cost = left.abs_diff(right).min(self.truncation);
        if chunk == self.last { cost.or(self.padding) } else { cost }
    }
}

/// Writes the right row so that byte `width - 1 - x + k` is what candidate k of column x looks at:
/// column x - min - k, clamped.
pub fn mirror(row: &[u8], min: i32, mirrored: &mut [u8]) {
    let width = row.len() as i64;
    // Byte i shows column width - 1 - min - i.
    let first = width - 1 - i64::from(min);
    let len = mirrored.len() as i64;
    // Columns right of the picture, inside, and left of it.
    let right_end = (first - (width - 1)).clamp(0, len);
    let inside_end = (first + 1).clamp(right_end, len);
    mirrored[..right_end as usize].fill(row[row.len() - 1]);
    let inside = &mut mirrored[right_end as usize..inside_end as usize];
    let last = (first - right_end).max(0) as usize; // Column of the first byte inside.
    if !inside.is_empty() {
        let from = &row[last + 1 - inside.len()..=last];
        inside.iter_mut().zip(from.iter().rev()).for_each(|(to, &pixel)| *to = pixel);
    }
    mirrored[inside_end as usize..].fill(row[0]);
}

/// A cost that was written down for the rows of a band: [row][x][depth].
#[derive(Clone, Copy)]
pub struct SlabCost {
    /// First byte of row `first`.
    pub slab: *const u8,
    /// First row of the band.
    pub first: usize,
    /// Width of the picture.
    pub width: usize,
    /// Bytes a pixel.
    pub depth: usize,
}

// SAFETY: a slab belongs to one thread, which writes it before it makes the cost.
unsafe impl Send for SlabCost {}
// SAFETY: as above.
unsafe impl Sync for SlabCost {}

/// See [`SlabCost`].
#[derive(Clone, Copy)]
pub struct SlabRow {
    row: *const u8,
    depth: usize,
}

impl Cost for SlabCost {
    type Row<V: Lanes> = SlabRow;

    #[inline(always)]
    unsafe fn row<V: Lanes>(&self, y: usize) -> SlabRow {
        // SAFETY: the row lies in the slab.
        let row = unsafe { self.slab.add((y - self.first) * self.width * self.depth) };
        SlabRow { row, depth: self.depth }
    }
}

impl<V: Lanes> RowCost<V> for SlabRow {
    #[inline(always)]
    unsafe fn load(&self, x: usize, chunk: usize) -> V {
        // SAFETY: the pixel lies in the slab's row.
        unsafe { V::load(self.row.add(x * self.depth + chunk * V::N)) }
    }
}

/// Writes the rounded mean of the truncated absolute difference over a square window, for the rows
/// of a band, into a slab.
pub struct WindowMean<'a> {
    /// How the picture is cut up.
    pub geometry: &'a Geometry,
    /// Left picture.
    pub left: &'a Image,
    /// Mirrored rows of the right picture.
    pub mirrored: *const u8,
    /// Largest cost of a pixel.
    pub truncation: u8,
    /// Pixels from the window's centre to its edge.
    pub radius: usize,
    /// First row and number of rows.
    pub rows: (usize, usize),
    /// Sums over the window's rows, [x][depth].
    pub columns: &'a mut [u16],
    /// Sums over the window, [depth].
    pub window: &'a mut [u16],
    /// The slab.
    pub slab: &'a mut [u8],
}

impl Kernel for WindowMean<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(mut self) {
        let (first, count) = self.rows;
        let radius = self.radius as i64;
        self.columns.fill(0);
        for row in -radius..=radius {
            self.add_row(first as i64 + row, true);
        }
        for y in first..first + count {
            if y > first {
                self.add_row(y as i64 + radius, true);
                self.add_row(y as i64 - 1 - radius, false);
            }
            self.write_row(y - first);
        }
    }
}

impl WindowMean<'_> {
    /// Adds the pixels of a row, clamped into the picture, to the sums of the columns, or takes
    /// them away.
    #[inline(always)]
    fn add_row(&mut self, y: i64, add: bool) {
        let geometry = self.geometry;
        let y = y.clamp(0, geometry.height as i64 - 1) as usize;
        let stride = geometry.mirrored_stride();
        // SAFETY: the mirrored rows hold `stride` bytes each and are no longer written to.
        let mirrored = unsafe { std::slice::from_raw_parts(self.mirrored.add(y * stride), stride) };
        let columns = self.columns.chunks_exact_mut(geometry.depth);
        for (x, (column, &left)) in columns.zip(self.left.row(y)).enumerate() {
            let right = &mirrored[geometry.width - 1 - x..][..geometry.depth];
            for (sum, &right) in column.iter_mut().zip(right) {
                let cost = u16::from(left.abs_diff(right).min(self.truncation));
                *sum = if add { sum.wrapping_add(cost) } else { sum.wrapping_sub(cost) };
            }
        }
    }

    /// Slides the window along the row and writes the means.
    #[inline(always)]
    fn write_row(&mut self, row: usize) {
        let (width, depth, count) = (self.geometry.width, self.geometry.depth, self.geometry.count);
        let radius = self.radius as i64;
        let area = (2 * self.radius as u32 + 1).pow(2);
        // (sum + area / 2) / area as a multiplication: exact below 43690 (area 9, 25 and 49).
        let (factor, shift) = match area {
            9 => (58255u32, 3),
            25 => (41944, 4),
            _ => (42800, 5),
        };
        let column = |x: i64| x.clamp(0, width as i64 - 1) as usize * depth;
        self.window.fill(0);
        for x in -radius..=radius {
            let from = &self.columns[column(x)..][..depth];
            self.window.iter_mut().zip(from).for_each(|(sum, &column)| *sum += column);
        }
        for x in 0..width {
            if x > 0 {
                let enters = &self.columns[column(x as i64 + radius)..][..depth];
                let leaves = &self.columns[column(x as i64 - 1 - radius)..][..depth];
                for ((sum, &enters), &leaves) in self.window.iter_mut().zip(enters).zip(leaves) {
                    *sum = sum.wrapping_add(enters).wrapping_sub(leaves);
                }
            }
            let means = &mut self.slab[(row * width + x) * depth..][..depth];
            for (mean, &sum) in means.iter_mut().zip(self.window.iter()) {
                let rounded = u32::from(sum + (area / 2) as u16);
                *mean = ((((rounded * factor) >> 16) as u16) >> shift) as u8;
            }
            means[count..].fill(255);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirrored_row_shows_the_clamped_match_columns() {
        for width in 1..9usize {
            let row: Vec<u8> = (0..width as u8).map(|x| 10 + x).collect();
            for min in -12..12i32 {
                let depth = 16;
                let mut mirrored = vec![0; width - 1 + depth];
                mirror(&row, min, &mut mirrored);
                for x in 0..width {
                    for k in 0..depth {
                        let column = x as i64 - i64::from(min) - k as i64;
                        let expected = row[column.clamp(0, width as i64 - 1) as usize];
                        assert_eq!(mirrored[width - 1 - x + k], expected, "{width} {min} {x} {k}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_division_is_exact() {
        for (area, factor, shift) in [(9u32, 58255u32, 3), (25, 41944, 4), (49, 42800, 5)] {
            for sum in 0..=255 * area {
                let rounded = sum + area / 2;
                assert_eq!((rounded * factor) >> 16 >> shift, rounded / area);
            }
        }
    }
}
