//! Hooks in the kernels (`BREAK` of `kernels/instructions.cuh`) that break them on purpose, so that
//! the comparison with the reference must fail. Each kernel has at least one.

pub const AD: &[&str] = &["-d", "20", "--cost", "ad", "--ad-window", "1"];
pub const PARABOLA: &[&str] =
    &["-d", "20", "--cost", "ad", "--ad-window", "1", "--subpixel", "parabola"];
// The images' disparities lie across the middle of the padded range, or reach its last candidate.
pub const ACROSS: &[&str] =
    &["-d", "14", "--min-disparity", "-4", "--cost", "ad", "--ad-window", "1", "--p1", "2"];
pub const SHORT: &[&str] = &["-d", "7", "--cost", "ad", "--ad-window", "1", "--p1", "2"];
pub const DIAGONAL: &[&str] = &["-d", "20", "--cost", "ad", "--ad-window", "1", "--paths", "8"];
// The same if not all strips can be resident at once. Settings with this prefix select it.
pub const TASKS: &[&str] = &["--p1", "5"];
pub const TASKS_AD: &[&str] =
    &["--p1", "5", "-d", "20", "--cost", "ad", "--ad-window", "1", "--paths", "8"];
pub const TASKS_STRAIGHT: &[&str] =
    &["--p1", "5", "-d", "20", "--cost", "ad", "--ad-window", "1", "--paths", "4"];
// Costs beside the picture, where its intensities count as 0, that differ between candidates.
pub const BRIGHT: &[&str] = &[
    "-d",
    "20",
    "--cost",
    "ad",
    "--ad-window",
    "1",
    "--paths",
    "8",
    "--ad-truncation",
    "250",
    "--p2-mode",
    "fixed",
    "--p1",
    "1",
    "--p2",
    "5",
];
pub const AD_WINDOW: &[&str] = &["-d", "20", "--cost", "ad", "--ad-window", "3"];
pub const SMOOTHED: &[&str] = &["-d", "16", "--cost", "ad"];
pub const SPECKLE: &[&str] =
    &["-d", "16", "--median", "0", "--speckle-size", "2", "--speckle-range", "0"];
pub const CURVE: &[&str] = &["-d", "16", "--median", "0"];
pub const SURE: &[&str] = &["-d", "14", "--min-confidence", "20"];
pub const COMBINED: &[&str] = &["-d", "16"];

// Costs that need more than half a byte, with no support.
pub const LARGE: &[&str] = &[
    "-d",
    "16",
    "--cost",
    "ad",
    "--ad-window",
    "3",
    "--ad-truncation",
    "250",
    "--p2-mode",
    "fixed",
    "--p1",
    "1",
    "--p2",
    "5",
];

// Costs that are supported by the window alone, and by the prior as well.
pub const WINDOW: &[&str] = &["-d", "16", "--prior", "0", "--cost-window", "5"];
pub const PRIOR: &[&str] =
    &["-d", "24", "--prior", "1", "--prior-strength", "24", "--cost-window", "3"];

// The prior of the network, in pictures with even parts.
pub const NETWORK: &[&str] = &[
    "--evidence",
    "off",
    "-d",
    "48",
    "--prior",
    "1",
    "--prior-strength",
    "32",
    "--cost-window",
    "3",
    "--prior-from",
    "network:coarse",
];

// Tiles that are supported by both.
pub const TILED: &[&str] = &[
    "-d",
    "8",
    "--tiles",
    "3x1,16",
    "--prior",
    "1",
    "--prior-strength",
    "24",
    "--cost-window",
    "3",
];
pub const TILED_SIZE: (usize, usize) = (45, 60);

pub const FILLED: &[&str] = &["-d", "20", "--median", "0", "--fill", "rays", "--fill-max", "7"];
pub const RAW_FILLED: &[&str] = &["-d", "16", "--alpha", "1", "--fill", "rays"];
pub const GAPS: &[&str] = &["-d", "20", "--median", "0", "--fill", "gaps"];
pub const NETWORK_FILL: &[&str] = &[
    "-d",
    "40",
    "--prior",
    "1",
    "--prior-from",
    "network:coarse",
    "--uniqueness",
    "30",
    "--fill",
    "network",
];
pub const NETWORK_FILL_SIZE: (usize, usize) = (160, 80);
pub const SURFACES: &[&str] = &["-d", "20", "--median", "0", "--spatial", "3"];
// Pictures with even parts (`even` of cuda_emulated.rs): settings with this prefix ask for the confidence; and
// those of which no even part stays.
pub const EVEN: &[&str] = &["--evidence", "on", "-d", "40"];
pub const STRICT: &[&str] = &["-d", "40", "--evidence", "on", "--min-confidence", "1"];
pub const RAW_EVEN: &[&str] = &["-d", "40", "--evidence", "on", "--alpha", "1"];
pub const RAW: &[&str] = &["-d", "16", "--alpha", "1", "--left-right", "off"];

// Sums over windows, without paths and with them; knight's moves.
pub const SAD: &[&str] = &["--paths", "0", "--cost", "sad", "--window", "5x3", "-d", "20"];
pub const ZSAD: &[&str] = &["--paths", "0", "--cost", "zsad", "--window", "3x5", "-d", "20"];
pub const BYTES: &[&str] = &["--paths", "4", "--cost", "ssd", "--window", "3", "-d", "20"];
pub const KNIGHT: &[&str] = &["--paths", "16", "-d", "20"];

// Range windows in pictures of objects at all distances (`wide` of cuda_emulated.rs), by sweeps and by tasks.
pub const WINDOWS: &[&str] =
    &["-d", "128", "--windows", "auto", "--prior", "1", "--p2-mode", "fixed", "--paths", "8"];
pub const WINDOWS_SIZE: (usize, usize) = (140, 70);

pub const MI: &[&str] = &["--cost", "mi", "-d", "20"];

/// Hooks, with the settings under which a broken one shows.
pub const BROKEN: &[(&str, &[&str])] = &[
    // Paths, and the conditions that the blocks of a sweep wait for.
    ("full_barrier", AD),
    ("p1", AD),
    ("last_neighbour", ACROSS),
    ("padding", SHORT),
    ("p2_leftwards", AD),
    ("halo_border", BRIGHT),
    ("halo_received", AD),
    ("states_of_band", TASKS_STRAIGHT),
    ("task_before", TASKS_AD),
    ("below", TASKS_AD),
    ("other_sums", TASKS_STRAIGHT),
    // Winners: ties, uniqueness, sub-pixel refinement, the right view, borders.
    ("tie", AD),
    ("uniqueness", AD),
    ("parabola_rounding", PARABOLA),
    ("subpixel_limit", CURVE),
    ("right_candidate", AD),
    ("near_rival", SURE),
    ("right_key", SAD),
    ("right_border", SAD),
    ("left_right_limit", AD),
    // Costs, their support, and mutual information.
    ("census_equal", COMBINED),
    ("ad_rounding", AD_WINDOW),
    ("zero_mean", ZSAD),
    ("mi_beginning", MI),
    ("mi_map", MI),
    ("guide_weight", SMOOTHED),
    ("half_rounding", PRIOR),
    ("noise_quantile", WINDOW),
    ("given_noise", TILED),
    ("prior_rounding", PRIOR),
    ("prior_border", PRIOR),
    ("bend_reach", PRIOR),
    ("slant_sign", PRIOR),
    ("learned_mean", NETWORK),
    ("learned_dilation", NETWORK),
    ("learned_least", NETWORK),
    ("learned_candidate", NETWORK),
    ("learned_rounding", NETWORK),
    ("learned_neighbour", NETWORK),
    ("window_row", WINDOW),
    ("blend_rounding", WINDOW),
    ("volume_barrier", WINDOW),
    // Paths, and windows with stored sums.
    ("path_starts", KNIGHT),
    ("window_border", SAD),
    ("byte_rounding", BYTES),
    // Range windows: how they are chosen, how paths enter a tile, and the right view.
    ("window_margin", WINDOWS),
    ("entry", WINDOWS),
    ("entry_across", WINDOWS),
    ("right_segment", WINDOWS),
    // Filters, masks and rectification.
    ("median_of_valid", AD),
    ("confidence_border", SURE),
    ("confidence_sum", SURE),
    ("confidence_of_known", SURE),
    ("speckle_size", SPECKLE),
    ("mask_column", RAW),
    ("row_ends", EVEN),
    ("evidence_stays", EVEN),
    ("spatial_edge", SURFACES),
    ("spatial_rounding", SURFACES),
    ("fill_tie", FILLED),
    ("fill_mask", RAW_FILLED),
    ("gap_rounding", GAPS),
    ("network_row", NETWORK_FILL),
    ("network_ray", NETWORK_FILL),
    ("rectify_rounding", RAW),
];

/// Hooks that show in a stream whose map is smoothed in time.
pub const BROKEN_WHILE_SMOOTHING: &[&str] = &["smoothing_state", "histogram_cleared"];

/// Hooks of the stages in time; the last one shows in the whitened view alone.
pub const BROKEN_IN_TIME: &[&str] = &[
    "shift_sign",
    "background_shift",
    "residual_quantile",
    "whitened",
    "steady_strength",
    "steady_rounding",
];

/// Hooks that show only if a rig jumps, so that remembered images are lost.
pub const BROKEN_WHERE_IT_LEAPS: &[&str] = &["lost_pictures"];
