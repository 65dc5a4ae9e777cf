//! The vertical and diagonal paths of one sweep, a tile of a band at a time.
//!
//! Every path that crosses the band keeps its vectors in a slot of its own, updated in place from row
//! to row: column x of row i (counted along the sweep) belongs to slot x - dx * i. Where a path
//! enters the band, in its first row, the vectors come from the band's edge; where it leaves the
//! band they go to the next band's edge. A tile leans over to the left by one pixel a row, so that
//! everything it needs lies in itself, in the tile to its left, or on the edge.

use super::cost::{Cost, PixelCost, RowCost};
use super::geometry::Geometry;
use super::path::path_delta;
use super::penalties::Penalties;
use super::simd::{Kernel, Lanes};
use super::winner::WinnerTakesAll;

/// Only the vectors at the next band's edge.
pub const CHECKPOINT: u8 = 0;
/// The deltas, into the ring.
pub const KEEP: u8 = 1;
/// The winners, from these paths, the ring and the horizontal paths.
pub const FINISH: u8 = 2;
/// The winners, from these and the horizontal paths.
pub const ONLY: u8 = 3;

/// Column steps of the paths of a sweep.
const STEPS: [isize; 3] = [0, 1, -1];

/// A tile: `PATHS` paths, what for (`MODE`), at most `MAX` vectors a pixel, exactly `MAX` where
/// `EXACT`.
pub struct Vertical<'a, C, const MAX: usize, const EXACT: bool, const PATHS: usize, const MODE: u8>
{
    /// How the picture is cut up.
    pub geometry: &'a Geometry,
    /// The matching cost.
    pub cost: C,
    /// P1.
    pub p1: u8,
    /// P2 between neighbouring pixels.
    pub penalties: Penalties,
    /// First row and number of rows of the band.
    pub band: (usize, usize),
    /// Whether the sweep goes up.
    pub upward: bool,
    /// Number of the tile within the band.
    pub tile: usize,
    /// Where the paths enter, [path][1 + x][depth].
    pub entry: *const u8,
    /// Where they leave; null where nobody wants to know.
    pub exit: *mut u8,
    /// The slots, [path][slot][depth].
    pub path_states: *mut u8,
    /// Deltas of the downward paths, [row][x % ring][kept][depth]: of the diagonal ones, together where they fit a byte,
    /// and of the vertical one.
    pub ring: *mut u8,
    /// Deltas of the horizontal paths, [row][x][planes][depth].
    pub horizontal: *const u8,
    /// Picks the winners.
    pub winner: &'a mut WinnerTakesAll,
}

impl<C: Cost, const MAX: usize, const EXACT: bool, const PATHS: usize, const MODE: u8> Kernel
    for Vertical<'_, C, MAX, EXACT, PATHS, MODE>
{
    #[inline(always)]
    unsafe fn run<V: Lanes>(mut self) {
        for i in 0..self.band.1 {
            let (first, end) = self.geometry.columns(self.tile, i);
            if first < end {
                // SAFETY: row and columns lie in the tile; the caller vouches for the memory.
                unsafe { self.row::<V>(i, first, end) }
            }
        }
    }
}

impl<C: Cost, const MAX: usize, const EXACT: bool, const PATHS: usize, const MODE: u8>
    Vertical<'_, C, MAX, EXACT, PATHS, MODE>
{
    /// The columns `first..end` of the `i`-th row of the sweep.
    #[inline(always)]
    unsafe fn row<V: Lanes>(&mut self, i: usize, first: usize, end: usize) {
        let Geometry { width, chunks, depth, planes, band_rows, ring, kept, .. } = *self.geometry;
        let chunks = if EXACT { MAX } else { chunks };
        let (band_first, rows) = self.band;
        let r = if self.upward { rows - 1 - i } else { i }; // Row within the band.
        let y = band_first + r;
        let slots = self.geometry.path_state_slots() * depth;
        let edge = self.geometry.edge_stride();

        // SAFETY: the pointers below stay within their blocks: slots reach from -band_rows to
        // width + band_rows, edges from -1 to width, x lies in the row and c below `chunks`.
        unsafe {
            let (ones, zero) = (V::splat(255), V::splat(0));
            let p1 = V::splat(self.p1);
            let costs = self.cost.row::<V>(y);

            // Addresses of column 0.
            let mut from = [std::ptr::null::<u8>(); PATHS];
            let mut to = [std::ptr::null_mut::<u8>(); PATHS];
            let mut penalties = [std::ptr::null::<u8>(); PATHS];
            for p in 0..PATHS {
                let slot = band_rows as isize - STEPS[p] * i as isize;
                let path_state = self.path_states.add(p * slots).offset(slot * depth as isize);
                from[p] = if i == 0 {
                    self.entry.add(p * edge).offset((1 - STEPS[p]) * depth as isize)
                } else {
                    path_state
                };
                penalties[p] = self.penalties.along(y, STEPS[p], self.upward);
                to[p] = if i + 1 == rows && !self.exit.is_null() {
                    self.exit.add(p * edge + depth)
                } else {
                    path_state
                };
            }
            let horizontal = self.horizontal.add(r * width * planes * depth);
            let kept_row = self.ring.add(r * ring * kept * depth);
            if MODE == FINISH || MODE == ONLY {
                self.winner.begin_row(r);
            }
            let piece = self.winner.piece();

            for x in first..end {
                let mut least = [zero; PATHS];
                let mut p2 = [zero; PATHS];
                let mut below = [zero; PATHS];
                let mut here = [zero; PATHS];
                for p in 0..PATHS {
                    let from = from[p].add(x * depth);
                    here[p] = V::load(from);
                    let (mut smallest, mut last) = (here[p], here[p]);
                    for c in 1..chunks {
                        last = V::load(from.add(c * V::N));
                        smallest = smallest.min(last);
                    }
                    below[p] = last.shift_from_below(ones);
                    least[p] = smallest.least();
                    p2[p] = V::splat(*penalties[p].add(x));
                }
                let horizontal = horizontal.add(x * planes * depth);
                let kept = kept_row.add((x & (ring - 1)) * kept * depth);
                let mut least_sum = V::splat_wide(i16::MAX);

                let lowest = here;
                let pixel = costs.at(x, chunks);
                for c in 0..chunks {
                    let cost = pixel.load(c);
                    let mut e = [zero; 3];
                    for p in 0..PATHS {
                        let above = if c + 1 < chunks {
                            V::load(from[p].add(x * depth + (c + 1) * V::N))
                        } else {
                            lowest[p].shift_from_above(ones)
                        };
                        e[p] = path_delta(below[p], here[p], above, least[p], p1, p2[p]);
                        e[p].adds(cost).store(to[p].add(x * depth + c * V::N));
                        below[p] = here[p];
                        here[p] = above;
                    }

                    let at = c * V::N;
                    let kept = kept.add(at);
                    if MODE == CHECKPOINT {
                        continue;
                    }
                    if MODE == KEEP {
                        match (PATHS, planes) {
                            (1, _) => {}
                            (_, 1) => e[1].adds(e[2]).store(kept),
                            _ => {
                                e[1].store(kept);
                                e[2].store(kept.add(depth));
                            }
                        }
                        let vertical = if PATHS == 1 { 0 } else { planes * depth };
                        e[0].store(kept.add(vertical));
                        continue;
                    }
                    let horizontal = horizontal.add(at);
                    let across = V::load(horizontal);
                    let sum = match (MODE, PATHS, planes) {
                        (ONLY, _, 1) => {
                            let sum = V::pair_sum(across, e[1].adds(e[2]), 1);
                            add::<V>(sum, V::pair_sum(e[0], cost, 5))
                        }
                        (ONLY, ..) => {
                            let sum = V::pair_sum(across, V::load(horizontal.add(depth)), 1);
                            let sum = add::<V>(sum, V::pair_sum(e[1], e[2], 1));
                            add::<V>(sum, V::pair_sum(e[0], cost, 5))
                        }
                        (_, 1, 1) => {
                            let sum = V::pair_sum(across, V::load(kept), 1);
                            add::<V>(sum, V::pair_sum(e[0], cost, 4))
                        }
                        (_, 1, _) => {
                            let sum = V::pair_sum(across, V::load(horizontal.add(depth)), 1);
                            let sum = add::<V>(sum, V::pair_sum(V::load(kept), e[0], 1));
                            add::<V>(sum, V::pair_sum(zero, cost, 4))
                        }
                        (_, _, 1) => {
                            let sum = V::pair_sum(V::load(kept), e[1].adds(e[2]), 1);
                            let sum =
                                add::<V>(sum, V::pair_sum(across, V::load(kept.add(depth)), 1));
                            add::<V>(sum, V::pair_sum(e[0], cost, 8))
                        }
                        _ => {
                            let sum = V::pair_sum(across, V::load(horizontal.add(depth)), 1);
                            let diagonal = V::pair_sum(V::load(kept), V::load(kept.add(depth)), 1);
                            let sum = add::<V>(add::<V>(sum, diagonal), V::pair_sum(e[1], e[2], 1));
                            let down = V::load(kept.add(2 * depth));
                            let sum = add::<V>(sum, V::pair_sum(down, e[0], 1));
                            add::<V>(sum, V::pair_sum(zero, cost, 8))
                        }
                    };
                    piece.put::<V>(x - first, c, V::in_order(sum), &mut least_sum);
                }
                if MODE == FINISH || MODE == ONLY {
                    piece.end_pixel::<V>(x - first, least_sum);
                }
            }
            if MODE == FINISH || MODE == ONLY {
                self.winner.choose::<V, MAX, EXACT>(first, end - first);
            }
        }
    }
}

/// Sum of two pairs.
#[inline(always)]
fn add<V: Lanes>(a: [V::Wide; 2], b: [V::Wide; 2]) -> [V::Wide; 2] {
    [V::add_wide(a[0], b[0]), V::add_wide(a[1], b[1])]
}
