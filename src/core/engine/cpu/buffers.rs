//! The engine's memory, allocated once: buffers shared by all threads, and scratch buffers per thread.

use std::sync::atomic::AtomicUsize;

use super::features::Features;
use super::geometry::{Geometry, TILE_SUMS, writes_costs};
use super::memory::{Arena, Block};
use super::mirrored_rows::Stripes;
use super::pixel_rows::{self, HandedOn};
use super::steps;
use super::striping::StripedOrder;
use super::winner::WinnerTakesAll;
use super::zero_mean::{self, zero_mean_window};
use crate::matching::{BlockMeasure, Cost, Params};
use crate::memory::{Result, product};

/// Memory that all threads use.
pub struct Shared {
    /// Planes of the left view (`features.rs`), [row][plane][stride]; empty if the plane is the image itself.
    pub left: Block<u8>,
    /// Planes of the right view, mirrored (`mirrored_rows.rs`), [row][plane][stride].
    pub mirrored: Block<u8>,
    /// P2 between neighbouring pixels (`steps.rs`), if bands follow paths.
    pub penalties: Block<u8>,
    /// Slants of the expected surface between them, if there is one.
    pub slants: Block<u8>,
    /// Offsets of the stripes of mirrored rows (`mirrored_rows.rs`).
    pub starts: Block<u32>,
    /// Candidate of each place of a pair (`striping.rs`), [depth].
    pub numbers: Block<i16>,
    /// Mask ORed into a pixel's costs, [depth]: 255 beyond the range, else 0.
    pub padding: Block<u8>,
    /// ZSAD only: pixels of both views minus their local mean (`zero_mean.rs`), the right view mirrored.
    pub zero_mean: [Block<i16>; 2],
    /// Vectors of the vertical paths at the borders of bands; [edge][path][1 + x][depth].
    pub edges: Block<u8>,
    /// Costs of the whole image, [pixel][depth], if kept, and sums of the paths that no band follows
    /// (`full_volume.rs`).
    pub whole_costs: Block<u8>,
    pub whole_sums: Block<i16>,
    /// Costs of single pixels that each band passes to the next one.
    pub handed_on: HandedOn,
    /// Finished columns of every band's last row, in the current sweep.
    pub progress: [Vec<AtomicUsize>; 2],
}

pub struct Scratch {
    pub path_deltas: Block<u8>,
    /// Vectors of the rightward paths at the current column of each row of a band.
    pub rightwards: Block<u8>,
    /// Slots of the downward and of the upward paths (`vertical.rs`).
    pub path_states: [Block<u8>; 2],
    /// Deltas of the downward paths on their way to the upward pass.
    pub ring: Block<u8>,
    pub winner: WinnerTakesAll,
    /// Costs of a band, if they are neither computed on the fly nor kept for the whole image.
    pub band_costs: Block<u8>,
    /// Costs of single pixels of a band and around it, if they get support (`pixel_rows.rs`).
    pub pixel_costs: Block<u8>,
    /// Costs of single pixels for the window sums, [place of the row][x][depth].
    pub kept_costs: Block<u8>,
    /// Sums over a window's rows.
    pub window_columns: Vec<u16>,
    pub window_sums: Vec<u16>,
    /// The same in 32 bits, [x][part][depth] and [part][depth].
    pub wide_columns: Vec<u32>,
    pub wide_sums: Vec<u32>,
    /// Sums of one pixel, [depth].
    pub pixel_sums: Vec<i16>,
    /// Sums of a row without paths, [x][depth].
    pub row_sums: Block<i16>,
    pub zero_mean: Vec<i16>,
    /// Scratch for the planes of a row.
    pub features: Vec<u8>,
    /// Brightness steps along a row.
    pub steps: Vec<u8>,
}

/// Number of rows of pixel costs kept for window sums: the rows of the window and the one that leaves it.
pub fn kept_rows(params: &Params) -> usize {
    usize::from(params.summed_window().height) + 1
}

impl Shared {
    pub fn new(
        arena: &Arena,
        geometry: &Geometry,
        params: &Params,
        features: &Features,
        threads: usize,
    ) -> Result<Self> {
        let &Geometry { width, height, depth, chunks, vertical, banded, .. } = geometry;
        let planes = |stride: usize| product([height, features.planes(), stride]);
        let edges = if geometry.upward { geometry.bands + 1 } else { 3 };
        let follows_bands = banded || params.is_local();
        let whole = product([width, height, depth]);
        let zero_mean = |stride: usize| match zero_mean_window(params) {
            Some(_) => arena.block(product([height, stride])),
            None => arena.block(0),
        };
        let order = StripedOrder::of(geometry);
        Ok(Self {
            left: arena.block(match features.of_left() {
                true => planes(geometry.feature_stride()),
                false => 0,
            })?,
            mirrored: arena.block(planes(geometry.mirrored_stride()))?,
            penalties: arena.block(steps::len(geometry))?,
            slants: arena.block(if geometry.follows_surface { steps::len(geometry) } else { 0 })?,
            starts: arena.block_with(2 * chunks, |starts| {
                starts
                    .iter_mut()
                    .zip(Stripes::starts(geometry))
                    .for_each(|(to, start)| *to = start);
            })?,
            numbers: order.table(arena, |candidate| candidate as i16)?,
            padding: arena.block_with(depth, |padding| {
                for (byte, candidate) in padding.iter_mut().zip(order.candidates()) {
                    *byte = if candidate < geometry.count { 0 } else { 255 };
                }
            })?,
            zero_mean: [
                zero_mean(geometry.feature_stride())?,
                zero_mean(geometry.mirrored_stride())?,
            ],
            edges: arena.block(match banded {
                true => product([edges, vertical, geometry.edge_stride()]),
                false => 0,
            })?,
            whole_costs: arena.block(match geometry.keeps_costs || !follows_bands {
                true => whole,
                false => 0,
            })?,
            whole_sums: arena.block(if follows_bands { 0 } else { whole })?,
            handed_on: HandedOn::new(arena, geometry, params, threads)?,
            progress: [0, 1].map(|_| arena.uncounted(geometry.bands, || AtomicUsize::new(0))),
        })
    }

    pub fn begin_frame(&mut self) {
        self.progress.iter_mut().flatten().for_each(|columns| *columns.get_mut() = 0);
        self.handed_on.begin_frame();
    }
}

impl Scratch {
    pub fn new(
        arena: &Arena,
        geometry: &Geometry,
        params: &Params,
        features: &Features,
    ) -> Result<Self> {
        let Geometry { width, depth, band_rows, ring, kept, vertical, banded, .. } = *geometry;
        let of_cost = matches!(params.cost, Cost::Ad { window: 2.., .. });
        let block = match params.cost {
            Cost::Block { measure, .. } => Some(measure),
            _ => None,
        };
        let local = params.is_local();
        let stores_band = writes_costs(params) && !geometry.keeps_costs;
        // Sums of 16 bits, and parts of 32.
        let adds_pixels = block.map_or(local || of_cost, |measure| measure == BlockMeasure::Sad);
        let parts = match block {
            None | Some(BlockMeasure::Sad) => 0,
            Some(BlockMeasure::Ssd | BlockMeasure::ZeroMeanSad) => 1,
            Some(BlockMeasure::ZeroMeanSsd) => 2,
        };
        let cells = width.saturating_mul(depth);
        let bytes = |needed: bool, factors: [usize; 3]| {
            arena.block(if needed { product(factors) } else { 0 })
        };
        let path_states = || bytes(banded, [vertical, geometry.path_state_slots(), depth]);
        let columns = if geometry.windowed { TILE_SUMS } else { cells };
        let numbers = |needed: bool, len: usize| arena.filled(if needed { len } else { 0 }, 0);
        let sums = |needed: bool, len: usize| arena.filled(if needed { len } else { 0 }, 0);
        Ok(Self {
            path_deltas: bytes(banded, [band_rows, width, depth])?,
            rightwards: bytes(banded, [band_rows, depth, 1])?,
            path_states: [path_states()?, path_states()?],
            ring: bytes(banded, [band_rows * ring, kept, depth])?,
            winner: WinnerTakesAll::new(arena, geometry, params)?,
            band_costs: bytes(stores_band, [band_rows, width, depth])?,
            pixel_costs: arena.block(pixel_rows::own_len(geometry, params))?,
            kept_costs: bytes(adds_pixels, [kept_rows(params), width, depth])?,
            window_columns: numbers(adds_pixels || params.window.is_some(), columns)?,
            window_sums: numbers(adds_pixels, depth)?,
            wide_columns: arena.filled(cells.saturating_mul(parts), 0)?,
            wide_sums: arena.filled(depth * parts, 0)?,
            pixel_sums: sums(adds_pixels || block.is_some(), depth)?,
            row_sums: arena.block(if local { product([width, depth]) } else { 0 })?,
            zero_mean: sums(zero_mean_window(params).is_some(), zero_mean::scratch_len(geometry))?,
            features: arena.filled(features.scratch_len(geometry), 0)?,
            steps: arena.filled(steps::scratch_len(geometry), 0)?,
        })
    }
}
