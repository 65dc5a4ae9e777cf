//! Median of the valid values of a window, for a vector of columns at once.
//!
//! `INVALID` is the smallest value. In the sorted window of n places, z of them invalid or outside the image,
//! the lower median of the valid ones is at place z + (n - z - 1) / 2 = (n - 1) / 2 + z / 2 for odd n: in the
//! upper half. Rows are copied with invalid values on either side, so that no column is special.

use std::sync::Mutex;

use super::{MapFilter, Pass};
use crate::engine::cpu::memory::{Arena, Block, Plane};
use crate::engine::cpu::simd::{SimdKernel, Vector};
use crate::frame::INVALID;
use crate::memory::{Refused, Result, product};
use crate::thread::locked;

/// Values beyond either end of a copied row: the largest radius, plus the overhang of a vector.
const MARGIN: usize = 64;

/// Length of the copied rows for one row.
fn scratch_len(width: usize, side: usize) -> u64 {
    product([side, width.saturating_add(2 * MARGIN)])
}

pub struct MedianFilter {
    /// Radius of the window, 1 or 2.
    radius: usize,
    unfiltered: Block<i16>,
    /// Per thread, [`scratch_len`] values.
    scratches: Vec<Mutex<Vec<i16>>>,
}

impl MedianFilter {
    pub fn new(
        arena: &Arena,
        radius: usize,
        (width, height): (usize, usize),
        threads: usize,
    ) -> Result<Self> {
        let len = scratch_len(width, 2 * radius + 1);
        let len = usize::try_from(len).map_err(|_| Refused(len))?;
        Ok(Self {
            radius,
            unfiltered: arena.block(product([width, height]))?,
            scratches: arena.per_thread(threads, || arena.filled(len, 0))?,
        })
    }
}

impl MapFilter for MedianFilter {
    fn input(&self) -> Option<*mut i16> {
        Some(self.unfiltered.ptr())
    }

    unsafe fn run(&self, pass: &mut Pass<'_>, map: *mut i16, _: Option<*mut u8>) {
        let (size @ (width, height), simd, map) = (pass.size, pass.simd, Plane(map));
        // SAFETY: the caller's promise.
        let from = unsafe { self.unfiltered.all(width * height) };
        pass.rows(|thread, rows| {
            let scratch = &mut locked(&self.scratches[thread])[..];
            // SAFETY: the rows of the result are this thread's; the simd was found on this machine.
            unsafe {
                let to = map.part(rows.start * width..rows.end * width);
                let rows = (rows.start, rows.end);
                match self.radius {
                    1 => simd.vectorize(MedianRows::<3, 9> { size, rows, from, to, scratch }),
                    _ => simd.vectorize(MedianRows::<5, 25> { size, rows, from, to, scratch }),
                }
            }
        });
    }
}

/// Filters the rows `rows.0..rows.1` of a map with windows of `SIDE` x `SIDE` = `AREA` places.
struct MedianRows<'a, const SIDE: usize, const AREA: usize> {
    /// Width and height of the map.
    size: (usize, usize),
    /// First row, and the row behind the last.
    rows: (usize, usize),
    from: &'a [i16],
    to: &'a mut [i16],
    /// [`scratch_len`] values.
    scratch: &'a mut [i16],
}

impl<const SIDE: usize, const AREA: usize> SimdKernel for MedianRows<'_, SIDE, AREA> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let (width, height) = self.size;
        let (radius, lanes) = (SIDE / 2, V::N / 2);
        let stride = width + 2 * MARGIN;
        assert!(self.scratch.len() >= SIDE * stride && lanes <= MARGIN && radius <= MARGIN);
        self.scratch.fill(INVALID);
        // Row y is kept at place y mod SIDE; rows outside are invalid.
        let mut next = self.rows.0.saturating_sub(radius);
        for (y, to) in (self.rows.0..self.rows.1).zip(self.to.chunks_exact_mut(width)) {
            while next <= y + radius {
                let place = &mut self.scratch[next % SIDE * stride + MARGIN..][..width];
                match next < height {
                    true => place.copy_from_slice(&self.from[next * width..][..width]),
                    false => place.fill(INVALID),
                }
                next += 1;
            }
            let mut last = [INVALID; MARGIN];
            for x in (0..width).step_by(lanes) {
                // SAFETY: a vector from any column of the image, moved by the radius, stays within the
                // margins; the result is stored only up to the end of the row.
                unsafe {
                    let from = self.scratch.as_ptr().add(MARGIN - radius + x);
                    let mut window = [V::splat_wide(0); AREA];
                    for i in 0..SIDE {
                        for j in 0..SIDE {
                            window[i * SIDE + j] = V::load_wide(from.add(i * stride + j));
                        }
                    }
                    let centre = V::load_wide(from.add(y % SIDE * stride + radius));
                    let medians = lower_medians::<V, AREA>(window, centre);
                    if x + lanes <= width {
                        V::store_wide(medians, to.as_mut_ptr().add(x));
                    } else {
                        V::store_wide(medians, last.as_mut_ptr());
                        to[x..].copy_from_slice(&last[..width - x]);
                    }
                }
            }
        }
    }
}

/// Lower median of the valid values of every column; invalid if the centre is.
///
/// # Safety
/// As [`Vector::splat_wide`].
#[inline(always)]
unsafe fn lower_medians<V: Vector, const AREA: usize>(
    mut window: [V::Wide; AREA],
    centre: V::Wide,
) -> V::Wide {
    // SAFETY: the caller's promise.
    unsafe {
        let invalid = V::splat_wide(INVALID);
        let mut count = V::splat_wide(0);
        for &place in &window {
            count = V::add_wide(count, V::equal_wide(place, invalid));
        }
        if AREA == 9 {
            sort::<V, AREA>(&mut window, &PAIRS_9);
        } else {
            sort::<V, AREA>(&mut window, &PAIRS_25);
        }
        let mut median = window[AREA / 2];
        for i in 1..=AREA / 2 {
            for z in [2 * i, 2 * i + 1] {
                let wanted = V::splat_wide(z as i16);
                median = V::select_equal(count, wanted, window[AREA / 2 + i], median);
            }
        }
        V::select_equal(centre, invalid, invalid, median)
    }
}

/// Sorts every lane with a fixed sequence of comparisons, in groups of sixteen, which compilers unroll: with
/// constant indices the values stay in registers.
#[inline(always)]
fn sort<V: Vector, const AREA: usize>(places: &mut [V::Wide; AREA], pairs: &[(u8, u8)]) {
    const SIXTEENS: usize = 9;
    const { assert!(comparisons(25) <= 16 * SIXTEENS) };
    sixteen::<V, AREA, 0>(places, pairs);
    sixteen::<V, AREA, 1>(places, pairs);
    sixteen::<V, AREA, 2>(places, pairs);
    sixteen::<V, AREA, 3>(places, pairs);
    sixteen::<V, AREA, 4>(places, pairs);
    sixteen::<V, AREA, 5>(places, pairs);
    sixteen::<V, AREA, 6>(places, pairs);
    sixteen::<V, AREA, 7>(places, pairs);
    sixteen::<V, AREA, 8>(places, pairs);
}

/// The comparisons from number 16 * `PART`, up to sixteen.
#[inline(always)]
fn sixteen<V: Vector, const AREA: usize, const PART: usize>(
    places: &mut [V::Wide; AREA],
    pairs: &[(u8, u8)],
) {
    for i in 0..16 {
        if 16 * PART + i < pairs.len() {
            let (low, high) = pairs[16 * PART + i];
            let (low, high) = (usize::from(low), usize::from(high));
            let (a, b) = (places[low], places[high]);
            places[low] = V::min_wide(a, b);
            places[high] = V::max_wide(a, b);
        }
    }
}

/// The comparisons that sort 9 places.
static PAIRS_9: [(u8, u8); comparisons(9)] = batcher(9);
/// The comparisons that sort 25 places.
static PAIRS_25: [(u8, u8); comparisons(25)] = batcher(25);

/// Number of comparisons of [`batcher`].
const fn comparisons(places: usize) -> usize {
    let mut all = [(0, 0); 256];
    walk(places, &mut all)
}

/// Batcher's odd-even merge sort (1968) of `places` places, as a list of comparisons.
const fn batcher<const N: usize>(places: usize) -> [(u8, u8); N] {
    let mut all = [(0, 0); 256];
    walk(places, &mut all);
    let mut pairs = [(0, 0); N];
    let mut i = 0;
    while i < N {
        pairs[i] = all[i];
        i += 1;
    }
    pairs
}

/// Writes the comparisons and returns their number.
const fn walk(places: usize, pairs: &mut [(u8, u8); 256]) -> usize {
    let mut count = 0;
    let mut p = 1;
    while p < places {
        let mut k = p;
        while k >= 1 {
            let mut j = k % p;
            while j + k < places {
                let mut i = 0;
                while i < k && i + j + k < places {
                    if (i + j) / (2 * p) == (i + j + k) / (2 * p) {
                        pairs[count] = ((i + j) as u8, (i + j + k) as u8);
                        count += 1;
                    }
                    i += 1;
                }
                j += 2 * k;
            }
            k /= 2;
        }
        p *= 2;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_comparisons_sort() {
        for (places, pairs) in [(9usize, &PAIRS_9[..]), (25, &PAIRS_25[..])] {
            let mut state = 1u32;
            for _ in 0..3000 {
                let mut values: Vec<u32> = (0..places)
                    .map(|_| {
                        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
                        state >> 28
                    })
                    .collect();
                for &(low, high) in pairs {
                    if values[usize::from(low)] > values[usize::from(high)] {
                        values.swap(low.into(), high.into());
                    }
                }
                assert!(values.is_sorted(), "{values:?}");
            }
        }
    }
}
