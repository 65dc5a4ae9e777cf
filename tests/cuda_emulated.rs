//! The CUDA kernels on machines without a GPU: their own source, compiled by the processor's compiler
//! (`fake_cuda/nvrtc.cpp`) against a header that plays the lanes of a warp, the threads of a block and the
//! blocks of a launch (`instructions.cuh`), under the driver of cuda_host.rs. The whole engine runs as it
//! does on a GPU, only slowly, and must give the bytes of the reference; and kernels that are broken on
//! purpose must not.
//!
//! What this cannot show is what the hardware decides: instructions of newer chips, memory that other
//! threads have not written yet. tests/cuda_parity.rs is for machines with a GPU.
#![cfg(target_os = "linux")]

mod common {
    pub mod program;
}

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use common::program::stereod;

/// The folder with both libraries, compiled once.
fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("emulated");
        std::fs::create_dir_all(folder.join("kernels")).unwrap();
        let build = |compiler: &str, arguments: &[&str], source: &str, library: &str| {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
            let mut command = Command::new(compiler);
            command.args(["-shared", "-fPIC", "-O1", "-pthread"]).args(arguments).arg("-o");
            let status = command.arg(folder.join(library)).arg(source).arg("-ldl").status();
            assert!(status.expect("the compilers that building stereod needs too").success());
        };
        build("cc", &[], "fake_cuda/driver.c", "libcuda.so");
        build("c++", &["-std=c++20"], "fake_cuda/nvrtc.cpp", "libnvrtc.so");
        folder
    })
}

/// Two pictures that are alike but for shifts and noise, as files.
fn pictures(width: usize, height: usize) -> [PathBuf; 2] {
    let mut state = 88_172_645_463_325_252u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as usize
    };
    // Patches of one brightness, some of them noisy, so that there is much to be told apart and much
    // that cannot be.
    let scene: Vec<u8> = (0..(width + 64) * height)
        .map(|i| {
            let (x, y) = (i % (width + 64), i / (width + 64));
            // The brightest is white.
            let patch = match (x / 7 * 31 + y / 5 * 17) % 11 {
                10 => 252,
                number => number * 23,
            };
            let noise = if (x / 20 + y / 9) % 3 == 0 { 0 } else { random() % 25 };
            (patch + noise).min(255) as u8
        })
        .collect();
    let at = |x: usize, y: usize| scene[y * (width + 64) + x];
    let left: Vec<u8> = (0..width * height).map(|i| at(i % width + 8, i / width)).collect();
    let right: Vec<u8> = (0..width * height)
        .map(|i| {
            let (x, y) = (i % width, i / width);
            let shift = 8 + (x / 13 + y / 6) % 7;
            at(x + shift, y).wrapping_add((random() % 5) as u8)
        })
        .collect();
    [("left", left), ("right", right)].map(|(name, pixels)| {
        let path = libraries().join(format!("{name}-{width}x{height}.pgm"));
        let mut file = format!("P5\n{width} {height}\n255\n").into_bytes();
        file.extend(pixels);
        // Written by several tests at once: the name appears with all of it.
        let own =
            libraries().join(format!("{name}-{width}x{height}-{:?}", std::thread::current().id()));
        std::fs::write(&own, file).unwrap();
        std::fs::rename(own, &path).unwrap();
        path
    })
}

/// A crooked pair of cameras for raw pictures of this size, as a file.
fn calibration((width, height): (usize, usize)) -> String {
    let path = libraries().join(format!("rig-{width}x{height}.json"));
    let (x, y) = (0.5 * width as f64, 0.5 * height as f64);
    let rig = serde_json::json!({
        "image_size": [width, height],
        "K1": [[1.1 * x, 0.0, x], [0.0, 1.1 * x, y], [0.0, 0.0, 1.0]],
        "D1": [-0.2, 0.05, 0.001, -0.002, 0.0],
        "K2": [[1.2 * x, 0.0, x + 2.0], [0.0, 1.2 * x, y - 1.0], [0.0, 0.0, 1.0]],
        "D2": [-0.25, 0.04, 0.0, 0.001, 0.0],
        // 3 degrees about the optical axis.
        "R": [[0.998_629_534_754_573_8, -0.052_335_956_242_943_83, 0.0],
              [0.052_335_956_242_943_83, 0.998_629_534_754_573_8, 0.0], [0.0, 0.0, 1.0]],
        "T": [-0.1, 0.003, 0.001],
    });
    let own = libraries().join(format!("rig-{width}x{height}-{:?}", std::thread::current().id()));
    std::fs::write(&own, rig.to_string()).unwrap();
    std::fs::rename(own, &path).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The program where the stand-ins are all of CUDA that there is; `broken` is a text of the kernels
/// and what takes its place.
fn emulated(broken: Option<(&str, &str)>) -> Command {
    let mut command = stereod(&[]);
    if let Some((old, new)) = broken {
        command.env("EMULATED_OLD", old).env("EMULATED_NEW", new);
    }
    command
        // Costs are computed on the fly where a test asks for nothing that supports them.
        .env("STEREOD_MATCHING_COST_WINDOW", "0")
        .env("STEREOD_MATCHING_PRIOR", "0")
        .env("LD_LIBRARY_PATH", libraries())
        .env("CUDA_HOME", "/nonexistent")
        .env("CUDA_PATH", "/nonexistent")
        .env("STEREOD_ENGINE_KERNEL_CACHE", "off")
        .env("FAKE_EMULATES", "1")
        .env("EMULATED_FOLDER", libraries().join("kernels"))
        .env("EMULATED_HEADER", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_cuda"));
    command
}

/// Matches with the emulated engine and the reference: whether they agree, and what was said.
fn verify(
    size: (usize, usize),
    arguments: &[&str],
    broken: Option<(&str, &str)>,
) -> (bool, String) {
    let [left, right] = pictures(size.0, size.1);
    let output = tempfile::tempdir().unwrap();
    let run = emulated(broken)
        .args(["match", "--engine", "cuda", "--verify", "-o"])
        .arg(output.path().join("disparity.png"))
        .args([left, right])
        .args(arguments)
        .args(
            arguments.contains(&"--alpha").then(|| format!("--calibration={}", calibration(size))),
        )
        .output()
        .expect("the binary starts");
    let said =
        String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    let agrees = said.contains("identical with the reference");
    assert!(agrees == run.status.success(), "{arguments:?}: {said}");
    assert!(
        agrees || said.contains("differ"),
        "neither alike nor different: {arguments:?}: {said}"
    );
    (agrees, said)
}

fn same(size: (usize, usize), arguments: &[&str]) {
    let (agrees, said) = verify(size, arguments, None);
    assert!(agrees, "{size:?} {arguments:?}: {said}");
}

const SIZE: (usize, usize) = (61, 23);

#[test]
fn every_cost_gives_the_bytes_of_the_reference() {
    same(SIZE, &["-d", "16"]);
    same(SIZE, &["-d", "20", "--cost", "census"]);
    same(SIZE, &["-d", "20", "--cost", "census", "--census-window", "9x7", "--speckle-size", "20"]);
    same(SIZE, &["-d", "20", "--cost", "ad", "--ad-window", "1"]);
    // Speckles across tiles.
    same((75, 40), &["-d", "8", "--median", "0", "--speckle-size", "40", "--speckle-range", "0.5"]);
    same(SIZE, &["-d", "20", "--cost", "ad", "--ad-window", "5", "--ad-truncation", "60"]);
}

#[test]
fn tiles_give_the_bytes_of_the_reference() {
    same(SIZE, &["-d", "8", "--tiles", "2x2,6"]);
    same(SIZE, &["-d", "8", "--tiles", "3x1,4", "--fill", "rays"]);
    same(SIZE, &["-d", "8", "--tiles", "2x1,4", "--alpha", "1"]);
    // With the noise of the whole picture, at two levels.
    same(TILED_SIZE, TILED);
}

#[test]
fn every_set_of_paths_and_every_range_gives_the_bytes_of_the_reference() {
    same(SIZE, &["-d", "33", "--paths", "4", "--min-disparity", "-9", "--p2-mode", "fixed"]);
    same(SIZE, &["-d", "64", "--paths", "5", "--p2-mode", "inverse-gradient", "--median", "5"]);
    same((37, 9), &["-d", "128", "--cost", "ad", "--ad-window", "1", "--p2", "120"]);
    same((1, 1), &["-d", "1"]);
    same((3, 40), &["-d", "5", "--min-disparity", "2"]);
}

/// Large enough for one coarser level.
const TWO_LEVELS: (usize, usize) = (45, 33);

#[test]
fn supported_costs_give_the_bytes_of_the_reference() {
    // The window alone, of either side; where there is texture and where there is none.
    let window = ["-d", "20", "--prior", "0", "--cost-window"];
    let with = |more: &[&'static str]| [&window, more].concat();
    same(SIZE, &with(&["5"]));
    same(SIZE, &with(&["3", "--cost-window-where", "everywhere", "--cost", "census"]));
    same((9, 40), &with(&["5", "--cost", "ad", "--ad-window", "3", "--p2-guide", "picture"]));
    same((75, 35), &with(&["3", "--cost", "ad", "--ad-window", "1", "--paths", "8"]));
    same((1, 1), &with(&["5"]));
    // Twelve registers a lane: one pixel a thread, which may begin at an odd column.
    let twelve = ["-d", "65", "--cost", "ad", "--ad-window", "1", "--prior", "0"];
    same((70, 12), &[&twelve[..], &["--cost-window", "3"]].concat());
    same((70, 33), &[&twelve[..6], &["--prior", "1"]].concat());
    // The prior alone, and both; three levels, and candidates on either side of 0.
    let strong = ["--prior-strength", "20", "--cost-window"];
    same(TWO_LEVELS, &[&["-d", "24", "--prior", "2"], &strong[..], &["0"]].concat());
    let less = ["--min-disparity", "-11", "--paths", "5", "--speckle-size", "0"];
    same(TWO_LEVELS, &[&["-d", "33", "--prior", "1"], &strong[..], &["5"], &less].concat());
    let ad = ["--cost", "ad", "--ad-window", "1", "--ad-truncation", "60", "--paths", "8"];
    same((66, 65), &[&["-d", "40", "--prior", "3"], &strong[..], &["3"], &ad].concat());
    // More candidates than the sweeps take, and a guide alone.
    same((34, 33), &["-d", "600", "--cost", "ad", "--cost-window", "5", "--prior", "1"]);
    same(SIZE, &["-d", "20", "--cost", "ad", "--p2-guide", "smoothed"]);
}

#[test]
fn the_plain_way_gives_the_bytes_of_the_reference() {
    same((23, 9), &["-d", "1000", "--uniqueness", "0"]);
    same((23, 9), &["-d", "600", "--paths", "5", "--cost", "census", "--left-right", "off"]);
}

#[test]
fn sums_over_windows_give_the_bytes_of_the_reference() {
    let local = ["--paths", "0", "--window"];
    let with = |more: &[&'static str]| [&local, more].concat();
    same(SIZE, &with(&["9x5", "-d", "20", "--cost", "sad"]));
    same(SIZE, &with(&["3", "-d", "16", "--cost", "ssd", "--min-disparity", "-4"]));
    same(SIZE, &with(&["11x3", "-d", "33", "--cost", "zsad", "--min-confidence", "9"]));
    same((75, 35), &with(&["5x11", "-d", "70", "--cost", "zssd", "--fill", "row"]));
    same(SIZE, &with(&["1", "-d", "20", "--cost", "combined", "--left-right", "off"]));
    same((23, 40), &with(&["5", "-d", "130", "--cost", "census", "--subpixel", "parabola"]));
    same((1, 1), &with(&["11", "-d", "1", "--cost", "sad"]));
    // Several blocks share a pixel's candidates; a right picture beyond a segment.
    same((140, 6), &with(&["5", "-d", "300", "--cost", "sad", "--min-disparity", "-150"]));
    // The same costs along paths.
    for cost in ["ssd", "zssd"] {
        same(SIZE, &["-d", "20", "--cost", cost, "--window", "5", "--paths", "8"]);
    }
    same((37, 9), &["-d", "33", "--cost", "zsad", "--window", "3", "--paths", "4"]);
}

#[test]
fn mutual_information_gives_the_bytes_of_the_reference() {
    let mi = ["--cost", "mi", "-d"];
    let with = |more: &[&'static str]| [&mi, more].concat();
    same(SIZE, &with(&["20", "--min-disparity", "-3", "--fill", "row"]));
    same((70, 12), &with(&["65", "--paths", "4", "--alpha", "1"]));
    same(
        (37, 9),
        &with(&[
            "33",
            "--paths",
            "16",
            "--mi-truncation",
            "127",
            "--p2",
            "99",
            "--left-right",
            "off",
        ]),
    );
    same(SIZE, &with(&["16", "--paths", "0", "--window", "3", "--min-disparity", "4"]));
    let prior =
        ["24", "--prior", "1", "--cost-window", "3", "--mi-truncation", "100", "--p2", "120"];
    same(TWO_LEVELS, &with(&prior));
    same(SIZE, &with(&["16", "--tiles", "2x1,8"]));
    same((1, 1), &with(&["1"]));
}

#[test]
fn knight_s_moves_give_the_bytes_of_the_reference() {
    same(SIZE, &["-d", "20", "--paths", "16", "--p2-mode", "linear"]);
    same((7, 40), &["-d", "9", "--paths", "16", "--cost", "ad", "--p2-guide", "picture"]);
    same((1, 3), &["-d", "2", "--paths", "16"]);
    let prior = ["--prior", "1", "--cost-window", "3"];
    same(TWO_LEVELS, &[&["-d", "24", "--paths", "16"], &prior[..]].concat());
    same((34, 9), &["-d", "40", "--paths", "16", "--cost", "zssd"]);
}

#[test]
fn holes_are_filled_with_the_bytes_of_the_reference() {
    same(SIZE, &["-d", "16", "--fill", "row", "--fill-max", "3"]);
    same(SIZE, &["-d", "16", "--fill", "rays", "--median", "0"]);
    same((75, 40), &["-d", "20", "--cost", "census", "--fill", "rays", "--fill-max", "5"]);
    // Holes that no camera has seen stay.
    same((63, 21), &["-d", "16", "--alpha", "1", "--fill", "rays"]);
    same(SIZE, &["-d", "16", "--alpha", "1", "--fill", "row", "--smoothing", "0.5"]);
}

#[test]
fn raw_pairs_are_rectified_to_the_bytes_of_the_reference() {
    same(SIZE, &["-d", "16", "--alpha", "0"]);
    // With pixels that no camera sees; 63 * 21 is no whole number of vectors.
    same((63, 21), &["-d", "16", "--alpha", "1", "--median", "0"]);
    same(SIZE, &["-d", "16", "--alpha", "1", "--left-right", "off", "--cost", "census"]);
}

#[test]
fn how_sure_each_pixel_is_gives_the_bytes_of_the_reference() {
    let output = tempfile::tempdir().unwrap();
    let path = output.path().join("confidence.png");
    let confidence = ["--confidence", path.to_str().unwrap()];
    let with = |arguments: &[&'static str]| [arguments, &["--min-confidence", "25"]].concat();
    same(SIZE, &[&["-d", "16"][..], &confidence[..]].concat());
    same(SIZE, &with(&["-d", "14", "--min-disparity", "-4", "--uniqueness", "0"]));
    same(SIZE, &with(&["-d", "7", "--alpha", "1", "--left-right", "off"]));
    same((37, 9), &with(&["-d", "3", "--paths", "4"]));
    // What is filled has none, and coarser levels do not ask for it.
    same(SIZE, &with(&["-d", "20", "--median", "0", "--fill", "rays"]));
    same(TWO_LEVELS, &with(&["-d", "24", "--prior", "1", "--prior-strength", "20"]));
    same((70, 40), &with(&["-d", "64", "--paths", "5", "--cost", "ad"]));
    same((23, 9), &with(&["-d", "600", "--cost", "census", "--uniqueness", "20"]));
}

/// A kernel that is broken in one place: the text, what takes its place, and the settings that show it.
type Broken = (&'static str, &'static str, &'static [&'static str]);

const AD: &[&str] = &["-d", "20", "--cost", "ad", "--ad-window", "1"];
const PARABOLA: &[&str] =
    &["-d", "20", "--cost", "ad", "--ad-window", "1", "--subpixel", "parabola"];
// The pictures' disparities lie across the middle of the padded range, or reach its last candidate.
const ACROSS: &[&str] =
    &["-d", "14", "--min-disparity", "-4", "--cost", "ad", "--ad-window", "1", "--p1", "2"];
const SHORT: &[&str] = &["-d", "7", "--cost", "ad", "--ad-window", "1", "--p1", "2"];
const DIAGONAL: &[&str] = &["-d", "20", "--cost", "ad", "--ad-window", "1", "--paths", "8"];
const CURVE: &[&str] = &["-d", "16", "--median", "0"];
const SURE: &[&str] = &["-d", "14", "--min-confidence", "20"];
const COMBINED: &[&str] = &["-d", "16"];
const PLAIN: &[&str] = &["-d", "600", "--paths", "5", "--cost", "census", "--left-right", "off"];

// Costs that are supported by the window alone, and by the prior as well.
const WINDOW: &[&str] = &["-d", "16", "--prior", "0", "--cost-window", "5"];
const PRIOR: &[&str] =
    &["-d", "24", "--prior", "1", "--prior-strength", "24", "--cost-window", "3"];

// Tiles that are supported by both.
const TILED: &[&str] = &[
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
const TILED_SIZE: (usize, usize) = (45, 60);

const FILLED: &[&str] = &["-d", "20", "--median", "0", "--fill", "rays", "--fill-max", "7"];
const RAW_FILLED: &[&str] = &["-d", "16", "--alpha", "1", "--fill", "rays"];
const RAW: &[&str] = &["-d", "16", "--alpha", "1", "--left-right", "off"];

// Sums over windows, without paths and with them; knight's moves.
const SAD: &[&str] = &["--paths", "0", "--cost", "sad", "--window", "5x3", "-d", "20"];
const ZSSD: &[&str] = &["--paths", "0", "--cost", "zssd", "--window", "5x3", "-d", "20"];
const ZSAD: &[&str] = &["--paths", "0", "--cost", "zsad", "--window", "3x5", "-d", "20"];
const BYTES: &[&str] = &["--paths", "4", "--cost", "ssd", "--window", "3", "-d", "20"];
const KNIGHT: &[&str] = &["--paths", "16", "-d", "20"];

const MI: &[&str] = &["--cost", "mi", "-d", "20"];

const BROKEN: [Broken; 72] = [
    // The recurrence: P1, and the neighbour of the last candidate of a lane.
    ("add2(neighbours, both(P1))", "add2(neighbours, both(P1 + 1))", AD),
    ("lane == GROUP - 1 ? A_HIGH_B_LOW", "lane == GROUP - 1 ? A_LOW_A_HIGH", ACROSS),
    // A candidate beyond the range takes part.
    ("(d < DISPARITIES ? 0u", "(d <= DISPARITIES ? 0u", SHORT),
    // The penalty of the wrong horizontal direction.
    ("LEFTWARDS ? P2_HORIZONTAL_FROM_RIGHT", "LEFTWARDS ? P2_HORIZONTAL_FROM_LEFT", AD),
    // Paths come in from beyond the right border; strips mix up their halos, or exchange too few columns.
    ("first_column + window_x - BORDER - MARGIN >= width", "false", DIAGONAL),
    (
        "side == 0 ? column : STRIP + column, lane, path",
        "side == 0 ? column : STRIP + column, lane, filled(0)",
        AD,
    ),
    ("(column - (STRIP - HALO)) * HALO_C", "(STRIP - 1 - column) * HALO_C", AD),
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
    ("grey >= DARKEST && grey <= BRIGHTEST", "grey < DARKEST", WINDOW),
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
        "distance <= REACH && open",
        "distance < REACH && open",
        &["-d", "20", "--median", "0", "--fill", "rays", "--fill-max", "2"],
    ),
    ("is_hole && seen_left[here]", "is_hole", RAW_FILLED),
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

/// The pictures of a short stream that an engine writes, smoothed in time, with costs that the noise of each
/// pair decides on.
fn smoothed(engine: &str, broken: Option<(&str, &str)>) -> Vec<(String, Vec<u8>)> {
    let output = tempfile::tempdir().unwrap();
    let mut command = emulated(broken);
    let run = command
        .args(["run", "--headless", "--demo", "--demo-size", "64x32", "--frames", "7", "-d", "16"])
        .args([
            "--cost",
            "ad",
            "--cost-window",
            "3",
            "--smoothing",
            "0.3",
            "--smoothing-guard",
            "0.5",
            "--pictures",
        ])
        .arg(output.path())
        .args(["--engine", engine])
        .output()
        .expect("the binary starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let files = std::fs::read_dir(output.path()).unwrap().map(|file| file.unwrap());
    let read = |file: std::fs::DirEntry| {
        (file.file_name().to_string_lossy().into_owned(), std::fs::read(file.path()).unwrap())
    };
    let mut files: Vec<_> = files.map(read).collect();
    files.sort();
    files
}

#[test]
fn a_filter_that_remembers_does_so_with_several_frames_in_flight() {
    let expected = smoothed("cpu", None);
    assert!(expected.len() >= 7, "{} files", expected.len());
    assert!(smoothed("cuda", None) == expected, "another stream than on the CPU");
    for broken in [
        ("known ? state[i] : NEVER", "NEVER"),
        ("> SMOOTHING_GUARD", ">= SMOOTHING_GUARD"),
        ("histogram[first] = histogram[first + 1] = 0;", "histogram[first] = 1000;"),
    ] {
        assert!(smoothed("cuda", Some(broken)) != expected, "{broken:?} was not noticed");
    }
}

/// The numbered pictures and the whitened video that an engine makes of a short stream.
fn in_time(engine: &str, mode: &str, broken: Option<(&str, &str)>) -> Vec<Vec<u8>> {
    let output = tempfile::tempdir().unwrap();
    let mut command = emulated(broken);
    let run = command
        .args(["run", "--headless", "--demo", "--demo-size", "72x64", "--frames", "5", "-d", "16"])
        .args(["--set", "demo.noise=4", "--cost", "ad", "--ad-window", "1", "--steady", "2"])
        .args(["--temporal", mode, "--history", "3", "--degree", "1", "--pictures"])
        .arg(output.path())
        .args(["--engine", engine]);
    let whitened = output.path().join("whitened.mkv");
    if mode == "whiten" {
        run.arg("--whitened").arg(&whitened);
    }
    let run = run.output().expect("the binary starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let mut files: Vec<PathBuf> = std::fs::read_dir(output.path())
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "png"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 5);
    let mut contents: Vec<_> = files.iter().map(|path| std::fs::read(path).unwrap()).collect();
    contents.extend(std::fs::read(whitened));
    contents
}

#[test]
fn stages_in_time_are_those_of_the_cpu() {
    for mode in ["denoise", "whiten"] {
        let expected = in_time("cpu", mode, None);
        assert!(in_time("cuda", mode, None) == expected, "{mode}: another stream than on the CPU");
        // What is broken in the pictures that are matched shows only where they are.
        let shows = |broken: &&(&str, &str)| (mode == "denoise") != broken.0.contains("whitened");
        let unnoticed: Vec<_> = BROKEN_IN_TIME
            .iter()
            .filter(shows)
            .filter(|broken| in_time("cuda", mode, Some(**broken)) == expected)
            .collect();
        assert!(unnoticed.is_empty(), "{mode}: not noticed: {unnoticed:#?}");
    }
}

/// Kernels of the stages in time, broken on purpose.
const BROKEN_IN_TIME: [(&str, &str); 16] = [
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

#[test]
fn broken_kernels_are_noticed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    let mut unnoticed = Vec::new();
    for (old, new, arguments) in BROKEN {
        let places: usize = files.iter().map(|text| text.matches(old).count()).sum();
        assert!(places > 0, "`{old}` is nowhere in kernels/");
        let size = match arguments {
            PLAIN => (23, 9),
            PRIOR => TWO_LEVELS,
            TILED => TILED_SIZE,
            // A last strip of one column, so that its neighbour's halo reaches beyond the picture.
            DIAGONAL => (65, 23),
            _ => SIZE,
        };
        if verify(size, arguments, Some((old, new))).0 {
            unnoticed.push(old);
        }
    }
    assert!(
        unnoticed.is_empty(),
        "kernels that were broken here gave the right bytes: {unnoticed:#?}"
    );
}
