//! `[engine]`: what computes.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::values::Unfit;

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// CUDA where there is one, else the CPU.
    #[default]
    Auto,
    /// An NVIDIA GPU, or an error.
    Cuda,
    /// The CPU.
    Cpu,
}

/// Which vector instructions the CPU engine uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Simd {
    /// The best that this machine has.
    #[default]
    Auto,
    /// AVX-512, or an error.
    Avx512,
    /// AVX2, or an error.
    Avx2,
    /// None beyond what every machine of this kind has.
    Portable,
}

/// What computes.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Engine {
    /// What computes.
    pub kind: EngineKind,
    /// Threads of the CPU engine; 0 is one a core.
    pub threads: usize,
    /// Vector instructions of the CPU engine.
    pub simd: Simd,
}

impl Engine {
    /// Largest number of threads.
    pub const THREADS_MAX: usize = 1024;

    pub(super) fn check(&self) -> Result<(), Unfit> {
        Unfit::within("threads", self.threads, 0..=Self::THREADS_MAX)
    }
}
