//! Progress of a run: the bar on a terminal, and the status for all faces with banners on current troubles.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::overload::Overload;
use crate::pipeline::{Outcome, Running};
use crate::run::live::handles::Handles;
use crate::run::progress_bar;
use crate::status::Banner;
use crate::telemetry::logs;
use stereod_core::frame::Eye;
use stereod_io::source::live::LiveState;

/// Period in which the bar is updated.
const TICK: Duration = Duration::from_millis(100);

const STATUS_EVERY: Duration = Duration::from_secs(1);

/// Shortest time over which the rate is taken.
const RATE_OVER: Duration = Duration::from_millis(500);

/// Said at the end of a run that only the page shows.
pub const WAITS: &str = "the recording is at its end and waits to be seen on the page: Ctrl-C ends it, and with \
                         --set window.at_end=close it ends by itself";

pub struct Watch<'a> {
    handles: &'a Handles,
    bar: ProgressBar,
    banners: Banners,
    overload: Overload,
    /// The last status, and the pairs matched until then.
    counted: Option<(Instant, u64)>,
    rate: f64,
    /// Set once people know that the recording waits at its end.
    has_waited: bool,
}

impl<'a> Watch<'a> {
    pub fn new(handles: &'a Handles) -> Self {
        let expected =
            [handles.info.pairs, handles.args.source.limit()].into_iter().flatten().min();
        // Bars of several rigs would overwrite each other.
        let is_quiet = handles.args.common.quiet || handles.rigs.len() > 1;
        let bar = progress_bar(expected, is_quiet, "pairs");
        Self {
            handles,
            bar,
            banners: Banners::default(),
            overload: Overload::default(),
            counted: None,
            rate: 0.0,
            has_waited: false,
        }
    }

    pub fn until_finished(mut self, running: Running) -> Outcome {
        let mut polls = 0;
        while !running.is_finished() {
            if polls % (TICK.as_millis() / crate::run::TICK.as_millis()) == 0 {
                self.show();
            }
            polls += 1;
            std::thread::sleep(crate::run::TICK);
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
        let Handles { run, .. } = self.handles;
        if run.remote.is_none() && run.control.playback.playing().is_at_end && !self.has_waited {
            self.has_waited = true;
            tracing::info!("{WAITS}");
        }
        self.overload.look(self.handles);
        if self.counted.is_none_or(|(told, _)| told.elapsed() >= STATUS_EVERY) {
            self.tell();
        }
    }

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

/// Time for which the end of a trouble is shown.
const OVER: Duration = Duration::from_secs(5);

/// State of both cameras of a live source.
#[derive(Debug, Default)]
pub struct Banners {
    eyes: [Fate; 2],
}

#[derive(Clone, Copy, Debug, Default)]
enum Fate {
    #[default]
    Well,
    LostSince(Instant),
    /// Since when it is back, and how long it was away.
    Back(Instant, Duration),
}

impl Banners {
    /// Returns the banners of this moment. `rows_off`: the misalignment, if any; `single`: both
    /// views come in one stream.
    pub fn now(
        &mut self,
        now: Instant,
        live: Option<&LiveState>,
        rows_off: Option<String>,
        single: bool,
    ) -> Vec<Banner> {
        let mut banners = Vec::new();
        if let Some(live) = live {
            for (eye, fate) in Eye::BOTH.into_iter().zip(&mut self.eyes) {
                let name = if single { "camera".to_owned() } else { format!("{eye} camera") };
                banners.extend(fate.follow(now, live.eye(eye).summary().lost, &name));
            }
            let lost = self.eyes.iter().any(|fate| matches!(fate, Fate::LostSince(_)));
            let sync = live.trouble();
            // A lost camera leaves the other one without partners.
            banners.extend(sync.filter(|_| !lost).map(trouble));
        }
        banners.extend(rows_off.map(|how| trouble(format!("the views are not aligned: {how}"))));
        banners
    }
}

impl Fate {
    fn follow(&mut self, now: Instant, lost: bool, name: &str) -> Option<Banner> {
        *self = match *self {
            Fate::LostSince(since) if !lost => Fate::Back(now, now - since),
            Fate::LostSince(since) => Fate::LostSince(since),
            _ if lost => Fate::LostSince(now),
            Fate::Back(since, _) if now - since >= OVER => Fate::Well,
            fate => fate,
        };
        match *self {
            Fate::Well => None,
            Fate::LostSince(since) => {
                let seconds = (now - since).as_secs();
                Some(trouble(format!("{name} lost, trying again (for {seconds} s)")))
            }
            Fate::Back(_, away) => {
                let text = format!("{name} back after {:.0} s", away.as_secs_f64());
                Some(Banner { text, trouble: false })
            }
        }
    }
}

fn trouble(text: String) -> Banner {
    Banner { text, trouble: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_told_while_it_lasts_and_its_end_for_a_while() {
        let (live, start) = (LiveState::default(), Instant::now());
        let mut banners = Banners::default();
        let mut told = |seconds: f64| -> Vec<(String, bool)> {
            let now = start + Duration::from_secs_f64(seconds);
            let all = banners.now(now, Some(&live), None, false);
            all.into_iter().map(|banner| (banner.text, banner.trouble)).collect()
        };
        assert_eq!(told(0.0), []);
        live.eye(Eye::Right).note_lost(start);
        assert_eq!(told(1.0), [("right camera lost, trying again (for 0 s)".into(), true)]);
        assert_eq!(told(13.4), [("right camera lost, trying again (for 12 s)".into(), true)]);
        live.eye(Eye::Left).note_lost(start);
        assert_eq!(told(14.0).len(), 2);
        live.eye(Eye::Right).note_back();
        live.eye(Eye::Left).note_back();
        let back = [
            ("left camera back after 1 s".into(), false),
            ("right camera back after 14 s".into(), false),
        ];
        assert_eq!(told(15.0), back);
        assert_eq!(told(19.9), back);
        assert_eq!(told(20.1), []);
    }

    #[test]
    fn rows_and_one_stream_have_their_words() {
        let live = LiveState::default();
        live.eye(Eye::Left).note_lost(Instant::now());
        let mut banners = Banners::default();
        let all = banners.now(Instant::now(), Some(&live), Some("rows 3.2 px".into()), true);
        let texts: Vec<_> = all.iter().map(|banner| banner.text.as_str()).collect();
        let expected =
            ["camera lost, trying again (for 0 s)", "the views are not aligned: rows 3.2 px"];
        assert_eq!(texts, expected);
    }
}
