//! Figures of the maps for statistics and metrics.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;

use super::Observer;
use crate::followed::Followed;
use stereod_core::frame::{INVALID, Matched};
use stereod_core::matching::verdict;
use stereod_core::thread::locked;

/// Step of the rows that are sampled for the share of valid pixels.
const ROW_STEP: usize = 16;

#[derive(Clone, Debug)]
pub struct Classes {
    bounds_us: &'static [u64],
    counts: Vec<u64>,
    sum: Duration,
}

impl Classes {
    fn new(bounds_us: &'static [u64]) -> Self {
        Self { bounds_us, counts: vec![0; bounds_us.len() + 1], sum: Duration::ZERO }
    }

    fn count(&mut self, time: Duration) {
        let us = time.as_nanos().div_ceil(1000) as u64;
        self.counts[self.bounds_us.partition_point(|&bound| bound < us)] += 1;
        self.sum += time;
    }

    /// Returns the longest time of each class in seconds (infinity for the last), with its count.
    pub fn counts(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let bounds = self.bounds_us.iter().map(|&us| us as f64 / 1e6);
        bounds.chain([f64::INFINITY]).zip(self.counts.iter().copied())
    }

    pub fn sum(&self) -> Duration {
        self.sum
    }
}

#[derive(Clone, Debug)]
pub struct MapMetrics {
    pub engine: Classes,
    /// Time between the two frames of a pair, where it is known.
    pub skew: Classes,
    /// Share of the sampled pixels of the last map that have a disparity.
    pub valid_share: Option<f64>,
    /// Sum of that share over all maps, and their number.
    valid_shares: (f64, u32),
    /// Verdicts on the last map of a network.
    pub verdicts: Option<Shares>,
    /// Numbers of all verdicts.
    counts: [u64; 5],
    /// Odometry, if the run follows the motion.
    pub odometry: Option<Followed>,
}

impl MapMetrics {
    /// Figures with classes up to these times in microseconds.
    pub fn new(engine_us: &'static [u64], skew_us: &'static [u64]) -> Self {
        let (engine, skew) = (Classes::new(engine_us), Classes::new(skew_us));
        Self {
            engine,
            skew,
            valid_share: None,
            valid_shares: (0.0, 0),
            verdicts: None,
            counts: [0; 5],
            odometry: None,
        }
    }

    /// Returns the shares of the verdicts on all maps; `None` without any.
    pub fn all_verdicts(&self) -> Option<Shares> {
        self.verdicts.map(|_| Shares::of_counts(self.counts))
    }

    /// Returns the mean share of the sampled pixels that have a disparity; `None` before the first map.
    pub fn mean_valid_share(&self) -> Option<f64> {
        let (sum, maps) = self.valid_shares;
        (maps > 0).then(|| sum / f64::from(maps))
    }
}

/// Shares of the verdicts on a network, in percent of the pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Shares {
    /// The network and matching say the same.
    pub agree: f64,
    /// Matching knows nothing, or is not sure.
    pub only_network: f64,
    /// The network knows nothing.
    pub only_sgm: f64,
    /// Matching is sure of another disparity.
    pub contradict: f64,
    /// Neither knows it.
    pub unknown: f64,
}

impl Shares {
    pub fn of(verdicts: &[u8]) -> Self {
        Self::of_counts(verdict::counts(verdicts))
    }

    fn of_counts(counts: [u64; 5]) -> Self {
        let all = counts.iter().sum::<u64>().max(1) as f64;
        let [unknown, agree, only_network, only_sgm, contradict] =
            counts.map(|count| (1e4 * count as f64 / all).round() / 100.0);
        Self { agree, only_network, only_sgm, contradict, unknown }
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agree, only_network, only_sgm, contradict, unknown } = self;
        write!(
            f,
            "network and matching: {agree:.1} % agree, {only_network:.1} % only network, {only_sgm:.1} % only matching, \
             {contradict:.1} % contradict, {unknown:.1} % unknown"
        )
    }
}

pub type Shared = Arc<Mutex<MapMetrics>>;

impl Observer for Shared {
    fn observe(&mut self, frame: &Matched) {
        let share = valid_share(frame);
        let mut metrics = locked(self);
        metrics.valid_share = Some(share);
        metrics.valid_shares.0 += share;
        metrics.valid_shares.1 += 1;
        metrics.engine.count(frame.engine_time());
        if let Some(verdicts) = &frame.verdicts {
            let counts = verdict::counts(verdicts.pixels());
            metrics.verdicts = Some(Shares::of_counts(counts));
            metrics.counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        if let Some(odometry) = frame.odometry.as_deref() {
            metrics.odometry = Some(Followed::with(metrics.odometry, *odometry));
        }
        if let Some(skew_ns) = frame.pair.skew_ns {
            metrics.skew.count(Duration::from_nanos(skew_ns.unsigned_abs()));
        }
    }
}

/// Returns the share of the sampled pixels that have a disparity.
pub(super) fn valid_share(frame: &Matched) -> f64 {
    let map = &frame.disparity;
    let (mut valid, mut all) = (0, 0);
    let rows = map.values().chunks_exact(map.width());
    // From the middle of the first step, so that low maps are sampled, too.
    for row in rows.skip((ROW_STEP / 2).min(map.height() / 2)).step_by(ROW_STEP) {
        valid += row.iter().filter(|&&value| value != INVALID).count();
        all += row.len();
    }
    valid as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_core::frame::{DisparityMap, DisparityRange, Image, StereoPair};
    use stereod_core::pool::Pooled;

    fn matched(skew_ns: Option<i64>, values: Vec<i16>, engine: Duration) -> Matched {
        let (width, height) = (4, values.len() / 4);
        let eye = || Image::from_fn(width, height, |_, _| 0);
        let pair = StereoPair { skew_ns, ..StereoPair::of_stills(eye(), eye()) };
        let range = DisparityRange { min: 0, count: 64 };
        let disparity = DisparityMap::new(width, height, range, Pooled::unpooled(values));
        let matched = Matched::new(pair, disparity);
        Matched { finished: matched.submitted + engine, ..matched }
    }

    #[test]
    fn times_fall_into_their_classes() {
        let mut metrics = Shared::new(MapMetrics::new(&[1000, 2000], &[100, 5000]).into());
        let map = || vec![16, INVALID, 16, 16];
        assert_eq!(metrics.lock().unwrap().mean_valid_share(), None);
        for (skew_ns, us) in [(0, 1000), (-100_001, 1001), (6_000_000, 9000)] {
            metrics.observe(&matched(Some(skew_ns), map(), Duration::from_micros(us)));
        }
        metrics.observe(&matched(Some(0), vec![INVALID; 4], Duration::from_millis(1)));
        assert_eq!(metrics.lock().unwrap().mean_valid_share(), Some(0.5625));
        metrics.observe(&matched(None, map(), Duration::from_millis(1)));
        let metrics = metrics.lock().unwrap().clone();
        let counts = |classes: &Classes| classes.counts().map(|(_, n)| n).collect::<Vec<_>>();
        assert_eq!(counts(&metrics.engine), [3, 1, 1]);
        assert_eq!(counts(&metrics.skew), [2, 1, 1]);
        assert_eq!(metrics.skew.sum(), Duration::from_nanos(6_100_001));
        assert_eq!(metrics.valid_share, Some(0.75));
        assert_eq!(metrics.skew.counts().last().unwrap().0, f64::INFINITY);
    }

    #[test]
    fn the_share_is_that_of_the_rows_looked_at() {
        let rows = |y: usize| if y < 16 { [INVALID; 4] } else { [3; 4] };
        let values: Vec<i16> = (0..64).flat_map(rows).collect();
        assert_eq!(valid_share(&matched(None, values, Duration::ZERO)), 0.75);
    }
}
