//! Sizes that follow from the parameters and the image size.

use crate::matching::levels;
use crate::matching::windows::{self, BLOCK, CANDIDATES};
use crate::matching::{Cost, Params, Paths};

/// Rows of a band. The downward sweep stores its path vectors only at the start of each band.
const BAND_ROWS: usize = 8;
/// Columns of a tile of range windows (`windows.rs`) and around it, where costs are averaged.
const AROUND_TILE: usize = windows::TILE + 2 * RADIUS_MAX;
/// Largest radius of the window over which costs are averaged.
const RADIUS_MAX: usize = 2;
/// Elements for the costs of single pixels of a band in and around a tile of range windows.
pub(super) const TILE_COSTS: usize = (BAND_ROWS + 2 * RADIUS_MAX) * AROUND_TILE * CANDIDATES;
/// Elements for their sums over the rows of a window.
pub(super) const TILE_SUMS: usize = AROUND_TILE * CANDIDATES;
/// Columns of a tile; not below [`BAND_ROWS`].
pub(super) const TILE: usize = 32;

#[derive(Clone, Debug)]
pub struct Geometry {
    pub width: usize,
    pub height: usize,
    /// Whether range windows restrict the candidates of a pixel (`windows.rs`).
    pub windowed: bool,
    /// Number of candidates of a pixel: those of the range or of its window.
    pub count: usize,
    /// Candidates that any pixel can have, with those that pad vectors or the last block.
    pub reach: usize,
    /// Smallest candidate.
    pub min: i32,
    /// Vectors per pixel.
    pub chunks: usize,
    /// Bytes per pixel: `count` rounded up to whole vectors. The lanes beyond `count` always hold 255.
    pub depth: usize,
    /// Paths of one vertical sweep: 1 or 3.
    pub vertical: usize,
    pub upward: bool,
    /// Whether paths are followed band by band; false without paths and for knight's moves.
    pub banded: bool,
    /// Whether paths follow an expected surface.
    pub follows_surface: bool,
    /// Whether the costs of the whole image are kept for the upward sweep, not recomputed by band.
    pub keeps_costs: bool,
    /// Whether the deltas of two paths fit in one byte together.
    pub pairs_fit: bool,
    /// Rows of a band; the last may have fewer.
    pub band_rows: usize,
    pub bands: usize,
    pub tile: usize,
    /// Capacity in columns of the ring of downward deltas of a band; a power of two.
    pub ring: usize,
    /// Bytes per candidate in that ring: one for the vertical path, and one or two for both diagonal ones.
    pub kept: usize,
}

/// Reports whether the paths read stored costs: for all costs except a single difference.
pub fn writes_costs(params: &Params) -> bool {
    // Windows need a prior, so they are among the supported ones.
    let single = matches!(params.cost, Cost::Ad { window: 1, .. });
    !params.is_local() && (params.is_supported() || !single)
}

impl Geometry {
    /// The geometry for vectors of `lanes` candidates. `costs_anew`: whether every sweep computes the costs.
    pub fn new(
        params: &Params,
        (width, height): (usize, usize),
        lanes: usize,
        costs_anew: bool,
    ) -> Self {
        let windowed = levels::has_windows(params, (width, height));
        let count = if windowed { CANDIDATES } else { params.range.count };
        let chunks = count.div_ceil(lanes);
        let pairs_fit = u32::from(params.p2) * 2 <= 255;
        let (banded, upward) =
            (!matches!(params.paths, Paths::None | Paths::Sixteen), params.paths != Paths::Five);
        Self {
            width,
            height,
            windowed,
            count,
            reach: match windowed {
                true => params.range.count.next_multiple_of(BLOCK),
                false => chunks * lanes,
            },
            min: params.range.min,
            chunks,
            depth: chunks * lanes,
            vertical: if params.paths == Paths::Four { 1 } else { 3 },
            upward,
            banded,
            follows_surface: params.surface && params.prior.is_some(),
            keeps_costs: banded && upward && writes_costs(params) && !costs_anew,
            pairs_fit,
            band_rows: BAND_ROWS,
            bands: height.div_ceil(BAND_ROWS),
            tile: TILE,
            // The passes are one tile apart, and both lean over by a band.
            ring: (2 * TILE + 2 * BAND_ROWS).next_power_of_two(),
            kept: match params.paths {
                Paths::Four => 1,
                _ if pairs_fit => 2,
                _ => 3,
            },
        }
    }

    /// First row and number of rows of a band.
    pub fn band(&self, band: usize) -> (usize, usize) {
        let first = band * self.band_rows;
        (first, self.band_rows.min(self.height - first))
    }

    /// Number of tiles that cover a band of `rows` rows: they lean to the left by one pixel a row.
    pub fn tiles(&self, rows: usize) -> usize {
        (self.width + rows - 1).div_ceil(self.tile)
    }

    /// Columns of the `row`-th row of a tile, in the order of the sweep; may be empty.
    #[inline(always)]
    pub fn columns(&self, tile: usize, row: usize) -> (usize, usize) {
        let first = (tile * self.tile).saturating_sub(row);
        let end = ((tile + 1) * self.tile).saturating_sub(row).min(self.width);
        (first, end)
    }

    /// Bytes of one path's vectors along a band's border, with a zero pixel at either end.
    pub fn edge_stride(&self) -> usize {
        (self.width + 2) * self.depth
    }

    /// Length of a stripe of a mirrored right row (`mirrored_rows.rs`).
    pub fn stripe_len(&self) -> usize {
        (self.width - 1 + self.reach).div_ceil(self.chunks)
    }

    /// Length of a mirrored right row (`mirrored_rows.rs`).
    pub fn mirrored_stride(&self) -> usize {
        (self.chunks * self.stripe_len()).next_multiple_of(64)
    }

    /// Bytes of a row of the left view's planes (`features.rs`): whole vectors.
    pub fn feature_stride(&self) -> usize {
        self.width.next_multiple_of(64)
    }

    /// Slots for one path direction's vectors within a band: one per path that crosses the band.
    pub fn path_state_slots(&self) -> usize {
        self.width + 2 * self.band_rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::DisparityRange;

    #[test]
    fn the_tiles_of_a_band_cover_every_pixel_once() {
        let cost = Cost::Ad { truncation: 20, window: 1 };
        let params = Params::bare(DisparityRange { min: 0, count: 70 }, cost, (5, 50));
        for width in [1, 2, 31, 32, 33, 64, 100] {
            let geometry = Geometry::new(&params, (width, 19), 64, false);
            assert_eq!((geometry.depth, geometry.bands), (128, 3));
            for band in 0..3 {
                let (_, rows) = geometry.band(band);
                for row in 0..rows {
                    let mut next = 0;
                    for tile in 0..geometry.tiles(rows) {
                        let (first, end) = geometry.columns(tile, row);
                        if first < end {
                            assert_eq!(first, next);
                            next = end;
                        }
                    }
                    assert_eq!(next, width);
                }
            }
        }
    }
}
