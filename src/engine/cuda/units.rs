//! The translation units that a job needs: files of `kernels/` with the constants that they are
//! compiled with.
//!
//! Macros that begin with EXPECTED are what `geometry.rs` computes beside a kernel; the kernel refuses to
//! be compiled where its own formula gives something else.

use super::cost::CostKernel;
use super::device::Properties;
use super::geometry::{
    AHEAD, BESIDE, Block, CHUNK, HORIZONTAL_WARPS, Lanes, PLAIN_WARPS, Prepared, Strips, TILES,
    WINDOWS,
};
use super::job::Job;
use super::launch::Unit;
use super::plan::filters;
use crate::matching::subpixel::LIMIT_UNIT;
use crate::matching::{Params, Paths, Subpixel};

/// The translation units for this job; needs no GPU.
pub fn specialisations(job: &Job, device: &Properties) -> Vec<Unit> {
    let (params, width) = (job.params, job.size.0);
    let lanes = Lanes::of(params.range.count);
    let mut units = vec![aggregation("features.cu", params, lanes).pixelwise()];
    units.extend(job.rectifier.map(|_| Unit::new("rectify.cu").pixelwise()));
    match Strips::of(params, width as u32, device) {
        Some(strips) => units.extend(sweeps(params, lanes, strips)),
        None => units.push(aggregation("paths.cu", params, lanes).define("WARPS", PLAIN_WARPS)),
    }
    units.extend(filters::units(job));
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
        .define("SUBPIXEL", u32::from(params.subpixel != Subpixel::Off))
        .define("LEFT_RIGHT", u32::from(params.left_right.is_some()));
    let unit = match params.subpixel.limits() {
        Some(limits) => {
            let limits: Vec<String> = limits.iter().map(u16::to_string).collect();
            unit.define("SUBPIXEL_LIMITS", limits.join(",")).define("LIMIT_UNIT", LIMIT_UNIT)
        }
        None => unit,
    };
    cost.constants.iter().fold(unit, |unit, (name, value)| unit.define(name, value))
}
