//! Options of the engines.

use std::str::FromStr;

use super::cpu::CpuOptions;
use super::cuda::CudaOptions;
use crate::matching::tiles::{NoTiles, Tiles};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// The fastest that works on this machine.
    #[default]
    Auto,
    /// An NVIDIA GPU, or an error.
    Cuda,
    Cpu,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tiling {
    /// The whole image if it fits the memory, else the smallest number of full-width bands that fits.
    #[default]
    Auto,
    /// The whole image, or an error.
    Off,
    /// This layout.
    Into(Tiles),
}

/// Error for a text that is no tiling; it states the format.
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

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub cpu: CpuOptions,
    pub cuda: CudaOptions,
    pub tiling: Tiling,
    /// Bytes of the budget that `auto` tiles leave free.
    pub spare: u64,
}
