//! Times of a stream's frames.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gstreamer::prelude::*;

use super::super::appsink::Frame;
use super::super::live::live_times::TimeCheck;
use super::super::times::now;
use super::InputStream;

/// Age above which the time of a live frame is implausible.
const OLDEST: Duration = Duration::from_secs(10);

/// Step back above which a time of a recording has jumped.
const JUMP: Duration = Duration::from_secs(1);

impl InputStream {
    /// Returns the time of a recorded frame, unless it shares it with a neighbour, or its
    /// neighbours are in order without it.
    pub(super) fn check_recorded_time(&mut self, time: Option<Duration>) -> Option<Duration> {
        let next = self.first.front().and_then(|next| self.time(next));
        let before = self.last_time;
        if let (Some(own), Some(next)) = (time, next)
            && before.is_none_or(|before| before < next)
            && (own > next + JUMP || before.is_some_and(|before| own + JUMP < before))
        {
            let seconds = own.as_secs_f64();
            self.shared.note_mistimed(&format!("a picture's time, {seconds:.3} s, is wrong"));
            return None;
        }
        self.last_time = time;
        time.filter(|_| time != next && time != before)
    }

    /// Returns the time of a live frame, shifted if the stream's clock was set; `None` if it is far
    /// from the arrival.
    pub(super) fn check_live_time(&mut self, time: Duration, arrived: Instant) -> Option<Duration> {
        let Some(zero) = self.zero else { return Some(time) };
        let seconds = |ns: i64| {
            let way = if ns < 0 { "before" } else { "after" };
            format!("{:.1} s {way}", ns.unsigned_abs() as f64 * 1e-9)
        };
        match self.live_times.assess(time, arrived.saturating_duration_since(zero)) {
            TimeCheck::Good(time) => Some(time),
            TimeCheck::Wrong { ahead } => {
                let what = format!("a picture's time is {} its arrival", seconds(ahead));
                self.shared.note_mistimed(&what);
                None
            }
            TimeCheck::ClockSet { by, time } => {
                tracing::warn!(
                    "{}: its clock was set: times are {} those before; they are shifted by that, \
                     to the accuracy of the arrival",
                    self.name(),
                    seconds(by)
                );
                Some(time)
            }
        }
    }

    /// Returns the capture time of a live frame if it is plausible, else its time of arrival.
    pub(super) fn capture_time(&self, timestamp: Option<Duration>, arrived: Instant) -> Instant {
        let captured = self.zero.zip(timestamp).and_then(|(zero, time)| zero.checked_add(time));
        let plausible = |captured: &Instant| {
            arrived.checked_duration_since(*captured).is_some_and(|age| age < OLDEST)
        };
        captured.filter(plausible).unwrap_or(arrived)
    }

    /// Returns the common zero of streams that are opened together. GStreamer's clock and the
    /// system's run at the same rate.
    pub(super) fn zero_of_times(&self) -> Option<Instant> {
        let since = now().checked_sub(self.pipeline.base_time()?)?;
        Instant::now().checked_sub(Duration::from_nanos(since.nseconds()))
    }

    /// Returns the time of a frame that is comparable with the other view's: for a live stream that
    /// of capture by the common clock, for a recording the position in it, after edit lists.
    pub(super) fn time(&self, &Frame { times, arrived, .. }: &Frame) -> Option<Duration> {
        if let Some(zero) = self.by_arrival {
            return Some(arrived.saturating_duration_since(zero));
        }
        let time = if self.live {
            times.running
        } else if self.shared.absolute_times.load(Ordering::SeqCst) {
            times.written
        } else {
            times.stream
        };
        time.map(|time| Duration::from_nanos(time.nseconds()))
    }
}
