//! Part of a recorded source: the pairs before and after it are left out.

use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};

use super::interface::{Place, Source, SourceCounts, SourceInfo};
use super::live::LiveState;
use super::pairing::UNKNOWN_PERIOD;
use super::pairing::skew::SkewCheck;
use crate::control::Switch;
use stereod_core::frame::StereoPair;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Time from the first image of the left view to the first pair.
    pub start: Duration,
    /// Length; `None`: to the end.
    pub duration: Option<Duration>,
    pub frames: Frames,
}

/// Numbers of pairs: a number of them from the start on, or a range of the whole source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    pub limit: Option<u64>,
    pub first: u64,
    /// Number of the pair after the last one.
    pub end: Option<u64>,
}

impl FromStr for Frames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "a number of pairs (0: all), or pair numbers A..B, of which B is the first one left out: \
             100, 20..50, 20.., ..50"
                .to_owned()
        };
        let number = |text: &str| text.parse::<u64>().ok().filter(|&n| n <= i64::MAX as u64);
        let Some((first, end)) = text.split_once("..") else {
            let limit = number(text).ok_or_else(wrong)?;
            return Ok(Self { limit: Some(limit).filter(|&limit| limit > 0), ..Self::default() });
        };
        let first = if first.is_empty() { Some(0) } else { number(first) };
        let end = if end.is_empty() { Some(None) } else { number(end).map(Some) };
        let (first, end) = first.zip(end).ok_or_else(wrong)?;
        if end.is_some_and(|end| end <= first) {
            return Err(format!("no pair: {text} ends before its first one; {}", wrong()));
        }
        Ok(Self { limit: None, first, end })
    }
}

impl Part {
    pub fn is_whole(&self) -> bool {
        let Frames { first, end, .. } = self.frames;
        self.start.is_zero() && self.duration.is_none() && first == 0 && end.is_none()
    }

    fn named(&self) -> String {
        match self.frames.first {
            0 => format!("--start {}", self.start.as_secs_f64()),
            first => format!("--frames {first}.."),
        }
    }
}

/// A part was asked for of a source that has none.
#[derive(Debug, thiserror::Error)]
#[error("{0}: `--start`, `--duration` and `--frames A..B` are for recordings, and it is live")]
pub struct NoPartOfLive(String);

/// A recording ends before the part that was asked for.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BehindTheEnd(String);

/// A recorded source that delivers only a part, and can be moved to any pair of it.
pub struct Excerpt {
    source: Box<dyn Source>,
    info: SourceInfo,
    part: Part,
    /// Expected number of pairs of the whole source, if known.
    pairs: Option<u64>,
    /// Place of the next pair; earlier ones are left out.
    from: Place,
    /// False until the source was moved to the part.
    is_there: bool,
    skipped: u64,
    /// Time and number of the last pair, also of one that was left out.
    last: Option<(Duration, u64)>,
    skew: SkewCheck,
}

impl Excerpt {
    pub fn of(source: Box<dyn Source>, part: &Part) -> Result<Box<dyn Source>> {
        let whole = source.info();
        if whole.live {
            return match part.is_whole() {
                true => Ok(source),
                false => Err(NoPartOfLive(whole.description.clone()).into()),
            };
        }
        let (mut info, pairs) = (whole.clone(), whole.pairs);
        if let Some(length) = info.length.filter(|&length| part.start >= length) {
            bail!(behind_the_end(part, &info.description, length));
        }
        let frames = part.frames;
        info.pairs = info.pairs.map(|pairs| {
            let in_time = |time: Duration| (time.as_secs_f64() * info.rate.unwrap_or(0.0)) as u64;
            let after = pairs.saturating_sub(frames.first.max(in_time(part.start)));
            let by_number = frames.end.map_or(after, |end| after.min(end - frames.first));
            part.duration.map_or(by_number, |time| by_number.min(in_time(time).max(1)))
        });
        let from = match frames.first {
            0 if !part.start.is_zero() => Place::Time(whole.begin.saturating_add(part.start)),
            first => Place::Pair(first),
        };
        let is_there = from == Place::Pair(0);
        let part = part.clone();
        let (skipped, last, skew) = (0, None, SkewCheck::default());
        Ok(Box::new(Self { source, info, part, pairs, from, is_there, skipped, last, skew }))
    }

    fn length(&self) -> Duration {
        let period =
            self.info.rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(1.0 / rate));
        let seen = self.last.map(|(time, _)| time.saturating_sub(self.info.begin) + period);
        seen.max(self.info.length).unwrap_or_default()
    }
}

fn behind_the_end(part: &Part, name: &str, length: Duration) -> BehindTheEnd {
    let length = length.as_secs_f64();
    let part = part.named();
    BehindTheEnd(format!("{name} is only {length:.3} s long: there is nothing from {part} on"))
}

impl Source for Excerpt {
    fn info(&self) -> &SourceInfo {
        &self.info
    }

    fn run(
        &mut self,
        stop: &Switch,
        emit: &mut dyn FnMut(StereoPair, SourceCounts) -> ControlFlow<()>,
    ) -> Result<()> {
        if !std::mem::replace(&mut self.is_there, true) {
            self.source.seek(self.from)?;
        }
        let begin = self.info.begin.saturating_add(self.part.start);
        let end = self.part.duration.map(|duration| begin.saturating_add(duration));
        let Frames { first, end: end_number, .. } = self.part.frames;
        let period =
            self.info.rate.map_or(UNKNOWN_PERIOD, |rate| Duration::from_secs_f64(1.0 / rate));
        let (from, skipped, last) = (self.from, &mut self.skipped, &mut self.last);
        let skew = &mut self.skew;
        let (mut is_empty, mut is_behind) = (true, false);
        let result = self.source.run(stop, &mut |pair, counts| {
            let (time, number) = (pair.timestamp, pair.sequence);
            *last = Some((time, number));
            let is_early = match from {
                Place::Time(from) => time < from,
                Place::Pair(from) => number < from,
            };
            // In a recording with falling times, pairs may be earlier than its first image.
            let is_before = !self.part.start.is_zero() && time < begin;
            if is_early || is_before || number < first {
                *skipped += 1;
                return ControlFlow::Continue(());
            }
            if end.is_some_and(|end| time >= end) || end_number.is_some_and(|end| number >= end) {
                (*skipped, is_behind) = (*skipped + 1, true);
                return ControlFlow::Break(());
            }
            is_empty = false;
            tell(pair.skew_ns.and_then(|ns| skew.note(ns, period)));
            emit(pair, less(counts, *skipped))
        });
        tell(self.skew.finish(period));
        result?;
        let is_first = self.skipped == self.source.counts().pairs;
        if is_empty && is_first && !self.part.is_whole() && !stop.is_set() {
            let SourceInfo { description, .. } = &self.info;
            let all = self.last.map(|(_, number)| number + 1).or(self.pairs).unwrap_or_default();
            match self.part.frames.first {
                _ if is_behind => bail!("{description} has no pair in the part that was asked for"),
                0 => bail!(behind_the_end(&self.part, description, self.length())),
                _ => bail!(BehindTheEnd(format!(
                    "{description} has only {all} pairs: no {}",
                    self.part.named()
                ))),
            }
        }
        Ok(())
    }

    /// Moves to any pair of the whole source, also outside of the part.
    fn seek(&mut self, place: Place) -> Result<()> {
        let is_beginning = matches!(place, Place::Time(time) if time <= self.info.begin);
        self.from = if is_beginning { Place::Pair(0) } else { place };
        self.part = Part::default();
        self.is_there = true;
        self.source.seek(place)
    }

    fn counts(&self) -> SourceCounts {
        less(self.source.counts(), self.skipped)
    }

    fn live_state(&self) -> Option<Arc<LiveState>> {
        self.source.live_state()
    }
}

fn tell(warning: Option<String>) {
    if let Some(warning) = warning {
        tracing::warn!("{warning}");
    }
}

/// Returns the counts without pairs that were left out.
fn less(counts: SourceCounts, skipped: u64) -> SourceCounts {
    SourceCounts {
        left: counts.left.saturating_sub(skipped),
        right: counts.right.saturating_sub(skipped),
        pairs: counts.pairs.saturating_sub(skipped),
        ..counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::demo::{DemoOptions, DemoSource};

    /// Ten pairs at ten a second.
    fn demo(part: &Part) -> Result<Box<dyn Source>> {
        let (frames, rate) = (Some(10), 10.0);
        let options = DemoOptions { width: 64, height: 32, frames, rate, ..DemoOptions::default() };
        Excerpt::of(Box::new(DemoSource::new(options)?), part)
    }

    fn delivered(source: &mut dyn Source) -> Result<Vec<u64>> {
        let mut seen = Vec::new();
        let mut counted = 0;
        source.run(&Switch::default(), &mut |pair, counts| {
            seen.push(pair.sequence);
            counted += 1;
            assert_eq!((counts.pairs, counts.left), (counted, counted));
            ControlFlow::Continue(())
        })?;
        Ok(seen)
    }

    #[test]
    fn numbers_of_pairs_are_parsed() {
        let range = |first, end| Ok(Frames { limit: None, first, end });
        assert_eq!("20..50".parse(), range(20, Some(50)));
        assert_eq!("20..".parse(), range(20, None));
        assert_eq!("..50".parse(), range(0, Some(50)));
        assert_eq!("12".parse(), Ok(Frames { limit: Some(12), ..Frames::default() }));
        assert_eq!("0".parse(), Ok(Frames::default()));
        for wrong in ["", "a", "-1", "5..5", "5..4", "1...3", "1..2..3", "99999999999999999999"] {
            assert!(wrong.parse::<Frames>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_part_is_delivered_with_the_numbers_of_the_whole() {
        let part = |start: u64, duration: Option<u64>, frames: &str| Part {
            start: Duration::from_millis(start),
            duration: duration.map(Duration::from_millis),
            frames: frames.parse().unwrap(),
        };
        for (part, first, end) in [
            (part(0, None, "0"), 0, 10),
            (part(300, None, "0"), 3, 10),
            (part(301, None, "0"), 4, 10),
            (part(300, Some(200), "0"), 3, 5),
            (part(0, Some(150), "0"), 0, 2),
            (part(0, None, "4..7"), 4, 7),
            (part(0, None, "..3"), 0, 3),
            (part(500, None, "2..8"), 5, 8),
        ] {
            let mut source = demo(&part).unwrap();
            assert_eq!(
                delivered(&mut *source).unwrap(),
                (first..end).collect::<Vec<_>>(),
                "{part:?}"
            );
            assert_eq!(source.counts().pairs, end - first, "{part:?}");
        }
    }

    #[test]
    fn a_start_behind_the_end_names_the_length() {
        let start = Part { start: Duration::from_secs(2), ..Part::default() };
        let error = demo(&start).err().unwrap().to_string();
        assert!(error.contains("1.000 s long") && error.contains("--start 2"), "{error}");
        let frames = Part { frames: "12..".parse().unwrap(), ..Part::default() };
        let error = delivered(&mut *demo(&frames).unwrap()).unwrap_err().to_string();
        assert!(error.contains("has only"), "{error}");
    }

    #[test]
    fn it_can_be_moved_to_any_pair_at_any_time() {
        let mut source = demo(&Part::default()).unwrap();
        assert_eq!(delivered(&mut *source).unwrap().len(), 10);
        let mut seen = Vec::new();
        for place in [Place::Time(Duration::from_millis(700)), Place::Pair(2)] {
            source.seek(place).unwrap();
            let mut left = 2;
            source
                .run(&Switch::default(), &mut |pair, _| {
                    seen.push(pair.sequence);
                    left -= 1;
                    if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })
                .unwrap();
        }
        assert_eq!(seen, [7, 8, 2, 3]);
    }
}
