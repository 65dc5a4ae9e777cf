//! CPU resources the engine may use: threads, cores, priority.

use anyhow::bail;

use super::cores::Cores;
use super::placement::{Host, Placement};
use super::simd::{Simd, SimdChoice};
use super::team::Team;
use crate::core::thread;

/// Part of the machine that the engine uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuOptions {
    /// Number of threads; `None`: as many as the machine runs at once, or as there are `cores`.
    pub threads: Option<usize>,
    /// Vector instructions.
    pub simd: SimdChoice,
    /// Cores that the threads run on; `None`: those that the program may use.
    pub cores: Option<Cores>,
    /// Whether costs are computed again in every sweep of the paths instead of being kept in
    /// between: slower, for less memory.
    pub costs_anew: bool,
    /// Niceness of the threads, -20 to 19, where 19 lets all others go first; `None`: that of the
    /// program.
    pub nice: Option<i32>,
}

impl CpuOptions {
    /// The vectors and the number of threads.
    pub(super) fn simd_and_threads(self) -> anyhow::Result<(Simd, usize)> {
        let Some(simd) = self.simd.resolve() else {
            bail!(
                "this machine has no {:?} instructions; leave the choice to the engine",
                self.simd
            );
        };
        if let Some(cores) = self.cores {
            cores.check()?;
        }
        let threads = match self.threads {
            Some(0) => bail!("the CPU engine needs at least 1 thread, not 0"),
            Some(threads) => threads,
            // A control group may grant less time than there are cores.
            None => {
                let at_once = thread::available();
                self.cores.map_or(at_once, |cores| cores.len().min(at_once))
            }
        };
        Ok((simd, threads))
    }

    /// Cores and niceness of the threads.
    pub(super) fn placement(self) -> Placement {
        Placement { cores: self.cores, nice: self.nice }
    }

    /// The vectors, the threads, and the one that works in place of the caller's.
    pub(super) fn start_team(self) -> anyhow::Result<(Simd, Team, Host)> {
        let (simd, threads) = self.simd_and_threads()?;
        let (team, host) = self.placement().team(threads)?;
        Ok((simd, team, host))
    }
}
