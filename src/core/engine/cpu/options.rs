//! CPU resources the engine may use: threads, cores, priority.

use anyhow::bail;

use super::cores::Cores;
use super::placement::{Host, Placement};
use super::simd::{Simd, SimdChoice};
use super::team::Team;
use crate::engine::interface::Refusal;
use crate::thread;

#[derive(Clone, Copy, Debug, Default)]
pub struct CpuOptions {
    /// Number of threads; `None`: the available parallelism, at most the number of `cores`.
    pub threads: Option<usize>,
    /// Vector instructions.
    pub simd: SimdChoice,
    /// Cores of the threads; `None`: all cores of the process.
    pub cores: Option<Cores>,
    /// Whether every sweep recomputes the costs instead of keeping them: slower, for less memory.
    pub costs_anew: bool,
    /// Niceness of the threads, -20 to 19 (lowest priority); `None`: that of the process.
    pub nice: Option<i32>,
}

impl CpuOptions {
    pub(super) fn simd_and_threads(self) -> anyhow::Result<(Simd, usize)> {
        let Some(simd) = self.simd.resolve() else {
            bail!(Refusal::Device(format!(
                "this machine has no {:?} instructions; leave the choice to the engine",
                self.simd
            )));
        };
        if let Some(cores) = self.cores {
            cores.check()?;
        }
        let threads = match self.threads {
            Some(0) => {
                bail!(Refusal::Device("the CPU engine needs at least 1 thread, not 0".into()))
            }
            Some(threads) => threads,
            // A control group may grant less CPU time than the number of cores.
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

    /// Starts the threads; returns the vectors, the team, and the host that replaces the caller's thread.
    pub(in crate::engine) fn start_team(self) -> anyhow::Result<(Simd, Team, Host)> {
        let (simd, threads) = self.simd_and_threads()?;
        let (team, host) = self.placement().team(threads)?;
        Ok((simd, team, host))
    }
}
