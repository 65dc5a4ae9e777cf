//! The weighted medians of a block of pixels.

use crate::engine::cpu::filter::rays::{Around, BLOCK, Block};
use crate::engine::cpu::simd::Vector;
use crate::frame::INVALID;
use crate::matching::filter::fill;
use crate::matching::filter::rays::{LEFT, RIGHT};

/// The weight that a value and all smaller ones must reach. The sum of eight weights (<= 3584) fits.
#[inline(always)]
fn wanted(around: &Around) -> Block {
    let mut wanted = [0; BLOCK];
    for weights in &around.measures {
        for (total, &weight) in wanted.iter_mut().zip(weights) {
            *total += weight;
        }
    }
    let [left, right] = [LEFT, RIGHT].map(|ray| &around.values[ray]);
    for x in 0..BLOCK {
        let hidden = fill::is_hidden_by(left[x], right[x], around.right[x] as u16);
        let is_known = left[x] != INVALID && right[x] != INVALID;
        let (half, quarter) = ((wanted[x] + 1) >> 1, (wanted[x] + 3) >> 2);
        wanted[x] = if hidden && is_known { quarter } else { half };
    }
    wanted
}

/// Returns the weighted medians, or quarters if hidden; invalid if all values are.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub unsafe fn medians<V: Vector>(around: &Around) -> Block {
    const { assert!(V::N / 2 <= BLOCK && BLOCK.is_multiple_of(V::N / 2)) };
    let wanted = wanted(around);
    let mut medians = [0; BLOCK];
    for x in (0..BLOCK).step_by(V::N / 2) {
        // SAFETY: the caller's promise; blocks are whole vectors.
        unsafe {
            let zero = V::splat_wide(0);
            let load = |row: &Block| V::load_wide(row.as_ptr().add(x));
            let (mut values, mut weights) = ([zero; 8], [zero; 8]);
            for k in 0..8 {
                (values[k], weights[k]) = (load(&around.values[k]), load(&around.measures[k]));
            }
            let wanted = load(&wanted);
            // For each value: the weight of all smaller ones, and of the preceding equal ones, so that the
            // last of equals has the full weight.
            let mut sums = weights;
            for j in 1..8 {
                for i in 0..j {
                    let larger = V::max_wide(values[i], values[j]);
                    let below = V::select_equal(larger, values[j], weights[i], zero);
                    let above = V::select_equal(larger, values[j], zero, weights[j]);
                    sums[j] = V::add_wide(sums[j], below);
                    sums[i] = V::add_wide(sums[i], above);
                }
            }
            let mut least = V::splat_wide(i16::MAX);
            for (value, sum) in values.into_iter().zip(sums) {
                // An invalid value is the smallest and has no weight; it suffices if no weight is wanted.
                let enough = V::select_equal(V::max_wide(sum, wanted), sum, value, least);
                least = V::min_wide(least, enough);
            }
            V::store_wide(least, medians.as_mut_ptr().add(x));
        }
    }
    medians
}
