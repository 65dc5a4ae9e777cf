//! Kernels that are broken on purpose, which the emulation has to notice.

/// A kernel that is broken in one place: the text, what takes its place, and the settings that show it.
pub type Broken = (&'static str, &'static str, &'static [&'static str]);

pub const AD: &[&str] = &["-d", "20", "--cost", "ad", "--ad-window", "1"];
pub const PARABOLA: &[&str] =
    &["-d", "20", "--cost", "ad", "--ad-window", "1", "--subpixel", "parabola"];
// The pictures' disparities lie across the middle of the padded range, or reach its last candidate.
pub const ACROSS: &[&str] =
    &["-d", "14", "--min-disparity", "-4", "--cost", "ad", "--ad-window", "1", "--p1", "2"];
pub const SHORT: &[&str] = &["-d", "7", "--cost", "ad", "--ad-window", "1", "--p1", "2"];
pub const DIAGONAL: &[&str] = &["-d", "20", "--cost", "ad", "--ad-window", "1", "--paths", "8"];
// The same where not all strips can be resident at once.
// What begins with these settings is matched so.
pub const TASKS: &[&str] = &["--p1", "5"];
pub const TASKS_AD: &[&str] =
    &["--p1", "5", "-d", "20", "--cost", "ad", "--ad-window", "1", "--paths", "8"];
// Candidates on both sides, so that costs beside the picture differ.
pub const TASKS_ACROSS: &[&str] = &[
    "--p1",
    "5",
    "-d",
    "20",
    "--min-disparity",
    "-9",
    "--cost",
    "ad",
    "--ad-window",
    "1",
    "--paths",
    "8",
];
pub const CURVE: &[&str] = &["-d", "16", "--median", "0"];
pub const SURE: &[&str] = &["-d", "14", "--min-confidence", "20"];
pub const COMBINED: &[&str] = &["-d", "16"];
pub const PLAIN: &[&str] =
    &["-d", "600", "--paths", "5", "--cost", "census", "--left-right", "off"];

// Costs beyond half a byte, which nothing may support.
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
// Pictures with even parts (`even` of cuda_emulated.rs), with a confidence; and those of which no even part stays.
pub const EVEN: &[&str] = &["-d", "40", "--evidence", "on", "--min-confidence", "1"];
pub const STRICT: &[&str] = &["-d", "40", "--evidence", "on", "--min-confidence", "2"];
pub const RAW_EVEN: &[&str] = &["-d", "40", "--evidence", "on", "--alpha", "1"];
pub const RAW: &[&str] = &["-d", "16", "--alpha", "1", "--left-right", "off"];

// Sums over windows, without paths and with them; knight's moves.
pub const SAD: &[&str] = &["--paths", "0", "--cost", "sad", "--window", "5x3", "-d", "20"];
pub const ZSSD: &[&str] = &["--paths", "0", "--cost", "zssd", "--window", "5x3", "-d", "20"];
pub const ZSAD: &[&str] = &["--paths", "0", "--cost", "zsad", "--window", "3x5", "-d", "20"];
pub const BYTES: &[&str] = &["--paths", "4", "--cost", "ssd", "--window", "3", "-d", "20"];
pub const KNIGHT: &[&str] = &["--paths", "16", "-d", "20"];

pub const MI: &[&str] = &["--cost", "mi", "-d", "20"];

pub const BROKEN: [Broken; 89] = [
    // Tiles of sums that are read before they are full. (That one is written before it is free does not show here,
    // where all warps keep pace.)
    ("barrier_wait<32 * MAIN_WARPS + SELECT_THREADS>(FULL_BARRIER(i - 1));", "", AD),
    ("lane) : own;", "lane) : supported(own, sum, {blend_word(WINDOW_MOST, 0, 0)}, lane);", LARGE),
    // The recurrence: P1, and the neighbour of the last candidate of a lane.
    ("add2(neighbours, both(P1))", "add2(neighbours, both(P1 + 1))", AD),
    ("lane == GROUP - 1 ? A_HIGH_B_LOW", "lane == GROUP - 1 ? A_LOW_A_HIGH", ACROSS),
    // A candidate beyond the range takes part.
    ("(d < DISPARITIES ? 0u", "(d <= DISPARITIES ? 0u", SHORT),
    // The penalty of the wrong horizontal direction.
    ("LEFTWARDS ? P2_HORIZONTAL_FROM_RIGHT", "LEFTWARDS ? P2_HORIZONTAL_FROM_LEFT", AD),
    // Paths come in from beyond the right border; strips mix up their halos, or exchange too few columns.
    ("const bool empty = x >= width ||", "const bool empty = false ||", DIAGONAL),
    (
        "side == 0 ? column : STRIP + column, lane, path",
        "side == 0 ? column : STRIP + column, lane, filled(0)",
        AD,
    ),
    ("(column - (STRIP - HALO)) * HALO_C", "(STRIP - 1 - column) * HALO_C", AD),
    // Tasks: states of another band, what is waited for, where the second launch goes on, what lies beside the picture.
    ("task.band - 1 + 2, columns", "task.band, columns", TASKS_AD),
    ("< (u32)task.band", "< 0u", TASKS_AD),
    ("            finish(way);", "", TASKS_AD),
    ("(direction == 0 ? middle : all - middle) : 0", "middle : 0", TASKS_AD),
    ("if (below) vertical = filled(0)", "if (false) vertical = filled(0)", TASKS_AD),
    ("(x < 0 || way.y >= height)", "(way.y >= height)", TASKS_ACROSS),
    // The two sweeps' sums, and a tie that goes to the larger disparity.
    ("other_sums += step", "other_sums -= step", AD),
    ("sum.v[j + 1] * KEY_NUMBERS + both(j + 1)", "sum.v[j + 1] * KEY_NUMBERS + both(j)", AD),
    ("(b * 100 + 99 - UNIQUENESS)", "(b * 100 + 100 - UNIQUENESS + 200)", AD),
    ("33 * den) / (2 * den)", "32 * den) / (2 * den)", PARABOLA),
    ("LIMIT_UNIT * (min(a, c) - b)", "(LIMIT_UNIT + 4) * (min(a, c) - b)", CURVE),
    ("(int)(key % KEY_NUMBERS) - (STRIP - 1)", "(int)(key % KEY_NUMBERS) - (STRIP - 3)", AD),
    // The filters.
    ("<= LEFT_RIGHT_LIMIT", "<= LEFT_RIGHT_LIMIT + 1", AD),
    ("u32 low = (invalid + 0x00010001u) >> 1", "u32 low = invalid >> 1", AD),
    // The confidence: rivals next to the winner, rounding, windows, and what is not known.
    ("before) <= 2 ? 0xffffu : 0", "before) <= 1 ? 0xffffu : 0", SURE),
    ("255 * (rival - least) / rival", "256 * (rival - least) / rival", SURE),
    (
        "min(max(top + row - RADIUS, 0), height - 1)",
        "min(max(top + row - RADIUS, 1), height - 1)",
        SURE,
    ),
    ("counts ? peaks[(size_t)y * columns + x] : 0", "peaks[(size_t)y * columns + x]", SURE),
    ("y * width + x] < WHITE) return false", "y * width + x] < WHITE + 3) return false", SURE),
    ("== INVALID) confidence[i] = 0", "== INVALID) confidence[i] = 1", SURE),
    // The costs.
    ("value < centre", "value <= centre", COMBINED),
    ("return g < 0 ? 0x8000u | -g : g", "return g < 0 ? -g : g", COMBINED),
    (
        "return size >= (u32)(SPECKLE_SIZE)",
        "return size > (u32)(SPECKLE_SIZE)",
        &["-d", "16", "--median", "0", "--speckle-size", "2", "--speckle-range", "0"],
    ),
    (
        "low[j] = high[j] = AREA / 2",
        "low[j] = high[j] = 0",
        &["-d", "20", "--cost", "ad", "--ad-window", "3"],
    ),
    // The smoothed guide; half pictures.
    ("(2 - abs(down)) * (from", "(1 + abs(down)) * (from", &["-d", "16", "--cost", "ad"]),
    ("(sum + 2) / 4", "(sum + 1) / 4", PRIOR),
    // Texture: its window, what the noise is of, and how much of it.
    ("greatest = max(greatest, grey);", "greatest = grey;", WINDOW),
    ("!inside || at[0] < DARKEST ||", "!inside || at[0] >= DARKEST ||", WINDOW),
    ("(u64)3 * of_warps", "(u64)2 * of_warps", WINDOW),
    ("if (threadIdx.x % 32 >= step) value += before", "value += before", WINDOW),
    ("given ? given : 4 +", "4 +", TILED),
    // What a window counts, and a prior; where that varies, and what it expects.
    ("3 * noise - range, 0)", "3 * noise - range, 1)", WINDOW),
    ("2 * noise - range, 0), noise)", "3 * noise - range, 0), noise)", PRIOR),
    ("min(max(x + across, 0), width - 1)", "x", PRIOR),
    ("2 * centre + SUBPIXEL_STEPS / 2", "2 * centre", PRIOR),
    // The volume of costs: the window's rows and columns, rounding, what is too far, a barrier that is missing.
    ("first - WINDOW_RADIUS + i, width", "first + i, width", WINDOW),
    ("p - WINDOW_RADIUS - 1", "p - WINDOW_RADIUS", WINDOW),
    ("get_sum(k - WINDOW_RADIUS)", "get_sum(PIXELS + k)", WINDOW),
    ("rest + both(1 << (BLEND_SHIFT - 1))", "rest", WINDOW),
    ("both(PRIOR_REACH)) * prior", "both(2)) * prior", PRIOR),
    ("__syncthreads();\n        auto sum_of_rows", "auto sum_of_rows", WINDOW),
    (
        "copy16(to + WINDOW_BASE + i, window.base + i)",
        "copy16(to + WINDOW_BASE + i, window.base)",
        WINDOW,
    ),
    ("values[other] <= values[k]", "values[other] < values[k]", FILLED),
    ("edges[k] = max(edges[k], abs(grey - greys[k]))", "edges[k] = abs(grey - greys[k])", FILLED),
    ("31 - __clz(distance + 2)", "31 - __clz(distance + 1)", FILLED),
    ("is_hidden ? 4 : 2", "2", FILLED),
    (
        "distance <= reach && ray_x >= 0",
        "distance < reach && ray_x >= 0",
        &["-d", "20", "--median", "0", "--fill", "rays", "--fill-max", "2"],
    ),
    ("is_hole && seen_left[here]", "is_hole", RAW_FILLED),
    // Evidence: the means, the noise, what is weak; lines between ends, opposite rays; what stays.
    ("sum += from.at(x + across, y + down)", "sum += from.at(x + across, y)", EVEN),
    ("max(*threshold, (u32)THRESHOLD_MIN)", "max(8 * *threshold, (u32)THRESHOLD_MIN)", EVEN),
    ("least = min(least, sum), greatest", "least = sum, greatest", EVEN),
    ("- (b - a) * to_a)", "- (b - a) * to_b)", EVEN),
    ("off <= max(SUBPIXEL_STEPS, abs(own)", "off <= max(0, abs(own)", EVEN),
    ("values[7 - k], steps[7 - k]", "values[k], steps[k]", EVEN),
    ("return min(across, down)", "return max(across, down)", EVEN),
    ("stays ? LEAST_CONFIDENCE : 0", "stays ? LEAST_CONFIDENCE + 1 : 0", EVEN),
    ("#if !STRICT", "#if 1", STRICT),
    // Rectification: the row below, rounding, and what the right camera has not seen.
    ("(fy > 0 ? stride : 0)", "0", RAW),
    ("bottom * fy + 32768) >> 16", "bottom * fy) >> 16", RAW),
    ("|| !seen_right[row + match]", "|| !seen_right[row + x]", RAW),
    // Paths one after the other: the penalty of another step, where they begin, rows and columns of starts.
    ("guide.at(at_x - dx, at_y - dy))]", "guide.at(at_x - dx, at_y))]", PLAIN),
    ("const int rows = min(abs(dy), height)", "const int rows = min(1, height)", KNIGHT),
    ("rows + beside / max(columns, 1)", "beside / max(columns, 1)", KNIGHT),
    // Winners from sums that are kept: keys of the right picture, rivals, a column of another.
    ("key_at(column + DISPARITIES - 1 - d)", "key_at(column + DISPARITIES - d)", SAD),
    ("NO_WINNER && x >= 0 && x < width", "NO_WINNER && x >= 4 && x < width", SAD),
    ("d < DISPARITIES && abs(d - winner) > 1", "d < DISPARITIES && abs(d - winner) > 0", SAD),
    // Sums over windows: rows that come and go, columns, the mean, scales and bytes.
    ("add(columns[p], parts(p, y + DOWN))", "add(columns[p], parts(p, y))", SAD),
    ("subtract(columns[p], parts(p, y - DOWN))", "subtract(columns[p], parts(p, y))", SAD),
    ("shared.get(p - ACROSS - 1)", "shared.get(p - ACROSS)", SAD),
    ("min(max(x + p, 0), width - 1)", "min(max(x + p, 1), width - 1)", SAD),
    ("window.v[4 * j + 3] * window.v[4 * j + 3]", "window.v[4 * j + 3]", ZSSD),
    ("total, SCALE_LIMIT)", "total, SCALE_LIMIT / 64)", ZSSD),
    ("value -= picture.at(x + across, y + down)", "value -= picture.at(x, y + down)", ZSAD),
    ("sums.v[j] + both(1 << (BYTE_SHIFT - 1))", "sums.v[j]", BYTES),
    // Mutual information: what is counted before a map is known and after, what belongs to which level.
    ("[&](size_t, int x) { return x - d; }", "[&](size_t, int x) { return x + d; }", MI),
    ("value + SUBPIXEL_STEPS / 2 >> SUBPIXEL_BITS", "value >> SUBPIXEL_BITS", MI),
    ("marginal[level] > 0 ? cost : NONE", "cost", MI),
    ("map[i] = disparity[i]", "map[i] = 0", MI),
    ("costs[four >> 16 & 0xff] << 16", "costs[four >> 8 & 0xff] << 16", MI),
    ("(16 + BYTE_SHIFT), BLOCK_TRUNCATION", "(16 + BYTE_SHIFT), BLOCK_TRUNCATION / 2", BYTES),
];

/// Kernels of the stages in time, broken on purpose.
pub const BROKEN_IN_TIME: [(&str, &str); 16] = [
    // Registration: the signs of the sums, what is masked, the offsets, the correction, where it is looked.
    ("a.across * b.grey - b.across * a.grey", "a.across * b.grey + b.across * a.grey"),
    ("own[4] += a.across * b.down + a.down * b.across", "own[4] += a.across * b.down"),
    ("times(mean_b, a(2 + axis))", "times(mean_a, a(2 + axis))"),
    (
        "const double weaker = over(times(0.25, b(5 + axis))",
        "const double weaker = over(times(0.5, b(5 + axis))",
    ),
    // Coefficients.
    ("double sum = i == k ? 0.1 : 0.0;", "double sum = i == k ? 0.2 : 0.0;"),
    ("missing -= coefficients[j];", "missing += coefficients[j];"),
    ("return times(square, square);", "return square;"),
    // The background and its noise.
    (
        "const int column = x - of_slots[3 * slot + 1]",
        "const int column = x + 1 - of_slots[3 * slot + 1]",
    ),
    ("half_steps * half_steps * 431 >> 8", "half_steps * half_steps * 400 >> 8"),
    ("10 * with > 3 * all", "10 * with > 4 * all"),
    ("if (down >= 1 && down <= 3 && across >= 1", "if (down >= 1 && down <= 3 && across >= 2"),
    // What is remembered.
    ("words[PLACE_NEWEST] = slot;", "words[PLACE_NEWEST] = 0;"),
    ("whitened[at] = (32768 + 8 * residual)", "whitened[at] = (32768 + 4 * residual)"),
    // The steady map.
    ("against <= min(memory.seen, STRENGTH)", "against < min(memory.seen, STRENGTH)"),
    ("memory.grey + ((newest_grey - memory.grey + (1 << (FOLLOW - 1))) >> FOLLOW)", "newest_grey"),
    ("before += (weight * step + 128) >> 8;", "before += (weight * step) >> 8;"),
];

/// What shows only where a rig leaps, so that pictures are lost.
pub const BROKEN_WHERE_IT_LEAPS: [(&str, &str); 2] = [
    // What the reference has by itself, and what becomes of pictures all of which are lost.
    ("sums[4] += a.to_right * a.to_right", "sums[4] += a.to_right"),
    ("if (!shift.lost) kept = true;", "kept = true;"),
];
