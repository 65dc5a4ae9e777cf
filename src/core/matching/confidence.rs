//! The confidence: the probability, in 1/255, that the disparity of a pixel is within 1 px.
//!
//! The *peak* of a pixel compares its least sum with the best rival, the least sum more than one candidate
//! away ([`rival`](crate::matching::uniqueness::rival)): one minus their ratio (Hu and Mordohai, PAMI 2012,
//! "peak ratio"). Pixels invalidated by the checks count as 0. So do pixels that are saturated in either view
//! ([`is_blind`]): their disparity comes from their surroundings, even if the prior makes a clear winner of
//! it.
//!
//! Five [`levels`] describe the surroundings of a pixel: the mean peak nearby and further around, the unknown
//! pixels, and how much nearer and farther others are. A learnt [`model`] adds a number for each pair of
//! neighbouring levels (a generalised additive model with interactions: Lou et al., KDD 2013) and turns the
//! sum into a probability. A pixel with a peak of 0 has the confidence [`LEAST_CONFIDENCE`].

pub mod model;

use crate::frame::{INVALID, Image, LEAST_CONFIDENCE, SUBPIXEL, clamped};
use crate::matching::aggregation::Sums;
use crate::matching::saturation::is_saturated;
use crate::matching::uniqueness::rival;

/// Pixels from the centre of the near window to its edge.
pub const RADIUS: usize = 2;

/// Pixels of the near window.
pub const AREA: u16 = (2 * RADIUS as u16 + 1).pow(2);

/// Pixels from the centre of the far window to its edge.
pub const REACH: usize = 15;

/// Pixels of the far window.
pub const FAR_AREA: i32 = (2 * REACH as i32 + 1).pow(2);

/// Number of levels of a pixel.
pub const LEVELS: usize = 5;

/// Number of values of a level, from 0.
pub const STEPS: usize = 16;

/// The peak of every pixel, row by row.
pub fn peaks(sums: &Sums, winners: &[usize]) -> Vec<u8> {
    let peak = |(i, &winner): (usize, &usize)| {
        let s = sums.of_pixel(i);
        peak(s[winner], rival(s, winner))
    };
    winners.iter().enumerate().map(peak).collect()
}

/// 255 (rival - least) / rival, rounded down; 255 without a rival, 0 if its sum is 0, too.
#[inline(always)]
pub fn peak(least: u16, rival: Option<u16>) -> u8 {
    match rival {
        None => u8::MAX,
        Some(0) => 0,
        Some(rival) => (255 * u32::from(rival - least) / u32::from(rival)) as u8,
    }
}

/// Reports whether pixel (x, y) of the left image, or its match at a disparity of `value` (1/16 px, rounded
/// to whole pixels, halves upwards), is saturated: at least `white`.
#[inline]
pub fn is_blind(left: &Image, right: &Image, x: usize, y: usize, value: i16, white: u8) -> bool {
    let column = x as i32 - (i32::from(value) + SUBPIXEL / 2).div_euclid(SUBPIXEL);
    is_saturated(left, x, y, white)
        || is_saturated(right, clamped(column.into(), left.width()), y, white)
}

/// Sets the peaks of pixels that are saturated in either view to 0.
pub fn blind(values: &[i16], peaks: &mut [u8], left: &Image, right: &Image, white: u8) {
    let width = left.width();
    for (i, (peak, &value)) in peaks.iter_mut().zip(values).enumerate() {
        if value != INVALID && is_blind(left, right, i % width, i / width, value, white) {
            *peak = 0;
        }
    }
}

/// Sums and extremes over the pixels of a window.
#[derive(Clone, Copy)]
struct Window {
    peaks: i32,
    unknown: i32,
    /// Least and greatest disparity.
    least: i16,
    greatest: i16,
}

impl Window {
    const EMPTY: Self = Self { peaks: 0, unknown: 0, least: i16::MAX, greatest: INVALID };

    fn of_pixel(peak: u8, value: i16) -> Self {
        match value {
            INVALID => Self { unknown: 1, ..Self::EMPTY },
            _ => Self { peaks: peak.into(), unknown: 0, least: value, greatest: value },
        }
    }

    fn join(self, other: Self) -> Self {
        Self {
            peaks: self.peaks + other.peaks,
            unknown: self.unknown + other.unknown,
            least: self.least.min(other.least),
            greatest: self.greatest.max(other.greatest),
        }
    }
}

/// Windows of this radius around all pixels, clamped to the image.
fn windows(width: usize, pixels: &[Window], radius: usize) -> Vec<Window> {
    let height = pixels.len() / width;
    let around = |at: usize, size: usize| {
        (at..=at + 2 * radius).map(move |at| at.saturating_sub(radius).min(size - 1))
    };
    let join =
        |windows: &mut dyn Iterator<Item = Window>| windows.fold(Window::EMPTY, Window::join);
    let columns: Vec<Window> = (0..pixels.len())
        .map(|i| join(&mut around(i / width, height).map(|y| pixels[y * width + i % width])))
        .collect();
    (0..pixels.len())
        .map(|i| join(&mut around(i % width, width).map(|x| columns[i - i % width + x])))
        .collect()
}

/// Levels of every pixel of a map after the checks; `None` for unknown pixels and peaks of 0.
pub fn levels_of_map(width: usize, values: &[i16], peaks: &[u8]) -> Vec<Option<[u8; LEVELS]>> {
    let pixels: Vec<Window> =
        peaks.iter().zip(values).map(|(&peak, &value)| Window::of_pixel(peak, value)).collect();
    let windows = [RADIUS, REACH].map(|radius| windows(width, &pixels, radius));
    let of_pixel = |i: usize| {
        let ([near, far], value) = (windows.each_ref().map(|windows| windows[i]), values[i]);
        let ends = [far.least, far.greatest];
        (pixels[i].peaks > 0).then(|| levels(near.peaks, (far.peaks, far.unknown), value, ends))
    };
    (0..values.len()).map(of_pixel).collect()
}

/// Levels of a pixel of disparity `value`: the mean peak of the near and of the far window, in 1/16; the
/// number of binary digits of the number of unknown pixels in the far window; the differences to the nearest
/// and the farthest pixel of the far window, in half pixels. `near`: sum of the near window's peaks; `far`:
/// the far window's sum of peaks and number of unknown pixels; `ends`: its least and greatest disparity.
#[inline(always)]
pub fn levels(near: i32, far: (i32, i32), value: i16, ends: [i16; 2]) -> [u8; LEVELS] {
    let [least, greatest] = ends.map(i32::from);
    let most = STEPS as i32 - 1;
    let unknown = (i32::BITS - far.1.leading_zeros()) as i32;
    let nearer = ((greatest - i32::from(value)) >> 3).min(most);
    let farther = ((i32::from(value) - least) >> 3).min(most);
    let area = i32::from(AREA);
    let near = (near + area / 2) / area;
    [near >> 4, (far.0 / FAR_AREA) >> 4, unknown, nearer, farther].map(|level| level as u8)
}

/// Confidence of a pixel with these levels.
#[inline(always)]
pub fn of_levels(levels: [u8; LEVELS]) -> u8 {
    let mut sum = 128;
    for first in 0..LEVELS {
        let [a, b] = [first, (first + 1) % LEVELS].map(|level| usize::from(levels[level]));
        sum += i32::from(model::TABLES[(first * STEPS + a) * STEPS + b]);
    }
    model::CONFIDENCES[sum.clamp(0, 255) as usize]
}

/// Confidence of every pixel after the checks, 0 for unknown ones; pixels below `least` become unknown.
pub fn apply(width: usize, values: &mut [i16], peaks: &[u8], least: u8) -> Vec<u8> {
    let levels = levels_of_map(width, values, peaks);
    let mut confidence = vec![0; peaks.len()];
    for (i, value) in values.iter_mut().enumerate().filter(|(_, value)| **value != INVALID) {
        confidence[i] = levels[i].map_or(LEAST_CONFIDENCE, of_levels);
        if confidence[i] < least {
            *value = INVALID;
        }
    }
    confidence
}

/// Smallest confidence value of at least this many percent.
pub fn of_percent(percent: u8) -> u8 {
    (u32::from(percent) * 255).div_ceil(100).min(255) as u8
}

/// Limits of [`deviation_px`], for the outputs that state it. Tables: docs/accuracy.md, "Confidence".
pub const DEVIATION_LIMITS: &str = "standard deviation if the disparity is right within 1 px, without \
     the error of the calibration; measured: 75 % of such errors are smaller indoors, 44 % on roads";

/// Standard deviation in pixels of a disparity with this confidence, if it is right within 1 px; `None` for
/// the lowest confidence. A straight line fitted to the root mean square errors of the data sets
/// (docs/accuracy.md, "Confidence").
pub fn deviation_px(confidence: u8) -> Option<f64> {
    (confidence > LEAST_CONFIDENCE).then(|| 0.68 - 0.41 * f64::from(confidence) / 255.0)
}

/// Sets the confidence of invalid pixels to 0. It runs before hole filling, so that filled pixels have none
/// either, because they were not measured.
pub fn of_known(values: &[i16], confidence: &mut [u8]) {
    for (confidence, &value) in confidence.iter_mut().zip(values) {
        *confidence = if value == INVALID { 0 } else { *confidence };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_by_hand() {
        let values = vec![9, 10, 90, 91, 40, 30, 11, 90, 0, 5, 0, 9, 7, 7, 8, 7];
        let sums = Sums::from_values(4, 1, 4, values);
        // 255 * 81 / 90 = 229.5; 255 * 29 / 40 = 184.9; a tie at 0; a tie at 7.
        assert_eq!(peaks(&sums, &[0, 2, 0, 0]), [229, 184, 0, 0]);
        // No candidates except neighbours.
        let three = Sums::from_values(1, 1, 3, vec![4, 1, 9]);
        assert_eq!(peaks(&three, &[1]), [255]);
        let (none, much) = (peak(0, Some(2040)), peak(2039, Some(2040)));
        assert_eq!((none, much, peak(0, Some(0))), (255, 0, 0));
    }

    #[test]
    fn levels_by_hand() {
        // 5 x 5: (1187 + 12) / 25 = 47, / 16 = 2. 31 x 31: 150000 / 961 = 156, / 16 = 9. 5 has three
        // digits. 2.5 px nearer and 1 px farther, of which 2.5 px are 5 halves.
        assert_eq!(levels(1187, (150_000, 5), 160, [144, 200]), [2, 9, 3, 5, 2]);
        assert_eq!(levels(1188, (0, 0), 160, [160, 160]), [3, 0, 0, 0, 0]);
        assert_eq!(levels(25 * 255, (961 * 255, 960), 0, [-127, 2047]), [15, 15, 10, 15, 15]);
        assert_eq!(levels(0, (0, 512), -7, [-15, 0])[2..], [10, 0, 1]);
    }

    #[test]
    fn windows_repeat_the_edge_and_skip_unknown_pixels() {
        let values = [160, INVALID, 176, 160, 160, 144];
        let levels = levels_of_map(3, &values, &[100, 200, 0, 50, 0, 1]);
        // Columns -2 to 2 of x = 0 are 0 0 0 1 2, rows -2 to 2 of y = 0 are 0 0 0 1 1: 3 (3 * 100 +
        // 0 + 0) + 2 (3 * 50 + 0 + 1) = 1202, / 25 = 48, level 3. Of rows -15 to 15 of y = 0, 16
        // are 0 and 15 are 1; of columns, 16, 1 and 14: 16 * 16 * 100 + 15 (16 * 50 + 14) = 37810,
        // / 961 = 39, level 2. 16 unknown pixels: 5 digits. 1 px nearer and 1 px farther.
        assert_eq!(levels[0], Some([3, 2, 5, 2, 2]));
        // x = 2, y = 1: columns 0 1 2 2 2, rows 0 0 1 1 1: 2 (100) + 3 (53) = 359, / 25 = 14. 2 px nearer.
        assert_eq!(levels[5].unwrap()[0], 0);
        assert_eq!(levels[5].unwrap()[3..], [4, 0]);
        // Unknown, and without a peak.
        assert_eq!((levels[1], levels[2], levels[4]), (None, None, None));
        let mut known = values;
        let confidence = apply(3, &mut known, &[100, 200, 0, 50, 0, 1], 2);
        assert_eq!([1, 2, 4].map(|i| confidence[i]), [0, LEAST_CONFIDENCE, LEAST_CONFIDENCE]);
        assert_eq!(
            [0, 3, 5].map(|i| confidence[i]),
            [0, 3, 5].map(|i| of_levels(levels[i].unwrap()))
        );
        assert_eq!(known, [160, INVALID, INVALID, 160, INVALID, 144]);
    }

    #[test]
    fn more_peak_is_better_and_all_that_is_measured_is_above_the_least() {
        let all =
            (0..STEPS.pow(5)).map(|i| [4, 3, 2, 1, 0].map(|k| (i / STEPS.pow(k) % STEPS) as u8));
        for levels in all.step_by(7) {
            let confidence = of_levels(levels);
            assert!(confidence > LEAST_CONFIDENCE);
            for level in (0..2).filter(|&level| levels[level] < 15) {
                let mut better = levels;
                better[level] += 1;
                // The near mean is in two tables, whose rounding may take 1 from their sum.
                let rounding = [10, 0][level];
                assert!(of_levels(better).saturating_add(rounding) >= confidence, "{levels:?}");
            }
        }
        assert!(model::CONFIDENCES.is_sorted());
        assert!(of_levels([15, 15, 0, 0, 0]) > 250 && of_levels([2, 2, 9, 15, 15]) < 128);
    }

    #[test]
    fn percent_are_rounded_up() {
        assert_eq!([0, 1, 50, 80, 99, 100].map(of_percent), [0, 3, 128, 204, 253, 255]);
    }

    #[test]
    fn what_is_saturated_in_either_eye_counts_as_nothing() {
        // White from column 6 on in the left view, from column 3 on in the right one.
        let eye = |from: usize| {
            Image::from_fn(9, 3, move |x, _| if x >= from { 250 } else { 10 * x as u8 })
        };
        let (left, right) = (eye(6), eye(3));
        let mut peaks = vec![9; 27];
        // 1.5 px count as 2, so that column 5 looks at column 3, at the edge of white; -1.5 px as -1.
        let values = [[24; 9], [-24; 9], [INVALID; 9]].concat();
        blind(&values, &mut peaks, &left, &right, 250);
        assert_eq!(peaks[..9], [9, 9, 9, 9, 9, 9, 0, 0, 0]);
        assert_eq!(peaks[9..18], [9, 9, 9, 0, 0, 0, 0, 0, 0]);
        assert_eq!(peaks[18..], [9; 9]);
    }

    #[test]
    fn what_is_unknown_in_the_end_has_no_confidence() {
        let mut confidence = [7, 8, 9];
        of_known(&[0, INVALID, -3], &mut confidence);
        assert_eq!(confidence, [7, 0, 9]);
    }
}
