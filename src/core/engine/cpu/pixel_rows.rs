//! Costs of single pixels for the costs of a band: of its rows, and of the rows around it within reach of its
//! windows. Neighbouring bands share such rows. If costs are kept, bands are processed once from top to
//! bottom, and a band passes its rows on to the next one, which computes them itself only if they are not
//! ready.

use std::sync::atomic::{AtomicBool, Ordering};

use super::geometry::{Geometry, TILE_COSTS};
use super::memory::{Arena, Block};
use crate::matching::Params;
use crate::memory::{Result, product};

/// Radius of the window that supports the cost; 0 without one.
pub fn radius(params: &Params) -> usize {
    params.window.map_or(0, |window| usize::from(window.side / 2))
}

/// Rows for the costs of a band: the first row and the number of rows.
fn rows_around(
    geometry: &Geometry,
    (first, count): (usize, usize),
    radius: usize,
) -> (usize, usize) {
    let begin = first.saturating_sub(radius);
    (begin, (first + count + radius).min(geometry.height) - begin)
}

/// Reports whether bands pass rows on.
fn hands_on(geometry: &Geometry, params: &Params) -> bool {
    geometry.keeps_costs && !geometry.windowed && radius(params) > 0
}

/// Elements of a thread's own rows, [row][x][depth].
pub fn own_len(geometry: &Geometry, params: &Params) -> u64 {
    if geometry.windowed {
        return TILE_COSTS as u64;
    }
    let around = if hands_on(geometry, params) { 0 } else { 2 * radius(params) };
    let rows = if params.is_supported() { geometry.band_rows + around } else { 0 };
    product([rows, geometry.width, geometry.depth])
}

/// Rows that bands pass on, [slot][row][x][depth]: the rows on either side of the border to the next band.
///
/// Each of `threads` threads has one band, and no band ends before the one above. So while a band or the next
/// one is not done, no band more than `threads` further down has begun, and with `threads` + 1 slots no
/// thread overwrites rows that another reads.
pub struct HandedOn {
    costs: Block<u8>,
    slots: usize,
    slot_len: usize,
    written: Vec<AtomicBool>,
}

impl HandedOn {
    pub fn new(
        arena: &Arena,
        geometry: &Geometry,
        params: &Params,
        threads: usize,
    ) -> Result<Self> {
        let hands_on = hands_on(geometry, params);
        let rows = if hands_on { 2 * radius(params) } else { 0 };
        let slot = product([rows, geometry.width, geometry.depth]);
        let bands = if hands_on { geometry.bands } else { 0 };
        Ok(Self {
            costs: arena.block(slot.saturating_mul(threads as u64 + 1))?,
            slots: threads + 1,
            slot_len: slot as usize,
            written: arena.uncounted(bands, || AtomicBool::new(false)),
        })
    }

    pub fn begin_frame(&mut self) {
        self.written.iter_mut().for_each(|written| *written.get_mut() = false);
    }

    fn slot(&self, band: usize) -> *mut u8 {
        // SAFETY: the block has this many slots.
        unsafe { self.costs.ptr().add(band % self.slots * self.slot_len) }
    }
}

/// Costs of single pixels of a band and around it, in three parts from top to bottom.
#[derive(Clone, Copy)]
pub struct PixelRows {
    /// First row of each part, and its costs, [row][x][depth].
    parts: [(usize, *const u8); 3],
    row_bytes: usize,
}

impl PixelRows {
    /// Calls `write` for the rows of a band (its first row and number of rows) that are not available from
    /// the band above. They go to `own`, with room for [`own_len`] elements, and to the slot for the next
    /// band.
    pub fn write(
        geometry: &Geometry,
        (first, count): (usize, usize),
        radius: usize,
        own: *mut u8,
        handed_on: &HandedOn,
        mut write: impl FnMut((usize, usize), *mut u8),
    ) -> Self {
        let (begin, len) = rows_around(geometry, (first, count), radius);
        let row_bytes = geometry.width * geometry.depth;
        if handed_on.written.is_empty() {
            write((begin, len), own);
            return Self { parts: [(begin, own); 3], row_bytes };
        }

        // Rows from the band above, rows of this band alone, and rows for the band below.
        let (band, end) = (first / geometry.band_rows, begin + len);
        let middle = if band == 0 { begin } else { (first + radius).min(end) };
        let below = (first + count).saturating_sub(radius).max(middle);
        // SAFETY: there is room for as many rows as a band has, and no more lie above `below`.
        let own_middle = unsafe { own.add((middle - begin) * row_bytes) };
        let handed = handed_on.slot(band);
        write((middle, below - middle), own_middle);
        write((below, end - below), handed);
        handed_on.written[band].store(true, Ordering::Release);
        // Last, because by now the band above is more likely to be ready.
        let above = match band.checked_sub(1) {
            Some(above) if handed_on.written[above].load(Ordering::Acquire) => {
                handed_on.slot(above).cast_const()
            }
            _ => {
                write((begin, middle - begin), own);
                own.cast_const()
            }
        };
        Self { parts: [(begin, above), (middle, own_middle), (below, handed)], row_bytes }
    }

    /// The costs of a row, [x][depth].
    ///
    /// # Safety
    /// The row is one of the rows around the band.
    #[inline(always)]
    pub unsafe fn row(&self, y: usize) -> *const u8 {
        let [above, middle, below] = self.parts;
        let (first, costs) = if y >= below.0 {
            below
        } else if y >= middle.0 {
            middle
        } else {
            above
        };
        // SAFETY: the caller's promise.
        unsafe { costs.add((y - first) * self.row_bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::DisparityRange;
    use crate::matching::Cost;
    use crate::matching::window::Window;

    #[test]
    fn every_row_around_a_band_is_there_whether_the_band_above_hands_some_on_or_is_late() {
        let sizes = (1..=41).flat_map(|height| [(height, 3), (height, 5)]);
        for ((height, side), anew) in sizes.flat_map(|size| [(size, false), (size, true)]) {
            let cost = Cost::Ad { truncation: 20, window: 1 };
            let window = Some(Window { side, by_texture: false });
            let range = DisparityRange { min: 0, count: 3 };
            let params = Params { window, ..Params::bare(range, cost, (5, 50)) };
            let geometry = Geometry::new(&params, (2, height), 16, anew);
            let row_bytes = geometry.width * geometry.depth;
            for (threads, late) in [(1, false), (1, true), (3, false), (2, true)] {
                let mut handed_on =
                    HandedOn::new(&Arena::new(), &geometry, &params, threads).unwrap();
                let mut rows_written = 0;
                for band in 0..geometry.bands {
                    let own = Block::<u8>::new(own_len(&geometry, &params)).unwrap();
                    let (first, count) = geometry.band(band);
                    let end = own.ptr().wrapping_add(own.bytes());
                    let rows = PixelRows::write(
                        &geometry,
                        (first, count),
                        radius(&params),
                        own.ptr(),
                        &handed_on,
                        |(first, count), to| {
                            let inside = (own.ptr()..end).contains(&to);
                            assert!(!inside || to.wrapping_add(count * row_bytes) <= end);
                            for row in 0..count {
                                // SAFETY: the row lies in the memory it was given.
                                unsafe {
                                    let to = to.add(row * row_bytes);
                                    to.write_bytes((first + row) as u8, row_bytes);
                                }
                                rows_written += 1;
                            }
                        },
                    );
                    let (begin, len) = rows_around(&geometry, (first, count), radius(&params));
                    for y in begin..begin + len {
                        // SAFETY: the row lies around the band, and its memory still exists.
                        let row = unsafe { std::slice::from_raw_parts(rows.row(y), row_bytes) };
                        assert!(row.iter().all(|&byte| byte == y as u8), "{height} {side} {y}");
                    }
                    if late {
                        handed_on.begin_frame();
                    }
                }
                if !late && !anew {
                    assert_eq!(rows_written, height, "each row is written once");
                }
            }
        }
    }
}
