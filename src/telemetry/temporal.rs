//! Figures of the spatio-temporal stage: motion of the rig, noise before and after, and moving
//! pixels.

use std::fmt;

use serde::Serialize;

use stereod_core::frame::TemporalReport;
use stereod_io::text::rounded;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TemporalAccount {
    pairs: u64,
    /// Pairs with a known shift to the previous one, and the squares of the shifts in pixels.
    registered: u64,
    squares: f64,
    /// Pairs with a background, and the variances of their noise before and after.
    predicted: u64,
    variances: [f64; 2],
    moving: f64,
    newest: Option<[f32; 2]>,
}

/// Figures of a run.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TemporalSummary {
    /// Pairs that went through the stage.
    pub pairs: u64,
    /// Pairs with a known shift to the previous one.
    pub registered: u64,
    /// Root mean square of these shifts in pixels; none without such a pair.
    pub shift_px: Option<f64>,
    /// Shift of the last pair against the one before, to the right and down; none if unknown.
    pub newest_shift_px: Option<[f32; 2]>,
    /// Standard deviation of the noise in grey levels, of the raw images; none if no pair had
    /// earlier ones.
    pub noise: Option<f64>,
    /// Standard deviation of the noise in grey levels, after the stage.
    pub noise_left: Option<f64>,
    /// Percentage of moving pixels.
    pub moving: f64,
}

impl TemporalAccount {
    pub fn add(&mut self, report: &TemporalReport) {
        self.pairs += 1;
        self.moving += f64::from(report.moving);
        self.newest = report.shift;
        if let Some(shift) = report.shift {
            self.registered += 1;
            self.squares += shift.map(|by| f64::from(by) * f64::from(by)).iter().sum::<f64>();
        }
        if let Some(noise) = report.noise {
            self.predicted += 1;
            for (sum, sigma) in self.variances.iter_mut().zip(noise) {
                *sum += f64::from(sigma) * f64::from(sigma);
            }
        }
    }

    /// Returns the figures; `None` if no pair went through the stage.
    pub fn summary(&self) -> Option<TemporalSummary> {
        let mean = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        let root = |sum, count| mean(sum, count).map(|mean| rounded(mean.sqrt(), 3));
        Some(TemporalSummary {
            pairs: self.pairs,
            registered: self.registered,
            shift_px: root(self.squares, self.registered),
            newest_shift_px: self.newest,
            noise: root(self.variances[0], self.predicted),
            noise_left: root(self.variances[1], self.predicted),
            moving: rounded(100.0 * mean(self.moving, self.pairs)?, 3),
        })
    }
}

impl fmt::Display for TemporalSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(before), Some(after)) = (self.noise, self.noise_left) {
            write!(f, "noise {before:.1}, {after:.1} left, ")?;
        }
        match self.shift_px {
            Some(shift) => write!(f, "{shift:.2} px from pair to pair, ")?,
            None => write!(f, "shifts unknown, ")?,
        }
        write!(f, "{:.1} % of the pixels move", self.moving)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_summed_by_what_they_know() {
        let mut account = TemporalAccount::default();
        assert_eq!(account.summary(), None);
        let first = TemporalReport { remembered: 1, shift: None, noise: None, moving: 0.0 };
        account.add(&first);
        assert_eq!(account.summary().unwrap().shift_px, None);
        let next = |shift, noise, moving| TemporalReport { remembered: 2, shift, noise, moving };
        account.add(&next(Some([3.0, -4.0]), Some([5.0, 1.0]), 0.25));
        account.add(&next(None, Some([5.0, 3.0]), 0.05));
        // Root of 25; root of (1 + 9) / 2; (0 + 25 + 5) / 3 percent.
        let summary = account.summary().unwrap();
        let expected = TemporalSummary {
            pairs: 3,
            registered: 1,
            shift_px: Some(5.0),
            newest_shift_px: None,
            noise: Some(5.0),
            noise_left: Some(2.236),
            moving: 10.0,
        };
        assert_eq!(summary, expected);
        let told = "noise 5.0, 2.2 left, 5.00 px from pair to pair, 10.0 % of the pixels move";
        assert_eq!(summary.to_string(), told);
    }
}
