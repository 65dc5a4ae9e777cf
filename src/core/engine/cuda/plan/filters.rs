//! The stages `check_consistency` and `filter`: the left-right check, then the filters in the order of the
//! definition. Only enabled ones are compiled and launched.

use super::super::geometry::{
    BLOCK_THREADS, CONFIDENCE_TILE, MAGNITUDE_BYTES, MEDIAN_TILE, SPECKLE_ROWS, SPECKLE_STEPS,
    SPECKLE_TILE, TEXTURE_TILE, WARP,
};
use super::super::job::Job;
use super::super::launch::{Arg, BufferId, Chain, Scope, Unit};
use super::builder::Builder;
use super::temporal::residuals;
use crate::frame::Eye;
use crate::matching::confidence::{self, model};
use crate::matching::filter::fill::{CONFIRMED_MAX, GAP_MAX, GAP_STEP_MAX};
use crate::matching::filter::{Filter, rays, steady};
use crate::matching::levels::prior_map_size;
use crate::matching::{Fill, FillRule, Params};
use crate::rectify::Rectifier;

/// Their kernels' sources as (name, text).
pub const SOURCES: &[(&str, &str)] = &kernels! {
    "check_consistency.cu", "filter_confidence.cu", "filter_valid_mask.cu", "filter_evidence.cu",
    "filter_fill.cu", "filter_median.cu", "filter_smoothing.cu", "filter_spatial.cu",
    "filter_speckle.cu", "filter_steady.cu",
};

/// Units of the stages after the winner, one per enabled filter.
pub fn units(job: &Job) -> Vec<Unit> {
    let filters = job.params.filters().filter_map(|filter| unit(job, filter));
    std::iter::once(Unit::new("check_consistency.cu").pixelwise()).chain(filters).collect()
}

/// Unit of a filter, if it has one of its own.
fn unit(job: &Job, filter: Filter) -> Option<Unit> {
    let pixelwise = |file| Unit::new(file).pixelwise();
    Some(match filter {
        Filter::ValidMask if job.is_masked() => pixelwise("filter_valid_mask.cu"),
        Filter::ValidMask | Filter::ConfidenceOfKnown => return None,
        Filter::Confidence { .. } => pixelwise("filter_confidence.cu")
            .define("LEVELS", confidence::LEVELS)
            .define("STEPS", confidence::STEPS)
            .define("TILE", CONFIDENCE_TILE),
        Filter::Median(_) => Unit::new("filter_median.cu")
            .define("TILE_WIDTH", MEDIAN_TILE[0])
            .define("TILE_HEIGHT", MEDIAN_TILE[1]),
        Filter::Speckle(_) => pixelwise("filter_speckle.cu")
            .define("ROWS", SPECKLE_ROWS)
            .define("STEPS", SPECKLE_STEPS),
        Filter::Evidence(_) => pixelwise("filter_evidence.cu")
            .define("TILE_WIDTH", TEXTURE_TILE[0])
            .define("TILE_HEIGHT", TEXTURE_TILE[1])
            .define("MASKED", u8::from(job.is_masked())),
        Filter::Spatial(_) => pixelwise("filter_spatial.cu"),
        Filter::Smoothing(smoothing) => pixelwise("filter_smoothing.cu")
            .define("SMOOTHING_WEIGHT", smoothing.weight_256)
            .define("SMOOTHING_GUARD", smoothing.guard_16),
        Filter::Steady(steady) => residuals(pixelwise("filter_steady.cu"))
            .define("STRENGTH", steady.strength)
            .define("STEADY_HEADER", steady::HEADER),
        Filter::Fill(fill) => fill_unit(job, fill),
    })
}

fn fill_unit(job: &Job, fill: Fill) -> Unit {
    let row = 1 << rays::LEFT | 1 << rays::RIGHT;
    let (rays, reach) = match fill.rule {
        FillRule::Row => (row, fill.reach),
        FillRule::Rays | FillRule::Network | FillRule::NetworkOrRays => (0xff, fill.reach),
        FillRule::Gaps => (row | 1 << rays::UP | 1 << rays::DOWN, fill.reach.min(GAP_MAX)),
    };
    Unit::new("filter_fill.cu")
        .pixelwise()
        .define("RAYS", rays)
        .define("REACH", reach)
        .define("GAPS", u8::from(fill.rule == FillRule::Gaps))
        .define("GAP_STEP_MAX", GAP_STEP_MAX)
        .define("NETWORK", u8::from(fill.rule.asks_network()))
        .define("OR_RAYS", u8::from(fill.rule == FillRule::NetworkOrRays))
        .define("PRIOR_MAP", u8::from(takes_prior(job.params, job.size, fill)))
        .define("CONFIRMED_MAX", CONFIRMED_MAX)
        .define("MASKED", u8::from(job.is_masked()))
}

/// Reports whether hole filling reads the prior map of the pair.
fn takes_prior(params: &Params, size: (usize, usize), fill: Fill) -> bool {
    fill.rule.asks_network() && prior_map_size(params, size).is_some()
}

impl Builder<'_> {
    /// Makes the map of the winners, and applies the left-right check, if enabled.
    pub fn check_consistency(&mut self) {
        let stage = if self.params.left_right.is_some() { "left-right" } else { "winner" };
        let args = vec![Arg::Buffer(self.winners), Arg::Buffer(self.right)];
        self.pixelwise(stage, "check_consistency", "check_consistency", args);
    }

    /// The map before the filters, which change it, for the range windows of the finer level.
    pub fn unfiltered(&mut self) -> BufferId {
        let bytes = self.plan.buffers[self.map.0].bytes;
        let unfiltered = self.plan.buffer("coarse disparity before filters", bytes, Scope::Slot);
        let map = std::mem::replace(&mut self.map, unfiltered);
        self.check_consistency();
        self.map = map;
        unfiltered
    }

    pub fn filter(mut self, job: &Job) -> BufferId {
        for filter in self.params.filters() {
            match filter {
                Filter::ValidMask => {
                    if let Some(rectifier) = job.rectifier.filter(|_| job.is_masked()) {
                        self.valid_mask(rectifier);
                    }
                    if let (0, Some(information)) = (self.level.number, self.information) {
                        let pixels = self.width as usize * self.height as usize;
                        self.plan.remember(information, self.map, pixels);
                    }
                }
                Filter::Confidence { .. } => self.confidence(),
                Filter::Median(_) => self.median(),
                Filter::Speckle(_) => self.speckle(),
                Filter::Evidence(_) => self.evidence(),
                Filter::Spatial(_) => self.spatial(filter),
                Filter::Smoothing(_) => self.smoothing(filter),
                Filter::Steady(_) => self.steady(filter),
                Filter::ConfidenceOfKnown => self.confidence_of_known(filter),
                Filter::Fill(fill) => self.fill(fill),
            }
        }
        self.map
    }

    /// Applies the rectifier's valid masks.
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
        self.seen_left = Some(left);
        let args = vec![Arg::Buffer(self.winners), left, right];
        self.pixelwise("valid mask", "filter_valid_mask", "valid_mask", args);
    }

    /// Adds a pixel-wise kernel on the winners and the map. After `args` it takes the lengths of their rows
    /// and the map.
    fn pixelwise(
        &mut self,
        stage: &'static str,
        unit: &str,
        symbol: &'static str,
        mut args: Vec<Arg>,
    ) {
        let kernel = self.kernel(unit, symbol);
        let [columns, width] = [self.columns, self.width].map(|n| Arg::I32(n as i32));
        args.extend([columns, width, Arg::Buffer(self.map)]);
        let grid = [self.width.div_ceil(BLOCK_THREADS), self.height];
        self.launch(stage, kernel, grid, [BLOCK_THREADS, 1], args);
    }

    fn confidence(&mut self) {
        let pixels = self.width as usize * self.height as usize;
        let confidence = self.plan.buffer("confidence", pixels, Scope::Slot);
        self.plan.confidence = Some(confidence);
        let tables = model::TABLES.iter().map(|&number| number as u8);
        let model = tables.chain(model::CONFIDENCES).collect();
        let model = self.plan.table("model of the confidence", model);
        let (from, to) = self.begin_filter();
        let kernel = self.kernel("filter_confidence", "confidence");
        let [left, right] = self.pictures;
        let [width, height] = self.size();
        let args = vec![
            Arg::Buffer(left),
            Arg::Buffer(right),
            Arg::Buffer(self.peaks),
            Arg::Buffer(from),
            Arg::Buffer(model),
            Arg::I32(self.columns as i32),
            width,
            height,
            Arg::Buffer(to),
            Arg::Buffer(confidence),
        ];
        let grid = [self.width, self.height].map(|side| side.div_ceil(CONFIDENCE_TILE));
        self.launch("confidence", kernel, grid, [CONFIDENCE_TILE; 2], args);
    }

    /// Clears the confidence of pixels that the filters have invalidated since.
    fn confidence_of_known(&mut self, filter: Filter) {
        let Some(confidence) = self.plan.confidence else { return };
        let count = self.width as usize * self.height as usize;
        let kernel = self.kernel("filter_confidence", "confidence_of_known");
        let args = vec![Arg::I32(count as i32), Arg::Buffer(self.map), Arg::Buffer(confidence)];
        let grid = [count.div_ceil(BLOCK_THREADS as usize) as u32, 1];
        self.launch(filter.name(), kernel, grid, [BLOCK_THREADS, 1], args);
    }

    fn median(&mut self) {
        let (from, to) = self.begin_filter();
        let kernel = self.kernel("filter_median", "median");
        let [width, height] = self.size();
        let args = vec![Arg::Buffer(from), width, height, Arg::Buffer(to)];
        let [across, down] = MEDIAN_TILE;
        let grid = [self.width.div_ceil(across), self.height.div_ceil(down)];
        self.launch("median", kernel, grid, [across / 2, down], args);
    }

    fn evidence(&mut self) {
        let count = self.width as usize * self.height as usize;
        let evidence = Arg::Buffer(self.plan.buffer("map of the evidence", 2 * count, Scope::Slot));
        let (map, left) = (Arg::Buffer(self.map), Arg::Buffer(self.pictures[0]));
        let threshold = Arg::Buffer(self.texture().threshold);
        let [width, height] = self.size();
        let kernel = self.kernel("filter_evidence", "evidence");
        let [across, down] = TEXTURE_TILE;
        let grid = [self.width.div_ceil(across), self.height.div_ceil(down)];
        // Bits of the pixels at which rays end, along rows, diagonals and columns.
        let words = self.height * self.width.div_ceil(32);
        let pitch = self.width + 31;
        let of_lines = 3 * self.height.div_ceil(32) * pitch;
        let [rows, lines] = [("ends of rays in rows", words), ("ends of rays in lines", of_lines)]
            .map(|(name, words)| {
                Arg::Buffer(self.plan.buffer(name, 4 * words as usize, Scope::Slot))
            });
        let mut args = vec![left, threshold, map];
        args.extend(self.seen_left);
        args.extend([width, height, evidence, rows, lines]);
        self.launch("evidence", kernel, grid, [BLOCK_THREADS, 1], args);

        let kernel = self.kernel("filter_evidence", "diagonals");
        let grid = [pitch.div_ceil(BLOCK_THREADS), self.height.div_ceil(32)];
        self.launch("evidence", kernel, grid, [BLOCK_THREADS, 1], vec![width, height, lines]);

        let kernel = self.kernel("filter_evidence", "supported");
        let confidence = Arg::Buffer(self.plan.confidence.unwrap_or(self.map));
        let args = vec![evidence, rows, lines, width, height, map, confidence];
        let grid = [self.width.div_ceil(BLOCK_THREADS), self.height];
        self.launch("evidence", kernel, grid, [BLOCK_THREADS, 1], args);
    }

    fn spatial(&mut self, filter: Filter) {
        for symbol in ["smooth_rows", "smooth_columns"] {
            let (from, to) = self.begin_filter();
            let kernel = self.kernel("filter_spatial", symbol);
            let mut args = vec![Arg::Buffer(from), Arg::Buffer(self.pictures[0])];
            args.extend(self.size());
            args.push(Arg::Buffer(to));
            let grid = [self.width.div_ceil(BLOCK_THREADS), self.height];
            self.launch(filter.name(), kernel, grid, [BLOCK_THREADS, 1], args);
        }
    }

    fn smoothing(&mut self, filter: Filter) {
        let count = self.width as usize * self.height as usize;
        let state = self.plan.state(filter.name(), filter.state_len(count));
        let kernel = self.kernel("filter_smoothing", "smoothing");
        let args = vec![
            Arg::I32(count as i32),
            Arg::Known(state),
            Arg::Buffer(state),
            Arg::Buffer(self.map),
        ];
        let grid = [count.div_ceil(BLOCK_THREADS as usize) as u32, 1];
        self.launch("smoothing", kernel, grid, [BLOCK_THREADS, 1], args).chain = Some(Chain::Maps);
    }

    fn steady(&mut self, filter: Filter) {
        let count = self.width as usize * self.height as usize;
        let state = self.plan.state(filter.name(), filter.state_len(count));
        let mut buffer = |name, bytes| self.plan.buffer(name, bytes, Scope::Slot);
        let residuals = Arg::Buffer(buffer("residuals of the mean picture", 2 * count));
        let magnitudes = Arg::Buffer(buffer("magnitudes of the mean picture", MAGNITUDE_BYTES));
        let limits = Arg::Buffer(buffer("limits of the mean picture", 16));
        let tickets = buffer("tickets of the steady map", 4 * 4);
        let ticket = |at: usize| Arg::At(tickets, 4 * at);
        let [width, height] = self.size();
        let left = Arg::Buffer(self.pictures[0]);
        let begin = vec![left, width, height, Arg::Known(state), Arg::Buffer(state), residuals];
        let mut compare = begin.clone();
        compare.extend([magnitudes, ticket(0), limits]);
        let mut steady = begin;
        steady.extend([limits, ticket(1), ticket(2), Arg::Buffer(self.map)]);
        steady.push(Arg::Buffer(self.plan.confidence.unwrap_or(self.map)));
        let [across, down] = TEXTURE_TILE;
        let grid = [self.width.div_ceil(across), self.height.div_ceil(down)];
        for (symbol, args) in [("compare", compare), ("steady", steady)] {
            let kernel = self.kernel("filter_steady", symbol);
            let launch = self.launch(filter.name(), kernel, grid, [BLOCK_THREADS, 1], args);
            launch.chain = Some(Chain::Maps);
        }
    }

    fn fill(&mut self, fill: Fill) {
        let (from, to) = self.begin_filter();
        let kernel = self.kernel("filter_fill", "fill");
        let [left, _] = self.pictures;
        let mut args = vec![Arg::Buffer(from), Arg::Buffer(left)];
        let prior = self.given.filter(|_| takes_prior(self.params, self.level.size, fill));
        args.extend(prior.map(Arg::Buffer));
        args.extend(self.seen_left);
        args.extend(self.size());
        args.push(Arg::Buffer(to));
        let grid = [self.width.div_ceil(BLOCK_THREADS), self.height];
        self.launch("fill", kernel, grid, [BLOCK_THREADS, 1], args);
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
            let kernel = self.kernel("filter_speckle", symbol);
            self.launch("speckle", kernel, grid, block, args);
        };
        let label = [WARP, SPECKLE_TILE / SPECKLE_ROWS];
        speckle("speckle_label", tiles, label, vec![map, width, height, labels, sizes]);
        speckle("speckle_merge", tiles, [WARP, 2], vec![map, width, height, labels]);
        speckle("speckle_count", runs, [BLOCK_THREADS, 1], vec![pixels, labels, sizes]);
        speckle("speckle_remove", runs, [BLOCK_THREADS, 1], vec![map, pixels, labels, sizes]);
    }
}
