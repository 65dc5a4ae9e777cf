//! The weighted medians of a block of pixels.

use super::fronts::{BLOCK, Fronts};
use crate::engine::cpu::simd::Lanes;
use crate::frame::INVALID;
use crate::matching::filter::fill;

/// What the eight rays of the pixels of a block have met, in the order of [`fill::RAYS`].
pub struct Gathered {
    values: [[i16; BLOCK]; 8],
    /// At most 3584, so that eight of them fit.
    weights: [[i16; BLOCK]; 8],
    /// Steps to what the ray to the right has met.
    right: [i16; BLOCK],
}

impl Gathered {
    /// What `fronts` know of the block at column `x`, and of ray `k` upwards the values and weights that
    /// were written down.
    #[inline(always)]
    pub fn new(fronts: &Fronts, x: usize, upward: impl Fn(usize) -> [[i16; BLOCK]; 2]) -> Self {
        let (mut values, mut weights) = ([[0; BLOCK]; 8], [[0; BLOCK]; 8]);
        for k in 0..fill::LEFT {
            [values[k], weights[k]] = upward(k);
        }
        for (k, front) in (fill::LEFT..).zip(fronts.across.iter().chain(&fronts.here)) {
            (values[k], weights[k]) = (front.block(x), front.weights(x));
        }
        Self { values, weights, right: fronts.across[1].steps(x) }
    }

    /// The weight that a value needs together with all smaller ones.
    #[inline(always)]
    fn wanted(&self) -> [i16; BLOCK] {
        let mut wanted = [0; BLOCK];
        for weights in &self.weights {
            for (total, &weight) in wanted.iter_mut().zip(weights) {
                *total += weight;
            }
        }
        let [left, right] = [fill::LEFT, fill::RIGHT].map(|ray| &self.values[ray]);
        for x in 0..BLOCK {
            let hidden = fill::is_hidden_by(left[x], right[x], self.right[x] as u16);
            let is_known = left[x] != INVALID && right[x] != INVALID;
            let (half, quarter) = ((wanted[x] + 1) >> 1, (wanted[x] + 3) >> 2);
            wanted[x] = if hidden && is_known { quarter } else { half };
        }
        wanted
    }

    /// The weighted medians, or quarters; invalid where all values are.
    ///
    /// # Safety
    /// The machine has the instructions of `V`.
    #[inline(always)]
    pub unsafe fn medians<V: Lanes>(&self) -> [i16; BLOCK] {
        const { assert!(V::N / 2 <= BLOCK && BLOCK.is_multiple_of(V::N / 2)) };
        let wanted = self.wanted();
        let mut medians = [0; BLOCK];
        for x in (0..BLOCK).step_by(V::N / 2) {
            // SAFETY: the caller's promise; blocks are whole vectors.
            unsafe {
                let zero = V::splat_wide(0);
                let load = |row: &[i16; BLOCK]| V::load_wide(row.as_ptr().add(x));
                let (mut values, mut weights) = ([zero; 8], [zero; 8]);
                for k in 0..8 {
                    (values[k], weights[k]) = (load(&self.values[k]), load(&self.weights[k]));
                }
                let wanted = load(&wanted);
                // Of each value: the weight of all that are smaller, and of those before that are equal, so
                // that the last of equals has all.
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
                    // None is the least value, and has no weight: it is enough where nothing is wanted.
                    let enough = V::select_equal(V::max_wide(sum, wanted), sum, value, least);
                    least = V::min_wide(least, enough);
                }
                V::store_wide(least, medians.as_mut_ptr().add(x));
            }
        }
        medians
    }
}
