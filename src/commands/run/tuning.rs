//! Changing a run while it goes on: the configuration is read again, or somebody turns a knob in the
//! window. Another engine is made beside the one at work and takes over between two pairs, so that
//! nothing stands still while kernels are compiled.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::knobs::knobs;
use super::observe::Observer;
use super::requests::{Request, Requests};
use super::service;
use crate::commands::Error;
use crate::commands::rig::Rig;
use crate::engine::{self, Choice};
use crate::pipeline::{Matcher, Replacements};
use crate::redact::holds_secret;
use crate::settings::{Loaded, row};
use crate::sink::alignment::SharedLimits;
use crate::sink::colouring::LiveColouring;
use crate::sink::files;
use crate::sink::window::{Remote, Tuned, Wish};
use crate::telemetry::logs::{self, Verbosity};
use crate::thread;

/// So long after the last of several values from the window they are put down in the logs.
const SETTLED: Duration = Duration::from_secs(1);

/// For so long the end of a run waits for a change that is under way.
const CLOSING: Duration = Duration::from_secs(10);

/// How often to look whether it is done.
const TICK: Duration = Duration::from_millis(5);

/// The settings in effect. Clones are the same.
#[derive(Clone)]
pub struct InEffect(Arc<Mutex<Loaded>>);

impl InEffect {
    /// The settings at this moment.
    pub fn now(&self) -> Loaded {
        locked(&self.0).clone()
    }
}

/// Everything that can be changed in a run, and what is needed for it.
pub struct Parts {
    /// What is matched.
    pub rig: Rig,
    /// Whether the engine at work is a GPU.
    pub on_gpu: bool,
    /// Where engines go.
    pub replacements: Replacements,
    /// How disparity is coloured.
    pub colouring: LiveColouring,
    /// What the alignment is judged by, where it is watched.
    pub limits: Option<SharedLimits>,
    /// Who watches the run.
    pub observer: Arc<Observer>,
    /// The window, if there is one.
    pub remote: Option<Remote>,
    /// What the command line says of the logs.
    pub verbosity: Verbosity,
    /// Reads the layers of the settings again.
    pub read: Box<dyn Fn() -> Result<Loaded, Error> + Send>,
}

/// The thread that changes the run.
pub struct Tuner {
    requests: Requests,
    thread: JoinHandle<()>,
}

impl Tuner {
    /// Does what is asked from now on, and what was asked before; with the settings in effect.
    ///
    /// # Errors
    /// Where its thread cannot be started.
    pub fn start(
        loaded: Loaded,
        parts: Parts,
        requests: Requests,
    ) -> anyhow::Result<(Self, InEffect)> {
        let (configured, told) = (loaded.clone(), loaded.clone());
        let in_effect = InEffect(Arc::new(Mutex::new(loaded)));
        let bench = Bench { parts, in_effect: in_effect.clone(), configured, told };
        let for_thread = requests.clone();
        let thread = thread::spawn(
            "tuner",
            move || bench.work(&for_thread),
            |broken| tracing::error!("{broken}; the run goes on as it is"),
        );
        Ok((Self { requests, thread: thread.context("cannot start the tuner")? }, in_effect))
    }

    /// Ends it, after what it is at. Where that does not come to an end (a configuration on a network
    /// disk that is gone), it is left behind.
    pub fn close(self) {
        self.requests.close();
        let deadline = Instant::now() + CLOSING;
        while !self.thread.is_finished() {
            if Instant::now() > deadline {
                tracing::warn!("what the configuration asks for is held up and was left undone");
                return;
            }
            std::thread::sleep(TICK);
        }
    }
}

/// The tuner's thread.
struct Bench {
    parts: Parts,
    in_effect: InEffect,
    /// What the configuration says.
    configured: Loaded,
    /// What was last told in the logs.
    told: Loaded,
}

impl Bench {
    fn work(mut self, requests: &Requests) {
        let mut patience = None;
        loop {
            let request = requests.next(patience);
            if let Request::Close = request {
                return self.settle();
            }
            // One that breaks down must not make the next ones unheard.
            patience =
                thread::guarded("the change", || self.fulfil(request)).unwrap_or_else(|broken| {
                    tracing::error!("{broken}; the run goes on as it is");
                    self.answer(None, Err(broken.into()));
                    None
                });
        }
    }

    /// Does what is asked; after how long without another request it is put down in the logs.
    fn fulfil(&mut self, request: Request) -> Option<Duration> {
        match request {
            Request::Reload => service::reloading(|| self.reload()),
            Request::Reset => {
                let reset = self.reset();
                self.answer(None, reset);
                return Some(SETTLED);
            }
            Request::Values(number, values) => {
                let taken = self.take_values(&values);
                self.answer(Some(number), taken);
                return Some(SETTLED);
            }
            Request::Write(path) => {
                self.settle();
                self.write(&path);
            }
            Request::Settle | Request::Close => self.settle(),
        }
        None
    }

    fn take_values(&self, values: &[Wish]) -> anyhow::Result<()> {
        let texts = values.iter().map(|(section, key, text)| (*section, *key, text.as_str()));
        self.put_in_effect(self.in_effect.now().with_texts(texts)?).map(drop)
    }

    fn reset(&self) -> anyhow::Result<()> {
        let now = self.in_effect.now();
        let mut keys = now.differences(&self.configured);
        keys.retain(|(section, key)| {
            row(section, key).is_some_and(|row| row.panel.is_some())
                && now.why_fixed(section, key).is_none()
                && !waits(section, key, &now, &self.configured)
        });
        self.put_in_effect(now.with_those_of(&self.configured, &keys)?).map(drop)
    }

    /// Tells the window what is in effect, and why it is not what was wanted, if so.
    fn answer(&self, number: Option<u64>, done: anyhow::Result<()>) {
        let Some(remote) = &self.parts.remote else { return };
        let problem = done.err().map(|error| format!("{error:#}"));
        let (knobs, colouring) = (knobs(&self.in_effect.now()), self.parts.colouring.get());
        remote.tuned(Tuned { number, knobs, colouring, problem });
    }

    /// Puts down in the logs what was changed in the window.
    fn settle(&mut self) {
        let now = self.in_effect.now();
        let changes = changes(&self.told, &now);
        if !changes.is_empty() {
            tracing::info!("tuned in the window: {}", changes.join(", "));
        }
        self.told = now;
    }

    /// Writes a configuration file with what is in effect.
    fn write(&self, path: &Path) {
        let existed = path.exists();
        let text = format!(
            "# Settings of stereod {} as they were tuned, where they are not the defaults:\n\
             # stereod run --config {}\n{}",
            env!("CARGO_PKG_VERSION"),
            path.display().to_string().replace(['\n', '\r'], " "),
            self.in_effect.now().to_file()
        );
        let instead = if existed { " in place of the one before" } else { "" };
        let mut written = files::write_whole(path, text.as_bytes());
        #[cfg(unix)]
        if written.is_ok() && holds_secret(&text) {
            use std::os::unix::fs::PermissionsExt;
            let mine = std::fs::Permissions::from_mode(0o600);
            written = std::fs::set_permissions(path, mine).map_err(anyhow::Error::from);
        }
        let told = match written {
            Ok(()) => Ok(format!("saved {}{instead}", path.display())),
            Err(error) => Err(format!("no settings: {error:#}")),
        };
        match &told {
            Ok(text) => tracing::info!("{text}"),
            Err(text) => tracing::error!("{text}"),
        }
        if let Some(remote) = &self.parts.remote {
            remote.saved(told);
        }
    }

    /// Reads the configuration again and puts in effect what can be; says what.
    fn reload(&mut self) {
        self.settle();
        let now = self.in_effect.now();
        let read = match (self.parts.read)() {
            Ok(read) => read,
            Err(error) => {
                let error = error.to_string();
                // One event a mistake.
                for line in error.lines() {
                    tracing::error!("the configuration stays as it was: {}", line.trim_start());
                }
                return;
            }
        };
        let differences = now.differences(&read);
        let (live, fixed): (Vec<_>, Vec<_>) = differences
            .into_iter()
            .partition(|(s, k)| now.why_fixed(s, k).is_none() && !waits(s, k, &now, &read));
        let changed = now.with_those_of(&read, &live).map_err(anyhow::Error::from);
        match changed.and_then(|changed| self.put_in_effect(changed)) {
            Ok(changes) if changes.is_empty() => {
                tracing::info!("configuration read again: nothing to change");
            }
            Ok(changes) => tracing::info!("configuration read again: {}", changes.join(", ")),
            Err(error) => {
                tracing::error!("the configuration stays as it was: {error:#}");
                return;
            }
        }
        self.configured = read;
        self.told = self.in_effect.now();
        self.answer(None, Ok(()));
        for (section, key) in fixed {
            let why = now.why_fixed(&section, &key).unwrap_or("auto is chosen at the start");
            let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
            tracing::warn!("needs a restart: [{section}] {key}{why}");
        }
        // Last, so that nothing of this goes unsaid.
        let filter = self.in_effect.now().settings.log.filter;
        if filter != now.settings.log.filter
            && let Err(error) = logs::refilter(&filter, self.parts.verbosity)
        {
            tracing::error!("{error}");
        }
    }

    /// Has the run go on with these settings; says what has changed.
    ///
    /// # Errors
    /// Where it cannot; it then goes on as before.
    fn put_in_effect(&self, next: Loaded) -> anyhow::Result<Vec<String>> {
        let now = self.in_effect.now();
        if next.awaits_choice() {
            bail!("auto disparities are chosen at the start of a run: give a number");
        }
        if next.params.range != now.params.range
            && let Some(why) = now.settings.output.why_range_fixed()
        {
            bail!("the range of disparities cannot change: {why}");
        }
        if next.params != now.params {
            self.replace_engine(&next)?;
        }
        let Parts { colouring, limits, observer, .. } = &self.parts;
        let settings = &next.settings;
        colouring.set(settings.colour.colouring(next.params.range));
        if let Some(limits) = limits {
            limits.warn_above(settings.alignment.warn_px);
        }
        observer.set_patience(settings.metrics.unhealthy());
        let changes = changes(&now, &next);
        *locked(&self.in_effect.0) = next;
        Ok(changes)
    }

    fn replace_engine(&self, next: &Loaded) -> anyhow::Result<()> {
        let Parts { rig, on_gpu, replacements, observer, .. } = &self.parts;
        if observer.progress.source_ended.load(Ordering::Relaxed) {
            return Ok(());
        }
        // Who has a GPU would rather keep the parameters than lose it unasked.
        let choice = if *on_gpu { Choice::Cuda } else { Choice::Cpu };
        let options = next.settings.engine.options();
        let engine =
            engine::create(choice, &next.params, rig.size, rig.rectifier.as_ref(), &options)?;
        replacements.put(Matcher { engine, candidates: Some(next.params.range) });
        // Who has paused to look closely is to see what has changed.
        observer.control.step.set(observer.control.pause.is_set());
        Ok(())
    }
}

/// Whether the value of a key has to wait for the next start: disparities are chosen from the first
/// pairs.
fn waits(section: &str, key: &str, now: &Loaded, next: &Loaded) -> bool {
    let is_auto = || next.laid(section, key).as_str() == Some("auto");
    (section, key) == ("matching", "disparities") && is_auto() && !now.has_chosen()
}

/// What is different, for people.
fn changes(before: &Loaded, after: &Loaded) -> Vec<String> {
    let change = |(section, key): (String, String)| {
        let [value, was] = [after, before].map(|loaded| loaded.laid(&section, &key).to_string());
        format!("[{section}] {key} = {value} (was {was})")
    };
    before.differences(after).into_iter().map(change).collect()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
