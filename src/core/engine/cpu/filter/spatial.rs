//! Smoothing of surfaces, for all pixels of a block of columns at once. Rows are copied with unknown pixels
//! on either side, so that no column is special.

use std::sync::Mutex;

use super::rays::{BLOCK, Block};
use super::{MapFilter, Pass};
use crate::engine::cpu::memory::{self, Arena, Plane};
use crate::engine::cpu::simd::{SimdKernel, Vector};
use crate::frame::INVALID;
use crate::matching::filter::spatial::{GREY_STEP_MAX, PAIR_STEP_MAX, REACH_MAX, Spatial};
use crate::memory::{Result, product};
use crate::thread::locked;

/// Pixels before a copied row. There are [`BLOCK`] more after it, for the overhang of blocks.
const MARGIN: usize = REACH_MAX as usize;

pub struct SpatialFilter {
    reach: usize,
    /// The map before smoothing, then with its rows smoothed.
    in_rows: memory::Block<i16>,
    copies: Vec<Mutex<Copied>>,
}

struct Copied {
    values: Vec<i16>,
    grey: Vec<u8>,
}

impl SpatialFilter {
    pub fn new(
        arena: &Arena,
        how: Spatial,
        (width, height): (usize, usize),
        threads: usize,
    ) -> Result<Self> {
        let len = width.saturating_add(2 * MARGIN + BLOCK);
        Ok(Self {
            reach: usize::from(how.reach),
            in_rows: arena.block(product([width, height]))?,
            copies: arena.per_thread(threads, || {
                Ok(Copied { values: arena.filled(len, INVALID)?, grey: arena.filled(len, 0)? })
            })?,
        })
    }
}

impl MapFilter for SpatialFilter {
    fn input(&self) -> Option<*mut i16> {
        Some(self.in_rows.ptr())
    }

    unsafe fn run(&self, pass: &mut Pass<'_>, map: *mut i16, _: Option<*mut u8>) {
        let (size @ (width, height), simd, reach) = (pass.size, pass.simd, self.reach);
        let grey = pass.left.pixels();
        let (map, in_rows) = (Plane(map), Plane(self.in_rows.ptr()));
        pass.rows(|thread, rows| {
            let copy = &mut *locked(&self.copies[thread]);
            let part = rows.start * width..rows.end * width;
            // SAFETY: these rows are this thread's; the simd was found on this machine.
            unsafe {
                let (grey, rows) = (&grey[part.clone()], in_rows.part(part));
                simd.vectorize(SmoothRows { width, grey, rows, copy, reach });
            }
        });
        // SAFETY: the caller's promise; all rows are smoothed, and no thread changes them any more.
        let from = unsafe { self.in_rows.all(width * height) };
        pass.rows(|_, rows| {
            // SAFETY: the rows of the result are this thread's; the simd was found on this machine.
            unsafe {
                let to = map.part(rows.start * width..rows.end * width);
                simd.vectorize(SmoothColumns { size, grey, from, row: rows.start, to, reach });
            }
        });
    }
}

struct SmoothRows<'a> {
    width: usize,
    grey: &'a [u8],
    rows: &'a mut [i16],
    copy: &'a mut Copied,
    reach: usize,
}

impl SimdKernel for SmoothRows<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Self { width, grey, rows, copy, reach } = self;
        for (row, grey) in rows.chunks_exact_mut(width).zip(grey.chunks_exact(width)) {
            copy.values[MARGIN..][..width].copy_from_slice(row);
            copy.grey[MARGIN..][..width].copy_from_slice(grey);
            for (x, to) in (MARGIN..).step_by(BLOCK).zip(row.chunks_mut(BLOCK)) {
                let at = |x: usize| Pixels::of(&copy.values[x..], &copy.grey[x..]);
                let smoothed = smooth(&at(x), reach, |k| [at(x - k), at(x + k)]);
                to.copy_from_slice(&smoothed[..to.len()]);
            }
        }
    }
}

/// Smooths the columns of a map for some rows of the result.
struct SmoothColumns<'a> {
    size: (usize, usize),
    grey: &'a [u8],
    from: &'a [i16],
    row: usize,
    to: &'a mut [i16],
    reach: usize,
}

impl SimdKernel for SmoothColumns<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Self { size: (width, height), grey, from, row, to, reach } = self;
        for (y, row) in (row..).zip(to.chunks_exact_mut(width)) {
            let reach = reach.min(y).min(height - 1 - y);
            for (x, to) in (0..width).step_by(BLOCK).zip(row.chunks_mut(BLOCK)) {
                let at = |y: usize| {
                    let rest = y * width + x..(y + 1) * width;
                    Pixels::of(&from[rest.clone()], &grey[rest])
                };
                let smoothed = smooth(&at(y), reach, |k| [at(y - k), at(y + k)]);
                to.copy_from_slice(&smoothed[..to.len()]);
            }
        }
    }
}

struct Pixels {
    values: Block,
    grey: [u8; BLOCK],
}

impl Pixels {
    /// The first pixels of part of a row, padded with unknown ones.
    #[inline(always)]
    fn of(values: &[i16], grey: &[u8]) -> Self {
        if let (Some(&values), Some(&grey)) = (values.first_chunk(), grey.first_chunk()) {
            return Self { values, grey };
        }
        let mut block = Self { values: [INVALID; BLOCK], grey: [0; BLOCK] };
        block.values.iter_mut().zip(values).for_each(|(to, &value)| *to = value);
        block.grey.iter_mut().zip(grey).for_each(|(to, &grey)| *to = grey);
        block
    }
}

/// Smooths a block. `pair` returns the pixels at a distance in steps before and after it.
#[inline(always)]
fn smooth(own: &Pixels, reach: usize, pair: impl Fn(usize) -> [Pixels; 2]) -> Block {
    let (mut sums, mut counts) = ([0; BLOCK], [0; BLOCK]);
    for k in 1..=reach {
        let [a, b] = pair(k);
        for i in 0..BLOCK {
            // If one difference saturates, the other one never is as large, so the sum exceeds the limit.
            let [to_a, to_b] = [&a, &b].map(|end| end.values[i].saturating_sub(own.values[i]));
            let step = to_a.saturating_add(to_b);
            let [edge_a, edge_b] = [&a, &b].map(|end| end.grey[i].abs_diff(own.grey[i]));
            // Masks, because a branch would not be vectorised.
            let counted = -i16::from(
                (a.values[i] != INVALID)
                    & (b.values[i] != INVALID)
                    & (step.saturating_abs() <= PAIR_STEP_MAX)
                    & (edge_a.max(edge_b) <= GREY_STEP_MAX),
            );
            sums[i] += step & counted;
            counts[i] -= counted;
        }
    }
    let mut factors = [FACTORS[0]; BLOCK];
    for (pairs, &factor) in FACTORS.iter().enumerate().take(reach + 1) {
        for i in 0..BLOCK {
            let equal = -i16::from(counts[i] == pairs as i16) as u16;
            factors[i] = (factor & equal) | (factors[i] & !equal);
        }
    }
    let mut smoothed = [0; BLOCK];
    for i in 0..BLOCK {
        let known = -i16::from(own.values[i] != INVALID);
        let mean = own.values[i].wrapping_add(mean_step(sums[i], counts[i], factors[i]));
        smoothed[i] = (mean & known) | (INVALID & !known);
    }
    smoothed
}

/// For each number of pairs: 2^15 divided by the number of pixels, rounded up.
const FACTORS: [u16; REACH_MAX as usize + 1] = {
    let mut factors = [0; REACH_MAX as usize + 1];
    let mut pairs = 0;
    while pairs < factors.len() {
        factors[pairs] = (1u32 << 15).div_ceil(2 * pairs as u32 + 1) as u16;
        pairs += 1;
    }
    factors
};

#[inline(always)]
fn mean_step(sum: i16, pairs: i16, factor: u16) -> i16 {
    // Adding half the largest step times the number of pixels makes the numerator positive. It is then at
    // most 536, and the multiplication divides it exactly.
    const OFFSET: i16 = PAIR_STEP_MAX / 2;
    let numerator = (sum + pairs + OFFSET * (2 * pairs + 1)) as u16;
    ((u32::from(2 * numerator) * u32::from(factor)) >> 16) as i16 - OFFSET
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::cpu::simd::SimdChoice;
    use crate::engine::cpu::team::Team;
    use crate::frame::Image;
    use crate::matching::filter::spatial;

    #[test]
    fn a_multiplication_divides_exactly() {
        for pairs in 0..=i16::from(REACH_MAX) {
            for sum in -PAIR_STEP_MAX * pairs..=PAIR_STEP_MAX * pairs {
                let mean = (sum + pairs).div_euclid(2 * pairs + 1);
                assert_eq!(mean_step(sum, pairs, FACTORS[pairs as usize]), mean);
            }
        }
    }

    /// Filters with this many threads and these vectors; the memory has processed another map before.
    fn filter(
        left: &Image,
        values: &[i16],
        how: Spatial,
        choice: SimdChoice,
        threads: usize,
    ) -> Vec<i16> {
        let size = (left.width(), left.height());
        let filter = SpatialFilter::new(&Arena::new(), how, size, threads).unwrap();
        let mut team = Team::new(threads).unwrap();
        let simd = choice.resolve().unwrap();
        let mut smoothed = vec![0; values.len()];
        let other: Vec<i16> = values.iter().rev().copied().collect();
        for map in [&other[..], values] {
            let mut pass = Pass { size, left, threshold: 0, prior: None, simd, team: &mut team };
            // SAFETY: the map and the filter's input have this size.
            unsafe {
                let input = filter.input().unwrap();
                input.copy_from_nonoverlapping(map.as_ptr(), map.len());
                filter.run(&mut pass, smoothed.as_mut_ptr(), None);
            }
        }
        smoothed
    }

    /// Patches of slants with noise, holes, and edges of the image, anywhere among the disparities.
    fn scene() -> impl Strategy<Value = (Image, Vec<i16>)> {
        let size = (1usize..100, 1usize..40);
        (size, any::<u64>(), 1usize..30, 0u64..40, 1u64..30, 1u64..50).prop_map(
            |((width, height), seed, patch, holes, noise, contrast)| {
                let random = |x: usize, y: usize, what: u64| {
                    let mixed =
                        seed ^ what << 40 ^ ((y << 20 | x) as u64).wrapping_mul(0x9e37_79b9);
                    mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
                };
                let value = |i: usize| {
                    let (x, y) = (i % width, i / width);
                    let base = [0, 10, 900, -300, 32_600, -32_700]
                        [random(x / patch, y / patch, 1) as usize % 6];
                    let slant = (random(x / patch, y / patch, 2) % 9) as i32 - 4;
                    let value =
                        base + slant * (x % patch) as i32 + (random(x, y, 3) % noise) as i32;
                    let hole = random(x, y, 4) % 100 < holes;
                    if hole { INVALID } else { value.clamp(-32_752, 32_736) as i16 }
                };
                let grey = |x, y| (100 + random(x, y, 5) % contrast) as u8;
                let values = (0..width * height).map(value).collect();
                (Image::from_fn(width, height, grey), values)
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn blocks_give_the_bytes_of_the_reference(
            (left, values) in scene(),
            reach in 1..=REACH_MAX,
            threads in 1usize..5,
        ) {
            let how = Spatial { reach };
            let plain = spatial::apply(&values, &left, how);
            for choice in SimdChoice::available() {
                prop_assert_eq!(&filter(&left, &values, how, choice, threads), &plain);
            }
            for (&before, &after) in values.iter().zip(&plain) {
                prop_assert_eq!(before == INVALID, after == INVALID, "a hole came or went");
                prop_assert!(before.abs_diff(after) <= 16, "changed by more than a pixel");
            }
        }
    }
}
