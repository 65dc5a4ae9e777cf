//! The rows of `[matching]`.

use std::str::FromStr;

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
use crate::settings::row::Plain::{Real, Switch, Text, Whole};
use crate::settings::row::{AUTO, InBatch, Kind, MATCHING, OUTPUT, Row};
use crate::settings::suggest::with_nearest;

/// Defaults of the matcher. Rows whose default is a name are compared with it by a test.
const DEFAULT: Params = Params::DEFAULT;

/// Rows of `[matching]`.
pub(in crate::settings) const ROWS: &[Row] = &[
    Row::names("preset", presets::DEFAULT, &presets::NAMES)
        .flag(MATCHING, "--preset", "PRESET")
        .help("Set of values for the settings below; those set by hand win until another is chosen.")
        .more("`stereod config print --origin --set matching.preset=fast` shows those of a preset.")
        .about(&presets::ABOUT)
        .knob("Preset", "preset"),
    Row::whole("disparities", Whole(DEFAULT.range.count as i64), U64, [1, 1024])
        .or(&["auto"])
        .unit("a number")
        .flag(MATCHING, "--disparities", "N|auto")
        .help("Number of candidate disparities, 1 to 1024; `auto`: as many as the first pairs need.")
        .more(
            "The nearest measurable object has min_disparity + disparities - 1 pixels of disparity. \
             Time grows with the number. The number that `auto` finds holds for the whole run.",
        )
        .knob("Range", "number of disparities")
        .slider(8.0, 256.0, 8.0)
        .unless_recorded(),
    Row::whole("min_disparity", Whole(DEFAULT.range.min as i64), I32, [-2047, 2046])
        .flag(MATCHING, "--min-disparity", "PX")
        .help("Smallest candidate disparity in pixels; may be negative.")
        .knob("Range", "smallest disparity")
        .slider(-64.0, 128.0, 1.0)
        .unless_recorded(),
    Row::names("cost", NAMES[0], &NAMES)
        .flag(MATCHING, "--cost", "COST")
        .help("Matching cost: how much two pixels differ; settings that are `auto` follow it.")
        .more("The largest cost and `p2` together may be at most 255.")
        .about(&ABOUT_COSTS)
        .knob("Cost", "matching cost"),
    Row::whole("ad_truncation", Whole(32), U8, [1, 255])
        .flag(MATCHING, "--ad-truncation", "LEVELS")
        .help(
            "Cost `ad`: differences larger than this many grey levels count as this much, 1 \
             to 255.",
        )
        .knob("Cost", "largest difference")
        .rare()
        .slider(1.0, 128.0, 1.0)
        .only("cost", &["ad"]),
    Row::new("ad_window", Whole(3), Kind::OneOf(U8, &["1", "3", "5", "7"]))
        .flag(MATCHING, "--ad-window", "PX")
        .help(
            "Cost `ad`: side of the window over which the difference is averaged: 1 (the pixel alone), \
             3, 5 or 7 pixels.",
        )
        .knob("Cost", "window")
        .rare()
        .only("cost", &["ad"]),
    Row::text("census_window", "9x7-symmetric", window::<CensusWindow>)
        .flag(MATCHING, "--census-window", "WINDOW")
        .help(
            "Cost `census`: pixels that are compared, 9x7-symmetric or a window such as 5x5 of at \
             most 65 pixels.",
        )
        .more(
            "9x7-symmetric compares each pixel with the opposite one; a window, whose sides are odd, \
             each pixel with the centre.",
        )
        .knob("Cost", "compared pixels")
        .rare()
        .offers(&["9x7-symmetric", "3x3", "5x5", "7x7", "9x7"])
        .only("cost", &["census"]),
    Row::text("block_window", "9x9", window::<BlockWindow>)
        .flag(MATCHING, "--block-window", "N|WxH")
        .shorter("window")
        .help(
            "Window of the costs `sad`, `ssd`, `zsad` and `zssd`, and of every cost if `paths` is 0: \
             odd, 1 to 11.",
        )
        .more("A side such as \"9\", or width and height such as \"11x5\".")
        .knob("Cost", "window of blocks")
        .rare()
        .offers(&["3x3", "5x5", "7x7", "9x9", "11x11"]),
    Row::whole("block_truncation", Whole(64), U8, [1, 255])
        .flag(MATCHING, "--block-truncation", "COST")
        .help(
            "Costs `sad` and `zsad` along paths: largest mean difference in quarters of a grey level; \
             `ssd` and `zssd`: largest mean square; 1 to 255.",
        )
        .knob("Cost", "largest difference")
        .rare()
        .slider(1.0, 255.0, 1.0)
        .only("cost", &["sad", "ssd", "zsad", "zssd"]),
    Row::whole("mi_truncation", Whole(60), U8, [1, TRUNCATION_MAX as i64])
        .flag(MATCHING, "--mi-truncation", "EIGHTHS")
        .help("Cost `mi`: largest cost of two grey levels, in eighths of a bit, 1 to 127.")
        .knob("Cost", "largest cost")
        .rare()
        .slider(1.0, 127.0, 1.0)
        .only("cost", &["mi"]),
    Row::whole("census_weight", Whole(COMBINED[0]), U8, WEIGHT)
        .flag(MATCHING, "--census-weight", "SIXTEENTHS")
        .help(
            "Cost `combined`: weight of each of the 24 bits of a 5x5 census, in sixteenths, 0 to 127.",
        )
        .knob("Cost", "weight of census")
        .rare()
        .slider(0.0, 127.0, 1.0)
        .only("cost", &["combined"]),
    Row::whole("gradient_weight", Whole(COMBINED[1]), U8, WEIGHT)
        .flag(MATCHING, "--gradient-weight", "SIXTEENTHS")
        .help(
            "Cost `combined`: weight of a grey level of difference in gradient along the row, in \
             sixteenths, 0 to 127.",
        )
        .knob("Cost", "weight of gradient")
        .rare()
        .slider(0.0, 127.0, 1.0)
        .only("cost", &["combined"]),
    Row::whole("intensity_weight", Whole(COMBINED[2]), U8, WEIGHT)
        .flag(MATCHING, "--intensity-weight", "SIXTEENTHS")
        .help(
            "Cost `combined`: weight of a grey level of difference in intensity, in sixteenths, \
             0 to 127.",
        )
        .knob("Cost", "weight of intensity")
        .rare()
        .slider(0.0, 127.0, 1.0)
        .only("cost", &["combined"]),
    Row::whole("gradient_truncation", Whole(COMBINED[3]), U8, BYTE)
        .flag(MATCHING, "--gradient-truncation", "LEVELS")
        .help(
            "Cost `combined`: larger differences in gradient count as this many grey levels, \
             0 to 255.",
        )
        .knob("Cost", "largest gradient")
        .rare()
        .slider(0.0, 64.0, 1.0)
        .only("cost", &["combined"]),
    Row::whole("intensity_truncation", Whole(COMBINED[4]), U8, BYTE)
        .flag(MATCHING, "--intensity-truncation", "LEVELS")
        .help(
            "Cost `combined`: larger differences in intensity count as this many grey \
             levels, 0 to 255.",
        )
        .knob("Cost", "largest intensity")
        .rare()
        .slider(0.0, 64.0, 1.0)
        .only("cost", &["combined"]),
    Row::new("cost_window", AUTO, Kind::OneOf(U8, &["0", "3", "5"]))
        .follows_cost(|of| of.window.into())
        .off_without_paths()
        .flag(MATCHING, "--cost-window", "PX")
        .help("Side of the window over which the cost is averaged, 3 or 5 pixels; 0 is off.")
        .knob("Weak texture", "averaging window")
        .offers(&["auto", "0", "3", "5"]),
    Row::names("cost_window_where", "weak-texture", &["weak-texture", "everywhere"])
        .flag(MATCHING, "--cost-window-where", "WHERE")
        .help("Pixels that the window of the cost is for.")
        .about(&[
            "Pixels without texture above the noise; the less texture, the stronger",
            "All pixels alike, which blurs edges",
        ])
        .knob("Weak texture", "where it averages")
        .rare(),
    Row::whole("prior", AUTO, U8, [0, LEVELS_MAX as i64])
        .follows_cost(|of| of.prior.into())
        .off_without_paths()
        .flag(MATCHING, "--prior", "LEVELS")
        .help(
            "Number of coarser levels, each of half the size, that guide the matching where \
             texture is below the noise, such as on bare walls; 0 to 3, 0 is off. `network` and `onnx:FILE` set \
             `engine.prior_from`.",
        )
        .knob("Weak texture", "coarser levels")
        .offers(&["auto", "0", "1", "2", "3"]),
    Row::whole("prior_strength", Whole(DEFAULT.prior.unwrap().strength as i64), U8, [1, STRENGTH_MAX as i64])
        .flag(MATCHING, "--prior-strength", "COST")
        .help("Cost of a disparity that is 8 pixels or more from that of the coarser level, 1 to 32.")
        .knob("Weak texture", "pull of these levels")
        .rare()
        .slider(1.0, 32.0, 1.0),
    Row::new("paths", AUTO, Kind::OneOf(U32, &["0", "4", "5", "8", "16"]))
        .follows_cost(|of| of.paths.into())
        .flag(MATCHING, "--paths", "N")
        .help(
            "Number of directions along which costs are aggregated: 4, 5 (one sweep over the image), 8 \
             or 16; 0: costs are summed over `block_window` instead (local matching).",
        )
        .knob("Smoothness", "directions")
        .rare()
        .offers(&["auto", "0", "4", "5", "8", "16"]),
    Row::names("surface", "coarse", &["off", "coarse"])
        .flag(MATCHING, "--surface", "off|coarse")
        .help("Surface along which disparity steps are free, so that slants stay whole.")
        .about(&[
            "None: every step costs `p1` or `p2`",
            "That of the coarser level, where it is known and flat; needs `prior`",
        ])
        .knob("Smoothness", "slanted surfaces"),
    Row::names("windows", "off", &["off", "auto"])
        .flag(MATCHING, "--windows", "off|auto")
        .help("Search wide ranges only near the disparities of the half-size images: faster.")
        .more(
            "Every 16x16 pixels try 64 candidates, in four blocks of 16 that need not be adjacent. Needs \
             `prior`, and 4, 5 or 8 paths; ranges of up to 64 disparities, `block` and windows of `ad` are \
             searched whole.",
        )
        .about(&["Every pixel tries the whole range", "Only what the half-size images suggest"])
        .knob("Smoothness", "search windows")
        .rare(),
    Row::whole("p1", AUTO, U8, BYTE)
        .follows_cost(|of| of.p1.into())
        .flag(MATCHING, "--p1", "COST|auto")
        .help(
            "Penalty for a disparity step of one pixel between neighbours (slanted and curved \
             surfaces), 0 to 255.",
        )
        .knob("Smoothness", "smoothness of slants")
        .slider(0.0, 255.0, 1.0),
    Row::whole("p2", AUTO, U8, BYTE)
        .follows_cost(|of| of.p2.into())
        .flag(MATCHING, "--p2", "COST|auto")
        .help("Penalty for a larger step (the edges of objects), P1 to 255.")
        .knob("Smoothness", "smoothness at edges")
        .slider(0.0, 255.0, 1.0),
    Row::names("p2_mode", "linear", &["fixed", "inverse-gradient", "linear"])
        .flag(MATCHING, "--p2-mode", "MODE")
        .help("How P2 depends on the step in brightness.")
        .more("Depth tends to change where brightness does.")
        .about(&[
            "P2 everywhere",
            "P2 divided by the step in brightness, at least P1",
            "P2 minus `p2_slope` for every grey level of the step, at least `p2_min`",
        ])
        .knob("Smoothness", "edges in brightness")
        .rare()
        .offers(&["linear", "inverse-gradient", "fixed"]),
    Row::names("p2_guide", "smoothed", &["smoothed", "picture"])
        .flag(MATCHING, "--p2-guide", "GUIDE")
        .help("The image whose steps in brightness P2 depends on.")
        .about(&[
            "The left image, smoothed over 3x3 pixels so that noise makes no steps",
            "The left image as it is",
        ])
        .knob("Smoothness", "image of the edges")
        .rare(),
    Row::whole("p2_min", AUTO, U8, BYTE)
        .follows_cost(|of| of.p2_min.into())
        .flag(MATCHING, "--p2-min", "COST|auto")
        .help("Smallest P2 of the mode `linear`; may lie below P1.")
        .knob("Smoothness", "least at edges")
        .rare()
        .slider(0.0, 255.0, 1.0)
        .only("p2_mode", &["linear"]),
    // With the largest slope P2 falls from 255 to 0 within one grey level.
    Row::real("p2_slope", AUTO, [0.0, 255.0])
        .follows_cost(|of| f64::from(of.p2_slope_16) / f64::from(SLOPE_UNIT))
        .flag(MATCHING, "--p2-slope", "COST|auto")
        .help(
            "Decrease of P2 for every grey level of step in the mode `linear`, 0 to 255 in steps of 1/16.",
        )
        .knob("Smoothness", "decrease at edges")
        .rare()
        .slider(0.0, 16.0, 0.25)
        .only("p2_mode", &["linear"]),
    Row::whole("uniqueness", Whole(DEFAULT.uniqueness as i64), U8, [0, 99])
        .flag(MATCHING, "--uniqueness", "PERCENT")
        .help(
            "Invalidate pixels where the cost of another disparity is within this many percent; \
             0 is off.",
        )
        .knob("Checks", "uniqueness")
        .slider(0.0, 50.0, 1.0),
    Row::names("subpixel", "corrected", &["off", "parabola", "equiangular", "corrected"])
        .or_switch(["off", "corrected"])
        .flag(MATCHING, "--subpixel", "CURVE")
        .help("Curve that interpolates disparity to 1/16 px.")
        .more("true stands for `corrected`, false for `off`.")
        .about(&[
            "Whole pixels",
            "A parabola, which biases disparities towards whole pixels",
            "Two straight lines",
            "Two lines, corrected for the bias towards whole pixels",
        ])
        .knob("Checks", "sub-pixel curve")
        .rare(),
    Row::whole("left_right", Whole(DEFAULT.left_right.unwrap() as i64), U16, [0, u16::MAX as i64])
        .or(&["off"])
        .flag(MATCHING, "--left-right", "PX|off")
        .help(
            "Invalidate pixels whose disparities in the left and the right view differ by more than \
             this many pixels, or `off`.",
        )
        .knob("Checks", "left-right agreement")
        .slider(0.0, 8.0, 1.0),
    Row::whole("min_confidence", Whole(0), U8, [0, 99])
        .flag(MATCHING, "--min-confidence", "PERCENT")
        .help(
            "Invalidate pixels that are right within 1 px with a lower probability, 1 to 99 percent; \
             0 is off.",
        )
        .more("Applied before the median.")
        .knob("Checks", "lowest confidence")
        .slider(0.0, 99.0, 1.0),
    Row::new("median", AUTO, Kind::OneOf(U8, &["0", "3", "5"]))
        .follows_cost(|of| of.median.into())
        .flag(MATCHING, "--median", "PX")
        .help("Side of the median filter's window, 3 or 5 pixels; 0 is off.")
        .knob("Filters", "median")
        .rare()
        .offers(&["auto", "0", "3", "5"]),
    Row::whole("speckle_size", AUTO, U32, [0, u32::MAX as i64])
        .follows_cost(|of| of.speckle_size.into())
        .flag(MATCHING, "--speckle-size", "PIXELS|auto")
        .help("Invalidate connected regions of fewer pixels; 0 is off.")
        .knob("Filters", "smallest region")
        .slider(0.0, 1000.0, 10.0),
    // Larger differences cannot occur in a map.
    Row::real("speckle_range", Real(2.0), [0.0, 4095.0])
        .flag(MATCHING, "--speckle-range", "PX")
        .help(
            "Largest difference in disparity between neighbours of a region, 0 to 4095 px in steps of \
             1/16.",
        )
        .knob("Filters", "steps in a region")
        .rare()
        .slider(0.0, 16.0, 0.25),
    Row::names("evidence", "on", &["off", "on"])
        .or_switch(["off", "on"])
        .flag(MATCHING, "--evidence", "on|off")
        .help("Invalidate pixels of textureless surfaces that no evidence around them supports.")
        .more("true stands for `on`, false for `off`.")
        .about(&[
            "Textureless surfaces keep the disparity that the paths and the prior give them",
            "Pixels in nothing but noise stay only between evidence of the same surface, with the lowest \
             confidence",
        ])
        .knob("Weak texture", "only with evidence"),
    Row::whole("spatial", Whole(DEFAULT.spatial.unwrap().reach as i64), U8, [1, SPATIAL_MAX as i64])
        .or(&["off"])
        .flag(MATCHING, "--spatial", "PX|off")
        .help(
            "Smooth surfaces of the disparity map over 1 to 16 px to each side, or `off`; edges and \
             slants stay.",
        )
        .more(
            "Ripples are averaged along rows and columns, but not across edges of the image or of the \
             map. No pixel changes by more than 1 px or becomes unknown.",
        )
        .knob("Filters", "smooth surfaces")
        .slider(1.0, SPATIAL_MAX as f64, 1.0),
    Row::real("smoothing", Text("off"), [0.004, 0.996])
        .or(&["off"])
        .flag(MATCHING, "--smoothing", "WEIGHT|off")
        .help(
            "Smooth disparity in time: weight of the newest map, 0.004 (steady) to 0.996, or `off`.",
        )
        .knob("Earlier images", "smoothing in time")
        .slider(0.05, 0.95, 0.05),
    Row::real("smoothing_guard", Real(1.0), [0.0, 63.9])
        .flag(MATCHING, "--smoothing-guard", "PX")
        .help("Larger changes in time count as motion, which is not smoothed; 0 to 63.9 px.")
        .knob("Earlier images", "change by motion")
        .rare()
        .slider(0.0, 8.0, 0.25),
    Row::names("fill", "off", &["off", "row", "rays", "gaps", "network", "network+rays"])
        .flag(MATCHING, "--fill", "RULE")
        .help("Fill holes of the disparity map from the pixels around them, after all filters.")
        .more("For looking at the map and for avoiding obstacles, not for measuring.")
        .about(&[
            "Holes stay",
            "The smaller of the two neighbours in the row, as KITTI compares sparse maps; ends are extended",
            "A median along eight rays, weighted by the edges of the image on the way; the background \
             where the foreground hides it from the right camera",
            "Only gaps of at most 4 px in a row or column whose ends differ by at most 1 px: the line \
             between the ends",
            "Only those of the rays that the network of `engine.prior_from` confirms, within 5 px; its own \
             disparity if no ray meets a known pixel",
            "The same, and `rays` where the network confirms none or is not sure",
        ])
        .knob("Filters", "filling of holes"),
    Row::whole("fill_max", Whole(64), U16, [1, REACH_MAX as i64])
        .flag(MATCHING, "--fill-max", "PX")
        .help(
            "Largest distance from which a pixel is filled, 1 to 1023 px across, down or diagonally.",
        )
        .knob("Filters", "reach of filling")
        .rare()
        .slider(1.0, 256.0, 1.0),
    Row::whole("steady", Text("off"), U8, [1, STEADY_MAX as i64])
        .or(&["off"])
        .flag(MATCHING, "--steady", "STRENGTH|off")
        .help(
            "Suppress flicker: number of maps in a row that must show another disparity or none before a \
             pixel of the shown map follows, 1 to 60, or `off`.",
        )
        .more(
            "While the rig moves, the shown map is carried along its motion. What moves by itself follows \
             at once if it is matched surely.",
        )
        .knob("Earlier images", "less flicker")
        .slider(1.0, 30.0, 1.0),
    Row::new("odometry", Switch(false), Kind::Switch)
        .in_batch(InBatch::Reset)
        .flag(OUTPUT, "--odometry", "")
        .help("Follow the motion of the rig from pair to pair: where it is since the first one, for outputs and viewers.")
        .more("Needs known cameras, and computes the confidence. Outputs of the path or of a map switch it on by themselves."),
    Row::names("temporal", "off", &["off", "denoise", "whiten"])
        .flag(MATCHING, "--temporal", "MODE")
        .help("Use of the earlier frames of a stream.")
        .about(&[
            "Nothing",
            "Remove noise from static parts before matching",
            "Match frames as they are, and find what differs from their background (`output.whitened`)",
        ])
        .knob("Earlier images", "before matching"),
    Row::whole("history", Whole(20), U8, [HISTORY.0 as i64, HISTORY.1 as i64])
        .flag(MATCHING, "--history", "N")
        .help("Number of frames from which the background is predicted, 2 to 64.")
        .more("More frames leave less noise.")
        .knob("Earlier images", "number of images")
        .rare()
        .slider(2.0, 64.0, 1.0)
        .only("temporal", &["denoise", "whiten"]),
    Row::whole("degree", Whole(2), U8, [0, DEGREE_MAX as i64])
        .flag(MATCHING, "--degree", "N")
        .help("Degree of the polynomial by which the background follows the rig's shifts, 0 to 3.")
        .more("Higher degrees keep more noise.")
        .knob("Earlier images", "following of shifts")
        .rare()
        .slider(0.0, 3.0, 1.0)
        .only("temporal", &["denoise", "whiten"]),
];

/// All numbers of a byte.
const BYTE: [i64; 2] = [0, u8::MAX as i64];

/// All weights of the combined cost.
const WEIGHT: [i64; 2] = [0, WEIGHT_MAX as i64];

/// Weights and truncations of the combined cost.
const COMBINED: [i64; 5] = match DEFAULT.cost {
    Cost::Combined(of) => [
        of.census_weight as i64,
        of.gradient_weight as i64,
        of.intensity_weight as i64,
        of.gradient_truncation as i64,
        of.intensity_truncation as i64,
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

/// Checks that a text is a window. The description of correct ones follows the word "expected".
fn window<T: FromStr<Err = String>>(text: &str) -> Result<(), String> {
    let parsed = text.parse::<T>().map(drop);
    parsed.map_err(|error| with_nearest(error.trim_start_matches("expected "), text))
}
