//! Progress of a run: the bar on a terminal, and the status for all faces.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::banners::Banners;
use super::overload::Overload;
use crate::commands::progress_bar;
use crate::commands::run::live::handles::Handles;
use crate::pipeline::{Outcome, Running};
use crate::telemetry::logs;

/// Period in which the bar is updated.
const TICK: Duration = Duration::from_millis(100);

/// Period in which the status is made.
const STATUS_EVERY: Duration = Duration::from_secs(1);

/// Shortest time over which the rate is taken.
const RATE_OVER: Duration = Duration::from_millis(500);

/// Period in which the pipeline's end is checked.
const POLL: Duration = Duration::from_millis(10);

/// Shows the progress of a run.
pub struct Watch<'a> {
    handles: &'a Handles,
    bar: ProgressBar,
    banners: Banners,
    overload: Overload,
    /// The last status, and the pairs matched until then.
    counted: Option<(Instant, u64)>,
    /// Pairs matched a second.
    rate: f64,
}

impl<'a> Watch<'a> {
    /// Creates a watch over a run.
    pub fn new(handles: &'a Handles) -> Self {
        let expected =
            [handles.info.pairs, handles.args.source.limit()].into_iter().flatten().min();
        let bar = progress_bar(expected, handles.args.common.quiet, "pairs");
        Self {
            handles,
            bar,
            banners: Banners::default(),
            overload: Overload::default(),
            counted: None,
            rate: 0.0,
        }
    }

    /// Waits for the end of the run.
    pub fn until_finished(mut self, running: Running) -> Outcome {
        let mut polls = 0;
        while !running.is_finished() {
            if polls % (TICK.as_millis() / POLL.as_millis()) == 0 {
                self.show();
            }
            polls += 1;
            std::thread::sleep(POLL);
        }
        // A run may end between two updates; its last state is shown too.
        self.tell();
        self.show();
        self.bar.finish_and_clear();
        logs::write_above(None);
        running.join()
    }

    fn show(&mut self) {
        let matched = self.handles.progress.matched.load(Ordering::Relaxed);
        // An estimate that is too small must not overrun the bar.
        if self.bar.length().is_some_and(|length| matched > length) {
            self.bar.set_length(matched);
        }
        self.bar.set_position(matched);
        self.overload.look(self.handles);
        if self.counted.is_none_or(|(told, _)| told.elapsed() >= STATUS_EVERY) {
            self.tell();
        }
    }

    /// Makes the status of this moment, and shows it in the window.
    fn tell(&mut self) {
        let Handles { progress, observations, .. } = self.handles;
        let (now, matched) = (Instant::now(), progress.matched.load(Ordering::Relaxed));
        let (then, before) = *self.counted.get_or_insert((now, matched));
        if now - then >= RATE_OVER {
            self.rate = (matched - before) as f64 / (now - then).as_secs_f64();
            self.counted = Some((now, matched));
        }
        let off = observations.alignment().and_then(|state| state.line());
        let off = off.filter(|(_, alarm)| *alarm).map(|(line, _)| line);
        // Cameras that are closed at the end are not lost.
        let ended = progress.source_ended.load(Ordering::Relaxed);
        let live = self.handles.live.as_deref().filter(|_| !ended);
        let banners = self.banners.now(now, live, off, self.handles.one_stream);
        let status = self.handles.renew_status(self.rate, banners);
        self.handles.remote.iter().for_each(|remote| remote.status(status.clone()));
    }
}
