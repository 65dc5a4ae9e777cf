//! The plain way: one direction after the other, with the sums of the whole picture in memory
//! (`kernels/paths.cu`).

use super::super::geometry::{PLAIN_WARPS, SEGMENT, WARP};
use super::super::launch::{Arg, BufferId, Lane, Scope, Step};
use super::builder::Builder;

/// The stage in which winners are picked from sums that are kept.
const WINNER: &str = "winner";

impl Builder<'_> {
    /// The plain way.
    pub fn plain(&mut self) {
        self.columns = self.width;
        let words = self.pixels() * self.lanes.half() as usize;
        let sums = self.plan.buffer("sums", 4 * words, Scope::Lanes);
        let features = self.costs();
        let kernel = self.kernel("paths", "paths");
        let paths_a_block = PLAIN_WARPS * self.lanes.pixels();
        let threads = WARP * PLAIN_WARPS;
        for (i, &(dx, dy)) in self.params.paths.steps().iter().enumerate() {
            // Where the pixel before lies outside.
            let rows = dy.unsigned_abs().min(self.height);
            let columns = dx.unsigned_abs().min(self.width);
            let starts = rows * self.width + columns * (self.height - rows);
            let mut args = self.prepared(features.across, features);
            args.extend([
                Arg::Buffer(features.guide),
                features.penalties,
                Arg::I32(dx),
                Arg::I32(dy),
                Arg::I32(i32::from(i == 0)),
                Arg::Buffer(sums),
            ]);
            let grid = [starts.div_ceil(paths_a_block), 1];
            self.launch("aggregation", kernel, grid, [threads, 1], args);
        }
        self.row_winners(sums);
    }

    /// The winners of both pictures from sums that are kept (`kernels/row_winners.cu`).
    pub fn row_winners(&mut self, sums: BufferId) {
        let [width, height] = self.size();
        if self.params.left_right.is_some() {
            let stage = self.stage(WINNER);
            let (buffer, lane) = (self.right, Lane::Main);
            self.plan.steps.push(Step::Memset { stage, buffer, value: 0xff, lane });
        }
        let kernel = self.kernel("row_winners", "row_winners");
        let args = vec![
            Arg::Buffer(sums),
            width,
            height,
            Arg::Buffer(self.winners),
            Arg::Buffer(self.peaks),
            Arg::Buffer(self.right),
        ];
        let grid = [self.width.div_ceil(SEGMENT), self.height];
        self.launch(WINNER, kernel, grid, [WARP * PLAIN_WARPS, 1], args);
    }
}
