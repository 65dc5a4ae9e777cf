//! The matching cost as the kernels see it: a vector of candidates on request.
//!
//! Lanes beyond the number of candidates must hold 255: they then never win, nor lower a neighbour.
//! Another cost is another [`Cost`]: on the fly as [`AdCost`], or through the costs of one band of rows
//! (`band_costs.rs`) where neighbouring pixels share work or a cost takes too long to be computed for every
//! path anew.

use super::simd::Lanes;

/// A cost of every pixel and candidate.
pub trait Cost: Copy + Send + Sync {
    /// The cost along one row.
    type Row<V: Lanes>: RowCost<V>;

    /// The cost along row `y`.
    ///
    /// # Safety
    /// As [`Lanes::splat`]; the row lies in the picture, and in the band whose costs are kept.
    unsafe fn row<V: Lanes>(&self, y: usize) -> Self::Row<V>;
}

/// The cost along one row of the left picture.
pub trait RowCost<V: Lanes>: Copy {
    /// The cost of one pixel.
    type Pixel: PixelCost<V>;

    /// The cost at column `x`.
    ///
    /// # Safety
    /// As [`Lanes::splat`]; the column lies in the picture.
    unsafe fn at(&self, x: usize) -> Self::Pixel;
}

/// The cost of one pixel of the left picture.
pub trait PixelCost<V: Lanes>: Copy {
    /// The candidates of vector `chunk`.
    ///
    /// # Safety
    /// The vector lies in the range.
    unsafe fn load(&self, chunk: usize) -> V;
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

/// See [`AdCost`].
#[derive(Clone, Copy)]
pub struct AdPixel<V> {
    left: V,
    right: *const u8,
    truncation: V,
    padding: V,
    last: usize,
}

impl<V: Lanes> RowCost<V> for AdRow<V> {
    type Pixel = AdPixel<V>;

    #[inline(always)]
    unsafe fn at(&self, x: usize) -> AdPixel<V> {
        // SAFETY: the mirrored row holds width - 1 bytes before `right`.
        let (left, right) = unsafe { (V::splat(*self.left.add(x)), self.right.sub(x)) };
        AdPixel { left, right, truncation: self.truncation, padding: self.padding, last: self.last }
    }
}

impl<V: Lanes> PixelCost<V> for AdPixel<V> {
    #[inline(always)]
    unsafe fn load(&self, chunk: usize) -> V {
        // SAFETY: the mirrored row holds all vectors behind `right`.
        let right = unsafe { V::load(self.right.add(chunk * V::N)) };
        let cost = self.left.abs_diff(right).min(self.truncation);
        if chunk == self.last { cost.or(self.padding) } else { cost }
    }
}

/// Writes the right row so that number `width - 1 - x + k` is what candidate k of column x looks at:
/// column x - min - k, clamped.
pub fn mirror<T: Copy>(row: &[T], min: i32, mirrored: &mut [T]) {
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
}
