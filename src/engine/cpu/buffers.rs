//! The memory of the engine, made once: what all threads share, and what each has for itself.

use std::sync::atomic::AtomicUsize;

use super::features::Features;
use super::geometry::Geometry;
use super::median::scratch_len;
use super::memory::Block;
use super::speckle::{Forest, Labels};
use super::team::Barrier;
use super::winner::Selection;
use crate::matching::{Cost, Median, Params};

/// Memory that all threads use.
pub struct Shared {
    /// Planes of the left eye (`features.rs`), [row][plane][stride]; empty where it is its picture.
    pub left: Block<u8>,
    /// Planes of the right eye, mirrored (`cost.rs`), [row][plane][stride].
    pub mirrored: Block<u8>,
    /// What is or-ed to a pixel's last vector of costs.
    pub padding: Block<u8>,
    /// The vertical paths' vectors where bands meet; [edge][path][1 + x][depth].
    pub edges: Block<u8>,
    /// The regions of the map; `None` where small ones stay.
    pub forest: Option<Forest>,
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
    /// What a row's planes are prepared from, and the planes.
    pub features: Vec<u8>,
    /// Rows whose regions are joined; `None` as the forest.
    pub labels: Option<Labels>,
    /// Rows that the median looks at.
    pub median_rows: Vec<i16>,
}

impl Shared {
    /// Memory for pictures of this geometry.
    pub fn new(geometry: &Geometry, params: &Params, features: &Features, lanes: usize) -> Self {
        let edges = if geometry.upward { geometry.bands + 1 } else { 3 };
        let padding = Block::<u8>::new(lanes);
        // SAFETY: the block has this length, and nobody else knows it yet.
        let mask = unsafe { std::slice::from_raw_parts_mut(padding.ptr(), lanes) };
        mask[geometry.count - (geometry.chunks - 1) * lanes..].fill(255);
        let filtered = params.median != Median::Off;
        Self {
            left: Block::new(if features.of_left() {
                geometry.height * features.planes() * geometry.feature_stride()
            } else {
                0
            }),
            mirrored: Block::new(geometry.height * features.planes() * geometry.mirrored_stride()),
            padding,
            edges: Block::new(edges * geometry.vertical * geometry.edge_stride()),
            unfiltered: Block::new(if filtered { geometry.width * geometry.height } else { 0 }),
            forest: params.speckle.map(|_| Forest::new(geometry.width * geometry.height)),
            progress: [0, 1].map(|_| (0..geometry.bands).map(|_| AtomicUsize::new(0)).collect()),
            barrier: Barrier::default(),
        }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.left.bytes()
            + self.mirrored.bytes()
            + self.padding.bytes()
            + self.edges.bytes()
            + self.unfiltered.bytes()
            + self.forest.as_ref().map_or(0, Forest::bytes)
    }

    /// Forgets the frame before.
    pub fn begin_frame(&mut self) {
        self.barrier.reset();
        self.progress.iter_mut().flatten().for_each(|columns| *columns.get_mut() = 0);
    }
}

impl Scratch {
    /// Memory for bands of this geometry.
    pub fn new(geometry: &Geometry, params: &Params, features: &Features, lanes: usize) -> Self {
        let Geometry { width, depth, band_rows, planes, ring, vertical, .. } = *geometry;
        let chain_bytes = vertical * geometry.chain_slots() * depth;
        let (slab, window) = match params.cost {
            Cost::Ad { window, .. } => (window > 1, window > 1),
            Cost::Census { .. } | Cost::Combined { .. } => (true, false),
        };
        Self {
            excesses: Block::new(band_rows * width * planes * depth),
            chains: [Block::new(chain_bytes), Block::new(chain_bytes)],
            ring: Block::new(band_rows * ring * depth),
            selection: Selection::new(geometry, params, lanes),
            slab: Block::new(if slab { band_rows * width * depth } else { 0 }),
            slab_columns: vec![0; if window { width * depth } else { 0 }],
            slab_window: vec![0; if window { depth } else { 0 }],
            features: vec![0; features.scratch_len(geometry)],
            labels: params.speckle.map(|_| Labels::new(width)),
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
            + self.features.len()
            + self.labels.as_ref().map_or(0, Labels::bytes)
            + 2 * (self.slab_columns.len() + self.slab_window.len() + self.median_rows.len())
    }
}
