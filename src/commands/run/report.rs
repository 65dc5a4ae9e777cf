//! Reports of a run for people and programs: while it lasts and at its end.

mod banners;
mod overload;
mod schema;
mod statistics;
mod watch;

use super::live::handles::Handles;
use crate::commands::{Error, print, signals, told};
use crate::pipeline::Outcome;
use crate::settings::{AtEnd, Stats};
use crate::sink::new_file::NewFile;
pub use schema::schema;
use statistics::Statistics;
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
        _ if handles.args.common.quiet => Ok(()),
        _ => print(format!("{statistics}\n")),
    }
}

/// Lets the window show the end of the pipeline, or close.
pub fn tell_window(handles: &Handles, outcome: &Outcome) {
    let Some(remote) = &handles.remote else { return };
    let at_end = handles.loaded().settings.window.at_end;
    match &outcome.error {
        _ if signals::interrupted() => remote.close(),
        // The user has closed it, or is about to.
        None if handles.control.stop.is_set() => {}
        Some(error) if at_end == AtEnd::Stay => remote.failed(told(error)),
        None if at_end == AtEnd::Stay => remote.ended(),
        _ => remote.close(),
    }
}
