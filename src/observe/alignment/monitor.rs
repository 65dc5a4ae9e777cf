//! Smooths the alignment over time and reports changes.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::recent::Recent;
use super::{Limits, Measurement, Verdict};
use stereod_io::text::rounded;

/// Number of measurements in the median, which removes single wrong ones.
const MEDIAN_OF: usize = 5;

/// Time constant of the average of these medians.
const SMOOTHING: Duration = Duration::from_secs(1);

/// Number of measurements in a row that confirm a verdict ...
const PERSISTENT: u32 = 3;

/// ... and a first verdict that is not good: a camera that has just started is often still
/// adjusting its exposure, and wandering rows take a while to detect.
const SETTLED: u32 = 8;

/// Time after which old measurements are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(10);

/// Growth of the row error since the last warning that is reported again.
const GROWN: f64 = 2.0;

/// Increase of the row error, in pixels, that means that the rig has moved.
const MOVED_PX: f64 = 0.5;

/// Follows the alignment of a pair of cameras.
#[derive(Clone, Debug, Default)]
pub struct Monitor {
    limits: Limits,
    recent: Recent,
    smoothed: Option<Measurement>,
    /// Weight of `smoothed`: its inverse variance.
    weight: f64,
    /// True if `smoothed` consists of reliable measurements.
    reliable: bool,
    /// Smallest row error with certain agreement of the rows, in pixels.
    agreed_px: Option<f64>,
    /// Range of the row error in pixels, if the rows wander at present.
    wander_px: Option<[f64; 2]>,
    /// Time of the last successful measurement.
    seen: Option<Duration>,
    state: State,
    /// Latest verdict, and the number of measurements in a row that led to it.
    pending: (Verdict, u32),
    /// Last reported verdict other than [`Verdict::Unsure`], and its row error.
    told: Option<(Verdict, f64)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    pub verdict: Verdict,
    /// Smoothed measurement; `None` before the first one.
    pub measurement: Option<Measurement>,
    /// Number of successful measurements so far.
    pub measured: u64,
    /// Row error when the first verdict was reached, in pixels.
    pub at_start_px: Option<f64>,
    /// Largest smoothed row error so far, in pixels.
    pub largest_px: f64,
    /// Range of the row error at the centre, in pixels, if the rows have wandered.
    pub wandered_px: Option<[f64; 2]>,
    /// Rotation of the right camera about x, y and z by which the run has refined its calibration, in degrees.
    pub refined_deg: Option<[f64; 3]>,
}

/// Alignment of the views for the report of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Summary {
    /// Verdict on it.
    pub verdict: Verdict,
    /// Number of successful measurements.
    pub measurements: u64,
    /// Root mean square of the row error over the image, in pixels, smoothed over time, at the end; none
    /// without a measurement.
    pub row_error_px: Option<f64>,
    /// Largest smoothed `row_error_px`.
    pub largest_row_error_px: Option<f64>,
    /// Smallest and largest `shift_px` if the rows have wandered.
    pub wandered_px: Option<[f64; 2]>,
    /// Rotation of the right camera about x (pitch), y (yaw) and z (roll), in degrees, by which the run has
    /// refined its calibration.
    pub refined_deg: Option<[f64; 3]>,
    /// Row error at the centre, in pixels; positive if the right image is lower.
    pub shift_px: Option<f64>,
    /// Roll of the right image relative to the left one, in degrees, clockwise.
    pub roll_deg: Option<f64>,
    /// Vertical scale of the right image relative to the left one.
    pub scale: Option<f64>,
    /// Root mean square of the rows' curvature over the image (keystone and lens distortion), in pixels.
    pub curvature_px: Option<f64>,
    /// Spread of the residual row errors, in pixels: 1.4826 times their median absolute value.
    pub spread_px: Option<f64>,
    /// Median disparity of the points found in both images, in pixels.
    pub median_disparity_px: Option<f64>,
}

impl State {
    pub fn summary(&self) -> Summary {
        let of = |digits: i32, figure: fn(&Measurement) -> f64| {
            self.measurement.as_ref().map(|seen| rounded(figure(seen), digits))
        };
        Summary {
            verdict: self.verdict.of_report(self.measurement.map(|seen| seen.row_error_px)),
            measurements: self.measured,
            row_error_px: of(3, |seen| seen.row_error_px),
            largest_row_error_px: self.measurement.map(|_| rounded(self.largest_px, 3)),
            wandered_px: self.wandered_px.map(|ends| ends.map(|end| rounded(end, 3))),
            refined_deg: self.refined_deg.map(|axes| axes.map(|angle| rounded(angle, 4))),
            shift_px: of(3, |seen| seen.shift_px),
            roll_deg: of(4, |seen| seen.roll_deg),
            scale: of(5, |seen| seen.scale),
            curvature_px: of(3, |seen| seen.curvature_px),
            spread_px: of(3, |seen| seen.spread_px),
            median_disparity_px: of(2, |seen| seen.disparity_px),
        }
    }

    /// Returns a short line and whether it is an alarm; `None` before the first measurement.
    pub fn line(&self) -> Option<(String, bool)> {
        let seen = self.measurement?;
        let (error, roll) = (seen.row_error_px, rounded(seen.roll_deg, 2));
        let mut line = format!("rows {error:.1} px  roll {roll:.2} deg");
        let verdict = self.verdict.of_report(Some(seen.row_error_px));
        if verdict != Verdict::Good {
            line += &format!("  {verdict}");
        }
        Some((line, self.verdict.is_alarm()))
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verdict)?;
        if let (Some(error), Some(roll), Some(scale)) =
            (self.row_error_px, self.roll_deg, self.scale)
        {
            let roll = rounded(roll, 2);
            write!(f, ", rows differ by {error:.2} px (roll {roll:.2} deg, scale {scale:.4})")?;
        }
        if let Some([low, high]) = self.wandered_px.map(|ends| ends.map(|end| rounded(end, 1))) {
            write!(f, ", and have wandered from {low:.1} to {high:.1} px")?;
        }
        if let Some([x, y, z]) = self.refined_deg.map(|axes| axes.map(|angle| rounded(angle, 2))) {
            write!(f, "; the right camera was turned by {x:+.2}, {y:+.2}, {z:+.2} degrees")?;
        }
        Ok(())
    }
}

/// Change of the verdict, or much worse values of the same one.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub verdict: Verdict,
    pub message: String,
}

impl Monitor {
    /// Creates a monitor without measurements.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    pub fn state(&self) -> State {
        self.state
    }

    /// Adds the measurement of a pair captured at `at`; `None` if it failed. Returns an event to
    /// report, if any.
    pub fn feed(&mut self, at: Duration, measurement: Option<Measurement>) -> Option<Event> {
        // After a reliable measurement, unreliable ones are ignored.
        match measurement.map(|seen| (seen, self.limits.can_rely_on(&seen))) {
            Some((seen, reliable)) if reliable || !self.reliable => {
                if reliable && !self.reliable {
                    self.forget();
                }
                self.reliable = reliable;
                self.smooth(at, seen);
            }
            _ => {
                let forgotten = |seen: Duration| at.saturating_sub(seen) > FORGOTTEN;
                if self.seen.is_some_and(forgotten) {
                    self.forget();
                } else if self.seen.is_some() {
                    // A few images without texture do not change the verdict.
                    return None;
                }
            }
        }
        let verdict = self.assess();
        let count = if self.pending.0 == verdict { self.pending.1 + 1 } else { 1 };
        self.pending = (verdict, count);
        if count < self.required_count(verdict) { None } else { self.conclude() }
    }

    /// Forces a verdict at the end of a run that was too short for one.
    pub fn finish(&mut self) -> Option<Event> {
        if self.told.is_some() { None } else { self.conclude() }
    }

    fn forget(&mut self) {
        self.recent.clear();
        self.smoothed = None;
        self.weight = 0.0;
        self.reliable = false;
    }

    fn assess(&mut self) -> Verdict {
        let smoothed = self.smoothed.filter(|_| self.reliable);
        self.wander_px = smoothed.and_then(|_| self.recent.wander(self.limits.warn_px));
        if self.wander_px.is_some() {
            return Verdict::Wandering;
        }
        let verdict = self.limits.assess(smoothed.as_ref(), self.state.verdict);
        if let (Verdict::Good, Some(seen)) = (verdict, smoothed)
            && seen.row_error_px + 2.0 * seen.uncertainty_px <= self.limits.warn_px
        {
            let least = self.agreed_px.map_or(seen.row_error_px, |px| px.min(seen.row_error_px));
            self.agreed_px = Some(least);
        }
        match verdict {
            // The rows agreed earlier in this run, so the rig has moved, however far.
            Verdict::NotRectified if self.agreed_px.is_some() => Verdict::RowsOff,
            verdict => verdict,
        }
    }

    /// Returns the number of measurements in a row that a verdict needs.
    fn required_count(&self, verdict: Verdict) -> u32 {
        let first = self.told.is_none() && verdict != Verdict::Good;
        if first { SETTLED } else { PERSISTENT }
    }

    /// Updates the average over time, weighted by inverse variance.
    fn smooth(&mut self, at: Duration, measurement: Measurement) {
        /// Lower limit of the error in pixels; no measurement is more exact.
        const FLOOR: f64 = 0.05;
        self.recent.push(measurement);
        let middle = self.middle(measurement);
        // Time may jump back if a stream restarts (a looping file).
        let passed = self.seen.map_or(Duration::MAX, |seen| at.abs_diff(seen));
        self.weight *= (-passed.as_secs_f64() / SMOOTHING.as_secs_f64()).exp();
        let own = middle.uncertainty_px.max(FLOOR).powi(-2);
        self.weight += own;
        let share = own / self.weight;
        let mut smoothed = match self.smoothed {
            Some(before) => {
                combine(&[before, middle], |[before, now]| before + share * (now - before))
            }
            None => middle,
        };
        smoothed.uncertainty_px = self.recent.uncertainty_px();
        self.smoothed = Some(smoothed);
        self.seen = Some(at);
        self.state.measurement = Some(smoothed);
        self.state.measured += 1;
        if self.reliable {
            self.state.largest_px = self.state.largest_px.max(smoothed.row_error_px);
        }
    }

    /// Returns the medians of the last measurements, value by value.
    fn middle(&self, newest: Measurement) -> Measurement {
        // Missing measurements are replaced by the newest one.
        let mut filled = [newest; MEDIAN_OF];
        for (place, measurement) in filled.iter_mut().zip(self.recent.newest(MEDIAN_OF)) {
            *place = *measurement;
        }
        combine(&filled, |mut values| {
            values.sort_unstable_by(f64::total_cmp);
            values[MEDIAN_OF / 2]
        })
    }

    fn conclude(&mut self) -> Option<Event> {
        let (verdict, count) = self.pending;
        if count == 0 {
            return None;
        }
        let due = self.required_count(verdict);
        let before = std::mem::replace(&mut self.state.verdict, verdict);
        let first = before != verdict || count == due && self.told.is_none();
        let error = self.smoothed.map_or(0.0, |smoothed| smoothed.row_error_px);
        if verdict == Verdict::Unsure {
            let message = self.limits.describe(verdict, None);
            return first.then_some(Event { verdict, message });
        }
        self.state.at_start_px.get_or_insert(error);
        // A much larger row error than reported is reported again.
        let size = match self.wander_px {
            Some([low, high]) => {
                let [lowest, highest] = self.state.wandered_px.unwrap_or([low, high]);
                let all = [lowest.min(low), highest.max(high)];
                self.state.wandered_px = Some(all);
                all[1] - all[0]
            }
            None => error,
        };
        let grows = verdict == Verdict::RowsOff;
        let again = match self.told {
            // The verdict is the one reported before the measurements failed.
            Some((told, at)) if told == verdict => grows && size > GROWN * at,
            _ => true,
        };
        if !again {
            return None;
        }
        let recovered = self.told.is_some_and(|(told, _)| told.is_alarm());
        self.told = Some((verdict, size));
        let message = self.describe(verdict);
        let message = match recovered {
            true => message.replacen("rows aligned", "rows aligned again", 1),
            false => message,
        };
        Some(Event { verdict, message })
    }

    /// Returns the warning that was reported and still holds, with the present figures.
    pub fn warning(&self) -> Option<String> {
        let (verdict, _) = self.told.filter(|(told, _)| told.is_alarm())?;
        Some(self.describe(verdict))
    }

    fn describe(&self, verdict: Verdict) -> String {
        let seen = self.state.measurement.as_ref();
        match (verdict, seen, self.agreed_px) {
            (Verdict::Wandering, ..) => {
                self.limits.describe_wander(self.state.wandered_px.unwrap_or_default())
            }
            (Verdict::RowsOff, Some(seen), Some(agreed))
                if seen.row_error_px - 2.0 * seen.uncertainty_px > agreed + MOVED_PX =>
            {
                self.limits.describe_bump(seen, agreed)
            }
            _ => self.limits.describe(verdict, seen),
        }
    }
}

/// Combines several measurements value by value.
fn combine<const N: usize>(all: &[Measurement; N], into: impl Fn([f64; N]) -> f64) -> Measurement {
    let of = |figure: fn(&Measurement) -> f64| into(all.each_ref().map(figure));
    Measurement {
        width: all[N - 1].width,
        matches: of(|m| m.matches as f64).round() as usize,
        consistent: of(|m| m.consistent as f64).round() as usize,
        row_error_px: of(|m| m.row_error_px),
        uncertainty_px: of(|m| m.uncertainty_px),
        shift_px: of(|m| m.shift_px),
        roll_deg: of(|m| m.roll_deg),
        scale: of(|m| m.scale),
        curvature_px: of(|m| m.curvature_px),
        curvature_uncertainty_px: of(|m| m.curvature_uncertainty_px),
        median_px: of(|m| m.median_px),
        spread_px: of(|m| m.spread_px),
        disparity_px: of(|m| m.disparity_px),
        below_range: of(|m| m.below_range),
    }
}

#[cfg(test)]
mod tests;
