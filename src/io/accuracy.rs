//! Accuracy of the disparity if the truth is known.
//!
//! The figures are those of Scharstein and Szeliski (IJCV 2002, section 5.1): the percentage of pixels whose
//! disparity is wrong by more than a threshold, among the pixels visible in both views.

use serde::Serialize;

use stereod_core::frame::{DisparityMap, INVALID, SUBPIXEL, Truth};

/// Errors in pixels above which a disparity is bad.
const THRESHOLDS: [f32; 3] = [0.5, 1.0, 2.0];

/// Sums of the errors of any number of frames.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accuracy {
    frames: u64,
    visible: u64,
    valid: u64,
    /// Those that are wrong by more than each threshold.
    bad: [u64; THRESHOLDS.len()],
    /// Absolute errors of the valid ones in pixels.
    error: f64,
}

/// The errors over all frames; shares are in percent of the pixels visible in both views, unless
/// stated otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct AccuracySummary {
    /// Frames that were compared with their truth.
    pub frames: u64,
    /// Pixels that have a disparity.
    pub density: f64,
    /// Pixels that are wrong by more than half a pixel, or have no disparity.
    pub bad_0_5: f64,
    /// Pixels that are wrong by more than 1 pixel, or have no disparity.
    pub bad_1: f64,
    /// Pixels that are wrong by more than 2 pixels, or have no disparity.
    pub bad_2: f64,
    /// Pixels that are wrong by more than half a pixel, in percent of those with a disparity;
    /// none without such pixels.
    pub bad_0_5_of_valid: Option<f64>,
    /// Pixels that are wrong by more than 1 pixel, in percent of those with a disparity.
    pub bad_1_of_valid: Option<f64>,
    /// Pixels that are wrong by more than 2 pixels, in percent of those with a disparity.
    pub bad_2_of_valid: Option<f64>,
    /// Mean absolute error in pixels of those with a disparity; none without such pixels.
    pub mean_error_px: Option<f64>,
}

impl Accuracy {
    /// Compares one more map with its truth, which must have the same size.
    pub fn add(&mut self, map: &DisparityMap, truth: &Truth) {
        let values = map.values();
        assert_eq!(values.len(), truth.disparity.len(), "pixels of the map and of the truth");
        assert_eq!(values.len(), truth.visible.len(), "pixels of the map and of the visibility");
        self.frames += 1;
        let width = map.width();
        let rows = values
            .chunks_exact(width)
            .zip(truth.disparity.chunks_exact(width))
            .zip(truth.visible.chunks_exact(width));
        for ((values, disparities), visibles) in rows {
            // Counts of a row fit 32 bits, which the compiler turns into vector code.
            let (mut visible_count, mut valid_count) = (0u32, 0u32);
            let mut bad = [0u32; THRESHOLDS.len()];
            let mut error_sum = 0.0;
            for ((&value, &disparity), &visible) in values.iter().zip(disparities).zip(visibles) {
                let valid = visible & (value != INVALID);
                let error = (f32::from(value) * (1.0 / SUBPIXEL as f32) - disparity).abs();
                let error = if valid { error } else { 0.0 };
                visible_count += u32::from(visible);
                valid_count += u32::from(valid);
                for (count, threshold) in bad.iter_mut().zip(THRESHOLDS) {
                    *count += u32::from(error > threshold);
                }
                error_sum += f64::from(error);
            }
            self.visible += u64::from(visible_count);
            self.valid += u64::from(valid_count);
            for (total, count) in self.bad.iter_mut().zip(bad) {
                *total += u64::from(count);
            }
            self.error += error_sum;
        }
    }

    /// Returns the errors over all frames so far; `None` while no pixel has been compared.
    pub fn summary(&self) -> Option<AccuracySummary> {
        if self.visible == 0 {
            return None;
        }
        let percent = |part: u64, of: u64| 100.0 * part as f64 / of as f64;
        let missing = self.visible - self.valid;
        let bad = self.bad.map(|bad| percent(bad + missing, self.visible));
        let bad_of_valid = self.bad.map(|bad| (self.valid > 0).then(|| percent(bad, self.valid)));
        Some(AccuracySummary {
            frames: self.frames,
            density: percent(self.valid, self.visible),
            bad_0_5: bad[0],
            bad_1: bad[1],
            bad_2: bad[2],
            bad_0_5_of_valid: bad_of_valid[0],
            bad_1_of_valid: bad_of_valid[1],
            bad_2_of_valid: bad_of_valid[2],
            mean_error_px: (self.valid > 0).then(|| self.error / self.valid as f64),
        })
    }
}

impl std::fmt::Display for AccuracySummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { bad_1, density, .. } = self;
        write!(f, "{bad_1:.2} % bad pixels (error above 1 px or unknown), {density:.1} % known")?;
        if let (Some(bad), Some(error)) = (self.bad_1_of_valid, self.mean_error_px) {
            write!(f, ", of those {bad:.2} % bad, mean error {error:.2} px")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_core::frame::DisparityRange;
    use stereod_core::pool::Pooled;

    const RANGE: DisparityRange = DisparityRange { min: 0, count: 64 };

    fn truth(disparity: &[f32], visible: &[bool]) -> Truth {
        Truth {
            disparity: Pooled::unpooled(disparity.to_vec()),
            visible: Pooled::unpooled(visible.to_vec()),
        }
    }

    #[test]
    fn errors_are_counted_by_hand() {
        let map = DisparityMap::new(
            4,
            2,
            RANGE,
            Pooled::unpooled(vec![160, 168, 176, 177, 300, INVALID, INVALID, 160 + 33]),
        );
        let visible = [true, true, true, true, false, true, false, true];
        let mut accuracy = Accuracy::default();
        assert_eq!(accuracy.summary(), None);
        accuracy.add(&map, &truth(&[10.0; 8], &visible));
        // Six visible pixels with the errors 0, 0.5, 1, 1.0625, none, 2.0625.
        let summary = accuracy.summary().unwrap();
        let sixths = |n: f64| 100.0 * n / 6.0;
        assert_eq!(summary.frames, 1);
        assert_eq!(summary.density, sixths(5.0));
        assert_eq!(summary.bad_0_5, sixths(4.0));
        assert_eq!(summary.bad_1, sixths(3.0));
        assert_eq!(summary.bad_2, sixths(2.0));
        assert_eq!(summary.bad_1_of_valid, Some(40.0));
        assert_eq!(summary.mean_error_px, Some((0.5 + 1.0 + 1.0625 + 2.0625) / 5.0));

        accuracy.add(&map, &truth(&[10.0; 8], &[false; 8]));
        let more = accuracy.summary().unwrap();
        assert_eq!((more.frames, more.bad_1), (2, summary.bad_1));
    }

    #[test]
    fn a_map_without_any_disparity_is_all_bad() {
        let map = DisparityMap::new(2, 1, RANGE, Pooled::unpooled(vec![INVALID; 2]));
        let mut accuracy = Accuracy::default();
        accuracy.add(&map, &truth(&[3.0, 4.0], &[true, true]));
        let summary = accuracy.summary().unwrap();
        assert_eq!((summary.density, summary.bad_2, summary.bad_1_of_valid), (0.0, 100.0, None));
        let json = serde_json::to_value(&summary).unwrap();
        assert_eq!(json["bad_1"], 100.0);
        assert!(json["mean_error_px"].is_null());
    }
}
