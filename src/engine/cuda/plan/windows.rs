//! Sums over windows (`kernels/window_sums.cu`): the way without paths, and costs that compare windows.

use super::super::geometry::BLOCK_THREADS;
use super::super::launch::{Arg, BufferId, Scope};
use super::super::units::window_tile;
use super::builder::{Builder, Features};

impl Builder<'_> {
    /// The way without paths: the winners straight from the sums over windows.
    pub fn local(&mut self) {
        self.columns = self.width;
        let words = self.pixels() * self.lanes.half() as usize;
        let sums = self.plan.buffer("sums", 4 * words, Scope::Lanes);
        let features = self.features();
        self.window_sums(features, sums);
        self.row_winners(sums);
    }

    /// Sums over windows, or the costs of a byte that are made of them.
    pub fn window_sums(&mut self, features: Features, to: BufferId) {
        let (_, tile) = window_tile(self.level);
        let kernel = self.kernel("window_sums", "window_sums");
        let mut args = self.prepared(features.across, features);
        args.push(Arg::Buffer(to));
        let [across, down, shares] = tile.grid(self.lanes, self.level.size);
        let launch = self.launch("window sums", kernel, [across, down], [BLOCK_THREADS, 1], args);
        launch.grid[2] = shares;
        launch.shared_bytes = tile.shared_bytes;
    }
}
