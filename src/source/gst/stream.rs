//! One stream: a pipeline of its own that ends in an appsink, and the bounded channel by which its
//! pictures leave GStreamer's streaming thread.
//!
//! The streaming thread only copies the pictures into pooled memory and sends them; a full channel
//! blocks it, so that nothing is lost. Dropping the receiver wakes it, which is why a stream is
//! always closed in that order: receiver first, then the pipeline.

mod account;

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use gstreamer as gst;
use gstreamer::prelude::*;

use super::camera_pools::CameraPools;
use super::input::Input;
use super::live_times::{Judged, LiveTimes};
use super::options::{GstOptions, Reconnect};
use super::plane::{Layout, Views};
use super::tap::{Delivered, Format, Raw, Shared, Taker, appsink};
use super::times::{TICK, now, period_of};
use super::{inspect, jumps, libav, limits, orientation, wiring};
use crate::source::live::EyeState;
use crate::source::orientation::Orient;
use crate::source::pictures::Timing;
use crate::thread::{self, locked};

/// Pictures that may wait between the streaming thread and the pairing.
const CHANNEL: usize = 4;

/// Longest silence of a stream before it is looked at whether it has ended.
const GRACE: Duration = Duration::from_millis(1000);

/// Longest that a recorded stream may be waited for without any picture: longer than a disk or a file
/// server takes to come back.
const STALLED: Duration = Duration::from_secs(60);

/// Longest wait for a pipeline that is being closed.
pub(super) const CLOSING: Duration = Duration::from_secs(2);

/// A live picture whose time says that it is older than this has a time that says nothing.
const OLDEST: Duration = Duration::from_secs(10);

/// A time of a recording that goes back by more than this jumps.
const JUMP: Duration = Duration::from_secs(1);

/// A live picture that is as old as this when a run begins is fresh enough.
const FRESH: Duration = Duration::from_millis(50);

/// Number of pictures by which a frame rate is measured that is not written down.
const RATE_SAMPLE: usize = 8;

/// Recipe to open a stream, now and again.
#[derive(Clone)]
pub(super) struct Recipe {
    pub(super) input: Input,
    pub(super) layout: Layout,
    pub(super) timing: Option<Timing>,
    pub(super) zero: gst::ClockTime,
    pub(super) state: Arc<EyeState>,
}

/// A picture with its time on the stream's clock.
pub(super) struct Picture {
    pub(super) views: Views,
    pub(super) timestamp: Option<Duration>,
    /// When it was captured, where a live stream tells; else when it arrived.
    pub(super) arrived: Instant,
}

/// Result of waiting for a picture.
pub(super) enum Received {
    Picture(Picture),
    /// Nothing yet.
    Nothing,
    /// Nothing any more.
    End,
}

/// A file that gave fewer pictures than its length says.
pub(super) struct CutShort {
    /// Pictures it gave.
    pub(super) count: u64,
    /// Pictures that were to be expected, where known.
    pub(super) expected: Option<u64>,
    /// True where nothing but damage explains it.
    pub(super) certain: bool,
    /// Numbers of bytes that there are and should be, where the file itself says that some are
    /// missing.
    pub(super) bytes: Option<(u64, u64)>,
}

/// A running stream.
pub(super) struct Stream {
    input: Input,
    timing: Option<Timing>,
    pipeline: gst::Pipeline,
    delivered: Receiver<Delivered>,
    shared: Arc<Shared>,
    format: Arc<Mutex<Format>>,
    /// Pictures that have been looked at but not handed out.
    first: VecDeque<Box<Raw>>,
    /// Time of the first picture.
    begin: Option<Duration>,
    /// Time of the picture handed out last.
    last_time: Option<Duration>,
    live: bool,
    /// The times of pictures are those of their arrival after this.
    by_arrival: Option<Instant>,
    /// The zero of the times of a live stream's pictures.
    zero: Option<Instant>,
    /// Check of a live stream's times.
    live_times: LiveTimes,
    /// Pictures that were captured before are left out.
    fresh_from: Option<Instant>,
    ended: bool,
    /// Since when a picture is waited for.
    silent_since: Option<Instant>,
    /// Time spent on waiting since the last picture, and the number of those that were only counted.
    waited: (Duration, u64),
    closed: bool,
    taken: u64,
    rate: Option<f64>,
    /// Dropped after the pipeline, as fields are in their order.
    pools: CameraPools,
}

impl Stream {
    /// Builds the pipeline and sets it going; [`Stream::preroll`] then waits for its first picture.
    pub(super) fn start(recipe: &Recipe, options: &GstOptions) -> anyhow::Result<Self> {
        let name = recipe.input.name();
        Self::build(recipe.clone(), options).map_err(|error| anyhow!("{name}: {error:#}"))
    }

    fn build(recipe: Recipe, options: &GstOptions) -> anyhow::Result<Self> {
        let Recipe { input, layout, timing, zero, state } = recipe;
        // Pictures in files of their own are looked at before they are decoded.
        let video = matches!(input, Input::File(_));
        let shared = Arc::new(Shared::of(state.clone(), input.name(), video));
        let pipeline = gst::Pipeline::new();
        libav::listen(&pipeline, &shared);
        limits::watch(&pipeline, &shared);
        if video {
            inspect::watch_recorded(&pipeline, &shared);
            jumps::watch(&pipeline, &shared.jumps);
        } else if !is_recorded(&input) {
            inspect::watch(&pipeline, &state);
        }
        let (sender, delivered) = crossbeam_channel::bounded(CHANNEL);
        let format = Arc::new(Mutex::new(Format::default()));
        let taker = Taker::new(input.name(), layout, options, format.clone());
        let sink = appsink(sender, shared.clone(), taker);
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
        // Only on the way to "paused" does a pipeline tell that it is live.
        for state in [gst::State::Paused, gst::State::Playing] {
            match stream.pipeline.set_state(state) {
                Ok(change) => stream.live |= change == gst::StateChangeSuccess::NoPreroll,
                Err(_) => {
                    let reason = stream.shared.first_failure();
                    bail!(reason.unwrap_or_else(|| "the pipeline does not start".to_owned()));
                }
            }
        }
        Ok(stream)
    }

    /// Waits for the first picture.
    pub(super) fn preroll(&mut self, options: &GstOptions) -> anyhow::Result<()> {
        let deadline = Instant::now() + options.patience;
        loop {
            match self.next(TICK) {
                Some(Delivered::Picture(picture)) => {
                    self.first.push_back(picture);
                    self.rate = locked(&self.format).rate;
                    self.live |= self.asks_for_latency();
                    if !self.live && options.reconnect == Reconnect::On && !self.is_recorded() {
                        // A network camera need not say that it is one. Its own times start anew
                        // with every connection.
                        (self.live, self.by_arrival) = (true, self.zero_of_times());
                    }
                    self.shared.set_live(self.live);
                    self.zero = if self.live { self.zero_of_times() } else { None };
                    self.begin = self.first.front().and_then(|picture| self.time(picture));
                    return Ok(());
                }
                Some(Delivered::End) => {
                    let reason = self.shared.first_failure();
                    let reason = reason.unwrap_or_else(|| "it holds no picture".to_owned());
                    bail!("{}: {reason}{}", self.name(), self.input.hint());
                }
                None => {}
            }
            // An error is known, and nothing more has come since.
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

    /// Measures the frame rate where the stream does not state it.
    pub(super) fn measure_rate(&mut self, stop: &crate::control::Switch) {
        if self.rate.is_some() || self.live {
            return;
        }
        while self.first.len() < RATE_SAMPLE && !stop.is_set() {
            match self.next(Duration::from_millis(500)) {
                Some(Delivered::Picture(picture)) => self.first.push_back(picture),
                Some(Delivered::End) | None => break,
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

    /// Leaves out what a live stream has captured while nobody was ready for it: the first pictures
    /// would otherwise be as late as the engine took to start.
    pub(super) fn begin(&mut self) {
        if self.live {
            let period = self.rate.map_or(Duration::ZERO, period_of);
            self.fresh_from = Instant::now().checked_sub((2 * period).max(FRESH));
        }
    }

    /// The next picture, waiting for it no longer than `wait`.
    ///
    /// Pictures whose times say nothing get none: those of a recording that share a time with a
    /// neighbour (a demuxer that lost its index, of a truncated AVI, so labels several, of which at most
    /// one is right), one of a recording that jumps away from both neighbours, and a live one that is
    /// far from its arrival.
    pub(super) fn receive(&mut self, wait: Duration) -> Received {
        let ahead = if self.live { 1 } else { 2 };
        while self.first.len() < ahead {
            match self.next(wait) {
                Some(Delivered::Picture(picture)) => self.first.push_back(picture),
                Some(Delivered::End) => break,
                None => return Received::Nothing,
            }
        }
        let Some(picture) = self.first.pop_front() else { return Received::End };
        self.taken += 1;
        let time = self.time(&picture);
        let Raw { views, arrived, .. } = *picture;
        let timestamp = match self.live {
            true => time.and_then(|time| self.judged(time, arrived)),
            false => self.in_line(time),
        };
        let arrived = self.captured(timestamp, arrived);
        let stale = self.fresh_from.is_some_and(|from| arrived < from);
        if stale && timestamp.is_some() {
            return Received::Nothing;
        }
        self.fresh_from = None;
        Received::Picture(Picture { views, timestamp, arrived })
    }

    /// The time of a recording's picture, unless it shares it with a neighbour, or its neighbours are in
    /// order without it.
    fn in_line(&mut self, time: Option<Duration>) -> Option<Duration> {
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

    /// The time of a live picture, shifted where the stream's clock was set; `None` where it is far from
    /// the arrival.
    fn judged(&mut self, time: Duration, arrived: Instant) -> Option<Duration> {
        let Some(zero) = self.zero else { return Some(time) };
        let seconds = |ns: i64| {
            let way = if ns < 0 { "before" } else { "after" };
            format!("{:.1} s {way}", ns.unsigned_abs() as f64 * 1e-9)
        };
        match self.live_times.assess(time, arrived.saturating_duration_since(zero)) {
            Judged::Good(time) => Some(time),
            Judged::Wrong { ahead } => {
                let what = format!("a picture's time is {} its arrival", seconds(ahead));
                self.shared.note_mistimed(&what);
                None
            }
            Judged::Set { by, time } => {
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

    /// When a picture was captured, where its time tells: a live one's, unless that lies in the future
    /// or is older than any picture that is still worth showing.
    fn captured(&self, timestamp: Option<Duration>, arrived: Instant) -> Instant {
        let captured = self.zero.zip(timestamp).and_then(|(zero, time)| zero.checked_add(time));
        let plausible = |captured: &Instant| {
            arrived.checked_duration_since(*captured).is_some_and(|age| age < OLDEST)
        };
        captured.filter(plausible).unwrap_or(arrived)
    }

    /// The next thing that the streaming thread hands on.
    fn next(&mut self, wait: Duration) -> Option<Delivered> {
        if self.ended {
            return Some(Delivered::End);
        }
        match self.delivered.recv_timeout(wait) {
            Ok(Delivered::Picture(picture)) => {
                self.silent_since = None;
                self.waited.0 = Duration::ZERO;
                Some(Delivered::Picture(picture))
            }
            Ok(Delivered::End) | Err(RecvTimeoutError::Disconnected) => {
                self.ended = true;
                Some(Delivered::End)
            }
            Err(RecvTimeoutError::Timeout) => {
                let since = *self.silent_since.get_or_insert_with(Instant::now);
                let skipped = self.shared.skipped();
                let before = self.waited;
                // The time of a process that is suspended passes as well, so waits are added up.
                self.waited =
                    if skipped == before.1 { (before.0 + wait, skipped) } else { (wait, skipped) };
                if since.elapsed() > GRACE {
                    self.end_if_dead();
                }
                None
            }
        }
    }

    /// Ends a silent stream from which nothing will come any more, though it sent no end: not
    /// every element does after an error, and the error itself can be lost (GStreamer 1.22's
    /// decodebin drops what a demuxer reports while it is being plugged in).
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

    /// True where none of the threads that move a recording's data is running.
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

    /// Time for which no picture has come that was waited for.
    pub(super) fn silent_for(&self) -> Duration {
        self.silent_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Reason why no picture comes any more, where known.
    pub(super) fn reason(&self) -> Option<String> {
        self.shared.failure()
    }

    /// The zero of the times of streams that are opened together. GStreamer's clock and the operating
    /// system's agree in their pace.
    fn zero_of_times(&self) -> Option<Instant> {
        let since = now().checked_sub(self.pipeline.base_time()?)?;
        Instant::now().checked_sub(Duration::from_nanos(since.nseconds()))
    }

    /// Which time of a picture can be compared with the other eye's: for a live stream the time
    /// at which it was captured by the common clock, for a recording its place in it, edit lists
    /// considered.
    fn time(&self, &Raw { times, arrived, .. }: &Raw) -> Option<Duration> {
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

    /// Waits until one of `streams` has something, or `wait` has passed.
    pub(super) fn wait_any(streams: &[&Stream], wait: Duration) {
        if streams.iter().any(|stream| stream.is_ready()) {
            return;
        }
        let mut select = crossbeam_channel::Select::new();
        for stream in streams {
            select.recv(&stream.delivered);
        }
        let _ = select.ready_timeout(wait);
    }

    /// From now on pictures are only counted: see [`Stream::skipped`].
    pub(super) fn count_only(&self) {
        self.shared.count_only();
    }

    /// Pictures that were counted instead of delivered.
    pub(super) fn skipped(&self) -> u64 {
        self.shared.skipped()
    }

    /// Stops the pipeline; what is still in the channel is lost. A driver or a demuxer that hangs in it
    /// keeps its thread.
    pub(super) fn close(&mut self) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        self.ended = true;
        self.first.clear();
        self.delivered = crossbeam_channel::never();
        self.pools.note(&self.pipeline);
        let pipeline = self.pipeline.clone();
        let stop = move || pipeline.set_state(gst::State::Null);
        match thread::bounded("closing", stop, |waited| waited > CLOSING) {
            Ok(Some(_)) => {}
            Ok(None) => tracing::debug!("{} does not close; it is left behind", self.name()),
            Err(error) => {
                tracing::debug!("{} is not closed: {error}", self.name());
                // A pipeline must not be freed while it runs.
                std::mem::forget(self.pipeline.clone());
            }
        }
    }

    fn asks_for_latency(&self) -> bool {
        let mut query = gst::query::Latency::new();
        self.pipeline.query(&mut query) && query.result().0
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.close();
    }
}

/// True where it is read from a file, and ends with it.
fn is_recorded(input: &Input) -> bool {
    matches!(input, Input::File(_) | Input::Pictures(_))
}

/// Makes the times of live pipelines comparable: one clock, one zero.
fn share_clock(pipeline: &gst::Pipeline, zero: gst::ClockTime) {
    pipeline.use_clock(Some(&gst::SystemClock::obtain()));
    pipeline.set_start_time(gst::ClockTime::NONE);
    pipeline.set_base_time(zero);
}
