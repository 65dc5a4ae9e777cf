//! Range windows: of a wide range, a pixel tries only the candidates near the disparities that the half-size map
//! has around it, so time and memory hardly grow with the range.
//!
//! Candidates form blocks of [`BLOCK`], and pixels form tiles of [`TILE`] x [`TILE`]. A tile tries [`BLOCKS`] blocks,
//! which need not be adjacent, so that a near object before a far wall fits. The rest of the range does not exist for
//! its pixels: no cost, no path cost, no sum. Restricting a finer level to what a coarser one found is the idea of
//! Rothermel, Wenzel, Fritsch and Haala, "SURE: Photogrammetric surface reconstruction from imagery" (LC3D 2012);
//! a constant number of candidates suits vectors and warps.

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
const MARGIN: i32 = 4;
/// Pixels of the map before its filters, in a tile and half a tile around it, that a block needs.
const SEEN: u32 = 3;
/// Rows and columns of a tile in the half-size map, and half of that.
const SIDE: usize = TILE / 2;
const CELL: usize = SIDE / 2;
/// Weight of a tile's own votes; those of its eight neighbours count once.
const OWN: u32 = 4;

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
        let votes = votes(coarse, width, (across, down), range);
        let row_of_cells = 2 * across + 2;
        let cells = cells(unfiltered, width, (row_of_cells, 2 * down + 2), range);
        let mut of_all = vec![0; blocks];
        votes.chunks_exact(blocks).for_each(|votes| add(&mut of_all, votes, 1));
        let (mut around, mut seen) = (vec![0; blocks], vec![0; blocks]);
        let mut tiles = Vec::with_capacity(across * down);
        for (y, x) in (0..down).flat_map(|y| (0..across).map(move |x| (y, x))) {
            around.fill(0);
            for beside_y in y.saturating_sub(1)..(y + 2).min(down) {
                for beside_x in x.saturating_sub(1)..(x + 2).min(across) {
                    let weight = if (beside_y, beside_x) == (y, x) { OWN } else { 1 };
                    add(
                        &mut around,
                        &votes[(beside_y * across + beside_x) * blocks..][..blocks],
                        weight,
                    );
                }
            }
            seen.fill(0);
            for cell_y in 2 * y..2 * y + 4 {
                for cell in (0..4).map(|i| cell_y * row_of_cells + 2 * x + i) {
                    add(&mut seen, &cells[cell * blocks..][..blocks], 1);
                }
            }
            let known = around.iter().any(|&votes| votes > 0);
            tiles.push(choose(if known { &around } else { &of_all }, &seen));
        }
        Self { across, tiles }
    }

    /// The blocks that pixel (x, y) tries.
    pub fn of_pixel(&self, x: usize, y: usize) -> [u16; BLOCKS] {
        self.tiles[y / TILE * self.across + x / TILE]
    }
}

/// The votes of the known pixels of the half-size map for each block of their tile.
fn votes(
    map: &[i16],
    width: usize,
    (across, down): (usize, usize),
    range: DisparityRange,
) -> Vec<u32> {
    let blocks = range.count.div_ceil(BLOCK);
    let mut votes = vec![0; across * down * blocks];
    for (y, row) in map.chunks_exact(width).enumerate() {
        for (x, &value) in row.iter().enumerate() {
            let Some(candidate) = candidate_of(value, range) else { continue };
            let of_tile = &mut votes[(y / SIDE * across + x / SIDE) * blocks..];
            let (from, to) =
                (block_of(candidate - MARGIN, range), block_of(candidate + MARGIN, range));
            of_tile[from..=to].iter_mut().for_each(|votes| *votes += 1);
        }
    }
    votes
}

/// The number of known pixels of each block in each cell of [`CELL`] x [`CELL`] pixels, with a margin of a cell.
fn cells(
    map: &[i16],
    width: usize,
    (across, down): (usize, usize),
    range: DisparityRange,
) -> Vec<u32> {
    let blocks = range.count.div_ceil(BLOCK);
    let mut cells = vec![0; across * down * blocks];
    for (y, row) in map.chunks_exact(width).enumerate() {
        for (x, &value) in row.iter().enumerate() {
            let Some(candidate) = candidate_of(value, range) else { continue };
            let cell = (y / CELL + 1) * across + x / CELL + 1;
            cells[cell * blocks + block_of(candidate, range)] += 1;
        }
    }
    cells
}

/// The candidate that a value of the half-size map stands for, perhaps beyond the range.
fn candidate_of(value: i16, range: DisparityRange) -> Option<i32> {
    let disparity = (2 * i32::from(value) + SUBPIXEL / 2).div_euclid(SUBPIXEL);
    (value != INVALID).then_some(disparity - range.min)
}

fn block_of(candidate: i32, range: DisparityRange) -> usize {
    candidate.clamp(0, range.count as i32 - 1) as usize / BLOCK
}

fn add(to: &mut [u32], votes: &[u32], weight: u32) {
    to.iter_mut().zip(votes).for_each(|(to, &votes)| *to += weight * votes);
}

/// The blocks with the most votes, then those that [`SEEN`] pixels or more have before the filters, the most first;
/// ties to the lower one. Free places go to the blocks nearest to any of those, ties to the higher one, because what
/// is near matters most; without any, to the lowest.
fn choose(votes: &[u32], seen: &[u32]) -> [u16; BLOCKS] {
    let (mut taken, mut count) = ([0u16; BLOCKS], 0);
    let mut take = |block: usize, taken: &mut [u16; BLOCKS]| {
        taken[count] = block as u16;
        count += 1;
        count == BLOCKS
    };
    let rank = |block: usize| match (votes[block], seen[block]) {
        (0, 0..SEEN) => (0, 0),
        (0, seen) => (0, seen),
        (votes, _) => (votes, 0),
    };
    let mut chosen = 0u64;
    let all = 0..votes.len();
    while let Some(best) = all
        .clone()
        .rev()
        .filter(|&block| chosen >> block & 1 == 0 && rank(block) > (0, 0))
        .max_by_key(|&block| rank(block))
    {
        chosen |= 1 << best;
        if take(best, &mut taken) {
            taken.sort_unstable();
            return taken;
        }
    }
    // Doubling the chosen set on both sides finds the next nearest blocks.
    let mut near = if chosen == 0 { 1 } else { chosen };
    let mut full = chosen == 0 && take(0, &mut taken);
    while !full {
        let next = (near << 1 | near >> 1) & !near;
        for block in all.clone().rev().filter(|block| next >> block & 1 == 1) {
            full = full || take(block, &mut taken);
        }
        near |= next;
    }
    taken.sort_unstable();
    taken
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
