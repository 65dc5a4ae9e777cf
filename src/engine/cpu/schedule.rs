//! Who computes what when: the stages of a frame, and the bands and tiles within them.
//!
//! The threads share each stage, which is over before the next begins (`team.rs`). Each takes the next band when it is through
//! with one. Along the sweep, a band follows the one before at a distance of a tile or two, which each band's count of
//! finished columns tells (a wavefront); everything else in a band is its thread's own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::buffers::{Scratch, Shared};
use super::cost::Cost;
use super::features::{Destination, Features, PrepareRows};
use super::filter::{Filters, Pass};
use super::geometry::Geometry;
use super::laps::Laps;
use super::leftwards::Leftwards;
use super::memory::Block;
use super::penalties::{Penalties, PenaltyRows};
use super::simd::{Lanes, Simd};
use super::support::PixelSupport;
use super::team::Team;
use super::vertical::{CHECKPOINT, FINISH, KEEP, ONLY, Vertical};
use super::watch::Watch;
use super::zero_mean::{ZeroMeanRows, zero_mean_window};
use crate::frame::Image;
use crate::matching::Params;

/// Rows that the paths to the left walk along together.
const ROWS_TOGETHER: usize = 4;
/// Tiles that a band lets the one before come further than it needs, where it had to sleep for it.
const TILES_AHEAD: usize = 4;

/// Makes the cost of a band of rows (the first, and how many); the flag says that it was made before.
pub(super) type CostOfBand<'a, C> = dyn Fn(&mut Scratch, (usize, usize), bool) -> C + Sync + 'a;

/// The number of the edge where a band begins.
fn edge_number(geometry: &Geometry, band: usize) -> usize {
    // The first edge stays zero: there the paths begin. Without an upward sweep only the edge that
    // is read and the one that is written matter.
    if geometry.upward || band == 0 { band } else { 1 + band % 2 }
}

/// Everything that the threads need to match one pair.
pub struct Frame<'a> {
    /// How the picture is cut up.
    pub geometry: &'a Geometry,
    /// What is to be computed.
    pub params: &'a Params,
    /// What is prepared of the pictures.
    pub features: &'a Features,
    /// P2 by step of brightness.
    pub p2: &'a [u8; 256],
    /// Base picture, of the geometry's size.
    pub left: &'a Image,
    /// Match picture, of the same size.
    pub right: &'a Image,
    /// The picture that P2 follows, of the same size.
    pub guide: &'a Image,
    /// What supports the cost at every pixel, where something does.
    pub support: Option<&'a [PixelSupport]>,
    /// Noise threshold of the left picture, where a filter depends on it.
    pub threshold: u32,
    /// What has been learnt of the pair, where the cost is mutual information.
    pub learnt: Option<Learnt<'a>>,
    /// Memory of all threads, made for this geometry.
    pub shared: &'a Shared,
    /// Memory of each thread.
    pub scratches: &'a [Mutex<Scratch>],
    /// How threads wait for each other.
    pub watch: &'a Watch,
    /// The resulting values, one a pixel.
    pub output: Output,
    /// What is made of the map.
    pub filters: &'a Filters,
}

/// What a round of mutual information goes by.
#[derive(Clone, Copy)]
pub struct Learnt<'a> {
    /// Costs, [left level][right level].
    pub table: &'a [u8],
    /// Where the checked winners go besides, from which the next round learns; a value a pixel, of the finest
    /// level only.
    pub map: Option<*mut i32>,
    /// Whether the map is the pair's, and not one that only the next round learns from.
    pub last: bool,
}

// SAFETY: the threads write different rows of the map, which outlives the frame.
unsafe impl Sync for Learnt<'_> {}

/// Where the result goes; every thread writes rows of its own.
pub struct Output(pub *mut i16);

// SAFETY: the threads write different rows, and the buffer outlives the frame.
unsafe impl Sync for Output {}

impl Frame<'_> {
    /// Matches the pair.
    pub fn run(&self, simd: Simd, team: &mut Team, laps: &mut Laps) {
        team.rows(self.geometry.height, |thread, rows| {
            self.prepare(simd, &mut self.scratch(thread), (rows.start, rows.end));
        });
        laps.end("cost features");
        self.match_rows(simd, team, laps);
        let size = (self.geometry.width, self.geometry.height);
        let sure = self.filters.confidence().map(|confidence| confidence.means_ptr());
        // SAFETY: `hand_out` put the map where the filters expect it; the simd was found on this machine.
        unsafe {
            let mut pass = Pass { size, left: self.left, threshold: self.threshold, simd, team };
            self.filters.run(&mut pass, self.output.0, sure, laps);
        }
    }

    /// The memory of a thread.
    pub(super) fn scratch(&self, thread: usize) -> MutexGuard<'_, Scratch> {
        self.scratches[thread].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The paths and the winners, with the cost that `cost` makes for a band. The flag says that a sweep before has had
    /// that band already.
    pub(super) fn aggregate<V: Lanes, C: Cost, const MAX: usize, const EXACT: bool>(
        &self,
        team: &mut Team,
        laps: &mut Laps,
        cost: &CostOfBand<'_, C>,
    ) {
        let geometry = self.geometry;
        if geometry.upward {
            team.share(geometry.bands - 1, &|thread, bands| {
                let scratch = &mut *self.scratch(thread);
                for band in bands {
                    let cost = cost(scratch, geometry.band(band), false);
                    match geometry.vertical {
                        1 => self.checkpoints::<V, C, MAX, EXACT, 1>(scratch, band, cost),
                        _ => self.checkpoints::<V, C, MAX, EXACT, 3>(scratch, band, cost),
                    }
                }
            });
        }
        laps.end("aggregation, down");

        team.share(geometry.bands, &|thread, numbers| {
            let scratch = &mut *self.scratch(thread);
            for number in numbers {
                let band = if geometry.upward { geometry.bands - 1 - number } else { number };
                let known = geometry.upward && band + 1 < geometry.bands;
                let cost = cost(scratch, geometry.band(band), known);
                self.leftwards::<V, C, MAX, EXACT>(scratch, band, cost);
                scratch.winner.begin_band(geometry.band(band).1);
                match (geometry.vertical, geometry.upward) {
                    (1, _) => self.both_sweeps::<V, C, MAX, EXACT, 1>(scratch, band, cost),
                    (_, true) => self.both_sweeps::<V, C, MAX, EXACT, 3>(scratch, band, cost),
                    _ => self.one_sweep::<V, C, MAX, EXACT>(scratch, band, cost),
                }
                self.hand_out(scratch, geometry.band(band));
            }
        });
        laps.end("aggregation and winner");
    }

    /// What the cost compares, of rows from `rows.0` up to but not including `rows.1`.
    fn prepare(&self, simd: Simd, scratch: &mut Scratch, rows: (usize, usize)) {
        let left = Destination::Left(self.shared.left.ptr());
        let right = Destination::Right(self.shared.mirrored.ptr());
        let eyes = [(self.left, left), (self.right, right)];
        let from = if self.features.of_left() { 0 } else { 1 };
        for &(image, to) in &eyes[from..] {
            // SAFETY: the rows are this thread's until the stage is over; the simd was found on this
            // machine.
            unsafe {
                simd.vectorize(PrepareRows {
                    geometry: self.geometry,
                    features: self.features,
                    image,
                    rows,
                    scratch: &mut scratch.features,
                    to,
                });
            }
        }
        if self.geometry.banded {
            // SAFETY: as above.
            unsafe {
                simd.vectorize(PenaltyRows {
                    geometry: self.geometry,
                    guide: self.guide,
                    p2: self.p2,
                    rows,
                    scratch: &mut scratch.steps,
                    to: self.shared.penalties.ptr(),
                });
            }
        }
        if let Some(window) = zero_mean_window(self.params) {
            // SAFETY: as above.
            unsafe {
                simd.vectorize(ZeroMeanRows {
                    geometry: self.geometry,
                    window,
                    eyes: [self.left, self.right],
                    rows,
                    to: self.shared.zero_mean.each_ref().map(Block::ptr),
                    scratch: &mut scratch.zero_mean,
                });
            }
        }
    }

    /// P2 between neighbouring pixels, after the preparation.
    fn penalties(&self) -> Penalties {
        Penalties::of(self.geometry, self.shared.penalties.ptr())
    }

    /// The paths to the left of a band.
    fn leftwards<V: Lanes, C: Cost, const MAX: usize, const EXACT: bool>(
        &self,
        scratch: &Scratch,
        band: usize,
        cost: C,
    ) {
        let (first, rows) = self.geometry.band(band);
        let row_bytes = self.geometry.width * self.geometry.depth;
        let mut row = 0;
        while row < rows {
            // SAFETY: the rows lie in the band, whose path_deltas are this thread's; the simd was
            // found on this machine.
            unsafe {
                let path_deltas = scratch.path_deltas.ptr().add(row * row_bytes);
                if row + ROWS_TOGETHER <= rows {
                    V::vectorize(Leftwards::<_, MAX, EXACT, ROWS_TOGETHER> {
                        geometry: self.geometry,
                        cost,
                        p1: self.params.p1,
                        penalties: self.penalties(),
                        y: first + row,
                        path_deltas,
                    });
                    row += ROWS_TOGETHER;
                } else {
                    V::vectorize(Leftwards::<_, MAX, EXACT, 1> {
                        geometry: self.geometry,
                        cost,
                        p1: self.params.p1,
                        penalties: self.penalties(),
                        y: first + row,
                        path_deltas,
                    });
                    row += 1;
                }
            }
        }
    }

    /// The downward paths of a band, for the sake of the edge below.
    fn checkpoints<V: Lanes, C: Cost, const MAX: usize, const EXACT: bool, const PATHS: usize>(
        &self,
        scratch: &mut Scratch,
        band: usize,
        cost: C,
    ) {
        let (_, rows) = self.geometry.band(band);
        self.begin_path_states(scratch, 0);
        for tile in 0..self.geometry.tiles(rows) {
            let before = band.checked_sub(1).map(|before| &self.shared.progress[0][before]);
            self.await_columns(before, tile);
            self.tile::<V, C, MAX, EXACT, PATHS, CHECKPOINT>(scratch, band, false, tile, cost);
            self.report_columns(&self.shared.progress[0][band], tile, rows);
        }
    }

    /// The downward paths of a band anew, and the upward ones, and the winners.
    fn both_sweeps<V: Lanes, C: Cost, const MAX: usize, const EXACT: bool, const PATHS: usize>(
        &self,
        scratch: &mut Scratch,
        band: usize,
        cost: C,
    ) {
        let (_, rows) = self.geometry.band(band);
        let tiles = self.geometry.tiles(rows);
        self.begin_path_states(scratch, 0);
        self.begin_path_states(scratch, 1);
        let mut down = 0;
        for tile in 0..tiles {
            // A tile that goes up leans the other way and so covers parts of two that go down.
            while down < tiles.min(tile + 2) {
                self.tile::<V, C, MAX, EXACT, PATHS, KEEP>(scratch, band, false, down, cost);
                down += 1;
            }
            self.await_columns(self.shared.progress[1].get(band + 1), tile);
            self.tile::<V, C, MAX, EXACT, PATHS, FINISH>(scratch, band, true, tile, cost);
            self.report_columns(&self.shared.progress[1][band], tile, rows);
        }
    }

    /// The downward paths of a band, and the winners.
    fn one_sweep<V: Lanes, C: Cost, const MAX: usize, const EXACT: bool>(
        &self,
        scratch: &mut Scratch,
        band: usize,
        cost: C,
    ) {
        let (_, rows) = self.geometry.band(band);
        self.begin_path_states(scratch, 0);
        for tile in 0..self.geometry.tiles(rows) {
            let before = band.checked_sub(1).map(|before| &self.shared.progress[1][before]);
            self.await_columns(before, tile);
            self.tile::<V, C, MAX, EXACT, 3, ONLY>(scratch, band, false, tile, cost);
            self.report_columns(&self.shared.progress[1][band], tile, rows);
        }
    }

    /// Zeroes the slots of the diagonal paths that begin at the picture's sides within the band.
    fn begin_path_states(&self, scratch: &mut Scratch, sweep: usize) {
        let Geometry { width, depth, band_rows, vertical, .. } = *self.geometry;
        if vertical == 1 {
            return;
        }
        let stride = self.geometry.path_state_slots() * depth;
        // SAFETY: the slots are this thread's: those left of column 0 of the paths to the right,
        // and those right of the last column of the paths to the left.
        unsafe {
            let path_states = scratch.path_states[sweep].ptr();
            path_states.add(stride).write_bytes(0, band_rows * depth);
            let right = 2 * stride + (band_rows + width) * depth;
            path_states.add(right).write_bytes(0, band_rows * depth);
        }
    }

    /// One tile of a vertical sweep.
    fn tile<
        V: Lanes,
        C: Cost,
        const MAX: usize,
        const EXACT: bool,
        const PATHS: usize,
        const MODE: u8,
    >(
        &self,
        scratch: &mut Scratch,
        band: usize,
        upward: bool,
        tile: usize,
        cost: C,
    ) {
        let geometry = self.geometry;
        let bytes = PATHS * geometry.edge_stride();
        let edge = |band: usize| {
            // SAFETY: the number of edges was chosen for this.
            unsafe { self.shared.edges.ptr().add(edge_number(geometry, band) * bytes) }
        };
        let nowhere = std::ptr::null_mut();
        // Upward paths leave at the edge where the band's downward paths entered a tile earlier,
        // who need it no more.
        let (entry, exit) = match MODE {
            KEEP => (edge(band), nowhere),
            FINISH => (edge(band + 1), if band > 0 { edge(band) } else { nowhere }),
            _ => (edge(band), if band + 1 < geometry.bands { edge(band + 1) } else { nowhere }),
        };
        // SAFETY: the scratch is this thread's; `await_columns` made sure that the entering columns
        // are written, and nobody reads the leaving ones before `report_columns`; the simd was
        // found on this machine.
        unsafe {
            V::vectorize(Vertical::<_, MAX, EXACT, PATHS, MODE> {
                geometry,
                cost,
                p1: self.params.p1,
                penalties: self.penalties(),
                band: geometry.band(band),
                upward,
                tile,
                entry,
                exit,
                path_states: scratch.path_states[usize::from(upward)].ptr(),
                ring: scratch.ring.ptr(),
                leftwards: scratch.path_deltas.ptr(),
                rightwards: scratch.rightwards.ptr(),
                winner: &mut scratch.winner,
            });
        }
    }

    /// Waits until the band before has written what a tile of this one reads at the edge.
    fn await_columns(&self, before: Option<&AtomicUsize>, tile: usize) {
        if let Some(before) = before {
            // The path to the left looks one column further.
            let at = |tile: usize| ((tile + 1) * self.geometry.tile + 1).min(self.geometry.width);
            self.watch.until(before, at(tile), at(tile + TILES_AHEAD));
        }
    }

    /// Says how far the last row of a band has come.
    fn report_columns(&self, progress: &AtomicUsize, tile: usize, rows: usize) {
        let columns = self.geometry.columns(tile, rows - 1).1;
        progress.store(columns, Ordering::Release);
        self.watch.reached(progress, columns);
    }

    /// The values of a band (its first row, and the number of its rows), checked against the right view.
    pub(super) fn hand_out(&self, scratch: &mut Scratch, (first, rows): (usize, usize)) {
        let width = self.geometry.width;
        let to = self.filters.input(0, self.output.0);
        for row in 0..rows {
            let seen =
                [self.left, self.right].map(|eye| eye.valid_mask().map(|m| m.row(first + row)));
            let (values, peaks) = scratch.winner.finish_row(row, self.params.left_right, seen);
            // SAFETY: the band's rows of the result are this thread's.
            unsafe {
                let to = to.add((first + row) * width);
                std::ptr::copy_nonoverlapping(values.as_ptr(), to, width);
                if let Some(map) = self.learnt.and_then(|learnt| learnt.map) {
                    let map = map.add((first + row) * width);
                    let map = std::slice::from_raw_parts_mut(map, width);
                    map.iter_mut().zip(values).for_each(|(to, &value)| *to = value.into());
                }
                if let (Some(peaks), Some(filter)) = (peaks, self.filters.confidence()) {
                    let eyes = [self.left, self.right];
                    filter.put_row(eyes, first + row, values, peaks);
                }
            }
        }
    }
}
