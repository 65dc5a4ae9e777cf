//! `--verify`: comparison of the engine's result with that of the plain reference.

use anyhow::anyhow;

use super::Error;
use crate::settings::Settings;
use stereod_core::engine::difference::{Make, compare, compare_images, first_stage, reference};
use stereod_core::engine::{Choice, Options, PriorFrom, predicted};
use stereod_core::frame::{Eye, Matched, StereoPair};
use stereod_core::matching::temporal::layout::Layout as Remembered;
use stereod_core::matching::tiles::TileLayout;
use stereod_core::matching::{History, Params};
use stereod_core::memory::{Budget, product};
use stereod_core::rectify::Rectifier;

/// Refuses to compare a network's disparity, which has no reference.
pub fn refuse_verification(verify: bool, settings: &Settings) -> Result<(), Error> {
    match &settings.engine.kind {
        Choice::Network(_) if verify => Err(Error::usage(
            "--verify compares matching with its plain reference, which a network does not have: its result may differ \
             from machine to machine",
        )),
        _ => Ok(()),
    }
}

/// Compares a result with the reference on the same pair, the next one of the stream of `history`,
/// in the tiles of `layout`, if any. Returns the number of equal pixels. The error names the first stage that differs
/// on engines that `make` makes, which is with `options`.
pub fn verify(
    matched: &Matched,
    params: &Params,
    layout: Option<&TileLayout>,
    history: &mut History,
    (make, options): (Make<'_>, &Options),
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
    // The map of a network before the engine is taken as it is. A network within the engine does not give its map.
    let mut pair = matched.pair.copy();
    if pair.prior.is_none() && options.prior_from != PriorFrom::HalfSize {
        pair.prior = Some(Box::new(predicted(&pair, params, options)?));
    }
    let params = &params.clone().with_prior_map(pair.prior.is_some());
    let expected = reference(&pair, params, layout, history);
    compare(&expected, matched)
        .map_err(|different| anyhow!("{different:#}; {}", first_stage(&pair, params, make)))
        .map(|()| whole.0 * whole.1)
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
        compare_images(&format!("rectified {eye} picture"), &expected, got)?;
    }
    Ok(())
}
