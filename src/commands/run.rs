//! `stereod run`: the main job, from two streams to a window and files.

mod banners;
mod first_pairs;
mod knobs;
mod observe;
mod outputs;
pub(super) mod parts;
mod requests;
mod room;
mod service;
mod statistics;
mod tuning;
mod waiting;
mod watch;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::rig::Cameras;
use super::{Error, load, print, read, signals};
use crate::cli::RunArgs;
use crate::clock::CaptureClock;
use crate::control::Control;
use crate::engine;
use crate::pipeline::{self, Matcher, Outcome, Plan, Replacements};
use crate::pool::Pool;
use crate::redact::redact;
use crate::settings::{AtEnd, Loaded, Origin, Pace, Settings, Stats, WindowMode};
use crate::sink::accuracy::{Accuracy, AccuracySink, AccuracySummary};
use crate::sink::alignment::state_of;
use crate::sink::colouring::LiveColouring;
use crate::sink::new_file::NewFile;
use crate::sink::range;
use crate::sink::window::{Remote, Timing, Tuning, Window, WindowSink};
use crate::source::SourceInfo;
use crate::telemetry::progress::Progress;
use crate::thread;
use first_pairs::{Chosen, Compared};
use observe::Observer;
use requests::Requests;
use service::Service;
use statistics::Statistics;
use tuning::Tuner;
use watch::Watch;

/// Runs the command.
///
/// # Errors
/// What is wrong with the settings, or the first thing that failed; files are finished all the same.
pub fn run(args: RunArgs) -> Result<(), Error> {
    let loaded = load(&args.common, args.flags())?;
    let settings = &loaded.settings;
    let named = args.source.spec();
    if named.is_none() {
        settings.source.complete().map_err(Error::usage)?;
    }
    let spec = named.or_else(|| settings.source.spec());
    let spec = spec.ok_or_else(|| Error::explained(crate::cli::source::NO_SOURCE))?;
    settings.output.complete().map_err(Error::usage)?;
    parts::check_outputs(&spec, &loaded).map_err(Error::Usage)?;
    outputs::check_stream(&settings.output)?;
    let cameras = Cameras::read(settings)?;

    let control = Control::default();
    let window = connect_window(settings.window.mode)?;
    let remote = window.as_ref().map(Window::remote);
    let requests = Requests::default();
    let (reload, asked) = (requests.clone(), requests.clone());
    signals::stop_on_signals(&control, remote.clone(), Some(Box::new(move || reload.reload())))?;
    let listener = observe::listen(&settings.metrics)?;
    let reserved = outputs::reserve(&settings.output)?;

    // In this order, so that earlier output is intact where the input cannot be opened.
    let watched = window.is_some() || settings.output.stream().is_some();
    let endless_demo = watched
        && !settings.output.any_frames()
        && *loaded.origin("demo", "frames") == Origin::Default;
    let pictures = Pool::new();
    let source = waiting::until_there(settings.source.wait(), &control.stop, || {
        parts::open_source(&spec, &loaded, endless_demo, &pictures, &control)
    })?;
    let Some(source) = source else {
        tracing::info!("stopped before the source was there");
        return Ok(());
    };
    let single = spec.is_one_stream();
    let info = source.info().clone();
    let live = source.live_state();
    tracing::info!("{}", parts::describe(&info));
    let rig = cameras.for_pictures((info.width, info.height))?;
    let options = settings.engine.options();
    let source = Box::new(Compared::new(source));
    let chosen = first_pairs::choose_range(&loaded, source, &rig, options.cpu, &control.stop)?;
    let Some(Chosen { loaded, source, dropped: dropped_before }) = chosen else {
        tracing::info!("stopped before the first pairs were there");
        return Ok(());
    };
    let (settings, params) = (&loaded.settings, &loaded.params);
    let choice = settings.engine.kind;
    let engine = engine::create(choice, params, rig.size, rig.rectifier.as_ref(), &options)?;
    let _room = room::reserve(&settings.queue, (info.width, info.height), rig.size, engine.depth())
        .map_err(anyhow::Error::from)?;
    // Only a device of its own has memory that pictures had better lie in.
    let on_gpu = engine.picture_memory().is_some();
    if let Some(memory) = engine.picture_memory() {
        pictures.take_from(memory);
    }
    let engine_name = engine.description();
    tracing::info!("matching on {engine_name}");

    let clock = live.as_ref().and_then(|live| live.zero()).map(CaptureClock::measure);
    let colouring = LiveColouring::new(settings.colour.colouring(loaded.params.range));
    let mut sinks = outputs::open(&loaded, &info, &rig, clock, &colouring)?;
    let accuracy = Arc::new(Mutex::new(Accuracy::default()));
    if info.has_truth {
        sinks.push(Box::new(AccuracySink::new(accuracy.clone())));
    }
    let (alignment, limits) = parts::watch_alignment(&loaded, &rig, &mut sinks)?.unzip();
    let too_few = parts::watch_range(&loaded, &mut sinks);
    let vitals = observe::watch_vitals(&settings.metrics, &mut sinks);
    let realtime = match settings.source.pace {
        Pace::Auto => watched && !settings.output.any_frames(),
        Pace::Realtime => true,
        Pace::Fast => false,
    };
    // Else pairs come as fast as they are matched, and what they wait in queues says nothing.
    let clocked = info.live || realtime;
    let timing = if clocked { Timing::Latency } else { Timing::Engine };
    if let Some(remote) = &remote {
        sinks.push(Box::new(WindowSink::new(remote.clone(), timing)));
    }

    let progress = Arc::new(Progress::new());
    let replacements = Replacements::default();
    let plan = Plan {
        source,
        matcher: Matcher { engine, candidates: Some(loaded.params.range) },
        replacements: replacements.clone(),
        geometry: rig.geometry,
        sinks,
        pair_room: settings.queue.pairs,
        result_room: settings.queue.results,
        limit: args.source.limit(),
        realtime,
    };
    let running = pipeline::start(plan, control.clone(), progress.clone())?;
    let observer = Arc::new(Observer {
        info: info.clone(),
        clocked,
        engine: engine_name.clone(),
        progress: progress.clone(),
        control: control.clone(),
        alignment: alignment.clone(),
        vitals,
        live: live.clone(),
        counters: running.counters(),
        patience_us: AtomicU64::default(),
    });
    observer.set_patience(settings.metrics.unhealthy());
    let service = Service::ready(observer.clone());
    let _metrics = observe::serve(listener, &settings.metrics, &observer)?;
    let tuned = tuning::Parts {
        rig: rig.clone(),
        on_gpu,
        replacements,
        colouring,
        limits,
        observer,
        remote: remote.clone(),
        verbosity: args.common.verbosity(),
        read: Box::new(again(&args)),
    };
    let (tuner, in_effect) = Tuner::start(loaded.clone(), tuned, requests)?;

    let report = {
        let (info, progress) = (info.clone(), progress.clone());
        let (engine_name, quiet) = (engine_name.clone(), args.common.quiet);
        let expected = [info.pairs, args.source.limit()].into_iter().flatten().min();
        let at_end = settings.window.at_end;
        let file = reserved.statistics;
        let (remote, control) = (remote.clone(), control.clone());
        move || {
            let watch = Watch::new(expected, quiet, remote.clone(), engine_name.clone())
                .with_alignment(alignment.clone())
                .with_live(live.clone(), single)
                .with_service(service);
            let mut outcome = watch.until_finished(running, &progress);
            outcome.dropped += dropped_before.load(Ordering::Relaxed);
            let loaded = in_effect.now();
            let mut statistics =
                account(&loaded, (&info, clocked), &outcome, &progress, engine_name, &accuracy);
            statistics.too_few_disparities = range::found(&too_few);
            statistics.alignment = alignment.as_ref().map(|shared| state_of(shared).summary());
            statistics.live = live.map(|live| live.summary());
            let written = report(&statistics, &loaded.settings, file);
            tell_window(remote.as_ref(), &outcome, at_end, &control);
            (outcome, written)
        }
    };

    let (outcome, written) = match window {
        None => report(),
        Some(window) => {
            let (stop, to_close) = (control.stop.clone(), remote.clone());
            let reporter = thread::spawn("reporter", report, move |_| {
                // Nobody is left who would close the window at the end.
                stop.set(true);
                to_close.iter().for_each(Remote::close);
            });
            let reporter = reporter.map_err(anyhow::Error::from)?;
            let mut options = parts::window_options(&loaded, &info, &rig);
            let ask = Arc::new(move |wanted| asked.ask_for(wanted));
            options.tuning = Some(Tuning { knobs: knobs::knobs(&loaded), ask });
            let shown = window.run(options, control);
            let reported = thread::joined("the report of the run", reporter.join());
            let (mut outcome, written) = reported.map_err(anyhow::Error::from)?;
            outcome.error = outcome.error.or(shown.err());
            (outcome, written)
        }
    };
    tuner.close();
    match outcome.error {
        Some(error) => Err(error.into()),
        None => written,
    }
}

/// Reads the settings as they were read at the start.
fn again(args: &RunArgs) -> impl Fn() -> Result<Loaded, Error> + Send + use<> {
    let (common, flags, source) = (args.common.clone(), args.flags(), args.source.spec());
    move || {
        let (_, loaded) = read(&common, flags.clone())?;
        if source.is_none() {
            loaded.settings.source.complete().map_err(Error::usage)?;
        }
        Ok(loaded)
    }
}

/// A window where there is a display and one is wanted.
pub(super) fn connect_window(mode: WindowMode) -> Result<Option<Window>, Error> {
    if mode == WindowMode::Off {
        return Ok(None);
    }
    match Window::connect() {
        Ok(window) => Ok(Some(window)),
        Err(error) if mode == WindowMode::On => {
            Err(error.context("cannot open a window; use --headless to run without one").into())
        }
        Err(error) => {
            tracing::info!("no window, running headless: {error:#}");
            Ok(None)
        }
    }
}

/// What the window does once the pipeline has ended.
fn tell_window(remote: Option<&Remote>, outcome: &Outcome, at_end: AtEnd, control: &Control) {
    let Some(remote) = remote else { return };
    match &outcome.error {
        _ if signals::interrupted() => remote.close(),
        // The user has closed it, or is about to.
        None if control.stop.is_set() => {}
        Some(error) if at_end == AtEnd::Stay => remote.failed(redact(&format!("{error:#}"))),
        None if at_end == AtEnd::Stay => remote.ended(),
        _ => remote.close(),
    }
}

/// The account of a finished run.
fn account(
    loaded: &Loaded,
    source: (&SourceInfo, bool),
    outcome: &Outcome,
    progress: &Progress,
    engine: String,
    accuracy: &Mutex<Accuracy>,
) -> Statistics<AccuracySummary> {
    let that_mattered = serde_json::json!({
        "matching": loaded.values()["matching"],
        "engine": loaded.values()["engine"],
        "source": loaded.values()["source"],
    });
    let accuracy = accuracy.lock().unwrap_or_else(PoisonError::into_inner).summary();
    Statistics::new(source, outcome, progress, engine, that_mattered, accuracy)
}

/// Statistics for people on standard output, or for programs where they were asked for.
fn report(
    statistics: &Statistics<AccuracySummary>,
    settings: &Settings,
    file: Option<NewFile>,
) -> Result<(), Error> {
    let json = || format!("{}\n", serde_json::to_string(statistics).expect("plain values"));
    if let Some(file) = file {
        file.finish_with(json().as_bytes())?;
    }
    match settings.output.stats() {
        Some(Stats::Stdout) => print(json()),
        _ => print(format!("{statistics}\n")),
    }
}
