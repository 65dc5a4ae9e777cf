//! An engine for pictures that another engine has no memory for: it matches tile after tile
//! ([`crate::matching::tiles`]).
//!
//! Raw pairs are rectified whole, on the CPU, and so is the map that is put together of the tiles rid of what a
//! camera has not seen, smoothed in time and filled: whatever the tiles are matched on, they know nothing of
//! each other, of other pairs, or of the cameras.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::cpu::{CpuOptions, CpuRectifier, RECTIFY, WholeMap};
use super::interface::{Engine, PairSpec, check_dimensions, check_size};
use crate::frame::{DisparityMap, Image, Matched, StageTime, StereoGeometry, StereoPair};
use crate::matching::confidence::of_known;
use crate::matching::filter::{Continuity, Filter};
use crate::matching::tiles::{Layout, of_tile};
use crate::matching::{History, Params};
use crate::memory::{Budget, Reserved, product};
use crate::pool::Pool;

/// What needs less memory.
const CURE: &str = "a smaller picture";

/// Matches pairs tile by tile.
pub struct TiledEngine {
    /// Of the size of the windows.
    engine: Box<dyn Engine>,
    layout: Layout,
    params: Params,
    rectifier: Option<CpuRectifier>,
    whole: WholeMap,
    continuity: Continuity,
    /// What depth is computed from, where it is known.
    depth_from: Option<StereoGeometry>,
    windows: Pool<u8>,
    values: Pool<i16>,
    confidences: Pool<u8>,
    finished: Option<Matched>,
    _memory: Reserved,
}

impl TiledEngine {
    /// Tiles of this layout, matched by the engine that `make` gives for the tiles' parameters and windows. It
    /// is asked after the memory for everything else is reserved, for `in_flight` tiles at once.
    ///
    /// # Errors
    /// Where there is no memory for the maps and the rectified pictures, or the engine cannot be had.
    pub fn new(
        layout: Layout,
        params: &Params,
        pairs: &PairSpec,
        options: CpuOptions,
        in_flight: usize,
        make: impl FnOnce(&Params, &PairSpec) -> anyhow::Result<Box<dyn Engine>>,
    ) -> anyhow::Result<Self> {
        params.check()?;
        check_dimensions(layout.size.0, layout.size.1)?;
        let needed = Self::bytes_of(&layout, params, pairs, options, in_flight)?;
        let what = format!("putting {}x{} pixels together of tiles", layout.size.0, layout.size.1);
        let memory = Budget::of_process().reserve(what, needed, CURE)?;
        let (width, height) = layout.window;
        let engine = make(&of_tile(params), &PairSpec::rectified(width, height))?;
        let windows = Pool::new();
        if let Some(memory) = engine.picture_memory() {
            windows.take_from(memory);
        }
        let rectifier = pairs.rectifier.clone();
        Ok(Self {
            engine,
            params: params.clone(),
            rectifier: rectifier.map(|maps| CpuRectifier::new(maps, options)).transpose()?,
            whole: WholeMap::new(params, layout.size, options)?,
            continuity: Continuity::default(),
            depth_from: pairs.geometry,
            layout,
            windows,
            values: Pool::new(),
            confidences: Pool::new(),
            finished: None,
            _memory: memory,
        })
    }

    /// Memory in bytes that is taken beside that of the engine for the tiles: a pair of pictures, rectified where
    /// they come raw, its map, and the windows and maps of the tiles in flight.
    ///
    /// # Errors
    /// Options that the machine cannot follow.
    pub fn bytes_of(
        layout: &Layout,
        params: &Params,
        pairs: &PairSpec,
        options: CpuOptions,
        in_flight: usize,
    ) -> anyhow::Result<u64> {
        let map = size_of::<i16>() + usize::from(params.confidence.is_some());
        let eyes = if pairs.rectifier.is_some() { 4 } else { 2 };
        let whole = product([layout.size.0, layout.size.1, eyes + map]);
        let windows = product([layout.window.0, layout.window.1, in_flight, 2 + map]);
        let filters = WholeMap::bytes_of(params, layout.size, options)?;
        Ok(whole.saturating_add(windows).saturating_add(filters))
    }

    /// Matches all tiles of a rectified pair: the map and, where it is asked for, its confidence.
    fn match_tiles(&mut self, pair: &StereoPair, account: &mut Account) -> anyhow::Result<Map> {
        let Self { engine, layout, windows, .. } = self;
        let pixels = layout.size.0 * layout.size.1;
        let mut values = self.values.try_take(pixels)?;
        let mut confidence = match self.params.confidence {
            Some(_) => Some(self.confidences.try_take(pixels)?),
            None => None,
        };
        let (width, height) = layout.window;
        let window = |tile, eye: &Image| -> anyhow::Result<Image> {
            let mut pixels = windows.try_take(width * height)?;
            layout.crop(tile, eye, &mut pixels);
            Ok(Image::new(width, height, pixels))
        };
        let (mut next, mut in_flight) = (layout.tiles.iter(), 0);
        for tile in &layout.tiles {
            while in_flight < engine.depth()
                && let Some(tile) = next.next()
            {
                let (left, right) = (window(tile, &pair.left)?, window(tile, &pair.right)?);
                engine.submit(StereoPair::of_stills(left, right))?;
                in_flight += 1;
            }
            let matched = engine.collect()?.context("the engine lost a tile")?;
            in_flight -= 1;
            layout.keep(tile, matched.disparity.values(), &mut values);
            if let (Some(all), Some(sure)) = (&mut confidence, &matched.confidence) {
                layout.keep(tile, sure.pixels(), all);
            }
            account.add(&matched);
        }
        let (width, height) = layout.size;
        let disparity = DisparityMap::new(width, height, self.params.range, values);
        Ok((disparity, confidence.map(|pixels| Image::new(width, height, pixels))))
    }
}

/// A map and its confidence, where that is asked for.
type Map = (DisparityMap, Option<Image>);

/// What the tiles of a pair took.
#[derive(Default)]
struct Account {
    stages: Vec<StageTime>,
    device_time: Option<Duration>,
}

impl Account {
    fn add(&mut self, tile: &Matched) {
        for &(name, time) in &tile.stages {
            match self.stages.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += time,
                None => self.stages.push((name, time)),
            }
        }
        let times = self.device_time.into_iter().chain(tile.device_time);
        self.device_time = times.reduce(|sum, time| sum + time);
    }
}

impl Engine for TiledEngine {
    fn description(&self) -> String {
        format!("{}, {}", self.engine.description(), self.layout)
    }

    fn depth(&self) -> usize {
        1
    }

    fn submit(&mut self, pair: StereoPair) -> anyhow::Result<()> {
        if self.finished.is_some() {
            bail!("the tiled engine holds one pair at a time; collect it before the next");
        }
        let submitted = Instant::now();
        let mut account = Account::default();
        let pair = match &mut self.rectifier {
            Some(rectifier) => {
                let pair = rectifier.rectify(pair)?;
                account.stages.push((RECTIFY, submitted.elapsed()));
                pair
            }
            None => pair,
        };
        check_size(&pair, self.layout.size)?;
        let map = self.match_tiles(&pair, &mut account);
        if map.is_err() {
            // What another tile has begun must not be taken for one of the next pair.
            while let Ok(Some(_)) = self.engine.collect() {}
        }
        let (mut disparity, confidence) = map?;

        let (left, eyes) = (&pair.left, [&pair.left, &pair.right]);
        let began = Instant::now();
        self.whole.hide_unseen(disparity.values_mut(), eyes);
        let confidence = confidence.map(|mut sure| {
            of_known(disparity.values(), sure.pixels_mut());
            sure
        });
        account.stages.push((Filter::ValidMask.name(), began.elapsed()));
        let goes_on = self.continuity.goes_on(pair.timestamp);
        account.stages.extend(self.whole.filter(disparity.values_mut(), left, goes_on));
        self.finished = Some(Matched {
            disparity,
            confidence,
            geometry: self.depth_from,
            submitted,
            finished: Instant::now(),
            stages: account.stages,
            device_time: account.device_time,
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

    fn take_history(&mut self) -> anyhow::Result<History> {
        let continuity = std::mem::take(&mut self.continuity);
        Ok(History { continuity, size: self.layout.size, states: self.whole.take_states() })
    }

    fn resume(&mut self, history: History) -> anyhow::Result<()> {
        self.continuity = history.continuity;
        let is_same = history.size == self.layout.size;
        self.whole.resume(&if is_same { history.states } else { BTreeMap::new() });
        Ok(())
    }

    fn layout(&self) -> Option<&Layout> {
        Some(&self.layout)
    }
}
