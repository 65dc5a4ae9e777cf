//! Number of candidate disparities that a scene needs, estimated from its images.
//!
//! With too few candidates the nearest objects get wrong disparities or none, and the map does not show it.
//! [`match_coarsely`] matches a reduced pair over half the image's width at a small part of the cost, and
//! counts the disparities confirmed by both views. [`too_few`] compares them with the candidates in use,
//! [`enough`] returns a sufficient number, and [`may_be_too_short`] decides from a finished map alone whether
//! a coarse search is worth its time.

mod coarse;
pub mod observer;

use std::fmt;

use serde::Serialize;

use coarse::MOST;
pub use coarse::{SmallMatcher, match_coarsely};
use stereod_core::frame::{DisparityMap, DisparityRange, INVALID, Image, SUBPIXEL};
use stereod_core::matching::params::DISPARITY_LIMITS;

/// Numbers of candidates are multiples of this, because engines process whole steps anyway.
const STEP: usize = 16;

/// Share of points that may lie beyond a sufficient range: single wrong matches, and slivers of the
/// nearest objects.
const LEFT_OUT: f64 = 0.002;

/// Reserve beyond the disparities that the images show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spare {
    /// None, because there are no other images.
    None,
    /// A quarter more and no fewer than 32 candidates, for objects that come nearer later.
    ForLater,
}

/// Returns a sufficient number of candidates from `min` on for these rectified pairs, a multiple of
/// 16; `None` if the images do not tell.
///
/// The disparities are taken from a small image, then checked in one of twice the size.
pub fn enough<'a>(
    pairs: impl IntoIterator<Item = [&'a Image; 2]>,
    min: i32,
    spare: Spare,
    matcher: &SmallMatcher,
) -> anyhow::Result<Option<usize>> {
    let mut furthest: Option<(i32, [&Image; 2], usize)> = None;
    for pair in pairs {
        let Some(coarse) = match_coarsely(pair, min, matcher)? else { continue };
        let end = coarse.all_but(LEFT_OUT);
        if furthest.is_none_or(|(before, ..)| end > before) {
            furthest = Some((end, pair, coarse.factor()));
        }
    }
    let Some((end, pair, factor)) = furthest else { return Ok(None) };
    let checked = coarse::match_finer(pair, min, end, factor, matcher)?;
    let end = checked.map_or(end, |closer| end.max(closer.all_but(LEFT_OUT)));
    let room = (DISPARITY_LIMITS.1 - min + 1).max(1) as usize;
    Ok(Some(round_up((end - min).max(1) as usize, spare).min(room)))
}

/// Finding of too few candidates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TooFew {
    /// The candidates in use.
    #[serde(skip)]
    pub range: DisparityRange,
    /// Share of the points whose disparity lies beyond them.
    pub beyond: f64,
    /// A sufficient number.
    pub enough: usize,
    /// True if `auto` has chosen the candidates in use.
    #[serde(skip)]
    pub chosen: bool,
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { range, beyond, enough, chosen } = self;
        let auto = match chosen {
            true => "auto has looked at the first pairs only",
            false => "--disparities auto chooses by itself",
        };
        write!(
            f,
            "too few disparities: about {:.0} % of what both views show is nearer than the {} from {} on \
             reach, and is wrong or missing; --disparities {enough} would do ({auto})",
            (beyond * 100.0).max(1.0),
            range.count,
            range.min
        )
    }
}

/// Checks a rectified pair for too few candidates. `None` if they suffice or the images do not
/// tell.
pub fn too_few(
    pair: [&Image; 2],
    range: DisparityRange,
    spare: Spare,
    matcher: &SmallMatcher,
) -> anyhow::Result<Option<TooFew>> {
    let short =
        match_coarsely(pair, range.min, matcher)?.and_then(|coarse| coarse.share_beyond(range));
    let Some(beyond) = short else { return Ok(None) };
    let enough = enough([pair], range.min, spare, matcher)?;
    let enough = enough.filter(|&enough| enough > range.count);
    Ok(enough.map(|enough| TooFew { range, beyond, enough, chosen: false }))
}

/// Rounds `needed` and its reserve up to whole steps.
fn round_up(needed: usize, spare: Spare) -> usize {
    let with_spare = match spare {
        Spare::None => needed,
        Spare::ForLater => (needed + needed.div_ceil(4)).max(2 * STEP),
    };
    with_spare.next_multiple_of(STEP).min(MOST)
}

const ROW_STEP: usize = 8;

/// The last candidates are this part of all, and at least two.
const LAST: usize = 32;

/// Suspicious share of valid values at the last candidates ...
const AT_THE_END: f64 = 0.005;

/// ... and of pixels without a value: objects nearer than the range mostly fail the checks.
const WITHOUT: f64 = 0.35;

/// Reports whether the scene may contain disparities beyond the search range: many values at the
/// last candidates, or many pixels without one. It costs next to nothing and raises false alarms;
/// [`super::match_coarsely`] verifies it.
pub fn may_be_too_short(map: &DisparityMap, range: DisparityRange) -> bool {
    let last = (range.count / LAST).max(2) as i32;
    let end = (range.max() - last + 1) * SUBPIXEL;
    let (mut all, mut valid, mut at_the_end) = (0, 0, 0);
    let rows = map.values().chunks_exact(map.width().max(1));
    for row in rows.skip((ROW_STEP / 2).min(map.height() / 2)).step_by(ROW_STEP) {
        all += row.len();
        for &value in row.iter().filter(|&&value| value != INVALID) {
            valid += 1;
            at_the_end += u32::from(i32::from(value) >= end);
        }
    }
    let without = 1.0 - f64::from(valid) / all.max(1) as f64;
    without > WITHOUT || f64::from(at_the_end) > AT_THE_END * f64::from(valid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_core::frame::DisparityMap;
    use stereod_core::matching::{Params, match_pair};
    use stereod_core::pool::Pooled;

    fn reference(left: Image, right: Image, params: &Params) -> anyhow::Result<DisparityMap> {
        Ok(match_pair(&left, &right, params))
    }

    /// Returns a textured wall, `near` pixels of disparity in its middle third and `far` around it.
    fn wall(near: usize, far: usize) -> [Image; 2] {
        let texture = |x: usize, y: usize| {
            let noise = (x / 2).wrapping_mul(0x9e37_79b9) ^ (y / 2).wrapping_mul(0x85eb_ca6b);
            (noise.wrapping_mul(0xc2b2_ae35) >> 11) as u8
        };
        let (width, height) = (320, 96);
        let middle = 120..220;
        let right = Image::from_fn(width, height, |x, y| match middle.contains(&(x + near)) {
            true => texture(x + near + 1000, y),
            false => texture(x + far, y),
        });
        let left = Image::from_fn(width, height, |x, y| match middle.contains(&x) {
            true => texture(x + 1000, y),
            false => texture(x, y),
        });
        [left, right]
    }

    #[test]
    fn enough_is_what_the_pictures_show_and_not_less() {
        let [left, right] = wall(52, 10);
        let of = |min, spare| enough([[&left, &right]], min, spare, &reference).unwrap();
        assert_eq!(of(0, Spare::None), Some(64));
        assert_eq!(of(0, Spare::ForLater), Some(80));
        assert_eq!(of(8, Spare::None), Some(48));
        assert_eq!(of(-30, Spare::None), Some(96));
    }

    #[test]
    fn the_nearest_pair_counts() {
        let pairs = [wall(20, 3), wall(70, 3), wall(30, 3)];
        let all = pairs.iter().map(|[left, right]| [left, right]);
        assert_eq!(enough(all, 0, Spare::None, &reference).unwrap(), Some(80));
    }

    #[test]
    fn a_range_that_is_short_is_told_from_one_that_is_not() {
        let [left, right] = wall(52, 10);
        let coarse = match_coarsely([&left, &right], 0, &reference).unwrap().unwrap();
        let short = |count| coarse.share_beyond(DisparityRange { min: 0, count });
        assert!(short(48).is_some_and(|share| share > 0.2), "{coarse:?}");
        assert_eq!((short(56), short(64)), (None, None), "{coarse:?}");
        let range = DisparityRange { min: 0, count: 48 };
        let told = too_few([&left, &right], range, Spare::None, &reference).unwrap().unwrap();
        assert_eq!(told.enough, 64);
        assert!(told.to_string().contains("--disparities 64 would do (--disp"), "{told}");
        // A user who has given `auto` gets no advice to give it.
        let told = TooFew { chosen: true, ..told };
        assert!(told.to_string().contains("--disparities 64 would do (auto has"), "{told}");
        let range = DisparityRange { min: 0, count: 64 };
        assert_eq!(too_few([&left, &right], range, Spare::None, &reference).unwrap(), None);
    }

    #[test]
    fn pictures_that_tell_nothing() {
        let flat = Image::from_fn(320, 96, |_, _| 90);
        let small = Image::from_fn(40, 30, |x, y| (x * y) as u8);
        for image in [&flat, &small] {
            assert_eq!(enough([[image, image]], 0, Spare::None, &reference).unwrap(), None);
        }
        assert_eq!(enough([], 0, Spare::None, &reference).unwrap(), None);
    }

    #[test]
    fn numbers_are_whole_steps() {
        assert_eq!(round_up(1, Spare::None), 16);
        assert_eq!(round_up(17, Spare::None), 32);
        assert_eq!(round_up(1, Spare::ForLater), 32);
        assert_eq!(round_up(72, Spare::ForLater), 96);
        assert_eq!(round_up(5000, Spare::None), 1024);
    }

    const RANGE: DisparityRange = DisparityRange { min: -4, count: 64 };

    fn map(value: impl Fn(usize) -> i16) -> DisparityMap {
        let values = (0..6400).map(|i| value(i % 100)).collect();
        DisparityMap::new(100, 64, RANGE, Pooled::unpooled(values))
    }

    #[test]
    fn values_at_the_end_and_missing_ones_are_suspicious() {
        assert!(
            !may_be_too_short(&map(|x| (x as i16 - 90) / 2 * 16), RANGE),
            "-4 and far below 57"
        );
        assert!(may_be_too_short(&map(|x| if x < 2 { 58 * 16 } else { 80 }), RANGE));
        assert!(!may_be_too_short(&map(|x| if x < 2 { 57 * 16 } else { 80 }), RANGE));
        assert!(may_be_too_short(&map(|x| if x < 40 { INVALID } else { 80 }), RANGE));
        assert!(!may_be_too_short(&map(|x| if x < 30 { INVALID } else { 80 }), RANGE));
    }
}
