//! Coarse search of a reduced pair over many more disparities than are matched.

use std::sync::Arc;

use stereod_core::frame::{DisparityMap, DisparityRange, INVALID, Image, Mask, SUBPIXEL};
use stereod_core::matching::params::DISPARITY_LIMITS;
use stereod_core::matching::{
    CombinedWeights, Cost, Median, P2Mode, Params, Paths, Speckle, Subpixel,
};

/// Matches two small images: an engine, or [`stereod_core::matching::match_pair`].
pub type SmallMatcher<'a> = dyn Fn(Image, Image, &Params) -> anyhow::Result<DisparityMap> + 'a;

/// Largest number of candidates of an engine.
pub(super) const MOST: usize = 1024;

/// Largest width of the reduced images.
const WIDTH: usize = 320;

/// Smallest width and height that tell enough.
const SMALLEST: (usize, usize) = (64, 32);

/// Smallest share of points with a disparity. Images that are dark, overexposed or misaligned fall
/// below it; good images have three times as many.
const FEWEST: f64 = 0.15;

/// Half the side of the windows that both views are compared in.
const HALF: usize = 3;

/// Least correlation of both windows, squared.
const SIMILAR: f64 = 0.8 * 0.8;

/// Standard deviation below which a window is flat and matches anything.
const FLAT: f64 = 2.0;

/// Every second row and column is counted.
const STEP: usize = 2;

/// Smallest share of points beyond a range that is too short. Images with a suitable range stay below 0.2 %,
/// images with half of it are above 1.5 % (docs/accuracy.md).
const TOO_MANY: f64 = 0.01;

/// Histogram of the disparities of a reduced pair.
#[derive(Clone, Debug, PartialEq)]
pub struct CoarseMatch {
    /// Pixels of the full-size images in one step of the histogram.
    factor: usize,
    /// Smallest searched disparity, in pixels of the full-size images.
    min: i32,
    /// Points by disparity, in steps from `min`.
    counts: Vec<u32>,
    valid: u32,
}

/// Searches all disparities from `min` to half the width of the rectified images. A point counts
/// only if both views agree on it, it is no speckle and it has texture. Returns `None` if the
/// images are small or have almost no texture in common.
///
/// # Panics
/// If the images differ in size.
pub fn match_coarsely(
    [left, right]: [&Image; 2],
    min: i32,
    matcher: &SmallMatcher,
) -> anyhow::Result<Option<CoarseMatch>> {
    let (width, height) = (left.width(), left.height());
    if width < SMALLEST.0 || height < SMALLEST.1 {
        return Ok(None);
    }
    let factor = width.div_ceil(WIDTH).min(height / SMALLEST.1);
    let end = (min + (width / 2) as i32).min(DISPARITY_LIMITS.1);
    match_reduced([left, right], (min, end), factor, matcher)
}

/// Searches images of twice the size for disparities up to a quarter more than `end`; `None` if the
/// first search was in full size.
pub(super) fn match_finer(
    pair: [&Image; 2],
    min: i32,
    end: i32,
    factor: usize,
    matcher: &SmallMatcher,
) -> anyhow::Result<Option<CoarseMatch>> {
    match factor {
        1 => Ok(None),
        _ => match_reduced(
            pair,
            (min, (end + (end - min) / 4).min(DISPARITY_LIMITS.1)),
            factor.div_ceil(2),
            matcher,
        ),
    }
}

fn match_reduced(
    [left, right]: [&Image; 2],
    (min, end): (i32, i32),
    factor: usize,
    matcher: &SmallMatcher,
) -> anyhow::Result<Option<CoarseMatch>> {
    let small = || [left, right].map(|image| reduce(image, factor));
    let [left, right] = small();
    let (width, height) = (left.width(), left.height());
    let low = min.div_euclid(factor as i32);
    let steps = (end.div_euclid(factor as i32) - low + 1).max(1) as usize;
    let range = DisparityRange { min: low, count: steps.min(MOST / factor) };
    let map = matcher(left, right, &params(range, width * height))?;
    let [left, right] = small();
    let mut counts = vec![0; range.count];
    let mut points = 0u32;
    for (y, row) in map.values().chunks_exact(width).enumerate().step_by(STEP) {
        for (x, &value) in row.iter().enumerate().step_by(STEP) {
            points += 1;
            if value == INVALID {
                continue;
            }
            // To the nearest whole step.
            let disparity = (i32::from(value) + SUBPIXEL / 2).div_euclid(SUBPIXEL);
            if views_agree(&left, &right, (x, y), disparity) {
                counts[((disparity - low).max(0) as usize).min(range.count - 1)] += 1;
            }
        }
    }
    let valid = counts.iter().sum();
    let tells = f64::from(valid) >= FEWEST * f64::from(points);
    Ok(tells.then_some(CoarseMatch { factor, min: low * factor as i32, counts, valid }))
}

/// Reports whether both views show the same texture around a point. Without this check, smoothness
/// would carry disparities into flat areas, and misaligned images would match by chance.
fn views_agree(left: &Image, right: &Image, (x, y): (usize, usize), disparity: i32) -> bool {
    let inside = |at: i64, size: usize| {
        let half = HALF as i64;
        (at >= half && at + half < size as i64).then(|| (at - half) as usize)
    };
    let first = inside(x as i64, left.width());
    let other = inside(x as i64 - i64::from(disparity), left.width());
    let (Some(first), Some(other), Some(top)) = (first, other, inside(y as i64, left.height()))
    else {
        return false;
    };
    let side = 2 * HALF + 1;
    let [mut l, mut r, mut ll, mut rr, mut lr] = [0u32; 5];
    for y in top..top + side {
        let pairs = left.row(y)[first..][..side].iter().zip(&right.row(y)[other..][..side]);
        for (a, b) in pairs.map(|(&a, &b)| (u32::from(a), u32::from(b))) {
            (l, r, ll, rr, lr) = (l + a, r + b, ll + a * a, rr + b * b, lr + a * b);
        }
    }
    let count = (side * side) as f64;
    let [l, r, ll, rr, lr] = [l, r, ll, rr, lr].map(|sum| f64::from(sum) / count);
    let (left, right, both) = (ll - l * l, rr - r * r, lr - l * r);
    left > FLAT * FLAT && both > 0.0 && both * both > SIMILAR * left * right
}

/// Census, gradient and intensity together with strict checks: better few points than wrong ones.
fn params(range: DisparityRange, points: usize) -> Params {
    let cost = Cost::Combined(CombinedWeights {
        census_weight: 14,
        gradient_weight: 11,
        intensity_weight: 8,
        gradient_truncation: 5,
        intensity_truncation: 6,
    });
    let mut params = Params::bare(range, cost, (30, 100));
    params.paths = Paths::Four;
    params.p2_mode = P2Mode::Linear { min: 16, slope_16: 48 };
    params.uniqueness = 10;
    params.subpixel = Subpixel::Parabola;
    params.left_right = Some(1);
    params.median = Median::Three;
    params.speckle = Some(Speckle { size: (points / 1000).max(8) as u32, range_16: 24 });
    params
}

impl CoarseMatch {
    pub(super) fn factor(&self) -> usize {
        self.factor
    }

    /// Returns the share of valid points beyond the range if it is above [`TOO_MANY`].
    pub fn share_beyond(&self, range: DisparityRange) -> Option<f64> {
        let share = self.beyond(range.max());
        (share > TOO_MANY).then_some(share)
    }

    /// Returns the share of valid points with a disparity certainly above `limit` pixels.
    fn beyond(&self, limit: i32) -> f64 {
        // A step covers half a step to either side.
        let first = |step: usize| self.min + (step * self.factor) as i32 - (self.factor / 2) as i32;
        let beyond = self.counts.iter().enumerate().filter(|(step, _)| first(*step) > limit);
        f64::from(beyond.map(|(_, count)| count).sum::<u32>()) / f64::from(self.valid.max(1))
    }

    /// Returns the smallest disparity in pixels that at most this share of the points reaches.
    pub(super) fn all_but(&self, share: f64) -> i32 {
        let allowed = (f64::from(self.valid) * share) as u32;
        let mut seen = 0;
        let last = self.counts.iter().rposition(|&count| {
            seen += count;
            seen > allowed
        });
        let half = self.factor.div_ceil(2) as i32;
        self.min + last.map_or(0, |step| (step * self.factor) as i32 + half)
    }
}

/// Reduces an image `factor` times: the mean of squares of `factor` x `factor` pixels. Columns and
/// rows that fill no square are left out. A square counts as seen if all of its pixels are.
///
/// # Panics
/// If `factor` is 0 or larger than a side of the image.
pub(super) fn reduce(image: &Image, factor: usize) -> Image {
    let (width, height) = (image.width() / factor, image.height() / factor);
    let count = (factor * factor) as u32;
    let mut pixels = Vec::with_capacity(width * height);
    let mut sums = vec![0u32; width];
    for y in 0..height {
        sums.fill(0);
        for row in y * factor..(y + 1) * factor {
            for (sum, square) in sums.iter_mut().zip(image.row(row).chunks_exact(factor)) {
                *sum += square.iter().map(|&pixel| u32::from(pixel)).sum::<u32>();
            }
        }
        pixels.extend(sums.iter().map(|&sum| ((sum + count / 2) / count) as u8));
    }
    let seen = image.valid_mask().map(|mask| Arc::new(reduce_mask(mask, factor)));
    Image::from_vec(width, height, pixels).with_valid_mask(seen)
}

fn reduce_mask(mask: &Mask, factor: usize) -> Mask {
    let (width, height) = (mask.width() / factor, mask.height() / factor);
    let square = |x: usize, y: usize| {
        let mut rows = y * factor..(y + 1) * factor;
        rows.all(|row| mask.row(row)[x * factor..(x + 1) * factor].iter().all(|&seen| seen))
    };
    Mask::new(width, (0..width * height).map(|i| square(i % width, i / width)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_become_their_mean_and_are_seen_where_all_of_them_is() {
        let seen = Mask::new(5, (0..15).map(|i| i != 7).collect());
        let image =
            Image::from_fn(5, 3, |x, y| (10 * y + x) as u8).with_valid_mask(Some(Arc::new(seen)));
        let small = reduce(&image, 2);
        assert_eq!((small.width(), small.height()), (2, 1));
        // 0, 1, 10, 11 have the mean 5.5; 2, 3, 12, 13 have 7.5.
        assert_eq!(small.pixels(), [6, 8]);
        assert_eq!(small.valid_mask().unwrap().pixels(), [true, false]);
        assert_eq!(reduce(&image, 1).pixels(), image.pixels());
    }
}
