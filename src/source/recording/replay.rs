//! Replays a recording as a source of pairs: the stamps of the images pair the views, not their order.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::choice::Wanted;
use super::interface::Message;
use super::open::Recording;
use super::{messages, pixels};
use crate::core::control::Switch;
use crate::core::frame::{Eye, EyeFrame, Image, StereoPair};
use crate::matching::saturation::WHITE;
use crate::source::gst::{GstOptions, Offset};
use crate::source::pairing::{PairBy, Pairer, Pairing};
use crate::source::{Damage, Place, Source, SourceCounts, SourceInfo};

/// Images of the left view from which its rate is measured.
const MEASURED: usize = 16;

/// Images of a view that may be unreadable before the first readable one.
const UNREADABLE_MAX: usize = 50;

/// Part of the images that may lack a partner in both views before stereod warns.
const MANY: f64 = 0.1;

/// A recording being replayed.
struct Replay {
    info: SourceInfo,
    recording: Recording,
    /// Left, right.
    topics: [usize; 2],
    pairer: Pairer,
    /// Nanoseconds added to the stamps of each view before pairing.
    delays: [u64; 2],
    /// Number of the next image of each view.
    index: [u64; 2],
    left_out: [u64; 2],
    /// The first reason why an image was left out.
    flaw: Option<String>,
    /// Images of earlier pairs are not decoded.
    from: Place,
    /// Time of the last pair, while the recording is being read.
    last: Option<Duration>,
    options: GstOptions,
    done: bool,
}

/// Opens a recording, and finds the views and their size.
pub fn open(path: &Path, wanted: &Wanted, options: &GstOptions) -> Result<Box<dyn Source>> {
    let mut recording = Recording::open(path)?;
    let mut topics = recording.choose(wanted)?;
    if options.swap {
        topics.reverse();
    }
    let offset = match options.offset {
        Offset::Ns(ns) => ns,
        Offset::Auto => bail!(
            "`--offset auto` compares two videos; the stamps of a recording need `--offset MS`, if any"
        ),
    };
    let Beginning { first, begin, period, has_colour } =
        Beginning::of(&mut recording, topics, options)?;
    let [left, right] = topics.map(|topic| &recording.topics()[topic]);
    let [size, other] = first;
    ensure!(
        size == other,
        "{}: the views differ in size: {} is {}x{}, {} is {}x{}",
        recording.name,
        left.name,
        size.0,
        size.1,
        right.name,
        other.0,
        other.1
    );
    let file =
        path.file_name().map_or(recording.name.clone(), |n| n.to_string_lossy().into_owned());
    let info = SourceInfo {
        description: format!("{file} ({} + {})", left.name, right.name),
        width: size.0,
        height: size.1,
        rate: period.map(|period| (period.as_secs_f64().recip() * 1e4).round() / 1e4),
        pairs: left.messages.zip(right.messages).map(|(left, right)| left.min(right)),
        begin,
        length: None,
        seekable: true,
        live: false,
        has_truth: false,
        has_colour,
        white: WHITE,
    };
    let by = if offset == 0 { options.pair_by } else { PairBy::Time };
    let pairing =
        Pairing { by, tolerance: options.tolerance, left_period: period, right_period: period };
    let delay = |ns: i64| ns.max(0) as u64;
    Ok(Box::new(Replay {
        info,
        recording,
        topics,
        pairer: Pairer::new(pairing),
        delays: [delay(offset.saturating_neg()), delay(offset)],
        index: [0; 2],
        left_out: [0; 2],
        flaw: None,
        from: Place::Pair(0),
        last: None,
        options: options.clone(),
        done: false,
    }))
}

/// Properties of the views, from their first images.
struct Beginning {
    /// Size of each view.
    first: [(usize, usize); 2],
    /// Stamp of the first left image.
    begin: Duration,
    /// Median time between left images.
    period: Option<Duration>,
    has_colour: bool,
}

impl Beginning {
    fn of(recording: &mut Recording, topics: [usize; 2], options: &GstOptions) -> Result<Self> {
        recording.begin(&topics)?;
        let (mut message, mut stamps) = (Message::default(), Vec::new());
        let (mut first, mut flaws) = ([None, None], [0; 2]);
        let mut has_colour = false;
        while stamps.len() < MEASURED || first.iter().any(Option::is_none) {
            ensure!(!options.stop.is_set(), "stopped while the recording was being opened");
            if !recording.next(&mut message)? {
                break;
            }
            let eye = usize::from(message.topic == topics[1]);
            let topic = &recording.topics()[message.topic];
            let read = messages::picture(topic, message.log_ns, &message.data);
            let frame = read.and_then(|(stamp, picture)| {
                if eye == 0 && stamps.len() < MEASURED {
                    stamps.push(stamp);
                }
                match first[eye] {
                    Some(_) => Ok(None),
                    None => pixels::frame(&picture, &options.keep, options.tone).map(Some),
                }
            });
            match frame {
                Ok(Some(frame)) => {
                    first[eye] = Some((frame.width(), frame.height()));
                    has_colour |= eye == 0 && frame.chroma().is_some();
                }
                Ok(None) => {}
                Err(error) if first[eye].is_none() => {
                    flaws[eye] += 1;
                    if flaws[eye] > UNREADABLE_MAX || !is_damage(&error) {
                        return Err(error.context(format!("{}: {}", recording.name, topic.name)));
                    }
                }
                // It is left out later.
                Err(_) => {}
            }
        }
        let found = |eye: usize| {
            first[eye].with_context(|| {
                let name = &recording.topics()[topics[eye]].name;
                let cut = recording.cut().map_or(String::new(), |cut| format!("; {cut}"));
                format!("{}: {name} has no readable image{cut}", recording.name)
            })
        };
        let mut steps: Vec<u64> = stamps
            .windows(2)
            .filter_map(|two| two[1].checked_sub(two[0]))
            .filter(|s| *s > 0)
            .collect();
        steps.sort_unstable();
        let period = steps.get(steps.len() / 2).map(|&step| Duration::from_nanos(step));
        let begin = Duration::from_nanos(stamps.first().copied().unwrap_or_default());
        Ok(Self { first: [found(0)?, found(1)?], begin, period, has_colour })
    }
}

/// Reports whether an error concerns one image only, so that the next one may be readable.
fn is_damage(error: &anyhow::Error) -> bool {
    error.is::<image::ImageError>()
}

impl Replay {
    /// Decodes a message, and hands it to the pairing.
    fn take(&mut self, message: &Message) -> Result<()> {
        let eye = usize::from(message.topic == self.topics[1]);
        let index = self.index[eye];
        self.index[eye] += 1;
        let topic = &self.recording.topics()[message.topic];
        let read = messages::picture(topic, message.log_ns, &message.data);
        let frame = read.and_then(|(stamp, picture)| {
            if self.is_early(eye, stamp) {
                // Pairing needs the stamps alone.
                return Ok((stamp, None));
            }
            Ok((stamp, Some(pixels::frame(&picture, &self.options.keep, self.options.tone)?)))
        });
        let (stamp, image) = match frame {
            Ok(frame) => frame,
            Err(error) => {
                self.left_out[eye] += 1;
                let what = format!("{}, image {index}: {error:#}", topic.name);
                if self.flaw.is_none() {
                    tracing::warn!("{}: {what}; it is left out", self.recording.name);
                    self.flaw = Some(what);
                }
                return Ok(());
            }
        };
        let timestamp = Duration::from_nanos(stamp.saturating_add(self.delays[eye]));
        let Some(image) = image else {
            self.push(eye, Image::from_vec(1, 1, vec![0]), timestamp, index);
            return Ok(());
        };
        let size = (image.width(), image.height());
        ensure!(
            size == (self.info.width, self.info.height),
            "{}: {} changes its size from {}x{} to {}x{} at image {index}",
            self.recording.name,
            topic.name,
            self.info.width,
            self.info.height,
            size.0,
            size.1
        );
        self.push(eye, image, timestamp, index);
        Ok(())
    }

    /// Reports whether an image of this stamp can only belong to a pair before the place that was asked
    /// for.
    fn is_early(&self, eye: usize, stamp: u64) -> bool {
        match self.from {
            Place::Pair(number) => self.pairer.highest_number(Eye::BOTH[eye]) < number,
            Place::Time(time) => self.pairer.tolerance().is_some_and(|tolerance| {
                let own = Duration::from_nanos(stamp.saturating_add(self.delays[eye]));
                let asked = time.saturating_add(Duration::from_nanos(self.delays[0]));
                own.saturating_add(tolerance) < asked
            }),
        }
    }

    fn push(&mut self, eye: usize, image: Image, timestamp: Duration, index: u64) {
        let frame = EyeFrame { image, timestamp: Some(timestamp), index, arrived: Instant::now() };
        self.pairer.push(Eye::BOTH[eye], frame);
    }

    /// Emits the pairs that are complete. Breaks if no more are wanted.
    fn emit_pairs(
        &mut self,
        stop: &Switch,
        emit: &mut dyn FnMut(StereoPair, SourceCounts) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        while !stop.is_set() {
            let Some(mut pair) = self.pairer.pop() else { return ControlFlow::Continue(()) };
            // A pair has the left view's own time.
            pair.timestamp = pair.timestamp.saturating_sub(Duration::from_nanos(self.delays[0]));
            self.last = Some(pair.timestamp);
            emit(pair, self.counts())?;
        }
        ControlFlow::Break(())
    }

    /// Reports damage and missing partners after the last message.
    fn judge(&self) -> Result<()> {
        let name = &self.recording.name;
        if let Some(cut) = self.recording.cut() {
            tracing::warn!("{name}: {cut}; it was read to its last whole message");
        }
        let SourceCounts { left, right, pairs, damaged_left, damaged_right, .. } = self.counts();
        for (topic, damage) in self.topics.iter().zip([damaged_left, damaged_right]) {
            if !damage.is_none() {
                tracing::warn!("{name}: {}: {damage}", self.recording.topics()[*topic].name);
            }
        }
        let Some(tolerance) = self.pairer.tolerance().map(|time| time.as_secs_f64() * 1e3) else {
            return Ok(());
        };
        const BY_NUMBER: &str = "`--set source.pair_by=index` pairs by number, a larger `--tolerance` pairs \
                                 what is further apart";
        ensure!(
            pairs > 0 || left == 0 || right == 0,
            "{}: no stamp of one view lies within {tolerance:.1} ms of one of the other ({left} left and \
             {right} right images): {BY_NUMBER}",
            self.info.description
        );
        let [lost_left, lost_right] = Eye::BOTH.map(|eye| self.pairer.unpaired_since_first(eye));
        if lost_left.min(lost_right) as f64 > MANY * left.min(right) as f64 {
            tracing::warn!(
                "only {pairs} of {left} left and {right} right images were paired by their stamps, within \
                 {tolerance:.1} ms: {BY_NUMBER}"
            );
        }
        Ok(())
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
        while !stop.is_set() && self.recording.next(&mut message)? {
            self.take(&message)?;
            if self.emit_pairs(stop, emit).is_break() {
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
            self.pairer.move_to(0);
            (self.index, self.left_out, self.last) = ([0; 2], [0; 2], None);
        }
        Ok(())
    }

    fn counts(&self) -> SourceCounts {
        let (pairs, unpaired_left, unpaired_right) = (
            self.pairer.pairs(),
            self.pairer.unpaired(Eye::Left),
            self.pairer.unpaired(Eye::Right),
        );
        let damage = |left_out| Damage { left_out, ..Damage::default() };
        // An image that still waits for its partner is counted later.
        SourceCounts {
            left: pairs + unpaired_left,
            right: pairs + unpaired_right,
            pairs,
            unpaired_left,
            unpaired_right,
            damaged_left: damage(self.left_out[0]),
            damaged_right: damage(self.left_out[1]),
        }
    }
}
