//! Handle of the window for other threads: the newest frame on its way to the window, and messages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use winit::event_loop::EventLoopProxy;

use super::options::Timing;
use super::path::Path;
use super::xlib;
use crate::status::RunStatus;
use crate::trail::Trail;
use crate::viewer::{Tuned, Viewer};
use stereod_core::frame::Matched;
use stereod_core::thread::locked;
use stereod_io::camera::CameraReport;

/// Message to the event loop from other threads.
#[derive(Debug)]
pub(crate) enum Wake {
    Frame,
    Status(Arc<RunStatus>),
    /// The stream has ended; the last frame stays until the user quits.
    Ended,
    /// The run failed; the last frame stays, with the message.
    Failed(String),
    Close,
    /// Settings were changed, or not.
    Tuned(Box<Tuned>),
    /// State of the camera at this place.
    Camera(usize, Box<CameraReport>),
    /// A snapshot was written, or not.
    Saved(Result<String, String>),
    /// The list of devices.
    Devices(String),
    /// The room for a recording.
    Room(String),
    Graphics,
}

/// Handle of the window for other threads. Never waits for it. Messages to a closed window are
/// ignored.
#[derive(Clone)]
pub struct Remote {
    pub(super) mailbox: Mailbox,
    pub(super) proxy: EventLoopProxy<Wake>,
}

impl Remote {
    /// Shows a frame; one that was not shown yet is skipped.
    pub fn frame(&self, frame: Arc<Matched>, timing: Timing) {
        if self.mailbox.put(frame, timing) {
            self.wake(Wake::Frame);
        }
    }

    pub fn status(&self, status: Arc<RunStatus>) {
        self.wake(Wake::Status(status));
    }

    /// Reports the end of the stream. The last frame stays until the user quits.
    pub fn ended(&self) {
        self.wake(Wake::Ended);
    }

    /// Reports a failure. The last frame stays until the user quits.
    pub fn failed(&self, message: impl Into<String>) {
        self.wake(Wake::Failed(message.into()));
    }

    /// Reports the state of the camera at this place of [`super::CameraDesk::inputs`].
    pub fn camera(&self, place: usize, report: CameraReport) {
        self.wake(Wake::Camera(place, Box::new(report)));
    }

    pub fn close(&self) {
        self.wake(Wake::Close);
    }

    pub(super) fn wake(&self, wake: Wake) {
        // An event loop whose display is lost takes no messages, which would pile up. An error says that
        // it has ended in order.
        if !xlib::has_lost_display() {
            let _ = self.proxy.send_event(wake);
        }
    }
}

impl Viewer for Remote {
    fn tuned(&self, tuned: Tuned) {
        self.wake(Wake::Tuned(Box::new(tuned)));
    }

    fn saved(&self, message: Result<String, String>) {
        self.wake(Wake::Saved(message));
    }
}

/// Holds the newest frame until the window takes it, so that a slow display skips frames and never
/// queues them. Clones share their content.
#[derive(Clone, Default)]
pub(crate) struct Mailbox(Arc<Mutex<Content>>);

#[derive(Default)]
struct Content {
    newest: Option<Arc<Matched>>,
    /// The path until the newest frame that was stored.
    trail: Trail,
    meter: Meter,
}

impl Mailbox {
    /// Stores a frame, in place of one that was not taken. Returns true if the mailbox was empty, so
    /// that the window has to be woken.
    pub(crate) fn put(&self, frame: Arc<Matched>, timing: Timing) -> bool {
        let mut content = locked(&self.0);
        let time = timing.of(&frame);
        content.meter.timing = timing;
        content.meter.count(frame.finished, time);
        content.meter.remember(frame.finished, time, frame.pair.skew_ns);
        frame.odometry.iter().for_each(|odometry| content.trail.add(odometry));
        let previous = content.newest.replace(frame);
        drop(content);
        // The frame that was skipped is freed here, after the lock.
        previous.is_none()
    }

    pub(crate) fn take(&self) -> Option<Arc<Matched>> {
        locked(&self.0).newest.take()
    }

    /// Removes the newest frame if it is unwanted. Returns true if it was.
    pub(crate) fn discard(&self, is_unwanted: impl Fn(&Matched) -> bool) -> bool {
        locked(&self.0).newest.take_if(|frame| is_unwanted(frame)).is_some()
    }

    /// Returns the path from above; `None` if the run does not follow the motion.
    pub(super) fn path(&self) -> Option<Path> {
        Path::of(&locked(&self.0).trail)
    }

    pub(crate) fn rates(&self, now: Instant) -> Rates {
        locked(&self.0).meter.rates(now)
    }

    /// Returns the kind of times, and for each recent frame its time and the capture time of the
    /// right view minus that of the left one in nanoseconds.
    pub(crate) fn recent(&self, now: Instant) -> (Timing, Vec<(Duration, Option<i64>)>) {
        let mut content = locked(&self.0);
        content.meter.forget_recent(now);
        let meter = &content.meter;
        (meter.timing, meter.recent.iter().map(|&(_, time, skew)| (time, skew)).collect())
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    pub timing: Timing,
    /// Frames per second over the last second; `None` with fewer than two.
    pub frames_per_second: Option<f64>,
    pub latency: Option<Duration>,
    /// 95th percentile of the last 256 frames.
    pub latency_p95: Option<Duration>,
}

/// Time over which frames are counted.
const SPAN: Duration = Duration::from_secs(1);

/// History of single frames: its length in time, and its largest number of frames.
const RECENT: Duration = Duration::from_secs(10);
const MOST_RECENT: usize = 4096;

const LATENCIES: usize = 256;

#[derive(Default)]
struct Meter {
    timing: Timing,
    times: VecDeque<Instant>,
    latencies: VecDeque<Duration>,
    /// Arrival, latency and skew of recent frames.
    recent: VecDeque<(Instant, Duration, Option<i64>)>,
}

impl Meter {
    fn count(&mut self, time: Instant, latency: Duration) {
        self.times.push_back(time);
        self.forget(time);
        self.latencies.push_back(latency);
        if self.latencies.len() > LATENCIES {
            self.latencies.pop_front();
        }
    }

    fn remember(&mut self, time: Instant, latency: Duration, skew_ns: Option<i64>) {
        self.recent.push_back((time, latency, skew_ns));
        if self.recent.len() > MOST_RECENT {
            self.recent.pop_front();
        }
    }

    fn forget_recent(&mut self, now: Instant) {
        let old = |time: Instant| now.saturating_duration_since(time) > RECENT;
        while self.recent.front().is_some_and(|&(time, ..)| old(time)) {
            self.recent.pop_front();
        }
    }

    fn forget(&mut self, now: Instant) {
        while self.times.front().is_some_and(|&t| now.saturating_duration_since(t) > SPAN) {
            self.times.pop_front();
        }
    }

    fn rates(&mut self, now: Instant) -> Rates {
        self.forget(now);
        let frames_per_second = match (self.times.front(), self.times.back()) {
            (Some(&first), Some(&last)) if last > first => {
                let intervals = (self.times.len() - 1) as f64;
                Some(intervals / last.duration_since(first).as_secs_f64())
            }
            _ => None,
        };
        let mut sorted: Vec<_> = self.latencies.iter().copied().collect();
        sorted.sort_unstable();
        // Nearest-rank percentile.
        let rank = (sorted.len() * 95).div_ceil(100);
        Rates {
            timing: self.timing,
            frames_per_second,
            latency: self.latencies.back().copied(),
            latency_p95: rank.checked_sub(1).map(|i| sorted[i]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_rate_is_that_of_the_last_second() {
        let start = Instant::now();
        let mut meter = Meter::default();
        assert_eq!(meter.rates(start), Rates::default());
        for i in 0..20 {
            meter.count(start + 100 * MS * i, MS * (i + 1));
        }
        for i in 1..=30 {
            meter.count(start + 1900 * MS + 20 * MS * i, 5 * MS);
        }
        let rates = meter.rates(start + 2900 * MS);
        assert!((rates.frames_per_second.unwrap() - 50.0).abs() < 1e-9, "{rates:?}");
        assert_eq!(rates.latency, Some(5 * MS));
        assert_eq!(rates.latency_p95, Some(18 * MS), "48 of 50 are at most 18 ms");
        let later = meter.rates(start + 3501 * MS);
        assert_eq!(later.frames_per_second, None, "a stalled stream has no rate");
    }

    #[test]
    fn memory_stays_bounded() {
        let start = Instant::now();
        let mut meter = Meter::default();
        for i in 0..10_000 {
            meter.count(start + MS * i, MS);
            meter.remember(start + MS * i, MS, Some(0));
        }
        assert_eq!(meter.recent.len(), MOST_RECENT);
        meter.forget_recent(start + MS * 19_990);
        assert_eq!(meter.recent.len(), 10);
        assert!(meter.times.len() <= 1001);
        assert_eq!(meter.latencies.len(), LATENCIES);
    }
}
