//! SIGINT and SIGTERM: the first one stops the source and finishes the files, the second one exits
//! at once.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::control::Control;
use crate::sink::window::Remote;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Exit status of a process that a signal ended is 128 plus the signal's number.
const SIGNAL_STATUS: i32 = 128;

/// Whether a signal has asked to stop.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// From now on the first signal sets `control.stop` and closes the window, and the second one exits.
///
/// # Errors
/// Where the handler or its thread cannot be set up.
pub fn stop_on_signals(control: &Control, window: Option<Remote>) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot handle signals")?;
    let stop = control.stop.clone();
    let wait = move || {
        for signal in signals.forever() {
            if INTERRUPTED.swap(true, Ordering::SeqCst) {
                std::process::exit(SIGNAL_STATUS + signal);
            }
            tracing::info!("stopping: finishing what was begun; once more to exit at once");
            stop.set(true);
            if let Some(window) = &window {
                window.close();
            }
        }
    };
    let thread = std::thread::Builder::new().name("signals".to_owned());
    thread.spawn(wait).context("cannot start the signals thread")?;
    Ok(())
}
