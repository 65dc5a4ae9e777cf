//! The memory of the engine, made once: what all threads share, and what each has for itself. How much it
//! is follows from the same numbers before any of it is made ([`bytes_of`]).

use std::sync::atomic::AtomicUsize;

use super::features::Features;
use super::geometry::{Geometry, writes_costs};
use super::memory::Block;
use super::mirrored::Stripes;
use super::penalties;
use super::pixel_rows::{self, HandedOn};
use super::places::Places;
use super::winner::WinnerTakesAll;
use super::zero_mean::{self, zero_mean_window};
use crate::matching::{BlockMeasure, Cost, Params};
use crate::memory::{Refused, filled, product};

/// Memory that all threads use.
pub struct Shared {
    /// Planes of the left eye (`features.rs`), [row][plane][stride]; empty where it is its picture.
    pub left: Block<u8>,
    /// Planes of the right eye, mirrored (`mirrored.rs`), [row][plane][stride].
    pub mirrored: Block<u8>,
    /// P2 between neighbouring pixels (`penalties.rs`), where bands follow paths.
    pub penalties: Block<u8>,
    /// Where the stripes of mirrored rows begin (`mirrored.rs`).
    pub starts: Block<u32>,
    /// The candidate of every place of a pair (`places.rs`), [depth].
    pub numbers: Block<i16>,
    /// What is or-ed to a pixel's costs, [depth]: 255 beyond the range, else 0.
    pub padding: Block<u8>,
    /// Pixels of both eyes without the mean around them (`zero_mean.rs`), the right one's mirrored; ZSAD only.
    pub zero_mean: [Block<i16>; 2],
    /// The vertical paths' vectors where bands meet; [edge][path][1 + x][depth].
    pub edges: Block<u8>,
    /// Costs of the whole picture, [pixel][depth], where they are kept, and sums of paths that no band follows
    /// (`kept_sums.rs`).
    pub whole_costs: Block<u8>,
    pub whole_sums: Block<i16>,
    /// Costs of single pixels that each band hands on to the next one.
    pub handed_on: HandedOn,
    /// Finished columns of every band's last row, of the sweep that is going on.
    pub progress: [Vec<AtomicUsize>; 2],
}

/// Memory of one thread.
pub struct Scratch {
    /// Deltas of the paths to the left of a band.
    pub path_deltas: Block<u8>,
    /// Vectors of the paths to the right, where they have come in each row of a band.
    pub rightwards: Block<u8>,
    /// Slots of the downward and of the upward paths (`vertical.rs`).
    pub path_states: [Block<u8>; 2],
    /// Deltas of the downward paths on their way to the upward pass.
    pub ring: Block<u8>,
    /// Picks the winners.
    pub winner: WinnerTakesAll,
    /// The cost of a band, where it is neither computed on the fly nor kept for the whole picture.
    pub band_costs: Block<u8>,
    /// The costs of single pixels of a band and around it, where something supports them (`pixel_rows.rs`).
    pub pixel_costs: Block<u8>,
    /// The costs of single pixels that are being added up, [place of the row][x][depth].
    pub kept_costs: Block<u8>,
    /// Sums over a window's rows.
    pub window_columns: Vec<u16>,
    /// Sums over a window.
    pub window_sums: Vec<u16>,
    /// The same of what needs 32 bits, [x][part][depth] and [part][depth].
    pub wide_columns: Vec<u32>,
    pub wide_sums: Vec<u32>,
    /// Sums of one pixel, [depth].
    pub pixel_sums: Vec<i16>,
    /// Sums of a row, [x][depth], where there are no paths.
    pub row_sums: Block<i16>,
    /// What a row without means is made in.
    pub zero_mean: Vec<i16>,
    /// What a row's planes are prepared from, and the planes.
    pub features: Vec<u8>,
    /// Steps of brightness along a row.
    pub steps: Vec<u8>,
}

/// Numbers of elements of what all threads use.
struct SharedLens {
    left: u64,
    mirrored: u64,
    penalties: u64,
    zero_mean: [u64; 2],
    edges: u64,
    whole_costs: u64,
    whole_sums: u64,
}

impl SharedLens {
    fn of(geometry: &Geometry, params: &Params, features: &Features) -> Self {
        let &Geometry { width, height, depth, vertical, banded, .. } = geometry;
        let planes = |stride: usize| product([height, features.planes(), stride]);
        let edges = if geometry.upward { geometry.bands + 1 } else { 3 };
        let follows_bands = banded || params.is_local();
        let whole = product([width, height, depth]);
        Self {
            left: if features.of_left() { planes(geometry.feature_stride()) } else { 0 },
            mirrored: planes(geometry.mirrored_stride()),
            penalties: penalties::len(geometry),
            zero_mean: match zero_mean_window(params) {
                Some(_) => [geometry.feature_stride(), geometry.mirrored_stride()]
                    .map(|stride| product([height, stride])),
                None => [0, 0],
            },
            edges: if banded { product([edges, vertical, geometry.edge_stride()]) } else { 0 },
            whole_costs: if geometry.keeps_costs || !follows_bands { whole } else { 0 },
            whole_sums: if follows_bands { 0 } else { whole },
        }
    }
}

/// Numbers of elements of what a thread has for itself.
struct ScratchLens {
    path_deltas: u64,
    rightwards: u64,
    path_state: u64,
    ring: u64,
    band_costs: u64,
    pixel_costs: u64,
    kept_costs: u64,
    window_columns: usize,
    window_sums: usize,
    wide_columns: usize,
    wide_sums: usize,
    pixel_sums: usize,
    row_sums: u64,
    features: usize,
    steps: usize,
    zero_mean: usize,
}

impl ScratchLens {
    fn of(geometry: &Geometry, params: &Params, features: &Features) -> Self {
        let Geometry { width, depth, band_rows, ring, kept, vertical, banded, .. } = *geometry;
        let of_cost = matches!(params.cost, Cost::Ad { window: 2.., .. });
        let block = match params.cost {
            Cost::Block { measure, .. } => Some(measure),
            _ => None,
        };
        let local = params.is_local();
        let band_costs = writes_costs(params) && !geometry.keeps_costs;
        // Sums of 16 bits, and parts of 32.
        let adds_pixels = block.map_or(local || of_cost, |measure| measure == BlockMeasure::Sad);
        let parts = match block {
            None | Some(BlockMeasure::Sad) => 0,
            Some(BlockMeasure::Ssd | BlockMeasure::ZeroMeanSad) => 1,
            Some(BlockMeasure::ZeroMeanSsd) => 2,
        };
        let window = adds_pixels || params.window.is_some();
        let cells = width.saturating_mul(depth);
        Self {
            path_deltas: if banded { product([band_rows, width, depth]) } else { 0 },
            rightwards: if banded { product([band_rows, depth]) } else { 0 },
            path_state: if banded {
                product([vertical, geometry.path_state_slots(), depth])
            } else {
                0
            },
            ring: if banded { product([band_rows, ring, kept, depth]) } else { 0 },
            band_costs: if band_costs { product([band_rows, width, depth]) } else { 0 },
            pixel_costs: pixel_rows::own_len(geometry, params),
            kept_costs: if adds_pixels { product([places(params), width, depth]) } else { 0 },
            window_columns: if window { cells } else { 0 },
            window_sums: if adds_pixels { depth } else { 0 },
            wide_columns: cells.saturating_mul(parts),
            wide_sums: depth * parts,
            pixel_sums: if adds_pixels || block.is_some() { depth } else { 0 },
            row_sums: if local { product([width, depth]) } else { 0 },
            features: features.scratch_len(geometry),
            steps: penalties::scratch_len(geometry),
            zero_mean: zero_mean_window(params).map_or(0, |_| zero_mean::scratch_len(geometry)),
        }
    }
}

/// Rows of pixels' costs that are kept to be added up: those of a window, and the one that leaves it.
pub fn places(params: &Params) -> usize {
    usize::from(params.summed_window().height) + 1
}

/// Bytes of the memory of an engine with so many threads.
pub fn bytes_of(geometry: &Geometry, params: &Params, features: &Features, threads: usize) -> u64 {
    let sum = |parts: &[u64]| parts.iter().fold(0u64, |sum, part| sum.saturating_add(*part));
    let shared = SharedLens::of(geometry, params, features);
    let scratch = ScratchLens::of(geometry, params, features);
    let [columns, window, sums, zero_mean] =
        [scratch.window_columns, scratch.window_sums, scratch.pixel_sums, scratch.zero_mean]
            .map(|len| product([2, len]));
    let wide = [scratch.wide_columns, scratch.wide_sums].map(|len| product([4, len]));
    let of_thread = sum(&[
        Block::<u8>::bytes_of(scratch.path_deltas),
        Block::<u8>::bytes_of(scratch.rightwards),
        Block::<u8>::bytes_of(scratch.path_state).saturating_mul(2),
        Block::<u8>::bytes_of(scratch.ring),
        WinnerTakesAll::bytes_of(geometry, params),
        Block::<u8>::bytes_of(scratch.band_costs),
        Block::<u8>::bytes_of(scratch.pixel_costs),
        Block::<u8>::bytes_of(scratch.kept_costs),
        scratch.features as u64,
        scratch.steps as u64,
        Block::<i16>::bytes_of(scratch.row_sums),
        columns,
        window,
        sums,
        zero_mean,
        wide[0],
        wide[1],
    ]);
    sum(&[
        Block::<u8>::bytes_of(shared.left),
        Block::<u8>::bytes_of(shared.mirrored),
        Block::<u8>::bytes_of(shared.penalties),
        Block::<u32>::bytes_of(2 * geometry.chunks as u64),
        Block::<i16>::bytes_of(geometry.depth as u64),
        Block::<u8>::bytes_of(geometry.depth as u64),
        Block::<u8>::bytes_of(shared.edges),
        Block::<i16>::bytes_of(shared.zero_mean[0]),
        Block::<i16>::bytes_of(shared.zero_mean[1]),
        Block::<u8>::bytes_of(shared.whole_costs),
        Block::<i16>::bytes_of(shared.whole_sums),
        Block::<u8>::bytes_of(HandedOn::len(geometry, params, threads)),
        of_thread.saturating_mul(threads as u64),
    ])
}

impl Shared {
    /// Memory for pictures of this geometry and so many threads.
    pub fn new(
        geometry: &Geometry,
        params: &Params,
        features: &Features,
        threads: usize,
    ) -> Result<Self, Refused> {
        let lens = SharedLens::of(geometry, params, features);
        let (depth, chunks) = (geometry.depth, geometry.chunks);
        let starts = Block::<u32>::new(2 * chunks as u64)?;
        for (stripe, start) in Stripes::starts(geometry).enumerate() {
            // SAFETY: the block has so many numbers, and nobody else knows it yet.
            unsafe { *starts.ptr().add(stripe) = start };
        }
        let places = Places::of(geometry);
        let padding = Block::<u8>::new(depth as u64)?;
        for (place, candidate) in places.candidates().enumerate() {
            // SAFETY: the block has so many places, and nobody else knows it yet.
            unsafe { *padding.ptr().add(place) = if candidate < geometry.count { 0 } else { 255 } };
        }
        Ok(Self {
            left: Block::new(lens.left)?,
            mirrored: Block::new(lens.mirrored)?,
            penalties: Block::new(lens.penalties)?,
            starts,
            numbers: places.table(|candidate| candidate as i16)?,
            padding,
            zero_mean: [Block::new(lens.zero_mean[0])?, Block::new(lens.zero_mean[1])?],
            edges: Block::new(lens.edges)?,
            whole_costs: Block::new(lens.whole_costs)?,
            whole_sums: Block::new(lens.whole_sums)?,
            handed_on: HandedOn::new(geometry, params, threads)?,
            progress: [0, 1].map(|_| (0..geometry.bands).map(|_| AtomicUsize::new(0)).collect()),
        })
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.left.bytes()
            + self.mirrored.bytes()
            + self.penalties.bytes()
            + self.starts.bytes()
            + self.numbers.bytes()
            + self.padding.bytes()
            + self.zero_mean.iter().map(Block::bytes).sum::<usize>()
            + self.edges.bytes()
            + self.whole_costs.bytes()
            + self.whole_sums.bytes()
            + self.handed_on.bytes()
    }

    /// Forgets the frame before.
    pub fn begin_frame(&mut self) {
        self.progress.iter_mut().flatten().for_each(|columns| *columns.get_mut() = 0);
        self.handed_on.begin_frame();
    }
}

impl Scratch {
    /// Memory for bands of this geometry.
    pub fn new(geometry: &Geometry, params: &Params, features: &Features) -> Result<Self, Refused> {
        let lens = ScratchLens::of(geometry, params, features);
        Ok(Self {
            path_deltas: Block::new(lens.path_deltas)?,
            rightwards: Block::new(lens.rightwards)?,
            path_states: [Block::new(lens.path_state)?, Block::new(lens.path_state)?],
            ring: Block::new(lens.ring)?,
            winner: WinnerTakesAll::new(geometry, params)?,
            band_costs: Block::new(lens.band_costs)?,
            pixel_costs: Block::new(lens.pixel_costs)?,
            kept_costs: Block::new(lens.kept_costs)?,
            window_columns: filled(lens.window_columns, 0)?,
            window_sums: filled(lens.window_sums, 0)?,
            wide_columns: filled(lens.wide_columns, 0)?,
            wide_sums: filled(lens.wide_sums, 0)?,
            pixel_sums: filled(lens.pixel_sums, 0)?,
            row_sums: Block::new(lens.row_sums)?,
            zero_mean: filled(lens.zero_mean, 0)?,
            features: filled(lens.features, 0)?,
            steps: filled(lens.steps, 0)?,
        })
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.path_deltas.bytes()
            + self.rightwards.bytes()
            + self.path_states.iter().map(Block::bytes).sum::<usize>()
            + self.ring.bytes()
            + self.winner.bytes()
            + self.band_costs.bytes()
            + self.pixel_costs.bytes()
            + self.kept_costs.bytes()
            + self.features.len()
            + self.steps.len()
            + self.row_sums.bytes()
            + 2 * (self.window_columns.len() + self.window_sums.len())
            + 2 * (self.pixel_sums.len() + self.zero_mean.len())
            + 4 * (self.wide_columns.len() + self.wide_sums.len())
    }
}
