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
    let mean = |a: [u8; 2], b: [u8; 2]| {
        let sum: u16 = [a[0], a[1], b[0], b[1]].map(u16::from).iter().sum();
        ((sum + 2) / 4) as u8
    };
    let mut pixels = Vec::with_capacity(width.div_ceil(2) * height.div_ceil(2));
    for y in (0..height).step_by(2) {
        let (above, below) = (image.row(y), image.row((y + 1).min(height - 1)));
        let pairs = above.as_chunks::<2>().0.iter().zip(below.as_chunks::<2>().0);
        pixels.extend(pairs.map(|(&a, &b)| mean(a, b)));
        if !width.is_multiple_of(2) {
            pixels.push(mean([above[width - 1]; 2], [below[width - 1]; 2]));
        }
    }
    Image::from_vec(width.div_ceil(2), height.div_ceil(2), pixels)
}

/// Smooths by 1 2 1 along rows and columns, rounded (halves upwards), with clamped coordinates.
pub fn smooth(image: &Image) -> Image {
    let (width, height) = (image.width(), image.height());
    let mut pixels = Vec::with_capacity(width * height);
    let mut sums = vec![0u16; width + 2];
    for y in 0..height {
        let rows = [-1i64, 0, 1].map(|down| image.row(clamped(y as i64 + down, height)));
        let columns = rows[0].iter().zip(rows[1]).zip(rows[2]);
        for (sum, ((&above, &middle), &below)) in sums[1..].iter_mut().zip(columns) {
            *sum = u16::from(above) + 2 * u16::from(middle) + u16::from(below);
        }
        (sums[0], sums[width + 1]) = (sums[1], sums[width]);
        let three = sums.windows(3);
        pixels.extend(three.map(|three| ((three[0] + 2 * three[1] + three[2] + 8) >> 4) as u8));
    }
    Image::from_vec(width, height, pixels)
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
