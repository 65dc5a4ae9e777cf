//! `stereod run`: the main task, from two streams to a window and files.

mod knobs;
mod live;
pub(super) mod open;
#[cfg(all(test, feature = "window"))]
mod pictures;
mod report;
mod session;

use super::Error;
use crate::cli::RunArgs;
pub use report::schema;
use session::Session;

/// Runs the command.
pub fn run(args: RunArgs) -> Result<(), Error> {
    match Session::start(args)? {
        Some(session) => session.finish(),
        None => Ok(()),
    }
}
