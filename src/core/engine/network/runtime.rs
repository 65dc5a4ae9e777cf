//! ONNX Runtime, which executes networks. Nothing is linked: its library is looked for when a network is first used.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ort::environment::Environment;

/// Variable that names the library; other programs of ONNX Runtime heed it, too.
const VARIABLE: &str = "ORT_DYLIB_PATH";

#[cfg(target_os = "windows")]
const LIBRARY: &str = "onnxruntime.dll";
#[cfg(target_os = "macos")]
const LIBRARY: &str = "libonnxruntime.dylib";
#[cfg(not(any(target_os = "windows", target_os = "macos")))]
const LIBRARY: &str = "libonnxruntime.so";

/// Loads the library, once for the process.
pub fn environment() -> anyhow::Result<&'static Environment> {
    static LOADED: OnceLock<Result<Environment, String>> = OnceLock::new();
    LOADED.get_or_init(load).as_ref().map_err(|reason| anyhow::anyhow!("{reason}"))
}

fn load() -> Result<Environment, String> {
    let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
    let paths = match &named {
        Some(name) => vec![PathBuf::from(name)],
        None => [LIBRARY.into()].into_iter().chain(installed_by_pip()).collect(),
    };
    let mut told = String::new();
    for path in paths {
        match ort::init_from(&path) {
            Ok(builder) => {
                let built = builder.with_name("stereod").with_telemetry(false).build();
                return built.map_err(|error| format!("{}: {error}", path.display()));
            }
            // That of the last one: a package that is there says more than a library that is not.
            Err(error) => told = error.to_string(),
        }
    }
    Err(match named {
        Some(_) => format!("ONNX Runtime, which {VARIABLE} names, does not load: {told}"),
        None => format!(
            "networks need ONNX Runtime 1.17 or newer: `pip install onnxruntime` (or onnxruntime-gpu), in the \
             environment that stereod runs in, or name its library in {VARIABLE} ({told})"
        ),
    })
}

/// Libraries of the Python package onnxruntime: of the active environment, of that in which this program is installed,
/// of the user and of the system.
fn installed_by_pip() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let beside = std::env::current_exe().ok();
    let beside = beside.iter().flat_map(|program| program.ancestors().skip(2).take(1));
    let mut packages: Vec<PathBuf> = beside.map(Path::to_path_buf).collect();
    let roots = [
        variable("VIRTUAL_ENV"),
        variable("CONDA_PREFIX"),
        variable("HOME").map(|home| home.join(".local")),
        Some("/usr/local".into()),
        Some("/usr".into()),
    ];
    for root in roots.into_iter().flatten() {
        packages.push(root.join("Lib").join("site-packages"));
        for python in entries(&root.join("lib"), "python3") {
            packages.extend(["site-packages", "dist-packages"].map(|name| python.join(name)));
        }
    }
    let of_package = |folder: PathBuf| entries(&folder.join("onnxruntime").join("capi"), LIBRARY);
    packages.into_iter().flat_map(of_package).collect()
}

/// The files and folders whose names begin so, the newest version first.
fn entries(folder: &Path, begin: &str) -> Vec<PathBuf> {
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_one = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(begin))
    };
    let mut found: Vec<_> = found.filter(is_one).collect();
    found.sort();
    found.reverse();
    found
}
