//! Which kernels, buffers and launches match pairs of a size with a set of parameters on a device.
//!
//! There are two ways. The fast one is the *sweeps* (`kernels/sweep.cu`): the horizontal paths are
//! stored while two sweeps run towards each other, and the winners are picked as they pass. All their
//! strips must fit the device at once. Where they do not, the *plain* way (`kernels/paths.cu`) keeps
//! the sums of the whole picture in memory.

use anyhow::ensure;

use super::device::Properties;
use super::geometry::{Block, HORIZONTAL_WARPS, Lanes, Prepared, Strips, sums_fit_bytes};
use super::launch::{Arg, BufferId, Input, KernelId, Lane, Launch, Occupancy, Plan, Scope, Step};
use super::units::Job;
use crate::calibration::{Rectifier, RectifyMap};
use crate::frame::Eye;
use crate::matching::{Params, Paths};

/// Most rows that a grid can have.
const GRID_ROWS_MAX: usize = 65535;

/// Share of the device's memory that the volumes of all frames in flight may take; where they take
/// more the frames share them and do not overlap.
const VOLUMES_PART: usize = 2;

/// Buffers and launches for a device with `memory` bytes and so many frames in flight. `occupancy`
/// knows the compiled units.
///
/// # Errors
/// A picture with more rows than a grid; kernels that do not fit the device.
pub fn plan(
    job: &Job,
    device: &Properties,
    memory: usize,
    in_flight: usize,
    occupancy: &dyn Occupancy,
) -> anyhow::Result<Plan> {
    let (params, (width, height)) = (job.params, job.size);
    ensure!(
        height <= GRID_ROWS_MAX,
        "the CUDA engine takes pictures of at most {GRID_ROWS_MAX} rows, not {height}; use --engine cpu"
    );
    let mut builder = Builder::new(job);
    if let Some(rectifier) = job.rectifier {
        builder.rectify(rectifier);
    }
    match Strips::of(params, width as u32, device) {
        Some(strips) => builder.sweeps(strips, device, memory, in_flight, occupancy)?,
        None => builder.plain(),
    }
    builder.refine(job.rectifier.filter(|_| job.is_masked()));
    Ok(builder.plan)
}

/// A plan in the making.
struct Builder<'a> {
    params: &'a Params,
    width: u32,
    height: u32,
    lanes: Lanes,
    prepared: Prepared,
    /// Columns of the words that hold the winners.
    columns: u32,
    plan: Plan,
    winners: BufferId,
    right: BufferId,
}

/// What `features.cu` prepares.
#[derive(Clone, Copy)]
struct Features {
    down: BufferId,
    up: BufferId,
    across: BufferId,
    base: BufferId,
    matching: BufferId,
    row: u32,
}

impl<'a> Builder<'a> {
    fn new(job: &Job<'a>) -> Self {
        let (params, (width, height)) = (job.params, job.size);
        let lanes = Lanes::of(params.range.count);
        let input = match job.rectifier {
            None => Input::rectified(width, height),
            Some(rectifier) => {
                let (width, height) = rectifier.source_size(Eye::Left);
                Input { width, height, pitch: width }
            }
        };
        let mut plan = Plan::new(width, height, input);
        // Their sizes are known when the columns are.
        let winners = plan.buffer("winners", 0, Scope::Slot);
        let right = plan.buffer("right winners", 4 * width * height, Scope::Slot);
        if params.left_right.is_none() {
            plan.buffers[right.0].bytes = 0;
        }
        Builder {
            params,
            width: width as u32,
            height: height as u32,
            lanes,
            prepared: Prepared::of(params.cost, lanes),
            columns: width as u32,
            plan,
            winners,
            right,
        }
    }

    /// Number of pixels with those of the last strip that lie beside the picture.
    fn pixels(&self) -> usize {
        self.columns as usize * self.height as usize
    }

    fn launch(
        &mut self,
        stage: &'static str,
        kernel: KernelId,
        grid: [u32; 2],
        block: [u32; 2],
        args: Vec<Arg>,
    ) -> &mut Launch {
        let launch = Launch {
            stage,
            kernel,
            grid: [grid[0], grid[1], 1],
            block: [block[0], block[1], 1],
            shared_bytes: 0,
            cooperative: false,
            lane: Lane::Main,
            args,
        };
        self.plan.steps.push(Step::Launch(launch));
        match self.plan.steps.last_mut() {
            Some(Step::Launch(launch)) => launch,
            _ => unreachable!("a launch was just added"),
        }
    }

    /// From the raw pictures to the ones that are matched.
    fn rectify(&mut self, rectifier: &Rectifier) {
        let pixels = self.width as usize * self.height as usize;
        let raw = [self.plan.left, self.plan.right];
        let mut args = vec![Arg::I32(pixels as i32)];
        let mut rectified = [self.plan.left; 2];
        let names = [
            ("left map", "left map's weights", "left rectified picture"),
            ("right map", "right map's weights", "right rectified picture"),
        ];
        // The kernel takes four pixels at a time.
        let whole = pixels.next_multiple_of(4);
        for ((eye, names), number) in Eye::BOTH.into_iter().zip(names).zip(0..) {
            let map = rectifier.map(eye);
            let mut offsets = map.offsets().to_vec();
            offsets.resize(whole, RectifyMap::UNSEEN);
            let mut weights = map.weights().to_vec();
            weights.resize(whole, 0);
            rectified[number] = self.plan.buffer(names.2, whole, Scope::Slot);
            args.extend([
                Arg::Buffer(raw[number]),
                Arg::I32(map.source_size().0 as i32),
                Arg::Buffer(self.plan.table(names.0, bytemuck::cast_slice(&offsets).to_vec())),
                Arg::Buffer(self.plan.table(names.1, bytemuck::cast_slice(&weights).to_vec())),
                Arg::Buffer(rectified[number]),
            ]);
        }
        self.plan.rectified = Some(rectified);
        let kernel = self.plan.kernel("rectify", "rectify");
        let blocks = pixels.div_ceil(4 * 256) as u32;
        self.launch("rectify", kernel, [blocks, 2], [256, 1], args);
    }

    fn features(&mut self) -> Features {
        let row = self.prepared.row(self.columns);
        let words = row as usize * self.height as usize;
        let penalties = self.params.p2_mode.table(self.params.p1, self.params.p2);
        let table = self.plan.table("penalties", penalties.to_vec());
        let mut buffer = |name, words| self.plan.buffer(name, 4 * words, Scope::Slot);
        let planes = (self.prepared.planes / self.prepared.columns) as usize;
        let features = Features {
            down: buffer("penalties downwards", words),
            up: buffer("penalties upwards", words),
            across: buffer("penalties across", words),
            base: buffer("left features", words * self.prepared.base_words as usize),
            matching: buffer("right features", words * planes),
            row,
        };
        let kernel = self.plan.kernel("features", "features");
        let [left, right] = self.plan.matched();
        let args = vec![
            Arg::Buffer(left),
            Arg::Buffer(right),
            Arg::Buffer(table),
            Arg::I32(self.width as i32),
            Arg::I32(self.height as i32),
            Arg::I32(row as i32),
            Arg::Buffer(features.down),
            Arg::Buffer(features.up),
            Arg::Buffer(features.across),
            Arg::Buffer(features.base),
            Arg::Buffer(features.matching),
        ];
        self.launch("features", kernel, [row.div_ceil(256), self.height], [256, 1], args);
        features
    }

    /// The fast way.
    fn sweeps(
        &mut self,
        strips: Strips,
        device: &Properties,
        memory: usize,
        in_flight: usize,
        occupancy: &dyn Occupancy,
    ) -> anyhow::Result<()> {
        self.columns = strips.count * strips.strip;
        let byte_volume = self.pixels() * self.lanes.padded() as usize;
        let sum_volume = if sums_fit_bytes(self.params) { byte_volume } else { 2 * byte_volume };
        // The sweeps store different halves of the picture, or only one of them stores at all.
        let sum_volume = if self.params.paths == Paths::Five { 0 } else { sum_volume };
        let volumes = 2 * byte_volume + sum_volume;
        let scope = if volumes.saturating_mul(in_flight) > memory / VOLUMES_PART {
            self.plan.overlap = false;
            Scope::Engine
        } else {
            Scope::Slot
        };
        let from_left = self.plan.buffer("paths from the left", byte_volume, scope);
        let from_right = self.plan.buffer("paths from the right", byte_volume, scope);
        let sums = self.plan.buffer("sums", sum_volume, scope);
        let half_words = self.lanes.half() as usize;
        let state = self.plan.buffer(
            "paths in the middle",
            2 * 3 * self.columns as usize * half_words * 4,
            Scope::Slot,
        );
        let column_words = half_words + 4;
        let boxes = 2 * strips.count as usize * 4 * strips.trade as usize * column_words * 4;
        let outbox = self.plan.buffer("borders of the strips", boxes, Scope::Slot);

        if self.params.left_right.is_some() {
            self.plan.steps.push(Step::Memset {
                stage: "features",
                buffer: self.right,
                value: 0xff,
                lane: Lane::Main,
            });
        }
        let features = self.features();
        self.plan.steps.push(Step::Fork);
        self.horizontal(strips, device, features, [from_left, from_right]);
        let sweep = |builder: &mut Self, unit: &'static str, finish: bool| -> anyhow::Result<()> {
            let kernel = builder.plan.kernel(unit, "sweep");
            let Block { threads, shared_bytes } = strips.block(builder.params, finish);
            let held = occupancy.resident_blocks(
                &builder.plan.kernels[kernel.0],
                threads,
                shared_bytes,
            )?;
            let diagonals = builder.params.paths != Paths::Four;
            let blocks = strips.count * strips.sweeps();
            ensure!(
                held > 0 && (!diagonals || held * device.multiprocessors >= blocks),
                "{blocks} strips of {} columns do not fit the GPU at once ({held} a multiprocessor do); \
                 use --engine cpu",
                strips.strip
            );
            let args = vec![
                Arg::Buffer(features.down),
                Arg::Buffer(features.up),
                Arg::Buffer(features.base),
                Arg::Buffer(features.matching),
                Arg::I32(features.row as i32),
                Arg::I32(builder.width as i32),
                Arg::I32(builder.height as i32),
                Arg::I32(builder.columns as i32),
                Arg::Buffer(outbox),
                Arg::Turn,
                Arg::Buffer(state),
                Arg::Buffer(sums),
                Arg::Buffer(sums),
                Arg::Buffer(from_left),
                Arg::Buffer(from_right),
                Arg::Buffer(builder.winners),
                Arg::Buffer(builder.right),
            ];
            let grid = [strips.count, strips.sweeps()];
            let launch = builder.launch(unit, kernel, grid, [threads, 1], args);
            launch.shared_bytes = shared_bytes;
            launch.cooperative = diagonals;
            Ok(())
        };
        if self.params.paths != Paths::Five {
            sweep(self, "store", false)?;
        }
        self.plan.steps.push(Step::Join);
        sweep(self, "finish", true)
    }

    fn horizontal(
        &mut self,
        strips: Strips,
        device: &Properties,
        features: Features,
        volumes: [BufferId; 2],
    ) {
        let kernel = self.plan.kernel("horizontal", "horizontal");
        let lanes = self.lanes.horizontal(self.params.cost);
        let blocks = self.height.div_ceil(lanes.pixels() * HORIZONTAL_WARPS);
        // Beside the sweeps the device would put all these blocks on the few multiprocessors that
        // have no strip. Claiming shared memory spreads them.
        let own = self.prepared.horizontal_bytes(lanes);
        let sweeps = strips.resident * (strips.block(self.params, false).shared_bytes + 1024);
        let each = (2 * blocks).div_ceil(device.multiprocessors.max(1));
        let room = device.shared_per_multiprocessor.saturating_sub(sweeps) / each;
        let shared_bytes = own.max(room.saturating_sub(2048).min(device.shared_per_block));
        let args = vec![
            Arg::Buffer(features.across),
            Arg::Buffer(features.base),
            Arg::Buffer(features.matching),
            Arg::I32(features.row as i32),
            Arg::I32(self.width as i32),
            Arg::I32(self.height as i32),
            Arg::I32(self.columns as i32),
            Arg::Buffer(volumes[0]),
            Arg::Buffer(volumes[1]),
        ];
        let launch =
            self.launch("horizontal", kernel, [blocks, 2], [32 * HORIZONTAL_WARPS, 1], args);
        launch.shared_bytes = shared_bytes;
        launch.lane = Lane::Side;
    }

    /// The plain way.
    fn plain(&mut self) {
        self.columns = self.width;
        self.plan.overlap = false;
        let words = self.pixels() * self.lanes.half() as usize;
        let sums = self.plan.buffer("sums", 4 * words, Scope::Engine);
        let features = self.features();
        let kernel = self.plan.kernel("paths", "paths");
        let paths_a_block = 4 * self.lanes.pixels();
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
                Arg::I32(self.width as i32),
                Arg::I32(self.height as i32),
                Arg::I32(dx),
                Arg::I32(dy),
                Arg::I32(i32::from(i == 0)),
                Arg::Buffer(sums),
            ];
            self.launch("paths", kernel, [starts.div_ceil(paths_a_block), 1], [128, 1], args);
        }
        let size = [Arg::I32(self.width as i32), Arg::I32(self.height as i32)];
        let kernel = self.plan.kernel("paths", "winners");
        let blocks = self.pixels().div_ceil(paths_a_block as usize) as u32;
        let args = vec![Arg::Buffer(sums), size[0], size[1], Arg::Buffer(self.winners)];
        self.launch("winners", kernel, [blocks, 1], [128, 1], args);
        if self.params.left_right.is_some() {
            let kernel = self.plan.kernel("paths", "right_winners");
            let args = vec![Arg::Buffer(sums), size[0], size[1], Arg::Buffer(self.right)];
            self.launch("winners", kernel, [self.width.div_ceil(128), self.height], [128, 1], args);
        }
    }

    /// `masked`: what says that not all pixels are seen, where that is so.
    fn refine(&mut self, masked: Option<&Rectifier>) {
        self.plan.buffers[self.winners.0].bytes = 4 * self.pixels();
        let kernel = self.plan.kernel("refine", "refine");
        let mut seen = |name, eye| {
            let mask = masked.map(|rectifier| rectifier.map(eye).mask());
            let bytes = match mask {
                Some(Some(mask)) => mask.pixels().iter().map(|&seen| u8::from(seen)).collect(),
                Some(None) => vec![1; self.width as usize * self.height as usize],
                None => Vec::new(),
            };
            Arg::Buffer(self.plan.table(name, bytes))
        };
        let (seen_left, seen_right) =
            (seen("left mask", Eye::Left), seen("right mask", Eye::Right));
        let args = vec![
            Arg::Buffer(self.winners),
            Arg::Buffer(self.right),
            seen_left,
            seen_right,
            Arg::I32(self.width as i32),
            Arg::I32(self.height as i32),
            Arg::I32(self.columns as i32),
            Arg::Buffer(self.plan.disparity),
        ];
        let grid = [self.width.div_ceil(64), self.height.div_ceil(8)];
        self.launch("refine", kernel, grid, [32, 8], args);
        if self.params.speckle.is_some() {
            self.speckle();
        }
    }

    fn speckle(&mut self) {
        let count = self.width as usize * self.height as usize;
        let labels = Arg::Buffer(self.plan.buffer("speckle labels", 4 * count, Scope::Slot));
        let sizes = Arg::Buffer(self.plan.buffer("speckle sizes", 4 * count, Scope::Slot));
        let map = Arg::Buffer(self.plan.disparity);
        let [width, height] = [self.width, self.height].map(|n| Arg::I32(n as i32));
        let pixels = Arg::I32(count as i32);
        let tiles = [self.width.div_ceil(32), self.height.div_ceil(32)];
        let runs = [count.div_ceil(1024) as u32, 1];
        let mut speckle = |symbol, grid, block, args| {
            let kernel = self.plan.kernel("speckle", symbol);
            self.launch("speckle", kernel, grid, block, args);
        };
        let (map_size, all) = ([map, width, height], [labels, sizes]);
        speckle("speckle_label", tiles, [32, 8], [&map_size[..], &all].concat());
        speckle("speckle_merge", tiles, [32, 2], [&map_size[..], &[labels]].concat());
        speckle("speckle_count", runs, [256, 1], [&[pixels][..], &all].concat());
        speckle("speckle_remove", runs, [256, 1], [&[map, pixels][..], &all].concat());
    }
}

#[cfg(test)]
mod tests {
    use super::super::launch::Kernel;
    use super::super::units::specialisations;
    use super::*;

    struct Fits(u32);

    impl Occupancy for Fits {
        fn resident_blocks(&self, _: &Kernel, _: u32, _: u32) -> anyhow::Result<u32> {
            Ok(self.0)
        }
    }

    #[test]
    fn every_plan_is_sound() {
        let usual = crate::settings::Matching::default().params().unwrap();
        for paths in [Paths::Four, Paths::Five, Paths::Eight] {
            for count in [1, 64, 128, 1024] {
                for size in [(1, 1), (640, 480), (1920, 1080), (8192, 4096)] {
                    for sm in [75, 90] {
                        let range = crate::frame::DisparityRange { min: 0, count };
                        let params = Params { paths, range, ..usual.clone() };
                        let device = Properties::typical(sm);
                        let job = Job { params: &params, size, rectifier: None };
                        let plan = plan(&job, &device, 8 << 30, 3, &Fits(32)).unwrap();
                        plan.check().unwrap();
                        let units = specialisations(&job, &device);
                        for kernel in &plan.kernels {
                            assert!(
                                units.iter().any(|unit| unit.name == kernel.unit),
                                "{kernel:?}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_device_that_holds_too_few_strips_is_refused() {
        let params = crate::settings::Matching::default().params().unwrap();
        let device = Properties::typical(90);
        let job = Job { params: &params, size: (1920, 1080), rectifier: None };
        let error = plan(&job, &device, 8 << 30, 3, &Fits(0)).unwrap_err();
        assert!(error.to_string().contains("--engine cpu"), "{error}");
    }
}
