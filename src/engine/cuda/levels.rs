//! Levels of a pair: the pictures themselves, and their halves as far as the prior reaches. Each is
//! matched like a pair of its own, the coarsest first.

use super::job::Job;
use crate::matching::Params;
use crate::matching::levels::levels;

/// One level.
#[derive(Clone, Debug)]
pub(super) struct Level {
    /// Its number: 0 is the finest.
    pub number: usize,
    /// Parameters of its matching.
    pub params: Params,
    /// Width and height in pixels of its pictures.
    pub size: (usize, usize),
    /// Reports whether there is a coarser level.
    pub has_coarser: bool,
}

impl Level {
    /// The levels of a job, the finest first.
    pub fn all(job: &Job) -> Vec<Self> {
        let levels = levels(job.params, job.size);
        let coarsest = levels.len() - 1;
        let level = |(number, (params, size))| Level {
            number,
            params,
            size,
            has_coarser: number < coarsest,
        };
        levels.into_iter().enumerate().map(level).collect()
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

    /// Reports whether the window depends on the texture.
    pub fn window_by_texture(&self) -> bool {
        self.params.window.is_some_and(|window| window.by_texture)
    }

    /// Reports whether the support of the cost differs from pixel to pixel.
    pub fn has_blends(&self) -> bool {
        self.window_by_texture() || self.prior_strength() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::Prior;

    #[test]
    fn all_levels_but_the_coarsest_have_a_prior() {
        let prior = Some(Prior { levels: 3, strength: 4 });
        let params = Params { prior, ..Params::default() };
        let strengths = |size| {
            let levels = Level::all(&Job { params: &params, size, rectifier: None });
            levels.iter().map(Level::prior_strength).collect::<Vec<_>>()
        };
        assert_eq!(strengths((100, 63)), [4, 4, 0]);
        assert_eq!(strengths((100, 31)), [0]);
    }
}
