//! Synchronisation of two cameras: period, jitter and clock of each, their phase and drift, and
//! warnings about them.
//!
//! [`Synchronisation`] is pure: it uses the capture times passed to it, and no clock.

mod cadence;
pub mod offset;
mod remarks;

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

pub use cadence::{Cadence, Fit};
pub use remarks::Remark;
use remarks::{RemarkState, phase};

use super::sender_clocks;
use crate::text::rounded;
use stereod_core::frame::Eye;

/// Longest recorded difference: ten minutes, in microseconds.
const LONGEST_US: u64 = 600_000_000;

#[derive(Debug)]
pub struct Synchronisation {
    cadences: [Cadence; 2],
    /// The senders' clock by which pairs are made, and how many nanoseconds longer right frames take to arrive.
    sender: Option<(sender_clocks::Clock, i64)>,
    /// Stated periods of the cameras, in seconds.
    nominal: [Option<f64>; 2],
    /// Absolute differences of pairs in microseconds.
    differences: Histogram<u64>,
    /// Sum of the differences, right minus left, in nanoseconds.
    sum_ns: i128,
    right_later: u64,
    /// True if times are those of arrival, so that the time between the views is not known.
    by_arrival: bool,
    remarks: RemarkState,
}

/// Differences between the capture times of pairs, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Differences {
    /// Median of the absolute differences.
    pub p50: f64,
    /// 95th percentile of the absolute differences.
    pub p95: f64,
    /// Largest absolute difference.
    pub max: f64,
    /// Mean; positive if the right view is later.
    pub mean: f64,
    /// Share of pairs whose right frame is later, 0 to 1.
    pub right_later: f64,
}

/// One camera's clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Clock {
    /// Frames per second, by the host's clock.
    pub rate_hz: f64,
    /// Error of the stated rate in millionths, positive if the camera is faster; none without a stated rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_ppm: Option<f64>,
    /// Root mean square deviation of the frames from an even beat, in milliseconds.
    pub jitter_ms: f64,
}

/// Summary of the synchronisation of two cameras.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Summary {
    /// Time between the two frames, over all pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference_ms: Option<Differences>,
    /// Kind of the cameras' own clocks, if pairs are made by these: NTP, PTP or Unix time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_clock: Option<&'static str>,
    /// Time that right frames take longer to arrive than left ones by the cameras' own clocks, in
    /// milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrival_ms: Option<f64>,
    /// Latest state of the left camera's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Clock>,
    /// Latest state of the right camera's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<Clock>,
    /// Delay of the right camera's frames after the nearest left ones, in milliseconds, within half
    /// a period; only for cameras of equal rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase_ms: Option<f64>,
    /// Growth of the delay in microseconds a second: the right camera's clock is slower by this
    /// many millionths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift_ppm: Option<f64>,
}

impl Default for Synchronisation {
    fn default() -> Self {
        Self {
            cadences: Default::default(),
            sender: None,
            nominal: [None; 2],
            // Three significant digits; the memory does not depend on the length of the run.
            differences: Histogram::new_with_bounds(1, LONGEST_US, 3).expect("valid bounds"),
            sum_ns: 0,
            right_later: 0,
            by_arrival: false,
            remarks: RemarkState::default(),
        }
    }
}

impl Synchronisation {
    /// Notes the stated rates of the cameras, in frames per second.
    pub fn claim(&mut self, left: Option<f64>, right: Option<f64>) {
        self.nominal = [left, right].map(|rate| rate.map(|rate| 1.0 / rate));
    }

    /// Notes that times are those of arrival.
    pub fn note_by_arrival(&mut self) {
        self.by_arrival = true;
    }

    /// Restarts with another clock of the frames' times: differences by two clocks have no common statistics.
    pub fn change_clock(&mut self) {
        *self = Self { nominal: self.nominal, ..Self::default() };
    }

    /// Notes the senders' clock by which pairs are made, and how many nanoseconds longer right frames take to
    /// arrive; `None`: pairs are made by the host's clock.
    pub fn note_sender(&mut self, sender: Option<(sender_clocks::Clock, i64)>) {
        self.sender = sender;
    }

    pub fn note_frame(&mut self, eye: Eye, time: Duration) {
        self.cadences[eye.index()].push(time);
        self.remarks.note_frame(eye, time);
    }

    /// Notes a pair with a right frame `skew_ns` later than the left one, if known.
    pub fn note_pair(&mut self, skew_ns: Option<i64>) {
        self.remarks.note_pair(skew_ns);
        let Some(skew_ns) = skew_ns else { return };
        self.differences.saturating_record(skew_ns.unsigned_abs() / 1000);
        self.sum_ns += i128::from(skew_ns);
        self.right_later += u64::from(skew_ns > 0);
    }

    /// Notes that `eye` was lost. Its clock may differ when it returns.
    pub fn note_lost(&mut self, eye: Eye) {
        self.cadences[eye.index()] = Cadence::default();
        self.remarks.restart();
    }

    /// Returns a new remark, if any, for pairs that may be up to `tolerance` apart.
    pub fn remark(&mut self, tolerance: Duration) -> Option<Remark> {
        if !self.remarks.is_due() {
            return None;
        }
        let (left, right) = (self.cadences[0].fit()?, self.cadences[1].fit()?);
        self.remarks.remark([&left, &right], tolerance, self.by_arrival)
    }

    /// Returns the trouble of the last few seconds in a few words. Unlike
    /// [`Synchronisation::remark`] it is repeated as long as the trouble lasts.
    pub fn trouble(&self) -> Option<&str> {
        self.remarks.trouble()
    }

    /// Returns the summary so far; `None` before both views were noted, and by arrival.
    pub fn summary(&self) -> Option<Summary> {
        if self.by_arrival {
            return None;
        }
        let fits = [self.cadences[0].fit(), self.cadences[1].fit()];
        let phase = match &fits {
            [Some(left), Some(right)] => phase(left, right),
            _ => None,
        };
        let clock = |eye: usize| {
            let Fit { period, jitter, .. } = fits[eye]?;
            let error = self.nominal[eye].map(|nominal| (nominal / period - 1.0) * 1e6);
            Some(Clock {
                rate_hz: rounded(1.0 / period, 4),
                error_ppm: error.map(|error| rounded(error, 1)),
                jitter_ms: rounded(jitter * 1e3, 3),
            })
        };
        let summary = Summary {
            difference_ms: self.differences(),
            sender_clock: self.sender.map(|(clock, _)| clock.name()),
            arrival_ms: self.sender.map(|(_, ns)| rounded(ns as f64 * 1e-6, 3)),
            left: clock(0),
            right: clock(1),
            phase_ms: phase.map(|(phase, _)| rounded(phase * 1e3, 3)),
            drift_ppm: phase.map(|(_, drift)| rounded(drift * 1e6, 1)),
        };
        let empty = summary.difference_ms.is_none() && fits.iter().any(Option::is_none);
        (!empty).then_some(summary)
    }

    fn differences(&self) -> Option<Differences> {
        let pairs = self.differences.len();
        let at = |quantile| self.differences.value_at_quantile(quantile) as f64 / 1e3;
        (pairs > 0).then(|| Differences {
            p50: at(0.5),
            p95: at(0.95),
            max: self.differences.max() as f64 / 1e3,
            mean: rounded(self.sum_ns as f64 / pairs as f64 / 1e6, 3),
            right_later: rounded(self.right_later as f64 / pairs as f64, 3),
        })
    }
}

#[cfg(test)]
mod tests;
