//! The window of a run.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::{Bound, Face, Joined, Shows};
use crate::devices;
use crate::pipeline::Outcome;
use crate::run::knobs::knobs;
use crate::run::live::handles::Handles;
use crate::run::live::opened::Opened;
use crate::run::open::outputs;
use crate::run::prepare::rig::Rig;
use crate::run::{Error, signals, told};
use crate::settings::{Loaded, Settings, WindowMode};
use crate::viewer::Tuning;
use crate::window::{CameraDesk, Remote, Timing, Window, WindowOptions, WindowSink};
use stereod_core::thread;
use stereod_io::camera::CameraInput;
use stereod_io::sink::Sink;
use stereod_io::source::SourceInfo;
use stereod_io::source::v4l2::Adjuster;

pub fn bind(settings: &Settings, rigs: &[String]) -> Bound {
    if rigs.len() > 1 {
        if settings.window.mode == WindowMode::On {
            return Err(Error::usage(
                "a window shows one rig, and the configuration has several: show one of them with --rig NAME, \
                 or all in a browser with --serve PORT",
            ));
        }
        return Ok(None);
    }
    let window = connect_window(settings.window.mode)?;
    Ok(window.map(|window| {
        let shown = Shown { remote: window.remote(), window: Some(window), thread: None };
        Box::new(shown) as Box<dyn Face>
    }))
}

struct Shown {
    /// `None` once it is shown.
    window: Option<Window>,
    remote: Remote,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Face for Shown {
    fn remote(&self) -> Option<Remote> {
        Some(self.remote.clone())
    }

    fn shows(&self) -> Shows {
        Shows::Confidence
    }

    fn join(&mut self, run: &Opened, sinks: &mut Vec<Box<dyn Sink>>) -> anyhow::Result<Joined> {
        let timing = if run.is_clocked() { Timing::Latency } else { Timing::Engine };
        sinks.push(Box::new(WindowSink::new(self.remote.clone(), timing)));
        Ok(Some(Arc::new(self.remote.clone())))
    }

    fn moves(&self) -> bool {
        true
    }

    fn serve(&mut self, handles: &Arc<Handles>) -> anyhow::Result<()> {
        let Some(window) = self.window.take() else { return Ok(()) };
        let loaded = handles.loaded();
        let for_panel = handles.clone();
        let ask = Arc::new(move |wanted| for_panel.requests.ask(wanted));
        let mut options = window_options(&loaded, &handles.info, &handles.rig);
        options.timeline = handles.span.clone();
        options.holds_pair = handles.is_movable;
        options.cameras = camera_desk(&handles.info.cameras, &self.remote)?;
        options.recorder = outputs::recorder(&loaded.settings, handles.control.recordings.clone());
        options.zones = handles.finding.zones.clone();
        options.tuning = Some(Tuning { knobs: knobs(&loaded), ask });
        let control = handles.control.clone();
        let is_served = loaded.settings.serve.listen().is_some();
        let show = move || {
            let shown = window.run(options, control.clone());
            // If the display is lost, a recording plays on to its end, unless it is on the page, too.
            if !is_served {
                control.playback.change(|playing| playing.is_unattended = true);
                if !control.stop.is_set() {
                    control.pause.set(false);
                }
            }
            shown
        };
        let stop = handles.control.stop.clone();
        self.thread = Some(thread::spawn("shown window", show, move |_| stop.set(true))?);
        Ok(())
    }

    fn end(&mut self, handles: &Handles, outcome: &mut Outcome) {
        let stays = handles.stays();
        match &outcome.error {
            _ if signals::interrupted() => self.remote.close(),
            // The user has closed it, or is about to.
            None if handles.control.stop.is_set() => {}
            Some(error) if stays => self.remote.failed(told(error)),
            None if stays => self.remote.ended(),
            _ => self.remote.close(),
        }
        let shown = self.thread.take().map(|thread| thread::joined("the window", thread.join()));
        let failure = match shown {
            None | Some(Ok(Ok(()))) => return,
            Some(Ok(Err(error))) => error,
            Some(Err(broken)) => broken.into(),
        };
        outcome.error.get_or_insert(failure);
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.remote.close();
            // Its failure does not matter any more.
            let _ = thread.join();
        }
    }
}

pub fn connect_window(mode: WindowMode) -> Result<Option<Window>, Error> {
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

/// Starts the threads that adjust the cameras and report to the window; `None` without cameras.
pub fn camera_desk(inputs: &[CameraInput], remote: &Remote) -> std::io::Result<Option<CameraDesk>> {
    if inputs.is_empty() {
        return Ok(None);
    }
    let start = |(place, input): (usize, &CameraInput)| {
        let remote = remote.clone();
        Adjuster::start(&input.name, move |report| remote.camera(place, report))
    };
    let adjusters = inputs.iter().enumerate().map(start).collect::<std::io::Result<Vec<_>>>()?;
    let watched = Arc::new(adjusters);
    let set = watched.clone();
    Ok(Some(CameraDesk {
        inputs: inputs.to_vec(),
        watch: Arc::new(move |is_watched| watched.iter().for_each(|one| one.watch(is_watched))),
        set: Arc::new(move |place, number, values| {
            set.get(place).into_iter().for_each(|one| one.set(number, values));
        }),
    }))
}

pub fn window_options(loaded: &Loaded, info: &SourceInfo, rig: &Rig) -> WindowOptions {
    let (settings, range) = (&loaded.settings, loaded.params.range);
    let title = format!("stereod: {}", info.description);
    let picture = (rig.pairs.size.0 as u32, rig.pairs.size.1 as u32);
    let mut options = WindowOptions::new(title, picture, range);
    options.colour_range = settings.colour_range(range, rig.pairs.geometry.as_ref());
    options.clouds = settings.output.clouds();
    options.colour_map = settings.colour.map;
    options.view = settings.window.view;
    options.snapshot_dir = (&settings.window.snapshots).into();
    options.full_screen = settings.window.full_screen;
    options.devices = devices::text;
    options
}
