//! Costs that are written down for a band of rows before the paths need them: the mean over a window,
//! whose pixels share work with their neighbours, and costs that take too long to be computed five
//! times.

use super::cost::{Cost, PixelCost, RowCost};
use super::geometry::Geometry;
use super::simd::{Kernel, Lanes};
use crate::frame::Image;

/// A cost that was written down for the rows of a band: [row][x][depth].
#[derive(Clone, Copy)]
pub struct BandCost {
    /// First byte of row `first`.
    pub band_costs: *const u8,
    /// First row of the band.
    pub first: usize,
    /// Width of the picture.
    pub width: usize,
    /// Bytes a pixel.
    pub depth: usize,
}

// SAFETY: a band's costs belong to one thread, which writes it before it makes the cost.
unsafe impl Send for BandCost {}
// SAFETY: as above.
unsafe impl Sync for BandCost {}

/// See [`BandCost`].
#[derive(Clone, Copy)]
pub struct BandRow {
    row: *const u8,
    depth: usize,
}

impl Cost for BandCost {
    type Row<V: Lanes> = BandRow;

    #[inline(always)]
    unsafe fn row<V: Lanes>(&self, y: usize) -> BandRow {
        // SAFETY: the row lies in the band.
        let row = unsafe { self.band_costs.add((y - self.first) * self.width * self.depth) };
        BandRow { row, depth: self.depth }
    }
}

impl<V: Lanes> RowCost<V> for BandRow {
    type Pixel = BandPixel;

    #[inline(always)]
    unsafe fn at(&self, x: usize) -> BandPixel {
        // SAFETY: the pixel lies in the band's row.
        BandPixel(unsafe { self.row.add(x * self.depth) })
    }
}

/// See [`BandCost`].
#[derive(Clone, Copy)]
pub struct BandPixel(*const u8);

impl<V: Lanes> PixelCost<V> for BandPixel {
    #[inline(always)]
    unsafe fn load(&self, chunk: usize) -> V {
        // SAFETY: the pixel has all vectors of the range.
        unsafe { V::load(self.0.add(chunk * V::N)) }
    }
}

/// Writes a cost that can be computed on the fly into memory, for the rows of a band; at most `MAX`
/// vectors a pixel, exactly `MAX` where `EXACT`.
pub struct FillBand<'a, C, const MAX: usize, const EXACT: bool> {
    /// How the picture is cut up.
    pub geometry: &'a Geometry,
    /// The cost.
    pub cost: C,
    /// First row and number of rows.
    pub rows: (usize, usize),
    /// The costs of the band, [row][x][depth].
    pub band_costs: *mut u8,
}

impl<C: Cost, const MAX: usize, const EXACT: bool> Kernel for FillBand<'_, C, MAX, EXACT> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Geometry { width, depth, chunks, .. } = *self.geometry;
        let chunks = if EXACT { MAX } else { chunks };
        let (first, rows) = self.rows;
        for row in 0..rows {
            // SAFETY: the row lies in the picture, and the band has room for it.
            unsafe {
                let costs = self.cost.row::<V>(first + row);
                let to = self.band_costs.add(row * width * depth);
                for x in 0..width {
                    let pixel = costs.at(x);
                    for c in 0..chunks {
                        pixel.load(c).store(to.add(x * depth + c * V::N));
                    }
                }
            }
        }
    }
}

/// Writes the rounded mean of the truncated absolute difference over a square window, for the rows
/// of a band, into memory.
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
    /// The costs of the band, [row][x][depth].
    pub band_costs: &'a mut [u8],
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
            let means = &mut self.band_costs[(row * width + x) * depth..][..depth];
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
