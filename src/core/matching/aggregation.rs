//! Costs summed along several paths through every pixel (Hirschmüller, PAMI 2008, section 2.3).
//!
//! L_r(p, d) = C(p, d) + min(L_r(p-r, d), L_r(p-r, d±1) + P1, min_k L_r(p-r, k) + P2)
//!             - min_k L_r(p-r, k), and L_r = C where p-r lies outside the image;
//! S(p, d) is the sum of L_r(p, d) over all directions r.
//!
//! A step of the surface that the prior expects between p-r and p is free (Scharstein, Taniai, Sinha, 3DV 2017,
//! in a softer form): where the expected disparities differ by s = 1 or -1 ([`slant`]), min(L_r(p-r, d),
//! L_r(p-r, d+s)) takes the place of L_r(p-r, d) above.

use crate::frame::Image;
use crate::matching::cost::PixelCost;
use crate::matching::params::Params;
use crate::matching::prior::slant;
use crate::matching::windows::{BLOCK, NO_SUM, Windows};

/// Path cost of a candidate that a pixel does not try ([`Windows`]). It lowers no other, because the least one and P2
/// together are at most 255 ([`Params::check`]).
const NO_PATH_COST: u8 = u8::MAX;

/// S(p, d) of every pixel and candidate.
pub struct Sums {
    /// Width of the image in pixels.
    pub width: usize,
    /// Height of the image in pixels.
    pub height: usize,
    /// Number of candidates.
    pub count: usize,
    values: Vec<u16>,
}

impl Sums {
    /// S of pixel (x, y) for every candidate, smallest disparity first.
    pub fn at(&self, x: usize, y: usize) -> &[u16] {
        self.of_pixel(y * self.width + x)
    }

    /// S of pixel number `i`, counted row by row, for every candidate.
    pub fn of_pixel(&self, i: usize) -> &[u16] {
        &self.values[i * self.count..][..self.count]
    }

    /// Wraps sums in the order of [`Sums::at`], row by row.
    ///
    /// # Panics
    /// If `values` does not have one number per pixel and candidate.
    pub fn from_values(width: usize, height: usize, count: usize, values: Vec<u16>) -> Self {
        assert_eq!(values.len(), width * height * count);
        Self { width, height, count, values }
    }
}

/// The sums over all of `params.paths`; `left` steers the adaptive P2. `expected` is the surface that paths follow
/// freely, if there is one; `windows` are the candidates that each pixel tries, if not all.
pub fn aggregate(
    cost: &dyn PixelCost,
    left: &Image,
    expected: Option<&[Option<i32>]>,
    windows: Option<&Windows>,
    params: &Params,
) -> Sums {
    let (width, height, count) = (left.width(), left.height(), params.range.count);
    let mut values = vec![0u16; width * height * count];
    for &step in params.paths.steps() {
        let path = path_costs(cost, left, expected, windows, params, step);
        for (sum, path_cost) in values.iter_mut().zip(path) {
            *sum += u16::from(path_cost);
        }
    }
    for (i, sums) in values.chunks_exact_mut(count).enumerate() {
        let tried = tried(windows, (i % width, i / width));
        sums.iter_mut().enumerate().filter(|&(k, _)| !tried(k)).for_each(|(_, sum)| *sum = NO_SUM);
    }
    Sums { width, height, count, values }
}

/// Returns which candidates pixel (x, y) tries.
fn tried(windows: Option<&Windows>, (x, y): (usize, usize)) -> impl Fn(usize) -> bool {
    let blocks = windows.map(|windows| windows.of_pixel(x, y));
    move |k| blocks.is_none_or(|blocks| blocks.contains(&((k / BLOCK) as u16)))
}

/// L_r of every pixel and candidate for the direction r = `step`.
pub fn path_costs(
    cost: &dyn PixelCost,
    left: &Image,
    expected: Option<&[Option<i32>]>,
    windows: Option<&Windows>,
    params: &Params,
    (dx, dy): (i32, i32),
) -> Vec<u8> {
    let (width, height, count) = (left.width(), left.height(), params.range.count);
    let (p1, p2) = (u32::from(params.p1), params.p2);
    let mut path = vec![0u8; width * height * count];
    for i in 0..width * height {
        // The scan direction ensures that the previous pixel on the path is done.
        let (x, y) = (i % width, i / width);
        let x = if dx < 0 { width - 1 - x } else { x };
        let y = if dy < 0 { height - 1 - y } else { y };
        let tried = tried(windows, (x, y));
        let pixel_costs = (0..count).map(|k| match tried(k) {
            true => cost.at(x, y, params.range.min + k as i32),
            false => NO_PATH_COST,
        });

        let at = (y * width + x) * count;
        let (before_x, before_y) = (x as i64 - i64::from(dx), y as i64 - i64::from(dy));
        let inside =
            (0..width as i64).contains(&before_x) && (0..height as i64).contains(&before_y);
        if !inside {
            pixel_costs.enumerate().for_each(|(k, c)| path[at + k] = c);
            continue;
        }
        let (before_x, before_y) = (before_x as usize, before_y as usize);
        let before_at = (before_y * width + before_x) * count;
        let mut before = path[before_at..][..count].to_vec();
        // A path goes on with the candidates that both pixels try; without any it begins anew, as all are alike.
        for (_, path) in before.iter_mut().enumerate().filter(|&(k, _)| !tried(k)) {
            *path = NO_PATH_COST;
        }
        let least = u32::from(*before.iter().min().expect("at least one candidate"));
        let step = expected.map_or(0, |expected| {
            slant(expected[before_y * width + before_x], expected[y * width + x])
        });
        extend(&mut before, step);
        let brightness_step = left.row(y)[x].abs_diff(left.row(before_y)[before_x]);
        let p2 = u32::from(params.p2_mode.penalty(params.p1, p2, brightness_step));

        for (k, c) in pixel_costs.enumerate() {
            let mut best = u32::from(before[k]).min(least + p2);
            if k > 0 {
                best = best.min(u32::from(before[k - 1]) + p1);
            }
            if k + 1 < count {
                best = best.min(u32::from(before[k + 1]) + p1);
            }
            path[at + k] =
                if tried(k) { (u32::from(c) + best - least) as u8 } else { NO_PATH_COST };
        }
    }
    path
}

/// Lets the path costs of a pixel hold for the next one on a surface with this slant: those of candidate d + slant
/// hold for d, too.
fn extend(path: &mut [u8], slant: i32) {
    let costs = path.to_vec();
    for (k, cost) in path.iter_mut().enumerate() {
        let beside = k.checked_add_signed(slant as isize).and_then(|k| costs.get(k));
        *cost = beside.map_or(*cost, |&beside| beside.min(*cost));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::DisparityRange;
    use crate::matching::cost::Cost;
    use crate::matching::params::{P2Mode, Paths};

    /// A cost written down as a table, [y][x][d].
    struct Table(Vec<Vec<Vec<u8>>>);
    impl PixelCost for Table {
        fn at(&self, x: usize, y: usize, d: i32) -> u8 {
            self.0[y][x][d as usize]
        }
    }

    fn params(count: usize, paths: Paths, p2_mode: P2Mode) -> Params {
        let cost = Cost::Ad { truncation: 100, window: 1 };
        let range = DisparityRange { min: 0, count };
        Params { paths, p2_mode, ..Params::bare(range, cost, (2, 6)) }
    }

    #[test]
    fn one_row_to_the_right_by_hand() {
        let cost = Table(vec![vec![vec![9, 0, 9, 9], vec![5, 5, 5, 1], vec![0, 20, 20, 20]]]);
        let left = Image::from_vec(3, 1, vec![0, 0, 0]);
        let path =
            path_costs(&cost, &left, None, None, &params(4, Paths::Four, P2Mode::Fixed), (1, 0));
        assert_eq!(path[..4], [9, 0, 9, 9]);
        // least 0: k0 min(9, 0+2, 6) = 2; k1 0; k2 2; k3 min(9, 9+2, 6) = 6.
        assert_eq!(path[4..8], [7, 5, 7, 7]);
        // least 5: k0 min(7, 5+2, 11) - 5 = 2; k1 0; k2 min(7, 5+2, 7+2) - 5 = 2; k3 2.
        assert_eq!(path[8..], [2, 20, 22, 22]);
    }

    #[test]
    fn steps_of_the_expected_surface_are_free() {
        let cost = Table(vec![vec![vec![9, 0, 9, 4], vec![5, 5, 5, 1], vec![0, 20, 20, 20]]]);
        let left = Image::from_vec(3, 1, vec![0, 0, 0]);
        let path = |expected: [Option<i32>; 3]| {
            let params = params(4, Paths::Four, P2Mode::Fixed);
            path_costs(&cost, &left, Some(&expected), None, &params, (1, 0))[4..].to_vec()
        };
        // 9 0 9 4 holds one candidate lower, too: 0 0 4 4, from which 5 + 0, 5 + 0, 5 + 2, 1 + 4.
        assert_eq!(path([Some(2), Some(1), None])[..4], [5, 5, 7, 5]);
        // One higher: 9 0 0 4, of which the last is 4, or 0 + 2.
        assert_eq!(path([Some(1), Some(2), None])[..4], [7, 5, 5, 3]);
        let plain = path([None; 3]);
        assert_eq!(plain[..4], [7, 5, 7, 5]);
        assert_eq!(path([Some(3), Some(1), Some(1)]), plain);
    }

    #[test]
    fn the_penalty_follows_the_picture() {
        let cost = Table(vec![vec![vec![0, 90, 90], vec![10, 10, 10]]]);
        let left = Image::from_vec(2, 1, vec![100, 103]);
        let mode = P2Mode::Linear { min: 1, slope_16: 16 };
        let path = path_costs(&cost, &left, None, None, &params(3, Paths::Four, mode), (1, 0));
        // Step 3 makes P2 = 6 - 3 = 3; k1 = 0 + P1.
        assert_eq!(path[3..], [10, 12, 13]);
        let path = path_costs(
            &cost,
            &left,
            None,
            None,
            &params(3, Paths::Four, P2Mode::InverseGradient),
            (1, 0),
        );
        // 6 / 3 = 2, not below P1.
        assert_eq!(path[3..], [10, 12, 12]);
        let mode = P2Mode::Linear { min: 1, slope_16: 80 };
        let path = path_costs(&cost, &left, None, None, &params(3, Paths::Four, mode), (1, 0));
        // The floor of 1 lies below P1 and so beats it.
        assert_eq!(path[3..], [10, 11, 11]);
    }

    #[test]
    fn a_diagonal_starts_anew_at_the_border() {
        let cost = Table(vec![vec![vec![1, 5], vec![4, 0]], vec![vec![3, 3], vec![7, 8]]]);
        let left = Image::from_vec(2, 2, vec![0; 4]);
        let p = params(2, Paths::Eight, P2Mode::Fixed);
        // Down-right: only (1, 1) has a predecessor, (0, 0) = [1, 5]: [0, 2].
        assert_eq!(path_costs(&cost, &left, None, None, &p, (1, 1)), [1, 5, 4, 0, 3, 3, 7, 10]);
        // Up-right: only (1, 0), from (0, 1) = [3, 3].
        assert_eq!(path_costs(&cost, &left, None, None, &p, (1, -1)), [1, 5, 4, 0, 3, 3, 7, 8]);
        // Down-left: only (0, 1), from (1, 0) = [4, 0]: [2, 0].
        assert_eq!(path_costs(&cost, &left, None, None, &p, (-1, 1)), [1, 5, 4, 0, 5, 3, 7, 8]);
    }

    #[test]
    fn a_knight_s_move_starts_anew_where_it_leaves_the_picture() {
        let costs = vec![
            vec![vec![1, 5], vec![4, 0]],
            vec![vec![3, 3], vec![7, 8]],
            vec![vec![2, 9], vec![6, 1]],
        ];
        let left = Image::from_vec(2, 3, vec![0; 6]);
        let p = params(2, Paths::Sixteen, P2Mode::Fixed);
        // Two down and one right: only (1, 2) has a predecessor, (0, 0) = [1, 5]: [0, 2] with P1 =
        // 2.
        assert_eq!(
            path_costs(&Table(costs.clone()), &left, None, None, &p, (1, 2)),
            [1, 5, 4, 0, 3, 3, 7, 8, 2, 9, 6, 3]
        );
        // Two up and one left: only (0, 0), from (1, 2) = [6, 1]: [2, 0].
        assert_eq!(
            path_costs(&Table(costs), &left, None, None, &p, (-1, -2)),
            [3, 5, 4, 0, 3, 3, 7, 8, 2, 9, 6, 1]
        );
    }

    #[test]
    fn a_single_pixel_sums_its_cost_once_a_path() {
        let cost = Table(vec![vec![vec![3, 1]]]);
        let left = Image::from_vec(1, 1, vec![0]);
        for (paths, factor) in
            [(Paths::Four, 4), (Paths::Five, 5), (Paths::Eight, 8), (Paths::Sixteen, 16)]
        {
            let sums = aggregate(&cost, &left, None, None, &params(2, paths, P2Mode::Fixed));
            assert_eq!(sums.at(0, 0), [3 * factor, factor]);
        }
    }
}
