//! The winner of a pixel, picked while its sums are in registers; uniqueness, sub-pixel, and the
//! right picture's view of the same sums.
//!
//! The right view's best candidate of column u (counted without the smallest disparity) is the
//! smallest S(u + k, k) over k. While x walks along a row, column u = x - k is lane k of a window
//! that moves on by one lane a pixel: a column enters at lane 0, is compared at every k in turn, and
//! leaves at the last lane, finished. Comparing strictly keeps the smallest k of equal sums.

use super::filter::valid_mask;
use super::geometry::Geometry;
use super::memory::Block;
use super::simd::Lanes;
use crate::frame::{INVALID, SUBPIXEL};
use crate::matching::{Params, Subpixel};
use crate::memory::{Refused, product};

/// What the right view says of a column without candidates.
pub const NONE: u16 = u16::MAX;

/// Numbers of 16 bits in the parts of a [`WinnerTakesAll`].
struct Lens {
    candidates: u64,
    vector: u64,
    windows: u64,
    right: u64,
    pixels: u64,
}

impl Lens {
    fn of(geometry: &Geometry, lanes: usize) -> Self {
        let Geometry { depth, width, band_rows, .. } = *geometry;
        Self {
            candidates: depth as u64,
            vector: lanes as u64,
            windows: product([band_rows, depth]),
            right: product([band_rows, width + depth]),
            pixels: product([band_rows, width]),
        }
    }
}

/// A thread's memory for picking winners of one band.
pub struct WinnerTakesAll {
    count: usize,
    depth: usize,
    width: usize,
    min: i32,
    uniqueness: u8,
    subpixel: Subpixel,
    right_view: bool,
    /// Sums of the current pixel.
    sums: Block<i16>,
    /// 0, 1, 2, ...: the candidate of every lane.
    indices: Block<i16>,
    /// `i16::MAX` in the lanes beyond the range, else 0; one vector.
    padding: Block<i16>,
    /// Smallest sum, and its candidate, of the columns in the right view's window; [row][depth].
    window_sums: Block<i16>,
    window_indices: Block<i16>,
    /// Winner of every column of the right view, [row][depth + u].
    right: Block<u16>,
    /// Winner of every pixel, [row][x].
    winners: Block<u16>,
    /// Value of every pixel, [row][x].
    values: Block<i16>,
    /// Row within the band that [`WinnerTakesAll::choose`] fills.
    row: usize,
}

impl WinnerTakesAll {
    /// Memory for bands of `geometry`, with vectors of `lanes` candidates.
    ///
    /// # Errors
    /// Where there is none.
    pub fn new(geometry: &Geometry, params: &Params, lanes: usize) -> Result<Self, Refused> {
        let Geometry { count, depth, width, min, .. } = *geometry;
        let lens = Lens::of(geometry, lanes);
        let (indices, padding) =
            (Block::<i16>::new(lens.candidates)?, Block::<i16>::new(lens.vector)?);
        // SAFETY: the blocks have these lengths, and nobody else knows them yet.
        let (numbers, mask) = unsafe {
            (
                std::slice::from_raw_parts_mut(indices.ptr(), depth),
                std::slice::from_raw_parts_mut(padding.ptr(), lanes),
            )
        };
        numbers.iter_mut().enumerate().for_each(|(k, number)| *number = k as i16);
        let used = count - (geometry.chunks - 1) * lanes;
        mask[used..].fill(i16::MAX);
        Ok(Self {
            count,
            depth,
            width,
            min,
            uniqueness: params.uniqueness,
            subpixel: params.subpixel,
            right_view: params.left_right.is_some(),
            sums: Block::new(lens.candidates)?,
            indices,
            padding,
            window_sums: Block::new(lens.windows)?,
            window_indices: Block::new(lens.windows)?,
            right: Block::new(lens.right)?,
            winners: Block::new(lens.pixels)?,
            values: Block::new(lens.pixels)?,
            row: 0,
        })
    }

    /// [`WinnerTakesAll::bytes`] before there is one.
    pub fn bytes_of(geometry: &Geometry, lanes: usize) -> u64 {
        let Lens { candidates, vector, windows, right, pixels } = Lens::of(geometry, lanes);
        let lens = [candidates, candidates, vector, windows, windows, right, pixels, pixels];
        lens.into_iter().map(Block::<i16>::bytes_of).fold(0, u64::saturating_add)
    }

    /// Size of the memory in bytes.
    pub fn bytes(&self) -> usize {
        self.sums.bytes()
            + self.indices.bytes()
            + self.padding.bytes()
            + self.window_sums.bytes()
            + self.window_indices.bytes()
            + self.right.bytes()
            + self.winners.bytes()
            + self.values.bytes()
    }

    /// Forgets the band before.
    pub fn begin_band(&mut self, rows: usize) {
        if self.right_view {
            // SAFETY: the windows hold `band_rows` rows, and this is their only user.
            unsafe {
                let len = rows * self.depth;
                std::slice::from_raw_parts_mut(self.window_sums.ptr(), len).fill(i16::MAX);
                std::slice::from_raw_parts_mut(self.window_indices.ptr(), len).fill(-1);
            }
        }
    }

    /// The pixels that follow lie in row `row` of the band.
    #[inline(always)]
    pub fn begin_row(&mut self, row: usize) {
        self.row = row;
    }

    /// Takes the sums of vector `chunk` and lowers `least` to them.
    ///
    /// # Safety
    /// As [`Lanes::splat`]; the chunk lies in the range.
    #[inline(always)]
    pub unsafe fn put<V: Lanes>(
        &mut self,
        chunk: usize,
        last: bool,
        mut sums: [V::Wide; 2],
        least: &mut V::Wide,
    ) {
        // SAFETY: `sums` has room for every chunk, `padding` for one.
        unsafe {
            if last {
                let padding = self.padding.ptr();
                sums[0] = V::or_wide(sums[0], V::load_wide(padding));
                sums[1] = V::or_wide(sums[1], V::load_wide(padding.add(V::N / 2)));
            }
            let to = self.sums.ptr().add(chunk * V::N);
            V::store_wide(sums[0], to);
            V::store_wide(sums[1], to.add(V::N / 2));
        }
        *least = V::min_wide(*least, V::min_wide(sums[0], sums[1]));
    }

    /// The winner of the pixel at column `x` whose sums were put; `least` is the smallest of them.
    ///
    /// # Safety
    /// As [`Lanes::splat`]; x lies in the row.
    #[inline(always)]
    pub unsafe fn choose<V: Lanes>(&mut self, x: usize, chunks: usize, least: V::Wide) {
        let sums = self.sums.ptr();
        // SAFETY: `sums` holds `chunks` vectors; x and the row lie in the band.
        unsafe {
            let least = V::least_wide(least);
            let mut winner = 0;
            for c in (0..chunks).rev() {
                let first = V::first_equal(pair::<V>(sums.add(c * V::N)), least);
                winner = if first < V::N { c * V::N + first } else { winner };
            }
            if self.right_view {
                self.update_right::<V>(x, chunks);
            }

            let mut value = ((self.min + winner as i32) * SUBPIXEL) as i16;
            if self.uniqueness > 0 && !self.is_unique::<V>(chunks, winner, least) {
                value = INVALID;
            } else if winner > 0 && winner + 1 < self.count {
                let (a, c) = (*sums.add(winner - 1), *sums.add(winner + 1));
                value += self.subpixel.offset(a as u16, least as u16, c as u16);
            }
            let at = self.row * self.width + x;
            *self.winners.ptr().add(at) = winner as u16;
            *self.values.ptr().add(at) = value;
        }
    }

    /// Whether no candidate but the winner's neighbours comes close to it.
    #[inline(always)]
    unsafe fn is_unique<V: Lanes>(&self, chunks: usize, winner: usize, least: i16) -> bool {
        // SAFETY: as in `choose`.
        let rival = unsafe {
            let mut rival = V::splat_wide(i16::MAX);
            for half in 0..2 * chunks {
                let at = half * (V::N / 2);
                let sums = V::load_wide(self.sums.ptr().add(at));
                let indices = V::load_wide(self.indices.ptr().add(at));
                rival = V::min_wide(rival, V::rivals(sums, indices, winner as i16));
            }
            V::least_wide(rival)
        };
        rival == i16::MAX
            || i32::from(rival) * (100 - i32::from(self.uniqueness)) >= i32::from(least) * 100
    }

    /// Moves the right view's window on to column `x` and compares it with the sums.
    #[inline(always)]
    unsafe fn update_right<V: Lanes>(&mut self, x: usize, chunks: usize) {
        // SAFETY: the windows hold `chunks` vectors a row, the right view `width + depth` columns.
        unsafe {
            let window_sums = self.window_sums.ptr().add(self.row * self.depth);
            let window_indices = self.window_indices.ptr().add(self.row * self.depth);
            let leaves = *window_indices.add(self.depth - 1);
            *self.right.ptr().add(self.row * (self.width + self.depth) + x) = leaves as u16;
            let half = V::N / 2;
            let mut sums_here = V::load_wide(window_sums.add((2 * chunks - 1) * half));
            let mut indices_here = V::load_wide(window_indices.add((2 * chunks - 1) * half));
            for h in (0..2 * chunks).rev() {
                let (sums_below, indices_below) = if h > 0 {
                    (
                        V::load_wide(window_sums.add((h - 1) * half)),
                        V::load_wide(window_indices.add((h - 1) * half)),
                    )
                } else {
                    (V::splat_wide(i16::MAX), V::splat_wide(-1))
                };
                let moved = (
                    V::wide_shift_from_below(sums_here, sums_below),
                    V::wide_shift_from_below(indices_here, indices_below),
                );
                let candidate = (
                    V::load_wide(self.sums.ptr().add(h * half)),
                    V::load_wide(self.indices.ptr().add(h * half)),
                );
                let kept = V::keep_smaller(moved, candidate);
                V::store_wide(kept.0, window_sums.add(h * half));
                V::store_wide(kept.1, window_indices.add(h * half));
                (sums_here, indices_here) = (sums_below, indices_below);
            }
        }
    }

    /// The values of row `row` of the band, after all of its columns were chosen; with `limit`,
    /// those that the right view contradicts are invalid; `seen` says what of this row each camera
    /// has seen.
    pub fn finish_row(
        &mut self,
        row: usize,
        limit: Option<u16>,
        seen: [Option<&[bool]>; 2],
    ) -> &[i16] {
        let (width, depth) = (self.width, self.depth);
        // SAFETY: the row lies in the band, and `self` is borrowed alone.
        let (values, winners, right, window) = unsafe {
            (
                std::slice::from_raw_parts_mut(self.values.ptr().add(row * width), width),
                std::slice::from_raw_parts(self.winners.ptr().add(row * width), width),
                std::slice::from_raw_parts_mut(
                    self.right.ptr().add(row * (width + depth)),
                    width + depth,
                ),
                std::slice::from_raw_parts(self.window_indices.ptr().add(row * depth), depth),
            )
        };
        if let Some(limit) = limit {
            // The columns that are still in the window leave it.
            for (k, &index) in window.iter().enumerate() {
                right[width + depth - 1 - k] = index as u16;
            }
            left_right(winners, right, depth, self.min, limit, values);
        }
        valid_mask::apply(values, winners, self.min, seen);
        values
    }
}

/// Invalidates values whose winner differs by more than `limit` from that of the right picture's
/// column, clamped into the picture; `right` holds column u - min at depth + u.
fn left_right(
    winners: &[u16],
    right: &[u16],
    depth: usize,
    min: i32,
    limit: u16,
    values: &mut [i16],
) {
    let last = winners.len() as i32 - 1;
    for (x, (value, &winner)) in values.iter_mut().zip(winners).enumerate() {
        let column = (x as i32 - min - i32::from(winner)).clamp(0, last);
        let at = column + min + depth as i32;
        // Position 0 is that of a column that no candidate reaches.
        let best = if at > 0 { right.get(at as usize).copied().unwrap_or(NONE) } else { NONE };
        if best == NONE || best.abs_diff(winner) > limit {
            *value = INVALID;
        }
    }
}

/// An ordered pair.
#[inline(always)]
unsafe fn pair<V: Lanes>(from: *const i16) -> [V::Wide; 2] {
    // SAFETY: a whole vector of sums lies there.
    unsafe { [V::load_wide(from), V::load_wide(from.add(V::N / 2))] }
}
