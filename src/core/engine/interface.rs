//! The interface of an engine: a small trait that allows several pairs in flight on an engine that overlaps
//! copies and kernels, while the CPU engine finishes each at once.

use std::sync::Arc;

use anyhow::bail;

use super::Choice;
use crate::frame::{DisparityMap, Matched, StereoGeometry, StereoPair};
use crate::matching::History;
use crate::matching::tiles::TileLayout;
use crate::memory::product;
use crate::pool::Memory;
use crate::rectify::Rectifier;

/// Turns pairs into disparity maps, in order. Every engine gives the bytes of
/// [`crate::matching::match_pair`]; with tiles, of [`crate::matching::tiles::match_tiled`].
pub trait Engine: Send {
    /// Describes the engine in a few words for people: "CPU (AVX-512, 4 threads)".
    fn description(&self) -> String;

    /// Returns how many pairs may be in flight before [`Engine::collect`] must be called.
    fn depth(&self) -> usize;

    fn submit(&mut self, pair: StereoPair) -> anyhow::Result<()>;

    /// Waits for the oldest pair in flight and returns it with its results; `None` if none is in flight.
    fn collect(&mut self) -> anyhow::Result<Option<Matched>>;

    /// Makes [`Matched::stages`] list every stage from the next pair on, which costs devices a little.
    fn set_profiling(&mut self, _on: bool) {}

    /// Takes the filters' state of the stream; this engine restarts. No pair may be in flight.
    fn take_history(&mut self) -> anyhow::Result<History> {
        Ok(History::default())
    }

    /// Continues a stream of another engine from its state.
    fn resume(&mut self, _history: History) -> anyhow::Result<()> {
        Ok(())
    }

    /// Clears the state of the stream. No pair may be in flight.
    fn restart(&mut self) -> anyhow::Result<()> {
        self.resume(History::default())
    }

    /// The choice that makes such an engine again.
    fn choice(&self) -> Choice {
        Choice::Cpu
    }

    /// The tile layout; `None` if images are matched whole.
    fn layout(&self) -> Option<&TileLayout> {
        None
    }

    /// Memory for images that saves the engine a copy; `None` if any memory will do.
    fn picture_memory(&self) -> Option<Arc<dyn Memory<u8>>> {
        None
    }
}

pub trait TileEngine: Engine {
    /// Takes a pair of windows cut out of larger images, as [`Engine::submit`] takes pairs. It is independent
    /// of any stream, and gives the bytes of [`crate::matching::match_tile`] with these noise thresholds, one
    /// per level of the engine, the finest first; `None` if they are not needed.
    fn submit_tile(&mut self, pair: StereoPair, thresholds: Option<&[u32]>) -> anyhow::Result<()>;
}

#[derive(Clone, Debug)]
pub struct PairSpec {
    /// Width and height of the matched images in pixels.
    pub size: (usize, usize),
    pub rectifier: Option<Arc<Rectifier>>,
    /// Geometry for the depth, if known.
    pub geometry: Option<StereoGeometry>,
}

impl PairSpec {
    /// Rectified pairs of `width` x `height` pixels, of unknown cameras.
    pub fn rectified(width: usize, height: usize) -> Self {
        Self { size: (width, height), rectifier: None, geometry: None }
    }

    pub fn raw(rectifier: Arc<Rectifier>) -> Self {
        let (size, geometry) = (rectifier.size(), Some(rectifier.geometry()));
        Self { size, rectifier: Some(rectifier), geometry }
    }
}

/// Reason why there is no engine for these pairs, or why one does not take a pair. Wrong parameters and too little
/// memory also have types of their own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{0}")]
    Size(String),
    #[error("{0}")]
    Device(String),
    /// The engine lacks what this parameter asks for, which the message quotes.
    #[error("{0}")]
    Parameter(String),
    #[error("{0}")]
    Memory(String),
}

/// Largest number of pixels: engines number pixels and columns, shifted by any disparity, with 31 bits.
pub const PIXELS_MAX: u64 = 1 << 30;

/// Checks that engines support images of this size, regardless of memory.
pub(super) fn check_dimensions(width: usize, height: usize) -> anyhow::Result<()> {
    let reason = match product([width, height]) {
        0 => "it has no pixels".to_owned(),
        1..=PIXELS_MAX => return Ok(()),
        _ => format!("there may be {PIXELS_MAX} in all"),
    };
    bail!(Refusal::Size(format!(
        "a picture of {width}x{height} pixels cannot be matched; {reason}"
    )))
}

/// Checks that there is a noise threshold for each of these levels.
pub(super) fn check_thresholds(thresholds: Option<&[u32]>, levels: usize) -> anyhow::Result<()> {
    let Some(thresholds) = thresholds else { return Ok(()) };
    if thresholds.len() != levels || thresholds.contains(&0) {
        bail!("noise thresholds of {thresholds:?} do not suit an engine of {levels} levels");
    }
    Ok(())
}

/// Returns the prior map of a pair for an engine that takes one of this size, if any ([`prior_map_size`]).
///
/// [`prior_map_size`]: crate::matching::levels::prior_map_size
pub(super) fn prior_of(
    pair: &StereoPair,
    size: Option<(usize, usize)>,
) -> anyhow::Result<Option<&DisparityMap>> {
    let (Some(prior), Some((width, height))) = (pair.prior.as_deref(), size) else {
        return Ok(None);
    };
    if (prior.width(), prior.height()) != (width, height) {
        bail!(Refusal::Size(format!(
            "the prior map has {}x{} pixels, but the engine was made for one of {width}x{height}, half the size of \
             its pictures",
            prior.width(),
            prior.height()
        )));
    }
    Ok(Some(prior))
}

pub(super) fn check_size(pair: &StereoPair, size: (usize, usize)) -> anyhow::Result<()> {
    check_sizes(pair, [size; 2])
}

pub(super) fn check_sizes(pair: &StereoPair, sizes: [(usize, usize); 2]) -> anyhow::Result<()> {
    let views = [(&pair.left, "left"), (&pair.right, "right")];
    for ((image, eye), (width, height)) in views.into_iter().zip(sizes) {
        if (image.width(), image.height()) != (width, height) {
            bail!(Refusal::Size(format!(
                "the {eye} picture has {}x{} pixels, but the engine was made for {width}x{height}",
                image.width(),
                image.height()
            )));
        }
    }
    Ok(())
}
