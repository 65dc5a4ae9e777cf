//! Warning about the time difference of a recording's views.

use std::time::Duration;

/// Number of pairs after which the difference is judged.
const PAIRS: usize = 200;

/// Share of the frame period above which a quarter of the differences count as large.
const LARGE: f64 = 0.25;

/// Differences of the first pairs of a recording.
#[derive(Debug, Default)]
pub struct SkewCheck {
    differences: Vec<i64>,
    is_done: bool,
}

impl SkewCheck {
    /// Notes a pair with a right frame `skew_ns` later than the left one. Returns the warning once enough
    /// pairs are known.
    pub fn note(&mut self, skew_ns: i64, period: Duration) -> Option<String> {
        if self.is_done {
            return None;
        }
        self.differences.push(skew_ns);
        if self.differences.len() < PAIRS { None } else { self.finish(period) }
    }

    /// Returns the warning of a recording that has ended, unless it was judged before.
    pub fn finish(&mut self, period: Duration) -> Option<String> {
        if std::mem::replace(&mut self.is_done, true) {
            return None;
        }
        let mut all = std::mem::take(&mut self.differences);
        all.sort_unstable_by_key(|ns| ns.unsigned_abs());
        let large = *all.get(all.len() * 3 / 4)?;
        let part = large.unsigned_abs() as f64 * 1e-9 / period.as_secs_f64();
        if part <= LARGE {
            return None;
        }
        all.sort_unstable();
        let [early, typical, late] = [1, 2, 3].map(|quarter| all[all.len() * quarter / 4]);
        let later = if large > 0 { "right" } else { "left" };
        let ms = |ns: i64| format!("{:.1}", ns as f64 * 1e-6);
        // A constant difference may be one of the clocks.
        let is_constant = early.abs_diff(late) as f64 * 1e-9 < 0.1 * period.as_secs_f64();
        let cure = match is_constant {
            true => format!("; if both show the same moment, give `--offset {}`", ms(-typical)),
            false => String::new(),
        };
        Some(format!(
            "the views of a pair are often {} ms apart, the {later} view later, {:.0} % of a frame: \
             what moves gets wrong disparities. A smaller `--tolerance` drops such pairs{cure}",
            ms(large.saturating_abs()),
            part * 100.0,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(50);

    #[test]
    fn large_differences_are_told_once_with_a_cure() {
        let mut check = SkewCheck::default();
        let told: Vec<_> = (0..500).filter_map(|i| check.note(-20_000_000 - i, PERIOD)).collect();
        assert_eq!(told.len(), 1);
        assert!(
            told[0].contains("20.0 ms apart, the left view later, 40 % of a frame"),
            "{told:?}"
        );
        assert!(told[0].contains("`--offset 20.0`"), "{told:?}");
        assert_eq!(check.finish(PERIOD), None);
        // A short recording; every second pair is late.
        let mut check = SkewCheck::default();
        (0..20).for_each(|i| assert_eq!(check.note(i % 2 * 20_000_000, PERIOD), None));
        let told = check.finish(PERIOD).unwrap();
        assert!(told.contains("the right view later") && !told.contains("--offset"), "{told}");
    }

    #[test]
    fn small_differences_are_not() {
        let mut check = SkewCheck::default();
        for i in 0..500 {
            // One pair in ten is far apart.
            assert_eq!(check.note(if i % 10 == 0 { 24_000_000 } else { 9_000_000 }, PERIOD), None);
        }
        assert_eq!(SkewCheck::default().finish(PERIOD), None);
    }
}
