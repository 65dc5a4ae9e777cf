//! Local matching: the winner straight from the cost, without paths.
//!
//! A pixel alone is ambiguous, so the costs are summed over a window (Scharstein and Szeliski, IJCV 2002,
//! section 3.2). [Block](crate::matching::block) costs already are such sums.

use crate::frame::Image;
use crate::matching::aggregation::Sums;
use crate::matching::block::{Blocks, SUM_MAX};
use crate::matching::cost::{Cost, PixelCost};
use crate::matching::params::Params;

/// Sums the costs over [`Params::sum_window`]. Window pixels outside the left view are clamped; each then
/// looks up its own match column.
pub fn sum_costs(costs: &dyn PixelCost, size: (usize, usize), params: &Params) -> Sums {
    let of_pixels: Vec<u8> = cells(size, params).map(|(x, y, d)| costs.at(x, y, d)).collect();
    let count = params.range.count;
    let sum = |i: usize| {
        let (pixel, k) = (i / count, i % count);
        let around = params.sum_window.around((pixel % size.0, pixel / size.0), size);
        let costs = around.map(|(x, y)| of_pixels[(y * size.0 + x) * count + k]);
        costs.map(u16::from).sum::<u16>()
    };
    Sums::from_values(size.0, size.1, count, (0..of_pixels.len()).map(sum).collect())
}

/// Computes the sums of block matching.
///
/// # Panics
/// If the cost is not a block cost.
pub fn block_sums(left: &Image, right: &Image, params: &Params) -> Sums {
    let Cost::Block { measure, window, truncation } = params.cost else {
        unreachable!("the cost is that of block matching")
    };
    let blocks = Blocks::new(left, right, measure, window, truncation);
    let size = (left.width(), left.height());
    let values = cells(size, params).map(|(x, y, d)| blocks.sum(x, y, d)).collect();
    Sums::from_values(size.0, size.1, params.range.count, values)
}

/// All pixels (x, y) and candidates d.
fn cells(
    size: (usize, usize),
    params: &Params,
) -> impl Iterator<Item = (usize, usize, i32)> + use<> {
    let range = params.range;
    (0..size.0 * size.1).flat_map(move |i| {
        (0..range.count).map(move |k| (i % size.0, i / size.0, range.min + k as i32))
    })
}

// The largest window of largest costs stays within the sums' range.
const _: () = assert!(255 * 11 * 11 <= SUM_MAX);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::DisparityRange;
    use crate::matching::block::BlockWindow;
    use crate::matching::cost::pixel_cost;
    use crate::matching::params::Paths;

    #[test]
    fn the_costs_of_a_window_are_added_up() {
        let left = Image::from_vec(3, 2, vec![1, 2, 4, 8, 16, 32]);
        let right = Image::from_vec(3, 2, vec![0; 6]);
        let params = Params {
            paths: Paths::None,
            sum_window: BlockWindow { width: 3, height: 1 },
            ..Params::bare(
                DisparityRange { min: 0, count: 1 },
                Cost::Ad { truncation: 20, window: 1 },
                (0, 0),
            )
        };
        let of_window = |width, height| {
            let params = Params { sum_window: BlockWindow { width, height }, ..params.clone() };
            let costs = pixel_cost(&left, &right, params.cost, None);
            let sums = sum_costs(costs.as_ref(), (3, 2), &params);
            (0..6).map(|i| sums.of_pixel(i)[0]).collect::<Vec<_>>()
        };
        assert_eq!(of_window(1, 1), [1, 2, 4, 8, 16, 20]);
        assert_eq!(of_window(3, 1), [4, 7, 10, 32, 44, 56]);
        // The row and its double, or the other way about.
        assert_eq!(of_window(1, 3), [10, 20, 28, 17, 34, 44]);
    }
}
