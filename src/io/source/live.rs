//! State of the views of a live source, readable by any thread while the source runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::source::pairing::synchronisation::{self, Synchronisation};
use stereod_core::frame::Eye;
use stereod_core::thread::locked;

/// State of a live source. A stream with both views counts as the left one.
#[derive(Debug, Default)]
pub struct LiveState {
    zero: Option<Duration>,
    eyes: [std::sync::Arc<EyeState>; 2],
    by_arrival: AtomicBool,
    synchronisation: Mutex<Synchronisation>,
}

#[derive(Debug, Default)]
pub struct EyeState(Mutex<Watched>);

/// State of one view's stream.
#[derive(Debug, Default)]
struct Watched {
    summary: EyeSummary,
    /// Last frame before the present loss.
    away_since: Option<Instant>,
}

/// Summary of one view's stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct EyeSummary {
    /// True if it is lost at present.
    pub lost: bool,
    /// Number of losses: unplugged, ended, silent.
    pub losses: u64,
    /// Number of returns.
    pub reconnects: u64,
    /// Total seconds of absence.
    pub away_s: f64,
    /// Frames that arrived damaged and were dropped.
    pub broken: u64,
    /// Frames with damage that the decoder concealed.
    pub concealed: u64,
    /// Frames that are missing in the numbers of the camera's driver.
    pub missed: u64,
    /// Frames whose capture time was discarded because it is far from their arrival.
    pub mistimed: u64,
}

/// Summary of a live source.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LiveSummary {
    /// The left view, or the stream that holds both.
    pub left: EyeSummary,
    /// The right view.
    pub right: EyeSummary,
    /// True if frames are paired by their arrival, because a view tells no capture times.
    pub by_arrival: bool,
    /// Synchronisation of the views; none for one stream with both, and if `by_arrival`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synchronisation: Option<synchronisation::Summary>,
    /// Trouble in pairing the frames of the last seconds; absent without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

impl LiveState {
    /// Creates the state of a source; capture time 0 is at `zero` of CLOCK_MONOTONIC.
    pub fn since(zero: Duration) -> Self {
        Self { zero: Some(zero), ..Self::default() }
    }

    /// Returns CLOCK_MONOTONIC at capture time 0, if capture times are of that clock.
    pub fn zero(&self) -> Option<Duration> {
        self.zero
    }

    pub fn eye(&self, eye: Eye) -> &std::sync::Arc<EyeState> {
        &self.eyes[eye.index()]
    }

    /// Locks the synchronisation of the views. Release it soon, because each pair is noted in it.
    pub fn synchronisation(&self) -> MutexGuard<'_, Synchronisation> {
        locked(&self.synchronisation)
    }

    /// Notes that frames are paired by their arrival, because a view tells no capture times.
    pub fn note_by_arrival(&self) {
        self.by_arrival.store(true, Ordering::Relaxed);
        self.synchronisation().note_by_arrival();
    }

    /// Returns the present trouble in pairing, in a few words.
    pub fn trouble(&self) -> Option<String> {
        self.synchronisation().trouble().map(str::to_owned)
    }

    pub fn summary(&self) -> LiveSummary {
        let trouble = self.trouble();
        LiveSummary {
            left: self.eyes[0].summary(),
            right: self.eyes[1].summary(),
            by_arrival: self.by_arrival.load(Ordering::Relaxed),
            synchronisation: self.synchronisation().summary(),
            trouble,
        }
    }
}

impl EyeState {
    /// Notes a loss; the last frame came at `since`.
    pub fn note_lost(&self, since: Instant) {
        let mut state = locked(&self.0);
        let Watched { summary, away_since } = &mut *state;
        (summary.lost, summary.losses) = (true, summary.losses + 1);
        *away_since = Some(since);
    }

    pub fn note_back(&self) {
        let mut state = locked(&self.0);
        let Watched { summary, away_since } = &mut *state;
        (summary.lost, summary.reconnects) = (false, summary.reconnects + 1);
        summary.away_s += away_since.take().map_or(0.0, |since| since.elapsed().as_secs_f64());
    }

    pub fn note_broken(&self) {
        locked(&self.0).summary.broken += 1;
    }

    pub fn note_concealed(&self) {
        locked(&self.0).summary.concealed += 1;
    }

    pub fn note_missed(&self, frames: u64) {
        locked(&self.0).summary.missed += frames;
    }

    pub fn note_mistimed(&self) {
        locked(&self.0).summary.mistimed += 1;
    }

    pub fn summary(&self) -> EyeSummary {
        let state = locked(&self.0);
        let away = state.away_since.map_or(0.0, |since| since.elapsed().as_secs_f64());
        let away_s = ((state.summary.away_s + away) * 1e3).round() / 1e3;
        EyeSummary { away_s, ..state.summary }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_a_well_source_has_no_trouble() {
        assert_eq!(LiveState::default().summary().trouble, None);
    }

    #[test]
    fn the_absence_of_a_camera_counts_while_it_lasts() {
        let (eye, minute) = (EyeState::default(), Duration::from_secs(60));
        let Some(since) = Instant::now().checked_sub(minute) else { return };
        eye.note_lost(since);
        assert!(eye.summary().lost && eye.summary().away_s >= 60.0);
        eye.note_back();
        let away = eye.summary().away_s;
        assert!(away >= 60.0 && eye.summary().away_s == away && eye.summary().reconnects == 1);
        eye.note_lost(since);
        assert!(eye.summary().away_s >= away + 60.0);
    }
}
