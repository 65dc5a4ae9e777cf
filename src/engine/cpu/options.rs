//! What of the machine the CPU engine may use.

use anyhow::{Context, bail};

use super::simd::{Simd, SimdChoice};
use super::team::Team;

/// Part of the machine that the engine uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuOptions {
    /// Number of threads; `None`: as many as the machine runs at once.
    pub threads: Option<usize>,
    /// Vector instructions.
    pub simd: SimdChoice,
}

impl CpuOptions {
    /// The vectors and the number of threads.
    pub(super) fn hands(self) -> anyhow::Result<(Simd, usize)> {
        let Some(simd) = self.simd.resolve() else {
            bail!(
                "this machine has no {:?} instructions; leave the choice to the engine",
                self.simd
            );
        };
        let threads = match self.threads {
            Some(0) => bail!("the CPU engine needs at least 1 thread, not 0"),
            Some(threads) => threads,
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        Ok((simd, threads))
    }

    /// The vectors and the threads.
    pub(super) fn crew(self) -> anyhow::Result<(Simd, Team)> {
        let (simd, threads) = self.hands()?;
        let team =
            Team::new(threads).with_context(|| format!("starting {threads} matcher threads"))?;
        Ok((simd, team))
    }
}
