//! Levels of a pair: the pictures themselves, and their halves as far as the prior reaches. Each is
//! matched like a pair of its own, the coarsest first.

use super::job::Job;
use crate::matching::{Params, pyramid};

/// One level.
#[derive(Clone, Debug)]
pub(super) struct Level {
    /// Its number: 0 is the finest.
    pub number: usize,
    /// Parameters of its matching.
    pub params: Params,
    /// Width and height in pixels of its pictures.
    pub size: (usize, usize),
    /// Whether there is a coarser one.
    pub has_coarser: bool,
}

impl Level {
    /// The levels of a job, the finest first.
    pub fn all(job: &Job) -> Vec<Self> {
        let finest = Level {
            number: 0,
            params: job.params.clone(),
            size: job.size,
            has_coarser: coarser(job.params, job.size).is_some(),
        };
        let levels = std::iter::successors(Some(finest), |finer| {
            let (params, size) = coarser(&finer.params, finer.size)?;
            let has_coarser = coarser(&params, size).is_some();
            Some(Level { number: finer.number + 1, params, size, has_coarser })
        });
        levels.collect()
    }

    /// The job of this level of `whole`; coarser levels have no rectifier, because their pictures are made of
    /// rectified ones.
    pub fn job<'a>(&'a self, whole: &Job<'a>) -> Job<'a> {
        let rectifier = whole.rectifier.filter(|_| self.number == 0);
        Job { params: &self.params, size: self.size, rectifier }
    }

    /// Name of a unit at this level.
    pub fn unit(&self, name: &str) -> String {
        match self.number {
            0 => name.to_owned(),
            number => format!("{name} of level {number}"),
        }
    }

    /// Strength of the prior that supports the cost, 0 where none does.
    pub fn prior_strength(&self) -> u32 {
        self.params.prior.filter(|_| self.has_coarser).map_or(0, |prior| prior.strength.into())
    }

    /// Whether the window depends on the texture.
    pub fn window_by_texture(&self) -> bool {
        self.params.window.is_some_and(|window| window.by_texture)
    }

    /// Whether what supports the cost differs from pixel to pixel.
    pub fn has_blends(&self) -> bool {
        self.window_by_texture() || self.prior_strength() > 0
    }
}

fn coarser(params: &Params, size: (usize, usize)) -> Option<(Params, (usize, usize))> {
    Some((params.coarser()?, pyramid::half_size(size)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::Prior;

    #[test]
    fn levels_go_as_far_as_the_prior_and_the_pictures_do() {
        let sizes = |levels, size| {
            let prior = Some(Prior { levels, strength: 4 });
            let params = Params { prior, ..Params::default() };
            let levels = Level::all(&Job { params: &params, size, rectifier: None });
            let strengths: Vec<_> = levels.iter().map(Level::prior_strength).collect();
            assert_eq!(strengths.split_last(), Some((&0, &vec![4; levels.len() - 1][..])));
            levels.into_iter().map(|level| level.size).collect::<Vec<_>>()
        };
        assert_eq!(sizes(2, (1281, 720)), [(1281, 720), (641, 360), (321, 180)]);
        assert_eq!(sizes(3, (100, 63)), [(100, 63), (50, 32), (25, 16)]);
        assert_eq!(sizes(3, (100, 31)), [(100, 31)]);
    }
}
