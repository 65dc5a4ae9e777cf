//! Where an engine's result differs from the definition's: the first pixel, and the first stage.

use anyhow::{Context, bail, ensure};

use super::{Engine, PairSpec};
use crate::frame::{DisparityMap, INVALID, Image, Matched, StereoPair};
use crate::matching::stages::PRIOR;
use crate::matching::temporal::Outcome;
use crate::matching::tiles::{TileLayout, match_tiled};
use crate::matching::{History, PairResult, Params, levels, match_next, pyramid};

/// Makes an engine like the one that is examined, for other parameters.
pub type Make<'a> = &'a dyn Fn(&Params, &PairSpec) -> anyhow::Result<Box<dyn Engine>>;

/// Returns the definition's result for the next pair of a stream, in the tiles of `layout`, if any.
pub fn reference(
    pair: &StereoPair,
    params: &Params,
    layout: Option<&TileLayout>,
    history: &mut History,
) -> PairResult {
    let StereoPair { left, right, timestamp, .. } = pair;
    match layout {
        None => match_next(left, right, *timestamp, params, history),
        Some(layout) => match_tiled(left, right, *timestamp, params, layout, history),
    }
}

/// Fails with the first difference between a result and the definition's.
pub fn compare(expected: &PairResult, got: &Matched) -> anyhow::Result<()> {
    let PairResult { map, confidence, temporal } = expected;
    if let Some(outcome) = temporal {
        compare_temporal(outcome, got)?;
    }
    compare_maps(map, &got.disparity)?;
    match (confidence, &got.confidence) {
        (Some(expected), Some(got)) => compare_images("confidence", expected, got),
        (None, None) => Ok(()),
        (expected, _) => bail!(
            "a confidence is {}",
            if expected.is_some() { "missing" } else { "not asked for" }
        ),
    }
}

/// Fails with the first difference between an image and the definition's.
pub fn compare_images(what: &str, expected: &Image, got: &Image) -> anyhow::Result<()> {
    let differences = first_difference(expected.pixels(), got.pixels(), expected.width());
    let Some((at, [wanted, got], differ)) = differences else { return Ok(()) };
    let all = expected.pixels().len();
    bail!(
        "the {what} differs from the reference at {at}: {got} instead of {wanted}; {differ} of {all} pixels differ"
    )
}

/// Fails with the first difference between a map and the definition's.
pub fn compare_maps(expected: &DisparityMap, got: &DisparityMap) -> anyhow::Result<()> {
    let sizes = [expected, got].map(|map| (map.width(), map.height()));
    ensure!(sizes[0] == sizes[1], "the map has {:?} pixels instead of {:?}", sizes[1], sizes[0]);
    let differences = first_difference(expected.values(), got.values(), expected.width());
    let Some((at, [wanted, got], differ)) = differences else { return Ok(()) };
    let value = |value: i16| match value {
        INVALID => "invalid".to_owned(),
        value => format!("{value}/16 px"),
    };
    bail!(
        "different from the reference at {at}: {} instead of {}; {differ} of {} pixels differ",
        value(got),
        value(wanted),
        expected.values().len()
    )
}

/// Compares the output of the spatio-temporal stage for a pair.
fn compare_temporal(expected: &Outcome, got: &Matched) -> anyhow::Result<()> {
    let report = expected.report;
    ensure!(
        got.temporal == Some(report),
        "the report of the stage in time is {:?} instead of {report:?}",
        got.temporal
    );
    let Some(whitened) = &got.whitened else { return Ok(()) };
    match first_difference(&expected.whitened, whitened.pixels(), whitened.width()) {
        None => Ok(()),
        Some((at, [expected, got], _)) => bail!(
            "the whitened picture differs from the reference at {at}: {got} instead of {expected}"
        ),
    }
}

/// Returns the place of the first difference of two images with rows of this width, both values there, and the
/// number of differences.
fn first_difference<T: PartialEq + Copy>(
    expected: &[T],
    got: &[T],
    width: usize,
) -> Option<(String, [T; 2], usize)> {
    let mut different = expected.iter().zip(got).enumerate().filter(|(_, (a, b))| a != b);
    let (at, (&expected, &got)) = different.next()?;
    let place = format!("x {}, y {}", at % width, at / width);
    Some((place, [expected, got], different.count() + 1))
}

/// Matches the pair anew on engines of its own, with one stage more each time, and says in words after which one the
/// results differ first. For the message of a failed comparison.
pub fn first_stage(pair: &StereoPair, params: &Params, make: Make<'_>) -> String {
    match differing_stage(pair, params, make, 0) {
        Ok(Some(stage)) => format!("the first stage that differs: {stage}"),
        Ok(None) => {
            "with this pair alone all stages agree, so it is a stage with memory of earlier \
                     pairs, or what earlier pairs left behind"
                .into()
        }
        Err(error) => format!("the stages could not be compared one by one: {error:#}"),
    }
}

fn differing_stage(
    pair: &StereoPair,
    params: &Params,
    make: Make<'_>,
    level: usize,
) -> anyhow::Result<Option<String>> {
    let size = (pair.left.width(), pair.left.height());
    for (stage, params) in params.up_to_each_stage() {
        // Engines need not have every stage as the last one.
        let Ok(mut engine) = make(&params, &PairSpec::rectified(size.0, size.1)) else { continue };
        engine.submit(pair.copy())?;
        let got = engine.collect()?.context("the engine lost the pair")?;
        let expected = reference(pair, &params, engine.layout(), &mut History::default());
        let Err(difference) = compare(&expected, &got) else { continue };
        if stage == PRIOR
            && let Some((coarser, _)) = levels::coarser(&params, size)
        {
            let [left, right] = [&pair.left, &pair.right].map(pyramid::half);
            let halves = StereoPair { left, right, ..pair.copy() };
            if let Some(found) = differing_stage(&halves, &coarser, make, level + 1)? {
                return Ok(Some(found));
            }
        }
        let of_level = if level > 0 { format!(" of level {level}") } else { String::new() };
        return Ok(Some(format!("{stage}{of_level} ({difference:#})")));
    }
    Ok(None)
}
