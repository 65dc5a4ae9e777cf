//! Census descriptors: one bit per comparison of two pixels around a centre (Zabih and Woodfill, ECCV 1994,
//! section 3; centre-symmetric: Spangenberg et al., CAIP 2013, section 2.1). They compare structure instead
//! of brightness, so that views of different exposure still agree.
//!
//! Bits are numbered row by row, each from left to right; bit 0 is the first comparison. Window pixels
//! outside the image are clamped.

use std::fmt;
use std::str::FromStr;

use crate::frame::{Image, clamped};

/// Largest number of bits of a descriptor.
pub const BITS_MAX: u32 = 64;

/// The pixels that a census descriptor compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CensusWindow {
    /// Every pixel of a window with the centre: a bit is 1 if the neighbour is darker.
    Plain {
        /// Width in pixels, odd.
        width: u8,
        /// Height in pixels, odd.
        height: u8,
    },
    /// 9 x 7 pixels, each with the one opposite the centre: a bit is 1 if the earlier of the two is brighter.
    Symmetric9x7,
}

impl CensusWindow {
    /// Width and height in pixels.
    pub fn size(self) -> (usize, usize) {
        match self {
            CensusWindow::Plain { width, height } => (width.into(), height.into()),
            CensusWindow::Symmetric9x7 => (9, 7),
        }
    }

    /// Number of bits of a descriptor and largest distance between two descriptors.
    pub fn bits(self) -> u32 {
        let (width, height) = self.size();
        let others = (width * height).saturating_sub(1) as u32;
        match self {
            CensusWindow::Plain { .. } => others,
            CensusWindow::Symmetric9x7 => others / 2,
        }
    }

    /// Whether the window has a centre, something to compare it with, and at most 64 bits.
    pub fn is_valid(self) -> bool {
        let (width, height) = self.size();
        width % 2 == 1 && height % 2 == 1 && (1..=BITS_MAX).contains(&self.bits())
    }

    /// Pairs of compared pixels, as (column, row) steps from the centre, in bit order: a bit is 1 if the
    /// intensity at `.0` is below that at `.1`.
    pub fn comparisons(self) -> Vec<(Step, Step)> {
        let (width, height) = self.size();
        let (across, down) = (width as i32 / 2, height as i32 / 2);
        let window = (-down..=down).flat_map(|y| (-across..=across).map(move |x| (x, y)));
        let bits = self.bits() as usize;
        match self {
            CensusWindow::Plain { .. } => {
                window.filter(|&step| step != (0, 0)).map(|step| (step, (0, 0))).collect()
            }
            // The first half of the window; the opposite pixel is darker if this one is brighter.
            CensusWindow::Symmetric9x7 => {
                window.take(bits).map(|(x, y)| ((-x, -y), (x, y))).collect()
            }
        }
    }
}

/// Columns to the right and rows down.
pub type Step = (i32, i32);

impl fmt::Display for CensusWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = self.size();
        match self {
            CensusWindow::Plain { .. } => write!(f, "{width}x{height}"),
            CensusWindow::Symmetric9x7 => write!(f, "{width}x{height}-symmetric"),
        }
    }
}

/// Format of [`CensusWindow::from_str`], to follow the word "expected".
pub const WINDOW_EXPECTED: &str =
    "`9x7-symmetric`, or an odd width and height such as `5x5` with at most 65 pixels";

impl FromStr for CensusWindow {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "9x7-symmetric" {
            return Ok(CensusWindow::Symmetric9x7);
        }
        text.split_once('x')
            .and_then(|(width, height)| {
                Some(CensusWindow::Plain {
                    width: width.parse().ok()?,
                    height: height.parse().ok()?,
                })
            })
            .filter(|window| window.is_valid())
            .ok_or_else(|| format!("expected {WINDOW_EXPECTED}"))
    }
}

/// The descriptor of every pixel, row by row.
pub fn descriptors(image: &Image, window: CensusWindow) -> Vec<u64> {
    let comparisons = window.comparisons();
    let (width, height) = (image.width(), image.height());
    let pixel = |x: usize, y: usize, step: Step| {
        let x = clamped(x as i64 + i64::from(step.0), width);
        let y = clamped(y as i64 + i64::from(step.1), height);
        image.row(y)[x]
    };
    let mut descriptors = Vec::with_capacity(width * height);
    for y in 0..height {
        for x in 0..width {
            let mut bits = 0u64;
            for (number, &(a, b)) in comparisons.iter().enumerate() {
                bits |= u64::from(pixel(x, y, a) < pixel(x, y, b)) << number;
            }
            descriptors.push(bits);
        }
    }
    descriptors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_window_by_hand() {
        let image = Image::from_vec(3, 3, vec![1, 5, 9, 4, 5, 6, 2, 8, 5]);
        let window = CensusWindow::Plain { width: 3, height: 3 };
        // Around the centre, 5: 1 yes, 5 no, 9 no, 4 yes, 6 no, 2 yes, 8 no, 5 no.
        assert_eq!(descriptors(&image, window)[4], 0b0010_1001);
        // Around the corner (0, 0), 1: 1 1 5 / 1 . 5 / 4 4 5, nothing is darker.
        assert_eq!(descriptors(&image, window)[0], 0);
        // Around the corner (2, 0), 9: 5 9 9 / 5 . 9 / 5 6 6.
        assert_eq!(descriptors(&image, window)[2], 0b1110_1001);
        // One row: 4 5 6 around 5, and 8 5 5 around the corner (2, 2).
        let row = CensusWindow::Plain { width: 3, height: 1 };
        assert_eq!(descriptors(&image, row)[4], 0b01);
        assert_eq!(descriptors(&image, row)[8], 0b00);
        assert_eq!(descriptors(&image, row)[7], 0b11);
    }

    #[test]
    fn the_symmetric_window_by_hand() {
        // A single bright pixel two columns right and one row below the centre of a 9x7 image:
        // window place (4 + 2) + 9 * (3 + 1) = 42, opposite of place 62 - 42 = 20. The later of the
        // two is brighter: no bit.
        let bright = |at: usize| Image::from_fn(9, 7, move |x, y| u8::from(y * 9 + x == at));
        let window = CensusWindow::Symmetric9x7;
        let centre = 3 * 9 + 4;
        assert_eq!(descriptors(&bright(42), window)[centre], 0);
        assert_eq!(descriptors(&bright(20), window)[centre], 1 << 20);
        // The first place, and the last before the centre, which itself is never compared.
        assert_eq!(descriptors(&bright(0), window)[centre], 1);
        assert_eq!(descriptors(&bright(30), window)[centre], 1 << 30);
        assert_eq!(descriptors(&bright(31), window)[centre], 0);
        // At the top left corner, coordinates are clamped: all 4 x 3 places before the corner show it, and so
        // do those of its row and column; their opposites are dark.
        let corner = descriptors(&bright(0), window)[0];
        let row = 0b0_0001_1111u64; // Columns -4 to 0 are the corner, 1 to 4 are not.
        // Places of the fourth row are the four before the centre. Column 0 of rows -3 to -1 is the
        // corner, its opposite (0, 1) to (0, 3) is not; columns 1 to 4 are dark, their opposites
        // are columns -4 to -1 of rows 1 to 3, dark as well.
        assert_eq!(corner, row | row << 9 | row << 18 | 0b1111 << 27);
    }

    #[test]
    fn windows_have_a_centre_and_fit_64_bits() {
        let plain = |width, height| CensusWindow::Plain { width, height };
        for (window, bits) in [
            (plain(5, 5), 24),
            (plain(9, 7), 62),
            (plain(13, 5), 64),
            (plain(65, 1), 64),
            (plain(1, 3), 2),
            (CensusWindow::Symmetric9x7, 31),
        ] {
            assert!(window.is_valid(), "{window}");
            assert_eq!(window.bits(), bits);
            assert_eq!(window.comparisons().len(), bits as usize);
            assert_eq!(window.to_string().parse(), Ok(window));
        }
        for window in [plain(1, 1), plain(0, 3), plain(4, 5), plain(9, 9), plain(255, 255)] {
            assert!(!window.is_valid(), "{window}");
            assert!(window.to_string().parse::<CensusWindow>().is_err());
        }
        for text in ["", "5", "5x", "5x5x5", "9x7-Symmetric", "-5x5", "300x3"] {
            assert!(text.parse::<CensusWindow>().is_err(), "{text}");
        }
    }
}
