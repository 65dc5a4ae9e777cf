//! The filters that follow the winner, in the order of the definition; each is launched where it is on.

use super::super::geometry::{
    BLOCK_THREADS, MEDIAN_TILE, SPECKLE_ROWS, SPECKLE_STEPS, SPECKLE_TILE, WARP,
};
use super::super::launch::{Arg, Scope};
use super::super::units::Job;
use super::builder::Builder;
use crate::calibration::Rectifier;
use crate::frame::Eye;
use crate::matching::filter::Filter;

impl Builder<'_> {
    /// Goes from the winners to the map, which is that of the plan at the end.
    pub fn filters(&mut self, job: &Job) {
        self.plan.buffers[self.winners.0].bytes = 4 * self.pixels();
        match self.params.left_right {
            Some(_) => self.left_right(),
            None => self.disparities(),
        }
        for filter in self.params.filters() {
            match filter {
                Filter::ValidMask => {
                    if let Some(rectifier) = job.rectifier.filter(|_| job.is_masked()) {
                        self.valid_mask(rectifier);
                    }
                }
                Filter::Median(_) => self.median(),
                Filter::Speckle(_) => self.speckle(),
                Filter::Smoothing(_) => self.smoothing(filter),
            }
        }
        self.plan.disparity = self.map;
    }

    /// Takes the disparities of the winners, unchecked.
    fn disparities(&mut self) {
        let args = vec![Arg::Buffer(self.winners)];
        self.pixelwise("winner", "disparities", "disparities", args);
    }

    fn left_right(&mut self) {
        let args = vec![Arg::Buffer(self.winners), Arg::Buffer(self.right)];
        self.pixelwise("left-right", "left_right", "left_right", args);
    }

    /// Takes out what the cameras have not seen, as the rectifier knows it.
    fn valid_mask(&mut self, rectifier: &Rectifier) {
        let pixels = self.width as usize * self.height as usize;
        let mut mask = |name, eye| {
            let seen = match rectifier.map(eye).mask() {
                Some(mask) => mask.pixels().iter().map(|&seen| u8::from(seen)).collect(),
                None => vec![1; pixels],
            };
            Arg::Buffer(self.plan.table(name, seen))
        };
        let (left, right) = (mask("left mask", Eye::Left), mask("right mask", Eye::Right));
        let args = vec![Arg::Buffer(self.winners), left, right];
        self.pixelwise("valid mask", "filter_valid_mask", "valid_mask", args);
    }

    /// A kernel that goes through the winners and the map pixel by pixel; it takes the lengths of their
    /// rows and the map after `args`.
    fn pixelwise(
        &mut self,
        stage: &'static str,
        unit: &str,
        symbol: &'static str,
        mut args: Vec<Arg>,
    ) {
        let kernel = self.plan.kernel(unit, symbol);
        let [columns, width] = [self.columns, self.width].map(|n| Arg::I32(n as i32));
        args.extend([columns, width, Arg::Buffer(self.map)]);
        let grid = [self.width.div_ceil(BLOCK_THREADS), self.height];
        self.launch(stage, kernel, grid, [BLOCK_THREADS, 1], args);
    }

    fn median(&mut self) {
        let (from, to) = self.filtered();
        let kernel = self.plan.kernel("filter_median", "median");
        let [width, height] = self.size();
        let args = vec![Arg::Buffer(from), width, height, Arg::Buffer(to)];
        let [across, down] = MEDIAN_TILE;
        let grid = [self.width.div_ceil(across), self.height.div_ceil(down)];
        self.launch("median", kernel, grid, [across / 2, down], args);
    }

    fn smoothing(&mut self, filter: Filter) {
        let count = self.width as usize * self.height as usize;
        let state = self.plan.state(filter.name(), filter.state_len(count));
        let kernel = self.plan.kernel("filter_smoothing", "smoothing");
        let args = vec![
            Arg::I32(count as i32),
            Arg::Known(state),
            Arg::Buffer(state),
            Arg::Buffer(self.map),
        ];
        let grid = [count.div_ceil(BLOCK_THREADS as usize) as u32, 1];
        self.launch("smoothing", kernel, grid, [BLOCK_THREADS, 1], args).ordered = true;
    }

    fn speckle(&mut self) {
        let count = self.width as usize * self.height as usize;
        let labels = Arg::Buffer(self.plan.buffer("speckle labels", 4 * count, Scope::Slot));
        let sizes = Arg::Buffer(self.plan.buffer("speckle sizes", 4 * count, Scope::Slot));
        let map = Arg::Buffer(self.map);
        let [width, height] = self.size();
        let pixels = Arg::I32(count as i32);
        let tiles = [self.width, self.height].map(|n| n.div_ceil(SPECKLE_TILE));
        let runs = [count.div_ceil((BLOCK_THREADS * SPECKLE_STEPS) as usize) as u32, 1];
        let mut speckle = |symbol, grid, block, args| {
            let kernel = self.plan.kernel("filter_speckle", symbol);
            self.launch("speckle", kernel, grid, block, args);
        };
        let label = [WARP, SPECKLE_TILE / SPECKLE_ROWS];
        speckle("speckle_label", tiles, label, vec![map, width, height, labels, sizes]);
        speckle("speckle_merge", tiles, [WARP, 2], vec![map, width, height, labels]);
        speckle("speckle_count", runs, [BLOCK_THREADS, 1], vec![pixels, labels, sizes]);
        speckle("speckle_remove", runs, [BLOCK_THREADS, 1], vec![map, pixels, labels, sizes]);
    }
}
