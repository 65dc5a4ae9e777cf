//! `stereod run`: the main task, from two streams to a window and files.

pub(super) mod faces;
mod knobs;
mod live;
pub(super) mod open;
#[cfg(all(test, feature = "window"))]
mod picture_tests;
mod report;
mod session;

use super::Error;
use crate::cli::RunArgs;
pub use report::schema;
use session::Session;

pub fn run(args: RunArgs) -> Result<(), Error> {
    let done = match Session::start(args) {
        Ok(Some(session)) => session.finish(),
        other => other.map(drop),
    };
    #[cfg(feature = "ros2")]
    stereod_io::ros2::dds::leave();
    done
}
