//! Signs in a finished map that the candidates were too few.

use stereod_core::frame::{DisparityMap, DisparityRange, INVALID, SUBPIXEL};

/// Distance of the rows that are checked.
const ROW_STEP: usize = 8;

/// The last candidates are this part of all, and at least two.
const LAST: usize = 32;

/// Suspicious share of valid values at the last candidates ...
const AT_THE_END: f64 = 0.005;

/// ... and of pixels without a value: objects nearer than the range mostly fail the checks.
const WITHOUT: f64 = 0.35;

/// Reports whether the scene may contain disparities beyond the search range: many values at the
/// last candidates, or many pixels without one. It costs next to nothing and raises false alarms;
/// [`super::match_coarsely`] verifies it.
pub fn may_be_too_short(map: &DisparityMap, range: DisparityRange) -> bool {
    let last = (range.count / LAST).max(2) as i32;
    let end = (range.max() - last + 1) * SUBPIXEL;
    let (mut all, mut valid, mut at_the_end) = (0, 0, 0);
    let rows = map.values().chunks_exact(map.width().max(1));
    for row in rows.skip((ROW_STEP / 2).min(map.height() / 2)).step_by(ROW_STEP) {
        all += row.len();
        for &value in row.iter().filter(|&&value| value != INVALID) {
            valid += 1;
            at_the_end += u32::from(i32::from(value) >= end);
        }
    }
    let without = 1.0 - f64::from(valid) / all.max(1) as f64;
    without > WITHOUT || f64::from(at_the_end) > AT_THE_END * f64::from(valid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_core::pool::Pooled;

    const RANGE: DisparityRange = DisparityRange { min: -4, count: 64 };

    fn map(value: impl Fn(usize) -> i16) -> DisparityMap {
        let values = (0..6400).map(|i| value(i % 100)).collect();
        DisparityMap::new(100, 64, RANGE, Pooled::unpooled(values))
    }

    #[test]
    fn values_at_the_end_and_missing_ones_are_suspicious() {
        assert!(
            !may_be_too_short(&map(|x| (x as i16 - 90) / 2 * 16), RANGE),
            "-4 and far below 57"
        );
        assert!(may_be_too_short(&map(|x| if x < 2 { 58 * 16 } else { 80 }), RANGE));
        assert!(!may_be_too_short(&map(|x| if x < 2 { 57 * 16 } else { 80 }), RANGE));
        assert!(may_be_too_short(&map(|x| if x < 40 { INVALID } else { 80 }), RANGE));
        assert!(!may_be_too_short(&map(|x| if x < 30 { INVALID } else { 80 }), RANGE));
    }
}
