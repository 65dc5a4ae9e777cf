//! Textureless regions painted into both images of a pair, at disparities known from the truth.

use super::truth::Region;
use stereod_core::frame::Image;

/// Side in pixels of the squares painted in the left image, each a square apart from the next.
const SIDE: usize = 64;

/// Largest difference in disparity between neighbours on the same surface, in pixels.
const STEP: f64 = 1.0;

/// Paints every fourth square of the left image `grey`, and the same surfaces in the right one, as
/// far as the truth reaches and belongs to one surface.
pub fn paint(pictures: [Image; 2], truth: &Region, grey: u8) -> [Image; 2] {
    let (width, height) = (pictures[0].width(), pictures[0].height());
    let [mut left, mut right] = pictures.map(|picture| picture.pixels().to_vec());
    let is_painted = |at: usize| at / SIDE % 2 == 1;
    for y in (0..height).filter(|&y| is_painted(y)) {
        let row = y * width;
        let mut before: Option<(usize, f64)> = None;
        for x in 0..width {
            let Some(disparity) = truth.at(row + x) else { continue };
            let (from, first) = before
                .filter(|(from, first)| {
                    from / SIDE == x / SIDE && (first - disparity).abs() <= STEP
                })
                .unwrap_or((x, disparity));
            before = Some((x, disparity));
            if !is_painted(x) {
                continue;
            }
            left[row + from..=row + x].fill(grey);
            let column =
                |x: usize, disparity: f64| (x as f64 - disparity).round().max(0.0) as usize;
            let (start, end) = (column(from, first), column(x, disparity));
            right[row + start.min(end)..=row + start.max(end).min(width - 1)].fill(grey);
        }
    }
    [left, right].map(|pixels| Image::from_vec(width, height, pixels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_painted_where_the_truth_says_they_are() {
        let (width, height) = (130, 66);
        let picture = || Image::from_fn(width, height, |x, _| x as u8);
        // A step from 3 px to 20 px at column 100; unknown from 110 to 112, and from 120 on.
        let disparity = |x: usize| match x {
            110..=112 | 120.. => None,
            100.. => Some(20.0),
            _ => Some(3.0),
        };
        let truth: Vec<_> = (0..width * height).map(|i| disparity(i % width)).collect();
        let truth = Region::of_values(width, &truth);
        let [left, right] = paint([picture(), picture()], &truth, 200);
        let columns = |image: &Image, y: usize| {
            (0..width).filter(|&x| image.row(y)[x] == 200).collect::<Vec<_>>()
        };
        assert_eq!(columns(&left, 64), (64..120).collect::<Vec<_>>());
        // 64 to 99 are seen 3 px to the left, 100 to 119 20 px.
        assert_eq!(columns(&right, 65), (61..=99).collect::<Vec<_>>());
        assert!(columns(&left, 63).is_empty() && columns(&right, 63).is_empty());
    }
}
