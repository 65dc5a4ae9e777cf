//! The confidence of each pixel: the mean of the peaks around it, from sums of columns.

use std::sync::{Mutex, PoisonError};

use super::pass::Pass;
use crate::core::frame::{INVALID, Image};
use crate::core::memory::{Refused, product};
use crate::engine::cpu::memory::{Arena, Block, Plane};
use crate::matching::confidence::{RADIUS, is_blind, mean, of_known};

/// Sums of columns that a thread keeps for a row, with those beside the image.
fn sums_len(width: usize) -> usize {
    width.saturating_add(2 * RADIUS)
}

/// The confidence with its memory.
pub struct ConfidenceFilter {
    /// Pixels that are less sure are invalid.
    least: u8,
    /// From this grey level on images are white.
    white: u8,
    size: (usize, usize),
    /// The peaks of the winners, 0 where they are invalid.
    peaks: Block<u8>,
    /// Their means.
    means: Block<u8>,
    /// Of each thread [`sums_len`] sums.
    sums: Vec<Mutex<Vec<u16>>>,
}

impl ConfidenceFilter {
    pub fn new(
        arena: &Arena,
        (least, white): (u8, u8),
        size: (usize, usize),
        threads: usize,
    ) -> Result<Self, Refused> {
        let pixels = product([size.0, size.1]);
        Ok(Self {
            least,
            white,
            size,
            peaks: arena.block(pixels)?,
            means: arena.block(pixels)?,
            sums: arena.per_thread(threads, || arena.filled(sums_len(size.0), 0))?,
        })
    }

    /// Takes the values and peaks of row `y` of this pair as the checks and the mask have left
    /// them.
    ///
    /// # Safety
    /// The row lies in the map, and nobody else touches it.
    pub unsafe fn put_row(
        &self,
        [left, right]: [&Image; 2],
        y: usize,
        values: &[i16],
        peaks: &[u8],
    ) {
        // SAFETY: the caller's promise.
        let to = unsafe {
            std::slice::from_raw_parts_mut(self.peaks.ptr().add(y * self.size.0), self.size.0)
        };
        for (to, (&value, &peak)) in to.iter_mut().zip(values.iter().zip(peaks)) {
            *to = if value != INVALID { peak } else { 0 };
        }
        // Only white pixels can be blind, and most rows have none.
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

    /// [`ConfidenceFilter::run`] for row `y`, of which these are the values and the means.
    fn row(&self, y: usize, sums: &mut [u16], values: &mut [i16], means: &mut [u8]) {
        let (width, height) = self.size;
        // SAFETY: the peaks are complete and only read.
        let peaks = unsafe { std::slice::from_raw_parts(self.peaks.ptr(), width * height) };
        let rows: [&[u8]; 2 * RADIUS + 1] = std::array::from_fn(|i| {
            let y = (y + i).saturating_sub(RADIUS).min(height - 1);
            &peaks[y * width..][..width]
        });
        let inside = &mut sums[RADIUS..][..width];
        for (x, sum) in inside.iter_mut().enumerate() {
            *sum = rows.iter().map(|row| u16::from(row[x])).sum();
        }
        let (left, right) = (inside[0], inside[width - 1]);
        sums[..RADIUS].fill(left);
        sums[RADIUS + width..].fill(right);
        for (x, (value, to)) in values.iter_mut().zip(means).enumerate() {
            *to = mean(sums[x..][..2 * RADIUS + 1].iter().sum());
            *value = if *to < self.least { INVALID } else { *value };
        }
    }

    /// Returns the address of the confidence.
    pub fn means_ptr(&self) -> *mut u8 {
        self.means.ptr()
    }

    /// The confidence of every pixel of the newest map, of which no pass may be under way.
    pub fn means(&self) -> &[u8] {
        // SAFETY: the block has this length, and nobody writes it now.
        unsafe { std::slice::from_raw_parts(self.means.ptr(), self.size.0 * self.size.1) }
    }

    /// Writes the means, and invalidates in place what is less sure than asked for.
    ///
    /// # Safety
    /// `map` has the filter's size, every row of it was put, and nobody else touches it.
    pub unsafe fn run(&self, pass: &mut Pass<'_>, map: *mut i16) {
        let (map, means) = (Plane(map), Plane(self.means.ptr()));
        pass.rows(|thread, rows| {
            let sums = &mut locked(&self.sums[thread])[..];
            for y in rows {
                let row = y * self.size.0..(y + 1) * self.size.0;
                // SAFETY: the rows are this thread's.
                let (values, means) = unsafe { (map.part(row.clone()), means.part(row)) };
                self.row(y, sums, values, means);
            }
        });
    }
}

/// Takes the confidence from what has no disparity by now.
///
/// # Safety
/// `map` and `sure` have the pass's size and are complete, and nobody else writes them.
pub unsafe fn keep_known(pass: &mut Pass<'_>, map: *mut i16, sure: *mut u8) {
    let (width, map, sure) = (pass.size.0, Plane(map), Plane(sure));
    pass.rows(|_, rows| {
        let pixels = rows.start * width..rows.end * width;
        // SAFETY: these rows are this thread's.
        unsafe { of_known(map.part(pixels.clone()), sure.part(pixels)) };
    });
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
