//! `stereod run`: the main task, from two streams to a window and files.

pub(super) mod faces;
mod knobs;
mod live;
pub(super) mod open;
#[cfg(all(test, feature = "window"))]
mod picture_tests;
mod report;
mod rigs;
mod session;

use super::Error;
use crate::cli::RunArgs;
use faces::Rigs;
pub use report::schema;
pub use rigs::refuse_collisions;
use session::Session;

pub fn run(args: RunArgs) -> Result<(), Error> {
    let done = match rigs::of(&args)? {
        rigs if rigs.len() > 1 => rigs::run_all(&args, rigs),
        rigs => one(RunArgs { common: args.common.of_rig(rigs.first()), ..args }, None),
    };
    #[cfg(feature = "ros2")]
    stereod_io::ros2::dds::leave();
    done
}

/// Runs one rig to its end. `rigs`: all rigs of the program, and the number of this one; `None` if it runs alone.
fn one(args: RunArgs, rigs: Option<(Rigs, usize)>) -> Result<(), Error> {
    match Session::start(args, rigs) {
        Ok(Some(session)) => session.finish(),
        other => other.map(drop),
    }
}
