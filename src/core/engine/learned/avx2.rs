//! Sums of products with AVX2. `maddubs` adds pairs of products in 16 bits, which is exact here: activations are
//! 0..=127 and weights -127..=127, so a pair is at most 32258.

use std::arch::x86_64::*;

use super::convolution::{BLOCK, FOUR, Products, Row, STEP, Sums, Tap, tiles};
use crate::matching::learned::ACTIVATION_MAX;

struct Avx2;

/// Computes a row.
///
/// # Safety
/// The machine has AVX2; else as `Instructions::row`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn row(row: &Row<'_>) {
    // SAFETY: the caller's promise. 8 of the 16 registers hold sums.
    unsafe { tiles::<Avx2, 4, 1>(row) }
}

impl Products for Avx2 {
    #[inline(always)]
    unsafe fn sums<const P: usize, const Q: usize>(
        taps: &[Tap],
        x: usize,
        mut weights: *const i8,
        biases: *const i32,
    ) -> [[Sums; Q]; P] {
        const { assert!(Q == 1) };
        // SAFETY: the caller's promise.
        unsafe {
            let ones = _mm256_set1_epi16(1);
            let first = _mm256_loadu_si256(biases.cast());
            let second = _mm256_loadu_si256(biases.add(BLOCK / 2).cast());
            let mut sums = [[first, second]; P];
            for tap in taps {
                let mut from = tap.first.add(x * tap.pixel);
                for _ in 0..tap.fours {
                    let first = _mm256_loadu_si256(weights.cast());
                    let second = _mm256_loadu_si256(weights.add(STEP / 2).cast());
                    weights = weights.add(STEP);
                    for (p, [low, high]) in sums.iter_mut().enumerate() {
                        let four = from.add(p * tap.pixel).cast::<i32>().read_unaligned();
                        let four = _mm256_set1_epi32(four);
                        let products = _mm256_madd_epi16(_mm256_maddubs_epi16(four, first), ones);
                        *low = _mm256_add_epi32(*low, products);
                        let products = _mm256_madd_epi16(_mm256_maddubs_epi16(four, second), ones);
                        *high = _mm256_add_epi32(*high, products);
                    }
                    from = from.add(FOUR);
                }
            }
            let mut result = [[[0; BLOCK]; Q]; P];
            for (result, &[low, high]) in result.iter_mut().zip(&sums) {
                let result = result[0].as_mut_ptr();
                _mm256_storeu_si256(result.cast(), low);
                _mm256_storeu_si256(result.add(BLOCK / 2).cast(), high);
            }
            result
        }
    }

    #[inline(always)]
    unsafe fn store(
        sums: &Sums,
        shifts: *const i32,
        (low, high): (i32, i32),
        add: Option<*const u8>,
        out: *mut u8,
        is_wide: bool,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut values = [_mm256_setzero_si256(); 2];
            for (values, first) in values.iter_mut().zip([0, BLOCK / 2]) {
                let sums = _mm256_loadu_si256(sums.as_ptr().add(first).cast());
                let shifts = _mm256_loadu_si256(shifts.add(first).cast());
                *values = limited(_mm256_srav_epi32(sums, shifts), low, high);
                if let Some(add) = add {
                    let add = _mm256_cvtepu8_epi32(_mm_loadl_epi64(add.add(first).cast()));
                    *values = limited(_mm256_add_epi32(*values, add), 0, ACTIVATION_MAX.into());
                }
            }
            // Packing takes four values of either half in turn.
            let packed = _mm256_packs_epi32(values[0], values[1]);
            let values = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
            if is_wide {
                _mm256_storeu_si256(out.cast(), values);
            } else {
                let halves =
                    (_mm256_castsi256_si128(values), _mm256_extracti128_si256::<1>(values));
                _mm_storeu_si128(out.cast(), _mm_packs_epi16(halves.0, halves.1));
            }
        }
    }
}

#[inline(always)]
unsafe fn limited(values: __m256i, low: i32, high: i32) -> __m256i {
    // SAFETY: the vector exists, so the machine has the instructions.
    unsafe {
        let (low, high) = (_mm256_set1_epi32(low), _mm256_set1_epi32(high));
        _mm256_min_epi32(_mm256_max_epi32(values, low), high)
    }
}
