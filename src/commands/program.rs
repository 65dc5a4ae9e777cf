//! The program from its arguments to its exit status.

use std::process::ExitCode;

use clap::Parser;

use super::dispatch;
use crate::cli::Cli;
use crate::redact::redact;
use crate::telemetry::stderr;
use crate::{text, thread};

/// Exit status of a program that ended by a mistake of its own, as Rust has it.
const PANICKED: u8 = 101;

/// Does what the command line says, and tells what went wrong.
pub fn program() -> ExitCode {
    stderr::tell_panics();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let told = error.to_string();
            let shown = redact(&told);
            if !error.use_stderr() || shown == told {
                error.exit();
            }
            stderr::tell(shown.trim_end());
            stderr::flush();
            return ExitCode::from(2);
        }
    };
    let status = match thread::guarded("stereod", || dispatch(cli)) {
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
