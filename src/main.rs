//! The `stereod` command.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use stereod::{cli::Cli, commands, redact::redact};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let told = error.to_string();
            let shown = redact(&told);
            if !error.use_stderr() || shown == told {
                error.exit();
            }
            // Not eprintln, which panics where standard error has been closed.
            let _ = write!(std::io::stderr(), "{shown}");
            return ExitCode::from(2);
        }
    };
    match commands::dispatch(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(error.exit_status())
        }
    }
}
