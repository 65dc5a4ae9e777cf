//! One stream: a pipeline of its own that ends in an appsink, and the bounded channel by which its
//! pictures leave GStreamer's streaming thread.
//!
//! The streaming thread only copies the pictures into pooled memory and sends them; a full channel
//! blocks it, so that nothing is lost. Dropping the receiver wakes it, which is why a stream is
//! always closed in that order: receiver first, then the pipeline.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_app as gst_app;
use gstreamer_video as gst_video;

use super::GstOptions;
use super::input::Input;
use super::message;
use super::pictures::Timing;
use super::plane::{self, Layout, Views};
use super::wiring;

/// Pictures that may wait between the streaming thread and the pairing.
const CHANNEL: usize = 4;

/// How long a stream may be silent before it is looked at whether it has ended.
const GRACE: Duration = Duration::from_millis(1000);

/// How many pictures are looked at to measure a frame rate that is not written down.
const RATE_SAMPLE: usize = 8;

/// What the streaming thread hands on.
enum Delivered {
    Picture(Raw),
    End,
}

/// A picture before it is clear which of its times counts.
struct Raw {
    views: Views,
    times: Times,
    arrived: Instant,
}

/// The times of a picture; which one counts depends on the stream.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    written: Option<gst::ClockTime>,
    stream: Option<gst::ClockTime>,
    running: Option<gst::ClockTime>,
}

/// A picture with its time on the stream's clock.
pub(super) struct Picture {
    pub(super) views: Views,
    pub(super) timestamp: Option<Duration>,
    pub(super) arrived: Instant,
}

/// What came of waiting for a picture.
pub(super) enum Received {
    Picture(Picture),
    /// Nothing yet.
    Nothing,
    /// Nothing any more.
    End,
}

/// What GStreamer's threads and the stream's owner both look at.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The first error: later ones are its consequences.
    error: Mutex<Option<String>>,
    missing: Mutex<Option<String>>,
    /// What is wrong with the first picture file that was left out.
    damage: Mutex<Option<String>>,
    /// What was found that is not video.
    other: Mutex<Option<String>>,
    warned: AtomicBool,
    /// From now on pictures are counted in `skipped` instead of being copied.
    count_only: AtomicBool,
    skipped: AtomicU64,
    /// The times as they are written are those of the recording. (Of Matroska: its demuxer else
    /// lets every file start at zero, which would undo a later start of one eye.)
    pub(super) absolute_times: AtomicBool,
}

impl Shared {
    /// Notes what ended the stream.
    pub(super) fn fail(&self, reason: String) {
        lock(&self.error).get_or_insert(reason);
    }

    /// Notes a picture that is left out.
    pub(super) fn note_damage(&self, what: String) {
        tracing::debug!("{what}");
        lock(&self.damage).get_or_insert(what);
    }

    /// Notes a part of the stream that is not video.
    pub(super) fn note_other(&self, caps: &gst::Caps) {
        if let Some(structure) = caps.structure(0) {
            lock(&self.other).get_or_insert_with(|| structure.name().to_string());
        }
    }

    /// Says why there is no video, when everything in the stream is known.
    pub(super) fn fail_without_video(&self) {
        let missing = lock(&self.missing).clone();
        let other = lock(&self.other).clone();
        self.fail(missing.unwrap_or_else(|| match other {
            Some(other) => format!("there is no video in it, only {other}"),
            None => "there is no video in it".to_owned(),
        }));
    }

    fn failure(&self) -> Option<String> {
        let error = lock(&self.error).clone();
        // That a plug-in is missing says more than the error that follows from it.
        error.map(|error| lock(&self.missing).clone().unwrap_or(error))
    }

    /// Takes a message of the pipeline, on whichever thread it was posted.
    fn message(&self, message: &gst::Message) {
        match message.view() {
            gst::MessageView::Error(error) => self.fail(message::error_text(error)),
            gst::MessageView::Warning(warning) => {
                let text = message::readable(warning.error().message(), warning.debug().as_deref());
                if self.warned.swap(true, Ordering::SeqCst) {
                    tracing::debug!("GStreamer: {text}");
                } else {
                    tracing::warn!("GStreamer: {text} (further warnings are at level debug)");
                }
            }
            gst::MessageView::Element(element) => {
                if let Some(missing) = message::missing_plugin(element) {
                    lock(&self.missing).get_or_insert(missing);
                }
            }
            _ => {}
        }
    }
}

/// A running stream.
pub(super) struct Stream {
    input: Input,
    timing: Option<Timing>,
    pipeline: gst::Pipeline,
    delivered: Receiver<Delivered>,
    shared: Arc<Shared>,
    format: Arc<Mutex<Format>>,
    /// Pictures that were looked at while opening.
    first: VecDeque<Raw>,
    live: bool,
    ended: bool,
    /// Since when a picture is waited for.
    silent_since: Option<Instant>,
    taken: u64,
    /// Files of a picture pattern that have been shown or left out.
    files: usize,
    rate: Option<f64>,
}

/// The format of the pictures, as the first one told it.
#[derive(Clone, Copy, Debug, Default)]
struct Format {
    view: Option<(usize, usize)>,
    rate: Option<f64>,
}

impl Stream {
    /// Builds the pipeline and sets it going; [`Stream::preroll`] then waits for its first picture.
    ///
    /// # Errors
    /// Where the pipeline cannot be built or refuses to start; they name the stream.
    pub(super) fn start(
        input: Input,
        layout: Layout,
        timing: Option<Timing>,
        zero: gst::ClockTime,
        options: &GstOptions,
    ) -> anyhow::Result<Self> {
        let name = input.name();
        Self::build(input, layout, timing, zero, options)
            .map_err(|error| anyhow!("{name}: {error:#}"))
    }

    fn build(
        input: Input,
        layout: Layout,
        timing: Option<Timing>,
        zero: gst::ClockTime,
        options: &GstOptions,
    ) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared::default());
        let pipeline = gst::Pipeline::new();
        let (sender, delivered) = crossbeam_channel::bounded(CHANNEL);
        let format = Arc::new(Mutex::new(Format::default()));
        let taker = Taker {
            layout,
            pool: options.pool.clone(),
            caps: None,
            format: format.clone(),
            taken: 0,
        };
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
            live: false,
            ended: false,
            silent_since: None,
            taken: 0,
            rate: None,
            input,
            timing,
            files: 0,
        };
        // From here on every return closes the pipeline.
        wiring::connect(&stream.input, timing, &stream.pipeline, target, &stream.shared)?;
        share_clock(&stream.pipeline, zero);
        // Only on the way to "paused" does a pipeline tell that it is live.
        for state in [gst::State::Paused, gst::State::Playing] {
            match stream.pipeline.set_state(state) {
                Ok(change) => stream.live |= change == gst::StateChangeSuccess::NoPreroll,
                Err(_) => {
                    let reason = stream.shared.failure();
                    bail!(reason.unwrap_or_else(|| "the pipeline does not start".to_owned()));
                }
            }
        }
        Ok(stream)
    }

    /// Waits for the first picture.
    ///
    /// # Errors
    /// Where none comes; they name the stream.
    pub(super) fn preroll(&mut self, options: &GstOptions) -> anyhow::Result<()> {
        let deadline = Instant::now() + options.patience;
        loop {
            match self.next(super::TICK) {
                Some(Delivered::Picture(picture)) => {
                    self.first.push_back(picture);
                    self.rate = lock(&self.format).rate;
                    self.live |= self.asks_for_latency();
                    return Ok(());
                }
                Some(Delivered::End) => {
                    let reason =
                        self.shared.failure().or_else(|| lock(&self.shared.damage).clone());
                    let reason = reason.unwrap_or_else(|| "it holds no picture".to_owned());
                    bail!("{}: {reason}{}", self.name(), self.input.hint());
                }
                None => {}
            }
            if let Some(reason) = self.shared.failure()
                && self.silent_since.is_some_and(|since| since.elapsed() > GRACE / 4)
            {
                bail!("{}: {reason}{}", self.name(), self.input.hint());
            }
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
            self.first.iter().filter_map(|picture| self.time(picture.times)).collect();
        let mut steps: Vec<Duration> =
            times.windows(2).filter_map(|two| two[1].checked_sub(two[0])).collect();
        steps.retain(|step| !step.is_zero());
        steps.sort_unstable();
        self.rate = steps.get(steps.len() / 2).map(|step| 1.0 / step.as_secs_f64());
    }

    /// The next picture, waiting for it no longer than `wait`.
    pub(super) fn receive(&mut self, wait: Duration) -> Received {
        let next = match self.first.pop_front() {
            Some(picture) => Some(Delivered::Picture(picture)),
            None => self.next(wait),
        };
        match next {
            Some(Delivered::Picture(Raw { views, times, arrived })) => {
                self.taken += 1;
                let timestamp = self.time(times);
                self.note_file(timestamp);
                Received::Picture(Picture { views, timestamp, arrived })
            }
            Some(Delivered::End) => Received::End,
            None => Received::Nothing,
        }
    }

    /// What the streaming thread has next.
    fn next(&mut self, wait: Duration) -> Option<Delivered> {
        if self.ended {
            return Some(Delivered::End);
        }
        match self.delivered.recv_timeout(wait) {
            Ok(Delivered::Picture(picture)) => {
                self.silent_since = None;
                Some(Delivered::Picture(picture))
            }
            Ok(Delivered::End) | Err(RecvTimeoutError::Disconnected) => {
                self.ended = true;
                Some(Delivered::End)
            }
            Err(RecvTimeoutError::Timeout) => {
                let since = *self.silent_since.get_or_insert_with(Instant::now);
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
        if (failed || self.is_idle()) && self.delivered.is_empty() {
            self.shared.fail("it gives no pictures, without saying why".to_owned());
            self.ended = true;
        }
    }

    /// Whether none of the threads that move a recording's data is running.
    fn is_idle(&self) -> bool {
        let recorded = matches!(self.input, Input::File(_) | Input::Pictures(_));
        let running = |element: gst::Element| {
            element.pads().iter().any(|pad| pad.task_state() == gst::TaskState::Started)
        };
        let mut elements = self.pipeline.iterate_recurse();
        recorded && elements.find(running).is_none()
    }

    /// Which time of a picture can be compared with the other eye's: for a live stream the time
    /// at which it was captured by the common clock, for a recording its place in it, edit lists
    /// considered.
    fn time(&self, times: Times) -> Option<Duration> {
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

    /// Waits until one of two streams has something, or `wait` has passed.
    pub(super) fn wait_any(streams: &[Stream; 2], wait: Duration) {
        if streams.iter().any(Stream::is_ready) {
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
        self.shared.count_only.store(true, Ordering::SeqCst);
    }

    /// Pictures that were counted instead of delivered.
    pub(super) fn skipped(&self) -> u64 {
        self.shared.skipped.load(Ordering::SeqCst)
    }

    /// Stops the pipeline; what is still in the channel is lost.
    pub(super) fn close(&mut self) {
        self.ended = true;
        self.first.clear();
        self.delivered = crossbeam_channel::never();
        let _ = self.pipeline.set_state(gst::State::Null);
    }

    /// Finds the file of a picture by its time; those before it that were not shown are damaged.
    fn note_file(&mut self, shown: Option<Duration>) {
        let (Input::Pictures(pictures), Some(timing)) = (&self.input, self.timing) else { return };
        for (number, path) in &pictures.files[self.files.min(pictures.files.len())..] {
            self.files += 1;
            if shown.is_none_or(|shown| timing.time(*number) >= shown) {
                break;
            }
            self.shared.note_damage(format!("{} cannot be decoded", path.display()));
        }
    }

    /// What ended the stream before its natural end or was left out of it, naming it.
    pub(super) fn failure(&self) -> Option<String> {
        let count = self.taken + self.skipped();
        let (name, error) = (self.name(), self.shared.failure());
        let Input::Pictures(pictures) = &self.input else {
            return error.map(|reason| format!("{name}: {reason}, after {count} pictures"));
        };
        let next = pictures.files.get(self.files).map(|(_, path)| path.display());
        if let (Some(reason), Some(next)) = (&error, &next) {
            return Some(format!("{name}: {reason}, at {next}"));
        }
        let lost = (pictures.files.len() as u64).saturating_sub(count);
        let first = lock(&self.shared.damage).clone();
        let reason = error
            .or(first)
            .or_else(|| next.map(|next| format!("{next} cannot be decoded")))
            .filter(|_| lost > 0)?;
        Some(format!("{name}: {lost} of {} pictures left out: {reason}", pictures.files.len()))
    }

    /// Whether a file ended well but gave far fewer pictures than its length says: how many it
    /// gave, and how many were expected.
    pub(super) fn cut_short(&self) -> Option<(u64, u64)> {
        let (count, expected) = (self.taken + self.skipped(), self.expected()?);
        let file = matches!(self.input, Input::File(_));
        // The length is only about right.
        (file && self.ended && count + 2 + expected / 50 < expected).then_some((count, expected))
    }

    /// What it is, for people.
    pub(super) fn name(&self) -> String {
        self.input.name()
    }

    /// Size of each view in pixels.
    pub(super) fn view_size(&self) -> (usize, usize) {
        lock(&self.format).view.unwrap_or_default()
    }

    /// Pictures a second, where known.
    pub(super) fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// Sets the rate of a stream that is known to have it.
    pub(super) fn set_rate(&mut self, rate: f64) {
        self.rate = Some(rate);
    }

    /// How many pictures [`Stream::receive`] has given.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether pictures come at their own pace.
    pub(super) fn live(&self) -> bool {
        self.live
    }

    /// About how many pictures there are, where known.
    pub(super) fn expected(&self) -> Option<u64> {
        if let Input::Pictures(pictures) = &self.input {
            return Some(pictures.files.len() as u64);
        }
        if self.live {
            return None;
        }
        let length = self.pipeline.query_duration::<gst::ClockTime>()?;
        let pictures = length.nseconds() as f64 * 1e-9 * self.rate?;
        (pictures >= 0.5).then_some(pictures.round() as u64)
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

/// Makes the times of live pipelines comparable: one clock, one zero.
fn share_clock(pipeline: &gst::Pipeline, zero: gst::ClockTime) {
    pipeline.use_clock(Some(&gst::SystemClock::obtain()));
    pipeline.set_start_time(gst::ClockTime::NONE);
    pipeline.set_base_time(zero);
}

fn appsink(sender: Sender<Delivered>, shared: Arc<Shared>, mut taker: Taker) -> gst_app::AppSink {
    let end = sender.clone();
    let new_sample = move |sink: &gst_app::AppSink| {
        let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
        if shared.count_only.load(Ordering::SeqCst) {
            shared.skipped.fetch_add(1, Ordering::SeqCst);
            return Ok(gst::FlowSuccess::Ok);
        }
        match taker.take(&sample) {
            Ok(picture) => {
                sender.send(picture).map_err(|_| gst::FlowError::Flushing)?;
                Ok(gst::FlowSuccess::Ok)
            }
            Err(error) => {
                shared.fail(format!("{error:#}"));
                let _ = sender.send(Delivered::End);
                Err(gst::FlowError::Error)
            }
        }
    };
    let callbacks = gst_app::AppSinkCallbacks::builder().new_sample(new_sample).eos(move |_| {
        // The receiver is gone where the stream was closed first.
        let _ = end.send(Delivered::End);
    });
    let sink = gst_app::AppSink::builder()
        .sync(false)
        .max_buffers(2)
        .drop(false)
        .enable_last_sample(false)
        .caps(&plane::readable_caps())
        .build();
    sink.set_callbacks(callbacks.build());
    sink
}

/// The streaming thread's work.
struct Taker {
    layout: Layout,
    pool: crate::pool::Pool<u8>,
    caps: Option<(gst::Caps, gst_video::VideoInfo)>,
    format: Arc<Mutex<Format>>,
    taken: u64,
}

impl Taker {
    fn take(&mut self, sample: &gst::Sample) -> anyhow::Result<Delivered> {
        let arrived = Instant::now();
        let buffer = sample.buffer().ok_or_else(|| anyhow!("delivers empty samples"))?;
        let caps = sample.caps().ok_or_else(|| anyhow!("delivers pictures without a format"))?;
        let info = match &self.caps {
            Some((known, info)) if known.as_ptr() == caps.as_ptr() => info.clone(),
            _ => {
                let info = gst_video::VideoInfo::from_caps(caps)?;
                self.caps = Some((caps.to_owned(), info.clone()));
                info
            }
        };
        let views = plane::copy_views(buffer, &info, self.layout, &self.pool)?;
        let (Views::One(view) | Views::Both(view, _)) = &views;
        let size = (view.width(), view.height());
        let mut format = lock(&self.format);
        let first = *format.view.get_or_insert(size);
        if self.taken == 0 {
            format.rate = rate(info.fps());
        }
        if first != size {
            bail!(
                "its pictures change from {}x{} to {}x{}; split it there",
                first.0,
                first.1,
                size.0,
                size.1
            );
        }
        self.taken += 1;
        let pts = buffer.pts();
        let segment = sample.segment().and_then(|s| s.downcast_ref::<gst::ClockTime>());
        let times = Times {
            written: pts,
            stream: segment.and_then(|segment| segment.to_stream_time(pts)),
            running: segment.and_then(|segment| segment.to_running_time(pts)),
        };
        Ok(Delivered::Picture(Raw { views, times, arrived }))
    }
}

/// Pictures a second; containers that do not know it write 0, some transport streams 90000.
fn rate(fraction: gst::Fraction) -> Option<f64> {
    let rate = f64::from(fraction.numer()) / f64::from(fraction.denom().max(1));
    (rate > 0.0 && rate <= 1000.0).then_some(rate)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
