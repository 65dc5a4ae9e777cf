//! An engine for images too large for another engine's memory. It matches one tile after the other
//! ([`crate::matching::tiles`]). Raw pairs are rectified whole, on the CPU, and the noise of the left image
//! and the filters of the whole map are computed whole, too.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::Choice;
use super::cpu::{CpuOptions, CpuRectifier, RECTIFY, TEMPORAL, TEXTURE, WholeMap};
use super::interface::{Engine, PairSpec, TileEngine, check_dimensions, check_size, prior_of};
use crate::frame::{DisparityMap, Image, Matched, StageTime, StereoGeometry, StereoPair, add_time};
use crate::matching::confidence::of_known;
use crate::matching::continuity::Continuity;
use crate::matching::filter::Filter;
use crate::matching::levels::prior_map_size;
use crate::matching::scene::Thumbnail;
use crate::matching::tiles::{TileLayout, of_tile};
use crate::matching::{History, Params};
use crate::memory::{Budget, Reserved, product};
use crate::pool::Pool;

/// Advice to need less memory.
const CURE: &str = "a smaller picture";

pub struct TiledEngine {
    engine: Box<dyn TileEngine>,
    layout: TileLayout,
    params: Params,
    rectifier: Option<CpuRectifier>,
    whole: WholeMap,
    continuity: Continuity,
    depth_from: Option<StereoGeometry>,
    windows: Pool<u8>,
    values: Pool<i16>,
    confidences: Pool<u8>,
    finished: Option<Matched>,
    _memory: Reserved,
}

impl TiledEngine {
    /// Makes an engine for tiles of this layout. `make` makes the inner engine for the tiles' parameters and
    /// windows, after the memory for everything else is reserved, for `in_flight` tiles at once.
    pub fn new(
        layout: TileLayout,
        params: &Params,
        pairs: &PairSpec,
        options: CpuOptions,
        in_flight: usize,
        make: impl FnOnce(&Params, &PairSpec) -> anyhow::Result<Box<dyn TileEngine>>,
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
            whole: WholeMap::new(params, &layout, options)?,
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

    /// Estimates the memory in bytes without the inner engine: a pair of images, rectified if they come raw,
    /// its map, and the windows and maps of the tiles in flight.
    pub fn bytes_of(
        layout: &TileLayout,
        params: &Params,
        pairs: &PairSpec,
        options: CpuOptions,
        in_flight: usize,
    ) -> anyhow::Result<u64> {
        let map = size_of::<i16>() + usize::from(params.confidence.is_some());
        let eyes = if pairs.rectifier.is_some() { 4 } else { 2 };
        let whole = product([layout.size.0, layout.size.1, eyes + map]);
        let windows = product([layout.window.0, layout.window.1, in_flight, 2 + map]);
        let filtered = WholeMap::bytes_of(params, layout, options)?;
        Ok(whole.saturating_add(windows).saturating_add(filtered))
    }

    fn match_tiles(
        &mut self,
        [left, right]: [&Image; 2],
        prior: Option<&DisparityMap>,
        account: &mut Account,
    ) -> anyhow::Result<Map> {
        let Self { engine, layout, windows, whole, .. } = self;
        let pixels = layout.size.0 * layout.size.1;
        let mut values = self.values.try_take(pixels)?;
        let mut confidence = match self.params.confidence {
            Some(_) => Some(self.confidences.try_take(pixels)?),
            None => None,
        };
        let began = Instant::now();
        let thresholds = whole.thresholds(left, &mut values);
        if thresholds.is_some() {
            account.stages.push((TEXTURE, began.elapsed()));
        }
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
                let (left, right) = (window(tile, left)?, window(tile, right)?);
                let prior = prior.map(|prior| Box::new(layout.crop_prior(tile, prior)));
                let tile = StereoPair { prior, ..StereoPair::of_stills(left, right) };
                engine.submit_tile(tile, thresholds.as_deref())?;
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
        let confidence = confidence.map(|pixels| Image::new(width, height, pixels));
        let threshold = thresholds.map_or(0, |all| all[0]);
        Ok(Map { disparity, confidence, threshold })
    }
}

struct Map {
    disparity: DisparityMap,
    /// Confidence of each pixel, if it is computed.
    confidence: Option<Image>,
    /// Noise threshold of the left image, if it is needed.
    threshold: u32,
}

#[derive(Default)]
struct Account {
    stages: Vec<StageTime>,
    device_time: Option<Duration>,
}

impl Account {
    fn add(&mut self, tile: &Matched) {
        tile.stages.iter().for_each(|stage| add_time(&mut self.stages, *stage));
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
        let goes_on = self.continuity.goes_on(pair.timestamp, Thumbnail::of(&pair.left));
        let eyes = [&pair.left, &pair.right];
        let began = Instant::now();
        let passed = self.whole.pass(eyes, goes_on)?;
        if passed.is_some() {
            account.stages.push((TEMPORAL, began.elapsed()));
        }
        let denoised = passed.as_ref().and_then(|passed| passed.denoised.as_ref());
        let eyes = denoised.map_or(eyes, |eyes| eyes.each_ref());
        let prior = prior_of(&pair, prior_map_size(&self.params, self.layout.size))?;
        let map = self.match_tiles(eyes, prior, &mut account);
        if map.is_err() {
            // Drains tiles still in flight, so that the next pair does not get them.
            while let Ok(Some(_)) = self.engine.collect() {}
        }
        let Map { mut disparity, mut confidence, threshold } = map?;

        let began = Instant::now();
        self.whole.hide_unseen(disparity.values_mut(), eyes);
        if let Some(sure) = &mut confidence {
            of_known(disparity.values(), sure.pixels_mut());
        }
        account.stages.push((Filter::ValidMask.name(), began.elapsed()));
        let sure = confidence.as_mut().map(Image::pixels_mut);
        let filtered =
            self.whole.filter(disparity.values_mut(), sure, eyes[0], prior, threshold, goes_on);
        account.stages.extend(filtered);
        let report = passed.as_ref().map(|passed| passed.report);
        self.finished = Some(Matched {
            confidence,
            whitened: passed.and_then(|passed| passed.whitened),
            temporal: report,
            geometry: self.depth_from,
            submitted,
            stages: account.stages,
            device_time: account.device_time,
            ..Matched::new(pair, disparity)
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
        Ok(History {
            continuity,
            size: self.layout.size,
            states: self.whole.take_states(),
            odometer: None,
        })
    }

    fn resume(&mut self, history: History) -> anyhow::Result<()> {
        self.continuity = history.continuity;
        let is_same = history.size == self.layout.size;
        self.whole.resume(&if is_same { history.states } else { BTreeMap::new() });
        Ok(())
    }

    fn choice(&self) -> Choice {
        self.engine.choice()
    }

    fn layout(&self) -> Option<&TileLayout> {
        Some(&self.layout)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::engine::cpu::CpuEngine;
    use crate::frame::{DisparityRange, INVALID, Mask};
    use crate::matching::PairResult;
    use crate::matching::tiles::{Tiles, match_tiled};
    use crate::matching::{
        Cost, Evidence, Fill, FillRule, Guide, Median, Paths, Prior, Smoothing, Spatial, Speckle,
        Steady, Temporal, TemporalMode, Window, match_pair,
    };

    fn engine(params: &Params, layout: TileLayout, threads: usize) -> TiledEngine {
        let options = CpuOptions { threads: Some(threads), ..CpuOptions::default() };
        let pairs = PairSpec::rectified(layout.size.0, layout.size.1);
        let make = |params: &Params, pairs: &PairSpec| -> anyhow::Result<Box<dyn TileEngine>> {
            Ok(Box::new(CpuEngine::new(params, pairs, options)?))
        };
        TiledEngine::new(layout, params, &pairs, options, 1, make).unwrap()
    }

    fn params() -> impl Strategy<Value = Params> {
        let cost = prop_oneof![
            Just(Cost::Ad { truncation: 20, window: 1 }),
            Just(Cost::Ad { truncation: 20, window: 3 }),
        ];
        let paths = prop_oneof![Just(Paths::Four), Just(Paths::Five), Just(Paths::Eight)];
        let window = prop::option::of(Just(Window { side: 5, by_texture: true }));
        let prior = prop::option::of((1u8..=3).prop_map(|levels| Prior { levels, strength: 8 }));
        let guide = prop_oneof![Just(Guide::Picture), Just(Guide::Smoothed)];
        let median = prop_oneof![Just(Median::Off), Just(Median::Three), Just(Median::Five)];
        let speckle = prop::option::of(Just(Speckle { size: 20, range_16: 16 }));
        let rule = prop_oneof![
            Just(FillRule::Row),
            Just(FillRule::Rays),
            Just(FillRule::Gaps),
            Just(FillRule::Network),
            Just(FillRule::NetworkOrRays),
        ];
        let fill = prop::option::of(rule.prop_map(|rule| Fill { rule, reach: 9 }));
        let evidence = prop::option::of(any::<bool>().prop_map(|strict| Evidence { strict }));
        let spatial = prop::option::of((1u8..=16).prop_map(|reach| Spatial { reach }));
        let smoothing = prop::option::of(Just(Smoothing { weight_256: 77, guard_16: 40 }));
        let steady = prop::option::of((1u8..4).prop_map(|strength| Steady { strength }));
        let mode = prop_oneof![Just(TemporalMode::Denoise), Just(TemporalMode::Whiten)];
        let temporal = mode.prop_map(|mode| Temporal { mode, history: 3, degree: 1 });
        let in_time = (smoothing, steady, prop::option::of(temporal));
        let confidence = prop::option::of(0u8..80);
        let range = (-20i32..20, 1usize..40);
        let fill = (fill, any::<bool>());
        let matching = (range, cost, paths, window, prior, guide);
        let filters = (confidence, median, speckle, (evidence, spatial), in_time, fill);
        (matching, filters).prop_map(|(matching, filters)| {
            let ((min, count), cost, paths, window, prior, p2_guide) = matching;
            let (confidence, median, speckle, (evidence, spatial), in_time, fill) = filters;
            let (smoothing, steady, temporal) = in_time;
            let (fill, prior_map) = fill;
            Params {
                paths,
                window,
                prior,
                prior_map,
                p2_guide,
                confidence,
                left_right: Some(1),
                median,
                speckle,
                evidence,
                spatial,
                smoothing,
                steady,
                temporal,
                fill,
                ..Params::bare(DisparityRange { min, count }, cost, (5, 80))
            }
        })
    }

    /// A pair of random patches, faint and strong in turn; in every second block the right view is shifted by
    /// two more columns to the left.
    fn pair((width, height): (usize, usize), number: u64, mask: Option<u64>) -> StereoPair {
        let grey = |x: usize, y: usize| {
            let blot = (x / 2).wrapping_mul(0x9e37_79b9) ^ (y / 2).wrapping_mul(0x85eb_ca6b);
            (blot.wrapping_mul(0xc2b2_ae35) >> 13) as u8 / [2, 20][y / 20 % 2]
        };
        let seen = |eye: u64| {
            let random = move |i: usize| {
                let blot = (i % width / 5 + i / width / 4 * 1000) as u64 + eye * 77;
                mask.is_none_or(|share| blot.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57 >= share)
            };
            mask.map(|_| Arc::new(Mask::new(width, (0..width * height).map(random).collect())))
        };
        let left = Image::from_fn(width, height, |x, y| grey(x + 30, y));
        let right = Image::from_fn(width, height, |x, y| {
            grey(x + 30 + 3 + number as usize + (x / 16 + y / 9) % 2 * 2, y)
        });
        let timestamp = Duration::from_millis(40 * number);
        let (left, right) = (left.with_valid_mask(seen(0)), right.with_valid_mask(seen(1)));
        StereoPair { timestamp, ..StereoPair::of_stills(left, right) }
    }

    /// Adds a prior map of a slanted plane with holes.
    fn with_prior(pair: StereoPair, number: u64) -> StereoPair {
        let (width, height) = (pair.left.width().div_ceil(2), pair.left.height().div_ceil(2));
        let value = |i: usize| match (i / 7 + number as usize) % 5 {
            0 => INVALID,
            _ => (20 + i % width / 8) as i16,
        };
        let values = (0..width * height).map(value).collect();
        let range = DisparityRange { min: 0, count: 8 };
        let prior = Some(Box::new(DisparityMap::of_values(width, range, values)));
        StereoPair { prior, ..pair }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn tiles_give_the_bytes_of_the_definition(
            params in params(),
            size in (1usize..110, 1usize..90),
            (rows, columns, overlap) in (1usize..5, 1usize..4, 0usize..30),
            threads in 1usize..4,
            mask in prop::option::of(0u64..40),
        ) {
            let tiles = Tiles { rows: rows.min(size.1), columns: columns.min(size.0), overlap };
            let layout = TileLayout::new(tiles, size, params.range).unwrap();
            let mut engine = engine(&params, layout.clone(), threads);
            let mut history = History::default();
            for number in 0..3 {
                let pair = || with_prior(pair(size, number, mask), number);
                let PairResult { map: expected, confidence: sure, .. } =
                    match_tiled(&pair(), &params, &layout, &mut history);
                engine.submit(pair()).unwrap();
                let got = engine.collect().unwrap().unwrap();
                prop_assert_eq!(got.disparity.values(), expected.values(), "{:?}", params);
                let pixels = |sure: &Option<Image>| sure.as_ref().map(|sure| sure.pixels().to_vec());
                prop_assert_eq!(pixels(&got.confidence), pixels(&sure), "{:?}", params);
            }
            prop_assert_eq!(engine.take_history().unwrap(), history);
        }
    }

    #[test]
    fn one_tile_gives_the_map_of_the_whole_picture_and_a_stream_goes_over() {
        let smoothing = Some(Smoothing { weight_256: 77, guard_16: 400 });
        let fill = Some(Fill { rule: FillRule::Rays, reach: 20 });
        let range = DisparityRange { min: -1, count: 12 };
        let ad = Cost::Ad { truncation: 20, window: 1 };
        let params = Params {
            smoothing,
            fill,
            confidence: Some(0),
            left_right: Some(0),
            ..Params::bare(range, ad, (5, 60))
        };
        let size = (70, 50);
        let layout =
            |rows| TileLayout::new(Tiles { rows, columns: 1, overlap: 8 }, size, range).unwrap();
        let options = CpuOptions { threads: Some(1), ..CpuOptions::default() };
        let spec = PairSpec::rectified(size.0, size.1);
        let whole = || CpuEngine::new(&params, &spec, options).unwrap();
        let map = |engine: &mut dyn Engine, number| {
            engine.submit(pair(size, number, None)).unwrap();
            engine.collect().unwrap().unwrap().disparity.values().to_vec()
        };
        let (mut one, mut plain) = (engine(&params, layout(1), 2), whole());
        for number in 0..3 {
            assert_eq!(map(&mut one, number), map(&mut plain, number));
        }
        // Another engine continues the stream, with tiles as without. The resumed state changes the map.
        let (mut two, mut other) = (engine(&params, layout(1), 1), whole());
        two.resume(plain.take_history().unwrap()).unwrap();
        other.resume(one.take_history().unwrap()).unwrap();
        let next = map(&mut two, 3);
        assert_eq!(next, map(&mut other, 3));
        let fresh = pair(size, 3, None);
        assert_ne!(next, match_pair(&fresh.left, &fresh.right, &params).values());
    }

    #[test]
    fn tiles_are_counted_and_a_pair_of_another_size_is_refused() {
        let params = Params::bare(
            DisparityRange { min: 0, count: 4 },
            Cost::Ad { truncation: 20, window: 1 },
            (5, 60),
        );
        let layout =
            TileLayout::new(Tiles { rows: 3, columns: 1, overlap: 8 }, (40, 60), params.range)
                .unwrap();
        let mut engine = engine(&params, layout, 1);
        assert!(engine.description().ends_with("3x1 tiles of 40x36 pixels, overlap 8"));
        let error = engine.submit(pair((41, 60), 0, None)).unwrap_err().to_string();
        assert!(error.contains("41x60") && error.contains("40x60"), "{error}");
        engine.submit(pair((40, 60), 0, None)).unwrap();
        assert!(engine.submit(pair((40, 60), 1, None)).is_err(), "one pair at a time");
        let stages = engine.collect().unwrap().unwrap().stages;
        let names = |name: &str| stages.iter().filter(|(stage, _)| *stage == name).count();
        assert_eq!((names("aggregation and winner"), names("valid mask")), (1, 1), "{stages:?}");
        assert!(engine.collect().unwrap().is_none());
    }
}
