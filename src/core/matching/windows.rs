//! Range windows: of a wide range, a pixel tries only the candidates near the disparities that the half-size map
//! has around it, so time and memory hardly grow with the range.
//!
//! Candidates form blocks of [`BLOCK`], and pixels form tiles of [`TILE`] x [`TILE`]. A tile tries [`BLOCKS`] blocks,
//! which need not be adjacent, so that a near object before a far wall fits. The rest of the range does not exist for
//! its pixels: no cost, no path cost, no sum. Restricting a finer level to what a coarser one found is the idea of
//! Rothermel, Wenzel, Fritsch and Haala, "SURE: Photogrammetric surface reconstruction from imagery" (LC3D 2012);
//! a constant number of candidates suits vectors and warps.

use std::ops::Range;

use crate::frame::{DisparityRange, INVALID, SUBPIXEL};

/// Candidates of a block.
pub const BLOCK: usize = 16;
/// Blocks of a tile.
pub const BLOCKS: usize = 4;
/// Candidates of a tile.
pub const CANDIDATES: usize = BLOCK * BLOCKS;
/// Rows and columns of a tile.
pub const TILE: usize = 16;

/// Sum of a candidate that a pixel does not try.
pub const NO_SUM: u16 = u16::MAX;

/// Candidates on either side of a disparity of the half-size map that its pixel votes for.
pub const MARGIN: i32 = 4;
/// Pixels of the map before its filters, in a tile and half a tile around it, that a block needs.
pub const SEEN: u32 = 3;
/// Rows and columns of a tile in the half-size map, and half of that.
const SIDE: usize = TILE / 2;
const CELL: usize = SIDE / 2;
/// Number of bits of a full set of blocks.
const FULL: u32 = BLOCKS as u32;
/// Weight of a tile's own votes; those of its eight neighbours count once.
pub const OWN: u32 = 4;

/// The blocks that the tiles of an image try.
#[derive(Clone, Debug)]
pub struct Windows {
    /// Tiles in a row.
    pub across: usize,
    /// Blocks of each tile in ascending order, row by row.
    pub tiles: Vec<[u16; BLOCKS]>,
}

impl Windows {
    /// The windows of images of `size`, from the map of the half-size images, row by row, and from the same map before
    /// its filters, which has thin things that they remove.
    pub fn of(
        coarse: &[i16],
        unfiltered: &[i16],
        size: (usize, usize),
        range: DisparityRange,
    ) -> Self {
        let (across, down) = (size.0.div_ceil(TILE), size.1.div_ceil(TILE));
        let (width, height) = (size.0.div_ceil(2), size.1.div_ceil(2));
        assert_eq!(
            [coarse.len(), unfiltered.len()],
            [width * height; 2],
            "pixels of half-size maps"
        );
        let blocks = range.count.div_ceil(BLOCK);
        let votes = Counts::of(coarse, width, (SIDE, MARGIN), (across, down), range);
        let seen = Counts::of(unfiltered, width, (CELL, 0), (2 * across, 2 * down), range);
        let mut of_all = vec![0; blocks];
        votes.add(&mut of_all, 0..down + 2, 0..across + 2, 1);
        let (mut around, mut before) = (vec![0; blocks], vec![0; blocks]);
        let mut tiles = Vec::with_capacity(across * down);
        for (y, x) in (0..down).flat_map(|y| (0..across).map(move |x| (y, x))) {
            around.fill(0);
            votes.add(&mut around, y..y + 3, x..x + 3, 1);
            votes.add(&mut around, y + 1..y + 2, x + 1..x + 2, OWN - 1);
            before.fill(0);
            seen.add(&mut before, 2 * y..2 * y + 4, 2 * x..2 * x + 4, 1);
            let known = around.iter().any(|&votes| votes > 0);
            tiles.push(choose(if known { &around } else { &of_all }, &before));
        }
        Self { across, tiles }
    }

    /// The blocks that pixel (x, y) tries.
    pub fn of_pixel(&self, x: usize, y: usize) -> [u16; BLOCKS] {
        self.tiles[y / TILE * self.across + x / TILE]
    }
}

/// The bytes that [`Windows::of`] needs for images of this size, with its result.
pub fn bytes((width, height): (usize, usize), range: DisparityRange) -> u64 {
    let grid = |side: usize| (width.div_ceil(side) + 2) * (height.div_ceil(side) + 2);
    let counts = (grid(TILE) + grid(TILE / 2)) * range.count.div_ceil(BLOCK);
    (counts + grid(TILE) * size_of::<[u16; BLOCKS]>()) as u64
}

/// Numbers of known pixels of a map by block, for each square of it and around it.
struct Counts {
    blocks: usize,
    /// Squares in a row.
    across: usize,
    /// At most 64 each, the pixels of a tile in the half-size map.
    counts: Vec<u8>,
}

impl Counts {
    /// Counts in squares of `side` pixels, `across` and `down` of them. A pixel counts for all blocks that are up to
    /// `margin` candidates away.
    fn of(
        map: &[i16],
        width: usize,
        (side, margin): (usize, i32),
        (across, down): (usize, usize),
        range: DisparityRange,
    ) -> Self {
        let (blocks, across) = (range.count.div_ceil(BLOCK), across + 2);
        let mut counts = vec![0; across * (down + 2) * blocks];
        for (y, row) in map.chunks_exact(width).enumerate() {
            for (x, &value) in row.iter().enumerate() {
                let Some(candidate) = candidate_of(value, range) else { continue };
                let square = (y / side + 1) * across + x / side + 1;
                let [from, to] = [-margin, margin].map(|step| block_of(candidate + step, range));
                let counts = &mut counts[square * blocks..][from..=to];
                counts.iter_mut().for_each(|count: &mut u8| *count += 1);
            }
        }
        Self { blocks, across, counts }
    }

    /// Adds the counts of squares, times `weight`, where the first row and column lie beside the map.
    fn add(&self, to: &mut [u32], rows: Range<usize>, columns: Range<usize>, weight: u32) {
        for square in rows.flat_map(|y| columns.clone().map(move |x| y * self.across + x)) {
            let counts = &self.counts[square * self.blocks..][..self.blocks];
            to.iter_mut().zip(counts).for_each(|(to, &count)| *to += weight * u32::from(count));
        }
    }
}

/// The candidate that a value of the half-size map stands for, perhaps beyond the range.
fn candidate_of(value: i16, range: DisparityRange) -> Option<i32> {
    let disparity = (2 * i32::from(value) + SUBPIXEL / 2).div_euclid(SUBPIXEL);
    (value != INVALID).then_some(disparity - range.min)
}

fn block_of(candidate: i32, range: DisparityRange) -> usize {
    candidate.clamp(0, range.count as i32 - 1) as usize / BLOCK
}

/// The blocks with the most votes, then those that [`SEEN`] pixels or more have before the filters, the most first;
/// ties to the lower one. Free places go to the blocks nearest to any of those, ties to the higher one, because what
/// is near matters most; without any, to the lowest.
fn choose(votes: &[u32], seen: &[u32]) -> [u16; BLOCKS] {
    let rank = |block: usize| match (votes[block], seen[block]) {
        (0, 0..SEEN) => None,
        (0, seen) => Some((0, seen)),
        (votes, _) => Some((votes, 0)),
    };
    // Sets of blocks as bits.
    let mut taken = 0u64;
    let is_in = |set: u64, block: usize| set >> block & 1 == 1;
    let best = |taken: u64| {
        let free = (0..votes.len()).rev().filter(|&block| !is_in(taken, block));
        free.filter(|&block| rank(block).is_some()).max_by_key(|&block| rank(block))
    };
    while let (Some(block), 0..FULL) = (best(taken), taken.count_ones()) {
        taken |= 1 << block;
    }
    if taken == 0 {
        taken = 1;
    }
    // The set grows by its neighbours on both sides.
    while taken.count_ones() < FULL {
        let beside = (taken << 1 | taken >> 1) & !taken;
        for block in (0..votes.len()).rev().filter(|&block| is_in(beside, block)) {
            taken |= u64::from(taken.count_ones() < FULL) << block;
        }
    }
    let mut blocks = (0..votes.len() as u16).filter(|&block| is_in(taken, block.into()));
    std::array::from_fn(|_| blocks.next().expect("a wide range has more blocks"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_voted_blocks_win_and_their_neighbours_fill_up() {
        let none = [0; 9];
        assert_eq!(choose(&[0, 5, 0, 9, 2, 0, 0, 1, 3], &none), [1, 3, 4, 8]);
        // Ties to the lower one.
        assert_eq!(choose(&[0, 2, 2, 2, 2, 2, 0], &none[..7]), [1, 2, 3, 4]);
        // 4 and 2 are beside 3; then 5 and 1 are.
        assert_eq!(choose(&[0, 0, 0, 7, 0, 0, 0], &none[..7]), [2, 3, 4, 5]);
        assert_eq!(choose(&[0, 0, 0, 0, 0, 7], &none[..6]), [2, 3, 4, 5]);
        assert_eq!(choose(&[1, 0, 0, 0, 0, 0, 0, 1], &none[..8]), [0, 1, 6, 7]);
        assert_eq!(choose(&[0; 6], &none[..6]), [0, 1, 2, 3]);
    }

    #[test]
    fn what_the_filters_removed_has_a_place_if_one_is_free() {
        let seen = [0, 0, 0, 9, 0, 4, 2, 3];
        assert_eq!(choose(&[0, 1, 0, 0, 0, 0, 0, 0], &seen), [1, 3, 5, 7]);
        assert_eq!(choose(&[1, 1, 1, 0, 0, 0, 0, 0], &seen), [0, 1, 2, 3]);
        assert_eq!(choose(&[1, 1, 1, 0, 1, 0, 0, 0], &seen), [0, 1, 2, 4]);
    }

    #[test]
    fn tiles_follow_their_surroundings_and_unknown_ones_the_whole_picture() {
        // 6 x 3 tiles; the half-size map is known in two tiles of the first row.
        let size = (96, 48);
        let mut coarse = vec![INVALID; 48 * 24];
        for y in 0..8 {
            coarse[y * 48..][..8].fill(16 * 20); // 40 px, from 36 to 44: block 2.
            coarse[y * 48..][40..48].fill(16 * 58); // 116 px, from 112 to 120: block 7.
        }
        coarse[5 * 48 + 42] = 16 * 4; // 8 px: block 0.
        let mut unfiltered = coarse.clone();
        unfiltered[12 * 48 + 24..][..3].fill(16 * 33); // 66 px: block 4.
        let range = DisparityRange { min: 0, count: 128 };
        let windows = Windows::of(&coarse, &unfiltered, size, range);
        assert_eq!(windows.across, 6);
        assert_eq!(windows.of_pixel(31, 31), [1, 2, 3, 4]); // Beside the first tile.
        assert_eq!(windows.of_pixel(95, 0), [0, 1, 6, 7]);
        // No known pixel around: as all together. Three pixels are seen, up to four columns and rows from the tile.
        assert_eq!(windows.of_pixel(16, 47), [0, 2, 6, 7]);
        assert_eq!(windows.of_pixel(48, 31), [0, 2, 4, 7]);
        assert_eq!(windows.of_pixel(48, 47), [0, 2, 4, 7]);
        // 8 px and -8 px of a range that begins below 0.
        let range = DisparityRange { min: -24, count: 96 };
        assert_eq!([64, -64].map(|value| candidate_of(value, range)), [Some(32), Some(16)]);
        assert_eq!([-5, 15, 16, 500].map(|candidate| block_of(candidate, range)), [0, 0, 1, 5]);
    }
}
