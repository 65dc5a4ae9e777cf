//! Compiles the kernels' sources, embedded in the program as text, for one device.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, anyhow};

use super::cache::{Cache, Key};
use super::cost;
use super::launch::Unit;
use super::nvrtc::{Nvrtc, Target};
use super::plan::filters;
use crate::matching::cost::Constant;
use crate::thread::locked;

/// The kernels' sources and headers as (name, text), except for costs and filters.
const FILES: &[(&str, &str)] = &kernels! {
    "instructions.cuh", "bytes.cuh", "picture.cuh", "noise.cuh", "residuals.cuh", "temporal.cuh",
    "lanes.cuh", "packed.cuh", "disparity.cuh", "rays.cuh", "cost.cuh", "four_candidates.cuh",
    "census.cuh", "volume.cuh", "blend.cuh", "path_delta.cuh", "sweep.cuh", "tasks.cuh",
    "row_cursor.cuh", "halo.cuh", "windows.cuh", "choose_windows.cu", "stored_deltas.cuh", "winner.cuh", "rectify.cu", "half.cu",
    "smoothed.cu", "texture.cu", "blend.cu", "compute_features.cu", "compute_costs.cu",
    "aggregate_windows.cu", "mutual_information.cu", "temporal_shift.cu", "temporal_background.cu",
    "select_disparities.cu", "learned_convolution.cu", "learned_prior.cu", "aggregate_horizontal.cu", "aggregate_sweep.cu", "aggregate_paths.cu",
};

/// All sources and headers. A test compares them with the folder.
fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().chain(cost::HEADERS).chain(filters::SOURCES).copied()
}

/// The headers, which any source may include by name.
fn headers() -> Vec<(&'static str, &'static str)> {
    files().filter(|(name, _)| name.ends_with(".cuh")).collect()
}

/// Defines the constants that the code of a unit's file and headers names. The others may differ between levels that
/// share its code, and their changes need no compiler.
pub fn with_constants(unit: Unit, constants: &[Constant]) -> Unit {
    let mut files_left = vec![unit.file];
    let mut words = HashSet::new();
    while let Some(name) = files_left.pop() {
        // A header may be included by a macro.
        let macro_of = unit.defines.iter().find(|(other, _)| other == name);
        let name = macro_of.map_or(name, |(_, value)| value).trim_matches('"');
        let Some((_, text)) = files().find(|(other, _)| *other == name) else { continue };
        for line in text.lines() {
            files_left.extend(line.strip_prefix("#include ").map(|name| name.trim_matches('"')));
            let code = line.split("//").next().unwrap_or_default();
            words.extend(code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
        }
    }
    let named = constants.iter().filter(|(name, _)| words.contains(name));
    named.fold(unit.clone(), |unit, (name, value)| unit.define(name, format!("({value})")))
}

fn options(unit: &Unit, target: Target) -> Vec<String> {
    let mut options = vec![
        format!("-arch={target}"),
        "-std=c++17".into(),
        // Unmarked functions are for the device, so headers need no marks.
        "-default-device".into(),
        // Line numbers for profilers and compute-sanitizer; the code is the same.
        "-lineinfo".into(),
    ];
    options.extend(unit.defines.iter().map(|(name, value)| format!("-D{name}={value}")));
    options
}

pub fn compile(nvrtc: &Nvrtc, unit: &Unit, target: Target) -> anyhow::Result<Vec<u8>> {
    let source = source(unit)?;
    nvrtc
        .compile((unit.file, source), &headers(), &options(unit, target), target)
        .with_context(|| format!("compiling the kernels `{}` for {target}", unit.name))
}

fn source(unit: &Unit) -> anyhow::Result<&'static str> {
    let found = files().find(|(name, _)| *name == unit.file);
    found.map(|(_, text)| text).ok_or_else(|| anyhow!("there is no kernels/{}", unit.file))
}

/// Key of a unit's code: hash of all its inputs.
fn key(nvrtc: &Nvrtc, unit: &Unit, target: Target) -> anyhow::Result<Key> {
    let version = format!("NVRTC {}", nvrtc.version());
    let options = options(unit, target);
    let headers = headers();
    let mut parts = vec![version.as_str(), unit.file, source(unit)?];
    parts.extend(headers.iter().flat_map(|&(name, text)| [name, text]));
    parts.extend(options.iter().map(String::as_str));
    Ok(Key::of(parts))
}

/// Returns the code of all units, in their order, from the cache or compiled, several at once.
pub fn compile_all(
    nvrtc: &Nvrtc,
    units: &[Unit],
    target: Target,
    cache: &Cache,
) -> anyhow::Result<Vec<Vec<u8>>> {
    let started = Instant::now();
    let mut code: Vec<Option<Vec<u8>>> = Vec::new();
    let mut missing = VecDeque::new();
    // Some units of different levels differ only in their names.
    let mut first = HashMap::new();
    for (i, unit) in units.iter().enumerate() {
        let key = key(nvrtc, unit, target)?;
        let is_first = *first.entry((unit.file, &unit.defines)).or_insert(i) == i;
        let kept = cache.load(&key);
        if kept.is_none() && is_first {
            missing.push_back((i, key));
        }
        code.push(kept);
    }
    let compiled = missing.len();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(compiled);
    let missing = Mutex::new(missing);
    let next = || locked(&missing).pop_front();
    let work = || -> anyhow::Result<Vec<(usize, Vec<u8>)>> {
        let mut done = Vec::new();
        while let Some((i, key)) = next() {
            let binary = compile(nvrtc, &units[i], target)?;
            cache.store(&key, &binary);
            done.push((i, binary));
        }
        Ok(done)
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| {
            worker.join().unwrap_or_else(|_| Err(anyhow!("a compiling thread panicked")))
        };
        workers.into_iter().map(join).collect()
    });
    for result in results {
        for (i, binary) in result? {
            code[i] = Some(binary);
        }
    }
    tracing::debug!(
        "kernels for {target}: {} units, {compiled} of them compiled with NVRTC {}, in {:.0} ms",
        units.len(),
        nvrtc.version(),
        started.elapsed().as_secs_f64() * 1e3
    );
    for (i, unit) in units.iter().enumerate() {
        if code[i].is_none() {
            code[i] = code[first[&(unit.file, &unit.defines)]].clone();
        }
    }
    code.into_iter().collect::<Option<_>>().context("a unit was not compiled")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_embedded() {
        let folder = concat!(env!("GPU_SOURCES"), "/kernels");
        let mut on_disk: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".cu") || name.ends_with(".cuh"))
            .collect();
        on_disk.sort();
        let mut embedded: Vec<&str> = files().map(|(name, _)| name).collect();
        embedded.sort_unstable();
        assert_eq!(embedded, on_disk);
    }

    /// Otherwise a kernel would read what the launch before has not written yet.
    #[test]
    fn every_kernel_begins_by_waiting_for_the_launches_before() {
        for (name, text) in files() {
            for kernel in text.split("extern \"C\" __global__").skip(1) {
                let (_, body) = kernel.split_once(") {\n").unwrap();
                assert!(body.trim_start().starts_with("wait_for_launches_before();"), "{name}");
            }
        }
    }

    #[test]
    fn a_unit_without_a_file_is_named() {
        let error = source(&Unit::new("none.cu")).unwrap_err();
        assert_eq!(error.to_string(), "there is no kernels/none.cu");
    }

    #[test]
    fn all_units_are_compiled_and_kept() {
        let nvrtc = match Nvrtc::find() {
            Ok(nvrtc) => nvrtc,
            Err(missing) => return eprintln!("skipped: {missing}"),
        };
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().into());
        let params = crate::settings::Matching::default().params().unwrap();
        let properties = super::super::device::Properties::typical(90);
        let job =
            super::super::Job { params: &params, size: (64, 48), rectifier: None, network: None };
        let unit = super::super::specialisations(&job, &properties).remove(0);
        let units = [unit.clone(), unit.define("ANOTHER", 1)];
        let target = Target::Real(90);
        let first = compile_all(nvrtc, &units, target, &cache).unwrap();
        assert_eq!(first.len(), 2);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        let again = compile_all(nvrtc, &units, target, &cache).unwrap();
        assert_eq!(first, again);
        let other = compile_all(nvrtc, &units[..1], Target::Real(80), &cache).unwrap();
        assert_ne!(other[0], first[0]);
        let wrong = [units[0].clone().define("int", "+")];
        let error = compile_all(nvrtc, &wrong, target, &cache).unwrap_err();
        assert!(format!("{error:#}").contains("error"), "{error:#}");
    }
}
