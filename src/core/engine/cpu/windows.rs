//! Range windows ([`crate::matching::windows`]): the places of a pixel's candidates, and the way of path costs from the
//! places of one tile to those of the next.
//!
//! A pixel has [`CANDIDATES`] places in the striped order (`striping.rs`), so block b of its tile lies in quarter b of
//! every vector. Where a path enters another tile, each quarter is loaded from wherever the pixel before has that
//! block. Blocks that do not follow each other in the range are no neighbours on a path.

use super::memory::Arena;
use super::mirrored_rows::Stripes;
use super::simd::Vector;
use crate::matching::windows::{self, BLOCK, BLOCKS, CANDIDATES, TILE};
use crate::memory::product;

/// Path costs of a block that the pixel before does not try.
static NOTHING: [u8; CANDIDATES] = [255; CANDIDATES];

/// A tile of the image.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    /// Numbers of its blocks.
    pub blocks: [u16; BLOCKS],
    /// Places of these blocks in each tile around (row by row, from above left, with itself); [`BLOCKS`] for none.
    from: [[u8; BLOCKS]; 9],
    /// Bits of the blocks that do not follow the one before.
    gaps: u8,
    /// Places at the end, beyond the range.
    pub beyond: u8,
}

impl Tile {
    /// The candidate at a place, counted in the order of candidates.
    #[inline(always)]
    pub fn candidate(&self, place: usize) -> usize {
        usize::from(self.blocks[place / BLOCK]) * BLOCK + place % BLOCK
    }

    /// The places of the lower and the higher neighbour of a candidate in the range, or its own where there is none.
    #[inline(always)]
    pub fn neighbours(&self, place: usize) -> (usize, usize) {
        let follows = |place: usize| {
            let is_in_range = (1..CANDIDATES - usize::from(self.beyond)).contains(&place);
            is_in_range && (!place.is_multiple_of(BLOCK) || self.gaps >> (place / BLOCK) & 1 == 0)
        };
        (place - usize::from(follows(place)), place + usize::from(follows(place + 1)))
    }
}

/// The tiles of an image.
pub struct Tiles {
    /// Of the image.
    pub size: (usize, usize),
    across: usize,
    tiles: Vec<Tile>,
    /// Masks by gaps: 255 in the lanes that have no lower neighbour, then in those without a higher one.
    masks: Vec<[[u8; CANDIDATES]; 2]>,
}

impl Tiles {
    /// Tables for an image of this size and vectors of `lanes` candidates, without any tile.
    pub fn new(arena: &Arena, size: (usize, usize), lanes: usize) -> Self {
        let tiles = [size.0.div_ceil(TILE), size.1.div_ceil(TILE), size_of::<Tile>()];
        arena.count(product(tiles));
        let masks = (0..1u8 << BLOCKS).map(|gaps| {
            let mut masks = [[0; CANDIDATES]; 2];
            for block in (1..BLOCKS).filter(|block| gaps >> block & 1 == 1) {
                let lane = block * (lanes / BLOCKS);
                (masks[0][lane], masks[1][lane - 1]) = (255, 255);
            }
            masks
        });
        Self { size, across: 0, tiles: Vec::new(), masks: masks.collect() }
    }

    /// Takes the windows of the next pair, of a range of `count` candidates.
    pub fn set(&mut self, of: &windows::Windows, count: usize) {
        let (across, all) = (of.across, &of.tiles);
        let down = all.len() / across;
        self.across = across;
        self.tiles.clear();
        self.tiles.extend(all.iter().enumerate().map(|(i, &blocks)| {
            let (x, y) = (i % across, i / across);
            let from = std::array::from_fn(|around| {
                let beside = (
                    (x + around % 3).checked_sub(1).filter(|&x| x < across),
                    (y + around / 3).checked_sub(1).filter(|&y| y < down),
                );
                let (Some(x), Some(y)) = beside else { return [0, 1, 2, 3] };
                let there = all[y * across + x];
                blocks.map(|block| there.iter().position(|&b| b == block).unwrap_or(BLOCKS) as u8)
            });
            let gaps = (1..BLOCKS).map(|b| u8::from(blocks[b] != blocks[b - 1] + 1) << b).sum();
            let end = (usize::from(blocks[BLOCKS - 1]) + 1) * BLOCK;
            Tile { blocks, from, gaps, beyond: end.saturating_sub(count) as u8 }
        }));
    }

    /// The tiles as the kernels see them.
    pub fn view(&self, stripes: Stripes) -> View<'_> {
        View {
            size: self.size,
            across: self.across,
            tiles: &self.tiles,
            masks: &self.masks,
            stripes,
        }
    }
}

/// The tiles as the kernels see them.
#[derive(Clone, Copy)]
pub struct View<'a> {
    size: (usize, usize),
    across: usize,
    tiles: &'a [Tile],
    masks: &'a [[[u8; CANDIDATES]; 2]],
    /// Stripes of the mirrored rows, for the winners of the right view.
    pub stripes: Stripes,
}

impl<'a> View<'a> {
    /// The tiles of row `y`.
    #[inline(always)]
    pub fn row(&self, y: usize) -> &'a [Tile] {
        &self.tiles[y / TILE * self.across..][..self.across]
    }

    /// The masks of a tile ([`Tiles::masks`]) as vectors.
    ///
    /// # Safety
    /// As [`Vector::load`].
    #[inline(always)]
    pub unsafe fn gaps<V: Vector>(&self, tile: &Tile) -> [V; 2] {
        let masks = &self.masks[usize::from(tile.gaps)];
        // SAFETY: no vector is longer.
        unsafe { [V::load(masks[0].as_ptr()), V::load(masks[1].as_ptr())] }
    }

    /// Places of the blocks of the pixel in column `x` of row `y` at the pixel before it on a path, if that one is of
    /// another tile.
    #[inline(always)]
    pub fn entry(
        &self,
        (x, y): (usize, usize),
        before: (isize, isize),
    ) -> Option<&'a [u8; BLOCKS]> {
        let (tile_x, tile_y) = (x / TILE, y / TILE);
        // A pixel outside, where paths begin, is taken as it is: above and to the left by the tile's table.
        let across = before.0.div_euclid(TILE as isize) - tile_x as isize;
        let down = before.1.div_euclid(TILE as isize) - tile_y as isize;
        let outside = before.0 >= self.size.0 as isize || before.1 >= self.size.1 as isize;
        if (across == 0 && down == 0) || outside {
            return None;
        }
        Some(
            &self.tiles[tile_y * self.across + tile_x].from[(3 * (down + 1) + across + 1) as usize],
        )
    }
}

/// Moves the path costs of the pixel before to the places of the next pixel ([`View::entry`]).
///
/// # Safety
/// The costs have this many vectors.
#[inline(always)]
pub unsafe fn enter_tile<V: Vector, const MAX: usize>(
    path: &mut [V; MAX],
    chunks: usize,
    blocks: &[u8; BLOCKS],
) {
    let before = *path;
    for (c, vector) in path.iter_mut().enumerate().take(chunks) {
        // SAFETY: the vector is one of the costs.
        *vector = unsafe { load_entering(before.as_ptr().add(c).cast(), blocks) };
    }
}

/// Loads a vector of the path costs of the pixel before, at `from`, for the places of the next pixel.
///
/// # Safety
/// As [`Vector::load`].
#[inline(always)]
pub unsafe fn load_entering<V: Vector>(from: *const u8, blocks: &[u8; BLOCKS]) -> V {
    // SAFETY: the quarters lie in the vector, and nothing is as long as one.
    unsafe {
        V::load_quarters(blocks.map(|block| match usize::from(block) {
            BLOCKS => NOTHING.as_ptr(),
            block => from.add(block * (V::N / BLOCKS)),
        }))
    }
}
