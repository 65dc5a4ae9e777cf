//! `[engine]`: what computes.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::values::{OrAuto, Unfit};

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Engine {
    /// What computes.
    pub kind: EngineKind,
    /// Threads of the CPU engine; 0 is one a core.
    pub threads: usize,
    /// Vector instructions of the CPU engine.
    pub simd: Simd,
    /// Number of the CUDA device.
    pub device: OrAuto<u16>,
    /// Pairs that the CUDA engine works on at once.
    pub in_flight: usize,
    /// Folder of compiled kernels, `auto` or `off`.
    pub kernel_cache: String,
    /// Most memory that is taken for pictures, maps and the engine, in MiB.
    pub memory_mib: OrAuto<u32>,
}

impl Default for Engine {
    fn default() -> Self {
        Engine {
            kind: EngineKind::default(),
            threads: 0,
            simd: Simd::default(),
            device: OrAuto::Auto,
            in_flight: 3,
            kernel_cache: "auto".into(),
            memory_mib: OrAuto::Auto,
        }
    }
}

/// Where compiled kernels are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelCache {
    /// In the user's cache folder.
    OfUser,
    /// Nowhere.
    Off,
    /// In this folder.
    Folder(PathBuf),
}

impl Engine {
    /// Largest number of threads.
    pub const THREADS_MAX: usize = 1024;

    /// Most pairs that an engine works on at once.
    pub const IN_FLIGHT_MAX: usize = 16;

    /// Most memory, in MiB: 16 TiB.
    pub const MEMORY_MIB_MAX: u32 = 16 << 20;

    /// Where compiled kernels are kept.
    pub fn kernel_cache(&self) -> KernelCache {
        match self.kernel_cache.as_str() {
            "auto" => KernelCache::OfUser,
            "off" => KernelCache::Off,
            folder => KernelCache::Folder(folder.into()),
        }
    }

    pub(super) fn check(&self) -> Result<(), Unfit> {
        Unfit::within("threads", self.threads, 0..=Self::THREADS_MAX)?;
        Unfit::within("in_flight", self.in_flight, 1..=Self::IN_FLIGHT_MAX)?;
        if self.memory_mib.value().is_some_and(|mib| !(1..=Self::MEMORY_MIB_MAX).contains(&mib)) {
            let expected = format!("`auto` or MiB from 1 to {}", Self::MEMORY_MIB_MAX);
            return Err(Unfit::new("memory_mib", expected));
        }
        if self.kernel_cache.is_empty() {
            return Err(Unfit::new("kernel_cache", "`auto`, `off` or a folder"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_kept_where_that_is_wanted() {
        let kept = |text: &str| Engine { kernel_cache: text.into(), ..Engine::default() };
        assert_eq!(Engine::default().kernel_cache(), KernelCache::OfUser);
        assert_eq!(kept("off").kernel_cache(), KernelCache::Off);
        assert_eq!(kept("/var/k").kernel_cache(), KernelCache::Folder("/var/k".into()));
        assert_eq!(kept("").check().unwrap_err().key, "kernel_cache");
        for mib in [0, Engine::MEMORY_MIB_MAX + 1] {
            let engine = Engine { memory_mib: OrAuto::Value(mib), ..Engine::default() };
            assert_eq!(engine.check().unwrap_err().key, "memory_mib");
        }
        let none = Engine { in_flight: 0, ..Engine::default() };
        assert_eq!(none.check().unwrap_err().key, "in_flight");
    }
}
