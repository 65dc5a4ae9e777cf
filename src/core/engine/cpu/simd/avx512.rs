//! 64 byte lanes: AVX-512 F, BW, VBMI and BITALG.

use std::arch::x86_64::*;

use super::vector::{SimdKernel, Taps, Vector, lane_by_lane};

/// 64 bytes.
#[derive(Clone, Copy)]
pub struct Avx512(__m512i);

/// Byte lane i - 1.
static BELOW: [u8; 64] = {
    let mut index = [0; 64];
    let mut i = 0;
    while i < 64 {
        index[i] = (i as u8).wrapping_sub(1) & 127;
        i += 1;
    }
    index
};
/// Byte lane i + 1.
static ABOVE: [u8; 64] = {
    let mut index = [0; 64];
    let mut i = 0;
    while i < 64 {
        index[i] = i as u8 + 1;
        i += 1;
    }
    index
};
// SAFETY of every block below: a vector exists, or the caller of an unsafe function guarantees it, so the
// machine has the instructions; the addresses are the caller's or of the tables above.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Vector for Avx512 {
    const N: usize = 64;
    type Wide = __m512i;

    unsafe fn vectorize<K: SimdKernel>(kernel: K) {
        #[target_feature(enable = "avx2,bmi1,bmi2,avx512f,avx512bw,avx512vbmi,avx512bitalg")]
        unsafe fn compiled<K: SimdKernel>(kernel: K) {
            unsafe { kernel.run::<Avx512>() }
        }
        unsafe { compiled(kernel) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        unsafe { Self(_mm512_loadu_si512(from.cast())) }
    }
    #[inline(always)]
    unsafe fn load_quarters(from: [*const u8; 4]) -> Self {
        unsafe {
            let [a, b, c, d] = from.map(|from| from.cast::<__m128i>());
            let low = _mm256_set_m128i(_mm_loadu_si128(b), _mm_loadu_si128(a));
            let high = _mm256_set_m128i(_mm_loadu_si128(d), _mm_loadu_si128(c));
            Self(_mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high))
        }
    }
    #[inline(always)]
    unsafe fn splat(value: u8) -> Self {
        unsafe { Self(_mm512_set1_epi8(value as i8)) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    lane_by_lane! {
        min: _mm512_min_epu8, adds: _mm512_adds_epu8, sub: _mm512_sub_epi8, subs: _mm512_subs_epu8,
        or: _mm512_or_si512, xor: _mm512_xor_si512;
        add_wide: _mm512_add_epi16, sub_wide: _mm512_sub_epi16, mul_wide: _mm512_mullo_epi16,
        or_wide: _mm512_or_si512, min_wide: _mm512_min_epi16, max_wide: _mm512_max_epi16
    }

    #[inline(always)]
    fn abs_diff(self, other: Self) -> Self {
        // Saturating differences would be slower: a Zen 4 has half as many units for them.
        unsafe { Self(_mm512_max_epu8(self.0, other.0)).sub(self.min(other)) }
    }
    #[inline(always)]
    fn where_less(self, other: Self, bits: Self) -> Self {
        unsafe { Self(_mm512_maskz_mov_epi8(_mm512_cmplt_epu8_mask(self.0, other.0), bits.0)) }
    }
    #[inline(always)]
    fn highest_bits(self) -> u64 {
        unsafe { _mm512_movepi8_mask(self.0) }
    }
    #[inline(always)]
    fn count_ones(self) -> Self {
        unsafe { Self(_mm512_popcnt_epi8(self.0)) }
    }
    #[inline(always)]
    unsafe fn look_up(self, table: *const u8) -> Self {
        unsafe {
            let quarter = |number: usize| _mm512_loadu_si512(table.add(64 * number).cast());
            let low = _mm512_permutex2var_epi8(quarter(0), self.0, quarter(1));
            let high = _mm512_permutex2var_epi8(quarter(2), self.0, quarter(3));
            Self(_mm512_mask_blend_epi8(_mm512_movepi8_mask(self.0), low, high))
        }
    }
    #[inline(always)]
    fn weigh([a, b, c]: [Self; 3], weights: [u8; 3]) -> Self {
        unsafe {
            let [a_weight, b_weight, c_weight] = weights.map(i16::from);
            let first = _mm512_set1_epi16((b_weight << 8) | a_weight);
            // The fourth part, 8 times 1, rounds.
            let second = _mm512_set1_epi16((8 << 8) | c_weight);
            let one = _mm512_set1_epi8(1);
            let low = _mm512_add_epi16(
                _mm512_maddubs_epi16(_mm512_unpacklo_epi8(a.0, b.0), first),
                _mm512_maddubs_epi16(_mm512_unpacklo_epi8(c.0, one), second),
            );
            let high = _mm512_add_epi16(
                _mm512_maddubs_epi16(_mm512_unpackhi_epi8(a.0, b.0), first),
                _mm512_maddubs_epi16(_mm512_unpackhi_epi8(c.0, one), second),
            );
            let (low, high) = (_mm512_srli_epi16::<4>(low), _mm512_srli_epi16::<4>(high));
            Self(_mm512_packus_epi16(low, high))
        }
    }
    #[inline(always)]
    fn shift_up(self) -> Self {
        unsafe {
            let (index, ones) = (_mm512_loadu_si512(BELOW.as_ptr().cast()), _mm512_set1_epi8(-1));
            Self(_mm512_permutex2var_epi8(self.0, index, ones))
        }
    }
    #[inline(always)]
    fn shift_down(self) -> Self {
        unsafe {
            let (index, ones) = (_mm512_loadu_si512(ABOVE.as_ptr().cast()), _mm512_set1_epi8(-1));
            Self(_mm512_permutex2var_epi8(self.0, index, ones))
        }
    }
    #[inline(always)]
    fn least(self) -> Self {
        unsafe {
            let upper = _mm512_extracti64x4_epi64::<1>(self.0);
            least_of_half(_mm256_min_epu8(_mm512_castsi512_si256(self.0), upper))
        }
    }
    #[inline(always)]
    unsafe fn least_of(from: *const u8, count: usize) -> Self {
        unsafe {
            // Halves, because loading them from memory takes no extra instruction.
            let half = |i: usize| _mm256_loadu_si256(from.add(32 * i).cast());
            let mut least = _mm256_min_epu8(half(0), half(1));
            for i in 1..count {
                least = _mm256_min_epu8(least, _mm256_min_epu8(half(2 * i), half(2 * i + 1)));
            }
            least_of_half(least)
        }
    }

    #[inline(always)]
    fn pair_sum(a: Self, b: Self, scale: i16) -> [__m512i; 2] {
        unsafe {
            let scales = _mm512_set1_epi16((scale << 8) | 1);
            [
                _mm512_maddubs_epi16(_mm512_unpacklo_epi8(a.0, b.0), scales),
                _mm512_maddubs_epi16(_mm512_unpackhi_epi8(a.0, b.0), scales),
            ]
        }
    }

    #[inline(always)]
    fn widen(self) -> [__m512i; 2] {
        unsafe {
            let zero = _mm512_setzero_si512();
            [_mm512_unpacklo_epi8(self.0, zero), _mm512_unpackhi_epi8(self.0, zero)]
        }
    }
    #[inline(always)]
    fn narrow_512([a, b]: [__m512i; 2]) -> Self {
        unsafe { Self(_mm512_packus_epi16(_mm512_srli_epi16::<9>(a), _mm512_srli_epi16::<9>(b))) }
    }
    #[inline(always)]
    fn in_pair([a, b]: [__m512i; 2]) -> [__m512i; 2] {
        unsafe {
            // Every other quarter of both.
            [
                _mm512_shuffle_i64x2::<0b10_00_10_00>(a, b),
                _mm512_shuffle_i64x2::<0b11_01_11_01>(a, b),
            ]
        }
    }

    #[inline(always)]
    unsafe fn load_wide(from: *const i16) -> __m512i {
        unsafe { _mm512_loadu_si512(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store_wide(wide: __m512i, to: *mut i16) {
        unsafe { _mm512_storeu_si512(to.cast(), wide) }
    }
    #[inline(always)]
    unsafe fn splat_wide(value: i16) -> __m512i {
        unsafe { _mm512_set1_epi16(value) }
    }
    #[inline(always)]
    fn equal_wide(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_maskz_set1_epi16(_mm512_cmpeq_epi16_mask(a, b), 1) }
    }
    #[inline(always)]
    fn select_equal(a: __m512i, b: __m512i, yes: __m512i, no: __m512i) -> __m512i {
        unsafe { _mm512_mask_mov_epi16(no, _mm512_cmpeq_epi16_mask(a, b), yes) }
    }
    #[inline(always)]
    fn least_wide(a: __m512i) -> i16 {
        unsafe {
            let half =
                _mm256_min_epu16(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64::<1>(a));
            let quarter =
                _mm_min_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half));
            _mm_cvtsi128_si32(_mm_minpos_epu16(quarter)) as i16
        }
    }
    #[inline(always)]
    fn last_wide(a: __m512i) -> i16 {
        unsafe { _mm_extract_epi16::<7>(_mm512_extracti32x4_epi32::<3>(a)) as i16 }
    }
    #[inline(always)]
    fn first_equal([a, b]: [__m512i; 2], value: i16) -> usize {
        unsafe {
            let value = _mm512_set1_epi16(value);
            let first = u64::from(_mm512_cmpeq_epi16_mask(a, value));
            let second = u64::from(_mm512_cmpeq_epi16_mask(b, value));
            // Eight lanes of each in turn.
            let eights = 0x00ff_00ff_00ff_00ff;
            (_pdep_u64(first, eights) | _pdep_u64(second, !eights)).trailing_zeros() as usize
        }
    }
    #[inline(always)]
    fn shift_pair_up([a, b]: [__m512i; 2], entering: __m512i) -> [__m512i; 2] {
        unsafe {
            let before = _mm512_alignr_epi64::<6>(b, entering);
            [_mm512_alignr_epi8::<14>(a, before), _mm512_alignr_epi8::<14>(b, a)]
        }
    }
    #[inline(always)]
    fn keep_smaller(best: (__m512i, __m512i), candidate: (__m512i, __m512i)) -> (__m512i, __m512i) {
        unsafe {
            let smaller = _mm512_cmplt_epi16_mask(candidate.0, best.0);
            let index = _mm512_mask_mov_epi16(best.1, smaller, candidate.1);
            (_mm512_min_epi16(best.0, candidate.0), index)
        }
    }

    #[inline(always)]
    unsafe fn interpolate(taps: Taps<'_>, offsets: *const u32, weights: *const u16, to: *mut u8) {
        // As with AVX2: of four gathered bytes two are used, never from beyond the last four.
        unsafe {
            let last = _mm512_set1_epi32((taps.len - 4) as i32);
            let spread = _mm512_add_epi32(
                _mm512_set1_epi32(0x80_01_80_00_u32 as i32),
                _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c)),
            );
            let both = |at: __m512i| {
                let from = _mm512_min_epu32(at, last);
                let bits = _mm512_slli_epi32::<3>(_mm512_sub_epi32(at, from));
                let four = _mm512_i32gather_epi32::<1>(from, taps.pixels.cast());
                _mm512_shuffle_epi8(_mm512_srlv_epi32(four, bits), spread)
            };
            let offsets = _mm512_loadu_si512(offsets.cast());
            let weights = _mm512_cvtepu16_epi32(_mm256_loadu_si256(weights.cast()));
            let fx = _mm512_and_si512(weights, _mm512_set1_epi32(255));
            let fy = _mm512_srli_epi32::<8>(weights);
            let across = _mm512_sub_epi32(
                _mm512_or_si512(_mm512_slli_epi32::<16>(fx), _mm512_set1_epi32(256)),
                fx,
            );
            let below = _mm512_add_epi32(offsets, _mm512_set1_epi32(taps.stride as i32));
            let above = _mm512_madd_epi16(both(offsets), across);
            let below = _mm512_madd_epi16(both(below), across);
            let step = _mm512_mullo_epi32(_mm512_sub_epi32(below, above), fy);
            let half = _mm512_set1_epi32(32768);
            let sum = _mm512_add_epi32(_mm512_add_epi32(_mm512_slli_epi32::<8>(above), half), step);
            let seen = _mm512_cmpneq_epi32_mask(offsets, _mm512_set1_epi32(-1));
            let values = _mm512_maskz_srli_epi32::<16>(seen, sum);
            _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(values));
        }
    }
}

/// The smallest byte, in every lane of a vector.
#[inline(always)]
unsafe fn least_of_half(half: __m256i) -> Avx512 {
    // SAFETY: the caller has the instructions.
    unsafe {
        let quarter =
            _mm_min_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half));
        // The high bytes become 0, so that the 16-bit minimum is the minimum of the low bytes.
        let eight = _mm_min_epu8(quarter, _mm_srli_epi16::<8>(quarter));
        Avx512(_mm512_broadcastb_epi8(_mm_minpos_epu16(eight)))
    }
}
