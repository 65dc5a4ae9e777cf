//! The memory of the engine, made once: what all threads share, and what each has for itself. How much it
//! is follows from the same numbers before any of it is made ([`bytes_of`]).

use std::sync::atomic::AtomicUsize;

use super::features::Features;
use super::geometry::Geometry;
use super::memory::Block;
use super::team::Barrier;
use super::winner::WinnerTakesAll;
use crate::matching::{Cost, Params};
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
    /// Finished columns of every band's last row, of the sweep that is going on.
    pub progress: [Vec<AtomicUsize>; 2],
    /// Where the threads wait between stages.
    pub barrier: Barrier,
}

/// Memory of one thread.
pub struct Scratch {
    /// Deltas of the horizontal paths of a band.
    pub path_deltas: Block<u8>,
    /// Slots of the downward and of the upward paths (`vertical.rs`).
    pub path_states: [Block<u8>; 2],
    /// Sums on their way from the downward to the upward pass.
    pub ring: Block<i16>,
    /// Picks the winners.
    pub winner: WinnerTakesAll,
    /// The cost of a band, where it is not computed on the fly.
    pub band_costs: Block<u8>,
    /// The costs of single pixels of a band and around it, where something supports them.
    pub pixel_costs: Block<u8>,
    /// Sums over a window's rows.
    pub window_columns: Vec<u16>,
    /// Sums over a window.
    pub window_sums: Vec<u16>,
    /// What a row's planes are prepared from, and the planes.
    pub features: Vec<u8>,
}

/// Numbers of elements of what all threads use.
struct SharedLens {
    left: u64,
    mirrored: u64,
    edges: u64,
}

impl SharedLens {
    fn of(geometry: &Geometry, features: &Features) -> Self {
        let &Geometry { height, vertical, .. } = geometry;
        let planes = |stride: usize| product([height, features.planes(), stride]);
        let edges = if geometry.upward { geometry.bands + 1 } else { 3 };
        Self {
            left: if features.of_left() { planes(geometry.feature_stride()) } else { 0 },
            mirrored: planes(geometry.mirrored_stride()),
            edges: product([edges, vertical, geometry.edge_stride()]),
        }
    }
}

/// Numbers of elements of what a thread has for itself.
struct ScratchLens {
    path_deltas: u64,
    path_state: u64,
    ring: u64,
    band_costs: u64,
    pixel_costs: u64,
    window_columns: usize,
    window_sums: usize,
    features: usize,
}

impl ScratchLens {
    fn of(geometry: &Geometry, params: &Params, features: &Features) -> Self {
        let Geometry { width, depth, band_rows, planes, ring, vertical, .. } = *geometry;
        let of_cost = matches!(params.cost, Cost::Ad { window: 2.., .. });
        let supported = params.is_supported();
        let band_costs = supported || of_cost || features.of_left();
        let window = of_cost || params.window.is_some();
        let around = 2 * params.window.map_or(0, |window| usize::from(window.side / 2));
        Self {
            path_deltas: product([band_rows, width, planes, depth]),
            path_state: product([vertical, geometry.path_state_slots(), depth]),
            ring: product([band_rows, ring, depth]),
            band_costs: if band_costs { product([band_rows, width, depth]) } else { 0 },
            pixel_costs: match supported {
                true => product([band_rows + around, width, depth]),
                false => 0,
            },
            window_columns: if window { width.saturating_mul(depth) } else { 0 },
            window_sums: if of_cost { depth } else { 0 },
            features: features.scratch_len(geometry),
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
    let shared = SharedLens::of(geometry, features);
    let scratch = ScratchLens::of(geometry, params, features);
    let [columns, window] =
        [scratch.window_columns, scratch.window_sums].map(|len| product([2, len]));
    let of_thread = sum(&[
        Block::<u8>::bytes_of(scratch.path_deltas),
        Block::<u8>::bytes_of(scratch.path_state).saturating_mul(2),
        Block::<i16>::bytes_of(scratch.ring),
        WinnerTakesAll::bytes_of(geometry, params, lanes),
        Block::<u8>::bytes_of(scratch.band_costs),
        Block::<u8>::bytes_of(scratch.pixel_costs),
        scratch.features as u64,
        columns,
        window,
    ]);
    sum(&[
        Block::<u8>::bytes_of(shared.left),
        Block::<u8>::bytes_of(shared.mirrored),
        Block::<u8>::bytes_of(lanes as u64),
        Block::<u8>::bytes_of(shared.edges),
        of_thread.saturating_mul(threads as u64),
    ])
}

impl Shared {
    /// Memory for pictures of this geometry.
    ///
    /// # Errors
    /// Where there is none.
    pub fn new(geometry: &Geometry, features: &Features, lanes: usize) -> Result<Self, Refused> {
        let lens = SharedLens::of(geometry, features);
        let padding = Block::<u8>::new(lanes as u64)?;
        // SAFETY: the block has this length, and nobody else knows it yet.
        let mask = unsafe { std::slice::from_raw_parts_mut(padding.ptr(), lanes) };
        mask[geometry.count - (geometry.chunks - 1) * lanes..].fill(255);
        Ok(Self {
            left: Block::new(lens.left)?,
            mirrored: Block::new(lens.mirrored)?,
            padding,
            edges: Block::new(lens.edges)?,
            progress: [0, 1].map(|_| (0..geometry.bands).map(|_| AtomicUsize::new(0)).collect()),
            barrier: Barrier::default(),
        })
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.left.bytes() + self.mirrored.bytes() + self.padding.bytes() + self.edges.bytes()
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
            path_deltas: Block::new(lens.path_deltas)?,
            path_states: [Block::new(lens.path_state)?, Block::new(lens.path_state)?],
            ring: Block::new(lens.ring)?,
            winner: WinnerTakesAll::new(geometry, params, lanes)?,
            band_costs: Block::new(lens.band_costs)?,
            pixel_costs: Block::new(lens.pixel_costs)?,
            window_columns: filled(lens.window_columns, 0)?,
            window_sums: filled(lens.window_sums, 0)?,
            features: filled(lens.features, 0)?,
        })
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.path_deltas.bytes()
            + self.path_states.iter().map(Block::bytes).sum::<usize>()
            + self.ring.bytes()
            + self.winner.bytes()
            + self.band_costs.bytes()
            + self.pixel_costs.bytes()
            + self.features.len()
            + 2 * (self.window_columns.len() + self.window_sums.len())
    }
}
