//! Constants of a level that kernels and shaders are compiled with. What depends on a device stays with its engine.

use crate::frame::LEAST_CONFIDENCE;
use crate::matching::cost::Constant;
use crate::matching::filter::{evidence, rays, spatial};
use crate::matching::prior::{BEND_MAX, BEND_REACH, REACH};
use crate::matching::saturation::ALIKE;
use crate::matching::subpixel::LIMIT_UNIT;
use crate::matching::texture::{RESPONSE_MAX, UNCLIPPED};
use crate::matching::window::UNIT;
use crate::matching::{Params, Subpixel, confidence, windows};

/// Returns the constants of a level with these parameters. What is off has a value that changes nothing.
pub fn constants(params: &Params, has_coarser: bool) -> Vec<Constant> {
    let (summed, window, speckle) = (params.summed_window(), params.window, params.speckle);
    let strength = params.prior.filter(|_| has_coarser).map_or(0, |prior| prior.strength);
    let mut all = params.cost.constants();
    all.extend([
        ("MIN_DISPARITY", params.range.min.into()),
        ("DISPARITIES", params.range.count as i64),
        ("WINDOW_WIDTH", summed.width.into()),
        ("WINDOW_HEIGHT", summed.height.into()),
        // Noise and support.
        ("RESPONSE_MAX", RESPONSE_MAX as i64),
        ("UNCLIPPED_LEAST", UNCLIPPED.0.into()),
        ("UNCLIPPED_MOST", UNCLIPPED.1.into()),
        ("WINDOW_SIDE", window.map_or(1, |window| window.side.into())),
        ("WINDOW_MOST", window.map_or(0, |window| (UNIT / window.area()).into())),
        ("WINDOW_BY_TEXTURE", window.is_some_and(|window| window.by_texture).into()),
        ("PRIOR", has_coarser.into()),
        ("PRIOR_MOST", (UNIT / REACH * u32::from(strength)).into()),
        ("PRIOR_REACH", REACH.into()),
        ("BEND_MAX", BEND_MAX.into()),
        ("BEND_REACH", BEND_REACH as i64),
        ("WINDOW_BLOCKS", windows::BLOCKS as i64),
        ("WINDOW_MARGIN", windows::MARGIN.into()),
        ("WINDOW_SEEN", windows::SEEN.into()),
        ("WINDOW_OWN", windows::OWN.into()),
        // Paths and selection.
        ("SURFACE", (params.surface && has_coarser).into()),
        ("P1", params.p1.into()),
        ("P2", params.p2.into()),
        ("UNIQUENESS", params.uniqueness.into()),
        ("SUBPIXEL", (params.subpixel != Subpixel::Off).into()),
        ("SUBPIXEL_UNIT", LIMIT_UNIT.into()),
        ("LEFT_RIGHT", params.left_right.is_some().into()),
        ("LEFT_RIGHT_LIMIT", params.left_right.unwrap_or(0).into()),
        // Filters.
        ("CONFIDENCE", params.confidence.is_some().into()),
        ("CONFIDENCE_MIN", params.confidence.unwrap_or(0).into()),
        ("LEAST_CONFIDENCE", LEAST_CONFIDENCE.into()),
        ("NEAR_RADIUS", confidence::RADIUS as i64),
        ("FAR_RADIUS", confidence::REACH as i64),
        ("WHITE", params.white.into()),
        ("WHITE_ALIKE", ALIKE.into()),
        ("MEDIAN_RADIUS", params.median.radius().unwrap_or(0) as i64),
        ("SPECKLE_SIZE", speckle.map_or(0, |speckle| speckle.size.into())),
        ("SPECKLE_RANGE", speckle.map_or(0, |speckle| speckle.range_16.into())),
        ("EVIDENCE_STRICT", params.evidence.is_some_and(|how| how.strict).into()),
        ("EVIDENCE_RADIUS", evidence::SIDE as i64 / 2),
        ("EVIDENCE_THRESHOLD_MIN", evidence::THRESHOLD_MIN.into()),
        ("EVIDENCE_THRESHOLD_MAX", evidence::THRESHOLD_MAX.into()),
        ("EVIDENCE_DEVIATION_SHIFT", evidence::DEVIATION_SHIFT.into()),
        ("RAY_REACH", rays::REACH_MAX.into()),
        ("SPATIAL_REACH", params.spatial.map_or(0, |how| how.reach.into())),
        ("SPATIAL_GREY_MAX", spatial::GREY_STEP_MAX.into()),
        ("SPATIAL_STEP_MAX", spatial::PAIR_STEP_MAX.into()),
    ]);
    all
}
