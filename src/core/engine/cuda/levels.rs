//! Levels of a pair: the pictures and their halves. Each is matched like a separate pair, the coarsest first.

use super::job::Job;
use crate::matching::Params;
use crate::matching::levels::levels;

#[derive(Clone, Debug)]
pub(super) struct Level {
    /// Number: 0 is the finest.
    pub number: usize,
    pub params: Params,
    /// Width and height of the pictures in pixels.
    pub size: (usize, usize),
    pub has_coarser: bool,
    /// Whether the next finer level chooses its range windows by the map of this one.
    pub guides_windows: bool,
}

impl Level {
    /// The levels of a job, the finest first.
    pub fn all(job: &Job) -> Vec<Self> {
        let levels = levels(job.params, job.size);
        let coarsest = levels.len() - 1;
        let mut guides_windows = false;
        let level = |(number, (params, size)): (usize, (Params, _))| {
            let guides_windows = std::mem::replace(&mut guides_windows, params.windows);
            Level { number, params, size, has_coarser: number < coarsest, guides_windows }
        };
        levels.into_iter().enumerate().map(level).collect()
    }

    /// The job of this level; coarser levels have no rectifier, because they halve rectified pictures.
    pub fn job<'a>(&'a self, whole: &Job<'a>) -> Job<'a> {
        let rectifier = whole.rectifier.filter(|_| self.number == 0);
        Job { params: &self.params, size: self.size, rectifier, network: None }
    }

    pub fn unit(&self, name: &str) -> String {
        match self.number {
            0 => name.to_owned(),
            number => format!("{name} of level {number}"),
        }
    }

    /// Reports whether the support of the cost differs from pixel to pixel.
    pub fn has_blends(&self) -> bool {
        self.params.window.is_some_and(|window| window.by_texture) || self.has_coarser
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
        let priors = |size| {
            let levels = Level::all(&Job { params: &params, size, rectifier: None, network: None });
            levels.iter().map(|level| level.has_coarser).collect::<Vec<_>>()
        };
        assert_eq!(priors((100, 63)), [true, true, false]);
        // 65 candidates or more have windows, 33 at half size have none.
        let range = crate::frame::DisparityRange { min: 0, count: 66 };
        let params = Params { windows: true, range, ..params.clone() };
        let levels =
            Level::all(&Job { params: &params, size: (200, 200), rectifier: None, network: None });
        let windows = levels.iter().map(|level| (level.params.windows, level.guides_windows));
        assert_eq!(windows.collect::<Vec<_>>()[..2], [(true, false), (false, true)]);
        assert_eq!(priors((100, 31)), [false]);
    }
}
