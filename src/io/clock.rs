//! The clock of capture times and its offset from the time of day.

use std::time::{Duration, SystemTime};

/// Number of readings of both clocks for their offset; the quickest one counts.
const READINGS: usize = 16;

/// The clock of a live source's capture times: the system's monotonic one, which never jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureClock {
    /// CLOCK_MONOTONIC at the source's time 0.
    pub zero: Duration,
    /// Unix time less CLOCK_MONOTONIC in ns, measured once, so that all files of a run agree.
    pub utc_offset_ns: i64,
}

impl CaptureClock {
    /// Measures the offset for a source whose time 0 was at `zero` of CLOCK_MONOTONIC, to better
    /// than a microsecond on a machine that is not overloaded.
    pub fn measure(zero: Duration) -> Self {
        let read = || {
            let (before, now, after) = (monotonic_ns(), unix_ns(SystemTime::now()), monotonic_ns());
            (after - before, now - (before + (after - before) / 2))
        };
        let quickest = (0..READINGS).map(|_| read()).min_by_key(|&(took, _)| took);
        Self { zero, utc_offset_ns: quickest.map_or(0, |(_, offset)| offset) }
    }

    /// Returns CLOCK_MONOTONIC at a capture time.
    pub fn monotonic(&self, timestamp: Duration) -> Duration {
        self.zero + timestamp
    }

    pub fn time_of_day(&self, timestamp: Duration) -> SystemTime {
        let ns = self.monotonic(timestamp).as_nanos() as i64 + self.utc_offset_ns;
        SystemTime::UNIX_EPOCH + Duration::from_nanos(ns.max(0) as u64)
    }
}

/// Returns the Unix time in nanoseconds.
pub fn unix_ns(moment: SystemTime) -> i64 {
    moment.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64)
}

/// Returns CLOCK_MONOTONIC in nanoseconds.
#[cfg(unix)]
pub fn monotonic_ns() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the system fills in `now`, which outlives the call; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    #[allow(clippy::useless_conversion, reason = "32 bits on some systems")]
    (i64::from(now.tv_sec) * 1_000_000_000 + i64::from(now.tv_nsec))
}

/// Nanoseconds of the standard library's monotonic clock since its first use.
#[cfg(not(unix))]
pub fn monotonic_ns() -> i64 {
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    FIRST.get_or_init(std::time::Instant::now).elapsed().as_nanos() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capture_times_have_a_time_of_day() {
        let clock = CaptureClock::measure(Duration::ZERO);
        let there = || unix_ns(clock.time_of_day(Duration::from_nanos(monotonic_ns() as u64)));
        let (before, here, after) = (there(), unix_ns(SystemTime::now()), there());
        assert!(
            (before - 50_000_000..after + 50_000_000).contains(&here),
            "{before} {here} {after}"
        );
        let later = CaptureClock { zero: Duration::from_secs(5), ..clock };
        let ms = Duration::from_millis(1);
        assert_eq!(later.monotonic(ms), Duration::from_millis(5001));
        let apart = later.time_of_day(ms * 3).duration_since(later.time_of_day(ms)).unwrap();
        assert_eq!(apart, ms * 2);
    }

    #[test]
    fn the_distance_of_the_clocks_is_known_well() {
        let begin = monotonic_ns();
        let measured = [0; 5].map(|_| CaptureClock::measure(Duration::ZERO).utc_offset_ns);
        let took = monotonic_ns() - begin;
        let (low, high) = (measured.iter().min().unwrap(), measured.iter().max().unwrap());
        // The time of day may be corrected meanwhile, and a busy machine may be away between two readings.
        assert!(high - low < 5_000_000 + took, "{measured:?}");
    }
}
