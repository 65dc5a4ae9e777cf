//! Runs of a map: longest pieces of a row with similar neighbours, as bits of many pixels at once.

use crate::engine::cpu::memory::{Arena, Block};
use crate::engine::cpu::simd::Vector;
use crate::frame::INVALID;
use crate::memory::{Result, product};

/// Pixels per word of bits.
const WORD: usize = 64;

fn words(width: usize) -> usize {
    width.div_ceil(WORD)
}

pub fn marks(arena: &Arena, width: usize) -> Result<Vec<u8>> {
    arena.filled(words(width) * WORD, 0)
}

/// Runs of a map, shared by all threads: one bit per pixel, [row][word].
pub struct Runs {
    width: usize,
    /// Whether a run begins at the pixel.
    begin: Block<u64>,
    /// Whether the pixel continues the run of the previous one.
    go_on: Block<u64>,
}

impl Runs {
    pub fn new(arena: &Arena, (width, height): (usize, usize)) -> Result<Self> {
        let len = product([words(width), height]);
        Ok(Self { width, begin: arena.block(len)?, go_on: arena.block(len)? })
    }

    #[cfg(test)]
    pub fn fill(&self) {
        for block in [&self.begin, &self.go_on] {
            // SAFETY: the block has this many bytes; tests have it alone.
            unsafe { block.ptr().write_bytes(255, block.bytes() / size_of::<u64>()) };
        }
    }

    /// Finds the runs of row `y` with the values `row`. `alike` reports whether two neighbours are in one
    /// run; an invalid value never is. `marks`: [`marks`].
    ///
    /// # Safety
    /// As [`Vector::splat`]; no other thread accesses the row's bits.
    #[inline(always)]
    pub unsafe fn find<V: Vector>(
        &self,
        y: usize,
        row: &[i16],
        marks: &mut [u8],
        alike: impl Fn(i16, i16) -> bool,
    ) {
        // SAFETY: the row has this many words.
        unsafe {
            let (begin, go_on) = self.row(y);
            marks[0] = 0;
            for ((mark, &before), &value) in marks[1..].iter_mut().zip(row).zip(&row[1..]) {
                *mark = mark_where(alike(before, value));
            }
            for word in 0..words(self.width) {
                *go_on.add(word) = bits::<V>(marks, word);
            }
            for (mark, &value) in marks.iter_mut().zip(row) {
                *mark = mark_where(value != INVALID);
            }
            for word in 0..words(self.width) {
                *begin.add(word) = bits::<V>(marks, word) & !*go_on.add(word);
            }
        }
    }

    /// Calls `use_run` for each run of row `y`, with its first column and the column after its last.
    ///
    /// # Safety
    /// The runs of the row were found, and no thread changes them.
    #[inline(always)]
    pub unsafe fn for_each(&self, y: usize, mut use_run: impl FnMut(usize, usize)) {
        let words = words(self.width);
        // SAFETY: the row has this many words; bits beyond its end are 0.
        unsafe {
            let (begin, go_on) = self.row(y);
            for word in 0..words {
                let mut left = *begin.add(word);
                while left != 0 {
                    let bit = left.trailing_zeros();
                    left &= left - 1;
                    // The run ends at the first later pixel that does not continue it.
                    let mut at = word;
                    let mut ends = !*go_on.add(word) & (u64::MAX << bit << 1);
                    while ends == 0 && at + 1 < words {
                        at += 1;
                        ends = !*go_on.add(at);
                    }
                    let end = at * WORD + ends.trailing_zeros() as usize;
                    use_run(word * WORD + bit as usize, end.min(self.width));
                }
            }
        }
    }

    /// Calls back with the first columns of a run of row `y - 1` and of one of row `y`, if they have similar
    /// values one above the other, once or a few times per pair of runs. `rows` are the values of both rows;
    /// `alike` and `marks` as in [`Runs::find`].
    ///
    /// # Safety
    /// As [`Vector::splat`]; the runs of both rows were found, and no thread changes them.
    #[inline(always)]
    pub unsafe fn for_each_meeting<V: Vector>(
        &self,
        y: usize,
        rows: [&[i16]; 2],
        marks: &mut [u8],
        alike: impl Fn(i16, i16) -> bool,
        mut use_runs: impl FnMut(usize, usize),
    ) {
        for ((mark, &up), &value) in marks.iter_mut().zip(rows[0]).zip(rows[1]) {
            *mark = mark_where(alike(up, value));
        }
        // SAFETY: the rows have this many words; equal values belong to runs.
        unsafe {
            let ((above, _), (here, _)) = (self.row(y - 1), self.row(y));
            let mut before = 0;
            for word in 0..words(self.width) {
                let meet = bits::<V>(marks, word);
                // Two runs touch along many columns, and are reported once.
                let beside = meet << 1 | before >> (WORD - 1);
                let mut left = meet & !(beside & !*above.add(word) & !*here.add(word));
                before = meet;
                while left != 0 {
                    let x = word * WORD + left.trailing_zeros() as usize;
                    left &= left - 1;
                    use_runs(run_at(above, x), run_at(here, x));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn row(&self, y: usize) -> (*mut u64, *mut u64) {
        let at = y * words(self.width);
        // SAFETY: the caller's promise: the row lies in the map.
        unsafe { (self.begin.ptr().add(at), self.go_on.ptr().add(at)) }
    }
}

/// All bits set if `holds`.
#[inline(always)]
fn mark_where(holds: bool) -> u8 {
    (holds as u8).wrapping_neg()
}

#[inline(always)]
unsafe fn bits<V: Vector>(marks: &[u8], word: usize) -> u64 {
    let marks = &marks[word * WORD..][..WORD];
    let mut bits = 0;
    for first in (0..WORD).step_by(V::N) {
        // SAFETY: vectors have at most as many lanes as a word has bits.
        bits |= unsafe { V::load(marks[first..].as_ptr()) }.highest_bits() << first;
    }
    bits
}

/// First column of the run with pixel `x` of a row; `begin` are the bits of the row.
#[inline(always)]
unsafe fn run_at(begin: *const u64, x: usize) -> usize {
    let mut word = x / WORD;
    // SAFETY: a run begins at or before the pixel.
    unsafe {
        let mut bits = *begin.add(word) & (u64::MAX >> (WORD - 1 - x % WORD));
        while bits == 0 {
            word -= 1;
            bits = *begin.add(word);
        }
        word * WORD + WORD - 1 - bits.leading_zeros() as usize
    }
}
