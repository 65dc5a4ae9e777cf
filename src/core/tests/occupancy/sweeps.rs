//! The kernels of the sweeps as the engine compiles them for a chip: their resources, and the
//! number of warps per multiprocessor. Needs no GPU.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Mutex;

use stereod_core::Params;
use stereod_core::engine::cuda::{Job, Nvrtc, Properties, Target, Unit, compile, specialisations};
use stereod_core::settings::{Layers, Library};

use super::cubin;
use super::limits::{Block, alone, resident, warps_at_most};

/// Chips by architecture and number of multiprocessors, and a product with each.
const CHIPS: [(u32, u32, &str); 16] = [
    (75, 40, "T4"),
    (80, 108, "A100"),
    (86, 16, "RTX 3050 laptop"),
    (86, 28, "RTX 3060"),
    (86, 82, "RTX 3090"),
    (87, 8, "Jetson Orin Nano"),
    (87, 16, "Jetson AGX Orin"),
    (89, 24, "RTX 4060"),
    (89, 66, "RTX 4070 Ti Super"),
    (89, 128, "RTX 4090"),
    (90, 8, "H100 limited to 8"),
    (90, 132, "H100"),
    (100, 148, "B200"),
    (120, 36, "RTX 5060 Ti"),
    (120, 84, "RTX 5080"),
    (120, 170, "RTX 5090"),
];

const SIZES: [(usize, usize, usize); 4] =
    [(640, 480, 64), (1280, 720, 128), (1920, 1080, 128), (1280, 720, 256)];

/// Names of jobs, and the settings that make them.
const SETTINGS: [(&str, &[&str]); 3] = [
    ("`ad`, 8 paths", &["cost=ad", "ad_window=1", "median=3"]),
    ("the defaults", &[]),
    ("the defaults with range windows", &["windows=auto"]),
];

pub fn params(settings: &[&str], disparities: usize) -> Params {
    let mut layers = Layers::<Library>::new();
    layers.assignment(&format!("matching.disparities={disparities}"));
    settings.iter().for_each(|setting| layers.assignment(&format!("matching.{setting}")));
    layers.finish().unwrap().params
}

/// A number that a unit is compiled with.
fn number(unit: &Unit, name: &str) -> u32 {
    let found = unit.defines.iter().find(|(other, _)| other == name);
    let value = found.and_then(|(_, value)| value.parse().ok());
    value.unwrap_or_else(|| panic!("no number {name}: {unit:?}"))
}

/// Resources of a launch of the sweeps, and bytes of a thread in local memory; `None` for other
/// units.
fn footprint(unit: &Unit, cubin: &[u8]) -> Option<(Block, u32)> {
    let threads = match unit.file {
        "aggregate_sweep.cu" => number(unit, "EXPECTED_THREADS"),
        "aggregate_horizontal.cu" => 32 * number(unit, "WARPS"),
        _ => return None,
    };
    let kernels = cubin::kernels(cubin);
    let [kernel] = kernels.as_slice() else { panic!("one kernel of {unit:?}: {kernels:?}") };
    let shared_bytes = number(unit, "EXPECTED_SHARED_BYTES") + kernel.static_shared_bytes;
    Some((Block { threads, registers: kernel.registers, shared_bytes }, kernel.local_bytes))
}

/// Limit of a thread's local memory in a launch of the sweeps, so that an increase is noticed. A
/// block of a thousand threads has 64 registers for each, which are slightly too few.
const LOCAL_BYTES_MOST: u32 = 160;

/// Panics if a kernel of the sweeps uses much local memory, or a multiprocessor does not hold the
/// blocks that it was compiled for.
pub fn check(unit: &Unit, cubin: &[u8], chip: &Properties) {
    let Some((block, local_bytes)) = footprint(unit, cubin) else { return };
    let (wanted, local_bytes_most) = match unit.file {
        "aggregate_sweep.cu" => (number(unit, "BLOCKS_PER_SM"), LOCAL_BYTES_MOST),
        _ => (1, 0),
    };
    let sm = chip.sm();
    assert!(local_bytes <= local_bytes_most, "{local_bytes} bytes, sm_{sm}: {block:?} of {unit:?}");
    let (held, wanting) = alone(&block, chip);
    assert!(held >= wanted, "{held} blocks, sm_{sm}, no more {wanting:?}: {block:?} of {unit:?}");
}

/// Compiled units or their errors, by architecture and unit.
type Compiled = HashMap<(u32, Unit), Result<Vec<u8>, String>>;

fn compile_all(nvrtc: &Nvrtc, wanted: impl Iterator<Item = (u32, Unit)>) -> Compiled {
    // Chips of one architecture share many units.
    let work = Mutex::new(wanted.collect::<HashSet<_>>().into_iter());
    let compiled = Mutex::new(Compiled::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some((sm, unit)) = work.lock().unwrap().next() else { break };
                    let code = compile(nvrtc, &unit, Target::Real(sm));
                    let code = code.map_err(|error| format!("{error:#}"));
                    compiled.lock().unwrap().insert((sm, unit), code);
                }
            });
        }
    });
    compiled.into_inner().unwrap()
}

/// Units of the full-size images that aggregate costs. Those of coarser levels are named after
/// them.
fn aggregating(params: &Params, (width, height): (usize, usize), chip: &Properties) -> Vec<Unit> {
    let job = Job { params, size: (width, height), rectifier: None, network: None };
    let files = ["aggregate_sweep.cu", "aggregate_horizontal.cu", "aggregate_paths.cu"];
    let finest = |unit: &Unit| files.contains(&unit.file) && !unit.name.contains(" of level ");
    specialisations(&job, chip).into_iter().filter(finest).collect()
}

/// Blocks of a launch for pictures of this size.
fn grid(unit: &Unit, (width, height): (u32, u32), held: u32, chip: &Properties) -> u32 {
    if unit.file == "aggregate_horizontal.cu" {
        let rows = 32 / number(unit, "GROUP") * number(unit, "WARPS");
        return 2 * height.div_ceil(rows);
    }
    let blocks = width.div_ceil(number(unit, "STRIP")) * (1 + number(unit, "TWO_SWEEPS"));
    let most = if number(unit, "TASKS") == 1 { held * chip.multiprocessors } else { blocks };
    blocks.min(most)
}

/// The rows of a job, those of its launches.
fn rows(units: &[Unit], size: (u32, u32), chip: &Properties, compiled: &Compiled) -> String {
    let mut text = String::new();
    // The horizontal paths run concurrently with the sweeps to the middle.
    let mut beside = (0, Block::default());
    let sweeps_first = |unit: &&Unit| unit.file == "aggregate_horizontal.cu";
    let mut units: Vec<&Unit> = units.iter().collect();
    units.sort_by_key(sweeps_first);
    for unit in units {
        if unit.file == "aggregate_paths.cu" {
            writeln!(text, "| the plain way | | | | | | | | | |").unwrap();
            continue;
        }
        let code = match &compiled[&(chip.sm(), unit.clone())] {
            Ok(code) => code,
            Err(error) => {
                writeln!(text, "| {}: {} |", unit.name, error.lines().next().unwrap()).unwrap();
                continue;
            }
        };
        let (block, local_bytes) = footprint(unit, code).expect("a kernel of the sweeps");
        let horizontal = unit.file == "aggregate_horizontal.cu";
        let others = if horizontal { beside } else { (0, Block::default()) };
        let (held, wanting) = resident(&block, (others.0, &others.1), chip);
        let blocks = grid(unit, size, held, chip);
        let most = blocks.div_ceil(chip.multiprocessors).min(held);
        if unit.name == "sweep_to_middle" {
            beside = (most, block);
        }
        let (way, strip) = if horizontal {
            (format!("beside {}", beside.0), String::new())
        } else {
            let way = match (number(unit, "TASKS"), number(unit, "DIAGONALS")) {
                (1, _) => "tasks",
                (_, 1) => "exchange",
                // Strips of vertical paths do not depend on each other.
                _ => "each alone",
            };
            let strip = format!("{}, {}", number(unit, "STRIP"), number(unit, "HALO"));
            (way.to_owned(), strip)
        };
        writeln!(
            text,
            "| {} | {way} | {strip} | {} | {} | {local_bytes} | {:.1} | {held}, {} | {:.1} | {} of {} |",
            unit.name,
            block.threads,
            block.registers,
            f64::from(block.shared_bytes) / 1024.0,
            wanting.join(" and "),
            f64::from(blocks) / f64::from(chip.multiprocessors),
            most * block.warps(),
            warps_at_most(chip),
        )
        .unwrap();
    }
    text
}

/// `scripts/occupancy.sh` shows the output.
#[test]
#[ignore = "a table to look at, which takes minutes"]
fn occupancy_of_the_sweeps() {
    let nvrtc = Nvrtc::find().unwrap();
    let mut jobs = Vec::new();
    for (sm, multiprocessors, name) in CHIPS {
        let chip = Properties { multiprocessors, ..Properties::typical(sm) };
        for (settings, told) in SETTINGS {
            for (width, height, disparities) in SIZES {
                let params = params(told, disparities);
                let units = aggregating(&params, (width, height), &chip);
                let size = (width as u32, height as u32);
                let title = format!("{width}x{height} D{disparities}, {settings}");
                jobs.push((name, chip.clone(), title, size, units));
            }
        }
    }
    let known = |sm| nvrtc.target(sm).is_ok_and(|target| target == Target::Real(sm));
    let wanted = jobs.iter().filter(|(_, chip, ..)| known(chip.sm()));
    let of_sweeps = |unit: &&Unit| unit.file != "aggregate_paths.cu";
    let wanted = wanted.flat_map(|(_, chip, .., units)| {
        units.iter().filter(of_sweeps).map(|unit| (chip.sm(), unit.clone()))
    });
    let compiled = compile_all(nvrtc, wanted);
    for ((sm, unit), code) in &compiled {
        code.iter().for_each(|code| check(unit, code, &Properties::typical(*sm)));
    }
    println!("NVRTC {}, {} kernels", nvrtc.version(), compiled.len());
    let mut last = None;
    for (name, chip, title, size, units) in &jobs {
        if last.replace(name) != Some(name) {
            println!("\n## sm_{}, {} multiprocessors ({name})", chip.sm(), chip.multiprocessors);
            if !known(chip.sm()) {
                println!("\nThis NVRTC does not compile for it.");
            }
        }
        if !known(chip.sm()) {
            continue;
        }
        println!("\n{title}\n");
        println!(
            "| launch | way | strip, halo | threads | registers | local bytes | shared KiB \
             | blocks held, for want of | blocks there | warps |"
        );
        println!("| --- | --- | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: |");
        print!("{}", rows(units, *size, chip, &compiled));
    }
}
