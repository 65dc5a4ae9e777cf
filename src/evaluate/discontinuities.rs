//! Pixels near depth discontinuities, found in the truth (Scharstein and Szeliski, A taxonomy and evaluation of
//! dense two-frame stereo correspondence algorithms, IJCV 47, 2002, section 5.1).

use super::item::Areas;
use super::truth::Region;

/// Difference between neighbouring disparities in pixels above which there is a discontinuity.
const GAP: f64 = 2.0;

/// Width in pixels of the window by which discontinuities are dilated.
const WIDTH: usize = 9;

/// Smallest share of all pixels that must have a truth: in sparse ones, such as KITTI's, hardly any pixel has
/// neighbours.
const DENSE: f64 = 0.5;

/// Adds the pixels near discontinuities, unless the data set has a mask of them.
pub fn found(truth: Areas<Region>) -> Areas<Region> {
    let Areas { non_occluded, all, discontinuities } = truth;
    let discontinuities = discontinuities.or_else(|| {
        let whole = all.as_ref().or(non_occluded.as_ref())?;
        near(whole, non_occluded.as_ref().unwrap_or(whole))
    });
    Areas { non_occluded, all, discontinuities }
}

/// Returns the pixels of `seen` that are near discontinuities of `whole`, which is of the same size; `None` if the
/// truth is sparse, or no pixel is.
fn near(whole: &Region, seen: &Region) -> Option<Region> {
    let (width, height) = whole.size();
    if seen.size() != (width, height) {
        return None;
    }
    let truth: Vec<Option<f64>> = (0..width * height).map(|pixel| whole.at(pixel)).collect();
    let known = truth.iter().flatten().count();
    if (known as f64) < DENSE * truth.len() as f64 {
        return None;
    }
    let differ =
        |a: usize, b: usize| truth[a].zip(truth[b]).is_some_and(|(a, b)| (a - b).abs() > GAP);
    let mut near = vec![false; width * height];
    let mut mark = |pixel: usize| {
        let (x, y) = (pixel % width, pixel / width);
        for row in y.saturating_sub(WIDTH / 2)..height.min(y + WIDTH / 2 + 1) {
            near[row * width..][x.saturating_sub(WIDTH / 2)..width.min(x + WIDTH / 2 + 1)]
                .fill(true);
        }
    };
    for pixel in 0..width * height {
        let right = (pixel % width + 1 < width).then_some(pixel + 1);
        let below = (pixel / width + 1 < height).then_some(pixel + width);
        for other in [right, below].into_iter().flatten().filter(|&other| differ(pixel, other)) {
            mark(pixel);
            mark(other);
        }
    }
    near.contains(&true).then(|| seen.within(&near))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 30x12 pixels: the left half is at 5 px, the right one at `right`.
    fn step(right: f64) -> Vec<Option<f64>> {
        (0..30 * 12).map(|pixel| Some(if pixel % 30 < 15 { 5.0 } else { right })).collect()
    }

    fn columns(region: &Region, y: usize) -> Vec<usize> {
        (0..30).filter(|x| region.at(y * 30 + x).is_some()).collect()
    }

    #[test]
    fn nine_pixels_around_a_step_of_more_than_two() {
        let whole = Region::of_values(30, &step(7.5));
        let found = near(&whole, &whole).unwrap();
        for y in [0, 6, 11] {
            assert_eq!(columns(&found, y), (10..20).collect::<Vec<_>>());
        }
        let gentle = Region::of_values(30, &step(7.0));
        assert!(near(&gentle, &gentle).is_none());
        // Pixels that only one camera sees are found, and do not count.
        let mut seen = step(7.5);
        (0..12).for_each(|y| seen[y * 30 + 12] = None);
        let found = near(&whole, &Region::of_values(30, &seen)).unwrap();
        assert_eq!(columns(&found, 3), [10, 11, 13, 14, 15, 16, 17, 18, 19]);
    }

    #[test]
    fn sparse_truth_has_none() {
        let mut values = step(9.0);
        values.iter_mut().skip(1).step_by(2).for_each(|value| *value = None);
        values[0] = None;
        let sparse = Region::of_values(30, &values);
        assert!(near(&sparse, &sparse).is_none());
    }
}
