//! The window of a run.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::{Bound, Face, Joined, Opened, Shows};
use crate::commands::run::knobs::knobs;
use crate::commands::run::live::handles::Handles;
use crate::commands::run::open::window::{camera_desk, connect_window, span_of, window_options};
use crate::commands::{signals, told};
use crate::pipeline::{Outcome, Timeline};
use crate::settings::{AtEnd, Settings};
use crate::viewer::Tuning;
use crate::window::{Remote, Span, Timing, Window, WindowSink};
use stereod_core::thread;
use stereod_io::sink::Sink;

/// Connects to the display, if there is one and a window is wanted.
pub fn bind(settings: &Settings) -> Bound {
    let window = connect_window(settings.window.mode)?;
    Ok(window.map(|window| {
        let (remote, span) = (window.remote(), Err(String::new()));
        let shown = Shown { window: Some(window), remote, span, stays: false, thread: None };
        Box::new(shown) as Box<dyn Face>
    }))
}

struct Shown {
    /// `None` once it is shown.
    window: Option<Window>,
    remote: Remote,
    /// Set if it shows the last pair until its user closes it.
    stays: bool,
    /// Times of the timeline, or why there is none.
    span: Result<Span, String>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Face for Shown {
    fn remote(&self) -> Option<Remote> {
        Some(self.remote.clone())
    }

    fn shows(&self) -> Shows {
        Shows::Confidence
    }

    fn join(&mut self, run: &Opened<'_>, sinks: &mut Vec<Box<dyn Sink>>) -> anyhow::Result<Joined> {
        let settings = &run.loaded.settings;
        let clocked = run.info.live || run.realtime;
        let timing = if clocked { Timing::Latency } else { Timing::Engine };
        sinks.push(Box::new(WindowSink::new(self.remote.clone(), timing)));
        self.span = span_of(run.info, settings, run.realtime);
        self.stays = settings.window.at_end == AtEnd::Stay;
        if self.span.is_ok() {
            run.control.playback.change(|playing| playing.marks = settings.source.marks());
        }
        Ok(Some(Arc::new(self.remote.clone())))
    }

    fn timeline(&self) -> Option<Timeline> {
        self.span.is_ok().then_some(Timeline { stays: self.stays })
    }

    fn serve(&mut self, handles: &Arc<Handles>) -> anyhow::Result<()> {
        let Some(window) = self.window.take() else { return Ok(()) };
        let loaded = handles.loaded();
        let for_panel = handles.clone();
        let ask = Arc::new(move |wanted| for_panel.requests.ask(wanted));
        let mut options = window_options(&loaded, &handles.info, &handles.rig);
        options.timeline = self.span.clone();
        options.cameras = camera_desk(&handles.info.cameras, &self.remote)?;
        options.tuning = Some(Tuning { knobs: knobs(&loaded), ask });
        let control = handles.control.clone();
        let show = move || {
            let shown = window.run(options, control.clone());
            // If the display is lost, a recording plays on to its end.
            control.playback.change(|playing| playing.is_unattended = true);
            if !control.stop.is_set() {
                control.pause.set(false);
            }
            shown
        };
        let stop = handles.control.stop.clone();
        self.thread = Some(thread::spawn("shown window", show, move |_| stop.set(true))?);
        Ok(())
    }

    fn end(&mut self, handles: &Handles, outcome: &mut Outcome) {
        // A changed configuration may have changed it.
        let stays = handles.loaded().settings.window.at_end == AtEnd::Stay;
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
