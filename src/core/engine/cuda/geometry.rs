//! Layout of a picture and a range of disparities over the threads of a device: the constants of the kernels.
//! Some are computed on both sides: macros that begin with EXPECTED (`units.rs`) are compared with the
//! kernels' own formulas at compile time.

pub(super) mod strips;
pub(super) mod tiles;

use super::cost::{CostKernel, is_stored};
use crate::matching::residuals::RESIDUAL_MAX;
use crate::matching::temporal::shifts::{SUMS, SUMS_OF_REFERENCE};
use crate::matching::texture::RESPONSE_MAX;
use crate::matching::windows::{BLOCK, BLOCKS};
use crate::matching::{Cost, Params, Paths};

pub(super) const WARP: u32 = 32;

/// Threads of a block of pixel-wise kernels.
pub(super) const BLOCK_THREADS: u32 = 256;

/// Width and height in pixels of the output of a median block.
pub(super) const MEDIAN_TILE: [u32; 2] = [64, 8];

/// Side in pixels of the output of a confidence block, one thread per pixel.
pub(super) const CONFIDENCE_TILE: u32 = 32;

/// Speckle filter: side of a tile in pixels, rows of a tile per warp, and pixels per thread.
pub(super) const SPECKLE_TILE: u32 = WARP;
pub(super) const SPECKLE_ROWS: u32 = 4;
pub(super) const SPECKLE_STEPS: u32 = 4;

/// Texture kernel: tile size in pixels, threads of the noise threshold, bytes of its histogram (an even
/// number of words).
pub(super) const TEXTURE_TILE: [u32; 2] = [64, 32];
pub(super) const THRESHOLD_THREADS: u32 = 1024;
pub(super) const HISTOGRAM_BYTES: usize = 4 * (RESPONSE_MAX + 1).next_multiple_of(2);

/// Width and height in pixels of a block's output in a half-size image.
pub(super) const SMALL_TILE: [u32; 2] = [32, 8];

/// Bytes of the histograms of residuals and of responses of the noise filter.
pub(super) const MAGNITUDE_BYTES: usize = 4 * (RESIDUAL_MAX as usize + 1 + RESPONSE_MAX + 1);

/// Bytes of the sums for the shifts of `history` pictures: over the reference, and with each picture.
pub(super) fn shift_sum_bytes(history: usize) -> usize {
    8 * (SUMS_OF_REFERENCE + SUMS * history)
}

/// Padding of a row of the cost volume for the halos of the first and the last strip, in columns.
pub(super) const VOLUME_BESIDE: u32 = 8;

/// Largest number of columns per load of the horizontal paths, and their warps per block.
const CHUNK_MAX: u32 = 32;
pub(super) const HORIZONTAL_WARPS: u32 = 2;

/// Sums of the whole picture: warps per block, and pixels of a row per block of the winner kernel.
pub(super) const PLAIN_WARPS: u32 = 4;
pub(super) const SEGMENT: u32 = 128;

/// Parts of a launch of `compute_features.cu`.
pub(super) const PART_FEATURES: i32 = 1;
pub(super) const PART_PENALTIES: i32 = 2;

/// Padding of a prepared row for the halos of the first and the last strip, in columns.
pub(super) const BESIDE: u32 = 64;

/// A pixel's candidates (`lanes.cuh`): `group` lanes with `registers` registers of two candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VectorLayout {
    pub group: u32,
    pub registers: u32,
    /// Candidates of the range with padding: more than those of a pixel if it has range windows.
    pub range: u32,
}

impl VectorLayout {
    /// Returns the layout with the least padding for 1 to 1024 candidates, or with a lane for each block of a range
    /// window.
    pub fn of(params: &Params) -> Self {
        let count = params.range.count;
        if params.windows {
            let range = count.next_multiple_of(BLOCK) as u32;
            return VectorLayout { group: BLOCKS as u32, registers: BLOCK as u32 / 2, range };
        }
        Self::of_whole(count)
    }

    fn of_whole(count: usize) -> Self {
        const LAYOUTS: [(u32, u32); 11] = [
            (4, 2),
            (4, 4),
            (4, 8),
            (4, 12),
            (8, 8),
            (8, 12),
            (16, 8),
            (16, 12),
            (32, 8),
            (32, 12),
            (32, 16),
        ];
        let layouts = LAYOUTS.map(|(group, registers)| {
            let range = 2 * group * registers;
            VectorLayout { group, registers, range }
        });
        let fits = layouts.into_iter().find(|lanes| lanes.padded() as usize >= count);
        fits.unwrap_or(layouts[LAYOUTS.len() - 1])
    }

    /// Number of candidates with padding, and bytes of a pixel's path deltas.
    pub fn padded(self) -> u32 {
        2 * self.half()
    }

    /// Words of a vector: half of the candidates.
    pub fn half(self) -> u32 {
        self.group * self.registers
    }

    /// Reports whether a pixel tries a part of the range.
    pub fn is_windowed(self) -> bool {
        self.range > self.padded()
    }

    /// Candidates from a register's low half to its high one.
    fn high_half(self) -> u32 {
        if self.is_windowed() { self.registers } else { self.half() }
    }

    /// Words of a path state in memory: a vector and its minimum.
    fn state_words(self) -> u32 {
        self.half() + 4
    }

    /// Bytes of a column's path states, for the three paths of a sweep.
    pub fn state_bytes(self) -> u32 {
        3 * 4 * self.state_words()
    }

    /// Bytes of a pixel's sums of path deltas over a sweep: one byte per candidate if they fit.
    pub fn sum_bytes(self, params: &Params) -> u32 {
        if sums_fit_bytes(params) { self.padded() } else { 2 * self.padded() }
    }

    /// Layout for the horizontal paths. An arithmetically expensive cost gets half the registers in twice the
    /// lanes, so that twice as many warps hide latency.
    pub fn horizontal(self, params: &Params) -> Self {
        let (group, registers) = (2 * self.group, self.registers / 2);
        let halved = VectorLayout { group, registers, ..self };
        let cheap = is_stored(params) || matches!(params.cost, Cost::Ad { window: 1, .. });
        if cheap || halved.group > WARP || !halved.registers.is_multiple_of(2) {
            self
        } else {
            halved
        }
    }

    pub fn pixels(self) -> u32 {
        WARP / self.group
    }
}

/// Sizes of the prepared features of a cost (`cost.cuh`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prepared {
    pub base_words: u32,
    pub planes: u32,
    pub columns: u32,
    pub reach: u32,
    pub margin: u32,
}

impl Prepared {
    pub fn of(cost: &CostKernel, lanes: VectorLayout) -> Self {
        let &CostKernel { base_words, planes, columns, margin, .. } = cost;
        let reach = match (planes, columns) {
            (0, _) => 0,
            (_, 2) => lanes.range - lanes.high_half(),
            _ => lanes.range,
        };
        Prepared { base_words, planes, columns, reach, margin }
    }

    pub fn for_aggregation(params: &Params, lanes: VectorLayout) -> Self {
        Self::of(&CostKernel::for_aggregation(params, lanes.half()), lanes)
    }

    /// Number of prepared windows in a sweep's shared memory; columns of a stored cost are larger.
    pub fn windows(self) -> u32 {
        if self.planes == 0 { 4 } else { 8 }
    }

    /// Columns per load of the horizontal paths.
    pub fn chunk(self) -> u32 {
        if self.planes == 0 { 8 } else { CHUNK_MAX }
    }

    /// Words of a window of this many columns in shared memory: `WINDOW_WORDS`.
    fn window_words(self, columns: u32, lanes: VectorLayout) -> u32 {
        let plane = (columns + self.reach) / self.columns;
        let shift = if lanes.registers > lanes.pixels() { lanes.pixels() / 2 } else { 16 };
        let pitch = plane.next_multiple_of(32) + shift;
        columns * (1 + self.base_words) + self.planes * pitch
    }

    /// Shared memory of a block of the horizontal paths with this layout, in bytes.
    pub fn horizontal_bytes(self, lanes: VectorLayout) -> u32 {
        let words = self.window_words(self.chunk() + 2 * self.margin, lanes);
        4 * HORIZONTAL_WARPS * 2 * lanes.pixels() * words
    }
}

/// Adjacent pixels per thread when grey levels are counted (`mutual_information.cu`).
pub(super) const COUNT_RUN: u32 = 8;

/// Columns of a prepared row for a picture of `columns` columns, including its last strip.
pub(super) fn prepared_row(columns: u32, lanes: VectorLayout) -> u32 {
    let inside = columns.next_multiple_of(CHUNK_MAX);
    (lanes.range + BESIDE + inside + BESIDE).next_multiple_of(32)
}

/// Columns of the cost volume for prepared rows of this length.
pub(super) fn volume_columns(row: u32, lanes: VectorLayout) -> u32 {
    row - lanes.range - 2 * BESIDE + 2 * VOLUME_BESIDE
}

/// Reports whether the sum of a sweep's path deltas fits a byte: `SUM_BYTES`.
fn sums_fit_bytes(params: &Params) -> bool {
    let paths = if params.paths == Paths::Four { 1 } else { 3 };
    paths * u32::from(params.p2) <= 255
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_candidates_has_a_layout() {
        let mut last = 0;
        for count in 1..=1024 {
            let lanes = VectorLayout::of_whole(count);
            assert!(lanes.padded() as usize >= count);
            assert!(lanes.registers.is_multiple_of(2) && lanes.group.is_power_of_two());
            assert!(lanes.padded() >= last);
            last = lanes.padded();
        }
        let expected = VectorLayout { group: 8, registers: 8, range: 128 };
        assert_eq!(VectorLayout::of_whole(128), expected);
        // A lane holds a block; the prepared rows have room for the whole range.
        let range = crate::frame::DisparityRange { min: 0, count: 100 };
        let params = Params { windows: true, range, ..Params::default() };
        let windowed = VectorLayout { group: 4, registers: 8, range: 112 };
        assert_eq!(VectorLayout::of(&params), windowed);
        assert_eq!((windowed.padded(), windowed.is_windowed()), (64, true));
        assert_eq!(VectorLayout::of_whole(129).padded(), 192);
        assert_eq!(VectorLayout::of_whole(600).padded(), 768);
    }
}
