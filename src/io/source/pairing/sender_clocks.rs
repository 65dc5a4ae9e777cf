//! Times of exposure by the clocks of network cameras.
//!
//! Such a camera states by a clock of its own (NTP, PTP) when it captured a frame. Frames are paired by these
//! times as soon as both views have them by clocks of one kind that agree, because times of arrival contain
//! the network delay of each view.
//!
//! A difference of the clocks looks like one of the delays. In a local network delays differ by a fraction of a frame,
//! so a larger difference is told and not followed: it would make pairs of different moments.
//!
//! Both views' times are moved to the host's clock by one line. It follows the view with the shorter delay,
//! because no frame arrives before its capture. [`SenderClocks`] is pure: it has no clock of its own.

use std::fmt;
use std::time::Duration;

use super::ns;
use stereod_core::frame::Eye;

/// Number of frames for one estimate of a view's delay.
const WINDOW: u32 = 16;

/// Largest difference of the views' delays at which their clocks may agree, in nanoseconds; half a frame if that is
/// shorter. Twice as much ends an agreement.
const NEAR: i64 = 250_000_000;

/// Distance from its arrival at which a frame's time is wrong.
const FAR: i64 = 2 * NEAR;

/// Time over which the line to the host's clock corrects an error, in nanoseconds, and its largest slope:
/// beyond the error of any quartz, and too little to change the time between two views.
const CORRECTION: f64 = 10e9;
const STEEPEST: f64 = 1e-3;

/// Kind of a sender's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    Ntp,
    Unix,
    /// PTP in this domain.
    Ptp(i32),
}

impl Clock {
    pub fn name(self) -> &'static str {
        match self {
            Clock::Ntp => "NTP",
            Clock::Unix => "Unix time",
            Clock::Ptp(_) => "PTP",
        }
    }
}

/// Time of exposure by a sender's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderTime {
    pub clock: Clock,
    /// Nanoseconds since the clock's epoch.
    pub ns: i64,
}

/// Change of the clock by which pairs are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The senders' clock from now on. Right frames take this many nanoseconds longer to arrive than left
    /// ones.
    BySender { clock: Clock, right_later: i64 },
    /// Arrival, because right frames seem to take this many nanoseconds longer to arrive, or the clocks differ by it.
    /// `offset` was added to the right times.
    Apart { clock: Clock, right_later: i64, period: i64, offset: i64 },
    /// Arrival, because the clocks are of different kinds.
    Unlike { left: Clock, right: Clock },
}

/// Text for the log.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Change::BySender { clock, right_later } => {
                let (late, other) =
                    if right_later < 0 { ("left", "right") } else { ("right", "left") };
                write!(
                    f,
                    "frames are paired by their time of capture by the cameras' {} clocks from now on; until now \
                     it was by arrival. The {late} view's take {:.1} ms longer to arrive than the {other} one's; \
                     if the network does not explain that, the clocks differ by it",
                    clock.name(),
                    right_later.unsigned_abs() as f64 * 1e-6
                )
            }
            Change::Apart { clock, right_later, period, offset } => {
                let by = right_later.unsigned_abs();
                write!(
                    f,
                    "the cameras' {} clocks differ by about {} ({:.1} frames): the right one is {}. So frames are \
                     paired by arrival, which includes each camera's network delay; give both cameras the same time \
                     server",
                    clock.name(),
                    in_words(by),
                    by as f64 / period.max(1) as f64,
                    if right_later < 0 { "ahead" } else { "behind" }
                )?;
                match by <= NEAR as u64 {
                    true => write!(
                        f,
                        ". If instead the network delays one view by that, give `--offset {:.1}`",
                        (offset - right_later) as f64 * 1e-6
                    ),
                    false => Ok(()),
                }
            }
            Change::Unlike { left, right } => write!(
                f,
                "the left camera tells its times by {} and the right one by {}, so frames are paired by arrival, \
                 which includes each camera's network delay; give both cameras one kind of time server",
                left.named(),
                right.named()
            ),
        }
    }
}

impl Clock {
    fn named(self) -> String {
        match self {
            Clock::Ptp(domain) => format!("PTP (domain {domain})"),
            Clock::Ntp | Clock::Unix => self.name().to_owned(),
        }
    }
}

/// Formats a time in a unit that fits: "66.7 ms", "2.9 s", "3.2 hours", "126.0 years".
fn in_words(ns: u64) -> String {
    let seconds = ns as f64 * 1e-9;
    if seconds < 1.0 {
        return format!("{:.1} ms", seconds * 1e3);
    }
    let units = [(31_557_600.0, "years"), (86_400.0, "days"), (3600.0, "hours")];
    let unit = units.into_iter().find(|(unit, _)| seconds >= 2.0 * unit);
    let (unit, name) = unit.unwrap_or((1.0, "s"));
    format!("{:.1} {name}", seconds / unit)
}

#[derive(Debug, Default)]
pub struct SenderClocks {
    views: [View; 2],
    /// Nanoseconds that were added to the right times of arrival, for a known delay.
    offset: i64,
    line: Option<Line>,
    /// True if a difference of the clocks has been told since they agreed.
    is_told: bool,
}

#[derive(Debug, Default)]
struct View {
    clock: Option<Clock>,
    /// Frames of this window, and their least lag.
    frames: u32,
    least: i64,
    /// Sender's time of the window's first frame, and the frame period of the last window.
    begin: i64,
    period: Option<i64>,
    /// Lag of the last window: time of arrival less the sender's time, in nanoseconds.
    lag: Option<i64>,
    /// Time from the capture of a frame, by the line, to its arrival.
    delay: i64,
}

/// Line from a sender's time to the host's.
#[derive(Clone, Copy, Debug)]
struct Line {
    clock: Clock,
    begin: i64,
    /// Host's time less sender's at `begin`, and its change in nanoseconds a nanosecond.
    lag: i64,
    slope: f64,
}

impl Line {
    fn lag_at(&self, sender: i64) -> i64 {
        self.lag.saturating_add((sender.saturating_sub(self.begin) as f64 * self.slope) as i64)
    }
}

impl SenderClocks {
    /// Creates clocks without times. `offset`: nanoseconds that are added to the right times of arrival.
    pub fn new(offset: i64) -> Self {
        Self { offset, ..Self::default() }
    }

    /// Returns the time of a frame to pair by, and a change of the clock that begins with it. `arrived` is
    /// its time by the host's clock.
    pub fn time(
        &mut self,
        eye: Eye,
        arrived: Duration,
        stated: Option<SenderTime>,
    ) -> (Duration, Option<Change>) {
        let arrived = ns(arrived);
        let change = stated.and_then(|stated| self.note(eye, arrived, stated));
        let Some(line) = self.line else {
            return (Duration::from_nanos(arrived as u64), change);
        };
        let by_sender = stated
            .filter(|stated| stated.clock == line.clock)
            .map(|stated| stated.ns.saturating_add(line.lag_at(stated.ns)))
            .filter(|time| time.abs_diff(arrived) < FAR as u64);
        // A camera that is back has no times by its clock until its first report.
        let time = by_sender.unwrap_or(arrived - self.views[eye.index()].delay);
        (Duration::from_nanos(time.max(0) as u64), change)
    }

    /// Forgets the clock of a view that is lost.
    pub fn note_lost(&mut self, eye: Eye) {
        let View { delay, .. } = self.views[eye.index()];
        self.views[eye.index()] = View { delay, ..View::default() };
    }

    /// Returns the clock by which pairs are made, and by how many nanoseconds right frames take longer to
    /// arrive than left ones; `None` if pairs are made by arrival.
    pub fn in_use(&self) -> Option<(Clock, i64)> {
        let [left, right] = self.views.each_ref().map(|view| view.delay);
        self.line.map(|line| (line.clock, right - left - self.offset))
    }

    fn note(&mut self, eye: Eye, arrived: i64, stated: SenderTime) -> Option<Change> {
        let view = &mut self.views[eye.index()];
        if view.clock != Some(stated.clock) {
            *view = View { clock: Some(stated.clock), delay: view.delay, ..View::default() };
        }
        let lag = arrived.saturating_sub(stated.ns);
        if view.frames == 0 {
            (view.least, view.begin) = (lag, stated.ns);
        }
        view.least = view.least.min(lag);
        view.frames += 1;
        if view.frames < WINDOW {
            return None;
        }
        view.period = Some(stated.ns.saturating_sub(view.begin) / i64::from(WINDOW - 1));
        (view.lag, view.frames) = (Some(view.least), 0);
        self.judge(stated.ns)
    }

    /// Chooses the clock after a window of frames that ended at the sender's time `now`.
    fn judge(&mut self, now: i64) -> Option<Change> {
        let [left_view, right_view] = &self.views;
        let known = left_view.clock.zip(left_view.lag).zip(right_view.clock.zip(right_view.lag));
        let Some(((clock, left), (other, right))) = known else {
            self.follow(now);
            return None;
        };
        let apart = right.saturating_sub(left);
        let period = left_view.period.min(right_view.period).unwrap_or_default();
        let near = NEAR.min(period / 2);
        let largest = if self.line.is_some() { 2 * near } else { near };
        let change = if clock != other {
            Change::Unlike { left: clock, right: other }
        } else if apart.saturating_abs() > largest {
            Change::Apart { clock, right_later: apart, period, offset: self.offset }
        } else {
            self.is_told = false;
            let is_new = self.line.is_none();
            let lag = left.min(right);
            self.line.get_or_insert(Line { clock, begin: now, lag, slope: 0.0 });
            self.follow(now);
            let right_later = apart.saturating_sub(self.offset);
            return is_new.then_some(Change::BySender { clock, right_later });
        };
        self.line = None;
        (!std::mem::replace(&mut self.is_told, true)).then_some(change)
    }

    /// Bends the line towards the shorter delay. While one view is lost, the other one's delay counts as
    /// constant.
    fn follow(&mut self, now: i64) {
        let Some(line) = &mut self.line else { return };
        let lag = match self.views.each_ref().map(|view| (view.lag, view.delay)) {
            [(Some(left), _), (Some(right), _)] => left.min(right),
            [(Some(lag), delay), _] | [_, (Some(lag), delay)] => lag.saturating_sub(delay),
            _ => return,
        };
        let at_now = line.lag_at(now);
        let slope = (lag.saturating_sub(at_now) as f64 / CORRECTION).clamp(-STEEPEST, STEEPEST);
        *line = Line { begin: now, lag: at_now, slope, ..*line };
        for view in &mut self.views {
            view.delay = view.lag.map_or(view.delay, |lag| lag.saturating_sub(at_now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const FRAME: i64 = 33_333_333;
    /// November 2026 by NTP.
    const NOW: i64 = 4_004_734_962 * 1000 * MS;

    /// Two cameras that capture at the same moments.
    struct Cameras {
        clocks: SenderClocks,
        /// Network delay of each view.
        delays: [i64; 2],
        /// Error of each clock; `None`: no time is stated.
        errors: [Option<i64>; 2],
        kinds: [Clock; 2],
        /// Relative error of both clocks' rate.
        rate: f64,
        next: i64,
    }

    impl Cameras {
        fn new(delays: [i64; 2], errors: [Option<i64>; 2]) -> Self {
            let clocks = SenderClocks::default();
            Self { clocks, delays, errors, kinds: [Clock::Ntp; 2], rate: 0.0, next: 0 }
        }

        /// Plays frames; returns the last one's difference of the views and delay of the left one, and all
        /// changes.
        fn play(&mut self, frames: i64) -> (i64, i64, Vec<Change>) {
            let (mut last, mut changes) = ((0, 0), Vec::new());
            for frame in self.next..self.next + frames {
                let host = 5_000 * MS + frame * FRAME;
                let times = Eye::BOTH.map(|eye| {
                    let at = eye.index();
                    let arrived = host + self.delays[at] + frame * 7919 % 5 * MS;
                    let own =
                        NOW + frame * FRAME + (frame as f64 * FRAME as f64 * self.rate) as i64;
                    let (clock, error) = (self.kinds[at], self.errors[at]);
                    let stated = error.map(|error| SenderTime { clock, ns: own + error });
                    let arrived = Duration::from_nanos(arrived as u64);
                    let (time, change) = self.clocks.time(eye, arrived, stated);
                    changes.extend(change);
                    ns(time)
                });
                last = (times[1] - times[0], 5_000 * MS + frame * FRAME - times[0]);
            }
            self.next += frames;
            (last.0, last.1, changes)
        }
    }

    #[test]
    fn delays_do_not_count_once_both_senders_state_their_times() {
        for delays in [[10 * MS, 22 * MS], [22 * MS, 10 * MS]] {
            let mut cameras = Cameras::new(delays, [None; 2]);
            let apart = delays[1] - delays[0];
            assert_eq!(cameras.play(100).0, apart);
            // One view alone changes nothing.
            cameras.errors[0] = Some(0);
            let (skew, _, changes) = cameras.play(100);
            assert_eq!((skew, changes), (apart, vec![]));
            cameras.errors[1] = Some(0);
            let (skew, early, changes) = cameras.play(100);
            let clock = Clock::Ntp;
            assert_eq!(changes, [Change::BySender { clock, right_later: apart }]);
            assert_eq!((skew, early), (0, -10 * MS), "the shorter delay is not known");
            assert_eq!(cameras.clocks.in_use(), Some((clock, apart)));
            // Until its next report, a camera that is back is timed by its usual delay.
            cameras.clocks.note_lost(Eye::Right);
            cameras.errors[1] = None;
            let (skew, _, changes) = cameras.play(100);
            assert!(skew.abs() < 5 * MS && changes.is_empty(), "{skew} {changes:?}");
            cameras.errors[1] = Some(0);
            let (skew, _, changes) = cameras.play(100);
            assert_eq!((skew, changes), (0, vec![]));
        }
    }

    #[test]
    fn clocks_that_differ_are_told_once_and_not_used() {
        const YEAR: i64 = 31_557_600_000 * MS;
        let mut cameras = Cameras::new([10 * MS, 22 * MS], [Some(-56 * YEAR), Some(0)]);
        let (skew, _, changes) = cameras.play(300);
        let [change] = changes[..] else { panic!("{changes:?}") };
        assert_eq!(skew, 12 * MS);
        assert!(change.to_string().contains("NTP clocks differ by about 56.0 years"), "{change}");
        // The camera finds its time server, and loses it again.
        cameras.errors[0] = Some(0);
        let (skew, _, changes) = cameras.play(100);
        assert!(matches!(changes[..], [Change::BySender { .. }]) && skew == 0, "{changes:?}");
        cameras.errors[0] = Some(-3000 * MS);
        let (skew, _, changes) = cameras.play(5);
        // The first frames with wrong times have those of their usual delay.
        assert!(skew.abs() < 5 * MS && changes.is_empty(), "{skew} {changes:?}");
        let (skew, _, changes) = cameras.play(100);
        assert_eq!((skew, cameras.clocks.in_use()), (12 * MS, None));
        assert!(matches!(changes[..], [Change::Apart { .. }]), "{changes:?}");
        assert!(changes[0].to_string().contains("differ by about 3.0 s"), "{}", changes[0]);
    }

    #[test]
    fn a_constant_difference_of_the_clocks_is_told_and_not_followed() {
        // Times of arrival are right; the right clock is ahead by one frame, or behind by less.
        for (error, words) in [
            (FRAME, "differ by about 33.3 ms (1.0 frames): the right one is ahead"),
            (-20 * MS, "differ by about 20.0 ms (0.6 frames): the right one is behind"),
        ] {
            let mut cameras = Cameras::new([2 * MS; 2], [Some(0), Some(error)]);
            let (skew, _, changes) = cameras.play(3000);
            let [change] = changes[..] else { panic!("{changes:?}") };
            assert_eq!((skew, cameras.clocks.in_use()), (0, None));
            assert!(change.to_string().contains(words), "{change}");
        }
        // The network delays the right view by 80 ms.
        let mut cameras = Cameras::new([10 * MS, 90 * MS], [Some(0); 2]);
        let (skew, _, changes) = cameras.play(100);
        assert_eq!(skew, 80 * MS);
        assert!(changes[0].to_string().ends_with("give `--offset -80.0`"), "{}", changes[0]);
        // Its offset makes the left frames as late.
        let mut cameras = Cameras::new([90 * MS; 2], [Some(0); 2]);
        cameras.clocks = SenderClocks::new(-80 * MS);
        let (skew, _, changes) = cameras.play(100);
        assert_eq!(changes, [Change::BySender { clock: Clock::Ntp, right_later: 80 * MS }]);
        assert_eq!((skew, cameras.clocks.in_use()), (0, Some((Clock::Ntp, 80 * MS))));
    }

    #[test]
    fn clocks_of_two_kinds_are_told() {
        let mut cameras = Cameras::new([0; 2], [Some(0); 2]);
        cameras.kinds[1] = Clock::Ptp(3);
        let (_, _, changes) = cameras.play(300);
        let [change] = changes[..] else { panic!("{changes:?}") };
        assert!(change.to_string().contains("by NTP and the right one by PTP (domain 3)"));
    }

    #[test]
    fn the_senders_clock_is_followed_over_hours() {
        let mut cameras = Cameras::new([10 * MS, 22 * MS], [Some(0); 2]);
        cameras.rate = 100e-6;
        let (skew, early, changes) = cameras.play(3 * 3600 * 30);
        assert!(skew.abs() < MS / 10 && changes.len() == 1, "{skew} {changes:?}");
        // A second has passed by the clock that is faster.
        assert!((early + 10 * MS).abs() < 5 * MS, "{early}");
    }
}
