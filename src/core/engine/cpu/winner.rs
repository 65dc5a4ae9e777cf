//! The winners of a piece of a row, selected while its sums are in the L1 cache; uniqueness, sub-pixel, and
//! the right view's winners from the same sums.
//!
//! Each step from a pixel's sums to its value depends on the previous one, and latency dominates. So each
//! step is done for all pixels of the piece before the next step.
//!
//! The right view's best candidate of column u (counted without the smallest disparity) is the smallest S(u +
//! k, k) over k. While x moves along a row, column u = x - k is at candidate k of a window that advances by
//! one candidate per pixel: a column enters at candidate 0, is compared at every k in turn, and leaves at the
//! last one, finished. A strict comparison keeps the smallest k of equal sums.
//! With range windows they are found otherwise (`mirrored_winners.rs`).

use super::filter::valid_mask;
use super::geometry::{Geometry, TILE};
use super::memory::{Arena, Block};
use super::mirrored_rows::Stripes;
use super::mirrored_winners::{MirroredWinners, NONE};
use super::simd::Vector;
use super::striping::StripedOrder;
use super::windows::Tile;
use crate::frame::{INVALID, SUBPIXEL};
use crate::matching::subpixel::offset_within;
use crate::matching::windows::{self, CANDIDATES};
use crate::matching::{Params, Subpixel};
use crate::memory::{Result, product};

/// A thread's memory for selecting winners of one band.
pub struct WinnerTakesAll {
    count: usize,
    depth: usize,
    width: usize,
    min: i32,
    uniqueness: u8,
    subpixel: Subpixel,
    right_view: bool,
    confidence: bool,
    /// Sums of the pixels of a piece, [pixel][depth].
    sums: Block<i16>,
    /// The candidate of every place of a pair (`striping.rs`).
    candidates: Block<i16>,
    places: Block<u16>,
    /// `i16::MAX` at the places beyond the range, else 0.
    padding: Block<i16>,
    /// Smallest sum, and its candidate, of the columns in the right view's window; [row][depth].
    window_sums: Block<i16>,
    window_candidates: Block<i16>,
    /// Winner of every column of the right view, [row][depth + u].
    right: Block<u16>,
    /// The same with range windows.
    mirrored: Option<MirroredWinners>,
    /// Winner of every pixel, [row][x].
    winners: Block<u16>,
    /// Value of every pixel, [row][x].
    values: Block<i16>,
    /// Peak of every pixel, [row][x], if the confidence is requested.
    peaks: Block<u8>,
    /// Row within the band that [`WinnerTakesAll::select_disparities`] fills.
    row: usize,
}

impl WinnerTakesAll {
    pub fn new(arena: &Arena, geometry: &Geometry, params: &Params) -> Result<Self> {
        let Geometry { count, depth, width, min, band_rows, .. } = *geometry;
        let order = StripedOrder::of(geometry);
        let windows = product([if geometry.windowed { 0 } else { band_rows }, depth]);
        let pixels = product([band_rows, width]);
        Ok(Self {
            count,
            depth,
            width,
            min,
            uniqueness: params.uniqueness,
            subpixel: params.subpixel,
            right_view: params.left_right.is_some(),
            confidence: params.confidence.is_some(),
            sums: arena.block(product([TILE, depth]))?,
            candidates: order.table(arena, |candidate| candidate as i16)?,
            places: arena.block_with(depth, |places| {
                (0..depth).for_each(|k| places[k] = order.place_of_wide(k) as u16);
            })?,
            padding: order
                .table(arena, |candidate| if candidate < count { 0 } else { i16::MAX })?,
            window_sums: arena.block(windows)?,
            window_candidates: arena.block(windows)?,
            right: arena.block(match geometry.windowed {
                true => 0,
                false => product([band_rows, width + depth]),
            })?,
            mirrored: match geometry.windowed {
                true => Some(MirroredWinners::new(arena, geometry)?),
                false => None,
            },
            winners: arena.block(pixels)?,
            values: arena.block(pixels)?,
            peaks: arena.block(params.confidence.map_or(0, |_| pixels))?,
            row: 0,
        })
    }

    /// Clears the state of the previous band.
    pub fn begin_band(&mut self, rows: usize) {
        if !self.right_view {
            return;
        }
        if let Some(mirrored) = &self.mirrored {
            mirrored.clear(rows);
        } else {
            // SAFETY: the windows hold `band_rows` rows, and this is their only user.
            unsafe {
                let len = rows * self.depth;
                self.window_sums.all_mut(len).fill(i16::MAX);
                self.window_candidates.all_mut(len).fill(-1);
            }
        }
    }

    #[inline(always)]
    pub fn begin_row(&mut self, row: usize) {
        self.row = row;
    }

    #[inline(always)]
    pub fn piece(&self) -> Piece {
        let (sums, padding) = (self.sums.ptr(), self.padding.ptr());
        Piece { sums, padding, padded: self.count < self.depth, depth: self.depth }
    }

    /// Selects the winners of `columns` pixels, at most [`TILE`], starting at `x`, from their stored sums; at
    /// most `MAX` vectors per pixel, exactly `MAX` if `EXACT`. `tiles`: the row's, with range windows.
    ///
    /// # Safety
    /// As [`Vector::splat`]; the columns lie in the row, and continue the previous call's.
    #[inline(always)]
    pub unsafe fn select_disparities<V: Vector, const MAX: usize, const EXACT: bool>(
        &mut self,
        x: usize,
        columns: usize,
        tiles: Option<(&[Tile], Stripes)>,
    ) {
        let chunks = if EXACT { MAX } else { self.depth / V::N };
        // SAFETY: the pieces hold `TILE` pixels of `chunks` vectors; the columns and the row lie in the band.
        unsafe {
            if let Some((tiles, _)) = tiles {
                self.leave_out_beyond(tiles, x, columns);
            }
            match (&self.mirrored, tiles) {
                _ if !self.right_view => {}
                (Some(mirrored), Some((tiles, stripes))) => {
                    let sums = self.sums.ptr().cast_const();
                    mirrored.update::<V>(self.row, (tiles, stripes), x, columns, chunks, sums);
                }
                _ => self.update_right::<V, MAX>(x, columns, chunks),
            }
            let picked =
                self.select_winners::<V>(x, columns, chunks, tiles.map(|(tiles, _)| tiles));
            let at = self.row * self.width + x;
            let values = self.refine_subpixel(&picked);
            let winners = picked.winners.as_ptr();
            std::ptr::copy_nonoverlapping(winners, self.winners.ptr().add(at), columns);
            std::ptr::copy_nonoverlapping(values.as_ptr(), self.values.ptr().add(at), columns);
            if self.confidence {
                let peaks = peaks_of(&picked);
                std::ptr::copy_nonoverlapping(peaks.as_ptr(), self.peaks.ptr().add(at), columns);
            }
        }
    }

    /// Selects the winners, one step after the other; overwrites the sums.
    #[inline(always)]
    unsafe fn select_winners<V: Vector>(
        &self,
        x: usize,
        columns: usize,
        chunks: usize,
        tiles: Option<&[Tile]>,
    ) -> Picked {
        let mut picked = Picked {
            winners: [0; TILE],
            least: [0; TILE],
            before: [0; TILE],
            after: [0; TILE],
            rivals: [i16::MAX; TILE],
            inside: [false; TILE],
        };
        // SAFETY: the piece holds this many pixels; the neighbours stay within the sums of their pixel.
        unsafe {
            let sums = self.sums.ptr();
            for i in 0..columns {
                let sums = sums.add(i * self.depth);
                let mut smallest = V::splat_wide(i16::MAX);
                for c in 0..chunks {
                    let [a, b] = pair::<V>(sums.add(c * V::N));
                    smallest = V::min_wide(smallest, V::min_wide(a, b));
                }
                let least = V::least_wide(smallest);
                let mut winner = usize::MAX;
                for c in 0..chunks {
                    // Beyond all candidates if this vector does not have it.
                    let lane = V::first_equal(pair::<V>(sums.add(c * V::N)), least);
                    winner = winner.min(lane * chunks + c);
                }
                picked.winners[i] = winner as u16;
                picked.least[i] = least as u16;
            }
            for i in 0..columns {
                let (sums, winner) = (sums.add(i * self.depth), usize::from(picked.winners[i]));
                let sum =
                    |candidate: usize| sums.add(usize::from(*self.places.ptr().add(candidate)));
                // The neighbours, or the winner itself where there are none.
                let (lower, higher) = match tiles {
                    None => (winner.saturating_sub(1), (winner + 1).min(self.count - 1)),
                    Some(tiles) => {
                        let tile = &tiles[(x + i) / windows::TILE];
                        picked.winners[i] = tile.candidate(winner) as u16;
                        tile.neighbours(winner)
                    }
                };
                picked.inside[i] = lower < winner && winner < higher;
                let (before, after) = (sum(lower), sum(higher));
                (picked.before[i], picked.after[i]) = (*before as u16, *after as u16);
                // The winner and its neighbours are no rivals.
                (*before, *sum(winner), *after) = (i16::MAX, i16::MAX, i16::MAX);
            }
            if self.uniqueness > 0 || self.confidence {
                self.find_rivals::<V>(columns, chunks, &mut picked.rivals);
            }
        }
        picked
    }

    /// Finds the least sums of the candidates that are left.
    #[inline(always)]
    unsafe fn find_rivals<V: Vector>(
        &self,
        columns: usize,
        chunks: usize,
        rivals: &mut [i16; TILE],
    ) {
        for (i, least) in rivals.iter_mut().enumerate().take(columns) {
            // SAFETY: the piece holds this many pixels.
            unsafe {
                let sums = self.sums.ptr().add(i * self.depth);
                let mut rival = V::load_wide(sums);
                for half in 1..2 * chunks {
                    rival = V::min_wide(rival, V::load_wide(sums.add(half * (V::N / 2))));
                }
                *least = V::least_wide(rival);
            }
        }
    }

    /// Computes the disparities between whole pixels, invalid if another candidate is nearly as good.
    #[inline(always)]
    fn refine_subpixel(&self, picked: &Picked) -> [i16; TILE] {
        let margin = 100 - i32::from(self.uniqueness);
        // All pixels of the piece, even unused ones, so that the loop is vectorised.
        let mut offsets = [0; TILE];
        let sums = |i: usize| (picked.before[i], picked.least[i], picked.after[i]);
        // One loop each, because a branch inside a loop prevents vectorisation.
        if let Some(limits) = self.subpixel.limits() {
            for (i, offset) in offsets.iter_mut().enumerate() {
                let (before, least, after) = sums(i);
                *offset = offset_within(&limits, before, least, after);
            }
        } else {
            for (i, offset) in offsets.iter_mut().enumerate() {
                let (before, least, after) = sums(i);
                *offset = self.subpixel.offset(before, least, after);
            }
        }
        let mut values = [0; TILE];
        for i in 0..TILE {
            let (winner, rival) = (i32::from(picked.winners[i]), i32::from(picked.rivals[i]));
            let between = if picked.inside[i] { offsets[i] } else { 0 };
            let lonely = rival == i32::from(i16::MAX);
            let unique = lonely | (rival * margin >= i32::from(picked.least[i]) * 100);
            let value = ((self.min + winner) * SUBPIXEL) as i16 + between;
            values[i] = if unique { value } else { INVALID };
        }
        values
    }

    /// Advances the right view's window to each column from `x` on, and compares it with the sums.
    #[inline(always)]
    unsafe fn update_right<V: Vector, const MAX: usize>(
        &mut self,
        x: usize,
        columns: usize,
        chunks: usize,
    ) {
        // SAFETY: the windows hold `chunks` vectors a row, the right view `width + depth` columns.
        unsafe {
            let window_sums = self.window_sums.ptr().add(self.row * self.depth);
            let window_candidates = self.window_candidates.ptr().add(self.row * self.depth);
            let right = self.right.ptr().add(self.row * (self.width + self.depth) + x);
            let candidates = self.candidates.ptr().cast_const();
            // Kept in registers if there are enough.
            let (largest, none) = (V::splat_wide(i16::MAX), V::splat_wide(-1));
            let mut sums = [[largest; 2]; MAX];
            let mut best = [[none; 2]; MAX];
            for c in 0..chunks {
                sums[c] = pair::<V>(window_sums.add(c * V::N));
                best[c] = pair::<V>(window_candidates.add(c * V::N));
            }
            for i in 0..columns {
                *right.add(i) = V::last_wide(best[chunks - 1][1]) as u16;
                let put = self.sums.ptr().add(i * self.depth);
                // The values at the last vector's candidates move to the first one's, a lane further up.
                let last = (sums[chunks - 1], best[chunks - 1]);
                let first = (V::shift_pair_up(last.0, largest), V::shift_pair_up(last.1, none));
                for c in (0..chunks).rev() {
                    let moved = if c == 0 { first } else { (sums[c - 1], best[c - 1]) };
                    for half in [0, 1] {
                        let at = c * V::N + half * (V::N / 2);
                        let candidate =
                            (V::load_wide(put.add(at)), V::load_wide(candidates.add(at)));
                        let moved = (moved.0[half], moved.1[half]);
                        (sums[c][half], best[c][half]) = V::keep_smaller(moved, candidate);
                    }
                }
            }
            for c in 0..chunks {
                for half in [0, 1] {
                    let at = c * V::N + half * (V::N / 2);
                    V::store_wide(sums[c][half], window_sums.add(at));
                    V::store_wide(best[c][half], window_candidates.add(at));
                }
            }
        }
    }

    /// Gives the places beyond the range the largest sum, so that they neither win nor rival.
    #[inline(always)]
    unsafe fn leave_out_beyond(&self, tiles: &[Tile], x: usize, columns: usize) {
        for i in 0..columns {
            let beyond = usize::from(tiles[(x + i) / windows::TILE].beyond);
            for place in CANDIDATES - beyond..CANDIDATES {
                // SAFETY: the piece holds the pixel.
                unsafe {
                    let at = usize::from(*self.places.ptr().add(place));
                    *self.sums.ptr().add(i * self.depth + at) = i16::MAX;
                }
            }
        }
    }

    /// Returns the disparities of row `row` of the band, after all of its columns are done, and their peaks,
    /// if the confidence is requested. With `limit`, applies the left-right check. `seen`: both cameras'
    /// valid masks of this row.
    pub fn check_consistency(
        &mut self,
        row: usize,
        limit: Option<u16>,
        seen: [Option<&[bool]>; 2],
    ) -> (&[i16], Option<&[u8]>) {
        let (width, depth) = (self.width, self.depth);
        // SAFETY: the row lies in the band, and `self` is borrowed alone.
        let (values, winners) = unsafe {
            (
                std::slice::from_raw_parts_mut(self.values.ptr().add(row * width), width),
                std::slice::from_raw_parts(self.winners.ptr().add(row * width), width),
            )
        };
        match (limit, &self.mirrored) {
            (None, _) => {}
            (Some(limit), Some(mirrored)) => {
                let right = mirrored.winners(row);
                let first = width as i32 - 1 - self.min;
                let best = |column: i32| usize::try_from(first - column).map_or(NONE, &right);
                check_left_right(winners, best, self.min, limit, values);
            }
            (Some(limit), None) => {
                // SAFETY: as above.
                let (right, window, places) = unsafe {
                    (
                        std::slice::from_raw_parts_mut(
                            self.right.ptr().add(row * (width + depth)),
                            width + depth,
                        ),
                        self.window_candidates.all(row * depth + depth),
                        self.places.all(depth),
                    )
                };
                // Flush the columns that are still in the window.
                for (k, &place) in places.iter().enumerate() {
                    right[width + depth - 1 - k] = window[row * depth + usize::from(place)] as u16;
                }
                let first = self.min + depth as i32;
                // A negative position becomes a large one. Position 0 is a column without candidates.
                let best = |column: i32| {
                    let at = (first + column) as u32 as usize;
                    right[if at < right.len() { at } else { 0 }]
                };
                check_left_right(winners, best, self.min, limit, values);
            }
        }
        valid_mask::apply(values, winners, self.min, seen);
        // SAFETY: as above; the peaks exist if the confidence is requested.
        let peaks = self.confidence.then(|| unsafe {
            std::slice::from_raw_parts(self.peaks.ptr().add(row * width), width)
        });
        (values, peaks)
    }
}

/// Memory for the sums of a piece of a row, at most [`TILE`] pixels.
#[derive(Clone, Copy)]
pub struct Piece {
    sums: *mut i16,
    padding: *const i16,
    /// Whether any place lies beyond the range.
    padded: bool,
    depth: usize,
}

impl Piece {
    /// Takes the sums of vector `chunk` of the `i`-th pixel.
    ///
    /// # Safety
    /// As [`Vector::splat`]; the pixel lies in the piece, the chunk in the range.
    #[inline(always)]
    pub unsafe fn put<V: Vector>(self, i: usize, chunk: usize, mut sums: [V::Wide; 2]) {
        // SAFETY: `sums` has room for every pixel and chunk, `padding` for every chunk.
        unsafe {
            if self.padded {
                let padding = self.padding.add(chunk * V::N);
                sums[0] = V::or_wide(sums[0], V::load_wide(padding));
                sums[1] = V::or_wide(sums[1], V::load_wide(padding.add(V::N / 2)));
            }
            let to = self.sums.add(i * self.depth + chunk * V::N);
            V::store_wide(sums[0], to);
            V::store_wide(sums[1], to.add(V::N / 2));
        }
    }
}

/// Winners of a piece, and the sums around them.
struct Picked {
    /// Candidate of the least sum, and the sum.
    winners: [u16; TILE],
    least: [u16; TILE],
    /// Sums of the neighbouring candidates; repeated at the ends of the range.
    before: [u16; TILE],
    after: [u16; TILE],
    /// Least sum of the other candidates; `i16::MAX` if there are none, or if it is not needed.
    rivals: [i16; TILE],
    /// Whether the winner has both neighbours.
    inside: [bool; TILE],
}

/// The [`peak`](crate::matching::confidence::peak)s of the pixels.
#[inline(always)]
fn peaks_of(picked: &Picked) -> [u8; TILE] {
    let mut peaks = [0; TILE];
    for (i, peak) in peaks.iter_mut().enumerate() {
        let (least, rival) = (i32::from(picked.least[i]), i32::from(picked.rivals[i]));
        // There is no integer division of vectors. Floating point is exact here: the numbers have less than
        // 24 bits, and a non-integer quotient below 256 is further from the next integer than the rounding
        // error.
        let quotient = (255 * (rival - least)) as f32 / rival.max(1) as f32;
        let lonely = rival == i32::from(i16::MAX);
        *peak = if lonely { u8::MAX } else { quotient as i32 as u8 };
    }
    peaks
}

/// Invalidates pixels with a winner that differs by more than `limit` from the right view's at the match column, clamped
/// to the image, which `right` returns.
#[inline(always)]
fn check_left_right(
    winners: &[u16],
    right: impl Fn(i32) -> u16,
    min: i32,
    limit: u16,
    values: &mut [i16],
) {
    let last = winners.len() as i32 - 1;
    let pieces = values.chunks_mut(TILE).zip(winners.chunks(TILE));
    for (piece, (values, winners)) in pieces.enumerate() {
        let mut best = [NONE; TILE];
        for (i, (best, &winner)) in best.iter_mut().zip(winners).enumerate() {
            let x = (piece * TILE + i) as i32;
            *best = right((x - min - i32::from(winner)).clamp(0, last));
        }
        // In a separate loop without branches, because they would be unpredictable.
        for (value, (&best, &winner)) in values.iter_mut().zip(best.iter().zip(winners)) {
            let good = (best != NONE) & (best.abs_diff(winner) <= limit);
            *value = if good { *value } else { INVALID };
        }
    }
}

#[inline(always)]
unsafe fn pair<V: Vector>(from: *const i16) -> [V::Wide; 2] {
    // SAFETY: a whole vector of sums lies there.
    unsafe { [V::load_wide(from), V::load_wide(from.add(V::N / 2))] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::confidence::peak;

    #[test]
    fn peaks_are_those_of_the_definition() {
        let same = |least: u16, rival: i16| {
            let (least, rivals) = ([least; TILE], [rival; TILE]);
            let (winners, before, after) = ([0; TILE], [0; TILE], [0; TILE]);
            let inside = [false; TILE];
            let picked = Picked { winners, least, before, after, rivals, inside };
            let rival = (rival != i16::MAX).then_some(rival as u16);
            assert_eq!(peaks_of(&picked), [peak(least[0], rival); TILE], "{least:?} {rival:?}");
        };
        // Up to the largest sum of 16 paths, and of block matching.
        for rival in (0..300).chain((301..=i16::MAX).step_by(67)).chain([i16::MAX - 1, i16::MAX]) {
            let step = 1 + rival as usize / 300;
            (0..=rival as u16).step_by(step).for_each(|least| same(least, rival));
        }
    }
}
