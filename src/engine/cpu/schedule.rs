//! Who computes what when: the stages of a frame, and the bands and tiles within them.
//!
//! Bands go to the threads in turn. Along the sweep, a band follows the one before at a distance of
//! a tile or two, which each band's count of finished columns tells (a wavefront); everything else
//! in a band is its thread's own. A barrier parts the stages.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::buffers::{Scratch, Shared};
use super::cost::Cost;
use super::features::{Destination, Features, PrepareRows};
use super::geometry::Geometry;
use super::horizontal::Horizontal;
use super::median::MedianRows;
use super::simd::Lanes;
use super::speckle::Filter;
use super::team::Watch;
use super::vertical::{ACCUMULATE, CHECKPOINT, FINISH, ONLY, Vertical};
use crate::frame::Image;
use crate::matching::{Median, Params};

/// Rows that the horizontal paths walk along together.
const ROWS_TOGETHER: usize = 4;
/// Stages of a frame, as [`crate::engine::Engine::stage_times`] names them.
pub const STAGES: [&str; 5] = ["prepare", "checkpoints", "bands", "median", "speckles"];

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
    /// Memory of all threads, made for this geometry.
    pub shared: &'a Shared,
    /// Memory of each thread.
    pub scratches: &'a [Mutex<Scratch>],
    /// How threads wait for each other.
    pub watch: &'a Watch,
    /// The resulting values, one a pixel.
    pub output: Output,
    /// When the stages began, and when the last one ended; thread 0 writes it.
    pub times: &'a Mutex<[Instant; STAGES.len() + 1]>,
}

/// Where the result goes; every thread writes rows of its own.
pub struct Output(pub *mut i16);

// SAFETY: the threads write different rows, and the buffer outlives the frame.
unsafe impl Sync for Output {}

impl Frame<'_> {
    /// The stages, with the cost that `cost` makes for a band.
    pub(super) fn stages<V: Lanes, C: Cost, const MAX: usize, const EXACT: bool>(
        &self,
        thread: usize,
        scratch: &mut Scratch,
        cost: &mut dyn FnMut(&mut Scratch, (usize, usize)) -> C,
    ) {
        let threads = self.scratches.len();
        let geometry = self.geometry;
        let barrier = |round: usize| {
            self.wait(round);
            self.mark(thread, round);
        };

        self.mark(thread, 0);
        self.prepare::<V>(scratch, thread);
        barrier(1);

        if geometry.upward {
            for band in (thread..geometry.bands - 1).step_by(threads) {
                let cost = cost(scratch, geometry.band(band));
                match geometry.vertical {
                    1 => self.checkpoints::<V, C, MAX, EXACT, 1>(scratch, band, cost),
                    _ => self.checkpoints::<V, C, MAX, EXACT, 3>(scratch, band, cost),
                }
            }
        }
        barrier(2);

        for number in (thread..geometry.bands).step_by(threads) {
            let band = if geometry.upward { geometry.bands - 1 - number } else { number };
            let cost = cost(scratch, geometry.band(band));
            self.horizontal::<V, C, MAX, EXACT>(scratch, band, cost);
            scratch.selection.begin_band(geometry.band(band).1);
            match (geometry.vertical, geometry.upward) {
                (1, _) => self.both_sweeps::<V, C, MAX, EXACT, 1>(scratch, band, cost),
                (_, true) => self.both_sweeps::<V, C, MAX, EXACT, 3>(scratch, band, cost),
                _ => self.one_sweep::<V, C, MAX, EXACT>(scratch, band, cost),
            }
            self.hand_out(scratch, band);
        }
        barrier(3);

        self.median::<V>(scratch, thread);
        barrier(4);

        self.speckles(scratch, thread);
    }

    /// This thread's share of what the cost compares.
    fn prepare<V: Lanes>(&self, scratch: &mut Scratch, thread: usize) {
        let (height, threads) = (self.geometry.height, self.scratches.len());
        let rows = (height * thread / threads, height * (thread + 1) / threads);
        let left = Destination::Left(self.shared.left.ptr());
        let right = Destination::Right(self.shared.mirrored.ptr());
        let eyes = [(self.left, left), (self.right, right)];
        let from = if self.features.of_left() { 0 } else { 1 };
        for &(image, to) in &eyes[from..] {
            // SAFETY: the rows are this thread's until the barrier; the simd was found on this
            // machine.
            unsafe {
                V::vectorize(PrepareRows {
                    geometry: self.geometry,
                    features: self.features,
                    image,
                    rows,
                    scratch: &mut scratch.features,
                    to,
                });
            }
        }
    }

    /// This thread's share of the removal of speckles.
    fn speckles(&self, scratch: &mut Scratch, thread: usize) {
        let speckle = (self.params.speckle, &self.shared.forest, &mut scratch.labels);
        if let (Some(speckle), Some(forest), Some(labels)) = speckle {
            let threads = self.scratches.len();
            let filter =
                Filter { width: self.geometry.width, speckle, forest, values: self.output.0 };
            let border = |thread: usize| self.geometry.height * thread / threads;
            let rows = (border(thread), border(thread + 1));
            // SAFETY: the map was finished before the barrier; between the barriers every thread has
            // rows of its own, or the first thread all of them.
            unsafe {
                filter.find(rows, labels);
                self.wait(STAGES.len());
                if thread == 0 {
                    for y in (1..threads).map(border).filter(|&y| y > 0) {
                        filter.join(y, labels);
                    }
                }
                self.wait(STAGES.len() + 1);
                filter.remove(rows);
                self.wait(STAGES.len() + 2);
            }
        }
        self.mark(thread, STAGES.len());
    }

    /// Waits for all threads; `round` counts the barriers of the frame from 1.
    fn wait(&self, round: usize) {
        self.shared.barrier.wait(self.watch, self.scratches.len(), round);
    }

    /// Notes when a stage begins, and the one before ends.
    fn mark(&self, thread: usize, stage: usize) {
        if thread == 0 {
            self.times.lock().unwrap_or_else(|e| e.into_inner())[stage] = Instant::now();
        }
    }

    /// The horizontal paths of a band.
    fn horizontal<V: Lanes, C: Cost, const MAX: usize, const EXACT: bool>(
        &self,
        scratch: &Scratch,
        band: usize,
        cost: C,
    ) {
        let (first, rows) = self.geometry.band(band);
        let row_bytes = self.geometry.width * self.geometry.planes * self.geometry.depth;
        let mut row = 0;
        while row < rows {
            // SAFETY: the rows lie in the band, whose excesses are this thread's; the simd was
            // found on this machine.
            unsafe {
                let excesses = scratch.excesses.ptr().add(row * row_bytes);
                if row + ROWS_TOGETHER <= rows {
                    V::vectorize(Horizontal::<_, MAX, EXACT, ROWS_TOGETHER> {
                        geometry: self.geometry,
                        cost,
                        left: self.left,
                        p1: self.params.p1,
                        p2: self.p2,
                        y: first + row,
                        excesses,
                    });
                    row += ROWS_TOGETHER;
                } else {
                    V::vectorize(Horizontal::<_, MAX, EXACT, 1> {
                        geometry: self.geometry,
                        cost,
                        left: self.left,
                        p1: self.params.p1,
                        p2: self.p2,
                        y: first + row,
                        excesses,
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
        self.begin_chains(scratch, 0);
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
        self.begin_chains(scratch, 0);
        self.begin_chains(scratch, 1);
        let mut down = 0;
        for tile in 0..tiles {
            // A tile that goes up leans the other way and so covers parts of two that go down.
            while down < tiles.min(tile + 2) {
                self.tile::<V, C, MAX, EXACT, PATHS, ACCUMULATE>(scratch, band, false, down, cost);
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
        self.begin_chains(scratch, 0);
        for tile in 0..self.geometry.tiles(rows) {
            let before = band.checked_sub(1).map(|before| &self.shared.progress[1][before]);
            self.await_columns(before, tile);
            self.tile::<V, C, MAX, EXACT, 3, ONLY>(scratch, band, false, tile, cost);
            self.report_columns(&self.shared.progress[1][band], tile, rows);
        }
    }

    /// Zeroes the slots of the diagonal paths that begin at the picture's sides within the band.
    fn begin_chains(&self, scratch: &mut Scratch, sweep: usize) {
        let Geometry { width, depth, band_rows, vertical, .. } = *self.geometry;
        if vertical == 1 {
            return;
        }
        let stride = self.geometry.chain_slots() * depth;
        // SAFETY: the slots are this thread's: those left of column 0 of the paths to the right,
        // and those right of the last column of the paths to the left.
        unsafe {
            let chains = scratch.chains[sweep].ptr();
            chains.add(stride).write_bytes(0, band_rows * depth);
            let right = 2 * stride + (band_rows + width) * depth;
            chains.add(right).write_bytes(0, band_rows * depth);
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
            ACCUMULATE => (edge(band), nowhere),
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
                left: self.left,
                p1: self.params.p1,
                p2: self.p2,
                band: geometry.band(band),
                upward,
                tile,
                entry,
                exit,
                chains: scratch.chains[usize::from(upward)].ptr(),
                ring: scratch.ring.ptr(),
                horizontal: scratch.excesses.ptr(),
                selection: &mut scratch.selection,
            });
        }
    }

    /// Waits until the band before has written what a tile of this one reads at the edge.
    fn await_columns(&self, before: Option<&AtomicUsize>, tile: usize) {
        if let Some(before) = before {
            // The path to the left looks one column further.
            let needed = ((tile + 1) * self.geometry.tile + 1).min(self.geometry.width);
            self.watch.until(|| before.load(Ordering::Acquire) >= needed);
        }
    }

    /// Says how far the last row of a band has come.
    fn report_columns(&self, progress: &AtomicUsize, tile: usize, rows: usize) {
        progress.store(self.geometry.columns(tile, rows - 1).1, Ordering::Release);
    }

    /// The values of a band, checked against the right view.
    fn hand_out(&self, scratch: &mut Scratch, band: usize) {
        let (first, rows) = self.geometry.band(band);
        let width = self.geometry.width;
        let to = match self.params.median {
            Median::Off => self.output.0,
            _ => self.shared.unfiltered.ptr(),
        };
        for row in 0..rows {
            let seen =
                [self.left, self.right].map(|eye| eye.valid_mask().map(|m| m.row(first + row)));
            let values = scratch.selection.finish_row(row, self.params.left_right, seen);
            // SAFETY: the band's rows of the result are this thread's.
            unsafe {
                let to = to.add((first + row) * width);
                std::ptr::copy_nonoverlapping(values.as_ptr(), to, width);
            }
        }
    }

    /// This thread's share of the median.
    fn median<V: Lanes>(&self, scratch: &mut Scratch, thread: usize) {
        let Geometry { width, height, .. } = *self.geometry;
        let threads = self.scratches.len();
        let rows = (height * thread / threads, height * (thread + 1) / threads);
        let size = (width, height);
        let scratch = &mut scratch.median_rows[..];
        // SAFETY: the values were finished before the barrier; the rows of the result are this
        // thread's; the simd was found on this machine.
        unsafe {
            let shared =
                || std::slice::from_raw_parts(self.shared.unfiltered.ptr(), width * height);
            let to = std::slice::from_raw_parts_mut(
                self.output.0.add(rows.0 * width),
                (rows.1 - rows.0) * width,
            );
            match self.params.median {
                Median::Off => {}
                Median::Three => {
                    V::vectorize(MedianRows::<3, 9> { size, rows, from: shared(), to, scratch });
                }
                Median::Five => {
                    V::vectorize(MedianRows::<5, 25> { size, rows, from: shared(), to, scratch });
                }
            }
        }
    }
}
