//! A run from its settings to its report.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use anyhow::anyhow;

use super::faces::service::Watchdog;
use super::faces::{Faces, Opened, Rigs, Shows};
use super::live::handles::Handles;
use super::live::observations::Observations;
use super::live::requests::Requests;
use super::live::tuning::Tuner;
use super::open::first_pairs::{Chosen, choose_range};
use super::open::{engine, outputs, source};
use super::report::{Watch, report};
use crate::cli::RunArgs;
use crate::observe::told::Warnings;
use crate::pipeline::{self, EngineSwap, PipelineConfig, Running};
use crate::run::prepare::fit;
use crate::run::prepare::rig::{Cameras, Rig};
use crate::run::{Error, heed, load, signals};
use crate::settings::{Loaded, Pace};
use crate::status::Newest;
use stereod_core::memory;
use stereod_core::pool::Pool;
use stereod_io::clock::CaptureClock;
use stereod_io::control::Control;
use stereod_io::sink::colouring::LiveColouring;
use stereod_io::source::SourceInfo;
use stereod_io::source::excerpt::Frames;
use stereod_io::source::gst::Keep;
use stereod_io::source::spec::SourceSpec;

pub struct Session {
    handles: Arc<Handles>,
    running: Running,
    faces: Faces,
    files: outputs::Reserved,
    room: memory::Reserved,
}

impl Session {
    /// Opens all parts of a run, and starts the flow of pairs. Returns `None` if it was stopped
    /// meanwhile. `rigs`: the rigs of the program, and the number of this one; `None` if it runs alone.
    pub fn start(args: RunArgs, rigs: Option<(Rigs, usize)>) -> Result<Option<Self>, Error> {
        // Prepare: mistakes in the settings and outputs in use are reported before anything is
        // opened.
        let loaded = load(&args.common, args.flags())?;
        let spec = source::named(&args, &loaded.settings.source)?;
        outputs::check(&spec, &loaded)?;
        let cameras = cameras(&args, &spec, &loaded)?;
        let (control, requests, status) =
            (Control::default(), Requests::default(), Newest::default());
        let alone =
            || Rigs::bind(&loaded.settings, vec![args.common.rig.clone().unwrap_or_default()]);
        let (rigs, number) = rigs.map_or_else(|| Ok::<_, Error>((alone()?, 0)), Ok)?;
        let mut faces = Faces::bind(&loaded.settings, &rigs, number)?;
        obey_signals(&control, &requests, &faces)?;
        let files = outputs::reserve(&loaded.settings)?;

        // Open: in this order, so that earlier output survives if the input cannot be opened.
        let output = &loaded.settings.output;
        let watched = (faces.show(Shows::Images) || output.stream().is_some())
            && !outputs::writes_frames(&loaded.settings);
        let colours = (faces.show(Shows::Images) || output.shows_left()).then(Pool::new);
        let keep = Keep { colours, ..Keep::default() };
        let (frames, first) = part(&args, &faces);
        let source = source::wait_for(&spec, &loaded, watched, frames, &keep, &control);
        let source = source.map_err(|error| of_input(&args, error))?;
        let Some(source) = source else { return stopped_before_a_pair(&spec) };
        let (info, live) = (source.info().clone(), source.live_state());
        let rig = cameras.for_pictures(info.sizes())?;
        let warnings = Warnings::default();
        let chosen = choose_range(&loaded, source, &rig, &control.stop, &warnings)?;
        let Some(Chosen { loaded, fewest, source, dropped_before }) = chosen else {
            return stopped_before_a_pair(&spec);
        };
        let loaded = loaded.with_white(info.white)?;
        let loaded = if faces.show(Shows::Confidence) { loaded.with_confidence()? } else { loaded };
        let loaded = fitted(loaded, &spec, fewest, &info, &rig)?;
        let (engine, room) = engine::open(&loaded, &info, &rig, &keep.pixels)?;
        let clock = live.as_ref().and_then(|live| live.zero()).map(CaptureClock::measure);
        let (settings, geometry) = (&loaded.settings, rig.pairs.geometry.as_ref());
        let colouring = LiveColouring::new(settings.colouring(loaded.params.range, geometry));
        control.suspend_recording.set(settings.output.on_demand);
        let mut sinks = outputs::open(&loaded, &info, &rig, clock, &colouring)?;
        let observations =
            Observations::start(&loaded, &info, &rig, warnings, &requests, &mut sinks);
        let pace = settings.source.pace;
        let realtime = matches!((pace, watched), (Pace::Realtime, _) | (Pace::Auto, true));
        let opened = Opened {
            loaded: &loaded,
            info: &info,
            rig: &rig,
            clock,
            colouring: &colouring,
            control: &control,
            requests: &requests,
            status: &status,
            realtime,
        };
        let viewers = faces.join(&opened, &mut sinks)?;

        // Start: pairs flow from here on.
        let (swap, description) = (EngineSwap::default(), engine.description());
        let choice = engine.choice();
        let config = PipelineConfig {
            source,
            engine,
            swap: swap.clone(),
            sinks,
            pair_room: settings.queue.pairs,
            result_room: settings.queue.results,
            first,
            limit: args.source.limit(),
            realtime,
            timeline: faces.timeline(),
        };
        let running = pipeline::start(config, &control)?;
        let handles = Arc::new(Handles {
            args,
            name: rigs.names[number].clone(),
            rigs: rigs.names.clone(),
            in_effect: Mutex::new(loaded),
            control,
            requests,
            remote: faces.window(),
            viewers,
            // Otherwise pairs come as fast as they are matched, and their time in queues means nothing.
            clocked: info.live || realtime,
            info,
            live,
            one_stream: spec.is_one_stream(),
            is_movable: faces.timeline().is_some(),
            rig,
            engine: description,
            choice,
            swap,
            colouring,
            observations,
            progress: running.progress.clone(),
            counters: running.counters.clone(),
            dropped_before,
            status,
        });
        Ok(Some(Self { handles, running, faces, files, room }))
    }

    pub fn finish(self) -> Result<(), Error> {
        let Self { handles, running, mut faces, files, room: _room } = self;
        // Faces have something to show from the start.
        handles.renew_status(0.0, Vec::new());
        faces.serve(&handles)?;
        let tuner = Tuner::start(&handles)?;
        let mut outcome = Watch::new(&handles).until_finished(running);
        let written = report(&handles, &outcome, files.statistics);
        faces.end(&handles, &mut outcome);
        tuner.close();
        match outcome.error {
            Some(error) if outcome.is_of_source => Err(of_input(&handles.args, error)),
            Some(error) => Err(error.into()),
            None => {
                written?;
                cut_short(&handles)?;
                heed(handles.args.strict.strict, &handles.observations.warnings)
            }
        }
    }
}

/// Returns the cameras, which may be those in the recording. Fails if an output needs more of them.
fn cameras<'a>(
    args: &RunArgs,
    spec: &'a SourceSpec,
    loaded: &'a Loaded,
) -> Result<Cameras<'a>, Error> {
    let read = Cameras::read(&loaded.settings, Some(spec));
    let cameras = read.map_err(|error| match error {
        Error::Failed(error) => of_input(args, error),
        error => error,
    })?;
    if !loaded.settings.output.clouds.is_empty() {
        cameras.required_by("--clouds")?;
    }
    if !loaded.settings.output.aligned.is_empty() {
        cameras.required_by_aligned()?;
    }
    Ok(cameras)
}

/// Lets signals stop the run, or have the configuration read again.
fn obey_signals(control: &Control, requests: &Requests, faces: &Faces) -> anyhow::Result<()> {
    let requests = requests.clone();
    let reload = Box::new(move || requests.reload());
    signals::stop_on_signals(control, faces.window(), Some(reload))
}

/// Returns the part of the source that is matched, and the number of the first pair that is handed
/// out: pairs before it fill the history.
fn part(args: &RunArgs, faces: &Faces) -> (Frames, u64) {
    let mut frames = args.source.part.frames();
    let Some(run_in) = args.run_in.filter(|_| faces.window().is_none()) else { return (frames, 0) };
    let first = frames.first;
    frames.first = first.saturating_sub(run_in);
    (frames, first)
}

/// Returns the settings that `--fit` chooses for this machine.
fn fitted(
    loaded: Loaded,
    spec: &SourceSpec,
    fewest: usize,
    info: &SourceInfo,
    rig: &Rig,
) -> anyhow::Result<Loaded> {
    let (size, part) = ((info.width, info.height), loaded.settings.engine.multiprocessors);
    let mut watchdog = Watchdog::of_manager();
    let mut alive = || watchdog.tick(|_| false);
    let beside = fit::beside(&loaded.settings.output, size);
    let demand = fit::Demand { size, fewest, beside, resized: &|size| spec.resized(size) };
    fit::fit_settings(loaded, &demand, rig, part, &mut alive)
}

/// Returns a failure of the source with its exit status.
fn of_input(args: &RunArgs, error: anyhow::Error) -> Error {
    if args.piece { Error::of_piece(error) } else { error.into() }
}

/// Returns an error if a signal ended a recorded job early. Live sources and the demo scene are no
/// jobs.
fn cut_short(handles: &Handles) -> Result<(), Error> {
    let Handles { info, progress, .. } = handles;
    let is_job = !info.live && !info.has_truth;
    match signals::exit_status() {
        Some(status) if is_job && progress.cut_short.load(Ordering::SeqCst) => {
            let matched = progress.matched.load(Ordering::Relaxed);
            let all = info.pairs.map_or_else(String::new, |pairs| format!(" of about {pairs}"));
            Err(Error::Stopped(anyhow!("stopped by a signal after {matched}{all} pairs"), status))
        }
        _ => Ok(()),
    }
}

/// Returns no session, or an error if a signal ended a recorded job before anything was matched.
fn stopped_before_a_pair(spec: &SourceSpec) -> Result<Option<Session>, Error> {
    match signals::exit_status() {
        Some(status) if *spec != SourceSpec::Demo && !spec.may_be_live() => {
            Err(Error::Stopped(anyhow!("stopped by a signal before the first pair"), status))
        }
        _ => Ok(None),
    }
}
