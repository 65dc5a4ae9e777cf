//! Image pyramids, and masks of pixels that the camera has not seen.

use std::borrow::Cow;

use stereod_core::frame::Image;

/// Largest grey level of the black border that rectification leaves. Coded videos do not keep it at
/// exactly 0.
const BORDER: u8 = 3;

#[derive(Debug)]
pub(super) struct Level<'a> {
    pub(super) width: usize,
    pub(super) height: usize,
    pixels: Cow<'a, [u8]>,
}

impl Level<'_> {
    pub(super) fn row(&self, y: usize) -> &[u8] {
        &self.pixels[y * self.width..][..self.width]
    }

    /// Returns the next level: the means of 2x2 pixels, without an odd last row or column.
    fn halve(&self) -> Level<'static> {
        let (width, height) = (self.width / 2, self.height / 2);
        let mut pixels = vec![0; width * height];
        for (y, row) in pixels.chunks_exact_mut(width.max(1)).enumerate() {
            let (above, below) = (self.row(2 * y), self.row(2 * y + 1));
            let pairs = above.as_chunks::<2>().0.iter().zip(below.as_chunks::<2>().0);
            for (mean, (a, b)) in row.iter_mut().zip(pairs) {
                let sum = u16::from(a[0]) + u16::from(a[1]) + u16::from(b[0]) + u16::from(b[1]);
                *mean = ((sum + 2) / 4) as u8;
            }
        }
        Level { width, height, pixels: Cow::Owned(pixels) }
    }

    /// Returns the square window of side `2 * half + 1` around (x, y), without its mean; `None` if
    /// it is not inside.
    pub(super) fn window(&self, x: i32, y: i32, half: i32) -> Option<Window> {
        let fits = |at: i32, size: usize| at >= half && at + half < size as i32;
        if !fits(x, self.width) || !fits(y, self.height) {
            return None;
        }
        let side = (2 * half + 1) as usize;
        let (left, top) = ((x - half) as usize, (y - half) as usize);
        let mut values = Vec::with_capacity(side * side);
        for row in top..top + side {
            values.extend(self.row(row)[left..left + side].iter().map(|&value| f32::from(value)));
        }
        Some(Window::of(values))
    }
}

/// Grey levels of a window without their mean.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) values: Vec<f32>,
    /// Root of the sum of their squares.
    pub(super) norm: f32,
}

impl Window {
    pub(super) fn of(mut values: Vec<f32>) -> Self {
        let mean = values.iter().sum::<f32>() / values.len() as f32;
        values.iter_mut().for_each(|value| *value -= mean);
        let norm = values.iter().map(|value| value * value).sum::<f32>().sqrt();
        Self { values, norm }
    }

    /// Returns the normalised cross-correlation with another window, from -1 to 1; 0 if one of them
    /// is flat.
    pub(super) fn correlation(&self, other: &Window) -> f32 {
        let product: f32 = self.values.iter().zip(&other.values).map(|(a, b)| a * b).sum();
        let norms = self.norm * other.norm;
        if norms > 0.0 { product / norms } else { 0.0 }
    }
}

#[derive(Debug)]
pub(super) struct Pyramid<'a> {
    /// Levels, the full size first.
    pub(super) levels: Vec<Level<'a>>,
}

impl<'a> Pyramid<'a> {
    pub(super) fn new(image: &'a Image, halvings: usize) -> Self {
        let (width, height) = (image.width(), image.height());
        let mut levels = vec![Level { width, height, pixels: Cow::Borrowed(image.pixels()) }];
        for _ in 0..halvings {
            levels.push(levels[levels.len() - 1].halve());
        }
        Self { levels }
    }
}

/// Integral image of the pixels that the camera has not seen.
#[derive(Debug)]
pub(super) struct Unseen {
    width: usize,
    height: usize,
    /// Counts of the rectangles from the first pixel, with one more row and column than the image.
    sums: Vec<u32>,
}

impl Unseen {
    /// Creates the integral image of a level: pixels that are invalid in the image's mask, and the
    /// black border.
    pub(super) fn new(image: &Image, level: &Level, halvings: usize) -> Self {
        let (width, height) = (level.width, level.height);
        let mut unseen = vec![false; width * height];
        if let Some(mask) = image.valid_mask() {
            for (y, row) in unseen.chunks_exact_mut(width).enumerate() {
                for below in 0..1 << halvings {
                    let below = mask.row((y << halvings) + below).chunks_exact(1 << halvings);
                    for (unseen, seen) in row.iter_mut().zip(below) {
                        *unseen |= seen.contains(&false);
                    }
                }
            }
        }
        mark_border(level, &mut unseen);
        let mut sums = vec![0; (width + 1) * (height + 1)];
        for y in 0..height {
            let mut count = 0;
            for x in 0..width {
                count += u32::from(unseen[y * width + x]);
                sums[(y + 1) * (width + 1) + x + 1] = sums[y * (width + 1) + x + 1] + count;
            }
        }
        Self { width, height, sums }
    }

    /// Reports whether the square window around (x, y) lies inside and was seen completely.
    pub(super) fn all_seen(&self, x: i32, y: i32, half: i32) -> bool {
        let inside = |at: i32, size: usize| at >= half && at + half < size as i32;
        if !inside(x, self.width) || !inside(y, self.height) {
            return false;
        }
        let (left, right) = ((x - half) as usize, (x + half + 1) as usize);
        let (top, bottom) = ((y - half) as usize, (y + half + 1) as usize);
        let sum = |x: usize, y: usize| self.sums[y * (self.width + 1) + x];
        sum(right, bottom) + sum(left, top) == sum(left, bottom) + sum(right, top)
    }
}

/// Marks the black border at the four edges, row by row and column by column.
fn mark_border(level: &Level, unseen: &mut [bool]) {
    let (width, height) = (level.width, level.height);
    for y in 0..height {
        let row = level.row(y);
        let marks = &mut unseen[y * width..][..width];
        for (mark, _) in marks.iter_mut().zip(row).take_while(|(_, value)| **value <= BORDER) {
            *mark = true;
        }
        let backwards = marks.iter_mut().zip(row).rev();
        for (mark, _) in backwards.take_while(|(_, value)| **value <= BORDER) {
            *mark = true;
        }
    }
    let rows: [&mut dyn Iterator<Item = usize>; 2] = [&mut (0..height), &mut (0..height).rev()];
    for rows in rows {
        let mut running = vec![true; width];
        for y in rows {
            let marks = &mut unseen[y * width..][..width];
            for ((running, mark), &value) in running.iter_mut().zip(marks).zip(level.row(y)) {
                *running &= value <= BORDER;
                *mark |= *running;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use stereod_core::frame::Mask;

    #[test]
    fn halving_is_the_rounded_mean() {
        let image = Image::from_vec(5, 3, vec![1, 2, 9, 9, 7, 3, 4, 9, 8, 7, 0, 0, 0, 0, 0]);
        let pyramid = Pyramid::new(&image, 1);
        let half = &pyramid.levels[1];
        assert_eq!((half.width, half.height), (2, 1));
        assert_eq!(half.row(0), [3, 9]);
    }

    #[test]
    fn correlation_ignores_gain_and_offset() {
        let image = Image::from_fn(9, 9, |x, y| (x * x + 3 * y) as u8);
        let brighter = Image::from_fn(9, 9, |x, y| (2 * (x * x + 3 * y) + 20) as u8);
        let darker = Image::from_fn(9, 9, |x, y| 200 - (x * x + 3 * y) as u8);
        let window = |image: &Image| Pyramid::new(image, 0).levels[0].window(4, 4, 4).unwrap();
        assert!((window(&image).correlation(&window(&brighter)) - 1.0).abs() < 1e-5);
        assert!((window(&image).correlation(&window(&darker)) + 1.0).abs() < 1e-5);
        assert_eq!(window(&image).correlation(&window(&Image::from_fn(9, 9, |_, _| 7))), 0.0);
        let pyramid = Pyramid::new(&image, 0);
        assert!(pyramid.levels[0].window(3, 4, 4).is_none());
        assert!(pyramid.levels[0].window(4, 5, 4).is_none());
    }

    #[test]
    fn masks_and_black_borders_are_unseen() {
        // Black columns on the left, a black hole in the middle that no edge touches.
        let image = Image::from_fn(20, 16, |x, y| {
            if x < 3 || ((9..11).contains(&x) && (7..9).contains(&y)) { 2 } else { 90 }
        });
        let unseen = |image: &Image| Unseen::new(image, &Pyramid::new(image, 0).levels[0], 0);
        assert!(!unseen(&image).all_seen(4, 8, 2));
        assert!(unseen(&image).all_seen(5, 8, 2));
        assert!(unseen(&image).all_seen(10, 8, 2));
        assert!(!unseen(&image).all_seen(18, 8, 2));

        let mut seen = vec![true; 20 * 16];
        seen[13 * 20 + 17] = false;
        let image = image.with_valid_mask(Some(Arc::new(Mask::new(20, seen))));
        let pyramid = Pyramid::new(&image, 1);
        let unseen = Unseen::new(&image, &pyramid.levels[1], 1);
        assert!(!unseen.all_seen(8, 6, 0));
        assert!(unseen.all_seen(7, 6, 0) && unseen.all_seen(8, 7, 0) && unseen.all_seen(9, 6, 0));
    }
}
