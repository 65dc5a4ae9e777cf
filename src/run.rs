//! The application: preparation of a command, and `stereod run`, the main task, from two streams to a window and files.

pub mod error;
pub mod faces;
mod knobs;
mod live;
pub mod open;
#[cfg(all(test, feature = "window"))]
mod picture_tests;
pub mod prepare;
mod report;
mod rigs;
mod session;
pub mod signals;
mod stdout;

use std::time::Duration;

use crate::cli::RunArgs;
pub use error::{Error, heed, told};
use faces::Rigs;
pub use prepare::loading::{inputs, layers, load, read, read_over};
pub use report::schema;
pub use rigs::refuse_collisions;
use session::Session;
pub use stdout::{print, progress_bar};

/// Period in which a thread that waits for several things looks at them.
pub const TICK: Duration = Duration::from_millis(10);

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
