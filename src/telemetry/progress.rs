//! Counters that the pipeline's threads keep and anybody may read while it runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Longest time that is told apart from longer ones: ten minutes, in microseconds.
const LONGEST_US: u64 = 600_000_000;

/// Live counters of one run.
#[derive(Debug)]
pub struct Progress {
    /// Pairs that the source has delivered.
    pub pairs: AtomicU64,
    /// Frames of either eye that found no partner.
    pub unpaired: AtomicU64,
    /// Pairs that have been matched.
    pub matched: AtomicU64,
    /// Whether the source has ended.
    pub source_ended: AtomicBool,
    latency: Mutex<Histogram<u64>>,
    device_time: Mutex<Histogram<u64>>,
    last_latency_us: AtomicU64,
}

/// How long something took for the pairs of a run, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TimesMs {
    /// For half of the pairs at most this.
    pub p50: f64,
    /// For 95 of 100 pairs at most this.
    pub p95: f64,
    /// For 99 of 100 pairs at most this.
    pub p99: f64,
}

impl Progress {
    /// Counters at zero.
    pub fn new() -> Self {
        // Three significant digits, and a memory that does not depend on the length of the run.
        let times =
            || Mutex::new(Histogram::new_with_bounds(1, LONGEST_US, 3).expect("valid bounds"));
        Self {
            pairs: AtomicU64::new(0),
            unpaired: AtomicU64::new(0),
            matched: AtomicU64::new(0),
            source_ended: AtomicBool::new(false),
            latency: times(),
            device_time: times(),
            last_latency_us: AtomicU64::new(0),
        }
    }

    /// Counts a matched pair: its latency, and how long a device computed it, if one did.
    pub fn count_matched(&self, latency: Duration, device_time: Option<Duration>) {
        let us = |time: Duration| (time.as_micros() as u64).clamp(1, LONGEST_US);
        let record = |histogram: &Mutex<Histogram<u64>>, us| {
            histogram.lock().unwrap_or_else(PoisonError::into_inner).saturating_record(us);
        };
        self.last_latency_us.store(us(latency), Ordering::Relaxed);
        record(&self.latency, us(latency));
        if let Some(time) = device_time {
            record(&self.device_time, us(time));
        }
        self.matched.fetch_add(1, Ordering::Relaxed);
    }

    /// Latency of the pair matched last.
    pub fn last_latency(&self) -> Duration {
        Duration::from_micros(self.last_latency_us.load(Ordering::Relaxed))
    }

    /// Latency of all pairs so far, from a pair's arrival to its disparity.
    pub fn latency(&self) -> TimesMs {
        percentiles(&self.latency.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How long a device computed each pair so far; `None` where none did.
    pub fn device_time(&self) -> Option<TimesMs> {
        let histogram = self.device_time.lock().unwrap_or_else(PoisonError::into_inner);
        (!histogram.is_empty()).then(|| percentiles(&histogram))
    }
}

fn percentiles(histogram: &Histogram<u64>) -> TimesMs {
    let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1000.0;
    TimesMs { p50: at(0.50), p95: at(0.95), p99: at(0.99) }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_known_latencies() {
        let progress = Progress::new();
        assert_eq!(progress.latency(), TimesMs::default());
        assert_eq!(progress.device_time(), None);
        for ms in 1..=100 {
            progress.count_matched(Duration::from_millis(ms), Some(Duration::from_micros(10 * ms)));
        }
        assert!((progress.device_time().unwrap().p50 - 0.5).abs() < 0.002);
        let latency = progress.latency();
        for (measured, expected) in [(latency.p50, 50.0), (latency.p95, 95.0), (latency.p99, 99.0)]
        {
            assert!((measured - expected).abs() < 0.1, "{measured} instead of {expected}");
        }
        assert_eq!(progress.last_latency(), Duration::from_millis(100));
        assert_eq!(progress.matched.load(Ordering::Relaxed), 100);
    }
}
