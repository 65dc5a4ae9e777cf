//! Changes to a running run: the configuration is read again, or a knob is turned in the window.
//! Another engine is made next to the one at work and takes over between two pairs, so that pairs
//! keep flowing while kernels are compiled.

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail};
use nalgebra::Vector3;

use super::changes::{Answer, Tunable, carry_out};
use super::handles::Handles;
use super::requests::Request;
use crate::cli::RunArgs;
use crate::observe::alignment::rotation::Turn;
use crate::run::faces::service;
use crate::run::knobs::knobs;
use crate::run::open::obstacles;
use crate::run::prepare::rig::Rig;
use crate::run::{Error, read, told};
use crate::settings::row;
use crate::settings::{self, Loaded};
use crate::telemetry::logs;
use crate::viewer::Tuned;
use stereod_core::engine::{self, PairSpec};
use stereod_core::files;
use stereod_core::thread;
use stereod_io::playback::Move;
use stereod_obstacles::finder::Finder;
use stereod_obstacles::zones::{self, Edit, ZoneRule};

/// Time after the last of several values from the window until they are logged.
const SETTLED: Duration = Duration::from_secs(1);

/// Time that the end of a run waits for a change in progress.
const CLOSING: Duration = Duration::from_secs(10);

pub struct Tuner {
    handles: Arc<Handles>,
    thread: JoinHandle<()>,
}

impl Tuner {
    /// Starts to serve requests, also earlier ones.
    pub fn start(handles: &Arc<Handles>) -> anyhow::Result<Self> {
        let loaded = handles.loaded();
        let handles = handles.clone();
        let since = Cell::new(Instant::now());
        let (configured, told, rig) = (loaded.clone(), loaded, handles.rig.clone());
        let turned = Vector3::zeros();
        let worker = Worker { handles: handles.clone(), configured, told, since, rig, turned };
        let thread = thread::spawn(
            "tuner",
            move || worker.work(),
            |broken| tracing::error!("{broken}; the run goes on as it is"),
        );
        Ok(Self { handles, thread: thread.context("cannot start the tuner")? })
    }

    /// Ends it after its present task. If that takes too long (a configuration on a network disk
    /// that is gone), the thread is left behind.
    pub fn close(self) {
        self.handles.requests.close();
        if !thread::wait_for(&self.thread, |passed| passed > CLOSING) {
            tracing::warn!("a reload or change of settings timed out");
        }
    }
}

/// No engine can be made for settings that are right by themselves.
#[derive(Debug, thiserror::Error)]
#[error("the engine cannot change")]
struct NoEngine;

struct Worker {
    handles: Arc<Handles>,
    configured: Loaded,
    /// Settings as they were last logged.
    told: Loaded,
    since: Cell<Instant>,
    /// The rig with the calibration in effect.
    rig: Rig,
    /// Rotation in degrees by which it was refined.
    turned: Vector3<f64>,
}

impl Worker {
    fn work(mut self) {
        let mut patience = None;
        loop {
            let request = self.handles.requests.next(patience);
            if let Some(Request::Close) = request {
                return self.settle();
            }
            let ids = request.as_ref().map_or_else(Vec::new, Request::ids);
            // A panic in one request must not block the next ones.
            patience =
                thread::guarded("the change", || self.fulfil(request)).unwrap_or_else(|broken| {
                    tracing::error!("{broken}; the run goes on as it is");
                    let answer = |id| (id, Err(broken.clone().into()));
                    self.answer(ids.into_iter().map(answer).collect());
                    None
                });
        }
    }

    /// Serves a request, if any, and returns the time after which changes are logged without
    /// another request.
    fn fulfil(&mut self, request: Option<Request>) -> Option<Duration> {
        match request {
            Some(Request::Reload) => service::reloading(|| self.reload()),
            Some(Request::Refine(turn)) => {
                if let Err(error) = self.refine(turn) {
                    tracing::error!("the calibration stays as it was: {}", told(&error));
                }
            }
            Some(Request::Change(changes)) => {
                self.answer(carry_out(&changes, self));
                return Some(SETTLED);
            }
            Some(Request::Zone(id, edit)) => self.answer(vec![(id, self.edit_zone(&edit))]),
            Some(Request::Write) => {
                self.settle();
                self.write();
            }
            Some(Request::Close) | None => self.settle(),
        }
        None
    }

    /// Sends the viewers the settings in effect, and the answers to requests.
    fn answer(&self, answers: Vec<Answer>) {
        let problem = |(id, done): Answer| {
            let error = done.err();
            let problem = error.as_ref().map(told);
            if let (Some(problem), true) = (&problem, error.is_some_and(|it| it.is::<NoEngine>())) {
                // Only who asked gets the problem; a failure concerns all.
                tracing::error!("the settings stay as they were: {problem}");
            }
            (id, problem)
        };
        let answers = answers.into_iter().map(problem).collect();
        let (knobs, colouring) = (knobs(&self.handles.loaded()), self.handles.colouring.get());
        let tuned = Tuned { answers, knobs, since: self.since.get(), colouring };
        self.handles.viewers.iter().for_each(|viewer| viewer.tuned(tuned.clone()));
    }

    /// Logs the changes made by viewers.
    fn settle(&mut self) {
        let now = self.handles.loaded();
        let changes = changes(&self.told, &now);
        if !changes.is_empty() {
            tracing::info!("tuned: {}", changes.join(", "));
        }
        self.told = now;
    }

    /// Writes a configuration file with the settings in effect: the one of the settings, or a new one.
    fn write(&self) {
        let loaded = self.handles.loaded();
        let text = format!(
            "# Settings of stereod {} as they were tuned, where they are not the defaults.\n\
             # They take effect with --config and the name of this file.\n{}",
            env!("CARGO_PKG_VERSION"),
            settings::to_file(&loaded)
        );
        let written = match loaded.settings.window.settings() {
            Some(path) => {
                let instead = if path.exists() { " in place of the one before" } else { "" };
                files::write_whole(&path, text.as_bytes()).map(|()| (path, instead))
            }
            None => {
                let name =
                    format!("stereod-settings-{}.toml", self.handles.stem(SystemTime::now()));
                let path = Path::new(&loaded.settings.window.snapshots).join(name);
                files::write_new(&path, text.as_bytes()).map(|path| (path, ""))
            }
        };
        let protected = written.and_then(|(path, instead)| {
            #[cfg(unix)]
            if stereod_core::redact::holds_secret(&text) {
                let for_owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
                std::fs::set_permissions(&path, for_owner)?;
            }
            Ok(format!("saved {}{instead}", path.display()))
        });
        let told = protected.map_err(|error| format!("no settings: {error:#}"));
        match &told {
            Ok(text) => tracing::info!("{text}"),
            Err(text) => tracing::error!("{text}"),
        }
        self.handles.viewers.iter().for_each(|viewer| viewer.saved(told.clone()));
    }

    /// Reads the configuration again, applies the settings that can change, and logs them.
    fn reload(&mut self) {
        self.settle();
        let now = self.handles.loaded();
        let read = match read_again(&self.handles.args, &now) {
            Ok(read) => read,
            Err(error) => {
                let error = error.to_string();
                // One log event per mistake.
                for line in error.lines() {
                    tracing::error!("the configuration stays as it was: {}", line.trim_start());
                }
                return;
            }
        };
        let differences = now.differences(&read);
        let (live, fixed): (Vec<_>, Vec<_>) = differences.into_iter().partition(|(s, k)| {
            settings::why_fixed(&now, s, k).is_none() && !waits(s, k, &now, &read)
        });
        let changed = now.with_those_of(&read, &live).map_err(anyhow::Error::from);
        match changed.and_then(|changed| self.apply(changed)) {
            Ok(changes) if changes.is_empty() => {
                tracing::info!("configuration read again: nothing to change");
            }
            Ok(changes) => tracing::info!("configuration read again: {}", changes.join(", ")),
            Err(error) => {
                tracing::error!("the configuration stays as it was: {}", told(&error));
                return;
            }
        }
        self.configured = read;
        self.told = self.handles.loaded();
        self.answer(Vec::new());
        for (section, key) in fixed {
            let why =
                settings::why_fixed(&now, &section, &key).unwrap_or("auto is chosen at the start");
            let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
            tracing::warn!("needs a restart: [{section}] {key}{why}");
        }
        self.tell_new_rigs(&now);
        // Last, so that all of this has been logged.
        let filter = self.handles.loaded().settings.log.filter;
        if filter != now.settings.log.filter
            && let Err(error) = logs::refilter(&filter, self.handles.args.common.verbosity())
        {
            tracing::error!("{error}");
        }
    }

    /// Names rigs of the configuration that do not run, once for all rigs that do.
    fn tell_new_rigs(&self, now: &Loaded) {
        let (name, rigs) = (&self.handles.name, &self.handles.rigs);
        let is_there = |rig: &&String| self.configured.rigs().any(|other| other == **rig);
        // A rig that was chosen from several runs alone.
        let are_all = now.rigs().count() <= rigs.len();
        if !are_all || rigs.iter().find(is_there).is_some_and(|first| first != name) {
            return;
        }
        for new in self.configured.rigs().filter(|rig| !now.rigs().any(|other| other == *rig)) {
            tracing::warn!("needs a restart: the new rig {new}");
        }
    }

    /// Puts settings in effect, and returns the changes in words.
    fn apply(&self, next: Loaded) -> anyhow::Result<Vec<String>> {
        let now = self.handles.loaded();
        self.check(&now, &next)?;
        if next.params != now.params {
            self.replace_engine(&next, &self.rig.pairs)?;
        }
        let settings = &next.settings;
        let geometry = self.handles.rig.pairs.geometry.as_ref();
        if let Some(finder) = self.finder(&now, &next)? {
            self.find_by(finder, self.handles.finding.zones.get().to_vec());
        }
        self.handles.colouring.set(settings.colouring(next.params.range, geometry));
        self.handles.observations.warn_above(settings.alignment.warn_px);
        let changes = changes(&now, &next);
        *self.handles.in_effect.lock().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(changes)
    }

    /// Turns the right camera of the calibration, unless it is too far from that of the file.
    fn refine(&mut self, mut turn: Turn) -> anyhow::Result<()> {
        let loaded = self.handles.loaded();
        let (Some(limit), Some(before)) =
            (loaded.settings.alignment.refine_deg, &self.rig.calibration)
        else {
            return Ok(());
        };
        // A bump does not change the focal length.
        turn.fix(3, 0.0);
        turn.keep(&[0.0; 4]);
        let turned = self.turned + turn.degrees();
        if turned.norm() > limit {
            bail!(
                "by the rows, the right camera has turned by {turn}, in all {:.2} degrees, and \
                 alignment.refine_deg allows {limit}; check the mounting, and calibrate anew (stereod calibrate)",
                turned.norm()
            );
        }
        let calibration = turn.correct(before)?;
        let pairs = PairSpec::raw(Arc::new(calibration.rectifier(None)?));
        self.replace_engine(&loaded, &pairs)?;
        self.rig = Rig { pairs, calibration: Some(calibration), ..self.rig.clone() };
        self.turned = turned;
        self.handles.observations.refined_by(turned.into());
        tracing::info!(
            "calibration refined: the right camera has turned by {turn}; rows differed by {:.2} px (median of {} \
             points of {} pairs); the file stays as it is, and stereod calibration refine makes a new one",
            turn.rows_px,
            turn.points,
            turn.pairs
        );
        Ok(())
    }

    fn replace_engine(&self, next: &Loaded, pairs: &PairSpec) -> anyhow::Result<()> {
        let Handles { choice, swap, progress, .. } = &*self.handles;
        if progress.source_ended.load(Ordering::Relaxed) {
            return Ok(());
        }
        // A run on a GPU keeps its parameters rather than moving to the CPU.
        let create = |of: &Loaded, pairs| {
            engine::create(choice, &of.params, pairs, &of.settings.engine.options())
        };
        // Memory is needed for the engine at work and for this one, but for no third one.
        let is_withdrawn = swap.withdraw();
        let made = create(next, pairs).context(NoEngine);
        if made.is_err() && is_withdrawn {
            match create(&self.handles.loaded(), &self.rig.pairs) {
                Ok(engine) => swap.put(engine),
                Err(error) => tracing::error!("the last change has no effect: {}", told(&error)),
            }
        }
        swap.put(made?);
        self.since.set(Instant::now());
        self.show_again();
        Ok(())
    }

    /// Has the present pair matched again. Where that is impossible, a paused run shows a change by one step.
    fn show_again(&self) {
        let Handles { run, is_movable, .. } = &*self.handles;
        match is_movable {
            true => run.control.playback.ask(Move::Again),
            false => run.control.step.set(run.control.pause.is_set()),
        }
    }

    /// Returns what finds obstacles by settings that take the place of others; `None` if they find the same.
    fn finder(&self, now: &Loaded, next: &Loaded) -> anyhow::Result<Option<Finder>> {
        let [before, after] = [&now.settings, &next.settings];
        let geometry = self.handles.rig.pairs.geometry.filter(|_| after.finds_obstacles());
        let is_same = before.mount == after.mount && before.obstacles == after.obstacles;
        let Some(geometry) = geometry.filter(|_| !is_same) else { return Ok(None) };
        let zones = self.handles.finding.zones.get().to_vec();
        obstacles::with_zones(after, &geometry, zones, None).map(Some)
    }

    fn find_by(&self, finder: Finder, zones: Vec<ZoneRule>) {
        self.handles.finding.change(finder, zones);
        self.show_again();
    }

    /// Adds or removes a zone, in the file of the zones as well, if there is one.
    fn edit_zone(&self, edit: &Edit) -> anyhow::Result<()> {
        let settings = self.handles.loaded().settings;
        let geometry = self.handles.rig.pairs.geometry.filter(|_| settings.finds_obstacles());
        let geometry = geometry
            .context("this run finds no obstacles: start it with --set obstacles.find=true")?;
        let zones = edit.of(&self.handles.finding.zones.get())?;
        let finder = obstacles::with_zones(&settings, &geometry, zones.clone(), None)?;
        self.find_by(finder, zones);
        let name = edit.name();
        let told = match settings.obstacles.zones_file().map(|path| (save(edit, &path), path)) {
            Some((Ok(()), path)) => Ok(format!("zone {name}: saved in {}", path.display())),
            Some((Err(error), path)) => Err(format!(
                "zone {name}: changed until the run ends, but not in {}: {error:#}",
                path.display()
            )),
            None => Ok(format!(
                "zone {name}: changed until the run ends; save the zones as a file, and start with --zones FILE"
            )),
        };
        let is_told = settings.obstacles.mqtt.is_empty();
        let more = if is_told { "" } else { "; MQTT needs a restart for it" };
        let told = told.map(|text| text + more);
        match &told {
            Ok(text) => tracing::info!("{text}"),
            Err(text) => tracing::error!("{text}"),
        }
        self.handles.viewers.iter().for_each(|viewer| viewer.saved(told.clone()));
        Ok(())
    }
}

impl Tunable for Worker {
    fn in_effect(&self) -> Loaded {
        self.handles.loaded()
    }

    fn reset(&self, now: &Loaded) -> anyhow::Result<Loaded> {
        let mut keys = now.differences(&self.configured);
        keys.retain(|(section, key)| {
            row(section, key).is_some_and(|row| row.panel.is_some())
                && settings::why_fixed(now, section, key).is_none()
                && !waits(section, key, now, &self.configured)
        });
        Ok(now.with_those_of(&self.configured, &keys)?)
    }

    fn check(&self, now: &Loaded, next: &Loaded) -> anyhow::Result<()> {
        if next.awaits_choice() {
            bail!("auto disparities are chosen at the start of a run: give a number");
        }
        if next.params.range != now.params.range
            && let Some(why) = now.settings.output.why_range_fixed()
        {
            bail!("the range of disparities cannot change: {why}");
        }
        self.finder(now, next)?;
        if next.params == now.params {
            return Ok(());
        }
        let options = next.settings.engine.options();
        engine::check(&self.handles.choice, &next.params, &self.rig.pairs, &options)
            .context(NoEngine)
    }

    fn put_in_effect(&self, next: Loaded) -> anyhow::Result<()> {
        self.apply(next).map(drop)
    }
}

/// Changes a zone in a file.
fn save(edit: &Edit, path: &Path) -> anyhow::Result<()> {
    let text = edit.in_text(&zones::text(path)?)?;
    files::write_whole(path, text.as_bytes())
}

/// Reads the settings as at the start, and keeps those of `--fit`.
fn read_again(args: &RunArgs, now: &Loaded) -> Result<Loaded, Error> {
    let (_, loaded) = read(&args.common, args.flags())?;
    if args.source.spec().is_none() {
        loaded.settings.source.complete().map_err(Error::usage)?;
    }
    Ok(loaded.with_fitted(now.fitted_values())?)
}

/// Reports whether a value has to wait for the next start: disparities are chosen from the first
/// pairs.
fn waits(section: &str, key: &str, now: &Loaded, next: &Loaded) -> bool {
    let is_auto = || next.given(section, key).as_str() == Some("auto");
    (section, key) == ("matching", "disparities") && is_auto() && !now.has_chosen()
}

fn changes(before: &Loaded, after: &Loaded) -> Vec<String> {
    let change = |(section, key): (String, String)| {
        let [value, was] = [after, before].map(|loaded| loaded.given(&section, &key).to_string());
        format!("[{section}] {key} = {value} (was {was})")
    };
    before.differences(after).into_iter().map(change).collect()
}
