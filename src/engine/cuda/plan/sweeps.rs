//! The fast way: horizontal paths beside two sweeps that meet in the middle (`kernels/sweep.cu`).

use anyhow::ensure;

use super::super::device::Properties;
use super::super::geometry::{Block, HORIZONTAL_WARPS, Prepared, Strips, WARP};
use super::super::launch::{Arg, BufferId, Lane, Occupancy, Scope, Step};
use super::builder::{Builder, COST_FEATURES, Features, HORIZONTAL};
use crate::matching::Paths;

impl Builder<'_> {
    /// The fast way.
    pub fn sweeps(
        &mut self,
        strips: Strips,
        device: &Properties,
        occupancy: &dyn Occupancy,
    ) -> anyhow::Result<()> {
        self.columns = strips.count * strips.strip;
        let byte_volume = self.pixels() * self.lanes.padded() as usize;
        // The sweeps store different halves of the picture, or only one of them stores at all.
        let stores = self.params.paths != Paths::Five;
        let sum_volume =
            if stores { self.pixels() * self.lanes.sum_bytes(self.params) as usize } else { 0 };
        let from_left = self.plan.buffer("paths from the left", byte_volume, Scope::Lanes);
        let from_right = self.plan.buffer("paths from the right", byte_volume, Scope::Lanes);
        let sums = self.plan.buffer("sums", sum_volume, Scope::Lanes);
        let states = strips.states_bytes(self.lanes);
        let path_state = self.plan.buffer("path states", states, Scope::Slot);
        let between = strips.between_bytes(self.lanes);
        let between = self.plan.buffer("between strips", between, Scope::Slot);

        let stage = self.stage(COST_FEATURES);
        let mut set = |buffer, value| {
            self.plan.steps.push(Step::Memset { stage, buffer, value, lane: Lane::Main });
        };
        if strips.tasks {
            set(between, 0);
        }
        if self.params.left_right.is_some() {
            set(self.right, 0xff);
        }
        let features = self.costs();
        self.plan.steps.push(Step::Fork);
        self.horizontal(strips, device, features, [from_left, from_right]);
        let sweep = |builder: &mut Self, stage, unit, select| -> anyhow::Result<()> {
            let kernel = builder.kernel(unit, "sweep");
            let Block { threads, shared_bytes } = strips.block(builder.params, select);
            let held = occupancy.resident_blocks(
                &builder.plan.kernels[kernel.0],
                threads,
                shared_bytes,
            )?;
            let together = !strips.tasks && builder.params.paths != Paths::Four;
            let blocks = strips.count * strips.sweeps();
            ensure!(
                held > 0 && (!together || held * device.multiprocessors >= blocks),
                "{blocks} strips of {} columns do not fit the GPU at once ({held} a multiprocessor do); \
                 use --engine cpu",
                strips.strip
            );
            let [width, height] = builder.size();
            let args = vec![
                Arg::Buffer(features.down),
                Arg::Buffer(features.up),
                Arg::Buffer(features.base),
                Arg::Buffer(features.matching),
                Arg::I32(features.row as i32),
                width,
                height,
                Arg::I32(builder.columns as i32),
                Arg::I32(strips.count as i32),
                Arg::Buffer(between),
                Arg::Turn(0),
                Arg::Buffer(path_state),
                Arg::Buffer(sums),
                Arg::Buffer(sums),
                Arg::Buffer(from_left),
                Arg::Buffer(from_right),
                Arg::Buffer(builder.winners),
                Arg::Buffer(builder.right),
                Arg::Buffer(builder.peaks),
            ];
            let grid = match strips.tasks {
                true => [(held * device.multiprocessors).min(blocks), 1],
                false => [strips.count, strips.sweeps()],
            };
            let launch = builder.launch(stage, kernel, grid, [threads, 1], args);
            launch.shared_bytes = shared_bytes;
            launch.cooperative = together;
            Ok(())
        };
        if stores {
            sweep(self, "aggregation, to middle", "sweep_to_middle", false)?;
        }
        self.plan.steps.push(Step::Join);
        sweep(self, "aggregation and winner", "sweep_and_select", true)
    }

    /// The horizontal paths, beside the sweeps to the middle.
    fn horizontal(
        &mut self,
        strips: Strips,
        device: &Properties,
        features: Features,
        volumes: [BufferId; 2],
    ) {
        let kernel = self.kernel("horizontal", "horizontal");
        let lanes = self.lanes.horizontal(self.params);
        let blocks = self.height.div_ceil(lanes.pixels() * HORIZONTAL_WARPS);
        // Beside the sweeps the device would put all these blocks on the few multiprocessors that
        // have no strip. Claiming shared memory spreads them.
        let own = Prepared::aggregated(self.params, self.lanes).horizontal_bytes(lanes);
        let sweeps = strips.resident * (strips.block(self.params, false).shared_bytes + 1024);
        let each = (2 * blocks).div_ceil(device.multiprocessors.max(1));
        let room = device.shared_per_multiprocessor.saturating_sub(sweeps) / each;
        let shared_bytes = own.max(room.saturating_sub(2048).min(device.shared_per_block));
        let mut args = self.prepared(features.across, features);
        args.push(Arg::I32(self.columns as i32));
        args.extend(volumes.map(Arg::Buffer));
        let threads = WARP * HORIZONTAL_WARPS;
        let launch = self.launch(HORIZONTAL, kernel, [blocks, 2], [threads, 1], args);
        launch.shared_bytes = shared_bytes;
        launch.lane = Lane::Side;
    }
}
