//! What goes before the aggregation where the guide of P2 is smoothed, and where a window or a prior
//! supports the cost: then it is written down.

use super::super::cost::{is_stored, is_volume};
use super::super::geometry::{
    BLOCK_THREADS, CostTile, HISTOGRAM_BYTES, TEXTURE_TILE, THRESHOLD_THREADS, volume_columns,
};
use super::super::launch::{Arg, BufferId, Scope};
use super::builder::{Builder, COST_FEATURES, Features, PRIOR, Texture};

/// The stage that measures texture and noise.
const TEXTURE: &str = "texture";

impl Builder<'_> {
    /// Bytes of the volume of costs, 0 where none is written down.
    fn volume_bytes(&self, row: u32) -> usize {
        match is_stored(self.params) {
            true => {
                let columns = volume_columns(row, self.lanes) as usize;
                columns * self.height as usize * self.lanes.padded() as usize
            }
            false => 0,
        }
    }

    /// Prepares what the aggregation asks for costs.
    pub fn costs(&mut self) -> Features {
        let blends = if self.level.has_blends() { Some(self.blends()) } else { None };
        let features = self.features();
        if is_volume(self.params) {
            return Features { base: self.cost_volume(features, blends), ..features };
        }
        match is_stored(self.params) {
            true => {
                let volume =
                    self.plan.buffer("costs", self.volume_bytes(features.row), Scope::Lanes);
                self.window_sums(features, volume);
                Features { base: volume, ..features }
            }
            false => features,
        }
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

    /// The texture of the left picture, which is measured once.
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

    /// Weights and coarse disparities that support the cost of each pixel.
    fn blends(&mut self) -> BufferId {
        let Texture { ranges, threshold } = self.texture();
        let blends = self.plan.buffer("parts of the cost", 4 * self.picture_pixels(), Scope::Slot);
        let [width, height] = self.size();
        let kernel = self.kernel("blend", "blend");
        let (stage, coarse) = match self.coarse {
            Some(coarse) => (PRIOR, coarse),
            // Without a prior nobody looks at it.
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

    /// The costs, written down.
    fn cost_volume(&mut self, features: Features, blends: Option<BufferId>) -> BufferId {
        let volume = self.plan.buffer("costs", self.volume_bytes(features.row), Scope::Lanes);
        let tile = CostTile::of(self.params.window, self.lanes, self.level.size);
        let kernel = self.kernel("cost_volume", "cost_volume");
        let mut args = self.prepared(features.across, features);
        // Where all pixels are alike nobody looks at them.
        args.extend([blends.unwrap_or(features.across), volume].map(Arg::Buffer));
        let grid = tile.grid(self.level.size);
        let launch = self.launch("cost volume", kernel, grid, [tile.threads, 1], args);
        launch.shared_bytes = tile.shared_bytes;
        volume
    }

    /// Number of pixels of a picture.
    fn picture_pixels(&self) -> usize {
        self.width as usize * self.height as usize
    }
}
