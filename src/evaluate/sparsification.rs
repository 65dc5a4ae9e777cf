//! Sparsification: how well a confidence separates right disparities from wrong ones.
//!
//! If more and more of the least confident pixels are left out, the share of bad ones among the
//! rest should fall. The figure is the area below that curve over all densities (Hu and Mordohai, A
//! quantitative evaluation of confidence measures for stereo vision, PAMI 34(11), 2012, section 4).

use super::scoring::{Combine, Values};
use super::truth::Region;
use stereod_core::frame::LEAST_CONFIDENCE;

/// Largest error of a good disparity in pixels.
pub const BAD: f64 = 1.0;

const LEVELS: usize = 256;

/// Areas below sparsification curves, in percent: the mean share of bad pixels over all densities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sparsification {
    /// Area of the confidence.
    pub area: f64,
    /// Area of the ideal confidence, which knows the truth; the smallest possible.
    pub best: f64,
    /// Calibration error in percent: difference between the mean confidence and the share of good
    /// pixels, by tenths of the confidence, weighted by their pixels (Guo et al., On calibration of
    /// modern neural networks, ICML 2017). Pixels of the least confidence have no probability.
    pub calibration: f64,
}

/// Good and bad pixels of a level of confidence.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    good: u64,
    bad: u64,
}

impl Sparsification {
    /// Areas of the pixels of a region that have a disparity. `confidence` has a level for each
    /// pixel of the map, row by row, larger for more certain ones. `None` if no such pixel counts.
    pub fn of(map: &Values, confidence: &[u8], region: &Region) -> Option<Self> {
        let mut levels = [Level::default(); LEVELS];
        for (pixel, &level) in confidence.iter().enumerate() {
            let (Some(truth), Some(value)) = (region.at(pixel), map.at(pixel)) else { continue };
            let level = &mut levels[usize::from(level)];
            match (value - truth).abs() > BAD {
                true => level.bad += 1,
                false => level.good += 1,
            }
        }
        let [good, bad] = [|level: &Level| level.good, |level: &Level| level.bad]
            .map(|count: fn(&Level) -> u64| levels.iter().map(count).sum());
        let best = [Level { good: 0, bad }, Level { good, bad: 0 }];
        (good + bad > 0).then(|| Self {
            area: area(&levels),
            best: area(&best),
            calibration: calibration(&levels),
        })
    }

    /// Combines the figures of several; `None` of none.
    pub fn combined(of: &[&Self], with: Combine) -> Option<Self> {
        let combined =
            |value: fn(&Self) -> f64| with(&of.iter().map(|one| value(one)).collect::<Vec<_>>());
        (!of.is_empty()).then(|| Self {
            area: combined(|one| one.area),
            best: combined(|one| one.best),
            calibration: combined(|one| one.calibration),
        })
    }
}

/// Returns the calibration error of levels; 0 of none.
fn calibration(levels: &[Level; LEVELS]) -> f64 {
    let (mut excess, mut all) = ([0.0; 10], 0);
    for (level, of) in levels.iter().enumerate().skip(usize::from(LEAST_CONFIDENCE) + 1) {
        let count = of.good + of.bad;
        all += count;
        excess[level * 10 / LEVELS] += (count * level as u64) as f64 / 255.0 - of.good as f64;
    }
    100.0 * excess.iter().map(|excess: &f64| excess.abs()).sum::<f64>() / all.max(1) as f64
}

/// Returns the area of levels, the least confident first. Pixels of one level have no order; each
/// takes its share of the level's bad ones.
fn area(levels: &[Level]) -> f64 {
    let (mut pixels, mut bad, mut shares) = (0.0, 0.0, 0.0);
    for level in levels.iter().rev() {
        let count = level.good + level.bad;
        let share = level.bad as f64 / count as f64;
        for _ in 0..count {
            pixels += 1.0;
            bad += share;
            shares += bad / pixels;
        }
    }
    100.0 * shares / pixels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::mean;
    use stereod_core::frame::{DisparityMap, DisparityRange, INVALID};
    use stereod_core::pool::Pooled;

    /// Pixels whose truth is 10 px; each is right, wrong, unknown or without truth.
    fn of(pixels: &[(char, u8)]) -> Option<Sparsification> {
        let value = |&(kind, _): &(char, u8)| match kind {
            'r' => 16 * 11,
            'w' => 16 * 11 + 1,
            'u' => INVALID,
            _ => 0,
        };
        let range = DisparityRange { min: 0, count: 64 };
        let values = Pooled::unpooled(pixels.iter().map(value).collect());
        let map = Values::of(&DisparityMap::new(pixels.len(), 1, range, values));
        let truth: Vec<Option<f64>> =
            pixels.iter().map(|(kind, _)| (*kind != '-').then_some(10.0)).collect();
        let confidence: Vec<u8> = pixels.iter().map(|(_, confidence)| *confidence).collect();
        Sparsification::of(&map, &confidence, &Region::of_values(pixels.len(), &truth))
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
    }

    #[test]
    fn areas_worked_out_by_hand() {
        // One of the two most confident is bad, then comes a good one, then a bad one.
        let pixels = [('r', 200), ('w', 0), ('u', 255), ('w', 200), ('-', 255), ('r', 9)];
        let Sparsification { area, best, .. } = of(&pixels).unwrap();
        near(area, 100.0 * (0.5 + 0.5 + 1.0 / 3.0 + 0.5) / 4.0);
        near(best, 100.0 * (0.0 + 0.0 + 1.0 / 3.0 + 0.5) / 4.0);
    }

    #[test]
    fn a_confidence_that_knows_is_the_best_and_one_that_says_nothing_is_the_error_rate() {
        let right = of(&[('w', 3), ('r', 7), ('r', 8), ('w', 2)]).unwrap();
        near(right.area, right.best);
        let nothing = of(&[('w', 3), ('r', 3), ('r', 3), ('w', 3)]).unwrap();
        near(nothing.area, 50.0);
        let liar = of(&[('w', 8), ('r', 2), ('r', 3), ('w', 7)]).unwrap();
        near(liar.area, 100.0 * (1.0 + 1.0 + 2.0 / 3.0 + 0.5) / 4.0);
        // The area of the best is e + (1 - e) ln(1 - e), for many pixels.
        let many: Vec<_> =
            (0..10_000).map(|i| if i % 5 == 0 { ('w', 0) } else { ('r', 1) }).collect();
        let expected = 100.0 * (0.2 + 0.8 * 0.8_f64.ln());
        assert!((of(&many).unwrap().best - expected).abs() < 0.01);
    }

    #[test]
    fn the_calibration_error_compares_tenths_with_their_share_of_good_pixels() {
        // 204 and 180 are 80 and 70.6 %: the eighth tenth is from 180 to 204. 2 of 3 are good. 51 is
        // 20 %, of which none is good. The least confidence does not count.
        let pixels = [('r', 204), ('r', 204), ('w', 180), ('w', 51), ('w', 1), ('r', 1)];
        let expected = (204.0 + 204.0 + 180.0) / 255.0 - 2.0 + 0.2;
        near(of(&pixels).unwrap().calibration, 100.0 * expected / 4.0);
        near(of(&[('r', 255), ('r', 255)]).unwrap().calibration, 0.0);
        near(of(&[('w', 1)]).unwrap().calibration, 0.0);
    }

    #[test]
    fn where_nothing_is_known_there_is_none() {
        assert_eq!(of(&[('u', 9), ('-', 9)]), None);
        assert_eq!(Sparsification::combined(&[], mean), None);
        let of = |(area, best, calibration)| Sparsification { area, best, calibration };
        let means = [(2.0, 1.0, 8.0), (4.0, 2.0, 5.0)].map(of);
        assert_eq!(Sparsification::combined(&means.each_ref(), mean), Some(of((3.0, 1.5, 6.5))));
    }
}
