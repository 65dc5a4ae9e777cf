//! How well two pixels agree: the cost C(p, d), an integer from 0 (alike) to the cost's maximum.
//!
//! A match column outside the picture is replaced by the nearest column of its row (the "modified"
//! absolute difference: clamped, never undefined).

use crate::frame::Image;
use crate::matching::params::Cost;

/// The cost of matching pixel (x, y) of the left picture at disparity d.
pub trait PixelCost {
    /// C(p, d) for p = (x, y) and disparity `d` in pixels, which may be negative.
    fn at(&self, x: usize, y: usize, d: i32) -> u8;
}

/// The cost that `cost` names, between these two pictures of equal size.
pub fn pixel_cost<'a>(left: &'a Image, right: &'a Image, cost: Cost) -> Box<dyn PixelCost + 'a> {
    match cost {
        Cost::Ad { truncation, window: 1 } => {
            Box::new(AbsoluteDifference { left, right, truncation })
        }
        Cost::Ad { truncation, window } => {
            let pixel = AbsoluteDifference { left, right, truncation };
            Box::new(WindowMean { pixel, radius: usize::from(window / 2) })
        }
    }
}

/// The column of a row of `width` pixels that stands for column `x`.
pub fn clamped(x: i64, width: usize) -> usize {
    x.clamp(0, width as i64 - 1) as usize
}

/// Truncated absolute difference of intensities: min(abs(I_l(x, y) - I_r(x - d, y)), truncation).
struct AbsoluteDifference<'a> {
    left: &'a Image,
    right: &'a Image,
    truncation: u8,
}

impl PixelCost for AbsoluteDifference<'_> {
    fn at(&self, x: usize, y: usize, d: i32) -> u8 {
        let match_x = clamped(x as i64 - i64::from(d), self.right.width());
        self.left.row(y)[x].abs_diff(self.right.row(y)[match_x]).min(self.truncation)
    }
}

/// The mean of [`AbsoluteDifference`] over a square window, rounded to the nearest integer. Window
/// pixels outside the left picture are replaced by the nearest pixel inside; each then looks up its
/// own match column.
struct WindowMean<'a> {
    pixel: AbsoluteDifference<'a>,
    radius: usize,
}

impl PixelCost for WindowMean<'_> {
    fn at(&self, x: usize, y: usize, d: i32) -> u8 {
        let radius = self.radius as i64;
        let (width, height) = (self.pixel.left.width(), self.pixel.left.height());
        let mut sum = 0u32;
        for row in -radius..=radius {
            for column in -radius..=radius {
                let (x, y) = (clamped(x as i64 + column, width), clamped(y as i64 + row, height));
                sum += u32::from(self.pixel.at(x, y, d));
            }
        }
        let area = (2 * self.radius as u32 + 1).pow(2);
        ((sum + area / 2) / area) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_cut_off_and_columns_outside_are_clamped() {
        let left = Image::from_vec(4, 1, vec![10, 20, 30, 40]);
        let right = Image::from_vec(4, 1, vec![12, 90, 30, 7]);
        let cost = pixel_cost(&left, &right, Cost::Ad { truncation: 50, window: 1 });
        assert_eq!(cost.at(0, 0, 0), 2);
        assert_eq!(cost.at(2, 0, 1), 50); // 60 is cut off.
        assert_eq!(cost.at(1, 0, 3), 8); // Column -2 becomes 0.
        assert_eq!(cost.at(3, 0, -5), 33); // Column 8 becomes 3.
    }

    #[test]
    fn the_window_mean_is_rounded_and_its_pixels_are_clamped() {
        let left = Image::from_vec(2, 2, vec![0, 9, 4, 0]);
        let right = Image::from_vec(2, 2, vec![0, 0, 0, 0]);
        let cost = pixel_cost(&left, &right, Cost::Ad { truncation: 255, window: 3 });
        // Rows -1, 0, 1 and columns -1, 0, 1 around (0, 0) become 0 0 1 each:
        // 0 0 9 / 0 0 9 / 4 4 0 sums to 26, and 26 / 9 rounds to 3.
        assert_eq!(cost.at(0, 0, 0), 3);
        // Around (1, 1): 0 9 9 / 4 0 0 / 4 0 0 sums to 26 as well.
        assert_eq!(cost.at(1, 1, 0), 3);
        // Around (1, 0): 0 9 9 / 0 9 9 / 4 0 0 sums to 40, and 40 / 9 rounds to 4.
        assert_eq!(cost.at(1, 0, 0), 4);
    }
}
