//! The median of the valid values of a window, for many columns at once.
//!
//! `INVALID` is the smallest value. In the sorted window of n places, z of them invalid or outside
//! of the picture, the lower median of the valid ones is at place z + (n - z - 1) / 2
//! = (n - 1) / 2 + z / 2 for odd n: one of the upper half.

use super::simd::{Kernel, Lanes};
use crate::frame::INVALID;

/// Columns that are sorted together.
const GROUP: usize = 32;

/// Filters the rows `rows.0..rows.1` of a map with windows of `SIDE` x `SIDE` = `AREA` places.
pub struct MedianRows<'a, const SIDE: usize, const AREA: usize> {
    /// Width and height of the map.
    pub size: (usize, usize),
    /// First row, and the row behind the last.
    pub rows: (usize, usize),
    /// The whole map.
    pub from: &'a [i16],
    /// The filtered rows only.
    pub to: &'a mut [i16],
}

impl<const SIDE: usize, const AREA: usize> Kernel for MedianRows<'_, SIDE, AREA> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let (width, height) = self.size;
        let radius = SIDE / 2;
        for (y, to) in (self.rows.0..self.rows.1).zip(self.to.chunks_exact_mut(width)) {
            let mut first = 0;
            while first < width {
                let columns = GROUP.min(width - first);
                let mut window = [[INVALID; GROUP]; AREA];
                for i in 0..SIDE {
                    // Rows and columns outside stay invalid.
                    let row = (y + i).wrapping_sub(radius);
                    if row >= height {
                        continue;
                    }
                    let row = &self.from[row * width..][..width];
                    for j in 0..SIDE {
                        let skip = radius.saturating_sub(first + j).min(columns);
                        let start = (first + j + skip).saturating_sub(radius).min(width);
                        let len = (columns - skip).min(width - start);
                        window[i * SIDE + j][skip..skip + len]
                            .copy_from_slice(&row[start..start + len]);
                    }
                }
                let medians = lower_medians(window);
                to[first..first + columns].copy_from_slice(&medians[..columns]);
                first += columns;
            }
        }
    }
}

/// The lower median of the valid values of every column; invalid where the middle place is.
#[inline(always)]
fn lower_medians<const AREA: usize>(mut window: [[i16; GROUP]; AREA]) -> [i16; GROUP] {
    let centre = window[AREA / 2];
    let mut invalid = [0i16; GROUP];
    for place in &window {
        for (count, &value) in invalid.iter_mut().zip(place) {
            *count += i16::from(value == INVALID);
        }
    }
    sort(&mut window);
    let mut medians = window[AREA / 2];
    for (i, place) in window.iter().enumerate().skip(AREA / 2 + 1) {
        let wanted = (i - AREA / 2) as i16;
        for ((median, &value), &count) in medians.iter_mut().zip(place).zip(&invalid) {
            *median = if count >> 1 == wanted { value } else { *median };
        }
    }
    for (median, &centre) in medians.iter_mut().zip(&centre) {
        *median = if centre == INVALID { INVALID } else { *median };
    }
    medians
}

/// Batcher's odd-even merge sort of every column: the same comparisons whatever the values.
#[inline(always)]
fn sort<const AREA: usize>(places: &mut [[i16; GROUP]; AREA]) {
    let mut p = 1;
    while p < AREA {
        let mut k = p;
        while k >= 1 {
            let mut j = k % p;
            while j + k < AREA {
                for i in 0..k.min(AREA - j - k) {
                    if (i + j) / (2 * p) == (i + j + k) / (2 * p) {
                        for g in 0..GROUP {
                            let (a, b) = (places[i + j][g], places[i + j + k][g]);
                            places[i + j][g] = a.min(b);
                            places[i + j + k][g] = a.max(b);
                        }
                    }
                }
                j += 2 * k;
            }
            k /= 2;
        }
        p *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_sorted() {
        let mut state = 1u32;
        for _ in 0..200 {
            let mut places = [[0i16; GROUP]; 25];
            for value in places.iter_mut().flatten() {
                state = state.wrapping_mul(1664525).wrapping_add(1013904223);
                *value = (state >> 24) as i16 % 40 - 20;
            }
            let mut expected = [[0i16; 25]; GROUP];
            for g in 0..GROUP {
                expected[g] = std::array::from_fn(|i| places[i][g]);
                expected[g].sort_unstable();
            }
            sort(&mut places);
            for g in 0..GROUP {
                assert_eq!(std::array::from_fn::<_, 25, _>(|i| places[i][g]), expected[g]);
            }
        }
    }
}
