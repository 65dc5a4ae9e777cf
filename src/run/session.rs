//! A run from its settings to its report.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::anyhow;

use super::faces::service::Watchdog;
use super::faces::{Faces, Rigs, Shows};
use super::live::finding::Finding;
use super::live::handles::Handles;
use super::live::observations::Observations;
use super::live::opened::Opened;
use super::live::requests::Requests;
use super::live::tuning::Tuner;
use super::open::first_pairs::{Chosen, choose_range};
use super::open::links::Links;
use super::open::{engine, map, obstacles, outputs, source};
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
use stereod_io::source::excerpt::Frames;
use stereod_io::source::gst::Keep;
use stereod_io::source::live::LiveState;
use stereod_io::source::spec::SourceSpec;
use stereod_io::source::{Source, SourceInfo};

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
        let (control, requests) = (Control::default(), Requests::default());
        let alone =
            || Rigs::bind(&loaded.settings, vec![args.common.rig.clone().unwrap_or_default()]);
        let (rigs, number) = rigs.map_or_else(|| Ok::<_, Error>((alone()?, 0)), Ok)?;
        let mut faces = Faces::bind(&loaded.settings, &rigs, number)?;
        // A window may turn out not to be there.
        outputs::check_on_demand(&loaded.settings, faces.window().is_some())?;
        obey_signals(&control, &requests, &faces)?;
        let files = outputs::reserve(&loaded.settings)?;

        // Open: in this order, so that earlier output survives if the input cannot be opened.
        let input = Input::open(&args, &spec, &loaded, cameras, &faces, &control)?;
        let Some(input) = input else { return stopped_before_a_pair(&spec) };
        let Input { source, loaded, live, rig, keep, first, realtime, .. } = input;
        let info = source.info().clone();
        let (engine, room) = engine::open(&loaded, &info, &rig, &keep.pixels)?;
        let (settings, geometry) = (&loaded.settings, rig.pairs.geometry.as_ref());
        let colouring = LiveColouring::new(settings.colouring(loaded.params.range, geometry));
        if settings.output.on_demand {
            control.recordings.stop();
        }
        let returns = source::replayed_rate(&info, settings).is_ok();
        let span = source::span_of(&info, settings, args.source.limit(), realtime);
        let run = Opened {
            name: rigs.names[number].clone(),
            rigs: rigs.names.clone(),
            in_effect: Mutex::new(loaded.clone()),
            control,
            requests,
            finding: Finding::default(),
            remote: faces.window(),
            info,
            clock: live.as_ref().and_then(|live| live.zero()).map(CaptureClock::measure),
            live,
            one_stream: spec.is_one_stream(),
            realtime,
            span,
            returns,
            rig,
            colouring,
            status: Newest::default(),
            args,
        };
        let mut links = Links::open(&loaded, &run)?;
        let find = obstacles::finder(&loaded, &run, links.boxes.take())?;
        let mut sinks = outputs::open(&run, &loaded)?;
        obstacles::add(&mut sinks, &loaded, &run)?;
        map::add(&mut sinks, &loaded, &run)?;
        sinks.extend(links.into_sinks());
        let observations = Observations::start(&run, &loaded, input.warnings, &mut sinks);
        let viewers = faces.join(&run, &mut sinks)?;

        // Start: pairs flow from here on.
        let (swap, description, choice) =
            (EngineSwap::default(), engine.description(), engine.choice());
        let timeline = faces.timeline(&run);
        let is_movable = timeline.is_some();
        let config = PipelineConfig {
            source,
            engine,
            swap: swap.clone(),
            find,
            sinks,
            pair_room: loaded.settings.queue.pairs,
            result_room: loaded.settings.queue.results,
            first,
            limit: run.args.source.limit(),
            realtime,
            timeline,
        };
        let running = pipeline::start(config, &run.control)?;
        let handles = Arc::new(Handles {
            run,
            viewers,
            is_movable,
            engine: description,
            choice,
            swap,
            observations,
            progress: running.progress.clone(),
            counters: running.counters.clone(),
            dropped_before: input.dropped_before,
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

/// The source of a run, the settings that its first pairs complete, and the cameras.
struct Input {
    source: Box<dyn Source>,
    loaded: Loaded,
    live: Option<Arc<LiveState>>,
    rig: Rig,
    keep: Keep,
    /// Number of the first pair that is handed out.
    first: u64,
    realtime: bool,
    warnings: Warnings,
    dropped_before: Arc<AtomicU64>,
}

impl Input {
    /// Returns `None` if the run was stopped meanwhile.
    fn open(
        args: &RunArgs,
        spec: &SourceSpec,
        loaded: &Loaded,
        cameras: Cameras<'_>,
        faces: &Faces,
        control: &Control,
    ) -> Result<Option<Self>, Error> {
        let output = &loaded.settings.output;
        let watched = (faces.show(Shows::Images) || output.stream().is_some())
            && !outputs::writes_frames(&loaded.settings);
        let pace = loaded.settings.source.pace;
        let realtime = matches!((pace, watched), (Pace::Realtime, _) | (Pace::Auto, true));
        let needs_colour = faces.show(Shows::Images)
            || output.shows_left()
            || loaded.settings.engine.wants_colour();
        let keep = Keep { colours: needs_colour.then(Pool::new), ..Keep::default() };
        let (frames, first) = part(args, faces);
        let open = || source::open_source(spec, loaded, watched, frames, &keep, control);
        let longest = loaded.settings.source.wait();
        if spec.may_be_live() && !longest.is_zero() {
            // The first attempt may take long.
            faces.wait("waiting for the source")?;
        }
        let source = source::wait_for(longest, &control.stop, open, |why| faces.wait(why));
        let Some(source) = source.map_err(|error| of_input(args, error))? else { return Ok(None) };
        let (info, live) = (source.info().clone(), source.live_state());
        let rig = cameras.for_pictures(info.sizes())?;
        let warnings = Warnings::default();
        let chosen = choose_range(loaded, source, &rig, &control.stop, &warnings)?;
        let Some(Chosen { loaded, fewest, source, dropped_before }) = chosen else {
            return Ok(None);
        };
        let loaded = loaded.with_white(info.white)?;
        let loaded = if faces.show(Shows::Confidence) { loaded.with_confidence()? } else { loaded };
        let loaded = fitted(loaded, spec, fewest, &info, &rig)?;
        Ok(Some(Self {
            source,
            loaded,
            live,
            rig,
            keep,
            first,
            realtime,
            warnings,
            dropped_before,
        }))
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
    if loaded.settings.finds_obstacles() {
        cameras.required_by("finding obstacles")?;
    }
    if loaded.params.odometry {
        cameras.required_by("odometry")?;
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

/// Returns an error if a signal, or the user in the window, ended a recorded job early. Live sources and the demo scene are
/// no jobs, nor is a recording that is only looked at in the window.
fn cut_short(handles: &Handles) -> Result<(), Error> {
    let (info, progress) = (&handles.info, &handles.progress);
    let is_job = !info.live && !info.has_truth;
    if !is_job || !progress.cut_short.load(Ordering::SeqCst) {
        return Ok(());
    }
    let writes = || outputs::writes_frames(&handles.loaded().settings);
    let (by, status) = match signals::exit_status() {
        Some(status) => ("by a signal", status),
        None if writes() => ("in the window", signals::INTERRUPTED),
        None => return Ok(()),
    };
    let matched = progress.matched.load(Ordering::Relaxed);
    let all = info.pairs.map_or_else(String::new, |pairs| format!(" of about {pairs}"));
    Err(Error::Stopped(anyhow!("stopped {by} after {matched}{all} pairs"), status))
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
