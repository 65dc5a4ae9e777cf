//! A stereo network of the user as the prior of matching, on smaller images if that is wanted.

use std::path::Path;
use std::sync::Arc;

use super::convention::Convention;
use super::loaded;
use super::model::Model;
use super::planes::planes;
use super::tiling::Fit;
use crate::engine::Options;
use crate::engine::prior::Predictor;
use crate::frame::{DisparityRange, INVALID, SUBPIXEL, StereoPair};
use crate::matching::prior::half_range;
use crate::matching::pyramid::half;

pub struct NetworkPrior {
    file: Arc<Path>,
    model: Model,
    convention: Convention,
    fit: Fit,
    /// How often the network's images are halved.
    halvings: u32,
    /// Size of the prior map.
    size: (usize, usize),
}

impl NetworkPrior {
    /// Loads the network, for pairs of a size and their candidates, and prior maps of a size.
    pub fn new(
        file: &Arc<Path>,
        pairs: (usize, usize),
        mut range: DisparityRange,
        size: (usize, usize),
        options: &Options,
    ) -> anyhow::Result<Self> {
        let halvings = options.prior_size.halvings();
        let (mut width, mut height) = pairs;
        for _ in 0..halvings {
            (width, height, range) = (width.div_ceil(2), height.div_ceil(2), half_range(range));
        }
        let (model, convention) = loaded(file, options)?;
        let fit = Fit::new((width, height), range, model.fixed, convention.multiple)?;
        Ok(Self { file: file.clone(), model, convention, fit, halvings, size })
    }
}

impl Predictor for NetworkPrior {
    fn predict(&mut self, pair: &StereoPair) -> anyhow::Result<Vec<i16>> {
        let mut views = [&pair.left, &pair.right].map(|view| planes(view, self.model.channels));
        for _ in 0..self.halvings {
            views = views.map(|planes| planes.iter().map(half).collect());
        }
        let width = views[0][0].width();
        let values = self.fit.run(&mut self.model, [&views[0], &views[1]], &self.convention)?;
        Ok(resampled(&values, width, self.halvings, self.size))
    }

    fn description(&self) -> String {
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        let size = 1 << self.halvings;
        let size = if size > 1 { format!(" at 1/{size} of the size") } else { String::new() };
        let tiles = self.fit.describe().map(|tiles| format!(", {tiles}")).unwrap_or_default();
        let processor = self.model.processor;
        format!("the network {name}{size} (ONNX Runtime, {processor}{tiles})")
    }
}

/// Returns the map of the half-size images, from one of images that were halved so often: interpolated between the
/// four nearest values, unknown where one of them is.
fn resampled(
    values: &[f32],
    width: usize,
    halvings: u32,
    (across, down): (usize, usize),
) -> Vec<i16> {
    let height = values.len() / width;
    // Pixels of the network's map, and their disparity, by pixels of the half-size map.
    let scale = 2.0 / (1u32 << halvings) as f32;
    let unit = SUBPIXEL as f32 / scale;
    let place = |at: usize, last: usize| {
        let at = ((at as f32 + 0.5) * scale - 0.5).clamp(0.0, last as f32);
        let (first, part) = (at as usize, at.fract());
        // A value without weight need not be known.
        (first, first + usize::from(part > 0.0), part)
    };
    let mut map = Vec::with_capacity(across * down);
    for y in 0..down {
        let (above, below, down) = place(y, height - 1);
        let [above, below] = [above, below].map(|row| &values[row * width..][..width]);
        for x in 0..across {
            let (before, after, right) = place(x, width - 1);
            let [above, below] =
                [above, below].map(|row| row[before] * (1.0 - right) + row[after] * right);
            let value = (above * (1.0 - down) + below * down) * unit;
            let is_known = value.is_finite() && value.abs() < f32::from(i16::MAX);
            map.push(if is_known { value.round() as i16 } else { INVALID });
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_of_every_size_become_those_of_half_the_size() {
        // A plane: disparity 3 + x / 10 + y / 5 of the full size, at pixel centres.
        let (width, height) = (21usize, 13usize);
        let plane = |halvings: u32| {
            let side = 1 << halvings;
            let (across, down) = (width.div_ceil(side), height.div_ceil(side));
            let centre = |at: usize| (at as f32 + 0.5) * side as f32 - 0.5;
            let value = |i: usize| {
                (3.0 + centre(i % across) / 10.0 + centre(i / across) / 5.0) / side as f32
            };
            ((0..across * down).map(value).collect::<Vec<f32>>(), across)
        };
        let size = (width.div_ceil(2), height.div_ceil(2));
        for halvings in 0..=2 {
            let (values, across) = plane(halvings);
            let map = resampled(&values, across, halvings, size);
            for (x, y) in [(1, 1), (5, 3), (8, 4)] {
                let [u, v] = [x, y].map(|at| (at as f32 + 0.5) * 2.0 - 0.5);
                let expected = (8.0 * (3.0 + u / 10.0 + v / 5.0)).round() as i16;
                assert_eq!(map[y * size.0 + x], expected, "{halvings}: {x}, {y}");
            }
        }
        let (mut values, across) = plane(1);
        values[across + 2] = f32::NAN;
        values[across + 3] = f32::INFINITY;
        values[across + 4] = 1e9;
        let map = resampled(&values, across, 1, size);
        assert_eq!(map[size.0 + 1..][..5].iter().filter(|&&v| v == INVALID).count(), 3);
    }
}
