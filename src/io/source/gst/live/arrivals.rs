//! Times of arrival without the bursts in which a network delivers frames.
//!
//! Containers such as MPEG-TS state the time of each frame, but count from the connection on, so the times of two streams
//! have no common zero. The frame that came with the least delay gives the zero: a frame's time is that by its container,
//! moved to the host's clock by the least delay of the last seconds.

use std::collections::VecDeque;
use std::time::Duration;

/// Time over which the least delay is taken, in nanoseconds.
const WINDOW: i64 = 5_000_000_000;

/// Delay above the least one at which a container's times have jumped, in nanoseconds.
const JUMP: i64 = 1_000_000_000;

/// Number of jumps, one soon after the other, after which the times are not of a clock.
const MANY_JUMPS: u32 = 3;

/// Largest change of the least delay, as a part of the time: beyond it the times are not of a clock.
const LARGEST_SLOPE: f64 = 0.05;

#[derive(Debug, Default)]
pub(in crate::source::gst) struct Arrivals {
    /// Arrivals and delays (arrival less the container's time) of frames that no later one undercuts.
    delays: VecDeque<(i64, i64)>,
    /// Arrival and delay of the first frame since the last jump.
    first: Option<(i64, i64)>,
    newest: Option<i64>,
    /// Jumps in a row that came within the window.
    jumps: u32,
    is_without_clock: bool,
}

impl Arrivals {
    /// Returns the time of a frame that arrived at `arrived`. `own`: its time by the container.
    pub(in crate::source::gst) fn even_out(
        &mut self,
        arrived: Duration,
        own: Option<Duration>,
    ) -> Duration {
        let ns = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let Some(own) = own.map(ns).filter(|_| !self.is_without_clock) else { return arrived };
        let now = ns(arrived);
        let delay = now.saturating_sub(own);
        // As a server that plays a file in a loop does.
        let goes_back = self.newest.is_some_and(|newest| own <= newest);
        let is_jump =
            goes_back || self.delays.front().is_some_and(|(_, least)| (delay - least).abs() > JUMP);
        if is_jump {
            self.delays.clear();
            let often = self.first.is_some_and(|(since, _)| now - since < WINDOW);
            self.jumps = if often && !goes_back { self.jumps + 1 } else { 0 };
            self.is_without_clock = self.jumps == MANY_JUMPS;
            self.first = None;
        }
        self.newest = Some(own);
        while self.delays.back().is_some_and(|&(_, other)| other >= delay) {
            self.delays.pop_back();
        }
        self.delays.push_back((now, delay));
        while self.delays.front().is_some_and(|&(then, _)| then + WINDOW < now) {
            self.delays.pop_front();
        }
        let least = self.delays.front().map_or(delay, |&(_, least)| least);
        let (since, at_first) = *self.first.get_or_insert((now, delay));
        let passed = now - since;
        if passed > WINDOW && (least - at_first) as f64 > LARGEST_SLOPE * passed as f64 {
            self.is_without_clock = true;
            return arrived;
        }
        Duration::from_nanos((own + least).max(0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: f64) -> Duration {
        Duration::from_secs_f64(ms * 1e-3)
    }

    #[test]
    fn frames_in_bursts_get_their_even_beat() {
        // 15 frames a second, delivered every 0.2 s; the container counts from 7 s.
        let (mut arrivals, period) = (Arrivals::default(), 1000.0 / 15.0);
        let times: Vec<f64> = (0..600)
            .map(|frame| {
                let captured = 5000.0 + f64::from(frame) * period;
                let sent = (captured / 200.0).ceil() * 200.0 + 1.0;
                let own = ms(7000.0 + f64::from(frame) * period);
                let time = arrivals.even_out(ms(sent), Some(own)).as_secs_f64() * 1e3;
                assert!(time <= sent + 1e-6);
                time - captured
            })
            .collect();
        let first = times[10];
        assert!(
            (0.0..8.0).contains(&first)
                && times[10..].iter().all(|late| (late - first).abs() < 1e-3),
            "{times:?}"
        );
    }

    #[test]
    fn a_slow_clock_is_followed_and_a_jump_survived() {
        let mut arrivals = Arrivals::default();
        let mut last = Duration::ZERO;
        for frame in 0..9000 {
            // The file of a looping server starts again every 6 s.
            let own = f64::from(frame % 180) * 1000.0 / 30.0;
            let arrived = 1000.0 + f64::from(frame) * 1000.0 / 30.0 * 1.002;
            let time = arrivals.even_out(ms(arrived), Some(ms(own)));
            let early = arrived - time.as_secs_f64() * 1e3;
            assert!((-1e-3..11.0).contains(&early), "{frame}: {early}");
            assert!(time > last, "{frame}");
            last = time;
        }
    }

    #[test]
    fn numbers_that_are_no_times_are_left_alone() {
        // A decoder that counts 30 frames a second where 12 come.
        let mut arrivals = Arrivals::default();
        for frame in 0..600 {
            let arrived = ms(1000.0 + f64::from(frame) * 1000.0 / 12.0);
            let time = arrivals.even_out(arrived, Some(ms(f64::from(frame) * 1000.0 / 30.0)));
            assert!(frame < 120 || time == arrived, "{frame}");
        }
        let mut arrivals = Arrivals::default();
        for frame in 0..100 {
            let arrived = ms(f64::from(frame) * 40.0);
            assert_eq!(arrivals.even_out(arrived, Some(ms(0.0))), arrived);
            assert_eq!(Arrivals::default().even_out(arrived, None), arrived);
        }
    }
}
