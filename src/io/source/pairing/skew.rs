//! Warning about the time difference of a recording's views.

use std::time::Duration;

/// Number of pairs after which the differences so far are judged, again and again.
const PAIRS: u64 = 200;

/// Share of the frame period above which a difference is large ...
const LARGE: f64 = 0.25;

/// ... and one in this many pairs with a large difference is too many.
const ONE_IN: u64 = 4;

/// Largest standard deviation of a constant difference, in frame periods.
const CONSTANT: f64 = 0.05;

/// Share of the large differences above which one view counts as the later one.
const ONE_SIDED: f64 = 0.9;

/// Differences of all pairs of a recording so far.
#[derive(Debug, Default)]
pub struct SkewCheck {
    pairs: u64,
    /// Pairs with a large difference, by the later view, and the sum of these differences in nanoseconds.
    large: [u64; 2],
    sum_of_large: f64,
    /// Sums of all differences and of their squares.
    sum: f64,
    squares: f64,
    is_told: bool,
}

impl SkewCheck {
    /// Notes a pair with a right frame `skew_ns` later than the left one. Returns the warning as soon as one pair in
    /// four of many has a large difference.
    pub fn note(&mut self, skew_ns: i64, period: Duration) -> Option<String> {
        let skew = skew_ns as f64;
        self.pairs += 1;
        self.sum += skew;
        self.squares += skew * skew;
        if skew.abs() > LARGE * period.as_nanos() as f64 {
            self.large[usize::from(skew > 0.0)] += 1;
            self.sum_of_large += skew.abs();
        }
        if self.pairs.is_multiple_of(PAIRS) { self.finish(period) } else { None }
    }

    /// Returns the warning on all pairs so far, unless it was given before.
    pub fn finish(&mut self, period: Duration) -> Option<String> {
        let [left, right] = self.large;
        let large = left + right;
        if self.is_told || large == 0 || large * ONE_IN < self.pairs {
            return None;
        }
        self.is_told = true;
        let (period, pairs) = (period.as_nanos() as f64, self.pairs as f64);
        let (often, typical) = (self.sum_of_large / large as f64, self.sum / pairs);
        let ms = |ns: f64| format!("{:.1}", ns * 1e-6);
        let later = match right as f64 / large as f64 {
            share if share >= ONE_SIDED => ", the right view later",
            share if share <= 1.0 - ONE_SIDED => ", the left view later",
            _ => ", now one view later, now the other",
        };
        // A constant difference may be one of the clocks.
        let variance = (self.squares / pairs - typical * typical).max(0.0);
        let cure = match variance.sqrt() < CONSTANT * period {
            true => format!("; if both show the same moment, give `--offset {}`", ms(-typical)),
            false => String::new(),
        };
        Some(format!(
            "the views of a pair are often {} ms apart{later}, {:.0} % of a frame: \
             what moves gets wrong disparities. A smaller `--tolerance` drops such pairs{cure}",
            ms(often),
            often / period * 100.0,
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

    #[test]
    fn views_that_drift_apart_late_are_told() {
        let mut check = SkewCheck::default();
        let at = |pair: i64| if pair < 1000 { 0 } else { (pair - 1000) * 50_000 % 25_000_000 };
        let told: Vec<_> = (0..3000).filter_map(|pair| check.note(at(pair), PERIOD)).collect();
        assert!(matches!(&told[..], [one] if one.contains("the right view later")), "{told:?}");
    }
}
