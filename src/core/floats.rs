//! Disparities as floats without the steps of 1/16 px that the map is stored in.
//!
//! On a slanted surface the stored values are terraces, and depth or points computed from them have steps (12 mm
//! at 3 m with a baseline of 11 cm and a focal length of 436 px). Here every value is moved towards the mean of its
//! neighbours on the same surface, by less than half a step. So the floats rounded to 1/16 px are the map again:
//! nothing is smoothed that the map states.

use crate::frame::{DisparityMap, INVALID, SUBPIXEL};

/// Neighbours on either side of a pixel along a row or column.
const REACH: usize = 4;
/// Largest difference between neighbours that count, in px: one step and a half.
const NEAR: f32 = 1.5 / SUBPIXEL as f32;
/// Largest change, in px: a little less than half a step, so that rounding gives the stored value.
const CHANGE_MAX: f32 = 0.47 / SUBPIXEL as f32;
/// Rounds of averaging along rows and then along columns.
const ROUNDS: usize = 2;

/// Returns the disparities of a map in px, row by row; NaN if unknown. Each is less than 1/32 px from the stored
/// one.
pub fn floats(map: &DisparityMap) -> Vec<f32> {
    let (width, height) = (map.width(), map.height());
    let stored: Vec<f32> = map.values().iter().map(|&value| pixels(value)).collect();
    // A border of unknown pixels in place of conditions.
    let stride = width + 2 * REACH;
    let at = |y: usize| (y + REACH) * stride + REACH;
    let mut from = vec![f32::NAN; stride * (height + 2 * REACH)];
    for (y, row) in stored.chunks_exact(width).enumerate() {
        from[at(y)..at(y) + width].copy_from_slice(row);
    }
    let mut to = from.clone();
    let (mut sums, mut counts) = (vec![0.0; width], vec![0.0; width]);
    for step in [1, stride].repeat(ROUNDS) {
        for (y, row) in stored.chunks_exact(width).enumerate() {
            let here = &from[at(y)..at(y) + width];
            sums.copy_from_slice(here);
            counts.fill(1.0);
            for distance in 1..=REACH {
                for begin in [at(y) - distance * step, at(y) + distance * step] {
                    add_near(&mut sums, &mut counts, here, &from[begin..begin + width]);
                }
            }
            let means = sums.iter().zip(&counts).map(|(sum, count)| sum / count);
            for ((to, mean), &stored) in to[at(y)..].iter_mut().zip(means).zip(row) {
                *to = mean.max(stored - CHANGE_MAX).min(stored + CHANGE_MAX);
            }
        }
        std::mem::swap(&mut from, &mut to);
    }
    (0..height).flat_map(|y| from[at(y)..at(y) + width].iter().copied()).collect()
}

/// Adds the neighbours that are known and near. An unknown one is NaN, which is near to nothing.
fn add_near(sums: &mut [f32], counts: &mut [f32], here: &[f32], neighbours: &[f32]) {
    for (((sum, count), here), there) in sums.iter_mut().zip(counts).zip(here).zip(neighbours) {
        let is_near = (there - here).abs() <= NEAR;
        *sum += if is_near { *there } else { 0.0 };
        *count += if is_near { 1.0 } else { 0.0 };
    }
}

fn pixels(value: i16) -> f32 {
    if value == INVALID { f32::NAN } else { f32::from(value) / SUBPIXEL as f32 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::DisparityRange;
    use crate::pool::Pooled;

    fn map(width: usize, values: Vec<i16>) -> DisparityMap {
        let range = DisparityRange { min: -64, count: 128 };
        DisparityMap::new(width, values.len() / width, range, Pooled::unpooled(values))
    }

    #[test]
    fn a_slant_has_no_terraces() {
        // Terraces 5 pixels long: 1/80 px a pixel.
        let slant = map(60, (0..60 * 9).map(|i| ((i % 60) as f32 / 5.0).floor() as i16).collect());
        let smooth = floats(&slant);
        let second = |row: &[f32]| {
            let bends = row.windows(3).map(|w| (w[0] + w[2] - 2.0 * w[1]).powi(2));
            (bends.sum::<f32>() / (row.len() - 2) as f32).sqrt() * SUBPIXEL as f32
        };
        let stored: Vec<f32> = slant.values().iter().map(|&value| pixels(value)).collect();
        let middle = |all: &[f32]| second(&all[60 * 4 + 8..60 * 4 + 52]);
        assert!(middle(&stored) > 0.6, "{}", middle(&stored));
        assert!(middle(&smooth) < 0.06, "{}", middle(&smooth));
    }

    #[test]
    fn edges_constants_and_holes_stay() {
        let stripes = [[100; 5], [160; 5], [INVALID; 5], [163; 5]].concat().repeat(7);
        let (stripes, smooth) = (map(20, stripes.clone()), floats(&map(20, stripes)));
        for (&value, &float) in stripes.values().iter().zip(&smooth) {
            assert!(float == pixels(value) || (value == INVALID && float.is_nan()));
        }
    }

    proptest! {
        #[test]
        fn the_rounded_floats_are_the_map(
            width in 1usize..20,
            values in prop::collection::vec(
                prop_oneof![4 => -9i16..9, 1 => Just(INVALID), 1 => -32752i16..32736],
                20..200,
            ),
        ) {
            let values = values[..values.len() / width * width].to_vec();
            let floats = floats(&map(width, values.clone()));
            let rounded = floats.into_iter().map(|float| match float.is_nan() {
                true => INVALID,
                false => (float * SUBPIXEL as f32).round() as i16,
            });
            prop_assert_eq!(rounded.collect::<Vec<_>>(), values);
        }
    }
}
