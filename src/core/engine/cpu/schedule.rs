//! The schedule of the sweeps: bands of rows, and tiles within them.
//!
//! The threads share each stage and finish it before the next one (`team.rs`). Each thread takes the next
//! band when it has finished one. Along a sweep, a band follows the previous one at a distance of a tile or
//! two, based on its count of finished columns (a wavefront); all other data of a band belongs to its thread.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::buffers::Scratch;
use super::cost::FrameCost;
use super::frame::Frame;
use super::geometry::Geometry;
use super::leftwards::Leftwards;
use super::shape::Shape;
use super::steps::Steps;
use super::vertical::{CHECKPOINT, FINISH, KEEP, ONLY, Vertical};

/// Rows of leftward paths that are interleaved.
const ROWS_TOGETHER: usize = 4;
/// Extra tiles a band waits for after it had to sleep, so that it does not sleep again at once.
const TILES_AHEAD: usize = 4;

/// Index of the edge at the start of a band.
fn edge_number(geometry: &Geometry, band: usize) -> usize {
    // The first edge stays zero, because paths begin there. Without an upward sweep, only the edges that are
    // currently read and written are needed.
    if geometry.upward || band == 0 { band } else { 1 + band % 2 }
}

impl Frame<'_> {
    /// Follows the downward paths of a band, for the checkpoint at its lower edge.
    pub(super) fn follow_downward_paths<S: Shape, C: FrameCost>(
        &self,
        scratch: &mut Scratch,
        band: usize,
        cost: C,
    ) {
        match self.geometry.vertical {
            1 => self.write_checkpoints::<S, _, 1>(scratch, band, cost),
            _ => self.write_checkpoints::<S, _, 3>(scratch, band, cost),
        }
    }

    /// Sums the costs of a band along all paths, and selects its disparities.
    pub(super) fn aggregate_costs<S: Shape, C: FrameCost>(
        &self,
        scratch: &mut Scratch,
        band: usize,
        cost: C,
    ) {
        self.follow_leftward_paths::<S, _>(scratch, band, cost);
        scratch.winner.begin_band(self.geometry.band(band).1);
        match (self.geometry.vertical, self.geometry.upward) {
            (1, _) => self.sweep_down_and_up::<S, _, 1>(scratch, band, cost),
            (_, true) => self.sweep_down_and_up::<S, _, 3>(scratch, band, cost),
            _ => self.sweep_down::<S, _>(scratch, band, cost),
        }
    }

    /// P2 between neighbouring pixels, after the preparation.
    fn penalties(&self) -> Steps {
        Steps::of(self.geometry, self.shared.penalties.ptr())
    }

    /// Slants of the expected surface between neighbouring pixels, after the preparation.
    fn slants(&self) -> Option<Steps> {
        let slants = || Steps::of(self.geometry, self.shared.slants.ptr());
        self.geometry.follows_surface.then(slants)
    }

    fn follow_leftward_paths<S: Shape, C: FrameCost>(
        &self,
        scratch: &Scratch,
        band: usize,
        cost: C,
    ) {
        let (first, rows) = self.geometry.band(band);
        let row_bytes = self.geometry.width * self.geometry.depth;
        let mut row = 0;
        while row < rows {
            // SAFETY: the rows lie in the band, and its deltas are this thread's; the simd was found on this
            // machine.
            unsafe {
                let path_deltas = scratch.path_deltas.ptr().add(row * row_bytes);
                if row + ROWS_TOGETHER <= rows {
                    S::run(Leftwards::<_, ROWS_TOGETHER> {
                        geometry: self.geometry,
                        cost,
                        p1: self.params.p1,
                        penalties: self.penalties(),
                        slants: self.slants(),
                        windows: self.windows,
                        y: first + row,
                        path_deltas,
                    });
                    row += ROWS_TOGETHER;
                } else {
                    S::run(Leftwards::<_, 1> {
                        geometry: self.geometry,
                        cost,
                        p1: self.params.p1,
                        penalties: self.penalties(),
                        slants: self.slants(),
                        windows: self.windows,
                        y: first + row,
                        path_deltas,
                    });
                    row += 1;
                }
            }
        }
    }

    /// Follows the downward paths of a band, and stores their vectors at its lower edge only.
    fn write_checkpoints<S: Shape, C: FrameCost, const PATHS: usize>(
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
            self.follow_tile::<S, _, PATHS, CHECKPOINT>(scratch, band, false, tile, cost);
            self.report_columns(&self.shared.progress[0][band], tile, rows);
        }
    }

    /// Follows the downward paths of a band once more, then the upward ones, and selects the
    /// disparities.
    fn sweep_down_and_up<S: Shape, C: FrameCost, const PATHS: usize>(
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
            // An upward tile leans the other way and so overlaps two downward ones.
            while down < tiles.min(tile + 2) {
                self.follow_tile::<S, _, PATHS, KEEP>(scratch, band, false, down, cost);
                down += 1;
            }
            self.await_columns(self.shared.progress[1].get(band + 1), tile);
            self.follow_tile::<S, _, PATHS, FINISH>(scratch, band, true, tile, cost);
            self.report_columns(&self.shared.progress[1][band], tile, rows);
        }
    }

    /// Follows the downward paths of a band, and selects the disparities.
    fn sweep_down<S: Shape, C: FrameCost>(&self, scratch: &mut Scratch, band: usize, cost: C) {
        let (_, rows) = self.geometry.band(band);
        self.begin_path_states(scratch, 0);
        for tile in 0..self.geometry.tiles(rows) {
            let before = band.checked_sub(1).map(|before| &self.shared.progress[1][before]);
            self.await_columns(before, tile);
            self.follow_tile::<S, _, 3, ONLY>(scratch, band, false, tile, cost);
            self.report_columns(&self.shared.progress[1][band], tile, rows);
        }
    }

    /// Zeroes the slots of the diagonal paths that enter the band at the image's sides.
    fn begin_path_states(&self, scratch: &mut Scratch, sweep: usize) {
        let Geometry { width, depth, band_rows, vertical, .. } = *self.geometry;
        if vertical == 1 {
            return;
        }
        let stride = self.geometry.path_state_slots() * depth;
        // SAFETY: the slots are this thread's: left of column 0 for the rightward paths, and right of the
        // last column for the leftward ones.
        unsafe {
            let path_states = scratch.path_states[sweep].ptr();
            path_states.add(stride).write_bytes(0, band_rows * depth);
            let right = 2 * stride + (band_rows + width) * depth;
            path_states.add(right).write_bytes(0, band_rows * depth);
        }
    }

    /// Follows the paths of a vertical sweep through one tile.
    fn follow_tile<S: Shape, C: FrameCost, const PATHS: usize, const MODE: u8>(
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
        // Upward paths are stored at the edge from which the band's downward paths started a tile earlier and
        // which they no longer need.
        let (entry, exit) = match MODE {
            KEEP => (edge(band), nowhere),
            FINISH => (edge(band + 1), if band > 0 { edge(band) } else { nowhere }),
            _ => (edge(band), if band + 1 < geometry.bands { edge(band + 1) } else { nowhere }),
        };
        // SAFETY: the scratch is this thread's; `await_columns` ensured that the entering columns are
        // written, and no thread reads the leaving ones before `report_columns`; the simd was found on this
        // machine.
        unsafe {
            S::run(Vertical::<_, PATHS, MODE> {
                geometry,
                cost,
                p1: self.params.p1,
                penalties: self.penalties(),
                slants: self.slants(),
                windows: self.windows,
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

    /// Waits until the previous band has written the edge columns that a tile of this one reads.
    fn await_columns(&self, before: Option<&AtomicUsize>, tile: usize) {
        if let Some(before) = before {
            // The diagonal path to the left reads one column further.
            let at = |tile: usize| ((tile + 1) * self.geometry.tile + 1).min(self.geometry.width);
            self.watch.until(before, at(tile), at(tile + TILES_AHEAD));
        }
    }

    /// Reports the number of finished columns of the last row of a band.
    fn report_columns(&self, progress: &AtomicUsize, tile: usize, rows: usize) {
        let columns = self.geometry.columns(tile, rows - 1).1;
        progress.store(columns, Ordering::Release);
        self.watch.reached(progress, columns);
    }
}
