//! Pyramid levels of a pair: the images and their halves, as many as the prior uses.

use crate::frame::Image;
use crate::matching::cost::Cost;
use crate::matching::params::{Params, Paths};
use crate::matching::pyramid::{half, half_size};
use crate::matching::texture::noise_threshold;
use crate::matching::windows;

/// Parameters and size of the next coarser level; `None` without a prior or if the images are too small.
pub fn coarser(params: &Params, size: (usize, usize)) -> Option<(Params, (usize, usize))> {
    Some((params.coarser()?, half_size(size)?))
}

/// Size of the prior maps that pairs of this size may come with ([`Params::prior_map`]); `None` if none is used.
pub fn prior_map_size(params: &Params, size: (usize, usize)) -> Option<(usize, usize)> {
    coarser(params, size).filter(|_| params.prior_map).map(|(_, size)| size)
}

/// Reports whether images of this size are matched with range windows ([`windows`]): if the parameters ask for them,
/// the range has more candidates than a tile tries, and there is a half-size map. Windows know no knight's moves, and
/// no costs that are sums over a window themselves.
pub fn has_windows(params: &Params, size: (usize, usize)) -> bool {
    params.windows
        && params.range.count > windows::CANDIDATES
        && coarser(params, size).is_some()
        && !matches!(params.paths, Paths::None | Paths::Sixteen)
        && !matches!(params.cost, Cost::Block { .. } | Cost::Ad { window: 2.., .. })
}

/// Candidates that each pixel of images of this size tries.
pub fn candidates(params: &Params, size: (usize, usize)) -> usize {
    if has_windows(params, size) { windows::CANDIDATES } else { params.range.count }
}

/// Parameters and sizes of all levels, the finest first. They ask for range windows where there are some.
pub fn levels(params: &Params, size: (usize, usize)) -> Vec<(Params, (usize, usize))> {
    let coarser = |(params, size): &(Params, _)| coarser(params, *size);
    let levels = std::iter::successors(Some((params.clone(), size)), coarser);
    let with_windows = |(params, size)| {
        let windows = has_windows(&params, size);
        (params.with_windows(windows), size)
    };
    levels.map(with_windows).collect()
}

/// Noise thresholds ([`noise_threshold`]) of a left image at every level of pairs of `size`, the finest
/// first. The image has that size or is larger, with the pair cut out of it.
pub fn noise_thresholds(left: &Image, params: &Params, size: (usize, usize)) -> Vec<u32> {
    let halves = std::iter::successors(Some(half(left)), |finer| Some(half(finer)));
    let halves: Vec<Image> = halves.take(levels(params, size).len() - 1).collect();
    std::iter::once(left).chain(&halves).map(noise_threshold).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::DisparityRange;
    use crate::matching::{Cost, Prior};

    #[test]
    fn levels_go_as_far_as_the_prior_and_the_pictures_do() {
        let sizes = |count, size| {
            let range = DisparityRange { min: 0, count: 64 };
            let prior = (count > 0).then_some(Prior { levels: count, strength: 4 });
            let cost = Cost::Ad { truncation: 20, window: 1 };
            let params = Params { prior, ..Params::bare(range, cost, (1, 2)) };
            levels(&params, size).into_iter().map(|(_, size)| size).collect::<Vec<_>>()
        };
        assert_eq!(sizes(0, (1281, 720)), [(1281, 720)]);
        assert_eq!(sizes(2, (1281, 720)), [(1281, 720), (641, 360), (321, 180)]);
        assert_eq!(sizes(3, (100, 63)), [(100, 63), (50, 32), (25, 16)]);
        assert_eq!(sizes(3, (100, 31)), [(100, 31)]);
    }

    #[test]
    fn thresholds_are_of_the_picture_and_its_halves() {
        let grey = |x: usize, y: usize| (x.wrapping_mul(0x9e37_79b9) ^ (y * y * 77)) as u8 % 100;
        let left = Image::from_fn(80, 70, grey);
        let expected = [&left, &half(&left), &half(&half(&left))].map(noise_threshold);
        assert!(expected.iter().all(|&threshold| threshold > 4), "{expected:?}");
        let params = Params { prior: Some(Prior { levels: 2, strength: 4 }), ..Params::default() };
        // Windows that are cut out of it may have fewer levels.
        for (window, levels) in [((80, 70), 3), ((64, 40), 2), ((80, 31), 1)] {
            assert_eq!(noise_thresholds(&left, &params, window), expected[..levels]);
        }
    }
}
