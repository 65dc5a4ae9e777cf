//! Frames of one view that wait for a partner, and the order of their times.

use std::collections::VecDeque;
use std::time::Duration;

use super::{JUMP, Rule};
use stereod_core::frame::EyeFrame;

/// Largest number of frames for learning a view's frame period and the use of its times.
pub(super) const LOOKAHEAD: usize = 8;

/// Number of frames for measuring a live view's current period.
const RECENT: usize = 9;

#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) waiting: VecDeque<EyeFrame>,
    pub(super) finished: bool,
    pub(super) frames: u64,
    pub(super) unpaired: u64,
    /// Frames without a partner before the first pair: one view may begin earlier.
    pub(super) unpaired_at_first: u64,
    /// Time of the last admitted frame; only a later one or a jump may follow.
    newest: Option<Duration>,
    /// Time of the last frame in order that left the queue.
    pub(super) last: Option<Duration>,
    /// Number of the last admitted frame, for pairing by number.
    last_index: Option<u64>,
    /// Steps between the last frames in order that left the queue.
    steps: VecDeque<Duration>,
}

/// Relation of a frame's time to the newest one before it in its view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Succession {
    InOrder,
    OutOfOrder,
    JumpsBack,
}

impl Side {
    /// Forgets the frames, but not their counts.
    pub(super) fn restart(&mut self) {
        let Side { frames, unpaired, unpaired_at_first, .. } = *self;
        *self = Side { frames, unpaired, unpaired_at_first, ..Side::default() };
    }

    /// Reports whether `frame` can still find a partner, and counts it as unpaired if not.
    pub(super) fn admit(&mut self, rule: Option<Rule>, frame: &EyeFrame) -> bool {
        let fits = match rule {
            None => return true,
            Some(Rule::Time { .. }) => frame
                .timestamp
                .is_some_and(|time| succession(self.newest, time) != Succession::OutOfOrder),
            Some(Rule::Index { .. }) => self.last_index.is_none_or(|last| frame.index > last),
        };
        if fits {
            self.newest = frame.timestamp;
            self.last_index = Some(frame.index);
        } else {
            self.unpaired += 1;
        }
        fits
    }

    pub(super) fn first_succession(&self) -> Option<Succession> {
        self.waiting.front().map(|frame| succession(self.last, time(frame)))
    }

    pub(super) fn will_jump_back(&self) -> bool {
        let mut last = self.last;
        self.waiting.iter().any(|frame| match succession(last, time(frame)) {
            Succession::InOrder => {
                last = Some(time(frame));
                false
            }
            relation => relation == Succession::JumpsBack,
        })
    }

    pub(super) fn take_first(&mut self) -> Option<EyeFrame> {
        let frame = self.waiting.pop_front()?;
        if let Some(step) = self.last.zip(frame.timestamp).and_then(|(a, b)| b.checked_sub(a)) {
            self.steps.truncate(RECENT - 1);
            self.steps.push_front(step);
        }
        self.last = self.last.max(frame.timestamp);
        Some(frame)
    }

    pub(super) fn drop_first(&mut self) {
        self.unpaired += u64::from(self.take_first().is_some());
    }

    pub(super) fn is_known(&self) -> bool {
        self.finished || self.waiting.len() >= LOOKAHEAD
    }

    fn times(&self) -> impl Iterator<Item = Duration> {
        self.waiting.iter().take(LOOKAHEAD).filter_map(|frame| frame.timestamp)
    }

    /// Reports whether the view's times exist and rise. `None`: not known yet.
    pub(super) fn has_times(&self) -> Option<bool> {
        let grow = self.times().zip(self.times().skip(1)).any(|(a, b)| b > a);
        if grow {
            return Some(true);
        }
        // A single frame cannot rise.
        self.is_known()
            .then(|| self.waiting.len() < 2 && self.times().count() == self.waiting.len())
    }

    /// Returns the median period of the last frames; `None` if they are too few.
    pub(super) fn recent_period(&self) -> Option<Duration> {
        let mut steps: Vec<_> = self.steps.iter().copied().collect();
        steps.sort_unstable();
        (steps.len() == RECENT).then(|| steps[RECENT / 2])
    }

    /// Returns the median period of the first frames; `None` if no two times differ.
    pub(super) fn period(&self) -> Option<Duration> {
        let mut steps: Vec<Duration> = self
            .times()
            .zip(self.times().skip(1))
            .filter_map(|(a, b)| b.checked_sub(a).filter(|step| !step.is_zero()))
            .collect();
        steps.sort_unstable();
        steps.get(steps.len() / 2).copied()
    }
}

/// Returns the time of a frame admitted by time, which always has one.
pub(super) fn time(frame: &EyeFrame) -> Duration {
    frame.timestamp.unwrap_or_default()
}

pub(super) fn succession(last: Option<Duration>, time: Duration) -> Succession {
    match last {
        Some(last) if time + JUMP < last => Succession::JumpsBack,
        Some(last) if time <= last => Succession::OutOfOrder,
        _ => Succession::InOrder,
    }
}
