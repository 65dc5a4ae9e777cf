//! What the program does: one file a command.

pub mod bench;
pub mod calibrate;
pub mod calibration;
pub mod completions;
pub mod config;
pub mod devices;
pub mod man;
pub mod match_still;
mod ranging;
pub mod rectify;
mod rig;
pub mod run;
mod signals;
mod stills;
mod verify;

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::RecvTimeoutError;

use crate::calibration::format::file_list;
use crate::cli::{Cli, Command, Common, FlagLayer};
use crate::matching::ParamsError;
use crate::memory::Budget;
use crate::redact::redact;
use crate::settings::{self, Layers, Loaded, Places, config_file};
use crate::sink::inputs::Inputs;
use crate::telemetry::{logs, stderr};
use crate::text::as_a_list;
use crate::thread;

/// Why a command did not do what it was asked to; decides the exit status.
#[derive(Debug)]
pub enum Error {
    /// Wrong usage or configuration: nothing was begun.
    Usage(anyhow::Error),
    /// Something failed.
    Failed(anyhow::Error),
}

/// A text of our own.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Explained(&'static str);

impl Error {
    /// Wrong usage, in words.
    pub fn usage(message: impl fmt::Display) -> Error {
        Error::Usage(anyhow::anyhow!("{message}"))
    }

    /// Wrong usage, and an explanation of several lines what would be right.
    pub fn explained(explanation: &'static str) -> Error {
        Error::Usage(Explained(explanation).into())
    }

    /// The error as it may be shown whatever names it holds: an explanation in its lines, a list in
    /// its points, all else on one line.
    pub fn for_terminal(&self) -> String {
        let (Error::Usage(error) | Error::Failed(error)) = self;
        match error.downcast_ref() {
            Some(Explained(explanation)) => (*explanation).to_owned(),
            None => as_a_list(&self.to_string()),
        }
    }

    /// The exit status of the process: 1 failed, 2 wrong usage or configuration.
    pub fn exit_status(&self) -> u8 {
        match self {
            Error::Failed(_) => 1,
            Error::Usage(_) => 2,
        }
    }
}

/// The error with its causes on one line; a cause that the text before it already tells is left out.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Error::Usage(error) | Error::Failed(error)) = self;
        let mut text = String::new();
        for cause in error.chain() {
            let cause = cause.to_string();
            let cause = cause.trim_end();
            if text.contains(cause) {
                continue;
            }
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(cause);
        }
        // Libraries quote what they were given.
        f.write_str(&redact(&text))
    }
}

impl std::error::Error for Error {}

impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Self {
        Error::Failed(error)
    }
}

impl From<settings::Error> for Error {
    fn from(error: settings::Error) -> Self {
        Error::Usage(error.into())
    }
}

impl From<ParamsError> for Error {
    fn from(error: ParamsError) -> Self {
        Error::Usage(error.into())
    }
}

impl From<logs::FilterError> for Error {
    fn from(error: logs::FilterError) -> Self {
        Error::Usage(error.into())
    }
}

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

/// The settings in effect (file, environment, `--set`, flags); starts logging as they say.
///
/// # Errors
/// Every mistake in any of them.
pub fn load(common: &Common, flags: FlagLayer) -> Result<Loaded, Error> {
    let (file, loaded) = read(common, flags)?;
    Budget::set_of_process(loaded.settings.engine.memory_mib);
    logs::init(&loaded.settings.log.filter, common.verbosity())?;
    if let Some(file) = file {
        tracing::debug!("configuration file {}", file.display());
    } else if let Some(file) = Places::of_this_process().forbidden() {
        tracing::info!(
            "{} may not be read by this user and is passed over: it is for the service and its group",
            file.display()
        );
    }
    Ok(loaded)
}

/// The settings as they are laid down just now, and the file among them.
///
/// # Errors
/// Every mistake in any of them.
fn read(common: &Common, flags: FlagLayer) -> Result<(Option<PathBuf>, Loaded), Error> {
    let file = config_file(common.config.as_deref(), &Places::of_this_process());
    let loaded = layers(file.as_deref(), common, flags).finish()?;
    Ok((file, loaded))
}

fn layers(file: Option<&Path>, common: &Common, flags: FlagLayer) -> Layers {
    let mut layers = Layers::new();
    if let Some(file) = file {
        layers.file(file);
    }
    layers.environment(std::env::vars_os());
    for argument in &common.assignments {
        layers.assignment(argument);
    }
    flags.over(layers)
}

/// What a command reads: its sources, and the calibration and configuration of the settings.
fn inputs(loaded: &Loaded, sources: impl IntoIterator<Item = PathBuf>) -> Inputs {
    // Names of files that cannot be understood are refused when they are read.
    let list = Some(&*loaded.settings.calibration.file).filter(|list| !list.is_empty());
    let calibrations = list.and_then(|list| file_list(list).ok()).unwrap_or_default();
    let configuration = loaded.files().iter().cloned();
    Inputs::new(sources.into_iter().chain(calibrations).chain(configuration))
}
/// For so long somebody who has asked the program to stop waits for a reader of standard output.
const READER_PATIENCE: Duration = Duration::from_secs(5);

/// Writes to standard output. A reader that has gone away (`| head`) has seen enough: no error.
///
/// # Errors
/// Where standard output cannot be written, as on a full disk; where nobody reads it and a signal has
/// asked to stop.
pub fn print(text: impl AsRef<[u8]>) -> Result<(), Error> {
    // Both may lead to one place: what was said before stands before.
    stderr::flush();
    let text = text.as_ref().to_vec();
    // A reader that does not read must not keep the program from ending.
    let (tell, told) = crossbeam_channel::bounded(1);
    let write = move || {
        let mut out = io::stdout().lock();
        let _ = tell.send(out.write_all(&text).and_then(|()| out.flush()));
    };
    let writer = thread::spawn("stdout", write, |broken| tracing::error!("{broken}"));
    writer.context("cannot start the thread that writes to standard output")?;
    let mut interrupted_since = None;
    let written = loop {
        match told.recv_timeout(Duration::from_millis(50)) {
            Ok(written) => break written,
            Err(RecvTimeoutError::Disconnected) => {
                break Err(io::Error::other("writing broke down"));
            }
            Err(RecvTimeoutError::Timeout) if signals::interrupted() => {
                let since = *interrupted_since.get_or_insert_with(Instant::now);
                if since.elapsed() > READER_PATIENCE {
                    break Err(io::Error::new(ErrorKind::TimedOut, "nobody reads it"));
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    };
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("standard output cannot be written").into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn the_root_cause_is_named_once() {
        let failed = |error: anyhow::Error| Error::from(error).to_string();
        let cause = || anyhow!("no such file");
        assert_eq!(failed(cause()), "no such file");
        assert_eq!(failed(cause().context("a.mkv")), "a.mkv: no such file");
        assert_eq!(failed(cause().context("a.mkv: no such file")), "a.mkv: no such file");
        let deep: anyhow::Result<()> = Err(cause()).context("opening").context("recording a.mkv");
        assert_eq!(failed(deep.unwrap_err()), "recording a.mkv: opening: no such file");
    }

    #[test]
    fn statuses() {
        assert_eq!(Error::from(anyhow!("x")).exit_status(), 1);
        assert_eq!(Error::usage("x").exit_status(), 2);
        assert_eq!(Error::from(ParamsError::Paths(6)).exit_status(), 2);
    }
}
