//! One step along a path, for one vector of candidates.

use super::simd::Vector;

/// Path delta L_r - C = min(L(d), L(d±1) + P1, m + P2) - m, at most P2. L are the path costs of the previous
/// pixel, m is their minimum.
///
/// `below` and `above` hold the next lower and the next higher candidate of each lane of `here`
/// (`striping.rs`), 255 at the ends of the range. A path begins with L = 0, which gives a delta of 0.
/// Saturation is exact: L + P1 beyond 255 never wins, because L(d) <= 255; and nothing is smaller than m.
#[inline(always)]
pub fn path_delta<V: Vector>(below: V, here: V, above: V, least: V, p1: V, p2: V) -> V {
    here.min(below.min(above).adds(p1)).sub(least).min(p2)
}

/// The smallest of the path costs of a pixel, in every lane.
#[inline(always)]
pub fn least<V: Vector>(path: &[V]) -> V {
    let mut least = path[0];
    for &vector in &path[1..] {
        least = least.min(vector);
    }
    least.least()
}

/// Lets the path costs of a pixel hold for the next one on a surface with this slant, 1 or -1: those of candidate
/// d + slant hold for d, too. `gaps`: 255 in the lanes that have no lower neighbour, and in those without a higher one.
#[inline(always)]
pub fn extend<V: Vector>(path: &mut [V], slant: i8, gaps: [V; 2]) {
    let last = path.len() - 1;
    if slant > 0 {
        let end = path[0].shift_down().or(gaps[1]);
        for c in 0..last {
            path[c] = path[c].min(path[c + 1]);
        }
        path[last] = path[last].min(end);
    } else {
        let end = path[last].shift_up().or(gaps[0]);
        for c in (1..=last).rev() {
            path[c] = path[c].min(path[c - 1]);
        }
        path[0] = path[0].min(end);
    }
}
