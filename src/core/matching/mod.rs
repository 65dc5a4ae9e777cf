//! The definition of matching: one plain scalar file for each stage, which every engine must
//! reproduce byte for byte.
//!
//! The flow is Hirschmüller's Semi-Global Matching (PAMI 2008), in `compute_disparities` below: a pixel-wise
//! [`cost`], blended at weak [`texture`] ([`support`]) with the cost of a [`window`] and with a [`prior`]
//! from half-size images ([`pyramid`]); its sums along several paths ([`aggregation`]) or, without paths,
//! over a window ([`local`]); the [`winner`] of each pixel; its checks ([`uniqueness`], [`left_right`]) and
//! interpolation ([`subpixel`]); and the filters of the map. All of it is integer arithmetic, so two
//! engines either agree exactly or one of them is wrong. Nothing here is fast; `engine/` is.

pub mod aggregation;
pub mod block;
pub mod carry;
pub mod census;
pub mod confidence;
pub mod continuity;
pub mod cost;
pub mod filter;
pub mod history;
pub mod learned;
pub mod left_right;
pub mod levels;
pub mod local;
pub mod motion;
pub mod mutual_information;
pub mod odometry;
pub mod params;
pub mod prior;
pub mod pyramid;
pub mod residuals;
pub mod saturation;
pub mod scene;
pub mod stages;
pub mod subpixel;
pub mod support;
pub mod temporal;
pub mod texture;
pub mod tiles;
pub mod uniqueness;
pub mod verdict;
pub mod window;
pub mod windows;
pub mod winner;

pub use block::{BlockMeasure, BlockWindow};
pub use census::CensusWindow;
pub use cost::{CombinedWeights, Cost, CostError};
pub use filter::evidence::Evidence;
pub use filter::fill::{Fill, FillRule};
pub use filter::smoothing::Smoothing;
pub use filter::spatial::Spatial;
pub use filter::steady::Steady;
pub use params::{Guide, Median, P2Mode, Params, ParamsError, Paths, Speckle};
pub use prior::Prior;
pub use subpixel::Subpixel;
pub use temporal::{Mode as TemporalMode, Temporal};
pub use window::Window;

pub use history::History;

use std::time::Duration;

use crate::frame::{DisparityMap, INVALID, Image, SUBPIXEL, StereoPair};
use crate::matching::aggregation::Sums;
use crate::matching::cost::PixelCost;
use crate::matching::mutual_information::CostTable;
use crate::matching::windows::Windows;
use crate::pool::Pooled;

/// Returns the disparity map of one rectified pair, without the history of a stream.
///
/// # Panics
/// If the two images differ in size; `params` must have passed [`Params::check`].
pub fn match_pair(left: &Image, right: &Image, params: &Params) -> DisparityMap {
    match_level(Inputs::of(left, right), params, &mut History::default()).0
}

/// Returns the disparity map of a pair of windows cut out of larger images, with their part of a prior map, and its
/// confidence if the parameters ask for it. `thresholds` are the noise thresholds of the levels of the whole images, the finest
/// first ([`levels::noise_thresholds`]).
///
/// # Panics
/// As [`match_pair`], and if thresholds are missing or 0.
pub fn match_tile(
    pair: &StereoPair,
    params: &Params,
    thresholds: &[u32],
) -> (DisparityMap, Option<Image>) {
    let given = pair.prior.as_deref();
    let inputs =
        Inputs { thresholds: Some(thresholds), given, ..Inputs::of(&pair.left, &pair.right) };
    match_level(inputs, params, &mut History::default())
}

/// Returns the inputs of the confidence model for each pixel of a pair, row by row: its levels
/// ([`confidence::levels_of_map`]), if its confidence is above the least.
///
/// # Panics
/// As [`match_pair`]; `params.cost` must not be mutual information.
pub fn confidence_levels(
    left: &Image,
    right: &Image,
    params: &Params,
) -> Vec<Option<[u8; confidence::LEVELS]>> {
    let inputs = Inputs::of(left, right);
    let mut disparities = compute_disparities(inputs, params);
    let mut values = std::mem::take(&mut disparities.values);
    filter::valid_mask::apply(&mut values, &disparities.matching(inputs, params));
    let mut peaks = confidence::peaks(&disparities.sums, &disparities.winners);
    confidence::blind(&values, &mut peaks, left, right, params.white);
    confidence::levels_of_map(left.width(), &values, &peaks)
}

/// Matching result of one pair of a stream.
#[derive(Debug)]
pub struct PairResult {
    /// Disparity map.
    pub map: DisparityMap,
    /// Confidence of each pixel, if the parameters ask for it ([`confidence`]).
    pub confidence: Option<Image>,
    /// Output of the spatio-temporal stage, if there is one.
    pub temporal: Option<temporal::Outcome>,
}

/// Matches the next pair of a stream; `history` is the state after the previous pairs.
///
/// # Panics
/// As [`match_pair`], and if the pair's prior map has another size than the half-size images.
pub fn match_next(pair: &StereoPair, params: &Params, history: &mut History) -> PairResult {
    let views = [&pair.left, &pair.right];
    let temporal = advance_temporal(views, pair.timestamp, params, history);
    let [left, right] = images_to_match(views, temporal.as_ref(), params);
    let inputs = Inputs { given: pair.prior.as_deref(), ..Inputs::of(left, right) };
    let (map, confidence) = match_level(inputs, params, history);
    PairResult { map, confidence, temporal }
}

/// Advances the stream to its next pair and runs the spatio-temporal stage, if there is one.
fn advance_temporal(
    views: [&Image; 2],
    timestamp: Duration,
    params: &Params,
    history: &mut History,
) -> Option<temporal::Outcome> {
    history.advance(views[0], timestamp);
    let how = params.temporal?;
    let mut state = history.states.remove(temporal::NAME).unwrap_or_default();
    let outcome = temporal::advance(views, &mut state, how);
    history.states.insert(temporal::NAME, state);
    Some(outcome)
}

/// Returns the denoised images, or the original ones without denoising.
fn images_to_match<'a>(
    views: [&'a Image; 2],
    outcome: Option<&'a temporal::Outcome>,
    params: &Params,
) -> [&'a Image; 2] {
    let denoised = outcome.filter(|_| params.denoises());
    denoised.map_or(views, |outcome| outcome.denoised.each_ref())
}

/// Inputs of one level: a rectified pair and prior knowledge about it.
#[derive(Clone, Copy)]
struct Inputs<'a> {
    left: &'a Image,
    right: &'a Image,
    /// Noise threshold of each level, the finest first; `None` to measure them.
    thresholds: Option<&'a [u32]>,
    /// Cost table, for mutual information only.
    table: Option<&'a CostTable>,
    /// Disparity that is known beforehand, at half the size.
    given: Option<&'a DisparityMap>,
}

impl<'a> Inputs<'a> {
    fn of(left: &'a Image, right: &'a Image) -> Self {
        assert_eq!((left.width(), left.height()), (right.width(), right.height()), "size of views");
        Self { left, right, thresholds: None, table: None, given: None }
    }

    fn noise_threshold(&self) -> u32 {
        self.thresholds.map_or_else(|| texture::noise_threshold(self.left), |all| all[0])
    }
}

/// Disparities before the filters, with their sums and winners.
struct Disparities {
    sums: Sums,
    /// Number of the winning candidate of every pixel.
    winners: Vec<usize>,
    /// Disparity of every pixel in 1/16 px.
    values: Vec<i16>,
}

impl Disparities {
    /// Returns the inputs of the filters.
    fn matching<'a>(&'a self, inputs: Inputs<'a>, params: &Params) -> filter::Matching<'a> {
        let Inputs { left, right, .. } = inputs;
        let (range, threshold) = (params.range, inputs.noise_threshold());
        let size = levels::prior_map_size(params, (left.width(), left.height()));
        let prior = size.and(inputs.given);
        filter::Matching { left, right, range, winners: &self.winners, threshold, prior }
    }
}

/// Matches one level: disparities, then the filters. Returns the map and, if requested, the confidence.
fn match_level(
    inputs: Inputs<'_>,
    params: &Params,
    history: &mut History,
) -> (DisparityMap, Option<Image>) {
    let Cost::MutualInformation { truncation } = params.cost else {
        return filter(compute_disparities(inputs, params), inputs, params, history);
    };
    // Each round estimates the cost table from the disparities of the previous round.
    let mut map = history.states.remove(mutual_information::NAME);
    let rounds = if map.is_some() { 1 } else { mutual_information::ROUNDS };
    let Inputs { left, right, .. } = inputs;
    let mut round = || {
        let table = CostTable::of(left, right, map.as_deref(), params.range, truncation);
        let disparities = compute_disparities(Inputs { table: Some(&table), ..inputs }, params);
        let mut seen = disparities.values.clone();
        filter::valid_mask::apply(&mut seen, &disparities.matching(inputs, params));
        map = Some(mutual_information::state_of(&seen));
        disparities
    };
    for _ in 1..rounds {
        round();
    }
    let disparities = round();
    history.states.extend(map.map(|map| (mutual_information::NAME, map)));
    filter(disparities, inputs, params, history)
}

/// The stages of matching, in order, up to the filters.
fn compute_disparities(inputs: Inputs<'_>, params: &Params) -> Disparities {
    let size = (inputs.left.width(), inputs.left.height());
    let coarse = match_coarser(inputs, params);
    let expected = coarse.as_ref().map(|(coarse, _)| prior::expected(coarse, size));
    let windows = coarse.filter(|_| levels::has_windows(params, size));
    let windows = windows
        .map(|(coarse, unfiltered)| Windows::of(coarse.values(), &unfiltered, size, params.range));
    let costs = compute_costs(inputs, expected.as_deref(), params);
    let expected = expected.as_deref();
    let sums = aggregate_costs(costs.as_ref(), inputs, expected, windows.as_ref(), params);
    let (winners, mut values) = select_disparities(&sums, params);
    check_consistency(&sums, &winners, params, &mut values);
    refine_subpixel(&sums, &winners, params, &mut values);
    Disparities { sums, winners, values }
}

/// Computes the matching cost, blended with its window's mean and the prior at weak texture.
fn compute_costs<'a>(
    inputs: Inputs<'a>,
    expected: Option<&[Option<i32>]>,
    params: &Params,
) -> Box<dyn PixelCost + 'a> {
    let costs = cost::pixel_cost(inputs.left, inputs.right, params.cost, inputs.table);
    if !params.is_supported() {
        return costs;
    }
    let threshold = inputs.noise_threshold();
    Box::new(support::blend_costs(costs.as_ref(), inputs.left, expected, threshold, params))
}

/// Sums the costs along the paths or, without paths, over a window.
fn aggregate_costs(
    costs: &dyn PixelCost,
    inputs: Inputs<'_>,
    expected: Option<&[Option<i32>]>,
    windows: Option<&Windows>,
    params: &Params,
) -> Sums {
    let Inputs { left, right, .. } = inputs;
    let surface = expected.filter(|_| params.surface);
    match (params.paths, params.cost, params.p2_guide) {
        (Paths::None, Cost::Block { .. }, _) => local::block_sums(left, right, params),
        (Paths::None, ..) => local::sum_costs(costs, (left.width(), left.height()), params),
        (_, _, Guide::Picture) => aggregation::aggregate(costs, left, surface, windows, params),
        (_, _, Guide::Smoothed) => {
            aggregation::aggregate(costs, &pyramid::smooth(left), surface, windows, params)
        }
    }
}

/// Selects the candidate with the least sum at every pixel; returns its number and its disparity in
/// 1/16 px.
fn select_disparities(sums: &Sums, params: &Params) -> (Vec<usize>, Vec<i16>) {
    let winners = winner::select_winners(sums);
    let disparity = |&k: &usize| ((params.range.min + k as i32) * SUBPIXEL) as i16;
    let values = winners.iter().map(disparity).collect();
    (winners, values)
}

/// Invalidates ambiguous disparities and disparities that contradict the right view.
fn check_consistency(sums: &Sums, winners: &[usize], params: &Params, values: &mut [i16]) {
    if params.uniqueness > 0 {
        uniqueness::check_uniqueness(sums, winners, params.uniqueness, values);
    }
    if let Some(limit) = params.left_right {
        left_right::check_left_right(sums, winners, params.range.min, limit, values);
    }
}

/// Moves disparities between whole pixels, to the minimum of a curve through the sums.
fn refine_subpixel(sums: &Sums, winners: &[usize], params: &Params, values: &mut [i16]) {
    for (i, value) in values.iter_mut().enumerate().filter(|(_, value)| **value != INVALID) {
        *value += params.subpixel.within(sums.of_pixel(i), winners[i]);
    }
}

/// Applies the filters of the map.
fn filter(
    mut disparities: Disparities,
    inputs: Inputs<'_>,
    params: &Params,
    history: &mut History,
) -> (DisparityMap, Option<Image>) {
    let (width, height) = (inputs.left.width(), inputs.left.height());
    let Disparities { sums, winners, .. } = &disparities;
    let mut confidence = params.confidence.map(|_| confidence::peaks(sums, winners));
    let mut values = std::mem::take(&mut disparities.values);
    let matching = disparities.matching(inputs, params);
    for filter in params.filters() {
        let mut state = history.states.remove(filter.name()).unwrap_or_default();
        filter.apply(&mut values, &mut confidence, &matching, &mut state);
        if !state.is_empty() {
            history.states.insert(filter.name(), state);
        }
    }
    let confidence = confidence.map(|confidence| Image::from_vec(width, height, confidence));
    (DisparityMap::new(width, height, params.range, Pooled::unpooled(values)), confidence)
}

/// Matches the half-size pair, and returns its map and the values before the filters; `None` without a prior, or if the
/// images are too small. The cost table of two grey levels also holds for means of four pixels.
fn match_coarser(inputs: Inputs<'_>, params: &Params) -> Option<(DisparityMap, Vec<i16>)> {
    let size = (inputs.left.width(), inputs.left.height());
    let (coarser, _) = levels::coarser(params, size)?;
    let [left, right] = [inputs.left, inputs.right].map(pyramid::half);
    let thresholds = inputs.thresholds.map(|all| &all[1..]);
    let halves = Inputs { left: &left, right: &right, thresholds, given: None, ..inputs };
    let disparities = compute_disparities(halves, &coarser);
    let unfiltered = disparities.values.clone();
    let (mut map, _) = filter(disparities, halves, &coarser, &mut History::default());
    if let (true, Some(given)) = (params.prior_map, inputs.given) {
        assert_eq!(given.values().len(), map.values().len(), "pixels of the prior map");
        prior::replace(map.values_mut(), given.values(), prior::limits(coarser.range));
    }
    Some((map, unfiltered))
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
            let pair = StereoPair::of_stills(left.copy(), right.copy());
            let PairResult { map, confidence, .. } =
                match_next(&pair, &params, &mut History::default());
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
