//! The stage `aggregate_costs`: path costs of semi-global matching (Hirschmueller, 2008) summed over the
//! paths, or costs summed over windows.

use anyhow::ensure;

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
    /// Aggregates costs: by sweeps if they fit the device, else in sums of the whole picture; over windows
    /// without paths.
    pub fn aggregate_costs(&mut self, costs: Features) -> anyhow::Result<Aggregated> {
        if let Some(strips) = self.strips {
            return Ok(Aggregated::ToMiddle(self.sweep_to_middle(strips, costs)?));
        }
        ensure!(
            !self.params.windows,
            "range windows do not fit the GPU; use `windows=off` or `engine=cpu`"
        );
        let words = self.pixels() * self.lanes.half() as usize;
        let sums = self.plan.buffer("sums", 4 * words, Scope::Concurrent);
        match self.params.is_local() {
            true => self.aggregate_windows(costs, sums),
            false => self.aggregate_paths(costs, sums),
        }
        Ok(Aggregated::Whole(sums))
    }

    /// Adds up all paths in sums of the whole picture (`kernels/aggregate_paths.cu`).
    fn aggregate_paths(&mut self, costs: Features, sums: BufferId) {
        let (stage, lane) = (self.stage(COST_FEATURES), Lane::Main);
        self.plan.steps.push(Step::Memset { stage, buffer: sums, value: 0, lane });
        let kernel = self.kernel("aggregate_paths", "aggregate_paths");
        let steps = self.params.paths.steps();
        // Paths begin at pixels with a predecessor outside the image.
        let starts = steps.iter().map(|(dx, dy)| {
            let rows = dy.unsigned_abs().min(self.height);
            rows * self.width + dx.unsigned_abs().min(self.width) * (self.height - rows)
        });
        let blocks = starts.max().unwrap_or(0).div_ceil(PLAIN_WARPS * self.lanes.pixels());
        let mut args = self.prepared(costs.across, costs);
        args.extend([costs.guide, costs.blends, sums].map(Arg::Buffer));
        args.insert(7, costs.penalties);
        let grid = [blocks, steps.len() as u32];
        self.launch("aggregation", kernel, grid, [WARP * PLAIN_WARPS, 1], args);
    }

    /// Sums costs over windows; for paths, the sums are reduced to byte costs
    /// (`kernels/aggregate_windows.cu`).
    pub fn aggregate_windows(&mut self, features: Features, to: BufferId) {
        let (_, tile) = window_tile(self.level, self.device);
        let kernel = self.kernel("aggregate_windows", "aggregate_windows");
        let mut args = self.prepared(features.across, features);
        args.push(Arg::Buffer(to));
        let [across, down, shares] = tile.grid(self.lanes, self.level.size);
        let launch = self.launch("window sums", kernel, [across, down], [BLOCK_THREADS, 1], args);
        launch.grid[2] = shares;
        launch.shared_bytes = tile.shared_bytes;
    }
}
