//! SIGINT and SIGTERM: the first one stops the source and finishes the files, the second one exits
//! at once. SIGHUP: the configuration is read again, or the terminal is gone.
//!
//! Stopping and exiting are done by the signals' handler itself, so that no thread can be missing or
//! held up that is needed for it. A thread does the rest.

use std::sync::LazyLock;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use crate::control::{Control, Switch};
use crate::sink::window::Remote;
use crate::thread;

static INTERRUPTED: LazyLock<Switch> = LazyLock::new(Switch::default);

/// Exit status of a process that a signal ended is 128 plus the signal's number.
const SIGNAL_STATUS: i32 = 128;

/// True where a signal has asked to stop.
pub fn interrupted() -> bool {
    INTERRUPTED.is_set()
}

/// Reaction to a SIGHUP.
pub type Reload = Box<dyn Fn() + Send>;

/// From now on the first signal sets `control.stop` and closes the window, and the second one exits.
/// Called once in a process.
/// SIGHUP calls `reload`, if there is any.
///
/// # Errors
/// Where the handler or its thread cannot be set up.
pub fn stop_on_signals(
    control: &Control,
    window: Option<Remote>,
    reload: Option<Reload>,
) -> anyhow::Result<()> {
    // Who is run by nohup stays deaf to it.
    let reload = reload.filter(|_| !is_ignored(SIGHUP));
    let hangup = reload.as_ref().map(|_| SIGHUP);
    let signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup));
    let mut signals = signals.context("cannot handle signals")?;
    for signal in [SIGINT, SIGTERM] {
        let in_handler = || -> std::io::Result<()> {
            // In this order: the first signal finds nothing set.
            flag::register_conditional_shutdown(
                signal,
                SIGNAL_STATUS + signal,
                INTERRUPTED.flag(),
            )?;
            flag::register(signal, INTERRUPTED.flag())?;
            flag::register(signal, control.stop.flag()).map(drop)
        };
        in_handler().context("cannot handle signals")?;
    }
    let stop = control.stop.clone();
    let on_terminal = has_terminal();
    let act_on = move |signal| {
        if let (SIGHUP, Some(reload)) = (signal, &reload) {
            if !on_terminal || has_terminal() {
                return reload();
            }
            if interrupted() {
                low_level::exit(SIGNAL_STATUS + signal);
            }
            INTERRUPTED.set(true);
            stop.set(true);
        }
        if let Some(window) = &window {
            window.close();
        }
        tracing::info!("stopping: finishing what was begun; once more to exit at once");
    };
    let wait = move || {
        for signal in signals.forever() {
            if let Err(broken) = thread::guarded("acting on a signal", || act_on(signal)) {
                tracing::error!("{broken}");
            }
        }
    };
    let stop = control.stop.clone();
    let failed = move |broken| {
        tracing::error!("{broken}; signals still stop the run");
        stop.set(true);
    };
    thread::spawn("signals", wait, failed).context("cannot start the signals thread")?;
    Ok(())
}

/// Lets a write that exceeds the limit of a file's length (`ulimit -f`) fail, as on a full disk; by
/// default it ends the process.
pub fn outlive_file_limit() {
    // SAFETY: to ignore a signal calls nothing of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// True where the process has a terminal. One that had, and has it no more, was left alone by
/// somebody who closed it: SIGHUP then means what it always has.
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// True where the process was started with this signal ignored.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: all-zero bytes are a valid sigaction, which the call only writes to.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: no new action is given, and `now` outlives the call.
    let told = unsafe { libc::sigaction(signal, std::ptr::null(), &mut now) };
    told == 0 && now.sa_sigaction == libc::SIG_IGN
}
