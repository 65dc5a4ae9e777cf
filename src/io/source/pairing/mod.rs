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
pub mod rates;
pub mod sender_clocks;
mod side;
pub mod skew;
pub mod synchronisation;
pub mod unordered;

use std::time::Duration;

use phase::Phase;
use side::{Side, Succession, succession, time};
use stereod_core::frame::{Eye, EyeFrame, StereoPair};

/// Largest number of frames of a view that wait for a partner; beyond that the oldest goes
/// unpaired. Only a live source reaches it, because its views cannot be read in turn.
pub const MAX_WAITING: usize = 64;

/// Times that go back by more than this have jumped; by less, the frames are out of order.
const JUMP: Duration = Duration::from_secs(1);

/// Largest number of waiting frames for finding a jump after the other view has jumped.
const JUMP_REACH: usize = MAX_WAITING / 2;

/// Largest ratio of two periods of one rate, in percent. Jitter distorts periods of few frames.
const ONE_RATE: u32 = 115;

/// Frame period if no other is known.
pub const UNKNOWN_PERIOD: Duration = Duration::from_nanos(1_000_000_000 / 30);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairBy {
    /// Capture times if both views have them, else frame numbers.
    #[default]
    Auto,
    /// Capture times; a frame without one has no partner.
    Time,
    Index,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Pairing {
    pub by: PairBy,
    /// Largest difference of the capture times of a pair. `None`: the nearest frame is the partner,
    /// which lies within half the shorter frame period.
    pub tolerance: Option<Duration>,
    /// Frame period of the left view; `None`: measured from the first frames.
    pub left_period: Option<Duration>,
    pub right_period: Option<Duration>,
    /// True if the periods may grow: cameras slow down in the dark.
    pub is_live: bool,
    /// True if times are those of arrival, so that the time between the frames of a pair is not known.
    pub by_arrival: bool,
}

impl Pairing {
    fn periods(&self) -> [Option<Duration>; 2] {
        [self.left_period, self.right_period]
    }

    fn period(&self) -> Duration {
        self.left_period.or(self.right_period).unwrap_or(UNKNOWN_PERIOD)
    }
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

impl Rule {
    fn by_time(
        periods: impl Iterator<Item = Duration> + Clone,
        tolerance: Option<Duration>,
    ) -> Self {
        let shorter = periods.clone().min().unwrap_or(UNKNOWN_PERIOD);
        let longer = periods.max().unwrap_or(UNKNOWN_PERIOD);
        let is_one = longer * 100 <= shorter * ONE_RATE;
        Self::Time {
            // A partner midway between two frames is one, however its container rounded its time.
            tolerance: tolerance.unwrap_or(shorter * 9 / 16),
            sure: shorter * 15 / 32,
            period: (is_one && tolerance.is_none()).then_some(shorter),
        }
    }
}

enum Step {
    Pair,
    Drop(Eye),
    Restart,
    Wait(Eye),
    Done,
}

/// Joins the frames of two views into pairs, in order, each frame at most once.
#[derive(Debug, Default)]
pub struct Pairer {
    pairing: Pairing,
    rule: Option<Rule>,
    sides: [Side; 2],
    pairs: u64,
    /// Number of the next pair in the whole source.
    sequence: u64,
    restarts: u64,
    /// Nanoseconds added to the times of pairs, so that they rise across a restart.
    added_ns: i64,
    last_pair: Option<Duration>,
    /// Usual difference of views of one rate; `None` before their first pair.
    phase: Option<Phase>,
}

impl Pairer {
    pub fn new(pairing: Pairing) -> Self {
        Self { pairing, ..Self::default() }
    }

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

    /// Marks `eye` as lost for now: waiting frames of the other one have no partner. Pop all pairs first.
    pub fn abandon(&mut self, eye: Eye) {
        let waiting = self.side_mut(opposite(eye));
        while !waiting.waiting.is_empty() {
            waiting.drop_first();
        }
        // A camera that is back has another phase.
        self.phase = None;
    }

    /// Marks a change of the clock of both views' times: waiting frames have no partner. A frame that is not
    /// later than the last one by the old clock has none either, so that times of pairs rise.
    pub fn change_clock(&mut self) {
        Eye::BOTH.into_iter().for_each(|eye| self.abandon(eye));
    }

    pub fn finish(&mut self, eye: Eye) {
        self.side_mut(eye).finished = true;
    }

    /// Restarts at another place of a recording, with the rule that was chosen. Counts go on; the next
    /// pair has the number `sequence`.
    pub fn move_to(&mut self, sequence: u64) {
        self.sides.iter_mut().for_each(Side::restart);
        (self.sequence, self.added_ns, self.last_pair) = (sequence, 0, None);
    }

    /// Notes a pair of equal times that was found elsewhere.
    fn note_equal(&mut self) {
        self.note_skew(0, self.pairing.period());
    }

    fn note_skew(&mut self, skew_ns: i64, period: Duration) {
        match &mut self.phase {
            Some(phase) => phase.note(skew_ns, ns(period)),
            None => self.phase = Some(Phase::new(skew_ns, ns(period))),
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

    fn match_next(&mut self) -> Option<[EyeFrame; 2]> {
        self.decide_rule();
        self.correct_rule();
        loop {
            match self.step() {
                Step::Pair => break,
                Step::Drop(eye) => self.side_mut(eye).drop_first(),
                Step::Restart => {
                    self.sides.iter_mut().for_each(|side| side.last = None);
                    self.phase = None;
                    self.restarts += 1;
                }
                Step::Wait(_) | Step::Done => return None,
            }
        }
        let (left, right) = (self.sides[0].take_first()?, self.sides[1].take_first()?);
        if let Some(Rule::Time { period: Some(period), .. }) = self.rule {
            self.note_skew(skew_ns(&left, &right), self.present(period));
        }
        Some([left, right])
    }

    /// Returns the view whose next frame or end is needed after [`Pairer::pop`] returned `None`;
    /// `None` if both have ended. A source that reads only that view keeps few frames waiting.
    pub fn needed_eye(&self) -> Option<Eye> {
        match self.step() {
            Step::Wait(eye) => Some(eye),
            // The rest of the other view is only counted.
            Step::Done => Eye::BOTH.into_iter().find(|eye| !self.side(*eye).finished),
            Step::Pair | Step::Drop(_) | Step::Restart => Some(Eye::Left),
        }
    }

    /// Reports whether no further frame of `eye` can find a partner: the other view has ended and
    /// none of its frames wait.
    pub fn is_hopeless(&self, eye: Eye) -> bool {
        let other = self.side(opposite(eye));
        other.finished && other.waiting.is_empty()
    }

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
        &self.sides[eye.index()]
    }

    fn side_mut(&mut self, eye: Eye) -> &mut Side {
        &mut self.sides[eye.index()]
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
        let periods = Eye::BOTH.into_iter().zip(self.pairing.periods());
        let mut unknown = periods.filter(|(eye, own)| own.is_none() && !self.side(*eye).is_known());
        unknown.next().map(|(eye, _)| eye)
    }

    fn by_time(&self) -> bool {
        match self.pairing.by {
            PairBy::Auto => self.sides.iter().all(|side| side.has_times() == Some(true)),
            PairBy::Time => true,
            PairBy::Index => false,
        }
    }

    fn decide_rule(&mut self) {
        if self.rule.is_some() || self.undecided().is_some() {
            return;
        }
        let rule = if self.by_time() {
            let stated = self.pairing.periods().into_iter().zip(&self.sides);
            Rule::by_time(
                stated.filter_map(|(stated, side)| stated.or_else(|| side.period())),
                self.pairing.tolerance,
            )
        } else {
            let left_times = self.sides[0].has_times() == Some(true);
            Rule::Index { left_times, period: self.pairing.period() }
        };
        self.rule = Some(rule);
        for side in &mut self.sides {
            for frame in std::mem::take(&mut side.waiting) {
                if side.admit(Some(rule), &frame) {
                    side.waiting.push_back(frame);
                }
            }
        }
    }

    /// Measures the periods of live views again if the first frames came in a burst, as those of a network do that
    /// wait while the program is busy.
    fn correct_rule(&mut self) {
        let recent = self.sides.each_ref().map(Side::recent_period);
        if let (true, Some(Rule::Time { sure, period: None, .. }), [Some(left), Some(right)]) =
            (self.pairing.is_live, self.rule, recent)
            && left.min(right) * 15 / 32 * 100 > sure * ONE_RATE
        {
            self.rule = Some(Rule::by_time([left, right].into_iter(), self.pairing.tolerance));
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
        let finished = self.sides.each_ref().map(|side| side.finished);
        let (left, right) = match self.sides.each_ref().map(|side| side.waiting.front()) {
            [Some(left), Some(right)] => (left, right),
            [None, None] if finished != [false; 2] => return Step::Done,
            [None, Some(_)] if finished[0] => return Step::Drop(Eye::Right),
            [Some(_), None] if finished[1] => return Step::Drop(Eye::Left),
            [None, _] => return Step::Wait(Eye::Left),
            [_, None] => return Step::Wait(Eye::Right),
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
        let successions = self.sides.each_ref().map(Side::first_succession);
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
        let [left, right] = self.sides.each_ref().map(Side::recent_period);
        left.zip(right).map_or(period, |(left, right)| period.max(left.min(right)))
    }

    fn join(&mut self, left: EyeFrame, right: EyeFrame) -> StereoPair {
        let sequence = self.sequence;
        if self.pairs == 0 {
            for side in &mut self.sides {
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
            prior: None,
        }
    }

    /// Shifts the time of a pair so that times rise across a jump back.
    fn continue_times(&mut self, time: Duration) -> Duration {
        let added =
            |ns: i64| Duration::from_nanos((time.as_nanos() as i64).saturating_add(ns) as u64);
        if let Some(last) = self.last_pair
            && added(self.added_ns) + JUMP < last
        {
            let period = self.pairing.period();
            self.added_ns =
                ((last + period).as_nanos() as i64).saturating_sub(time.as_nanos() as i64);
        }
        let time = added(self.added_ns);
        self.last_pair = Some(time);
        time
    }
}

fn ns(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

fn skew_ns(left: &EyeFrame, right: &EyeFrame) -> i64 {
    ns(time(right)).saturating_sub(ns(time(left)))
}

/// Reports whether a recorded frame's time jumps away from its neighbours, if these are in order without it.
/// Such a time is wrong.
pub fn is_astray(before: Option<Duration>, own: Duration, next: Duration) -> bool {
    before.is_none_or(|before| before < next)
        && (own > next + JUMP || before.is_some_and(|before| own + JUMP < before))
}

fn opposite(eye: Eye) -> Eye {
    match eye {
        Eye::Left => Eye::Right,
        Eye::Right => Eye::Left,
    }
}

#[cfg(test)]
mod tests;
