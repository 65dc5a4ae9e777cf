//! `--verify`: comparison of the engine's result with that of the plain reference.

use anyhow::{anyhow, bail};

use stereod_core::calibration::Rectifier;
use stereod_core::frame::{DisparityMap, Eye, INVALID, Image, Matched, StereoPair};
use stereod_core::matching::temporal::Outcome;
use stereod_core::matching::temporal::layout::Layout as Remembered;
use stereod_core::matching::tiles::{TileLayout, match_tiled};
use stereod_core::matching::{History, PairResult, Params, match_next};
use stereod_core::memory::{Budget, product};

/// Compares a result with the reference on the same pair, the next one of the stream of `history`,
/// in the tiles of `layout`, if any. Returns the number of equal pixels.
pub fn verify(
    matched: &Matched,
    params: &Params,
    layout: Option<&TileLayout>,
    history: &mut History,
) -> anyhow::Result<usize> {
    let whole = (matched.disparity.width(), matched.disparity.height());
    let (width, height) = layout.map_or(whole, |layout| layout.window);
    // Sums of all paths, costs of one path, the cost with and without its support; the rest is
    // small.
    let written = if params.is_supported() { 2 * size_of::<u8>() } else { 0 };
    let of_candidate = size_of::<u16>() + size_of::<u8>() + written;
    let bytes = product([width, height, params.range.count, of_candidate]);
    // The temporal stage remembers whole images.
    let remembered = params.temporal.map_or(0, |how| Remembered::new(whole, how.history).words());
    let bytes = bytes.saturating_add(product([remembered, size_of::<i32>()]));
    let what = format!("the reference at {width}x{height} and {} disparities", params.range.count);
    Budget::of_process().check(what, bytes, "fewer --disparities, a smaller picture")?;
    let StereoPair { left, right, timestamp, .. } = &matched.pair;
    let PairResult { map, confidence, temporal } = match layout {
        None => match_next(left, right, *timestamp, params, history),
        Some(layout) => match_tiled(left, right, *timestamp, params, layout, history),
    };
    if let Some(outcome) = temporal {
        compare_temporal(&outcome, matched)?;
    }
    let same = compare(&map, &matched.disparity)?;
    if let (Some(expected), Some(got)) = (&confidence, &matched.confidence) {
        compare_pictures("confidence", expected, got)?;
    }
    Ok(same)
}

/// Compares the images that an engine has rectified with the definition.
pub fn verify_rectified(
    raw: &StereoPair,
    matched: &Matched,
    rectifier: &Rectifier,
) -> anyhow::Result<()> {
    let [left, right] = rectifier.rectify_pair(raw);
    let eyes = [(Eye::Left, left, &matched.pair.left), (Eye::Right, right, &matched.pair.right)];
    for (eye, expected, got) in eyes {
        compare_pictures(&format!("rectified {eye} picture"), &expected, got)?;
    }
    Ok(())
}

/// Compares the output of the spatio-temporal stage for a pair.
fn compare_temporal(expected: &Outcome, got: &Matched) -> anyhow::Result<()> {
    if got.temporal != Some(expected.report) {
        bail!(
            "the report of the stage in time is {:?} instead of {:?}",
            got.temporal,
            expected.report
        );
    }
    let Some(whitened) = &got.whitened else { return Ok(()) };
    match expected.whitened.iter().zip(whitened.pixels()).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(at) => bail!(
            "the whitened picture differs from the reference at x {}, y {}: {} instead of {}",
            at % whitened.width(),
            at / whitened.width(),
            whitened.pixels()[at],
            expected.whitened[at]
        ),
    }
}

fn compare_pictures(what: &str, expected: &Image, got: &Image) -> anyhow::Result<()> {
    let pixels = || expected.pixels().iter().zip(got.pixels()).map(|(a, b)| a != b);
    if let Some(at) = pixels().position(|differs| differs) {
        bail!(
            "the {what} differs from the reference at x {}, y {}: {} instead of {}; {} of {} \
             pixels differ",
            at % expected.width(),
            at / expected.width(),
            got.pixels()[at],
            expected.pixels()[at],
            pixels().filter(|&differs| differs).count(),
            expected.pixels().len()
        );
    }
    Ok(())
}

fn compare(reference: &DisparityMap, got: &DisparityMap) -> anyhow::Result<usize> {
    let pairs = || reference.values().iter().zip(got.values()).enumerate();
    let mut different = pairs().filter(|(_, (a, b))| a != b);
    let Some((at, (&expected, &found))) = different.next() else {
        return Ok(reference.values().len());
    };
    let value = |value: i16| match value {
        INVALID => "invalid".to_owned(),
        value => format!("{value}/16 px"),
    };
    Err(anyhow!(
        "different from the reference at x {}, y {}: {} instead of {}; {} of {} pixels differ",
        at % reference.width(),
        at / reference.width(),
        value(found),
        value(expected),
        different.count() + 1,
        reference.values().len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_core::pool::Pooled;

    #[test]
    fn the_first_difference_is_named() {
        let map = |values: [i16; 6]| {
            DisparityMap::new(
                3,
                2,
                stereod_core::frame::DisparityRange { min: 0, count: 64 },
                Pooled::unpooled(values.to_vec()),
            )
        };
        let reference = map([0, 16, 32, 48, INVALID, 80]);
        assert_eq!(compare(&reference, &map([0, 16, 32, 48, INVALID, 80])).unwrap(), 6);
        let error = compare(&reference, &map([0, 16, 32, INVALID, 64, 80])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "different from the reference at x 0, y 1: invalid instead of 48/16 px; 2 of 6 pixels \
             differ"
        );
        let error = compare(&reference, &map([0, 16, 32, 48, 64, 80])).unwrap_err().to_string();
        assert!(error.contains("x 1, y 1: 64/16 px instead of invalid; 1 of 6"), "{error}");
    }
}
