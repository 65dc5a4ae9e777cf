//! The vehicle's clock, by MAVLink's TIMESYNC (mavlink.io/en/services/timesync.html).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ::mavlink::dialects::ardupilotmega::TIMESYNC_DATA;

/// Answers of which the one with the smallest round trip counts, and requests that may still be answered.
const KEPT: usize = 10;
/// Without an answer for so long, the vehicle's time is unknown again.
const FORGOTTEN: Duration = Duration::from_secs(30);
/// What two clocks may drift apart between answers, in nanoseconds. More is a step of either, or a restart.
const DRIFT_NS: i64 = 20_000_000;

/// Difference between the vehicle's clock and Unix time, from requests and answers.
#[derive(Default)]
pub struct Clock {
    /// Unix time in nanoseconds, and the same time on the clock that is never set.
    requests: VecDeque<(i64, Instant)>,
    answers: VecDeque<Answer>,
}

#[derive(Clone, Copy)]
struct Answer {
    /// The vehicle's clock minus Unix time in nanoseconds, if both ways took equally long.
    offset_ns: i64,
    round_trip_ns: i64,
    at: Instant,
}

impl Clock {
    /// Returns a request to the autopilot of a system.
    pub fn request(&mut self, unix_ns: i64, now: Instant, system: u8) -> TIMESYNC_DATA {
        if self.requests.len() == KEPT {
            self.requests.pop_front();
        }
        self.requests.push_back((unix_ns, now));
        if self.answers.back().is_some_and(|last| now.duration_since(last.at) > FORGOTTEN) {
            self.answers.clear();
        }
        TIMESYNC_DATA { tc1: 0, ts1: unix_ns, target_system: system, target_component: 1 }
    }

    /// Takes an answer that came at `at`. What answers none of our requests, or one again, changes nothing.
    pub fn answered(&mut self, data: &TIMESYNC_DATA, at: Instant) {
        let Some(place) = self.requests.iter().position(|(unix_ns, _)| *unix_ns == data.ts1) else {
            return;
        };
        let Some((unix_ns, sent)) = self.requests.remove(place) else { return };
        let round_trip_ns =
            i64::try_from(at.saturating_duration_since(sent).as_nanos()).unwrap_or(i64::MAX);
        let offset_ns = data.tc1.saturating_sub(unix_ns.saturating_add(round_trip_ns / 2));
        let answer = Answer { offset_ns, round_trip_ns, at };
        if self.best().is_some_and(|best| best.contradicts(&answer)) {
            self.answers.clear();
        }
        if self.answers.len() == KEPT {
            self.answers.pop_front();
        }
        self.answers.push_back(answer);
    }

    fn best(&self) -> Option<Answer> {
        self.answers.iter().min_by_key(|answer| answer.round_trip_ns).copied()
    }

    /// Returns a Unix time on the vehicle's clock; `None` before the first answer.
    pub fn vehicle_time(&self, unix: Duration) -> Option<Duration> {
        let unix_ns = i64::try_from(unix.as_nanos()).ok()?;
        let vehicle_ns = unix_ns.checked_add(self.best()?.offset_ns)?;
        u64::try_from(vehicle_ns).ok().map(Duration::from_nanos)
    }
}

impl Answer {
    /// Reports whether no single offset can explain both: it is within half the round trip of each.
    fn contradicts(&self, other: &Self) -> bool {
        let apart = self.offset_ns.saturating_sub(other.offset_ns).saturating_abs();
        let doubt = (self.round_trip_ns / 2).saturating_add(other.round_trip_ns / 2);
        apart > doubt.saturating_add(DRIFT_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIX: i64 = 1_800_000_000_000_000_000;
    const MS: i64 = 1_000_000;

    /// Asks at a time and answers after two ways, by a vehicle that started at `boot_ns`.
    fn ask(clock: &mut Clock, start: Instant, after_ms: i64, ways_ms: [i64; 2], boot_ns: i64) {
        let at = |ms: i64| start + Duration::from_millis(u64::try_from(ms).unwrap());
        let request = clock.request(UNIX + after_ms * MS, at(after_ms), 1);
        assert_eq!((request.tc1, request.target_component), (0, 1));
        let vehicle_ns = UNIX + (after_ms + ways_ms[0]) * MS - boot_ns;
        let answer = TIMESYNC_DATA { tc1: vehicle_ns, target_system: 1, ..request };
        clock.answered(&answer, at(after_ms + ways_ms[0] + ways_ms[1]));
    }

    fn offset_ms(clock: &Clock) -> Option<i64> {
        let time = clock.vehicle_time(Duration::from_nanos(UNIX as u64))?;
        Some(time.as_millis() as i64)
    }

    #[test]
    fn the_answer_with_the_smallest_round_trip_counts() {
        let (mut clock, start) = (Clock::default(), Instant::now());
        assert_eq!(offset_ms(&clock), None);
        let boot = UNIX - 5_000 * MS;
        ask(&mut clock, start, 0, [40, 0], boot);
        assert_eq!(offset_ms(&clock), Some(5_020), "half of an uneven way is an error");
        ask(&mut clock, start, 1_000, [2, 2], boot);
        assert_eq!(offset_ms(&clock), Some(5_000));
        for second in 2..11 {
            ask(&mut clock, start, second * 1_000, [30, 10], boot);
            assert_eq!(offset_ms(&clock), Some(5_000), "{second}");
        }
        ask(&mut clock, start, 11_000, [30, 10], boot);
        assert_eq!(offset_ms(&clock), Some(5_010), "only the last ten count");
    }

    #[test]
    fn a_restart_of_the_vehicle_and_its_silence_are_noticed() {
        let (mut clock, start) = (Clock::default(), Instant::now());
        ask(&mut clock, start, 0, [1, 1], UNIX - 100_000 * MS);
        ask(&mut clock, start, 1_000, [9, 9], UNIX - MS);
        assert_eq!(offset_ms(&clock), Some(1), "the older, shorter round trip is void");
        clock.request(UNIX + 40_000 * MS, start + Duration::from_secs(40), 1);
        assert_eq!(offset_ms(&clock), None);
    }

    #[test]
    fn strange_and_repeated_answers_change_nothing() {
        let (mut clock, start) = (Clock::default(), Instant::now());
        ask(&mut clock, start, 0, [1, 1], UNIX - 7 * MS);
        for ts1 in [UNIX, UNIX + 1, i64::MIN, i64::MAX] {
            clock.answered(&TIMESYNC_DATA { tc1: 5, ts1, ..TIMESYNC_DATA::DEFAULT }, start);
        }
        assert_eq!(offset_ms(&clock), Some(7));
        let request = clock.request(i64::MAX, start, 1);
        clock.answered(&TIMESYNC_DATA { tc1: i64::MIN, ..request }, start);
        assert_eq!(clock.vehicle_time(Duration::ZERO), None, "before its start");
    }
}
