//! Reduction of images for the coarse search.

use std::sync::Arc;

use stereod_core::frame::{Image, Mask};

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
