//! The most frequent operations of [`Vector`](super::Vector) on 16 bytes in SSE2, available on every x86-64
//! processor, because compilers vectorise only few operations on plain arrays.

use std::arch::x86_64::*;

use bytemuck::cast;

type Bytes = [u8; 16];
type Numbers = [i16; 8];

// SAFETY of every block below: the target has the instructions.
macro_rules! lane_by_lane {
    ($array:ty; $($name:ident, $instruction:ident;)*) => {$(
        #[inline(always)]
        pub fn $name(a: $array, b: $array) -> $array {
            // SAFETY: as above.
            cast(unsafe { $instruction(cast(a), cast(b)) })
        }
    )*};
}
lane_by_lane! {
    Bytes;
    min, _mm_min_epu8;
    adds, _mm_adds_epu8;
    sub, _mm_sub_epi8;
    subs, _mm_subs_epu8;
    or, _mm_or_si128;
    xor, _mm_xor_si128;
}
lane_by_lane! {
    Numbers;
    add_wide, _mm_add_epi16;
    sub_wide, _mm_sub_epi16;
    mul_wide, _mm_mullo_epi16;
    min_wide, _mm_min_epi16;
    max_wide, _mm_max_epi16;
    or_wide, _mm_or_si128;
}

#[inline(always)]
pub fn shift_up(a: Bytes) -> Bytes {
    // SAFETY: as above.
    unsafe {
        let moved = _mm_slli_si128::<1>(cast(a));
        cast(_mm_or_si128(moved, _mm_cvtsi32_si128(255)))
    }
}

#[inline(always)]
pub fn shift_down(a: Bytes) -> Bytes {
    // SAFETY: as above.
    unsafe {
        let moved = _mm_srli_si128::<1>(cast(a));
        cast(_mm_or_si128(moved, _mm_slli_si128::<15>(_mm_cvtsi32_si128(255))))
    }
}

#[inline(always)]
pub fn least(a: Bytes) -> Bytes {
    // SAFETY: as above.
    unsafe {
        let a: __m128i = cast(a);
        let a = _mm_min_epu8(a, _mm_srli_si128::<8>(a));
        let a = _mm_min_epu8(a, _mm_srli_si128::<4>(a));
        let a = _mm_min_epu8(a, _mm_srli_si128::<2>(a));
        let a = _mm_min_epu8(a, _mm_srli_si128::<1>(a));
        cast(_mm_set1_epi8(_mm_cvtsi128_si32(a) as i8))
    }
}

#[inline(always)]
pub fn pair_sum(a: Bytes, b: Bytes, scale: i16) -> [Numbers; 2] {
    // SAFETY: as above.
    unsafe {
        let (zero, scale) = (_mm_setzero_si128(), _mm_set1_epi16(scale));
        let (a, b) = (cast(a), cast(b));
        let low = _mm_mullo_epi16(_mm_unpacklo_epi8(b, zero), scale);
        let high = _mm_mullo_epi16(_mm_unpackhi_epi8(b, zero), scale);
        [
            cast(_mm_add_epi16(_mm_unpacklo_epi8(a, zero), low)),
            cast(_mm_add_epi16(_mm_unpackhi_epi8(a, zero), high)),
        ]
    }
}

#[inline(always)]
pub fn keep_smaller(best: (Numbers, Numbers), candidate: (Numbers, Numbers)) -> (Numbers, Numbers) {
    // SAFETY: as above.
    unsafe {
        let vector = |a: Numbers| cast::<Numbers, __m128i>(a);
        let smaller = _mm_cmpgt_epi16(vector(best.0), vector(candidate.0));
        let number = _mm_or_si128(
            _mm_and_si128(smaller, vector(candidate.1)),
            _mm_andnot_si128(smaller, vector(best.1)),
        );
        (min_wide(best.0, candidate.0), cast(number))
    }
}

#[inline(always)]
pub fn first_equal([a, b]: [Numbers; 2], value: i16) -> usize {
    // SAFETY: as above.
    unsafe {
        let value = _mm_set1_epi16(value);
        let equal = |a: Numbers| _mm_cmpeq_epi16(cast(a), value);
        let lanes = _mm_movemask_epi8(_mm_packs_epi16(equal(a), equal(b)));
        (lanes as u32 | 1 << 16).trailing_zeros() as usize
    }
}

#[inline(always)]
pub fn least_wide(a: Numbers) -> i16 {
    // SAFETY: as above.
    unsafe {
        let a: __m128i = cast(a);
        let a = _mm_min_epi16(a, _mm_srli_si128::<8>(a));
        let a = _mm_min_epi16(a, _mm_srli_si128::<4>(a));
        let a = _mm_min_epi16(a, _mm_srli_si128::<2>(a));
        _mm_cvtsi128_si32(a) as i16
    }
}

#[inline(always)]
pub fn shift_pair_up([a, b]: [Numbers; 2], entering: Numbers) -> [Numbers; 2] {
    // SAFETY: as above.
    unsafe {
        let moved = |a: Numbers, below: Numbers| {
            let (a, below) = (cast(a), cast(below));
            let moved = _mm_or_si128(_mm_slli_si128::<2>(a), _mm_srli_si128::<14>(below));
            cast(moved)
        };
        [moved(a, entering), moved(b, a)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::simd::plain;

    #[test]
    fn what_the_instructions_do_is_what_loops_do() {
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            (state >> 16) as u16
        };
        for _ in 0..300 {
            let [a, b]: [Bytes; 2] =
                std::array::from_fn(|_| std::array::from_fn(|_| random() as u8));
            assert_eq!(min(a, b), plain::min(a, b));
            assert_eq!(adds(a, b), plain::adds(a, b));
            assert_eq!(sub(a, b), plain::sub(a, b));
            assert_eq!(subs(a, b), plain::subs(a, b));
            assert_eq!(or(a, b), plain::or(a, b));
            assert_eq!(xor(a, b), plain::xor(a, b));
            assert_eq!(shift_up(a), plain::shift_up(a));
            assert_eq!(shift_down(a), plain::shift_down(a));
            assert_eq!(least(a), plain::least(a));
            assert_eq!(pair_sum(a, b, 8), plain::pair_sum(a, b, 8));
            let [c, d, e, f]: [Numbers; 4] =
                std::array::from_fn(|_| std::array::from_fn(|_| random() as i16 % 40));
            assert_eq!(add_wide(c, d), plain::add_wide(c, d));
            assert_eq!(sub_wide(c, d), plain::sub_wide(c, d));
            assert_eq!(mul_wide(c, d), plain::mul_wide(c, d));
            assert_eq!(min_wide(c, d), plain::min_wide(c, d));
            assert_eq!(max_wide(c, d), plain::max_wide(c, d));
            assert_eq!(or_wide(c, d), plain::or_wide(c, d));
            assert_eq!(least_wide(c), plain::least_wide(c));
            assert_eq!(keep_smaller((c, d), (e, f)), plain::keep_smaller((c, d), (e, f)));
            assert_eq!(shift_pair_up([c, d], e), plain::shift_pair_up([c, d], e));
            for value in [c[0], d[7], 99] {
                assert_eq!(first_equal([c, d], value), plain::first_equal([c, d], value));
            }
        }
    }
}
