//! The stage `compute_costs`: cost features and penalties P2. If a window or a prior supports the cost, or if
//! it is expensive, a volume of costs is stored as well.

use super::super::cost::{CostKernel, is_stored, is_volume};
use super::super::geometry::tiles::CostTile;
use super::super::geometry::{
    BLOCK_THREADS, HISTOGRAM_BYTES, Prepared, TEXTURE_TILE, THRESHOLD_THREADS, prepared_row,
    volume_columns,
};
use super::super::launch::{Arg, BufferId, Scope};
use super::builder::{Builder, COST_FEATURES, Features, PRIOR, Texture};
use crate::matching::Guide;

/// Stage in timing reports: texture and noise.
const TEXTURE: &str = "texture";

impl Builder<'_> {
    /// Computes the matching costs, or their features if the aggregation computes them.
    pub fn compute_costs(&mut self) -> Features {
        let blends = if self.level.has_blends() { Some(self.blends()) } else { None };
        let features = self.features(blends);
        if self.params.is_local() || !is_stored(self.params) {
            return features;
        }
        let columns = volume_columns(features.row, self.lanes) as usize;
        let bytes = columns * self.height as usize * self.lanes.padded() as usize;
        let volume = self.plan.buffer("costs", bytes, Scope::Concurrent);
        match is_volume(self.params) {
            true => self.cost_volume(features, blends, volume),
            false => self.aggregate_windows(features, volume),
        }
        Features { base: volume, ..features }
    }

    /// Computes the cost features of both pictures, the penalties, and the slants of the expected surface.
    fn features(&mut self, blends: Option<BufferId>) -> Features {
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
            // It is read only if paths follow a surface, which the support then holds.
            blends: blends.unwrap_or(guide),
        };
        let kernel = self.kernel("compute_features", "compute_features");
        let [left, right] = self.pictures;
        let [width, height] = self.size();
        let args = vec![
            Arg::Buffer(left),
            Arg::Buffer(right),
            Arg::Buffer(guide),
            table,
            width,
            height,
            Arg::I32(row as i32),
            Arg::Buffer(features.down),
            Arg::Buffer(features.up),
            Arg::Buffer(features.across),
            Arg::Buffer(features.base),
            Arg::Buffer(features.matching),
            Arg::Buffer(features.blends),
        ];
        let grid = [row.div_ceil(BLOCK_THREADS), self.height];
        self.launch(COST_FEATURES, kernel, grid, [BLOCK_THREADS, 1], args);
        features
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

    fn cost_volume(&mut self, features: Features, blends: Option<BufferId>, volume: BufferId) {
        let tile = CostTile::of(self.params.window, self.lanes, self.level.size, self.device);
        let kernel = self.kernel("compute_costs", "compute_costs");
        let mut args = self.prepared(features.across, features);
        // If the support is the same for all pixels, the kernel does not read it.
        args.extend([blends.unwrap_or(features.across), volume].map(Arg::Buffer));
        let grid = tile.grid(self.level.size);
        let launch = self.launch("cost volume", kernel, grid, [tile.threads, 1], args);
        launch.shared_bytes = tile.shared_bytes;
    }

    fn picture_pixels(&self) -> usize {
        self.width as usize * self.height as usize
    }
}
