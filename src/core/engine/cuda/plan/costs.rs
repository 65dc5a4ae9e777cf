//! The stage `compute_costs`: cost features and penalties P2. If a window or a prior supports the cost, or if
//! it is expensive, a volume of costs is stored as well.

use super::super::cost::{CostKernel, is_stored, is_volume};
use super::super::geometry::tiles::CostTile;
use super::super::geometry::{
    BLOCK_THREADS, HISTOGRAM_BYTES, PART_FEATURES, PART_PENALTIES, Prepared, TEXTURE_TILE,
    THRESHOLD_THREADS, WARP, prepared_row, volume_columns,
};
use super::super::launch::{Arg, BufferId, Lane, Scope, Step};
use super::builder::{Builder, COST_FEATURES, Features, PRIOR, Texture};
use crate::matching::Guide;
use crate::matching::prior::{half_range, limits};
use crate::matching::windows::{BLOCK, BLOCKS, TILE};

/// Stage in timing reports: texture and noise.
const TEXTURE: &str = "texture";

/// Pixels of a level for each multiprocessor above which it keeps all of them busy.
const PIXELS_OF_MULTIPROCESSOR: usize = 20_000;

impl Builder<'_> {
    /// Computes the matching costs from their features, unless the aggregation computes them.
    pub fn compute_costs(&mut self, mut features: Features) -> Features {
        if self.level.has_blends() {
            features.blends = self.blends();
        }
        if let (true, Some(coarse), Some(unfiltered)) =
            (self.params.windows, self.coarse, self.unfiltered)
        {
            features.windows = self.windows(coarse, unfiltered);
        }
        let with_features = if self.fills_device() { PART_FEATURES } else { 0 };
        self.compute_parts(features, PART_PENALTIES | with_features);
        if self.params.is_local() || !is_stored(self.params) {
            return features;
        }
        let columns = volume_columns(features.row, self.lanes) as usize;
        let bytes = columns * self.height as usize * self.lanes.padded() as usize;
        let volume = self.plan.buffer("costs", bytes, Scope::Concurrent);
        match is_volume(self.params) {
            true => self.cost_volume(features, volume),
            false => self.aggregate_windows(features, volume),
        }
        Features { base: volume, ..features }
    }

    /// Does what needs no coarser level: computes texture and, unless the level fills the device, features of
    /// the pictures, and clears the right winners (between the two sweeps that would slow down a stream of
    /// pairs by up to 8 %).
    pub fn compute_features(&mut self) -> Features {
        if self.params.left_right.is_some() {
            let (stage, buffer, lane) = (self.stage(COST_FEATURES), self.right, Lane::Main);
            self.plan.steps.push(Step::Memset { stage, buffer, value: 0xff, lane });
        }
        if self.level.has_blends() {
            self.texture();
        }
        let guide = match self.params.guide() {
            Guide::Picture => self.pictures[0],
            Guide::Smoothed => self.smoothed(),
        };
        let row = prepared_row(self.columns, self.lanes);
        let words = row as usize * self.height as usize;
        let prepared = Prepared::of(&CostKernel::of(self.params.cost), self.lanes);
        let penalties = self.params.p2_mode.table(self.params.p1, self.params.p2);
        let table = Arg::Buffer(self.plan.table("penalties", penalties.to_vec()));
        let looked_up = self.information.map(|information| information.table);
        let mut buffer = |name, words| self.plan.buffer(name, 4 * words, Scope::Slot);
        let planes = (prepared.planes / prepared.columns) as usize;
        let features = Features {
            down: buffer("penalties downwards", words),
            up: buffer("penalties upwards", words),
            across: buffer("penalties across", words),
            base: looked_up
                .unwrap_or_else(|| buffer("left features", words * prepared.base_words as usize)),
            matching: buffer("right features", words * planes),
            row,
            guide,
            penalties: table,
            // Read only if there is support, and if there are windows.
            blends: guide,
            windows: guide,
        };
        if !self.fills_device() {
            self.compute_parts(features, PART_FEATURES);
        }
        features
    }

    /// Reports whether the level keeps every multiprocessor busy, so that one launch for all parts is faster
    /// than features beside the coarser level (measured with 8 to 132 multiprocessors: docs/lab.md).
    fn fills_device(&self) -> bool {
        self.picture_pixels() > PIXELS_OF_MULTIPROCESSOR * self.device.multiprocessors as usize
    }

    /// Launches `compute_features` for these of its parts.
    fn compute_parts(&mut self, features: Features, parts: i32) {
        let kernel = self.kernel("compute_features", "compute_features");
        let [width, height] = self.size();
        let [left, right] = self.pictures.map(Arg::Buffer);
        let mut args = vec![left, right, Arg::Buffer(features.guide), features.penalties];
        args.extend([width, height, Arg::I32(features.row as i32)]);
        let Features { down, up, across, base, matching, blends, .. } = features;
        args.extend([down, up, across, base, matching, blends].map(Arg::Buffer));
        args.push(Arg::I32(parts));
        let grid = [features.row.div_ceil(BLOCK_THREADS), self.height];
        self.launch(COST_FEATURES, kernel, grid, [BLOCK_THREADS, 1], args);
    }

    /// The smoothed left picture.
    pub fn smoothed(&mut self) -> BufferId {
        let smoothed = self.plan.buffer("smoothed picture", self.picture_pixels(), Scope::Slot);
        let kernel = self.kernel("smoothed", "smoothed");
        let [width, height] = self.size();
        let args = vec![Arg::Buffer(self.pictures[0]), width, height, Arg::Buffer(smoothed)];
        let grid = [self.width.div_ceil(BLOCK_THREADS), self.height];
        self.launch(COST_FEATURES, kernel, grid, [BLOCK_THREADS, 1], args);
        smoothed
    }

    /// Returns the texture of the left picture, measured once.
    pub fn texture(&mut self) -> Texture {
        if let Some(texture) = self.texture {
            return texture;
        }
        let pixels = self.picture_pixels();
        let ranges = self.plan.buffer("ranges of grey levels", pixels, Scope::Slot);
        let histogram = self.plan.buffer("histogram of noise", HISTOGRAM_BYTES, Scope::Slot);
        let threshold = self.plan.buffer("noise threshold", size_of::<u32>(), Scope::Slot);
        let [width, height] = self.size();
        let kernel = self.kernel("texture", "texture");
        let args = vec![
            Arg::Buffer(self.pictures[0]),
            width,
            height,
            Arg::Buffer(ranges),
            Arg::Buffer(histogram),
        ];
        let [across, down] = TEXTURE_TILE;
        let grid = [self.width.div_ceil(across), self.height.div_ceil(down)];
        self.launch(TEXTURE, kernel, grid, [BLOCK_THREADS, 1], args);
        let kernel = self.kernel("texture", "threshold");
        let given = Arg::Threshold(self.level.number);
        let args = vec![Arg::Buffer(histogram), given, Arg::Buffer(threshold)];
        self.launch(TEXTURE, kernel, [1, 1], [THRESHOLD_THREADS, 1], args);
        *self.texture.insert(Texture { ranges, threshold })
    }

    /// Replaces the coarser map by the prior map of the pair, where that is known.
    pub fn replace_coarse(&mut self) {
        let (Some(given), Some(coarse)) = (self.given, self.coarse) else { return };
        let pixels = self.plan.buffers[given.0].bytes / size_of::<i16>();
        let [least, most] = limits(half_range(self.params.range)).map(|limit| limit.into());
        let kernel = self.kernel("blend", "replace");
        let [given, coarse] = [given, coarse].map(Arg::Buffer);
        let args = vec![given, Arg::I32(least), Arg::I32(most), Arg::I32(pixels as i32), coarse];
        let grid = [pixels.div_ceil(BLOCK_THREADS as usize) as u32, 1];
        self.launch(PRIOR, kernel, grid, [BLOCK_THREADS, 1], args);
    }

    /// Computes the support of each pixel's cost: weights and coarse disparities.
    fn blends(&mut self) -> BufferId {
        let Texture { ranges, threshold } = self.texture();
        let blends = self.plan.buffer("parts of the cost", 4 * self.picture_pixels(), Scope::Slot);
        let [width, height] = self.size();
        let kernel = self.kernel("blend", "blend");
        let (stage, coarse) = match self.coarse {
            Some(coarse) => (PRIOR, coarse),
            // Without a prior it is not read.
            None => (TEXTURE, self.map),
        };
        let args = vec![
            Arg::Buffer(ranges),
            Arg::Buffer(threshold),
            Arg::Buffer(coarse),
            width,
            height,
            Arg::Buffer(blends),
        ];
        let grid = [self.width.div_ceil(BLOCK_THREADS), self.height];
        self.launch(stage, kernel, grid, [BLOCK_THREADS, 1], args);
        blends
    }

    /// Chooses the range windows by the coarser map, and by what it was before its filters.
    fn windows(&mut self, coarse: BufferId, unfiltered: BufferId) -> BufferId {
        let [across, down] = [self.width, self.height].map(|side| side.div_ceil(TILE as u32));
        let tiles = across * down;
        let blocks = self.params.range.count.div_ceil(BLOCK);
        let mut buffer = |name, bytes| Arg::Buffer(self.plan.buffer(name, bytes, Scope::Slot));
        let votes = buffer("votes for blocks", tiles as usize * blocks);
        let seen = buffer("blocks seen", tiles as usize * 4 * blocks);
        let all = self.plan.buffer("votes of the picture", size_of::<u32>() * blocks, Scope::Slot);
        let bytes = size_of::<[u16; BLOCKS]>() * tiles as usize;
        let windows = self.plan.buffer("range windows", bytes, Scope::Slot);
        let (stage, lane) = (self.stage(PRIOR), Lane::Main);
        self.plan.steps.push(Step::Memset { stage, buffer: all, value: 0, lane });
        let half = [self.width, self.height].map(|side| Arg::I32(side.div_ceil(2) as i32));
        let [all, chosen, coarse, unfiltered] = [all, windows, coarse, unfiltered].map(Arg::Buffer);
        let counts = [across, tiles].map(|n| Arg::I32(n as i32));
        let grid = [tiles.div_ceil(BLOCK_THREADS / WARP), 1];
        let args = [&[coarse, unfiltered], &half[..], &counts, &[votes, seen, all]].concat();
        let kernel = self.kernel("choose_windows", "count_blocks");
        self.launch(PRIOR, kernel, grid, [BLOCK_THREADS, 1], args);
        let args = [&[votes, seen, all][..], &counts, &[chosen]].concat();
        let kernel = self.kernel("choose_windows", "choose_windows");
        self.launch(PRIOR, kernel, grid, [BLOCK_THREADS, 1], args);
        windows
    }

    fn cost_volume(&mut self, features: Features, volume: BufferId) {
        let tile = CostTile::of(self.params.window, self.lanes, self.level.size, self.device);
        let kernel = self.kernel("compute_costs", "compute_costs");
        let mut args = self.prepared(features.across, features);
        args.extend([features.blends, features.windows, volume].map(Arg::Buffer));
        let grid = tile.grid(self.level.size);
        let launch = self.launch("cost volume", kernel, grid, [tile.threads, 1], args);
        launch.shared_bytes = tile.shared_bytes;
    }

    fn picture_pixels(&self) -> usize {
        self.width as usize * self.height as usize
    }
}
