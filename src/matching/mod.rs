//! What the matcher computes, one plain scalar file a stage: the definition that every engine must
//! reproduce byte for byte.
//!
//! The flow is Hirschmüller's Semi-Global Matching (PAMI 2008): a pixel-wise [`cost`], which where there is
//! little [`texture`] is [`support`]ed by a [`window`] and by a [`prior`] from pictures of half the size
//! ([`pyramid`]), summed along several paths ([`aggregation`]) or, where there are none,
//! over a window ([`local`]), a [`winner`] per pixel, its checks
//! ([`uniqueness`], [`left_right`]) and interpolation ([`subpixel`]), and the [`filter`]s of the map. All of it
//! is integer arithmetic, so two engines either agree exactly or one of them is wrong. Nothing here is fast;
//! `engine/` is.

pub mod aggregation;
pub mod block;
pub mod census;
pub mod confidence;
pub mod cost;
pub mod filter;
pub mod left_right;
pub mod levels;
pub mod local;
pub mod mutual_information;
pub mod params;
pub mod prior;
pub mod pyramid;
pub mod saturation;
pub mod subpixel;
pub mod support;
pub mod temporal;
pub mod texture;
pub mod tiles;
pub mod uniqueness;
pub mod window;
pub mod winner;

pub use block::{BlockMeasure, BlockWindow};
pub use census::CensusWindow;
pub use cost::{Cost, CostError};
pub use filter::evidence::Evidence;
pub use filter::fill::{Fill, FillRule};
pub use filter::smoothing::Smoothing;
pub use filter::steady::Steady;
pub use params::{Guide, Median, P2Mode, Params, ParamsError, Paths, Speckle};
pub use prior::Prior;
pub use subpixel::Subpixel;
pub use temporal::{Mode as TemporalMode, Temporal};
pub use window::Window;

pub use filter::History;

use std::time::Duration;

use crate::frame::{DisparityMap, INVALID, Image, SUBPIXEL};
use crate::matching::aggregation::Sums;
use crate::matching::filter::State;
use crate::matching::mutual_information::CostTable;
use crate::pool::Pooled;

/// The disparity map of one rectified pair that belongs to no stream.
///
/// # Panics
/// Where the two pictures differ in size; `params` must have passed [`Params::check`].
pub fn match_pair(left: &Image, right: &Image, params: &Params) -> DisparityMap {
    match_with(left, right, params, None, &mut History::default()).0
}

/// The disparity map of one pair of windows that are cut out of larger pictures, and where the parameters ask
/// for it how sure each pixel is. Texture counts as noise below these thresholds, one for each level of the
/// windows, the finest first ([`levels::noise_thresholds`]), instead of those of the windows' own pixels.
///
/// # Panics
/// As [`match_pair`], and where thresholds are missing or 0.
pub fn match_tile(
    left: &Image,
    right: &Image,
    params: &Params,
    thresholds: &[u32],
) -> (DisparityMap, Option<Image>) {
    match_with(left, right, params, Some(thresholds), &mut History::default())
}

/// What is known of a pair of a stream.
#[derive(Debug)]
pub struct Next {
    /// Its map.
    pub map: DisparityMap,
    /// How sure each pixel is, where the parameters ask for it ([`confidence`]).
    pub confidence: Option<Image>,
    /// What the spatio-temporal stage made of the pictures, where there is one.
    pub temporal: Option<temporal::Outcome>,
}

/// The disparity map of the next pair of a stream, captured at `timestamp`, of whose pairs `history` knows, and what
/// else the parameters ask for.
///
/// # Panics
/// As [`match_pair`].
pub fn match_next(
    left: &Image,
    right: &Image,
    timestamp: Duration,
    params: &Params,
    history: &mut History,
) -> Next {
    let temporal = pass([left, right], timestamp, params, history);
    let [left, right] = matched([left, right], temporal.as_ref(), params);
    let (map, confidence) = match_with(left, right, params, None, history);
    Next { map, confidence, temporal }
}

/// Goes on with a stream: what the spatio-temporal stage makes of its next pair, where there is one.
fn pass(
    eyes: [&Image; 2],
    timestamp: Duration,
    params: &Params,
    history: &mut History,
) -> Option<temporal::Outcome> {
    history.advance(eyes[0], timestamp);
    let how = params.temporal?;
    let mut state = history.states.remove(temporal::NAME).unwrap_or_default();
    let outcome = temporal::advance(eyes, &mut state, how);
    history.states.insert(temporal::NAME, state);
    Some(outcome)
}

/// The pictures that are matched.
fn matched<'a>(
    eyes: [&'a Image; 2],
    outcome: Option<&'a temporal::Outcome>,
    params: &Params,
) -> [&'a Image; 2] {
    let denoised = outcome.filter(|_| params.denoises());
    denoised.map_or(eyes, |outcome| outcome.denoised.each_ref())
}

fn match_with(
    left: &Image,
    right: &Image,
    params: &Params,
    thresholds: Option<&[u32]>,
    history: &mut History,
) -> (DisparityMap, Option<Image>) {
    let given = Given { thresholds, table: None };
    let Cost::MutualInformation { truncation } = params.cost else {
        let found = found(left, right, params, given);
        return filtered(left, right, params, given, found, history);
    };
    let mut map = history.states.remove(mutual_information::NAME);
    let rounds = if map.is_some() { 1 } else { mutual_information::ROUNDS };
    let next = |map: &mut Option<State>| {
        let table = CostTable::of(left, right, map.as_deref(), params.range, truncation);
        let found = found(left, right, params, Given { table: Some(&table), ..given });
        let (range, winners) = (params.range, &found.winners);
        let threshold = given.threshold(left);
        let matching = filter::Matching { left, right, range, winners, threshold };
        let mut seen = found.values.clone();
        filter::valid_mask::apply(&mut seen, &matching);
        *map = Some(mutual_information::state_of(&seen));
        found
    };
    for _ in 1..rounds {
        next(&mut map);
    }
    let found = next(&mut map);
    history.states.extend(map.map(|map| (mutual_information::NAME, map)));
    filtered(left, right, params, given, found, history)
}

/// What the costs of a pair come to.
struct Found {
    sums: Sums,
    /// Candidate of every pixel.
    winners: Vec<usize>,
    /// Disparities of those that pass the checks.
    values: Vec<i16>,
}

/// What is known of a pair besides its pictures.
#[derive(Clone, Copy)]
struct Given<'a> {
    /// The noise threshold of each level, the finest first, where it is not the pictures' own.
    thresholds: Option<&'a [u32]>,
    /// That of mutual information.
    table: Option<&'a CostTable>,
}

impl Given<'_> {
    /// The noise threshold of this left picture.
    fn threshold(&self, left: &Image) -> u32 {
        self.thresholds.map_or_else(|| texture::noise_threshold(left), |all| all[0])
    }
}

/// The winners, checked.
fn found(left: &Image, right: &Image, params: &Params, given: Given<'_>) -> Found {
    assert_eq!((left.width(), left.height()), (right.width(), right.height()), "size of the eyes");
    let range = params.range;
    let sums = match params.paths {
        Paths::None => local::sums(left, right, params, given.table),
        _ => aggregated(left, right, params, given),
    };
    let winners = winner::winners(&sums);
    let mut values: Vec<i16> =
        winners.iter().map(|&k| ((range.min + k as i32) * SUBPIXEL) as i16).collect();
    if params.uniqueness > 0 {
        uniqueness::uniqueness(&sums, &winners, params.uniqueness, &mut values);
    }
    for (i, value) in values.iter_mut().enumerate().filter(|(_, value)| **value != INVALID) {
        *value += params.subpixel.within(sums.of_pixel(i), winners[i]);
    }
    if let Some(limit) = params.left_right {
        left_right::left_right(&sums, &winners, range.min, limit, &mut values);
    }
    Found { sums, winners, values }
}

/// The map after the filters, and how sure each pixel is.
fn filtered(
    left: &Image,
    right: &Image,
    params: &Params,
    given: Given<'_>,
    Found { sums, winners, mut values }: Found,
    history: &mut History,
) -> (DisparityMap, Option<Image>) {
    let (width, height, range) = (left.width(), left.height(), params.range);
    let mut confidence = params.confidence.map(|_| confidence::peaks(&sums, &winners));
    let threshold = given.threshold(left);
    let matching = filter::Matching { left, right, range, winners: &winners, threshold };
    for filter in params.filters() {
        let mut state = history.states.remove(filter.name()).unwrap_or_default();
        filter.apply(&mut values, &mut confidence, &matching, &mut state);
        if !state.is_empty() {
            history.states.insert(filter.name(), state);
        }
    }
    let confidence = confidence.map(|confidence| Image::from_vec(width, height, confidence));
    (DisparityMap::new(width, height, range, Pooled::unpooled(values)), confidence)
}

/// The costs, with what supports them, summed along the paths.
fn aggregated(left: &Image, right: &Image, params: &Params, given: Given<'_>) -> Sums {
    let mut cost = cost::pixel_cost(left, right, params.cost, given.table);
    if params.is_supported() {
        let coarse = coarse_map(left, right, params, given);
        let threshold = given.threshold(left);
        let costs = support::supported(cost.as_ref(), left, coarse.as_ref(), threshold, params);
        cost = Box::new(costs);
    }
    match params.p2_guide {
        Guide::Picture => aggregation::aggregate(cost.as_ref(), left, params),
        Guide::Smoothed => aggregation::aggregate(cost.as_ref(), &pyramid::smoothed(left), params),
    }
}

/// The map of the half-size pictures; `None` where there is no prior, or the pictures are too small. What a table
/// says of two grey levels holds for the means of four pixels, too.
fn coarse_map(
    left: &Image,
    right: &Image,
    params: &Params,
    given: Given<'_>,
) -> Option<DisparityMap> {
    let (coarser, _) = levels::coarser(params, (left.width(), left.height()))?;
    let [left, right] = [left, right].map(pyramid::half);
    let given = Given { thresholds: given.thresholds.map(|all| &all[1..]), ..given };
    let found = found(&left, &right, &coarser, given);
    Some(filtered(&left, &right, &coarser, given, found, &mut History::default()).0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::DisparityRange;

    #[test]
    fn what_is_filled_has_no_confidence() {
        // The right halves have nothing in common.
        let grey = |x: usize, y: usize| (x * x * 37 + y * 101 + x * y * 13) as u8;
        let left = Image::from_fn(40, 12, grey);
        let right = Image::from_fn(40, 12, |x, y| {
            let other = (x * 89 + y * y * 57 + x * y * 7) as u8;
            if x < 20 { grey(x + 3, y) } else { other }
        });
        let range = DisparityRange { min: 0, count: 8 };
        let with = |fill| {
            let params = Params { fill, confidence: Some(0), left_right: Some(0), ..bare(range) };
            let Next { map, confidence, .. } =
                match_next(&left, &right, Duration::ZERO, &params, &mut History::default());
            (map.values().to_vec(), confidence.unwrap().pixels().to_vec())
        };
        let (holes, expected) = with(None);
        assert!(holes.iter().zip(&expected).all(|(&value, &c)| (value == INVALID) == (c == 0)));
        let (filled, confidence) = with(Some(Fill { rule: FillRule::Row, reach: 64 }));
        assert!(holes.iter().zip(&filled).any(|(&hole, &now)| hole == INVALID && now != INVALID));
        assert_eq!(confidence, expected);
    }

    fn bare(range: DisparityRange) -> Params {
        Params::bare(range, Cost::Ad { truncation: 40, window: 1 }, (7, 86))
    }
}
