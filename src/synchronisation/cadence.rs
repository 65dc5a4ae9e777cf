//! One camera's beat: its period, where it stands, and how evenly its frames come.

use std::collections::VecDeque;
use std::time::Duration;

/// Frames that the estimate rests on. With a jitter of 1 ms, 512 frames give a period of 33 ms to
/// about 10 millionths: sigma * sqrt(12 / n^3), the error of a line's slope.
const WINDOW: usize = 512;

/// Frames before there is an estimate.
const FEWEST: usize = 16;

/// Frames that come sooner than this share of the period are early.
const EARLY: f64 = 0.75;

/// Frames that stray from the beat by more than this share of the period keep none.
const UNEVEN: f64 = 0.15;

/// A camera's recent frames.
#[derive(Clone, Debug, Default)]
pub struct Cadence {
    /// Number (missing frames counted) and time in seconds.
    frames: VecDeque<(f64, f64)>,
    /// The period that missing frames are told by.
    step: Option<f64>,
    /// Number of frames in a row that came after a gap, or much too early.
    odd: usize,
}

/// An even beat through a camera's recent frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Seconds from frame to frame.
    pub period: f64,
    /// When the last frame was due, in seconds.
    pub last: f64,
    /// Root mean square of the frames' distance from the beat, in seconds.
    pub jitter: f64,
}

impl Fit {
    /// Reports whether the frames keep the beat, so that it says anything: an overloaded machine or
    /// bus loses frames by the dozen.
    pub fn is_steady(&self) -> bool {
        self.jitter < UNEVEN * self.period
    }
}

impl Cadence {
    /// Takes the time of the next frame; one that does not come after the last is left out.
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
            // Not frames that are missing, but another rate (a camera in the dark, say).
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

    /// Learns the period from the first frames, and numbers them by it.
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

    /// The line of least squares through the recent frames; `None` where they are too few.
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
        (period > 0.0).then(|| Fit { period, last: due(last), jitter })
    }
}
