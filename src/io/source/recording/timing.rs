//! Basis of times for pairing a recording's images: their stamps, or the times of recording if the stamps do
//! not grow.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use super::interface::Message;
use super::messages::Picture;
use stereod_core::frame::Eye;

/// Number of images of each view for judging times.
const MEASURED: usize = 16;

/// Images of one view after which the other one is not waited for.
const ALONE: usize = 64;

/// Part of an image that is compared to recognise a copy, in bytes.
const SAMPLE: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basis {
    Stamps,
    Log,
    /// None: the images are paired by their numbers.
    Order,
}

impl Basis {
    /// Returns the time of an image in nanoseconds.
    pub(super) fn time(self, stamp: u64, log_ns: u64) -> u64 {
        if self == Self::Log { log_ns } else { stamp }
    }

    /// Describes times other than the stamps.
    pub(super) fn warning(self) -> Option<&'static str> {
        match self {
            Self::Stamps => None,
            Self::Log => Some(
                "the stamps of the images do not grow; the times of recording pair the views instead",
            ),
            Self::Order => Some(
                "neither the stamps of the images nor the times of recording grow; the images are paired \
                 by their numbers",
            ),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    pub(super) basis: Basis,
    /// Time of the first pair, or of the first image.
    pub(super) begin: Duration,
    /// Median time between images of each view.
    pub(super) periods: [Option<Duration>; 2],
}

/// Stamp, time of recording and content of an image.
type First = (u64, u64, u64);

#[derive(Debug, Default)]
pub(super) struct Firsts([Vec<First>; 2]);

impl Firsts {
    pub(super) fn note(&mut self, eye: Eye, stamp: u64, log_ns: u64, content: u64) {
        let known = &mut self.0[eye.index()];
        if known.len() < ALONE {
            known.push((stamp, log_ns, content));
        }
    }

    /// Adds the image in the next message of a topic, which is one of these or both.
    pub(super) fn note_message(
        &mut self,
        topics: [usize; 2],
        message: &Message,
        stamp: u64,
        picture: &Picture<'_>,
    ) {
        for (eye, _) in Eye::BOTH.into_iter().zip(topics).filter(|(_, it)| *it == message.topic) {
            let content = content(picture, self.0[eye.index()].len() as u64);
            self.note(eye, stamp, message.log_ns, content);
        }
    }

    /// Reports whether the times can be judged. A live source is not waited for.
    pub(super) fn are_enough(&self, is_live: bool) -> bool {
        let [left, right] = self.0.each_ref().map(Vec::len);
        left.min(right) >= MEASURED
            || left.max(right) >= ALONE
            || is_live && left.max(right) >= MEASURED
    }

    pub(super) fn clock(&self) -> Clock {
        let grow = |of: fn(&First) -> u64| {
            self.0.iter().all(|view| {
                // A copy repeats its stamp, and is no evidence about others.
                let images: HashSet<_> = view.iter().map(|first| (first.0, first.2)).collect();
                let times: HashSet<_> = view.iter().map(of).collect();
                images.len() < 2 || times.len() * 4 >= images.len() * 3
            })
        };
        let basis = if grow(|first| first.0) {
            Basis::Stamps
        } else if grow(|first| first.1) {
            Basis::Log
        } else {
            Basis::Order
        };
        let times = |view: &[First]| -> Vec<u64> {
            view.iter().map(|&(stamp, log, _)| basis.time(stamp, log)).collect()
        };
        let [left, right] = self.0.each_ref().map(|view| times(view));
        // Of a recording that runs backwards, the first image is the last one.
        let falls = left.windows(2).filter(|two| two[1] < two[0]).count();
        let begin = if falls * 2 > left.len() { left.first() } else { left.iter().min() };
        let begin = Duration::from_nanos(begin.copied().unwrap_or_default());
        let [left, right] = [left, right].map(period);
        Clock { basis, begin, periods: [left.or(right), right.or(left)] }
    }
}

/// Returns the median step between different times, in any order.
fn period(mut times: Vec<u64>) -> Option<Duration> {
    times.sort_unstable();
    times.dedup();
    let mut steps: Vec<u64> = times.windows(2).map(|two| two[1] - two[0]).collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).map(|&step| Duration::from_nanos(step))
}

/// Returns a number that equal images share, and that others hardly do. Frames of a video build on each
/// other, so no two are copies.
pub(super) fn content(picture: &Picture<'_>, number: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    let data: &[u8] = match picture {
        Picture::Raw(raw) => raw.data,
        Picture::File { content, .. } => content,
        Picture::Unit(..) => return number,
    };
    data.len().hash(&mut hasher);
    if data.len() <= SAMPLE {
        data.hash(&mut hasher);
    } else {
        // An odd step meets every column.
        data.iter().step_by((data.len() / SAMPLE) | 1).for_each(|byte| byte.hash(&mut hasher));
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(images: &[First]) -> Clock {
        let mut firsts = Firsts::default();
        for &(stamp, log, content) in images {
            for eye in Eye::BOTH {
                firsts.note(eye, stamp, log, content);
            }
        }
        firsts.clock()
    }

    #[test]
    fn stamps_that_do_not_grow_are_replaced() {
        let images = |stamp: fn(u64) -> u64, log: fn(u64) -> u64| -> Vec<First> {
            (0..16).map(|i| (stamp(i), log(i), i)).collect()
        };
        let judged = |stamp, log| clock(&images(stamp, log)).basis;
        assert_eq!(judged(|i| i * 50, |_| 7), Basis::Stamps);
        assert_eq!(judged(|i| 5000 - i * 50, |_| 7), Basis::Stamps);
        assert_eq!(judged(|_| 9, |i| i * 50), Basis::Log);
        assert_eq!(judged(|i| i / 10, |i| i * 50), Basis::Log);
        assert_eq!(judged(|_| 9, |_| 7), Basis::Order);
        // Each message twice.
        let twice: Vec<_> = (0..16).map(|i| (i / 2 * 50, i, i / 2)).collect();
        assert_eq!(clock(&twice).basis, Basis::Stamps);
        assert_eq!(clock(&[]).basis, Basis::Stamps);
        assert_eq!(clock(&[(3, 4, 5)]).periods, [None; 2]);
    }

    #[test]
    fn the_order_of_the_images_does_not_matter() {
        let ns = Duration::from_nanos;
        let order = [4, 0, 3, 1, 2, 9, 5, 7, 6, 8];
        let mixed: Vec<_> = order.map(|i| (100 + i * 50, i, i)).to_vec();
        let Clock { begin, periods, .. } = clock(&mixed);
        assert_eq!((begin, periods), (ns(100), [Some(ns(50)); 2]));
        let backwards: Vec<_> = (0..10).map(|i| (1000 - i * 50, i, i)).collect();
        let Clock { begin, periods, .. } = clock(&backwards);
        assert_eq!((begin, periods), (ns(1000), [Some(ns(50)); 2]));
    }
}
