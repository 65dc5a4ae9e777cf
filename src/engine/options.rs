//! Options of the engines.

use std::str::FromStr;

use super::cpu::CpuOptions;
use super::cuda::CudaOptions;
use crate::matching::tiles::{NoTiles, Tiles};

/// Which engine is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// The fastest that works on this machine.
    #[default]
    Auto,
    /// An NVIDIA GPU, or an error.
    Cuda,
    /// The CPU.
    Cpu,
}

/// Which tiles are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tiling {
    /// The whole image where there is memory for it, else the fewest bands of its full width that
    /// fit.
    #[default]
    Auto,
    /// The whole image, or an error.
    Off,
    /// These.
    Into(Tiles),
}

/// A text that names no tiling; says what would.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`auto`, `off`, or {0}")]
pub struct NoTiling(NoTiles);

impl FromStr for Tiling {
    type Err = NoTiling;

    fn from_str(text: &str) -> Result<Self, NoTiling> {
        match text {
            "auto" => Ok(Tiling::Auto),
            "off" => Ok(Tiling::Off),
            text => text.parse().map(Tiling::Into).map_err(NoTiling),
        }
    }
}

/// Resources of the machine that each engine may use.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// For the CPU engine.
    pub cpu: CpuOptions,
    /// For the CUDA engine.
    pub cuda: CudaOptions,
    /// Tiles that images are matched in.
    pub tiling: Tiling,
    /// Bytes of the budget that `auto` tiles leave to others.
    pub spare: u64,
}
