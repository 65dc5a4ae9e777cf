//! Pictures in tiles: each is matched alone, so that memory depends on the tile and not on the picture.
//!
//! A picture is cut into rows x columns of *cores* of nearly equal size. What is matched for a core is its
//! *window*: the core with a halo, so that paths come from beyond its border and its pixels find what they
//! match. Of the result only the core is kept: of the overlap of two neighbours each gives half. All windows of
//! a picture have the same size, and are moved inwards where they would reach beyond the picture.

use std::ops::Range;

use crate::frame::{DisparityMap, DisparityRange, INVALID, Image};
use crate::matching::{Params, match_pair};
use crate::pool::Pooled;

/// How a picture is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// Number of tiles down.
    pub rows: usize,
    /// Number of tiles across.
    pub columns: usize,
    /// Pixels that neighbouring windows have in common, at least; even.
    pub overlap: usize,
}

/// The tiles of a picture of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Width and height of the picture.
    pub size: (usize, usize),
    /// Width and height of every window.
    pub window: (usize, usize),
    /// The tiles, row by row.
    pub tiles: Vec<Tile>,
}

/// A tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    /// First column and row of its window.
    pub origin: (usize, usize),
    /// Columns of the picture that it gives.
    pub columns: Range<usize>,
    /// Rows of the picture that it gives.
    pub rows: Range<usize>,
}

/// What one direction is cut into: the cores, the length of the windows, and where each begins.
fn cut(length: usize, count: usize, halo: [usize; 2]) -> (usize, Vec<(usize, Range<usize>)>) {
    let count = count.clamp(1, length);
    let border = |i: usize| length * i / count;
    let longest = length.div_ceil(count);
    let window = (longest + halo[0] + halo[1]).min(length);
    let cores = (0..count).map(|i| {
        let core = border(i)..border(i + 1);
        (core.start.saturating_sub(halo[0]).min(length - window), core)
    });
    (window, cores.collect())
}

impl Layout {
    /// The tiles of a picture of `size` (width, height) with these candidates. A window reaches as far to the
    /// left and right of its core as the candidates do, or half the overlap where that is more.
    pub fn new(tiles: Tiles, size: (usize, usize), range: DisparityRange) -> Self {
        let half = tiles.overlap.div_ceil(2);
        let across = if tiles.columns > 1 {
            [range.max(), -range.min].map(|reach| half.max(reach.max(0) as usize))
        } else {
            [0, 0]
        };
        let (width, columns) = cut(size.0, tiles.columns, across);
        let (height, rows) = cut(size.1, tiles.rows, [half, half]);
        let tiles = rows
            .iter()
            .flat_map(|(y, rows)| {
                columns.iter().map(|(x, columns)| Tile {
                    origin: (*x, *y),
                    columns: columns.clone(),
                    rows: rows.clone(),
                })
            })
            .collect();
        Self { size, window: (width, height), tiles }
    }

    /// A tile's window of a picture; its valid mask is left out.
    pub fn crop(&self, tile: &Tile, image: &Image) -> Image {
        let ((x, y), (width, height)) = (tile.origin, self.window);
        let rows = (y..y + height).flat_map(|y| &image.row(y)[x..x + width]);
        Image::from_vec(width, height, rows.copied().collect())
    }

    /// Copies what a tile gives from its window into the whole picture.
    pub fn keep<T: Copy>(&self, tile: &Tile, window: &[T], whole: &mut [T]) {
        let (x, y) = tile.origin;
        for row in tile.rows.clone() {
            let from = (row - y) * self.window.0;
            let from = &window[from + tile.columns.start - x..][..tile.columns.len()];
            whole[row * self.size.0 + tile.columns.start..][..from.len()].copy_from_slice(from);
        }
    }
}

/// What a pair is matched to, tile by tile: [`crate::matching::match_pair`] of every window, of which the cores
/// are kept. The plain definition of it.
pub fn match_tiled(
    left: &Image,
    right: &Image,
    params: &Params,
    layout: &Layout,
) -> DisparityMap {
    let mut values = vec![INVALID; layout.size.0 * layout.size.1];
    for tile in &layout.tiles {
        let [left, right] = [left, right].map(|eye| layout.crop(tile, eye));
        let map = match_pair(&left, &right, params);
        layout.keep(tile, map.values(), &mut values);
    }
    let values = Pooled::unpooled(values);
    DisparityMap::new(layout.size.0, layout.size.1, params.range, values)
}
