//! Writing to standard output, and progress bars.

use std::io::{self, ErrorKind, Write};
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::RecvTimeoutError;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::error::Error;
use super::signals;
use crate::telemetry::{logs, stderr};
use stereod_core::thread;

/// Time that a stopped program waits for a reader of standard output.
const READER_PATIENCE: Duration = Duration::from_secs(5);

/// Writes to standard output. A reader that is gone (`| head`) is no error.
pub fn print(text: impl AsRef<[u8]>) -> Result<(), Error> {
    // Both may lead to the same place, and their order must be kept.
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

/// Returns a bar on standard error, if that is a terminal; without a number of things it is a
/// counter.
pub fn progress_bar(expected: Option<u64>, quiet: bool, things: &str) -> ProgressBar {
    let target = if quiet { ProgressDrawTarget::hidden() } else { stderr::draw_target() };
    let bar = ProgressBar::with_draw_target(expected, target);
    let template = match expected {
        Some(_) => {
            format!(
                "{{wide_bar}} {{percent}} %  {{pos}}/{{len}} {things}, {{per_sec}}, {{eta}} left  {{msg}}"
            )
        }
        None => format!("{{spinner}} {{pos}} {things}, {{per_sec}}, {{elapsed}}  {{msg}}"),
    };
    bar.set_style(ProgressStyle::with_template(&template).expect("a valid template"));
    logs::write_above(Some(bar.clone()));
    bar
}
