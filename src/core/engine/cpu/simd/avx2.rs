//! 32 byte lanes: AVX2.

use std::arch::x86_64::*;

use super::vector::{SimdKernel, Taps, Vector, lane_by_lane};

/// 32 bytes.
#[derive(Clone, Copy)]
pub struct Avx2(__m256i);

// SAFETY of every block below: a vector exists, or the caller of an unsafe function guarantees it, so the
// machine has the instructions; the addresses are the caller's.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Vector for Avx2 {
    const N: usize = 32;
    type Wide = __m256i;

    unsafe fn vectorize<K: SimdKernel>(kernel: K) {
        #[target_feature(enable = "avx2")]
        unsafe fn compiled<K: SimdKernel>(kernel: K) {
            unsafe { kernel.run::<Avx2>() }
        }
        unsafe { compiled(kernel) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        unsafe { Self(_mm256_loadu_si256(from.cast())) }
    }
    #[inline(always)]
    unsafe fn load_quarters(from: [*const u8; 4]) -> Self {
        unsafe {
            let [a, b, c, d] = from.map(|from| from.cast::<i64>().read_unaligned());
            Self(_mm256_set_epi64x(d, c, b, a))
        }
    }
    #[inline(always)]
    unsafe fn splat(value: u8) -> Self {
        unsafe { Self(_mm256_set1_epi8(value as i8)) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    lane_by_lane! {
        min: _mm256_min_epu8, adds: _mm256_adds_epu8, sub: _mm256_sub_epi8, subs: _mm256_subs_epu8,
        or: _mm256_or_si256, xor: _mm256_xor_si256;
        add_wide: _mm256_add_epi16, sub_wide: _mm256_sub_epi16, mul_wide: _mm256_mullo_epi16,
        or_wide: _mm256_or_si256, min_wide: _mm256_min_epi16, max_wide: _mm256_max_epi16
    }

    #[inline(always)]
    fn abs_diff(self, other: Self) -> Self {
        // Saturating differences would be slower: a Zen 4 has half as many units for them.
        unsafe { Self(_mm256_max_epu8(self.0, other.0)).sub(self.min(other)) }
    }
    #[inline(always)]
    fn where_less(self, other: Self, bits: Self) -> Self {
        unsafe {
            let not_less = _mm256_cmpeq_epi8(other.subs(self).0, _mm256_setzero_si256());
            Self(_mm256_andnot_si256(not_less, bits.0))
        }
    }
    #[inline(always)]
    fn highest_bits(self) -> u64 {
        unsafe { u64::from(_mm256_movemask_epi8(self.0) as u32) }
    }
    #[inline(always)]
    fn count_ones(self) -> Self {
        unsafe {
            // A lookup table for half bytes (Mula, Kurz and Lemire, The Computer Journal 2018).
            let table = _mm256_broadcastsi128_si256(_mm_setr_epi8(
                0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
            ));
            let half = _mm256_set1_epi8(15);
            let low = _mm256_and_si256(self.0, half);
            let high = _mm256_and_si256(_mm256_srli_epi16::<4>(self.0), half);
            Self(_mm256_add_epi8(_mm256_shuffle_epi8(table, low), _mm256_shuffle_epi8(table, high)))
        }
    }
    #[inline(always)]
    unsafe fn look_up(self, table: *const u8) -> Self {
        unsafe {
            let mut found = _mm256_setzero_si256();
            for part in 0..16u8 {
                let sixteen = _mm_loadu_si128(table.add(16 * usize::from(part)).cast());
                // Indices of another part are beyond 15, and with 112 more beyond 127: the shuffle gives 0.
                let index = _mm256_sub_epi8(self.0, _mm256_set1_epi8((16 * part) as i8));
                let index = _mm256_adds_epu8(index, _mm256_set1_epi8(112));
                let sixteen = _mm256_broadcastsi128_si256(sixteen);
                found = _mm256_or_si256(found, _mm256_shuffle_epi8(sixteen, index));
            }
            Self(found)
        }
    }
    #[inline(always)]
    fn weigh([a, b, c]: [Self; 3], weights: [u8; 3]) -> Self {
        unsafe {
            let [a_weight, b_weight, c_weight] = weights.map(i16::from);
            let first = _mm256_set1_epi16((b_weight << 8) | a_weight);
            // The fourth part, 8 times 1, rounds.
            let second = _mm256_set1_epi16((8 << 8) | c_weight);
            let one = _mm256_set1_epi8(1);
            let low = _mm256_add_epi16(
                _mm256_maddubs_epi16(_mm256_unpacklo_epi8(a.0, b.0), first),
                _mm256_maddubs_epi16(_mm256_unpacklo_epi8(c.0, one), second),
            );
            let high = _mm256_add_epi16(
                _mm256_maddubs_epi16(_mm256_unpackhi_epi8(a.0, b.0), first),
                _mm256_maddubs_epi16(_mm256_unpackhi_epi8(c.0, one), second),
            );
            let (low, high) = (_mm256_srli_epi16::<4>(low), _mm256_srli_epi16::<4>(high));
            Self(_mm256_packus_epi16(low, high))
        }
    }
    #[inline(always)]
    fn shift_up(self) -> Self {
        unsafe {
            let middle = _mm256_permute2x128_si256::<0x21>(_mm256_set1_epi8(-1), self.0);
            Self(_mm256_alignr_epi8::<15>(self.0, middle))
        }
    }
    #[inline(always)]
    fn shift_down(self) -> Self {
        unsafe {
            let middle = _mm256_permute2x128_si256::<0x21>(self.0, _mm256_set1_epi8(-1));
            Self(_mm256_alignr_epi8::<1>(middle, self.0))
        }
    }
    #[inline(always)]
    fn least(self) -> Self {
        unsafe {
            let half =
                _mm_min_epu8(_mm256_castsi256_si128(self.0), _mm256_extracti128_si256::<1>(self.0));
            // The high bytes become 0, so that the 16-bit minimum is the minimum of the low bytes.
            let eight = _mm_min_epu8(half, _mm_srli_epi16::<8>(half));
            Self(_mm256_broadcastb_epi8(_mm_minpos_epu16(eight)))
        }
    }

    #[inline(always)]
    fn pair_sum(a: Self, b: Self, scale: i16) -> [__m256i; 2] {
        unsafe {
            let scales = _mm256_set1_epi16((scale << 8) | 1);
            [
                _mm256_maddubs_epi16(_mm256_unpacklo_epi8(a.0, b.0), scales),
                _mm256_maddubs_epi16(_mm256_unpackhi_epi8(a.0, b.0), scales),
            ]
        }
    }

    #[inline(always)]
    fn widen(self) -> [__m256i; 2] {
        unsafe {
            let zero = _mm256_setzero_si256();
            [_mm256_unpacklo_epi8(self.0, zero), _mm256_unpackhi_epi8(self.0, zero)]
        }
    }
    #[inline(always)]
    fn narrow_512([a, b]: [__m256i; 2]) -> Self {
        unsafe { Self(_mm256_packus_epi16(_mm256_srli_epi16::<9>(a), _mm256_srli_epi16::<9>(b))) }
    }
    #[inline(always)]
    fn in_pair([a, b]: [__m256i; 2]) -> [__m256i; 2] {
        unsafe {
            [_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b)]
        }
    }

    #[inline(always)]
    unsafe fn load_wide(from: *const i16) -> __m256i {
        unsafe { _mm256_loadu_si256(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store_wide(wide: __m256i, to: *mut i16) {
        unsafe { _mm256_storeu_si256(to.cast(), wide) }
    }
    #[inline(always)]
    unsafe fn splat_wide(value: i16) -> __m256i {
        unsafe { _mm256_set1_epi16(value) }
    }
    #[inline(always)]
    fn equal_wide(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_srli_epi16::<15>(_mm256_cmpeq_epi16(a, b)) }
    }
    #[inline(always)]
    fn select_equal(a: __m256i, b: __m256i, yes: __m256i, no: __m256i) -> __m256i {
        unsafe { _mm256_blendv_epi8(no, yes, _mm256_cmpeq_epi16(a, b)) }
    }
    #[inline(always)]
    fn least_wide(a: __m256i) -> i16 {
        unsafe {
            let half = _mm_min_epu16(_mm256_castsi256_si128(a), _mm256_extracti128_si256::<1>(a));
            _mm_cvtsi128_si32(_mm_minpos_epu16(half)) as i16
        }
    }
    #[inline(always)]
    fn last_wide(a: __m256i) -> i16 {
        unsafe { _mm256_extract_epi16::<15>(a) as i16 }
    }
    #[inline(always)]
    fn first_equal([a, b]: [__m256i; 2], value: i16) -> usize {
        unsafe {
            let value = _mm256_set1_epi16(value);
            let equal =
                _mm256_packs_epi16(_mm256_cmpeq_epi16(a, value), _mm256_cmpeq_epi16(b, value));
            (_mm256_movemask_epi8(equal) as u32).trailing_zeros() as usize
        }
    }
    #[inline(always)]
    fn shift_pair_up([a, b]: [__m256i; 2], entering: __m256i) -> [__m256i; 2] {
        unsafe {
            let before = _mm256_permute2x128_si256::<0x20>(entering, b);
            [_mm256_alignr_epi8::<14>(a, before), _mm256_alignr_epi8::<14>(b, a)]
        }
    }
    #[inline(always)]
    fn keep_smaller(best: (__m256i, __m256i), candidate: (__m256i, __m256i)) -> (__m256i, __m256i) {
        unsafe {
            let smaller = _mm256_cmpgt_epi16(best.0, candidate.0);
            let index = _mm256_blendv_epi8(best.1, candidate.1, smaller);
            (_mm256_min_epi16(best.0, candidate.0), index)
        }
    }

    #[inline(always)]
    unsafe fn interpolate(taps: Taps<'_>, offsets: *const u32, weights: *const u16, to: *mut u8) {
        unsafe {
            let first = eight(taps, offsets, weights);
            let second = eight(taps, offsets.add(8), weights.add(8));
            // 16 bits each, with quarters in the order first, second, first, second.
            let words =
                _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(first, second));
            let low = _mm256_castsi256_si128(words);
            let bytes = _mm_packus_epi16(low, _mm256_extracti128_si256::<1>(words));
            _mm_storeu_si128(to.cast(), bytes);
        }
    }
}

/// Eight interpolated values of 32 bits.
#[inline(always)]
unsafe fn eight(taps: Taps<'_>, offsets: *const u32, weights: *const u16) -> __m256i {
    // SAFETY: the promises of `Vector::interpolate`. A gather takes signed 32-bit offsets: `from` is at most
    // `last`, which is below 2^30 (`Taps::of`). Four bytes are gathered and two used. The gather never starts
    // beyond the last four bytes of the image; a shift moves the two bytes down from there, and fills with 0
    // outside the image, where their weight is 0.
    unsafe {
        let last = _mm256_set1_epi32((taps.len - 4) as i32);
        let both = |at: __m256i| {
            let from = _mm256_min_epu32(at, last);
            let bits = _mm256_slli_epi32::<3>(_mm256_sub_epi32(at, from));
            let four = _mm256_i32gather_epi32::<1>(taps.pixels.cast(), from);
            let two = _mm256_srlv_epi32(four, bits);
            // The left one in the low half, the right one in the high half.
            let spread = _mm256_set1_epi32(0x80_01_80_00_u32 as i32);
            let lanes = _mm256_setr_epi32(
                0, 0x04040404, 0x08080808, 0x0c0c0c0c, 0, 0x04040404, 0x08080808, 0x0c0c0c0c,
            );
            _mm256_shuffle_epi8(two, _mm256_add_epi32(spread, lanes))
        };
        let offsets = _mm256_loadu_si256(offsets.cast());
        let weights = _mm256_cvtepu16_epi32(_mm_loadu_si128(weights.cast()));
        let fx = _mm256_and_si256(weights, _mm256_set1_epi32(255));
        let fy = _mm256_srli_epi32::<8>(weights);
        // 256 - fx in the low half, fx in the high half.
        let across = _mm256_sub_epi32(
            _mm256_or_si256(_mm256_slli_epi32::<16>(fx), _mm256_set1_epi32(256)),
            fx,
        );
        let below = _mm256_add_epi32(offsets, _mm256_set1_epi32(taps.stride as i32));
        let above = _mm256_madd_epi16(both(offsets), across);
        let below = _mm256_madd_epi16(both(below), across);
        let step = _mm256_mullo_epi32(_mm256_sub_epi32(below, above), fy);
        let half = _mm256_set1_epi32(32768);
        let sum = _mm256_add_epi32(_mm256_add_epi32(_mm256_slli_epi32::<8>(above), half), step);
        let unseen = _mm256_cmpeq_epi32(offsets, _mm256_set1_epi32(-1));
        _mm256_andnot_si256(unseen, _mm256_srli_epi32::<16>(sum))
    }
}
