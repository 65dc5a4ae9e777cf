//! The rows of `[matching]`.

use super::presets;
use crate::matching::cost::{COSTS, WEIGHT_MAX};
use crate::matching::filter::rays::REACH_MAX;
use crate::matching::filter::spatial::REACH_MAX as SPATIAL_MAX;
use crate::matching::filter::steady::STRENGTH_MAX as STEADY_MAX;
use crate::matching::mutual_information::TRUNCATION_MAX;
use crate::matching::params::SLOPE_UNIT;
use crate::matching::prior::{LEVELS_MAX, STRENGTH_MAX};
use crate::matching::temporal::{DEGREE_MAX, HISTORY};
use crate::matching::{BlockWindow, CensusWindow, Cost, Params};
use crate::settings::row::Integer::{I32, U8, U16, U32, U64};
use crate::settings::row::Plain::{Real, Text, Whole};
use crate::settings::row::{AUTO, Kind, MATCHING, Row};
use crate::settings::suggest::with_nearest;

/// Defaults of the matcher. Rows whose default is a name are compared with it by a test.
const DEFAULT: Params = Params::DEFAULT;

/// Rows of `[matching]`.
pub(in crate::settings) const ROWS: &[Row] = &[
    Row::names("preset", presets::DEFAULT, &presets::NAMES)
        .flag(MATCHING, "--preset", "PRESET")
        .help("Set of values for the settings below; those that are given themselves win")
        .about(&presets::ABOUT)
        .knob("Preset")
        .hint("What the matching is for. Changes here take back what was changed below it."),
    Row::whole("disparities", Whole(DEFAULT.range.count as i64), U64, [1, 1024])
        .or(&["auto"])
        .unit("a number")
        .flag(MATCHING, "--disparities", "N|auto")
        .help("Number of candidate disparities, 1 to 1024; `auto`: as many as the first pairs need")
        .knob("Range")
        .hint("Number of candidate disparities; auto: as many as the first pairs needed.")
        .slider(8.0, 256.0, 8.0)
        .last()
        .unless_recorded(),
    Row::whole("min_disparity", Whole(DEFAULT.range.min as i64), I32, [-2047, 2046])
        .flag(MATCHING, "--min-disparity", "PX")
        .help("Smallest candidate disparity in pixels; may be negative")
        .knob("Range")
        .hint("The smallest candidate disparity, in pixels.")
        .slider(-64.0, 128.0, 1.0)
        .unless_recorded(),
    Row::names("cost", NAMES[0], &NAMES)
        .flag(MATCHING, "--cost", "COST")
        .help("Matching cost: how much two pixels differ")
        .about(&ABOUT_COSTS)
        .knob("Cost")
        .hint("How much two pixels differ. Settings that are auto follow it."),
    Row::new("cost_window", AUTO, Kind::OneOf(U8, &["0", "3", "5"]))
        .follows_cost(|of| of.window.into())
        .off_without_paths()
        .flag(MATCHING, "--cost-window", "PX")
        .help("Side of the window over which the cost is averaged, in pixels; 0 is off")
        .knob("Cost")
        .hint("Side of the window over which the cost is averaged; 0: every pixel by itself.")
        .offers(&["auto", "0", "3", "5"]),
    Row::names("cost_window_where", "weak-texture", &["weak-texture", "everywhere"])
        .flag(MATCHING, "--cost-window-where", "WHERE")
        .help("Which pixels the window of the cost is for")
        .about(&[
            "Pixels without texture above the noise; the less texture, the stronger",
            "All pixels alike, which blurs edges",
        ])
        .knob("Cost")
        .hint("Whether the window is for pixels without texture or for all."),
    Row::whole("prior", AUTO, U8, [0, LEVELS_MAX as i64])
        .follows_cost(|of| of.prior.into())
        .off_without_paths()
        .flag(MATCHING, "--prior", "LEVELS")
        .help(
            "Number of coarser levels, each of half the size, that guide the matching where \
             texture is below the noise; 0 to 3, 0 is off",
        )
        .knob("Cost")
        .hint("How many coarser levels guide the matching where there is no texture; 0: none.")
        .offers(&["auto", "0", "1", "2", "3"]),
    Row::whole("prior_strength", Whole(DEFAULT.prior.unwrap().strength as i64), U8, [1, STRENGTH_MAX as i64])
        .flag(MATCHING, "--prior-strength", "COST")
        .help("Cost of a disparity far from that of the coarser level, 1 to 32")
        .knob("Cost")
        .hint("Cost of a disparity far from that of the coarser level.")
        .slider(1.0, 32.0, 1.0),
    Row::new("paths", AUTO, Kind::OneOf(U32, &["0", "4", "5", "8", "16"]))
        .follows_cost(|of| of.paths.into())
        .flag(MATCHING, "--paths", "N")
        .help("Number of directions along which costs are aggregated; 0: a window instead (local matching)")
        .knob("Smoothness")
        .hint("Directions along which costs are aggregated; 0: winner takes all, straight from the cost.")
        .offers(&["auto", "0", "4", "5", "8", "16"])
        .last(),
    Row::whole("p1", AUTO, U8, BYTE)
        .follows_cost(|of| of.p1.into())
        .flag(MATCHING, "--p1", "COST|auto")
        .help(
            "Penalty for a disparity step of one pixel, 0 to 255; `auto` here and below: \
             the value that suits the cost",
        )
        .knob("Smoothness")
        .hint("Penalty for a step of one pixel between neighbours: slanted surfaces.")
        .slider(0.0, 255.0, 1.0),
    Row::whole("p2", AUTO, U8, BYTE)
        .follows_cost(|of| of.p2.into())
        .flag(MATCHING, "--p2", "COST|auto")
        .help("Penalty for a larger step, P1 to 255")
        .knob("Smoothness")
        .hint("Penalty for a larger step: edges of objects.")
        .slider(0.0, 255.0, 1.0),
    Row::names("p2_mode", "linear", &["fixed", "inverse-gradient", "linear"])
        .flag(MATCHING, "--p2-mode", "MODE")
        .help("How P2 depends on the step in brightness")
        .about(&[
            "P2 everywhere",
            "P2 divided by the step in brightness, at least P1",
            "P2 minus `p2_slope` for every grey level of the step, at least `p2_min`",
        ])
        .knob("Smoothness")
        .hint("How P2 follows the steps in brightness.")
        .offers(&["linear", "inverse-gradient", "fixed"]),
    Row::names("p2_guide", "smoothed", &["smoothed", "picture"])
        .flag(MATCHING, "--p2-guide", "GUIDE")
        .help("The image whose steps in brightness P2 depends on")
        .about(&[
            "The left image, smoothed over 3x3 pixels so that noise makes no steps",
            "The left image as it is",
        ])
        .knob("Smoothness")
        .hint("Whether P2 follows the picture as it is or smoothed."),
    Row::whole("p2_min", AUTO, U8, BYTE)
        .follows_cost(|of| of.p2_min.into())
        .flag(MATCHING, "--p2-min", "COST|auto")
        .help("Smallest P2 of the mode `linear`")
        .knob("Smoothness")
        .hint("The smallest P2.")
        .slider(0.0, 255.0, 1.0)
        .only("p2_mode", &["linear"]),
    // With the largest slope P2 falls from 255 to 0 within one grey level.
    Row::real("p2_slope", AUTO, [0.0, 255.0])
        .follows_cost(|of| f64::from(of.p2_slope_16) / f64::from(SLOPE_UNIT))
        .flag(MATCHING, "--p2-slope", "COST|auto")
        .help("Decrease of P2 for every grey level of step in the mode `linear`, 0 to 255")
        .knob("Smoothness")
        .hint("Decrease of P2 for every grey level of the step in brightness.")
        .slider(0.0, 16.0, 0.25)
        .only("p2_mode", &["linear"]),
    Row::whole("ad_truncation", Whole(32), U8, [1, 255])
        .flag(MATCHING, "--ad-truncation", "LEVELS")
        .help(
            "Cost `ad`: differences larger than this many grey levels count as this much, 1 \
             to 255",
        )
        .knob("Cost")
        .hint("Larger differences count as this many grey levels.")
        .slider(1.0, 128.0, 1.0)
        .only("cost", &["ad"]),
    Row::new("ad_window", Whole(3), Kind::OneOf(U8, &["1", "3", "5", "7"]))
        .flag(MATCHING, "--ad-window", "PX")
        .help("Cost `ad`: side of the window over which the difference is averaged, in pixels")
        .knob("Cost")
        .hint("Side of the square over which the difference is averaged.")
        .only("cost", &["ad"]),
    Row::text("census_window", "9x7-symmetric", window)
        .flag(MATCHING, "--census-window", "WINDOW")
        .help("Cost `census`: 9x7-symmetric, or a plain window such as 5x5 of at most 65 pixels")
        .knob("Cost")
        .hint("Pixels that are compared with each other.")
        .offers(&["9x7-symmetric", "3x3", "5x5", "7x7", "9x7"])
        .only("cost", &["census"]),
    Row::whole("census_weight", Whole(COMBINED[0]), U8, WEIGHT)
        .flag(MATCHING, "--census-weight", "SIXTEENTHS")
        .help("Cost `combined`: weight of each of the 24 census bits, in sixteenths, 0 to 127")
        .knob("Cost")
        .hint("Weight of each of the 24 bits of a 5x5 census, in sixteenths.")
        .slider(0.0, 127.0, 1.0)
        .only("cost", &["combined"]),
    Row::whole("gradient_weight", Whole(COMBINED[1]), U8, WEIGHT)
        .flag(MATCHING, "--gradient-weight", "SIXTEENTHS")
        .help(
            "Cost `combined`: weight of a grey level of difference in gradient, in sixteenths, \
             0 to 127",
        )
        .knob("Cost")
        .hint("Weight of a grey level of difference in gradient, in sixteenths.")
        .slider(0.0, 127.0, 1.0)
        .only("cost", &["combined"]),
    Row::whole("intensity_weight", Whole(COMBINED[2]), U8, WEIGHT)
        .flag(MATCHING, "--intensity-weight", "SIXTEENTHS")
        .help(
            "Cost `combined`: weight of a grey level of difference in intensity, in sixteenths, \
             0 to 127",
        )
        .knob("Cost")
        .hint("Weight of a grey level of difference in intensity, in sixteenths.")
        .slider(0.0, 127.0, 1.0)
        .only("cost", &["combined"]),
    Row::whole("gradient_truncation", Whole(COMBINED[3]), U8, BYTE)
        .flag(MATCHING, "--gradient-truncation", "LEVELS")
        .help(
            "Cost `combined`: larger differences in gradient count as this many grey levels, \
             0 to 255",
        )
        .knob("Cost")
        .hint("Larger differences in gradient count as this many grey levels.")
        .slider(0.0, 64.0, 1.0)
        .only("cost", &["combined"]),
    Row::whole("intensity_truncation", Whole(COMBINED[4]), U8, BYTE)
        .flag(MATCHING, "--intensity-truncation", "LEVELS")
        .help(
            "Cost `combined`: larger differences in intensity count as this many grey \
             levels, 0 to 255",
        )
        .knob("Cost")
        .hint("Larger differences in intensity count as this many grey levels.")
        .slider(0.0, 64.0, 1.0)
        .only("cost", &["combined"]),
    Row::text("block_window", "9x9", block_window)
        .flag(MATCHING, "--block-window", "N|WxH")
        .shorter("window")
        .help(
            "Window of the costs `sad`, `ssd`, `zsad` and `zssd`, and of every cost without paths: odd, 1 to 11",
        )
        .knob("Cost")
        .hint("Window of sad, ssd, zsad and zssd, and of every cost without paths.")
        .offers(&["3x3", "5x5", "7x7", "9x9", "11x11"]),
    Row::whole("block_truncation", Whole(64), U8, [1, 255])
        .flag(MATCHING, "--block-truncation", "COST")
        .help(
            "Costs `sad` and `zsad` along paths: largest mean difference in quarters of a grey level; \
             `ssd` and `zssd`: largest mean square; 1 to 255",
        )
        .knob("Cost")
        .hint("Along paths, larger mean differences (quarter levels) or squares count as this much.")
        .slider(1.0, 255.0, 1.0)
        .only("cost", &["sad", "ssd", "zsad", "zssd"]),
    Row::whole("mi_truncation", Whole(60), U8, [1, TRUNCATION_MAX as i64])
        .flag(MATCHING, "--mi-truncation", "EIGHTHS")
        .help("Cost `mi`: largest cost of two grey levels, in eighths of a bit, 1 to 127")
        .knob("Cost")
        .hint("Largest cost of two grey levels, in eighths of a bit.")
        .slider(1.0, 127.0, 1.0)
        .only("cost", &["mi"]),
    Row::whole("uniqueness", Whole(DEFAULT.uniqueness as i64), U8, [0, 99])
        .flag(MATCHING, "--uniqueness", "PERCENT")
        .help("Invalidate pixels where the cost of another disparity is within this many percent; 0 is off")
        .knob("Checks")
        .hint("Invalid where another disparity is nearly as good, within this many percent.")
        .slider(0.0, 50.0, 1.0),
    Row::whole("left_right", Whole(DEFAULT.left_right.unwrap() as i64), U16, [0, u16::MAX as i64])
        .or(&["off"])
        .flag(MATCHING, "--left-right", "PX|off")
        .help(
            "Invalidate pixels whose disparities in the left and the right view differ by more \
             pixels, or `off`",
        )
        .knob("Checks")
        .hint("Invalid where the two views' disparities differ by more than this many pixels.")
        .slider(0.0, 8.0, 1.0),
    Row::whole("min_confidence", Whole(0), U8, [0, 99])
        .flag(MATCHING, "--min-confidence", "PERCENT")
        .help(
            "Invalidate pixels that are right within 1 px with a lower probability, 1 to 99 percent; \
             0 is off",
        )
        .knob("Checks")
        .hint("Invalid where the probability of being right within 1 px is lower, in percent; 0: off.")
        .slider(0.0, 99.0, 1.0),
    Row::new("median", AUTO, Kind::OneOf(U8, &["0", "3", "5"]))
        .follows_cost(|of| of.median.into())
        .flag(MATCHING, "--median", "PX")
        .help("Side of the median filter's window in pixels; 0 is off")
        .knob("Filters")
        .hint("Side of the median filter's window; 0: off.")
        .offers(&["auto", "0", "3", "5"]),
    Row::whole("speckle_size", AUTO, U32, [0, u32::MAX as i64])
        .follows_cost(|of| of.speckle_size.into())
        .flag(MATCHING, "--speckle-size", "PIXELS|auto")
        .help("Invalidate connected regions of fewer pixels; 0 is off")
        .knob("Filters")
        .hint("Connected regions of fewer pixels are invalid; 0: none.")
        .slider(0.0, 1000.0, 10.0),
    // Larger differences cannot occur in a map.
    Row::real("speckle_range", Real(2.0), [0.0, 4095.0])
        .flag(MATCHING, "--speckle-range", "PX")
        .help("Largest difference in disparity between neighbours of a region")
        .knob("Filters")
        .hint("Neighbours of a region differ by no more than this many pixels.")
        .slider(0.0, 16.0, 0.25),
    Row::names("evidence", "on", &["off", "on"])
        .or_switch(["off", "on"])
        .flag(MATCHING, "--evidence", "on|off")
        .help("Invalidate pixels of textureless surfaces that no evidence around them supports")
        .about(&[
            "Textureless surfaces keep the disparity that the paths and the prior give them",
            "Pixels in nothing but noise stay only between evidence of the same surface, with the lowest \
             confidence",
        ])
        .knob("Filters")
        .hint("Invalid where there is no texture and nothing around supports the disparity."),
    Row::whole("spatial", Whole(DEFAULT.spatial.unwrap().reach as i64), U8, [1, SPATIAL_MAX as i64])
        .or(&["off"])
        .flag(MATCHING, "--spatial", "PX|off")
        .help("Smooth surfaces of the disparity map over 1 to 16 px to each side, or `off`; edges and slants stay")
        .knob("Filters")
        .hint("Smooths surfaces over so many pixels to each side, not across edges; off: as matched.")
        .slider(1.0, SPATIAL_MAX as f64, 1.0),
    Row::real("smoothing", Text("off"), [0.004, 0.996])
        .or(&["off"])
        .flag(MATCHING, "--smoothing", "WEIGHT|off")
        .help(
            "Smooth disparity in time: weight of the newest map, 0.004 (steady) to 0.996, or `off`",
        )
        .knob("Filters")
        .hint("Weight of the newest map where nothing moves; off: every map by itself.")
        .slider(0.05, 0.95, 0.05),
    Row::real("smoothing_guard", Real(1.0), [0.0, 63.9])
        .flag(MATCHING, "--smoothing-guard", "PX")
        .help("Larger changes in time count as motion, which is not smoothed")
        .knob("Filters")
        .hint("Larger changes count as motion and are not smoothed.")
        .slider(0.0, 8.0, 0.25),
    Row::names("fill", "off", &["off", "row", "rays", "gaps"])
        .flag(MATCHING, "--fill", "RULE")
        .help("Fill holes of the disparity map from the pixels around them, after all filters")
        .about(&[
            "Holes stay",
            "The smaller of the two neighbours in the row; ends are extended",
            "A median along eight rays, weighted by the edges of the image on the way",
            "Only gaps of at most 4 px in a row or column whose ends differ by at most 1 px: the line \
             between the ends",
        ])
        .knob("Filters")
        .hint("How holes are filled from the pixels around them."),
    Row::whole("fill_max", Whole(64), U16, [1, REACH_MAX as i64])
        .flag(MATCHING, "--fill-max", "PX")
        .help("Largest distance from which a pixel is filled, 1 to 1023 px")
        .knob("Filters")
        .hint("Largest distance from which a pixel is filled.")
        .slider(1.0, 256.0, 1.0),
    Row::names("subpixel", "corrected", &["off", "parabola", "equiangular", "corrected"])
        .or_switch(["off", "corrected"])
        .flag(MATCHING, "--subpixel", "CURVE")
        .help("Curve that interpolates disparity to 1/16 px")
        .about(&[
            "Whole pixels",
            "A parabola, which biases disparities towards whole pixels",
            "Two straight lines",
            "Two lines, corrected for the bias towards whole pixels",
        ])
        .knob("Checks")
        .hint("The curve that finds sixteenths of a pixel; off: whole pixels."),
    Row::whole("steady", Text("off"), U8, [1, STEADY_MAX as i64])
        .or(&["off"])
        .flag(MATCHING, "--steady", "STRENGTH|off")
        .help(
            "Suppress flicker where nothing moves: number of maps in a row that must show another disparity \
             or none before the map follows, 1 to 60, or `off`",
        )
        .knob("Filters")
        .hint("Maps in a row that must differ before a still pixel changes; off: one.")
        .slider(1.0, 30.0, 1.0),
    Row::names("temporal", "off", &["off", "denoise", "whiten"])
        .flag(MATCHING, "--temporal", "MODE")
        .help("Use of the earlier frames of a stream")
        .about(&[
            "Nothing",
            "Remove noise from static parts before matching",
            "Match frames as they are, and find what differs from their background (--whitened)",
        ])
        .knob("Pictures")
        .hint("Whether static parts are denoised, or moving ones found."),
    Row::whole("history", Whole(20), U8, [HISTORY.0 as i64, HISTORY.1 as i64])
        .flag(MATCHING, "--history", "N")
        .help("Number of frames from which the background is predicted, 2 to 64")
        .knob("Pictures")
        .hint("Number of frames from which the background is predicted.")
        .slider(2.0, 64.0, 1.0)
        .only("temporal", &["denoise", "whiten"]),
    Row::whole("degree", Whole(2), U8, [0, DEGREE_MAX as i64])
        .flag(MATCHING, "--degree", "N")
        .help("Degree of the polynomial by which the background follows the rig's shifts, 0 to 3")
        .knob("Pictures")
        .hint("How closely the background follows small shifts of the rig; more keeps more noise.")
        .slider(0.0, 3.0, 1.0)
        .only("temporal", &["denoise", "whiten"]),
];

/// All numbers of a byte.
const BYTE: [i64; 2] = [0, u8::MAX as i64];

/// All weights of the combined cost.
const WEIGHT: [i64; 2] = [0, WEIGHT_MAX as i64];

/// Weights and truncations of the combined cost.
const COMBINED: [i64; 5] = match DEFAULT.cost {
    Cost::Combined {
        census_weight,
        gradient_weight,
        intensity_weight,
        gradient_truncation,
        intensity_truncation,
    } => [
        census_weight as i64,
        gradient_weight as i64,
        intensity_weight as i64,
        gradient_truncation as i64,
        intensity_truncation as i64,
    ],
    _ => panic!("the default cost is the combined one"),
};

/// Names of the costs.
pub(super) const NAMES: [&str; COSTS.len()] = {
    let mut names = [""; COSTS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = COSTS[at].name;
        at += 1;
    }
    names
};

/// Descriptions of the costs.
const ABOUT_COSTS: [&str; COSTS.len()] = {
    let mut about = [""; COSTS.len()];
    let mut at = 0;
    while at < about.len() {
        about[at] = COSTS[at].about;
        at += 1;
    }
    about
};

/// Checks that a text is a window of block matching.
fn block_window(text: &str) -> Result<(), String> {
    text.parse::<BlockWindow>().map(drop)
}

/// Checks that a text is a census window.
fn window(text: &str) -> Result<(), String> {
    match text.parse::<CensusWindow>() {
        Ok(_) => Ok(()),
        Err(error) => Err(with_nearest(error.trim_start_matches("expected "), text)),
    }
}
