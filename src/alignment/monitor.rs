//! The alignment over time: smoothed, and told when it changes.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::{Limits, Measurement, Verdict};

/// The median of this many measurements goes on, so that a single wrong one is never seen.
const MEDIAN_OF: usize = 5;

/// Time constant of the average of these medians.
const SMOOTHING: Duration = Duration::from_secs(1);

/// A verdict holds once this many measurements in a row have led to it.
const PERSISTENT: u32 = 3;

/// So long after the last measurement nothing is known any more.
const FORGOTTEN: Duration = Duration::from_secs(10);

/// A row error this many times as large as that of the last warning is worth another one.
const GROWN: f64 = 2.0;

/// Follows the alignment of a pair of cameras.
#[derive(Clone, Debug)]
pub struct Monitor {
    limits: Limits,
    recent: VecDeque<Measurement>,
    smoothed: Option<Measurement>,
    /// When the last measurement that saw anything was made.
    seen: Option<Duration>,
    state: State,
    /// What the last measurements led to, and how many of them did in a row.
    pending: (Verdict, u32),
    /// The last verdict that was told other than [`Verdict::Unsure`], and its row error.
    told: Option<(Verdict, f64)>,
}

/// How things stand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// What is to be thought of it.
    pub verdict: Verdict,
    /// The smoothed measurement; `None` before the first one.
    pub measurement: Option<Measurement>,
    /// Measurements so far that saw anything.
    pub measured: u64,
    /// Row error when the first verdict was reached, in pixels.
    pub at_start_px: Option<f64>,
    /// Largest smoothed row error so far, in pixels.
    pub largest_px: f64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            verdict: Verdict::Unsure,
            measurement: None,
            measured: 0,
            at_start_px: None,
            largest_px: 0.0,
        }
    }
}

/// How the eyes were aligned, for programs and people to read after a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// What is to be thought of it.
    pub verdict: Verdict,
    /// Measurements that saw anything.
    pub measurements: u64,
    /// As in [`Measurement`], smoothed, at the end; `None` where nothing was seen.
    pub row_error_px: Option<f64>,
    /// Largest smoothed `row_error_px`.
    pub largest_row_error_px: Option<f64>,
    /// See [`Measurement`].
    pub shift_px: Option<f64>,
    /// See [`Measurement`].
    pub roll_deg: Option<f64>,
    /// See [`Measurement`].
    pub scale: Option<f64>,
    /// See [`Measurement`].
    pub curvature_px: Option<f64>,
    /// See [`Measurement`].
    pub spread_px: Option<f64>,
    /// See [`Measurement`].
    pub median_disparity_px: Option<f64>,
}

impl State {
    /// For the account of a run.
    pub fn summary(&self) -> Summary {
        let of = |digits: i32, figure: fn(&Measurement) -> f64| {
            let unit = 10f64.powi(digits);
            self.measurement.as_ref().map(|seen| (figure(seen) * unit).round() / unit)
        };
        Summary {
            verdict: self.verdict,
            measurements: self.measured,
            row_error_px: of(3, |seen| seen.row_error_px),
            largest_row_error_px: self.measurement.map(|_| (self.largest_px * 1e3).round() / 1e3),
            shift_px: of(3, |seen| seen.shift_px),
            roll_deg: of(4, |seen| seen.roll_deg),
            scale: of(5, |seen| seen.scale),
            curvature_px: of(3, |seen| seen.curvature_px),
            spread_px: of(3, |seen| seen.spread_px),
            median_disparity_px: of(2, |seen| seen.disparity_px),
        }
    }

    /// One short line, and whether it is an alarm; `None` before the first measurement.
    pub fn line(&self) -> Option<(String, bool)> {
        let seen = self.measurement?;
        let mut line = format!("rows {:.1} px  roll {:.2} deg", seen.row_error_px, seen.roll_deg);
        if self.verdict != Verdict::Good {
            line += &format!("  {}", self.verdict);
        }
        Some((line, self.verdict.is_alarm()))
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verdict)?;
        if let (Some(error), Some(roll), Some(scale)) =
            (self.row_error_px, self.roll_deg, self.scale)
        {
            write!(f, ", rows differ by {error:.2} px (roll {roll:.2} deg, scale {scale:.4})")?;
        }
        Ok(())
    }
}

/// The verdict has changed, or what it warned of has become much worse.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The verdict now.
    pub verdict: Verdict,
    /// What to tell a person.
    pub message: String,
}

impl Monitor {
    /// A monitor that has seen nothing yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            recent: VecDeque::with_capacity(MEDIAN_OF),
            smoothed: None,
            seen: None,
            state: State::default(),
            pending: (Verdict::Unsure, 0),
            told: None,
        }
    }

    /// Judges by these limits from now on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// How things stand.
    pub fn state(&self) -> State {
        self.state
    }

    /// Takes the measurement of a pair captured at `at`; `None` where the pair held too little.
    /// Returns what is to be told, if anything.
    pub fn feed(&mut self, at: Duration, measurement: Option<Measurement>) -> Option<Event> {
        match measurement {
            Some(measurement) => self.smooth(at, measurement),
            None => {
                let forgotten = |seen: Duration| at.saturating_sub(seen) > FORGOTTEN;
                if self.seen.is_some_and(forgotten) {
                    self.recent.clear();
                    self.smoothed = None;
                } else if self.seen.is_some() {
                    // A few pictures without texture say nothing against the others.
                    return None;
                }
            }
        }
        let mut verdict = self.limits.judge(self.smoothed.as_ref(), self.state.verdict);
        let was_good = |error: f64| error <= self.limits.warn_px;
        if verdict == Verdict::NotRectified && self.state.at_start_px.is_some_and(was_good) {
            // They were rectified when the run began, so the rig has moved, however far.
            verdict = Verdict::RowsOff;
        }
        let count = if self.pending.0 == verdict { self.pending.1 + 1 } else { 1 };
        self.pending = (verdict, count);
        if count < PERSISTENT { None } else { self.conclude() }
    }

    /// Comes to a verdict with what there is, at the end of a run that was too short for one.
    pub fn finish(&mut self) -> Option<Event> {
        if self.told.is_some() { None } else { self.conclude() }
    }

    fn smooth(&mut self, at: Duration, measurement: Measurement) {
        if self.recent.len() == MEDIAN_OF {
            self.recent.pop_front();
        }
        self.recent.push_back(measurement);
        let middle = median(&self.recent);
        // A stream that begins anew (a looping file) is no reason to stand still.
        let passed = self.seen.map_or(Duration::MAX, |seen| at.abs_diff(seen));
        let share = 1.0 - (-passed.as_secs_f64() / SMOOTHING.as_secs_f64()).exp();
        let smoothed = match self.smoothed {
            Some(before) => {
                combine(&[before, middle], |[before, now]| before + share * (now - before))
            }
            None => middle,
        };
        self.smoothed = Some(smoothed);
        self.seen = Some(at);
        self.state.measurement = Some(smoothed);
        self.state.measured += 1;
        self.state.largest_px = self.state.largest_px.max(smoothed.row_error_px);
    }

    fn conclude(&mut self) -> Option<Event> {
        let verdict = self.pending.0;
        if self.pending.1 == 0 {
            return None;
        }
        let first = std::mem::replace(&mut self.state.verdict, verdict) != verdict
            || self.pending.1 == PERSISTENT && self.told.is_none();
        let error = self.smoothed.map_or(0.0, |smoothed| smoothed.row_error_px);
        if verdict == Verdict::Unsure {
            let message = self.limits.describe(verdict, None);
            return first.then_some(Event { verdict, message });
        }
        self.state.at_start_px.get_or_insert(error);
        let again = match self.told {
            // Back from nothing to see: what was told still holds.
            Some((told, at)) if told == verdict => {
                verdict == Verdict::RowsOff && error > GROWN * at
            }
            _ => true,
        };
        if !again {
            return None;
        }
        let recovered = self.told.is_some() && verdict == Verdict::Good;
        self.told = Some((verdict, error));
        let mut message = self.limits.describe(verdict, self.smoothed.as_ref());
        let start = self.state.at_start_px.unwrap_or(error);
        if recovered {
            message = message.replacen("agree within", "agree again, within", 1);
        } else if verdict.is_alarm() && verdict != Verdict::Swapped && error > start + 0.5 {
            message += &format!(" (at the start of this run they differed by {start:.1} px)");
        }
        Some(Event { verdict, message })
    }
}

/// The figures of several measurements made into one, each kind by itself.
fn combine<const N: usize>(all: &[Measurement; N], into: impl Fn([f64; N]) -> f64) -> Measurement {
    let of = |figure: fn(&Measurement) -> f64| into(all.each_ref().map(figure));
    Measurement {
        width: all[N - 1].width,
        matches: of(|m| m.matches as f64).round() as usize,
        consistent: of(|m| m.consistent as f64).round() as usize,
        row_error_px: of(|m| m.row_error_px),
        uncertainty_px: of(|m| m.uncertainty_px),
        shift_px: of(|m| m.shift_px),
        roll_deg: of(|m| m.roll_deg),
        scale: of(|m| m.scale),
        curvature_px: of(|m| m.curvature_px),
        curvature_uncertainty_px: of(|m| m.curvature_uncertainty_px),
        median_px: of(|m| m.median_px),
        spread_px: of(|m| m.spread_px),
        disparity_px: of(|m| m.disparity_px),
        below_range: of(|m| m.below_range),
    }
}

fn median(recent: &VecDeque<Measurement>) -> Measurement {
    // As many as a median takes, the oldest ones standing in where there are fewer yet.
    let filled: [Measurement; MEDIAN_OF] = std::array::from_fn(|i| recent[i % recent.len()]);
    combine(&filled, |mut values| {
        values.sort_unstable_by(f64::total_cmp);
        values[MEDIAN_OF / 2]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(row_error_px: f64) -> Measurement {
        Measurement {
            width: 752,
            matches: 200,
            consistent: 190,
            row_error_px,
            uncertainty_px: 0.03,
            shift_px: row_error_px,
            roll_deg: 0.0,
            scale: 1.0,
            curvature_px: 0.1,
            curvature_uncertainty_px: 0.05,
            median_px: row_error_px,
            spread_px: 0.2,
            disparity_px: 20.0,
            below_range: 0.0,
        }
    }

    /// A monitor that is fed four times a second.
    struct Fed {
        monitor: Monitor,
        quarters: u32,
    }

    impl Fed {
        fn new() -> Self {
            Self { monitor: Monitor::new(Limits::default()), quarters: 0 }
        }

        fn feed(&mut self, count: u32, measurement: Option<Measurement>) -> Vec<Event> {
            let feed = |_| {
                self.quarters += 1;
                self.monitor.feed(Duration::from_millis(250) * self.quarters, measurement)
            };
            (0..count).filter_map(feed).collect()
        }

        fn error(&self) -> f64 {
            self.monitor.state().measurement.unwrap().row_error_px
        }
    }

    fn verdicts(events: &[Event]) -> Vec<Verdict> {
        events.iter().map(|event| event.verdict).collect()
    }

    #[test]
    fn a_bump_is_told_once_and_so_is_its_end() {
        let mut fed = Fed::new();
        assert_eq!(verdicts(&fed.feed(40, Some(measured(0.2)))), [Verdict::Good]);
        let events = fed.feed(40, Some(measured(3.2)));
        assert_eq!(verdicts(&events), [Verdict::RowsOff], "{events:?}");
        assert!(events[0].message.contains("at the start of this run they differed by 0.2 px"));
        assert!((fed.error() - 3.2).abs() < 0.01, "{}", fed.error());
        let events = fed.feed(40, Some(measured(0.3)));
        assert_eq!(verdicts(&events), [Verdict::Good], "{events:?}");
        assert!(events[0].message.contains("agree again"), "{events:?}");
        let state = fed.monitor.state();
        assert!((state.largest_px - 3.2).abs() < 0.01, "{state:?}");
        assert_eq!((state.measured, state.at_start_px), (120, Some(0.2)));
        assert_eq!(fed.monitor.finish(), None);
    }

    #[test]
    fn a_bump_is_told_within_two_seconds() {
        let mut fed = Fed::new();
        fed.feed(20, Some(measured(0.2)));
        assert_eq!(verdicts(&fed.feed(8, Some(measured(4.0)))), [Verdict::RowsOff]);
    }

    #[test]
    fn single_wrong_measurements_are_never_seen() {
        let mut fed = Fed::new();
        fed.feed(10, Some(measured(0.2)));
        for _ in 0..10 {
            assert_eq!(fed.feed(2, Some(measured(9.0))), []);
            assert_eq!(fed.feed(3, Some(measured(0.2))), []);
            assert!(fed.error() < 0.21);
        }
    }

    #[test]
    fn growing_is_told_again_but_staying_is_not() {
        let mut fed = Fed::new();
        assert_eq!(verdicts(&fed.feed(20, Some(measured(1.8)))), [Verdict::RowsOff]);
        assert_eq!(fed.feed(200, Some(measured(2.2))), []);
        assert_eq!(verdicts(&fed.feed(20, Some(measured(4.5)))), [Verdict::RowsOff]);
        assert_eq!(fed.feed(200, Some(measured(4.6))), []);
    }

    #[test]
    fn what_was_rectified_has_been_bumped_however_far() {
        let mut fed = Fed::new();
        fed.feed(10, Some(measured(0.2)));
        let events = fed.feed(40, Some(measured(15.0)));
        assert!(events.iter().all(|event| event.verdict == Verdict::RowsOff), "{events:?}");
        assert_eq!(fed.monitor.state().verdict, Verdict::RowsOff);
        let mut fed = Fed::new();
        assert_eq!(verdicts(&fed.feed(40, Some(measured(15.0)))), [Verdict::NotRectified]);
    }

    #[test]
    fn nothing_to_see_is_no_alarm_and_ends_none() {
        let mut fed = Fed::new();
        assert_eq!(verdicts(&fed.feed(100, None)), [Verdict::Unsure]);
        assert_eq!(fed.monitor.state().line(), None);
        assert_eq!(verdicts(&fed.feed(10, Some(measured(3.0)))), [Verdict::RowsOff]);
        // A short while says nothing; a long one ends what was known, but the warning holds.
        assert_eq!(fed.feed(30, None), []);
        assert_eq!(fed.monitor.state().verdict, Verdict::RowsOff);
        assert_eq!(verdicts(&fed.feed(30, None)), [Verdict::Unsure]);
        assert_eq!(fed.monitor.state().verdict, Verdict::Unsure);
        assert_eq!(fed.feed(20, Some(measured(3.0))), []);
        assert_eq!(fed.monitor.state().verdict, Verdict::RowsOff);
        assert_eq!(verdicts(&fed.feed(20, Some(measured(0.2)))), [Verdict::Good]);
    }

    #[test]
    fn short_runs_come_to_a_verdict_at_their_end() {
        let mut monitor = Monitor::new(Limits::default());
        assert_eq!(monitor.finish(), None);
        assert_eq!(monitor.feed(Duration::ZERO, Some(measured(3.0))), None);
        assert_eq!(monitor.state().verdict, Verdict::Unsure);
        assert_eq!(monitor.finish().unwrap().verdict, Verdict::RowsOff);
        assert_eq!(monitor.finish(), None);
        assert_eq!(monitor.state().summary().verdict, Verdict::RowsOff);
    }

    #[test]
    fn the_summary_is_rounded_and_empty_without_measurements() {
        let mut fed = Fed::new();
        let json = |monitor: &Monitor| serde_json::to_value(monitor.state().summary()).unwrap();
        let before = json(&fed.monitor);
        assert_eq!(before["verdict"], "unsure");
        assert!(before["row_error_px"].is_null() && before["scale"].is_null());
        fed.feed(5, Some(Measurement { roll_deg: 0.123_456, ..measured(0.123_456) }));
        let after = json(&fed.monitor);
        assert_eq!(after["verdict"], "good");
        assert_eq!(after["measurements"], 5);
        assert_eq!(after["row_error_px"], 0.123);
        assert_eq!(after["roll_deg"], 0.1235);
        let line = fed.monitor.state().line().unwrap();
        assert_eq!(line, ("rows 0.1 px  roll 0.12 deg".to_owned(), false));
    }
}
