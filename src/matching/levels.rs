//! The levels of a pair: the pictures themselves, and their halves as far as the prior reaches.

use crate::matching::params::Params;
use crate::matching::pyramid::half_size;

/// Parameters and size of the level that is coarser than pictures of this size; `None` where there is no
/// prior, or the pictures are too small.
pub fn coarser(params: &Params, size: (usize, usize)) -> Option<(Params, (usize, usize))> {
    Some((params.coarser()?, half_size(size)?))
}

/// Parameters and sizes of all levels, the finest first.
pub fn levels(params: &Params, size: (usize, usize)) -> Vec<(Params, (usize, usize))> {
    std::iter::successors(Some((params.clone(), size)), |(params, size)| coarser(params, *size))
        .collect()
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
}
