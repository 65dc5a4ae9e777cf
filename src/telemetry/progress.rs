//! Counters that the pipeline's threads keep and any thread may read.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::telemetry::temporal::{TemporalAccount, TemporalSummary};
use stereod_core::frame::TemporalReport;
use stereod_core::thread::locked;

/// Largest time that is recorded: ten minutes, in microseconds.
const LONGEST_US: u64 = 600_000_000;

/// Latencies that quantiles of recent ones are taken from.
const RECENT: usize = 256;

#[derive(Debug, Default)]
pub struct Progress {
    pub pairs: AtomicU64,
    pub matched: AtomicU64,
    /// Number of times that another engine has taken over.
    pub retuned: AtomicU64,
    pub source_ended: AtomicBool,
    /// Delay in microseconds of a paced recording because pairs waited for the engine.
    delayed_us: AtomicU64,
    pub moves: AtomicU64,
    /// Time in microseconds for which pairs have waited for those of other rigs.
    waited_us: AtomicU64,
    /// Time of its newest pair in the recording, in microseconds.
    position_us: AtomicU64,
    /// Frames of the left and the right view, and those without a partner.
    frames: [AtomicU64; 2],
    unpaired: [AtomicU64; 2],
    latency: Mutex<Times>,
    engine_time: Mutex<Times>,
    device_time: Mutex<Times>,
    temporal: Mutex<TemporalAccount>,
    recent: Mutex<VecDeque<Duration>>,
    started: Started,
    /// Time of the last matched pair, in milliseconds after `started`.
    last_matched_ms: AtomicU64,
    /// The same without the pauses before it.
    matching_ms: AtomicU64,
    /// Time that the source was paused until then, in milliseconds.
    paused_ms: AtomicU64,
    /// Set if the source was stopped before its end.
    pub cut_short: AtomicBool,
}

/// Health of a run: `Ok` if pairs flow, else the reason why not.
pub type Health = Result<String, String>;

/// Longest times of the classes of the histograms in microseconds: 1 ms to 10 s, and the frame
/// periods of 60, 30, 25, 20 and 15 pairs/s, which are the important limits.
pub const TIME_CLASSES_US: [u64; 17] = [
    1_000, 2_500, 5_000, 7_500, 10_000, 16_667, 25_000, 33_333, 40_000, 50_000, 66_667, 100_000,
    250_000, 500_000, 1_000_000, 2_500_000, 10_000_000,
];

/// The start by the clock of the process and by that of the system.
#[derive(Debug)]
struct Started(Instant, SystemTime);

impl Default for Started {
    fn default() -> Self {
        Self(Instant::now(), SystemTime::now())
    }
}

/// Times in microseconds, and their sum.
#[derive(Debug)]
struct Times {
    histogram: Histogram<u64>,
    sum_us: u64,
}

impl Default for Times {
    fn default() -> Self {
        // Three significant digits, in memory that does not depend on the length of the run.
        let histogram = Histogram::new_with_bounds(1, LONGEST_US, 3).expect("valid bounds");
        Self { histogram, sum_us: 0 }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Longest time of each class in seconds, rising, and its number of times; the last class is
    /// unbounded.
    pub classes: Vec<(f64, u64)>,
    /// All times together in seconds.
    pub sum: f64,
    pub count: u64,
}

/// Quantiles of times over the pairs of a run, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TimesMs {
    /// Median over the pairs.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// Times of recent pairs in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RecentMs {
    #[serde(skip)]
    pub newest: f64,
    pub p50: f64,
    pub p95: f64,
}

impl Progress {
    /// Sets the frames of the left and the right view so far, and those without a partner.
    pub fn note_source(&self, frames: [u64; 2], unpaired: [u64; 2]) {
        let counts = self.frames.iter().chain(&self.unpaired);
        for (count, now) in counts.zip(frames.into_iter().chain(unpaired)) {
            count.store(now, Ordering::Relaxed);
        }
    }

    /// Returns the frames of the left and the right view so far.
    pub fn frames(&self) -> [u64; 2] {
        self.frames.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Returns those without a partner.
    pub fn unpaired_frames(&self) -> [u64; 2] {
        self.unpaired.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Notes a pair of a paced recording: its time there, and its delay because earlier pairs
    /// waited for the engine.
    pub fn note_paced(&self, position: Duration, delay: Duration) {
        self.position_us.store(position.as_micros() as u64, Ordering::Relaxed);
        self.delayed_us.fetch_add(delay.as_micros() as u64, Ordering::Relaxed);
    }

    /// Notes that a recording was moved, so that it is no longer late.
    pub fn note_move(&self) {
        self.delayed_us.store(0, Ordering::Relaxed);
        self.moves.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the time of the newest pair of a paced recording, and all delays so far.
    pub fn paced(&self) -> [Duration; 2] {
        let of = |us: &AtomicU64| Duration::from_micros(us.load(Ordering::Relaxed));
        [of(&self.position_us), of(&self.delayed_us)]
    }

    /// Counts a matched pair: its latency, its time in the engine, and that of a device, if one
    /// computed it.
    pub fn count_matched(
        &self,
        latency: Duration,
        engine_time: Duration,
        device_time: Option<Duration>,
    ) {
        let us = |time: Duration| (time.as_micros() as u64).clamp(1, LONGEST_US);
        let record = |times: &Mutex<Times>, us| {
            let mut times = locked(times);
            times.histogram.saturating_record(us);
            times.sum_us += us;
        };
        let mut recent = locked(&self.recent);
        recent.truncate(RECENT - 1);
        recent.push_front(latency);
        drop(recent);
        record(&self.latency, us(latency));
        record(&self.engine_time, us(engine_time));
        if let Some(time) = device_time {
            record(&self.device_time, us(time));
        }
        let since_start = self.started.0.elapsed().as_millis() as u64;
        self.last_matched_ms.store(since_start, Ordering::Relaxed);
        let paused = self.paused_ms.load(Ordering::Relaxed);
        self.matching_ms.store(since_start.saturating_sub(paused), Ordering::Relaxed);
        self.matched.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a pair has waited for those of other rigs.
    pub fn note_turn(&self, waited: Duration) {
        self.waited_us.fetch_add(waited.as_micros() as u64, Ordering::Relaxed);
    }

    /// Returns the time for which pairs have waited for those of other rigs.
    pub fn waited(&self) -> Duration {
        Duration::from_micros(self.waited_us.load(Ordering::Relaxed))
    }

    /// Notes that the source was paused for this long.
    pub fn note_pause(&self, pause: Duration) {
        self.paused_ms.fetch_add(pause.as_millis() as u64, Ordering::Relaxed);
    }

    /// Returns the time from the start to the last matched pair without pauses, over which rates
    /// are taken.
    pub fn matching_time(&self) -> Duration {
        Duration::from_millis(self.matching_ms.load(Ordering::Relaxed))
    }

    pub fn note_temporal(&self, report: &TemporalReport) {
        locked(&self.temporal).add(report);
    }

    /// Returns the temporal stage's reports so far; `None` if it is off.
    pub fn temporal(&self) -> Option<TemporalSummary> {
        locked(&self.temporal).summary()
    }

    /// Returns the time since the last matched pair, or since the start.
    pub fn since_matched(&self) -> Duration {
        let last = Duration::from_millis(self.last_matched_ms.load(Ordering::Relaxed));
        self.started.0.elapsed().saturating_sub(last)
    }

    pub fn started_at(&self) -> SystemTime {
        self.started.1
    }

    pub fn elapsed(&self) -> Duration {
        self.started.0.elapsed()
    }

    /// Returns the latency of recent pairs; `None` before the first one.
    pub fn recent_latency(&self) -> Option<RecentMs> {
        let mut latencies: Vec<_> = locked(&self.recent).iter().copied().collect();
        let newest = ms(*latencies.first()?);
        latencies.sort_unstable();
        let at = |percent: usize| ms(latencies[latencies.len() * percent / 100]);
        Some(RecentMs { newest, p50: at(50), p95: at(95) })
    }

    /// Returns the latency of all pairs so far, from capture (recordings: arrival) to disparity.
    pub fn latency(&self) -> TimesMs {
        percentiles(&locked(&self.latency).histogram)
    }

    /// Returns the same in classes up to these times in microseconds.
    pub fn latency_within(&self, bounds_us: &[u64]) -> Distribution {
        locked(&self.latency).within(bounds_us)
    }

    /// Returns the times of all pairs so far in the engine, from submission to disparity.
    pub fn engine_time(&self) -> TimesMs {
        percentiles(&locked(&self.engine_time).histogram)
    }

    /// Returns the times of all pairs so far on a device, in classes; `None` without one.
    pub fn device_time_within(&self, bounds_us: &[u64]) -> Option<Distribution> {
        let times = locked(&self.device_time);
        (!times.histogram.is_empty()).then(|| times.within(bounds_us))
    }

    /// Returns the times of all pairs so far on a device; `None` without one.
    pub fn device_time(&self) -> Option<TimesMs> {
        let times = locked(&self.device_time);
        (!times.histogram.is_empty()).then(|| percentiles(&times.histogram))
    }
}

impl Times {
    fn within(&self, bounds_us: &[u64]) -> Distribution {
        let mut classes = Vec::with_capacity(bounds_us.len() + 1);
        let mut counted = 0;
        for &bound in bounds_us {
            let so_far = self.histogram.count_between(0, bound);
            classes.push((bound as f64 / 1e6, so_far - counted));
            counted = so_far;
        }
        let count = self.histogram.len();
        classes.push((f64::INFINITY, count - counted));
        Distribution { classes, sum: self.sum_us as f64 / 1e6, count }
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn percentiles(histogram: &Histogram<u64>) -> TimesMs {
    let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1000.0;
    TimesMs { p50: at(0.50), p95: at(0.95), p99: at(0.99) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_after_the_last_pair_takes_nothing_from_the_time_of_matching() {
        let progress = Progress::default();
        std::thread::sleep(Duration::from_millis(20));
        let none = Duration::ZERO;
        progress.count_matched(none, none, None);
        let time = progress.matching_time();
        assert!(time >= Duration::from_millis(20));
        progress.note_pause(Duration::from_secs(3600));
        assert_eq!(progress.matching_time(), time);
        progress.count_matched(none, none, None);
        assert_eq!(progress.matching_time(), none);
    }

    #[test]
    fn percentiles_of_known_latencies() {
        let progress = Progress::default();
        assert_eq!(progress.latency(), TimesMs::default());
        assert_eq!(progress.device_time(), None);
        for ms in 1..=100 {
            let engine = Duration::from_micros(100 * ms);
            let device = Some(Duration::from_micros(10 * ms));
            progress.count_matched(Duration::from_millis(ms), engine, device);
        }
        assert!((progress.engine_time().p50 - 5.0).abs() < 0.01);
        assert!((progress.device_time().unwrap().p50 - 0.5).abs() < 0.002);
        let latency = progress.latency();
        for (measured, expected) in [(latency.p50, 50.0), (latency.p95, 95.0), (latency.p99, 99.0)]
        {
            assert!((measured - expected).abs() < 0.1, "{measured} instead of {expected}");
        }
        let recent = RecentMs { newest: 100.0, p50: 51.0, p95: 96.0 };
        assert_eq!(progress.recent_latency(), Some(recent));
        assert_eq!(progress.matched.load(Ordering::Relaxed), 100);
        let within = progress.latency_within(&[10_000, 50_000]);
        assert_eq!(within.classes, [(0.01, 10), (0.05, 40), (f64::INFINITY, 50)]);
        assert_eq!(within.count, 100);
        assert!((within.sum - 5.05).abs() < 1e-9);
        let device = progress.device_time_within(&[500]).unwrap();
        assert_eq!(device.classes, [(0.0005, 50), (f64::INFINITY, 50)]);
    }
}
