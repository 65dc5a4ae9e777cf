//! `--verify`: comparison of the engine's result with that of the plain reference.

use anyhow::bail;

use stereod_core::frame::{DisparityMap, Eye, INVALID, Image, Matched, StereoPair};
use stereod_core::matching::temporal::Outcome;
use stereod_core::matching::temporal::layout::Layout as Remembered;
use stereod_core::matching::tiles::{TileLayout, match_tiled};
use stereod_core::matching::{History, PairResult, Params, match_next};
use stereod_core::memory::{Budget, product};
use stereod_core::rectify::Rectifier;

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

fn compare_pictures(what: &str, expected: &Image, got: &Image) -> anyhow::Result<()> {
    match first_difference(expected.pixels(), got.pixels(), expected.width()) {
        None => Ok(()),
        Some((at, [wanted, got], differ)) => bail!(
            "the {what} differs from the reference at {at}: {got} instead of {wanted}; {differ} of {} \
             pixels differ",
            expected.pixels().len()
        ),
    }
}

fn compare(reference: &DisparityMap, got: &DisparityMap) -> anyhow::Result<usize> {
    let all = reference.values().len();
    let value = |value: i16| match value {
        INVALID => "invalid".to_owned(),
        value => format!("{value}/16 px"),
    };
    match first_difference(reference.values(), got.values(), reference.width()) {
        None => Ok(all),
        Some((at, [expected, found], differ)) => bail!(
            "different from the reference at {at}: {} instead of {}; {differ} of {all} pixels differ",
            value(found),
            value(expected)
        ),
    }
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
