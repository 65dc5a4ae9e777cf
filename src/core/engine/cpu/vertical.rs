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
use super::path::{extend, least, path_delta};
use super::shape::ShapedKernel;
use super::simd::Vector;
use super::steps::Steps;
use super::windows::{View, enter_tile, load_entering};
use super::winner::WinnerTakesAll;
use crate::matching::windows::{BLOCKS, TILE};

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
    /// The candidates of each pixel, if not the whole range.
    pub windows: Option<View<'a>>,
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

impl<'a, C: FrameCost, const PATHS: usize, const MODE: u8> Vertical<'a, C, PATHS, MODE> {
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
        let Geometry { width, chunks, depth, ring, kept, .. } = *self.geometry;
        let chunks = if EXACT { MAX } else { chunks };
        let (band_first, rows) = self.band;
        let r = if self.upward { rows - 1 - i } else { i }; // Row within the band.

        // SAFETY: the pointers below stay within their blocks: x lies in the row and c below `chunks`.
        unsafe {
            let costs = self.cost.row::<V>(band_first + r);
            let row = self.addresses(i, band_first + r);
            // The rightward path: its vectors at the previous pixel.
            let rightwards = self.rightwards.add(r * depth);
            let mut before = [V::splat(0); MAX];
            if Self::FOLLOWED > PATHS {
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

            let mut extended = [[V::splat(0); MAX]; PATHS];
            let mut gaps = [V::splat(0); 2];
            for x in first..end {
                if C::WINDOWED
                    && let Some(windows) = self.windows
                    && (x.is_multiple_of(TILE) || x == first)
                {
                    gaps = windows.gaps(&windows.row(band_first + r)[x / TILE]);
                }
                let mut states = self.enter(&row, x, chunks, gaps, &mut before, &mut extended);
                let lowest = states.here;
                let leftwards = leftwards.add(x * depth);
                let kept = kept_row.add((x & (ring - 1)) * kept * depth);
                let pixel = costs.at(x, chunks);
                for c in 0..chunks {
                    let (at, cost) = (c * V::N, pixel.load(c));
                    let mut e = [V::splat(0); MOST];
                    if Self::FOLLOWED > PATHS {
                        let last = lowest[PATHS].shift_down().or(gaps[1]);
                        let above = if c + 1 < chunks { before[c + 1] } else { last };
                        e[PATHS] = states.delta(PATHS, above);
                        before[c] = e[PATHS].adds(cost);
                    }
                    for p in 0..PATHS {
                        let above = if c + 1 < chunks {
                            V::load(states.source[p].add(at + V::N))
                        } else {
                            lowest[p].shift_down().or(gaps[1])
                        };
                        e[p] = states.delta(p, above);
                        e[p].adds(cost).store(row.to[p].add(at + x * depth));
                    }
                    match MODE {
                        CHECKPOINT => {}
                        KEEP => self.keep(&e, kept.add(at)),
                        _ => {
                            let left = V::load(leftwards.add(at));
                            piece.put::<V>(x - first, c, self.sum(&e, left, cost, kept.add(at)));
                        }
                    }
                }
            }
            if Self::FOLLOWED > PATHS {
                for (c, before) in before[..chunks].iter().enumerate() {
                    before.store(rightwards.add(c * V::N));
                }
                let windows = self.windows.filter(|_| C::WINDOWED);
                let tiles = windows.map(|windows| (windows.row(band_first + r), windows.stripes));
                self.winner.select_disparities::<V, MAX, EXACT>(first, end - first, tiles);
            }
        }
    }

    /// Returns the addresses of the `i`-th row of the sweep, which is row `y` of the image.
    #[inline(always)]
    unsafe fn addresses(&self, i: usize, y: usize) -> Addresses<PATHS> {
        let Geometry { depth, band_rows, .. } = *self.geometry;
        let slots = self.geometry.path_state_slots() * depth;
        let edge = self.geometry.edge_stride();
        let mut row = Addresses {
            y,
            from: [std::ptr::null(); PATHS],
            to: [std::ptr::null_mut(); PATHS],
            penalties: [std::ptr::null(); MOST],
            slants: [std::ptr::null(); MOST],
        };
        // SAFETY: slots reach from -band_rows to width + band_rows, edges from -1 to width.
        unsafe {
            for (p, &step) in STEPS[..PATHS].iter().enumerate() {
                let slot = band_rows as isize - step * i as isize;
                let path_state = self.path_states.add(p * slots).offset(slot * depth as isize);
                row.from[p] = if i == 0 {
                    self.entry.add(p * edge).offset((1 - step) * depth as isize)
                } else {
                    path_state
                };
                row.penalties[p] = self.penalties.along(y, step, self.upward);
                if let Some(all) = self.slants {
                    row.slants[p] = all.along(y, step, self.upward);
                }
                row.to[p] = if i + 1 == self.band.1 && !self.exit.is_null() {
                    self.exit.add(p * edge + depth)
                } else {
                    path_state
                };
            }
            if Self::FOLLOWED > PATHS {
                row.penalties[PATHS] = self.penalties.across(y);
                if let Some(all) = self.slants {
                    row.slants[PATHS] = all.across(y);
                }
            }
        }
        row
    }

    /// Returns the paths before the first candidates of column x; `before` are the rightward path's vectors.
    #[inline(always)]
    unsafe fn enter<V: Vector, const MAX: usize>(
        &self,
        row: &Addresses<PATHS>,
        x: usize,
        chunks: usize,
        gaps: [V; 2],
        before: &mut [V; MAX],
        extended: &mut [[V; MAX]; PATHS],
    ) -> States<V, PATHS> {
        let depth = self.geometry.depth;
        // The bytes are those of downward steps.
        let sign: i8 = if self.upward { -1 } else { 1 };
        // SAFETY: x lies in the row, and vectors have `chunks` parts.
        unsafe {
            let mut states = States::new(self.p1);
            for (p, extended) in extended.iter_mut().enumerate() {
                let mut from = row.from[p].add(x * depth);
                let entry = self.entry((x, row.y), (STEPS[p], sign.into()));
                if let Some(blocks) = entry {
                    for (c, vector) in extended[..chunks].iter_mut().enumerate() {
                        *vector = load_entering(from.add(c * V::N), blocks);
                    }
                    from = extended.as_ptr().cast();
                }
                states.least[p] = V::least_of(from, chunks);
                let slant =
                    if self.slants.is_some() { sign * *row.slants[p].add(x) as i8 } else { 0 };
                if slant != 0 {
                    if entry.is_none() {
                        for (c, vector) in extended[..chunks].iter_mut().enumerate() {
                            *vector = V::load(from.add(c * V::N));
                        }
                    }
                    extend(&mut extended[..chunks], slant, gaps);
                    from = extended.as_ptr().cast();
                }
                states.source[p] = from;
                states.p2[p] = V::splat(*row.penalties[p].add(x));
                states.below[p] = V::load(from.add((chunks - 1) * V::N)).shift_up().or(gaps[0]);
                states.here[p] = V::load(from);
            }
            if Self::FOLLOWED > PATHS {
                if let Some(blocks) = self.entry((x, row.y), (1, 0)) {
                    enter_tile(before, chunks, blocks);
                }
                states.least[PATHS] = least(&before[..chunks]);
                let slant = if self.slants.is_some() { *row.slants[PATHS].add(x) as i8 } else { 0 };
                if slant != 0 {
                    extend(&mut before[..chunks], slant, gaps);
                }
                states.p2[PATHS] = V::splat(*row.penalties[PATHS].add(x));
                states.below[PATHS] = before[chunks - 1].shift_up().or(gaps[0]);
                states.here[PATHS] = before[0];
            }
            states
        }
    }

    /// The places of a pixel's blocks at the pixel this step before, if that is in another tile ([`View::entry`]).
    #[inline(always)]
    fn entry(&self, (x, y): (usize, usize), step: (isize, isize)) -> Option<&'a [u8; BLOCKS]> {
        if !C::WINDOWED {
            return None;
        }
        self.windows?.entry((x, y), (x as isize - step.0, y as isize - step.1))
    }

    /// Keeps the deltas of a vector of candidates in the ring.
    #[inline(always)]
    unsafe fn keep<V: Vector>(&self, e: &[V; MOST], kept: *mut u8) {
        let depth = self.geometry.depth;
        // SAFETY: the ring holds `Geometry::kept` vectors for each candidate.
        unsafe {
            match (PATHS, self.geometry.pairs_fit) {
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
        }
    }

    /// Returns the sums of all paths for a vector of candidates: each path has its delta and the cost.
    #[inline(always)]
    unsafe fn sum<V: Vector>(
        &self,
        e: &[V; MOST],
        left: V,
        cost: V,
        kept: *const u8,
    ) -> [V::Wide; 2] {
        let (right, depth) = (e[PATHS], self.geometry.depth);
        // SAFETY: the ring holds `Geometry::kept` vectors for each candidate.
        unsafe {
            match (MODE, PATHS, self.geometry.pairs_fit) {
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
                    add::<V>(sum, V::pair_sum(V::splat(0), cost, 4))
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
                    add::<V>(sum, V::pair_sum(V::splat(0), cost, 8))
                }
            }
        }
    }
}

/// Addresses of column 0 in a row of the sweep, for each path.
struct Addresses<const PATHS: usize> {
    /// Its number in the image.
    y: usize,
    /// Vectors of the previous row.
    from: [*const u8; PATHS],
    /// Place of this row's vectors.
    to: [*mut u8; PATHS],
    penalties: [*const u8; MOST],
    /// Null if paths follow no surface.
    slants: [*const u8; MOST],
}

/// Paths at a pixel, on their way through its candidates.
struct States<V, const PATHS: usize> {
    p1: V,
    /// Smallest value of the previous pixel, and P2.
    least: [V; MOST],
    p2: [V; MOST],
    /// Values of the previous pixel at the vectors of candidates before the next one, and at the next one.
    below: [V; MOST],
    here: [V; MOST],
    /// Vectors of the previous pixel.
    source: [*const u8; PATHS],
}

impl<V: Vector, const PATHS: usize> States<V, PATHS> {
    /// # Safety
    /// As [`Vector::splat`].
    #[inline(always)]
    unsafe fn new(p1: u8) -> Self {
        // SAFETY: the caller's promise.
        let (p1, nothing) = unsafe { (V::splat(p1), [V::splat(0); MOST]) };
        let source = [std::ptr::null(); PATHS];
        Self { p1, least: nothing, p2: nothing, below: nothing, here: nothing, source }
    }

    /// Returns the deltas of path `p` for the next vector of candidates; `above` is the one after it.
    #[inline(always)]
    fn delta(&mut self, p: usize, above: V) -> V {
        let (below, here) = (self.below[p], self.here[p]);
        (self.below[p], self.here[p]) = (here, above);
        path_delta(below, here, above, self.least[p], self.p1, self.p2[p])
    }
}

/// Sum of two pairs.
#[inline(always)]
fn add<V: Vector>(a: [V::Wide; 2], b: [V::Wide; 2]) -> [V::Wide; 2] {
    [V::add_wide(a[0], b[0]), V::add_wide(a[1], b[1])]
}
