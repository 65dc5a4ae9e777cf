//! Pairs left and right frames by capture time or by number.
//!
//! [`Pairer`] is pure: it has no threads and no clock, and its pairs depend only on the frames of each view,
//! not on the order of pushing the two views (as long as fewer than [`MAX_WAITING`] frames wait).
//!
//! By time, the two oldest frames are compared. If both views have one rate, they are a pair if their
//! difference lies within half a period of the usual one (`phase`), so each frame has one partner at any
//! phase. Otherwise they are a pair if they lie within the tolerance and the next frame of the earlier view
//! is not nearer to the later frame. Only near half a period does a pair wait for that frame. A frame without
//! a partner goes unpaired.
//!
//! A frame that is not later than its predecessor has no partner. If the times of both views jump
//! back, as in joined files, pairing restarts there. [`unordered`] puts frames in order before.

pub mod pace;
mod phase;
pub mod skew;
pub mod synchronisation;
pub mod unordered;

use std::collections::VecDeque;
use std::time::Duration;

use phase::Phase;
use stereod_core::frame::{Eye, EyeFrame, StereoPair};

/// Largest number of frames of a view that wait for a partner; beyond that the oldest goes
/// unpaired. Only a live source reaches it, because its views cannot be read in turn.
pub const MAX_WAITING: usize = 64;

/// Times that go back by more than this have jumped; by less, the frames are out of order.
const JUMP: Duration = Duration::from_secs(1);

/// Largest number of waiting frames for finding a jump after the other view has jumped.
const JUMP_REACH: usize = MAX_WAITING / 2;

/// Largest number of frames for learning a view's frame period and the use of its times.
const LOOKAHEAD: usize = 8;

/// Largest ratio of two periods of one rate, in percent. Jitter distorts periods of few frames.
const ONE_RATE: u32 = 115;

/// Number of frames for measuring a live view's current period.
const RECENT: usize = 9;

/// Frame period if no other is known.
pub const UNKNOWN_PERIOD: Duration = Duration::from_nanos(1_000_000_000 / 30);

/// Criterion for a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairBy {
    /// Capture times if both views have them, else frame numbers.
    #[default]
    Auto,
    /// Capture times; a frame without one has no partner.
    Time,
    /// Frame numbers.
    Index,
}

/// Options of pairing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pairing {
    /// Criterion that makes two frames a pair.
    pub by: PairBy,
    /// Largest difference of the capture times of a pair. `None`: the nearest frame is the partner,
    /// which lies within half the shorter frame period.
    pub tolerance: Option<Duration>,
    /// Frame period of the left view; `None`: measured from the first frames.
    pub left_period: Option<Duration>,
    /// Frame period of the right view, likewise.
    pub right_period: Option<Duration>,
    /// True if the periods may grow: cameras slow down in the dark.
    pub is_live: bool,
    /// True if times are those of arrival, so that the time between the frames of a pair is not known.
    pub by_arrival: bool,
}

/// Pairing rule, chosen before the first pair.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// By time: the tolerance, and the largest difference at which no other frame can be nearer. With a
    /// period, both views have this one, and the nearest frame is the partner.
    Time { tolerance: Duration, sure: Duration, period: Option<Duration> },
    /// By number; the pair's time is the left frame's, or its number times `period`.
    Index { left_times: bool, period: Duration },
}

/// Frames and counts of one view.
#[derive(Debug, Default)]
struct Side {
    waiting: VecDeque<EyeFrame>,
    finished: bool,
    frames: u64,
    unpaired: u64,
    /// Frames without a partner before the first pair: one view may begin earlier.
    unpaired_at_first: u64,
    /// Time of the last admitted frame; only a later one or a jump may follow.
    newest: Option<Duration>,
    /// Time of the last frame in order that left the queue.
    last: Option<Duration>,
    /// Number of the last admitted frame, for pairing by number.
    last_index: Option<u64>,
    /// Steps between the last frames in order that left the queue.
    steps: VecDeque<Duration>,
}

/// Relation of a frame's time to the newest one before it in its view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Succession {
    InOrder,
    OutOfOrder,
    JumpsBack,
}

/// Next step of the pairing.
enum Step {
    Pair,
    Drop(Eye),
    /// The times of both views have jumped back.
    Restart,
    Wait(Eye),
    Done,
}

/// Joins the frames of two views into pairs, in order, each frame at most once.
#[derive(Debug)]
pub struct Pairer {
    pairing: Pairing,
    rule: Option<Rule>,
    left: Side,
    right: Side,
    pairs: u64,
    /// Number of the next pair in the whole source.
    sequence: u64,
    /// Number of restarts because the times of both views jumped back.
    restarts: u64,
    /// Nanoseconds added to the times of pairs, so that they rise across a restart.
    added_ns: i64,
    /// Time of the last pair.
    last_pair: Option<Duration>,
    /// Usual difference of views of one rate; `None` before their first pair.
    phase: Option<Phase>,
}

impl Pairer {
    /// Creates a pairer without frames.
    pub fn new(pairing: Pairing) -> Self {
        Self {
            pairing,
            rule: None,
            left: Side::default(),
            right: Side::default(),
            pairs: 0,
            sequence: 0,
            restarts: 0,
            added_ns: 0,
            last_pair: None,
            phase: None,
        }
    }

    /// Adds the next frame of `eye`.
    pub fn push(&mut self, eye: Eye, frame: EyeFrame) {
        let rule = self.rule;
        let side = self.side_mut(eye);
        side.frames += 1;
        if side.admit(rule, &frame) {
            side.waiting.push_back(frame);
        }
        if side.waiting.len() > MAX_WAITING {
            side.drop_first();
        }
    }

    /// Counts `frames` of `eye` that were not pushed because no partner can come any more.
    pub fn skip(&mut self, eye: Eye, frames: u64) {
        let side = self.side_mut(eye);
        side.frames += frames;
        side.unpaired += frames;
    }

    /// Marks `eye` as lost for now: waiting frames of the other one have no partner. Pop all pairs
    /// first.
    pub fn abandon(&mut self, eye: Eye) {
        let waiting = self.side_mut(opposite(eye));
        while !waiting.waiting.is_empty() {
            waiting.drop_first();
        }
        // A camera that is back has another phase.
        self.phase = None;
    }

    /// Marks the end of `eye`.
    pub fn finish(&mut self, eye: Eye) {
        self.side_mut(eye).finished = true;
    }

    /// Restarts at another place of a recording, with the rule that was chosen. Counts go on; the next
    /// pair has the number `sequence`.
    pub fn move_to(&mut self, sequence: u64) {
        for side in [&mut self.left, &mut self.right] {
            let Side { frames, unpaired, unpaired_at_first, .. } = *side;
            *side = Side { frames, unpaired, unpaired_at_first, ..Side::default() };
        }
        (self.sequence, self.added_ns, self.last_pair) = (sequence, 0, None);
    }

    /// Notes a pair of equal times that was found elsewhere.
    fn note_equal(&mut self) {
        let Pairing { left_period, right_period, .. } = self.pairing;
        let period = ns(left_period.or(right_period).unwrap_or(UNKNOWN_PERIOD));
        match &mut self.phase {
            Some(phase) => phase.note(0, period),
            None => self.phase = Some(Phase::new(0, period)),
        }
    }

    /// Corrects the number of the pair that was returned last.
    pub fn renumber(&mut self, pair: &mut StereoPair, sequence: u64) {
        pair.sequence = sequence;
        self.sequence = sequence + 1;
    }

    /// Returns the largest number that the next frame's pair can have if it is a frame of `eye`.
    pub fn highest_number(&self, eye: Eye) -> u64 {
        self.sequence + self.side(eye).waiting.len() as u64
    }

    /// Returns the next pair, or `None` until more frames or an end come.
    pub fn pop(&mut self) -> Option<StereoPair> {
        let [left, right] = self.match_next()?;
        Some(self.join(left, right))
    }

    /// Returns the frames of the next pair.
    fn match_next(&mut self) -> Option<[EyeFrame; 2]> {
        self.decide_rule();
        loop {
            match self.step() {
                Step::Pair => break,
                Step::Drop(eye) => self.side_mut(eye).drop_first(),
                Step::Restart => {
                    (self.left.last, self.right.last) = (None, None);
                    self.phase = None;
                    self.restarts += 1;
                }
                Step::Wait(_) | Step::Done => return None,
            }
        }
        let (left, right) = (self.left.take_first()?, self.right.take_first()?);
        if let Some(Rule::Time { period: Some(period), .. }) = self.rule {
            let (skew, period) = (skew_ns(&left, &right), ns(self.present(period)));
            match &mut self.phase {
                Some(phase) => phase.note(skew, period),
                None => self.phase = Some(Phase::new(skew, period)),
            }
        }
        Some([left, right])
    }

    /// Returns the view whose next frame or end is needed after [`Pairer::pop`] returned `None`;
    /// `None` if both have ended. A source that reads only that view keeps few frames waiting.
    pub fn needed_eye(&self) -> Option<Eye> {
        match self.step() {
            Step::Wait(eye) => Some(eye),
            // The rest of the other view is only counted.
            Step::Done if !self.left.finished => Some(Eye::Left),
            Step::Done if !self.right.finished => Some(Eye::Right),
            Step::Done => None,
            Step::Pair | Step::Drop(_) | Step::Restart => Some(Eye::Left),
        }
    }

    /// Reports whether no further frame of `eye` can find a partner: the other view has ended and
    /// none of its frames wait.
    pub fn is_hopeless(&self, eye: Eye) -> bool {
        let other = self.side(opposite(eye));
        other.finished && other.waiting.is_empty()
    }

    /// Returns the number of pairs so far.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// Returns the number of frames of `eye` without a partner so far, except waiting ones.
    pub fn unpaired(&self, eye: Eye) -> u64 {
        self.side(eye).unpaired
    }

    /// Returns the number of frames of `eye` without a partner after the first pair.
    pub fn unpaired_since_first(&self, eye: Eye) -> u64 {
        let side = self.side(eye);
        if self.pairs == 0 { 0 } else { side.unpaired - side.unpaired_at_first }
    }

    /// Returns the number of restarts because the times of both views jumped back.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Returns the tolerance in use; `None` before it is known, and in pairing by number.
    pub fn tolerance(&self) -> Option<Duration> {
        match self.rule {
            Some(Rule::Time { tolerance, .. }) => Some(tolerance),
            _ => None,
        }
    }

    fn side(&self, eye: Eye) -> &Side {
        match eye {
            Eye::Left => &self.left,
            Eye::Right => &self.right,
        }
    }

    fn side_mut(&mut self, eye: Eye) -> &mut Side {
        match eye {
            Eye::Left => &mut self.left,
            Eye::Right => &mut self.right,
        }
    }

    /// Returns the view whose next frame is needed to choose the rule, if any.
    fn undecided(&self) -> Option<Eye> {
        let by = self.pairing.by;
        let times = |eye| self.side(eye).has_times();
        if by != PairBy::Time && times(Eye::Left).is_none() {
            return Some(Eye::Left);
        }
        if by == PairBy::Auto && times(Eye::Right).is_none() {
            return Some(Eye::Right);
        }
        if !self.by_time() {
            return None;
        }
        let periods = [self.pairing.left_period, self.pairing.right_period];
        Eye::BOTH
            .into_iter()
            .zip(periods)
            .find(|&(eye, period)| period.is_none() && !self.side(eye).is_known())
            .map(|(eye, _)| eye)
    }

    /// Reports whether pairing is by time, as far as known.
    fn by_time(&self) -> bool {
        match self.pairing.by {
            PairBy::Auto => {
                self.left.has_times() == Some(true) && self.right.has_times() == Some(true)
            }
            PairBy::Time => true,
            PairBy::Index => false,
        }
    }

    fn decide_rule(&mut self) {
        if self.rule.is_some() || self.undecided().is_some() {
            return;
        }
        let Pairing { tolerance, left_period, right_period, .. } = self.pairing;
        let rule = if self.by_time() {
            let periods = [
                left_period.or_else(|| self.left.period()),
                right_period.or_else(|| self.right.period()),
            ];
            let shorter = periods.into_iter().flatten().min().unwrap_or(UNKNOWN_PERIOD);
            let longer = periods.into_iter().flatten().max().unwrap_or(UNKNOWN_PERIOD);
            let is_one = longer * 100 <= shorter * ONE_RATE;
            Rule::Time {
                // A partner midway between two frames is one, however its container rounded its time.
                tolerance: tolerance.unwrap_or(shorter * 9 / 16),
                sure: shorter * 15 / 32,
                period: (is_one && tolerance.is_none()).then_some(shorter),
            }
        } else {
            let left_times = self.left.has_times() == Some(true);
            let period = left_period.or(right_period).unwrap_or(UNKNOWN_PERIOD);
            Rule::Index { left_times, period }
        };
        self.rule = Some(rule);
        for side in [&mut self.left, &mut self.right] {
            for frame in std::mem::take(&mut side.waiting) {
                if side.admit(Some(rule), &frame) {
                    side.waiting.push_back(frame);
                }
            }
        }
    }

    fn step(&self) -> Step {
        let Some(rule) = self.rule else {
            // Without a rule, the only step is to wait for more frames.
            return self.undecided().map_or(Step::Done, Step::Wait);
        };
        if let Rule::Time { .. } = rule
            && let Some(step) = self.resolve_disorder()
        {
            return step;
        }
        let (left, right) = match (self.left.waiting.front(), self.right.waiting.front()) {
            (Some(left), Some(right)) => (left, right),
            (None, None) if self.left.finished || self.right.finished => return Step::Done,
            (None, Some(_)) if self.left.finished => return Step::Drop(Eye::Right),
            (Some(_), None) if self.right.finished => return Step::Drop(Eye::Left),
            (None, _) => return Step::Wait(Eye::Left),
            (_, None) => return Step::Wait(Eye::Right),
        };
        let Rule::Time { tolerance, sure, period } = rule else {
            return match left.index.cmp(&right.index) {
                std::cmp::Ordering::Less => Step::Drop(Eye::Left),
                std::cmp::Ordering::Equal => Step::Pair,
                std::cmp::Ordering::Greater => Step::Drop(Eye::Right),
            };
        };
        let (earlier, later) =
            if time(left) <= time(right) { (Eye::Left, right) } else { (Eye::Right, left) };
        let (mut tolerance, mut sure, mut margin) = (tolerance, sure, Duration::ZERO);
        if let Some(period) = period.map(|period| self.present(period)) {
            if let Some(phase) = &self.phase {
                return match phase.distance(skew_ns(left, right)) {
                    away if away.unsigned_abs() <= ns(period / 2) as u64 => Step::Pair,
                    away if away > 0 => Step::Drop(Eye::Left),
                    _ => Step::Drop(Eye::Right),
                };
            }
            (tolerance, sure, margin) = (period * 5 / 8, period * 15 / 32, period / 32);
        }
        let skew = time(left).abs_diff(time(right));
        if skew > tolerance {
            return Step::Drop(earlier);
        }
        if skew <= sure {
            return Step::Pair;
        }
        let side = self.side(earlier);
        let front = side.waiting.front().map(time);
        let mut following = side.waiting.iter().skip(1).map(time);
        match following.find(|&next| succession(front, next) != Succession::OutOfOrder) {
            Some(next) if Some(next) > front && next.abs_diff(time(later)) + margin < skew => {
                Step::Drop(earlier)
            }
            None if !side.finished => Step::Wait(earlier),
            _ => Step::Pair,
        }
    }

    /// Returns the step for a frame that is not later than its predecessor; `None` if both views
    /// are in order.
    fn resolve_disorder(&self) -> Option<Step> {
        let successions = [self.left.first_succession(), self.right.first_succession()];
        if let Some(eye) =
            successions.iter().position(|&relation| relation == Some(Succession::OutOfOrder))
        {
            return Some(Step::Drop(Eye::BOTH[eye]));
        }
        match successions.map(|relation| relation == Some(Succession::JumpsBack)) {
            [false, false] => None,
            [true, true] => Some(Step::Restart),
            [jumped, _] => {
                let eye = if jumped { Eye::Left } else { Eye::Right };
                let other = opposite(eye);
                let side = self.side(other);
                Some(if side.will_jump_back() {
                    Step::Drop(other)
                } else if side.finished || side.waiting.len() >= JUMP_REACH {
                    Step::Drop(eye)
                } else {
                    Step::Wait(other)
                })
            }
        }
    }

    /// Returns the current period of views with an initial period of `period`.
    fn present(&self, period: Duration) -> Duration {
        if !self.pairing.is_live {
            return period;
        }
        let [left, right] = [&self.left, &self.right].map(|side| side.recent_period());
        left.zip(right).map_or(period, |(left, right)| period.max(left.min(right)))
    }

    fn join(&mut self, left: EyeFrame, right: EyeFrame) -> StereoPair {
        let sequence = self.sequence;
        if self.pairs == 0 {
            for side in [&mut self.left, &mut self.right] {
                side.unpaired_at_first = side.unpaired;
            }
        }
        self.pairs += 1;
        self.sequence += 1;
        let (timestamp, skew_ns) = match self.rule {
            None | Some(Rule::Time { .. }) => {
                let skew_ns = skew_ns(&left, &right);
                (time(&left), (!self.pairing.by_arrival).then_some(skew_ns))
            }
            Some(Rule::Index { left_times, period }) => {
                let by_number = || Duration::from_nanos(period.as_nanos() as u64 * left.index);
                let own = left.timestamp.filter(|_| left_times);
                (own.unwrap_or_else(by_number), None)
            }
        };
        let timestamp = self.continue_times(timestamp);
        let arrived = left.arrived.max(right.arrived);
        StereoPair {
            left: left.image,
            right: right.image,
            sequence,
            timestamp,
            skew_ns,
            arrived,
            truth: None,
        }
    }

    /// Shifts the time of a pair so that times rise across a jump back.
    fn continue_times(&mut self, time: Duration) -> Duration {
        let added =
            |ns: i64| Duration::from_nanos((time.as_nanos() as i64).saturating_add(ns) as u64);
        if let Some(last) = self.last_pair
            && added(self.added_ns) + JUMP < last
        {
            let Pairing { left_period, right_period, .. } = self.pairing;
            let period = left_period.or(right_period).unwrap_or(UNKNOWN_PERIOD);
            self.added_ns =
                ((last + period).as_nanos() as i64).saturating_sub(time.as_nanos() as i64);
        }
        let time = added(self.added_ns);
        self.last_pair = Some(time);
        time
    }
}

impl Side {
    /// Reports whether `frame` can still find a partner, and counts it as unpaired if not.
    fn admit(&mut self, rule: Option<Rule>, frame: &EyeFrame) -> bool {
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

    /// Succession of the first waiting frame; `None` if none waits.
    fn first_succession(&self) -> Option<Succession> {
        self.waiting.front().map(|frame| succession(self.last, time(frame)))
    }

    /// Reports whether the times of the waiting frames jump back.
    fn will_jump_back(&self) -> bool {
        let mut last = self.last;
        self.waiting.iter().any(|frame| match succession(last, time(frame)) {
            Succession::InOrder => {
                last = Some(time(frame));
                false
            }
            relation => relation == Succession::JumpsBack,
        })
    }

    fn take_first(&mut self) -> Option<EyeFrame> {
        let frame = self.waiting.pop_front()?;
        if let Some(step) = self.last.zip(frame.timestamp).and_then(|(a, b)| b.checked_sub(a)) {
            self.steps.truncate(RECENT - 1);
            self.steps.push_front(step);
        }
        self.last = self.last.max(frame.timestamp);
        Some(frame)
    }

    fn drop_first(&mut self) {
        self.unpaired += u64::from(self.take_first().is_some());
    }

    /// Reports whether enough frames wait to learn from.
    fn is_known(&self) -> bool {
        self.finished || self.waiting.len() >= LOOKAHEAD
    }

    fn times(&self) -> impl Iterator<Item = Duration> {
        self.waiting.iter().take(LOOKAHEAD).filter_map(|frame| frame.timestamp)
    }

    /// Reports whether the view's times exist and rise. `None`: not known yet.
    fn has_times(&self) -> Option<bool> {
        let grow = self.times().zip(self.times().skip(1)).any(|(a, b)| b > a);
        if grow {
            return Some(true);
        }
        // A single frame cannot rise.
        self.is_known()
            .then(|| self.waiting.len() < 2 && self.times().count() == self.waiting.len())
    }

    /// Returns the median period of the last frames; `None` if they are too few.
    fn recent_period(&self) -> Option<Duration> {
        let mut steps: Vec<_> = self.steps.iter().copied().collect();
        steps.sort_unstable();
        (steps.len() == RECENT).then(|| steps[RECENT / 2])
    }

    /// Returns the median period of the first frames; `None` if no two times differ.
    fn period(&self) -> Option<Duration> {
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
fn time(frame: &EyeFrame) -> Duration {
    frame.timestamp.unwrap_or_default()
}

fn ns(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// Returns the right frame's time less the left one's.
fn skew_ns(left: &EyeFrame, right: &EyeFrame) -> i64 {
    ns(time(right)).saturating_sub(ns(time(left)))
}

/// Reports whether a recorded frame's time jumps away from its neighbours, if these are in order without it.
/// Such a time is wrong.
pub fn is_astray(before: Option<Duration>, own: Duration, next: Duration) -> bool {
    before.is_none_or(|before| before < next)
        && (own > next + JUMP || before.is_some_and(|before| own + JUMP < before))
}

/// Returns how `time` succeeds `last`.
fn succession(last: Option<Duration>, time: Duration) -> Succession {
    match last {
        Some(last) if time + JUMP < last => Succession::JumpsBack,
        Some(last) if time <= last => Succession::OutOfOrder,
        _ => Succession::InOrder,
    }
}

fn opposite(eye: Eye) -> Eye {
    match eye {
        Eye::Left => Eye::Right,
        Eye::Right => Eye::Left,
    }
}

#[cfg(test)]
mod tests;
