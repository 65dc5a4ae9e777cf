//! One input stream: a pipeline that ends in an appsink, and the bounded channel from GStreamer's streaming
//! thread.
//!
//! The streaming thread only copies the frames into pooled memory and sends them. A full channel
//! blocks it, so no frame is lost. Dropping the receiver wakes it, so a stream always drops its
//! receiver before it stops the pipeline.

mod account;

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use gstreamer as gst;
use gstreamer::prelude::*;

use super::appsink::{Format, Frame, FrameCopier, Shared, build_appsink};
use super::camera_pools::CameraPools;
use super::input::Input;
use super::live_times::{LiveTimes, TimeCheck};
use super::options::{GstOptions, Reconnect};
use super::plane::ViewLayout;
use super::times::{TICK, now, period_of};
use super::{inspect, libav, limits, orientation, time_jumps, wiring};
use crate::core::thread::{self, locked};
use crate::source::live::EyeState;
use crate::source::orientation::Orient;
use crate::source::pictures::Timing;

/// Capacity of the channel between the streaming thread and the pairing.
const CHANNEL: usize = 4;

/// Silence after which a stream is checked for its end.
const GRACE: Duration = Duration::from_millis(1000);

/// Timeout of a recorded stream without a frame: longer than a disk or a file server takes to
/// recover.
const STALLED: Duration = Duration::from_secs(60);

/// Timeout of closing a pipeline.
pub(super) const CLOSING: Duration = Duration::from_secs(2);

/// Age above which the time of a live frame is implausible.
const OLDEST: Duration = Duration::from_secs(10);

/// Step back above which a time of a recording has jumped.
const JUMP: Duration = Duration::from_secs(1);

/// Largest age of a fresh live frame at the beginning of a run.
const FRESH: Duration = Duration::from_millis(50);

/// Demuxers with an index that finds the key frame before any time.
const EXACT: [&str; 2] = ["qtdemux", "matroskademux"];

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
    /// Builds and starts the pipeline; [`InputStream::preroll`] then waits for its first frame.
    pub(super) fn start(recipe: &StreamSetup, options: &GstOptions) -> anyhow::Result<Self> {
        let name = recipe.input.name();
        Self::build(recipe.clone(), options).map_err(|error| anyhow!("{name}: {error:#}"))
    }

    fn build(recipe: StreamSetup, options: &GstOptions) -> anyhow::Result<Self> {
        let StreamSetup { input, layout, timing, zero, state, at } = recipe;
        // Frames in files of their own are looked at before they are decoded.
        let video = matches!(input, Input::File(_));
        let shared = Arc::new(Shared::of(state.clone(), input.name(), video));
        let pipeline = gst::Pipeline::new();
        libav::listen(&pipeline, &shared);
        limits::watch(&pipeline, &shared);
        if video {
            inspect::watch_recorded(&pipeline, &shared);
            time_jumps::watch(&pipeline, &shared.jumps);
        } else if !is_recorded(&input) {
            inspect::watch(&pipeline, &state);
        }
        let (sender, delivered) = crossbeam_channel::bounded(CHANNEL);
        let format = Arc::new(Mutex::new(Format::default()));
        let copier = FrameCopier::new(input.name(), layout, options, format.clone());
        let sink = build_appsink(sender, shared.clone(), copier);
        let convert = wiring::element("videoconvert")?;
        pipeline.add_many([&convert, sink.upcast_ref()])?;
        convert.link(&sink)?;
        let target = convert.static_pad("sink").ok_or_else(|| anyhow!("no pad to link"))?;
        if let Some(bus) = pipeline.bus() {
            let shared = shared.clone();
            bus.set_sync_handler(move |_, message| {
                shared.message(message);
                gst::BusSyncReply::Drop
            });
        }
        let mut stream = Self {
            pipeline,
            delivered,
            shared,
            format,
            first: VecDeque::new(),
            begin: None,
            last_time: None,
            live: false,
            is_moved: false,
            by_arrival: None,
            zero: None,
            live_times: LiveTimes::default(),
            fresh_from: None,
            ended: false,
            silent_since: None,
            waited: (Duration::ZERO, 0),
            closed: false,
            taken: 0,
            rate: None,
            input,
            timing,
            pools: CameraPools::default(),
        };
        // From here on every return closes the pipeline.
        let Self { pipeline, shared, input, .. } = &stream;
        let target = match (input, options.orient) {
            (Input::Pictures(_), _) | (_, Orient::Ignore) => target,
            (_, Orient::Auto) => orientation::turn(pipeline, &target)?,
        };
        orientation::watch(&target, shared.clone());
        wiring::connect(input, timing, options, pipeline, target, shared)?;
        share_clock(&stream.pipeline, zero);
        thread::require_spare(thread::OF_SOURCE)?;
        // Only the change to "paused" tells whether a pipeline is live.
        for state in [gst::State::Paused, gst::State::Playing] {
            match stream.pipeline.set_state(state) {
                Ok(change) => stream.live |= change == gst::StateChangeSuccess::NoPreroll,
                Err(_) => {
                    let reason = stream.shared.first_failure();
                    bail!(reason.unwrap_or_else(|| "the pipeline does not start".to_owned()));
                }
            }
            if let (gst::State::Paused, Some(at)) = (state, at) {
                stream.is_moved = stream.move_to(at, options.patience);
            }
        }
        Ok(stream)
    }

    /// Moves a paused recording to a time at or before `at`. Returns false if it still plays from its
    /// beginning, because its container has no index of times.
    fn move_to(&self, at: Duration, patience: Duration) -> bool {
        let clock_time = |time: Duration| gst::ClockTime::from_nseconds(time.as_nanos() as u64);
        // The demuxer is known once the first frame waits at the end of the pipeline.
        let (paused, ..) = self.pipeline.state(Some(clock_time(patience)));
        let is_exact = |element: gst::Element| {
            element.factory().is_some_and(|factory| EXACT.contains(&factory.name().as_str()))
        };
        let mut elements = self.pipeline.iterate_recurse();
        paused.is_ok()
            && elements.find(is_exact).is_some()
            && self
                .pipeline
                .seek_simple(gst::SeekFlags::FLUSH | gst::SeekFlags::ACCURATE, clock_time(at))
                .is_ok()
    }

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
                    self.live |= self.asks_for_latency();
                    if !self.live && options.reconnect == Reconnect::On && !self.is_recorded() {
                        // A network camera need not claim to be live. Its own times restart with
                        // every connection.
                        (self.live, self.by_arrival) = (true, self.zero_of_times());
                    }
                    self.shared.set_live(self.live);
                    self.zero = if self.live { self.zero_of_times() } else { None };
                    self.begin = self.first.front().and_then(|picture| self.time(picture));
                    return Ok(());
                }
                Received::End => {
                    let reason = self.shared.first_failure();
                    let reason = reason.unwrap_or_else(|| "it holds no picture".to_owned());
                    bail!("{}: {reason}{}", self.name(), self.input.hint());
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
                bail!(
                    "{}: no picture came within {:.1} s; is the source sending?",
                    self.name(),
                    options.patience.as_secs_f64()
                );
            }
        }
    }

    /// Measures the frame rate if the stream does not state it.
    pub(super) fn measure_rate(&mut self, stop: &crate::core::control::Switch) {
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
        frame.timestamp = match self.live {
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

    /// Returns the time of a recorded frame, unless it shares it with a neighbour, or its
    /// neighbours are in order without it.
    fn check_recorded_time(&mut self, time: Option<Duration>) -> Option<Duration> {
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
    fn check_live_time(&mut self, time: Duration, arrived: Instant) -> Option<Duration> {
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
    fn capture_time(&self, timestamp: Option<Duration>, arrived: Instant) -> Instant {
        let captured = self.zero.zip(timestamp).and_then(|(zero, time)| zero.checked_add(time));
        let plausible = |captured: &Instant| {
            arrived.checked_duration_since(*captured).is_some_and(|age| age < OLDEST)
        };
        captured.filter(plausible).unwrap_or(arrived)
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

    /// Returns the common zero of streams that are opened together. GStreamer's clock and the
    /// system's run at the same rate.
    fn zero_of_times(&self) -> Option<Instant> {
        let since = now().checked_sub(self.pipeline.base_time()?)?;
        Instant::now().checked_sub(Duration::from_nanos(since.nseconds()))
    }

    /// Returns the time of a frame that is comparable with the other view's: for a live stream that
    /// of capture by the common clock, for a recording the position in it, after edit lists.
    fn time(&self, &Frame { times, arrived, .. }: &Frame) -> Option<Duration> {
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

/// Gives live pipelines one clock and one zero, so that their times are comparable.
fn share_clock(pipeline: &gst::Pipeline, zero: gst::ClockTime) {
    pipeline.use_clock(Some(&gst::SystemClock::obtain()));
    pipeline.set_start_time(gst::ClockTime::NONE);
    pipeline.set_base_time(zero);
}
