//! Number of candidate disparities that the pictures need, where `auto` was said.

use anyhow::Context;

use super::rig::Rig;
use crate::engine::cpu::{CpuEngine, CpuOptions};
use crate::engine::{Engine, PairSpec};
use crate::frame::{DisparityMap, Image, StereoPair};
use crate::matching::Params;
use crate::range::{self, SmallMatcher, Spare};
use crate::settings::Loaded;

/// Memory in bytes that a look at small pictures usually takes.
pub const SMALL: u64 = 32 << 20;

/// Matches small pictures on the CPU, which has done so before a GPU has its kernels compiled.
pub fn small_matcher(
    options: CpuOptions,
) -> impl Fn(Image, Image, &Params) -> anyhow::Result<DisparityMap> {
    move |left, right, params| {
        let mut engine =
            CpuEngine::new(params, &PairSpec::rectified(left.width(), left.height()), options)?;
        engine.submit(StereoPair::of_stills(left, right))?;
        Ok(engine.collect()?.context("the engine lost the pair")?.disparity)
    }
}

/// Number of candidates from `min` on that is enough for these (raw) pairs; `None` where they do not tell.
pub fn enough<'a>(
    pairs: impl IntoIterator<Item = &'a StereoPair>,
    rig: &Rig,
    min: i32,
    spare: Spare,
    matcher: &SmallMatcher,
) -> anyhow::Result<Option<usize>> {
    let rectified: Vec<[Image; 2]>;
    let raw = pairs.into_iter();
    let pairs: Vec<[&Image; 2]> = match &rig.pairs.rectifier {
        None => raw.map(|pair| [&pair.left, &pair.right]).collect(),
        Some(rectifier) => {
            rectified = raw.map(|pair| rectifier.rectify_pair(pair)).collect();
            rectified.iter().map(|[left, right]| [left, right]).collect()
        }
    };
    range::enough(pairs, min, spare, matcher)
}

/// The settings with a number in place of `auto` disparities, and the number of disparities that these pairs need
/// (`None` where they do not tell): `auto` becomes that, or the default. Settings that do not say `auto` stay as they
/// are, and no pair is looked at unless a rate is asked for (`--fit`).
pub fn with_choice<'a>(
    loaded: &Loaded,
    pairs: impl IntoIterator<Item = &'a StereoPair>,
    rig: &Rig,
    spare: Spare,
) -> anyhow::Result<(Loaded, Option<usize>)> {
    if !needs_pairs(loaded) {
        return Ok((loaded.clone(), None));
    }
    let pairs: Vec<&StereoPair> = pairs.into_iter().collect();
    let (looked_at, min) = (pairs.len(), loaded.params.range.min);
    let options = loaded.settings.engine.options().cpu;
    let enough = enough(pairs, rig, min, spare, &small_matcher(options))?;
    if !loaded.awaits_choice() {
        return Ok((loaded.clone(), enough));
    }
    let count = enough.unwrap_or(loaded.params.range.count);
    let what = match looked_at {
        1 => "the pair".to_owned(),
        pairs => format!("the first {pairs} pairs"),
    };
    match enough {
        Some(_) => tracing::info!("{count} disparities, chosen from {what}"),
        None => tracing::warn!(
            "{what} did not tell how many disparities there are (too small, or too little texture in \
             common): {count} are taken"
        ),
    }
    Ok((loaded.with_chosen(count)?, enough))
}

/// Tells whether pairs have to be looked at before the number of disparities is settled.
pub fn needs_pairs(loaded: &Loaded) -> bool {
    loaded.awaits_choice() || loaded.settings.engine.fit.is_some()
}
