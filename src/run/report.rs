//! Reports of a run for people and programs: while it lasts and at its end.

mod overload;
mod statistics;
mod watch;

use super::live::handles::Handles;
use crate::pipeline::Outcome;
use crate::run::{Error, print};
use crate::settings::Stats;
use statistics::Statistics;
pub use statistics::schema;
use stereod_core::files::new_file::NewFile;
#[cfg(feature = "serve")]
pub use watch::WAITS;
pub use watch::Watch;

/// Prints the statistics for people, or writes them for programs if asked for.
pub fn report(handles: &Handles, outcome: &Outcome, file: Option<NewFile>) -> Result<(), Error> {
    let loaded = handles.loaded();
    let statistics = Statistics::new(handles, outcome, &loaded);
    let json = || format!("{}\n", serde_json::to_string(&statistics).expect("plain values"));
    if let Some(file) = file {
        file.finish_with(json().as_bytes())?;
    }
    match loaded.settings.output.stats() {
        Some(Stats::Stdout) => print(json()),
        _ if handles.args.common.quiet || loaded.settings.obstacles.on_stdout() => Ok(()),
        _ => print(format!("{}{statistics}\n", handles.heading())),
    }
}
