//! Builder of the part of a plan that matches a level: the buffers shared by its stages, and methods that add
//! kernels and launches.

use super::super::device::Properties;
use super::super::geometry::VectorLayout;
use super::super::geometry::strips::Strips;
use super::super::launch::{Arg, BufferId, KernelId, Lane, Launch, Occupancy, Plan, Scope, Step};
use super::super::levels::Level;
use super::information::Information;
use crate::matching::Params;

/// Builder of the part of a plan that matches a level.
pub(super) struct Builder<'a> {
    pub level: &'a Level,
    pub params: &'a Params,
    pub device: &'a Properties,
    pub occupancy: &'a dyn Occupancy,
    /// Division of the picture into strips, if sweeps aggregate the costs.
    pub strips: Option<Strips>,
    /// Both pictures of the level.
    pub pictures: [BufferId; 2],
    /// The map of the next coarser level.
    pub coarse: Option<BufferId>,
    /// The same before its filters, if range windows need it.
    pub unfiltered: Option<BufferId>,
    /// The prior map, of an uploaded pair or predicted by a network.
    pub given: Option<BufferId>,
    /// State of mutual information, if it is the cost.
    pub information: Option<Information>,
    pub width: u32,
    pub height: u32,
    pub lanes: VectorLayout,
    /// Columns per row of winners: the picture's, or those of all strips.
    pub columns: u32,
    pub plan: &'a mut Plan,
    /// The winners of the left picture (`disparity.cuh`).
    pub winners: BufferId,
    /// Keys of the right picture's winners, if they are checked.
    pub right: BufferId,
    /// Peaks of the winners, if the confidence is requested.
    pub peaks: BufferId,
    /// The map after the filters so far.
    pub map: BufferId,
    /// Texture of the left picture, once measured.
    pub texture: Option<Texture>,
    /// Left valid mask as a table, once made.
    pub seen_left: Option<Arg>,
    /// A second map, for filters that do not work in place.
    spare: Option<BufferId>,
}

/// Output of `texture.cu`.
#[derive(Clone, Copy)]
pub(super) struct Texture {
    /// Range of grey levels around each pixel.
    pub ranges: BufferId,
    pub threshold: BufferId,
}

/// Output of `compute_features.cu` (`cost.cuh`).
#[derive(Clone, Copy)]
pub(super) struct Features {
    /// Words of the left picture's pixels, with the penalties and slants of the paths down, up and across.
    pub down: BufferId,
    pub up: BufferId,
    pub across: BufferId,
    /// Features of the left and of the right picture. `base` is the volume of a stored cost, or the table of
    /// a cost from a table.
    pub base: BufferId,
    pub matching: BufferId,
    /// Columns of a prepared row.
    pub row: u32,
    /// The guide picture of P2, and the table of P2 by brightness step.
    pub guide: BufferId,
    pub penalties: Arg,
    /// Support of each pixel's cost, which holds the expected candidates.
    pub blends: BufferId,
    /// Range windows (`choose_windows.cu`).
    pub windows: BufferId,
}

/// Stage in timing reports: cost features.
pub(super) const COST_FEATURES: &str = "cost features";

/// Stage in timing reports: a coarse level, except for its horizontal paths.
pub(super) const PRIOR: &str = "prior";

/// Stages in timing reports: the horizontal paths, and those of a coarse level.
pub(super) const HORIZONTAL: &str = "aggregation, horizontal";
const PRIOR_HORIZONTAL: &str = "prior, horizontal";

impl<'a> Builder<'a> {
    /// Makes the builder for a level with these pictures; the plan already has the coarser level.
    pub fn new(
        plan: &'a mut Plan,
        level: &'a Level,
        pictures: [BufferId; 2],
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
            coarse: None,
            unfiltered: None,
            given: None,
            information: None,
            width: width as u32,
            height: height as u32,
            lanes: VectorLayout::of(params),
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

    /// Name in timing reports of a stage of this level.
    pub fn stage(&self, name: &'static str) -> &'static str {
        match (self.level.number, name) {
            (0, _) => name,
            (_, HORIZONTAL) => PRIOR_HORIZONTAL,
            _ => PRIOR,
        }
    }

    /// Number of pixels, including those of the last strip outside the picture.
    pub fn pixels(&self) -> usize {
        self.columns as usize * self.height as usize
    }

    /// Width and height as kernel arguments.
    pub fn size(&self) -> [Arg; 2] {
        [self.width, self.height].map(|n| Arg::I32(n as i32))
    }

    /// First arguments of every kernel that computes costs: words of the pixels, features and the size.
    pub fn prepared(&self, words: BufferId, features: Features) -> Vec<Arg> {
        let [width, height] = self.size();
        let (base, matching) = (Arg::Buffer(features.base), Arg::Buffer(features.matching));
        vec![Arg::Buffer(words), base, matching, Arg::I32(features.row as i32), width, height]
    }

    /// Begins a filter that does not work in place: returns the map and the buffer for its output, which
    /// becomes the map.
    pub fn begin_filter(&mut self) -> (BufferId, BufferId) {
        let bytes = self.plan.buffers[self.map.0].bytes;
        let to = self.spare.take();
        let to = to.unwrap_or_else(|| self.plan.buffer("second disparity", bytes, Scope::Slot));
        let from = std::mem::replace(&mut self.map, to);
        self.spare = Some(from);
        (from, to)
    }

    /// Adds a launch in the main lane and returns it for changes.
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
    /// Adds a launch in the main lane and returns it for changes.
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
