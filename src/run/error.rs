//! Failures of commands, and their exit status.

use std::{fmt, io};

use crate::observe::told::Warnings;
use crate::settings;
use crate::telemetry::{logs, stderr};
use stereod_core::engine::Refusal;
use stereod_core::matching::ParamsError;
use stereod_core::memory::{Refused, TooMuch};
use stereod_core::redact::redact;
use stereod_core::thread::BrokenDown;
use stereod_io::source::Unavailable;
use stereod_io::source::excerpt::{BehindTheEnd, NoPartOfLive};
use stereod_io::text::as_a_list;

/// Reason why a command failed, which decides the exit status.
#[derive(Debug)]
pub enum Error {
    /// Wrong usage or configuration; nothing was started.
    Usage(anyhow::Error),
    Failed(anyhow::Error),
    /// A signal, or the user in the window, ended the work early; the exit status says so.
    Stopped(anyhow::Error, u8),
    /// A warning of the pair check still held at the end, with `--strict`.
    Warned(anyhow::Error),
    /// An input of a batch is missing or damaged, or a piece of it is empty; the exit status says which.
    Input(anyhow::Error, u8),
    /// A failure that was told already, with its exit status.
    Told(anyhow::Error, u8),
}

/// Exit status if an input is missing or damaged, so that a retry does not help.
pub const BAD_INPUT: u8 = 3;

/// Exit status of a piece of a batch if the input ends before it.
pub const EMPTY_PIECE: u8 = 4;

/// Exit status if a warning of the pair check still held at the end, with `--strict`.
pub const WARNED: u8 = 5;

/// A message of several lines.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Explained(&'static str);

impl Error {
    pub fn usage(message: impl fmt::Display) -> Error {
        Error::Usage(anyhow::anyhow!("{message}"))
    }

    /// Creates a usage error with an explanation of several lines.
    pub fn explained(explanation: &'static str) -> Error {
        Error::Usage(Explained(explanation).into())
    }

    /// Creates the failure of a piece of a batch to read its input. Only an input that is missing or damaged
    /// has a status of its own: lack of memory and failing disks may pass.
    pub fn of_piece(error: anyhow::Error) -> Error {
        let may_pass = |cause: &(dyn std::error::Error + 'static)| {
            let is_passing = |error: &io::Error| {
                use io::ErrorKind::{InvalidData, InvalidInput, NotFound, UnexpectedEof};
                !matches!(error.kind(), NotFound | InvalidData | InvalidInput | UnexpectedEof)
            };
            cause.is::<TooMuch>()
                || cause.is::<Refused>()
                || cause.is::<Unavailable>()
                || cause.is::<BrokenDown>()
                || cause.downcast_ref().is_some_and(is_passing)
        };
        match error {
            error if error.is::<BehindTheEnd>() => Error::Input(error, EMPTY_PIECE),
            error if error.chain().any(may_pass) => error.into(),
            error if error.is::<NoPartOfLive>() => error.into(),
            error => Error::Input(error, BAD_INPUT),
        }
    }

    /// Says what the failure is about.
    pub fn context(self, what: String) -> Error {
        match self {
            Error::Usage(error) => Error::Usage(error.context(what)),
            Error::Failed(error) => Error::Failed(error.context(what)),
            Error::Stopped(error, status) => Error::Stopped(error.context(what), status),
            Error::Warned(error) => Error::Warned(error.context(what)),
            Error::Input(error, status) => Error::Input(error.context(what), status),
            Error::Told(error, status) => Error::Told(error.context(what), status),
        }
    }

    /// Tells the failure now, and returns it as one that is not told again.
    pub fn tell(self) -> Error {
        stderr::tell(&format!("error: {}", self.for_terminal()));
        let status = self.exit_status();
        Error::Told(anyhow::anyhow!("{self}"), status)
    }

    /// Formats the error safely for a terminal, whatever names it holds: an explanation keeps its
    /// lines, a list its points, all else is on one line.
    pub fn for_terminal(&self) -> String {
        match self.cause().downcast_ref() {
            Some(Explained(explanation)) => (*explanation).to_owned(),
            None => as_a_list(&self.to_string()),
        }
    }

    fn cause(&self) -> &anyhow::Error {
        let (Error::Usage(error)
        | Error::Failed(error)
        | Error::Stopped(error, _)
        | Error::Warned(error)
        | Error::Input(error, _)
        | Error::Told(error, _)) = self;
        error
    }

    /// Returns the exit status of the process: 1 failed, 2 wrong usage or configuration, 5 warnings with
    /// `--strict`, 128 plus the number of the signal that ended it.
    pub fn exit_status(&self) -> u8 {
        match self {
            Error::Failed(_) => 1,
            Error::Usage(_) => 2,
            Error::Warned(_) => WARNED,
            Error::Stopped(_, status) | Error::Input(_, status) | Error::Told(_, status) => *status,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = joined(self.cause());
        let text = match self {
            Error::Failed(_) | Error::Stopped(..) | Error::Input(..) => settings::with_flags(&text),
            Error::Usage(_) | Error::Warned(_) | Error::Told(..) => text,
        };
        // Libraries quote their input.
        f.write_str(&redact(&text))
    }
}

impl std::error::Error for Error {}

/// Returns an error with its causes on one line, without causes that the text already contains.
fn joined(error: &anyhow::Error) -> String {
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
    // As the system's own text ends.
    if text.contains(&format!("(os error {})", libc::EMFILE)) {
        text.push_str("; raise the limit of this process (ulimit -n)");
    }
    text
}

/// With `--strict`, fails if a warning of the pair check still holds.
pub fn heed(strict: bool, warnings: &Warnings) -> Result<(), Error> {
    let held: Vec<_> = warnings.all().into_iter().filter(|told| told.stands).collect();
    if !strict || held.is_empty() {
        return Ok(());
    }
    let texts: String = held.iter().map(|told| format!("\n  {}", told.text)).collect();
    Err(Error::Warned(anyhow::anyhow!("the pair check warns (--strict):{texts}")))
}

pub fn told(error: &anyhow::Error) -> String {
    let text = joined(error);
    // Mistakes in the settings quote keys of the configuration.
    redact(&if error.is::<settings::Error>() { text } else { settings::with_flags(&text) })
}

impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Self {
        // Some parameters are wrong for this size or this engine only.
        let lacks = matches!(error.downcast_ref(), Some(Refusal::Parameter(_)));
        match lacks || error.is::<ParamsError>() || error.is::<NoPartOfLive>() {
            true => Error::usage(settings::with_flags(&joined(&error))),
            false => Error::Failed(error),
        }
    }
}

impl From<settings::Error> for Error {
    fn from(error: settings::Error) -> Self {
        Error::Usage(error.into())
    }
}

impl From<ParamsError> for Error {
    fn from(error: ParamsError) -> Self {
        Error::usage(settings::with_flags(&error.to_string()))
    }
}

impl From<logs::FilterError> for Error {
    fn from(error: logs::FilterError) -> Self {
        Error::Usage(error.into())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;
    use crate::observe::told::Check;

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
    fn too_many_open_files_have_a_cure() {
        let full = std::io::Error::from_raw_os_error(libc::EMFILE);
        let failed = Error::from(anyhow::Error::from(full).context("cannot handle signals"));
        assert!(failed.to_string().ends_with("(ulimit -n)"), "{failed}");
    }

    #[test]
    fn statuses() {
        assert_eq!(Error::from(anyhow!("x")).exit_status(), 1);
        assert_eq!(Error::usage("x").exit_status(), 2);
        assert_eq!(Error::Stopped(anyhow!("x"), 130).exit_status(), 130);
        assert_eq!(Error::from(ParamsError::Paths(6)).exit_status(), 2);
        let of_engine = anyhow::Error::from(Refusal::Parameter("no `paths=16`".into()));
        let of_engine = Error::from(of_engine.context("the engine cannot be used"));
        assert_eq!(of_engine.exit_status(), 2);
        assert_eq!(of_engine.to_string(), "the engine cannot be used: no --paths 16");
        let of_machine = Refusal::Device("no such device".into());
        assert_eq!(Error::from(anyhow::Error::from(of_machine)).exit_status(), 1);
        let warnings = Warnings::default();
        warnings.warn(Check::Alignment, "rows".into());
        warnings.warn(Check::Range, "range".into());
        assert!(heed(false, &warnings).is_ok());
        let error = heed(true, &warnings).unwrap_err();
        assert_eq!(error.exit_status(), 5);
        assert_eq!(error.for_terminal(), "the pair check warns (--strict):\n  - rows\n  - range");
        warnings.renew(Check::Alignment, None);
        warnings.renew(Check::Range, None);
        assert!(heed(true, &warnings).is_ok());
        let failing_disk = anyhow::Error::from(io::Error::from_raw_os_error(libc::EIO));
        assert_eq!(Error::of_piece(failing_disk.context("a.mcap")).exit_status(), 1);
        let missing = anyhow::Error::from(io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(Error::of_piece(missing.context("a.mcap")).exit_status(), BAD_INPUT);
    }
}
