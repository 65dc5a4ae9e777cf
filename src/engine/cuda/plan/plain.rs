//! The plain way: one direction after the other, with the sums of the whole picture in memory
//! (`kernels/paths.cu`).

use super::super::geometry::{PLAIN_WARPS, WARP};
use super::super::launch::{Arg, Scope};
use super::builder::Builder;

impl Builder<'_> {
    /// The plain way.
    pub fn plain(&mut self) {
        self.columns = self.width;
        self.plan.overlap = false;
        let words = self.pixels() * self.lanes.half() as usize;
        let sums = self.plan.buffer("sums", 4 * words, Scope::Engine);
        let features = self.costs(Scope::Engine);
        let kernel = self.kernel("paths", "paths");
        let paths_a_block = PLAIN_WARPS * self.lanes.pixels();
        let threads = WARP * PLAIN_WARPS;
        let [width, height] = self.size();
        for (i, &(dx, dy)) in self.params.paths.steps().iter().enumerate() {
            let (steps, starts) = match (dx, dy) {
                (_, 0) => (features.across, self.height),
                (0, 1) => (features.down, self.width),
                (0, _) => (features.up, self.width),
                (_, 1) => (features.down, self.width + self.height - 1),
                _ => (features.up, self.width + self.height - 1),
            };
            let args = vec![
                Arg::Buffer(steps),
                Arg::Buffer(features.base),
                Arg::Buffer(features.matching),
                Arg::I32(features.row as i32),
                width,
                height,
                Arg::I32(dx),
                Arg::I32(dy),
                Arg::I32(i32::from(i == 0)),
                Arg::Buffer(sums),
            ];
            let grid = [starts.div_ceil(paths_a_block), 1];
            self.launch("aggregation", kernel, grid, [threads, 1], args);
        }
        let kernel = self.kernel("paths", "winners");
        let blocks = self.pixels().div_ceil(paths_a_block as usize) as u32;
        let (winners, peaks) = (Arg::Buffer(self.winners), Arg::Buffer(self.peaks));
        let args = vec![Arg::Buffer(sums), width, height, winners, peaks];
        self.launch("winner", kernel, [blocks, 1], [threads, 1], args);
        if self.params.left_right.is_some() {
            let kernel = self.kernel("paths", "right_winners");
            let args = vec![Arg::Buffer(sums), width, height, Arg::Buffer(self.right)];
            let grid = [self.width.div_ceil(threads), self.height];
            self.launch("winner", kernel, grid, [threads, 1], args);
        }
    }
}
