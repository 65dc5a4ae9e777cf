//! Check of a live stream's capture times against the arrival of its pictures.
//!
//! Pairs are made in the order of these times, so that one picture from the future would leave all
//! that follow without a partner until the clock has caught up. A time that lies far from the arrival
//! is no time at all, unless those of the next pictures agree with it: then the stream's clock was
//! set, and its times are shifted so that they go on.

use std::time::Duration;

/// No picture is captured this long after it arrived, in nanoseconds.
const AHEAD: i64 = 1_000_000_000;

/// A picture this old whose time goes back as well has a wrong time, in nanoseconds.
const OLD: i64 = 10_000_000_000;

/// Wrong times agree where their distances from the arrival differ by less, in nanoseconds.
const AGREEING: i64 = 250_000_000;

/// Pictures with wrong times that agree before the stream's clock counts as set ...
const ENOUGH: u32 = 5;

/// ... and the time over which they arrive at least: pictures that were held up come all at once.
const LASTING: Duration = Duration::from_millis(500);

/// Times of a live stream, judged one by one. Times are those since a common zero.
#[derive(Debug, Default)]
pub(super) struct LiveTimes {
    /// Nanoseconds that are added to the stream's own times.
    shift: i64,
    /// Arrival of the last good picture less its shifted time, in nanoseconds, and that time.
    last: Option<(i64, i64)>,
    /// Wrong times that agree, as long as no other one comes between.
    suspects: Option<Suspects>,
}

#[derive(Clone, Copy, Debug)]
struct Suspects {
    since: Duration,
    /// Arrival less own time of the first.
    lag: i64,
    count: u32,
}

/// Judgement of a picture's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// The time, shifted where the stream's clock was set.
    Good(Duration),
    /// It lies this many nanoseconds after the arrival, or before it where that is negative.
    Wrong { ahead: i64 },
    /// The stream's clock was set by this many nanoseconds; the picture's time is shifted by that.
    Set { by: i64, time: Duration },
}

impl LiveTimes {
    /// Judges the time of a picture that arrived at `arrived`.
    pub(super) fn assess(&mut self, time: Duration, arrived: Duration) -> Judged {
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
            return Judged::Wrong { ahead: distance.saturating_neg() };
        }
        self.suspects = None;
        // Times that were always that far away can be compared with the other eye's as they are.
        if self.last.is_some() {
            let shift = lag.saturating_sub(usual);
            self.shift = if shift.abs() < AHEAD { 0 } else { shift };
        }
        let by = self.shift.saturating_neg();
        match self.accept(own.saturating_add(self.shift), lag.saturating_sub(self.shift)) {
            Judged::Good(time) if by != 0 => Judged::Set { by, time },
            good => good,
        }
    }

    fn accept(&mut self, shifted: i64, distance: i64) -> Judged {
        self.last = Some((distance, shifted));
        Judged::Good(Duration::from_nanos(shifted.max(0) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000_000;
    const FRAME: i64 = 33_333_333;
    const BEGIN: i64 = 3 * HOUR;

    /// A camera of 30 pictures a second that takes 5 ms to deliver each; `wrong` is added to a time.
    fn judged(times: &mut LiveTimes, frames: std::ops::Range<i64>, wrong: i64) -> Vec<Judged> {
        let judge = |frame: i64| {
            let captured = BEGIN + frame * FRAME;
            let time = Duration::from_nanos((captured + wrong).max(0) as u64);
            times.assess(time, Duration::from_nanos((captured + 5_000_000) as u64))
        };
        frames.map(judge).collect()
    }

    fn good(frames: std::ops::Range<i64>) -> Vec<Judged> {
        let at = |frame: i64| Judged::Good(Duration::from_nanos((BEGIN + frame * FRAME) as u64));
        frames.map(at).collect()
    }

    #[test]
    fn one_wrong_time_costs_one_picture() {
        for wrong in [HOUR, 2_000_000_000, -HOUR] {
            let mut times = LiveTimes::default();
            assert_eq!(judged(&mut times, 0..400, 0), good(0..400));
            let one = judged(&mut times, 400..401, wrong);
            assert!(matches!(one[..], [Judged::Wrong { .. }]), "{one:?}");
            assert_eq!(judged(&mut times, 401..420, 0), good(401..420));
        }
        // The first one.
        let mut times = LiveTimes::default();
        assert_eq!(judged(&mut times, 0..1, HOUR), [Judged::Wrong { ahead: HOUR - 5_000_000 }]);
        assert_eq!(judged(&mut times, 1..20, 0), good(1..20));
    }

    #[test]
    fn a_clock_that_was_set_is_followed_once() {
        let mut times = LiveTimes::default();
        judged(&mut times, 0..400, 0);
        for wrong in [HOUR, -HOUR / 2, 0] {
            let after = judged(&mut times, 400..500, wrong);
            let wrongs = after.iter().filter(|one| matches!(one, Judged::Wrong { .. })).count();
            // Half a second of 30 a second.
            assert!((14..=16).contains(&wrongs), "{wrongs} of {wrong}");
            assert_eq!(after[wrongs + 1..], good(400..500)[wrongs + 1..]);
            let set = after[wrongs];
            match wrong {
                0 => assert!(matches!(set, Judged::Good(_)), "{set:?}"),
                _ => assert!(matches!(set, Judged::Set { by, .. } if by == wrong), "{set:?}"),
            }
        }
    }

    #[test]
    fn times_that_were_always_far_away_stay_as_they_are() {
        let mut times = LiveTimes::default();
        let all = judged(&mut times, 0..100, HOUR);
        let own = Judged::Good(Duration::from_nanos((BEGIN + 99 * FRAME + HOUR) as u64));
        assert_eq!(all[99], own);
        assert!(!all.iter().any(|one| matches!(one, Judged::Set { .. })));
    }

    #[test]
    fn pictures_that_were_held_up_are_good() {
        let mut times = LiveTimes::default();
        let at = |ms: u64| Duration::from_millis(ms);
        assert_eq!(times.assess(at(1000), at(1005)), Judged::Good(at(1000)));
        // A minute long nobody took any: the oldest ones come first, all at once.
        for frame in 1..8 {
            let time = at(1000 + frame * 33);
            assert_eq!(times.assess(time, at(61_000 + frame)), Judged::Good(time));
        }
        assert_eq!(times.assess(at(61_010), at(61_015)), Judged::Good(at(61_010)));
        // A source that is ahead of its time and stays there, a little further with each picture.
        let mut times = LiveTimes::default();
        for frame in 0..300 {
            let time = at(frame * 33);
            assert_eq!(times.assess(time, at(500 + frame)), Judged::Good(time));
        }
    }
}
