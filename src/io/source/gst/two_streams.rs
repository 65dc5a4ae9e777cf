//! Two streams, one for each view, paired by capture time or number.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use gstreamer as gst;

use super::appsink::Frame;
use super::checks::beginnings::{self, tell};
use super::checks::ending::check_ending;
use super::inputs::camera;
use super::inputs::input::Input;
use super::inputs::packing;
use super::live::find_offset::find_offset;
use super::live::reconnect::ReconnectingStream;
use super::options::{GstOptions, Offset};
use super::plane::{ViewLayout, Views};
use super::stream::{Received, StreamSetup};
use super::times::{TICK, UNKNOWN_PERIOD, lead_to, now, number_at, period_of};
use crate::control::Switch;
use crate::labels::{Labels, Timing};
use crate::source::live::LiveState;
use crate::source::pairing::rates::RateCheck;
use crate::source::pairing::sender_clocks::{Change, SenderClocks};
use crate::source::pairing::synchronisation::Remark;
use crate::source::pairing::{PairBy, Pairer, Pairing};
use crate::source::spec::StreamSpec;
use crate::source::{Place, Source, SourceCounts, SourceInfo, v4l2};
use stereod_core::frame::{Eye, EyeFrame, StereoPair};
use stereod_core::picture::orientation;

/// Part of a recording's frames that may lack a partner in both views before stereod warns.
const MANY: f64 = 0.1;

/// Opens a stream for each view.
pub(super) fn open(
    left: &StreamSpec,
    right: &StreamSpec,
    options: &GstOptions,
) -> anyhow::Result<Box<dyn Source>> {
    let inputs = camera::inputs([left, right], ViewLayout::Whole, options)?;
    let description = description(&inputs);
    let (timings, common) = beginnings::timings(&inputs, options)?;
    let [left, right] = &inputs;
    let named = inputs.clone();
    let offset = match options.offset {
        Offset::Ns(ns) => ns,
        Offset::Auto => find_offset([left, right], timings, options)?,
    };
    let numbered = matches!((left, right), (Input::Pictures(_), Input::Pictures(_)));
    let exposure = follow_exposure([left, right], options)?;
    let cameras = [left.camera_input(Eye::Left), right.camera_input(Eye::Right)];
    let zero = now();
    let state = Arc::new(LiveState::since(zero.into()));
    let streams = start(inputs, timings, zero, &state, options)?;
    let delay = |ns: i64| Duration::from_nanos(ns.max(0) as u64);
    let delays = [delay(offset.saturating_neg()), delay(offset)];
    let labels = [0, 1].map(|eye: usize| {
        let stream = &streams[eye];
        named[eye].labels(timings[eye], stream.rate(), stream.begin_time(), delays[eye])
    });
    let info = SourceInfo {
        description,
        labels: labels[0],
        pairs: common.or_else(|| expected_pairs(&streams)),
        cameras: cameras.into_iter().flatten().collect(),
        ..info(&streams)
    };
    let rates = streams.each_ref().map(ReconnectingStream::rate);
    let [left_period, right_period] = rates.map(|rate| rate.map(period_of));
    // An offset has no meaning for numbers.
    let by = if offset == 0 { options.pair_by } else { PairBy::Time };
    let (tolerance, is_live) = (options.tolerance, info.live);
    let by_arrival = streams.iter().any(ReconnectingStream::is_by_arrival);
    let pairing = Pairing { by, tolerance, left_period, right_period, is_live, by_arrival };
    if by_arrival && by != PairBy::Index {
        state.note_by_arrival();
        tracing::info!(
            "times unknown: paired by arrival; how far apart the views of a pair were captured is not known"
        );
    }
    state.synchronisation().claim(rates[0], rates[1]);
    let lengths = streams.each_ref().map(ReconnectingStream::length);
    let period = info.rate.map_or(UNKNOWN_PERIOD, period_of);
    let (has_codes, warning) = match by != PairBy::Index && offset == 0 {
        true => beginnings::compare_codes(labels, lengths, period),
        false => (false, None),
    };
    tell(warning);
    Ok(Box::new(TwoStreams {
        info,
        streams,
        pairer: Pairer::new(pairing),
        state,
        by_number: options.pair_by == PairBy::Index,
        by_arrival,
        clocks: SenderClocks::new(offset),
        delays,
        first: [None; 2],
        is_moved: false,
        tolerance: options.tolerance,
        // Numbers and time codes show the start of each view.
        is_begin_told: offset != 0 || numbered || has_codes,
        restarts: 0,
        rates: RateCheck::new(rates),
        done: false,
        _exposure: exposure,
    }))
}

/// Starts the stream of each view, and waits until both have their size.
fn start(
    [left, right]: [Input; 2],
    timings: [Option<Timing>; 2],
    zero: gst::ClockTime,
    state: &LiveState,
    options: &GstOptions,
) -> anyhow::Result<[ReconnectingStream; 2]> {
    let start = |name, input, eye: Eye, timing| {
        let state = state.eye(eye).clone();
        let layout = if options.half { ViewLayout::HalfWhole } else { ViewLayout::Whole };
        let setup = StreamSetup { input, layout, timing, zero, state, at: None };
        ReconnectingStream::start(name, setup, options)
    };
    let mut streams = [
        start("left camera", left, Eye::Left, timings[0])?,
        start("right camera", right, Eye::Right, timings[1])?,
    ];
    for stream in &mut streams {
        stream.prepare()?;
    }
    let tags = streams.each_ref().map(|stream| (stream.name(), stream.orientation()));
    orientation::report(&tags, options.orient);
    packing::compare_shapes(streams.each_ref().map(ReconnectingStream::pixel_shape));
    Ok(streams)
}

/// Names both inputs, by their full names if the short ones are the same.
fn description(inputs: &[Input; 2]) -> String {
    let short = inputs.each_ref().map(Input::short_name);
    match short[0] == short[1] {
        true => inputs.each_ref().map(Input::name).join(" + "),
        false => short.join(" + "),
    }
}

/// Returns the properties of both streams.
fn info(streams: &[ReconnectingStream; 2]) -> SourceInfo {
    let [left, right] = streams;
    let (size, other) = (left.view_size(), right.view_size());
    SourceInfo {
        description: String::new(),
        width: size.0,
        height: size.1,
        right: (other != size).then_some(other),
        rate: [left.rate(), right.rate()].into_iter().flatten().reduce(f64::min),
        pairs: None,
        begin: left.begin_time().unwrap_or_default(),
        length: left.length(),
        seekable: streams.iter().all(ReconnectingStream::is_seekable),
        live: left.live() || right.live(),
        has_truth: false,
        has_colour: left.has_colour(),
        white: left.white().min(right.white()),
        cameras: Vec::new(),
        labels: Labels::default(),
    }
}

/// Copies the exposure of one camera to the other if requested.
fn follow_exposure(
    eyes: [&Input; 2],
    options: &GstOptions,
) -> anyhow::Result<Option<v4l2::Following>> {
    let Some(leader) = options.exposure_from else { return Ok(None) };
    let [Input::Camera(left), Input::Camera(right)] = eyes else {
        tracing::warn!("one exposure for both views is for two cameras; {leader:?} leads nobody");
        return Ok(None);
    };
    let (leader, follower) = match leader {
        Eye::Left => (left, right),
        Eye::Right => (right, left),
    };
    Ok(Some(v4l2::Following::start(&leader.name, &follower.name)?))
}

/// Returns the number of pairs of two streams: the shorter length at the lower rate.
fn expected_pairs(streams: &[ReconnectingStream; 2]) -> Option<u64> {
    let seconds = |stream: &ReconnectingStream| Some(stream.expected()? as f64 / stream.rate()?);
    let [left, right] = streams;
    let rate = left.rate()?.min(right.rate()?);
    Some((seconds(left)?.min(seconds(right)?) * rate).round() as u64)
}

/// A stream for each view.
struct TwoStreams {
    info: SourceInfo,
    /// Left, right.
    streams: [ReconnectingStream; 2],
    pairer: Pairer,
    state: Arc<LiveState>,
    /// True if pairing is by number, so that no frame may be left out.
    by_number: bool,
    /// True if a view has only times of arrival, so that nothing is known of its clock.
    by_arrival: bool,
    /// Clocks of network cameras.
    clocks: SenderClocks,
    /// Time added to each view's frames before pairing.
    delays: [Duration; 2],
    /// Times of the first frames.
    first: [Option<Duration>; 2],
    /// Largest difference of a pair's times, if set.
    tolerance: Option<Duration>,
    /// True after a seek in videos, until the first pair has its number.
    is_moved: bool,
    /// True if the distance of the views' beginnings has been reported, or needs no report.
    is_begin_told: bool,
    /// Number of restarts of the pairing that have been reported.
    restarts: u64,
    /// Check of a recording; live streams have the remarks on their synchronisation.
    rates: RateCheck,
    done: bool,
    /// Copies the exposure for as long as the streams live.
    _exposure: Option<v4l2::Following>,
}

impl TwoStreams {
    /// Passes the next frame of one stream to the pairer. Returns true at the end of the stream.
    fn advance(&mut self, eye: usize, wait: Duration) -> bool {
        let stream = &mut self.streams[eye];
        let index = stream.index();
        match stream.receive(wait) {
            Received::Frame(frame) => {
                let mut frame = *frame;
                let delay = self.delays[eye];
                frame.timestamp = frame.timestamp.map(|time| time.saturating_add(delay));
                let (timestamp, arrived) = self.time_by_sender(eye, &frame);
                let Views::One(image) = frame.views else {
                    // A stream of one view has no second one.
                    return false;
                };
                self.first[eye] = self.first[eye].or(timestamp);
                if let Some(time) = timestamp {
                    self.note_time(Eye::BOTH[eye], time);
                }
                self.pairer.push(Eye::BOTH[eye], EyeFrame { image, timestamp, index, arrived });
                false
            }
            Received::End => {
                self.pairer.finish(Eye::BOTH[eye]);
                true
            }
            Received::Nothing => false,
        }
    }

    /// Notes the time of a frame for the checks of rates and synchronisation.
    fn note_time(&mut self, eye: Eye, time: Duration) {
        if self.info.live {
            self.state.synchronisation().note_frame(eye, time);
        } else if !self.by_number {
            tell(self.rates.note(eye, time));
        }
    }

    /// Returns the time of a frame and the moment of its capture, by the senders' clocks if they are usable.
    fn time_by_sender(&mut self, eye: usize, frame: &Frame) -> (Option<Duration>, Instant) {
        let &Frame { timestamp, arrived, sender, .. } = frame;
        let has_clock = self.info.live && !self.by_arrival && !self.by_number;
        let Some(own) = timestamp.filter(|_| has_clock) else { return (timestamp, arrived) };
        let was_used = self.clocks.in_use().is_some();
        let (time, change) = self.clocks.time(Eye::BOTH[eye], own, sender);
        if let Some(change) = change {
            match change {
                Change::BySender { .. } => tracing::info!("{change}"),
                Change::Apart { .. } | Change::Unlike { .. } => tracing::warn!("{change}"),
            }
        }
        if self.clocks.in_use().is_some() != was_used {
            self.pairer.change_clock();
            self.state.synchronisation().change_clock();
        }
        if sender.is_some() {
            self.state.synchronisation().note_sender(self.clocks.in_use());
        }
        let earlier = own.saturating_sub(time);
        (Some(time), arrived.checked_sub(earlier).unwrap_or(arrived))
    }

    /// Counts the remaining frames of a view after its partner has ended.
    fn drain(&mut self, eye: usize, stop: &Switch) {
        let stream = &mut self.streams[eye];
        stream.count_only();
        while !stop.is_set() {
            match stream.receive(TICK) {
                Received::Frame(_) => self.pairer.skip(Eye::BOTH[eye], 1),
                Received::Nothing => {}
                Received::End => break,
            }
        }
        self.pairer.skip(Eye::BOTH[eye], stream.skipped());
        self.pairer.finish(Eye::BOTH[eye]);
    }

    /// Keeps frames from waiting for a lost view. For pairing by number, a view that is back
    /// continues with the other's number.
    fn follow_losses(&mut self) {
        let highest = self.streams.iter().map(ReconnectingStream::index).max().unwrap_or_default();
        for (eye, stream) in Eye::BOTH.into_iter().zip(&mut self.streams) {
            if stream.is_lost() {
                self.pairer.abandon(eye);
                self.clocks.note_lost(eye);
            }
            if stream.take_returned() {
                stream.skip_to(highest);
                self.state.synchronisation().note_lost(eye);
            }
        }
    }

    /// Logs remarks on the synchronisation of the cameras.
    fn remark(&self) {
        let Some(tolerance) = self.pairer.tolerance() else { return };
        match self.state.synchronisation().remark(tolerance) {
            Some(Remark::Warning(text)) => tracing::warn!("{text}"),
            Some(Remark::Well(text)) => tracing::info!("{text}"),
            None => {}
        }
    }

    /// Returns the frame period of the slower view.
    fn period(&self) -> Duration {
        self.info.rate.map_or(UNKNOWN_PERIOD, period_of)
    }

    /// Warns once if recordings begin a frame or more apart, and at every restart of the pairing.
    fn tell_of_times(&mut self) {
        let restarts = self.pairer.restarts();
        if restarts > std::mem::replace(&mut self.restarts, restarts) && restarts == 1 {
            tracing::warn!(
                "the times of both views jump back after {} pairs, as in files that were joined: pairing \
                 restarts there",
                self.pairer.pairs() - 1
            );
        }
        let [Some(left), Some(right)] = self.first else { return };
        if std::mem::replace(&mut self.is_begin_told, true)
            || self.info.live
            || self.pairer.tolerance().is_none()
            // A view that was cut within a group of pictures begins with its first whole one.
            || self.streams.iter().any(|stream| stream.damage().left_out > 0)
        {
            return;
        }
        tell(beginnings::apart(left, right, self.period()));
    }

    /// Checks the pairs after both views have ended, or no more pairs are wanted.
    fn judge_pairs(&mut self, has_ended: bool) -> anyhow::Result<()> {
        tell(self.rates.finish());
        let SourceCounts { left, right, pairs, .. } = self.counts();
        let Some(tolerance) = self.pairer.tolerance().map(|time| time.as_secs_f64() * 1e3) else {
            return Ok(());
        };
        const BY_NUMBER: &str = "`--set source.pair_by=index` pairs by number";
        if has_ended && pairs == 0 && left > 0 && right > 0 {
            let cure = match self.first {
                [Some(left), Some(right)] => format!(
                    "the left one's begin at {:.3} s and the right one's at {:.3} s; if these show the same \
                     moment, give `--offset {}` (`--offset auto` finds it from the pictures)",
                    left.as_secs_f64(),
                    right.as_secs_f64(),
                    beginnings::in_ms(left, right)
                ),
                _ => "one view's have no times".to_owned(),
            };
            bail!(
                "{}: no picture of one view lies within {tolerance:.1} ms of one of the other: {cure}; \
                 {BY_NUMBER}, a larger `--tolerance` pairs what is further apart",
                self.info.description
            );
        }
        let [lost_left, lost_right] = Eye::BOTH.map(|eye| self.pairer.unpaired_since_first(eye));
        if !self.info.live && lost_left.min(lost_right) as f64 > MANY * left.min(right) as f64 {
            tracing::warn!(
                "only {pairs} of {left} left and {right} right pictures were paired: {lost_left} and \
                 {lost_right} found no partner within {tolerance:.1} ms, as times of the two views differ \
                 or jump; {BY_NUMBER}, a larger `--tolerance` pairs what is further apart"
            );
        }
        Ok(())
    }

    /// Returns the time of the first pair, by the first frame of each view.
    fn first_pair(&self) -> Duration {
        let first = self.first.into_iter().flatten().max();
        first.unwrap_or(self.info.begin).saturating_sub(self.delays[0])
    }

    /// Returns how many image files of each view come before a place, and the number of the pair
    /// there; `None` if the views are not both images that are paired by their numbers or positions.
    fn find_pictures(&self, place: Place) -> Option<([usize; 2], u64)> {
        let [left, right] = self.streams.each_ref().map(ReconnectingStream::pictures);
        let [left, right]: [Vec<u64>; 2] = [left?.numbers().collect(), right?.numbers().collect()];
        let timing = self.streams[0].timing()?;
        let before = |numbers: &[u64]| match place {
            Place::Time(time) => numbers.partition_point(|&number| timing.time(number) < time),
            Place::Pair(number) => numbers.len().min(usize::try_from(number).unwrap_or(usize::MAX)),
        };
        if self.by_number {
            let skipped = before(&left);
            return Some(([skipped; 2], skipped as u64));
        }
        if self.delays != [Duration::ZERO; 2] {
            return None;
        }
        let others: HashSet<u64> = right.iter().copied().collect();
        let common: Vec<u64> = left.iter().copied().filter(|n| others.contains(n)).collect();
        let pairs = before(&common);
        let from = common.get(pairs).copied().unwrap_or(u64::MAX);
        let skipped = [left, right].map(|numbers| numbers.partition_point(|&n| n < from));
        Some((skipped, pairs as u64))
    }

    /// Pairs until the end. Returns false if it was stopped before.
    fn pair_all(
        &mut self,
        stop: &Switch,
        emit: &mut dyn FnMut(StereoPair, SourceCounts) -> ControlFlow<()>,
    ) -> bool {
        let live = self.info.live;
        let mut ended = [false; 2];
        loop {
            if self.emit_pairs(stop, emit).is_break() {
                return false;
            }
            // A live view would never end while its partner is gone.
            if ended == [true; 2] || (live && ended != [false; 2]) {
                return true;
            }
            for (eye, ended) in ended.iter_mut().enumerate() {
                if !*ended && self.pairer.is_hopeless(Eye::BOTH[eye]) {
                    self.drain(eye, stop);
                    *ended = true;
                }
            }
            if live {
                ReconnectingStream::wait_any(&self.streams, TICK);
                for (eye, ended) in ended.iter_mut().enumerate() {
                    *ended |= self.advance(eye, Duration::ZERO);
                }
                self.follow_losses();
                self.remark();
            } else if let Some(eye) = self.pairer.needed_eye() {
                // Reading only the needed view leaves the other one's frames in its stream.
                let eye = eye.index();
                if !ended[eye] {
                    ended[eye] = self.advance(eye, TICK);
                }
            }
        }
    }

    /// Emits the pairs that are complete. Breaks if no more are wanted.
    fn emit_pairs(
        &mut self,
        stop: &Switch,
        emit: &mut dyn FnMut(StereoPair, SourceCounts) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        while !stop.is_set() {
            let Some(mut pair) = self.pairer.pop() else { return ControlFlow::Continue(()) };
            if std::mem::take(&mut self.is_moved) {
                let number = number_at(pair.timestamp, self.first_pair(), self.info.rate);
                self.pairer.renumber(&mut pair, number);
            }
            // A pair has the left view's own time.
            pair.timestamp = pair.timestamp.saturating_sub(self.delays[0]);
            self.tell_of_times();
            if self.info.live {
                self.state.synchronisation().note_pair(pair.skew_ns);
            }
            emit(pair, self.counts())?;
        }
        ControlFlow::Break(())
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
        if !self.by_number {
            self.streams.iter_mut().for_each(ReconnectingStream::begin);
        }
        let finished = self.pair_all(stop, emit);
        let result = if finished { check_ending(&self.streams) } else { Ok(()) };
        self.streams.iter_mut().for_each(ReconnectingStream::close);
        result.and_then(|()| self.judge_pairs(finished))
    }

    fn seek(&mut self, place: Place) -> anyhow::Result<()> {
        if !self.info.seekable {
            // All that a source which plays once can do is to go on.
            ensure!(!self.done, "{} plays once only, from its beginning", self.info.description);
            return Ok(());
        }
        for (first, (stream, delay)) in
            self.first.iter_mut().zip(self.streams.iter().zip(self.delays))
        {
            *first = first.or(stream.begin_time().map(|time| time.saturating_add(delay)));
        }
        self.done = false;
        if let Some((skipped, number)) = self.find_pictures(place) {
            self.pairer.move_to(number);
            for (stream, skipped) in self.streams.iter_mut().zip(skipped) {
                stream.reopen_pictures(skipped)?;
            }
            return Ok(());
        }
        let at = match place {
            Place::Time(time) if !self.by_number => {
                let lead = lead_to(time, self.info.rate, self.tolerance);
                let lead = lead.saturating_add(self.delays[0]);
                self.delays.map(|delay| Some(lead.saturating_sub(delay)))
            }
            _ => [None; 2],
        };
        self.pairer.move_to(0);
        self.is_moved = false;
        for (stream, at) in self.streams.iter_mut().zip(at) {
            self.is_moved |= stream.reopen_at(at)?;
        }
        Ok(())
    }

    fn counts(&self) -> SourceCounts {
        let (pairs, unpaired_left, unpaired_right) = (
            self.pairer.pairs(),
            self.pairer.unpaired(Eye::Left),
            self.pairer.unpaired(Eye::Right),
        );
        // A frame that still waits for its partner is counted later.
        let (left, right) = (pairs + unpaired_left, pairs + unpaired_right);
        let [damaged_left, damaged_right] = self.streams.each_ref().map(ReconnectingStream::damage);
        SourceCounts {
            left,
            right,
            pairs,
            unpaired_left,
            unpaired_right,
            damaged_left,
            damaged_right,
        }
    }

    fn live_state(&self) -> Option<Arc<LiveState>> {
        self.info.live.then(|| self.state.clone())
    }
}
