//! Commands of the program, one file each, and the program from its arguments to its exit status.

pub mod batch;
pub mod bench;
#[cfg(feature = "boards")]
pub mod calibrate;
pub mod calibration;
pub mod config;
pub mod devices;
#[cfg(feature = "evaluate")]
pub mod evaluate;
pub mod info;
pub mod man;
mod match_still;
mod models;
mod obstacles;
pub mod rectify;
mod stills;
mod verify;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::{self, Cli, Command};
use crate::run::{self, Error, TICK, heed, inputs, layers, load, print, progress_bar, signals};
use crate::telemetry::stderr;
use stereod_core::redact::redact;
use stereod_core::thread;
use stereod_io::gst;
use stereod_io::text;

/// Commands that this program was built without, and their features.
const LEFT_OUT: &[(&str, &str)] = &[
    #[cfg(not(feature = "boards"))]
    ("calibrate", "boards"),
    #[cfg(not(feature = "evaluate"))]
    ("evaluate", "evaluate"),
];

/// Exit status after a panic, as Rust has it.
const PANICKED: u8 = 101;

/// Runs the command line, reports errors, and returns the exit status. GStreamer is loaded by `load` when it is needed.
pub fn program(load: gst::Load) -> ExitCode {
    stderr::tell_panics();
    signals::outlive_file_limit();
    gst::load_by(load);
    let cli = match Cli::try_parse().map_err(cli::with_tip) {
        Ok(cli) => cli,
        Err(mut error) => {
            suggest_run(&mut error);
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
        Ok(Err(error @ Error::Told(..))) => error.exit_status(),
        Ok(Err(error)) => error.tell().exit_status(),
        Err(broken) => {
            stderr::tell(&format!("error: {}", text::on_one_line(&broken.to_string())));
            PANICKED
        }
    };
    stderr::flush();
    ExitCode::from(status)
}

/// Adds the command line that is likely meant to the error for one without a command.
fn suggest_run(error: &mut clap::Error) {
    let lacks_command =
        matches!(error.kind(), ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument);
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(line) = cli::run_instead(&arguments).filter(|_| lacks_command) {
        let tip = format!("give the command: `{line}`").into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    let absent = |&&(command, _): &&(&str, _)| arguments.first().is_some_and(|a| a == command);
    if let Some((_, feature)) = LEFT_OUT.iter().find(absent) {
        let tip = format!("this stereod was built without it (Cargo's feature `{feature}`)").into();
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
}

fn dispatch(cli: Cli) -> Result<(), Error> {
    match cli.command {
        Command::Run(args) => run::run(*args),
        Command::Batch(args) => batch::run(*args),
        Command::Match(args) => match_still::run(*args),
        Command::Obstacles(args) => obstacles::run(*args),
        Command::Bench(args) => bench::run(*args),
        #[cfg(feature = "evaluate")]
        Command::Evaluate(args) => evaluate::run(*args),
        #[cfg(feature = "boards")]
        Command::Calibrate(args) => calibrate::run(*args),
        Command::Rectify(args) => rectify::run(*args),
        Command::Calibration(args) => calibration::run(args),
        Command::Info(args) => info::run(args),
        Command::Devices(args) => devices::run(args),
        Command::Models(args) => models::run(&args),
        Command::Config(args) => config::run(args),
        Command::Schema => run::schema(),
        Command::Completions(args) => man::completions(args),
        Command::Man(args) => man::run(args),
    }
}
