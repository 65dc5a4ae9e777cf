//! Finds the first pixel and the first stage in which an engine's result differs from the definition's.

use std::fmt::Display;

use anyhow::{Context, bail, ensure};

use super::{Engine, PairSpec};
use crate::frame::{DisparityMap, INVALID, Image, Matched, StereoPair};
use crate::matching::stages::PRIOR;
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
    match layout {
        None => match_next(pair, params, history),
        Some(layout) => match_tiled(pair, params, layout, history),
    }
}

/// Fails with the first difference between a result and the definition's.
pub fn compare(expected: &PairResult, got: &Matched) -> anyhow::Result<()> {
    let PairResult { map, confidence, temporal } = expected;
    let report = temporal.as_ref().map(|outcome| outcome.report);
    ensure!(
        got.temporal == report,
        "the report of the stage in time is {:?} instead of {report:?}",
        got.temporal
    );
    if let (Some(outcome), Some(whitened)) = (temporal, &got.whitened) {
        let expected = (&outcome.whitened[..], whitened.width());
        compare_values("whitened picture", expected, whitened.pixels())?;
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
    compare_values(what, (expected.pixels(), expected.width()), got.pixels())
}

/// Fails with the first difference between a map and the definition's.
pub fn compare_maps(expected: &DisparityMap, got: &DisparityMap) -> anyhow::Result<()> {
    let [wanted, size] = [expected, got].map(|map| format!("{}x{}", map.width(), map.height()));
    ensure!(size == wanted, "the map has {size} pixels instead of {wanted}");
    let value = |&value: &i16| match value {
        INVALID => "invalid".to_owned(),
        value => format!("{value}/16 px"),
    };
    compare_as("map", (expected.values(), expected.width()), got.values(), value)
}

fn compare_values<T: PartialEq + Display>(
    what: &str,
    expected: (&[T], usize),
    got: &[T],
) -> anyhow::Result<()> {
    compare_as(what, expected, got, T::to_string)
}

/// Fails with the first difference between images; `expected` comes with the length of its rows, and `text` is for a value.
fn compare_as<T: PartialEq>(
    what: &str,
    (expected, width): (&[T], usize),
    got: &[T],
    text: impl Fn(&T) -> String,
) -> anyhow::Result<()> {
    let all = expected.len();
    ensure!(got.len() == all, "the {what} has {} pixels instead of {all}", got.len());
    let mut different = expected.iter().zip(got).enumerate().filter(|(_, (a, b))| a != b);
    let Some((at, (wanted, got))) = different.next() else { return Ok(()) };
    bail!(
        "the {what} differs from the reference at x {}, y {}: {} instead of {}; {} of {all} pixels differ",
        at % width,
        at / width,
        text(got),
        text(wanted),
        1 + different.count()
    )
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
    let mut refused = None;
    for (stage, params) in params.up_to_each_stage() {
        // Engines need not have every stage as the last one.
        let mut engine = match make(&params, &PairSpec::rectified(size.0, size.1)) {
            Ok(engine) => engine,
            Err(error) => {
                refused = Some(error);
                continue;
            }
        };
        refused = None;
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
    // Without the last stage nothing is known of the whole.
    refused.map_or(Ok(None), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::{CpuEngine, CpuOptions};
    use crate::frame::DisparityRange;
    use crate::pool::Pooled;

    #[test]
    fn the_first_difference_is_named() {
        let map = |values: &[i16]| {
            let range = DisparityRange { min: 0, count: 64 };
            DisparityMap::new(3, values.len() / 3, range, Pooled::unpooled(values.to_vec()))
        };
        let reference = [0, 16, 32, 48, INVALID, 80];
        let compare = |values: &[i16]| compare_maps(&map(&reference), &map(values));
        compare(&reference).unwrap();
        assert_eq!(
            compare(&[0, 16, 32, INVALID, 64, 80]).unwrap_err().to_string(),
            "the map differs from the reference at x 0, y 1: invalid instead of 48/16 px; 2 of 6 pixels differ"
        );
        let error = compare(&[0, 16, 32, 48, 64, 80]).unwrap_err().to_string();
        assert!(error.contains("x 1, y 1: 64/16 px instead of invalid; 1 of 6"), "{error}");
        let error = compare(&reference[..3]).unwrap_err().to_string();
        assert_eq!(error, "the map has 3x1 pixels instead of 3x2");
    }

    #[test]
    fn stages_that_no_engine_can_show_are_not_said_to_agree() {
        let grey = |x: usize, y: usize| (x * x * 37 + y * 101 + x * y * 13) as u8;
        let [left, right] = [0, 3].map(|by| Image::from_fn(70, 40, |x, y| grey(x + by, y)));
        let pair = StereoPair::of_stills(left, right);
        let params = Params::default().with_disparities(8);
        let alike = |params: &Params, pairs: &PairSpec| -> anyhow::Result<Box<dyn Engine>> {
            Ok(Box::new(CpuEngine::new(params, pairs, CpuOptions::default())?))
        };
        let said = first_stage(&pair, &params, &alike);
        assert!(said.contains("all stages agree"), "{said}");
        let broken =
            |params: &Params, pairs: &PairSpec| alike(&params.clone().with_uniqueness(60), pairs);
        let said = first_stage(&pair, &params, &broken);
        assert!(said.starts_with("the first stage that differs: cost volume ("), "{said}");
        let full =
            |_: &Params, _: &PairSpec| -> anyhow::Result<Box<dyn Engine>> { bail!("no memory") };
        let said = first_stage(&pair, &params, &full);
        assert_eq!(said, "the stages could not be compared one by one: no memory");
    }
}
