//! The right view's winners with range windows (`windows.rs`): every column has a place in the order of the mirrored rows
//! (`mirrored_rows.rs`), in which the candidates of a block follow each other. Without windows, columns wander through
//! the vectors instead (`winner.rs`).

use super::geometry::Geometry;
use super::memory::{Arena, Block};
use super::mirrored_rows::Stripes;
use super::simd::{Vector, lane_of_pair};
use super::windows::Tile;
use crate::matching::windows::{BLOCK, BLOCKS, TILE};
use crate::memory::{Result, product};

/// Winner of a column of the right view without candidates.
pub const NONE: u16 = u16::MAX;

/// The least sum of every column of the right view, and its candidate, [row][mirrored order].
pub struct MirroredWinners {
    sums: Block<i16>,
    best: Block<u16>,
    stride: usize,
    stripes: usize,
    stripe_len: usize,
}

impl MirroredWinners {
    pub fn new(arena: &Arena, geometry: &Geometry) -> Result<Self> {
        let (stride, rows) = (geometry.mirrored_stride(), geometry.band_rows);
        let (stripes, stripe_len) = (geometry.chunks, geometry.stripe_len());
        let (sums, best) =
            (arena.block(product([rows, stride]))?, arena.block(product([rows, stride]))?);
        Ok(Self { sums, best, stride, stripes, stripe_len })
    }

    pub fn clear(&self, rows: usize) {
        // SAFETY: the blocks hold as many rows, and this is their only user.
        unsafe {
            self.sums.all_mut(rows * self.stride).fill(i16::MAX);
            self.best.all_mut(rows * self.stride).fill(NONE);
        }
    }

    fn row(&self, row: usize) -> (*mut i16, *mut u16) {
        let at = row * self.stride;
        (self.sums.ptr().wrapping_add(at), self.best.ptr().wrapping_add(at))
    }

    /// Compares the sums of `columns` pixels of a row, from `x` on, with those of the right view's columns; `sums` are
    /// those of the pixels, [pixel][depth].
    ///
    /// # Safety
    /// As [`Vector::splat`]; the row lies in the band, the columns in the row.
    #[inline(always)]
    pub unsafe fn update<V: Vector>(
        &self,
        row: usize,
        of: (&[Tile], Stripes),
        x: usize,
        columns: usize,
        chunks: usize,
        sums: *const i16,
    ) {
        for i in 0..columns {
            // SAFETY: the caller's promise.
            unsafe {
                let from = sums.add(i * chunks * V::N);
                // Pieces of eight lanes are consecutive in a pair; a block may have fewer in a vector.
                match V::N / BLOCKS < 8 {
                    true => self.update_pixel::<V, 4>(row, of, x + i, chunks, from),
                    false => self.update_pixel::<V, 8>(row, of, x + i, chunks, from),
                }
            }
        }
    }

    /// Compares the sums of a pixel, `LANES` lanes at a time.
    #[inline(always)]
    unsafe fn update_pixel<V: Vector, const LANES: usize>(
        &self,
        row: usize,
        (tiles, stripes): (&[Tile], Stripes),
        x: usize,
        chunks: usize,
        from: *const i16,
    ) {
        let (quarter, tile) = (V::N / BLOCKS, &tiles[x / TILE]);
        // SAFETY: the pixel lies in the row, and its candidates in the mirrored order.
        unsafe {
            let (sums, best) = self.row(row);
            let starts = stripes.at(x, chunks);
            for c in 0..chunks {
                let start = starts.at(c);
                for (number, &block) in tile.blocks.iter().enumerate() {
                    for lane in (0..quarter).step_by(LANES) {
                        let at = c * V::N + lane_of_pair(number * quarter + lane, V::N);
                        let to = start + usize::from(block) * quarter + lane;
                        let first = usize::from(block) * BLOCK + lane * chunks + c;
                        keep_smaller::<LANES>(
                            (sums.add(to).cast(), best.add(to).cast()),
                            from.add(at).cast(),
                            std::array::from_fn(|k| (first + k * chunks) as u16),
                        );
                    }
                }
            }
        }
    }

    /// Returns the winners of a row by number in the mirrored order; [`NONE`] behind the last.
    pub fn winners(&self, row: usize) -> impl Fn(usize) -> u16 {
        // SAFETY: the block holds the row, and nobody writes to it any more.
        let all = unsafe { &self.best.all((row + 1) * self.stride)[row * self.stride..] };
        move |i| match i < self.stripes * self.stripe_len {
            true => all[i % self.stripes * self.stripe_len + i / self.stripes],
            false => NONE,
        }
    }
}

/// Takes those of `LANES` candidates at `from` that are smaller than the sums so far.
///
/// # Safety
/// There are as many of all.
#[inline(always)]
unsafe fn keep_smaller<const LANES: usize>(
    (sums, best): (*mut [i16; LANES], *mut [u16; LANES]),
    from: *const [i16; LANES],
    candidates: [u16; LANES],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let (new, mut least, mut of) =
            (from.read_unaligned(), sums.read_unaligned(), best.read_unaligned());
        for k in 0..LANES {
            let smaller = new[k] < least[k];
            least[k] = if smaller { new[k] } else { least[k] };
            of[k] = if smaller { candidates[k] } else { of[k] };
        }
        sums.write_unaligned(least);
        best.write_unaligned(of);
    }
}
