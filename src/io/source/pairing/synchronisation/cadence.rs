//! One camera's frame period, phase and jitter.

use std::collections::VecDeque;
use std::time::Duration;

/// Number of frames in the estimate. With a jitter of 1 ms, 512 frames give a period of 33 ms to
/// about 10 millionths: sigma * sqrt(12 / n^3), the error of a line's slope.
const WINDOW: usize = 512;

const FEWEST: usize = 16;

/// Share of the period below which a frame is early.
const EARLY: f64 = 0.75;

/// Jitter, as a share of the period, above which a camera keeps no beat.
const UNEVEN: f64 = 0.15;

#[derive(Clone, Debug, Default)]
pub struct Cadence {
    /// Number (missing frames counted) and time in seconds.
    frames: VecDeque<(f64, f64)>,
    /// Period for counting missing frames.
    step: Option<f64>,
    /// Number of frames in a row that came after a gap, or much too early.
    odd: usize,
}

/// Line fit of a camera's recent frame times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Seconds from frame to frame.
    pub period: f64,
    /// When the last frame was due, in seconds.
    pub last: f64,
    /// Root mean square of the frames' distance from the beat, in seconds.
    pub jitter: f64,
    /// Standard error of the period for independent distances, in seconds.
    pub error: f64,
    /// Share of the beats that have a frame.
    pub share: f64,
}

impl Fit {
    /// Reports whether the frames keep an even beat. An overloaded machine or bus loses frames by the dozen, and a network
    /// delivers them in bursts, between which most beats lack a frame.
    pub fn is_steady(&self) -> bool {
        self.jitter < UNEVEN * self.period && self.share > 0.5
    }
}

impl Cadence {
    /// Adds the time of the next frame; one that is not later than the last is left out.
    pub fn push(&mut self, time: Duration) {
        let time = time.as_secs_f64();
        let Some(&(number, last)) = self.frames.back() else {
            self.frames.push_back((0.0, time));
            return;
        };
        if time <= last {
            return;
        }
        let exact = self.step.map_or(1.0, |step| (time - last) / step);
        let steps = exact.round().max(1.0);
        self.odd = if (EARLY..1.5).contains(&exact) { 0 } else { self.odd + 1 };
        if self.odd >= FEWEST {
            // The rate has changed (a camera in the dark, for example); no frames are missing.
            *self = Self::default();
            self.frames.push_back((0.0, time));
            return;
        }
        self.frames.push_back((number + steps, time));
        if self.frames.len() > WINDOW {
            self.frames.pop_front();
        }
        if self.step.is_none() && self.frames.len() >= FEWEST {
            self.count_gaps();
        }
    }

    fn count_gaps(&mut self) {
        let times: Vec<f64> = self.frames.iter().map(|&(_, time)| time).collect();
        let mut steps: Vec<f64> = times.windows(2).map(|two| two[1] - two[0]).collect();
        steps.sort_unstable_by(f64::total_cmp);
        let step = steps[steps.len() / 2];
        let mut number = 0.0;
        for i in 1..times.len() {
            number += ((times[i] - times[i - 1]) / step).round().max(1.0);
            self.frames[i].0 = number;
        }
        self.step = Some(step);
    }

    /// Fits a line of least squares through the recent frames; `None` if they are too few.
    pub fn fit(&self) -> Option<Fit> {
        self.step?;
        let count = self.frames.len() as f64;
        let (mut number, mut time) = (0.0, 0.0);
        for (n, t) in &self.frames {
            number += n / count;
            time += t / count;
        }
        let (mut nn, mut nt) = (0.0, 0.0);
        for (n, t) in &self.frames {
            nn += (n - number) * (n - number);
            nt += (n - number) * (t - time);
        }
        let period = nt / nn;
        let due = |n: f64| time + (n - number) * period;
        let squares: f64 = self.frames.iter().map(|&(n, t)| (t - due(n)).powi(2)).sum();
        let &(last, _) = self.frames.back()?;
        let jitter = (squares / count).sqrt();
        let error = jitter / nn.sqrt();
        let share = count / (last - self.frames.front()?.0 + 1.0);
        (period > 0.0).then(|| Fit { period, last: due(last), jitter, error, share })
    }
}
