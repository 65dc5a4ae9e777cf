//! What computes disparity: one small trait, so that several pairs can be in flight on an engine
//! that overlaps copies and kernels, while the CPU engine finishes each at once.

pub mod cpu;

use std::time::Duration;

use anyhow::bail;

use crate::frame::{Matched, StereoPair};
use crate::matching::Params;
use cpu::{CpuEngine, CpuOptions};

/// Turns pairs into disparity maps, in order. Every engine gives the bytes of
/// [`crate::matching::match_pair`].
pub trait Engine: Send {
    /// What computes, in a few words for people: "CPU (AVX-512, 4 threads)".
    fn description(&self) -> String;

    /// How many pairs may be in flight before [`Engine::collect`] must be called.
    fn depth(&self) -> usize;

    /// Takes a pair.
    ///
    /// # Errors
    /// Where the pair cannot be matched: a size that the engine was not made for, a lost device.
    fn submit(&mut self, pair: StereoPair) -> anyhow::Result<()>;

    /// The oldest pair in flight with its disparity, waiting for it; `None` where none is in flight.
    ///
    /// # Errors
    /// Where the device failed.
    fn collect(&mut self) -> anyhow::Result<Option<Matched>>;

    /// How long each stage took for the pair collected last, in the order of the flow.
    fn stage_times(&self) -> &[(&'static str, Duration)];
}

/// Which engine is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The fastest that works on this machine.
    #[default]
    Auto,
    /// An NVIDIA GPU, or an error.
    Cuda,
    /// The CPU.
    Cpu,
}

/// The engine of this choice for pairs of `width` x `height` pixels. `params` must have passed
/// [`Params::check`].
///
/// # Errors
/// Where the wanted engine is not to be had, or not for these parameters.
pub fn create(
    choice: Choice,
    params: &Params,
    (width, height): (usize, usize),
    cpu: CpuOptions,
) -> anyhow::Result<Box<dyn Engine>> {
    match choice {
        Choice::Auto | Choice::Cpu => Ok(Box::new(CpuEngine::new(params, width, height, cpu)?)),
        Choice::Cuda => bail!(
            "this version of stereod has no CUDA engine yet; use --engine cpu, or leave the choice to \
             --engine auto"
        ),
    }
}
