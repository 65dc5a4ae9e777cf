//! An engine for pictures that another engine has no memory for: it matches tile after tile
//! ([`crate::matching::tiles`]).
//!
//! Raw pairs are rectified whole, on the CPU. Tiles know nothing of what a camera has not seen: that is taken
//! out of the whole map at the end.

use std::time::Instant;

use anyhow::{Context, bail};

use super::cpu::{CpuOptions, CpuRectifier};
use super::interface::{Engine, PairSpec, check_size};
use crate::frame::{DisparityMap, Image, Matched, StageTime, StereoGeometry, StereoPair};
use crate::matching::Params;
use crate::matching::tiles::Layout;
use crate::pool::Pool;

/// Matches pairs tile by tile.
pub struct TiledEngine {
    /// Of the size of the windows.
    engine: Box<dyn Engine>,
    layout: Layout,
    params: Params,
    rectifier: Option<CpuRectifier>,
    geometry: Option<StereoGeometry>,
    values: Pool<i16>,
    confidences: Pool<u8>,
    finished: Option<Matched>,
}

impl TiledEngine {
    /// Tiles of this layout, matched by `engine`, which was made for rectified pairs of the windows' size.
    ///
    /// # Errors
    /// Where there is no memory for rectifying.
    pub fn new(
        engine: Box<dyn Engine>,
        layout: Layout,
        params: &Params,
        pairs: &PairSpec,
        options: CpuOptions,
    ) -> anyhow::Result<Self> {
        let rectifier = pairs.rectifier.clone();
        Ok(Self {
            engine,
            layout,
            params: params.clone(),
            rectifier: rectifier.map(|maps| CpuRectifier::new(maps, options)).transpose()?,
            geometry: pairs.geometry,
            values: Pool::new(),
            confidences: Pool::new(),
            finished: None,
        })
    }
}

impl Engine for TiledEngine {
    fn description(&self) -> String {
        format!("{}, in {} tiles", self.engine.description(), self.layout.tiles.len())
    }

    fn depth(&self) -> usize {
        1
    }

    fn submit(&mut self, pair: StereoPair) -> anyhow::Result<()> {
        if self.finished.is_some() {
            bail!("the tiled engine holds one pair at a time; collect it before the next");
        }
        let submitted = Instant::now();
        let pair = match &mut self.rectifier {
            Some(rectifier) => rectifier.rectify(pair)?,
            None => pair,
        };
        check_size(&pair, self.layout.size)?;
        let pixels = self.layout.size.0 * self.layout.size.1;
        let mut values = self.values.try_take(pixels)?;
        let mut confidence = match self.params.confidence {
            Some(_) => Some(self.confidences.try_take(pixels)?),
            None => None,
        };
        let mut stages = Vec::new();
        let mut device_time = None;
        let mut waiting = self.layout.tiles.iter();
        let mut coming = self.layout.tiles.iter();
        let mut in_flight = 0;
        loop {
            while in_flight < self.engine.depth() {
                let Some(tile) = waiting.next() else { break };
                let [left, right] = [&pair.left, &pair.right].map(|e| self.layout.crop(tile, e));
                self.engine.submit(StereoPair::of_stills(left, right))?;
                in_flight += 1;
            }
            let Some(tile) = coming.next() else { break };
            let of_tile = self.engine.collect()?.context("the engine lost a tile")?;
            in_flight -= 1;
            self.layout.keep(tile, of_tile.disparity.values(), &mut values);
            if let (Some(all), Some(tiles)) = (&mut confidence, &of_tile.confidence) {
                self.layout.keep(tile, tiles.pixels(), all);
            }
            add_up(&mut stages, &of_tile.stages);
            device_time = device_time.into_iter().chain(of_tile.device_time).reduce(|a, b| a + b);
        }
        let (width, height) = self.layout.size;
        let mut confidence = confidence.map(|all| Image::new(width, height, all));
        self.finished = Some(Matched {
            disparity: DisparityMap::new(width, height, self.params.range, values),
            confidence: confidence.take(),
            geometry: self.geometry,
            submitted,
            finished: Instant::now(),
            stages,
            device_time,
            pair,
        });
        Ok(())
    }

    fn collect(&mut self) -> anyhow::Result<Option<Matched>> {
        Ok(self.finished.take())
    }

    fn set_profiling(&mut self, on: bool) {
        self.engine.set_profiling(on);
    }
}

/// Adds the times of a tile's stages to those of the tiles before.
fn add_up(stages: &mut Vec<StageTime>, of_tile: &[StageTime]) {
    for &(name, time) in of_tile {
        match stages.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += time,
            None => stages.push((name, time)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::CpuEngine;
    use crate::frame::DisparityRange;
    use crate::matching::tiles::{Tiles, match_tiled};

    #[test]
    fn tiles_give_the_bytes_of_the_definition() {
        let scene = |x: usize, y: usize| ((x * 37 + y * 101 + x * y * 13) % 251) as u8;
        let (width, height) = (61, 40);
        let left = || Image::from_fn(width, height, scene);
        let right = || Image::from_fn(width, height, |x, y| scene(x + 4, y));
        let range = DisparityRange { min: 0, count: 12 };
        let params = Params { range, ..Params::default() };
        for tiles in [
            Tiles { rows: 3, columns: 1, overlap: 8 },
            Tiles { rows: 2, columns: 3, overlap: 6 },
            Tiles { rows: 1, columns: 1, overlap: 0 },
        ] {
            let layout = Layout::new(tiles, (width, height), range);
            let (w, h) = layout.window;
            let pairs = PairSpec::rectified(w, h);
            let inner = CpuEngine::new(&params, &pairs, CpuOptions::default()).unwrap();
            let whole = PairSpec::rectified(width, height);
            let mut engine =
                TiledEngine::new(Box::new(inner), layout.clone(), &params, &whole, CpuOptions::default())
                    .unwrap();
            engine.submit(StereoPair::of_stills(left(), right())).unwrap();
            let got = engine.collect().unwrap().unwrap();
            let expected = match_tiled(&left(), &right(), &params, &layout);
            assert_eq!(got.disparity.values(), expected.values(), "{tiles:?}");
        }
    }
}
