//! Detects that both views are one image: a file or camera given twice.

use stereod_core::frame::Image;

/// Degree of likeness of the two views.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Duplicate {
    /// Byte by byte.
    Same,
    /// Equal up to coding noise: mean difference in grey levels.
    Nearly(f64),
}

/// Mean difference in grey levels below which two images are one. Two cameras differ by more
/// through their noise alone.
const NEARLY: f64 = 0.4;

/// Mean difference of neighbouring pixels below which an image is flat: a covered lens, darkness.
/// It looks the same to any camera.
const FLAT: f64 = 1.0;

/// Compares two images. `None` if they differ, also in size, or are flat.
pub fn find_duplicate(left: &Image, right: &Image) -> Option<Duplicate> {
    if (left.width(), left.height()) != (right.width(), right.height()) || is_flat(left) {
        return None;
    }
    if left.pixels() == right.pixels() {
        return Some(Duplicate::Same);
    }
    let by = mean_difference(left.pixels().iter().zip(right.pixels()));
    (by < NEARLY).then_some(Duplicate::Nearly(by))
}

fn is_flat(image: &Image) -> bool {
    let rows = image.pixels().chunks_exact(image.width());
    mean_difference(rows.flat_map(|row| row.iter().zip(&row[1..]))) < FLAT
}

fn mean_difference<'a>(pixels: impl Iterator<Item = (&'a u8, &'a u8)>) -> f64 {
    let (sum, count) = pixels
        .fold((0u64, 0u64), |(sum, count), (a, b)| (sum + u64::from(a.abs_diff(*b)), count + 1));
    sum as f64 / count.max(1) as f64
}

impl std::fmt::Display for Duplicate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Duplicate::Same => f.write_str("left and right are the same picture")?,
            Duplicate::Nearly(by) => write!(
                f,
                "left and right are nearly the same picture (they differ by {by:.2} grey levels on \
                 average)"
            )?,
        }
        f.write_str(", so disparity is 0 everywhere: give each view its own file or camera")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(shift: usize) -> Image {
        Image::from_fn(40, 30, |x, y| ((x + shift) * 7 + y * 13) as u8)
    }

    #[test]
    fn one_picture_is_told_from_two() {
        assert_eq!(find_duplicate(&picture(0), &picture(0)), Some(Duplicate::Same));
        assert_eq!(find_duplicate(&picture(0), &picture(1)), None);
        let coded = |x, y| (x * 7 + y * 13) as u8 ^ u8::from((x + y) % 5 == 0);
        let nearly = find_duplicate(&picture(0), &Image::from_fn(40, 30, coded)).unwrap();
        assert!(
            matches!(nearly, Duplicate::Nearly(by) if (0.19..0.21).contains(&by)),
            "{nearly:?}"
        );
        // As noisy as a good camera's.
        let noisy = |x, y| (x * 7 + y * 13) as u8 ^ u8::from((x * 3 + y) % 2 == 0);
        assert_eq!(find_duplicate(&picture(0), &Image::from_fn(40, 30, noisy)), None);
        assert_eq!(find_duplicate(&picture(0), &Image::from_fn(30, 40, |x, _| x as u8)), None);
    }

    #[test]
    fn darkness_is_the_same_to_every_eye() {
        let dark = Image::from_fn(40, 30, |x, _| (x / 20) as u8);
        assert_eq!(find_duplicate(&dark, &dark), None);
    }
}
