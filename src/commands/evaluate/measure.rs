//! Matching of one pair, and comparison with its truth.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::commands::stills::coloured;
use crate::observe::range::Spare;
use crate::run::prepare::ranging::{self, small_matcher};
use crate::run::prepare::rig::{Cameras, Rig};
use crate::settings::{Loaded, Settings, Source};
use stereod_core::engine::cuda::Unusable;
use stereod_core::engine::{self, Engine};
use stereod_core::frame::{DisparityRange, Eye, Image, LEAST_CONFIDENCE, Matched, StereoPair};
use stereod_core::matching::confidence::LEVELS;
use stereod_core::matching::{Params, confidence_levels};
use stereod_core::picture::grey::Grey;
use stereod_core::picture::still;
use stereod_core::settings::Origin;
use stereod_evaluate::item::{Areas, Item};
use stereod_evaluate::measured::{Compared, Measured};
use stereod_evaluate::noise::Noise;
use stereod_evaluate::opencv::OpenCv;
use stereod_evaluate::scoring::{Values, score};
use stereod_evaluate::sparsification::{BAD, Sparsification};
use stereod_evaluate::summary::Summary;
use stereod_evaluate::surfaces::Surfaces;
use stereod_evaluate::truth::{self, Region};
use stereod_evaluate::{discontinuities, even};

/// Reason why a pair could not be measured.
pub(super) enum Failure {
    /// Something about this pair.
    Pair(anyhow::Error),
    /// No pair can be matched with these settings on this machine.
    All(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Pair(error)
    }
}

/// Matcher of pair after pair.
pub(super) struct Bench<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) cameras: Cameras<'a>,
    /// Grey level of the painted textureless regions.
    pub(super) even: Option<u8>,
    pub(super) noise: Option<Noise>,
    pub(super) repeat: u32,
    pub(super) learns: bool,
    /// Set if OpenCV matches instead of the engine.
    pub(super) opencv: Option<OpenCv>,
    /// The engine of the previous pair, with its properties.
    pub(super) engine: Option<(Key, Box<dyn Engine>)>,
}

/// Properties that determine an engine: the size of the raw images, and the parameters.
type Key = ((usize, usize), Params);

impl Bench<'_> {
    pub(super) fn engine(&self) -> Option<String> {
        self.engine.as_ref().map(|(_, engine)| engine.description())
    }

    pub(super) fn measure(&mut self, item: &Item) -> Result<(Measured, Compared), Failure> {
        let pictures = read(item, &self.loaded.settings)?;
        let truth = discontinuities::found(truth::read(item)?);
        let size = (pictures[0].width(), pictures[0].height());
        let rig =
            self.cameras.for_pictures([size; 2]).map_err(|error| anyhow::anyhow!("{error}"))?;
        let Areas { non_occluded, all, discontinuities } = &truth;
        for region in [non_occluded, all, discontinuities].into_iter().flatten() {
            let (map, truth) = (rig.pairs.size, region.size());
            ensure_same(map, truth)?;
        }
        // The right view lacks pixels that only the left camera sees.
        let seen = truth.non_occluded.as_ref().or(truth.all.as_ref());
        let pictures = match (self.even, seen) {
            (Some(grey), Some(seen)) => even::paint(pictures, seen, grey),
            _ => pictures,
        };
        let pictures = match &self.noise {
            None => pictures,
            Some(noise) => Eye::BOTH.map(|eye| noise.add(&pictures[eye.index()], eye)),
        };
        let range = self.range(item, &pictures, &rig)?;
        let mut params = self.loaded.params.of_still();
        params.range = range;
        params.confidence.get_or_insert(0);
        let (matched, time) = self.matched(&pictures, &rig, &params)?;
        // Maps before and after hole filling are scored apart.
        let unfilled = match params.fill.filter(|_| self.opencv.is_none()) {
            None => Values::of(&matched.disparity),
            Some(_) => {
                let mut params = params.clone();
                params.fill = None;
                Values::of(&self.matched(&pictures, &rig, &params)?.0.disparity)
            }
        };
        let image_density = unfilled.density();
        let filled = Values::of(&matched.disparity);
        let surfaces = Surfaces::of(&filled);
        let map = filled.clone();
        let maps = [unfilled, filled.filled()];
        let [unfilled, dense] = maps.each_ref().map(|map| truth.map(|region| score(map, region)));
        if seen.is_some() && (&unfilled.non_occluded, &unfilled.all) == (&None, &None) {
            return Err(anyhow::anyhow!("no pixel of it has a truth that counts").into());
        }
        let time_ms = time.as_secs_f64() * 1e3;
        let confidence = matched.confidence.as_ref().map(Image::pixels);
        let sparsification = truth.map(|region| Sparsification::of(&maps[0], confidence?, region));
        let summary = Summary { time_ms, image_density, surfaces, unfilled, dense, sparsification };
        let measured = Measured { size: rig.pairs.size, range, summary, deviation: None };
        let region = truth.all.as_ref().or(truth.non_occluded.as_ref());
        let levels = match (region, confidence) {
            (Some(region), Some(sure)) if self.learns => {
                let pair = &matched.pair;
                let levels = confidence_levels(&pair.left, &pair.right, &params);
                learnt_from(&levels, sure, &maps[0], region)
            }
            _ => Vec::new(),
        };
        Ok((measured, Compared { left: matched.pair.left, maps, map, truth, levels }))
    }

    /// Returns the candidates for a pair: those of the settings, else those of its publisher, else
    /// as many as the images need.
    fn range(
        &mut self,
        item: &Item,
        pictures: &[Image; 2],
        rig: &Rig,
    ) -> anyhow::Result<DisparityRange> {
        let Loaded { settings, params, .. } = self.loaded;
        let is_wanted = *self.loaded.origin("matching", "disparities") != Origin::Default;
        let count = match (is_wanted, settings.matching.disparities, item.disparities) {
            (true, Some(count), _) => count,
            // Up to the same largest one.
            (false, _, Some(count)) => {
                let above = i64::try_from(count).unwrap_or(i64::MAX);
                let above = above.saturating_sub(i64::from(params.range.min));
                ensure!(
                    above > 0,
                    "its {count} candidates, from 0 on, are all below --min-disparity {}; give \
                     --disparities as well",
                    params.range.min
                );
                above as usize
            }
            _ => {
                // An engine with tiles may have taken all free memory.
                if self.engine.as_ref().is_some_and(|(_, engine)| engine.layout().is_some()) {
                    self.engine = None;
                }
                let pair = pair(pictures);
                let matcher = small_matcher(settings.engine.options().cpu);
                let enough =
                    ranging::enough([&pair], rig, params.range.min, Spare::None, &matcher)?;
                enough.unwrap_or(params.range.count)
            }
        };
        Ok(DisparityRange { count, ..params.range })
    }

    /// Matches the pair, and returns the map and the median of the times.
    fn matched(
        &mut self,
        pictures: &[Image; 2],
        rig: &Rig,
        params: &Params,
    ) -> Result<(Matched, Duration), Failure> {
        if let Some(opencv) = &self.opencv {
            let raw = pair(pictures);
            let pair = match &rig.pairs.rectifier {
                Some(rectifier) => rectifier.rectify_pair(&raw),
                None => [raw.left, raw.right],
            };
            return Ok(opencv.matched(pair, params.range, self.repeat)?);
        }
        let key = ((pictures[0].width(), pictures[0].height()), params.clone());
        if self.engine.as_ref().is_none_or(|(made_for, _)| *made_for != key) {
            // Two engines need not fit into memory.
            self.engine = None;
            self.engine = Some((key, self.create(rig, params)?));
        }
        let (_, engine) = self.engine.as_mut().context("there is no engine")?;
        let mut times = Vec::new();
        loop {
            // Temporal filters must not remember other pairs.
            engine.take_history()?;
            engine.submit(pair(pictures))?;
            let matched = engine.collect()?.context("the engine lost the pair")?;
            times.push(matched.engine_time());
            if times.len() >= self.repeat as usize {
                times.sort_unstable();
                return Ok((matched, times[times.len() / 2]));
            }
        }
    }

    fn create(&self, rig: &Rig, params: &Params) -> Result<Box<dyn Engine>, Failure> {
        params.check().map_err(anyhow::Error::from)?;
        let settings = &self.loaded.settings.engine;
        let mut options = settings.options();
        // They come one by one.
        options.cuda.in_flight = 1;
        engine::create(&settings.kind, params, &rig.pairs, &options).map_err(|error| match error
            .is::<Unusable>(
        ) {
            true => Failure::All(error),
            false => Failure::Pair(error),
        })
    }
}

/// Returns [`Compared::levels`] of pixels with these levels, confidences and disparities.
fn learnt_from(
    levels: &[Option<[u8; LEVELS]>],
    sure: &[u8],
    map: &Values,
    region: &Region,
) -> Vec<u8> {
    let of_pixel = |(i, levels): (usize, &Option<[u8; LEVELS]>)| {
        let (value, truth) = (map.at(i)?, region.at(i)?);
        let is_wrong = u8::from((value - truth).abs() > BAD);
        Some((*levels)?.into_iter().chain([is_wrong])).filter(|_| sure[i] > LEAST_CONFIDENCE)
    };
    levels.iter().enumerate().filter_map(of_pixel).flatten().collect()
}

fn read(item: &Item, settings: &Settings) -> anyhow::Result<[Image; 2]> {
    let [left, right] = &item.eyes;
    let Source { orient, tone, .. } = settings.source;
    let read = |path: &PathBuf| -> anyhow::Result<Image> {
        let grey = Grey::of(still::read(path, orient)?.picture).into_image(tone);
        match settings.engine.wants_colour() {
            true => Ok(coloured(grey, &still::read_colours(path, orient)?)),
            false => Ok(grey),
        }
    };
    let pictures = [read(left)?, read(right)?];
    let [l, r] = pictures.each_ref().map(|image| (image.width(), image.height()));
    ensure!(
        l == r,
        "the pictures differ in size: {} is {}x{}, {} is {}x{}",
        left.display(),
        l.0,
        l.1,
        right.display(),
        r.0,
        r.1
    );
    Ok(pictures)
}

fn ensure_same(map: (usize, usize), truth: (usize, usize)) -> anyhow::Result<()> {
    ensure!(
        map == truth,
        "the truth is {}x{}, but the left picture {}x{}: they belong to different sizes of the data set",
        truth.0,
        truth.1,
        map.0,
        map.1
    );
    Ok(())
}

/// Copies the pair, because the engine keeps the pair that it receives.
fn pair(pictures: &[Image; 2]) -> StereoPair {
    let [left, right] = pictures.each_ref().map(Image::copy);
    StereoPair::of_stills(left, right)
}
