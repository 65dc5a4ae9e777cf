//! Local matching: disparities directly from sums over windows.

use super::buffers::{Scratch, kept_rows};
use super::cost_source::{CostWriter, PixelWriter};
use super::frame::Frame;
use super::full_volume::SelectRow;
use super::geometry::Geometry;
use super::shape::Shape;
use super::simd::Vector;
use super::stage_timer::StageTimer;
use super::team::Team;
use super::window_sums::{Number, Parts, PixelCosts, Row, Sink, Squares, SumRow, Total, ZeroMean};
use crate::matching::block::Scale;
use crate::matching::{BlockMeasure, Cost};

/// Rows per piece of work of a thread. Each piece first needs the rows of a window above it.
const PIECE_ROWS: usize = 64;

impl Frame<'_> {
    /// Matches without paths. `sum_row` writes the sums of a row, [x][depth].
    pub(super) fn match_locally<S: Shape>(
        &self,
        team: &mut Team,
        timer: &mut StageTimer,
        sum_row: impl Fn(&mut Scratch, Row, *mut i16) + Sync,
    ) {
        let height = self.geometry.height;
        team.share(height.div_ceil(PIECE_ROWS), &|thread, pieces| {
            let scratch = &mut *self.scratch(thread);
            for first in pieces.map(|piece| piece * PIECE_ROWS) {
                for y in first..height.min(first + PIECE_ROWS) {
                    let sums = scratch.row_sums.ptr();
                    sum_row(scratch, Row { y, begins: y == first }, sums);
                    self.select_disparities::<S>(scratch, y, sums, false);
                }
            }
        });
        timer.end("window sums and winner");
    }

    /// Selects the disparities of row `y` from its sums, and checks them; `in_pairs` as in [`SelectRow`].
    pub(super) fn select_disparities<S: Shape>(
        &self,
        scratch: &mut Scratch,
        y: usize,
        sums: *const i16,
        in_pairs: bool,
    ) {
        scratch.winner.begin_band(1);
        let winner = &mut scratch.winner;
        // SAFETY: the sums hold a row; the simd was found on this machine.
        unsafe { S::run(SelectRow { geometry: self.geometry, sums, in_pairs, winner }) };
        self.check_consistency(scratch, (y, 1));
    }

    /// Adds up the costs of single pixels over the windows of row `y`; `writer` computes them row by row.
    pub(super) fn sum_pixels<S: Shape, W: CostWriter, T: Sink>(
        &self,
        scratch: &mut Scratch,
        writer: &W,
        total: Total,
        row: Row,
        sink: T,
    ) {
        let Geometry { width, height, depth, .. } = *self.geometry;
        let (places, down) = (kept_rows(self.params), self.params.summed_window().radius().1);
        let costs = scratch.kept_costs.ptr();
        let Row { y, begins } = row;
        let first = if begins { y.saturating_sub(down) } else { y + down };
        for prepared in first..height.min(y + down + 1) {
            // SAFETY: there is room for this many rows.
            writer.write::<S>(scratch, (prepared, 1), unsafe {
                costs.add(prepared % places * width * depth)
            });
        }
        self.sum_row::<S, _, _>(scratch, PixelCosts { costs, places }, total, row, sink);
    }

    /// Computes the sums of row `y` for a cost over windows.
    pub(super) fn sum_windows<S: Shape, T: Sink>(&self, scratch: &mut Scratch, row: Row, sink: T) {
        let (left, mirrored) = (self.left, self.shared.mirrored.ptr().cast_const());
        let differences =
            |truncation| PixelWriter { geometry: self.geometry, cost: self.ad_cost(truncation) };
        let (measure, window) = match self.params.cost {
            Cost::Block { measure, window, .. } => (measure, window),
            Cost::Ad { truncation, .. } => {
                let writer = differences(truncation);
                return self.sum_pixels::<S, _, _>(scratch, &writer, Total::Plain, row, sink);
            }
            _ => unreachable!("no other cost is summed over windows"),
        };
        let (scale, stripes) = (Scale::of(measure, window), self.stripes());
        let total = Total::Scaled(scale);
        match measure {
            BlockMeasure::Sad => {
                let writer = differences(u8::MAX);
                self.sum_pixels::<S, _, _>(scratch, &writer, total, row, sink);
            }
            BlockMeasure::Ssd => {
                let parts = Squares::<false> { left, mirrored, stripes };
                self.sum_row::<S, _, _>(scratch, parts, total, row, sink);
            }
            BlockMeasure::ZeroMeanSsd => {
                let parts = Squares::<true> { left, mirrored, stripes };
                let total = Total::Variance(scale, window.area());
                self.sum_row::<S, _, _>(scratch, parts, total, row, sink);
            }
            BlockMeasure::ZeroMeanSad => {
                let views = self.shared.zero_mean.each_ref();
                let [left, mirrored] = views.map(|view| view.ptr().cast_const());
                let parts = ZeroMean { left, mirrored, stripes };
                self.sum_row::<S, _, _>(scratch, parts, total, row, sink);
            }
        }
    }

    /// Adds up these parts over the windows of row `y`.
    fn sum_row<S: Shape, P: Parts, T: Sink>(
        &self,
        scratch: &mut Scratch,
        parts: P,
        total: Total,
        row: Row,
        sink: T,
    ) {
        // SAFETY: the parts of the rows around are prepared; the simd was found on this machine.
        unsafe {
            S::V::vectorize(SumRow {
                geometry: self.geometry,
                parts,
                radius: self.params.summed_window().radius(),
                total,
                y: row.y,
                begins: row.begins,
                memory: P::Sum::memory(scratch),
                sink,
            });
        }
    }
}
