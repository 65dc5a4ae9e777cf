//! Fills holes of the map from the known pixels around them.
//!
//! From an unknown pixel, rays go out until they meet a known one. One rule takes the smaller of the two
//! disparities found along the row, as KITTI does to compare sparse maps: holes are mostly occlusions, so
//! they continue the background. Another takes a weighted median of all eight rays; the weights fall with the
//! strength of the edges on the way.
//!
//! A third rule fills only gaps: runs of at most [`GAP_MAX`] unknown pixels in a row or in a column, between
//! two ends of the same surface. They take the values on the straight line between the ends. Larger holes
//! stay unknown.
//!
//! Two rules ask the pair's prior map, the prediction of a network: of the known pixels that the eight rays meet,
//! only those count whose disparity the network confirms ([`confirms`]). So the network says which surface a hole
//! belongs to, and its known pixels say the disparity. If no ray meets anything, the network's own disparity is taken.
//! If it confirms none, or is not sure itself, one rule leaves the hole, and in the other one all rays count.
//!
//! A filled disparity is no measurement. Therefore this filter is the last one, so that no other filter
//! stores or uses its values. Known pixels stay unchanged.

use super::rays::{DOWN, LEFT, Met, RAYS, RIGHT, UP, is_seen, meet};
use crate::frame::{DisparityMap, DisparityRange, INVALID, Image, SUBPIXEL};

/// Longest gap that is filled, in pixels.
pub const GAP_MAX: u16 = 4;
/// Largest difference between the ends of a gap, in 1/16 px.
pub const GAP_STEP_MAX: i16 = SUBPIXEL as i16;
/// Largest difference from the network's disparity that it confirms, in 1/16 px. Beyond it, the network is nearly
/// always wrong.
pub const CONFIRMED_MAX: i16 = 5 * SUBPIXEL as i16;

/// Settings of hole filling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Rule for the value of a filled pixel.
    pub rule: FillRule,
    /// Length of the longest ray, in pixels: across, down or diagonally (1 to
    /// [`REACH_MAX`](super::rays::REACH_MAX)). It also limits gaps.
    pub reach: u16,
}

/// Rule for the value of a filled pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FillRule {
    /// The smaller of the two in the row, or the only one.
    Row,
    /// The weighted median along eight rays.
    Rays,
    /// The straight line between the ends of a gap, in the row or in the column.
    Gaps,
    /// The weighted median of the rays that the network confirms.
    Network,
    /// The same or, if it confirms none, of all rays.
    NetworkOrRays,
}

/// A network's prediction.
#[derive(Clone, Copy, Debug)]
pub struct Network<'a> {
    /// Prior map of the pair: half the size, in 1/16 px of that size.
    pub prior: &'a DisparityMap,
    /// Candidates of the map to be filled.
    pub range: DisparityRange,
}

impl FillRule {
    /// Reports whether a network has a say.
    pub fn asks_network(self) -> bool {
        matches!(self, FillRule::Network | FillRule::NetworkOrRays)
    }
}

/// Fills the holes of a map of the left image. Rays end at the image border, at pixels outside the left
/// camera's valid mask, and after `fill.reach` steps. If no ray meets a known pixel, the hole stays.
pub fn apply(values: &mut [i16], left: &Image, network: Option<Network<'_>>, fill: Fill) {
    let known = values.to_vec();
    let width = left.width();
    let reach = match fill.rule {
        FillRule::Gaps => fill.reach.min(GAP_MAX),
        _ => fill.reach,
    };
    for (i, value) in values.iter_mut().enumerate() {
        if known[i] == INVALID && is_seen(left, i) {
            let met = |ray| meet(&known, left, (i % width, i / width), ray, reach);
            *value = match fill.rule {
                FillRule::Row => smaller(met(RAYS[LEFT]), met(RAYS[RIGHT])),
                FillRule::Rays => weighted_median(RAYS.map(met)),
                FillRule::Gaps => {
                    let ends = [[LEFT, RIGHT], [UP, DOWN]];
                    interpolated(ends.map(|rays| rays.map(|ray| met(RAYS[ray]))), reach)
                }
                FillRule::Network | FillRule::NetworkOrRays => {
                    let expected = expected(network, (i % width, i / width));
                    confirmed(RAYS.map(met), expected, fill.rule)
                }
            };
        }
    }
}

/// The smaller of two disparities, i.e. the farther surface, or the only one.
pub fn smaller(a: Option<Met>, b: Option<Met>) -> i16 {
    [a, b].into_iter().flatten().map(|met| met.value).min().unwrap_or(INVALID)
}

/// The network's disparity of pixel (x, y): twice the value of the prior map; invalid if there is none, or if it is
/// unknown or outside the range.
#[inline(always)]
pub fn expected(network: Option<Network<'_>>, (x, y): (usize, usize)) -> i16 {
    let Some(Network { prior, range }) = network else { return INVALID };
    let twice = 2 * i32::from(prior.values()[y / 2 * prior.width() + x / 2]);
    let is_inside = range.min * SUBPIXEL <= twice && twice <= range.max() * SUBPIXEL;
    if is_inside { twice as i16 } else { INVALID }
}

/// Reports whether the network, which expects a disparity or is not sure (invalid), confirms a known one.
#[inline(always)]
pub fn confirms(expected: i16, value: i16) -> bool {
    expected != INVALID && value.abs_diff(expected) <= CONFIRMED_MAX.unsigned_abs()
}

/// Value of a pixel by the rays that the network confirms.
fn confirmed(met: [Option<Met>; 8], expected: i16, rule: FillRule) -> i16 {
    let those = met.map(|met| met.filter(|met| confirms(expected, met.value)));
    match (weighted_median(those), rule) {
        (INVALID, _) if met == [None; 8] => expected,
        (INVALID, FillRule::NetworkOrRays) => weighted_median(met),
        (value, _) => value,
    }
}

/// Lower weighted median of the disparities along the rays, in the order of [`RAYS`]: the smallest value with
/// at least half of the weight at or below it. If the pixel is [hidden](is_hidden), a quarter of the weight
/// is enough.
fn weighted_median(met: [Option<Met>; 8]) -> i16 {
    let parts = if is_hidden(met[LEFT], met[RIGHT]) { 4 } else { 2 };
    let mut met: Vec<Met> = met.into_iter().flatten().collect();
    met.sort_by_key(|met| met.value);
    let total: u32 = met.iter().map(|met| u32::from(weight(met.edge, met.distance))).sum();
    let mut sum = 0;
    let middle = met.iter().find(|met| {
        sum += u32::from(weight(met.edge, met.distance));
        parts * sum >= total
    });
    middle.map_or(INVALID, |met| met.value)
}

/// Reports whether the left background continues behind the foreground in the right image.
fn is_hidden(left: Option<Met>, right: Option<Met>) -> bool {
    let (Some(left), Some(right)) = (left, right) else { return false };
    is_hidden_by(left.value, right.value, right.distance)
}

/// Reports whether a pixel of disparity `far` is occluded in the right image by a surface of disparity `near`
/// that begins `distance` pixels to its right: `near` is larger by more than a pixel, and by at least that
/// distance.
#[inline(always)]
pub fn is_hidden_by(far: i16, near: i16, distance: u16) -> bool {
    let nearer = i32::from(near) - i32::from(far);
    nearer > SUBPIXEL && i32::from(distance) * SUBPIXEL <= nearer
}

/// Value of a pixel on the line between the ends of its gap. `ends`: those of the run in its row, then in its
/// column. The shorter gap decides; on a tie, the row. `longest`: longest allowed gap in pixels.
fn interpolated(ends: [[Option<Met>; 2]; 2], longest: u16) -> i16 {
    let is_gap = |&(a, b): &(Met, Met)| {
        // There is one step more between the ends than there are pixels.
        distance(a, b) <= longest + 1 && a.value.abs_diff(b.value) <= GAP_STEP_MAX.unsigned_abs()
    };
    let gaps = ends.into_iter().filter_map(|[a, b]| a.zip(b).filter(is_gap));
    gaps.min_by_key(|&(a, b)| distance(a, b)).map_or(INVALID, |(a, b)| line(a, b))
}

/// Steps from one end of a run to the other.
fn distance(a: Met, b: Met) -> u16 {
    a.distance + b.distance
}

/// Value on the straight line between two ends, rounded to the nearest; halves upwards.
fn line(a: Met, b: Met) -> i16 {
    let (to_a, to_b) = (i32::from(a.distance), i32::from(b.distance));
    let sum = i32::from(a.value) * to_b + i32::from(b.value) * to_a;
    ((sum + (to_a + to_b) / 2).div_euclid(to_a + to_b)) as i16
}

/// Weight of a ray's disparity: halved by every 8 grey levels of the largest edge on the way and by every
/// sixteenfold of the distance (plus 2), from 3584 down to 1.
///
/// With e = min(edge + 2 floor(log2(distance + 2)), 96) eighths of a halving, it is 4096 * 2^-(e / 8),
/// linearly interpolated between whole halvings.
#[inline(always)]
pub fn weight(edge: u8, distance: u16) -> u16 {
    // 16 bits throughout, so that vectors hold as many weights as disparities.
    let log = 15 - (distance + 2).leading_zeros() as u16;
    let eighths = (u16::from(edge) + 2 * log).min(96);
    (16 - eighths % 8) << 8 >> (eighths / 8)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::rays::REACH_MAX;
    use super::*;
    use crate::frame::Mask;

    const X: i16 = INVALID;

    /// Fills the holes of a map of this image in place, perhaps with a network.
    fn fill(values: &mut [i16], left: &Image, prior: Option<&DisparityMap>, fill: Fill) {
        let range = DisparityRange { min: -1, count: 10 };
        apply(values, left, prior.map(|prior| Network { prior, range }), fill);
    }

    fn filled(width: usize, grey: &[u8], values: &[i16], rule: FillRule, reach: u16) -> Vec<i16> {
        let left = Image::from_vec(width, values.len() / width, grey.to_vec());
        let mut values = values.to_vec();
        fill(&mut values, &left, None, Fill { rule, reach });
        values
    }

    #[test]
    fn a_row_takes_the_background_and_extends_its_ends() {
        let values = [
            X, X, 9, X, X, X, 4, X, //
            X, X, X, X, X, X, X, X, //
        ];
        let row = |reach| filled(8, &[0; 16], &values, FillRule::Row, reach);
        let none = [X; 8];
        assert_eq!(row(8), [[9, 9, 9, 4, 4, 4, 4, 4], none].concat());
        // Within one step, either end is met alone; the middle is too far away.
        assert_eq!(row(1), [[X, 9, 9, 9, X, 4, 4, 4], none].concat());
        assert_eq!(row(2), [[9, 9, 9, 9, 4, 4, 4, 4], none].concat());
    }

    #[test]
    fn weights_by_hand() {
        // One step: log2(3) is 1, two eighths; (16 - 2) * 256.
        assert_eq!(weight(0, 1), 3584);
        // Two steps: log2(4) is 2, four eighths.
        assert_eq!(weight(0, 2), 12 * 256);
        assert_eq!(weight(0, 13), weight(0, 6)); // log2(15) and log2(8) are 3.
        assert_eq!(weight(0, 14), 2048); // Eight eighths.
        assert_eq!(weight(8, 14), 1024);
        assert_eq!(weight(3, 1), 11 * 256);
        // 87 eighths: 2304 / 1024; 96 and more: 4096 / 4096.
        assert_eq!((weight(85, 1), weight(94, 1), weight(255, REACH_MAX)), (2, 1, 1));
    }

    #[test]
    fn rays_take_the_median_that_no_edge_cuts_off() {
        // The centre meets eight neighbours at one step.
        let values = [10, 20, 30, 40, X, 50, 60, 70, 80];
        // Alike, the fourth of eight has half of the weight: 40; and 50 is no foreground.
        assert_eq!(filled(3, &[7; 9], &values, FillRule::Rays, 1)[4], 40);
        // Behind edges of 30 levels, 32 eighths with the distance, five weigh 4096 / 16 = 256 each,
        // while 60, 70 and 80 weigh 3584.
        let grey = [37, 37, 37, 37, 7, 37, 7, 7, 7];
        // 1280 up to 50, 4864 with 60, 8448 with 70, of 12032.
        assert_eq!(filled(3, &grey, &values, FillRule::Rays, 1)[4], 70);
    }

    #[test]
    fn what_the_foreground_hides_is_background() {
        // 5 px in front of 2 px: the three pixels left of the foreground are occluded.
        let (far, near) = (32, 80);
        let values = [
            far, far, far, far, near, near, near, near, //
            far, X, X, X, X, near, near, near, //
            far, far, far, far, near, near, near, near,
        ];
        let met = |value, distance| Some(Met { value, distance, edge: 0 });
        let hidden = |left, right| is_hidden(met(far, left), met(near, right));
        assert_eq!(
            [(1, 4), (2, 3), (3, 2), (4, 1)].map(|(l, r)| hidden(l, r)),
            [false, true, true, true]
        );
        assert!(!is_hidden(met(far, 1), met(far + 16, 1)), "a pixel is a slant");
        assert!(is_hidden(met(far, 1), met(far + 17, 1)));
        assert!(!is_hidden(None, met(near, 1)) && !is_hidden(met(far, 1), None));
        // The last hole, (4, 1), meets the far side at two corners (3584 each) and four steps to the left
        // (3072), the near one five times at one step: 10240 of 28160 is a quarter, but no half.
        assert_eq!(filled(8, &[0; 24], &values, FillRule::Rays, 8)[9..13], [far; 4]);
        // Out of the left's reach it is not known to be hidden: 7168 of 25088.
        assert_eq!(filled(8, &[0; 24], &values, FillRule::Rays, 3)[9..13], [far, far, far, near]);
    }

    /// Fills the gaps of a map.
    fn gaps(width: usize, values: &[i16]) -> Vec<i16> {
        filled(width, &vec![0; values.len()], values, FillRule::Gaps, REACH_MAX)
    }

    #[test]
    fn gaps_take_the_line_between_their_ends() {
        // Steps of 2, and the same the other way round.
        assert_eq!(gaps(6, &[10, X, X, X, X, 20]), [10, 12, 14, 16, 18, 20]);
        assert_eq!(gaps(6, &[20, X, X, X, X, 10]), [20, 18, 16, 14, 12, 10]);
        // A column is filled as a row is.
        assert_eq!(gaps(1, &[10, X, X, X, X, 20]), [10, 12, 14, 16, 18, 20]);
        assert_eq!(gaps(1, &[20, X, X, X, X, 10]), [20, 18, 16, 14, 12, 10]);
        // Thirds of 1: 16.33 and 16.67; halves of 3 go up, whichever end is larger.
        assert_eq!(gaps(4, &[16, X, X, 17]), [16, 16, 17, 17]);
        assert_eq!(gaps(4, &[17, X, X, 16]), [17, 17, 16, 16]);
        assert_eq!((gaps(3, &[4, X, 7])[1], gaps(3, &[7, X, 4])[1]), (6, 6));
        // Negative disparities round the same way: -5.5, -0.5; -6.67 and -6.33.
        assert_eq!((gaps(3, &[-4, X, -7])[1], gaps(3, &[-1, X, 0])[1]), (-5, 0));
        assert_eq!(gaps(4, &[-7, X, X, -6]), [-7, -7, -6, -6]);
    }

    #[test]
    fn only_short_gaps_of_one_surface_are_filled() {
        // A pixel from end to end is a slant, more is an edge.
        assert_eq!(gaps(3, &[0, X, 16]), [0, 8, 16]);
        for values in [[0, X, 17], [17, X, 0], [i16::MAX, X, -i16::MAX]] {
            assert_eq!(gaps(3, &values), values);
            assert_eq!(gaps(1, &values), values);
        }
        // Five unknown pixels are too many, and so is a run that reaches the border.
        let long = [5, X, X, X, X, X, 5];
        assert_eq!((gaps(7, &long), gaps(1, &long)), (long.to_vec(), long.to_vec()));
        let border = [X, 5, X];
        assert_eq!((gaps(3, &border), gaps(1, &border)), (border.to_vec(), border.to_vec()));
        // A shorter reach bounds them further.
        let values = [5, X, X, 5, X, 5];
        assert_eq!(filled(6, &[0; 6], &values, FillRule::Gaps, 1), [5, X, X, 5, 5, 5]);
        assert_eq!(filled(6, &[0; 6], &values, FillRule::Gaps, 2), [5; 6]);
    }

    #[test]
    fn the_shorter_gap_decides_and_the_row_on_a_tie() {
        // The centre lies in a gap of one in its row and of one in its column.
        let values = [
            9, 40, 9, //
            10, X, 20, //
            9, 50, 9,
        ];
        assert_eq!(gaps(3, &values)[4], 15);
        // In a gap of two in its row, and of one in its column: 40 to 50.
        let values = [
            9, 40, 9, 9, //
            10, X, X, 20, //
            9, 50, 30, 9,
        ];
        // The other one's column has 9 and 30 for ends, which is an edge: two thirds from 10 to 20.
        assert_eq!(gaps(4, &values)[5..7], [45, 17]);
        // A gap of two in its column, and of one in its row.
        let values = [
            9, 40, 9, //
            10, X, 20, //
            9, X, 90, //
            9, 50, 9,
        ];
        let filled = gaps(3, &values);
        // (40 * 1 + 50 * 2 + 1) / 3: its row is an edge.
        assert_eq!((filled[4], filled[7]), (15, 47));
    }

    #[test]
    fn filled_gaps_are_no_ends_of_others() {
        // The centre lies between known pixels only once its row is filled.
        let values = [
            X, 8, X, 8, X, //
            X, X, X, X, X, //
            X, 8, X, 8, X,
        ];
        let filled = gaps(5, &values);
        assert_eq!(filled, [X, 8, 8, 8, X, X, 8, X, 8, X, X, 8, 8, 8, X]);
    }

    #[test]
    fn no_gap_crosses_what_the_camera_has_not_seen() {
        let seen = vec![true, true, false, true];
        for width in [4, 1] {
            let left = Image::from_vec(width, 4 / width, vec![0; 4]);
            let left = left.with_valid_mask(Some(Arc::new(Mask::new(width, seen.clone()))));
            let mut values = [5, X, X, 5];
            fill(&mut values, &left, None, Fill { rule: FillRule::Gaps, reach: 9 });
            assert_eq!(values, [5, X, X, 5]);
        }
    }

    #[test]
    fn what_the_camera_has_not_seen_stays_unknown_and_ends_rays() {
        let seen = vec![true, true, false, true, true, true];
        let left =
            Image::from_vec(6, 1, vec![0; 6]).with_valid_mask(Some(Arc::new(Mask::new(6, seen))));
        for rule in [FillRule::Row, FillRule::Rays] {
            let mut values = [5, X, X, X, X, 8];
            fill(&mut values, &left, None, Fill { rule, reach: 9 });
            assert_eq!(values, [5, 5, X, 8, 8, 8], "{rule:?}");
            let mut values = [5, X, X, X, X, X];
            fill(&mut values, &left, None, Fill { rule, reach: 9 });
            assert_eq!(values, [5, 5, X, X, X, X], "{rule:?}");
        }
    }

    /// Fills a map with a network's disparities by both of its rules.
    fn by_network(width: usize, values: &[i16], prior: &[i16], reach: u16) -> [Vec<i16>; 2] {
        let left = Image::from_vec(width, values.len() / width, vec![0; values.len()]);
        let range = DisparityRange { min: 0, count: 1 };
        let prior = DisparityMap::of_values(width.div_ceil(2), range, prior.to_vec());
        [FillRule::Network, FillRule::NetworkOrRays].map(|rule| {
            let mut values = values.to_vec();
            fill(&mut values, &left, Some(&prior), Fill { rule, reach });
            values
        })
    }

    #[test]
    fn rays_count_if_the_network_confirms_them() {
        // Three of the left surface are the median of five, unless the network sees the right one.
        let values = [
            8, 8, 120, //
            8, X, 120,
        ];
        for (expected, alone, or_rays) in [
            (0, 8, 8),
            // 88 confirms both, 90 is too far from 8.
            (44, 8, 8),
            (45, 120, 120),
            (X, X, 8),
        ] {
            let prior = [expected, expected];
            let filled = by_network(3, &values, &prior, 9).map(|filled| filled[4]);
            assert_eq!(filled, [alone, or_rays], "{expected}");
        }
        // Between both surfaces and far from either.
        let values = [-20, X, 160];
        assert_eq!(by_network(3, &values, &[36, 36], 9), [[-20, X, 160], [-20, -20, 160]]);
    }

    #[test]
    fn the_network_alone_knows_what_no_ray_reaches() {
        let values = [10, X, X, X, X, X, X];
        let expected = [10, 10, 30, 30, X, X, 8];
        assert_eq!(by_network(7, &values, &[5, 15, X, 4], 1), [expected, expected]);
        // From -1 to 8 px: 2 * -9 and 2 * 65 are beyond.
        let inside = [X, X, -16, -16, 128, 128, X, X];
        assert_eq!(by_network(8, &[X; 8], &[-9, -8, 64, 65], 9), [inside, inside]);
    }
}
