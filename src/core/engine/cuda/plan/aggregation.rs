//! The stage `aggregate_costs`: path costs of semi-global matching (Hirschmueller, 2008) summed over the
//! paths, or costs summed over windows.

use super::super::geometry::{BLOCK_THREADS, PLAIN_WARPS, WARP};
use super::super::launch::{Arg, BufferId, Lane, Scope, Step};
use super::super::units::window_tile;
use super::builder::{Builder, COST_FEATURES, Features};
use super::sweeps::Sweeps;

/// Aggregated costs, as input of `select_disparities`.
pub(super) enum Aggregated {
    /// Sums of the whole picture, [height][width][words of two candidates].
    Whole(BufferId),
    /// Sums that two sweeps have stored on their way to the middle. The launch that continues them also
    /// selects the winners, so that the sums over all paths never exist in memory.
    ToMiddle(Sweeps),
}

impl Builder<'_> {
    /// Aggregates costs: by sweeps if they fit the device, else path by path, or over windows without paths.
    pub fn aggregate_costs(&mut self, costs: Features) -> anyhow::Result<Aggregated> {
        if self.params.left_right.is_some() {
            // Between the two sweeps it would slow down a stream of pairs by up to 8 %.
            let (stage, buffer, lane) = (self.stage(COST_FEATURES), self.right, Lane::Main);
            self.plan.steps.push(Step::Memset { stage, buffer, value: 0xff, lane });
        }
        if let Some(strips) = self.strips {
            return Ok(Aggregated::ToMiddle(self.sweep_to_middle(strips, costs)?));
        }
        let words = self.pixels() * self.lanes.half() as usize;
        let sums = self.plan.buffer("sums", 4 * words, Scope::Concurrent);
        match self.params.is_local() {
            true => self.aggregate_windows(costs, sums),
            false => self.aggregate_paths(costs, sums),
        }
        Ok(Aggregated::Whole(sums))
    }

    /// Adds up one path after the other (`kernels/aggregate_paths.cu`).
    fn aggregate_paths(&mut self, costs: Features, sums: BufferId) {
        let kernel = self.kernel("aggregate_paths", "aggregate_paths");
        let paths_a_block = PLAIN_WARPS * self.lanes.pixels();
        let threads = WARP * PLAIN_WARPS;
        for (i, &(dx, dy)) in self.params.paths.steps().iter().enumerate() {
            // Paths begin at pixels with a predecessor outside the image.
            let rows = dy.unsigned_abs().min(self.height);
            let columns = dx.unsigned_abs().min(self.width);
            let starts = rows * self.width + columns * (self.height - rows);
            let mut args = self.prepared(costs.across, costs);
            args.extend([
                Arg::Buffer(costs.guide),
                costs.penalties,
                Arg::Buffer(costs.blends),
                Arg::I32(dx),
                Arg::I32(dy),
                Arg::I32(i32::from(i == 0)),
                Arg::Buffer(sums),
            ]);
            let grid = [starts.div_ceil(paths_a_block), 1];
            self.launch("aggregation", kernel, grid, [threads, 1], args);
        }
    }

    /// Sums costs over windows; for paths, the sums are reduced to byte costs
    /// (`kernels/aggregate_windows.cu`).
    pub fn aggregate_windows(&mut self, features: Features, to: BufferId) {
        let (_, tile) = window_tile(self.level);
        let kernel = self.kernel("aggregate_windows", "aggregate_windows");
        let mut args = self.prepared(features.across, features);
        args.push(Arg::Buffer(to));
        let [across, down, shares] = tile.grid(self.lanes, self.level.size);
        let launch = self.launch("window sums", kernel, [across, down], [BLOCK_THREADS, 1], args);
        launch.grid[2] = shares;
        launch.shared_bytes = tile.shared_bytes;
    }
}
