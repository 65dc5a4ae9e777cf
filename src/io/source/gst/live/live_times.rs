//! Checks a live stream's capture times against the arrival of its frames.
//!
//! Frames are paired in the order of these times, so one frame from the future would leave all
//! later ones without a partner until the clock has caught up. A time far from the arrival is
//! therefore discarded, unless the times of the next frames agree with it: then the stream's clock
//! was set, and its times are shifted so that they continue.

use std::time::Duration;

/// Longest plausible time of capture after the arrival, in nanoseconds.
const AHEAD: i64 = 1_000_000_000;

/// Smallest age of a wrong time that goes back, in nanoseconds.
const OLD: i64 = 10_000_000_000;

/// Largest difference of the lags of wrong times that agree, in nanoseconds.
const AGREEING: i64 = 250_000_000;

/// Number of agreeing wrong times after which the stream's clock counts as set ...
const ENOUGH: u32 = 5;

/// ... and the shortest time over which they arrive, because delayed frames come all at once.
const LASTING: Duration = Duration::from_millis(500);

/// State of the check. All times are relative to a common zero.
#[derive(Debug, Default)]
pub(in crate::source::gst) struct LiveTimes {
    /// Nanoseconds added to the stream's own times.
    shift: i64,
    /// Lag of the last good frame (arrival less shifted time, in nanoseconds), and its shifted
    /// time.
    last: Option<(i64, i64)>,
    /// Latest wrong times that agree.
    suspects: Option<Suspects>,
}

#[derive(Clone, Copy, Debug)]
struct Suspects {
    since: Duration,
    /// Lag of the first: arrival less own time.
    lag: i64,
    count: u32,
}

/// Result of checking a frame's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source::gst) enum TimeCheck {
    /// The time, shifted if the stream's clock was set before.
    Good(Duration),
    /// It lies this many nanoseconds after the arrival; negative: before it.
    Wrong { ahead: i64 },
    /// The stream's clock was set by this many nanoseconds; the frame's time is shifted by that.
    ClockSet { by: i64, time: Duration },
}

impl LiveTimes {
    /// Checks the time of a frame that arrived at `arrived`.
    pub(in crate::source::gst) fn assess(
        &mut self,
        time: Duration,
        arrived: Duration,
    ) -> TimeCheck {
        let own = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let lag = (arrived.as_nanos() as i64).saturating_sub(own);
        let shifted = own.saturating_add(self.shift);
        let distance = lag.saturating_sub(self.shift);
        let (usual, newest) = self.last.unwrap_or((0, i64::MIN));
        let ahead = distance < usual.min(0) - AHEAD;
        let back = shifted <= newest && distance > usual.max(0) + OLD;
        if !ahead && !back {
            self.suspects = None;
            return self.accept(shifted, distance);
        }
        let suspects = match self.suspects {
            Some(known) if known.lag.abs_diff(lag) < AGREEING as u64 => {
                Suspects { count: known.count + 1, ..known }
            }
            _ => Suspects { since: arrived, lag, count: 1 },
        };
        self.suspects = Some(suspects);
        if suspects.count < ENOUGH || arrived.saturating_sub(suspects.since) < LASTING {
            return TimeCheck::Wrong { ahead: distance.saturating_neg() };
        }
        self.suspects = None;
        // Times with a constant large lag can be compared with the other view's without a shift.
        if self.last.is_some() {
            let shift = lag.saturating_sub(usual);
            self.shift = if shift.abs() < AHEAD { 0 } else { shift };
        }
        let by = self.shift.saturating_neg();
        match self.accept(own.saturating_add(self.shift), lag.saturating_sub(self.shift)) {
            TimeCheck::Good(time) if by != 0 => TimeCheck::ClockSet { by, time },
            good => good,
        }
    }

    fn accept(&mut self, shifted: i64, distance: i64) -> TimeCheck {
        self.last = Some((distance, shifted));
        TimeCheck::Good(Duration::from_nanos(shifted.max(0) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000_000;
    const FRAME: i64 = 33_333_333;
    const BEGIN: i64 = 3 * HOUR;

    /// Checks the frames of a camera with 30 frames/s and 5 ms of delay, with `wrong` added to
    /// their times.
    fn judged(times: &mut LiveTimes, frames: std::ops::Range<i64>, wrong: i64) -> Vec<TimeCheck> {
        let judge = |frame: i64| {
            let captured = BEGIN + frame * FRAME;
            let time = Duration::from_nanos((captured + wrong).max(0) as u64);
            times.assess(time, Duration::from_nanos((captured + 5_000_000) as u64))
        };
        frames.map(judge).collect()
    }

    fn good(frames: std::ops::Range<i64>) -> Vec<TimeCheck> {
        let at = |frame: i64| TimeCheck::Good(Duration::from_nanos((BEGIN + frame * FRAME) as u64));
        frames.map(at).collect()
    }

    #[test]
    fn one_wrong_time_costs_one_picture() {
        for wrong in [HOUR, 2_000_000_000, -HOUR] {
            let mut times = LiveTimes::default();
            assert_eq!(judged(&mut times, 0..400, 0), good(0..400));
            let one = judged(&mut times, 400..401, wrong);
            assert!(matches!(one[..], [TimeCheck::Wrong { .. }]), "{one:?}");
            assert_eq!(judged(&mut times, 401..420, 0), good(401..420));
        }
        // The first one.
        let mut times = LiveTimes::default();
        assert_eq!(judged(&mut times, 0..1, HOUR), [TimeCheck::Wrong { ahead: HOUR - 5_000_000 }]);
        assert_eq!(judged(&mut times, 1..20, 0), good(1..20));
    }

    #[test]
    fn a_clock_that_was_set_is_followed_once() {
        let mut times = LiveTimes::default();
        judged(&mut times, 0..400, 0);
        for wrong in [HOUR, -HOUR / 2, 0] {
            let after = judged(&mut times, 400..500, wrong);
            let wrongs = after.iter().filter(|one| matches!(one, TimeCheck::Wrong { .. })).count();
            // Half a second at 30 frames per second.
            assert!((14..=16).contains(&wrongs), "{wrongs} of {wrong}");
            assert_eq!(after[wrongs + 1..], good(400..500)[wrongs + 1..]);
            let set = after[wrongs];
            match wrong {
                0 => assert!(matches!(set, TimeCheck::Good(_)), "{set:?}"),
                _ => {
                    assert!(matches!(set, TimeCheck::ClockSet { by, .. } if by == wrong), "{set:?}")
                }
            }
        }
    }

    #[test]
    fn times_that_were_always_far_away_stay_as_they_are() {
        let mut times = LiveTimes::default();
        let all = judged(&mut times, 0..100, HOUR);
        let own = TimeCheck::Good(Duration::from_nanos((BEGIN + 99 * FRAME + HOUR) as u64));
        assert_eq!(all[99], own);
        assert!(!all.iter().any(|one| matches!(one, TimeCheck::ClockSet { .. })));
    }

    #[test]
    fn pictures_that_were_held_up_are_good() {
        let mut times = LiveTimes::default();
        let at = |ms: u64| Duration::from_millis(ms);
        assert_eq!(times.assess(at(1000), at(1005)), TimeCheck::Good(at(1000)));
        // No frame was taken for a minute: the oldest come first, all at once.
        for frame in 1..8 {
            let time = at(1000 + frame * 33);
            assert_eq!(times.assess(time, at(61_000 + frame)), TimeCheck::Good(time));
        }
        assert_eq!(times.assess(at(61_010), at(61_015)), TimeCheck::Good(at(61_010)));
        // A source that is ahead of its time and stays there, a little further with each frame.
        let mut times = LiveTimes::default();
        for frame in 0..300 {
            let time = at(frame * 33);
            assert_eq!(times.assess(time, at(500 + frame)), TimeCheck::Good(time));
        }
    }
}
