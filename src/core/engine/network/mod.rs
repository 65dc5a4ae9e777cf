//! A stereo network of the user as engine: an ONNX file, which ONNX Runtime executes, alone or checked by matching.

mod convention;
mod model;
mod planes;
mod prior;
mod runtime;
mod scene;
mod search;
mod tiling;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::cpu::rectify::CpuRectifier;
use super::cuda::{Cache, Key};
use super::interface::{Engine, PairSpec, Refusal, check_dimensions};
use super::{Choice, Options};
use crate::frame::{
    DisparityMap, DisparityRange, INVALID, Image, Matched, SUBPIXEL, StereoGeometry, StereoPair,
};
use crate::matching::Params;
use crate::matching::verdict::Verdict;
use convention::Convention;
use model::Model;
use planes::planes;
pub use prior::NetworkPrior;
use search::Found;
use tiling::Fit;

/// Confidence that states no probability.
const NO_CONFIDENCE: u8 = 1;

/// Share of pixels beyond the range, in percent, that is told.
const BEYOND_TOLD: u64 = 1;

pub struct NetworkEngine {
    file: Arc<Path>,
    model: Model,
    convention: Convention,
    fit: Fit,
    range: DisparityRange,
    /// As in [`Params::confidence`].
    confidence: Option<u8>,
    rectifier: Option<CpuRectifier>,
    geometry: Option<StereoGeometry>,
    /// Matches the same pairs.
    sgm: Option<Box<dyn Engine>>,
    done: Option<Matched>,
    /// Time of the last run.
    took: Duration,
    told_beyond: bool,
}

impl NetworkEngine {
    /// Loads a network and finds out how it is fed. `sgm`: the engine that checks it, whose parameters ask for confidence.
    pub fn new(
        file: &Arc<Path>,
        params: &Params,
        pairs: &PairSpec,
        options: &Options,
        sgm: Option<Box<dyn Engine>>,
    ) -> anyhow::Result<Self> {
        let (width, height) = pairs.size;
        check_dimensions(width, height)?;
        if sgm.is_none() && params.temporal.is_some() {
            bail!(Refusal::Parameter(
                "`temporal` prepares pictures for matching, not for a network; leave it `off`"
                    .into()
            ));
        }
        let (model, convention) = loaded(file, options)?;
        let fit = Fit::new(pairs.size, params.range, model.fixed, convention.multiple)?;
        Ok(Self {
            file: file.clone(),
            model,
            convention,
            fit,
            range: params.range,
            confidence: params.confidence,
            rectifier: rectifier_of(pairs, options)?,
            geometry: pairs.geometry,
            sgm,
            done: None,
            took: Duration::ZERO,
            told_beyond: false,
        })
    }

    fn run(&mut self, pair: &StereoPair) -> anyhow::Result<DisparityMap> {
        let begun = Instant::now();
        let views = [&pair.left, &pair.right].map(|view| planes(view, self.model.channels));
        let values = self.fit.run(&mut self.model, [&views[0], &views[1]], &self.convention)?;
        self.took = begun.elapsed();
        Ok(self.map_of(&pair.left, &values))
    }

    /// Puts the network's map in place of the matched one, and says where they agree.
    fn checked(&self, matched: Matched, mut disparity: DisparityMap) -> anyhow::Result<Matched> {
        let sure = matched.confidence.context("the engine that checks gave no confidence")?;
        let both = disparity.values().iter().zip(matched.disparity.values());
        let verdicts: Vec<u8> = both
            .zip(sure.pixels())
            .map(|((&value, &other), &sure)| Verdict::of(value, other, sure) as u8)
            .collect();
        let least = self.confidence.unwrap_or(0);
        let pixels = disparity.values_mut().iter_mut().zip(&verdicts).zip(sure.pixels());
        let confidence = pixels.map(|((value, &verdict), &sure)| {
            // Only what both say has a probability.
            let is_agreed = verdict == Verdict::Agree as u8;
            let confidence = if is_agreed { sure.max(NO_CONFIDENCE) } else { NO_CONFIDENCE };
            if confidence < least {
                *value = INVALID;
            }
            if *value == INVALID { 0 } else { confidence }
        });
        let confidence: Vec<u8> = confidence.collect();
        let image = |pixels| Image::from_vec(disparity.width(), disparity.height(), pixels);
        let (verdicts, confidence) = (Some(image(verdicts)), image(confidence));
        let confidence = self.confidence.map(|_| confidence);
        Ok(Matched { disparity, confidence, verdicts, ..matched })
    }

    /// Rounds to 1/16 px. What is no number, beyond the range or not in the left picture is unknown.
    fn map_of(&mut self, left: &Image, values: &[f32]) -> DisparityMap {
        let unit = SUBPIXEL as f32;
        let limits = [self.range.min, self.range.max()].map(|limit| limit as f32);
        let mut beyond = 0;
        let mut rounded: Vec<i16> = values
            .iter()
            .map(|&value| {
                let is_known = value.is_finite();
                if is_known && (limits[0]..=limits[1]).contains(&value) {
                    return (value * unit).round() as i16;
                }
                beyond += u64::from(is_known);
                INVALID
            })
            .collect();
        if let Some(mask) = left.valid_mask() {
            for (y, row) in rounded.chunks_exact_mut(left.width()).enumerate() {
                let hidden = row.iter_mut().zip(mask.row(y)).filter(|(_, is_seen)| !**is_seen);
                hidden.for_each(|(value, _)| *value = INVALID);
            }
        }
        let percent = 100 * beyond / values.len().max(1) as u64;
        if percent >= BEYOND_TOLD && !std::mem::replace(&mut self.told_beyond, true) {
            tracing::warn!(
                "{percent} % of the network's disparities are beyond {}..{} and left out; --disparities sets the range",
                self.range.min,
                self.range.max()
            );
        }
        DisparityMap::of_values(left.width(), self.range, rounded)
    }
}

/// A network's file in words and numbers.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Description {
    /// Names, types and shapes of the inputs.
    pub inputs: String,
    /// Values and order of the views, and the meaning of the output.
    pub convention: String,
    /// Share of the pixels of a scene with known disparity that are wrong by more than 2 px, in percent.
    pub wrong: f64,
    /// The processor that runs it.
    pub processor: &'static str,
}

/// Loads a network and finds out how it is fed. Fails if it is no stereo network.
pub fn describe(file: &Path, options: &Options) -> anyhow::Result<Description> {
    let (model, Found { convention, bad }) = load(file, options)?;
    Ok(Description {
        inputs: model.describe(),
        convention: convention.describe(model.layout),
        wrong: (100.0 * bad).round() / 100.0,
        processor: model.processor,
    })
}

fn load(file: &Path, options: &Options) -> anyhow::Result<(Model, Found)> {
    let threads = options.cpu.threads.unwrap_or_else(crate::thread::available);
    let mut model = Model::load(file, threads)?;
    let found = found(file, &mut model, &options.cuda.cache)?;
    Ok((model, found))
}

/// Loads a network, and says how it is fed.
fn loaded(file: &Path, options: &Options) -> anyhow::Result<(Model, Convention)> {
    let (model, Found { convention, bad }) = load(file, options)?;
    tracing::info!(
        "network {}: {}; on a scene with known disparity {bad:.1} % of its pixels are wrong",
        file.display(),
        convention.describe(model.layout)
    );
    Ok((model, convention))
}

fn rectifier_of(pairs: &PairSpec, options: &Options) -> anyhow::Result<Option<CpuRectifier>> {
    let rectifier = pairs.rectifier.clone();
    rectifier.map(|rectifier| CpuRectifier::new(rectifier, options.cpu)).transpose()
}

/// Finds out how the network is fed, or tries whether what was found for this file earlier still holds.
fn found(file: &Path, model: &mut Model, cache: &Cache) -> anyhow::Result<Found> {
    let key = Key::of(["network", env!("CARGO_PKG_VERSION"), &hash_of(file)?]);
    let known = cache.load(&key).and_then(|stored| serde_json::from_slice(&stored).ok());
    if let Some(known) = known {
        match search::find(model, Some(known)) {
            Ok(found) => return Ok(found),
            Err(error) => tracing::debug!("{}: {error:#}", file.display()),
        }
    }
    let found = search::find(model, None).with_context(|| file.display().to_string())?;
    if let Ok(stored) = serde_json::to_vec(&found.convention) {
        cache.store(&key, &stored);
    }
    Ok(found)
}

fn hash_of(file: &Path) -> anyhow::Result<String> {
    let mut reader = fs::File::open(file).with_context(|| file.display().to_string())?;
    let (mut hasher, mut piece) = (blake3::Hasher::new(), vec![0; 1 << 20]);
    loop {
        match reader.read(&mut piece).with_context(|| file.display().to_string())? {
            0 => return Ok(hasher.finalize().to_hex().to_string()),
            read => hasher.update(&piece[..read]),
        };
    }
}

impl Engine for NetworkEngine {
    fn description(&self) -> String {
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        let tiles = self.fit.describe().map(|tiles| format!(", {tiles}")).unwrap_or_default();
        let checked = self.sgm.as_ref().map(|sgm| format!(", checked on {}", sgm.description()));
        let processor = self.model.processor;
        format!("network {name} (ONNX Runtime, {processor}{tiles}{})", checked.unwrap_or_default())
    }

    fn depth(&self) -> usize {
        1
    }

    fn submit(&mut self, pair: StereoPair) -> anyhow::Result<()> {
        let submitted = Instant::now();
        let pair = match &mut self.rectifier {
            Some(rectifier) => rectifier.rectify(pair)?,
            None => pair,
        };
        let mut matched = match self.sgm.take() {
            Some(mut sgm) => {
                let copy = pair.copy();
                // A GPU works on it meanwhile.
                sgm.submit(pair)?;
                let ran = self.run(&copy);
                let collected = sgm.collect();
                self.sgm = Some(sgm);
                self.checked(collected?.context("the engine that checks gave no map")?, ran?)?
            }
            None => {
                let disparity = self.run(&pair)?;
                let of = |&value: &i16| if value == INVALID { 0 } else { NO_CONFIDENCE };
                let confidence = self.confidence.map(|_| {
                    let pixels = disparity.values().iter().map(of).collect();
                    Image::from_vec(disparity.width(), disparity.height(), pixels)
                });
                Matched { confidence, geometry: self.geometry, ..Matched::new(pair, disparity) }
            }
        };
        matched.submitted = submitted;
        matched.finished = Instant::now();
        matched.stages.push(("network", self.took));
        self.done = Some(matched);
        Ok(())
    }

    fn collect(&mut self) -> anyhow::Result<Option<Matched>> {
        Ok(self.done.take())
    }

    fn set_profiling(&mut self, on: bool) {
        if let Some(sgm) = &mut self.sgm {
            sgm.set_profiling(on);
        }
    }

    fn restart(&mut self) -> anyhow::Result<()> {
        self.sgm.as_mut().map_or(Ok(()), |sgm| sgm.restart())
    }

    fn choice(&self) -> Choice {
        Choice::Network(self.file.clone())
    }
}
