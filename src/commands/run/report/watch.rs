//! Progress of a run: the bar on a terminal, the figures of the viewers.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::banners::Banners;
use super::overload::Overload;
use crate::commands::progress_bar;
use crate::commands::run::live::handles::Handles;
use crate::commands::run::live::service::Service;
use crate::core::warnings;
use crate::pipeline::{Outcome, Running};
use crate::sink::viewer::{Counts, Figures};
use crate::telemetry::logs;

/// Period in which the figures are updated.
const TICK: Duration = Duration::from_millis(100);

/// Period in which the pipeline's end is checked.
const POLL: Duration = Duration::from_millis(10);

/// Shows the progress of a run.
pub struct Watch<'a> {
    handles: &'a Handles,
    bar: ProgressBar,
    service: Option<Service>,
    banners: Banners,
    overload: Overload,
}

impl<'a> Watch<'a> {
    /// Creates a watch over a run, which also informs the service manager.
    pub fn new(handles: &'a Handles, service: Option<Service>) -> Self {
        let expected =
            [handles.info.pairs, handles.args.source.limit()].into_iter().flatten().min();
        let bar = progress_bar(expected, handles.args.common.quiet, "pairs");
        Self { handles, bar, service, banners: Banners::default(), overload: Overload::default() }
    }

    /// Waits for the end of the run.
    pub fn until_finished(mut self, running: Running) -> Outcome {
        let mut polls = 0;
        while !running.is_finished() {
            if polls % (TICK.as_millis() / POLL.as_millis()) == 0 {
                self.show();
            }
            polls += 1;
            self.service.iter_mut().for_each(|service| service.tick(self.handles));
            std::thread::sleep(POLL);
        }
        // A run may end between two updates; its last state is shown too.
        self.service.iter_mut().for_each(|service| service.tick(self.handles));
        self.show();
        self.bar.finish_and_clear();
        logs::write_above(None);
        running.join()
    }

    fn show(&mut self) {
        let Handles { progress, viewers, .. } = self.handles;
        let matched = progress.matched.load(Ordering::Relaxed);
        // An estimate that is too small must not overrun the bar.
        if self.bar.length().is_some_and(|length| matched > length) {
            self.bar.set_length(matched);
        }
        self.bar.set_position(matched);
        self.overload.look(self.handles);
        if !viewers.is_empty() {
            let counts = Counts {
                pairs: progress.pairs.load(Ordering::Relaxed),
                dropped: self.handles.counters.dropped_pairs.load(Ordering::Relaxed),
                unpaired: progress.unpaired.load(Ordering::Relaxed),
                late: (progress.paced()[1].as_secs_f64() * self.handles.info.rate.unwrap_or(0.0))
                    as u64,
            };
            let alignment = self.handles.observations.alignment().and_then(|state| state.line());
            let off = alignment.clone().filter(|(_, alarm)| *alarm).map(|(line, _)| line);
            // Cameras that are closed at the end are not lost.
            let ended = progress.source_ended.load(Ordering::Relaxed);
            let live = self.handles.live.as_deref().filter(|_| !ended);
            let banners = self.banners.now(Instant::now(), live, off, self.handles.one_stream);
            let engine = self.handles.engine.clone();
            let exposure = self.handles.observations.exposure().map(|exposure| exposure.line());
            let warnings = warnings::newest();
            let figures = Figures { engine, counts, alignment, exposure, banners, warnings };
            viewers.iter().for_each(|viewer| viewer.figures(figures.clone()));
        }
    }
}
