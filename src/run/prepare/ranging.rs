//! Choice of the number of candidate disparities from the images (`auto`).

use anyhow::Context;

use super::rig::Rig;
use crate::observe::range::{self, SmallMatcher, Spare};
use crate::settings::Loaded;
use stereod_core::engine::cpu::{CpuEngine, CpuOptions};
use stereod_core::engine::{Engine, PairSpec};
use stereod_core::frame::{DisparityMap, Image, StereoPair};
use stereod_core::matching::Params;

/// Memory in bytes that matching small images usually takes.
pub const SMALL: u64 = 32 << 20;

/// Returns a matcher of small images. It runs on the CPU, which finishes before a GPU has compiled
/// its kernels.
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

/// Returns a number of candidates from `min` on that suffices for these (raw) pairs; `None` if they
/// show too little.
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

/// Returns the settings with a number in place of `auto` disparities, and the number of disparities
/// that these pairs need (`None` if they show too little). `auto` becomes that number, or the
/// default. Other settings stay as they are, and pairs are only examined for `auto` or a rate
/// (`--fit`).
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

/// Reports whether pairs must be examined before the number of disparities is settled.
pub fn needs_pairs(loaded: &Loaded) -> bool {
    loaded.awaits_choice() || loaded.settings.engine.fit.is_some()
}
