//! The translation units that a job needs: files of `kernels/` with the constants that they are
//! compiled with.

use super::device::Properties;
use super::geometry::{Block, Lanes, Strips};
use super::launch::Unit;
use crate::calibration::Rectifier;
use crate::frame::Eye;
use crate::matching::{CensusWindow, Cost, Median, Params, Paths};

/// What is computed for every pair.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// How pairs are matched.
    pub params: &'a Params,
    /// Width and height in pixels of the pictures that are matched.
    pub size: (usize, usize),
    /// What makes them of a raw pair; without it pairs come rectified.
    pub rectifier: Option<&'a Rectifier>,
}

impl Job<'_> {
    /// Whether a camera has not seen every pixel.
    pub(super) fn is_masked(&self) -> bool {
        self.rectifier.is_some_and(|r| Eye::BOTH.iter().any(|&eye| r.map(eye).mask().is_some()))
    }
}

/// The translation units for this job; needs no GPU.
pub fn specialisations(job: &Job, device: &Properties) -> Vec<Unit> {
    let (params, width) = (job.params, job.size.0);
    let common = |file| with_params(Unit::new(file), params, Lanes::of(params.range.count));
    let masked = u32::from(job.is_masked());
    let mut units = vec![common("features.cu"), common("refine.cu").define("MASKED", masked)];
    units.extend(job.rectifier.map(|_| Unit::new("rectify.cu")));
    if let Some(speckle) = params.speckle {
        let unit = common("speckle.cu").define("SPECKLE_SIZE", speckle.size);
        units.push(unit.define("SPECKLE_RANGE", speckle.range_16));
    }
    let Some(strips) = Strips::of(params, width as u32, device) else {
        units.push(common("paths.cu"));
        return units;
    };
    let lanes = Lanes::of(params.range.count).horizontal(params.cost);
    units.push(with_params(Unit::new("horizontal.cu"), params, lanes));
    let sweep = |name: &str, finish: bool, direction: u32| {
        let Block { threads, shared_bytes } = strips.block(params, finish);
        let unit = common("sweep.cu")
            .define("STRIP", strips.strip)
            .define("TRADE", strips.trade)
            .define("HALVES", u32::from(strips.halves))
            .define("DIRECTION", direction)
            .define("DIAGONALS", u32::from(params.paths != Paths::Four))
            .define("OTHER_SUMS", u32::from(params.paths != Paths::Five))
            .define("BLOCKS_PER_SM", strips.resident)
            .define("FINISH", u32::from(finish))
            .define("EXPECTED_THREADS", threads)
            .define("EXPECTED_SHARED_BYTES", shared_bytes);
        Unit { name: name.to_owned(), ..unit }
    };
    if params.paths != Paths::Five {
        units.push(sweep("store", false, 0));
    }
    // A single sweep that finishes what another has stored comes from below.
    units.push(sweep("finish", true, u32::from(params.paths != Paths::Five)));
    units
}

/// The macros that say what is computed.
fn with_params(unit: Unit, params: &Params, lanes: Lanes) -> Unit {
    let median = match params.median {
        Median::Off => 0,
        Median::Three => 3,
        Median::Five => 5,
    };
    let unit = unit
        .define("D", params.range.count)
        .define("D_MIN", format!("({})", params.range.min))
        .define("G", lanes.group)
        .define("R", lanes.registers)
        .define("P1", params.p1)
        .define("P2_MAX", params.p2)
        .define("COST_MAX", params.cost.max())
        .define("PATHS", params.paths.count())
        .define("UNIQUENESS", params.uniqueness)
        .define("SUBPIXEL", u32::from(params.subpixel))
        .define("LEFT_RIGHT", u32::from(params.left_right.is_some()))
        .define("LEFT_RIGHT_LIMIT", params.left_right.unwrap_or(0))
        .define("MEDIAN", median);
    match params.cost {
        Cost::Ad { truncation, window } => unit
            .define("COST_AD", 1)
            .define("AD_TRUNCATION", truncation)
            .define("AD_WINDOW", window),
        Cost::Census { window } => {
            let (width, height, symmetric) = match window {
                CensusWindow::Plain { width, height } => (width, height, 0),
                CensusWindow::Symmetric9x7 => (9, 7, 1),
            };
            unit.define("COST_CENSUS", 1)
                .define("CENSUS_WIDTH", width)
                .define("CENSUS_HEIGHT", height)
                .define("CENSUS_SYMMETRIC", symmetric)
        }
        Cost::Combined {
            census_weight,
            gradient_weight,
            intensity_weight,
            gradient_truncation,
            intensity_truncation,
        } => unit
            .define("COST_COMBINED", 1)
            .define("W_CENSUS", census_weight)
            .define("W_GRADIENT", gradient_weight)
            .define("W_INTENSITY", intensity_weight)
            .define("T_GRADIENT", gradient_truncation)
            .define("T_INTENSITY", intensity_truncation),
    }
}
