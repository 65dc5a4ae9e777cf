//! Matching cost with support at ambiguous pixels: the mean over a window, and the disparity predicted by
//! coarser images.

use crate::frame::{Image, clamped};
use crate::matching::cost::PixelCost;
use crate::matching::params::Params;
use crate::matching::prior::REACH;
use crate::matching::texture::grey_range;
use crate::matching::window::UNIT;

/// Weights of the parts of a pixel's cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blend {
    /// Weight of the pixel itself, in 1/512.
    pub own: u16,
    /// Weight of each pixel of the window, which includes the centre, in 1/512.
    pub window: u16,
    /// Cost per pixel of distance from the predicted disparity, in 1/512.
    pub prior: u16,
}

impl Blend {
    /// The blend for a texture with this range of grey levels.
    pub fn of(params: &Params, range: u8, threshold: u32) -> Self {
        let window = params.window.map_or(0, |window| window.weight(range, threshold));
        let area = params.window.map_or(0, |window| window.area() as u16);
        let prior = params.prior.map_or(0, |prior| prior.weight(range, threshold));
        Self { own: UNIT as u16 - area * window, window, prior }
    }

    /// (own C0 + window S + prior min(distance, 8) + 256) / 512, rounded down: C0 is the cost of the pixel, S
    /// the sum over its window, `distance` the difference to the predicted disparity.
    pub fn cost(self, pixel: u8, sum: u16, distance: u32) -> u8 {
        let parts = u32::from(self.own) * u32::from(pixel)
            + u32::from(self.window) * u32::from(sum)
            + u32::from(self.prior) * distance.min(REACH);
        ((parts + UNIT / 2) / UNIT) as u8
    }
}

/// Stored costs of every pixel and candidate.
pub struct Volume {
    width: usize,
    min: i32,
    count: usize,
    values: Vec<u8>,
}

impl PixelCost for Volume {
    fn at(&self, x: usize, y: usize, d: i32) -> u8 {
        self.values[(y * self.width + x) * self.count + (d - self.min) as usize]
    }
}

/// Adds the support set by the parameters to `cost`. `expected` are the disparities that the prior
/// expects, if there is one; `threshold` is the noise threshold. Window pixels outside the left image are clamped; each then looks
/// up its own match column.
pub fn blend_costs(
    cost: &dyn PixelCost,
    left: &Image,
    expected: Option<&[Option<i32>]>,
    threshold: u32,
    params: &Params,
) -> Volume {
    let (width, height) = (left.width(), left.height());
    let (min, count) = (params.range.min, params.range.count);
    let own: Vec<u8> = (0..width * height)
        .flat_map(|i| (0..count).map(move |k| (i % width, i / width, min + k as i32)))
        .map(|(x, y, d)| cost.at(x, y, d))
        .collect();
    let radius = params.window.map_or(0, |window| i64::from(window.side / 2));
    let mut values = Vec::with_capacity(own.len());
    let mut sums = vec![0u16; count];
    for (x, y) in (0..width * height).map(|i| (i % width, i / width)) {
        sums.fill(0);
        for down in -radius..=radius {
            for across in -radius..=radius {
                let row = clamped(y as i64 + down, height) * width;
                let at = (row + clamped(x as i64 + across, width)) * count;
                sums.iter_mut().zip(&own[at..]).for_each(|(sum, &c)| *sum += u16::from(c));
            }
        }
        let blend = Blend::of(params, grey_range(left, x, y), threshold);
        let expected = expected.and_then(|expected| expected[y * width + x]);
        let pixel = &own[(y * width + x) * count..][..count];
        values.extend(pixel.iter().zip(&sums).enumerate().map(|(k, (&c, &sum))| {
            let distance = expected.map_or(0, |e| (min + k as i32).abs_diff(e));
            blend.cost(c, sum, distance)
        }));
    }
    Volume { width, min, count, values }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::DisparityRange;
    use crate::matching::prior::Prior;
    use crate::matching::window::Window;
    use crate::matching::{Cost, cost};

    #[test]
    fn the_parts_are_weighed_and_rounded() {
        let blend = Blend { own: 12, window: 20, prior: 64 };
        // (12 * 10 + 20 * 300 + 64 * 8 + 256) / 512 = 6888 / 512 = 13.
        assert_eq!(blend.cost(10, 300, 9), 13);
        // The largest of everything stays within 16 bits.
        let most = Blend { own: 12, window: 20, prior: 64 * 32 };
        assert_eq!(most.cost(95, 25 * 95, 8), 127);
        assert!(12 * 95 + 20 * 25 * 95 + 64 * 32 * 8 + 256 <= u32::from(u16::MAX));
    }

    /// A row for both views, so that the cost at disparity 0 is 0; matching column 3 with another costs 50.
    fn line() -> Image {
        Image::from_vec(6, 1, vec![100, 100, 100, 150, 100, 100])
    }

    #[test]
    fn a_window_averages_the_costs_of_its_clamped_pixels() {
        let (left, right) = (line(), line());
        let range = DisparityRange { min: 0, count: 2 };
        let ad = Cost::Ad { truncation: 60, window: 1 };
        let window = Some(Window { side: 3, by_texture: false });
        let params = Params { window, ..Params::bare(range, ad, (1, 2)) };
        let pixel = cost::pixel_cost(&left, &right, ad, None);
        let costs = blend_costs(pixel.as_ref(), &left, None, 4, &params);
        // At disparity 1 columns 3 and 4 cost 50. The pixel itself has an extra weight of 512 - 9 * 56 = 8.
        // Column 2: 3 rows of 50: 56 * 150 = 8400, + 256, / 512 = 16. Column 3: 8 * 50 + 56 * 300 + 256 =
        // 17456, / 512 = 34. Column 5: as column 2.
        let at_one: Vec<u8> = (0..6).map(|x| costs.at(x, 0, 1)).collect();
        assert_eq!(at_one, [0, 0, 16, 34, 34, 16]);
        assert!((0..6).all(|x| costs.at(x, 0, 0) == 0));
    }

    #[test]
    fn a_prior_costs_what_is_far_from_it_where_there_is_no_texture() {
        let even = || Image::from_vec(40, 32, vec![90; 40 * 32]);
        let (left, right) = (even(), even());
        let range = DisparityRange { min: -2, count: 16 };
        let ad = Cost::Ad { truncation: 60, window: 1 };
        let prior = Some(Prior { levels: 1, strength: 4 });
        let params = Params { prior, ..Params::bare(range, ad, (1, 2)) };
        let expected = vec![Some(3); 40 * 32];
        let pixel = cost::pixel_cost(&left, &right, ad, None);
        let costs = blend_costs(pixel.as_ref(), &left, Some(&expected), 4, &params);
        let at: Vec<u8> = (-2..14).map(|d| costs.at(7, 7, d)).collect();
        // Half a unit a pixel of distance from 3, halves upwards, and no more than 4.
        assert_eq!(at, [3, 2, 2, 1, 1, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 4]);
        let silent = blend_costs(pixel.as_ref(), &left, None, 4, &params);
        assert!((-2..14).all(|d| silent.at(7, 7, d) == 0));
    }
}
