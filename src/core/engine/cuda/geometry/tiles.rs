//! Parts of the picture per block of the cost volume and of the window sums.

use super::super::device::Properties;
use super::{BLOCK_THREADS, VectorLayout};
use crate::matching::windows::TILE;
use crate::matching::{BlockWindow, Window};

/// Number of blocks per multiprocessor for storing costs: enough that it hardly waits for the last one.
const BLOCKS: u32 = 6;

/// The same where rows of a block are few.
const FEW_BLOCKS: u32 = 2;

/// Part of the picture per block of the cost volume (`compute_costs.cu`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostTile {
    /// Columns of a thread's pixels, which share most of their right columns.
    pub pixels: u32,
    /// Tiles beside each other, of range windows.
    pub segments: u32,
    /// Columns of each, including `edge` columns on either side that are only summed.
    pub columns: u32,
    pub edge: u32,
    pub rows: u32,
    pub threads: u32,
    pub shared_bytes: u32,
}

impl CostTile {
    /// The tile for averaging the cost over this window, in a picture of this size on this device. Fewer rows
    /// give more blocks, but each first processes the rows above it; a small picture needs blocks first of all.
    /// A block of eight warps with one pixel each would write four columns of eight, so it has sixteen if they fit.
    pub fn of(
        window: Option<Window>,
        lanes: VectorLayout,
        size: (usize, usize),
        device: &Properties,
    ) -> Self {
        let side = window.map_or(1, |window| u32::from(window.side));
        let pixels = if lanes.registers <= 8 { 2 } else { 1 };
        let words = pixels * (side * lanes.registers / 2 + lanes.registers);
        let shared_bytes = |threads| if side > 1 { 4 * threads * words } else { 0 };
        let edge = (side / 2).next_multiple_of(pixels);
        if lanes.is_windowed() {
            let (tile, segments) = (TILE as u32, 4);
            let columns = tile + 2 * edge;
            let threads = segments * columns / pixels * lanes.group;
            let shared_bytes = shared_bytes(threads);
            return CostTile { pixels, segments, columns, edge, rows: tile, threads, shared_bytes };
        }
        let narrow = pixels * lanes.pixels() == 1;
        let twice = narrow && shared_bytes(2 * BLOCK_THREADS) <= device.shared_per_block;
        let threads = if twice { 2 * BLOCK_THREADS } else { BLOCK_THREADS };
        let tile = |rows| CostTile {
            pixels,
            columns: threads / lanes.group * pixels,
            segments: 1,
            edge,
            rows,
            threads,
            shared_bytes: shared_bytes(threads),
        };
        let enough = |&(rows, blocks): &(u32, u32)| {
            let grid = tile(rows).grid(size);
            grid.iter().product::<u32>() >= blocks * device.multiprocessors
        };
        let ways = [(64, BLOCKS), (32, BLOCKS), (16, BLOCKS), (8, FEW_BLOCKS), (4, FEW_BLOCKS)];
        tile(ways.into_iter().find(enough).map_or(2, |(rows, _)| rows))
    }

    /// Number of blocks for a picture of this size.
    pub fn grid(&self, (width, height): (usize, usize)) -> [u32; 2] {
        let across = (width as u32).div_ceil(self.segments * (self.columns - 2 * self.edge));
        [across, (height as u32).div_ceil(self.rows)]
    }
}

/// Part of the picture per block of the window sums (`aggregate_windows.cu`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowTile {
    /// Lanes of a pixel's candidates per block.
    pub share: u32,
    /// Columns of a thread's pixels.
    pub pixels: u32,
    /// Columns including `edge` columns on either side that are only summed.
    pub columns: u32,
    pub edge: u32,
    pub rows: u32,
    pub threads: u32,
    pub shared_bytes: u32,
}

impl WindowTile {
    /// The tile for sums over this window of words with `parts` parts per register, likewise.
    pub fn of(
        window: BlockWindow,
        parts: u32,
        lanes: VectorLayout,
        size: (usize, usize),
        device: &Properties,
    ) -> Self {
        let threads = BLOCK_THREADS;
        let share = lanes.group.min(8);
        let pixels = if lanes.registers <= 8 { 2 } else { 1 };
        let tile = |rows| WindowTile {
            share,
            pixels,
            columns: threads / share * pixels,
            edge: (u32::from(window.width) / 2).next_multiple_of(pixels),
            rows,
            threads,
            shared_bytes: 4 * threads * pixels * lanes.registers * parts,
        };
        let most = BLOCKS * device.multiprocessors;
        let enough = |tile: &WindowTile| tile.grid(lanes, size).iter().product::<u32>() >= most;
        [64, 32].map(tile).into_iter().find(enough).unwrap_or(tile(16))
    }

    /// Number of blocks for a picture of this size.
    pub fn grid(&self, lanes: VectorLayout, (width, height): (usize, usize)) -> [u32; 3] {
        let across = (width as u32).div_ceil(self.columns - 2 * self.edge);
        [across, (height as u32).div_ceil(self.rows), lanes.group / self.share]
    }
}
