//! Sums of products with AVX-512 VNNI: one instruction multiplies and adds 64 pairs of bytes.

use std::arch::x86_64::*;

use super::convolution::{BLOCK, FOUR, Products, Row, STEP, Sums, Tap, tiles};
use crate::matching::learned::ACTIVATION_MAX;

struct Avx512;

/// Computes a row.
///
/// # Safety
/// The machine has AVX-512 with VNNI; else as `Instructions::row`.
#[target_feature(enable = "avx2,bmi1,bmi2,avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn row(row: &Row<'_>) {
    // SAFETY: the caller's promise. At most 24 of the 32 registers hold sums.
    unsafe {
        match row.blocks {
            1 => tiles::<Avx512, 12, 1>(row),
            2 => tiles::<Avx512, 10, 2>(row),
            3 => tiles::<Avx512, 8, 3>(row),
            _ => tiles::<Avx512, 6, 4>(row),
        }
    }
}

impl Products for Avx512 {
    #[inline(always)]
    unsafe fn sums<const P: usize, const Q: usize>(
        taps: &[Tap],
        x: usize,
        mut weights: *const i8,
        biases: *const i32,
    ) -> [[Sums; Q]; P] {
        // SAFETY: the caller's promise.
        unsafe {
            let mut sums = [[_mm512_setzero_si512(); Q]; P];
            for of_pixel in &mut sums {
                for (q, sum) in of_pixel.iter_mut().enumerate() {
                    *sum = _mm512_loadu_si512(biases.add(q * BLOCK).cast());
                }
            }
            for tap in taps {
                let mut from = tap.first.add(x * tap.pixel);
                for _ in 0..tap.fours {
                    let mut factors = [_mm512_setzero_si512(); Q];
                    for (q, factor) in factors.iter_mut().enumerate() {
                        *factor = _mm512_loadu_si512(weights.add(q * STEP).cast());
                    }
                    weights = weights.add(Q * STEP);
                    for (p, of_pixel) in sums.iter_mut().enumerate() {
                        let four = from.add(p * tap.pixel).cast::<i32>().read_unaligned();
                        let four = _mm512_set1_epi32(four);
                        for (sum, &factor) in of_pixel.iter_mut().zip(&factors) {
                            *sum = _mm512_dpbusd_epi32(*sum, four, factor);
                        }
                    }
                    from = from.add(FOUR);
                }
            }
            let mut result = [[[0; BLOCK]; Q]; P];
            for (result, sums) in result.iter_mut().zip(&sums) {
                for (result, &sum) in result.iter_mut().zip(sums) {
                    _mm512_storeu_si512(result.as_mut_ptr().cast(), sum);
                }
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
            let sums = _mm512_loadu_si512(sums.as_ptr().cast());
            let shifted = _mm512_srav_epi32(sums, _mm512_loadu_si512(shifts.cast()));
            let mut values = limited(shifted, low, high);
            if let Some(add) = add {
                let add = _mm512_cvtepu8_epi32(_mm_loadu_si128(add.cast()));
                values = limited(_mm512_add_epi32(values, add), 0, ACTIVATION_MAX.into());
            }
            if is_wide {
                _mm256_storeu_si256(out.cast(), _mm512_cvtepi32_epi16(values));
            } else {
                _mm_storeu_si128(out.cast(), _mm512_cvtepi32_epi8(values));
            }
        }
    }
}

#[inline(always)]
unsafe fn limited(values: __m512i, low: i32, high: i32) -> __m512i {
    // SAFETY: the vector exists, so the machine has the instructions.
    unsafe {
        let (low, high) = (_mm512_set1_epi32(low), _mm512_set1_epi32(high));
        _mm512_min_epi32(_mm512_max_epi32(values, low), high)
    }
}
