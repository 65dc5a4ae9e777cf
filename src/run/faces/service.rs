//! Notices to a service manager (systemd, sd_notify(3)): ready, alive, status, stopping.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::{Desk, Face, Shared};
use crate::run::live::handles::Handles;
use crate::settings::Settings;
use crate::telemetry::stderr;
use stereod_core::thread::{self, locked};
use stereod_io::clock::monotonic_ns;
use stereod_io::control::Switch;

const STATUS_EVERY: Duration = Duration::from_secs(2);

/// The service manager, which a thread of its own tells about all rigs together.
struct Manager {
    /// Names of all rigs, in the order of the configuration.
    names: Vec<String>,
    runs: Arc<Mutex<Vec<Arc<Handles>>>>,
    /// Rigs that have failed, each in words.
    failed: Arc<Mutex<Vec<String>>>,
    over: Switch,
    thread: Mutex<Option<JoinHandle<()>>>,
}

pub fn bind(_: &Settings, rigs: &[String]) -> Shared {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return Ok(None);
    }
    let (runs, failed, over, thread) = Default::default();
    Ok(Some(Arc::new(Manager { names: rigs.to_vec(), runs, failed, over, thread })))
}

impl Desk for Manager {
    fn face(self: Arc<Self>, _: usize) -> Box<dyn Face> {
        Box::new(Managed(self))
    }

    fn failed(&self, rig: usize, reason: &str) {
        let name = &self.names[rig];
        let was_ready = {
            let mut runs = locked(&self.runs);
            let before = runs.len();
            runs.retain(|run| run.name != *name);
            runs.len() < before
        };
        locked(&self.failed).push(format!("{name}: failed: {reason}"));
        if !was_ready {
            self.tell_if_ready();
        }
    }
}

impl Manager {
    /// Tells that the program is ready once the last rig is ready or has failed.
    fn tell_if_ready(&self) {
        let (ready, failed) = (locked(&self.runs).len(), locked(&self.failed).len());
        if ready > 0 && ready + failed == self.names.len() {
            tell(&["READY=1"]);
        }
    }
}

struct Managed(Arc<Manager>);

impl Face for Managed {
    /// Notes that the run is ready: source and outputs are open, the engine waits for pairs.
    fn serve(&mut self, handles: &Arc<Handles>) -> anyhow::Result<()> {
        let Manager { names, runs, failed, over, thread } = &*self.0;
        {
            let mut runs = locked(runs);
            runs.push(handles.clone());
            runs.sort_by_key(|run| names.iter().position(|name| *name == run.name));
        }
        self.0.tell_if_ready();
        let mut thread = locked(thread);
        if thread.is_some() {
            return Ok(());
        }
        let watchdog = Watchdog::of_manager();
        let mut notices = Notices { watchdog, told_status: None, told_stopping: false };
        let (runs, failed, over) = (runs.clone(), failed.clone(), over.clone());
        let expected = names.len();
        let mut look = move || {
            let failed = locked(&failed).clone();
            notices.send_due(&locked(&runs).clone(), &failed, expected);
        };
        let work = move || {
            while !over.is_set() {
                look();
                std::thread::sleep(crate::run::TICK);
            }
            // A run may end between two looks; its end is told, too.
            look();
        };
        let failed = |broken| tracing::error!("the service manager hears no more: {broken}");
        let started = thread::spawn("service", work, failed);
        *thread = Some(started.context("cannot start the service's thread")?);
        Ok(())
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        self.over.set(true);
        // A panic was told.
        let _ = locked(&self.thread).take().map(JoinHandle::join);
    }
}

struct Notices {
    watchdog: Watchdog,
    told_status: Option<Instant>,
    told_stopping: bool,
}

/// Notes that the run is up and waits for its cameras, and why; without a service manager, only in
/// the log.
pub fn waits(reason: &str) {
    if std::env::var_os("NOTIFY_SOCKET").is_some() {
        tell(&["READY=1", &format!("STATUS={reason}")]);
    }
}

/// The service manager's watchdog over this process.
pub struct Watchdog {
    /// Time without a sign of life after which it kills and restarts the process; `None` without a
    /// watchdog.
    longest: Option<Duration>,
    told: Option<Instant>,
}

impl Watchdog {
    pub fn of_manager() -> Self {
        let number = |name| std::env::var(name).ok()?.parse().ok();
        let is_ours = number("WATCHDOG_PID").is_none_or(|id| id == u64::from(std::process::id()));
        let longest = number("WATCHDOG_USEC").filter(|_| is_ours).map(Duration::from_micros);
        Self { longest, told: None }
    }

    /// Sends a sign of life if one is due, unless the process `is_stuck` for at least the given
    /// time. Called many times per second.
    pub fn tick(&mut self, is_stuck: impl FnOnce(Duration) -> bool) {
        let Some(longest) = self.longest else { return };
        // Two signs of life may be late before the manager loses patience.
        let due = self.told.is_none_or(|told| told.elapsed() >= longest / 3);
        if due && !is_stuck(longest) {
            self.told = Some(Instant::now());
            tell(&["WATCHDOG=1"]);
        }
    }
}

impl Notices {
    fn send_due(&mut self, runs: &[Arc<Handles>], failed: &[String], expected: usize) {
        let now = Instant::now();
        let are_all = runs.len() + failed.len() == expected;
        let is_ending = are_all && runs.iter().all(|run| run.is_ending());
        if !self.told_stopping && is_ending {
            self.told_stopping = true;
            tell(&["STOPPING=1", "STATUS=finishing files"]);
        }
        self.watchdog.tick(|longest| runs.iter().any(|run| run.is_stuck(longest)));
        let due = self.told_status.is_none_or(|told| now - told >= STATUS_EVERY);
        if due && !self.told_stopping {
            let texts = runs.iter().map(|run| self.status(run));
            let texts: Vec<_> = texts.chain(failed.iter().cloned()).collect();
            self.told_status = Some(now);
            tell(&[&format!("STATUS={}", texts.join("; "))]);
        }
    }

    fn status(&self, handles: &Handles) -> String {
        let run = handles.status.get();
        let rig = handles.heading();
        match (handles.health(), self.told_status) {
            (Err(reason), _) => return rig + &reason,
            (Ok(_), None) => return format!("{rig}waiting for the first pair of {}", run.source),
            (Ok(_), Some(_)) => {}
        }
        let (matched, rate) = (run.counts.matched, run.rate);
        let mut status = format!("{rig}{matched} pairs matched, {rate:.1} a second");
        if handles.is_clocked() {
            let latency = run.latency_ms.map_or(0.0, |latency| latency.newest);
            status += &format!(", latency {latency:.1} ms");
        }
        status
    }
}

impl Handles {
    fn is_ending(&self) -> bool {
        let has_ended = self.progress.source_ended.load(Ordering::Relaxed);
        self.control.stop.is_set() || has_ended && !self.stays()
    }

    /// Reports whether pairs wait for the engine, and it has not finished one for this time.
    /// Missing pairs are no reason to restart: the source reconnects lost cameras itself.
    fn is_stuck(&self, longest: Duration) -> bool {
        let done = self.progress.matched.load(Ordering::Relaxed)
            + self.counters.dropped_pairs.load(Ordering::Relaxed);
        let waiting = self.progress.pairs.load(Ordering::Relaxed) > done;
        waiting && self.progress.since_matched() > longest
    }
}

/// Informs the service manager that `read` reads the configuration again, and when it has.
pub fn reloading(read: impl FnOnce()) {
    let managed = std::env::var_os("NOTIFY_SOCKET").is_some();
    if managed {
        tell(&["RELOADING=1", &format!("MONOTONIC_USEC={}", monotonic_ns() / 1000)]);
    }
    // A manager that waits for the end of the reload must not wait for ever.
    let read = thread::guarded("reading the configuration", read);
    if managed {
        // The logs have the outcome.
        stderr::flush();
        tell(&["READY=1"]);
    }
    if let Err(broken) = read {
        tracing::error!("{broken}; the configuration stays as it was");
    }
}

/// Matching continues even if the service manager no longer listens. Windows has none of this kind.
fn tell(states: &[&str]) {
    #[cfg(not(unix))]
    let send = |_| std::io::Result::Ok(());
    if let Err(error) = send(states) {
        tracing::debug!("the service manager cannot be told: {error}");
    }
}

/// Sends the message without waiting for a reader.
#[cfg(unix)]
fn send(states: &[&str]) -> std::io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    let address = match name.as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => {
            <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name)?
        }
        _ => SocketAddr::from_pathname(&name)?,
    };
    // A line ends a field of the protocol: a file's name must not add fields.
    let field = |state: &&str| format!("{}\n", stereod_io::text::on_one_line(state));
    let text: String = states.iter().map(field).collect();
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to_addr(text.as_bytes(), &address).map(drop)
}
