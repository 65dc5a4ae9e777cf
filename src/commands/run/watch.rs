//! Watching a run: the progress bar on a terminal, the figures in the window.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::banners::Banners;
use super::service::Service;
use crate::pipeline::{Outcome, Running};
use crate::sink::alignment;
use crate::sink::window::{Counts, Remote, WindowStats};
use crate::source::live::LiveState;
use crate::telemetry::progress::Progress;
use crate::telemetry::{logs, stderr};

/// How often the figures are brought up to date.
const TICK: Duration = Duration::from_millis(100);

/// How often the pipeline is asked whether it has ended.
const POLL: Duration = Duration::from_millis(10);

/// Shows how far a run is.
pub struct Watch {
    bar: ProgressBar,
    remote: Option<Remote>,
    engine: String,
    alignment: Option<alignment::Shared>,
    service: Option<Service>,
    live: Option<Arc<LiveState>>,
    /// Whether both eyes come in one stream.
    single: bool,
    banners: Banners,
}

impl Watch {
    /// A watch over a run of `expected` pairs, where known.
    pub fn new(expected: Option<u64>, quiet: bool, remote: Option<Remote>, engine: String) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { stderr::draw_target() };
        let bar = ProgressBar::with_draw_target(expected, target);
        let template = match expected {
            Some(_) => "{wide_bar} {pos}/{len} pairs, {per_sec}, {eta} left",
            None => "{spinner} {pos} pairs, {per_sec}, {elapsed}",
        };
        bar.set_style(ProgressStyle::with_template(template).expect("a valid template"));
        logs::write_above(Some(bar.clone()));
        let (live, single, banners) = (None, false, Banners::default());
        Self { bar, remote, engine, alignment: None, service: None, live, single, banners }
    }

    /// The same, which also shows how the cameras fare; `single`: both eyes come in one stream.
    pub fn with_live(mut self, live: Option<Arc<LiveState>>, single: bool) -> Self {
        (self.live, self.single) = (live, single);
        self
    }

    /// The same, which also shows how the eyes are aligned.
    pub fn with_alignment(mut self, alignment: Option<alignment::Shared>) -> Self {
        self.alignment = alignment;
        self
    }

    /// The same, which also tells the service manager.
    pub fn with_service(mut self, service: Option<Service>) -> Self {
        self.service = service;
        self
    }

    /// Waits for the end of the run.
    pub fn until_finished(mut self, running: Running, progress: &Progress) -> Outcome {
        let mut polls = 0;
        while !running.is_finished() {
            if polls % (TICK.as_millis() / POLL.as_millis()) == 0 {
                self.show(&running, progress);
            }
            polls += 1;
            if let Some(service) = &mut self.service {
                service.tick();
            }
            std::thread::sleep(POLL);
        }
        if let Some(service) = &mut self.service {
            // A run may end between two looks; its end is told all the same.
            service.tick();
        }
        self.show(&running, progress);
        self.bar.finish_and_clear();
        logs::write_above(None);
        running.join()
    }

    fn show(&mut self, running: &Running, progress: &Progress) {
        let matched = progress.matched.load(Ordering::Relaxed);
        // An estimate that turns out too small must not make the bar run over.
        if self.bar.length().is_some_and(|length| matched > length) {
            self.bar.set_length(matched);
        }
        self.bar.set_position(matched);
        if let Some(remote) = &self.remote {
            let counts = Counts {
                pairs: progress.pairs.load(Ordering::Relaxed),
                dropped: running.dropped(),
                unpaired: progress.unpaired.load(Ordering::Relaxed),
            };
            let alignment = self.alignment.as_ref().map(alignment::state_of);
            let alignment = alignment.and_then(|state| state.line());
            let off = alignment.clone().filter(|(_, alarm)| *alarm).map(|(line, _)| line);
            // Cameras that are let go at the end are not lost.
            let ended = progress.source_ended.load(Ordering::Relaxed);
            let live = self.live.as_deref().filter(|_| !ended);
            let banners = self.banners.now(Instant::now(), live, off, self.single);
            let engine = self.engine.clone();
            remote.stats(WindowStats { engine, counts, alignment, banners });
        }
    }
}
