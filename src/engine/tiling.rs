//! The tiles that an engine matches in: those that the user names, or as few as the memory asks for.

use super::cpu::CpuEngine;
use super::cuda::{CudaEngine, TooLarge};
use super::interface::{Engine, PairSpec};
use super::options::{Options, Tiling};
use super::tiled::TiledEngine;
use crate::matching::Params;
use crate::matching::tiles::{Layout, Tiles, of_tile};
use crate::memory::{Budget, TooMuch};

/// Overlap of the bands that `auto` chooses, in pixels.
pub const OVERLAP: usize = 128;

type Made = anyhow::Result<Box<dyn Engine>>;

/// An engine on the CPU.
///
/// # Errors
/// As of [`CpuEngine::new`], and tiles that the picture is too small for.
pub fn on_cpu(params: &Params, pairs: &PairSpec, options: &Options) -> Made {
    let make = |params: &Params, pairs: &PairSpec| -> Made {
        Ok(Box::new(CpuEngine::new(params, pairs, options.cpu)?))
    };
    let tiled = |layout| TiledEngine::new(layout, params, pairs, options.cpu, 1, make);
    match options.tiling {
        Tiling::Off => make(params, pairs).map_err(with_cure),
        Tiling::Into(tiles) => {
            let made = tiled(Layout::new(tiles, pairs.size, params.range)?);
            Ok(Box::new(made.map_err(with_cure_of(tiles))?))
        }
        Tiling::Auto => match bands_for_cpu(params, pairs, options)? {
            Some(layout) => {
                announce(&layout);
                Ok(Box::new(tiled(layout)?))
            }
            None => make(params, pairs),
        },
    }
}

/// The fewest bands for which the budget suffices; `None` where the whole picture fits, or no bands do.
fn bands_for_cpu(
    params: &Params,
    pairs: &PairSpec,
    options: &Options,
) -> anyhow::Result<Option<Layout>> {
    let left = Budget::of_process().left().saturating_sub(options.spare);
    let estimate = |params: &Params, (width, height)| {
        CpuEngine::estimate(params, width, height, options.cpu).map(|estimate| estimate.host)
    };
    if estimate(params, pairs.size)? <= left {
        return Ok(None);
    }
    let of_tile = of_tile(params);
    for layout in bands(params, pairs) {
        let beside = TiledEngine::bytes_of(&layout, params, pairs, options.cpu, 1)?;
        if estimate(&of_tile, layout.window)?.saturating_add(beside) <= left {
            return Ok(Some(layout));
        }
    }
    Ok(None)
}

/// Bands of the full width, two and more. Their cores are no lower than the overlap, so that at most twice as
/// many rows are matched as there are.
fn bands(params: &Params, pairs: &PairSpec) -> impl Iterator<Item = Layout> {
    let (size, range) = (pairs.size, params.range);
    let bands = move |rows| Layout::new(Tiles { rows, columns: 1, overlap: OVERLAP }, size, range);
    (2..=size.1 / OVERLAP).map_while(move |rows| bands(rows).ok())
}

/// An engine on an NVIDIA GPU.
///
/// # Errors
/// As of [`CudaEngine::new`], and tiles that the picture is too small for.
pub fn on_cuda(params: &Params, pairs: &PairSpec, options: &Options) -> Made {
    let make = |params: &Params, pairs: &PairSpec| -> Made {
        Ok(Box::new(CudaEngine::new(params, pairs, &options.cuda)?))
    };
    let in_flight = options.cuda.in_flight;
    let tiled = |layout| -> Made {
        let made = TiledEngine::new(layout, params, pairs, options.cpu, in_flight, make);
        Ok(Box::new(made?))
    };
    match options.tiling {
        Tiling::Off => make(params, pairs).map_err(with_cure),
        Tiling::Into(tiles) => {
            tiled(Layout::new(tiles, pairs.size, params.range)?).map_err(with_cure_of(tiles))
        }
        Tiling::Auto => fewest_bands(bands(params, pairs), make(params, pairs), tiled),
    }
}

/// What `whole` is, or where memory was lacking for that, what `tiled` makes of the first bands that it has
/// memory for. An engine refuses before it allocates anything, with what is needed and what is free; so much
/// higher bands than that are not tried.
fn fewest_bands(
    bands: impl Iterator<Item = Layout>,
    whole: Made,
    mut tiled: impl FnMut(Layout) -> Made,
) -> Made {
    let error = match whole {
        Err(error) if shortage(&error).is_some() => error,
        made => return made,
    };
    let mut least = shortage(&error);
    let mut before = 1;
    for layout in bands {
        let count = layout.tiles.len();
        // Memory falls no faster than the height of the bands.
        let is_hopeless = least.is_none_or(|(needed, free)| {
            u128::from(needed) * before > u128::from(free) * count as u128
        });
        if is_hopeless {
            continue;
        }
        match tiled(layout.clone()) {
            Err(refused) if shortage(&refused).is_some() => least = shortage(&refused),
            Err(other) => return Err(other),
            Ok(engine) => {
                announce(&layout);
                return Ok(engine);
            }
        }
        before = count as u128;
    }
    Err(error)
}

/// Bytes that were needed and bytes that there are, where the error is that these are too few.
fn shortage(error: &anyhow::Error) -> Option<(u64, u64)> {
    let of_device = error.downcast_ref().map(|e: &TooLarge| (e.needed as u64, e.free as u64));
    of_device.or_else(|| error.downcast_ref().map(TooMuch::shortage))
}

fn announce(layout: &Layout) {
    tracing::info!("{layout}: the whole picture needs more memory than there is");
}

/// The error of the whole picture, where tiles would help.
fn with_cure(error: anyhow::Error) -> anyhow::Error {
    match shortage(&error) {
        Some(_) => error.context("--tiles off needs memory for the whole picture, auto needs less"),
        None => error,
    }
}

/// The error of these tiles, where others would help.
fn with_cure_of(tiles: Tiles) -> impl Fn(anyhow::Error) -> anyhow::Error {
    move |error| match shortage(&error) {
        Some(_) => error.context(format!("--tiles {tiles} are too large: more rows need less")),
        None => error,
    }
}
