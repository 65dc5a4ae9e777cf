//! SIGINT and SIGTERM: the first one stops the source and finishes the files, the second one exits
//! at once. SIGHUP: the configuration is read again, or the terminal is gone.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
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

/// What a SIGHUP asks for.
pub type Reload = Box<dyn Fn() + Send>;

/// From now on the first signal sets `control.stop` and closes the window, and the second one exits.
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
    let stop = control.stop.clone();
    let on_terminal = has_terminal();
    let wait = move || {
        for signal in signals.forever() {
            if let (SIGHUP, Some(reload)) = (signal, &reload)
                && (!on_terminal || has_terminal())
            {
                reload();
                continue;
            }
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

/// Whether the process has a terminal. One that had, and has it no more, was left alone by somebody
/// who closed it: SIGHUP then means what it always has.
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Whether the process was started with this signal ignored.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: all-zero bytes are a valid sigaction, which the call only writes to.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: no new action is given, and `now` outlives the call.
    let told = unsafe { libc::sigaction(signal, std::ptr::null(), &mut now) };
    told == 0 && now.sa_sigaction == libc::SIG_IGN
}
