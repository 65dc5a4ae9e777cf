//! Recorded and live streams through GStreamer: files, numbered pictures, URIs and free pipeline
//! fragments, one for each eye or one that holds both views.
//!
//! Each stream has a pipeline of its own, so that trouble in one eye never holds up the other.

mod camera;
mod input;
mod inspect;
mod message;
mod pictures;
mod plane;
mod reconnect;
mod stream;
mod tap;
mod wiring;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use gstreamer as gst;
use gstreamer::prelude::*;

use self::input::Input;
use self::plane::{Layout, Views};
use self::reconnect::{Lasting, Recipe};
use self::stream::{CutShort, Picture, Received};
use super::live::LiveState;
use super::{Source, SourceCounts, SourceInfo, v4l2};
use crate::control::Switch;
use crate::frame::{Eye, EyeFrame, StereoPair};
use crate::pair::{PairBy, Pairer, Pairing};
use crate::pool::Pool;
use crate::synchronisation::Remark;

/// How long to wait for a picture before looking at the stop switch again.
const TICK: Duration = Duration::from_millis(20);

/// Frame period of a stream that neither states its rate nor has times to measure it by.
const UNKNOWN_PERIOD: Duration = Duration::from_nanos(1_000_000_000 / 30);

/// Where the two views come from. A stream is a file, a picture pattern (`dir/%06d.png`; every
/// number that exists is played), a camera (`/dev/video0`, or a link to it), a URI, or a fragment of
/// a GStreamer pipeline (with a `!`) that ends where video comes out, raw or encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamSpec {
    /// A stream for each eye.
    Two {
        /// The left eye's.
        left: String,
        /// The right eye's.
        right: String,
    },
    /// One stream whose left half is the left eye.
    SideBySide(String),
    /// One stream whose upper half is the left eye.
    TopBottom(String),
}

/// Which streams are opened again where they end, fail or fall silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reconnect {
    /// Live ones.
    #[default]
    Auto,
    /// Every URI and fragment; those that do not say that they are live are taken as live, with
    /// the times of arrival.
    On,
    /// None: the source ends with the first.
    Off,
}

/// How to open and pair streams.
#[derive(Clone, Debug)]
pub struct GstOptions {
    /// What makes two pictures a pair.
    pub pair_by: PairBy,
    /// Largest difference of a pair's times; `None`: just under half the shorter frame period.
    pub tolerance: Option<Duration>,
    /// Whether the eyes are exchanged: what is called left is the right eye's.
    pub swap: bool,
    /// What is wanted of cameras; the size is that of each eye.
    pub cameras: v4l2::Wish,
    /// Exposure and the like of cameras.
    pub controls: v4l2::Controls,
    /// Pictures a second of picture patterns.
    pub picture_rate: f64,
    /// How long a stream may take to deliver its first picture.
    pub patience: Duration,
    /// Which streams are opened again.
    pub reconnect: Reconnect,
    /// How long a live stream may be silent until it counts as lost; `None`: 2 s, or 10 frames where
    /// they are longer.
    pub silence: Option<Duration>,
    /// Where pictures are kept.
    pub pool: Pool<u8>,
    /// Ends the wait for the first picture.
    pub stop: Switch,
}

impl Default for GstOptions {
    fn default() -> Self {
        Self {
            pair_by: PairBy::Auto,
            tolerance: None,
            swap: false,
            cameras: v4l2::Wish::default(),
            controls: v4l2::Controls::default(),
            picture_rate: 30.0,
            patience: Duration::from_secs(15),
            reconnect: Reconnect::Auto,
            silence: None,
            pool: Pool::new(),
            stop: Switch::default(),
        }
    }
}

/// Opens streams and waits for the first picture of each.
///
/// # Errors
/// Where a stream cannot be opened, holds no video, or does not fit the other; they name the
/// stream and the cure.
pub fn open(spec: &StreamSpec, options: &GstOptions) -> anyhow::Result<Box<dyn Source>> {
    initialise()?;
    ensure!(
        options.picture_rate.is_finite() && options.picture_rate > 0.0,
        "the picture rate must be above 0, not {}",
        options.picture_rate
    );
    match spec {
        StreamSpec::Two { left, right } if options.swap => open_two(right, left, options),
        StreamSpec::Two { left, right } => open_two(left, right, options),
        StreamSpec::SideBySide(stream) => open_halves(stream, Layout::SideBySide, options),
        StreamSpec::TopBottom(stream) => open_halves(stream, Layout::TopBottom, options),
    }
}

/// Makes GStreamer ready; more than one call does no harm.
///
/// # Errors
/// Where GStreamer's core cannot be set up.
pub fn initialise() -> anyhow::Result<()> {
    gst::init().context(
        "GStreamer does not start; is it installed? (libgstreamer1.0-0, gstreamer1.0-plugins-base)",
    )
}

/// The present, as the zero of the times of live streams that are opened together.
fn now() -> gst::ClockTime {
    gst::SystemClock::obtain().time()
}

fn open_two(left: &str, right: &str, options: &GstOptions) -> anyhow::Result<Box<dyn Source>> {
    let [left, right] = camera::inputs([left, right], Layout::Whole, options)?;
    let (mut short_names, names) =
        ([left.short_name(), right.short_name()], [left.name(), right.name()]);
    if short_names[0] == short_names[1] {
        short_names = names;
    }
    // Numbers of two patterns are on one scale; a pattern beside a video starts at its own first.
    let mut common = None;
    let timings = match (&left, &right) {
        (Input::Pictures(l), Input::Pictures(r)) => {
            let numbers: std::collections::HashSet<u64> = l.numbers().collect();
            let shared = r.numbers().filter(|number| numbers.contains(number)).count();
            ensure!(
                shared > 0 || options.pair_by == PairBy::Index,
                "{} and {} have no number in common ({} and {}): the eyes of a pair must have \
                 the same number, or be paired by index",
                l.pattern,
                r.pattern,
                l.range(),
                r.range()
            );
            common = (options.pair_by != PairBy::Index).then_some(shared as u64);
            [Some(pictures::timing(&[l, r], options.picture_rate)); 2]
        }
        _ => [&left, &right].map(|input| own_timing(input, options.picture_rate)),
    };
    let zero = now();
    let state = Arc::new(LiveState::since(zero.into()));
    let recipe = |input, eye: Eye, timing| {
        let state = state.eye(eye).clone();
        Recipe { input, layout: Layout::Whole, timing, zero, state }
    };
    let mut streams = [
        Lasting::start("left camera", recipe(left, Eye::Left, timings[0]), options)?,
        Lasting::start("right camera", recipe(right, Eye::Right, timings[1]), options)?,
    ];
    for stream in &mut streams {
        stream.prepare()?;
    }
    let [left, right] = &streams;
    let (size, other) = (left.view_size(), right.view_size());
    ensure!(
        size == other,
        "the eyes differ in size: {} is {}x{}, {} is {}x{}; scale or crop one of them",
        left.name(),
        size.0,
        size.1,
        right.name(),
        other.0,
        other.1
    );
    let rates = [left.rate(), right.rate()];
    let info = SourceInfo {
        description: short_names.join(" + "),
        width: size.0,
        height: size.1,
        rate: rates.into_iter().flatten().reduce(f64::min),
        pairs: common.or_else(|| expected_pairs(&streams)),
        live: left.live() || right.live(),
        has_truth: false,
    };
    let pairing = Pairing {
        by: options.pair_by,
        tolerance: options.tolerance,
        left_period: rates[0].map(period_of),
        right_period: rates[1].map(period_of),
    };
    state.synchronisation().claim(rates[0], rates[1]);
    let pairer = Pairer::new(pairing);
    Ok(Box::new(TwoStreams { info, streams, pairer, state, done: false }))
}

/// The number of pairs that two streams can give: the shorter one's length at the lower rate.
fn expected_pairs(streams: &[Lasting; 2]) -> Option<u64> {
    let seconds = |stream: &Lasting| Some(stream.expected()? as f64 / stream.rate()?);
    let [left, right] = streams;
    let rate = left.rate()?.min(right.rate()?);
    Some((seconds(left)?.min(seconds(right)?) * rate).round() as u64)
}

fn open_halves(
    stream: &str,
    layout: Layout,
    options: &GstOptions,
) -> anyhow::Result<Box<dyn Source>> {
    let [input] = camera::inputs([stream], layout, options)?;
    let how = if layout == Layout::SideBySide { "side by side" } else { "top-bottom" };
    let description = format!("{} ({how})", input.short_name());
    let timing = own_timing(&input, options.picture_rate);
    let zero = now();
    let state = Arc::new(LiveState::since(zero.into()));
    let eye = state.eye(Eye::Left).clone();
    let recipe = Recipe { input, layout, timing, zero, state: eye };
    let mut stream = Lasting::start("camera", recipe, options)?;
    stream.prepare()?;
    let (width, height) = stream.view_size();
    let info = SourceInfo {
        description,
        width,
        height,
        rate: stream.rate(),
        pairs: stream.expected(),
        live: stream.live(),
        has_truth: false,
    };
    let swap = options.swap;
    Ok(Box::new(HalvedStream { info, stream, state, swap, pairs: 0, last: None, done: false }))
}

fn own_timing(input: &Input, rate: f64) -> Option<pictures::Timing> {
    match input {
        Input::Pictures(pictures) => Some(pictures::timing(&[pictures], rate)),
        _ => None,
    }
}

fn period_of(rate: f64) -> Duration {
    Duration::from_secs_f64(1.0 / rate)
}

/// Says, as an error, what ended any of `streams` too early, and warns where one may have been cut.
fn verdict(streams: &[Lasting]) -> anyhow::Result<()> {
    let mut failures: Vec<String> = streams.iter().filter_map(Lasting::failure).collect();
    failures.dedup();
    if !failures.is_empty() {
        bail!(failures.join("; "));
    }
    for stream in streams {
        let Some(CutShort { count, expected, certain }) = stream.cut_short() else { continue };
        let name = stream.name();
        if certain {
            bail!(
                "{name}: only {count} of about {expected} pictures could be read; the file is truncated or \
                 damaged"
            );
        }
        tracing::warn!(
            "{name}: only {count} of about {expected} pictures came; that is well where its frame rate \
             varies or its sound is longer, else it is damaged"
        );
    }
    Ok(())
}

/// A stream for each eye.
struct TwoStreams {
    info: SourceInfo,
    /// Left, right.
    streams: [Lasting; 2],
    pairer: Pairer,
    state: Arc<LiveState>,
    done: bool,
}

impl TwoStreams {
    /// Takes what one stream has next; whether it was the end.
    fn advance(&mut self, eye: usize, wait: Duration) -> bool {
        let stream = &mut self.streams[eye];
        let index = stream.index();
        match stream.receive(wait) {
            Received::Picture(Picture { views: Views::One(image), timestamp, arrived }) => {
                if let (true, Some(time)) = (self.info.live, timestamp) {
                    self.state.synchronisation().frame(Eye::BOTH[eye], time);
                }
                self.pairer.push(Eye::BOTH[eye], EyeFrame { image, timestamp, index, arrived });
                false
            }
            Received::End => {
                self.pairer.finish(Eye::BOTH[eye]);
                true
            }
            // A stream of one eye has no second view.
            Received::Picture(_) | Received::Nothing => false,
        }
    }

    /// Counts the rest of an eye whose partner has ended.
    fn drain(&mut self, eye: usize, stop: &Switch) {
        let stream = &mut self.streams[eye];
        stream.count_only();
        while !stop.is_set() {
            match stream.receive(TICK) {
                Received::Picture(_) => self.pairer.skip(Eye::BOTH[eye], 1),
                Received::Nothing => {}
                Received::End => break,
            }
        }
        self.pairer.skip(Eye::BOTH[eye], stream.skipped());
        self.pairer.finish(Eye::BOTH[eye]);
    }

    /// Lets no frame wait for an eye that is lost. One that is back goes on with the other's number,
    /// for pairing by number.
    fn follow_losses(&mut self) {
        let highest = self.streams.iter().map(Lasting::index).max().unwrap_or_default();
        for (eye, stream) in Eye::BOTH.into_iter().zip(&mut self.streams) {
            if stream.is_lost() {
                self.pairer.abandon(eye);
            }
            if stream.take_returned() {
                stream.skip_to(highest);
                self.state.synchronisation().lost(eye);
            }
        }
    }

    /// Says what there is to say of how the cameras run against each other.
    fn remark(&self) {
        let Some(tolerance) = self.pairer.tolerance() else { return };
        match self.state.synchronisation().remark(tolerance) {
            Some(Remark::Warning(text)) => tracing::warn!("{text}"),
            Some(Remark::Well(text)) => tracing::info!("{text}"),
            None => {}
        }
    }

    /// Pairs until the end; whether it was reached.
    fn pair_all(
        &mut self,
        stop: &Switch,
        emit: &mut dyn FnMut(StereoPair, SourceCounts) -> ControlFlow<()>,
    ) -> bool {
        let live = self.info.live;
        let mut ended = [false; 2];
        loop {
            loop {
                if stop.is_set() {
                    return false;
                }
                let Some(pair) = self.pairer.pop() else { break };
                if live && self.pairer.tolerance().is_some() {
                    self.state.synchronisation().pair(pair.skew_ns);
                }
                if emit(pair, self.counts()).is_break() {
                    return false;
                }
            }
            // A live eye would never end while its partner is gone.
            if ended == [true; 2] || (live && ended != [false; 2]) {
                return true;
            }
            for (eye, ended) in ended.iter_mut().enumerate() {
                if !*ended && self.pairer.hopeless(Eye::BOTH[eye]) {
                    self.drain(eye, stop);
                    *ended = true;
                }
            }
            if live {
                Lasting::wait_any(&self.streams, TICK);
                for (eye, ended) in ended.iter_mut().enumerate() {
                    *ended |= self.advance(eye, Duration::ZERO);
                }
                self.follow_losses();
                self.remark();
            } else if let Some(eye) = self.pairer.needs() {
                // Asking only the eye that is needed keeps the other one's frames where they are.
                let eye = usize::from(eye == Eye::Right);
                if !ended[eye] {
                    ended[eye] = self.advance(eye, TICK);
                }
            }
        }
    }
}

impl Source for TwoStreams {
    fn info(&self) -> &SourceInfo {
        &self.info
    }

    fn run(
        &mut self,
        stop: &Switch,
        emit: &mut dyn FnMut(StereoPair, SourceCounts) -> ControlFlow<()>,
    ) -> anyhow::Result<()> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(());
        }
        let finished = self.pair_all(stop, emit);
        let result = if finished { verdict(&self.streams) } else { Ok(()) };
        self.streams.iter_mut().for_each(Lasting::close);
        let counts = self.counts();
        if finished && counts.pairs == 0 && counts.left > 0 && counts.right > 0 {
            tracing::warn!(
                "no two pictures of {} lie close enough in time; a larger tolerance or pairing \
                 by index may help",
                self.info.description
            );
        }
        result
    }

    fn counts(&self) -> SourceCounts {
        let (pairs, unpaired_left, unpaired_right) = (
            self.pairer.pairs(),
            self.pairer.unpaired(Eye::Left),
            self.pairer.unpaired(Eye::Right),
        );
        // A frame that still waits for its partner counts once that is decided.
        let (left, right) = (pairs + unpaired_left, pairs + unpaired_right);
        SourceCounts { left, right, pairs, unpaired_left, unpaired_right }
    }

    fn live_state(&self) -> Option<Arc<LiveState>> {
        self.info.live.then(|| self.state.clone())
    }
}

/// One stream that holds both views.
struct HalvedStream {
    info: SourceInfo,
    stream: Lasting,
    state: Arc<LiveState>,
    /// Whether the views are exchanged.
    swap: bool,
    pairs: u64,
    last: Option<Duration>,
    done: bool,
}

impl HalvedStream {
    /// The picture's own time, or one period after the last where it has none that is later.
    fn time(&mut self, own: Option<Duration>) -> Duration {
        let period = self.info.rate.map_or(UNKNOWN_PERIOD, period_of);
        let time = match (own, self.last) {
            (Some(own), last) if last.is_none_or(|last| own > last) => own,
            (_, Some(last)) => last + period,
            (own, None) => own.unwrap_or_default(),
        };
        self.last = Some(time);
        time
    }
}

impl Source for HalvedStream {
    fn info(&self) -> &SourceInfo {
        &self.info
    }

    fn run(
        &mut self,
        stop: &Switch,
        emit: &mut dyn FnMut(StereoPair, SourceCounts) -> ControlFlow<()>,
    ) -> anyhow::Result<()> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(());
        }
        let mut finished = false;
        while !stop.is_set() && !finished {
            match self.stream.receive(TICK) {
                Received::Picture(Picture {
                    views: Views::Both(left, right),
                    timestamp,
                    arrived,
                }) => {
                    let (left, right) = if self.swap { (right, left) } else { (left, right) };
                    let sequence = self.pairs;
                    let timestamp = self.time(timestamp);
                    self.pairs += 1;
                    let pair = StereoPair {
                        left,
                        right,
                        sequence,
                        timestamp,
                        skew_ns: 0,
                        arrived,
                        truth: None,
                    };
                    if emit(pair, self.counts()).is_break() {
                        break;
                    }
                }
                Received::Picture(_) | Received::Nothing => {}
                Received::End => finished = true,
            }
        }
        let result = if finished { verdict(std::slice::from_ref(&self.stream)) } else { Ok(()) };
        self.stream.close();
        result
    }

    fn counts(&self) -> SourceCounts {
        let pairs = self.pairs;
        SourceCounts { left: pairs, right: pairs, pairs, ..SourceCounts::default() }
    }

    fn live_state(&self) -> Option<Arc<LiveState>> {
        self.info.live.then(|| self.state.clone())
    }
}
