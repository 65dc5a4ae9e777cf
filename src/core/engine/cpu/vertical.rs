//! The vertical and diagonal paths of one sweep, a tile of a band at a time.
//!
//! Every path that crosses the band has a slot for its vectors, updated in place from row to row: column x of
//! row i (counted along the sweep) belongs to slot x - dx * i. Paths enter the band in its first row with the
//! vectors of the band's edge, and leave their vectors at the next band's edge. A tile leans to the left by
//! one pixel per row, so that all its inputs are in itself, in the tile to its left, or on the edge.
//!
//! The sweep that selects the winners also follows the rightward paths, with the vectors of one pixel per
//! row. The sweep has the same direction, and work on the other paths hides the latency of these, which
//! depend on the previous pixel.

use super::cost::{FrameCost, PixelCost, RowCost};
use super::geometry::Geometry;
use super::path::{extend, path_delta};
use super::shape::ShapedKernel;
use super::simd::Vector;
use super::steps::Steps;
use super::winner::WinnerTakesAll;

/// Output: only the vectors at the next band's edge.
pub const CHECKPOINT: u8 = 0;
/// Output: the deltas, into the ring.
pub const KEEP: u8 = 1;
/// Output: the winners, from these paths, the ring and the horizontal paths; the rightward ones are followed
/// here.
pub const FINISH: u8 = 2;
/// As [`FINISH`], without a ring.
pub const ONLY: u8 = 3;

/// Largest number of simultaneous paths: three of a sweep, and the rightward one.
const MOST: usize = 4;

/// Column steps of the paths of a sweep.
const STEPS: [isize; 3] = [0, 1, -1];

/// Follows `PATHS` paths through a tile; `MODE` selects the output.
pub struct Vertical<'a, C, const PATHS: usize, const MODE: u8> {
    pub geometry: &'a Geometry,
    pub cost: C,
    pub p1: u8,
    /// P2 between neighbouring pixels.
    pub penalties: Steps,
    /// Slants of the expected surface between them, if paths follow one.
    pub slants: Option<Steps>,
    /// First row and number of rows of the band.
    pub band: (usize, usize),
    /// Whether the sweep goes up.
    pub upward: bool,
    /// Number of the tile within the band.
    pub tile: usize,
    /// Path vectors at the entering edge, [path][1 + x][depth].
    pub entry: *const u8,
    /// Path vectors at the leaving edge; null if they are not needed.
    pub exit: *mut u8,
    /// The slots, [path][slot][depth].
    pub path_states: *mut u8,
    /// Deltas of the downward paths, [row][x % ring][kept][depth]: the diagonal ones, in one byte if they
    /// fit, and the vertical one.
    pub ring: *mut u8,
    /// Deltas of the leftward paths, [row][x][depth].
    pub leftwards: *const u8,
    /// Newest vectors of the rightward paths, [row][depth].
    pub rightwards: *mut u8,
    pub winner: &'a mut WinnerTakesAll,
}

impl<C: FrameCost, const PATHS: usize, const MODE: u8> ShapedKernel
    for Vertical<'_, C, PATHS, MODE>
{
    #[inline(always)]
    unsafe fn run<V: Vector, const MAX: usize, const EXACT: bool>(mut self) {
        for i in 0..self.band.1 {
            let (first, end) = self.geometry.columns(self.tile, i);
            if first < end {
                // SAFETY: row and columns lie in the tile; the caller guarantees the memory.
                unsafe { self.row::<V, MAX, EXACT>(i, first, end) }
            }
        }
    }
}

impl<C: FrameCost, const PATHS: usize, const MODE: u8> Vertical<'_, C, PATHS, MODE> {
    /// Number of paths followed here.
    const FOLLOWED: usize = if MODE == FINISH || MODE == ONLY { PATHS + 1 } else { PATHS };

    /// Processes the columns `first..end` of the `i`-th row of the sweep.
    #[inline(always)]
    unsafe fn row<V: Vector, const MAX: usize, const EXACT: bool>(
        &mut self,
        i: usize,
        first: usize,
        end: usize,
    ) {
        let Geometry { width, chunks, depth, pairs_fit, band_rows, ring, kept, .. } =
            *self.geometry;
        let chunks = if EXACT { MAX } else { chunks };
        let (band_first, rows) = self.band;
        let r = if self.upward { rows - 1 - i } else { i }; // Row within the band.
        let y = band_first + r;
        let slots = self.geometry.path_state_slots() * depth;
        let edge = self.geometry.edge_stride();

        // SAFETY: the pointers below stay within their blocks: slots reach from -band_rows to
        // width + band_rows, edges from -1 to width, x lies in the row and c below `chunks`.
        unsafe {
            let zero = V::splat(0);
            let p1 = V::splat(self.p1);
            let costs = self.cost.row::<V>(y);

            // Addresses of column 0.
            let mut from = [std::ptr::null::<u8>(); PATHS];
            let mut to = [std::ptr::null_mut::<u8>(); PATHS];
            let mut penalties = [std::ptr::null::<u8>(); MOST];
            let mut slants = [std::ptr::null::<u8>(); MOST];
            let follows_surface = self.slants.is_some();
            // The bytes are those of downward steps.
            let sign = if self.upward { -1 } else { 1 };
            for p in 0..PATHS {
                let slot = band_rows as isize - STEPS[p] * i as isize;
                let path_state = self.path_states.add(p * slots).offset(slot * depth as isize);
                from[p] = if i == 0 {
                    self.entry.add(p * edge).offset((1 - STEPS[p]) * depth as isize)
                } else {
                    path_state
                };
                penalties[p] = self.penalties.along(y, STEPS[p], self.upward);
                if let Some(all) = self.slants {
                    slants[p] = all.along(y, STEPS[p], self.upward);
                }
                to[p] = if i + 1 == rows && !self.exit.is_null() {
                    self.exit.add(p * edge + depth)
                } else {
                    path_state
                };
            }
            // The rightward path: its vectors at the previous pixel.
            let rightwards = self.rightwards.add(r * depth);
            let mut before = [zero; MAX];
            if Self::FOLLOWED > PATHS {
                penalties[PATHS] = self.penalties.across(y);
                if let Some(all) = self.slants {
                    slants[PATHS] = all.across(y);
                }
                if first > 0 {
                    for (c, before) in before[..chunks].iter_mut().enumerate() {
                        *before = V::load(rightwards.add(c * V::N));
                    }
                }
                self.winner.begin_row(r);
            }
            let leftwards = self.leftwards.add(r * width * depth);
            let kept_row = self.ring.add(r * ring * kept * depth);
            let piece = self.winner.piece();

            // Extended vectors of a pixel.
            let mut extended = [[zero; MAX]; PATHS];
            for x in first..end {
                let mut least = [zero; MOST];
                let mut p2 = [zero; MOST];
                let mut below = [zero; MOST];
                let mut here = [zero; MOST];
                let mut source = [std::ptr::null::<u8>(); PATHS];
                for p in 0..PATHS {
                    let mut from = from[p].add(x * depth);
                    least[p] = V::least_of(from, chunks);
                    let slant = if follows_surface { sign * *slants[p].add(x) as i8 } else { 0 };
                    if slant != 0 {
                        for (c, vector) in extended[p][..chunks].iter_mut().enumerate() {
                            *vector = V::load(from.add(c * V::N));
                        }
                        extend(&mut extended[p][..chunks], slant);
                        from = extended[p].as_ptr().cast();
                    }
                    source[p] = from;
                    p2[p] = V::splat(*penalties[p].add(x));
                    below[p] = V::load(from.add((chunks - 1) * V::N)).shift_up();
                    here[p] = V::load(from);
                }
                if Self::FOLLOWED > PATHS {
                    let mut smallest = before[0];
                    for &vector in &before[1..chunks] {
                        smallest = smallest.min(vector);
                    }
                    least[PATHS] = smallest.least();
                    let slant = if follows_surface { *slants[PATHS].add(x) as i8 } else { 0 };
                    if slant != 0 {
                        extend(&mut before[..chunks], slant);
                    }
                    p2[PATHS] = V::splat(*penalties[PATHS].add(x));
                    below[PATHS] = before[chunks - 1].shift_up();
                    here[PATHS] = before[0];
                }
                let leftwards = leftwards.add(x * depth);
                let kept = kept_row.add((x & (ring - 1)) * kept * depth);

                let lowest = here;
                let pixel = costs.at(x, chunks);
                for c in 0..chunks {
                    let cost = pixel.load(c);
                    let mut e = [zero; MOST];
                    if Self::FOLLOWED > PATHS {
                        let p = PATHS;
                        let above =
                            if c + 1 < chunks { before[c + 1] } else { lowest[p].shift_down() };
                        e[p] = path_delta(below[p], here[p], above, least[p], p1, p2[p]);
                        before[c] = e[p].adds(cost);
                        below[p] = here[p];
                        here[p] = above;
                    }
                    for p in 0..PATHS {
                        let at = c * V::N + x * depth;
                        let above = if c + 1 < chunks {
                            V::load(source[p].add((c + 1) * V::N))
                        } else {
                            lowest[p].shift_down()
                        };
                        e[p] = path_delta(below[p], here[p], above, least[p], p1, p2[p]);
                        e[p].adds(cost).store(to[p].add(at));
                        below[p] = here[p];
                        here[p] = above;
                    }

                    let at = c * V::N;
                    let kept = kept.add(at);
                    if MODE == CHECKPOINT {
                        continue;
                    }
                    if MODE == KEEP {
                        match (PATHS, pairs_fit) {
                            (1, _) => e[0].store(kept),
                            (_, true) => {
                                e[1].adds(e[2]).store(kept);
                                e[0].store(kept.add(depth));
                            }
                            (_, false) => {
                                e[1].store(kept);
                                e[2].store(kept.add(depth));
                                e[0].store(kept.add(2 * depth));
                            }
                        }
                        continue;
                    }
                    let (left, right) = (V::load(leftwards.add(at)), e[PATHS]);
                    let sum = match (MODE, PATHS, pairs_fit) {
                        (ONLY, _, true) => {
                            let sum = V::pair_sum(left.adds(right), e[1].adds(e[2]), 1);
                            add::<V>(sum, V::pair_sum(e[0], cost, 5))
                        }
                        (ONLY, _, false) => {
                            let sum = V::pair_sum(left, right, 1);
                            let sum = add::<V>(sum, V::pair_sum(e[1], e[2], 1));
                            add::<V>(sum, V::pair_sum(e[0], cost, 5))
                        }
                        (_, 1, true) => {
                            let down = V::load(kept);
                            let sum = V::pair_sum(left.adds(right), down, 1);
                            add::<V>(sum, V::pair_sum(e[0], cost, 4))
                        }
                        (_, 1, false) => {
                            let sum = V::pair_sum(left, right, 1);
                            let sum = add::<V>(sum, V::pair_sum(V::load(kept), e[0], 1));
                            add::<V>(sum, V::pair_sum(zero, cost, 4))
                        }
                        (_, _, true) => {
                            let down = V::load(kept.add(depth));
                            let sum = V::pair_sum(V::load(kept), e[1].adds(e[2]), 1);
                            let sum = add::<V>(sum, V::pair_sum(left.adds(right), down, 1));
                            add::<V>(sum, V::pair_sum(e[0], cost, 8))
                        }
                        (_, _, false) => {
                            let sum = V::pair_sum(left, right, 1);
                            let diagonal = V::pair_sum(V::load(kept), V::load(kept.add(depth)), 1);
                            let sum = add::<V>(add::<V>(sum, diagonal), V::pair_sum(e[1], e[2], 1));
                            let down = V::load(kept.add(2 * depth));
                            let sum = add::<V>(sum, V::pair_sum(down, e[0], 1));
                            add::<V>(sum, V::pair_sum(zero, cost, 8))
                        }
                    };
                    piece.put::<V>(x - first, c, sum);
                }
            }
            if Self::FOLLOWED > PATHS {
                for (c, before) in before[..chunks].iter().enumerate() {
                    before.store(rightwards.add(c * V::N));
                }
                self.winner.select_disparities::<V, MAX, EXACT>(first, end - first);
            }
        }
    }
}

/// Sum of two pairs.
#[inline(always)]
fn add<V: Vector>(a: [V::Wide; 2], b: [V::Wide; 2]) -> [V::Wide; 2] {
    [V::add_wide(a[0], b[0]), V::add_wide(a[1], b[1])]
}
