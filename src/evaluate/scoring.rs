//! Scores of a disparity map against the truth.
//!
//! Bad pixels are defined as by Scharstein and Szeliski (IJCV 2002, section 5.1), D1 and hole
//! filling as in the KITTI development kit (Menze and Geiger, CVPR 2015).

use super::truth::Region;
use stereod_core::frame::{DisparityMap, SUBPIXEL};

/// Errors in pixels above which a disparity is bad.
const THRESHOLDS: [f64; 5] = [0.5, 1.0, 2.0, 3.0, 4.0];

/// D1 counts errors above this many pixels, ...
const D1_PIXELS: f64 = 3.0;

/// ... if they are also above this part of the truth.
const D1_SHARE: f64 = 0.05;

/// Names of the figures, in the order of [`Figures`], in percent unless they end in pixels. Figures
/// in `_valid` are of the pixels with a disparity; in the others pixels without one are bad, too.
pub const NAMES: [&str; 16] = [
    "density",
    "bad0.5",
    "bad1.0",
    "bad2.0",
    "bad3.0",
    "bad4.0",
    "d1",
    "bad0.5_valid",
    "bad1.0_valid",
    "bad2.0_valid",
    "bad3.0_valid",
    "bad4.0_valid",
    "d1_valid",
    // Nearer than the truth by enough for D1.
    "nearer_valid",
    // Mean and root mean square of the error in pixels, of pixels with a disparity.
    "avgerr",
    "rms",
];

/// Way in which the values of a figure become one; there is at least one.
pub type Combine = fn(&[f64]) -> f64;

/// Figures over an area, one for each of [`NAMES`]; `None` if no pixel has a disparity.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures(pub [Option<f64>; NAMES.len()]);

impl Figures {
    /// Returns the figure `name`, which must exist.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0[NAMES.iter().position(|known| *known == name).expect("a name of the list")]
    }

    fn combined(of: &[&Score], with: Combine) -> Self {
        Self(std::array::from_fn(|number| {
            let values: Vec<f64> = of.iter().filter_map(|score| score.figures.0[number]).collect();
            (!values.is_empty()).then(|| with(&values))
        }))
    }
}

/// Figures, and the number of pixels or pairs behind them.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Number of scored pixels of a pair, or of pairs in a mean.
    pub count: u64,
    pub figures: Figures,
}

impl Score {
    /// Combines the figures of several; `None` of none.
    pub fn combined(of: &[&Score], with: Combine) -> Option<Self> {
        let figures = Figures::combined(of, with);
        (!of.is_empty()).then_some(Self { count: of.len() as u64, figures })
    }
}

/// A map for scoring: disparity in pixels, row by row; NaN if unknown. Singles hold sixteenths exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    width: usize,
    pixels: Vec<f32>,
}

impl Values {
    /// Converts a map. Negative disparities count as unknown, because no truth is negative.
    pub fn of(map: &DisparityMap) -> Self {
        let value = |&value: &i16| match value {
            0.. => f32::from(value) / SUBPIXEL as f32,
            // INVALID is negative, too.
            _ => f32::NAN,
        };
        Self { width: map.width(), pixels: map.values().iter().map(value).collect() }
    }

    /// Returns the width and height in pixels.
    pub fn size(&self) -> (usize, usize) {
        (self.width, self.pixels.len() / self.width)
    }

    /// Returns the disparity of pixel number `pixel` in pixels, if known.
    pub fn at(&self, pixel: usize) -> Option<f64> {
        Some(f64::from(self.pixels[pixel])).filter(|value| !value.is_nan())
    }

    /// Returns the part of all pixels that has a disparity, in percent.
    pub fn density(&self) -> f64 {
        let known = self.pixels.iter().filter(|value| !value.is_nan()).count();
        percent(known as u64, self.pixels.len() as u64)
    }

    /// Returns the map with its holes filled along the rows: each takes the smaller of its neighbours, the
    /// ends their only one. A row without any disparity copies the nearest row that has some.
    pub fn filled(mut self) -> Self {
        let known: Vec<bool> =
            self.rows().map(|row| row.iter().any(|value| !value.is_nan())).collect();
        self.pixels.chunks_exact_mut(self.width).for_each(fill_row);
        let height = known.len();
        for empty in (0..height).filter(|&y| !known[y]) {
            let rows = (0..height).filter(|&y| known[y]);
            let Some(nearest) = rows.min_by_key(|y| y.abs_diff(empty)) else { break };
            let from = nearest * self.width;
            self.pixels.copy_within(from..from + self.width, empty * self.width);
        }
        self
    }

    fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.pixels.chunks_exact(self.width)
    }
}

fn fill_row(row: &mut [f32]) {
    let mut start = 0;
    while start < row.len() {
        if !row[start].is_nan() {
            start += 1;
            continue;
        }
        let end = row[start..].iter().position(|v| !v.is_nan()).map_or(row.len(), |n| start + n);
        let before = start.checked_sub(1).map_or(f32::NAN, |x| row[x]);
        let after = row.get(end).copied().unwrap_or(f32::NAN);
        // The smaller one; NaN loses.
        row[start..end].fill(before.min(after));
        start = end;
    }
}

/// Scores a map over a region of the same size; `None` if no pixel counts.
pub fn score(map: &Values, region: &Region) -> Option<Score> {
    let (mut pixels, mut known, mut d1, mut nearer) = (0u64, 0u64, 0u64, 0u64);
    let mut bad = [0u64; THRESHOLDS.len()];
    let (mut errors, mut squares) = (0.0, 0.0);
    for pixel in 0..map.pixels.len() {
        let Some(truth) = region.at(pixel) else { continue };
        pixels += 1;
        let Some(value) = map.at(pixel) else { continue };
        known += 1;
        let error = (value - truth).abs();
        for (count, threshold) in bad.iter_mut().zip(THRESHOLDS) {
            *count += u64::from(error > threshold);
        }
        let is_off = error > D1_PIXELS && error > D1_SHARE * truth;
        d1 += u64::from(is_off);
        nearer += u64::from(is_off && value > truth);
        errors += error;
        squares += error * error;
    }
    if pixels == 0 {
        return None;
    }
    let missing = pixels - known;
    let of_known = |figure: f64| (known > 0).then_some(figure);
    let wrong: Vec<u64> = bad.into_iter().chain([d1]).collect();
    let all = wrong.iter().map(|wrong| Some(percent(wrong + missing, pixels)));
    let valid = wrong.iter().map(|wrong| of_known(percent(*wrong, known)));
    let mean = |sum: f64| sum / known as f64;
    let mut figures = [Some(percent(known, pixels))]
        .into_iter()
        .chain(all)
        .chain(valid)
        .chain([of_known(percent(nearer, known))])
        .chain([of_known(mean(errors)), of_known(mean(squares).sqrt())]);
    Some(Score {
        count: pixels,
        figures: Figures(std::array::from_fn(|_| figures.next().flatten())),
    })
}

pub fn percent(part: u64, of: u64) -> f64 {
    100.0 * part as f64 / of as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_core::frame::{DisparityRange, INVALID};
    use stereod_core::pool::Pooled;

    fn values(width: usize, pixels: &[i16]) -> Values {
        let range = DisparityRange { min: -4, count: 64 };
        let pixels = Pooled::unpooled(pixels.to_vec());
        Values::of(&DisparityMap::new(width, pixels.len() / width, range, pixels))
    }

    const NO: i16 = INVALID;

    #[test]
    fn figures_worked_out_by_hand() {
        // Ten pixels: nine with truth, of which seven have a disparity (a negative one is none).
        let map = values(5, &[160, 168, 177, 210, 416, 1648, NO, -16, 32, 0]);
        let mut truth = [10.0; 10];
        truth[4] = 30.0;
        truth[5] = 100.0;
        truth[8] = 2.0;
        let truth: Vec<Option<f64>> =
            truth.iter().enumerate().map(|(i, &truth)| (i != 9).then_some(truth)).collect();
        // Errors: 0, 0.5, 1.0625, 3.125, 4, 3, none, none, 0. Both errors above 3 px are also above 5 %.
        let Score { count, figures } = score(&map, &Region::of_values(5, &truth)).unwrap();
        assert_eq!(count, 9);
        let of = |part: f64, of: f64| Some(100.0 * part / of);
        assert_eq!(figures.get("density"), of(7.0, 9.0));
        for (name, bad) in [
            ("bad0.5", 4.0),
            ("bad1.0", 4.0),
            ("bad2.0", 3.0),
            ("bad3.0", 2.0),
            ("bad4.0", 0.0),
            ("d1", 2.0),
        ] {
            assert_eq!(figures.get(name), of(bad + 2.0, 9.0), "{name}");
            assert_eq!(figures.get(&format!("{name}_valid")), of(bad, 7.0), "{name}");
        }
        // 210 is 3.125 px nearer; 26 px are 4 farther than 30.
        assert_eq!(figures.get("nearer_valid"), of(1.0, 7.0));
        assert_eq!(figures.get("avgerr"), Some((0.5 + 1.0625 + 3.125 + 4.0 + 3.0) / 7.0));
        let squares: f64 = 0.25 + 1.0625 * 1.0625 + 3.125 * 3.125 + 16.0 + 9.0;
        assert_eq!(figures.get("rms"), Some((squares / 7.0).sqrt()));
        assert_eq!(map.density(), 80.0);
    }

    /// The expected figures are those of a program of its own for the formulas of Middlebury's `evaldisp` (SDK of
    /// version 3) and of KITTI's development kit (`disparityErrorsOutlier` after `interpolateBackground`).
    #[test]
    fn figures_are_those_of_middlebury_and_kitti() {
        let mut state = 7u64;
        let mut draw = || {
            state = (state * 1_103_515_245 + 12_345) % (1 << 31);
            (state >> 16) as i16
        };
        let (mut truth, mut pixels) = (Vec::new(), Vec::new());
        for pixel in 0..72 {
            let (exact, kind) = (16 + draw() % 1600, draw() % 6);
            let off = [0, 4, -20, draw() % 120, -(draw() % 120), 0][kind as usize];
            truth.push((draw() % 8 != 0).then_some(f64::from(exact) / 16.0));
            pixels.push(if kind == 5 || pixel < 12 { NO } else { (exact + off).max(0) });
        }
        let (map, region) = (values(12, &pixels), Region::of_values(12, &truth));
        let figures = score(&map, &region).unwrap().figures;
        let filled = score(&map.filled(), &region).unwrap().figures;
        for (of, name, expected) in [
            (&figures, "bad0.5", 66.176_470_588_235_3),
            (&figures, "bad1.0", 64.705_882_352_941_2),
            (&figures, "bad2.0", 52.941_176_470_588_2),
            (&figures, "bad4.0", 41.176_470_588_235_3),
            (&figures, "bad2.0_valid", 100.0 * 19.0 / 51.0),
            (&figures, "density", 75.0),
            (&figures, "avgerr", 1.920_343_137_254_9),
            (&figures, "d1_valid", 27.450_980_392_156_9),
            (&filled, "d1", 44.117_647_058_823_5),
        ] {
            let found = of.get(name).unwrap();
            assert!((found - expected).abs() < 1e-9, "{name}: {found} in place of {expected}");
        }
    }

    #[test]
    fn d1_is_relative_to_large_disparities() {
        let d1 = |truth: f64| {
            let map = values(1, &[16 * 60]);
            score(&map, &Region::of_values(1, &[Some(truth)])).unwrap().figures.get("d1")
        };
        // 5 % of 63.5 are 3.2 px.
        assert_eq!(
            (d1(57.0), d1(56.5), d1(63.0), d1(63.5)),
            (Some(0.0), Some(100.0), Some(0.0), Some(100.0))
        );
        let map = values(1, &[16 * 96]);
        let figures = score(&map, &Region::of_values(1, &[Some(100.0)])).unwrap().figures;
        assert_eq!((figures.get("d1"), figures.get("bad3.0")), (Some(0.0), Some(100.0)));
    }

    #[test]
    fn nothing_to_count_and_nothing_known() {
        let map = values(2, &[NO, NO]);
        assert_eq!(score(&map, &Region::of_values(2, &[None, None])), None);
        let figures = score(&map, &Region::of_values(2, &[Some(1.0), None])).unwrap().figures;
        assert_eq!((figures.get("density"), figures.get("d1")), (Some(0.0), Some(100.0)));
        assert_eq!((figures.get("d1_valid"), figures.get("rms")), (None, None));
    }

    #[test]
    fn holes_take_the_smaller_neighbour_of_their_row() {
        let map = values(5, &[NO, 32, NO, NO, 16]);
        assert_eq!(map.filled(), values(5, &[32, 32, 16, 16, 16]));
        assert_eq!(values(3, &[NO, 0, NO]).filled(), values(3, &[0, 0, 0]));
    }

    #[test]
    fn rows_without_any_take_the_nearest_and_of_two_the_upper_one() {
        let map = values(2, &[NO, NO, 16, NO, NO, NO, NO, NO, NO, NO, NO, 64]);
        // Three rows lie between the two that are known.
        assert_eq!(map.filled(), values(2, &[16, 16, 16, 16, 16, 16, 16, 16, 64, 64, 64, 64]));
        let empty = values(2, &[NO; 4]).filled();
        assert_eq!(empty.density(), 0.0);
    }

    #[test]
    fn means_are_of_those_that_have_the_figure() {
        let figures = |density, error| {
            let mut figures = Figures([None; NAMES.len()]);
            figures.0[0] = Some(density);
            figures.0[14] = error;
            Score { count: 1, figures }
        };
        let all = [figures(50.0, Some(1.0)), figures(100.0, Some(2.0)), figures(0.0, None)];
        let Score { count, figures: mean } =
            Score::combined(&all.each_ref(), crate::summary::mean).unwrap();
        assert_eq!(count, 3);
        assert_eq!((mean.get("density"), mean.get("avgerr")), (Some(50.0), Some(1.5)));
        assert_eq!(mean.get("rms"), None);
        assert_eq!(Score::combined(&[], crate::summary::mean), None);
    }
}
