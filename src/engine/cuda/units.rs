//! The translation units that a job needs: files of `kernels/` with the constants that they are
//! compiled with.
//!
//! Macros that begin with EXPECTED are what `geometry.rs` computes beside a kernel; the kernel refuses to
//! be compiled where its own formula gives something else.

use super::cost::CostKernel;
use super::device::Properties;
use super::geometry::{
    AHEAD, BESIDE, BLOCK_THREADS, Block, CHUNK, HORIZONTAL_WARPS, Lanes, MEDIAN_TILE, PLAIN_WARPS,
    Prepared, SPECKLE_ROWS, SPECKLE_STEPS, Strips, TILES, WINDOWS,
};
use super::launch::Unit;
use crate::calibration::Rectifier;
use crate::frame::Eye;
use crate::matching::{Median, Params, Paths};

/// A pair's work: what is computed for every pair.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Parameters of the matching.
    pub params: &'a Params,
    /// Width and height in pixels of the pictures that are matched.
    pub size: (usize, usize),
    /// Rectifier that makes them of a raw pair; without it pairs come rectified.
    pub rectifier: Option<&'a Rectifier>,
}

impl Job<'_> {
    /// Tells whether there are pixels that a camera has not seen.
    pub(super) fn is_masked(&self) -> bool {
        self.rectifier.is_some_and(|r| Eye::BOTH.iter().any(|&eye| r.map(eye).mask().is_some()))
    }
}

/// The translation units for this job; needs no GPU.
pub fn specialisations(job: &Job, device: &Properties) -> Vec<Unit> {
    let (params, width) = (job.params, job.size.0);
    let lanes = Lanes::of(params.range.count);
    let mut units = vec![pixelwise(aggregation("features.cu", params, lanes))];
    units.extend(job.rectifier.map(|_| pixelwise(Unit::new("rectify.cu"))));
    match Strips::of(params, width as u32, device) {
        Some(strips) => units.extend(sweeps(params, lanes, strips)),
        None => units.push(aggregation("paths.cu", params, lanes).define("WARPS", PLAIN_WARPS)),
    }
    units.extend(filters(job));
    units
}

/// The horizontal paths and the launches of the sweeps.
fn sweeps(params: &Params, lanes: Lanes, strips: Strips) -> Vec<Unit> {
    let prepared = Prepared::of(params.cost, lanes);
    let across = lanes.horizontal(params.cost);
    let horizontal = aggregation("horizontal.cu", params, across)
        .define("CHUNK", CHUNK)
        .define("WARPS", HORIZONTAL_WARPS)
        .define("EXPECTED_DELTA_BYTES", across.padded())
        .define("EXPECTED_SHARED_BYTES", prepared.horizontal_bytes(across));
    let sweep = |name: &str, select: bool, direction: u32| {
        let Block { threads, shared_bytes } = strips.block(params, select);
        let unit = aggregation("sweep.cu", params, lanes)
            .define("STRIP", strips.strip)
            .define("HALO", strips.halo)
            .define("TWO_SWEEPS", u32::from(strips.two_sweeps))
            .define("DIRECTION", direction)
            .define("DIAGONALS", u32::from(params.paths != Paths::Four))
            .define("OTHER_SUMS", u32::from(params.paths != Paths::Five))
            .define("SELECT", u32::from(select))
            .define("WINDOWS", WINDOWS)
            .define("AHEAD", AHEAD)
            .define("TILES", TILES)
            .define("BLOCKS_PER_SM", strips.resident)
            .define("EXPECTED_DELTA_BYTES", lanes.padded())
            .define("EXPECTED_SUM_BYTES", lanes.sum_bytes(params))
            .define("EXPECTED_STATE_BYTES", lanes.state_bytes())
            .define("EXPECTED_HALO_BYTES", strips.halo_bytes(lanes))
            .define("EXPECTED_THREADS", threads)
            .define("EXPECTED_SHARED_BYTES", shared_bytes);
        Unit { name: name.to_owned(), ..unit }
    };
    let mut units = vec![horizontal];
    if params.paths != Paths::Five {
        units.push(sweep("sweep_to_middle", false, 0));
    }
    // A single sweep that adds what another has stored comes from below.
    units.push(sweep("sweep_and_select", true, u32::from(params.paths != Paths::Five)));
    units
}

/// Units of what follows the winner: one for each filter that is on.
fn filters(job: &Job) -> Vec<Unit> {
    let params = job.params;
    let min_disparity = format!("({})", params.range.min);
    let mut units = vec![match params.left_right {
        Some(limit) => pixelwise(Unit::new("left_right.cu"))
            .define("MIN_DISPARITY", &min_disparity)
            .define("LEFT_RIGHT_LIMIT", limit),
        None => pixelwise(Unit::new("disparities.cu")),
    }];
    if job.is_masked() {
        let unit = pixelwise(Unit::new("filter_valid_mask.cu"));
        units.push(unit.define("MIN_DISPARITY", &min_disparity));
    }
    let side = match params.median {
        Median::Off => None,
        Median::Three => Some(3),
        Median::Five => Some(5),
    };
    if let Some(side) = side {
        let [width, height] = MEDIAN_TILE;
        let unit = Unit::new("filter_median.cu").define("MEDIAN", side);
        units.push(unit.define("TILE_WIDTH", width).define("TILE_HEIGHT", height));
    }
    if let Some(speckle) = params.speckle {
        let unit = pixelwise(Unit::new("filter_speckle.cu"))
            .define("SPECKLE_SIZE", speckle.size)
            .define("SPECKLE_RANGE", speckle.range_16)
            .define("ROWS", SPECKLE_ROWS)
            .define("STEPS", SPECKLE_STEPS);
        units.push(unit);
    }
    if let Some(smoothing) = params.smoothing {
        let unit = pixelwise(Unit::new("filter_smoothing.cu"))
            .define("SMOOTHING_WEIGHT", smoothing.weight_256)
            .define("SMOOTHING_GUARD", smoothing.guard_16)
            .define("MIN_DISPARITY", &min_disparity)
            .define("DISPARITIES", params.range.count);
        units.push(unit);
    }
    units
}

/// A unit with a kernel that goes through a picture pixel by pixel.
fn pixelwise(unit: Unit) -> Unit {
    unit.define("BLOCK_THREADS", BLOCK_THREADS)
}

/// A unit that prepares or aggregates costs.
fn aggregation(file: &'static str, params: &Params, lanes: Lanes) -> Unit {
    let cost = CostKernel::of(params.cost);
    let prepared = Prepared::of(params.cost, lanes);
    let unit = Unit::new(file)
        .define("COST_HEADER", format!("\"{}\"", cost.header))
        .define("DISPARITIES", params.range.count)
        .define("MIN_DISPARITY", format!("({})", params.range.min))
        .define("GROUP", lanes.group)
        .define("REGISTERS", lanes.registers)
        .define("BESIDE", BESIDE)
        .define("EXPECTED_BASE_WORDS", prepared.base_words)
        .define("EXPECTED_PLANES", prepared.planes)
        .define("EXPECTED_COLUMNS", prepared.columns)
        .define("EXPECTED_REACH", prepared.reach)
        .define("EXPECTED_MARGIN", prepared.margin)
        .define("P1", params.p1)
        .define("P2_MAX", params.p2)
        .define("COST_MAX", params.cost.max())
        .define("PATHS", params.paths.count())
        .define("UNIQUENESS", params.uniqueness)
        .define("SUBPIXEL", u32::from(params.subpixel))
        .define("LEFT_RIGHT", u32::from(params.left_right.is_some()));
    cost.constants.iter().fold(unit, |unit, (name, value)| unit.define(name, value))
}
