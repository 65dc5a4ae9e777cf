//! SIGINT and SIGTERM: the first signal stops the source and finishes the files, a second one exits
//! at once, unless it follows so soon that it repeats the first. SIGHUP: the configuration is read
//! again, or the terminal was closed.
//!
//! The signal handler itself stops and exits, so that this depends on no thread. A thread does the
//! rest.

use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
#[cfg(unix)]
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use crate::window::Remote;
use stereod_core::thread;
use stereod_io::clock::monotonic_ns;
use stereod_io::control::{Control, Switch};

/// Base of the exit status of a process that a signal ended: 128 plus the signal's number.
const SIGNAL_STATUS: i32 = 128;

/// Exit status after Ctrl-C, and of all that ends a job early in the same way.
pub const INTERRUPTED: u8 = (SIGNAL_STATUS + SIGINT) as u8;

/// Signals within this many milliseconds after the first one repeat it: `timeout` signals the
/// program and then its group, and a terminal the group of a forwarding process.
const SAME_WISH_MS: i64 = 500;

/// POSIX gives it this number (`kill -1`); Windows never sends it.
const SIGHUP: i32 = 1;

/// Time of the first signal in milliseconds of CLOCK_MONOTONIC; 0 before.
static FIRST_AT_MS: AtomicI64 = AtomicI64::new(0);

/// The first signal; 0 before.
static FIRST: AtomicI32 = AtomicI32::new(0);

pub fn interrupted() -> bool {
    FIRST.load(Ordering::SeqCst) != 0
}

/// Returns the exit status of a process ended by the signal that asked to stop, if one has.
pub fn exit_status() -> Option<u8> {
    let signal = FIRST.load(Ordering::SeqCst);
    (signal != 0).then(|| u8::try_from(SIGNAL_STATUS + signal).unwrap_or(u8::MAX))
}

/// Notes a signal that came at `now_ms`, and returns true if the process must exit at once. Only
/// atomic operations, because it runs in the signal handler.
fn is_further_wish(first_at_ms: &AtomicI64, now_ms: i64) -> bool {
    match first_at_ms.compare_exchange(0, now_ms.max(1), Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => false,
        Err(first) => now_ms - first >= SAME_WISH_MS,
    }
}

/// Handles a signal that asks to stop, in the signal handler.
fn stop_or_exit(signal: i32, stop: &Switch) {
    // The clock may be read in a signal handler (POSIX.1-2017, 2.4.3).
    if is_further_wish(&FIRST_AT_MS, monotonic_ns() / 1_000_000) {
        low_level::exit(SIGNAL_STATUS + signal);
    }
    let _ = FIRST.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
    stop.set(true);
}

pub type Reload = Box<dyn Fn() + Send>;

/// Installs the handlers: the first signal sets `control.stop` and closes the window, and one that
/// comes at least half a second later exits. SIGHUP calls `reload`, if given. Each of several
/// runs in a process calls it for itself.
pub fn stop_on_signals(
    control: &Control,
    window: Option<Remote>,
    reload: Option<Reload>,
) -> anyhow::Result<()> {
    // Under nohup, SIGHUP stays ignored.
    #[cfg(unix)]
    let hangup = reload.as_ref().filter(|_| !is_ignored(SIGHUP)).map(|_| SIGHUP);
    #[cfg(unix)]
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup))
        .context("cannot handle signals")?;
    #[cfg(not(unix))]
    let mut signals = std::iter::once_with(|| {
        while !interrupted() {
            std::thread::sleep(crate::run::TICK);
        }
        SIGINT
    });
    for signal in [SIGINT, SIGTERM] {
        let stop = control.stop.clone();
        let react = move || stop_or_exit(signal, &stop);
        // SAFETY: the handler reads a clock, changes atomics and exits, all of which are
        // async-signal-safe; it neither allocates nor panics.
        unsafe { low_level::register(signal, react) }.context("cannot handle signals")?;
    }
    let stop = control.stop.clone();
    let on_terminal = has_terminal();
    let mut told = false;
    let mut act_on = move |signal| {
        if let (SIGHUP, Some(reload)) = (signal, &reload) {
            if !on_terminal || has_terminal() {
                return reload();
            }
            stop_or_exit(signal, &stop);
        }
        if let Some(window) = &window {
            window.close();
        }
        if !std::mem::replace(&mut told, true) {
            tracing::info!("stopping: finishing files; a second signal (Ctrl-C) exits at once");
        }
    };
    let wait = move || {
        for signal in &mut signals {
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

/// Lets a write beyond the file size limit (`ulimit -f`) fail as on a full disk; by default the
/// signal ends the process.
pub fn outlive_file_limit() {
    // SAFETY: to ignore a signal calls nothing of ours.
    #[cfg(unix)]
    let _ = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Reports whether the process has a terminal. If it had one and lost it, the terminal was closed,
/// and SIGHUP keeps its usual meaning.
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    // SAFETY: all-zero bytes are a valid sigaction, which the call only writes to.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: no new action is given, and `now` outlives the call.
    let told = unsafe { libc::sigaction(signal, std::ptr::null(), &mut now) };
    told == 0 && now.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_in_quick_succession_are_one_wish() {
        let first = AtomicI64::new(0);
        assert!(!is_further_wish(&first, 70_000));
        assert!(!is_further_wish(&first, 70_001));
        assert!(!is_further_wish(&first, 70_499));
        assert!(is_further_wish(&first, 70_500));
        // A machine that has just started.
        let first = AtomicI64::new(0);
        assert!(!is_further_wish(&first, 0));
        assert!(!is_further_wish(&first, 1));
    }
}
