//! Saturated (overexposed) areas of an image, without anything to match.

use crate::frame::{Image, clamped};

/// Smallest grey level of white, with a margin for codecs.
pub const WHITE: u8 = 250;

/// The same in video of limited range, with white at 235.
pub const WHITE_OF_LIMITED_RANGE: u8 = 231;

/// Largest difference of grey levels around a saturated pixel; allows for codecs.
pub const ALIKE: u8 = 3;

/// Reports whether pixel (x, y) is saturated: all 3 x 3 pixels around it, clamped to the image, are at least
/// `white` and differ by at most [`ALIKE`].
#[inline]
pub fn is_saturated(image: &Image, x: usize, y: usize, white: u8) -> bool {
    if image.row(y)[x] < white {
        return false;
    }
    let (mut least, mut greatest) = (u8::MAX, 0);
    for down in -1..=1 {
        let row = image.row(clamped(y as i64 + down, image.height()));
        for across in -1..=1 {
            let grey = row[clamped(x as i64 + across, image.width())];
            (least, greatest) = (least.min(grey), greatest.max(grey));
        }
    }
    least >= white && greatest - least <= ALIKE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_and_even_is_saturated() {
        let with = |grey: u8| {
            let image = Image::from_fn(7, 5, move |x, y| match (x, y) {
                (3, 2) => grey,
                _ => 240,
            });
            [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (5, 2)]
                .map(|(x, y)| is_saturated(&image, x, y, 231))
        };
        assert_eq!(with(240), [true; 6]);
        assert_eq!(with(243), [true; 6]);
        assert_eq!(with(244), [true, true, false, false, false, true]);
        assert_eq!(with(90), [true, true, false, false, false, true]);
        assert!(!is_saturated(&Image::from_fn(3, 3, |_, _| 230), 1, 1, 231));
        assert!(is_saturated(&Image::from_fn(1, 1, |_, _| 231), 0, 0, 231));
    }
}
