//! The `stereod` command.

use std::process::ExitCode;

use clap::Parser;
use stereod::telemetry::stderr;
use stereod::{cli::Cli, commands, redact::redact, text, thread};

/// Exit status of a program that ended by a mistake of its own, as Rust has it.
const PANICKED: u8 = 101;

fn main() -> ExitCode {
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
    let status = match thread::guarded("stereod", || commands::dispatch(cli)) {
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
