//! The memory of the engine, made once: what all threads share, and what each has for itself. How much it
//! is follows from the same numbers before any of it is made ([`bytes_of`]).

use std::sync::atomic::AtomicUsize;

use super::features::Features;
use super::geometry::Geometry;
use super::median::scratch_len;
use super::memory::Block;
use super::speckle::{Forest, Labels};
use super::team::Barrier;
use super::winner::Selection;
use crate::matching::{Cost, Median, Params};
use crate::memory::{Refused, filled, product};

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

/// Numbers of elements of what all threads use.
struct SharedLens {
    left: u64,
    mirrored: u64,
    edges: u64,
    unfiltered: u64,
    /// `None` where small regions stay.
    forest: Option<u64>,
}

impl SharedLens {
    fn of(geometry: &Geometry, params: &Params, features: &Features) -> Self {
        let &Geometry { width, height, vertical, .. } = geometry;
        let planes = |stride: usize| product([height, features.planes(), stride]);
        let edges = if geometry.upward { geometry.bands + 1 } else { 3 };
        let pixels = product([width, height]);
        Self {
            left: if features.of_left() { planes(geometry.feature_stride()) } else { 0 },
            mirrored: planes(geometry.mirrored_stride()),
            edges: product([edges, vertical, geometry.edge_stride()]),
            unfiltered: if params.median == Median::Off { 0 } else { pixels },
            forest: params.speckle.map(|_| pixels),
        }
    }
}

/// Numbers of elements of what a thread has for itself.
struct ScratchLens {
    excesses: u64,
    chain: u64,
    ring: u64,
    slab: u64,
    slab_columns: usize,
    slab_window: usize,
    features: usize,
    median_rows: usize,
    /// Width of the rows whose regions are joined.
    labels: Option<usize>,
}

impl ScratchLens {
    fn of(geometry: &Geometry, params: &Params, features: &Features) -> Self {
        let Geometry { width, depth, band_rows, planes, ring, vertical, .. } = *geometry;
        let (slab, window) = match params.cost {
            Cost::Ad { window, .. } => (window > 1, window > 1),
            Cost::Census { .. } | Cost::Combined { .. } => (true, false),
        };
        Self {
            excesses: product([band_rows, width, planes, depth]),
            chain: product([vertical, geometry.chain_slots(), depth]),
            ring: product([band_rows, ring, depth]),
            slab: if slab { product([band_rows, width, depth]) } else { 0 },
            slab_columns: if window { width.saturating_mul(depth) } else { 0 },
            slab_window: if window { depth } else { 0 },
            features: features.scratch_len(geometry),
            median_rows: params.median.radius().map_or(0, |r| scratch_len(width, 2 * r + 1)),
            labels: params.speckle.map(|_| width),
        }
    }
}

/// Bytes of the memory of an engine with so many threads.
pub fn bytes_of(
    geometry: &Geometry,
    params: &Params,
    features: &Features,
    lanes: usize,
    threads: usize,
) -> u64 {
    let sum = |parts: &[u64]| parts.iter().fold(0u64, |sum, part| sum.saturating_add(*part));
    let shared = SharedLens::of(geometry, params, features);
    let scratch = ScratchLens::of(geometry, params, features);
    let [columns, window, rows] = [scratch.slab_columns, scratch.slab_window, scratch.median_rows]
        .map(|len| product([2, len]));
    let of_thread = sum(&[
        Block::<u8>::bytes_of(scratch.excesses),
        Block::<u8>::bytes_of(scratch.chain).saturating_mul(2),
        Block::<i16>::bytes_of(scratch.ring),
        Selection::bytes_of(geometry, lanes),
        Block::<u8>::bytes_of(scratch.slab),
        scratch.features as u64,
        scratch.labels.map_or(0, Labels::bytes_of),
        columns,
        window,
        rows,
    ]);
    sum(&[
        Block::<u8>::bytes_of(shared.left),
        Block::<u8>::bytes_of(shared.mirrored),
        Block::<u8>::bytes_of(lanes as u64),
        Block::<u8>::bytes_of(shared.edges),
        Block::<i16>::bytes_of(shared.unfiltered),
        shared.forest.map_or(0, Forest::bytes_of),
        of_thread.saturating_mul(threads as u64),
    ])
}

impl Shared {
    /// Memory for pictures of this geometry.
    ///
    /// # Errors
    /// Where there is none.
    pub fn new(
        geometry: &Geometry,
        params: &Params,
        features: &Features,
        lanes: usize,
    ) -> Result<Self, Refused> {
        let lens = SharedLens::of(geometry, params, features);
        let padding = Block::<u8>::new(lanes as u64)?;
        // SAFETY: the block has this length, and nobody else knows it yet.
        let mask = unsafe { std::slice::from_raw_parts_mut(padding.ptr(), lanes) };
        mask[geometry.count - (geometry.chunks - 1) * lanes..].fill(255);
        Ok(Self {
            left: Block::new(lens.left)?,
            mirrored: Block::new(lens.mirrored)?,
            padding,
            edges: Block::new(lens.edges)?,
            unfiltered: Block::new(lens.unfiltered)?,
            forest: lens.forest.map(Forest::new).transpose()?,
            progress: [0, 1].map(|_| (0..geometry.bands).map(|_| AtomicUsize::new(0)).collect()),
            barrier: Barrier::default(),
        })
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
    ///
    /// # Errors
    /// Where there is none.
    pub fn new(
        geometry: &Geometry,
        params: &Params,
        features: &Features,
        lanes: usize,
    ) -> Result<Self, Refused> {
        let lens = ScratchLens::of(geometry, params, features);
        Ok(Self {
            excesses: Block::new(lens.excesses)?,
            chains: [Block::new(lens.chain)?, Block::new(lens.chain)?],
            ring: Block::new(lens.ring)?,
            selection: Selection::new(geometry, params, lanes)?,
            slab: Block::new(lens.slab)?,
            slab_columns: filled(lens.slab_columns, 0)?,
            slab_window: filled(lens.slab_window, 0)?,
            features: filled(lens.features, 0)?,
            labels: lens.labels.map(Labels::new).transpose()?,
            median_rows: filled(lens.median_rows, 0)?,
        })
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
