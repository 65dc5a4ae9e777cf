//! Settings and inputs of a command.

use std::path::{Path, PathBuf};

use crate::cli::{Common, FlagLayer};
use crate::commands::Error;
use crate::commands::inputs::Inputs;
use crate::settings::{Layers, Loaded, Places, config_file};
use crate::telemetry::logs;
use stereod_core::calibration::format::file_list;
use stereod_core::engine::Choice;
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

/// Warns of settings for GPUs if the CPU is to be used.
fn say_what_is_ignored(loaded: &Loaded) {
    let engine = &loaded.settings.engine;
    if engine.kind == Choice::Cpu {
        for key in engine.options().cuda.asked_for() {
            let origin = loaded.origin("engine", key);
            tracing::warn!("{origin}: engine.{key} is for GPUs and is ignored on the CPU");
        }
    }
}

/// Reads the settings as they are now, and returns the file that they come from.
pub fn read(common: &Common, flags: FlagLayer) -> Result<(Option<PathBuf>, Loaded), Error> {
    let file = config_file(common.config.as_deref(), &Places::of_this_process());
    let loaded = layers(file.as_deref(), common, flags).finish()?;
    Ok((file, loaded))
}

/// Reads the settings as they are now, with assignments (`section.key=value`) that win over all.
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
    layers.environment(std::env::vars_os());
    for argument in &common.assignments {
        layers.assignment(argument);
    }
    flags.over(layers)
}

/// Returns the inputs of a command: its sources, calibration files and configuration files.
pub fn inputs(loaded: &Loaded, sources: impl IntoIterator<Item = PathBuf>) -> Inputs {
    // Lists that cannot be parsed are refused when the files are read.
    let calibration = &loaded.settings.calibration;
    let lists = [&calibration.file, &calibration.align].into_iter().filter(|list| !list.is_empty());
    let calibrations = lists.flat_map(|list| file_list(list).unwrap_or_default());
    let configuration = loaded.files().iter().cloned();
    Inputs::new(sources.into_iter().chain(calibrations).chain(configuration))
}
