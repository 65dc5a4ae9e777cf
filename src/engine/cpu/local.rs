//! The stages that are not bands of paths: winners straight from window sums, and paths over the whole picture.

use super::band_costs::FillBand;
use super::buffers::{Scratch, places};
use super::cost::{AdCost, Cost};
use super::dispatch::WriteRows;
use super::geometry::Geometry;
use super::kept_sums::{Direction, PickRow};
use super::laps::Laps;
use super::memory::Plane;
use super::schedule::{CostOfBand, Frame};
use super::simd::Lanes;
use super::team::Team;
use super::window_sums::{Number, Parts, PixelCosts, Sink, Squares, SumRow, Total, ZeroMean};
use crate::matching::block::Scale;
use crate::matching::{BlockMeasure, Cost as Matching};

/// Rows that a thread does at a time. Each such piece begins with the rows of a window above it.
const PIECE_ROWS: usize = 64;

/// Writes the sums of a row, [x][depth]; the flag says that it is the first of a piece.
type SumsOfRow<'a> = dyn Fn(&mut Scratch, usize, bool, *mut i16) + Sync + 'a;

impl Frame<'_> {
    /// The stages without paths, with the sums of a row that `sums` writes.
    pub(super) fn local_stages<V: Lanes, const MAX: usize, const EXACT: bool>(
        &self,
        team: &mut Team,
        laps: &mut Laps,
        sums: &SumsOfRow<'_>,
    ) {
        let height = self.geometry.height;
        team.share(height.div_ceil(PIECE_ROWS), &|thread, pieces| {
            let scratch = &mut *self.scratch(thread);
            for first in pieces.map(|piece| piece * PIECE_ROWS) {
                for y in first..height.min(first + PIECE_ROWS) {
                    let row = scratch.row_sums.ptr();
                    sums(scratch, y, y == first, row);
                    self.pick::<V, MAX, EXACT>(scratch, y, row, false);
                }
            }
        });
        laps.end("window sums and winner");
    }

    /// Picks the winners of row `y` from its sums; `in_pairs`: of [`PickRow`].
    fn pick<V: Lanes, const MAX: usize, const EXACT: bool>(
        &self,
        scratch: &mut Scratch,
        y: usize,
        sums: *const i16,
        in_pairs: bool,
    ) {
        scratch.winner.begin_band(1);
        let winner = &mut scratch.winner;
        // SAFETY: the sums hold a row; the simd was found on this machine.
        unsafe {
            V::vectorize(PickRow::<MAX, EXACT> { geometry: self.geometry, sums, in_pairs, winner })
        };
        self.hand_out(scratch, (y, 1));
    }

    /// The sums of row `y` of costs of single pixels, which `write` writes row by row.
    pub(super) fn pixel_sums_row<V: Lanes, S: Sink>(
        &self,
        scratch: &mut Scratch,
        write: &WriteRows<'_>,
        total: Total,
        y: usize,
        begins: bool,
        sink: S,
    ) {
        let Geometry { width, height, depth, .. } = *self.geometry;
        let (places, down) = (places(self.params), self.params.summed_window().radius().1);
        let costs = scratch.kept_costs.ptr();
        let first = if begins { y.saturating_sub(down) } else { y + down };
        for row in first..height.min(y + down + 1) {
            // SAFETY: there is room for so many rows.
            write(scratch, (row, 1), unsafe { costs.add(row % places * width * depth) });
        }
        self.sum_row::<V, _, _>(scratch, PixelCosts { costs, places }, total, y, begins, sink);
    }

    /// The sums of row `y` of a cost over windows.
    pub(super) fn window_row<V: Lanes, const MAX: usize, const EXACT: bool, S: Sink>(
        &self,
        scratch: &mut Scratch,
        y: usize,
        begins: bool,
        sink: S,
    ) {
        let (left, mirrored) = (self.left, self.shared.mirrored.ptr().cast_const());
        let differences = |truncation| {
            move |_: &mut Scratch, rows, band_costs| {
                let (geometry, cost) = (self.geometry, self.ad_cost(truncation));
                // SAFETY: there is room for the rows; the simd was found on this machine; the planes were
                // finished before.
                unsafe {
                    V::vectorize(FillBand::<_, MAX, EXACT> { geometry, cost, rows, band_costs })
                };
            }
        };
        let (measure, window) = match self.params.cost {
            Matching::Block { measure, window, .. } => (measure, window),
            Matching::Ad { truncation, .. } => {
                let write = differences(truncation);
                return self.pixel_sums_row::<V, _>(scratch, &write, Total::Plain, y, begins, sink);
            }
            _ => unreachable!("no other cost is summed over windows"),
        };
        let (scale, stripes) = (Scale::of(measure, window), self.stripes());
        let total = Total::Scaled(scale);
        match measure {
            BlockMeasure::Sad => {
                let write = differences(u8::MAX);
                self.pixel_sums_row::<V, _>(scratch, &write, total, y, begins, sink);
            }
            BlockMeasure::Ssd => {
                let parts = Squares::<false> { left, mirrored, stripes };
                self.sum_row::<V, _, _>(scratch, parts, total, y, begins, sink);
            }
            BlockMeasure::ZeroMeanSsd => {
                let parts = Squares::<true> { left, mirrored, stripes };
                let total = Total::Variance(scale, window.area());
                self.sum_row::<V, _, _>(scratch, parts, total, y, begins, sink);
            }
            BlockMeasure::ZeroMeanSad => {
                let eyes = self.shared.zero_mean.each_ref();
                let [left, mirrored] = eyes.map(|eye| eye.ptr().cast_const());
                let parts = ZeroMean { left, mirrored, stripes };
                self.sum_row::<V, _, _>(scratch, parts, total, y, begins, sink);
            }
        }
    }

    /// The sums of row `y` of these parts.
    fn sum_row<V: Lanes, P: Parts, S: Sink>(
        &self,
        scratch: &mut Scratch,
        parts: P,
        total: Total,
        y: usize,
        begins: bool,
        sink: S,
    ) {
        // SAFETY: the parts of the rows around are prepared; the simd was found on this machine.
        unsafe {
            V::vectorize(SumRow {
                geometry: self.geometry,
                parts,
                radius: self.params.summed_window().radius(),
                total,
                y,
                begins,
                memory: P::Sum::memory(scratch),
                sink,
            });
        }
    }

    /// The truncated absolute difference of single pixels.
    pub(super) fn ad_cost(&self, truncation: u8) -> AdCost {
        AdCost {
            left: self.left.pixels().as_ptr(),
            mirrored: self.shared.mirrored.ptr(),
            width: self.geometry.width,
            stride: self.geometry.mirrored_stride(),
            stripes: self.stripes(),
            truncation,
            padding: self.padding(),
        }
    }

    /// Paths over the whole picture, one direction after the other, and the winners, with the cost that `cost`
    /// makes for a band.
    pub(super) fn aggregate_whole<V: Lanes, C: Cost, const MAX: usize, const EXACT: bool>(
        &self,
        team: &mut Team,
        laps: &mut Laps,
        cost: &CostOfBand<'_, C>,
    ) {
        let geometry = self.geometry;
        let row_cells = geometry.width * geometry.depth;
        let costs = Plane(self.shared.whole_costs.ptr());
        let sums = Plane(self.shared.whole_sums.ptr());
        team.share(geometry.bands, &|thread, bands| {
            let scratch = &mut *self.scratch(thread);
            for (first, rows) in bands.map(|band| geometry.band(band)) {
                let cost = cost(scratch, (first, rows), false);
                // SAFETY: the band's rows are this thread's; the simd was found on this machine.
                unsafe {
                    sums.at(first * row_cells).write_bytes(0, rows * row_cells);
                    let (rows, band_costs) = ((first, rows), costs.at(first * row_cells));
                    V::vectorize(FillBand::<_, MAX, EXACT> { geometry, cost, rows, band_costs });
                }
            }
        });
        laps.end("cost volume");
        // Neighbouring paths go to different threads, so that long and short ones are spread evenly.
        let count = team.pieces();
        for &step in self.params.paths.steps() {
            team.share(count, &|_, shares| {
                for share in shares {
                    // SAFETY: paths of one direction have no pixel in common, and one direction is over before the next
                    // begins; the simd was found on this machine.
                    unsafe {
                        V::vectorize(Direction::<MAX, EXACT> {
                            geometry,
                            costs: costs.at(0),
                            sums: sums.at(0),
                            guide: self.guide,
                            p1: self.params.p1,
                            p2: self.p2,
                            step,
                            share: (share, count),
                        });
                    }
                }
            });
        }
        laps.end("aggregation");
        team.rows(geometry.height, |thread, rows| {
            let scratch = &mut *self.scratch(thread);
            for y in rows {
                // SAFETY: the row lies in the picture.
                self.pick::<V, MAX, EXACT>(scratch, y, unsafe { sums.at(y * row_cells) }, true);
            }
        });
        laps.end("winner");
    }
}
