//! One stream with both views in each frame (frame packing), side by side or one above the other.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;

use super::appsink::Frame;
use super::checks::ending::check_ending;
use super::inputs::camera;
use super::live::reconnect::ReconnectingStream;
use super::options::GstOptions;
use super::plane::{ViewLayout, Views};
use super::stream::{Received, StreamSetup};
use super::times::{TICK, UNKNOWN_PERIOD, lead_to, now, number_at, period_of};
use crate::control::Switch;
use crate::source::live::LiveState;
use crate::source::spec::StreamSpec;
use crate::source::{Place, Source, SourceCounts, SourceInfo};
use stereod_core::frame::{Eye, StereoPair};
use stereod_core::picture::orientation;

/// Opens a stream that holds both views.
pub(super) fn open(
    stream: &StreamSpec,
    layout: ViewLayout,
    options: &GstOptions,
) -> anyhow::Result<Box<dyn Source>> {
    let [input] = camera::inputs([stream], layout, options)?;
    let how = match layout {
        ViewLayout::Whole | ViewLayout::HalfWhole | ViewLayout::SideBySide => "side by side",
        ViewLayout::TopBottom => "top-bottom",
        ViewLayout::HalfSideBySide => "half side by side",
        ViewLayout::HalfTopBottom => "half top-bottom",
    };
    let description = format!("{} ({how})", input.short_name());
    let timing = input.own_timing(options.picture_rate);
    let own = input.clone();
    let cameras = input.camera_input(Eye::Left).into_iter().collect();
    let zero = now();
    let state = Arc::new(LiveState::since(zero.into()));
    let eye = state.eye(Eye::Left).clone();
    let recipe = StreamSetup { input, layout, timing, zero, state: eye, at: None };
    let mut stream = ReconnectingStream::start("camera", recipe, options)?;
    stream.prepare()?;
    orientation::report(&[(stream.name(), stream.orientation())], options.orient);
    let (width, height) = stream.view_size();
    let info = SourceInfo {
        description,
        width,
        height,
        right: None,
        rate: stream.rate(),
        pairs: stream.expected(),
        begin: stream.begin_time().unwrap_or_default(),
        length: stream.length(),
        seekable: stream.is_seekable(),
        live: stream.live(),
        has_truth: false,
        has_colour: stream.has_colour(),
        white: stream.white(),
        cameras,
        labels: own.labels(timing, stream.rate(), stream.begin_time(), Duration::ZERO),
    };
    let swap = options.swap;
    Ok(Box::new(FramePackedStream {
        info,
        stream,
        state,
        swap,
        pairs: 0,
        next: Some(0),
        last: None,
        done: false,
    }))
}

/// One stream that holds both views.
struct FramePackedStream {
    info: SourceInfo,
    stream: ReconnectingStream,
    state: Arc<LiveState>,
    /// True if the views are exchanged.
    swap: bool,
    pairs: u64,
    /// Number of the next pair; `None`: it follows from its time.
    next: Option<u64>,
    last: Option<Duration>,
    done: bool,
}

impl FramePackedStream {
    /// Returns the frame's own time, or one period after the last one if it has none that is later.
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

impl Source for FramePackedStream {
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
        self.stream.begin();
        let mut finished = false;
        while !stop.is_set() {
            let frame = match self.stream.receive(TICK) {
                Received::Frame(frame) => *frame,
                Received::Nothing => continue,
                Received::End => {
                    finished = true;
                    break;
                }
            };
            let Frame { views: Views::Both(left, right), timestamp, arrived, .. } = frame else {
                continue;
            };
            let (left, right) = if self.swap { (right, left) } else { (left, right) };
            let timestamp = self.time(timestamp);
            let by_time = || number_at(timestamp, self.info.begin, self.info.rate);
            let sequence = self.next.unwrap_or_else(by_time);
            self.next = Some(sequence + 1);
            self.pairs += 1;
            let pair = StereoPair {
                left,
                right,
                sequence,
                timestamp,
                skew_ns: Some(0),
                arrived,
                truth: None,
                prior: None,
            };
            if emit(pair, self.counts()).is_break() {
                break;
            }
        }
        let result =
            if finished { check_ending(std::slice::from_ref(&self.stream)) } else { Ok(()) };
        self.stream.close();
        result
    }

    fn seek(&mut self, place: Place) -> anyhow::Result<()> {
        if !self.info.seekable {
            // All that a source which plays once can do is to go on.
            ensure!(!self.done, "{} plays once only, from its beginning", self.info.description);
            return Ok(());
        }
        (self.done, self.last) = (false, None);
        if let (Some(pictures), Some(timing)) = (self.stream.pictures(), self.stream.timing()) {
            let skipped = match place {
                Place::Time(time) => {
                    pictures.numbers().take_while(|&number| timing.time(number) < time).count()
                }
                Place::Pair(number) => usize::try_from(number).unwrap_or(usize::MAX),
            };
            self.next = Some(skipped as u64);
            return self.stream.reopen_pictures(skipped);
        }
        let at = match place {
            Place::Time(time) => Some(lead_to(time, self.info.rate, None)),
            Place::Pair(_) => None,
        };
        self.next = if self.stream.reopen_at(at)? { None } else { Some(0) };
        Ok(())
    }

    fn counts(&self) -> SourceCounts {
        let pairs = self.pairs;
        let damaged_left = self.stream.damage();
        SourceCounts { left: pairs, right: pairs, pairs, damaged_left, ..SourceCounts::default() }
    }

    fn live_state(&self) -> Option<Arc<LiveState>> {
        self.info.live.then(|| self.state.clone())
    }
}
