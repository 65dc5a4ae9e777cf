//! A plan in the making: what every way of matching begins with.

use super::super::geometry::{BLOCK_THREADS, Lanes, Prepared};
use super::super::job::Job;
use super::super::launch::{Arg, BufferId, Input, KernelId, Lane, Launch, Plan, Scope, Step};
use crate::calibration::{Rectifier, RectifyMap};
use crate::frame::Eye;
use crate::matching::Params;

/// A plan in the making.
pub(super) struct Builder<'a> {
    pub params: &'a Params,
    pub width: u32,
    pub height: u32,
    pub lanes: Lanes,
    pub prepared: Prepared,
    /// Columns of the words that hold the winners.
    pub columns: u32,
    pub plan: Plan,
    /// The winners of the left picture (`disparity.cuh`).
    pub winners: BufferId,
    /// The keys of the winners of the right picture, where they are checked.
    pub right: BufferId,
    /// The map as the filters so far have left it.
    pub map: BufferId,
    /// Table of the pixels that the left camera has seen, once the valid mask has made it.
    pub seen_left: Option<Arg>,
    /// Another map, for a filter that does not work in place.
    spare: Option<BufferId>,
}

/// Buffers that `features.cu` fills (`cost.cuh`).
#[derive(Clone, Copy)]
pub(super) struct Features {
    /// Words of the left picture's pixels, with the penalties of the paths down, up and across.
    pub down: BufferId,
    pub up: BufferId,
    pub across: BufferId,
    /// Features that the cost compares: of the left picture and of the right one.
    pub base: BufferId,
    pub matching: BufferId,
    /// Columns of a prepared row.
    pub row: u32,
}

/// The stage of the account of times that prepares what the cost compares.
pub(super) const COST_FEATURES: &str = "cost features";

impl<'a> Builder<'a> {
    pub fn new(job: &Job<'a>) -> Self {
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
            map: plan.disparity,
            plan,
            winners,
            right,
            seen_left: None,
            spare: None,
        }
    }

    /// Number of pixels with those of the last strip that lie beside the picture.
    pub fn pixels(&self) -> usize {
        self.columns as usize * self.height as usize
    }

    /// Width and height as the kernels take them.
    pub fn size(&self) -> [Arg; 2] {
        [self.width, self.height].map(|n| Arg::I32(n as i32))
    }

    /// The map, and the buffer that a filter writes it to, which becomes the map.
    pub fn filtered(&mut self) -> (BufferId, BufferId) {
        let bytes = self.plan.buffers[self.map.0].bytes;
        let to = self.spare.take();
        let to = to.unwrap_or_else(|| self.plan.buffer("second disparity", bytes, Scope::Slot));
        let from = std::mem::replace(&mut self.map, to);
        self.spare = Some(from);
        (from, to)
    }

    /// Adds a launch in the main lane, which may be changed.
    pub fn launch(
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
            ordered: false,
            lane: Lane::Main,
            args,
        };
        self.plan.steps.push(Step::Launch(launch));
        match self.plan.steps.last_mut() {
            Some(Step::Launch(launch)) => launch,
            _ => unreachable!("a launch was just added"),
        }
    }

    /// Makes the pictures that are matched of the raw ones.
    pub fn rectify(&mut self, rectifier: &Rectifier) {
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
        let blocks = pixels.div_ceil(4 * BLOCK_THREADS as usize) as u32;
        self.launch("rectify", kernel, [blocks, 2], [BLOCK_THREADS, 1], args);
    }

    /// Prepares what the cost compares of both pictures, and the penalties.
    pub fn features(&mut self) -> Features {
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
        let [width, height] = self.size();
        let args = vec![
            Arg::Buffer(left),
            Arg::Buffer(right),
            Arg::Buffer(table),
            width,
            height,
            Arg::I32(row as i32),
            Arg::Buffer(features.down),
            Arg::Buffer(features.up),
            Arg::Buffer(features.across),
            Arg::Buffer(features.base),
            Arg::Buffer(features.matching),
        ];
        let grid = [row.div_ceil(BLOCK_THREADS), self.height];
        self.launch(COST_FEATURES, kernel, grid, [BLOCK_THREADS, 1], args);
        features
    }
}
