//! Synchronisation of two cameras: each one's period, jitter and clock, their phase, how
//! their difference wanders, and whether that is worth a warning.
//!
//! [`Synchronisation`] is pure: it knows the capture times that it is told, and no clock.

mod cadence;
pub mod offset;
mod remarks;

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::frame::Eye;
pub use cadence::{Cadence, Fit};
pub use remarks::Remark;
use remarks::{RemarkState, phase};

/// Longest difference that is told apart from longer ones: ten minutes, in microseconds.
const LONGEST_US: u64 = 600_000_000;

/// Synchronisation of two cameras, known from the times of their frames.
#[derive(Debug)]
pub struct Synchronisation {
    cadences: [Cadence; 2],
    /// Periods that the cameras claim.
    nominal: [Option<f64>; 2],
    /// Absolute differences of pairs in microseconds.
    differences: Histogram<u64>,
    /// Sum of the differences, right minus left, in nanoseconds.
    sum_ns: i128,
    right_later: u64,
    remarks: RemarkState,
}

/// The differences between the capture times of pairs, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Differences {
    /// For half of the pairs at most this, whichever eye is later.
    pub p50: f64,
    /// For 95 of 100 pairs at most this.
    pub p95: f64,
    /// For every pair at most this.
    pub max: f64,
    /// The mean; above 0 where the right view is later.
    pub mean: f64,
    /// Share of the pairs whose right view is later, 0 to 1.
    pub right_later: f64,
}

/// One camera's clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Clock {
    /// Frames a second, by the host's clock.
    pub rate_hz: f64,
    /// Error of the rate that it claims, in millionths, above 0 where it is faster; `None` where it
    /// claims nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_ppm: Option<f64>,
    /// Root mean square of the frames' distance from an even beat, in milliseconds.
    pub jitter_ms: f64,
}

/// Summary of how two cameras run against each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The differences of all pairs; `None` before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference_ms: Option<Differences>,
    /// The left camera's clock, as it last was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Clock>,
    /// The right camera's clock, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<Clock>,
    /// Delay of the right camera's frames after the nearest of the left one's, in milliseconds,
    /// within half a period; of cameras of one rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase_ms: Option<f64>,
    /// Growth of that, in microseconds a second: the right camera's clock is so many millionths
    /// slower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift_ppm: Option<f64>,
}

impl Default for Synchronisation {
    fn default() -> Self {
        Self {
            cadences: Default::default(),
            nominal: [None; 2],
            // Three significant digits, and a memory that does not depend on the length of the run.
            differences: Histogram::new_with_bounds(1, LONGEST_US, 3).expect("valid bounds"),
            sum_ns: 0,
            right_later: 0,
            remarks: RemarkState::default(),
        }
    }
}

impl Synchronisation {
    /// Notes what the cameras claim to send, in frames a second.
    pub fn claim(&mut self, left: Option<f64>, right: Option<f64>) {
        self.nominal = [left, right].map(|rate| rate.map(|rate| 1.0 / rate));
    }

    /// Notes a frame of `eye` that was captured at `time`.
    pub fn note_frame(&mut self, eye: Eye, time: Duration) {
        self.cadences[eye.index()].push(time);
        self.remarks.note_frame(eye, time);
    }

    /// Notes a pair whose right frame was captured `skew_ns` after the left one.
    pub fn note_pair(&mut self, skew_ns: i64) {
        self.differences.saturating_record(skew_ns.unsigned_abs() / 1000);
        self.sum_ns += i128::from(skew_ns);
        self.right_later += u64::from(skew_ns > 0);
        self.remarks.note_pair(skew_ns);
    }

    /// Notes that `eye` was lost: its clock may be another one when it is back.
    pub fn note_lost(&mut self, eye: Eye) {
        self.cadences[eye.index()] = Cadence::default();
        self.remarks.restart();
    }

    /// Remark on what is new, where pairs may be up to `tolerance` apart.
    pub fn remark(&mut self, tolerance: Duration) -> Option<Remark> {
        if !self.remarks.is_due() {
            return None;
        }
        let (left, right) = (self.cadences[0].fit()?, self.cadences[1].fit()?);
        self.remarks.remark(&left, &right, tolerance)
    }

    /// Trouble of the last few seconds, in a few words; `None` where nothing was. Unlike
    /// [`Synchronisation::remark`] it is there for as long as the trouble is.
    pub fn trouble(&self) -> Option<&str> {
        self.remarks.trouble()
    }

    /// Everything so far; `None` where nothing was noted of both views.
    pub fn summary(&self) -> Option<Summary> {
        let fits = [self.cadences[0].fit(), self.cadences[1].fit()];
        let phase = match &fits {
            [Some(left), Some(right)] => phase(left, right),
            _ => None,
        };
        let clock = |eye: usize| {
            let Fit { period, jitter, .. } = fits[eye]?;
            let error = self.nominal[eye].map(|nominal| (nominal / period - 1.0) * 1e6);
            Some(Clock {
                rate_hz: round_to(1.0 / period, 1e4),
                error_ppm: error.map(|error| round_to(error, 10.0)),
                jitter_ms: round_to(jitter * 1e3, 1e3),
            })
        };
        let summary = Summary {
            difference_ms: self.differences(),
            left: clock(0),
            right: clock(1),
            phase_ms: phase.map(|(phase, _)| round_to(phase * 1e3, 1e3)),
            drift_ppm: phase.map(|(_, drift)| round_to(drift * 1e6, 10.0)),
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
            mean: round_to(self.sum_ns as f64 / pairs as f64 / 1e6, 1e3),
            right_later: round_to(self.right_later as f64 / pairs as f64, 1e3),
        })
    }
}

/// `value` to one part in `unit`.
fn round_to(value: f64, unit: f64) -> f64 {
    (value * unit).round() / unit
}

#[cfg(test)]
mod tests;
