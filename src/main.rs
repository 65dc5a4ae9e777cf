//! The `stereod` command.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use stereod::{cli::Cli, commands};

fn main() -> ExitCode {
    match commands::dispatch(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not eprintln, which panics where standard error has been closed.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(error.exit_status())
        }
    }
}
