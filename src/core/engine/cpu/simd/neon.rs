//! 16 byte lanes: NEON, available on every 64-bit ARM processor.
//!
//! One register per vector: with two, every operation takes as many instructions per register, and three
//! paths of two registers each exceed the 32 registers. The dot products of later processors (`dotprod`,
//! `i8mm`) do not help, because they add neighbouring lanes, which are different candidates here.

use std::arch::aarch64::*;

use super::portable::Portable;
use super::vector::{SimdKernel, Taps, Vector, lane_by_lane};
use crate::rectify::RectifyMap;

/// 16 bytes.
#[derive(Clone, Copy)]
pub struct Neon(uint8x16_t);

// SAFETY of every block below: the target has the instructions; the addresses are the caller's.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Vector for Neon {
    const N: usize = 16;
    type Wide = int16x8_t;

    unsafe fn vectorize<K: SimdKernel>(kernel: K) {
        unsafe { kernel.run::<Neon>() }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        unsafe { Self(vld1q_u8(from)) }
    }
    #[inline(always)]
    unsafe fn load_quarters(from: [*const u8; 4]) -> Self {
        unsafe {
            let quarters = from.map(|from| from.cast::<u32>().read_unaligned());
            Self(vreinterpretq_u8_u32(vld1q_u32(quarters.as_ptr())))
        }
    }
    #[inline(always)]
    unsafe fn splat(value: u8) -> Self {
        unsafe { Self(vdupq_n_u8(value)) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { vst1q_u8(to, self.0) }
    }

    lane_by_lane! {
        min: vminq_u8, adds: vqaddq_u8, sub: vsubq_u8, subs: vqsubq_u8, or: vorrq_u8,
        xor: veorq_u8, abs_diff: vabdq_u8;
        add_wide: vaddq_s16, sub_wide: vsubq_s16, mul_wide: vmulq_s16, or_wide: vorrq_s16,
        min_wide: vminq_s16, max_wide: vmaxq_s16
    }

    #[inline(always)]
    fn where_less(self, other: Self, bits: Self) -> Self {
        unsafe { Self(vandq_u8(vcltq_u8(self.0, other.0), bits.0)) }
    }
    #[inline(always)]
    fn highest_bits(self) -> u64 {
        unsafe {
            // Each highest bit moves to its lane's position within eight lanes, which are then added up.
            let places =
                vld1q_s8([-7, -6, -5, -4, -3, -2, -1, 0, -7, -6, -5, -4, -3, -2, -1, 0].as_ptr());
            let bits = vshlq_u8(vandq_u8(self.0, vdupq_n_u8(128)), places);
            let (low, high) = (vaddv_u8(vget_low_u8(bits)), vaddv_u8(vget_high_u8(bits)));
            u64::from(low) | u64::from(high) << 8
        }
    }
    #[inline(always)]
    fn count_ones(self) -> Self {
        unsafe { Self(vcntq_u8(self.0)) }
    }
    #[inline(always)]
    unsafe fn look_up(self, table: *const u8) -> Self {
        unsafe {
            // Indices of another quarter are beyond 63: the first look-up gives 0 for them, the others leave
            // the lane unchanged.
            let mut found = vqtbl4q_u8(vld1q_u8_x4(table), self.0);
            for quarter in 1..4u8 {
                let index = vsubq_u8(self.0, vdupq_n_u8(64 * quarter));
                found = vqtbx4q_u8(found, vld1q_u8_x4(table.add(64 * usize::from(quarter))), index);
            }
            Self(found)
        }
    }
    #[inline(always)]
    fn weigh([a, b, c]: [Self; 3], weights: [u8; 3]) -> Self {
        unsafe {
            let [a_weight, b_weight, c_weight] = weights.map(|weight| vdupq_n_u8(weight));
            let low = vmull_u8(vget_low_u8(a.0), vget_low_u8(a_weight));
            let low = vmlal_u8(low, vget_low_u8(b.0), vget_low_u8(b_weight));
            let low = vmlal_u8(low, vget_low_u8(c.0), vget_low_u8(c_weight));
            let high = vmull_high_u8(a.0, a_weight);
            let high = vmlal_high_u8(high, b.0, b_weight);
            let high = vmlal_high_u8(high, c.0, c_weight);
            // The shift rounds: it adds the 8.
            Self(vrshrn_high_n_u16::<4>(vrshrn_n_u16::<4>(low), high))
        }
    }
    #[inline(always)]
    fn shift_up(self) -> Self {
        unsafe { Self(vextq_u8::<15>(vdupq_n_u8(255), self.0)) }
    }
    #[inline(always)]
    fn shift_down(self) -> Self {
        unsafe { Self(vextq_u8::<1>(self.0, vdupq_n_u8(255))) }
    }
    #[inline(always)]
    fn least(self) -> Self {
        unsafe { Self(vdupq_n_u8(vminvq_u8(self.0))) }
    }

    #[inline(always)]
    fn pair_sum(a: Self, b: Self, scale: i16) -> [int16x8_t; 2] {
        unsafe {
            let (a_low, b_low) = (vget_low_u8(a.0), vget_low_u8(b.0));
            // The scale is a constant here.
            let [low, high] = match scale {
                0 => [vmovl_u8(a_low), vmovl_high_u8(a.0)],
                1 => [vaddl_u8(a_low, b_low), vaddl_high_u8(a.0, b.0)],
                _ => {
                    let scale = vdupq_n_u8(scale as u8);
                    [
                        vmlal_u8(vmovl_u8(a_low), b_low, vget_low_u8(scale)),
                        vmlal_high_u8(vmovl_high_u8(a.0), b.0, scale),
                    ]
                }
            };
            [vreinterpretq_s16_u16(low), vreinterpretq_s16_u16(high)]
        }
    }

    #[inline(always)]
    fn widen(self) -> [int16x8_t; 2] {
        unsafe {
            [
                vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(self.0))),
                vreinterpretq_s16_u16(vmovl_high_u8(self.0)),
            ]
        }
    }
    #[inline(always)]
    fn narrow_512([a, b]: [int16x8_t; 2]) -> Self {
        unsafe {
            // The upper bytes are the lanes divided by 256.
            let upper = vuzp2q_u8(vreinterpretq_u8_s16(a), vreinterpretq_u8_s16(b));
            Self(vshrq_n_u8::<1>(upper))
        }
    }

    #[inline(always)]
    unsafe fn load_wide(from: *const i16) -> int16x8_t {
        unsafe { vld1q_s16(from) }
    }
    #[inline(always)]
    unsafe fn store_wide(wide: int16x8_t, to: *mut i16) {
        unsafe { vst1q_s16(to, wide) }
    }
    #[inline(always)]
    unsafe fn splat_wide(value: i16) -> int16x8_t {
        unsafe { vdupq_n_s16(value) }
    }
    #[inline(always)]
    fn equal_wide(a: int16x8_t, b: int16x8_t) -> int16x8_t {
        unsafe { vreinterpretq_s16_u16(vshrq_n_u16::<15>(vceqq_s16(a, b))) }
    }
    #[inline(always)]
    fn select_equal(a: int16x8_t, b: int16x8_t, yes: int16x8_t, no: int16x8_t) -> int16x8_t {
        unsafe { vbslq_s16(vceqq_s16(a, b), yes, no) }
    }
    #[inline(always)]
    fn least_wide(a: int16x8_t) -> i16 {
        unsafe { vminvq_s16(a) }
    }
    #[inline(always)]
    fn last_wide(a: int16x8_t) -> i16 {
        unsafe { vgetq_lane_s16::<7>(a) }
    }
    #[inline(always)]
    fn first_equal([a, b]: [int16x8_t; 2], value: i16) -> usize {
        unsafe {
            let value = vdupq_n_s16(value);
            let low = vreinterpretq_u8_u16(vceqq_s16(a, value));
            let high = vreinterpretq_u8_u16(vceqq_s16(b, value));
            // A byte per lane, then four bits of it.
            let equal = vreinterpretq_u16_u8(vuzp1q_u8(low, high));
            let bits = vget_lane_u64::<0>(vreinterpret_u64_u8(vshrn_n_u16::<4>(equal)));
            bits.trailing_zeros() as usize / 4
        }
    }
    #[inline(always)]
    fn shift_pair_up([a, b]: [int16x8_t; 2], entering: int16x8_t) -> [int16x8_t; 2] {
        unsafe { [vextq_s16::<7>(entering, a), vextq_s16::<7>(a, b)] }
    }
    #[inline(always)]
    fn in_pair(numbers: [int16x8_t; 2]) -> [int16x8_t; 2] {
        numbers
    }
    #[inline(always)]
    fn keep_smaller(
        best: (int16x8_t, int16x8_t),
        candidate: (int16x8_t, int16x8_t),
    ) -> (int16x8_t, int16x8_t) {
        unsafe {
            let index = vbslq_s16(vcltq_s16(candidate.0, best.0), candidate.1, best.1);
            (vminq_s16(best.0, candidate.0), index)
        }
    }

    #[inline(always)]
    unsafe fn interpolate(taps: Taps<'_>, offsets: *const u32, weights: *const u16, to: *mut u8) {
        unsafe {
            // Unseen pixels read the first pixel of the image, and become 0 at the end.
            let mut from = [0u32; 16];
            let mut unseen = [vdupq_n_u32(0); 4];
            let mut furthest = vdupq_n_u32(0);
            for (i, unseen) in unseen.iter_mut().enumerate() {
                let offsets = vld1q_u32(offsets.add(4 * i));
                *unseen = vceqq_u32(offsets, vdupq_n_u32(RectifyMap::UNSEEN));
                let seen = vbicq_u32(offsets, *unseen);
                furthest = vmaxq_u32(furthest, seen);
                vst1q_u32(from.as_mut_ptr().add(4 * i), seen);
            }
            // If the last of the four taps may be outside, each one is checked.
            if vmaxvq_u32(furthest) + taps.stride + 1 >= taps.len {
                return Portable::interpolate(taps, offsets, weights, to);
            }
            let unseen = [
                vuzp1q_u16(vreinterpretq_u16_u32(unseen[0]), vreinterpretq_u16_u32(unseen[1])),
                vuzp1q_u16(vreinterpretq_u16_u32(unseen[2]), vreinterpretq_u16_u32(unseen[3])),
            ];
            let unseen =
                vuzp1q_u8(vreinterpretq_u8_u16(unseen[0]), vreinterpretq_u8_u16(unseen[1]));
            let first = eight(taps, from.as_ptr(), weights);
            let second = eight(taps, from.as_ptr().add(8), weights.add(8));
            vst1q_u8(to, vbicq_u8(vcombine_u8(first, second), unseen));
        }
    }
}

/// Eight interpolated values.
///
/// # Safety
/// The taps at all offsets lie in the image; eight offsets and weights are readable.
#[inline(always)]
unsafe fn eight(taps: Taps<'_>, offsets: *const u32, weights: *const u16) -> uint8x8_t {
    // SAFETY: the caller's promise.
    unsafe {
        // 1/256 of the way from the left tap to the right one, and from the upper row to the lower one.
        let weights = vld1q_u16(weights);
        let (fx, fy) = (vmovn_u16(weights), vshrq_n_u16::<8>(weights));
        let across = |below: usize| {
            let both: [u16; 8] = std::array::from_fn(|i| {
                taps.pixels.add(*offsets.add(i) as usize + below).cast::<u16>().read_unaligned()
            });
            let both = vld1q_u16(both.as_ptr());
            let (left, right) = (vmovn_u16(both), vshrn_n_u16::<8>(both));
            // 256 left + fx (right - left); intermediate overflow cancels.
            vmlsl_u8(vmlal_u8(vshll_n_u8::<8>(left), right, fx), left, fx)
        };
        let (above, below) = (across(0), across(taps.stride as usize));
        let low = vshll_n_u16::<8>(vget_low_u16(above));
        let low = vmlal_u16(low, vget_low_u16(below), vget_low_u16(fy));
        let low = vmlsl_u16(low, vget_low_u16(above), vget_low_u16(fy));
        let high = vshll_high_n_u16::<8>(above);
        let high = vmlal_high_u16(high, below, fy);
        let high = vmlsl_high_u16(high, above, fy);
        // The shift rounds.
        vmovn_u16(vrshrn_high_n_u32::<16>(vrshrn_n_u32::<16>(low), high))
    }
}
