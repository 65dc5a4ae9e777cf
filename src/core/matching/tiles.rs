//! Tiled images: each tile is matched alone, so that memory depends on the tile and not on the image.
//!
//! An image is cut into rows x columns of *cores* of nearly equal size. Each core is matched in its *window*:
//! the core with a halo, so that paths come from beyond its border and its pixels find their matches. Only
//! the core of the result is kept, so neighbours share their overlap equally. All windows have the same size;
//! windows at the border are shifted inwards.
//!
//! A tiled map differs from the map of the whole image in these ways:
//!
//! - Paths begin at the border of the window. Their memory is limited, so the difference is near the seams:
//!   with 128 px of overlap, as `auto` takes, little more than elsewhere (`docs/accuracy.md`).
//! - Speckle removal and the median filter see only the window.
//! - A window that is too small for a coarser level has no prior.
//! - The valid mask is applied to the whole map, after the tiles' median and speckle removal.
//!
//! All windows use the noise thresholds of the whole image ([`levels::noise_thresholds`]).
//!
//! The filters of the whole map ([`of_whole`]: the valid mask, smoothing, filling) are independent of tiles,
//! so a stream's state is the same with and without tiles.

use crate::frame::{DisparityMap, DisparityRange, INVALID, Image, SUBPIXEL, StereoPair};
use crate::matching::filter::{Filter, Matching};
use crate::matching::params::{Median, Params};
use crate::matching::{
    History, PairResult, advance_temporal, confidence, images_to_match, levels, match_tile, prior,
};
use crate::pool::Pooled;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Largest number of rows, and of columns, of tiles.
pub const TILES_MAX: usize = 1024;

/// Largest overlap in pixels.
pub const OVERLAP_MAX: usize = 8192;

/// Windows begin at multiples of this, so that their halves have the pixels of the whole image's halves.
const STEP: usize = 1 << prior::LEVELS_MAX;

/// Layout of the tiles of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// Number of tiles down: 1 to [`TILES_MAX`].
    pub rows: usize,
    /// Number of tiles across: 1 to [`TILES_MAX`].
    pub columns: usize,
    /// Smallest overlap of neighbouring windows in pixels: 0 to [`OVERLAP_MAX`].
    pub overlap: usize,
}

impl fmt::Display for Tiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{},{}", self.rows, self.columns, self.overlap)
    }
}

/// Error for a text that is no tile layout; it states the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "rows, columns and overlap in pixels such as `4x1,64`: 1 to {TILES_MAX} of each, and 0 to {OVERLAP_MAX} px"
)]
pub struct NoTiles;

impl FromStr for Tiles {
    type Err = NoTiles;

    fn from_str(text: &str) -> Result<Self, NoTiles> {
        let (counts, overlap) = text.split_once(',').ok_or(NoTiles)?;
        let (rows, columns) = counts.split_once('x').ok_or(NoTiles)?;
        let number = |text: &str, range: std::ops::RangeInclusive<usize>| {
            let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|n| is_plain && range.contains(n)).ok_or(NoTiles)
        };
        Ok(Self {
            rows: number(rows, 1..=TILES_MAX)?,
            columns: number(columns, 1..=TILES_MAX)?,
            overlap: number(overlap, 0..=OVERLAP_MAX)?,
        })
    }
}

/// Error for an image with too few pixels for this many tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a picture of {}x{} pixels cannot be cut into {} rows and {} columns of tiles: fewer `tiles`",
    size.0, size.1, tiles.rows, tiles.columns
)]
pub struct TooManyTiles {
    size: (usize, usize),
    tiles: Tiles,
}

/// The tiles of an image of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileLayout {
    /// Layout of the tiles.
    pub cut: Tiles,
    /// Width and height of the image.
    pub size: (usize, usize),
    /// Width and height of every window.
    pub window: (usize, usize),
    /// The tiles, row by row.
    pub tiles: Vec<Tile>,
}

impl fmt::Display for TileLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Tiles { rows, columns, overlap }, (width, height)) = (self.cut, self.window);
        write!(f, "{rows}x{columns} tiles of {width}x{height} pixels, overlap {overlap}")
    }
}

/// A tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    /// First column and row of its window.
    pub origin: (usize, usize),
    /// Columns of its core.
    pub columns: Range<usize>,
    /// Rows of its core.
    pub rows: Range<usize>,
}

/// Tiles along one direction: the length of the windows, and the start and core of each.
fn cut(length: usize, count: usize, halo: [usize; 2]) -> (usize, Vec<(usize, Range<usize>)>) {
    let border = |i: usize| length * i / count;
    // A window may begin up to a step before its halo; all windows end at the same phase of the step.
    let needed = length.div_ceil(count) + halo[0] + halo[1] + STEP - 1;
    let window = if needed < length { needed + (length - needed) % STEP } else { length };
    let cores = (0..count).map(|i| {
        let core = border(i)..border(i + 1);
        let start = core.start.saturating_sub(halo[0]);
        ((start - start % STEP).min(length - window), core)
    });
    (window, cores.collect())
}

impl TileLayout {
    /// Divides an image of `size` (width, height) with these candidates into tiles. A window extends beyond
    /// its core by half the overlap. With several columns, it also includes the matches of its pixels, and
    /// the pixels that compete for these matches, so that the left-right check misses none.
    pub fn new(
        cut_into: Tiles,
        size: (usize, usize),
        range: DisparityRange,
    ) -> Result<Self, TooManyTiles> {
        let Tiles { rows, columns, overlap } = cut_into;
        if rows.max(1) > size.1 || columns.max(1) > size.0 || rows.min(columns) == 0 {
            return Err(TooManyTiles { size, tiles: cut_into });
        }
        let half = overlap.div_ceil(2);
        let competitors = range.max() - range.min;
        let across = [range.max(), -range.min]
            .map(|matches| half.max(matches.max(competitors).max(0) as usize));
        let (width, across) = cut(size.0, columns, if columns > 1 { across } else { [0, 0] });
        let (height, down) = cut(size.1, rows, [half, half]);
        let tiles = down
            .iter()
            .flat_map(|(y, rows)| {
                across.iter().map(|(x, columns)| Tile {
                    origin: (*x, *y),
                    columns: columns.clone(),
                    rows: rows.clone(),
                })
            })
            .collect();
        Ok(Self { cut: cut_into, size, window: (width, height), tiles })
    }

    /// Copies a tile's window of an image into `to`, row by row.
    pub fn crop(&self, tile: &Tile, image: &Image, to: &mut [u8]) {
        let ((x, y), (width, height)) = (tile.origin, self.window);
        for (to, row) in to.chunks_exact_mut(width).zip(y..y + height) {
            to.copy_from_slice(&image.row(row)[x..x + width]);
        }
    }

    /// Returns a tile's window of a prior map, which has half the image's size.
    pub fn crop_prior(&self, tile: &Tile, prior: &DisparityMap) -> DisparityMap {
        let [x, y] = [tile.origin.0, tile.origin.1].map(|first| first / 2);
        let [width, height] = [self.window.0, self.window.1].map(|side| side.div_ceil(2));
        let rows = prior.values().chunks_exact(prior.width()).skip(y).take(height);
        let values = rows.flat_map(|row| &row[x..x + width]).copied().collect();
        DisparityMap::of_values(width, prior.range(), values)
    }

    /// Copies a tile's core from its window into the whole image.
    pub fn keep<T: Copy>(&self, tile: &Tile, window: &[T], whole: &mut [T]) {
        let (x, y) = tile.origin;
        for row in tile.rows.clone() {
            let from = (row - y) * self.window.0;
            let from = &window[from + tile.columns.start - x..][..tile.columns.len()];
            whole[row * self.size.0 + tile.columns.start..][..from.len()].copy_from_slice(from);
        }
    }
}

/// Parameters of a tile: without the filters of the whole map.
pub fn of_tile(params: &Params) -> Params {
    Params { evidence: None, spatial: None, fill: None, ..params.of_still() }
}

/// Parameters of the filters of the whole map: without the tiles' filters.
pub fn of_whole(params: &Params) -> Params {
    Params { confidence: None, median: Median::Off, speckle: None, ..params.clone() }
}

/// Returns the candidate nearest to a value, from the smallest; the first for an invalid pixel.
pub fn winner(value: i16, range: DisparityRange) -> usize {
    let nearest = (i32::from(value) + SUBPIXEL / 2).div_euclid(SUBPIXEL);
    (nearest - range.min).clamp(0, range.count as i32 - 1) as usize
}

/// Matches the next pair of a stream tile by tile. Returns the disparity map and, if the parameters ask for
/// it, the confidence. Each window is matched by [`match_tile`] with the noise thresholds of the whole image,
/// and its core is kept; then the filters of the whole map follow. This is the plain definition.
///
/// # Panics
/// If an image does not have the layout's size; `params` must have passed [`Params::check`].
pub fn match_tiled(
    pair: &StereoPair,
    params: &Params,
    layout: &TileLayout,
    history: &mut History,
) -> PairResult {
    let (width, height) = layout.size;
    let views = [&pair.left, &pair.right];
    for eye in views {
        assert_eq!((eye.width(), eye.height()), layout.size, "size of the views");
    }
    let temporal = advance_temporal(views, pair.timestamp, params, history);
    let [left, right] = images_to_match(views, temporal.as_ref(), params);
    let mut values = vec![INVALID; width * height];
    let mut confidence = params.confidence.map(|_| vec![0; width * height]);
    let thresholds = levels::noise_thresholds(left, params, layout.window);
    let given = levels::prior_map_size(params, layout.size).and(pair.prior.as_deref());
    for tile in &layout.tiles {
        let [left, right] = [left, right].map(|eye| {
            let mut pixels = vec![0; layout.window.0 * layout.window.1];
            layout.crop(tile, eye, &mut pixels);
            Image::from_vec(layout.window.0, layout.window.1, pixels)
        });
        let prior = given.map(|prior| Box::new(layout.crop_prior(tile, prior)));
        let window = StereoPair { prior, ..StereoPair::of_stills(left, right) };
        let (map, sure) = match_tile(&window, &of_tile(params), &thresholds);
        layout.keep(tile, map.values(), &mut values);
        if let (Some(sure), Some(all)) = (&sure, &mut confidence) {
            layout.keep(tile, sure.pixels(), all);
        }
    }
    let winners: Vec<usize> = values.iter().map(|&value| winner(value, params.range)).collect();
    let (range, threshold) = (params.range, thresholds[0]);
    let matching = Matching { left, right, range, winners: &winners, threshold, prior: given };
    for filter in of_whole(params).filters() {
        let mut state = history.states.remove(filter.name()).unwrap_or_default();
        filter.apply(&mut values, &mut confidence, &matching, &mut state);
        if !state.is_empty() {
            history.states.insert(filter.name(), state);
        }
        if filter == Filter::ValidMask {
            // Pixels filled later have no confidence either.
            confidence.iter_mut().for_each(|sure| confidence::of_known(&values, sure));
        }
    }
    let confidence = confidence.map(|confidence| Image::from_vec(width, height, confidence));
    let map = DisparityMap::new(width, height, params.range, Pooled::unpooled(values));
    PairResult { map, confidence, temporal }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::matching::{Cost, Window, match_pair};

    const RANGE: DisparityRange = DisparityRange { min: -2, count: 10 };

    fn tiles(rows: usize, columns: usize, overlap: usize) -> Tiles {
        Tiles { rows, columns, overlap }
    }

    fn params() -> Params {
        Params {
            left_right: Some(1),
            median: Median::Three,
            ..Params::bare(RANGE, Cost::Ad { truncation: 30, window: 1 }, (5, 60))
        }
    }

    fn picture(width: usize, height: usize, seed: usize) -> Image {
        Image::from_fn(width, height, |x, y| {
            let blot = (x + seed).wrapping_mul(0x9e37_79b9) ^ y.wrapping_mul(0x85eb_ca6b);
            (blot.wrapping_mul(0xc2b2_ae35) >> 13) as u8
        })
    }

    fn matched(left: &Image, right: &Image, layout: &TileLayout) -> Vec<i16> {
        let pair = StereoPair::of_stills(left.copy(), right.copy());
        match_tiled(&pair, &params(), layout, &mut History::default()).map.values().to_vec()
    }

    #[test]
    fn texts_name_tiles_or_are_refused() {
        assert_eq!("4x1,64".parse(), Ok(tiles(4, 1, 64)));
        assert_eq!("2x3,0".parse::<Tiles>().map(|tiles| tiles.to_string()), Ok("2x3,0".into()));
        for text in [
            "", "4", "4x1", "4x1,", "0x1,8", "1x0,8", "1025x1,0", "1x1,8193", "+4x1,2", "4x1,-2",
            "4x1,2,3",
        ] {
            assert_eq!(text.parse::<Tiles>(), Err(NoTiles), "{text}");
        }
    }

    #[test]
    fn cores_and_windows_by_hand() {
        // 100 rows in 3 with 10 to either side: 33 to 34 rows, + 20, + 7 to begin at a multiple of
        // 8, = 61, and 7 more so that 100 - 68 is one, too.
        let layout = TileLayout::new(tiles(3, 1, 20), (40, 100), RANGE).unwrap();
        assert_eq!(layout.window, (40, 68));
        let rows = layout.tiles.iter().map(|tile| (tile.origin, tile.rows.clone()));
        let expected = [((0, 0), 0..33), ((0, 16), 33..66), ((0, 32), 66..100)];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
        assert_eq!(layout.to_string(), "3x1 tiles of 40x68 pixels, overlap 20");
        // Across, 9 of the competitors to either side are more than half the overlap.
        let layout = TileLayout::new(tiles(1, 4, 4), (160, 5), RANGE).unwrap();
        assert_eq!(layout.window, (40 + 18 + 7 + 7, 5));
        assert_eq!(layout.tiles[2].origin, (64, 0)); // 80 - 9 = 71.
        let error = TileLayout::new(tiles(6, 2, 4), (10, 5), RANGE).unwrap_err().to_string();
        assert!(error.contains("10x5 pixels") && error.contains("6 rows"), "{error}");
    }

    #[test]
    fn one_tile_is_the_whole_picture() {
        let (left, right) = (picture(61, 40, 0), picture(61, 40, 3));
        let layout = TileLayout::new(tiles(1, 1, 30), (61, 40), RANGE).unwrap();
        assert_eq!(layout.window, (61, 40));
        let whole = match_pair(&left, &right, &params());
        assert_eq!(matched(&left, &right, &layout), whole.values());
    }

    #[test]
    fn all_tiles_have_the_noise_of_the_whole_picture() {
        // The rows below the upper window are noisy or even, which changes the noise threshold within it.
        let window = Some(Window { side: 5, by_texture: true });
        let params = Params { window, ..params() };
        let layout = TileLayout::new(tiles(2, 1, 0), (61, 64), RANGE).unwrap();
        assert_eq!(layout.window, (61, 40));
        let upper = |noise: usize| {
            let [left, right] = [0, 500].map(|seed| {
                let random = picture(61, 64, seed);
                Image::from_fn(61, 64, |x, y| {
                    let levels = if y < 40 { 16 } else { noise };
                    (100 + usize::from(random.row(y)[x]) % levels) as u8
                })
            });
            let pair = StereoPair::of_stills(left, right);
            let map = match_tiled(&pair, &params, &layout, &mut History::default()).map;
            map.values()[..61 * 32].to_vec()
        };
        let (even, noisy) = (upper(1), upper(90));
        assert!(even != noisy, "the upper tile knows nothing of the lower one's noise");
    }

    #[test]
    fn candidates_nearest_to_values() {
        // -2 px is candidate 0; 8/16 px are rounded up.
        let cases = [(-32, 0), (-25, 0), (-24, 1), (7, 2), (8, 3), (500, 9), (INVALID, 0)];
        assert_eq!(cases.map(|(value, _)| winner(value, RANGE)), cases.map(|(_, k)| k));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn cores_part_the_picture_and_lie_within_their_windows(
            (width, height) in (1usize..200, 1usize..120),
            (rows, columns) in (1usize..9, 1usize..9),
            overlap in 0usize..60,
            (min, count) in (-20i32..20, 1usize..30),
        ) {
            let range = DisparityRange { min, count };
            let (rows, columns) = (rows.min(height), columns.min(width));
            let layout = TileLayout::new(tiles(rows, columns, overlap), (width, height), range).unwrap();
            let mut given = vec![0u8; width * height];
            prop_assert_eq!(layout.tiles.len(), rows * columns);
            for tile in &layout.tiles {
                for i in tile.rows.clone().flat_map(|y| tile.columns.clone().map(move |x| y * width + x)) {
                    given[i] += 1;
                }
                let half = overlap.div_ceil(2);
                let (origin, end) = (
                    tile.origin,
                    (tile.origin.0 + layout.window.0, tile.origin.1 + layout.window.1),
                );
                prop_assert!(end.0 <= width && end.1 <= height);
                prop_assert!(origin.0 % STEP == 0 && origin.1 % STEP == 0);
                prop_assert!(origin.1 <= tile.rows.start.saturating_sub(half));
                prop_assert!(end.1 >= (tile.rows.end + half).min(height));
                let farthest = tile.columns.start as i64 - i64::from(range.max().max(0)).max(half as i64);
                prop_assert!(origin.0 as i64 <= farthest.max(0));
                let last = tile.columns.end as i64 - i64::from(min.min(0));
                prop_assert!(end.0 as i64 >= last.max((tile.columns.end + half) as i64).min(width as i64));
            }
            prop_assert!(given.iter().all(|&times| times == 1));
        }

        #[test]
        fn nothing_outside_a_window_is_read_for_its_core(
            (rows, columns) in (1usize..4, 1usize..4),
            overlap in 0usize..12,
            number in 0usize..9,
        ) {
            let (width, height) = (90, 60);
            let layout = TileLayout::new(tiles(rows, columns, overlap), (width, height), RANGE).unwrap();
            let tile = &layout.tiles[number % layout.tiles.len()];
            let inside = |x: usize, y: usize| {
                (tile.origin.0..tile.origin.0 + layout.window.0).contains(&x)
                    && (tile.origin.1..tile.origin.1 + layout.window.1).contains(&y)
            };
            let eyes = [picture(width, height, 0), picture(width, height, 3)];
            let others = eyes.each_ref().map(|eye| {
                Image::from_fn(width, height, |x, y| {
                    let grey = eye.row(y)[x];
                    if inside(x, y) { grey } else { !grey }
                })
            });
            let [before, after] =
                [&eyes, &others].map(|[left, right]| matched(left, right, &layout));
            for y in tile.rows.clone() {
                for x in tile.columns.clone() {
                    prop_assert_eq!(before[y * width + x], after[y * width + x], "{}, {}", x, y);
                }
            }
        }
    }
}
