//! Replays a recording as a source of pairs: the stamps of the images pair the views, not their order.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::beginning::{Beginning, views_of};
use super::choice::Wanted;
use super::decoder::{self, Decoder};
use super::interface::{Lost, Message};
use super::messages::{self, Picture};
use super::open::Recording;
use super::timing::{self, Basis, Clock};
use crate::control::Switch;
use crate::source::gst::{GstOptions, Offset};
use crate::source::pairing::rates::RateCheck;
use crate::source::pairing::unordered::{Astray, Unordered};
use crate::source::pairing::{PairBy, Pairing};
use crate::source::{Damage, Place, Source, SourceCounts, SourceInfo, Unavailable};
use stereod_core::frame::{Eye, EyeFrame, Image, StereoPair};
use stereod_core::memory::Budget;
use stereod_core::thread;

/// Part of the images that may lack a partner in both views before stereod warns.
const MANY: f64 = 0.1;

pub(super) const NO_AUTO: &str =
    "`--offset auto` compares two videos; the stamps of a recording need `--offset MS`, if any";

/// Part of the memory budget for images that wait for their partners or their turn.
const WAITING_PART: u64 = 8;

struct Replay {
    info: SourceInfo,
    recording: Recording,
    /// Left, right; twice the same if it has both views.
    topics: [usize; 2],
    decoder: Decoder,
    basis: Basis,
    pairer: Unordered,
    rates: RateCheck,
    /// True if the rates of the views are compared: recorded ones that times pair.
    is_judged: bool,
    /// Nanoseconds added to the stamps of each view before pairing.
    delays: [u64; 2],
    left_out: [u64; 2],
    firsts: [Option<u64>; 2],
    /// Set once an image was left out; only the first reason is told.
    has_flaw: bool,
    /// Images of earlier pairs are not decoded.
    from: Place,
    /// Time of the last pair, while the recording is being read.
    last: Option<Duration>,
    options: GstOptions,
    done: bool,
}

/// Opens a recording, and finds the views and their size. The first signal ends the wait for a large or hostile one.
pub fn open(path: &Path, wanted: &Wanted, options: &GstOptions) -> Result<Box<dyn Source>> {
    let (path, wanted, options) = (path.to_owned(), wanted.clone(), options.clone());
    let stop = options.stop.clone();
    let work = move || find_views(&path, &wanted, &options);
    let opened =
        thread::bounded("opening", work, |_| stop.is_set()).context("cannot start a thread")?;
    opened.context("stopped while the recording was being opened")?
}

fn find_views(path: &Path, wanted: &Wanted, options: &GstOptions) -> Result<Box<dyn Source>> {
    let mut recording = Recording::open(path)?;
    let live = recording.reader.live(&options.stop);
    let topics = choose(&recording, wanted, options.swap, live)?;
    let offset = match options.offset {
        Offset::Ns(ns) => ns,
        Offset::Auto => bail!(NO_AUTO),
    };
    let Beginning { first, clock, has_colour, white } =
        Beginning::of(&mut recording, topics, options, live)?;
    let Clock { basis, begin, periods } = clock;
    if let Some(warning) = basis.warning() {
        tracing::warn!("{}: {warning}", recording.name);
    }
    let period = periods.into_iter().flatten().max();
    let [size, other] = first;
    let [left, right] = topics.map(|topic| &recording.topics()[topic]);
    let info = SourceInfo {
        description: description(path, &recording, topics),
        width: size.0,
        height: size.1,
        right: (other != size).then_some(other),
        rate: period.map(rate_of),
        pairs: left.messages.zip(right.messages).map(|(left, right)| left.min(right)),
        begin,
        seekable: !live,
        live,
        has_colour,
        white,
        ..SourceInfo::default()
    };
    let pairing = pairing(options, &clock, offset, live);
    let is_judged = !live && pairing.by == PairBy::Time && topics[0] != topics[1];
    let delays = delays(offset);
    let reach = if live { 0 } else { reach(size, has_colour) };
    let first_pair = begin.saturating_add(Duration::from_nanos(delays[0]));
    Ok(Box::new(Replay {
        info,
        recording,
        topics,
        decoder: Decoder::new(options, Some(topics)),
        basis,
        pairer: Unordered::new(pairing, reach, first_pair),
        rates: RateCheck::new([None; 2]),
        is_judged,
        delays,
        left_out: [0; 2],
        firsts: [None; 2],
        has_flaw: false,
        from: Place::Pair(0),
        last: None,
        options: options.clone(),
        done: false,
    }))
}

/// Returns the topics of the views. The publisher of a live one may come later.
fn choose(recording: &Recording, wanted: &Wanted, swap: bool, is_live: bool) -> Result<[usize; 2]> {
    let chosen = recording.choose(wanted);
    let [left, right] = match is_live {
        true => chosen.map_err(|error| Unavailable { reason: format!("{error:#}") })?,
        false => chosen?,
    };
    Ok(if swap { [right, left] } else { [left, right] })
}

/// Returns the way in which the views are paired. Times of a live source are not judged here.
pub(super) fn pairing(options: &GstOptions, clock: &Clock, offset: i64, is_live: bool) -> Pairing {
    let by = match (options.pair_by, clock.basis) {
        _ if offset != 0 => PairBy::Time,
        (PairBy::Auto, _) if is_live => PairBy::Auto,
        (PairBy::Auto, Basis::Stamps | Basis::Log) => PairBy::Time,
        (PairBy::Auto, Basis::Order) => PairBy::Index,
        (by, _) => by,
    };
    let [left_period, right_period] = clock.periods;
    Pairing {
        by,
        tolerance: options.tolerance,
        left_period,
        right_period,
        is_live,
        by_arrival: false,
    }
}

/// Returns the nanoseconds to add to the stamps of each view, so that none becomes negative.
pub(super) fn delays(offset: i64) -> [u64; 2] {
    [offset.saturating_neg(), offset].map(|ns| ns.max(0) as u64)
}

fn reach((width, height): (usize, usize), has_colour: bool) -> usize {
    let bytes = (width * height * if has_colour { 3 } else { 1 }) as u64;
    // Each view keeps twice as many images, and as many pairs wait for their turn.
    let fitting = Budget::of_process().left() / WAITING_PART / (6 * bytes.max(1));
    fitting.clamp(1, Unordered::REACH as u64) as usize
}

fn description(path: &Path, recording: &Recording, topics: [usize; 2]) -> String {
    let file =
        path.file_name().map_or(recording.name.clone(), |n| n.to_string_lossy().into_owned());
    let [left, right] = topics.map(|topic| &recording.topics()[topic].name);
    match topics[0] == topics[1] {
        true => format!("{file} ({left})"),
        false => format!("{file} ({left} + {right})"),
    }
}

/// Returns the rate of a period, without the noise of its last digits.
fn rate_of(period: Duration) -> f64 {
    let rate = period.as_secs_f64().recip();
    // Of images hours apart, no digit is left otherwise.
    let digits = 1e4 * 10_f64.powf((-rate.log10()).ceil().max(0.0));
    (rate * digits).round() / digits
}

impl Replay {
    /// Reads the next message; false at the end. Counts the messages that are lost before it.
    fn next(&mut self, message: &mut Message) -> Result<bool> {
        let is_whole = self.recording.next(message)?;
        for Lost { what, messages } in self.recording.reader.lost() {
            for (topic, count) in messages {
                self.decoder.skip(topic, count);
                self.decoder.lose(topic);
                self.leave_out(topic, count);
            }
            self.note_flaw(&what);
        }
        Ok(is_whole)
    }

    fn note_flaw(&mut self, what: &str) {
        if !std::mem::replace(&mut self.has_flaw, true) {
            tracing::warn!("{}: {what}", self.recording.name);
        }
    }

    fn leave_out(&mut self, topic: usize, count: u64) {
        let is_of = |eye: &usize| self.topics[*eye] == topic;
        (0..2).filter(is_of).for_each(|eye| self.left_out[eye] += count);
    }

    /// Decodes a message, and hands the images that are known by now to the pairing.
    fn take(&mut self, message: &Message) -> Result<()> {
        let topic = &self.recording.topics()[message.topic];
        let read = messages::picture(topic, message.log_ns, &message.data);
        let read = read.map(|(stamp, it)| (self.basis.time(stamp, message.log_ns), it));
        let content = match &read {
            Ok((_, picture)) if !matches!(picture, Picture::Unit(..)) => {
                Some(timing::content(picture, 0))
            }
            _ => None,
        };
        if let Ok((stamp, picture)) = &read
            && !matches!(picture, Picture::Unit(..))
        {
            // The frames of a video build on each other.
            let (stamp, eye) = (*stamp, usize::from(message.topic != self.topics[0]));
            if self.is_early(eye, stamp) {
                // Pairing needs the stamps alone.
                let number = self.decoder.skip(message.topic, 1);
                let content = content.unwrap_or(number);
                self.pair(eye, Image::from_vec(1, 1, vec![0]), stamp, number, content);
                return Ok(());
            }
        }
        let images = self.decoder.decode(&self.recording, message.topic, read)?;
        images.into_iter().try_for_each(|image| self.push(image, content))
    }

    /// Hands an image to the pairing. Frames of videos have no content to compare.
    fn push(&mut self, image: decoder::Image, content: Option<u64>) -> Result<()> {
        let decoder::Image { topic, number, stamp, views } = image;
        let name = self.recording.topics()[topic].name.clone();
        let views = match views {
            Ok(views) => views,
            Err(error) => {
                self.leave_out(topic, 1);
                self.note_flaw(&format!("{name}, image {number}: {error:#}; it is left out"));
                return Ok(());
            }
        };
        let swap = self.options.swap;
        for (eye, image) in views_of(views, topic, self.topics, swap) {
            let (size, first) = ((image.width(), image.height()), self.info.sizes()[eye]);
            ensure!(
                size == first,
                "{}: {name} changes its size from {}x{} to {}x{} at image {number}",
                self.recording.name,
                first.0,
                first.1,
                size.0,
                size.1
            );
            self.pair(eye, image, stamp, number, content.unwrap_or(number));
        }
        Ok(())
    }

    /// Reports whether an image of this stamp can only belong to a pair before the place that was asked for.
    fn is_early(&self, eye: usize, stamp: u64) -> bool {
        match self.from {
            Place::Pair(number) => self.pairer.highest_number(Eye::BOTH[eye]) < number,
            Place::Time(time) => self.pairer.pairer().tolerance().is_some_and(|tolerance| {
                let own = Duration::from_nanos(stamp.saturating_add(self.delays[eye]));
                let asked = time.saturating_add(Duration::from_nanos(self.delays[0]));
                // A pair may lie twice as far apart for a while.
                let is_before = own.saturating_add(tolerance * 2) < asked;
                is_before && !self.pairer.goes_back(Eye::BOTH[eye], own)
            }),
        }
    }

    fn pair(&mut self, eye: usize, image: Image, stamp: u64, number: u64, content: u64) {
        self.firsts[eye].get_or_insert(stamp);
        let time = Duration::from_nanos(stamp.saturating_add(self.delays[eye]));
        let (timestamp, arrived) = (Some(time), Instant::now());
        if self.is_judged {
            let warning = self.rates.note(Eye::BOTH[eye], time);
            self.tell(warning);
        }
        let frame = EyeFrame { image, timestamp, index: number, arrived };
        self.pairer.push(Eye::BOTH[eye], frame, content);
    }

    fn tell_astray(&mut self) {
        if let Some(Astray { eye, index, time, ahead_ns }) = self.pairer.take_astray() {
            let time = time.saturating_sub(Duration::from_nanos(self.delays[eye.index()]));
            tracing::warn!(
                "{}: {}, image {index}: its time, {:.3} s, lies {:.1} s {} those around it; it is left out",
                self.recording.name,
                self.recording.topics()[self.topics[eye.index()]].name,
                time.as_secs_f64(),
                ahead_ns.unsigned_abs() as f64 * 1e-9,
                if ahead_ns > 0 { "after" } else { "before" }
            );
        }
    }

    /// Emits the pairs that are complete. Breaks if no more are wanted.
    fn emit_pairs(
        &mut self,
        stop: &Switch,
        emit: &mut dyn FnMut(StereoPair, SourceCounts) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.tell_astray();
        while !stop.is_set() {
            let Some(mut pair) = self.pairer.pop() else { return ControlFlow::Continue(()) };
            // A pair has the left view's own time.
            pair.timestamp = pair.timestamp.saturating_sub(Duration::from_nanos(self.delays[0]));
            self.last = Some(pair.timestamp);
            emit(pair, self.counts())?;
        }
        ControlFlow::Break(())
    }

    fn tell(&self, warning: Option<String>) {
        if let Some(warning) = warning {
            tracing::warn!("{}: {warning}", self.recording.name);
        }
    }

    /// Names the offset that pairs the first images of both views.
    fn offset_of_firsts(&self) -> String {
        let [Some(left), Some(right)] = self.firsts else { return String::new() };
        let us = (i128::from(left) - i128::from(right)) / 1000;
        format!(", and `--offset {}` pairs the first images of both views", us as f64 * 1e-3)
    }

    fn tell_repeats(&self) {
        let name = &self.recording.name;
        let [left, right] = Eye::BOTH.map(|eye| self.pairer.copies(eye));
        if left + right > 0 {
            tracing::warn!(
                "{name}: {left} left and {right} right images are copies of another one, with the same stamp and \
                 content; they are left out"
            );
        }
        let [left, right] = Eye::BOTH.map(|eye| self.pairer.alike(eye));
        if left + right > 0 {
            tracing::warn!(
                "{name}: {left} left and {right} right images have the stamp of another one; they are paired in \
                 their order"
            );
        }
    }

    fn judge(&mut self) -> Result<()> {
        self.tell_astray();
        let name = &self.recording.name;
        if let Some(cut) = self.recording.reader.cut() {
            tracing::warn!("{name}: {cut}; it was read to its last whole message");
        }
        let SourceCounts { left, right, pairs, damaged_left, damaged_right, .. } = self.counts();
        let views = if self.topics[0] == self.topics[1] { 1 } else { 2 };
        for (topic, damage) in self.topics.iter().zip([damaged_left, damaged_right]).take(views) {
            if !damage.is_none() {
                tracing::warn!("{name}: {}: {damage}", self.recording.topics()[*topic].name);
            }
        }
        self.tell_repeats();
        let description = &self.info.description;
        if pairs == 0 && (left == 0 || right == 0) {
            bail!(
                "{description}: there is no pair: of {left} left and {right} right images, none is readable \
                 in both views"
            );
        }
        let (within, cure) = self.rule();
        ensure!(
            pairs > 0,
            "{description}: no stamp of one view fits one of the other ({left} left and {right} right images, \
             {within}): {cure}{}",
            self.offset_of_firsts()
        );
        self.judge_unpaired();
        Ok(())
    }

    /// Warns of different rates, and if too few images were paired.
    fn judge_unpaired(&mut self) {
        let warning = self.rates.finish();
        self.tell(warning);
        let SourceCounts { left, right, pairs, damaged_left, damaged_right, .. } = self.counts();
        let (within, cure) = self.rule();
        // An image without a partner because that was left out does not mean that times differ.
        let of = |damage: Damage| damage.left_out + damage.mistimed;
        let [left_lost, right_lost] =
            Eye::BOTH.map(|e| self.pairer.pairer().unpaired_since_first(e));
        let lost = [
            left_lost.saturating_sub(self.pairer.copies(Eye::Left) + of(damaged_right)),
            right_lost.saturating_sub(self.pairer.copies(Eye::Right) + of(damaged_left)),
        ];
        if lost[0].min(lost[1]) as f64 > MANY * left.min(right) as f64 {
            tracing::warn!(
                "only {pairs} of {left} left and {right} right images were paired {within}: {cure}"
            );
        }
    }

    /// Describes how images are paired, and what else would pair them.
    fn rule(&self) -> (String, &'static str) {
        match self.pairer.pairer().tolerance().map(|time| time.as_secs_f64() * 1e3) {
            Some(tolerance) => (
                format!("by their times, within {tolerance:.1} ms"),
                "`--set source.pair_by=index` pairs by number, a larger `--tolerance` pairs what is further apart",
            ),
            None => ("by their numbers".to_owned(), "`--set source.pair_by=time` pairs by time"),
        }
    }
}

impl Source for Replay {
    fn info(&self) -> &SourceInfo {
        &self.info
    }

    fn run(
        &mut self,
        stop: &Switch,
        emit: &mut dyn FnMut(StereoPair, SourceCounts) -> ControlFlow<()>,
    ) -> Result<()> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(());
        }
        if self.last.is_none() {
            self.recording.begin(&self.topics)?;
        }
        let mut message = Message::default();
        while !stop.is_set() && self.next(&mut message)? {
            self.take(&message)?;
            if self.emit_pairs(stop, emit).is_break() {
                self.judge_unpaired();
                return Ok(());
            }
        }
        for image in self.decoder.finish()? {
            self.push(image, None)?;
            if self.emit_pairs(stop, emit).is_break() {
                self.judge_unpaired();
                return Ok(());
            }
        }
        Eye::BOTH.into_iter().for_each(|eye| self.pairer.finish(eye));
        let wanted = self.emit_pairs(stop, emit);
        self.last = None;
        if wanted.is_break() { Ok(()) } else { self.judge() }
    }

    fn seek(&mut self, place: Place) -> Result<()> {
        (self.from, self.done) = (place, false);
        // A later place is reached by reading on.
        if !matches!(place, Place::Time(time) if self.last.is_some_and(|last| last < time)) {
            self.pairer.restart();
            self.decoder = Decoder::new(&self.options, Some(self.topics));
            (self.left_out, self.last) = ([0; 2], None);
        }
        Ok(())
    }

    fn counts(&self) -> SourceCounts {
        let pairer = self.pairer.pairer();
        let (pairs, unpaired_left, unpaired_right) =
            (pairer.pairs(), pairer.unpaired(Eye::Left), pairer.unpaired(Eye::Right));
        let damage = |eye: usize| Damage {
            concealed: self.decoder.concealed(self.topics[eye]),
            left_out: self.left_out[eye],
            mistimed: self.pairer.mistimed(Eye::BOTH[eye]),
        };
        // An image that still waits for its partner is counted later.
        SourceCounts {
            left: pairs + unpaired_left,
            right: pairs + unpaired_right,
            pairs,
            unpaired_left,
            unpaired_right,
            damaged_left: damage(0),
            damaged_right: damage(1),
        }
    }
}
