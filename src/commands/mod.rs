//! Commands of the program: one file each.

pub mod bench;
pub mod calibrate;
pub mod calibration;
pub mod completions;
pub mod config;
pub mod devices;
mod error;
mod loading;
pub mod man;
pub mod match_still;
mod ranging;
pub mod rectify;
mod rig;
pub mod run;
mod signals;
mod stdout;
mod stills;
mod verify;

pub use error::Error;
use loading::{inputs, layers, load, read};
use stdout::print;

use crate::cli::{Cli, Command};

/// Does what the command line says.
///
/// # Errors
/// What the command returns.
pub fn dispatch(cli: Cli) -> Result<(), Error> {
    match cli.command {
        Command::Run(args) => run::run(*args),
        Command::Match(args) => match_still::run(*args),
        Command::Bench(args) => bench::run(*args),
        Command::Calibrate(args) => calibrate::run(*args),
        Command::Rectify(args) => rectify::run(*args),
        Command::Calibration(args) => calibration::run(args),
        Command::Devices(args) => devices::run(args),
        Command::Config(args) => config::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
    }
}
