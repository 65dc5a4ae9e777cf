//! Two sweeps that run towards each other and meet in the middle (`kernels/aggregate_sweep.cu`), concurrently
//! with the horizontal paths.

use anyhow::ensure;

use super::super::geometry::strips::{Block, Strips};
use super::super::geometry::{HORIZONTAL_WARPS, Prepared, WARP};
use super::super::launch::{Arg, BufferId, Lane, Scope, Step};
use super::builder::{Builder, COST_FEATURES, Features, HORIZONTAL};
use crate::matching::Paths;

/// Sweeps of a level, with the buffers of both launches.
pub(super) struct Sweeps {
    strips: Strips,
    costs: Features,
    /// Exchanged halos of strips, or the progress of tasks.
    between: BufferId,
    /// Path states at the end of the first launch, or of each task.
    path_state: BufferId,
    /// Sums of path deltas that each sweep stores and the other adds.
    sums: BufferId,
    /// Path deltas of the horizontal paths, from the left and from the right.
    across: [BufferId; 2],
}

impl Builder<'_> {
    /// Aggregates along the horizontal paths, and along the others as far as the middle.
    pub fn sweep_to_middle(&mut self, strips: Strips, costs: Features) -> anyhow::Result<Sweeps> {
        let byte_volume = self.pixels() * self.lanes.padded() as usize;
        // The sweeps store different halves of the picture, or only one of them stores at all.
        let stores = self.params.paths != Paths::Five;
        let sum_volume =
            if stores { self.pixels() * self.lanes.sum_bytes(self.params) as usize } else { 0 };
        let states = strips.states_bytes(self.lanes);
        let between = strips.between_bytes(self.lanes);
        let mut buffer = |name, bytes, scope| self.plan.buffer(name, bytes, scope);
        let sweeps = Sweeps {
            strips,
            costs,
            across: ["paths from the left", "paths from the right"]
                .map(|name| buffer(name, byte_volume, Scope::Concurrent)),
            sums: buffer("sums", sum_volume, Scope::Concurrent),
            path_state: buffer("path states", states, Scope::Slot),
            between: buffer("between strips", between, Scope::Slot),
        };
        if strips.tasks {
            let (stage, buffer, lane) = (self.stage(COST_FEATURES), sweeps.between, Lane::Main);
            self.plan.steps.push(Step::Memset { stage, buffer, value: 0, lane });
        }
        self.plan.steps.push(Step::Fork);
        self.aggregate_horizontal(strips, costs, sweeps.across);
        if stores {
            self.sweep(&sweeps, "aggregation, to middle", "sweep_to_middle", false)?;
        }
        Ok(sweeps)
    }

    /// Continues from the middle and selects the winners of each row as it passes.
    pub fn sweep_and_select(&mut self, sweeps: &Sweeps) -> anyhow::Result<()> {
        self.plan.steps.push(Step::Join);
        self.sweep(sweeps, "aggregation and winner", "sweep_and_select", true)
    }

    fn sweep(
        &mut self,
        sweeps: &Sweeps,
        stage: &'static str,
        unit: &str,
        select: bool,
    ) -> anyhow::Result<()> {
        let &Sweeps { strips, costs, between, path_state, sums, across: [from_left, from_right] } =
            sweeps;
        let kernel = self.kernel(unit, "aggregate_sweep");
        let Block { threads, shared_bytes } = strips.block(self.params, select);
        let found = &self.plan.kernels[kernel.0];
        let held = self.occupancy.resident_blocks(found, threads, shared_bytes)?;
        let together = !strips.tasks && self.params.paths != Paths::Four;
        let blocks = strips.count * strips.sweeps();
        ensure!(
            held > 0 && (!together || held * self.device.multiprocessors >= blocks),
            "{blocks} strips of {} columns do not fit the GPU at once ({held} a multiprocessor do); \
             use `engine=cpu`",
            strips.strip
        );
        let [width, height] = self.size();
        let args = vec![
            Arg::Buffer(costs.down),
            Arg::Buffer(costs.up),
            Arg::Buffer(costs.base),
            Arg::Buffer(costs.matching),
            Arg::I32(costs.row as i32),
            width,
            height,
            Arg::I32(self.columns as i32),
            Arg::I32(strips.count as i32),
            Arg::Buffer(between),
            Arg::Turn(0),
            Arg::Buffer(path_state),
            Arg::Buffer(sums),
            Arg::Buffer(sums),
            Arg::Buffer(from_left),
            Arg::Buffer(from_right),
            Arg::Buffer(self.winners),
            Arg::Buffer(self.right),
            Arg::Buffer(self.peaks),
            Arg::Buffer(costs.windows),
        ];
        let grid = match strips.tasks {
            true => [(held * self.device.multiprocessors).min(blocks), 1],
            false => [strips.count, strips.sweeps()],
        };
        let launch = self.launch(stage, kernel, grid, [threads, 1], args);
        launch.shared_bytes = shared_bytes;
        launch.cooperative = together;
        Ok(())
    }

    /// Aggregates along the horizontal paths, concurrently with the sweeps to the middle.
    fn aggregate_horizontal(&mut self, strips: Strips, costs: Features, volumes: [BufferId; 2]) {
        let kernel = self.kernel("aggregate_horizontal", "aggregate_horizontal");
        let lanes = self.lanes.horizontal(self.params);
        let blocks = self.height.div_ceil(lanes.pixels() * HORIZONTAL_WARPS);
        // During the sweeps the device would put all these blocks on the few multiprocessors without a strip.
        // Claiming shared memory distributes them.
        let own = Prepared::for_aggregation(self.params, self.lanes).horizontal_bytes(lanes);
        let sweeps = strips.resident * (strips.block(self.params, false).shared_bytes + 1024);
        let each = (2 * blocks).div_ceil(self.device.multiprocessors.max(1));
        let room = self.device.shared_per_multiprocessor.saturating_sub(sweeps) / each;
        let shared_bytes = own.max(room.saturating_sub(2048).min(self.device.shared_per_block));
        let mut args = self.prepared(costs.across, costs);
        args.push(Arg::I32(self.columns as i32));
        args.extend(volumes.map(Arg::Buffer));
        args.push(Arg::Buffer(costs.windows));
        let threads = WARP * HORIZONTAL_WARPS;
        let launch = self.launch(HORIZONTAL, kernel, [blocks, 2], [threads, 1], args);
        launch.shared_bytes = shared_bytes;
        launch.lane = Lane::Side;
    }
}
