//! The `stereod` command.

use std::process::ExitCode;

use clap::Parser;
use stereod::telemetry::stderr;
use stereod::{cli::Cli, commands, text, thread};

/// Exit status of a program that ended by a mistake of its own, as Rust has it.
const PANICKED: u8 = 101;

fn main() -> ExitCode {
    stderr::tell_panics();
    let status = match thread::guarded("stereod", || commands::dispatch(Cli::parse())) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            stderr::tell(&format!("error: {}", error.for_terminal()));
            error.exit_status()
        }
        Err(broken) => {
            stderr::tell(&format!("error: {}", text::on_one_line(&broken.to_string())));
            PANICKED
        }
    };
    stderr::flush();
    ExitCode::from(status)
}
