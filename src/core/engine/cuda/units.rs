//! The translation units for a job: files of `kernels/` with their compile-time constants.
//!
//! Macros that begin with EXPECTED hold sizes computed by `geometry.rs`. A kernel fails to compile if
//! its own formula gives another value.

use super::compile::with_constants;
use super::cost::{CostKernel, is_volume};
use super::device::Properties;
use super::geometry::strips::{Block, Strips};
use super::geometry::tiles::{CostTile, WindowTile};
use super::geometry::{
    BESIDE, COUNT_RUN, HISTOGRAM_BYTES, HORIZONTAL_WARPS, PART_FEATURES, PART_PENALTIES,
    PLAIN_WARPS, Prepared, SEGMENT, TEXTURE_TILE, THRESHOLD_THREADS, VOLUME_BESIDE, VectorLayout,
};
use super::job::Job;
use super::launch::Unit;
use super::levels::Level;
use super::plan::{filters, network_units, temporal_units};
use crate::engine::constants::constants;
use crate::matching::block::{SUM_MAX, Scale, byte_shift};
use crate::matching::mutual_information;
use crate::matching::{BlockWindow, Cost, Guide, Params, Paths};

/// The translation units for this job; needs no GPU.
pub fn specialisations(job: &Job, device: &Properties) -> Vec<Unit> {
    let levels = Level::all(job);
    let mut units: Vec<_> =
        job.rectifier.map(|_| Unit::new("rectify.cu").pixelwise()).into_iter().collect();
    if levels.len() > 1 {
        units.push(Unit::new("half.cu").pixelwise());
    }
    units.extend(temporal_units(job));
    units.extend(network_units(job, device));
    units.extend(information(job.params));
    let constants = |level: &Level| constants(&level.params, level.has_coarser);
    let of_all = constants(&levels[0]);
    units = units.into_iter().map(|unit| with_constants(unit, &of_all)).collect();
    for level in &levels {
        let constants = constants(level);
        let of_level = |unit: Unit| {
            let unit = with_constants(unit, &constants);
            Unit { name: level.unit(&unit.name), ..unit }
        };
        units.extend(support(level, device).into_iter().map(of_level));
        units.extend(matching(&level.job(job), device).into_iter().map(of_level));
    }
    units
}

/// Kernels that estimate the mutual-information cost table.
fn information(params: &Params) -> Option<Unit> {
    let Cost::MutualInformation { truncation } = params.cost else { return None };
    let beginnings = mutual_information::beginnings(params.range);
    let gaussian = mutual_information::GAUSSIAN.map(|weight| weight.to_string());
    let unit = Unit::new("mutual_information.cu")
        .pixelwise()
        .define("BEGINNINGS", beginnings.map(|d| d.to_string()).join(","))
        .define("GAUSSIAN", gaussian.join(","))
        .define("GAUSSIAN_BITS", mutual_information::GAUSSIAN_BITS)
        .define("LOG_BITS", mutual_information::LOG_BITS)
        .define("PER_BIT", mutual_information::PER_BIT)
        .define("MI_TRUNCATION", format!("{truncation}u"))
        .define("RUN", COUNT_RUN);
    Some(unit)
}

/// Kernels that prepare the guide of P2 and the support of the cost.
fn support(level: &Level, device: &Properties) -> Vec<Unit> {
    let params = &level.params;
    let mut units = Vec::new();
    if params.guide() == Guide::Smoothed {
        units.push(Unit::new("smoothed.cu").pixelwise());
    }
    if level.has_blends() || params.evidence.is_some() {
        let [width, height] = TEXTURE_TILE;
        let texture = Unit::new("texture.cu")
            .pixelwise()
            .define("TILE_WIDTH", width)
            .define("TILE_HEIGHT", height)
            .define("THRESHOLD_THREADS", THRESHOLD_THREADS)
            .define("EXPECTED_HISTOGRAM_BYTES", HISTOGRAM_BYTES);
        units.push(texture);
    }
    if level.has_blends() {
        units.push(Unit::new("blend.cu").pixelwise());
    }
    if params.windows {
        units.push(Unit::new("choose_windows.cu").pixelwise());
    }
    if sums_windows(params) {
        units.push(windows(level, device));
    }
    if is_volume(params) {
        let lanes = VectorLayout::of(params);
        let tile = CostTile::of(params.window, lanes, level.size, device);
        let unit = pixel_cost("compute_costs.cu", params, lanes)
            .define("BLENDS", u32::from(level.has_blends()))
            .define("PIXELS", tile.pixels)
            .define("SEGMENTS", tile.segments)
            .define("TILE_COLUMNS", tile.columns)
            .define("TILE_ROWS", tile.rows)
            .define("EXPECTED_VOLUME_BESIDE", VOLUME_BESIDE)
            .define("EXPECTED_EDGE", tile.edge)
            .define("EXPECTED_THREADS", tile.threads)
            .define("EXPECTED_SHARED_BYTES", tile.shared_bytes);
        units.push(unit);
    }
    units
}

/// Reports whether sums over windows are needed: for block costs, and for every cost without paths.
pub(super) fn sums_windows(params: &Params) -> bool {
    params.is_local() || matches!(params.cost, Cost::Block { .. })
}

/// Kernel that sums costs over windows.
fn windows(level: &Level, device: &Properties) -> Unit {
    let params = &level.params;
    let lanes = VectorLayout::of(params);
    let (window, tile) = window_tile(level, device);
    let unit = pixel_cost("aggregate_windows.cu", params, lanes)
        .define("SHARE", tile.share)
        .define("PIXELS", tile.pixels)
        .define("TILE_COLUMNS", tile.columns)
        .define("TILE_ROWS", tile.rows)
        .define("LOCAL", u32::from(params.is_local()))
        .define("EXPECTED_EDGE", tile.edge)
        .define("EXPECTED_THREADS", tile.threads)
        .define("EXPECTED_SHARED_BYTES", tile.shared_bytes);
    let Cost::Block { measure, truncation, .. } = params.cost else {
        return unit.define("SCALE_FACTOR", 0);
    };
    let scale = Scale::of(measure, window);
    unit.define("SCALE_LIMIT", format!("{}u", scale.limit))
        .define("SCALE_FACTOR", format!("{}u", scale.factor))
        .define("WINDOW_SUM_MAX", format!("{SUM_MAX}u"))
        .define("BYTE_SHIFT", byte_shift(measure))
        .define("BLOCK_TRUNCATION", format!("{truncation}u"))
}

pub(super) fn window_tile(level: &Level, device: &Properties) -> (BlockWindow, WindowTile) {
    let params = &level.params;
    let window = params.summed_window();
    let parts = match params.cost {
        Cost::Block { measure, .. } => match (measure.is_squared(), measure.is_zero_mean()) {
            (false, false) => 1,
            (true, true) => 4,
            _ => 2,
        },
        _ => 1,
    };
    let lanes = VectorLayout::of(params);
    (window, WindowTile::of(window, parts, lanes, level.size, device))
}

fn matching(job: &Job, device: &Properties) -> Vec<Unit> {
    let (params, width) = (job.params, job.size.0);
    let lanes = VectorLayout::of(params);
    let features = pixel_cost("compute_features.cu", params, lanes)
        .pixelwise()
        .define("DIAGONALS", u32::from(params.paths != Paths::Four))
        .define("PART_FEATURES", PART_FEATURES)
        .define("PART_PENALTIES", PART_PENALTIES);
    let mut units = vec![features];
    match Strips::of(params, width as u32, device) {
        Some(strips) => units.extend(sweeps(params, lanes, strips, device)),
        None => {
            if !params.is_local() {
                let steps = params.paths.steps().iter().map(|(dx, dy)| format!("{dx},{dy}"));
                let paths = aggregation("aggregate_paths.cu", params, lanes)
                    .define("STEPS", steps.collect::<Vec<_>>().join(","))
                    .define("WARPS", PLAIN_WARPS);
                units.push(paths);
            }
            let winners = aggregation("select_disparities.cu", params, lanes)
                .define("WARPS", PLAIN_WARPS)
                .define("SEGMENT", SEGMENT)
                .define("NO_SUM", format!("{}u", SUM_MAX + 1));
            units.push(winners);
        }
    }
    units.extend(filters::units(job));
    units
}

/// The horizontal paths and the launches of the sweeps.
fn sweeps(params: &Params, lanes: VectorLayout, strips: Strips, device: &Properties) -> Vec<Unit> {
    let prepared = Prepared::for_aggregation(params, lanes);
    let across = lanes.horizontal(params);
    let horizontal = aggregation("aggregate_horizontal.cu", params, across)
        .define("CHUNK", prepared.chunk())
        .define("WARPS", HORIZONTAL_WARPS)
        .define("EXPECTED_DELTA_BYTES", across.padded())
        .define("EXPECTED_SHARED_BYTES", prepared.horizontal_bytes(across));
    let sweep = |name: &str, select: bool, direction: u32| {
        let Block { threads, shared_bytes } = strips.block(params, select);
        let unit = aggregation("aggregate_sweep.cu", params, lanes)
            .define("STRIP", strips.strip)
            .define("HALO", strips.halo)
            .define("TASKS", u32::from(strips.tasks))
            .define("TWO_SWEEPS", u32::from(strips.two_sweeps))
            .define("DIRECTION", direction)
            .define("DIAGONALS", u32::from(params.paths != Paths::Four))
            .define("OTHER_SUMS", u32::from(params.paths != Paths::Five))
            .define("SELECT", u32::from(select))
            .define("WINDOWS", prepared.windows())
            .define("AHEAD", strips.ahead)
            .define("TILES", strips.tiles(params))
            .define("BLOCKS_PER_SM", strips.compiled_for(params, select, device))
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
    // A single sweep that adds stored sums of another one runs upwards.
    units.push(sweep("sweep_and_select", true, u32::from(params.paths != Paths::Five)));
    units
}

fn pixel_cost(file: &'static str, params: &Params, lanes: VectorLayout) -> Unit {
    with_cost(file, &CostKernel::of(params.cost), lanes)
}

fn aggregation(file: &'static str, params: &Params, lanes: VectorLayout) -> Unit {
    let unit = with_cost(file, &CostKernel::for_aggregation(params, lanes.half()), lanes)
        .define("PATHS", params.paths.count());
    match params.subpixel.limits() {
        Some(limits) => {
            let limits: Vec<String> = limits.iter().map(u16::to_string).collect();
            unit.define("SUBPIXEL_LIMITS", limits.join(","))
        }
        None => unit,
    }
}

fn with_cost(file: &'static str, cost: &CostKernel, lanes: VectorLayout) -> Unit {
    let prepared = Prepared::of(cost, lanes);
    Unit::new(file)
        .define("COST_HEADER", format!("\"{}\"", cost.header))
        .define("GROUP", lanes.group)
        .define("REGISTERS", lanes.registers)
        .define("WINDOWED", u32::from(lanes.is_windowed()))
        .define("BESIDE", BESIDE)
        .define("EXPECTED_BASE_WORDS", prepared.base_words)
        .define("EXPECTED_PLANES", prepared.planes)
        .define("EXPECTED_COLUMNS", prepared.columns)
        .define("EXPECTED_REACH", prepared.reach)
        .define("EXPECTED_MARGIN", prepared.margin)
}
