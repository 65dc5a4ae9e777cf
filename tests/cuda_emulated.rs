//! The CUDA kernels on machines without a GPU. Their own source is compiled by the CPU's compiler
//! (`fake_cuda/nvrtc.cpp`) against a header that emulates the lanes of a warp, the threads of a
//! block and the blocks of a launch (`instructions.cuh`), under the driver of cuda_host.rs. The
//! whole engine runs as on a GPU, but slowly, and must give the bytes of the reference; kernels
//! that are broken on purpose must not.
//!
//! The emulation cannot show effects of the hardware: instructions of newer chips, and memory that
//! other threads have not written yet. src/core/tests/cuda_parity.rs tests those on machines with a GPU.

#![cfg(all(feature = "cli", feature = "window", feature = "serve"))]
#![cfg(target_os = "linux")]

mod common {
    pub mod program;
}
mod emulated {
    pub mod broken;
}

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use common::program::stereod;
use emulated::broken::*;

/// The compiler of the kernels. Most of the tests' time is its own.
const COMPILER: &str = "c++ -std=c++17 -Og -w -fPIC -fno-strict-aliasing -ffp-contract=off";

/// The folder with both libraries and the kernels' header, compiled once.
fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("emulated");
        std::fs::create_dir_all(folder.join("kernels")).unwrap();
        let run = |mut command: Command| {
            let status = command.status().expect("the compilers that building stereod needs too");
            assert!(status.success(), "{command:?}");
        };
        let build = |compiler: &str, arguments: &[&str], source: &str, library: &str| {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
            let mut command = Command::new(compiler);
            command.args(["-shared", "-fPIC", "-O1", "-pthread"]).args(arguments).arg("-o");
            command.arg(folder.join(library)).arg(source).arg("-ldl");
            run(command);
        };
        build("cc", &[], "fake_cuda/driver.c", "libcuda.so");
        build("c++", &["-std=c++20"], "fake_cuda/nvrtc.cpp", "libnvrtc.so");
        let header = folder.join("instructions.cuh");
        std::fs::copy(
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_cuda/instructions.cuh"),
            &header,
        )
        .unwrap();
        let mut words = COMPILER.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args(["-x", "c++-header"]).arg(&header);
        command.arg("-o").arg(folder.join("instructions.cuh.gch"));
        run(command);
        folder
    })
}

/// Two images that differ by shifts and noise, as files.
fn pictures(width: usize, height: usize) -> [PathBuf; 2] {
    let mut state = 88_172_645_463_325_252u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as usize
    };
    // Patches of one brightness, some of them noisy: many are distinct, and many are ambiguous.
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
    [("left", left), ("right", right)]
        .map(|(name, pixels)| write_pgm(name, (width, height), pixels))
}

/// Writes a picture into the folder of the libraries.
fn write_pgm(name: &str, (width, height): (usize, usize), pixels: Vec<u8>) -> PathBuf {
    let path = libraries().join(format!("{name}-{width}x{height}.pgm"));
    let mut file = format!("P5\n{width} {height}\n255\n").into_bytes();
    file.extend(pixels);
    // Several tests write at once, so the file is renamed once it is complete.
    let own =
        libraries().join(format!("{name}-{width}x{height}-{:?}", std::thread::current().id()));
    std::fs::write(&own, file).unwrap();
    std::fs::rename(own, &path).unwrap();
    path
}

/// Two images with even parts, as files. The patches of texture have disparities that rise to the
/// right and differ between rows of patches; the grey between them varies by less than the noise.
/// In the middle is a wide band without patches.
fn even(width: usize, height: usize) -> [PathBuf; 2] {
    let grey = |x: usize, y: usize| {
        let blot = (x / 2).wrapping_mul(0x9e37_79b9) ^ (y / 2).wrapping_mul(0x85eb_ca6b);
        let random = blot.wrapping_mul(0xc2b2_ae35) >> 13;
        match (x / 17 + y / 13) % 2 {
            0 if !(EVEN_BAND.0 + 40..EVEN_BAND.1 + 40).contains(&x) => 40 + (random % 160) as u8,
            _ => 100 + (random % 2) as u8,
        }
    };
    let shift = |x: usize, y: usize| 5 + (y / 13) % 3 * 4 + x / 6;
    let left = (0..width * height).map(|i| grey(i % width + 40, i / width));
    let right = (0..width * height)
        .map(|i| (i % width, i / width))
        .map(|(x, y)| grey(x + 40 + shift(x, y), y));
    [("even-left", left.collect::<Vec<u8>>()), ("even-right", right.collect())]
        .map(|(name, pixels)| write_pgm(name, (width, height), pixels))
}

/// Two images of patches whose disparities reach from 3 to 99, as files; every fourth patch is even.
fn wide(width: usize, height: usize) -> [PathBuf; 2] {
    let random = |x: usize, y: usize| {
        let mixed = x.wrapping_mul(0x9e37_79b9) ^ y.wrapping_mul(0x85eb_ca6b) & 0xffff_ffff;
        let mixed = (mixed ^ mixed >> 15).wrapping_mul(0xc2b2_ae35) & 0xffff_ffff;
        mixed ^ mixed >> 13
    };
    let grey = |x: usize, y: usize, shift: usize, seed: usize| match (x / 50 + y / 40) % 4 {
        3 => 90 + (random(x + seed, y) % 3) as u8,
        _ => 40 + (random((x + 200 - shift) / 2, y / 2) % 160 + random(x + seed, y) % 6) as u8,
    };
    let shift = |x: usize, y: usize| 3 + (x / 37 + y / 23 * 3) % 7 * 16 + x / 11 % 3;
    let at = |i: usize| (i % width, i / width);
    let left = (0..width * height).map(at).map(|(x, y)| grey(x, y, shift(x, y), 9));
    let right = (0..width * height).map(at).map(|(x, y)| grey(x, y, 0, 0));
    [("wide-left", left.collect::<Vec<u8>>()), ("wide-right", right.collect())]
        .map(|(name, pixels)| write_pgm(name, (width, height), pixels))
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

/// The program with the emulation as its only CUDA; `broken` names a hook of the kernels.
fn emulated(broken: Option<&str>) -> Command {
    let mut command = stereod(&[]);
    command
        .envs(broken.map(|hook| ("EMULATED_BROKEN", hook)))
        // Costs are computed on the fly if a test asks for nothing that supports them.
        .env("STEREOD_MATCHING_COST_WINDOW", "0")
        .env("STEREOD_MATCHING_PRIOR", "0")
        .env("LD_LIBRARY_PATH", libraries())
        .env("CUDA_HOME", "/nonexistent")
        .env("CUDA_PATH", "/nonexistent")
        .env("STEREOD_ENGINE_KERNEL_CACHE", "off")
        .env("FAKE_EMULATES", "1")
        .env("EMULATED_FOLDER", libraries().join("kernels"))
        .env("EMULATED_HEADER", libraries())
        .env("EMULATED_COMPILER", COMPILER);
    command
}

/// Matches with the emulated engine and the reference; returns whether they agree, and the
/// messages.
fn verify(size: (usize, usize), arguments: &[&str], broken: Option<&str>) -> (bool, String) {
    verify_by(emulated(broken), size, arguments)
}

/// The same with a given command.
fn verify_by(mut command: Command, size: (usize, usize), arguments: &[&str]) -> (bool, String) {
    let [left, right] = match arguments {
        _ if arguments.contains(&"--evidence") => even(size.0, size.1),
        _ if arguments.contains(&"--windows") => wide(size.0, size.1),
        _ => pictures(size.0, size.1),
    };
    let output = tempfile::tempdir().unwrap();
    // If blocks cannot be resident together, the sweeps run as tasks. Along 4 paths, where none waits for another, they
    // must also be too many for the device.
    let tasks = arguments.starts_with(TASKS);
    let few = tasks && arguments.windows(2).any(|two| two == ["--paths", "4"]);
    if few {
        command.envs([("FAKE_MULTIPROCESSORS", "1"), ("FAKE_SHARED", "50")]);
    }
    let run = command
        .env("FAKE_COOPERATIVE", if tasks { "0" } else { "1" })
        .args(["match", "--engine", "cuda", "--verify", "-o"])
        .arg(output.path().join("disparity.png"))
        .args([left, right])
        .args(arguments)
        .args(
            arguments.starts_with(EVEN).then(|| {
                format!("--confidence={}", output.path().join("confidence.png").display())
            }),
        )
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

/// Large enough for even parts without evidence, and for a tile of the kernel without any.
const EVEN_SIZE: (usize, usize) = (201, 44);

/// Columns of the left picture without texture, beyond both ends of a tile of 64 columns.
const EVEN_BAND: (usize, usize) = (58, 136);

#[test]
fn every_cost_gives_the_bytes_of_the_reference() {
    same(SIZE, &["-d", "16"]);
    same(SIZE, &["-d", "20", "--cost", "census"]);
    same(SIZE, &["-d", "20", "--cost", "census", "--census-window", "9x7", "--speckle-size", "20"]);
    same(SIZE, &["-d", "20", "--cost", "ad", "--ad-window", "1"]);
    // Speckles across tiles.
    same((75, 40), &["-d", "8", "--median", "0", "--speckle-size", "40", "--speckle-range", "0.5"]);
    same(SIZE, &["-d", "20", "--cost", "ad", "--ad-window", "5", "--ad-truncation", "60"]);
    same(SIZE, LARGE);
    let weights = ["--gradient-weight", "120", "--intensity-weight", "100"];
    same(
        SIZE,
        &[&["-d", "5", "--p2-mode", "fixed", "--p1", "1", "--p2", "2"], &weights[..]].concat(),
    );
}

#[test]
fn tiles_give_the_bytes_of_the_reference() {
    same(SIZE, &["-d", "8", "--tiles", "2x2,6"]);
    same(SIZE, &["-d", "8", "--tiles", "3x1,4", "--fill", "rays"]);
    same(SIZE, &["-d", "8", "--tiles", "2x1,4", "--alpha", "1"]);
    // With a noise level for the whole image, at two values.
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
    // The window alone, in either view; with and without texture.
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
    // More candidates than the sweeps support, and a guide alone.
    same((34, 33), &["-d", "600", "--cost", "ad", "--cost-window", "5", "--prior", "1"]);
    same(SIZE, &["-d", "20", "--cost", "ad", "--p2-guide", "smoothed"]);
}

#[test]
fn the_prior_of_the_network_gives_the_bytes_of_the_reference() {
    let with = |more: &[&'static str]| [NETWORK, more].concat();
    same(EVEN_SIZE, NETWORK);
    same((40, 33), &[&NETWORK[..NETWORK.len() - 1], &["network:fine"]].concat());
    same((70, 47), &with(&["--prior-size", "1/2", "--alpha", "1"]));
    // Tiles have it of the CPU.
    same((45, 60), &with(&["--tiles", "2x1,16"]));
}

#[test]
fn the_plain_way_gives_the_bytes_of_the_reference() {
    same((23, 9), &["-d", "1000", "--uniqueness", "0"]);
    same((23, 9), &["-d", "600", "--paths", "5", "--cost", "census", "--left-right", "off"]);
}

#[test]
fn tasks_give_the_bytes_of_the_reference() {
    let with = |more: &[&'static str]| [TASKS, more].concat();
    for size in [(1, 1), (7, 40), (65, 23), (70, 33)] {
        same(size, TASKS_AD);
    }
    same((75, 35), &with(&["-d", "24", "--paths", "8", "--prior", "1", "--cost-window", "3"]));
    same((70, 12), &with(&["-d", "130", "--paths", "8", "--p2", "120", "--left-right", "off"]));
    let census = ["--cost", "census", "--min-confidence", "20", "--min-disparity", "-9"];
    same((70, 40), &with(&[&["-d", "20", "--paths", "8"], &census[..]].concat()));
    same((63, 21), &with(&["-d", "20", "--paths", "5"]));
    // Along 4 paths the warps that follow paths pick the winners.
    for size in [(65, 23), (70, 70)] {
        same(size, TASKS_STRAIGHT);
    }
    same((75, 35), &with(&["-d", "24", "--paths", "4", "--prior", "1", "--uniqueness", "20"]));
    same((70, 40), &with(&[&["-d", "130", "--paths", "4"], &census[..]].concat()));
    same((70, 12), &with(&["-d", "65", "--paths", "4", "--p2", "120", "--left-right", "off"]));
}

/// With less shared memory, strips are narrower and fewer rows of path deltas are stored: with 58
/// KiB two of the first job, with 54 one, in registers.
#[test]
fn little_shared_memory_gives_the_bytes_of_the_reference() {
    for (kib, arguments) in [
        ("58", &["-d", "20", "--paths", "8"][..]),
        ("54", &["-d", "20", "--paths", "8"]),
        ("54", &["-d", "20", "--paths", "8", "--p2-mode", "fixed", "--p2", "120"]),
        ("64", &["-d", "65", "--paths", "8", "--left-right", "off"]),
        ("40", &["-d", "65", "--paths", "5", "--p2-mode", "fixed", "--p2", "150"]),
    ] {
        let mut command = emulated(None);
        command.env("FAKE_SHARED", kib);
        let ad = ["--cost", "ad", "--ad-window", "1"];
        let arguments = [TASKS, &ad, arguments].concat();
        let (agrees, said) = verify_by(command, (70, 33), &arguments);
        assert!(agrees, "{kib} {arguments:?}: {said}");
    }
}

/// Three pairs in flight, with memory for the cost volumes of two, and of one.
#[test]
fn pairs_that_share_volumes_give_the_bytes_of_the_reference() {
    let stream = "--demo-size 120x60 --frames 7 -d 20 --tiles off";
    let expected = demo("cpu", stream, None);
    for mib in [5, 4] {
        let got = demo("cuda", &format!("{stream} --memory {mib}"), None);
        assert!(got == expected, "another stream than on the CPU with {mib} MiB");
    }
}

#[test]
fn range_windows_give_the_bytes_of_the_reference() {
    let with = |more: &[&'static str]| [&["--windows", "auto"], more].concat();
    same(WINDOWS_SIZE, WINDOWS);
    same(WINDOWS_SIZE, &with(&["-d", "128", "--paths", "4", "--prior", "1"]));
    // Windows at two levels, a range that ends within a block, and the last tiles within the picture.
    let census = ["--cost", "census", "--min-confidence", "20", "--min-disparity", "-7"];
    same((131, 77), &with(&[&["-d", "200", "--prior", "2"], &census[..]].concat()));
    same(
        (131, 77),
        &with(&["-d", "90", "--prior", "1", "--paths", "5", "--cost", "ad", "--ad-window", "1"]),
    );
    same((100, 66), &with(&["-d", "65", "--prior", "1", "--cost-window", "5", "--cost", "mi"]));
    let tasks = [TASKS, &with(&["-d", "128", "--prior", "1", "--p2-mode", "fixed"])].concat();
    for paths in ["4", "8"] {
        same((131, 77), &[&tasks[..], &["--paths", paths]].concat());
    }
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
    // Several blocks share a pixel's candidates, or the right image extends beyond a segment.
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
    same((75, 40), &["-d", "20", "--cost", "census", "--uniqueness", "20", "--fill", "gaps"]);
    same(SIZE, &["-d", "16", "--fill", "gaps", "--fill-max", "2", "--min-disparity", "-5"]);
    same((63, 21), &["-d", "16", "--alpha", "1", "--median", "0", "--fill", "gaps"]);
    same((45, 60), &["-d", "8", "--tiles", "3x1,16", "--fill", "gaps"]);
    same((1, 1), &["-d", "1", "--fill", "gaps"]);
    // Holes that no ray reaches, and disparities of the network outside the range.
    let others = &NETWORK_FILL[..NETWORK_FILL.len() - 2];
    same(NETWORK_FILL_SIZE, NETWORK_FILL);
    same((131, 67), &[others, &["--fill", "network+rays", "--alpha", "1"]].concat());
    same((131, 67), &[NETWORK_FILL, &["--fill-max", "1", "--min-disparity", "2"]].concat());
    same(NETWORK_FILL_SIZE, &[NETWORK_FILL, &["--tiles", "3x1,16"]].concat());
}

#[test]
fn surfaces_are_smoothed_to_the_bytes_of_the_reference() {
    same(SIZE, SURFACES);
    same(SIZE, &["-d", "16", "--spatial", "16", "--min-disparity", "-5"]);
    // Wider than a block of threads.
    same((301, 12), &["-d", "16", "--cost", "census", "--spatial", "8", "--fill", "gaps"]);
    same((63, 21), &["-d", "16", "--alpha", "1", "--spatial", "5", "--smoothing", "0.5"]);
    same((45, 60), &["-d", "8", "--tiles", "3x1,16", "--spatial", "9"]);
    same((1, 1), &["-d", "1", "--spatial", "1"]);
}

#[test]
fn what_no_evidence_supports_is_invalid_as_in_the_reference() {
    same(EVEN_SIZE, EVEN);
    same(EVEN_SIZE, STRICT);
    same(EVEN_SIZE, RAW_EVEN);
    let prior = ["--prior", "1", "--cost-window", "3", "--fill", "rays"];
    same(EVEN_SIZE, &[EVEN, &prior].concat());
    same(EVEN_SIZE, &[EVEN, &["--tiles", "2x2,6"]].concat());
    same(
        (70, 12),
        &["-d", "40", "--evidence", "on", "--min-disparity", "-12", "--speckle-size", "0"],
    );
    same((1, 1), &["-d", "1", "--evidence", "on"]);
}

#[test]
fn raw_pairs_are_rectified_to_the_bytes_of_the_reference() {
    same(SIZE, &["-d", "16", "--alpha", "0"]);
    // With pixels that no camera sees; 63 * 21 is no multiple of the vector width.
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
    // Filled pixels have none, and coarser levels do not ask for it.
    same(SIZE, &with(&["-d", "20", "--median", "0", "--fill", "rays"]));
    same(TWO_LEVELS, &with(&["-d", "24", "--prior", "1", "--prior-strength", "20"]));
    same((70, 40), &with(&["-d", "64", "--paths", "5", "--cost", "ad"]));
    same((23, 9), &with(&["-d", "600", "--cost", "census", "--uniqueness", "20"]));
}

/// The images that an engine writes for a short stream of the demo scene.
fn demo(engine: &str, arguments: &str, broken: Option<&str>) -> Vec<(String, Vec<u8>)> {
    let output = tempfile::tempdir().unwrap();
    let run = emulated(broken)
        .args(["run", "--headless", "--demo", "--engine", engine, "--pictures"])
        .arg(output.path())
        .args(arguments.split(' '))
        .output()
        .expect("the binary starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let files = std::fs::read_dir(output.path()).unwrap().map(|file| file.unwrap());
    let read = |file: std::fs::DirEntry| {
        (file.file_name().to_string_lossy().into_owned(), std::fs::read(file.path()).unwrap())
    };
    let mut files: Vec<_> = files.map(read).filter(|(name, _)| !name.starts_with('.')).collect();
    files.sort();
    assert!(files.len() >= 7, "{} files", files.len());
    files
}

/// A filter in time, and costs that depend on the noise of each pair.
const SMOOTHED_IN_TIME: &str = "--demo-size 64x32 --frames 7 -d 16 --cost ad --cost-window 3 \
                                --smoothing 0.3 --smoothing-guard 0.5";

#[test]
fn a_filter_that_remembers_does_so_with_several_frames_in_flight() {
    let smoothed = |engine, broken| demo(engine, SMOOTHED_IN_TIME, broken);
    let expected = smoothed("cpu", None);
    assert!(smoothed("cuda", None) == expected, "another stream than on the CPU");
    for broken in BROKEN_WHILE_SMOOTHING {
        assert!(smoothed("cuda", Some(broken)) != expected, "`{broken}` was not noticed");
    }
}

/// The demo scene with a swaying rig.
fn swaying() -> Vec<String> {
    let arguments = "--demo --demo-size 72x64 --frames 5 --set demo.noise=4";
    arguments.split(' ').map(str::to_owned).collect()
}

/// Noisy images of a rig that stands still and then jumps between images.
fn leaping() -> Vec<String> {
    const SIZE: (usize, usize) = (72, 64);
    let folder = libraries().join("leaping");
    let mut state = 88_172_645_463_325_252u64;
    let mut random = move |range: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 24) % range) as i64
    };
    // A texture without any order, with a constant gradient to the right, so that it does not count
    // as another scene.
    let grains: Vec<i64> = (0..1000 * 18).map(|_| random(101) - 50).collect();
    let texture = |x: usize, y: usize| {
        let grain = |x: usize, y: usize| grains[x % 1000 * 18 + y];
        let (u, v) = ((x % 4) as i64, (y % 4) as i64);
        let row = |y: usize| (4 - u) * grain(x / 4, y) + u * grain(x / 4 + 1, y);
        ((4 - v) * row(y / 4) + v * row(y / 4 + 1)) / 16
    };
    for (number, at) in [0, 0, 0, 400, 800].into_iter().enumerate() {
        for (eye, name) in ["left", "right"].into_iter().enumerate() {
            let grey = |x: usize, y: usize| 60 + 2 * x as i64 + texture(at + x + 5 * eye, y);
            let pixels = (0..SIZE.0 * SIZE.1).map(|i| grey(i % SIZE.0, i / SIZE.0));
            let pixels = pixels.map(|grey| (grey + random(15) - 7).clamp(0, 255) as u8);
            let mut file = format!("P5\n{} {}\n255\n", SIZE.0, SIZE.1).into_bytes();
            file.extend(pixels);
            std::fs::create_dir_all(folder.join(name)).unwrap();
            std::fs::write(folder.join(name).join(format!("{number:03}.pgm")), file).unwrap();
        }
    }
    let of = |eye| folder.join(eye).join("%03d.pgm").to_str().unwrap().to_owned();
    vec!["--left".into(), of("left"), "--right".into(), of("right")]
}

/// The numbered images and the whitened video that an engine writes for a short stream.
fn in_time(engine: &str, mode: &str, source: &[String], broken: Option<&str>) -> Vec<Vec<u8>> {
    let output = tempfile::tempdir().unwrap();
    let mut command = emulated(broken);
    let run = command
        .args(["run", "--headless", "-d", "16"])
        .args(source)
        .args(["--cost", "ad", "--ad-window", "1", "--steady", "2"])
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
        let in_time = |engine, broken| in_time(engine, mode, &swaying(), broken);
        let expected = in_time("cpu", None);
        assert!(in_time("cuda", None) == expected, "{mode}: another stream than on the CPU");
        // Errors in the matched images show only if those images are written.
        let shows = |broken: &&&str| (mode == "denoise") != (**broken == "whitened");
        let unnoticed: Vec<_> = BROKEN_IN_TIME
            .iter()
            .filter(shows)
            .filter(|broken| in_time("cuda", Some(broken)) == expected)
            .collect();
        assert!(unnoticed.is_empty(), "{mode}: not noticed: {unnoticed:#?}");
    }
}

#[test]
fn a_rig_that_leaps_is_that_of_the_cpu() {
    let source = leaping();
    let in_time = |engine, broken| in_time(engine, "denoise", &source, broken);
    let expected = in_time("cpu", None);
    assert!(in_time("cuda", None) == expected, "another stream than on the CPU");
    for broken in BROKEN_WHERE_IT_LEAPS {
        assert!(in_time("cuda", Some(broken)) != expected, "`{broken}` was not noticed");
    }
}

/// The hooks of the kernels, in the order of their names.
fn hooks() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let mut hooks = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let lines =
            text.lines().filter(|line| !line.starts_with("#define") && !line.starts_with("//"));
        for line in lines {
            let found = line.split("BREAK(").skip(1).filter_map(|rest| rest.split_once(','));
            hooks.extend(found.map(|(name, _)| name.to_owned()));
        }
    }
    hooks.sort();
    hooks
}

#[test]
fn every_hook_is_tried_once() {
    let mut tried: Vec<&str> = BROKEN.iter().map(|(hook, _)| *hook).collect();
    tried.extend([BROKEN_WHILE_SMOOTHING, BROKEN_IN_TIME, BROKEN_WHERE_IT_LEAPS].concat());
    tried.sort();
    assert_eq!(hooks(), tried);
}

#[test]
fn broken_kernels_are_noticed() {
    let is_unnoticed = |&(hook, arguments): &(&str, &[&str])| {
        let size = match arguments {
            PRIOR => TWO_LEVELS,
            TILED => TILED_SIZE,
            EVEN | NETWORK => EVEN_SIZE,
            WINDOWS => WINDOWS_SIZE,
            NETWORK_FILL => NETWORK_FILL_SIZE,
            // A last strip of one column, so that its neighbour's halo reaches beyond the picture.
            DIAGONAL | BRIGHT | TASKS_AD => (65, 23),
            TASKS_STRAIGHT => (70, 70),
            _ => SIZE,
        };
        verify(size, arguments, Some(hook)).0
    };
    let (left, unnoticed) = (Mutex::new(BROKEN.iter()), Mutex::new(Vec::new()));
    let next = || left.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(broken) = next() {
                    if is_unnoticed(broken) {
                        unnoticed.lock().unwrap().push(broken);
                    }
                }
            });
        }
    });
    let unnoticed = unnoticed.into_inner().unwrap();
    assert!(
        unnoticed.is_empty(),
        "kernels that were broken here gave the right bytes: {unnoticed:#?}"
    );
}
