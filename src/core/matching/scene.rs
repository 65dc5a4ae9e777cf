//! Scene changes: the correlation of two thumbnails, which is independent of exposure.

use crate::frame::Image;

/// Columns and rows of a thumbnail.
const CELLS: (usize, usize) = (16, 12);

/// Number of its cells.
const COUNT: i64 = (CELLS.0 * CELLS.1) as i64;

/// Sampled pixels of a cell, along rows and along columns.
const SAMPLES: usize = 6;

/// Variance, in squared grey levels, below which a thumbnail may show only noise: noise with a standard
/// deviation of 24 grey levels reaches it.
const FLAT: i64 = 16;

/// A small version of an image: the mean of some pixels of each cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thumbnail([u8; COUNT as usize]);

impl Thumbnail {
    /// Computes the thumbnail of an image.
    pub fn of(image: &Image) -> Self {
        Self::by((image.width(), image.height()), |x, y| image.row(y)[x])
    }

    /// Computes the thumbnail of an image of this size; `pixel` returns its grey levels.
    pub fn by((width, height): (usize, usize), pixel: impl Fn(usize, usize) -> u8) -> Self {
        let (columns, rows) = (CELLS.0 * SAMPLES, CELLS.1 * SAMPLES);
        let mut sums = [0u32; COUNT as usize];
        for j in 0..rows {
            let y = (2 * j + 1) * height / (2 * rows);
            let cells = &mut sums[j / SAMPLES * CELLS.0..][..CELLS.0];
            for i in 0..columns {
                let x = (2 * i + 1) * width / (2 * columns);
                cells[i / SAMPLES] += u32::from(pixel(x, y));
            }
        }
        Self(sums.map(|sum| (sum / (SAMPLES * SAMPLES) as u32) as u8))
    }

    /// Reports whether both show the same scene: their correlation is at least one half, or both are flat.
    pub fn is_of_scene(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0).map(|(&a, &b)| [i64::from(a), i64::from(b)]);
        let (mut sums, mut squares, mut products) = ([0; 2], [0; 2], 0);
        for [a, b] in pairs {
            sums = [sums[0] + a, sums[1] + b];
            squares = [squares[0] + a * a, squares[1] + b * b];
            products += a * b;
        }
        // COUNT squared times variances and covariance.
        let variance = |eye: usize| COUNT * squares[eye] - sums[eye] * sums[eye];
        let (variances, covariance) =
            ([variance(0), variance(1)], COUNT * products - sums[0] * sums[1]);
        if variances.iter().all(|&variance| variance < FLAT * COUNT * COUNT) {
            return true;
        }
        let square = i128::from(covariance) * i128::from(covariance);
        covariance > 0 && 4 * square >= i128::from(variances[0]) * i128::from(variances[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene(seed: usize, shift: usize, grey: impl Fn(u8) -> u8) -> Thumbnail {
        Thumbnail::of(&Image::from_fn(160, 120, |x, y| {
            let cell = ((x + shift) / 20) * 7 + (y / 20) * 13 + seed;
            grey((cell.wrapping_mul(0x9e37_79b9) >> 7) as u8)
        }))
    }

    #[test]
    fn exposure_and_slow_motion_are_no_other_scene() {
        let first = scene(0, 0, |v| v);
        assert!(first.is_of_scene(&scene(0, 0, |v| v / 3 + 20)));
        assert!(first.is_of_scene(&scene(0, 5, |v| v)));
        assert!(!first.is_of_scene(&scene(5, 0, |v| v)));
        assert!(!first.is_of_scene(&scene(0, 0, |v| 255 - v)));
    }

    #[test]
    fn nothing_at_all_stays_nothing() {
        let (dark, noise) = (scene(0, 0, |_| 3), scene(9, 0, |v| 3 + v / 128));
        assert!(dark.is_of_scene(&noise) && noise.is_of_scene(&dark));
        assert!(!dark.is_of_scene(&scene(0, 0, |v| v)));
    }

    #[test]
    fn pictures_of_a_pixel_have_a_thumbnail() {
        let pixel = Thumbnail::of(&Image::from_vec(1, 1, vec![77]));
        assert_eq!(pixel, Thumbnail([77; COUNT as usize]));
    }
}
