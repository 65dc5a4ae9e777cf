//! A run from its settings to its report.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use anyhow::anyhow;

use super::knobs::knobs;
use super::live::handles::Handles;
use super::live::observations::Observations;
use super::live::requests::{Request, Requests};
use super::live::served::Listeners;
#[cfg(feature = "serve")]
use super::live::served::ending;
use super::live::service::{Service, Watchdog};
use super::live::tuning::Tuner;
use super::open::first_pairs::{Chosen, choose_range};
#[cfg(feature = "ros2")]
use super::open::graph;
use super::open::window::{camera_desk, connect_window, span_of, window_options};
use super::open::{engine, outputs, source};
use super::report::{Watch, report, tell_window};
use crate::cli::RunArgs;
use crate::commands::prepare::fit;
use crate::commands::prepare::rig::Cameras;
use crate::commands::{Error, load, signals};
use crate::core::clock::CaptureClock;
use crate::core::control::Control;
use crate::core::memory;
use crate::core::pool::Pool;
use crate::core::thread;
use crate::pipeline::{self, EngineSwap, Outcome, PipelineConfig, Running, Timeline};
#[cfg(feature = "serve")]
use crate::serve::{Live, LiveSink, live};
use crate::settings::{AtEnd, Pace};
use crate::sink::colouring::LiveColouring;
use crate::sink::viewer::{Tuned, Tuning, Viewer};
use crate::source::gst::Keep;
use crate::source::spec::SourceSpec;
use crate::status::Newest;
use crate::window::{Remote, Span, Timing, Window, WindowSink};

/// A running run.
pub struct Session {
    handles: Arc<Handles>,
    running: Running,
    window: Option<Window>,
    /// Times of the window's timeline, or why there is none.
    span: Option<Result<Span, String>>,
    listeners: Listeners,
    #[cfg(feature = "serve")]
    page: Option<Live>,
    files: outputs::Reserved,
    room: memory::Reserved,
}

impl Session {
    /// Opens all parts of a run, and starts the flow of pairs. Returns `None` if it was stopped
    /// meanwhile.
    pub fn start(args: RunArgs) -> Result<Option<Self>, Error> {
        // Prepare: mistakes in the settings and outputs in use are reported before anything is
        // opened.
        let loaded = load(&args.common, args.flags())?;
        let spec = source::named(&args, &loaded.settings.source)?;
        outputs::check(&spec, &loaded)?;
        // The cameras may be those in the recording.
        let cameras =
            Cameras::read(&loaded.settings, Some(&spec)).map_err(|error| match error {
                Error::Failed(error) => of_input(&args, error),
                error => error,
            })?;
        if !loaded.settings.output.clouds.is_empty() {
            cameras.required_by("--clouds")?;
        }
        if !loaded.settings.output.aligned.is_empty() {
            cameras.required_by_aligned()?;
        }
        let (control, requests) = (Control::default(), Requests::default());
        let window = connect_window(loaded.settings.window.mode)?;
        let hangup = requests.clone();
        let reload = Box::new(move || hangup.ask(Request::Reload));
        signals::stop_on_signals(&control, window.as_ref().map(Window::remote), Some(reload))?;
        let listeners = Listeners::bind(&loaded.settings)?;
        let files = outputs::reserve(&loaded.settings)?;

        // Open: in this order, so that earlier output survives if the input cannot be opened.
        let output = &loaded.settings.output;
        let is_seen = window.is_some() || loaded.settings.serve.listen().is_some();
        let is_published = loaded.settings.ros2.namespace().is_some();
        let watched = (is_seen || is_published || output.stream().is_some())
            && !outputs::writes_frames(&loaded.settings);
        let colours = (is_seen || is_published || output.shows_left()).then(Pool::new);
        let keep = Keep { colours, ..Keep::default() };
        let mut frames = args.source.part.frames();
        let first = args.run_in.filter(|_| window.is_none()).map_or(0, |run_in| {
            let first = frames.first;
            frames.first = first.saturating_sub(run_in);
            first
        });
        let source = source::wait_for(&spec, &loaded, watched, frames, &keep, &control);
        let source = source.map_err(|error| of_input(&args, error))?;
        let Some(source) = source else { return stopped_before_a_pair(&spec) };
        let (info, live) = (source.info().clone(), source.live_state());
        let rig = cameras.for_pictures((info.width, info.height))?;
        let chosen = choose_range(&loaded, source, &rig, &control.stop)?;
        let Some(Chosen { loaded, fewest, source, dropped_before }) = chosen else {
            return stopped_before_a_pair(&spec);
        };
        let loaded = loaded.with_white(info.white)?;
        let loaded = if is_seen { loaded.with_confidence()? } else { loaded };
        let (size, part) = ((info.width, info.height), loaded.settings.engine.multiprocessors);
        let mut watchdog = Watchdog::of_manager();
        let mut alive = || watchdog.tick(|_| false);
        let beside = fit::beside(&loaded.settings.output, size);
        let demand = fit::Demand { size, fewest, beside, resized: &|size| spec.resized(size) };
        let loaded = fit::fit_settings(loaded, &demand, &rig, part, &mut alive)?;
        let (engine, room) = engine::open(&loaded, &info, &rig, &keep.pixels)?;
        let clock = live.as_ref().and_then(|live| live.zero()).map(CaptureClock::measure);
        let (settings, range) = (&loaded.settings, loaded.params.range);
        let colouring = LiveColouring::new(settings.colouring(range, rig.pairs.geometry.as_ref()));
        control.suspend_recording.set(settings.output.on_demand);
        let mut sinks = outputs::open(&loaded, &info, &rig, clock, &colouring)?;
        let status = Newest::default();
        #[cfg(feature = "ros2")]
        let graph = {
            let stream = outputs::stream_info(&loaded, &info, &rig, clock);
            let name = &info.description;
            let joined = graph::join(&loaded, name, stream, &control, &requests, &status)?;
            joined.map(|(sink, exchange)| {
                sinks.push(sink);
                exchange
            })
        };
        let observations = Observations::start(&loaded, &info, &rig, &mut sinks);
        let realtime = match settings.source.pace {
            Pace::Auto => watched,
            Pace::Realtime => true,
            Pace::Fast => false,
        };
        // Otherwise pairs come as fast as they are matched, and their time in queues means nothing.
        let clocked = info.live || realtime;
        if let Some(window) = &window {
            let timing = if clocked { Timing::Latency } else { Timing::Engine };
            sinks.push(Box::new(WindowSink::new(window.remote(), timing)));
        }
        let remote = window.as_ref().map(Window::remote);
        let of_window = |remote: &Remote| Arc::new(remote.clone()) as Arc<dyn Viewer>;
        #[cfg(feature = "serve")]
        let page = loaded.settings.serve.listen().map(|_| {
            let requests = requests.clone();
            let page = Live::new(live::Source {
                name: info.description.clone(),
                is_live: info.live,
                control: control.clone(),
                colouring: colouring.clone(),
                clouds: settings.output.clouds(),
                tuned: Tuned {
                    number: None,
                    knobs: knobs(&loaded),
                    since: std::time::Instant::now(),
                    colouring: colouring.get(),
                    problem: None,
                },
                ask: Box::new(move |wanted| requests.ask(Request::Viewer(wanted))),
                clock,
                files: outputs::files_of_frames(settings)
                    .map(|path| path.display().to_string())
                    .collect(),
                settings_file: loaded.settings.window.settings(),
                folder: (&loaded.settings.window.snapshots).into(),
            });
            sinks.push(Box::new(LiveSink::new(page.clone())));
            page
        });
        let viewers = remote.iter().map(of_window);
        #[cfg(feature = "serve")]
        let viewers = viewers.chain(page.iter().map(|page| Arc::new(page.clone()) as _));
        #[cfg(feature = "ros2")]
        let viewers = viewers.chain(graph.map(|exchange| Arc::new(exchange) as _));
        let viewers = viewers.collect();

        let span = window.is_some().then(|| span_of(&info, settings, realtime));
        let stays = settings.window.at_end == AtEnd::Stay;
        let timeline =
            span.as_ref().and_then(|span| span.as_ref().ok()).map(|_| Timeline { stays });
        if timeline.is_some() {
            control.playback.change(|playing| playing.marks = settings.source.marks());
        }

        // Start: pairs flow from here on.
        let swap = EngineSwap::default();
        let (description, on_gpu) = (engine.description(), engine.is_on_device());
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
            timeline,
        };
        let running = pipeline::start(config, &control)?;
        let handles = Arc::new(Handles {
            args,
            in_effect: Mutex::new(loaded),
            control,
            requests,
            remote,
            viewers,
            info,
            live,
            one_stream: spec.is_one_stream(),
            clocked,
            is_movable: timeline.is_some(),
            rig,
            engine: description,
            on_gpu,
            swap,
            colouring,
            observations,
            progress: running.progress.clone(),
            counters: running.counters.clone(),
            dropped_before,
            status,
        });
        handles.renew_status(0.0, Vec::new());
        Ok(Some(Self {
            handles,
            running,
            window,
            span,
            listeners,
            #[cfg(feature = "serve")]
            page,
            files,
            room,
        }))
    }

    /// Waits for the end of the run, and reports. A window stays on this thread.
    pub fn finish(self) -> Result<(), Error> {
        #[cfg(feature = "serve")]
        let page = self.page.clone();
        let Self { handles, running, window, span, listeners, files, room: _room, .. } = self;
        let service = Service::ready();
        #[cfg(feature = "serve")]
        let _servers = listeners.serve(&handles, page.clone())?;
        #[cfg(not(feature = "serve"))]
        listeners.serve(&handles)?;
        let tuner = Tuner::start(&handles)?;
        let (shared, statistics) = (handles.clone(), files.statistics);
        let report = move || {
            let outcome = Watch::new(&shared, service).until_finished(running);
            let written = report(&shared, &outcome, statistics);
            tell_window(&shared, &outcome);
            (outcome, written)
        };
        let (outcome, written) = match window {
            None => report(),
            Some(window) => show(window, span, &handles, report)?,
        };
        tuner.close();
        #[cfg(feature = "serve")]
        page.iter().for_each(|page| page.set_ending(ending(&outcome)));
        match outcome.error {
            Some(error) if outcome.is_of_source => Err(of_input(&handles.args, error)),
            Some(error) => Err(error.into()),
            None => written.and_then(|()| cut_short(&handles)),
        }
    }
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

/// The outcome of a run, and whether it could be reported.
type Reported = (Outcome, Result<(), Error>);

/// Shows the run in its window on this thread, while another thread watches and reports.
fn show(
    window: Window,
    span: Option<Result<Span, String>>,
    handles: &Arc<Handles>,
    report: impl FnOnce() -> Reported + Send + 'static,
) -> anyhow::Result<Reported> {
    let (for_failure, for_panel) = (handles.clone(), handles.clone());
    let cameras = camera_desk(&handles.info.cameras, &window.remote())?;
    let reporter = thread::spawn("reporter", report, move |_| {
        // Otherwise nothing would close the window at the end.
        for_failure.control.stop.set(true);
        for_failure.remote.iter().for_each(Remote::close);
    })?;
    let loaded = handles.loaded();
    let mut options = window_options(&loaded, &handles.info, &handles.rig);
    let ask = Arc::new(move |wanted| for_panel.requests.ask(Request::Viewer(wanted)));
    options.timeline = span.unwrap_or(options.timeline);
    options.cameras = cameras;
    options.tuning = Some(Tuning { knobs: knobs(&loaded), ask });
    let shown = window.run(options, handles.control.clone());
    // If the display is gone, a recording plays on to its end.
    handles.control.playback.change(|playing| playing.is_unattended = true);
    if !handles.control.stop.is_set() {
        handles.control.pause.set(false);
    }
    let (mut outcome, written) = thread::joined("the report of the run", reporter.join())?;
    outcome.error = outcome.error.or(shown.err());
    Ok((outcome, written))
}
