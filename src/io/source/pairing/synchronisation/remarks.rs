//! Warnings about cameras that do not run in step.

use std::time::Duration;

use super::cadence::Fit;
use stereod_core::frame::Eye;

/// Length of a window in seconds.
const WINDOW: f64 = 5.0;

const FEWEST: u64 = 10;

/// Share of a period above which the median difference counts as late.
const LATE: f64 = 0.25;

/// Relative difference above which rates differ.
const OTHER_RATE: f64 = 0.1;

/// Ratio of the numbers of frames above which rates differ, however uneven they are.
const OTHER_NUMBER: f64 = 1.5;

/// Good windows in a row (ten minutes) after which warnings may repeat. Free-running cameras drift
/// in and out of step, which is reported once.
const FORGET: u32 = 120;

/// Drift in seconds a second below which it is within the error of the estimate.
const NO_DRIFT: f64 = 20e-6;

/// Largest relative difference of equal rates, for which a phase is defined.
const SAME_RATE: f64 = 0.02;

/// Remark for the user, made once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    Warning(String),
    Well(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Rates,
    Unpairable,
    Late,
}

/// Statistics of the current window, and the remarks so far.
#[derive(Debug, Default)]
pub(super) struct RemarkState {
    begun: Option<f64>,
    now: f64,
    frames: [u64; 2],
    pairs: u64,
    differences: Vec<i64>,
    told: Vec<State>,
    good: u32,
    trouble: Option<String>,
}

impl RemarkState {
    pub(super) fn note_frame(&mut self, eye: Eye, time: Duration) {
        self.now = time.as_secs_f64();
        self.begun.get_or_insert(self.now);
        self.frames[eye.index()] += 1;
    }

    pub(super) fn note_pair(&mut self, skew_ns: Option<i64>) {
        self.pairs += 1;
        self.differences.extend(skew_ns);
    }

    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }

    pub(super) fn is_due(&self) -> bool {
        self.begun.is_some_and(|begun| self.now - begun >= WINDOW)
    }

    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Evaluates the window and starts the next. Returns a remark that was not made yet.
    pub(super) fn remark(
        &mut self,
        [left, right]: [&Fit; 2],
        tolerance: Duration,
        by_arrival: bool,
    ) -> Option<Remark> {
        let seconds = self.now - self.begun.take()?;
        self.trouble = None;
        let (frames, pairs) = (std::mem::take(&mut self.frames), std::mem::take(&mut self.pairs));
        let mut differences = std::mem::take(&mut self.differences);
        if frames.iter().any(|&frames| frames < FEWEST) {
            return None;
        }
        differences.sort_unstable_by_key(|difference| difference.unsigned_abs());
        let typical = differences.get(differences.len() / 2).map(|ns| *ns as f64 * 1e-9);
        let seen = Seen { left, right, frames, seconds, pairs, typical, tolerance, by_arrival };
        let Some(state) = seen.state() else {
            self.good += 1;
            let forget = self.good >= FORGET && !self.told.is_empty();
            return forget.then(|| {
                self.told.clear();
                Remark::Well("the cameras have kept step for ten minutes".to_owned())
            });
        };
        self.good = 0;
        self.trouble = Some(seen.in_short(state));
        if self.told.contains(&state) {
            return None;
        }
        self.told.push(state);
        Some(Remark::Warning(seen.warning(state)))
    }
}

struct Seen<'a> {
    left: &'a Fit,
    right: &'a Fit,
    /// Frames of each view, and the seconds in which they came.
    frames: [u64; 2],
    seconds: f64,
    pairs: u64,
    /// Median difference of the pairs' times in seconds, if there are pairs.
    typical: Option<f64>,
    tolerance: Duration,
    by_arrival: bool,
}

impl Seen<'_> {
    fn state(&self) -> Option<State> {
        let Self { left, right, frames, .. } = self;
        let other_rate = match self.are_steady() {
            true => (left.period / right.period).ln().abs() > OTHER_RATE.ln_1p(),
            false => frames[0].max(frames[1]) as f64 > OTHER_NUMBER * self.fewest() as f64,
        };
        if other_rate {
            Some(State::Rates)
        } else if self.pairs * 2 < self.fewest() {
            Some(State::Unpairable)
        } else if self.typical.is_some_and(|typical| typical.abs() > LATE * self.period()) {
            Some(State::Late)
        } else {
            None
        }
    }

    fn are_steady(&self) -> bool {
        self.left.is_steady() && self.right.is_steady()
    }

    /// Returns the number of frames of the view with fewer of them.
    fn fewest(&self) -> u64 {
        self.frames[0].min(self.frames[1])
    }

    /// Returns the frames a second of both views.
    fn rates(&self) -> [f64; 2] {
        match self.are_steady() {
            true => [self.left.period.recip(), self.right.period.recip()],
            false => self.frames.map(|frames| frames as f64 / self.seconds),
        }
    }

    /// Returns the frame period of the slower view in seconds.
    fn period(&self) -> f64 {
        self.left.period.max(self.right.period)
    }

    fn in_short(&self, state: State) -> String {
        match state {
            State::Rates => "the cameras run at different rates".to_owned(),
            State::Unpairable => {
                "few frames find a partner: the cameras do not keep step".to_owned()
            }
            State::Late => {
                let apart = self.typical.unwrap_or_default().abs() * 1e3;
                format!("the views of a pair are {apart:.1} ms apart")
            }
        }
    }

    fn warning(&self, state: State) -> String {
        let Self { left, right, pairs, typical, .. } = self;
        let (frames, [left_rate, right_rate]) = (self.fewest(), self.rates());
        let ms = |seconds: f64| seconds * 1e3;
        let tolerance = ms(self.tolerance.as_secs_f64());
        match state {
            State::Rates => format!(
                "the left camera sends {left_rate:.1} frames a second and the right one {right_rate:.1}: give both \
                 the same rate (and the same exposure limit: some cameras slow down in the dark)"
            ),
            State::Unpairable if self.by_arrival => format!(
                "only {pairs} of {frames} frames found a partner by their arrival: they come in bursts, so arrival \
                 does not tell which belong together; `--set source.pair_by=index` pairs them by number, if \
                 neither view loses frames"
            ),
            State::Unpairable => format!(
                "only {pairs} of {frames} frames found a partner within {tolerance:.1} ms: the cameras \
                 run {}{}. A hardware trigger helps, or starting one of them anew{}",
                apart(left, right),
                wander(left, right),
                match (ms(self.period()) * 0.6).ceil() {
                    enough if enough > tolerance => format!(
                        "; `--tolerance {enough:.0}` pairs them as they are, which is well only where \
                         nothing moves"
                    ),
                    _ => String::new(),
                }
            ),
            State::Late => format!(
                "the views of a pair are typically {:.1} ms apart, the {} view later, {:.0} % of a \
                 frame{}: what moves gets wrong disparities. A hardware trigger helps, or starting \
                 one of the cameras anew; a smaller `--tolerance` drops such pairs",
                ms(typical.unwrap_or_default().abs()),
                if *typical > Some(0.0) { "right" } else { "left" },
                typical.unwrap_or_default().abs() / self.period() * 100.0,
                wander(left, right),
            ),
        }
    }
}

fn apart(left: &Fit, right: &Fit) -> String {
    phase(left, right).map_or_else(
        || "unevenly, or at different rates".to_owned(),
        |(phase, _)| {
            format!("{:.1} ms apart, {:.0} % of a frame", phase.abs() * 1e3, {
                phase.abs() / left.period * 100.0
            })
        },
    )
}

/// Describes a drift of the difference; empty if there is none.
fn wander(left: &Fit, right: &Fit) -> String {
    match phase(left, right) {
        Some((_, drift)) if drift.abs() > NO_DRIFT => format!(
            ", and their clocks differ by {:.0} ppm, so that this comes and goes every {:.0} s",
            drift.abs() * 1e6,
            left.period / drift.abs()
        ),
        _ => String::new(),
    }
}

/// Returns the delay of the right camera after the left one, within half a period, and its drift in
/// seconds a second; `None` for different rates or an uneven beat.
pub(super) fn phase(left: &Fit, right: &Fit) -> Option<(f64, f64)> {
    let period = (left.period + right.period) / 2.0;
    let drift = right.period / left.period - 1.0;
    if drift.abs() > SAME_RATE || !left.is_steady() || !right.is_steady() {
        return None;
    }
    // The left camera's tick that is nearest to the right one's last.
    let ticks = ((right.last - left.last) / left.period).round();
    let phase = right.last - (left.last + ticks * left.period);
    Some((phase - (phase / period).round() * period, drift))
}
