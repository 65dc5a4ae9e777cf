//! Local matching: the winner straight from the cost, without paths.
//!
//! A pixel by itself is ambiguous; so the costs are summed over a window (Scharstein and Szeliski, IJCV 2002,
//! section 3.2). Those that compare windows ([`block`](crate::matching::block)) are such sums already.

use crate::frame::Image;
use crate::matching::aggregation::Sums;
use crate::matching::block::{Blocks, SUM_MAX};
use crate::matching::cost::{Cost, pixel_cost};
use crate::matching::mutual_information::CostTable;
use crate::matching::params::Params;

/// S(p, d) of every pixel and candidate: the sum of a block cost, or the costs of the pixels of
/// [`Params::sum_window`] added up. Window pixels outside the left picture are replaced by the nearest pixel
/// inside; each then looks up its own match column. `table` is that of [`pixel_cost`].
pub fn sums(left: &Image, right: &Image, params: &Params, table: Option<&CostTable>) -> Sums {
    let (size, range) = ((left.width(), left.height()), params.range);
    let cells = (0..size.0 * size.1).flat_map(|i| {
        (0..range.count).map(move |k| (i % size.0, i / size.0, range.min + k as i32))
    });
    let values = match params.cost {
        Cost::Block { measure, window, truncation } => {
            let blocks = Blocks::new(left, right, measure, window, truncation);
            cells.map(|(x, y, d)| blocks.sum(x, y, d)).collect()
        }
        cost => {
            let cost = pixel_cost(left, right, cost, table);
            let of_pixels: Vec<u8> = cells.map(|(x, y, d)| cost.at(x, y, d)).collect();
            let sum = |i: usize| {
                let (pixel, k) = (i / range.count, i % range.count);
                let around = params.sum_window.around((pixel % size.0, pixel / size.0), size);
                let costs = around.map(|(x, y)| of_pixels[(y * size.0 + x) * range.count + k]);
                costs.map(u16::from).sum::<u16>()
            };
            (0..of_pixels.len()).map(sum).collect()
        }
    };
    Sums::from_values(size.0, size.1, range.count, values)
}

// A byte for every pixel of the largest window.
const _: () = assert!(255 * 11 * 11 <= SUM_MAX);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::DisparityRange;
    use crate::matching::block::BlockWindow;
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
            let sums = sums(&left, &right, &params, None);
            (0..6).map(|i| sums.of_pixel(i)[0]).collect::<Vec<_>>()
        };
        assert_eq!(of_window(1, 1), [1, 2, 4, 8, 16, 20]);
        assert_eq!(of_window(3, 1), [4, 7, 10, 32, 44, 56]);
        // The row and its double, or the other way about.
        assert_eq!(of_window(1, 3), [10, 20, 28, 17, 34, 44]);
    }
}
