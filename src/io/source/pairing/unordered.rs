//! Pairs frames of recordings, which may come in any order.
//!
//! Two frames of equal time are a pair, regardless of the frames between them in the recording. A frame
//! without an equal partner waits until [`Unordered::REACH`] frames of the other view have come, then goes to
//! the [`Pairer`] in order of time, which finds the nearest partner. Both windows are bounded, so a recording
//! is read once.
//!
//! Pairs come out in order of time. A pair that follows a gap is held until as many others are ready,
//! because the frames between may come later. Frames of equal time in one view are paired in their
//! order; a copy (equal time and equal content) is left out.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::{JUMP, Pairer, Pairing, is_astray, opposite};
use stereod_core::frame::{Eye, EyeFrame, StereoPair};

/// Number of frames of a view among which a copy is looked for.
const COPIES: usize = 64;

/// A frame that waits for one of equal time.
#[derive(Debug)]
struct Shelved {
    frame: EyeFrame,
    time: Duration,
    /// Number of frames that the other view had when it came.
    since: u64,
    /// Section of the other view when it came.
    other_section: u64,
    /// Times of the frames before and after it in the recording.
    before: Option<Duration>,
    after: Option<Duration>,
}

#[derive(Debug, Default)]
struct View {
    /// Frames by section, time and number. A section ends when times jump back.
    shelf: BTreeMap<(u64, Duration, u64), Shelved>,
    section: u64,
    /// Section, time and number of the last frame, and the time of the frame before it.
    last: Option<(u64, Duration, u64)>,
    before_last: Option<Duration>,
    frames: u64,
    finished: bool,
    /// Times and contents of the last frames.
    recent: VecDeque<(Duration, u64)>,
    copies: u64,
    alike: u64,
    mistimed: u64,
}

#[derive(Debug, Default)]
pub struct Unordered {
    pairer: Pairer,
    views: [View; 2],
    /// Frames of a view that are waited for; 0 if frames are in order.
    reach: usize,
    /// Pairs by section and time of the left frame, and their number.
    ready: BTreeMap<(u64, Duration, u64), [EyeFrame; 2]>,
    matched: u64,
    period: Duration,
    begin: Duration,
    last: Option<Duration>,
    astray: Option<Astray>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Astray {
    pub eye: Eye,
    pub index: u64,
    pub time: Duration,
    /// Nanoseconds by which it is later than the next frame.
    pub ahead_ns: i64,
}

impl Unordered {
    /// Number of frames of the other view among which one of equal time is looked for.
    pub const REACH: usize = 32;

    /// Creates a pairer without frames. Each view keeps at most twice `reach` frames, and as many pairs are
    /// held; 0 is for live sources, because their frames are in order. Pairs begin at `begin`.
    pub fn new(pairing: Pairing, reach: usize, begin: Duration) -> Self {
        let (pairer, period) = (Pairer::new(pairing), pairing.period());
        Self { pairer, reach, period, begin, ..Self::default() }
    }

    /// Adds the next frame of `eye`. Frames of equal `content` have equal images.
    pub fn push(&mut self, eye: Eye, frame: EyeFrame, content: u64) {
        let (Some(time), true) = (frame.timestamp, self.is_by_time()) else {
            return self.pairer.push(eye, frame);
        };
        let View { frames: other_frames, section: other_section, .. } = *self.view(opposite(eye));
        let jump = JUMP.max(self.period * Self::REACH as u32);
        let view = self.view_mut(eye);
        let number = view.frames;
        view.frames += 1;
        if let Some((_, last, _)) = view.last
            && time + jump < last
            && !is_astray(view.before_last, last, time)
        {
            view.section += 1;
            view.recent.clear();
        }
        if let Some(last) = view.last.and_then(|last| view.shelf.get_mut(&last)) {
            last.after = Some(time);
        }
        let section = view.section;
        let before = view.last.replace((section, time, number)).map(|(_, time, _)| time);
        view.before_last = before;
        let is_alike = view.recent.iter().any(|(other, _)| *other == time);
        let is_copy = is_alike && view.recent.contains(&(time, content));
        if is_copy {
            view.copies += 1;
            return self.pairer.skip(eye, 1);
        }
        view.alike += u64::from(is_alike);
        view.recent.truncate(COPIES - 1);
        view.recent.push_front((time, content));
        let other = self.view_mut(opposite(eye));
        // After both views have jumped back, equal times mean nothing.
        let partner = other.shelf.iter().find(|((own, ..), shelved)| {
            shelved.time == time && (*own == other.section || shelved.other_section == section)
        });
        if let Some(key) = partner.map(|(key, _)| *key)
            && let Some(partner) = other.shelf.remove(&key)
        {
            let section = if eye == Eye::Left { section } else { key.0 };
            let frames = match eye {
                Eye::Left => [frame, partner.frame],
                Eye::Right => [partner.frame, frame],
            };
            self.pairer.note_equal();
            self.ready.insert((section, time, self.matched), frames);
            self.matched += 1;
        } else {
            let shelved =
                Shelved { frame, time, since: other_frames, other_section, before, after: None };
            self.view_mut(eye).shelf.insert((section, time, number), shelved);
        }
        self.release();
    }

    pub fn finish(&mut self, eye: Eye) {
        if !self.is_by_time() {
            return self.pairer.finish(eye);
        }
        self.view_mut(eye).finished = true;
        self.release();
        if self.views.iter().all(|view| view.finished) {
            Eye::BOTH.into_iter().for_each(|eye| self.pairer.finish(eye));
            self.collect();
        }
    }

    /// Returns the next pair, or `None` until more frames or an end come.
    pub fn pop(&mut self) -> Option<StereoPair> {
        if !self.is_by_time() {
            return self.pairer.pop();
        }
        self.collect();
        let (&(section, time, _), _) = self.ready.first_key_value()?;
        let last = self.last.unwrap_or(self.begin.saturating_sub(self.period));
        let is_next = time <= last + self.period * 3 / 2
            || section < self.views[0].section
            || self.ready.len() > self.reach
            || self.views.iter().all(|view| view.finished);
        if !is_next {
            return None;
        }
        self.last = Some(time);
        let (_, [left, right]) = self.ready.pop_first()?;
        Some(self.pairer.join(left, right))
    }

    /// Restarts at the beginning of the recording. Counts go on.
    pub fn restart(&mut self) {
        self.pairer.move_to(0);
        for view in &mut self.views {
            let View { copies, alike, mistimed, .. } = *view;
            *view = View { copies, alike, mistimed, ..View::default() };
        }
        self.ready.clear();
        self.last = None;
    }

    /// Returns the largest number that the next frame's pair can have if it is a frame of `eye`.
    pub fn highest_number(&self, eye: Eye) -> u64 {
        // Ready pairs, and pairs of frames that still wait on both sides, may come before it.
        let held = self.ready.len() + self.view(eye).shelf.len() + 2 * self.reach;
        self.pairer.highest_number(eye) + held as u64
    }

    /// Reports whether `time` goes back behind a frame of `eye`, so that times of pairs may be shifted.
    pub fn goes_back(&self, eye: Eye, time: Duration) -> bool {
        let View { section, last, .. } = self.view(eye);
        *section > 0 || last.is_some_and(|(_, last, _)| time + JUMP < last)
    }

    /// Returns the first frame with a wrong time, once.
    pub fn take_astray(&mut self) -> Option<Astray> {
        self.astray.take()
    }

    pub fn pairer(&self) -> &Pairer {
        &self.pairer
    }

    pub fn copies(&self, eye: Eye) -> u64 {
        self.view(eye).copies
    }

    /// Returns the number of frames of `eye` that have the time of another one, but not its content.
    pub fn alike(&self, eye: Eye) -> u64 {
        self.view(eye).alike
    }

    /// Returns the number of frames of `eye` with a wrong time, which were left out.
    pub fn mistimed(&self, eye: Eye) -> u64 {
        self.view(eye).mistimed
    }

    fn is_by_time(&self) -> bool {
        self.reach > 0 && self.pairer.pairing.by == super::PairBy::Time
    }

    fn view(&self, eye: Eye) -> &View {
        &self.views[eye.index()]
    }

    fn view_mut(&mut self, eye: Eye) -> &mut View {
        &mut self.views[eye.index()]
    }

    /// Passes frames to the pairer that can no longer get a partner of equal time.
    fn release(&mut self) {
        for eye in Eye::BOTH {
            let View { frames, finished, .. } = *self.view(opposite(eye));
            let reach = self.reach;
            loop {
                let view = self.view_mut(eye);
                let is_full = view.shelf.len() > 2 * reach;
                let Some(first) = view.shelf.first_entry() else { break };
                let is_due = frames >= first.get().since + reach as u64 || finished || is_full;
                if !is_due {
                    break;
                }
                let Shelved { frame, time, before, after, .. } = first.remove();
                if let Some(next) = after.filter(|&next| is_astray(before, time, next)) {
                    view.mistimed += 1;
                    if self.views.iter().map(|view| view.mistimed).sum::<u64>() == 1 {
                        let ahead_ns = super::ns(time).saturating_sub(super::ns(next));
                        self.astray = Some(Astray { eye, index: frame.index, time, ahead_ns });
                    }
                    self.pairer.skip(eye, 1);
                } else {
                    self.pairer.push(eye, frame);
                    self.collect();
                }
            }
        }
    }

    fn collect(&mut self) {
        while let Some([left, right]) = self.pairer.match_next() {
            let section = self.views[0].section;
            self.ready.insert((section, super::side::time(&left), self.matched), [left, right]);
            self.matched += 1;
        }
    }
}

#[cfg(test)]
mod tests;
