//! Settings and inputs of a command. Its outputs must not destroy the inputs.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::cli::{Common, FlagLayer};
use crate::run::Error;
use crate::settings::{Layers, Loaded, Origin, Places, config_file, rows};
use crate::telemetry::logs;
use stereod_calibration::format::file_list;
use stereod_core::engine::{Check, Choice, PriorFrom};
use stereod_core::memory::Budget;

/// Returns the settings in effect (file, environment, `--set`, flags), and starts logging
/// accordingly.
pub fn load(common: &Common, flags: FlagLayer) -> Result<Loaded, Error> {
    let (file, loaded) = read(common, flags)?;
    Budget::set_of_process(loaded.settings.engine.memory_mib);
    #[cfg(feature = "ros2")]
    stereod_io::ros2::dds::choose(loaded.settings.ros2.graph());
    let log = &loaded.settings.log;
    logs::init(&log.filter, common.verbosity(), log.format, log.time)?;
    say_what_is_ignored(&loaded);
    if let Some(file) = file {
        tracing::debug!("configuration file {}", file.display());
    } else if let Some(file) = Places::of_this_process().forbidden() {
        tracing::info!(
            "{} may not be read by this user and is passed over: it is for the service and its group",
            file.display()
        );
    }
    Ok(loaded)
}

/// Warns of settings for GPUs if the CPU is to be used, and of flags for another cost or mode, and tells of a default
/// that follows the engine.
fn say_what_is_ignored(loaded: &Loaded) {
    for (section, row) in rows() {
        let Some((key, names)) = row.only else { continue };
        let name = loaded.values()[section][key].as_str().unwrap_or_default();
        let origin = loaded.origin(section, row.key);
        if matches!(origin, Origin::Flag(_) | Origin::Set(_)) && !names.contains(&name) {
            tracing::warn!(
                "{origin} is ignored: {section}.{key} is {name}, not {}",
                names.join(" or ")
            );
        }
    }
    let engine = &loaded.settings.engine;
    let is_network = matches!(engine.kind, Choice::Network(_));
    if is_network && engine.check == Check::Off {
        // Its range, and what follows the engine.
        let heeded = ["disparities", "min_disparity", "steady"];
        let of_matching =
            rows().filter(|(section, row)| *section == "matching" && !heeded.contains(&row.key));
        for origin in of_matching.map(|(section, row)| loaded.origin(section, row.key)) {
            if matches!(origin, Origin::Flag(_) | Origin::Set(_)) {
                tracing::warn!("{origin} is ignored: a network finds the disparity, not matching");
            }
        }
    }
    if engine.prior_from == PriorFrom::HalfSize
        && let origin @ (Origin::Flag(_) | Origin::Set(_)) = loaded.origin("engine", "prior_size")
    {
        tracing::warn!("{origin} is ignored: it is for a network as prior (--prior network)");
    }
    if !is_network && engine.check != Check::Off {
        let origin = loaded.origin("engine", "check");
        tracing::warn!("{origin} is ignored: it checks a network (--engine onnx:FILE)");
    }
    if *loaded.origin("matching", "ad_window") == Origin::For("wgpu") {
        tracing::info!("the wgpu engine has the cost `ad` of single pixels only: --ad-window is 1");
    }
    if engine.kind == Choice::Cpu {
        for key in engine.options().cuda.asked_for() {
            let origin = loaded.origin("engine", key);
            tracing::warn!("{origin}: engine.{key} is for GPUs and is ignored on the CPU");
        }
    }
}

pub fn read(common: &Common, flags: FlagLayer) -> Result<(Option<PathBuf>, Loaded), Error> {
    let file = config_file(common.config.as_deref(), &Places::of_this_process());
    let loaded = layers(file.as_deref(), common, flags).finish()?;
    Ok((file, loaded))
}

/// Reads the settings as they are now, with assignments (`section.key=value`) that win over all.
#[cfg(feature = "evaluate")]
pub fn read_over(
    common: &Common,
    flags: FlagLayer,
    assignments: &[String],
) -> Result<Loaded, Error> {
    let file = config_file(common.config.as_deref(), &Places::of_this_process());
    let mut layers = layers(file.as_deref(), common, flags);
    for assignment in assignments {
        layers.assignment(assignment);
    }
    Ok(layers.finish()?)
}

pub fn layers(file: Option<&Path>, common: &Common, flags: FlagLayer) -> Layers {
    let mut layers = Layers::new();
    if let Some(file) = file {
        layers.file(file);
    }
    if let Some(rig) = &common.rig {
        layers.rig(rig);
    }
    layers.environment(std::env::vars_os());
    for argument in &common.assignments {
        layers.assignment(argument);
    }
    flags.over(layers)
}

/// Returns the inputs of a command: its sources, calibration files, configuration files and network.
pub fn inputs(loaded: &Loaded, sources: impl IntoIterator<Item = PathBuf>) -> Inputs {
    // Lists that cannot be parsed are refused when the files are read.
    let calibration = &loaded.settings.calibration;
    let lists = [&calibration.file, &calibration.align].into_iter().filter(|list| !list.is_empty());
    let calibrations = lists.flat_map(|list| file_list(list).unwrap_or_default());
    let configuration = loaded.files().iter().cloned();
    let obstacles = loaded.settings.obstacles.inputs();
    let network = loaded.settings.engine.network().map(Path::to_path_buf);
    let files = calibrations.chain(configuration).chain(obstacles).chain(network);
    Inputs::new(sources.into_iter().chain(files))
}

/// The files that a run reads: sources, calibrations, configuration, zones, certificates.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    files: HashMap<Identity, PathBuf>,
}

/// Device and number of a file, equal for all its names and links.
#[cfg(unix)]
type Identity = (u64, u64);

/// The path of a file without links. Windows tells no number, so a second name (a hard link) is another file.
#[cfg(not(unix))]
type Identity = PathBuf;

impl Inputs {
    /// Collects the files among `paths`; writing cannot destroy others.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let known = |path: PathBuf| Some((identity(&path)?, path));
        Self { files: paths.into_iter().filter_map(known).collect() }
    }

    /// Refuses an output that is one of them, also by another name: a link of either kind, `./`.
    pub fn refuse(&self, output: &Path) -> Result<()> {
        let Some(input) = identity(output).and_then(|found| self.files.get(&found)) else {
            return Ok(());
        };
        let name = if input == output { String::new() } else { format!(" ({})", input.display()) };
        bail!(
            "cannot write {}: it is also an input{name}, and would be destroyed; name another file",
            output.display()
        );
    }

    /// Refuses a folder that holds one of them under a name that will be written or deleted,
    /// according to `is_at_risk`.
    pub fn refuse_folder(&self, folder: &Path, is_at_risk: impl Fn(&OsStr) -> bool) -> Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        // A missing or unreadable folder holds no known file.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let at_risk = is_at_risk(&entry.file_name());
            if at_risk && identity(&entry.path()).is_some_and(|id| self.files.contains_key(&id)) {
                bail!(
                    "cannot write into {}: it holds {}, which is also an input and would be destroyed; \
                     name another folder",
                    folder.display(),
                    entry.file_name().display()
                );
            }
        }
        Ok(())
    }
}

/// Returns the identity of the file at `path`, following links; `None` if there is none.
#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let about = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((about.dev(), about.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<Identity> {
    path.canonicalize().ok().filter(|path| path.is_file())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_recognised_by_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["input", "other"] {
            fs::write(at(name), name).unwrap();
        }
        std::os::unix::fs::symlink(at("input"), at("link")).unwrap();
        fs::hard_link(at("input"), at("hard")).unwrap();
        let inputs = Inputs::new([at("input"), at("missing")]);
        for same in ["input", "./input", "link", "hard"] {
            let error = inputs.refuse(&at(same)).unwrap_err().to_string();
            assert!(error.contains(same) && error.contains("also an input"), "{error}");
        }
        for well in ["other", "missing", "new"] {
            inputs.refuse(&at(well)).unwrap();
        }
        // A device or a pipe loses nothing.
        Inputs::new(["/dev/null".into()]).refuse(Path::new("/dev/null")).unwrap();
    }

    #[test]
    fn folders_are_refused_for_the_names_at_risk_only() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("7.png"), "x").unwrap();
        fs::create_dir(at("links")).unwrap();
        fs::hard_link(at("7.png"), at("links/8.png")).unwrap();
        let inputs = Inputs::new([at("7.png")]);
        let is_at_risk = |name: &OsStr| name.to_string_lossy().ends_with(".png");
        let error = inputs.refuse_folder(dir.path(), is_at_risk).unwrap_err().to_string();
        assert!(error.contains("holds 7.png"), "{error}");
        let error = inputs.refuse_folder(&at("links"), is_at_risk).unwrap_err().to_string();
        assert!(error.contains("holds 8.png"), "{error}");
        inputs.refuse_folder(dir.path(), |name| name == "8.png").unwrap();
        inputs.refuse_folder(&at("missing"), is_at_risk).unwrap();
    }
}
