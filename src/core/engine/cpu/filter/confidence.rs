//! Confidence of each pixel, from column sums of its windows.

use std::sync::Mutex;

use super::Pass;
use crate::engine::cpu::memory::{Arena, Block, Plane};
use crate::engine::cpu::simd::{SimdKernel, Vector};
use crate::frame::{INVALID, Image, LEAST_CONFIDENCE};
use crate::matching::confidence::{RADIUS, REACH, is_blind, levels, of_known, of_levels};
use crate::memory::{Result, product};
use crate::thread::locked;

const KINDS: usize = 5;

/// Columns of a thread's row, including the margins outside the image.
fn columns(width: usize) -> usize {
    width.saturating_add(2 * REACH)
}

pub struct ConfidenceFilter {
    /// Pixels with a lower confidence become invalid.
    least: u8,
    /// Smallest grey level of white.
    white: u8,
    size: (usize, usize),
    /// The map before this filter.
    values: Block<i16>,
    /// Peaks of the winners; 0 for invalid ones.
    peaks: Block<u8>,
    confidence: Block<u8>,
    /// Per thread, [`KINDS`] numbers of [`columns`].
    scratches: Vec<Mutex<Vec<i16>>>,
}

impl ConfidenceFilter {
    pub fn new(
        arena: &Arena,
        (least, white): (u8, u8),
        size: (usize, usize),
        threads: usize,
    ) -> Result<Self> {
        let pixels = product([size.0, size.1]);
        Ok(Self {
            least,
            white,
            size,
            values: arena.block(pixels)?,
            peaks: arena.block(pixels)?,
            confidence: arena.block(pixels)?,
            scratches: arena
                .per_thread(threads, || arena.filled(KINDS.saturating_mul(columns(size.0)), 0))?,
        })
    }

    /// Stores the values and peaks of row `y` after the checks and the valid mask.
    ///
    /// # Safety
    /// The row lies in the map, and no other thread accesses it.
    pub unsafe fn put_row(
        &self,
        [left, right]: [&Image; 2],
        y: usize,
        values: &[i16],
        peaks: &[u8],
    ) {
        let row = y * self.size.0..(y + 1) * self.size.0;
        let planes = (Plane(self.values.ptr()), Plane(self.peaks.ptr()));
        // SAFETY: the caller's promise.
        let to = unsafe {
            planes.0.part(row.clone()).copy_from_slice(values);
            planes.1.part(row)
        };
        for (to, (&value, &peak)) in to.iter_mut().zip(values.iter().zip(peaks)) {
            *to = if value != INVALID { peak } else { 0 };
        }
        // Only white pixels can be saturated, and most rows have none.
        let brightest = |eye: &Image| eye.row(y).iter().fold(0, |most, &grey| grey.max(most));
        if brightest(left).max(brightest(right)) < self.white {
            return;
        }
        for (x, (to, &value)) in to.iter_mut().zip(values).enumerate() {
            if value != INVALID && is_blind(left, right, x, y, value, self.white) {
                *to = 0;
            }
        }
    }

    pub fn confidence_ptr(&self) -> *mut u8 {
        self.confidence.ptr()
    }

    /// Confidence of every pixel of the newest map. No pass may be running.
    pub fn confidence(&self) -> &[u8] {
        // SAFETY: the block has this length, and no thread writes it now.
        unsafe { self.confidence.all(self.size.0 * self.size.1) }
    }

    /// Writes the confidence, and invalidates in place the pixels with too low a confidence.
    ///
    /// # Safety
    /// `map` has the filter's size, all its rows were stored, and no other thread accesses it; the simd was
    /// found on this machine.
    pub unsafe fn run(&self, pass: &mut Pass<'_>, map: *mut i16) {
        let (size @ (width, height), simd) = (self.size, pass.simd);
        let (map, confidence) = (Plane(map), Plane(self.confidence.ptr()));
        // SAFETY: both planes are complete and only read.
        let (values, peaks) =
            unsafe { (self.values.all(width * height), self.peaks.all(width * height)) };
        pass.rows(|thread, rows| {
            let scratch = &mut locked(&self.scratches[thread])[..];
            for y in rows {
                let row = y * width..(y + 1) * width;
                // SAFETY: the row is this thread's; the caller's promise.
                unsafe {
                    let (map, to) = (map.part(row.clone()), confidence.part(row));
                    simd.vectorize(Row { size, y, values, peaks, scratch: &mut *scratch, to });
                    for (value, &sure) in map.iter_mut().zip(&*to) {
                        *value = if sure < self.least { INVALID } else { *value };
                    }
                }
            }
        });
    }
}

struct Row<'a> {
    size: (usize, usize),
    y: usize,
    /// The whole map, and its peaks.
    values: &'a [i16],
    peaks: &'a [u8],
    /// [`KINDS`] numbers of [`columns`].
    scratch: &'a mut [i16],
    to: &'a mut [u8],
}

impl SimdKernel for Row<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let (width, height) = self.size;
        let mut kinds = self.scratch.chunks_exact_mut(columns(width));
        let [near, far, unknown, least, greatest]: [&mut [i16]; KINDS] =
            std::array::from_fn(|_| kinds.next().unwrap_or_default());
        let inside = REACH..REACH + width;
        near.fill(0);
        far.fill(0);
        unknown.fill(0);
        least.fill(i16::MAX);
        greatest.fill(INVALID);
        for (i, y) in (self.y..=self.y + 2 * REACH).enumerate() {
            let row = y.saturating_sub(REACH).min(height - 1) * width;
            let (values, peaks) = (&self.values[row..][..width], &self.peaks[row..][..width]);
            if i.abs_diff(REACH) <= RADIUS {
                add(&mut near[inside.clone()], peaks);
            }
            add(&mut far[inside.clone()], peaks);
            let ends = least[inside.clone()].iter_mut().zip(&mut greatest[inside.clone()]);
            let kinds = ends.zip(&mut unknown[inside.clone()]);
            for (((least, greatest), unknown), &value) in kinds.zip(values) {
                *unknown += i16::from(value == INVALID);
                *least = (*least).min(if value == INVALID { i16::MAX } else { value });
                *greatest = (*greatest).max(value);
            }
        }
        for column in [&mut *near, &mut *far, &mut *unknown, &mut *least, &mut *greatest] {
            let (first, last) = (column[REACH], column[REACH + width - 1]);
            column[..REACH].fill(first);
            column[REACH + width..].fill(last);
        }
        // Extremes of 2, 4, 8 and 16 columns, starting at each.
        widen::<1>(least, i16::min);
        widen::<2>(least, i16::min);
        widen::<4>(least, i16::min);
        widen::<8>(least, i16::min);
        widen::<1>(greatest, i16::max);
        widen::<2>(greatest, i16::max);
        widen::<4>(greatest, i16::max);
        widen::<8>(greatest, i16::max);

        let sum = |column: &[i16]| column.iter().map(|&n| i32::from(n)).sum::<i32>();
        let mut sums = [sum(&far[..2 * REACH]), sum(&unknown[..2 * REACH])];
        let row = self.y * width;
        let pixels = self.values[row..][..width].iter().zip(&self.peaks[row..][..width]);
        for (x, (to, (&value, &peak))) in self.to.iter_mut().zip(pixels).enumerate() {
            let next = x + 2 * REACH;
            sums = [sums[0] + i32::from(far[next]), sums[1] + i32::from(unknown[next])];
            *to = match (value, peak) {
                (INVALID, _) => 0,
                (_, 0) => LEAST_CONFIDENCE,
                _ => {
                    let near = sum(&near[x + REACH - RADIUS..][..2 * RADIUS + 1]);
                    let ends =
                        [least[x].min(least[x + REACH]), greatest[x].max(greatest[x + REACH])];
                    of_levels(levels(near, (sums[0], sums[1]), value, ends))
                }
            };
            sums = [sums[0] - i32::from(far[x]), sums[1] - i32::from(unknown[x])];
        }
    }
}

#[inline(always)]
fn add(sums: &mut [i16], peaks: &[u8]) {
    for (sum, &peak) in sums.iter_mut().zip(peaks) {
        *sum += i16::from(peak);
    }
}

/// Combines each number with the one `STEP` further on; the last ones stay unchanged.
#[inline(always)]
fn widen<const STEP: usize>(numbers: &mut [i16], pick: impl Fn(i16, i16) -> i16) {
    for i in 0..numbers.len().saturating_sub(STEP) {
        numbers[i] = pick(numbers[i], numbers[i + STEP]);
    }
}

/// Clears the confidence of invalid pixels.
///
/// # Safety
/// `map` and `sure` have the pass's size and are complete, and no other thread writes them.
pub unsafe fn keep_known(pass: &mut Pass<'_>, map: *mut i16, sure: *mut u8) {
    let (width, map, sure) = (pass.size.0, Plane(map), Plane(sure));
    pass.rows(|_, rows| {
        let pixels = rows.start * width..rows.end * width;
        // SAFETY: these rows are this thread's.
        unsafe { of_known(map.part(pixels.clone()), sure.part(pixels)) };
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::cpu::simd::SimdChoice;
    use crate::engine::cpu::team::Team;
    use crate::matching::confidence;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_vector_gives_the_bytes_of_the_reference(
            (width, height) in (1usize..90, 1usize..50),
            seed in any::<u64>(),
            (unknown, steps) in (0u64..100, 1u64..3000),
            least in prop_oneof![Just(0u8), any::<u8>()],
            threads in 1usize..4,
        ) {
            let random = |i: usize, what: u64| {
                let mixed = (seed ^ what << 40 ^ i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
            };
            let value = |i| match random(i, 1) % 100 < unknown {
                true => INVALID,
                false => (random(i, 2) % steps) as i16 - 40,
            };
            let size = (width, height);
            let values: Vec<i16> = (0..width * height).map(value).collect();
            // Some peaks are 0.
            let peaks: Vec<u8> = (0..values.len())
                .map(|i| (random(i, 3) % 280).saturating_sub(25) as u8)
                .collect();
            // Some areas are white.
            let [left, right] =
                [4, 5].map(|what| Image::from_fn(width, height, |x, y| match random(y / 4 * 99 + x / 6, what) % 4 {
                    0 => 253,
                    _ => 100,
                }));
            let (mut expected, mut of_reference) = (values.clone(), peaks.clone());
            confidence::blind(&values, &mut of_reference, &left, &right, 250);
            let sure = confidence::apply(width, &mut expected, &of_reference, least);
            for choice in SimdChoice::available() {
                let simd = choice.resolve().unwrap();
                let filter = ConfidenceFilter::new(&Arena::new(), (least, 250), size, threads).unwrap();
                let mut team = Team::new(threads).unwrap();
                let mut pass = Pass { size, left: &left, threshold: 0, prior: None, simd, team: &mut team };
                let mut map = values.clone();
                for (y, (values, peaks)) in values.chunks(width).zip(peaks.chunks(width)).enumerate() {
                    // SAFETY: the row lies in the map.
                    unsafe { filter.put_row([&left, &right], y, values, peaks) };
                }
                // SAFETY: the map has this size; the simd was found here.
                unsafe { filter.run(&mut pass, map.as_mut_ptr()) };
                prop_assert_eq!(filter.confidence(), &sure, "{:?}", choice);
                prop_assert_eq!(&map, &expected, "{:?}", choice);
            }
        }
    }
}
