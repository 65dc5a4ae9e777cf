//! The part of a plan that matches a level, in the making: the buffers that its stages share, and how
//! they add kernels and launches.

use super::super::device::Properties;
use super::super::geometry::{Strips, VectorLayout};
use super::super::launch::{Arg, BufferId, KernelId, Lane, Launch, Occupancy, Plan, Scope, Step};
use super::super::levels::Level;
use super::information::Information;
use crate::matching::Params;

/// The part of a plan that matches a level, in the making.
pub(super) struct Builder<'a> {
    pub level: &'a Level,
    pub params: &'a Params,
    pub device: &'a Properties,
    pub occupancy: &'a dyn Occupancy,
    /// How sweeps divide the picture, where they aggregate the costs.
    pub strips: Option<Strips>,
    /// Both pictures of the level.
    pub pictures: [BufferId; 2],
    /// The map of the next coarser level.
    pub coarse: Option<BufferId>,
    /// State of mutual information, if it is the cost.
    pub information: Option<Information>,
    pub width: u32,
    pub height: u32,
    pub lanes: VectorLayout,
    /// Columns of the words that hold the winners: those of the picture, or of all strips.
    pub columns: u32,
    pub plan: &'a mut Plan,
    /// The winners of the left picture (`disparity.cuh`).
    pub winners: BufferId,
    /// The keys of the winners of the right picture, where they are checked.
    pub right: BufferId,
    /// How far the winners stand out, where the confidence is asked for.
    pub peaks: BufferId,
    /// The map as the filters so far have left it.
    pub map: BufferId,
    /// Texture of the left picture, once it is measured.
    pub texture: Option<Texture>,
    /// Table of the pixels that the left camera has seen, once the valid mask has made it.
    pub seen_left: Option<Arg>,
    /// Another map, for a filter that does not work in place.
    spare: Option<BufferId>,
}

/// Buffers that `texture.cu` fills.
#[derive(Clone, Copy)]
pub(super) struct Texture {
    /// Range of grey levels around each pixel.
    pub ranges: BufferId,
    /// The noise threshold.
    pub threshold: BufferId,
}

/// Buffers that `compute_features.cu` fills (`cost.cuh`).
#[derive(Clone, Copy)]
pub(super) struct Features {
    /// Words of the left picture's pixels, with the penalties of the paths down, up and across.
    pub down: BufferId,
    pub up: BufferId,
    pub across: BufferId,
    /// Features that the cost compares: of the left picture and of the right one. Where the cost is written
    /// down, the first is its volume; where a table gives it, that.
    pub base: BufferId,
    pub matching: BufferId,
    /// Columns of a prepared row.
    pub row: u32,
    /// The picture whose steps in brightness P2 follows, and the table of P2 by step.
    pub guide: BufferId,
    pub penalties: Arg,
}

/// The stage of the account of times that prepares what the cost compares.
pub(super) const COST_FEATURES: &str = "cost features";

/// The stages of a coarse level: all that is not beside others.
pub(super) const PRIOR: &str = "prior";

/// The stage of the horizontal paths, and that of a coarse level.
pub(super) const HORIZONTAL: &str = "aggregation, horizontal";
const PRIOR_HORIZONTAL: &str = "prior, horizontal";

impl<'a> Builder<'a> {
    /// The part for a level of which these are the pictures; the coarser level is part of the plan.
    pub fn new(
        plan: &'a mut Plan,
        level: &'a Level,
        pictures: [BufferId; 2],
        coarse: Option<BufferId>,
        information: Option<Information>,
        device: &'a Properties,
        occupancy: &'a dyn Occupancy,
    ) -> Self {
        let (params, (width, height)) = (&level.params, level.size);
        let strips = Strips::of(params, width as u32, device);
        let columns = strips.map_or(width as u32, |strips| strips.count * strips.strip);
        let pixels = columns as usize * height;
        let winners = plan.buffer("winners", 4 * pixels, Scope::Slot);
        let checked = if params.left_right.is_some() { 4 * width * height } else { 0 };
        let right = plan.buffer("right winners", checked, Scope::Slot);
        let judged = if params.confidence.is_some() { pixels } else { 0 };
        let peaks = plan.buffer("peaks", judged, Scope::Slot);
        let map = match level.number {
            0 => plan.disparity,
            _ => plan.buffer("coarse disparity", 2 * width * height, Scope::Slot),
        };
        Builder {
            level,
            params,
            device,
            occupancy,
            strips,
            pictures,
            coarse,
            information,
            width: width as u32,
            height: height as u32,
            lanes: VectorLayout::of(params.range.count),
            columns,
            plan,
            winners,
            right,
            peaks,
            map,
            texture: None,
            seen_left: None,
            spare: None,
        }
    }

    /// The kernel `symbol` of a unit of this level.
    pub fn kernel(&mut self, unit: &str, symbol: &'static str) -> KernelId {
        self.plan.kernel(&self.level.unit(unit), symbol)
    }

    /// Name in the account of times of what is this stage where the level is the finest.
    pub fn stage(&self, name: &'static str) -> &'static str {
        match (self.level.number, name) {
            (0, _) => name,
            (_, HORIZONTAL) => PRIOR_HORIZONTAL,
            _ => PRIOR,
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

    /// First arguments of every kernel that computes costs: words of the pixels, features and the size.
    pub fn prepared(&self, words: BufferId, features: Features) -> Vec<Arg> {
        let [width, height] = self.size();
        let (base, matching) = (Arg::Buffer(features.base), Arg::Buffer(features.matching));
        vec![Arg::Buffer(words), base, matching, Arg::I32(features.row as i32), width, height]
    }

    /// The map, and the buffer that a filter writes it to, which becomes the map.
    pub fn begin_filter(&mut self) -> (BufferId, BufferId) {
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
        let stage = self.stage(stage);
        self.plan.launch(stage, kernel, grid, block, args)
    }
}

impl Plan {
    /// Adds a launch in the main lane, which may be changed.
    pub(super) fn launch(
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
            chain: None,
            lane: Lane::Main,
            args,
        };
        self.steps.push(Step::Launch(launch));
        match self.steps.last_mut() {
            Some(Step::Launch(launch)) => launch,
            _ => unreachable!("a launch was just added"),
        }
    }
}
