//! An engine for pictures that another engine has no memory for: it matches tile after tile
//! ([`crate::matching::tiles`]).
//!
//! Raw pairs are rectified whole, on the CPU. Tiles know nothing of what a camera has not seen: that is taken
//! out of the whole map at the end.

use std::time::Instant;

use anyhow::{Context, bail};

use super::cpu::{CpuOptions, CpuRectifier};
use super::interface::{Engine, PairSpec, check_size};
use crate::frame::{DisparityMap, INVALID, Image, Matched, StereoGeometry, StereoPair};
use crate::matching::Params;
use crate::matching::filter::valid_mask;
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
