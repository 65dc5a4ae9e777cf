//! Choice of the tiles: the layout in the settings, or the smallest number that fits the memory.

#[cfg(feature = "wgpu")]
use super::PriorFrom;
use super::cpu::{CpuEngine, CpuOptions};
use super::cuda::{CudaEngine, TooLarge};
use super::interface::{Engine, PairSpec, TileEngine};
use super::prior::{guided, with_network};
use super::tiled::TiledEngine;
#[cfg(feature = "wgpu")]
use super::webgpu::{WebGpuEngine, WebGpuOptions};
use super::{Options, Tiling};
use crate::matching::Params;
use crate::matching::tiles::{TileLayout, Tiles, TooManyTiles, of_tile};
use crate::memory::{Budget, TooMuch};

/// Overlap of the bands of `auto`, in pixels. With it, maps differ from the whole image's little more near
/// seams than elsewhere ([`crate::matching::tiles`]).
pub const OVERLAP: usize = 128;

/// Checks that images can be divided into the tiles of the options, on any engine.
pub fn check(params: &Params, pairs: &PairSpec, options: &Options) -> Result<(), TooManyTiles> {
    match options.tiling {
        Tiling::Into(tiles) => TileLayout::new(tiles, pairs.size, params.range).map(drop),
        Tiling::Auto | Tiling::Off => Ok(()),
    }
}

/// Checks that the whole budget holds an engine on the CPU, if images are not cut into tiles.
pub fn check_memory(params: &Params, pairs: &PairSpec, options: &Options) -> anyhow::Result<()> {
    match options.tiling {
        Tiling::Off => CpuEngine::check_memory(params, pairs, options.cpu).map_err(with_cure),
        Tiling::Auto | Tiling::Into(_) => Ok(()),
    }
}

type Made = anyhow::Result<Box<dyn Engine>>;
type MadeForTiles = anyhow::Result<Box<dyn TileEngine>>;

pub fn on_cpu(params: &Params, pairs: &PairSpec, options: &Options) -> Made {
    let left = left(options);
    let whole = || -> Made {
        let cpu = CpuEngine::options_within(left, params, pairs.size, options.cpu)?;
        Ok(Box::new(CpuEngine::new(params, pairs, cpu)?))
    };
    // Tiles are a sign of little memory.
    let cpu = CpuOptions { costs_anew: true, ..options.cpu };
    let make = |params: &Params, pairs: &PairSpec| -> MadeForTiles {
        Ok(Box::new(CpuEngine::new(params, pairs, cpu)?))
    };
    let tiled = |layout| TiledEngine::new(layout, params, pairs, cpu, 1, make);
    match options.tiling {
        Tiling::Off => whole().map_err(with_cure),
        Tiling::Into(tiles) => {
            let made = tiled(TileLayout::new(tiles, pairs.size, params.range)?);
            Ok(Box::new(made.map_err(with_cure_of(tiles))?))
        }
        Tiling::Auto => match bands_for_cpu(params, pairs, options, left)? {
            Some(layout) => {
                announce(&layout);
                Ok(Box::new(tiled(layout)?))
            }
            None => whole(),
        },
    }
}

/// Bytes of the budget for an engine.
fn left(options: &Options) -> u64 {
    Budget::of_process().left().saturating_sub(options.spare)
}

/// The smallest number of bands that fits `left` bytes; `None` if the whole image or none fits.
fn bands_for_cpu(
    params: &Params,
    pairs: &PairSpec,
    options: &Options,
    left: u64,
) -> anyhow::Result<Option<TileLayout>> {
    let cpu = CpuOptions { costs_anew: true, ..options.cpu };
    let estimate = |params: &Params, (width, height)| {
        CpuEngine::estimate(params, width, height, cpu).map(|estimate| estimate.host)
    };
    if estimate(params, pairs.size)? <= left {
        return Ok(None);
    }
    let of_tile = of_tile(params);
    for layout in bands(params, pairs) {
        let beside = TiledEngine::bytes_of(&layout, params, pairs, cpu, 1)?;
        if estimate(&of_tile, layout.window)?.saturating_add(beside) <= left {
            return Ok(Some(layout));
        }
    }
    Ok(None)
}

/// Bands of the full width, two or more. Their cores are at least as high as the overlap, so that at most
/// twice the image's rows are matched.
fn bands(params: &Params, pairs: &PairSpec) -> impl Iterator<Item = TileLayout> {
    let (size, range) = (pairs.size, params.range);
    let bands =
        move |rows| TileLayout::new(Tiles { rows, columns: 1, overlap: OVERLAP }, size, range);
    (2..=size.1 / OVERLAP).map_while(move |rows| bands(rows).ok())
}

/// Makes an engine on an NVIDIA GPU. It runs the network of the program itself if it matches whole images.
pub fn on_cuda(params: &Params, pairs: &PairSpec, options: &Options) -> Made {
    let make = |params: &Params, pairs: &PairSpec| -> MadeForTiles {
        Ok(Box::new(CudaEngine::new(params, pairs, &options.cuda)?))
    };
    let whole = || -> Made {
        if let Some(network) = options.own_network(params, pairs.size) {
            let (params, _) = with_network(params, pairs.size)?;
            let cuda = &options.cuda;
            return Ok(Box::new(CudaEngine::with_network(&params, pairs, Some(&network), cuda)?));
        }
        guided(params, pairs, options, |params, pairs| Ok(make(params, pairs)?))
    };
    let in_flight = options.cuda.in_flight;
    let tiled = |layout| -> Made {
        guided(params, pairs, options, |params, pairs| {
            let made = TiledEngine::new(layout, params, pairs, options.cpu, in_flight, make);
            Ok(Box::new(made?))
        })
    };
    match options.tiling {
        Tiling::Off => whole().map_err(with_cure),
        Tiling::Into(tiles) => {
            tiled(TileLayout::new(tiles, pairs.size, params.range)?).map_err(with_cure_of(tiles))
        }
        Tiling::Auto => fewest_bands(bands(params, pairs), whole(), tiled),
    }
}

/// Makes an engine on a GPU of any maker. Images are cut into bands within the engine, so that tiles are those that
/// the options ask for. It runs the network of the program itself if it matches whole images.
#[cfg(feature = "wgpu")]
pub fn on_wgpu(params: &Params, pairs: &PairSpec, options: &Options) -> Made {
    let make = |params: &Params, pairs: &PairSpec| -> MadeForTiles {
        Ok(Box::new(WebGpuEngine::new(params, pairs, WebGpuOptions::default(), options.cpu)?))
    };
    let whole = |params: &Params, pairs: &PairSpec| -> Made {
        Ok(Box::new(WebGpuEngine::of(params, pairs, options)?))
    };
    match (options.tiling, &options.prior_from) {
        (Tiling::Into(tiles), _) => guided(params, pairs, options, |params, pairs| {
            let layout = TileLayout::new(tiles, pairs.size, params.range)?;
            Ok(Box::new(TiledEngine::new(layout, params, pairs, options.cpu, 2, make)?))
        }),
        (_, PriorFrom::Learned(_)) => whole(params, pairs),
        _ => guided(params, pairs, options, whole),
    }
}

/// Returns `whole` or, if memory is short, the result of `tiled` for the first bands that fit. An engine that
/// does not fit fails before it allocates, and reports the needed and the free bytes. Bands that are
/// hopelessly large by these figures are skipped.
fn fewest_bands(
    bands: impl Iterator<Item = TileLayout>,
    whole: Made,
    mut tiled: impl FnMut(TileLayout) -> Made,
) -> Made {
    let error = match whole {
        Err(error) if shortage(&error).is_some() => error,
        made => return made,
    };
    let mut least = shortage(&error);
    let mut before = 1;
    for layout in bands {
        let count = layout.tiles.len();
        // Memory falls at most in proportion to the height of the bands.
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

/// Returns the needed and the free bytes if the error is a lack of memory.
fn shortage(error: &anyhow::Error) -> Option<(u64, u64)> {
    let of_device = error.downcast_ref().map(|e: &TooLarge| (e.needed as u64, e.free as u64));
    of_device.or_else(|| error.downcast_ref().map(TooMuch::shortage))
}

fn announce(layout: &TileLayout) {
    tracing::info!("{layout}: the whole picture needs more memory than there is");
}

/// Adds a cure to the error of the whole image if tiles would help.
fn with_cure(error: anyhow::Error) -> anyhow::Error {
    match shortage(&error) {
        Some(_) => error.context("`tiles=off` needs memory for the whole picture, auto needs less"),
        None => error,
    }
}

fn with_cure_of(tiles: Tiles) -> impl Fn(anyhow::Error) -> anyhow::Error {
    move |error| match shortage(&error) {
        Some(_) => error.context(format!("`tiles` {tiles} are too large: more rows need less")),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{DisparityRange, Matched, StereoPair};
    use crate::matching::{Cost, Paths, Window};

    /// An engine with a description only.
    struct Named(String);

    impl Engine for Named {
        fn description(&self) -> String {
            self.0.clone()
        }
        fn depth(&self) -> usize {
            1
        }
        fn submit(&mut self, _: StereoPair) -> anyhow::Result<()> {
            anyhow::bail!("it cannot match")
        }
        fn collect(&mut self) -> anyhow::Result<Option<Matched>> {
            Ok(None)
        }
    }

    fn params() -> Params {
        let range = DisparityRange { min: 0, count: 64 };
        let params = Params::bare(range, Cost::Ad { truncation: 20, window: 1 }, (5, 60));
        Params { paths: Paths::Eight, ..params }
    }

    #[test]
    fn costs_are_kept_where_there_is_memory_for_them() {
        let window = Some(Window { side: 5, by_texture: true });
        let (params, size) = (Params { window, ..params() }, (640, 480));
        let kept = CpuOptions { threads: Some(2), ..CpuOptions::default() };
        let anew = CpuOptions { costs_anew: true, ..kept };
        let bytes = |cpu| CpuEngine::estimate(&params, size.0, size.1, cpu).unwrap().host;
        // Two threads have bands of eight rows instead, and twelve rows of single pixels' costs each instead
        // of eight, plus three times four rows to pass on; an empty block takes a cache line.
        let [with, without] = [kept, anew].map(bytes);
        let row = 640 * 64;
        let (with_rows, without_rows) = (480 + 2 * 8 + 3 * 4, 2 * 8 + 2 * 12);
        assert_eq!(with - without, (row * with_rows + 2 * 64) - (64 + 64 + row * without_rows));
        let chosen =
            |left| CpuEngine::options_within(left, &params, size, kept).unwrap().costs_anew;
        assert_eq!([chosen(with), chosen(with - 1), chosen(without)], [false, true, true]);
        // Above a gigabyte, costs are not kept even if there is memory.
        let large = CpuEngine::options_within(u64::MAX, &params, (6400, 4800), kept).unwrap();
        assert!(large.costs_anew);
        // Kept costs do not cause tiling.
        let options = Options { cpu: kept, ..Options::default() };
        let pairs = PairSpec::rectified(size.0, size.1);
        assert_eq!(bands_for_cpu(&params, &pairs, &options, without).unwrap(), None);
        let bands = bands_for_cpu(&params, &pairs, &options, without - 1).unwrap();
        assert!(bands.is_some_and(|layout| layout.tiles.len() > 1));
    }

    #[test]
    fn the_fewest_bands_that_fit_are_chosen_and_whole_pictures_stay_whole() {
        let (params, pairs) = (params(), PairSpec::rectified(640, 3000));
        let options = Options::default();
        let chosen = |left| bands_for_cpu(&params, &pairs, &options, left).unwrap();
        let taken = |layout: &TileLayout| {
            let (width, height) = layout.window;
            let engine = CpuEngine::estimate(&params, width, height, options.cpu).unwrap().host;
            engine + TiledEngine::bytes_of(layout, &params, &pairs, options.cpu, 1).unwrap()
        };
        let whole = CpuEngine::estimate(&params, 640, 3000, options.cpu).unwrap().host;
        assert_eq!(chosen(whole), None);
        let all: Vec<_> = bands(&params, &pairs).collect();
        assert_eq!((all.first().unwrap().cut.rows, all.last().unwrap().cut.rows), (2, 23));
        for (number, layout) in all.iter().enumerate().filter(|(_, all)| taken(all) < whole) {
            let fitting = all[..number].iter().find(|fewer| taken(fewer) <= taken(layout));
            assert_eq!(chosen(taken(layout)).as_ref(), fitting.or(Some(layout)));
        }
        let least = all.iter().map(taken).min().unwrap();
        assert!(least < whole / 2, "{least} of {whole}");
        assert_eq!(chosen(least - 1), None);
        let low = PairSpec::rectified(640, 255);
        assert_eq!(bands_for_cpu(&params, &low, &options, 1000).unwrap(), None);
    }

    #[test]
    fn bands_for_a_device_follow_from_what_it_refuses() {
        let (params, pairs) = (params(), PairSpec::rectified(640, 3000));
        // 100 bytes plus 10 per row.
        let needed = |rows: usize| 100 + 10 * rows;
        let refused = |rows: usize, free: usize| TooLarge {
            limited: false,
            needed: needed(rows),
            free,
            total: 1 << 20,
            largest: String::new(),
        };
        let heights: Vec<_> = bands(&params, &pairs).map(|layout| layout.window.1).collect();
        for free in [needed(heights[0]), 9000, 5000, needed(*heights.last().unwrap())] {
            let mut tried = 0;
            let made =
                fewest_bands(bands(&params, &pairs), Err(refused(3000, free).into()), |layout| {
                    tried += 1;
                    match needed(layout.window.1) <= free {
                        true => Ok(Box::new(Named(layout.to_string()))),
                        false => Err(refused(layout.window.1, free).into()),
                    }
                });
            let rows = 2 + heights.iter().position(|&height| needed(height) <= free).unwrap();
            assert!(made.unwrap().description().starts_with(&format!("{rows}x1 ")), "{free}");
            assert!(tried <= 8, "{tried} for {free}");
        }
        let none = fewest_bands(bands(&params, &pairs), Err(refused(3000, 50).into()), |layout| {
            Err(refused(layout.window.1, 50).into())
        });
        let error = none.err().unwrap();
        assert_eq!(error.downcast_ref(), Some(&refused(3000, 50)), "that of the whole picture");
        let other = fewest_bands(bands(&params, &pairs), Err(anyhow::anyhow!("broken")), |_| {
            panic!("nothing to be tried")
        });
        assert_eq!(other.err().unwrap().to_string(), "broken");
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_cure() {
        let pairs = PairSpec::rectified(1 << 20, 1 << 10);
        let refused = |tiling| {
            let range = DisparityRange { min: 0, count: 1024 };
            let options = Options { tiling, ..Options::default() };
            let error = on_cpu(&Params { range, ..params() }, &pairs, &options).err().unwrap();
            format!("{error:#}")
        };
        // Hundreds of GiB.
        for (tiling, cure) in [
            (Tiling::Off, "auto needs less: matching 1048576x1024"),
            (Tiling::Into(Tiles { rows: 2, columns: 1, overlap: 8 }), "more rows need less"),
            (Tiling::Into(Tiles { rows: 1025, columns: 1, overlap: 8 }), "fewer `tiles`"),
        ] {
            assert!(refused(tiling).contains(cure), "{tiling:?}: {}", refused(tiling));
        }
    }
}
