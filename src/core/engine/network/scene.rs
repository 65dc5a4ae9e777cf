//! A stereo pair with known disparity: slanted layers with texture of all sizes. Networks are tried on it.

use crate::chroma::{Chroma, ChromaPlane, ColourCoding, Differences};
use crate::frame::Image;
use crate::pool::{Pool, Pooled};

pub struct Scene {
    pub left: Image,
    pub right: Image,
    /// Disparity of each pixel of the left image; NaN where the right view does not see it.
    pub truth: Vec<f32>,
}

/// A plane of disparity `at + across * x + down * y` in an ellipse of the left view.
struct Layer {
    plane: [f64; 3],
    /// Middle and radii; the ground has none.
    ellipse: Option<[f64; 4]>,
}

impl Layer {
    fn disparity(&self, x: f64, y: f64) -> f64 {
        self.plane[0] + self.plane[1] * x + self.plane[2] * y
    }

    fn covers(&self, x: f64, y: f64) -> bool {
        let Some([middle_x, middle_y, across, down]) = self.ellipse else { return true };
        ((x - middle_x) / across).powi(2) + ((y - middle_y) / down).powi(2) <= 1.0
    }
}

impl Scene {
    /// Renders a scene whose disparities are between 2 and `nearest` px.
    pub fn new((width, height): (usize, usize), nearest: f64) -> Self {
        let [w, h] = [width as f64, height as f64];
        let ground = Layer { plane: [0.15 * nearest, 0.0, 0.25 * nearest / h], ellipse: None };
        // In the order of their distance.
        let nearer = (0..7).map(|number| {
            let part = |seed: u64| f64::from(hash(number, seed, 0) as u32) / f64::from(u32::MAX);
            let tilt = [0.06 * (part(4) - 0.5) * nearest / w, 0.06 * (part(5) - 0.5) * nearest / h];
            let middle = [w * (0.1 + 0.8 * part(1)), h * (0.1 + 0.8 * part(2))];
            let at = nearest * (0.45 + 0.07 * number as f64);
            Layer {
                plane: [at - tilt[0] * middle[0] - tilt[1] * middle[1], tilt[0], tilt[1]],
                ellipse: Some([
                    middle[0],
                    middle[1],
                    w * (0.06 + 0.1 * part(3)),
                    h * (0.08 + 0.15 * part(6)),
                ]),
            }
        });
        let layers: Vec<Layer> = std::iter::once(ground).chain(nearer).collect();
        let in_front = |x: f64, y: f64| layers.iter().rposition(|layer| layer.covers(x, y));
        // The place in the left view of a layer's point in the right one.
        let back = |layer: &Layer, x: f64, y: f64| {
            (x + layer.plane[0] + layer.plane[2] * y) / (1.0 - layer.plane[1])
        };
        let seen_right = |x: f64, y: f64| {
            let covers = |layer: &Layer| layer.covers(back(layer, x, y), y);
            layers.iter().rposition(covers).unwrap_or_default()
        };
        let front = |x: f64, y: f64| in_front(x, y).unwrap_or_default();
        // Shows at each place a layer's point, whose place in the left view is given.
        let view = |point: &dyn Fn(f64, f64) -> (usize, f64)| {
            let pixel = |pixel: usize| {
                let [x, y] = [(pixel % width) as f64, (pixel / width) as f64];
                let (layer, x) = point(x, y);
                let grey = texture(layer, x, y);
                (grey, differences(layer, grey))
            };
            let (pixels, samples) = (0..width * height).map(pixel).unzip();
            let plane = ChromaPlane::new((width, height), [0, 0], Pooled::unpooled(samples));
            let chroma = Chroma::new(ColourCoding::of_rgb(), plane, Pool::new());
            Image::from_vec(width, height, pixels).with_chroma(Some(chroma))
        };
        let left = view(&|x, y| (front(x, y), x));
        let right = view(&|x, y| {
            let layer = seen_right(x, y);
            (layer, back(&layers[layer], x, y))
        });
        let truth = (0..width * height).map(|pixel| {
            let [x, y] = [(pixel % width) as f64, (pixel / width) as f64];
            let layer = front(x, y);
            let disparity = layers[layer].disparity(x, y);
            let is_seen = x >= disparity && seen_right(x - disparity, y) == layer;
            if is_seen { disparity as f32 } else { f32::NAN }
        });
        Self { truth: truth.collect(), left, right }
    }
}

/// Grey level of a layer at a place of the left view: noise with periods of 2 to 50 px, interpolated.
fn texture(layer: usize, x: f64, y: f64) -> u8 {
    let octaves = [(2.3, 26.0), (5.1, 42.0), (13.0, 54.0), (47.0, 64.0)];
    let noise = octaves.into_iter().zip(1..).map(|((period, strength), octave)| {
        let [x, y] = [x / period, y / period];
        let [column, row] = [x.floor(), y.floor()];
        let [dx, dy] = [x - column, y - row].map(|part| part * part * (3.0 - 2.0 * part));
        let at = |i: f64, j: f64| {
            let [i, j] = [column + i, row + j].map(|place| (place as i64) as u64);
            let value = hash(layer as u64 * 8 + octave, i, j) as u32;
            f64::from(value) / f64::from(u32::MAX) - 0.5
        };
        let [above, below] = [0.0, 1.0].map(|j| at(0.0, j) * (1.0 - dx) + at(1.0, j) * dx);
        strength * (above * (1.0 - dy) + below * dy)
    });
    let ground = 95.0 + 70.0 * f64::from(hash(layer as u64, 77, 0) as u32) / f64::from(u32::MAX);
    (ground + noise.sum::<f64>()).round().clamp(0.0, 255.0) as u8
}

/// Colour of a layer's pixel. Red varies with its grey level and blue does not, as in sun and shade under a blue sky:
/// so red and blue differ in what they show, and a network that expects one gets nothing from the other.
fn differences(layer: usize, grey: u8) -> Differences {
    let part = |seed: u64| f64::from(hash(layer as u64, seed, 1) as u32) / f64::from(u32::MAX);
    let red = f64::from(grey) + 50.0 * (part(1) - 0.5);
    ColourCoding::differences(grey, red as u8, (70.0 + 80.0 * part(2)) as u8)
}

/// Mixes three numbers (the finaliser of SplitMix64).
fn hash(a: u64, b: u64, c: u64) -> u64 {
    let mut mixed = a.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ b.wrapping_mul(0xbf58_476d_1ce4_e5b9)
        ^ c.wrapping_mul(0x94d0_49bb_1331_11eb);
    for _ in 0..2 {
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
    }
    mixed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_views_show_the_same_at_the_true_disparity() {
        for size in [(352, 224), (640, 480), (320, 256)] {
            let nearest = size.0 as f64 / 9.0;
            let Scene { left, right, truth } = Scene::new(size, nearest);
            let (mut seen, mut alike, mut near) = (0, 0, 0);
            for (pixel, &disparity) in truth.iter().enumerate() {
                let (x, y) = (pixel % size.0, pixel / size.0);
                if disparity.is_nan() {
                    continue;
                }
                assert!((1.0..=1.1 * nearest as f32).contains(&disparity), "{disparity}");
                seen += 1;
                near += u32::from(f64::from(disparity) > 0.4 * nearest);
                let place = x as f32 - disparity;
                let (before, part) = (place.floor() as usize, place.fract());
                let row = right.row(y);
                let [from, to] = [before, (before + 1).min(size.0 - 1)].map(|x| f32::from(row[x]));
                let grey = from * (1.0 - part) + to * part;
                alike += u32::from((grey - f32::from(left.row(y)[x])).abs() < 12.0);
            }
            let pixels = (size.0 * size.1) as u32;
            assert!(seen > pixels * 3 / 4 && near > pixels / 12, "{seen} {near} of {pixels}");
            assert!(alike > seen / 100 * 95, "{alike} of {seen}");
        }
    }

    #[test]
    fn red_shows_the_texture_and_blue_the_layers() {
        let (width, height) = (352, 224);
        let view = Scene::new((width, height), 32.0).left;
        let planes = super::super::planes::planes(&view, 3);
        let contrast = planes.iter().map(|plane| {
            let steps = plane.pixels().windows(2).map(|two| u64::from(two[0].abs_diff(two[1])));
            steps.sum::<u64>() as f64 / (width * height) as f64
        });
        let contrast: Vec<f64> = contrast.collect();
        assert!(contrast[0] > 4.0 * contrast[2], "{contrast:?}");
    }
}
