//! Reopens a live stream after its loss, again and again until it is back.
//!
//! A lost stream is closed and reopened on a thread of its own, because drivers may be slow at either and the
//! other view must continue. It is closed at once, because a camera that is plugged in again gets its old
//! device name only if the old device is closed.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::{Receiver, TryRecvError};
use image::metadata::Orientation;

use crate::backoff::Backoff;
use crate::control::Switch;
use crate::labels::Timing;
use crate::source::gst::inputs::input::Input;
use crate::source::gst::options::{GstOptions, Reconnect};
use crate::source::gst::stream::{CLOSING, CutShort, InputStream, Received, StreamSetup};
use crate::source::gst::times::{TICK, period_of};
use crate::source::pictures::Pictures;
use crate::source::{Damage, Unavailable};
use stereod_core::thread;

/// Shortest time that an attempt waits for a frame.
const PATIENCE: Duration = Duration::from_secs(5);

/// Default of the longest silence: this time or this many frames, whichever is longer.
const SILENCE: (Duration, u32) = (Duration::from_secs(2), 10);

/// A stream that is reopened after a loss, if requested.
pub(in crate::source::gst) struct ReconnectingStream {
    /// Name in messages: "left camera".
    who: &'static str,
    recipe: StreamSetup,
    options: GstOptions,
    size: (usize, usize),
    has_colour: bool,
    white: u8,
    rate: Option<f64>,
    /// True if the container states the rate, so that numbers of pairs follow from times.
    states_rate: bool,
    /// Time of the first frame at the opening.
    begin: Option<Duration>,
    /// True if the stream is reopened after a loss.
    again: bool,
    /// True if the frames have no capture times, only times of arrival.
    by_arrival: bool,
    silence: Duration,
    link: Link,
    /// Number of the next frame.
    index: u64,
    /// Arrival of the last frame.
    last_picture: Instant,
    since: Instant,
    backoff: Backoff,
    returned: bool,
    /// Reported size of a stream that came back with another size.
    other_size: Option<(usize, usize)>,
}

enum Link {
    Up(Box<InputStream>),
    Lost(Search),
    /// Reason why it will not return.
    Failed(String),
}

/// Thread that tries to reopen a stream.
struct Search {
    found: Receiver<InputStream>,
    cancel: Switch,
    thread: JoinHandle<()>,
}

impl ReconnectingStream {
    /// Builds and starts the stream.
    pub(in crate::source::gst) fn start(
        who: &'static str,
        recipe: StreamSetup,
        options: &GstOptions,
    ) -> anyhow::Result<Self> {
        let input = &recipe.input;
        let stream = start_in_time(&recipe, options).map_err(|error| unavailable(input, error))?;
        let now = Instant::now();
        Ok(Self {
            who,
            recipe,
            options: options.clone(),
            size: (0, 0),
            has_colour: false,
            white: u8::MAX,
            rate: None,
            states_rate: false,
            begin: None,
            again: false,
            by_arrival: false,
            silence: SILENCE.0,
            link: Link::Up(Box::new(stream)),
            index: 0,
            last_picture: now,
            since: now,
            backoff: Backoff::default(),
            returned: false,
            other_size: None,
        })
    }

    /// Waits for the first frame and measures the rate.
    pub(in crate::source::gst) fn prepare(&mut self) -> anyhow::Result<()> {
        let Link::Up(stream) = &mut self.link else { return Ok(()) };
        let came = stream.preroll(&self.options);
        came.map_err(|error| unavailable(&self.recipe.input, error))?;
        if self.recipe.timing.is_some() {
            stream.set_rate(self.options.picture_rate);
        }
        self.states_rate = stream.rate().is_some();
        stream.measure_rate(&self.options.stop);
        (self.size, self.rate) = (stream.view_size(), stream.rate());
        self.begin = stream.begin_time();
        (self.has_colour, self.white) = (stream.has_colour(), stream.white());
        self.again = stream.live() && self.options.reconnect != Reconnect::Off;
        self.by_arrival = stream.is_by_arrival();
        let frames = self.rate.map_or(Duration::ZERO, period_of) * SILENCE.1;
        self.silence = self.options.silence.unwrap_or(SILENCE.0.max(frames));
        self.since = Instant::now();
        self.last_picture = self.since;
        Ok(())
    }

    /// Discards frames that were captured before the run began.
    pub(in crate::source::gst) fn begin(&mut self) {
        if let Link::Up(stream) = &mut self.link {
            stream.begin();
        }
    }

    /// Waits at most `wait` for the next frame. A lost stream returns nothing until it is back.
    pub(in crate::source::gst) fn receive(&mut self, wait: Duration) -> Received {
        self.look_for_it();
        let again = self.again;
        let stream = match &mut self.link {
            Link::Up(stream) => stream,
            Link::Lost(_) => {
                std::thread::sleep(wait);
                return Received::Nothing;
            }
            Link::Failed(_) => return Received::End,
        };
        match stream.receive(wait) {
            frame @ Received::Frame(_) => {
                self.index += 1;
                self.last_picture = Instant::now();
                frame
            }
            Received::Nothing if again && stream.silent_for() > self.silence => {
                let known = stream.reason();
                let silent = stream.silent_for().as_secs_f64();
                self.lose(&known.unwrap_or_else(|| format!("no picture for {silent:.1} s")));
                Received::Nothing
            }
            Received::End if again => {
                let reason = stream.reason().unwrap_or_else(|| "its stream ended".to_owned());
                self.lose(&reason);
                Received::Nothing
            }
            other => other,
        }
    }

    /// Closes a lost stream and starts to search for it.
    fn lose(&mut self, reason: &str) {
        tracing::warn!("{} lost: {reason}; trying again", self.who);
        self.recipe.state.note_lost(self.last_picture);
        let pause = self.backoff.after(self.since.elapsed());
        let link = Link::Failed(format!("{}: {reason}", self.who));
        if let Link::Up(old) = std::mem::replace(&mut self.link, link) {
            match self.search(*old, pause) {
                Ok(search) => self.link = Link::Lost(search),
                Err(error) => {
                    self.link = Link::Failed(format!("{}: cannot be reopened: {error}", self.who));
                }
            }
        }
    }

    fn search(&self, old: InputStream, mut pause: Duration) -> std::io::Result<Search> {
        let (sender, found) = crossbeam_channel::bounded(1);
        let cancel = Switch::default();
        let options = GstOptions {
            patience: PATIENCE.max(self.silence),
            stop: cancel.clone(),
            ..self.options.clone()
        };
        let (who, recipe, mut backoff) = (self.who, self.recipe.clone(), self.backoff);
        let look = move || {
            // The camera may return as another device, so a stream that does not close is not
            // waited for.
            drop(old);
            while wait_unless(&options.stop, pause) {
                let opened = InputStream::start(&recipe, &options)
                    .and_then(|mut stream| stream.preroll(&options).map(|()| stream));
                match opened {
                    Ok(stream) => {
                        // The send fails if the search was abandoned.
                        let _ = sender.send(stream);
                        return;
                    }
                    Err(error) => tracing::debug!("{who} is not back: {error:#}"),
                }
                pause = backoff.further();
            }
        };
        // The receiver notices a broken search by its closed channel.
        let thread = thread::spawn("reconnect", look, |broken| tracing::error!("{broken}"))?;
        Ok(Search { found, cancel, thread })
    }

    /// Takes over a stream that is back.
    fn look_for_it(&mut self) {
        let Link::Lost(search) = &self.link else { return };
        let who = self.who;
        self.link = match search.found.try_recv() {
            Ok(stream) if stream.view_size() != self.size => {
                let ((w, h), (now_w, now_h)) = (self.size, stream.view_size());
                if self.other_size.replace((now_w, now_h)) != Some((now_w, now_h)) {
                    tracing::warn!(
                        "{who}: its pictures were {w}x{h} and are {now_w}x{now_h} since it is back; \
                         give it its old mode, or start anew with this one; trying again"
                    );
                }
                let pause = self.backoff.further();
                match self.search(stream, pause) {
                    Ok(search) => Link::Lost(search),
                    Err(error) => Link::Failed(format!("{who}: cannot be reopened: {error}")),
                }
            }
            Ok(stream) => {
                let away = self.last_picture.elapsed();
                tracing::info!("{who} is back after {:.1} s", away.as_secs_f64());
                self.recipe.state.note_back();
                self.returned = true;
                self.other_size = None;
                self.since = Instant::now();
                Link::Up(Box::new(stream))
            }
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => {
                Link::Failed(format!("{who}: trying to reopen it failed; see the messages above"))
            }
        };
    }

    /// Reports whether the stream is lost at present.
    pub(in crate::source::gst) fn is_lost(&self) -> bool {
        matches!(self.link, Link::Lost(_))
    }

    /// Reports whether the stream has come back since the last call.
    pub(in crate::source::gst) fn take_returned(&mut self) -> bool {
        std::mem::take(&mut self.returned)
    }

    /// Returns the number of the next frame.
    pub(in crate::source::gst) fn index(&self) -> u64 {
        self.index
    }

    /// Raises the number of the next frame after a loss.
    pub(in crate::source::gst) fn skip_to(&mut self, index: u64) {
        self.index = self.index.max(index);
    }

    /// Reports whether the stream can be reopened at another place: an ordinary file, or images.
    pub(in crate::source::gst) fn is_seekable(&self) -> bool {
        match &self.recipe.input {
            Input::File(path) => path.is_file(),
            Input::Pictures(_) => true,
            Input::Uri(_) | Input::Fragment(_) | Input::Camera(_) => false,
        }
    }

    /// Returns the time of the first frame, if it has one.
    pub(in crate::source::gst) fn begin_time(&self) -> Option<Duration> {
        self.begin
    }

    /// Returns the time from the first frame to the end, if known.
    pub(in crate::source::gst) fn length(&self) -> Option<Duration> {
        let period = period_of(self.rate?);
        match (&self.recipe.input, self.recipe.timing) {
            (Input::Pictures(pictures), Some(timing)) => {
                let last = timing.time(pictures.numbers().last()?);
                Some(last.saturating_sub(self.begin?) + period)
            }
            _ => Some(Duration::from_secs_f64(self.expected()? as f64 / self.rate?)),
        }
    }

    /// Returns the image files of the stream, if these are its input.
    pub(in crate::source::gst) fn pictures(&self) -> Option<&Pictures> {
        match &self.recipe.input {
            Input::Pictures(pictures) => Some(pictures),
            _ => None,
        }
    }

    /// Returns the times of its images.
    pub(in crate::source::gst) fn timing(&self) -> Option<Timing> {
        self.recipe.timing
    }

    /// Reopens images without the first `skipped` files. Frames are numbered on from there.
    pub(in crate::source::gst) fn reopen_pictures(&mut self, skipped: usize) -> anyhow::Result<()> {
        let mut recipe = self.recipe.clone();
        if let Input::Pictures(pictures) = &mut recipe.input {
            pictures.files.drain(..skipped.min(pictures.files.len()));
        }
        self.index = skipped as u64;
        self.reopen(&recipe)
    }

    /// Reopens a recording at or before a time; `None`: at its beginning. Returns whether it begins to
    /// play later than at its beginning.
    pub(in crate::source::gst) fn reopen_at(
        &mut self,
        at: Option<Duration>,
    ) -> anyhow::Result<bool> {
        self.index = 0;
        let at = at.filter(|&at| self.states_rate && self.begin.is_some_and(|begin| at > begin));
        if let Some(at) = at {
            self.reopen(&StreamSetup { at: Some(at), ..self.recipe.clone() })?;
            let (begin, rate, period) = (self.begin, self.rate, self.rate.map(period_of));
            let Link::Up(stream) = &mut self.link else { return Ok(false) };
            let first = stream.resume(begin, rate, &self.options);
            let latest = at + 3 * period.unwrap_or_default();
            if stream.is_moved && first.is_some_and(|first| first <= latest) {
                return Ok(true);
            }
            if !stream.is_moved {
                return Ok(false);
            }
            // The container led behind the place, or behind the end.
        }
        let recipe = self.recipe.clone();
        self.reopen(&recipe)?;
        if let Link::Up(stream) = &mut self.link {
            stream.resume(self.begin, self.rate, &self.options);
        }
        Ok(false)
    }

    fn reopen(&mut self, recipe: &StreamSetup) -> anyhow::Result<()> {
        // The old stream is closed first, so that only one decoder holds memory.
        self.close();
        self.link = Link::Up(Box::new(start_in_time(recipe, &self.options)?));
        Ok(())
    }

    fn stream(&self) -> Option<&InputStream> {
        match &self.link {
            Link::Up(stream) => Some(stream),
            Link::Lost(_) | Link::Failed(_) => None,
        }
    }

    /// Waits until one of `streams` has something, or `wait` has passed.
    pub(in crate::source::gst) fn wait_any(streams: &[ReconnectingStream; 2], wait: Duration) {
        let up: Vec<&InputStream> = streams.iter().filter_map(ReconnectingStream::stream).collect();
        if up.is_empty() {
            std::thread::sleep(wait);
        } else {
            InputStream::wait_any(&up, wait);
        }
    }

    /// Counts frames from now on instead of delivering them; see [`ReconnectingStream::skipped`].
    pub(in crate::source::gst) fn count_only(&self) {
        if let Some(stream) = self.stream() {
            stream.count_only();
        }
    }

    /// Returns the number of frames that were counted instead of delivered.
    pub(in crate::source::gst) fn skipped(&self) -> u64 {
        self.stream().map_or(0, InputStream::skipped)
    }

    /// Returns the reason of a premature end for good, with the name of the stream.
    pub(in crate::source::gst) fn failure(&self) -> Option<String> {
        match &self.link {
            Link::Up(stream) => stream.failure(),
            Link::Lost(_) => None,
            Link::Failed(reason) => Some(reason.clone()),
        }
    }

    /// Describes a file that ended without an error but far too early.
    pub(in crate::source::gst) fn cut_short(&self) -> Option<CutShort> {
        self.stream()?.cut_short()
    }

    /// Returns the numbers of damaged frames; none while the stream is lost.
    pub(in crate::source::gst) fn damage(&self) -> Damage {
        self.stream().map_or_else(Damage::default, InputStream::damage)
    }

    /// Returns the name for people.
    pub(in crate::source::gst) fn name(&self) -> String {
        self.recipe.input.name()
    }

    /// Returns the orientation in its tags.
    pub(in crate::source::gst) fn orientation(&self) -> Orientation {
        self.stream().map_or(Orientation::NoTransforms, InputStream::orientation)
    }

    pub(in crate::source::gst) fn view_size(&self) -> (usize, usize) {
        self.size
    }

    /// Returns the first stream's smallest grey level of white.
    pub(in crate::source::gst) fn white(&self) -> u8 {
        self.white
    }

    /// Returns width and height of a pixel, as the stream states them.
    pub(in crate::source::gst) fn pixel_shape(&self) -> (i32, i32) {
        match &self.link {
            Link::Up(stream) => stream.pixel_shape(),
            Link::Lost(_) | Link::Failed(_) => (1, 1),
        }
    }

    /// Reports whether the frames had colour at first.
    pub(in crate::source::gst) fn has_colour(&self) -> bool {
        self.has_colour
    }

    /// Reports whether the frames have no capture times, only times of arrival.
    pub(in crate::source::gst) fn is_by_arrival(&self) -> bool {
        self.by_arrival
    }

    /// Returns the frames per second, if known.
    pub(in crate::source::gst) fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// Reports whether the stream is live.
    pub(in crate::source::gst) fn live(&self) -> bool {
        self.again || self.stream().is_some_and(InputStream::live)
    }

    /// Returns the approximate number of frames, if known.
    pub(in crate::source::gst) fn expected(&self) -> Option<u64> {
        self.stream()?.expected()
    }

    /// Stops the pipeline or the search for it.
    pub(in crate::source::gst) fn close(&mut self) {
        self.again = false;
        match &mut self.link {
            Link::Up(stream) => stream.close(),
            Link::Lost(search) => search.end(),
            Link::Failed(_) => {}
        }
    }
}

impl Drop for ReconnectingStream {
    fn drop(&mut self) {
        self.close();
    }
}

impl Search {
    /// Ends the search. A thread that a driver blocks is left behind.
    fn end(&self) {
        self.cancel.set(true);
        thread::wait_for(&self.thread, |waited| waited > CLOSING);
    }
}

/// Marks a failure to open `input` as temporary if a later attempt may succeed: for a camera or a
/// server, not for a file or a fragment.
fn unavailable(input: &Input, error: anyhow::Error) -> anyhow::Error {
    match input {
        Input::Camera(_) | Input::Uri(_) => Unavailable { reason: format!("{error:#}") }.into(),
        Input::File(_) | Input::Pictures(_) | Input::Fragment(_) => error,
    }
}

/// Builds and starts a stream, with a timeout except for cameras: opening a pipe may wait for its
/// writer forever. Cameras are slow, and are reopened anyway.
fn start_in_time(recipe: &StreamSetup, options: &GstOptions) -> anyhow::Result<InputStream> {
    let longest = options.patience;
    let (wanted, with) = (recipe.clone(), options.clone());
    let endless = matches!(recipe.input, Input::Camera(_));
    let start = move || InputStream::start(&wanted, &with);
    let started = thread::bounded("opening", start, |waited| !endless && waited > longest);
    started.context("cannot start a thread")?.with_context(|| {
        let name = recipe.input.name();
        format!("{name}: does not open within {:.1} s", longest.as_secs_f64())
    })?
}

/// Waits for `pause`. Returns false if `cancel` was set meanwhile.
fn wait_unless(cancel: &Switch, pause: Duration) -> bool {
    let until = Instant::now() + pause;
    while !cancel.is_set() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(TICK));
    }
    false
}
