//! Images of half the size, and binomial smoothing.

use crate::frame::{Image, clamped};

/// Images with a shorter side have no coarser level, because too little would remain to match.
pub const SIDE_MIN: usize = 32;

/// Size of the next coarser image; `None` if there is none.
pub fn half_size((width, height): (usize, usize)) -> Option<(usize, usize)> {
    (width.min(height) >= SIDE_MIN).then(|| (width.div_ceil(2), height.div_ceil(2)))
}

/// Half-size image without valid mask: rounded means of 2 x 2; an odd last column or row is repeated.
pub fn half(image: &Image) -> Image {
    let (width, height) = (image.width(), image.height());
    Image::from_fn(width.div_ceil(2), height.div_ceil(2), |x, y| {
        let columns = [2 * x, (2 * x + 1).min(width - 1)];
        let rows = [2 * y, (2 * y + 1).min(height - 1)].map(|row| image.row(row));
        let sum: u32 = rows.iter().flat_map(|row| columns.map(|x| u32::from(row[x]))).sum();
        ((sum + 2) / 4) as u8
    })
}

/// Smooths by 1 2 1 along rows and columns, rounded (halves upwards), with clamped coordinates.
pub fn smooth(image: &Image) -> Image {
    let (width, height) = (image.width(), image.height());
    Image::from_fn(width, height, |x, y| {
        let mut sum = 8;
        for (down, weight) in [(-1i64, 1u32), (0, 2), (1, 1)] {
            let row = image.row(clamped(y as i64 + down, height));
            let at = |across: i64| u32::from(row[clamped(x as i64 + across, width)]);
            sum += weight * (at(-1) + 2 * at(0) + at(1));
        }
        (sum >> 4) as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_picture_is_made_of_rounded_means() {
        // Columns 0 and 1, then column 2 twice; the same with the rows.
        let image = Image::from_vec(3, 3, vec![1, 2, 8, 3, 4, 9, 10, 12, 255]);
        let half = half(&image);
        assert_eq!((half.width(), half.height()), (2, 2));
        // (1 + 2 + 3 + 4 + 2) / 4 = 3, (2 (8 + 9) + 2) / 4 = 9, (2 (10 + 12) + 2) / 4 = 11, 255.
        assert_eq!(half.pixels(), [3, 9, 11, 255]);
        assert_eq!(half_size((33, 32)), Some((17, 16)));
        assert_eq!(half_size((31, 400)), None);
    }

    #[test]
    fn the_binomial_mean_is_rounded_and_clamped() {
        let image = Image::from_vec(3, 2, vec![0, 16, 0, 0, 0, 7]);
        // (1, 0): rows weigh 3 and 1: 3 * (2 * 16) + 7 = 103, + 8 = 111, / 16 = 6. (0, 0): 3 * 16 =
        // 48, + 8 = 56, / 16 = 3. (2, 1): 16 + 3 * (3 * 7) = 79, + 8 = 87, / 16 = 5.
        let smoothed = smooth(&image);
        assert_eq!(smoothed.pixels()[..2], [3, 6]);
        assert_eq!(smoothed.pixels()[5], 5);
    }
}
