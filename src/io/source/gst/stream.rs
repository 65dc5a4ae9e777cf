//! One input stream: a pipeline that ends in an appsink, and the bounded channel from GStreamer's streaming
//! thread.
//!
//! The streaming thread only copies the frames into pooled memory and sends them. A full channel
//! blocks it, so no frame is lost. Dropping the receiver wakes it, so a stream always drops its
//! receiver before it stops the pipeline.

mod account;
mod build;
mod frame_times;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::bail;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use gstreamer as gst;
use gstreamer::prelude::*;

use super::appsink::{Format, Frame, Shared};
use super::checks::origin;
use super::checks::server;
use super::inputs::camera_pools::CameraPools;
use super::inputs::input::Input;
use super::live::arrivals::Arrivals;
use super::live::live_times::LiveTimes;
use super::message;
use super::options::{GstOptions, Live};
use super::plane::ViewLayout;
use super::times::{TICK, period_of};
use crate::labels::Timing;
use crate::source::live::EyeState;
use stereod_core::thread::{self, locked};

/// Silence after which a stream is checked for its end.
const GRACE: Duration = Duration::from_millis(1000);

/// Timeout of a recorded stream without a frame: longer than a disk or a file server takes to
/// recover.
const STALLED: Duration = Duration::from_secs(60);

/// Timeout of closing a pipeline.
pub(super) const CLOSING: Duration = Duration::from_secs(2);

/// Largest age of a fresh live frame at the beginning of a run.
const FRESH: Duration = Duration::from_millis(50);

/// Number of frames for measuring an unstated frame rate.
const RATE_SAMPLE: usize = 8;

/// StreamSetup to open and reopen a stream.
#[derive(Clone)]
pub(super) struct StreamSetup {
    pub(super) input: Input,
    pub(super) layout: ViewLayout,
    pub(super) timing: Option<Timing>,
    pub(super) zero: gst::ClockTime,
    pub(super) state: Arc<EyeState>,
    /// Start of playback in a recording; `None`: its beginning.
    pub(super) at: Option<Duration>,
}

/// Result of waiting for a frame.
pub(super) enum Received {
    Frame(Box<Frame>),
    /// Nothing yet.
    Nothing,
    End,
}

/// A file with fewer frames than its length implies.
pub(super) struct CutShort {
    /// Number of read frames.
    pub(super) count: u64,
    /// Expected number of frames, if known.
    pub(super) expected: Option<u64>,
    /// True if only damage explains it.
    pub(super) certain: bool,
    /// Present and stated number of bytes, if the file states more than are present.
    pub(super) bytes: Option<(u64, u64)>,
}

/// A running stream.
pub(super) struct InputStream {
    input: Input,
    timing: Option<Timing>,
    pipeline: gst::Pipeline,
    delivered: Receiver<Option<Box<Frame>>>,
    shared: Arc<Shared>,
    format: Arc<Mutex<Format>>,
    /// Received frames that were not returned yet.
    first: VecDeque<Box<Frame>>,
    /// Time of the first frame.
    begin: Option<Duration>,
    /// Time of the last returned frame.
    last_time: Option<Duration>,
    live: bool,
    /// True if the stream began to play within the recording.
    pub(super) is_moved: bool,
    /// If set, times are the times of arrival relative to this.
    by_arrival: Option<Instant>,
    /// Evens out these.
    arrivals: Arrivals,
    /// Zero of a live stream's times.
    zero: Option<Instant>,
    /// Check of a live stream's times.
    live_times: LiveTimes,
    /// Frames captured earlier are discarded.
    fresh_from: Option<Instant>,
    ended: bool,
    /// Beginning of the wait for a frame.
    silent_since: Option<Instant>,
    /// Time spent waiting since the last frame, and the number of counted frames then.
    waited: (Duration, u64),
    closed: bool,
    taken: u64,
    rate: Option<f64>,
    /// Fields are dropped in order, so this comes after the pipeline.
    pools: CameraPools,
}

impl InputStream {
    /// Takes over the results of opening the recording at its beginning, and returns the time of the first
    /// frame; `None` if it has ended before.
    pub(super) fn resume(
        &mut self,
        begin: Option<Duration>,
        rate: Option<f64>,
        options: &GstOptions,
    ) -> Option<Duration> {
        (self.begin, self.rate) = (begin, rate);
        // The decoder sets the time of the frame at the place of a seek to that place.
        let mut is_clipped = self.is_moved;
        while !options.stop.is_set() {
            match self.next(TICK) {
                Received::Frame(_) if std::mem::take(&mut is_clipped) => {}
                Received::Frame(frame) => {
                    let time = self.time(&frame);
                    self.first.push_back(frame);
                    return time;
                }
                Received::End => break,
                Received::Nothing => {}
            }
        }
        None
    }

    /// Waits for the first frame.
    pub(super) fn preroll(&mut self, options: &GstOptions) -> anyhow::Result<()> {
        let deadline = Instant::now() + options.patience;
        loop {
            match self.next(TICK) {
                Received::Frame(frame) => {
                    self.first.push_back(frame);
                    self.rate = locked(&self.format).rate;
                    self.decide_whether_live(options.live);
                    self.shared.set_live(self.live);
                    self.zero = if self.live { self.zero_of_times() } else { None };
                    self.begin = self.first.front().and_then(|picture| self.time(picture));
                    return Ok(());
                }
                Received::End => {
                    let reason = self.shared.first_failure();
                    let reason = reason.unwrap_or_else(|| self.shared.why_empty());
                    let reason = server::explained(&self.pipeline, reason);
                    let advice = match message::says_nothing(&reason) {
                        true => origin::what_to_check(&self.pipeline),
                        false => "",
                    };
                    bail!("{}: {reason}{}{advice}", self.name(), self.input.hint());
                }
                Received::Nothing => {}
            }
            // An error is known, and no frame has come since.
            self.ended |= self.shared.failure().is_some()
                && self.silent_since.is_some_and(|since| since.elapsed() > GRACE / 4);
            if options.stop.is_set() {
                bail!("{}: stopped before its first picture", self.name());
            }
            if Instant::now() > deadline {
                let advice = Some(origin::what_to_check(&self.pipeline)).filter(|a| !a.is_empty());
                let reason = format!(
                    "no picture came within {:.1} s{}",
                    options.patience.as_secs_f64(),
                    advice.unwrap_or("; is the source sending?")
                );
                bail!("{}: {}", self.name(), server::explained(&self.pipeline, reason));
            }
        }
    }

    /// Decides whether the stream is live, once its first frame is there.
    fn decide_whether_live(&mut self, live: Live) {
        let says_so = self.live || self.asks_for_latency();
        self.live = match (&self.input, live) {
            (Input::File(_) | Input::Pictures(_), _) => false,
            (Input::Camera(_), _) | (_, Live::On) => true,
            (_, Live::Off) => false,
            (_, Live::Auto) => says_so || origin::is_endless(&self.pipeline),
        };
        // GStreamer gives the first buffer of a live element a time in any case, so the second one tells.
        if self.live
            && says_so
            && let Received::Frame(frame) = self.next(GRACE)
        {
            self.first.push_back(frame);
        }
        // The times of a source that does not say that it is live restart with every connection.
        let has_times = self.first.back().is_some_and(|frame| frame.times.running.is_some());
        if self.live && !(says_so && has_times) {
            self.by_arrival = self.zero_of_times();
        }
    }

    /// Reports whether the times of the frames are those of their arrival.
    pub(super) fn is_by_arrival(&self) -> bool {
        self.by_arrival.is_some()
    }

    /// Measures the frame rate if the stream does not state it.
    pub(super) fn measure_rate(&mut self, stop: &crate::control::Switch) {
        if self.rate.is_some() || self.live {
            return;
        }
        while self.first.len() < RATE_SAMPLE && !stop.is_set() {
            match self.next(Duration::from_millis(500)) {
                Received::Frame(frame) => self.first.push_back(frame),
                Received::End | Received::Nothing => break,
            }
        }
        let times: Vec<Duration> =
            self.first.iter().filter_map(|picture| self.time(picture)).collect();
        let mut steps: Vec<Duration> =
            times.windows(2).filter_map(|two| two[1].checked_sub(two[0])).collect();
        steps.retain(|step| !step.is_zero());
        steps.sort_unstable();
        self.rate = steps.get(steps.len() / 2).map(|step| 1.0 / step.as_secs_f64());
    }

    /// Discards frames that a live stream captured before the engine was ready. Otherwise the first
    /// frames would be as late as the engine took to start.
    pub(super) fn begin(&mut self) {
        if self.live {
            let period = self.rate.map_or(Duration::ZERO, period_of);
            self.fresh_from = Instant::now().checked_sub((2 * period).max(FRESH));
        }
    }

    /// Waits at most `wait` for the next frame.
    ///
    /// Frames with a meaningless time get none: recorded frames that share a time with a neighbour (a demuxer
    /// without the index of a truncated AVI labels several alike), recorded frames with a time far from both
    /// neighbours, and live frames with a time far from their arrival.
    pub(super) fn receive(&mut self, wait: Duration) -> Received {
        let ahead = if self.live { 1 } else { 2 };
        while self.first.len() < ahead {
            match self.next(wait) {
                Received::Frame(frame) => self.first.push_back(frame),
                Received::End => break,
                Received::Nothing => return Received::Nothing,
            }
        }
        let Some(mut frame) = self.first.pop_front() else { return Received::End };
        self.taken += 1;
        let time = self.time(&frame);
        let own = frame.times.running.map(Duration::from);
        frame.timestamp = match self.live {
            true if self.by_arrival.is_some() => {
                time.map(|arrived| self.arrivals.even_out(arrived, own))
            }
            true => time.and_then(|time| self.check_live_time(time, frame.arrived)),
            false => self.check_recorded_time(time),
        };
        frame.arrived = self.capture_time(frame.timestamp, frame.arrived);
        let is_stale = self.fresh_from.is_some_and(|from| frame.arrived < from);
        if is_stale && frame.timestamp.is_some() {
            return Received::Nothing;
        }
        self.fresh_from = None;
        Received::Frame(frame)
    }

    /// Waits for the streaming thread's next frame.
    fn next(&mut self, wait: Duration) -> Received {
        if self.ended {
            return Received::End;
        }
        match self.delivered.recv_timeout(wait) {
            Ok(Some(frame)) => {
                self.silent_since = None;
                self.waited.0 = Duration::ZERO;
                Received::Frame(frame)
            }
            Ok(None) | Err(RecvTimeoutError::Disconnected) => {
                self.ended = true;
                Received::End
            }
            Err(RecvTimeoutError::Timeout) => {
                let since = *self.silent_since.get_or_insert_with(Instant::now);
                let skipped = self.shared.skipped();
                let before = self.waited;
                // Waits are added up because the clock also runs while the process is suspended.
                self.waited =
                    if skipped == before.1 { (before.0 + wait, skipped) } else { (wait, skipped) };
                if since.elapsed() > GRACE {
                    self.end_if_dead();
                }
                Received::Nothing
            }
        }
    }

    /// Ends a silent stream that is dead without having sent an end: not every element sends one
    /// after an error, and the error itself can be lost (GStreamer 1.22's decodebin drops the
    /// errors of a demuxer that is being plugged in).
    fn end_if_dead(&mut self) {
        let failed = self.shared.failure().is_some();
        let stalled = self.is_recorded() && self.waited.0 > STALLED;
        if (failed || stalled || self.is_idle()) && self.delivered.is_empty() {
            self.shared.fail(if stalled {
                format!("it neither goes on nor ends: no picture came for {} s", STALLED.as_secs())
            } else {
                "it gives no pictures, without saying why".to_owned()
            });
            self.ended = true;
        }
    }

    /// Reports whether all streaming threads of a recording have stopped.
    fn is_idle(&self) -> bool {
        let running = |element: gst::Element| {
            element.pads().iter().any(|pad| pad.task_state() == gst::TaskState::Started)
        };
        let mut elements = self.pipeline.iterate_recurse();
        self.is_recorded() && elements.find(running).is_none()
    }

    fn is_recorded(&self) -> bool {
        is_recorded(&self.input)
    }

    /// Returns the time spent waiting for the next frame so far.
    pub(super) fn silent_for(&self) -> Duration {
        self.silent_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Returns the reason why no frame comes any more, if known.
    pub(super) fn reason(&self) -> Option<String> {
        self.shared.failure()
    }

    fn is_ready(&self) -> bool {
        !self.first.is_empty() || self.ended || !self.delivered.is_empty()
    }

    /// Waits until one of `streams` has a frame, at most for `wait`.
    pub(super) fn wait_any(streams: &[&InputStream], wait: Duration) {
        if streams.iter().any(|stream| stream.is_ready()) {
            return;
        }
        let mut select = crossbeam_channel::Select::new();
        for stream in streams {
            select.recv(&stream.delivered);
        }
        let _ = select.ready_timeout(wait);
    }

    /// Counts frames from now on instead of delivering them; see [`InputStream::skipped`].
    pub(super) fn count_only(&self) {
        self.shared.count_only();
    }

    /// Returns the number of frames that were counted instead of delivered.
    pub(super) fn skipped(&self) -> u64 {
        self.shared.skipped()
    }

    /// Stops the pipeline and drops the frames in the channel.
    pub(super) fn close(&mut self) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        self.ended = true;
        self.first.clear();
        self.delivered = crossbeam_channel::never();
        self.pools.note(&self.pipeline);
        close_pipeline(&self.pipeline, &self.input.name());
    }

    fn asks_for_latency(&self) -> bool {
        let mut query = gst::query::Latency::new();
        self.pipeline.query(&mut query) && query.result().0
    }
}

impl Drop for InputStream {
    fn drop(&mut self) {
        self.close();
    }
}

/// Stops a pipeline. If one of its threads hangs, it is left behind.
pub(super) fn close_pipeline(pipeline: &gst::Pipeline, name: &str) {
    let closing = pipeline.clone();
    let stop = move || closing.set_state(gst::State::Null);
    match thread::bounded("closing", stop, |waited| waited > CLOSING) {
        Ok(Some(_)) => {}
        Ok(None) => tracing::debug!("{name} does not close; it is left behind"),
        Err(error) => {
            tracing::debug!("{name} is not closed: {error}");
            // A pipeline must not be freed while it runs.
            std::mem::forget(pipeline.clone());
        }
    }
}

fn is_recorded(input: &Input) -> bool {
    matches!(input, Input::File(_) | Input::Pictures(_))
}
