//! The memory of the engine, made once: what all threads share, and what each has for itself.

use std::sync::atomic::AtomicUsize;

use super::geometry::Geometry;
use super::median::scratch_len;
use super::memory::Block;
use super::team::Barrier;
use super::winner::Selection;
use crate::matching::{self, Median, Params};

/// Memory that all threads use.
pub struct Shared {
    /// Right rows, mirrored (`cost.rs`).
    pub mirrored: Block<u8>,
    /// What is or-ed to a pixel's last vector of costs.
    pub padding: Block<u8>,
    /// The vertical paths' vectors where bands meet; [edge][path][1 + x][depth].
    pub edges: Block<u8>,
    /// Values before the median; empty without one.
    pub unfiltered: Block<i16>,
    /// Finished columns of every band's last row, of the sweep that is going on.
    pub progress: [Vec<AtomicUsize>; 2],
    /// Where the threads wait between stages.
    pub barrier: Barrier,
}

/// Memory of one thread.
pub struct Scratch {
    /// Excesses of the horizontal paths of a band.
    pub excesses: Block<u8>,
    /// Slots of the downward and of the upward paths (`vertical.rs`).
    pub chains: [Block<u8>; 2],
    /// Sums on their way from the downward to the upward pass.
    pub ring: Block<i16>,
    /// Picks the winners.
    pub selection: Selection,
    /// The cost of a band, where it is not computed on the fly.
    pub slab: Block<u8>,
    /// Sums over a window's rows.
    pub slab_columns: Vec<u16>,
    /// Sums over a window.
    pub slab_window: Vec<u16>,
    /// Rows that the median looks at.
    pub median_rows: Vec<i16>,
}

impl Shared {
    /// Memory for pictures of this geometry.
    pub fn new(geometry: &Geometry, params: &Params, lanes: usize) -> Self {
        let edges = if geometry.upward { geometry.bands + 1 } else { 3 };
        let padding = Block::<u8>::new(lanes);
        // SAFETY: the block has this length, and nobody else knows it yet.
        let mask = unsafe { std::slice::from_raw_parts_mut(padding.ptr(), lanes) };
        mask[geometry.count - (geometry.chunks - 1) * lanes..].fill(255);
        let filtered = params.median != Median::Off;
        Self {
            mirrored: Block::new(geometry.height * geometry.mirrored_stride()),
            padding,
            edges: Block::new(edges * geometry.vertical * geometry.edge_stride()),
            unfiltered: Block::new(if filtered { geometry.width * geometry.height } else { 0 }),
            progress: [0, 1].map(|_| (0..geometry.bands).map(|_| AtomicUsize::new(0)).collect()),
            barrier: Barrier::default(),
        }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.mirrored.bytes() + self.padding.bytes() + self.edges.bytes() + self.unfiltered.bytes()
    }

    /// Forgets the frame before.
    pub fn begin_frame(&mut self) {
        self.barrier.reset();
        self.progress.iter_mut().flatten().for_each(|columns| *columns.get_mut() = 0);
    }
}

impl Scratch {
    /// Memory for bands of this geometry.
    pub fn new(geometry: &Geometry, params: &Params, lanes: usize) -> Self {
        let Geometry { width, depth, band_rows, planes, ring, vertical, .. } = *geometry;
        let chain_bytes = vertical * geometry.chain_slots() * depth;
        let window = match params.cost {
            matching::Cost::Ad { window, .. } => window,
            _ => 1,
        };
        let slab_pixels = if window > 1 { width } else { 0 };
        Self {
            excesses: Block::new(band_rows * width * planes * depth),
            chains: [Block::new(chain_bytes), Block::new(chain_bytes)],
            ring: Block::new(band_rows * ring * depth),
            selection: Selection::new(geometry, params, lanes),
            slab: Block::new(band_rows * slab_pixels * depth),
            slab_columns: vec![0; slab_pixels * depth],
            slab_window: vec![0; if window > 1 { depth } else { 0 }],
            median_rows: vec![
                0;
                params.median.radius().map_or(0, |r| scratch_len(width, 2 * r + 1))
            ],
        }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.excesses.bytes()
            + self.chains.iter().map(Block::bytes).sum::<usize>()
            + self.ring.bytes()
            + self.selection.bytes()
            + self.slab.bytes()
            + 2 * (self.slab_columns.len() + self.slab_window.len() + self.median_rows.len())
    }
}
