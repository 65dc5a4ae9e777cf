//! Sums of products with NEON. Processors with `dotprod` (an option of ARMv8.2: Cortex-A55, Cortex-A76 and later)
//! multiply and add 16 pairs of bytes by one instruction. Others need four for them: pairs of products are added in 16
//! bits, which is exact, because activations are 0..=127 and weights -127..=127, so a pair is at most 32258. Signed
//! bytes hold both.

use std::arch::aarch64::*;
use std::arch::asm;

use super::convolution::{BLOCK, FOUR, Products, Row, STEP, Sums, Tap, tiles};

/// Output channels in a register.
const LANES: usize = 4;

struct Neon<const HAS_DOT: bool>;

/// Computes a row.
///
/// # Safety
/// As `Instructions::row`.
pub(super) unsafe fn row(row: &Row<'_>) {
    // SAFETY: the caller's promise. 12 of the 32 registers hold sums, 8 weights, the others products.
    unsafe { tiles::<Neon<false>, 3, 1>(row) }
}

/// Computes a row with dot products.
///
/// # Safety
/// The machine has `dotprod`; else as `Instructions::row`.
#[target_feature(enable = "dotprod")]
pub(super) unsafe fn row_with_dot(row: &Row<'_>) {
    // SAFETY: the caller's promise. 24 of the 32 registers hold sums, 4 weights.
    unsafe { tiles::<Neon<true>, 6, 1>(row) }
}

impl<const HAS_DOT: bool> Products for Neon<HAS_DOT> {
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
            let mut biased = [vdupq_n_s32(0); BLOCK / LANES];
            for (i, biased) in biased.iter_mut().enumerate() {
                *biased = vld1q_s32(biases.add(i * LANES));
            }
            let mut sums = [biased; P];
            for tap in taps {
                let mut from = tap.first.add(x * tap.pixel);
                for _ in 0..tap.fours {
                    let mut factors = [vdupq_n_s8(0); BLOCK / LANES];
                    for (i, factors) in factors.iter_mut().enumerate() {
                        *factors = vld1q_s8(weights.add(i * LANES * FOUR));
                    }
                    weights = weights.add(STEP);
                    for (p, of_pixel) in sums.iter_mut().enumerate() {
                        let four = from.add(p * tap.pixel).cast::<i32>().read_unaligned();
                        add::<HAS_DOT>(of_pixel, &factors, four);
                    }
                    from = from.add(FOUR);
                }
            }
            let mut result = [[[0; BLOCK]; Q]; P];
            for (result, sums) in result.iter_mut().zip(&sums) {
                for (i, &sums) in sums.iter().enumerate() {
                    vst1q_s32(result[0].as_mut_ptr().add(i * LANES), sums);
                }
            }
            result
        }
    }
}

/// Adds the products of four activations and their weights to the sums of a pixel.
///
/// # Safety
/// The machine has `dotprod` if it is to be used.
#[inline(always)]
unsafe fn add<const HAS_DOT: bool>(
    sums: &mut [int32x4_t; BLOCK / LANES],
    factors: &[int8x16_t; BLOCK / LANES],
    four: i32,
) {
    // SAFETY: the caller's promise; every processor of this architecture has the other instructions.
    unsafe {
        let four = vreinterpretq_s8_s32(vsetq_lane_s32::<0>(four, vdupq_n_s32(0)));
        for (sums, &factors) in sums.iter_mut().zip(factors) {
            *sums =
                if HAS_DOT { dot(*sums, factors, four) } else { multiply(*sums, factors, four) };
        }
    }
}

/// Adds the products of the first four activations and the weights of four output channels, `[output][input]`. The
/// intrinsic function of this instruction is not stable yet.
#[inline]
#[target_feature(enable = "dotprod")]
fn dot(mut sums: int32x4_t, factors: int8x16_t, four: int8x16_t) -> int32x4_t {
    // SAFETY: it reads and writes these registers alone.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {factors:v}.16b, {four:v}.4b[0]",
            sums = inout(vreg) sums, factors = in(vreg) factors, four = in(vreg) four,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// Does the same as [`dot`] without `dotprod`.
#[inline(always)]
fn multiply(sums: int32x4_t, factors: int8x16_t, four: int8x16_t) -> int32x4_t {
    // SAFETY: every processor of this architecture has the instructions.
    unsafe {
        let four = vreinterpretq_s8_s32(vdupq_laneq_s32::<0>(vreinterpretq_s32_s8(four)));
        let first = vmull_s8(vget_low_s8(factors), vget_low_s8(four));
        vpadalq_s16(sums, vpaddq_s16(first, vmull_high_s8(factors, four)))
    }
}
